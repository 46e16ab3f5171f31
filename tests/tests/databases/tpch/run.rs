//! Trials on real databases: answers, bounds, Ctrl-C, lost servers, refresh functions, degrees.

use dyno_core::{AdminSession, AnswerTable, Discard, Driver, Session};
use dyno_drivers::mysql::MysqlDriver;
use dyno_drivers::postgres::PostgresDriver;
use dyno_drivers::sqlite::SqliteDriver;
use dyno_facts::CheckVerdict;
use dyno_load::Unobserved;
use dyno_testkit::{
    MariaDb, MySql, Postgres, Scratch, number, server_or_skip, skipped, target, wait_until,
    with_session,
};
use dyno_tpch::degree;
use dyno_tpch::facts::{QueryFacts, QueryOutcome, TpchFacts};
use dyno_tpch::generate::{refresh, row_count};
use dyno_tpch::load::{TpchLoadOptions, load};
use dyno_tpch::parameters::{ParameterChoice, order};
use dyno_tpch::refresh::{self as functions, RefreshPosition};
use dyno_tpch::run::{Plans, RunOptions, TpchTest, TrialWatch, run};
use dyno_tpch::schema;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

const SCALE: f64 = 0.01;

fn options(test: TpchTest) -> RunOptions {
    RunOptions { scale: SCALE, test, ..RunOptions::default() }
}

fn fill(driver: &impl Driver) {
    assert!(load(&driver.admin(), &TpchLoadOptions::new(SCALE), &Unobserved).unwrap().is_complete);
}

fn statement<D: Driver>(driver: &D, sql: &str) {
    with_session(driver, async |session: &mut D::Session| {
        session.query(sql, &mut Discard).await.unwrap();
    });
}

struct Unwatched;

impl TrialWatch for Unwatched {}

fn never() -> bool {
    false
}

fn sqlite_in(scratch: &Scratch) -> SqliteDriver {
    SqliteDriver::new(&target(&format!("sqlite:{}", scratch.file("tpch.db").display()))).unwrap()
}

fn outcomes(facts: &TpchFacts) -> Vec<(u8, &QueryOutcome)> {
    facts.queries.iter().map(|query| (query.query, &query.outcome)).collect()
}

/// Calls a function at events of a trial, and keeps what was told.
struct RecordingWatch<F> {
    on: F,
    notes: Mutex<Vec<String>>,
    plans: Mutex<Vec<String>>,
}

enum Event<'a> {
    Sent(u8),
    Query(&'a QueryFacts),
}

fn recorder<F: Fn(Event<'_>)>(on: F) -> RecordingWatch<F> {
    RecordingWatch { on, notes: Mutex::default(), plans: Mutex::default() }
}

impl<F: Fn(Event<'_>)> TrialWatch for RecordingWatch<F> {
    fn query_sent(&self, query: u8) {
        (self.on)(Event::Sent(query));
    }

    fn query(&self, facts: &QueryFacts) {
        (self.on)(Event::Query(facts));
    }

    fn plan(&self, query: u8, extension: &str, text: &str) -> String {
        assert!(text.len() > 10, "Q{query}: {text}");
        let name = format!("q{query:02}.{extension}");
        self.plans.lock().unwrap().push(name.clone());
        name
    }

    fn note(&self, text: &str) {
        self.notes.lock().unwrap().push(text.to_owned());
    }
}

