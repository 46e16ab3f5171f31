//! Readings of libpq's connection strings, options and variables.

use super::super::libpq::from_libpq_with;
use super::super::*;
use crate::net::TlsMode;
use proptest::prelude::*;

const NONE: LibpqOptions<'_> =
    LibpqOptions { host: None, port: None, user: None, fallback_application_name: None };

/// Reads a connection string with these environment variables.
fn with(
    dbname: Option<&str>,
    given: &LibpqOptions<'_>,
    variables: &[(&str, &str)],
) -> Result<TargetUrl, TargetError> {
    let me = Some("me".to_owned());
    from_libpq_with(
        dbname,
        given,
        &|wanted: &str| {
            let variable = variables.iter().find(|(name, _)| *name == wanted);
            variable.map(|(_, value)| (*value).to_owned())
        },
        me,
    )
}

fn read(dbname: &str) -> TargetUrl {
    with(Some(dbname), &NONE, &[]).unwrap_or_else(|error| panic!("{dbname}: {error}"))
}

/// The message of a refused connection string.
fn refuse(dbname: &str) -> String {
    with(Some(dbname), &NONE, &[]).expect_err(dbname).message
}

fn hosts(target: &TargetUrl) -> Vec<String> {
    target.hosts.0.iter().map(ToString::to_string).collect()
}

/// User and database, `-` for those that are not set.
fn names(target: &TargetUrl) -> (&str, &str) {
    (target.user.as_deref().unwrap_or("-"), target.database.as_deref().unwrap_or("-"))
}

#[test]
fn defaults_are_a_socket_and_the_name_of_the_user() {
    let target = with(None, &NONE, &[("PGPORT", "47113")]).unwrap();
    assert_eq!(hosts(&target), ["/var/run/postgresql/.s.PGSQL.47113"]);
    assert_eq!(names(&target), ("me", "me"));
    assert_eq!(target.tls.mode, TlsMode::Prefer);
    let with_user = with(None, &NONE, &[("PGUSER", "you")]).unwrap();
    assert_eq!(names(&with_user), ("you", "you"), "the database has the user's name");
    assert_eq!(names(&read("bench")), ("me", "bench"));
    let error = from_libpq_with(None, &NONE, &|_| None, None).unwrap_err();
    assert!(error.message.contains("No user") && error.hint.is_some());
    assert!(!system_user_of_this_machine().is_empty());
}

fn system_user_of_this_machine() -> String {
    TargetUrl::from_libpq(Some("x"), &NONE).unwrap().user.unwrap()
}

#[test]
fn keywords_take_quotes_and_backslashes() {
    let target = read(
        " host=/tmp port = 5433 dbname='a b' user=a\\ b password='x\\'y\\\\' sslmode=require \
          options='-c geqo=off -c jit=off' application_name = app connect_timeout=7 keepalives=1",
    );
    assert_eq!(hosts(&target), ["/tmp/.s.PGSQL.5433"]);
    assert_eq!(names(&target), ("a b", "a b"));
    assert_eq!(target.password.as_ref().unwrap().reveal(), "x'y\\");
    assert_eq!(target.tls.mode, TlsMode::Require);
    assert_eq!(target.options["options"], "-c geqo=off -c jit=off");
    assert_eq!(target.options["application_name"], "app");
    assert_eq!(target.connect_timeout_s(), 7);
    assert!(!format!("{target:?} {target}").contains("x'y"));
    assert_eq!(names(&read("dbname='' user=u")), ("u", "u"));
    assert_eq!(read("connect_timeout=0").connect_timeout_s(), 3_600);
    assert_eq!(read("sslrootcert=system").tls.mode, TlsMode::VerifyFull);
}

#[test]
fn uris_name_users_hosts_and_keywords() {
    let target =
        read("postgresql://u:p%40w@h1:5433,[::1],%2Ftmp:7/db%20x?sslmode=disable&ssl=true");
    assert_eq!(hosts(&target), ["h1:5433", "[::1]:5432", "/tmp/.s.PGSQL.7"]);
    assert_eq!(names(&target), ("u", "db x"));
    assert_eq!(target.password.as_ref().unwrap().reveal(), "p@w");
    assert_eq!(target.tls.mode, TlsMode::Require, "the last word counts");
    assert_eq!(hosts(&read("postgres://h")), ["h:5432"]);
    assert_eq!(hosts(&read("postgres://h?host=a,b&port=1,2")), ["a:1", "b:2"]);
    assert_eq!(names(&read("postgres:///db?user=x")), ("x", "db"));
    assert_eq!(hosts(&read("postgres://?hostaddr=127.0.0.1&host=name")), ["127.0.0.1:5432"]);
}

