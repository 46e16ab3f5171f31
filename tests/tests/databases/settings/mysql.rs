//! MySQL and MariaDB.

use super::{
    ALL_RIGHT, Expected, Honest, LOADS_ARE_RIGHT, RUNS_ARE_HONEST, Refused, Right, Row, Settings,
    Step, Steps, go_through, number_at, refusal_steps,
};
use dyno_core::Dialect;
use dyno_testkit::{MariaDb, MySql, free_port, query_url, skipped};

/// Foreign keys of TPC-C, too.
const LOADS_WITH_FOREIGN_KEYS: &Steps = &[
    (Step::SysbenchPrepare, Right),
    (Step::PgbenchInit, Right),
    (Step::BuildWithForeignKeys, Right),
    (Step::TpchLoad, Right),
];

const NOTHING_IS_LOST: &Steps = &[
    (Step::SysbenchRun, Refused("autocommit")),
    (Step::PgbenchRun, Right),
    (Step::PgbenchScript, Right),
    (Step::TpccRun, Right),
    (Step::TpchRun, Right),
];

/// Runs on a server on which a COMMIT also begins a transaction or closes the session.
const COMMITS_ARE_REFUSED: &Steps = &[
    (Step::SysbenchRun, Refused("completion_type")),
    (Step::PgbenchRun, Right),
    (Step::PgbenchScript, Right),
    (Step::TpccRun, Refused("completion_type")),
    (Step::TpchRun, Refused("completion_type")),
];

const RUNS_ARE_REFUSED: &Steps = &[
    (Step::SysbenchRun, Refused("sql_select_limit")),
    (Step::PgbenchRun, Right),
    (Step::TpccRun, Refused("sql_select_limit")),
    (Step::TpchRun, Refused("sql_select_limit")),
];

/// `dyno bench` instead of TPC-C.
const BENCH_IS_RIGHT: &Steps = &[
    (Step::Bench, Right),
    (Step::SysbenchPrepare, Right),
    (Step::SysbenchRun, Refused("out of init_connect")),
    (Step::PgbenchInit, Right),
    (Step::PgbenchRun, Honest),
    (Step::PgbenchScript, Right),
    (Step::TpchLoad, Right),
    (Step::TpchRun, Right),
];

/// sysbench names the engine of its tables.
const fn refusal_steps_except_of_sysbench(words: &'static str) -> [(Step, Expected); 6] {
    let [_, pgbench, build, tpch, bench] = refusal_steps(words);
    [bench, pgbench, build, tpch, (Step::SysbenchPrepare, Right), (Step::SysbenchRun, Right)]
}

/// In a group of one server.
const GROUP_ROWS: &[Row] = &[
    Row::new(
        &[&[("group_replication_transaction_size_limit", "1000000")]],
        &[
            (Step::PgbenchInit, Refused("transaction_size_limit")),
            (Step::Build, Refused("transaction_size_limit")),
            (Step::TpchLoad, Refused("transaction_size_limit")),
            (Step::Bench, Refused("transaction_size_limit")),
            (Step::SysbenchPrepare, Right),
            (Step::SysbenchRun, Right),
        ],
    ),
    // As little as the largest transactions of these loads need.
    Row::new(&[&[("group_replication_transaction_size_limit", "12800000")]], ALL_RIGHT),
];

const ORACLE: &Settings = &[("sql_mode", "ORACLE")];
const NULLS: &Settings = &[("sql_mode", "EMPTY_STRING_IS_NULL,SIMULTANEOUS_ASSIGNMENT")];

/// Rows for MariaDB alone.
const ENFORCED_ROWS: &[Row] = &[
    Row::new(&[&[("enforce_storage_engine", "Aria")]], &refusal_steps("_engine")),
    Row::new(
        &[&[("sql_mode", ""), ("enforce_storage_engine", "Aria")]],
        &[(Step::SysbenchPrepare, Refused("enforce_storage_engine = default"))],
    ),
    Row {
        settings: &[&[("sql_mode", "ORACLE,EMPTY_STRING_IS_NULL,SIMULTANEOUS_ASSIGNMENT")]],
        steps: LOADS_ARE_RIGHT,
        then: &[(ORACLE, RUNS_ARE_HONEST), (NULLS, RUNS_ARE_HONEST)],
    },
];

const ENGINE: &Steps = &refusal_steps_except_of_sysbench("default_storage_engine");

