//! MySQL and MariaDB.

use super::{
    ALL_RIGHT, BENCH_IS_RIGHT, Expected, Honest, LOADS_ARE_RIGHT, Refused, Right, Row, Step,
    go_through, number_at, refusal_steps,
};
use dyno_core::Dialect;
use dyno_testkit::{MariaDb, MySql, ask, free_port, skipped};

const NOTHING_IS_LOST: &[(Step, Expected)] = &[
    (Step::SysbenchPrepare, Right),
    (Step::SysbenchRun, Refused("autocommit")),
    (Step::PgbenchInit, Right),
    (Step::PgbenchRun, Right),
    (Step::PgbenchScript, Refused("without completing the last transaction")),
    (Step::Build, Right),
    (Step::TpccRun, Right),
    (Step::TpchLoad, Right),
    (Step::TpchRun, Right),
];

/// Foreign keys of TPC-C, too.
const FOREIGN_KEYS_ARE_RIGHT: &[(Step, Expected)] = &[
    (Step::SysbenchPrepare, Right),
    (Step::SysbenchRun, Honest),
    (Step::PgbenchInit, Right),
    (Step::PgbenchRun, Honest),
    (Step::BuildWithForeignKeys, Right),
    (Step::TpccRun, Honest),
    (Step::TpchLoad, Right),
    (Step::TpchRun, Honest),
];

/// sysbench names the engine of its tables.
const fn refusal_steps_except_of_sysbench(words: &'static str) -> [(Step, Expected); 6] {
    let [_, pgbench, build, tpch, bench] = refusal_steps(words);
    [bench, pgbench, build, tpch, (Step::SysbenchPrepare, Right), (Step::SysbenchRun, Right)]
}

const RUNS_ARE_REFUSED: &[(Step, Expected)] = &[
    (Step::Bench, Refused("sql_select_limit")),
    (Step::SysbenchPrepare, Right),
    (Step::SysbenchRun, Refused("sql_select_limit")),
    (Step::PgbenchInit, Right),
    (Step::PgbenchRun, Right),
    (Step::Build, Right),
    (Step::TpccRun, Refused("sql_select_limit")),
    (Step::TpchLoad, Right),
    (Step::TpchRun, Refused("sql_select_limit")),
];

/// Tables have their keys from the beginning.
const KEY_ROWS: &[Row] = &[
    Row { settings: &[("sql_generate_invisible_primary_key", "ON")], steps: ALL_RIGHT },
    Row { settings: &[("sql_require_primary_key", "ON")], steps: BENCH_IS_RIGHT },
];

/// In a group of one server.
const GROUP_ROWS: &[Row] = &[
    Row { settings: &[], steps: ALL_RIGHT },
    Row {
        settings: &[("group_replication_transaction_size_limit", "1000000")],
        steps: &[
            (Step::PgbenchInit, Refused("transaction_size_limit")),
            (Step::Build, Refused("transaction_size_limit")),
            (Step::TpchLoad, Refused("transaction_size_limit")),
            (Step::Bench, Refused("transaction_size_limit")),
            (Step::SysbenchPrepare, Right),
            (Step::SysbenchRun, Right),
        ],
    },
    // As little as the largest transactions of these loads need.
    Row {
        settings: &[("group_replication_transaction_size_limit", "12800000")],
        steps: &[(Step::PgbenchInit, Right), (Step::Build, Right), (Step::TpchLoad, Right)],
    },
];

/// Rows for MariaDB alone.
const ENFORCED_ROWS: &[Row] = &[
    Row { settings: &[("enforce_storage_engine", "Aria")], steps: &refusal_steps("_engine") },
    Row { settings: &[("sql_mode", "ORACLE")], steps: LOADS_ARE_RIGHT },
    Row {
        settings: &[("sql_mode", "EMPTY_STRING_IS_NULL,SIMULTANEOUS_ASSIGNMENT")],
        steps: LOADS_ARE_RIGHT,
    },
];

const ENGINE: &[(Step, Expected)] = &refusal_steps_except_of_sysbench("default_storage_engine");