/// All 22 queries in order, right, with metrics and plans.
fn assert_all_queries_pass(driver: &impl Driver) {
    let run_options =
        RunOptions { plans: Plans::Executed, degree: 2, ..options(TpchTest::Queries) };
    let in_order = Mutex::new(Vec::new());
    let watch = recorder(|event| {
        if let Event::Query(facts) = event {
            assert_eq!(facts.answer.as_ref().unwrap().verdict, CheckVerdict::Passed, "{facts:?}");
            in_order.lock().unwrap().push(facts.query);
        }
    });
    let facts = run(&driver.admin(), &run_options, &watch, &never).unwrap();
    assert_eq!(*in_order.lock().unwrap(), (1..=22).collect::<Vec<u8>>());
    assert!(facts.queries.iter().all(|query| query.outcome == QueryOutcome::Answered));
    assert_eq!(watch.plans.lock().unwrap().len(), 22, "{:?}", watch.notes.lock().unwrap());
    assert!(facts.queries.iter().all(|query| query.plan.as_ref().unwrap().shape.len() == 16));
    let metrics = facts.metrics.unwrap();
    let sum: f64 = facts.queries.iter().map(|query| query.seconds).sum();
    assert!((metrics.total_s - sum).abs() < 1e-9 && metrics.geometric_mean_s > 0.0);
    assert_eq!((metrics.power, metrics.throughput), (None, None));
    assert_eq!(facts.load.unwrap().refresh_pairs, 0);
    assert!(!facts.rewrites.is_empty() && !facts.deviations.is_empty());
    let other_scale = RunOptions { scale: 1.0, ..options(TpchTest::Queries) };
    let error = run(&driver.admin(), &other_scale, &Unwatched, &never).unwrap_err();
    assert!(error.message.to_string().contains("0.01") && error.hint.is_some(), "{error:?}");
}

/// A power and a throughput test leave as many rows as there were, and the next pair follows.
fn power_and_throughput(driver: &impl Driver) {
    let with_seed =
        |test| RunOptions { parameters: ParameterChoice::Seed(1_122_063_000), ..options(test) };
    let power =
        run(&driver.admin(), &with_seed(TpchTest::Power { refresh: true }), &Unwatched, &never)
            .unwrap();
    let in_order: Vec<u8> = power.queries.iter().map(|query| query.query).collect();
    assert_eq!(in_order, order(0));
    let functions: Vec<_> = power.refreshes.iter().map(|one| (one.function, one.pair)).collect();
    assert_eq!(functions, [(1, 1), (2, 1)]);
    assert_eq!(power.refreshes[0].rows, refresh::orders(SCALE) + refresh::lines(SCALE, 1));
    assert!(power.refreshes[1].rows > refresh::orders(SCALE));
    assert!(power.metrics.as_ref().unwrap().power.unwrap() > 0.0, "{power:?}");
    assert!(power.queries.iter().all(|query| query.answer.is_none()), "no answer is known");

    let run_options = with_seed(TpchTest::Throughput { streams: 2, refresh: true });
    let throughput = run(&driver.admin(), &run_options, &Unwatched, &never).unwrap();
    assert_eq!((throughput.queries.len(), throughput.refreshes.len()), (44, 4));
    for stream in 1..=2 {
        let stream_queries = throughput.queries.iter().filter(|query| query.stream == stream);
        assert_eq!(stream_queries.map(|query| query.query).collect::<Vec<_>>(), order(stream));
    }
    let pairs: Vec<_> = throughput.refreshes.iter().map(|one| (one.function, one.pair)).collect();
    assert_eq!(pairs, [(1, 2), (2, 2), (1, 3), (2, 3)]);
    let metrics = throughput.metrics.unwrap();
    let longest = throughput.queries.iter().map(|query| query.began_s + query.seconds);
    assert!(metrics.total_s >= longest.fold(0.0, f64::max) - throughput.queries[0].began_s);
    assert!(metrics.throughput.unwrap() > 0.0 && metrics.qphh.is_none(), "{metrics:?}");
    assert_eq!(
        number(driver, "select count(*) from orders"),
        row_count(schema::SchemaTable::Orders, SCALE)
    );
    let orphans = "select count(*) from lineitem where l_orderkey not in (select o_orderkey from \
                   orders)";
    assert_eq!(number(driver, orphans), 0);
    let after = run(&driver.admin(), &options(TpchTest::Queries), &Unwatched, &never).unwrap();
    assert_eq!(after.load.unwrap().refresh_pairs, 3);
    assert!(after.queries.iter().all(|query| query.answer.is_none()));
    assert!(
        after.deviations.iter().any(|text| text.to_string().starts_with("3 pairs")),
        "{:?}",
        after.deviations
    );
}

/// MariaDB's list has a session as working for a moment after its answer, so this waits for that; for
/// the queries, which would take an hour, the test would wait too long.
fn nothing_runs<D: Driver>(driver: &D, active: &str) {
    wait_until("the server to have nothing to do", || number(driver, active) == 0);
}