const HARMLESS: &Settings = &[
    ("binlog_format", "MIXED"),
    ("binlog_row_image", "MINIMAL"),
    ("innodb_strict_mode", "OFF"),
    ("local_infile", "OFF"),
    ("max_allowed_packet", "65536"),
    ("net_buffer_length", "4096"),
    ("sql_quote_show_create", "OFF"),
    ("sql_notes", "OFF"),
    ("group_concat_max_len", "4"),
    ("default_tmp_storage_engine", "MyISAM"),
    ("character_set_server", "latin1"),
    ("time_zone", "-11:00"),
    ("lc_time_names", "de_DE"),
    ("default_week_format", "3"),
    ("auto_increment_increment", "7"),
    ("auto_increment_offset", "3"),
    ("big_tables", "ON"),
    ("low_priority_updates", "ON"),
    ("explicit_defaults_for_timestamp", "OFF"),
    ("general_log", "OFF"),
    ("long_query_time", "0"),
    ("session_track_schema", "ON"),
    ("session_track_transaction_info", "STATE"),
    ("innodb_flush_log_at_trx_commit", "0"),
    ("sync_binlog", "0"),
    ("innodb_autoinc_lock_mode", "1"),
    ("updatable_views_with_limit", "NO"),
    ("max_error_count", "0"),
    ("query_cache_size", "16777216"),
    ("query_cache_type", "ON"),
    // Tables have their own keys from the beginning.
    ("sql_generate_invisible_primary_key", "ON"),
];

/// Statements and sessions are cut off, or mean something else.
const LIMITS: &Settings = &[
    ("sql_safe_updates", "ON"),
    ("max_execution_time", "20"),
    ("max_statement_time", "0.02"),
    ("sql_big_selects", "OFF"),
    ("max_join_size", "1000"),
    ("completion_type", "CHAIN"),
    ("foreign_key_checks", "OFF"),
    ("unique_checks", "OFF"),
    ("div_precision_increment", "0"),
    ("sql_auto_is_null", "ON"),
    ("innodb_lock_wait_timeout", "1"),
    ("lock_wait_timeout", "5"),
    ("wait_timeout", "3"),
    ("transaction_isolation", "SERIALIZABLE"),
    ("tx_isolation", "SERIALIZABLE"),
    ("alter_algorithm", "INSTANT"),
    ("idle_transaction_timeout", "1"),
    ("information_schema_stats_expiry", "86400"),
];

const MODES: &Settings = &[(
    "sql_mode",
    "ANSI_QUOTES,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES,NO_AUTO_VALUE_ON_ZERO,\
             HIGH_NOT_PRECEDENCE,IGNORE_SPACE,PAD_CHAR_TO_FULL_LENGTH,REAL_AS_FLOAT,\
             NO_UNSIGNED_SUBTRACTION,ONLY_FULL_GROUP_BY,STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE",
)];

const AUTOCOMMIT: &Settings = &[("autocommit", "OFF")];
const CHAIN: &Settings = &[("completion_type", "CHAIN")];
const RELEASE: &Settings = &[("init_connect", "SET completion_type = 2")];
const SELECT_LIMIT: &Settings = &[("sql_select_limit", "1")];
const STATEMENT: &Settings = &[("binlog_format", "STATEMENT")];

/// Rows for both products.
const HARMLESS_ROWS: &[Row] = &[Row::new(&[HARMLESS], ALL_RIGHT)];

const HARMFUL_ROWS: &[Row] = &[Row {
    settings: &[LIMITS, MODES, AUTOCOMMIT, SELECT_LIMIT, STATEMENT],
    steps: LOADS_WITH_FOREIGN_KEYS,
    then: &[
        (LIMITS, RUNS_ARE_HONEST),
        (CHAIN, COMMITS_ARE_REFUSED),
        (CHAIN, &[(Step::SysbenchScript, Refused("completion_type"))]),
        (RELEASE, COMMITS_ARE_REFUSED),
        (MODES, RUNS_ARE_HONEST),
        (SELECT_LIMIT, RUNS_ARE_REFUSED),
        (STATEMENT, &[(Step::SysbenchRun, Right), (Step::TpccRun, Refused("binlog_format"))]),
        (AUTOCOMMIT, NOTHING_IS_LOST),
    ],
}];

const REFUSED_ROWS: &[Row] = &[
    Row::new(&[SELECT_LIMIT], &[(Step::Bench, Refused("sql_select_limit"))]),
    Row::new(&[STATEMENT], &[(Step::Bench, Refused("binlog_format"))]),
    Row::new(
        &[&[("init_connect", "SET character_set_results = ucs2")]],
        &[
            (Step::Bench, Refused("character_set_results")),
            (Step::SysbenchPrepare, Right),
            (Step::SysbenchRun, Refused("character_set_results out of init_connect")),
            (Step::TpchLoad, Right),
        ],
    ),
    Row::new(
        &[&[
            ("sql_mode", "PAD_CHAR_TO_FULL_LENGTH"),
            ("init_connect", "SET autocommit = 0"),
            // MySQL's: tables have their keys from the beginning.
            ("sql_require_primary_key", "ON"),
        ]],
        BENCH_IS_RIGHT,
    ),
    Row::new(
        &[&[("transaction_read_only", "ON"), ("tx_read_only", "ON")]],
        &refusal_steps("_read_only = on"),
    ),
    // In this order the first one is also off again in the end.
    Row::new(&[&[("read_only", "ON"), ("super_read_only", "ON")]], &refusal_steps("read-only")),
    Row::new(&[&[("default_storage_engine", "MEMORY")]], ENGINE),
    Row::new(&[&[("default_storage_engine", "MyISAM")]], ENGINE),
];

