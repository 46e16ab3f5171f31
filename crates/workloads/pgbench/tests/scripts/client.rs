//! Clients between and around transactions: choices, retries, waits, statistics, logs.

use crate::support::{Case, FILE, Messages, Original, run, silent_driver};
use dyno_core::{
    DbError, Dialect, Discard, Driver, EndedTransaction, ErrorClass, MILLISECOND, Outcome, Rng,
    SECOND, Session, Tally, Workload,
};
use dyno_pgbench::run::{Client, PgBench, PgbenchOptions, TransactionLogger, VerboseErrors};
use dyno_pgbench::script::{QueryMode, Script};
use dyno_reactor::{Clock, Loop, block_on, now, run_all};
use dyno_testkit::sim::{Fault, Service, SimDriver, SimulatedAnswers as SimScript};
use std::sync::{Arc, Mutex};

fn script(text: &str, mode: QueryMode) -> Script {
    Script::parse(text.as_bytes(), FILE, mode).unwrap()
}

fn one_script(text: &str, mode: QueryMode) -> PgbenchOptions {
    PgbenchOptions::new(vec![(script(text, mode), 1)], mode, 1)
}

fn workload(options: PgbenchOptions) -> PgBench {
    PgBench::new(options, Dialect::Postgres, Messages::default().talker()).unwrap()
}

/// A server that keeps the log of its statements.
fn logged(dialect: Dialect, faults: Vec<Fault>) -> SimDriver {
    let service = Service::Constant(0);
    SimDriver::new(SimScript { service, dialect, faults, keep_log: true, ..SimScript::default() })
}

async fn open<S: Session>(workload: &PgBench, session: &mut S, id: u32) -> Client {
    workload.open(session, id, 1, Rng::new(1, "worker", 0)).await.unwrap()
}

async fn attempt<S: Session>(
    workload: &PgBench,
    client: &mut Client,
    session: &mut S,
    attempt: u32,
) -> Result<Outcome, DbError> {
    workload.run(client, session, 0, attempt, &mut Tally::default()).await
}

/// Texts and parameters of what a simulated server received while `work` was done.
fn received(driver: &SimDriver) -> Vec<String> {
    let texts = driver.log().into_iter().map(|logged| {
        if logged.params.is_empty() {
            logged.sql
        } else {
            format!("{} <- {}", logged.sql, logged.params.join(", "))
        }
    });
    texts.collect()
}

/// Runs one transaction of a script on a dialect; what the server received.
fn one_transaction(text: &str, mode: QueryMode, dialect: Dialect) -> Vec<String> {
    let driver = logged(dialect, Vec::new());
    let workload =
        PgBench::new(one_script(text, mode), dialect, Messages::default().talker()).unwrap();
    block_on(async {
        let mut session = driver.connect(0).await.unwrap();
        let mut client = open(&workload, &mut session, 0).await;
        attempt(&workload, &mut client, &mut session, 0).await.unwrap();
    })
    .unwrap();
    received(&driver)
}

fn ended(outcome: Outcome, attempts: u32) -> EndedTransaction {
    let (due, began, ended) = (100, 100, 300);
    EndedTransaction { transaction: 0, outcome, due, began, ended, attempts, is_measured: true }
}

#[test]
fn a_retry_draws_the_same_numbers_and_keeps_the_variables() {
    let text = "\\set a random(1, 1000000)\n\\set n :n + 1\nSELECT :a, :n;\n";
    let mut options = one_script(text, QueryMode::Simple);
    options.defines.push(("n".to_owned(), "0".to_owned()));
    let deadlock = Fault::ErrorAt { statement: 0, class: ErrorClass::Deadlock };
    let driver = logged(Dialect::Postgres, vec![deadlock]);
    let workload = workload(options);
    block_on(async {
        let mut session = driver.connect(0).await.unwrap();
        let mut client = open(&workload, &mut session, 0).await;
        let error = attempt(&workload, &mut client, &mut session, 0).await.unwrap_err();
        assert_eq!(error.class(), ErrorClass::Deadlock);
        attempt(&workload, &mut client, &mut session, 1).await.unwrap();
        workload.ended(&mut client, &ended(Outcome::Committed, 2));
        attempt(&workload, &mut client, &mut session, 0).await.unwrap();
        workload.ended(&mut client, &ended(Outcome::Committed, 1));
        workload.retire(client, None);
    })
    .unwrap();
    let received = received(&driver);
    let values: Vec<&str> =
        received.iter().map(|text| text.split([' ', ',']).nth(1).unwrap()).collect();
    assert_eq!(values[0], values[1]);
    assert_ne!(values[1], values[2]);
    let ends: Vec<_> = received.iter().map(|text| text.rsplit(' ').next().unwrap()).collect();
    assert_eq!(ends, ["1;", "2;", "3;"]);
    let statistics = &workload.statistics().scripts[0];
    assert_eq!((statistics.processed(), statistics.retried, statistics.retries), (2, 1, 1));
    assert_eq!(statistics.commands[2].retries, 1);
}

