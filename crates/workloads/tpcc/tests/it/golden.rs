//! The statement stream of every transaction, and what follows errors.
//!
//! `golden/*.txt` hold the streams; `WRITE_GOLDEN=1` writes them again, to be read before they are
//! committed.

use crate::common::Fake;
use dyno_core::{DbError, Dialect, Outcome, Rng, Session, Tally, Workload};
use dyno_reactor::block_on;
use dyno_tpcc::load::TpccDatabase;
use dyno_tpcc::profile::{BMSQL_5_0, Profile, TpccTransaction};
use dyno_tpcc::{Tpcc, TpccOptions, TpccWorker};
use std::fmt::Write;
use std::path::Path;

const LOADED: TpccDatabase = TpccDatabase { warehouses: 2, c_last: 100 };

fn new_workload(profile: Profile, dialect: Dialect) -> Tpcc {
    Tpcc::new(TpccOptions::new(profile, &LOADED, 3), &LOADED, dialect).unwrap()
}

async fn open_worker(tpcc: &Tpcc, session: &mut Fake) -> TpccWorker {
    let worker = tpcc.open(session, 0, 1, Rng::new(9, "worker", 0)).await.unwrap();
    session.is_recording = true;
    worker
}

/// Runs one transaction of a kind and returns its flights.
fn flights(
    profile: Profile,
    dialect: Dialect,
    kind: TpccTransaction,
    has_bad_credit: bool,
) -> (Vec<Vec<String>>, Outcome, Tally) {
    let tpcc = new_workload(profile, dialect);
    block_on(async {
        let mut session = Fake::new(dialect);
        session.has_bad_credit = has_bad_credit;
        let mut worker = open_worker(&tpcc, &mut session).await;
        let mut tally = Tally::default();
        let outcome = tpcc.run(&mut worker, &mut session, kind.index(), 0, &mut tally).await;
        assert_eq!(session.flights.len(), session.round_trips);
        (session.flights, outcome.unwrap(), tally)
    })
    .unwrap()
}

/// The transactions in the variants that their inputs choose between.
fn variants() -> Vec<(&'static str, Profile, TpccTransaction, bool)> {
    let by_id = Profile { by_name_percent: 0, rollback_percent: 0, ..BMSQL_5_0 };
    let by_name = Profile { by_name_percent: 100, ..by_id };
    let rolled_back = Profile { rollback_percent: 100, ..by_id };
    vec![
        ("New-Order", by_id, TpccTransaction::NewOrder, false),
        ("New-Order with an unused item", rolled_back, TpccTransaction::NewOrder, false),
        ("Payment by number", by_id, TpccTransaction::Payment, false),
        ("Payment by last name, bad credit", by_name, TpccTransaction::Payment, true),
        ("Order-Status by number", by_id, TpccTransaction::OrderStatus, false),
        ("Order-Status by last name", by_name, TpccTransaction::OrderStatus, false),
        ("Delivery", by_id, TpccTransaction::Delivery, false),
        ("Stock-Level", by_id, TpccTransaction::StockLevel, false),
    ]
}

fn record_stream(dialect: Dialect) -> String {
    let mut text = String::new();
    for (name, profile, kind, has_bad_credit) in variants() {
        let (flights, outcome, _) = flights(profile, dialect, kind, has_bad_credit);
        // Writing into a String can't fail.
        let _ = writeln!(text, "# {name}: {} round trips, {outcome:?}", flights.len());
        for statements in flights {
            for (at, statement) in statements.iter().enumerate() {
                let _ = writeln!(text, "{} {statement}", if at == 0 { '>' } else { ' ' });
            }
        }
        text.push('\n');
    }
    text
}

#[test]
fn streams_are_as_they_were_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden");
    for dialect in [Dialect::Mysql, Dialect::Postgres, Dialect::Sqlite] {
        let file = folder.join(format!("{}.txt", dialect.name()));
        let actual = record_stream(dialect);
        if std::env::var_os("WRITE_GOLDEN").is_some() {
            std::fs::write(&file, &actual).unwrap();
        }
        let golden = std::fs::read_to_string(&file).unwrap();
        for (line, (actual, golden)) in actual.lines().zip(golden.lines()).enumerate() {
            assert_eq!(actual, golden, "line {} of {}", line + 1, file.display());
        }
        assert_eq!(actual.len(), golden.len(), "{}", file.display());
    }
}

