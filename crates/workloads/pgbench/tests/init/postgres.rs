//! A real PostgreSQL, alongside the real pgbench.

use crate::support::{LoadLog, init, query_rows, steps, with_session};
use dyno_core::AdminSession;
use dyno_core::Driver;
use dyno_drivers::postgres::PostgresDriver;
use dyno_load::{LoadError, LoadObserver};
use dyno_pgbench::init::{
    InitOptions, PartitionMethod, TableInfo, initialize, table_info, vacuum_accounts,
    vacuum_before_run,
};
use dyno_testkit::{Postgres, server_or_skip, skipped};
use rustix::process::{Pid, Signal, kill_process};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

fn driver(postgres: &Postgres) -> PostgresDriver {
    PostgresDriver::new(&postgres.url().parse().unwrap()).unwrap()
}

/// Runs the installed `pgbench -i`; false when there is none of version 15.
fn pgbench(postgres: &Postgres, options: &[&str]) -> bool {
    let version = Command::new("pgbench").arg("--version").output();
    if !version.is_ok_and(|version| version.stdout.starts_with(b"pgbench (PostgreSQL) 15.")) {
        return false;
    }
    let port = postgres.port.to_string();
    let output = Command::new("pgbench")
        .args(["-h", "127.0.0.1", "-p", &port, "-U", "postgres", "-i", "-q"])
        .args(options)
        .arg("sbtest")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    true
}

const ROWS: [&str; 4] = [
    "select count(*), md5(string_agg(t::text, '/' order by aid)) from pgbench_accounts as t",
    "select count(*), md5(string_agg(t::text, '/' order by tid)) from pgbench_tellers as t",
    "select count(*), md5(string_agg(t::text, '/' order by bid)) from pgbench_branches as t",
    "select count(*) from pgbench_history",
];

// Sessions that extend a large table at once leave pages that never hold a row, which VACUUM does not mark.
const CATALOG: [&str; 4] = [
    "select relname, relkind, relpersistence, reloptions, spcname, pg_get_partkeydef(c.oid), \
     pg_get_expr(relpartbound, c.oid), relallvisible >= relpages - case when relpages > 500 then 64 else 0 end or relkind <> 'r' from \
     pg_class as c left join pg_tablespace as t on t.oid = reltablespace where relname like 'pgbench%' \
     order by 1",
    "select attrelid::regclass, attname, format_type(atttypid, atttypmod), attnotnull from \
     pg_attribute where attnum > 0 and attrelid::regclass::text like 'pgbench%' order by 1, attnum",
    "select conname, conrelid::regclass, pg_get_constraintdef(oid) from pg_constraint where \
     conrelid::regclass::text like 'pgbench%' order by 1, 2",
    "select indexname, tablespace, indexdef from pg_indexes where tablename like 'pgbench%' \
     order by 1",
];

/// All rows and all that the catalog says.
fn state(driver: &PostgresDriver) -> Vec<String> {
    ROWS.iter().chain(&CATALOG).flat_map(|sql| query_rows(driver, sql)).collect()
}

/// The statements that the server has logged behind the first `from` bytes of its log.
fn logged(postgres: &Postgres, from: usize) -> Vec<String> {
    let log = postgres.server.log();
    let mut statements: Vec<String> = Vec::new();
    let mut on = false;
    for line in log[from..].lines() {
        if let Some(rest) = line.strip_prefix('\t') {
            if let Some(last) = statements.last_mut().filter(|_| on) {
                last.push('\n');
                last.push_str(rest);
            }
            continue;
        }
        let statement = line.split_once("LOG:  statement: ").map(|(_, sql)| sql.to_owned());
        on = statement.is_some();
        statements.extend(statement);
    }
    // Each session of a load looks at its own settings first.
    statements.retain(|sql| !sql.starts_with("SELECT name, setting FROM pg_settings"));
    statements
}

