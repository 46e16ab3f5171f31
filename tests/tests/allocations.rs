//! Tests that in the steady state a transaction allocates nothing, from the arrival to the recorder, with each
//! driver. Allocations are counted on the loop's own thread: a server in this process doesn't count.

use dyno_core::{
    DbError, Dialect, Discard, Driver, ErrorClass, Executed, Nanos, Outcome, Param, ParamType, Rng,
    SECOND, Session, Tally, TransactionId, TransactionKind, WorkerId, Workload,
};
use dyno_drivers::mysql::MysqlDriver;
use dyno_drivers::postgres::PostgresDriver;
use dyno_drivers::route::{NodeRouting, Routed};
use dyno_drivers::sqlite::SqliteDriver;
use dyno_drivers::target::TargetUrl;
use dyno_engine::{Control, TrialEnd, TrialSpec, drive, drive_simulated};
use dyno_load::Unobserved;
use dyno_nullserver::Config;
use dyno_sysbench::{Sysbench, SysbenchOptions, SysbenchTest};
use dyno_testkit::sim::{Fault, Service, SimDriver, SimulatedAnswers};
use dyno_testkit::{Counting, Scratch, allocations};
use std::sync::atomic::{AtomicU64, Ordering};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Transactions in which buffers may grow, and those in which nothing may be allocated.
const WARM_UP: u64 = 600;
const COUNTED: u64 = 2_000;

/// A workload that looks at the allocations of its thread when transaction [`WARM_UP`] begins and
/// when [`COUNTED`] more have ended.
struct Probe {
    inner: Sysbench,
    transactions: AtomicU64,
    before: AtomicU64,
    after: AtomicU64,
}

impl Probe {
    fn new(test: SysbenchTest, options: &[(&str, &str)], dialect: Dialect) -> Self {
        Probe {
            inner: Sysbench::new(parse_options(test, options), dialect),
            transactions: AtomicU64::new(0),
            before: AtomicU64::new(0),
            after: AtomicU64::new(0),
        }
    }

    fn allocations(&self) -> u64 {
        let (before, after) =
            (self.before.load(Ordering::Relaxed), self.after.load(Ordering::Relaxed));
        assert!(before > 0, "the allocator counts, and so many transactions were made");
        assert!(after > 0, "so many transactions were made");
        after - before
    }
}

fn parse_options(test: SysbenchTest, options: &[(&str, &str)]) -> SysbenchOptions {
    let pairs: Vec<_> =
        options.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    SysbenchOptions::from_pairs(test, &pairs).expect("good options")
}

impl Workload for Probe {
    type Worker = dyno_sysbench::SysbenchWorker;
    type Terminal = ();

    fn transactions(&self) -> &[TransactionKind] {
        self.inner.transactions()
    }

    async fn open<S: Session>(
        &self,
        session: &mut S,
        id: WorkerId,
        workers: u32,
        rng: Rng,
    ) -> Result<Self::Worker, dyno_core::DbError> {
        self.inner.open(session, id, workers, rng).await
    }

    async fn reopen<S: Session>(
        &self,
        worker: &mut Self::Worker,
        session: &mut S,
    ) -> Result<(), dyno_core::DbError> {
        self.inner.reopen(worker, session).await
    }

    async fn run<S: Session>(
        &self,
        worker: &mut Self::Worker,
        session: &mut S,
        transaction: TransactionId,
        attempt: u32,
        tally: &mut Tally,
    ) -> Result<Outcome, dyno_core::DbError> {
        match self.transactions.fetch_add(1, Ordering::Relaxed) {
            WARM_UP => self.before.store(allocations(), Ordering::Relaxed),
            number if number == WARM_UP + COUNTED => {
                self.after.store(allocations(), Ordering::Relaxed);
            }
            _ => {}
        }
        self.inner.run(worker, session, transaction, attempt, tally).await
    }
}

/// One loop, and no interval that ends among the counted transactions: an interval's frame is sent
/// to another thread, which costs an allocation per interval, not per transaction.
fn spec(rate_per_s: Option<f64>) -> TrialSpec {
    const AGES: Nanos = 100_000 * SECOND;
    TrialSpec {
        loops: Some(1),
        duration: None,
        events: Some(WARM_UP + COUNTED + 100),
        interval: AGES,
        rate_per_s,
        ..TrialSpec::closed(4)
    }
}

fn measure<D: Driver>(
    driver: &D,
    test: SysbenchTest,
    options: &[(&str, &str)],
    rate_per_s: Option<f64>,
) -> u64 {
    let probe = Probe::new(test, options, driver.dialect());
    // SQLite's sessions get a loop each: the thread that is counted must do all transactions.
    let workers = if driver.blocks() { 1 } else { 4 };
    let spec = TrialSpec { workers, ..spec(rate_per_s) };
    let result = drive(&probe, driver, &spec, &Control::new(), &mut ()).expect("the trial begins");
    assert_eq!(result.ended, TrialEnd::Events);
    assert_eq!(result.total.counts().committed, WARM_UP + COUNTED + 100);
    probe.allocations()
}

const SMALL: [(&str, &str); 2] = [("tables", "2"), ("table-size", "1000")];

