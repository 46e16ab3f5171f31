use super::super::jdbc::{parse, redact_url};
use crate::TargetUrl;
use crate::net::TlsMode;
use proptest::prelude::*;

/// The target and the warnings of a JDBC URL.
fn read(text: &str) -> (String, Vec<String>) {
    let jdbc = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    (jdbc.target.to_string(), jdbc.warnings)
}

#[test]
fn urls_become_dynos_own() {
    for (jdbc, ours) in [
        ("jdbc:mysql://db1:3307/tpcc", "mysql://db1:3307/tpcc"),
        ("jdbc:mysql://localhost/tpcc", "mysql://localhost:3306/tpcc"),
        ("JDBC:mysql://[::1]:3307/tpcc", "mysql://[::1]:3307/tpcc"),
        ("jdbc:mysql://u:p@h/tpcc", "mysql://u:***@h:3306/tpcc"),
        ("jdbc:mysql:///tpcc?user=me&password=geheim", "mysql://me:***@localhost:3306/tpcc"),
        ("jdbc:mysql:loadbalance://a:1,b:2/d", "mysql://a:1,b:2/d"),
        ("jdbc:mysql://h/d?connectTimeout=1500", "mysql://h:3306/d?connect_timeout_s=2"),
        (
            "jdbc:mysql://h/d?sessionVariables=sql_mode='ANSI',innodb_lock_wait_timeout=3",
            "mysql://h:3306/d?set.innodb_lock_wait_timeout=3&set.sql_mode=ANSI",
        ),
        ("jdbc:mariadb://h:3307/d", "mysql://h:3307/d?tls=disable"),
        ("jdbc:postgresql://h:5433/d", "postgres://h:5433/d"),
        ("jdbc:postgresql://h/", "postgres://h:5432"),
        ("jdbc:postgresql:d", "postgres://localhost:5432/d"),
        ("jdbc:postgresql:/", "postgres://localhost:5432"),
        (
            "jdbc:postgresql://a,b:2/d?loadBalanceHosts=true&targetServerType=primary",
            "postgres://a:5432,b:2/d?target_session_attrs=read-write",
        ),
        (
            "jdbc:postgresql://a,b:2/d?targetServerType=primary",
            "postgres://a:5432,b:2/d?load_balance_hosts=disable&target_session_attrs=read-write",
        ),
        (
            "jdbc:postgresql://h/d?currentSchema=tpcc&ApplicationName=x%20y&channelBinding=require",
            "postgres://h:5432/d?application_name=x%20y&channel_binding=require&set.search_path=tpcc",
        ),
        ("jdbc:sqlite:/tmp/x.db", "sqlite:/tmp/x.db"),
    ] {
        assert_eq!(read(jdbc).0, ours, "{jdbc}");
    }
}

#[test]
fn tls_is_as_the_drivers_document_it() {
    for (jdbc, mode) in [
        ("jdbc:mysql://h/d", TlsMode::Prefer),
        ("jdbc:mysql://h/d?useSSL=false", TlsMode::Disable),
        ("jdbc:mysql://h/d?useSSL=true", TlsMode::Prefer),
        ("jdbc:mysql://h/d?useSSL=true&requireSSL=true", TlsMode::Require),
        ("jdbc:mysql://h/d?useSSL=true&verifyServerCertificate=true", TlsMode::VerifyCa),
        ("jdbc:mysql://h/d?useSSL=true&verifyServerCertificate=false", TlsMode::Prefer),
        ("jdbc:mysql://h/d?sslMode=VERIFY_IDENTITY", TlsMode::VerifyFull),
        ("jdbc:mysql://h/d?sslMode=DISABLED&useSSL=true", TlsMode::Disable),
        ("jdbc:mariadb://h/d?useSsl=true", TlsMode::VerifyFull),
        ("jdbc:mariadb://h/d?useSsl=true&trustServerCertificate=true", TlsMode::Require),
        ("jdbc:mariadb://h/d?sslMode=trust", TlsMode::Require),
        ("jdbc:mariadb://h/d?sslMode=verify-ca&serverSslCert=/ca.pem", TlsMode::VerifyCa),
        ("jdbc:postgresql://h/d?ssl=true", TlsMode::VerifyFull),
        ("jdbc:postgresql://h/d?ssl=false", TlsMode::Disable),
        ("jdbc:postgresql://h/d?ssl", TlsMode::VerifyFull),
        (
            "jdbc:postgresql://h/d?ssl=true&sslfactory=org.postgresql.ssl.NonValidatingFactory",
            TlsMode::Require,
        ),
        ("jdbc:postgresql://h/d?sslmode=verify-ca&sslrootcert=/ca.pem", TlsMode::VerifyCa),
    ] {
        let jdbc_url = parse(jdbc).unwrap_or_else(|error| panic!("{jdbc}: {error}"));
        assert_eq!(jdbc_url.target.tls.mode, mode, "{jdbc}");
        assert!(jdbc_url.warnings.is_empty(), "{jdbc}: {:?}", jdbc_url.warnings);
    }
}

