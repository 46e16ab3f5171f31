//! Parts of a trial: N load generators do what one does, begin when it was agreed, and their results
//! add up to its result.

use crate::support::{
    Kind, Lists, MS, RecordedIntervals, TRANSFER, check, closed, constant, run, try_run,
};
use dyno_core::{DbError, ErrorClass, Outcome, SECOND};
use dyno_engine::record::{Frame, Latencies, MeasuredInterval, Phase};
use dyno_engine::{
    Control, DriveError, Joined, TrialEnd, TrialResult, TrialShare, TrialSpec, drive, merge,
};
use dyno_facts::HostSample;
use dyno_testkit::sim::{Fault, Service, SimDriver, SimulatedAnswers, SimulatedStatement};
use proptest::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// All parts of a trial.
fn parts(spec: &TrialSpec, generators: u32) -> Vec<TrialSpec> {
    (0..generators).filter_map(|generator| spec.part(generator, generators)).collect()
}

/// Three kinds, so that the mix is drawn, and one that is rolled back.
fn mixed() -> Lists<'static> {
    let kinds = [
        (5, TRANSFER.to_vec(), Outcome::Committed),
        (3, vec!["SELECT 1"], Outcome::Committed),
        (1, vec!["SELECT 2", "ROLLBACK"], Outcome::RolledBack),
    ];
    let kinds = kinds.map(|(weight, statements, outcome)| Kind { weight, statements, outcome });
    Lists::new(kinds.into())
}

/// Statements take times that each session draws for itself.
fn random_times() -> SimDriver {
    let service = Service::Exponential(3 * MS);
    SimDriver::new(SimulatedAnswers { service, keep_log: true, ..SimulatedAnswers::default() })
}

/// Executed statements with worker and time, in an order that doesn't depend on who answered first.
fn sorted(mut log: Vec<SimulatedStatement>) -> Vec<SimulatedStatement> {
    log.sort_by_cached_key(|one| (one.session, one.began, one.ended, one.sql.clone()));
    log
}

/// Runs each part on its own database; what was measured, and what was executed by all of them.
fn run_parts(
    spec: &TrialSpec,
    generators: u32,
) -> (Vec<TrialResult>, Vec<RecordedIntervals>, Vec<SimulatedStatement>) {
    let (mut results, mut seens, mut log) = (Vec::new(), Vec::new(), Vec::new());
    for part in parts(spec, generators) {
        let driver = random_times();
        let (result, seen) = run(&mixed(), &driver, &part);
        results.push(result);
        seens.push(seen);
        log.extend(driver.log());
    }
    (results, seens, sorted(log))
}

