//! Drop-ins on PostgreSQL 18, its login methods, and each family's whole way.

use super::statements::{every_end, every_statement};
use dyno_core::Cause;
use dyno_drivers::postgres::PostgresDriver;
use dyno_testkit::{Postgres, query_url, skipped, target, wait_until};

#[test]
fn postgres_18_answers_cancels_and_runs() {
    let mut server = match Postgres::start_fetched() {
        Ok(server) => server,
        Err(why) => return skipped("postgres_18_answers_cancels_and_runs", &why),
    };
    assert!(server.sql("SHOW server_version").unwrap().starts_with("18."));
    every_log_in(&server);
    every_statement(&server);
    let driver = PostgresDriver::new(&target(&server.url())).unwrap();
    crate::sysbench::whole_way(&driver);
    crate::pgbench::books_are_compared(&driver);
    every_end(&mut server);
}

fn every_log_in(server: &Postgres) {
    // Roles are named as their methods; what is stored for the others is a SCRAM verifier.
    let methods = ["scram-sha-256", "md5", "password"];
    let file = server.server.folder().join("data/pg_hba.conf");
    let rules = std::fs::read_to_string(&file).unwrap();
    let method_rules =
        methods.map(|method| format!("host all \"{method}\" 127.0.0.1/32 {method}\n"));
    std::fs::write(&file, method_rules.concat() + &rules).unwrap();
    for method in methods {
        let stored = if method == "md5" { "md5" } else { "scram-sha-256" };
        let create = format!("CREATE ROLE \"{method}\" LOGIN PASSWORD 'pass wörd'");
        server.sql(&format!("SET password_encryption = '{stored}'; {create}")).unwrap();
    }
    server.sql("SELECT pg_reload_conf()").unwrap();
    for method in methods {
        let url = |password: &str| {
            format!("postgres://{method}:{password}@127.0.0.1:{}/sbtest", server.port)
        };
        let wrong = url("hunter2");
        wait_until("the rules", || query_url(&wrong, "SELECT 1").is_err());
        let error = query_url(&wrong, "SELECT 1").unwrap_err();
        assert_eq!((error.cause(), error.sqlstate()), (Cause::Rejected, "28P01"), "{method}");
        let right = format!("{}?require_auth={method}", url("pass%20w%C3%B6rd"));
        let user = query_url(&right, "SELECT current_user").unwrap();
        assert_eq!(user.single(), Some(method));
    }
    // SASLprep makes other letters of these; the last one is only made of letters that it drops.
    for password in ["½", "a\u{a0}b", "ｆｕｌｌ", "ﬁne", "so\u{ad}ft", "e\u{301}", "\u{ad}"]
    {
        server.sql(&format!("ALTER ROLE \"scram-sha-256\" PASSWORD '{password}'")).unwrap();
        let encoded: String = password.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let url = format!("postgres://scram-sha-256:{encoded}@127.0.0.1:{}/sbtest", server.port);
        assert!(query_url(&url, "SELECT 1").is_ok(), "{password:?}");
    }
}
