//! Drop-ins on a real MySQL 9.7 and on MariaDB 11.8: logins with the SHA-256 methods, statements, bulk loads.

use super::bulk_loads::{load_and_fall_back, refused_loads};
use super::statements::{every_end, every_statement};
use super::support::{connect, driver, query_rows, run, run_sql, text};
use dyno_core::{Cause, Session};
use dyno_drivers::mysql::MysqlSession;
use dyno_testkit::{MariaDb, MySql, server_or_skip, skipped};

#[test]
fn mysql_logs_in_answers_and_loads() {
    let server = server_or_skip!(MySql, "mysql_logs_in_answers_and_loads");
    let url = server.url();
    let place = url.strip_prefix("mysql://root@").unwrap();
    run(async {
        let mut root = connect(&url).await.unwrap();
        for plugin in ["caching_sha2_password", "sha256_password"] {
            run_sql(
                &mut root,
                &[
                    "DROP USER IF EXISTS dyno_sha@'%'",
                    &format!("CREATE USER dyno_sha@'%' IDENTIFIED WITH {plugin} BY 'pass wörd'"),
                    "GRANT ALL ON *.* TO dyno_sha@'%'",
                ],
            )
            .await;
            for tls in ["disable", "require", "disable", "require"] {
                // The first of each pair finds nothing cached: the full path, by RSA and by TLS.
                let url = format!("mysql://dyno_sha:pass%20w%C3%B6rd@{place}?tls={tls}");
                for _ in 0..2 {
                    let mut session = connect(&url).await.unwrap();
                    assert_eq!(session.proof().unwrap().tls.is_some(), tls == "require");
                    let user = query_rows(&mut session, "SELECT CURRENT_USER()").await;
                    assert_eq!(user, [[text("dyno_sha@%")]]);
                }
                let url = format!("mysql://dyno_sha:hunter2@{place}?tls={tls}");
                let error = connect(&url).await.unwrap_err();
                assert_eq!((error.cause(), error.errno()), (Cause::Rejected, 1045));
                run_sql(&mut root, &["FLUSH PRIVILEGES"]).await;
            }
        }
        run_sql(&mut root, &["DROP USER dyno_sha@'%'"]).await;
        everything(&mut root, &url).await;
    });
}

async fn everything(root: &mut MysqlSession, url: &str) {
    every_statement(root).await;
    every_end(url).await;
    load_and_fall_back(url).await;
    refused_loads(&mut connect(url).await.unwrap()).await;
    run_sql(root, &["DROP TABLE odd, u, v", "DROP PROCEDURE p"]).await;
}

/// The whole way of each family stands here, too: one server for all.
#[test]
fn mariadb_11_8_logs_in_answers_loads_and_runs() {
    let server = match MariaDb::start_fetched() {
        Ok(server) => server,
        Err(why) => return skipped("mariadb_11_8_logs_in_answers_loads_and_runs", &why),
    };
    let url = server.url();
    run(async {
        // It makes its own certificate when it starts.
        for tls in ["disable", "require"] {
            let mut session = connect(&format!("{url}?tls={tls}")).await.unwrap();
            assert_eq!(session.proof().unwrap().tls.is_some(), tls == "require");
            assert!(session.product().version.starts_with("11.8."), "{:?}", session.product());
            every_statement(&mut session).await;
        }
        everything(&mut connect(&url).await.unwrap(), &url).await;
    });
    let driver = driver(&url);
    crate::sysbench::whole_way(&driver);
    crate::pgbench::books_are_compared(&driver);
}