#[test]
fn pgbench_and_dyno_send_and_leave_the_same() {
    // A tablespace without its own folder: for tests, since PostgreSQL 15.
    let in_place = "allow_in_place_tablespaces=on";
    let logging = ["-c", "fsync=off", "-c", "log_statement=all", "-c", in_place];
    let postgres = match Postgres::start_with(&logging) {
        Ok(postgres) => postgres,
        Err(why) => return skipped("pgbench_and_dyno_send_and_leave_the_same", &why),
    };
    postgres.sbtest("create tablespace \"my \"\"space\" location ''").unwrap();
    let driver = driver(&postgres);
    let base = InitOptions::default();
    let own_space = Some("my \"space".to_owned());
    let hash = PartitionMethod::Hash;
    let cases: [(&[&str], InitOptions); 5] = [
        (&[], base.clone()),
        (
            &["--partitions=3", "--foreign-keys", "-F", "80", "-s", "2"],
            InitOptions {
                partitions: 3,
                foreign_keys: true,
                fillfactor: 80,
                scale: 2,
                ..base.clone()
            },
        ),
        (
            &["--partition-method=hash", "--partitions=2", "--unlogged-tables"],
            InitOptions { partitions: 2, partition_method: hash, unlogged: true, ..base.clone() },
        ),
        (&["-I", "dtGvpf"], steps("dtGvpf")),
        (
            &["--tablespace=my \"space", "--index-tablespace=my \"space"],
            InitOptions { tablespace: own_space.clone(), index_tablespace: own_space, ..base },
        ),
    ];
    for (arguments, options) in cases {
        let from = postgres.server.log().len();
        if !pgbench(&postgres, arguments) {
            return skipped("comparing with pgbench", "pgbench 15 is not installed");
        }
        let expected_log = logged(&postgres, from);
        let expected_state = state(&driver);
        let from = postgres.server.log().len();
        init(&driver, &options);
        assert_eq!(logged(&postgres, from), expected_log, "{arguments:?}");
        assert_eq!(state(&driver), expected_state, "{arguments:?}");
    }
}

#[test]
fn several_connections_leave_what_pgbench_leaves() {
    let postgres = match Postgres::start_undisturbed() {
        Ok(postgres) => postgres,
        Err(why) => return skipped("several_connections_leave_what_pgbench_leaves", &why),
    };
    let driver = driver(&postgres);
    if !pgbench(&postgres, &["-s", "3", "--foreign-keys"]) {
        return skipped("comparing with pgbench", "pgbench 15 is not installed");
    }
    let expected_state = state(&driver);
    let options =
        InitOptions { scale: 3, connections: 3, foreign_keys: true, ..InitOptions::default() };
    let load_log = init(&driver, &options);
    assert_eq!(state(&driver), expected_state);
    assert_eq!(load_log.rows_done.lock().unwrap().iter().sum::<u64>(), 300_000);
    // Rows that are there, with all their keys.
    init(&driver, &InitOptions { resume: true, ..options.clone() });
    assert_eq!(state(&driver), expected_state);
    // Emptied and filled again, foreign keys in place.
    init(
        &driver,
        &InitOptions { foreign_keys: false, ..InitOptions { steps: steps("g").steps, ..options } },
    );
    assert_eq!(query_rows(&driver, ROWS[0]), [expected_state[0].clone()]);
}

/// Loads like a suite.
struct Marking;

impl LoadObserver for Marking {
    fn table_mark(&self) -> Option<&str> {
        Some("dyno test")
    }
}

#[test]
fn tables_of_others_are_not_changed_and_own_ones_not_silently() {
    let name = "tables_of_others_are_not_changed_and_own_ones_not_silently";
    let postgres = server_or_skip!(Postgres, name);
    let driver = driver(&postgres);
    let resume = InitOptions { resume: true, ..InitOptions::default() };
    let resume_load = || initialize(&driver.admin(), &resume, &Marking);
    let assert_refused = |words: &str| {
        let before = state(&driver);
        let error = resume_load().unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!(state(&driver), before);
    };
    init(&driver, &steps("dt"));
    assert_refused(
        "Table pgbench_branches has no rows, and dyno changes no table that it has not made",
    );
    init(&driver, &steps("dtg"));
    assert_refused("Table pgbench_branches has no key pgbench_branches_pkey (`alter table");
    init(&driver, &steps("p"));
    assert_eq!(resume_load().unwrap().loaded.indexes_made, [""; 0], "used as they are");
    query_rows(&driver, "delete from pgbench_accounts");
    assert_refused("Table pgbench_accounts has too few rows");

    query_rows(&driver, "drop table pgbench_accounts");
    assert_eq!(resume_load().unwrap().loaded.indexes_made, [""; 0], "a load makes keys");
    query_rows(&driver, "alter table pgbench_accounts drop constraint pgbench_accounts_pkey");
    let loaded = resume_load().unwrap().loaded;
    assert_eq!(loaded.indexes_made, ["pgbench_accounts_pkey"]);
    assert!(loaded.sentence().to_string().ends_with("made: pgbench_accounts_pkey"));
}

/// Does something once, when as many rows have been sent.
struct At<F: Fn() + Sync> {
    rows: u64,
    rows_done: AtomicU64,
    action: F,
}

impl<F: Fn() + Sync> At<F> {
    fn new(rows: u64, action: F) -> Self {
        At { rows, rows_done: AtomicU64::new(0), action }
    }
}