#[test]
fn the_engine_allocates_nothing_per_transaction() {
    for rate_per_s in [None, Some(1_000.0), Some(100_000.0)] {
        // In the simulated driver a log would grow, and a statement per session is kept shared.
        let driver = SimDriver::new(SimulatedAnswers {
            service: Service::Constant(1_000_000),
            faults: vec![Fault::ErrorAt { statement: 50, class: ErrorClass::Deadlock }],
            ..SimulatedAnswers::default()
        });
        let probe = Probe::new(SysbenchTest::ReadWrite, &SMALL, driver.dialect());
        let control = Control::new();
        let result = drive_simulated(&probe, &driver, &spec(rate_per_s), &control, &mut ());
        assert_eq!(result.expect("the trial begins").ended, TrialEnd::Events);
        assert_eq!(probe.allocations(), 0, "at a rate of {rate_per_s:?}");
    }
}

#[test]
fn sqlite_allocates_nothing_per_transaction() {
    let scratch = Scratch::new();
    let target: TargetUrl =
        format!("sqlite:{}", scratch.file("small.db").display()).parse().expect("a good URL");
    let driver = SqliteDriver::new(&target).expect("a driver");
    let options = parse_options(SysbenchTest::ReadWrite, &SMALL);
    dyno_sysbench::prepare(&driver.admin(), &options, 1, 1, &Unobserved).expect("prepared");
    for test in [SysbenchTest::PointSelect, SysbenchTest::ReadWrite] {
        assert_eq!(measure(&driver, test, &SMALL, None), 0, "{test:?}");
    }
}

/// Both protocols against the null server, prepared and as text, closed and with a rate.
fn over_the_wire<D: Driver>(driver: &D) {
    for ps_mode in ["auto", "disable"] {
        let options = [SMALL[0], SMALL[1], ("db-ps-mode", ps_mode)];
        for test in [SysbenchTest::PointSelect, SysbenchTest::ReadWrite] {
            for rate_per_s in [None, Some(50_000.0)] {
                let allocations = measure(driver, test, &options, rate_per_s);
                assert_eq!(allocations, 0, "{test:?}, db-ps-mode {ps_mode}, rate {rate_per_s:?}");
            }
        }
    }
}

fn single<D: Driver + Send>(node: D) -> Routed<D> {
    Routed::new(vec![node], 0, NodeRouting::Primary, NodeRouting::Primary).expect("a route")
}

/// The first node takes writes, the second is read from.
fn split<D: Driver + Send>(nodes: [D; 2]) -> Routed<D> {
    Routed::new(nodes.into(), 0, NodeRouting::Split(vec![1]), NodeRouting::Primary)
        .expect("a route")
}

#[test]
fn mysql_allocates_nothing_per_transaction() {
    let config = Config { mysql_port: Some(0), ..Config::default() };
    let server = dyno_nullserver::start(config).expect("the null server starts");
    let port = server.config.mysql_port.expect("it listens");
    let target: TargetUrl = format!("mysql://root@127.0.0.1:{port}/sbtest").parse().expect("a URL");
    let connect_node = || MysqlDriver::new(&target).expect("a driver");
    over_the_wire(&single(connect_node()));
    over_the_wire(&split([connect_node(), connect_node()]));
    assert_eq!(server.stop().expect("stopped").violations, Vec::<String>::new());
}

#[test]
fn postgres_allocates_nothing_per_transaction() {
    let config = Config { postgres_port: Some(0), ..Config::default() };
    let server = dyno_nullserver::start(config).expect("the null server starts");
    let port = server.config.postgres_port.expect("it listens");
    let target: TargetUrl =
        format!("postgres://me@127.0.0.1:{port}/sbtest").parse().expect("a URL");
    let connect_node = || PostgresDriver::new(&target).expect("a driver");
    over_the_wire(&single(connect_node()));
    over_the_wire(&split([connect_node(), connect_node()]));
    assert_eq!(server.stop().expect("stopped").violations, Vec::<String>::new());
}

/// Executes statements as scripts do: text parameters, statements executed once, flights of several parts.
async fn as_scripts_do(driver: &PostgresDriver) -> Result<u64, DbError> {
    let mut session = driver.connect(0).await?;
    let sql = "SELECT c FROM sbtest1 WHERE id=$1";
    let prepared = session.prepare(sql, &[ParamType::Inferred]).await?;
    let mut results = Vec::with_capacity(4);
    let mut before = 0;
    for number in 0..WARM_UP + COUNTED {
        if number == WARM_UP {
            before = allocations();
        }
        // Numbers of one width: a longer text may make a buffer grow once more.
        let params = [Param::Int(1_000_000 + number as i64)];
        session.execute(prepared, &params, &mut Discard).await?;
        session.execute_once(sql, &params, &mut Discard).await?;
        session.execute_once("BEGIN", &[], &mut Discard).await?;
        session.execute_once("COMMIT", &[], &mut Discard).await?;
        session.queue(prepared, &params)?;
        session.queue_once(sql, &params)?;
        session.queue_sync()?;
        session.queue_once(sql, &params)?;
        session.flush(&mut Discard, &mut results).await?;
        let read = Executed { has_rows: true, rows: 1, affected: 0 };
        assert!(results.drain(..).all(|result| result == Ok(read)));
    }
    Ok(allocations() - before)
}

#[test]
fn scripts_ways_of_executing_allocate_nothing() {
    let config = Config { postgres_port: Some(0), ..Config::default() };
    let server = dyno_nullserver::start(config).expect("the null server starts");
    let port = server.config.postgres_port.expect("it listens");
    let target: TargetUrl =
        format!("postgres://me@127.0.0.1:{port}/sbtest").parse().expect("a URL");
    let driver = PostgresDriver::new(&target).expect("a driver");
    let result = dyno_reactor::block_on(as_scripts_do(&driver)).expect("a loop");
    assert_eq!(result.expect("all is executed"), 0);
    assert_eq!(server.stop().expect("stopped").violations, Vec::<String>::new());
}