#[test]
fn scripts_are_chosen_as_pgbench_chooses_them() {
    let Some(original) = Original::start("choices against pgbench", &["-c", "fsync=off"]) else {
        return;
    };
    let files: [(&str, u32); 3] = [("a.sql", 3), ("b.sql", 0), ("c.sql", 2)];
    let text = "\\set x debug(random(1, 1000))\n";
    let theirs = original.run_files(&files, text, 200, 99);
    let messages = Messages::default();
    let scripts = files.iter().map(|(name, weight)| {
        (Script::parse(text.as_bytes(), name, QueryMode::Simple).unwrap(), *weight)
    });
    let options = PgbenchOptions::new(scripts.collect(), QueryMode::Simple, 99);
    let workload = PgBench::new(options, Dialect::Postgres, messages.talker()).unwrap();
    block_on(async {
        let mut session = silent_driver().connect(0).await.unwrap();
        let mut client = open(&workload, &mut session, 0).await;
        for _ in 0..200 {
            let script = workload.choose(&mut client).unwrap();
            workload
                .run(&mut client, &mut session, script, 0, &mut Tally::default())
                .await
                .unwrap();
        }
    })
    .unwrap();
    assert_eq!(messages.text(), theirs);
    assert_eq!(theirs.lines().count(), 200);
}

#[test]
fn clients_are_spread_as_pgbench_spreads_them() {
    let mut options = one_script("SELECT 1;", QueryMode::Simple);
    (options.clients, options.threads) = (10, 4);
    let workload = workload(options);
    let threads: Vec<u32> = (0..10).map(|client| workload.client_thread(client)).collect();
    assert_eq!(threads, [0, 0, 0, 1, 1, 1, 2, 2, 3, 3]);
}

#[test]
fn nested_conditions_run_the_branch_that_holds_and_count_what_ran() {
    let text = "\\if :x = 1\n SELECT 'one';\n\\elif :x = 2\n \\if :y\n SELECT 'two';\n \\else\n \
                SELECT 'not y';\n \\endif\n\\else\n \\if true\n SELECT 'other';\n \\endif\n\\endif\n\
                SELECT 'end';\n";
    for (x, y, branch, executed) in [
        ("1", "true", "one", vec![0, 1, 2, 13]),
        ("2", "true", "two", vec![0, 2, 3, 4, 5, 8, 13]),
        ("2", "0", "not y", vec![0, 2, 3, 6, 7, 8, 13]),
        ("3", "null", "other", vec![0, 2, 9, 10, 11, 12, 13]),
    ] {
        let mut options = one_script(text, QueryMode::Simple);
        options.defines = vec![("x".to_owned(), x.to_owned()), ("y".to_owned(), y.to_owned())];
        options.statement_latencies = true;
        let driver = logged(Dialect::Postgres, Vec::new());
        let workload = workload(options);
        block_on(async {
            let mut session = driver.connect(0).await.unwrap();
            let mut client = open(&workload, &mut session, 0).await;
            attempt(&workload, &mut client, &mut session, 0).await.unwrap();
            workload.ended(&mut client, &ended(Outcome::Committed, 1));
            workload.retire(client, None);
        })
        .unwrap();
        assert_eq!(received(&driver), [format!("SELECT '{branch}';"), "SELECT 'end';".to_owned()]);
        let statistics = workload.statistics();
        let commands = statistics.scripts[0].commands.iter().enumerate();
        let counted_commands: Vec<usize> =
            commands.filter(|(_, command)| command.latency.count == 1).map(|(at, _)| at).collect();
        assert_eq!(counted_commands, executed, "x = {x}, y = {y}");
    }
}

