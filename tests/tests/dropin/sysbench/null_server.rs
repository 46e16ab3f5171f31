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
fn server_options(driver: &str, server: &Handle) -> [String; 4] {
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
    let options = server_options(driver, server);
    let mut arguments: Vec<&str> = options.iter().map(String::as_str).collect();
    arguments.extend(words);
    let output = sysbench(Scratch::new().path(), &arguments);
    assert_eq!(output.code, 0, "{output}");
    output.stdout
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
        let count_rows = |counters: dyno_nullserver::Counters| {
            let counters = if driver == "mysql" { counters.mysql } else { counters.postgres };
            counters.rows_loaded + counters.rows_inserted
        };
        let (loaded, output) = (empty.stop().expect("counters"), full.stop().expect("counters"));
        assert_eq!((loaded.violations, output.violations), (Vec::new(), Vec::new()));
        assert_eq!((count_rows(loaded.counters), count_rows(output.counters)), (3_000, 100));
    }
}