fn execute(port: u16, sql: &str) {
    let admin = format!("mysql://root@127.0.0.1:{port}/mysql");
    query_url(&admin, sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
}

/// Makes an account that may not change settings: its sessions are those that `init_connect` is for.
fn make_account(port: u16) {
    execute(port, "CREATE USER app@'%'");
    execute(port, "GRANT ALL ON `row%`.* TO app@'%'");
}

fn run_rows(port: u16, rows: &[Row]) {
    let admin = format!("mysql://root@127.0.0.1:{port}/mysql");
    let run_sql = |text: &str| execute(port, text);
    let set_settings = |settings: &[(&str, &str)]| {
        let mut restore = Vec::new();
        for (name, value) in settings {
            let Ok(before) = query_url(&admin, &format!("SELECT @@global.{name}")) else {
                continue;
            };
            let to_literal = |value: &str| match value.parse::<f64>() {
                Ok(_) => value.to_owned(),
                Err(_) => format!("'{value}'"),
            };
            let before = before.single().map_or("NULL".to_owned(), to_literal);
            // Some can't be changed while a server runs, or have fewer values there.
            if query_url(&admin, &format!("SET GLOBAL {name} = {}", to_literal(value))).is_ok() {
                restore.push(format!("SET GLOBAL {name} = {before}"));
            }
        }
        assert!(restore.len() * 2 >= settings.len(), "{settings:?} are other products'");
        restore
    };
    go_through(rows, Dialect::Mysql, port, run_sql, set_settings);
}

/// Settings in a target's URL win, but for those without which loads store nothing.
fn check_settings_of_target(port: u16) {
    let set = "set.innodb_lock_wait_timeout=7&set.NET_READ_TIMEOUT=77&set.autocommit=0";
    let url = format!("mysql://root@127.0.0.1:{port}/mysql?{set}");
    for (name, value) in
        [("innodb_lock_wait_timeout", 7), ("net_read_timeout", 77), ("autocommit", 1)]
    {
        assert_eq!(number_at(&url, &format!("SELECT @@{name}")), value, "{name}");
    }
}

/// One server of each product for each of these tests: alongside each other they take half the time.
fn run_on_mariadb(test: &str, rows: &[&[Row]]) {
    let options = [
        "--log-bin",
        "--innodb-flush-log-at-trx-commit=2",
        "--lower-case-table-names=1",
        // It can't be switched on while the server runs, unless it is on demand.
        "--query-cache-type=DEMAND",
    ];
    let server = match MariaDb::start_with(&options) {
        Ok(server) => server,
        Err(why) => return skipped(test, &why),
    };
    make_account(server.port);
    check_settings_of_target(server.port);
    rows.iter().for_each(|rows| run_rows(server.port, rows));
}

fn run_on_mysql(test: &str, rows: &[&[Row]], prepare: impl FnOnce(u16)) {
    let options = ["--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--server-id=1"];
    let server = match MySql::start_with(&options) {
        Ok(server) => server,
        Err(why) => return skipped(test, &why),
    };
    make_account(server.port);
    check_settings_of_target(server.port);
    prepare(server.port);
    rows.iter().for_each(|rows| run_rows(server.port, rows));
}

fn start_group(port: u16) {
    for sql in [
        "INSTALL PLUGIN group_replication SONAME 'group_replication.so'",
        "SET GLOBAL group_replication_group_name = '8a94f357-aab4-11df-86ab-c80aa9429562'",
        &format!("SET GLOBAL group_replication_local_address = '127.0.0.1:{}'", free_port()),
        "SET GLOBAL group_replication_bootstrap_group = ON",
        "START GROUP_REPLICATION",
    ] {
        execute(port, sql);
    }
}

#[test]
fn harmful_settings_of_mariadb() {
    run_on_mariadb("harmful_settings_of_mariadb", &[HARMFUL_ROWS]);
}

#[test]
fn settings_of_mariadb() {
    run_on_mariadb("settings_of_mariadb", &[HARMLESS_ROWS, REFUSED_ROWS, ENFORCED_ROWS]);
}

#[test]
fn harmful_settings_of_mysql() {
    run_on_mysql("harmful_settings_of_mysql", &[HARMFUL_ROWS], |_| {});
}

#[test]
fn settings_of_mysql() {
    run_on_mysql("settings_of_mysql", &[HARMLESS_ROWS, REFUSED_ROWS], |_| {});
}

#[test]
fn settings_of_a_group_of_mysql() {
    run_on_mysql("settings_of_a_group_of_mysql", &[GROUP_ROWS], start_group);
}