impl<F: Fn() + Sync> LoadObserver for At<F> {
    fn rows_done(&self, rows: u64) {
        let before = self.rows_done.fetch_add(rows, Ordering::Relaxed);
        if before < self.rows && before + rows >= self.rows {
            (self.action)();
        }
    }
}

const LEAVE: &str = "select pg_terminate_backend(pid) from pg_stat_activity where query ilike \
                     'copy pgbench_accounts%' and pid <> pg_backend_pid()";

#[test]
fn a_load_goes_on_after_its_sessions_or_the_server_were_killed() {
    let name = "a_load_goes_on_after_its_sessions_or_the_server_were_killed";
    let mut postgres = server_or_skip!(Postgres, name);
    let driver = driver(&postgres);
    let options = InitOptions { scale: 8, connections: 2, ..InitOptions::default() };
    let kill = At::new(150_000, || drop(postgres.sbtest(LEAVE).unwrap()));
    let error = initialize(&driver.admin(), &options, &kill).unwrap_err();
    assert!(error.to_string().starts_with("step g (client-side generate): filling"), "{error}");
    assert!(error.hint().unwrap().contains("--resume"), "{error}");
    let rows_found: u64 =
        query_rows(&driver, "select count(*) from pgbench_accounts")[0].parse().unwrap();
    assert_eq!(rows_found % 100_000, 0);

    let resume = InitOptions { resume: true, ..options.clone() };
    let process = postgres.server.process().and_then(|id| Pid::from_raw(id as i32)).unwrap();
    // An immediate shutdown: backends survive a killed postmaster until their next wait.
    let kill = At::new(150_000, || kill_process(process, Signal::QUIT).unwrap());
    let error = initialize(&driver.admin(), &resume, &kill).unwrap_err();
    assert!(error.error.as_ref().unwrap().is_fatal(), "{error}");
    postgres.kill();
    postgres.restart().unwrap();

    // A chunk that another session has not committed yet is waited for, not loaded twice.
    let missing = "select min(b) from generate_series(1, 8) as b where b not in (select bid from \
                   pgbench_accounts)";
    let branch: u64 = query_rows(&driver, missing)[0].parse().unwrap();
    let late = format!(
        "begin; insert into pgbench_accounts select a, {branch}, 0, '' from generate_series({}, \
         {}) as a; select pg_sleep(1); commit",
        (branch - 1) * 100_000 + 1,
        branch * 100_000
    );
    let report = std::thread::scope(|scope| {
        let late = scope.spawn(|| postgres.sbtest(&late).unwrap());
        let is_writing = "select count(*) from pg_locks where relation = \
                          'pgbench_accounts'::regclass and mode = 'RowExclusiveLock'";
        while query_rows(&driver, is_writing) == ["0"] && !late.is_finished() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let report = initialize(&driver.admin(), &resume, &LoadLog::default()).unwrap();
        late.join().unwrap();
        report
    });
    assert!(report.loaded.rows_found > rows_found && report.loaded.rows_found % 100_000 == 0);
    assert_eq!(report.loaded.rows_found + report.loaded.rows_loaded, 800_000);
    let read_contents =
        || [ROWS[0], ROWS[1], ROWS[2], CATALOG[2]].map(|sql| query_rows(&driver, sql));
    let expected = read_contents();
    init(&driver, &InitOptions { connections: 1, ..options });
    assert_eq!(read_contents(), expected);
}

/// One server for all, because starting it takes longer than most of them.
#[test]
fn a_postgresql_is_filled_asked_and_refuses() {
    let postgres = server_or_skip!(Postgres, "a_postgresql_is_filled_asked_and_refuses");
    a_run_can_ask_about_the_tables(&postgres);
    errors_name_the_step_and_the_remedy(&postgres);
    a_load_of_one_connection_is_all_or_nothing(&postgres);
}

fn a_load_of_one_connection_is_all_or_nothing(postgres: &Postgres) {
    let driver = driver(postgres);
    init(&driver, &InitOptions::default());
    let before = state(&driver);
    let kill = At::new(150_000, || drop(postgres.sbtest(LEAVE).unwrap()));
    let error =
        initialize(&driver.admin(), &InitOptions { scale: 3, ..steps("g") }, &kill).unwrap_err();
    assert!(
        error
            .sql
            .as_ref()
            .unwrap()
            .starts_with("copy pgbench_accounts from stdin with (freeze on)")
    );
    assert_eq!(state(&driver), before);
}

