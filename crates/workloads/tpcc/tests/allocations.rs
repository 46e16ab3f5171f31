//! Tests that in the steady state no transaction allocates, with a log too.

mod common;

use common::{Fake, FakeDriver};
use dyno_core::{
    Dialect, EndedTransaction, MILLISECOND, Nanos, Outcome, Rng, SECOND, Tally, Workload,
};
use dyno_engine::{Control, TrialSpec, drive_simulated};
use dyno_reactor::block_on;
use dyno_testkit::{Counting, Scratch, allocations};
use dyno_tpcc::ledger::{LedgerFile, read};
use dyno_tpcc::load::TpccDatabase;
use dyno_tpcc::profile::{Profile, SPEC, TpccTransaction};
use dyno_tpcc::settle::Books;
use dyno_tpcc::{LogEntry, TerminalLog};
use dyno_tpcc::{Tpcc, TpccOptions};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Counts entries.
#[derive(Debug, Default)]
struct Count(AtomicU64);

impl TerminalLog for Count {
    fn take(&self, entries: &mut Vec<LogEntry>) {
        self.0.fetch_add(entries.len() as u64, Ordering::Relaxed);
        entries.clear();
    }
}

/// The engine's report of a transaction that ended at `ended`.
fn over(kind: TpccTransaction, ended: Nanos) -> EndedTransaction {
    let (transaction, outcome) = (kind.index(), Outcome::Committed);
    EndedTransaction {
        transaction,
        outcome,
        due: 0,
        began: 0,
        ended,
        attempts: 1,
        is_measured: true,
    }
}

/// Allocations of 200 transactions of a kind, after some that let buffers grow. `ledger` is the path
/// of a ledger, if one is to be kept.
fn transaction_allocations(
    kind: TpccTransaction,
    profile: &Profile,
    dialect: Dialect,
    ledger: Option<&Path>,
) -> u64 {
    let loaded = TpccDatabase { warehouses: 2, c_last: 100 };
    let options = TpccOptions::new(*profile, &loaded, 1);
    let log = Arc::new(Count::default());
    let mut tpcc = Tpcc::new(options, &loaded, dialect).unwrap().with_log(log.clone());
    if let Some(path) = ledger {
        let file = LedgerFile::open(path, "x", &loaded, 1, &Books::default()).unwrap();
        tpcc = tpcc.with_ledger(file);
    }
    let count = block_on(async {
        let mut session = Fake::new(dialect);
        session.has_bad_credit = true;
        let rng = Rng::new(1, "worker", 0);
        let mut worker = tpcc.open(&mut session, 0, 1, rng).await.unwrap();
        let mut tally = Tally::default();
        for _ in 0..10 {
            tpcc.run(&mut worker, &mut session, kind.index(), 0, &mut tally).await.unwrap();
        }
        let before = allocations();
        for number in 1..=200 {
            tpcc.choose(&mut worker);
            tpcc.run(&mut worker, &mut session, kind.index(), 0, &mut tally).await.unwrap();
            tpcc.ended(&mut worker, &over(kind, 10 * SECOND + number));
        }
        assert!(tally.statements() > 210);
        allocations() - before
    });
    assert_eq!(
        log.0.load(Ordering::Relaxed),
        200,
        "handed over in blocks, and the rest at the end"
    );
    count.unwrap()
}

#[test]
fn no_transaction_allocates() {
    assert!(allocations() > 0, "the counting allocator is installed");
    for profile in Profile::ALL {
        for dialect in [Dialect::Mysql, Dialect::Postgres, Dialect::Sqlite] {
            for kind in TpccTransaction::ALL {
                let count = transaction_allocations(kind, profile, dialect, None);
                assert_eq!(count, 0, "{kind:?} {} {dialect:?}", profile.name);
            }
        }
    }
}

#[test]
fn a_ledger_allocates_nothing_either() {
    let scratch = Scratch::new();
    let path = scratch.file("ledger");

    let profile = Profile { rollback_percent: 0, ..dyno_tpcc::profile::BMSQL_5_0 };
    let count = transaction_allocations(
        TpccTransaction::NewOrder,
        &profile,
        Dialect::Postgres,
        Some(&path),
    );
    assert_eq!(count, 0);
    assert_eq!(read(&path).unwrap().acknowledged(), 210);
    std::fs::remove_file(&path).unwrap();
}

/// Round trips in which buffers may grow, and those in which nothing may be allocated.
const WARM_UP: u64 = 60_000;
const COUNTED: u64 = 200_000;

#[test]
fn terminals_allocate_nothing() {
    let loaded = TpccDatabase { warehouses: 20, c_last: 100 };
    let options = TpccOptions::new(SPEC, &loaded, 1);
    // Few sessions: jobs wait for sessions, and sessions for jobs.
    let staff = options.staff(Some(4));
    let tpcc = Tpcc::new(options, &loaded, Dialect::Mysql).unwrap();
    let counters = Arc::new([const { AtomicU64::new(0) }; 3]);
    let probe = Arc::clone(&counters);
    let driver = FakeDriver {
        dialect: Dialect::Mysql,
        round_trip: MILLISECOND,
        on_round_trip: Some(Arc::new(move || {
            let [round_trips, before, after] = &*probe;
            match round_trips.fetch_add(1, Ordering::Relaxed) {
                WARM_UP => before.store(allocations(), Ordering::Relaxed),
                number if number == WARM_UP + COUNTED => {
                    after.store(allocations(), Ordering::Relaxed);
                }
                _ => {}
            }
        })),
    };
    const AGES: Nanos = 100_000 * SECOND;
    let spec = TrialSpec {
        terminals: staff.terminals,
        duration: Some(1_500 * SECOND),
        interval: AGES,
        ..TrialSpec::closed(staff.workers)
    };
    let result = drive_simulated(&tpcc, &driver, &spec, &Control::new(), &mut ()).unwrap();
    assert_eq!((result.ended, result.total.counts().failed), (dyno_engine::TrialEnd::Time, 0));
    assert!(result.total.kinds[5].counts.committed > 400, "deferred Deliveries");
    let [_, before, after] = counters.each_ref().map(|count| count.load(Ordering::Relaxed));
    assert!(before > 0 && after > 0, "round trips were made before and after");
    assert_eq!(after - before, 0);
}
