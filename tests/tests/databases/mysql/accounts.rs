//! Log-ins on a real MariaDB: passwords, TLS, mistakes.

use super::support::{big_packets, connect, query_rows, run, text};
use dyno_core::Cause;
use dyno_testkit::{Certificates, MariaDb, skipped};

#[test]
fn accounts() {
    let certificates = match Certificates::make() {
        Ok(certificates) => certificates,
        Err(why) => return skipped("accounts", &why),
    };
    let certificate_path = |name: &str| certificates.file(name).display().to_string();
    let mut options = [("ssl-ca", "ca.pem"), ("ssl-cert", "server.pem"), ("ssl-key", "server.key")]
        .map(|(option, name)| format!("--{option}={}", certificate_path(name)))
        .to_vec();
    // Debian packs the plug-ins apart from the server.
    if let Ok(folder) = std::env::var("DYNO_TEST_MARIADB_PLUGINS") {
        options.push(format!("--plugin-dir={folder}"));
    }
    options.extend(["--max-connections=20", "--max-allowed-packet=64M"].map(str::to_owned));
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let server = match MariaDb::start_with(&options) {
        Ok(server) => server,
        Err(why) => return skipped("accounts", &why),
    };
    server
        .sql(
            "CREATE USER native@'%' IDENTIFIED BY 'pass wörd';
             CREATE USER secure@'%' IDENTIFIED BY 'x' REQUIRE SSL;
             GRANT ALL ON sbtest.* TO native@'%', secure@'%'",
        )
        .unwrap();
    run(async {
        let url_for =
            |user: &str, rest: &str| format!("mysql://{user}@127.0.0.1:{}/{rest}", server.port);
        let native = "native:pass%20w%C3%B6rd";
        let mut session = connect(&url_for(native, "sbtest?tls=disable")).await.unwrap();
        let cipher = query_rows(&mut session, "SHOW STATUS LIKE 'Ssl_cipher'").await;
        assert_eq!(cipher[0][1], text(""));
        assert_eq!(query_rows(&mut session, "SELECT CURRENT_USER()").await, [[text("native@%")]]);
        let sql = "SELECT attr_value FROM performance_schema.session_connect_attrs \
                   WHERE attr_name='program_name' LIMIT 1";
        let attributes = server.sql("SELECT @@performance_schema").unwrap();
        if attributes.trim() == "1" {
            assert_eq!(query_rows(&mut session, sql).await, [[text("dyno")]]);
        }

        let wrong = connect(&url_for("native:hunter2", "sbtest")).await.unwrap_err();
        assert_eq!((wrong.cause(), wrong.errno()), (Cause::Rejected, 1045));
        let hint = wrong.hint().unwrap();
        assert!(
            hint.contains("check user and password") && hint.contains("REQUIRE X509"),
            "{hint}"
        );
        assert!(!format!("{wrong:?}{wrong}{:?}", wrong.hint()).contains("hunter2"));
        let none = connect(&url_for("native", "sbtest")).await.unwrap_err();
        assert!(none.hint().unwrap().contains("no password was given"));
        let unknown = connect(&url_for("root", "nowhere")).await.unwrap_err();
        assert_eq!((unknown.cause(), unknown.errno()), (Cause::Rejected, 1049));
        assert!(unknown.hint().unwrap().contains("CREATE DATABASE"));
        let url = format!("mysql://root@127.0.0.1:{}/", dyno_testkit::free_port());
        let port = connect(&url).await.unwrap_err();
        assert_eq!(port.cause(), Cause::Unreachable);

        tls(&certificates, &url_for).await;
        ed25519(&server, &url_for).await;
        too_many_connections(&url_for("root", "sbtest?tls=disable")).await;
    });
}

async fn tls(certificates: &Certificates, url_for: &impl Fn(&str, &str) -> String) {
    let ca = certificates.ca();
    for mode in ["prefer", "require", "verify-ca", "verify-full"] {
        let options = if mode.starts_with("verify") { format!("&ca={ca}") } else { String::new() };
        let url = url_for("secure:x", &format!("sbtest?tls={mode}{options}"));
        let mut session = connect(&url).await.unwrap();
        let rows = query_rows(&mut session, "SHOW STATUS LIKE 'Ssl_cipher'").await;
        assert_ne!(rows[0][1], text(""), "{mode}");
        big_packets(&mut session, &[if mode == "require" { 20_000_000 } else { 100_000 }]).await;
    }
    let without_tls = connect(&url_for("secure:x", "sbtest?tls=disable")).await.unwrap_err();
    assert_eq!(without_tls.cause(), Cause::Rejected);
    assert!(without_tls.hint().unwrap().ends_with("REQUIRE SSL needs tls=require"));
    let untrusted = connect(&url_for("secure:x", "sbtest?tls=verify-ca")).await.unwrap_err();
    assert_eq!(untrusted.cause(), Cause::Tls, "{untrusted}");
    let other_ca = certificates.file("other.pem").display().to_string();
    let url = url_for("secure:x", &format!("sbtest?tls=verify-full&ca={other_ca}"));
    assert_eq!(connect(&url).await.unwrap_err().cause(), Cause::Tls);
}

async fn ed25519(server: &MariaDb, at: &impl Fn(&str, &str) -> String) {
    if let Err(why) = server.sql("INSTALL SONAME 'auth_ed25519'") {
        return skipped("ed25519", why.lines().last().unwrap_or_default());
    }
    server
        .sql("CREATE USER ed@'%' IDENTIFIED VIA ed25519 USING PASSWORD('secret'); GRANT ALL ON sbtest.* TO ed@'%'")
        .unwrap();
    let mut session = connect(&at("ed:secret", "sbtest?tls=disable")).await.unwrap();
    assert_eq!(query_rows(&mut session, "SELECT CURRENT_USER()").await, [[text("ed@%")]]);
    assert_eq!(connect(&at("ed:wrong", "sbtest")).await.unwrap_err().errno(), 1045);
}

async fn too_many_connections(url: &str) {
    let mut open = Vec::new();
    let error = loop {
        assert!(open.len() < 40, "the server's limit is 20");
        match connect(url).await {
            Ok(session) => open.push(session),
            Err(error) => break error,
        }
    };
    assert_eq!((error.cause(), error.errno()), (Cause::Rejected, 1040));
    assert!(error.hint().unwrap().contains("max_connections"));
}
