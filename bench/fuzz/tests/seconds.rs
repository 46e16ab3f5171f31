//! Each target for `DYNO_FUZZ_SECONDS` seconds, or one. Streams differ from run to run unless `DYNO_FUZZ_STREAM` says one.

#![expect(clippy::print_stdout, reason = "how many inputs there were")]

use dyno_fuzz::TARGETS;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

fn reads(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("a target");
    let seconds = Duration::from_secs(number("DYNO_FUZZ_SECONDS").unwrap_or(1));
    let stream = number("DYNO_FUZZ_STREAM").unwrap_or_else(|| {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
    });
    let start = Instant::now();
    let outcome = target.run(stream, |inputs| inputs > 100 && start.elapsed() > seconds);
    if let Some((why, input)) = outcome.findings.first() {
        panic!(
            "{name}: {why}; stream {stream}, input {}:\n{}",
            outcome.inputs,
            input.escape_ascii()
        );
    }
    println!("{name}: {} inputs", outcome.inputs);
}

macro_rules! targets {
    ($($test:ident = $name:literal;)*) => {
        $(#[test] fn $test() { reads($name); })*

        #[test]
        fn every_target_has_its_test() {
            assert_eq!(TARGETS.map(|target| target.name).to_vec(), [$($name),*]);
        }
    };
}

targets! {
    fleet_packets = "fleet";
    histograms = "histograms";
    run_folders = "run-folder";
    lua_bindings = "lua";
    mysql_logins = "mysql-login";
    mysql_answers = "mysql-answer";
    postgres_messages = "postgres";
    urls = "urls";
    suites = "suites";
    pgbench_scripts = "pgbench-scripts";
}