/// A query that does not end is canceled at its bound and by the user; nothing of it is left.
fn endless_queries_are_canceled<D: Driver>(driver: &D, sleep: &str, active: &str) {
    statement(driver, "alter table nation rename to nation_kept");
    let view = format!("create view nation as select * from nation_kept where {sleep}");
    statement(driver, &view);
    let bounded = RunOptions { timeout_s: Some(0.5), ..options(TpchTest::Queries) };
    let facts = run(&driver.admin(), &bounded, &Unwatched, &never).unwrap();
    assert_eq!(facts.queries.len(), 22);
    let second = &facts.queries[1];
    assert_eq!((&second.outcome, second.seconds), (&QueryOutcome::TimedOut, 0.5));
    assert!(second.answer.is_none());
    let metrics = facts.metrics.as_ref().unwrap();
    assert!(metrics.penalized.contains(&2) && metrics.penalized.contains(&5), "{metrics:?}");
    nothing_runs(driver, active);

    let is_stopped = AtomicBool::new(false);
    let watch = recorder(|event| {
        if matches!(event, Event::Sent(2)) {
            is_stopped.store(true, Ordering::Relaxed);
        }
    });
    let stop = || is_stopped.load(Ordering::Relaxed);
    let facts = run(&driver.admin(), &options(TpchTest::Queries), &watch, &stop).unwrap();
    assert_eq!(outcomes(&facts), [(1, &QueryOutcome::Answered), (2, &QueryOutcome::Interrupted)]);
    assert_eq!(facts.metrics, None);
    nothing_runs(driver, active);
}

/// A server that dies in the middle of a query makes it, and those after it, failed ones.
fn a_lost_server_is_a_failed_query(driver: &impl Driver, kill: impl Fn()) {
    let watch = recorder(|event| {
        if matches!(event, Event::Sent(2)) {
            kill();
        }
    });
    let facts = run(&driver.admin(), &options(TpchTest::Queries), &watch, &never).unwrap();
    assert_eq!(facts.queries.len(), 22);
    assert_eq!(facts.queries[0].outcome, QueryOutcome::Answered);
    for query in &facts.queries[1..] {
        assert!(matches!(query.outcome, QueryOutcome::Failed(_)), "{query:?}");
    }
    assert_eq!(facts.metrics, None);
    run(&driver.admin(), &options(TpchTest::Queries), &Unwatched, &never).unwrap_err();
}

#[test]
fn sqlite_passes_and_refreshes() {
    let scratch = Scratch::new();
    let driver = sqlite_in(&scratch);
    fill(&driver);
    assert_all_queries_pass(&driver);
    interrupted_pairs_go_on(&driver);
}

/// The rest of an interrupted pair is completed before the next test.
fn interrupted_pairs_go_on<D: Driver>(driver: &D) {
    let count_orders = || number(driver, "select count(*) from orders");
    let before = count_orders();
    with_session(driver, async |session: &mut D::Session| {
        let mut at = RefreshPosition::first_of_pair(1);
        functions::execute(&mut AdminSession::lent(session), SCALE, &mut at).await.unwrap();
        assert_eq!(at, RefreshPosition { pair: 1, function: 2, orders: 0 });
        assert_eq!(functions::position(&mut AdminSession::lent(session), 0).await.unwrap(), at);
    });
    assert_eq!(count_orders(), before + refresh::orders(SCALE));
    let watch = recorder(|_| {});
    let facts =
        run(&driver.admin(), &options(TpchTest::Refresh { pairs: 2 }), &watch, &never).unwrap();
    let refreshes: Vec<_> = facts.refreshes.iter().map(|one| (one.function, one.pair)).collect();
    assert_eq!(refreshes, [(1, 2), (2, 2), (1, 3), (2, 3)]);
    let notes = watch.notes.lock().unwrap();
    assert!(notes.iter().any(|note| note.starts_with("Pair 1 of the refresh")), "{notes:?}");
    assert_eq!(count_orders(), before);
    let pairs = number(driver, "select t_value from dyno_tpch where t_name = 'refresh_pairs'");
    assert_eq!(pairs, 3);
}