/// The figures that must be equal. CPU times and facts about this machine do not come from the virtual clock.
fn figures(result: &TrialResult) -> impl PartialEq + std::fmt::Debug {
    let total = Frame { cpu_ns: 0, ..result.total.clone() };
    let counts = (result.in_flight, result.offered, result.retired, result.unfinished);
    (total, counts, result.window, result.workers.clone(), result.ended.clone())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10, ..ProptestConfig::default() })]

    #[test]
    fn parts_execute_what_one_executes_and_measure_what_it_measures(
        workers in 1_u32..12,
        generators in 1_u32..6,
        seed in any::<u64>(),
        warmup_ms in 0_u64..300,
    ) {
        let warmup = warmup_ms * MS;
        let spec = TrialSpec { seed, warmup, interval: 100 * MS, ..closed(workers, 1) };
        let driver = random_times();
        let (whole, seen) = run(&mixed(), &driver, &spec);
        let (results, seens, log) = run_parts(&spec, generators);
        prop_assert_eq!(log, sorted(driver.log()));
        let merged = merge(&results).unwrap();
        prop_assert_eq!(figures(&merged), figures(&whole));

        let kinds = whole.total.kinds.len();
        let mut joined = Joined::new(whole.window, seens.len() as u32, kinds, false);
        let mut live = Vec::new();
        for (generator, seen) in (0..).zip(&seens) {
            for interval in &seen.0 {
                prop_assert!(joined.take(generator, interval));
                prop_assert!(!joined.take(generator, interval), "twice");
            }
        }
        live.extend(std::iter::from_fn(|| joined.next_complete()));
        let plain = |interval: &MeasuredInterval| {
            let frame = Frame { cpu_ns: 0, ..interval.frame.clone() };
            (interval.phase, interval.index, frame, interval.begins_s.to_bits())
        };
        let (live, alone): (Vec<_>, Vec<_>) =
            (live.iter().map(plain).collect(), seen.0.iter().map(plain).collect());
        prop_assert_eq!(live, alone);
    }

    #[test]
    fn parts_divide_the_whole_without_gaps(
        workers in 1_u32..2_000,
        generators in 1_u32..40,
        terminals in proptest::option::of(0_u32..100_000),
        events in proptest::option::of(any::<u64>()),
    ) {
        let spec = TrialSpec { terminals, events, rate_per_s: Some(1_234.5), ..closed(workers, 1) };
        let parts = parts(&spec, generators);
        prop_assert_eq!(parts.len() as u32, generators.min(workers));
        let (mut workers_before, mut terminals_before, mut rate) = (0, 0, 0.0);
        for part in &parts {
            prop_assert_eq!(part.share.workers_before, workers_before);
            prop_assert_eq!(part.share.terminals_before, terminals_before);
            prop_assert_eq!((part.all_workers(), part.all_terminals()), (workers, terminals));
            prop_assert!(part.workers >= 1 && part.share.is_part() == (generators > 1));
            workers_before += part.workers;
            terminals_before += part.terminals.unwrap_or(0);
            rate += part.rate_per_s.unwrap();
        }
        prop_assert_eq!(workers_before, workers);
        prop_assert_eq!(terminals_before, terminals.unwrap_or(0));
        prop_assert!((rate - 1_234.5).abs() < 1e-6);
        let part_events: u64 = parts.iter().map(|part| part.events.unwrap_or(0)).sum();
        prop_assert_eq!(part_events, events.unwrap_or(0));
        prop_assert_eq!(spec.part(generators, generators), None);
    }

    #[test]
    fn what_travels_arrives_bit_by_bit(
        latencies in proptest::collection::vec(any::<u64>(), 0..200),
        offset in any::<i64>(),
        shares in any::<[f64; 3]>().prop_filter("JSON has no others", |all| {
            all.iter().all(|share| share.is_finite())
        }),
        message in ".*",
    ) {
        let mut result = sample();
        let mut recorded = Latencies::new();
        latencies.iter().for_each(|&latency| recorded.record(latency));
        result.total.kinds[0].latency = recorded.clone();
        result.total.service = Some(recorded.clone());
        result.total.lateness = Some(Latencies::new());
        [result.host.cpu_share, result.host.steal_share, result.host.network_sent_bytes_per_s] =
            shares;
        result.conditions.hiccup_p999_us = Some(shares[0]);
        result.conditions.governor = Some(message.clone());
        let error = DbError::server(ErrorClass::Deadlock, 1213, *b"40001", message.clone());
        result.total.errors.count(&error);
        result.ended = TrialEnd::Aborted(error.with_hint(message));
        result.shift(offset);
        let text = serde_json::to_string(&result).unwrap();
        let back: TrialResult = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(&back, &result);
        let mut sum = recorded.clone();
        sum.add(back.total.service.as_ref().unwrap());
        prop_assert_eq!(sum.count(), 2 * recorded.count());
        let interval = MeasuredInterval {
            phase: Phase::Measured,
            index: 7,
            begins_s: shares[1],
            length_s: 1.0,
            frame: result.total,
            host: result.host,
        };
        let text = serde_json::to_string(&interval).unwrap();
        prop_assert_eq!(serde_json::from_str::<MeasuredInterval>(&text).unwrap(), interval);
    }
}

/// A short trial with errors and retries.
fn sample() -> TrialResult {
    let faults = vec![Fault::ErrorEvery { period: 5, class: ErrorClass::Deadlock }];
    run(&mixed(), &constant(10 * MS, faults), &closed(3, 1)).0
}

#[test]
fn errors_of_all_causes_travel() {
    let errors = [
        DbError::server(ErrorClass::Constraint, 1062, *b"23000", "a").with_detail("b"),
        DbError::lost("gone"),
        DbError::closed(1927, *b"70100", "killed"),
        DbError::unreachable("no route").with_hint("look"),
        DbError::rejected(1045, *b"28000", "no").with_class(ErrorClass::ConnectionLost),
        DbError::protocol("?"),
        DbError::unsupported("not here"),
        DbError::workload("it can't"),
    ];
    for error in errors {
        let ended = TrialEnd::Aborted(error);
        let text = serde_json::to_string(&ended).unwrap();
        assert_eq!(serde_json::from_str::<TrialEnd>(&text).unwrap(), ended, "{text}");
    }
    let text = serde_json::to_string(&sample()).unwrap().replace("deadlock", "dead_end");
    let error = serde_json::from_str::<TrialResult>(&text).unwrap_err().to_string();
    assert!(error.starts_with("there is no class of errors `dead_end`"), "{error}");
}