#[test]
fn the_string_comes_before_options_and_those_before_variables() {
    let options = LibpqOptions {
        host: Some("option"),
        port: Some("1"),
        user: Some("option"),
        fallback_application_name: Some("pgbench"),
    };
    let variables = [
        ("PGHOST", "variable"),
        ("PGPORT", "3"),
        ("PGUSER", "variable"),
        ("PGDATABASE", "variable"),
        ("PGPASSWORD", "secret"),
        ("PGSSLMODE", "disable"),
        ("PGOPTIONS", "-c x=y"),
        ("PGTZ", "UTC"),
        ("PGDATESTYLE", "default"),
        ("PGCHANNELBINDING", "require"),
    ];
    let target = with(Some("host=string"), &options, &variables).unwrap();
    assert_eq!(hosts(&target), ["string:1"]);
    assert_eq!(names(&target), ("option", "variable"));
    assert_eq!(target.password.as_ref().unwrap().reveal(), "secret");
    assert_eq!(target.tls.mode, TlsMode::Disable);
    assert_eq!(target.options["options"], "-c x=y");
    assert_eq!(target.options["channel_binding"], "require");
    assert_eq!(target.options["application_name"], "pgbench");
    assert_eq!(target.session_variables().collect::<Vec<_>>(), [("timezone", "UTC")]);
    let target = with(Some("plain"), &NONE, &variables).unwrap();
    assert_eq!((hosts(&target)[0].as_str(), names(&target)), ("variable:3", ("variable", "plain")));
    for (locale, encoding) in
        [("C.UTF-8", "UTF-8"), ("de_DE.ISO-8859-15@euro", "ISO-8859-15"), ("C", "SQL_ASCII")]
    {
        let variables = [("PGCLIENTENCODING", "auto"), ("LC_ALL", ""), ("LANG", locale)];
        let target = with(None, &NONE, &variables).unwrap();
        assert_eq!(target.options["set.client_encoding"], encoding);
    }
    let with_name = with(None, &options, &[("PGAPPNAME", "mine")]).unwrap();
    assert_eq!(with_name.options["application_name"], "mine");
}

#[test]
fn an_empty_value_hides_those_of_the_service_and_of_variables() {
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("services");
    let service = "[my]\nhost=db\ndbname=svcdb\nuser=svc\noptions=-c jit=off\nsslmode=\n";
    std::fs::write(&file, service).unwrap();
    let variables = [
        ("PGSERVICEFILE", file.to_str().unwrap()),
        ("PGSERVICE", "my"),
        ("PGPORT", "47113"),
        ("PGUSER", "variable"),
        ("PGSSLMODE", "disable"),
        ("PGAPPNAME", "variable"),
        ("PGCONNECT_TIMEOUT", ""),
    ];
    let options = LibpqOptions { fallback_application_name: Some("pgbench"), ..NONE };
    let read_with_service = |dbname| with(dbname, &options, &variables).unwrap();
    let target = read_with_service(Some(""));
    assert_eq!((hosts(&target)[0].as_str(), names(&target)), ("db:47113", ("svc", "svcdb")));
    assert_eq!(target.options["options"], "-c jit=off");
    assert_eq!(target.tls.mode, TlsMode::Prefer, "the service's empty word hides PGSSLMODE");
    assert_eq!(names(&read_with_service(Some("mine"))), ("svc", "mine"));
    let target = read_with_service(Some("options='' user='' host='' application_name=''"));
    assert_eq!(hosts(&target), ["/var/run/postgresql/.s.PGSQL.47113"]);
    assert_eq!(names(&target), ("me", "svcdb"));
    assert!(!target.options.contains_key("options"), "{target}");
    assert!(!target.options.contains_key("application_name"), "{target}");
    assert_eq!(
        names(&read_with_service(Some("dbname=''"))),
        ("svc", "svc"),
        "the default is the user's name"
    );
    let target = with(Some("requirepeer=''"), &NONE, &[("PGREQUIREPEER", "postgres")]);
    assert!(target.is_ok(), "{target:?}");
}

