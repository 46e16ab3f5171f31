//! Terminals of the profile `spec` on a database that isn't there, with a virtual clock.

use crate::common::{Fake, FakeDriver};
use dyno_core::{Dialect, MILLISECOND, Nanos, Rng, SECOND, Tally, TerminalPlan, Workload};
use dyno_engine::{Control, TrialEnd, TrialResult, TrialSpec, drive_simulated};
use dyno_reactor::block_on;
use dyno_tpcc::facts::TpccFacts;
use dyno_tpcc::load::TpccDatabase;
use dyno_tpcc::profile::{SPEC, TpccTransaction};
use dyno_tpcc::{Terminal, Tpcc, TpccOptions, TpccWorker};

const WAREHOUSES: u32 = 20;

/// Runs `spec` for some seconds on a database whose round trips take `round_trip`.
fn simulate(sessions: u32, round_trip: Nanos, seconds: u64) -> (Tpcc, TrialResult) {
    let loaded = TpccDatabase { warehouses: WAREHOUSES, c_last: 100 };
    let options = TpccOptions::new(SPEC, &loaded, 1);
    let staff = options.staff(Some(sessions));
    assert_eq!((staff.terminals, staff.workers), (Some(200), sessions));
    let tpcc = Tpcc::new(options, &loaded, Dialect::Mysql).unwrap();
    let spec = TrialSpec {
        terminals: staff.terminals,
        duration: Some(seconds * SECOND),
        ..TrialSpec::closed(staff.workers)
    };
    let driver = FakeDriver { dialect: Dialect::Mysql, round_trip, on_round_trip: None };
    let result = drive_simulated(&tpcc, &driver, &spec, &Control::new(), &mut ()).unwrap();
    assert_eq!((&result.ended, result.total.counts().failed), (&TrialEnd::Time, 0));
    (tpcc, result)
}

/// Number of transactions of a kind that terminals have entered, by the audit.
fn entered(tpcc: &Tpcc, kind: TpccTransaction) -> u64 {
    let figure = tpcc.audit().figures.swap_remove(kind.index());
    (figure.observed * figure.line.of as f64).round() as u64
}

#[test]
fn tpmc_is_what_pauses_and_responses_leave() {
    let (tpcc, result) = simulate(8, 4 * MILLISECOND, 600);
    let kinds = &result.total.kinds;
    assert_eq!(tpcc.transactions()[5].name, TpccFacts::DEFERRED);
    // The deck's mean of keying and think times, and the response that was measured, Delivery's being
    // none.
    let response_s = (0..5)
        .map(|kind| kinds[kind].latency.mean() * kinds[kind].latency.count() as f64)
        .sum::<f64>()
        / (0..5).map(|kind| kinds[kind].latency.count() as f64).sum::<f64>()
        / 1e9;
    assert!((0.05..0.2).contains(&response_s), "{response_s}");
    let expected = 10.0 * 60.0 / (20.696 + response_s) * 10.0 / 23.0;
    let counts = &kinds[TpccTransaction::NewOrder.index()].counts;
    let orders = counts.committed + counts.rolled_back;
    let tpmc = orders as f64 / 10.0 / f64::from(WAREHOUSES);
    assert!((tpmc / expected - 1.0).abs() < 0.03, "{tpmc} of {expected}");
    assert!(tpmc < 12.86);
    assert_eq!(kinds[TpccTransaction::Delivery.index()].latency.max(), 0, "only queued");
    // The deferred part: nine statements a district, found and taken first.
    assert!(kinds[5].latency.percentile(50.0) >= 70 * 4 * MILLISECOND);
    assert_eq!(result.missed_rate(), None);
    let audit = tpcc.audit();
    assert!(audit.problems().is_empty());
    assert!(audit.deliveries > 200, "{}", audit.deliveries);
    assert_eq!(
        entered(&tpcc, TpccTransaction::Delivery),
        audit.deliveries + tpcc.deliveries_left()
    );
    assert!(tpcc.deliveries_left() <= 2);
}

#[test]
fn what_waits_at_the_end_is_left_over() {
    // One session of 30 ms a round trip does about one transaction of ten that come.
    let (tpcc, result) = simulate(1, 30 * MILLISECOND, 300);
    // Nearly all terminals wait then: they are users, who enter nothing while they wait.
    assert!(result.missed_rate().unwrap() < 0.9);
    assert!(result.offered.unwrap() - result.total.counts().started > 100);
    let lateness = result.total.lateness.as_ref().unwrap();
    assert!(lateness.percentile(50.0) > 30 * SECOND, "responses count from the due time");
    let remaining = tpcc.deliveries_left();
    assert!(remaining > 0);
    assert_eq!(entered(&tpcc, TpccTransaction::Delivery), tpcc.audit().deliveries + remaining);
}

/// Statements of terminals when `workers` workers take turns with them, by terminal; their queued
/// Deliveries are executed at once.
fn sent_statements(workers: usize, seed: u64) -> Vec<Vec<String>> {
    let loaded = TpccDatabase { warehouses: 2, c_last: 100 };
    let options = TpccOptions::new(SPEC, &loaded, 5);
    let tpcc = Tpcc::new(options, &loaded, Dialect::Postgres).unwrap();
    let mut terminals: Vec<(Terminal, TerminalPlan)> = (0..20)
        .map(|number| tpcc.seat(number, Rng::new(seed, "terminal", u64::from(number))).unwrap())
        .collect();
    let mut texts = vec![Vec::new(); terminals.len()];
    block_on(async {
        let mut staff: Vec<(TpccWorker, Fake)> = Vec::new();
        for id in 0..workers as u32 {
            let mut session = Fake::new(Dialect::Postgres);
            let rng = Rng::new(9, "worker", u64::from(id));
            let worker = tpcc.open(&mut session, id, workers as u32, rng).await.unwrap();
            session.is_recording = true;
            staff.push((worker, session));
        }
        let mut tally = Tally::default();
        for round in 0..40 {
            for (number, (terminal, plan)) in terminals.iter_mut().enumerate() {
                let (worker, session) = &mut staff[(round * 3 + number) % workers];
                tpcc.swap(worker, terminal);
                tpcc.run(worker, session, plan.transaction, 0, &mut tally).await.unwrap();
                tpcc.swap(worker, terminal);
                let errand = tpcc.errand(worker);
                assert_eq!(errand.is_some(), plan.transaction == TpccTransaction::Delivery.index());
                let statements = &mut texts[number];
                statements.push(format!("{plan:?}"));
                if let Some(errand) = errand {
                    assert!(session.flights.is_empty(), "a Delivery is only queued");
                    tpcc.take_errand(worker, errand.ticket, 0);
                    let transaction = errand.transaction;
                    tpcc.run(worker, session, transaction, 0, &mut tally).await.unwrap();
                }
                statements.extend(session.flights.drain(..).flatten());
                *plan = tpcc.plan(terminal);
            }
        }
    })
    .unwrap();
    texts
}

#[test]
fn what_terminals_enter_does_not_depend_on_sessions() {
    let alone = sent_statements(1, 1);
    assert!(alone.iter().all(|texts| texts.len() > 400));
    assert_eq!(alone, sent_statements(7, 1));
    assert_ne!(alone, sent_statements(1, 2));
    // Terminal 13 works for district 4 of warehouse 2.
    let levels = alone[13].iter().filter(|text| text.starts_with("SELECT count(*)"));
    let homes: Vec<&String> = levels.collect();
    assert!(!homes.is_empty());
    assert!(homes.iter().all(|text| text.contains(" 2 4")), "{homes:?}");
}