#[test]
fn a_histogram_that_is_none_is_refused() {
    let mut value = serde_json::to_value(sample()).unwrap();
    let cells = &mut value["total"]["kinds"][0]["latency"]["cells"];
    assert!(cells.as_str().is_some_and(|text| text.len() > 20));
    *cells = "AAAA".into();
    let error = serde_json::from_value::<TrialResult>(value).unwrap_err().to_string();
    assert!(error.starts_with("a histogram can't be unpacked: "), "{error}");
}

#[test]
fn only_what_belongs_together_is_merged() {
    let result = sample();
    assert!(merge(&[]).is_err());
    assert_eq!(merge(std::slice::from_ref(&result)), Ok(result.clone()));
    let different = run(&Lists::one_kind(&TRANSFER), &constant(MS, vec![]), &closed(1, 1)).0;
    assert!(merge(&[result.clone(), different]).is_err());
    let scheduled = TrialResult { offered: Some(1), ..result.clone() };
    assert!(merge(&[result.clone(), scheduled]).is_err());
}

#[test]
fn a_trial_that_was_miscounted_has_failed_and_keeps_what_was_measured() {
    let result = sample();
    let mut wrong = result.clone();
    wrong.total.kinds[0].counts.started += 1;
    let merged = merge(&[result.clone(), wrong]).unwrap();
    let (counts, in_flight) = (result.total.counts(), 2 * result.in_flight);
    let (started, ended) = (2 * counts.started + 1, 2 * counts.ended());
    assert_eq!(merged.ended, TrialEnd::Miscounted { started, ended, in_flight });
    assert_eq!(merged.total.counts().committed, 2 * counts.committed);
    let failure = format!(
        "{started} transactions were started, but {ended} ended and {in_flight} were in flight: the load generator \
         has miscounted."
    );
    assert_eq!(merged.ended.failure(), Some(failure));
    let sound = merge(std::slice::from_ref(&result)).unwrap();
    assert_eq!((sound.ended.failure(), &sound.ended), (None, &result.ended));
}

#[test]
fn merging_keeps_the_worst_machine_and_the_first_error() {
    let mut first = sample();
    // What this machine did meanwhile is not what the test is about.
    (first.host.cpu_share, first.host.memory_available_mib) = (0.1, 1000.0);
    first.conditions.run_delay_s = None;
    let mut second = first.clone();
    let mut third = first.clone();
    second.host.cpu_share = 0.9;
    second.host.memory_available_mib = 10.0;
    second.conditions.run_delay_s = Some(0.5);
    second.conditions.governor = Some("powersave".to_owned());
    third.conditions.run_delay_s = Some(0.25);
    third.conditions.governor = Some("performance".to_owned());
    third.late = 3 * MS;
    third.ended = TrialEnd::Aborted(DbError::lost("gone"));
    second.ended = TrialEnd::Interrupted;
    // Nothing is known of the machine of one that was lost, wherever it is among them.
    let without_host = TrialResult { host: HostSample::default(), ..first.clone() };
    assert_eq!(merge(&[without_host, second.clone()]).unwrap().host, second.host);
    let merged = merge(&[first, second, third]).unwrap();
    assert_eq!((merged.host.cpu_share, merged.host.memory_available_mib), (0.9, 10.0));
    assert_eq!(merged.conditions.run_delay_s, Some(0.75));
    assert_eq!(merged.conditions.governor.as_deref(), Some("powersave, performance"));
    assert_eq!((merged.late, merged.workers.len()), (3 * MS, 9));
    assert_eq!(merged.ended, TrialEnd::Aborted(DbError::lost("gone")));
}