#[test]
fn sleeps_take_their_time() {
    let text = "\\set a 3\n\\sleep 2\n\\sleep 5 ms\n\\sleep 7us\n\\sleep :a ms\n\\sleep -1 s\n";
    let workload = workload(one_script(text, QueryMode::Simple));
    let driver = silent_driver();
    let task = async {
        let mut session = driver.connect(0).await.unwrap();
        let mut client = open(&workload, &mut session, 0).await;
        attempt(&workload, &mut client, &mut session, 0).await.unwrap();
        now()
    };
    let ends = Loop::new(Clock::Virtual, [task]).unwrap().finish().unwrap();
    assert_eq!(ends, [2 * SECOND + 8 * MILLISECOND + 7_000]);
}

/// The first client's command ends only when the second one's has been run.
#[test]
fn a_shell_command_holds_nobody_up() {
    let folder = dyno_testkit::Scratch::new();
    let file = folder.file("there").display().to_string();
    let wait = format!(
        "\\if :client_id = 0\n\\shell for i in $(seq 600); do [ -e {file} ] && exit 0; sleep 0.1; \
         done; exit 1\n\\else\n\\setshell n touch {file}; echo 7\n\\endif\n"
    );
    let mut options = one_script(&wait, QueryMode::Simple);
    options.clients = 2;
    let workload = workload(options);
    let driver = silent_driver();
    let results = run_all([0, 1].map(|id| {
        let (workload, driver) = (&workload, &driver);
        async move {
            let mut session = driver.connect(id).await.unwrap();
            let mut client = open(workload, &mut session, id).await;
            attempt(workload, &mut client, &mut session, 0).await.map(|_| ())
        }
    }));
    assert_eq!(results.unwrap(), [Ok(()), Ok(())]);
}

#[test]
fn a_script_without_waits_lets_others_work() {
    let workload = workload(one_script("\\set a 1\n", QueryMode::Simple));
    let driver = silent_driver();
    let order = Mutex::new(Vec::new());
    run_all([0, 1].map(|id| {
        let (workload, driver, order) = (&workload, &driver, &order);
        async move {
            let mut session = driver.connect(id).await.unwrap();
            let mut client = open(workload, &mut session, 0).await;
            for _ in 0..3 {
                attempt(workload, &mut client, &mut session, 0).await.unwrap();
                order.lock().unwrap().push(id);
            }
        }
    }))
    .unwrap();
    assert_eq!(*order.lock().unwrap(), [0, 1, 0, 1, 0, 1]);
}

#[test]
fn other_dialects_get_their_own_words() {
    let text = "\\set a 5\n\\set b 0.5\n\\set c true\n\\set n null\nBEGIN WORK;\n\
                UPDATE t SET x = :b, y = ':a', z = :n WHERE i = :a AND j = :c AND k = :d;\nend;\n";
    let update = "UPDATE t SET x = ?, y = ':a', z = ? WHERE i = ? AND j = ? AND k = ?;";
    let received = one_transaction(text, QueryMode::Prepared, Dialect::Mysql);
    let update_values = format!("{update} <- 0.5, NULL, 5, 1, NULL");
    let begin_session = "SET autocommit = 1, completion_type = 0";
    assert_eq!(received, [begin_session, "BEGIN;", &update_values, "COMMIT;"]);
    let received = one_transaction(text, QueryMode::Extended, Dialect::Sqlite);
    assert_eq!(received, ["BEGIN IMMEDIATE;", &update_values, "COMMIT;"]);
    let received = one_transaction(text, QueryMode::Simple, Dialect::Mysql);
    let put_in = "UPDATE t SET x = 0.5, y = '5', z = NULL WHERE i = 5 AND j = true AND k = :d;";
    assert_eq!(received, [begin_session, "BEGIN;", put_in, "COMMIT;"]);
    let tests = "\\set a 1\nSELECT :{?a}, ':{?a}', :{?b}, :{?}, :a;\n";
    let received = one_transaction(tests, QueryMode::Simple, Dialect::Postgres);
    assert_eq!(received, ["SELECT FALSE, ':{?a}', FALSE, :{?}, 1;"]);
    let text = "BEGIN;\nSELECT 1;\nEND;\n";
    let received = one_transaction(text, QueryMode::Simple, Dialect::Sqlite);
    assert_eq!(received, ["BEGIN;", "SELECT 1;", "COMMIT;"]);
}