/// Rows for both products.
const ROWS: &[Row] = &[
    Row {
        settings: &[
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
        ],
        steps: ALL_RIGHT,
    },
    Row {
        settings: &[
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
        ],
        steps: FOREIGN_KEYS_ARE_RIGHT,
    },
    Row {
        settings: &[(
            "sql_mode",
            "ANSI_QUOTES,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES,NO_AUTO_VALUE_ON_ZERO,\
             HIGH_NOT_PRECEDENCE,IGNORE_SPACE,PAD_CHAR_TO_FULL_LENGTH,REAL_AS_FLOAT,\
             NO_UNSIGNED_SUBTRACTION,ONLY_FULL_GROUP_BY,STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE",
        )],
        steps: LOADS_ARE_RIGHT,
    },
    Row {
        settings: &[("sql_mode", "PAD_CHAR_TO_FULL_LENGTH")],
        steps: &[(Step::Bench, Right), (Step::TpchLoad, Right), (Step::TpchRun, Right)],
    },
    Row { settings: &[("autocommit", "OFF")], steps: NOTHING_IS_LOST },
    Row {
        settings: &[("init_connect", "SET autocommit = 0")],
        steps: &[
            (Step::Bench, Right),
            (Step::SysbenchPrepare, Right),
            (Step::SysbenchRun, Refused("autocommit")),
        ],
    },
    Row { settings: &[("sql_select_limit", "1")], steps: RUNS_ARE_REFUSED },
    Row {
        settings: &[("transaction_read_only", "ON"), ("tx_read_only", "ON")],
        steps: &refusal_steps("_read_only = on"),
    },
    // In this order the first one is also off again in the end.
    Row {
        settings: &[("read_only", "ON"), ("super_read_only", "ON")],
        steps: &refusal_steps("read-only"),
    },
    Row { settings: &[("default_storage_engine", "MEMORY")], steps: ENGINE },
    Row { settings: &[("default_storage_engine", "MyISAM")], steps: ENGINE },
    Row {
        settings: &[("binlog_format", "STATEMENT")],
        steps: &[
            (Step::Bench, Refused("binlog_format")),
            (Step::SysbenchPrepare, Right),
            (Step::SysbenchRun, Right),
            (Step::Build, Right),
            (Step::TpccRun, Refused("binlog_format")),
        ],
    },
];

fn execute(port: u16, sql: &str) {
    let admin = format!("mysql://root@127.0.0.1:{port}/mysql");
    ask(&admin, sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
}

/// Makes an account that may not change settings: its sessions are those that `init_connect` is for.
fn make_account(port: u16) {
    execute(port, "CREATE USER app@'%'");
    execute(port, "GRANT ALL ON `row%`.* TO app@'%'");
}

fn run_rows(port: u16, rows: &[Row]) {
    let admin = format!("mysql://root@127.0.0.1:{port}/mysql");
    let sql = |text: &str| execute(port, text);
    let set = |settings: &[(&str, &str)]| {
        let mut restore = Vec::new();
        for (name, value) in settings {
            let Ok(before) = ask(&admin, &format!("SELECT @@global.{name}")) else { continue };
            let literal = |value: &str| match value.parse::<f64>() {
                Ok(_) => value.to_owned(),
                Err(_) => format!("'{value}'"),
            };
            let before = before.single().map_or("NULL".to_owned(), literal);
            // Some can't be changed while a server runs, or have fewer values there.
            if ask(&admin, &format!("SET GLOBAL {name} = {}", literal(value))).is_ok() {
                restore.push(format!("SET GLOBAL {name} = {before}"));
            }
        }
        assert!(restore.len() * 2 >= settings.len(), "{settings:?} are other products'");
        restore
    };
    go_through(rows, Dialect::Mysql, port, sql, set);
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

#[test]
fn settings_of_mariadb() {
    let options = [
        "--log-bin",
        "--innodb-flush-log-at-trx-commit=2",
        "--lower-case-table-names=1",
        // It can't be switched on while the server runs, unless it is on demand.
        "--query-cache-type=DEMAND",
    ];
    let server = match MariaDb::start_with(&options) {
        Ok(server) => server,
        Err(why) => return skipped("settings_of_mariadb", &why),
    };
    make_account(server.port);
    check_settings_of_target(server.port);
    run_rows(server.port, ROWS);
    run_rows(server.port, ENFORCED_ROWS);
}

#[test]
fn settings_of_mysql() {
    let options = ["--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--server-id=1"];
    let server = match MySql::start_with(&options) {
        Ok(server) => server,
        Err(why) => return skipped("settings_of_mysql", &why),
    };
    make_account(server.port);
    check_settings_of_target(server.port);
    run_rows(server.port, ROWS);
    run_rows(server.port, KEY_ROWS);
    for sql in [
        "INSTALL PLUGIN group_replication SONAME 'group_replication.so'",
        "SET GLOBAL group_replication_group_name = '8a94f357-aab4-11df-86ab-c80aa9429562'",
        &format!("SET GLOBAL group_replication_local_address = '127.0.0.1:{}'", free_port()),
        "SET GLOBAL group_replication_bootstrap_group = ON",
        "START GROUP_REPLICATION",
    ] {
        execute(server.port, sql);
    }
    run_rows(server.port, GROUP_ROWS);
}