fn a_run_can_ask_about_the_tables(postgres: &Postgres) {
    let driver = driver(postgres);
    let info = || {
        with_session(&driver, async |session| table_info(&mut AdminSession::lent(session)).await)
    };
    let missing = info().unwrap_err();
    assert!(
        missing.to_string().contains("relation \"pgbench_branches\" does not exist"),
        "{missing}"
    );
    let table =
        |partitions, partition_method| Some(TableInfo { scale: 0, partitions, partition_method });
    let load_log = init(&driver, &steps("dt"));
    let notice = "NOTICE:  table \"pgbench_accounts\" does not exist, skipping";
    assert_eq!(load_log.lines.lock().unwrap()[..2], ["dropping old tables...", notice]);
    assert_eq!(info().unwrap(), table(0, None));
    let partitioned = InitOptions { partitions: 3, ..steps("dt") };
    init(&driver, &partitioned);
    assert_eq!(info().unwrap(), table(3, Some(PartitionMethod::Range)));
    let hash = InitOptions { partition_method: PartitionMethod::Hash, ..partitioned };
    init(&driver, &hash);
    assert_eq!(info().unwrap(), table(3, Some(PartitionMethod::Hash)));
    // A partitioned table that these options don't speak of can't be copied into with FREEZE.
    init(&driver, &InitOptions { scale: 2, ..steps("g") });
    assert_eq!(info().unwrap().expect("accounts").scale, 2);
    query_rows(&driver, "insert into pgbench_history (tid) values (1)");
    let errors = with_session(&driver, async |session| {
        let mut errors = vacuum_before_run(&mut AdminSession::lent(session)).await;
        errors.extend(vacuum_accounts(&mut AdminSession::lent(session)).await);
        errors
    });
    assert_eq!(errors, []);
    assert_eq!(query_rows(&driver, "select count(*) from pgbench_history"), ["0"]);
    init(&driver, &steps("d"));
    let errors = with_session(&driver, async |session| {
        vacuum_before_run(&mut AdminSession::lent(session)).await
    });
    assert_eq!(errors.len(), 3);
}

fn errors_name_the_step_and_the_remedy(postgres: &Postgres) {
    let driver = driver(postgres);
    let view = "create view v as select * from pgbench_branches";
    let in_the_way = "drop view v; drop table pgbench_accounts, pgbench_branches, \
                      pgbench_history, pgbench_tellers; create view pgbench_branches as select 1";
    for (letters, before, words, hint) in [
        ("g", "select 1", "step g (client-side generate): emptying the tables failed", "step t"),
        ("G", "select 1", "step G (server-side generate): emptying", "step t"),
        ("v", "select 1", "step v (vacuum): analyzing table pgbench_branches", "step t"),
        ("dtf", "select 1", "step f (foreign keys): creating key pgbench_tellers_bid", "before"),
        ("pp", "select 1", "step p (primary keys)", "leave out step p"),
        ("ff", "select 1", "step f (foreign keys)", "leave out step f"),
        ("t", "select 1", "step t (create tables): creating table pgbench_history", "step d"),
        ("d", view, "step d (drop tables): dropping the old tables", "depends on"),
        ("d", in_the_way, "\"pgbench_branches\" is not a table", "view"),
    ] {
        query_rows(&driver, before);
        let error = init_error(&driver, letters, InitOptions::default());
        assert!(error.to_string().contains(words), "{error}");
        assert!(error.hint().is_some_and(|h| h.contains(hint)), "{error}: {:?}", error.hint());
        assert!(error.sql.is_some());
    }
    postgres.sql("create role poor login").unwrap();
    let url = postgres.url().replace("postgres@", "poor@");
    let poor = PostgresDriver::new(&url.parse().unwrap()).unwrap();
    let error = init_error(&poor, "t", InitOptions::default());
    assert!(error.to_string().contains("permission denied for schema public"), "{error}");
    assert!(error.hint().unwrap().contains("may create"), "{error}");
    let nowhere = InitOptions { tablespace: Some("nowhere".into()), ..InitOptions::default() };
    let error = init_error(&driver, "t", nowhere);
    assert!(error.to_string().contains("tablespace \"nowhere\" does not exist"), "{error}");
    let partitions = InitOptions { resume: true, partitions: 2, ..InitOptions::default() };
    query_rows(&driver, "drop view pgbench_branches");
    init(&driver, &steps("dt"));
    let error = init_error(&driver, "dtgvp", partitions);
    assert!(error.to_string().contains("has 0 partitions, the options say 2 by range"), "{error}");
}

fn init_error(driver: &PostgresDriver, letters: &str, options: InitOptions) -> LoadError {
    let options = InitOptions { steps: steps(letters).steps, ..options };
    initialize(&driver.admin(), &options, &LoadLog::default()).unwrap_err()
}