/// Round trips of a New-Order with as many lines.
fn new_order_round_trips(dialect: Dialect, lines: usize) -> usize {
    let profile = Profile { rollback_percent: 0, ..BMSQL_5_0 };
    let tpcc = new_workload(profile, dialect);
    block_on(async {
        let mut session = Fake::new(dialect);
        let mut worker = open_worker(&tpcc, &mut session).await;
        loop {
            session.flights.clear();
            let mut tally = Tally::default();
            let outcome = tpcc.run(&mut worker, &mut session, 0, 0, &mut tally).await;
            assert_eq!(outcome.unwrap(), Outcome::Committed);
            let statements = session.flights.iter().flatten();
            if statements.filter(|sql| sql.starts_with("SELECT i_price")).count() == lines {
                return session.flights.len();
            }
        }
    })
    .unwrap()
}

#[test]
fn a_new_order_of_ten_lines_takes_28_round_trips() {
    for dialect in [Dialect::Postgres, Dialect::Mysql] {
        assert_eq!(new_order_round_trips(dialect, 10), 28);
        assert_eq!(new_order_round_trips(dialect, 5), 18);
    }
}

/// Makes one attempt.
async fn attempt(
    tpcc: &Tpcc,
    worker: &mut TpccWorker,
    session: &mut Fake,
    kind: TpccTransaction,
    attempt: u32,
) -> Result<Outcome, DbError> {
    tpcc.run(worker, session, kind.index(), attempt, &mut Tally::default()).await
}

#[test]
fn a_retry_enters_the_same_data_again() {
    let profile = Profile { rollback_percent: 0, ..BMSQL_5_0 };
    let tpcc = new_workload(profile, Dialect::Mysql);
    block_on(async {
        let mut session = Fake::new(Dialect::Mysql);
        let mut worker = open_worker(&tpcc, &mut session).await;
        session.deadlocks_at = Some("UPDATE bmsql_stock");
        let error = attempt(&tpcc, &mut worker, &mut session, TpccTransaction::NewOrder, 0).await;
        assert_eq!(error.unwrap_err().errno(), 1213);
        session.rollback().await.unwrap();
        let failed = std::mem::take(&mut session.flights);
        assert!(!failed.iter().flatten().any(|sql| sql == "COMMIT"));
        let outcome = attempt(&tpcc, &mut worker, &mut session, TpccTransaction::NewOrder, 1).await;
        assert_eq!(outcome.unwrap(), Outcome::Committed);
        let again = std::mem::take(&mut session.flights);
        assert_eq!(failed[..], again[..failed.len()]);
        let fresh = attempt(&tpcc, &mut worker, &mut session, TpccTransaction::NewOrder, 0).await;
        assert_eq!(fresh.unwrap(), Outcome::Committed);
        assert_ne!(session.flights, again);
    })
    .unwrap();
    let orders = tpcc.acknowledged().orders;
    assert_eq!((orders.acknowledged, orders.unknown), (2, 0));
}

#[test]
fn a_commit_without_answer_has_an_unknown_outcome() {
    for dialect in [Dialect::Mysql, Dialect::Postgres] {
        let profile = Profile { rollback_percent: 0, ..BMSQL_5_0 };
        let tpcc = new_workload(profile, dialect);
        block_on(async {
            let mut session = Fake::new(dialect);
            let mut worker = open_worker(&tpcc, &mut session).await;
            for kind in
                [TpccTransaction::NewOrder, TpccTransaction::Payment, TpccTransaction::Delivery]
            {
                session.loses_commit = true;
                let error = attempt(&tpcc, &mut worker, &mut session, kind, 0).await;
                assert!(error.unwrap_err().is_fatal());
                attempt(&tpcc, &mut worker, &mut session, kind, 0).await.unwrap();
            }
        })
        .unwrap();
        let books = tpcc.acknowledged();
        for count in [books.orders, books.payments] {
            assert_eq!((count.acknowledged, count.unknown), (1, 1));
        }
        assert_eq!((books.delivered.acknowledged, books.delivered.unknown), (10, 10));
    }
}

#[test]
fn a_rolled_back_order_is_no_acknowledged_one() {
    let profile = Profile { rollback_percent: 100, ..BMSQL_5_0 };
    let tpcc = new_workload(profile, Dialect::Postgres);
    block_on(async {
        let mut session = Fake::new(Dialect::Postgres);
        let mut worker = open_worker(&tpcc, &mut session).await;
        let outcome = attempt(&tpcc, &mut worker, &mut session, TpccTransaction::NewOrder, 0).await;
        assert_eq!(outcome.unwrap(), Outcome::RolledBack);
        let last = session.flights.last().unwrap();
        assert_eq!(last, &["ROLLBACK"]);
        let mut statements = session.flights.iter().flatten();
        let is_written = statements.any(|sql| sql.starts_with("INSERT INTO bmsql_order_line"));
        assert!(is_written, "the work is done first");
        tpcc.retire(worker, None);
    })
    .unwrap();
    assert_eq!(tpcc.acknowledged(), Default::default());
    assert_eq!(tpcc.audit().orders, 1);
}