#[test]
fn what_can_not_be_run_is_refused_before_anything_is_touched() {
    let pipeline = "\\startpipeline\nSELECT 1;\n\\endpipeline\n";
    let message = refuse_options(one_script(pipeline, QueryMode::Extended), Dialect::Mysql);
    assert!(message.contains("the query mode \"prepared\""), "{message}");
    for mode in [QueryMode::Extended, QueryMode::Prepared] {
        one_transaction(pipeline, mode, Dialect::Postgres);
    }
    one_transaction(pipeline, QueryMode::Prepared, Dialect::Mysql);
    let mut options = one_script("SELECT 1;", QueryMode::Simple);
    options.scripts[0].1 = 0;
    assert_eq!(refuse_options(options, Dialect::Mysql), "total script weight must not be zero");
    let mut options = one_script("SELECT 1;", QueryMode::Simple);
    options.defines.push(("x-y".to_owned(), "1".to_owned()));
    assert_eq!(refuse_options(options, Dialect::Mysql), "option: invalid variable name: \"x-y\"");
}

fn refuse_options(options: PgbenchOptions, dialect: Dialect) -> String {
    PgBench::new(options, dialect, Messages::default().talker()).unwrap_err()
}

#[test]
fn a_pipeline_goes_in_one_flight_and_its_first_error_counts() {
    let text = "\\startpipeline\nSELECT 1;\nSELECT 2;\n\\syncpipeline\nSELECT 3;\n\\endpipeline\n";
    let driver = logged(
        Dialect::Postgres,
        vec![Fault::ErrorAt { statement: 4, class: ErrorClass::Serialization }],
    );
    let workload = workload(one_script(text, QueryMode::Extended));
    block_on(async {
        let mut session = driver.connect(0).await.unwrap();
        let mut client = open(&workload, &mut session, 0).await;
        let mut tally = Tally::default();
        workload.run(&mut client, &mut session, 0, 0, &mut tally).await.unwrap();
        assert_eq!(tally.statements(), 3);
        let error = attempt(&workload, &mut client, &mut session, 0).await.unwrap_err();
        assert_eq!(error.class(), ErrorClass::Serialization);
        workload.ended(&mut client, &ended(Outcome::Failed(error.class()), 1));
        session.rollback().await.unwrap();
        attempt(&workload, &mut client, &mut session, 0).await.unwrap();
        workload.retire(client, None);
    })
    .unwrap();
    let statistics = &workload.statistics().scripts[0];
    assert_eq!(statistics.serialization_failures, 1);
    assert_eq!(statistics.commands[5].failures, 1, "the end of the pipeline failed");
}

#[test]
fn errors_are_told_unless_they_are_survived() {
    assert_eq!(error_messages(false, false, ErrorClass::Deadlock), "");
    assert_eq!(error_messages(true, false, ErrorClass::Constraint), "");
    let aborted = error_messages(false, false, ErrorClass::Constraint);
    let start = "pgbench: error: client 0 script 0 aborted in command 0 query 0: ERROR:  ";
    assert!(aborted.starts_with(start), "{aborted}");
    let verbose = error_messages(false, true, ErrorClass::Serialization);
    let start = "pgbench: client 0 got an error in command 0 (SQL) of script 0; ERROR:  ";
    assert!(verbose.starts_with(start), "{verbose}");
    let end = "\npgbench: client 0 repeats the transaction after the error (try 1/3)\n";
    assert!(verbose.ends_with(end), "{verbose}");
}

/// Returns what a run prints whose first attempt fails with such an error.
fn error_messages(continue_on_error: bool, verbose: bool, class: ErrorClass) -> String {
    let messages = Messages::default();
    let mut options = one_script("SELECT 1;", QueryMode::Simple);
    options.continue_on_error = continue_on_error;
    options.verbose_errors = verbose.then_some(VerboseErrors { max_tries: 3, latency_limit: None });
    let workload = PgBench::new(options, Dialect::Postgres, messages.talker()).unwrap();
    let driver = logged(Dialect::Postgres, vec![Fault::ErrorAt { statement: 0, class }]);
    block_on(async {
        let mut session = driver.connect(0).await.unwrap();
        let mut client = open(&workload, &mut session, 0).await;
        attempt(&workload, &mut client, &mut session, 0).await.unwrap_err();
        attempt(&workload, &mut client, &mut session, 1).await.unwrap();
    })
    .unwrap();
    messages.text()
}