#[test]
fn a_lost_generator_counts_once_with_what_it_had_sent() {
    let spec = TrialSpec { interval: 100 * MS, ..closed(9, 1) };
    let (results, seens, _) = run_parts(&spec, 3);
    let window = results[0].window;
    let mut joined = Joined::new(window, 3, 3, false);
    let (lost, sent) = (1, 4);
    for index in 0..10 {
        for (generator, seen) in (0..).zip(&seens) {
            if generator != lost || index < sent {
                assert!(joined.take(generator, &seen.0[index as usize]));
            }
        }
    }
    let complete: Vec<MeasuredInterval> = std::iter::from_fn(|| joined.next_complete()).collect();
    assert_eq!(complete.len(), 4, "the others wait for what it may still send");
    let error = DbError::workload("Load generator b answers no more.");
    let part = joined.lose(lost, error.clone()).unwrap();
    assert!(!joined.take(lost, &seens[1].0[4]), "it is too late");
    let remaining: Vec<MeasuredInterval> = std::iter::from_fn(|| joined.next_complete()).collect();
    assert_eq!(remaining.len(), 6);
    let mut sent_counts = dyno_facts::Counts::default();
    seens[1].0[..4].iter().for_each(|interval| sent_counts.add(&interval.frame.counts()));
    assert_eq!(part.total.counts(), sent_counts);
    assert_eq!(part.length(), 400 * MS);
    let merged = merge(&[results[0].clone(), part, results[2].clone()]).unwrap();
    let mut total = dyno_facts::Counts::default();
    complete.iter().chain(&remaining).for_each(|interval| total.add(&interval.frame.counts()));
    assert_eq!(merged.total.counts(), total, "intervals and total agree");
    assert_eq!(merged.ended, TrialEnd::Aborted(error));
    // Frames of something else are none of this trial.
    let foreign = MeasuredInterval { frame: Frame::new(1, true), ..seens[0].0[0].clone() };
    assert!(!joined.take(0, &MeasuredInterval { index: 99, ..foreign }));
    assert!(!joined.take(3, &seens[0].0[0]));
}

#[test]
fn workers_wait_for_the_agreed_moment() {
    let lists = mixed();
    let control = Control::starting(Box::new(|now| Some(now + 5 * SECOND)));
    let spec = TrialSpec { warmup: 100 * MS, ..closed(7, 1) };
    let (result, seen) = try_run(&lists, &random_times(), &spec, &control);
    let result = result.unwrap();
    let window = result.window;
    assert_eq!((window.released, window.opens), (5 * SECOND, 5 * SECOND + 100 * MS));
    assert_eq!((result.connect, result.late), (0, 0), "waiting isn't connecting");
    let over = lists.over.lock().unwrap();
    let mut begins: Vec<u64> = over.iter().map(|ended| ended.began).collect();
    begins.sort_unstable();
    assert_eq!(begins[..7], [5 * SECOND; 7], "all of them, and not a nanosecond earlier");
    assert_eq!(seen.0[0].frame.began, 5 * SECOND);
}

#[test]
fn who_must_not_start_does_not() {
    let lists = mixed();
    let driver = random_times();
    let control = Control::starting(Box::new(|_| None));
    let (result, _) = try_run(&lists, &driver, &closed(2, 1), &control);
    assert!(matches!(result, Err(DriveError::Interrupted)));
    assert_eq!(driver.statements(), 0);
}

/// Two loops on the clock of this machine.
fn real(control: &Control, spec: &TrialSpec) -> (TrialResult, Vec<u64>) {
    let lists = mixed();
    let mut observer = RecordedIntervals::default();
    let result = drive(&lists, &random_times(), spec, control, &mut observer).unwrap();
    check(&result, &observer, spec);
    let over = lists.over.lock().unwrap();
    (result, over.iter().map(|ended| ended.began).collect())
}

#[test]
fn no_loop_begins_before_the_agreed_moment() {
    let control = Control::starting(Box::new(|now| Some(now + 30 * MS)));
    let spec = TrialSpec { loops: Some(2), duration: Some(100 * MS), ..closed(4, 1) };
    let (result, begins) = real(&control, &spec);
    assert_eq!(result.ended, TrialEnd::Time);
    assert!(result.host.memory_available_mib > 0.0, "the machine was looked at");
    assert!(!begins.is_empty() && begins.iter().all(|&began| began >= result.window.released));
}

#[test]
fn a_trial_that_is_stopped_before_its_moment_does_nothing() {
    let was_called = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&was_called);
    let control = Control::starting(Box::new(move |now| {
        flag.store(true, Ordering::SeqCst);
        Some(now + 3_600 * SECOND)
    }));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !was_called.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(1));
            }
            control.stop();
        });
        let spec = TrialSpec { loops: Some(2), ..closed(4, 1) };
        let (result, begins) = real(&control, &spec);
        assert_eq!((result.ended, begins.len()), (TrialEnd::Interrupted, 0));
        assert_eq!((result.total.counts().started, result.in_flight), (0, 0));
    });
}

#[test]
fn a_share_says_whether_it_is_one() {
    assert!(!TrialShare::default().is_part());
    let alone = closed(3, 1).part(0, 1).unwrap();
    assert!(!alone.share.is_part());
    assert_eq!(TrialSpec { share: TrialShare::default(), ..alone }, closed(3, 1));
}
