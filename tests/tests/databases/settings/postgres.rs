//! PostgreSQL.

use super::{
    ALL_RIGHT, Honest, LOADS_ARE_RIGHT, RUNS_ARE_HONEST, Right, Row, Settings, Step, Steps,
    go_through, number_at, refusal_steps,
};
use dyno_core::Dialect;
use dyno_testkit::{Postgres, skipped};

/// `dyno bench` instead of the front ends of TPC-C and TPC-H.
const BENCH_IS_RIGHT: &Steps = &[
    (Step::Bench, Right),
    (Step::SysbenchPrepare, Right),
    (Step::SysbenchRun, Honest),
    (Step::PgbenchInit, Right),
    (Step::PgbenchRun, Honest),
];

/// Sessions and transactions are cut off.
const LIMITS: &Settings = &[
    ("statement_timeout", "100"),
    ("lock_timeout", "1"),
    ("idle_in_transaction_session_timeout", "100"),
    ("idle_session_timeout", "1000"),
    ("transaction_timeout", "100"),
    ("exit_on_error", "on"),
];

const SERIALIZABLE: &Settings =
    &[("default_transaction_isolation", "serializable"), ("session_replication_role", "replica")];

const HARMLESS: &Settings = &[
    ("bytea_output", "escape"),
    ("DateStyle", "German, DMY"),
    ("IntervalStyle", "sql_standard"),
    ("TimeZone", "Pacific/Kiritimati"),
    ("client_min_messages", "error"),
    ("row_security", "off"),
    ("password_encryption", "md5"),
    ("synchronous_commit", "off"),
    ("extra_float_digits", "-15"),
    ("escape_string_warning", "off"),
    ("backslash_quote", "off"),
    ("standard_conforming_strings", "off"),
    ("xmloption", "document"),
    ("jit", "off"),
    ("transform_null_equals", "on"),
    ("array_nulls", "off"),
    ("check_function_bodies", "off"),
    ("default_statistics_target", "1"),
    ("default_toast_compression", "pglz"),
    ("plan_cache_mode", "force_generic_plan"),
    ("work_mem", "64kB"),
    ("maintenance_work_mem", "1MB"),
    ("quote_all_identifiers", "on"),
    ("default_transaction_deferrable", "on"),
    ("log_min_duration_statement", "0"),
    ("vacuum_cost_delay", "1"),
    ("constraint_exclusion", "off"),
    ("max_parallel_workers_per_gather", "0"),
];

const ROWS: &[Row] = &[
    Row::new(&[HARMLESS], ALL_RIGHT),
    Row::new(
        &[&[("default_tablespace", "elsewhere"), ("default_table_access_method", "heap_by_name")]],
        BENCH_IS_RIGHT,
    ),
    Row {
        settings: &[LIMITS, SERIALIZABLE],
        steps: LOADS_ARE_RIGHT,
        then: &[(LIMITS, RUNS_ARE_HONEST), (SERIALIZABLE, RUNS_ARE_HONEST)],
    },
    Row::new(
        &[&[("default_transaction_read_only", "on")]],
        &refusal_steps("default_transaction_read_only"),
    ),
    Row::new(&[&[("search_path", "nowhere")]], &refusal_steps("schema")),
    Row::new(&[&[("temp_file_limit", "0")]], &refusal_steps("temp_file_limit")),
];

/// Settings in a target's URL win.
fn check_settings_of_target(port: u16) {
    let options = "--statement-timeout%3D77777%20-cidle_session_timeout%3D88888";
    let set = format!("set.lock_timeout=7&options={options}");
    let url = format!("postgres://postgres@127.0.0.1:{port}/postgres?{set}");
    for (name, value) in
        [("lock_timeout", 7), ("statement_timeout", 77_777), ("idle_session_timeout", 88_888)]
    {
        let setting = format!("SELECT setting FROM pg_settings WHERE name = '{name}'");
        assert_eq!(number_at(&url, &setting), value, "{name}");
    }
}

#[test]
fn settings_of_postgres() {
    let server = match Postgres::start_fetched().or_else(|_| Postgres::start()) {
        Ok(server) => server,
        Err(why) => return skipped("settings_of_postgres", &why),
    };
    let run_sql = |text: &str| {
        server.sql(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    };
    run_sql("CREATE ROLE app LOGIN");
    run_sql("ALTER SYSTEM SET allow_in_place_tablespaces = on");
    run_sql("SELECT pg_reload_conf()");
    run_sql("CREATE TABLESPACE elsewhere LOCATION ''");
    run_sql("GRANT CREATE ON TABLESPACE elsewhere TO app");
    let method = "CREATE ACCESS METHOD heap_by_name TYPE TABLE HANDLER heap_tableam_handler";
    server.in_database("template1", method).expect("an access method");
    check_settings_of_target(server.port);
    // The settings of all of its sessions, as ALTER SYSTEM would set them for all roles.
    let set_settings = |settings: &[(&str, &str)]| {
        let name_and_value = |(name, value): &(&str, &str)| format!("{name} = '{value}'");
        let mut count = 0;
        for setting in settings.iter().map(name_and_value) {
            count += usize::from(server.sql(&format!("ALTER ROLE app SET {setting}")).is_ok());
        }
        assert!(count * 2 > settings.len(), "{settings:?} are another version's");
        vec!["ALTER ROLE app RESET ALL".to_owned()]
    };
    go_through(ROWS, Dialect::Postgres, server.port, run_sql, set_settings);
}