#[test]
fn sqlite_is_interrupted() {
    let scratch = Scratch::new();
    let driver = sqlite_in(&scratch);
    let bare =
        TpchLoadOptions { foreign_keys: false, indexes: false, ..TpchLoadOptions::new(SCALE) };
    assert!(load(&driver.admin(), &bare, &Unobserved).unwrap().is_complete);
    // Q1 reads every line: long enough to be interrupted on any machine.
    let copy_lines =
        "with recursive copies(n) as (select 1 union all select n + 1 from copies where n < 5)
        insert into lineitem select l_orderkey, l_partkey, l_suppkey, l_linenumber + 10 * n,
            l_quantity, l_extendedprice, l_discount, l_tax, l_returnflag, l_linestatus, l_shipdate,
            l_commitdate, l_receiptdate, l_shipinstruct, l_shipmode, l_comment
        from lineitem, copies";
    statement(&driver, copy_lines);
    let bounded = RunOptions { timeout_s: Some(0.001), ..options(TpchTest::Queries) };
    let facts = run(&driver.admin(), &bounded, &Unwatched, &never).unwrap();
    assert_eq!(facts.queries.len(), 22);
    assert_eq!(facts.queries[0].outcome, QueryOutcome::TimedOut);
    assert!(facts.metrics.unwrap().penalized.contains(&1));
    let is_stopped = AtomicBool::new(false);
    let watch = recorder(|event| {
        if matches!(event, Event::Sent(1)) {
            is_stopped.store(true, Ordering::Relaxed);
        }
    });
    let stop = || is_stopped.load(Ordering::Relaxed);
    let facts = run(&driver.admin(), &options(TpchTest::Queries), &watch, &stop).unwrap();
    assert_eq!(outcomes(&facts), [(1, &QueryOutcome::Interrupted)]);
}

#[test]
fn postgres_passes_at_its_degrees_and_cancels() {
    let server = server_or_skip!(Postgres, "trials on PostgreSQL");
    let driver = PostgresDriver::new(&target(&server.socket_url())).unwrap();
    fill(&driver);
    assert_all_queries_pass(&driver);
    degrees(&driver);
    power_and_throughput(&driver);
    endless_queries_are_canceled(
        &driver,
        "(select pg_sleep(3600)) is not null",
        "select count(*) from pg_stat_activity where state = 'active' and backend_type = 'client \
         backend' and pid <> pg_backend_pid()",
    );
    let server = Mutex::new(server);
    a_lost_server_is_a_failed_query(&driver, || server.lock().unwrap().kill());
}

/// The degree has an effect, is named, bounded and set back.
fn degrees(driver: &PostgresDriver) {
    for (degree, most) in [(0, 0), (2, 2), (64, 8)] {
        let run_options =
            RunOptions { degree, plans: Plans::Executed, ..options(TpchTest::Queries) };
        let facts = run(&driver.admin(), &run_options, &Unwatched, &never).unwrap().degree;
        assert_eq!((facts.asked, facts.rule.as_str()), (degree, "postgres"));
        let got = facts.got.unwrap();
        assert!(got <= most && (got > 0) == (degree > 0), "{facts:?}");
        let first = format!("set max_parallel_workers_per_gather = {degree}");
        assert_eq!(facts.statements[0], first);
        let remark = facts.remark.unwrap_or_default();
        let remark = remark.to_string();
        assert_eq!(
            remark.contains("Parallel workers asked for: 64; got: at most"),
            degree == 64,
            "{remark}"
        );
        assert_eq!(remark.contains("max_worker_processes is 8."), degree == 64, "{remark}");
    }
    let other_rule = RunOptions { rule: degree::named("tidb"), ..options(TpchTest::Queries) };
    let error =
        run(&driver.admin(), &other_rule, &Unwatched, &never).unwrap_err().message.to_string();
    assert!(error.contains("`tidb`") && error.contains("speak mysql"), "{error}");
    with_session(driver, async |session| {
        let names = ["max_parallel_workers_per_gather", "max_parallel_workers"];
        session.query("set max_parallel_workers = 3", &mut Discard).await.unwrap();
        let read_settings = async |session: &mut <PostgresDriver as Driver>::Session| {
            let mut table = AnswerTable::default();
            for name in names {
                session.query(&format!("show {name}"), &mut table).await.unwrap();
            }
            table
        };
        let before = read_settings(session).await;
        let rule = degree::detect(&mut AdminSession::lent(session)).await.unwrap().unwrap();
        let mut applied = rule.apply(&mut AdminSession::lent(session), 5).await.unwrap();
        assert_ne!(read_settings(session).await, before);
        applied.restore(&mut AdminSession::lent(session)).await.unwrap();
        assert_eq!(read_settings(session).await, before);
        let broken_rule = degree::DegreeRule::own(
            vec!["set max_parallel_workers = {degree}".into(), "set nonsense".into()],
            vec!["set max_parallel_workers = 3".into()],
        );
        broken_rule.unwrap().apply(&mut AdminSession::lent(session), 5).await.unwrap_err();
        assert_eq!(read_settings(session).await, before, "half of a rule is set back");
    });
}

