//! The compressed protocol on real servers.

use super::bulk_loads::load_and_fall_back;
use super::statements::every_statement;
use super::support::{big_packets, connect, query_rows, run, run_sql, text};
use dyno_core::{Discard, Param, ParamType, Session};
use dyno_drivers::mysql::MysqlSession;
use dyno_testkit::{MariaDb, MySql, server_or_skip};

/// All that a session can do, on one whose server says that it compresses.
async fn everything(url: &str) {
    let mut session = connect(url).await.unwrap();
    let status = query_rows(&mut session, "SHOW SESSION STATUS LIKE 'Compression'").await;
    assert_eq!(status, [[text("Compression"), text("ON")]], "{url}");
    every_statement(&mut session).await;
    big_packets(&mut session, &[100, 100_000, 20_000_000]).await;
    flights(&mut session).await;
    load_and_fall_back(url).await;
    run_sql(&mut session, &["DROP TABLE odd, u, v", "DROP PROCEDURE p"]).await;
    session.close().await;
}

/// Commands of one flight, short ones and such as are worth compressing.
async fn flights(session: &mut MysqlSession) {
    let sql = "SELECT LENGTH(?) FROM (SELECT 1 UNION SELECT 2) AS two";
    let length = session.prepare(sql, &[ParamType::Text]).await.unwrap();
    let long = vec![b'x'; 3_000];
    for _ in 0..3 {
        for bytes in [&long[..5], &long, &long[..70], &long[..1]] {
            session.queue(length, &[Param::Text(bytes)]).unwrap();
        }
        let mut results = Vec::new();
        session.flush(&mut Discard, &mut results).await.unwrap();
        let rows: Vec<u64> = results.into_iter().map(|result| result.unwrap().rows).collect();
        assert_eq!(rows, [2; 4]);
    }
}

#[test]
fn mariadb_compresses_by_zlib() {
    let server = server_or_skip!(MariaDb, "mariadb_compresses_by_zlib");
    server.sql("SET GLOBAL max_allowed_packet = 64 * 1024 * 1024").unwrap();
    let url = server.url();
    run(async {
        everything(&format!("{url}?compression=zlib")).await;
        let mut plain = connect(&format!("{url}?compression=uncompressed")).await.unwrap();
        let status = query_rows(&mut plain, "SHOW SESSION STATUS LIKE 'Compression'").await;
        assert_eq!(status[0][1], text("OFF"));
    });
}

#[test]
fn mysql_compresses_by_zlib_also_under_tls() {
    let server = server_or_skip!(MySql, "mysql_compresses_by_zlib_also_under_tls");
    let url = server.url();
    run(async {
        for tls in ["disable", "require"] {
            let url = format!("{url}?compression=zlib&tls={tls}");
            let mut session = connect(&url).await.unwrap();
            assert_eq!(session.proof().unwrap().tls.is_some(), tls == "require");
            let sql = "SHOW SESSION STATUS LIKE 'Compression_algorithm'";
            assert_eq!(query_rows(&mut session, sql).await[0][1], text("zlib"));
            everything(&url).await;
        }
    });
}