#[test]
fn lists_of_ports_fit_the_hosts() {
    assert_eq!(hosts(&read("host=a,b,c port=7")), ["a:7", "b:7", "c:7"]);
    assert_eq!(hosts(&read("host=a,b port=7,")), ["a:7", "b:5432"]);
    assert_eq!(refuse("host=a,b port=1,2,3"), "could not match 3 port numbers to 2 hosts");
    assert_eq!(
        refuse("host=a,b hostaddr=::1"),
        "could not match 2 host names to 1 hostaddr values"
    );
}

#[test]
fn mistakes_have_the_words_of_libpq_and_no_password() {
    for (text, message) in [
        ("host=a user", "missing \"=\" after \"user\" in connection info string"),
        ("dbname='x", "unterminated quoted string in connection info string"),
        ("hots=a", "invalid connection option \"hots\""),
        ("postgres://u:secret@h?hots=a", "invalid URI query parameter: \"hots\""),
        ("postgres://h?&", "missing key/value separator \"=\" in URI query parameter: \"\""),
        ("dbname='a''b'", "missing \"=\" after \"'b'\" in connection info string"),
        ("postgres://[]/", "IPv6 host address may not be empty in URI: \"postgres://[]/\""),
        (
            "postgres://u:secret@[::1/x",
            "end of string reached when looking for matching \"]\" in IPv6 host address in URI: \
             \"postgres://u:***@[::1/x\"",
        ),
        ("port=x", "invalid integer value \"x\" for connection option \"port\""),
        ("keepalives=abc", "invalid integer value \"abc\" for connection option \"keepalives\""),
        ("port=70000", "invalid port number: \"70000\""),
        ("sslmode=on", "invalid sslmode value: \"on\""),
        ("target_session_attrs=x", "invalid target_session_attrs value: \"x\""),
        ("postgres://u:p%zz@h", "invalid percent-encoded token: \"***\""),
        ("postgres://h/%00", "forbidden value %00 in percent-encoded value: \"%00\""),
        ("postgres://h?user", "missing key/value separator \"=\" in URI query parameter: \"user\""),
        ("postgres://h?a=b=c", "extra key/value separator \"=\" in URI query parameter: \"a\""),
    ] {
        assert_eq!(refuse(text), message, "{text}");
    }
    for text in ["channel_binding=x", "sslpassword=geheim", "requirepeer=postgres"] {
        let error = with(Some(text), &NONE, &[]).unwrap_err();
        assert!(!error.to_string().contains("geheim") && error.hint.is_some(), "{error}");
    }
    let message = with(None, &NONE, &[("PGSSLCRL", "/x.crl")]).unwrap_err().message;
    assert_eq!(message, "PGSSLCRL: The connection option sslcrl=/x.crl is not supported.");
    assert_eq!(refuse("service=x"), "definition of service \"x\" not found");
    assert!(with(None, &NONE, &[("PGSERVICE", "x")]).is_err());
    assert_eq!(refuse("load_balance_hosts=x"), "invalid load_balance_hosts value: \"x\"");
    assert!(with(Some("host=a hostaddr=::1 sslmode=verify-full"), &NONE, &[]).is_err());
    let hint = with(Some("hots=a"), &NONE, &[]).unwrap_err().hint.unwrap();
    assert_eq!(hint, "did you mean `host`?");
}

#[test]
fn a_missing_file_of_roots_is_missed_where_certificates_are_checked() {
    assert_eq!(read("sslmode=require sslrootcert=/no/such").tls.ca, None);
    assert_eq!(read("sslmode=verify-ca sslrootcert=/no/such").tls.ca, Some("/no/such".into()));
}

proptest! {
    #[test]
    fn quoted_values_read_back(value in "[^\0]{1,30}") {
        let quoted = value.replace('\\', "\\\\").replace('\'', "\\'");
        let target = read(&format!("user='{quoted}' dbname=x"));
        prop_assert_eq!(target.user.unwrap(), value);
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "(postgres://)?[a-z=:@/?&%,' \\\\\\[\\]0-9]{0,40}") {
        let _ = with(Some(&text), &NONE, &[]);
    }

    #[test]
    fn what_is_read_prints_as_a_url(host in "[a-z]{1,9}", port in 1_u16.., user in "[a-z'@ ]{1,9}") {
        let target = read(&format!("host={host} port={port} user='{}'", user.replace('\'', "\\'")));
        let url = TargetUrl { spellings: &[], ..target };
        prop_assert_eq!(url.to_string().parse::<TargetUrl>(), Ok(url));
    }
}