/// A variable that no session can change is told where it bounds the degree, and refused where it is
/// the degree: PolarDB's `parallel_degree_policy` is one.
fn variables_of_the_server_are_told(driver: &MysqlDriver) {
    let setting = |name: &str, on: &str| degree::Setting {
        name: name.into(),
        on: on.into(),
        ..<_>::default()
    };
    let rule = |settings| degree::DegreeRule { settings, ..<_>::default() };
    let policy = setting("innodb_flush_neighbors", "2");
    let two_settings = rule(vec![setting("max_sort_length", "{degree}00"), policy]);
    with_session(driver, async |session| {
        let applied = two_settings.apply(&mut AdminSession::lent(session), 16).await.unwrap();
        assert_eq!(applied.statements, ["set session max_sort_length = 1600"]);
        let remark = "innodb_flush_neighbors is 1, not 2, and no session can change it.";
        assert_eq!(applied.remarks, [remark]);
        let degree = rule(vec![setting("innodb_flush_neighbors", "{degree}")]);
        assert_eq!(
            degree.apply(&mut AdminSession::lent(session), 2).await.unwrap_err().errno(),
            1229
        );
    });
}

#[test]
fn mysql_passes() {
    let server = server_or_skip!(MySql, "trials on MySQL");
    let driver = MysqlDriver::new(&target(&server.url())).unwrap();
    fill(&driver);
    assert_all_queries_pass(&driver);
}

#[test]
fn mariadb_11_8_passes() {
    match MariaDb::start_fetched() {
        Ok(server) => {
            let driver = MysqlDriver::new(&target(&server.url())).unwrap();
            fill(&driver);
            assert_all_queries_pass(&driver);
        }
        Err(why) => skipped("mariadb_11_8_passes", &why),
    }
}

#[test]
fn postgres_18_passes() {
    match Postgres::start_fetched() {
        Ok(server) => {
            let driver = PostgresDriver::new(&target(&server.url())).unwrap();
            fill(&driver);
            assert_all_queries_pass(&driver);
        }
        Err(why) => skipped("postgres_18_passes", &why),
    }
}

#[test]
fn mariadb_passes_without_a_degree_and_cancels() {
    let server = server_or_skip!(MariaDb, "trials on MariaDB");
    let driver = MysqlDriver::new(&target(&server.socket_url())).unwrap();
    fill(&driver);
    assert_all_queries_pass(&driver);
    let run_options = RunOptions { degree: 16, ..options(TpchTest::Power { refresh: false }) };
    let facts = run(&driver.admin(), &run_options, &Unwatched, &never).unwrap();
    let degree = facts.degree;
    assert_eq!((degree.asked, degree.got, degree.statements.len()), (16, None, 0));
    assert!(
        degree.remark.unwrap().to_string().starts_with("MariaDB executes each query in one thread")
    );
    variables_of_the_server_are_told(&driver);
    power_and_throughput(&driver);
    endless_queries_are_canceled(
        &driver,
        "sleep(3600) = 0",
        "select count(*) from information_schema.processlist where command = 'Query' and id <> \
         connection_id()",
    );
    let server = Mutex::new(server);
    a_lost_server_is_a_failed_query(&driver, || server.lock().unwrap().kill());
}