#[test]
fn what_is_ignored_is_named() {
    let (_, warnings) = read(
        "jdbc:mysql://h/d?rewriteBatchedStatements=true&cachePrepStmts=true&prepStmtCacheSize=250\
         &socketTimeout=30000&rewriteBatchedStatemets=true&q@x",
    );
    let names = "rewriteBatchedStatements, cachePrepStmts, prepStmtCacheSize, socketTimeout, \
                 rewriteBatchedStatemets, ...";
    assert_eq!(warnings, [format!("JDBC parameters that mean nothing here are ignored: {names}.")]);
    let (url, warnings) = read("jdbc:postgresql://a:1,b:2/d");
    assert_eq!(url, "postgres://a:1,b:2/d?load_balance_hosts=disable");
    assert!(warnings.is_empty(), "{warnings:?}");
    let (url, warnings) = read("jdbc:mysql:replication://a,b/d");
    assert_eq!((url.as_str(), warnings.len()), ("mysql://a:3306/d", 1));
}

#[test]
fn what_can_not_be_a_target_is_refused_with_a_remedy() {
    for (text, part) in [
        ("jdbc:oracle:thin:@h:1521:x", "doesn't speak with"),
        ("jdbc:firebirdsql://h/d", "doesn't speak with"),
        ("mysql://h/d", "isn't a JDBC URL"),
        ("jdbd:mysql://h/d", "does not begin with jdbc:"),
        ("jdbc:mysql", "isn't a JDBC URL"),
        ("jdbc:mysql:h/d", "lacks the //"),
        ("jdbc:mysql:quantum://h/d", "unknown word"),
        ("jdbc:mysql://(host=h,port=1)/d", "hosts in parentheses"),
        ("jdbc:mysql://h:99999/d", "port"),
        ("jdbc:mysql://h/d?connectTimeout=soon", "connect_timeout_s"),
        ("jdbc:postgresql://h/d?sslmode=maybe", "one of disable, allow"),
    ] {
        let error = parse(text).expect_err(text);
        assert!(error.message.contains(part), "{text}: {error}");
        assert!(error.hint.is_some() || error.message.contains("is needed"), "{text}");
    }
}

#[test]
fn passwords_are_never_shown() {
    for text in [
        "jdbc:mysql://u:QWERTZ@h/d",
        "jdbc:mysql://h/d?user=u&password=QWERTZ&useSSL=false",
        "jdbc:mysql://address=(host=h)(password=QWERTZ)/d",
        "jdbc:mysql://(host=h,user=u,password=QWERTZ)/d",
        "jdbc:mysql://address=(host=h)(password=QWERTZ",
        "jdbc:mysql://(host=h,user=u,password=QWERTZ/d",
        "jdbc:mysql://h/d?password1=QWERTZ",
        "jdbc:mysql://h/d;user=u;password=QWERTZ",
        "jdbc:postgresql:d?password=QWERTZ",
        "jdbc:oracle:thin:u/x:QWERTZ@h:1521:x",
        "jdbc:mysql://h/d?trustCertificateKeyStorePassword=QWERTZ",
    ] {
        let redacted = redact_url(text);
        assert!(!redacted.contains("QWERTZ"), "{redacted}");
        let debug_text = match parse(text) {
            Ok(jdbc) => format!("{} {:?} {:?}", jdbc.target, jdbc.target, jdbc.warnings),
            Err(error) => format!("{error:?}"),
        };
        assert!(!debug_text.contains("QWERTZ"), "{debug_text}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(
        text in "(jdbc:)?(mysql|mariadb|postgresql|sqlite|x)?:?(loadbalance:)?/{0,2}[a-z%@:?&=/,;\\[\\]().0-9é]{0,40}|\\PC{0,40}"
    ) {
        let _ = parse(&text).map(|jdbc| jdbc.target.to_string());
        let _ = redact_url(&text);
    }
}

/// A JDBC URL given as one of dyno's own: the password is in the middle of the hosts.
#[test]
fn a_jdbc_url_in_the_wrong_place_does_not_show_its_password() {
    for url in [
        "jdbc:mysql://address=(host=h)(user=u)(password=geheim)/d",
        "jdbc:mysql://(host=h,password=geheim)/d",
        "mysql://address=(host=h)(password=geheim)/d",
        "jdbc:postgresql://h/d;password=geheim",
    ] {
        let error = url.parse::<TargetUrl>().unwrap_err();
        assert!(!format!("{error:?}").contains("geheim"), "{error:?}");
    }
}