/// Messages about a backend that dies.
fn death_messages(reconnects: bool) -> String {
    let messages = Messages::default();
    let mut options = one_script("\\set x 1\nSELECT 1;", QueryMode::Simple);
    options.reconnects = reconnects;
    let workload = PgBench::new(options, Dialect::Postgres, messages.talker()).unwrap();
    let fault = Fault::ErrorAt { statement: 0, class: ErrorClass::ConnectionLost };
    let driver = logged(Dialect::Postgres, vec![fault]);
    block_on(async {
        let mut session = driver.connect(0).await.unwrap();
        let mut client = open(&workload, &mut session, 0).await;
        attempt(&workload, &mut client, &mut session, 0).await.unwrap_err();
    })
    .unwrap();
    messages.text()
}

#[test]
fn a_backend_that_died_is_told_as_pgbench_tells_it() {
    let end = "pgbench: error: client 0 aborted in command 1 (SQL) of script 0; perhaps the backend \
               died while processing\n";
    let messages = death_messages(false);
    assert!(messages.ends_with(end), "{messages}");
}

#[test]
fn nothing_is_said_of_clients_that_go_on_with_another_session() {
    assert_eq!(death_messages(true), "");
}

#[test]
fn a_session_that_is_lost_by_a_preparation_ends_its_client() {
    let fault = Fault::ErrorAt { statement: 0, class: ErrorClass::ConnectionLost };
    for text in ["\\set x 1\nSELECT 1;\n", "\\set x 1\n\\startpipeline\nSELECT 1;\n\\endpipeline\n"]
    {
        let messages = Messages::default();
        let options = one_script(text, QueryMode::Prepared);
        let run = PgBench::new(options, Dialect::Postgres, messages.talker()).unwrap();
        let driver = logged(Dialect::Postgres, vec![fault]);
        block_on(async {
            let mut session = driver.connect(0).await.unwrap();
            session.query("SELECT 0", &mut Discard).await.unwrap_err();
            let mut client = open(&run, &mut session, 0).await;
            let error = attempt(&run, &mut client, &mut session, 0).await.unwrap_err();
            assert!(error.is_fatal(), "{error}");
        })
        .unwrap();
        let messages = messages.text();
        assert!(
            messages.contains("\npgbench: error: client 0 aborted in command 1 (SQL)"),
            "{messages}"
        );
    }
}

#[test]
fn logs_hear_of_every_transaction_of_their_thread() {
    struct Log(Arc<Mutex<Vec<(u32, usize, u32)>>>);
    impl TransactionLogger for Log {
        fn ended(&mut self, client: u32, script: usize, ended: &EndedTransaction) {
            self.0.lock().unwrap().push((client, script, ended.attempts));
        }
    }
    let logged: [Arc<Mutex<Vec<_>>>; 2] = Default::default();
    let mut options = one_script("SELECT 1;", QueryMode::Simple);
    (options.clients, options.threads) = (2, 2);
    options.logs =
        logged.iter().map(|entries| Mutex::new(Box::new(Log(Arc::clone(entries))) as _)).collect();
    let workload = workload(options);
    block_on(async {
        let mut session = silent_driver().connect(0).await.unwrap();
        for id in [1, 0, 1] {
            let mut client = open(&workload, &mut session, id).await;
            workload.ended(&mut client, &ended(Outcome::Committed, id + 1));
        }
    })
    .unwrap();
    assert_eq!(*logged[0].lock().unwrap(), [(0, 0, 1)]);
    assert_eq!(*logged[1].lock().unwrap(), [(1, 0, 2), (1, 0, 2)]);
}

#[test]
fn statements_that_can_not_be_prepared_ahead_are_prepared_when_they_are_used() {
    let Some(original) = Original::start("late preparing", &["-c", "fsync=off"]) else { return };
    let text = "CREATE TEMPORARY TABLE IF NOT EXISTS late (a int);\n\
                INSERT INTO late VALUES (:client_id);\nSELECT count(*) AS n FROM late \\gset\n\
                \\set x debug(:n)\n\\startpipeline\nSELECT a FROM late;\nDELETE FROM late;\n\
                \\endpipeline\n";
    let mut case = Case::new(text.as_bytes());
    (case.mode, case.transactions) = (QueryMode::Prepared, 2);
    let messages = run(&original.driver(), &case);
    // The original says the notice when it comes, which is before.
    let notice = "NOTICE:  relation \"late\" already exists, skipping\n";
    assert_eq!(messages, format!("{}{notice}", "debug(script=0,command=4): int 1\n".repeat(2)));
    assert_eq!(sorted_lines(&original.run(&case)), sorted_lines(&messages));
}

fn sorted_lines(messages: &str) -> Vec<String> {
    let mut lines: Vec<_> = messages.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}
