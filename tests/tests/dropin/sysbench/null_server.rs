//! The server that answers at once, which comparisons with other programs and the calibration need: it has to
//! understand all that a run asks.

use super::support::sysbench;
use dyno_nullserver::{Config, Handle, start};
use dyno_testkit::Scratch;

fn server(is_empty: bool) -> Handle {
    let ports =
        Config { mysql_port: Some(0), postgres_port: Some(0), is_empty, ..Config::default() };
    start(ports).expect("a server")
}

/// The options of a driver for a server.
fn reached(driver: &str, server: &Handle) -> [String; 4] {
    let port = match driver {
        "mysql" => server.config.mysql_port,
        _ => server.config.postgres_port,
    };
    let port = port.expect("a port");
    [
        format!("--db-driver={driver}"),
        format!("--{driver}-host=127.0.0.1"),
        format!("--{driver}-port={port}"),
        format!("--{driver}-user=tester"),
    ]
}

fn run(driver: &str, server: &Handle, words: &[&str]) -> String {
    let options = reached(driver, server);
    let mut all: Vec<&str> = options.iter().map(String::as_str).collect();
    all.extend(words);
    let ran = sysbench(Scratch::new().path(), &all);
    assert_eq!(ran.code, 0, "{}", ran.all());
    ran.stdout
}

#[test]
fn the_null_server_understands_loads_and_runs() {
    for driver in ["mysql", "pgsql"] {
        let empty = server(true);
        run(driver, &empty, &["--table-size=3000", "--threads=1", "oltp_read_write", "prepare"]);
        let full = server(false);
        for test in ["oltp_read_write", "oltp_point_select"] {
            let words =
                ["--table-size=3000", "--events=100", "--time=0", "--threads=2", test, "run"];
            let text = run(driver, &full, &words);
            assert!(text.contains("transactions:                        100 "), "{text}");
        }
        let rows = |counters: dyno_nullserver::Counters| {
            let counters = if driver == "mysql" { counters.mysql } else { counters.postgres };
            counters.rows_loaded + counters.rows_inserted
        };
        let (loaded, ran) = (empty.stop().expect("counters"), full.stop().expect("counters"));
        assert_eq!((loaded.violations, ran.violations), (Vec::new(), Vec::new()));
        assert_eq!((rows(loaded.counters), rows(ran.counters)), (3_000, 100));
    }
}
