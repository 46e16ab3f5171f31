//! Whole trials over a real NATS server, with load generators in this process and simulated databases.

use dyno_core::{
    DbError, Discard, MILLISECOND, Nanos, Outcome, Rng, SECOND, Session, Tally, TransactionId,
    TransactionKind, WorkerId, Workload,
};
use dyno_engine::record::{MeasuredInterval, Phase, Window};
use dyno_engine::{Control, DriveError, Observer, TrialResult, TrialSpec, drive};
use dyno_facts::PlannedTrial;
use dyno_fleet::{
    FLEET, Fleet, FleetOptions, Generator, GeneratorEvent, NatsOptions, PATIENCE, Performance,
    Task, Versions, WAIT,
};
use dyno_testkit::sim::{Service, SimDriver, SimulatedAnswers};
use dyno_testkit::{Nats, server_or_skip};
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A statement for each transaction.
struct Selects([TransactionKind; 1]);

impl Selects {
    fn new() -> Self {
        Selects([TransactionKind { name: "select".to_owned(), weight: 1 }])
    }
}

impl Workload for Selects {
    type Worker = ();
    type Terminal = ();

    fn transactions(&self) -> &[TransactionKind] {
        &self.0
    }

    async fn open<S: Session>(
        &self,
        _: &mut S,
        _: WorkerId,
        _: u32,
        _: Rng,
    ) -> Result<(), DbError> {
        Ok(())
    }

    async fn reopen<S: Session>(&self, (): &mut (), _: &mut S) -> Result<(), DbError> {
        Ok(())
    }

    async fn run<S: Session>(
        &self,
        (): &mut (),
        session: &mut S,
        _: TransactionId,
        _: u32,
        tally: &mut Tally,
    ) -> Result<Outcome, DbError> {
        session.query("SELECT 1", &mut Discard).await?;
        tally.reads += 1;
        Ok(Outcome::Committed)
    }
}

fn database() -> SimDriver {
    let service = Service::Uniform(MILLISECOND, 3 * MILLISECOND);
    SimDriver::new(SimulatedAnswers { service, ..SimulatedAnswers::default() })
}

fn spec(planned: &PlannedTrial) -> TrialSpec {
    TrialSpec {
        warmup: (planned.warmup_s * 1e9) as Nanos,
        duration: planned.duration_s.map(|seconds| (seconds * 1e9) as Nanos),
        interval: SECOND / 4,
        drain: SECOND,
        loops: Some(1),
        ..TrialSpec::closed(planned.workers)
    }
}

fn planned_trial(workers: u32, duration_s: f64) -> PlannedTrial {
    let text = format!(
        r#"{{"number": 1, "point": "p", "workers": {workers}, "rate": null, "repeat": 1, "warmup_s": 0.3,
            "duration_s": {duration_s}, "events": null, "interval_s": 0.25, "seed": 7}}"#
    );
    serde_json::from_str(&text).expect("a trial")
}

/// The fate of a load generator in its first trial.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Works,
    /// Is cut off after its first measured interval.
    Vanishes,
    /// Is cut off before the start.
    VanishesEarly,
    /// Can't reach the database.
    Fails,
}

/// A load generator in a thread, which hands out what it has measured itself.
struct Member {
    thread: Option<JoinHandle<()>>,
    end: &'static AtomicBool,
    results: Receiver<TrialResult>,
}

impl Member {
    fn start(nats: &NatsOptions, name: &str, fate: Fate, version: &str) -> Self {
        let end: &'static AtomicBool = Box::leak(Box::default());
        let (sender, results) = channel();
        let versions = Versions::this(version);
        let generator =
            Generator::open(nats, FLEET, Some(name), versions, Vec::new()).expect("it opens");
        let thread = std::thread::spawn(move || work(generator, fate, end, &sender));
        Member { thread: Some(thread), end, results }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn work(generator: Generator, fate: Fate, end: &'static AtomicBool, results: &Sender<TrialResult>) {
    let mut generator = Some(generator);
    while let Some(event) =
        generator.as_ref().and_then(|it| it.next(&|| end.load(Ordering::Relaxed)))
    {
        let GeneratorEvent::Work(assignment) = event else { continue };
        let (order, mut reporter) = (assignment.order, assignment.reporter);
        if fate == Fate::Fails {
            reporter.failed("There is no database.", Some("start one"), false);
            continue;
        }
        if fate == Fate::VanishesEarly {
            generator = None;
            continue;
        }
        let part = spec(&order.planned).part(order.generator, order.generators).expect("a part");
        let control = reporter.control();
        let mut watch =
            Vanishing { reporter: &mut reporter, generator: &mut generator, fate, left: 4 };
        match drive(&Selects::new(), &database(), &part, &control, &mut watch) {
            Ok(result) => {
                let _ = results.send(result.clone());
                reporter.ended(result, format!("left by {}", order.generator).as_bytes());
            }
            Err(DriveError::Interrupted) => reporter.failed("It was stopped.", None, true),
            Err(error) => reporter.failed(&error.to_string(), None, false),
        }
    }
}

/// Reports, and cuts the connection to NATS after some intervals.
struct Vanishing<'a> {
    reporter: &'a mut dyno_fleet::Reporter,
    generator: &'a mut Option<Generator>,
    fate: Fate,
    left: u32,
}

impl Observer for Vanishing<'_> {
    fn connected(&mut self, connected: u32, total: u32) {
        self.reporter.connected(connected, total);
    }

    fn released(&mut self, window: &Window) {
        self.reporter.released(window);
    }

    fn interval(&mut self, interval: &MeasuredInterval) {
        self.reporter.interval(interval);
        self.left = self.left.saturating_sub(1);
        if self.left == 0 && self.fate == Fate::Vanishes {
            *self.generator = None;
        }
    }
}

#[derive(Default)]
struct RecordingObserver {
    windows: Vec<Window>,
    intervals: Vec<MeasuredInterval>,
}

impl Observer for RecordingObserver {
    fn released(&mut self, window: &Window) {
        self.windows.push(*window);
    }

    fn interval(&mut self, interval: &MeasuredInterval) {
        self.intervals.push(interval.clone());
    }
}

impl RecordingObserver {
    fn committed(&self) -> u64 {
        let measured = self.intervals.iter().filter(|interval| interval.phase == Phase::Measured);
        measured.map(|interval| interval.frame.counts().committed).sum()
    }
}

fn options(nats: &NatsOptions, generators: u32, wait: Duration) -> FleetOptions {
    FleetOptions {
        nats: nats.clone(),
        fleet: FLEET.to_owned(),
        generators,
        versions: Versions::this("1.0"),
        wait,
    }
}

fn gather(nats: &NatsOptions, generators: u32) -> Fleet {
    let fleet = Fleet::gather(&options(nats, generators, WAIT), &|_| {}, &|| false);
    fleet.expect("NATS answers").expect("nobody stops it")
}

fn run(
    fleet: &mut Fleet,
    planned: &PlannedTrial,
    observer: &mut RecordingObserver,
) -> Result<Box<Performance>, String> {
    let spec = spec(planned);
    let task = Task {
        plan: serde_json::Value::Null,
        experiment: "e",
        target: "t",
        planned,
        secrets: Vec::new(),
        spec: &spec,
        kinds: 1,
        tell: &|_| {},
    };
    match fleet.drive(&task, &Control::new(), observer) {
        Ok(Some(performance)) => Ok(performance),
        Ok(None) => Err("interrupted".to_owned()),
        Err(error) => Err(format!("{} {}", error.message, error.hint.unwrap_or_default())),
    }
}

#[test]
fn who_is_busy_is_named_and_asked_again() {
    let nats = server_or_skip!(Nats, "a busy load generator");
    let nats = NatsOptions::new(nats.url(""));
    let _member = Member::start(&nats, "a", Fate::Works, "1.0");
    let first = RefCell::new(Some(gather(&nats, 1)));
    let hurried = options(&nats, 1, Duration::ZERO);
    let error = Fleet::gather(&hurried, &|_| {}, &|| false).expect_err("it is busy");
    assert!(error.message.contains("a is busy with the run "), "{}", error.message);
    let hint = error.hint.unwrap_or_default();
    assert!(hint.starts_with("Free those, or start more: "), "{hint}");
    // The first run ends as soon as the second one has heard of it.
    let on_message = |text: &str| {
        if text.contains("a is busy with the run ") {
            first.borrow_mut().take();
        }
    };
    let second = Fleet::gather(&options(&nats, 1, WAIT), &on_message, &|| false);
    assert_eq!(second.expect("it is free").expect("nobody stops it").names(), ["a"]);
}

#[test]
fn parts_start_together_and_add_up_exactly() {
    let nats = server_or_skip!(Nats, "a fleet's trial");
    let options = NatsOptions::new(nats.url(""));
    let start_member = |name| Member::start(&options, name, Fate::Works, "1.0");
    let members = ["a", "b", "c"].map(start_member);
    let _other = Member::start(&options, "old", Fate::Works, "0.9");
    let mut fleet = gather(&options, 3);
    assert_eq!(fleet.names(), ["a", "b", "c"]);
    // More load generators than workers: one has nothing to do.
    for (threads, parts) in [(7, 3), (2, 2)] {
        let mut observer = RecordingObserver::default();
        let performance =
            run(&mut fleet, &planned_trial(threads, 1.0), &mut observer).expect("it is driven");
        let results: Vec<TrialResult> = members[..parts]
            .iter()
            .map(|member| member.results.recv().expect("a result"))
            .collect();
        let mut total = results[0].total.clone();
        results[1..].iter().for_each(|result| total.add(&result.total));
        // All in one process and on one clock, but for the error of the offset.
        let result = &performance.result;
        assert_eq!(result.total.kinds, total.kinds);
        assert_eq!(observer.committed(), result.total.counts().committed);
        assert_eq!(result.workers.len(), threads as usize);
        assert!(performance.lost.is_empty(), "{:?}", performance.lost);
        assert_eq!(performance.notes.len(), usize::from(parts < 3), "{:?}", performance.notes);
        let expected_leftovers: Vec<String> =
            (0..parts).map(|number| format!("left by {number}")).collect();
        let leftovers: Vec<String> = performance
            .left
            .iter()
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
            .collect();
        assert_eq!(leftovers, expected_leftovers);
        assert_eq!(observer.windows.len(), 1);
        for (member, part) in performance.members.iter().zip(&results) {
            assert_eq!(member.committed, part.total.counts().committed);
            let bound = member.clock_bound_ms.expect("a bound");
            let released =
                (part.window.released as f64 - observer.windows[0].released as f64) / 1e6;
            // The agreed moment, read on the other clock: right but for what is not known of it.
            let late = member.late_ms.expect("it started") - part.late as f64 / 1e6;
            assert!((released - late).abs() <= bound + 0.001, "{released} {late} {bound}");
            assert!(member.from_s.abs() * 1e3 <= late + 2.0 * bound + 0.001, "{member:?}");
        }
    }
}

#[test]
fn who_vanishes_is_counted_as_far_as_it_had_reported() {
    let nats = server_or_skip!(Nats, "a fleet's loss");
    let options = NatsOptions::new(nats.url(""));
    let _a = Member::start(&options, "a", Fate::Works, "1.0");
    let _b = Member::start(&options, "b", Fate::Vanishes, "1.0");
    let mut fleet = gather(&options, 2);
    let mut observer = RecordingObserver::default();
    let performance = run(&mut fleet, &planned_trial(4, 3.0), &mut observer).expect("it is driven");
    assert_eq!(performance.lost.len(), 1, "{:?}", performance.lost);
    let loss_message =
        "The load generator b was lost in the trial; what it had reported until then is counted.";
    assert!(performance.lost[0].to_string().starts_with(loss_message), "{:?}", performance.lost);
    let [a, b] = &performance.members[..] else { panic!("{:?}", performance.members) };
    assert!(a.lost.is_none() && b.lost.is_some());
    assert!(b.committed < a.committed, "{a:?} {b:?}");
    let result = &performance.result;
    assert_eq!(result.total.counts().committed, a.committed + b.committed);
    assert_eq!(observer.committed(), a.committed + b.committed);
    assert_eq!(performance.left.len(), 1);
    assert_eq!(fleet.names(), ["a"]);
    // The next trial is driven by who is left, and by who has come since.
    let _c = Member::start(&options, "c", Fate::Works, "1.0");
    // On a busy machine a newcomer answers the call of one trial too late, and that of another one in time.
    for _ in 0..20 {
        let next = run(&mut fleet, &planned_trial(4, 0.5), &mut RecordingObserver::default())
            .expect("it is driven");
        assert_eq!(next.lost.len(), 0, "{:?}", next.lost);
        if next.members.len() == 2 {
            break;
        }
    }
    assert_eq!(fleet.names(), ["a", "c"]);
    assert_eq!(fleet.known.len(), 3);
}

#[test]
fn who_is_lost_before_the_start_takes_nobody_along() {
    let nats = server_or_skip!(Nats, "a fleet's early loss");
    let options = NatsOptions::new(nats.url(""));
    let _a = Member::start(&options, "a", Fate::Works, "1.0");
    let _b = Member::start(&options, "b", Fate::VanishesEarly, "1.0");
    let _c = Member::start(&options, "c", Fate::Works, "1.0");
    let mut fleet = gather(&options, 3);
    let performance = run(&mut fleet, &planned_trial(4, 0.5), &mut RecordingObserver::default())
        .expect("two are left");
    assert_eq!(fleet.names(), ["a", "c"]);
    assert_eq!(performance.members.len(), 2);
    assert!(performance.lost.is_empty(), "{:?}", performance.lost);
    let note = performance.notes[0].to_string();
    assert!(note.contains("generator b") && note.contains("before the trial began"), "{note}");
}

#[test]
fn the_silent_ones_are_waited_for_together() {
    let nats = server_or_skip!(Nats, "a fleet's silence");
    let options = NatsOptions::new(nats.url(""));
    let _a = Member::start(&options, "a", Fate::Works, "1.0");
    let silent_members =
        ["b", "c", "d", "e"].map(|name| Member::start(&options, name, Fate::Works, "1.0"));
    let mut fleet = gather(&options, 5);
    drop(silent_members);
    let start = Instant::now();
    let performance = run(&mut fleet, &planned_trial(5, 0.5), &mut RecordingObserver::default())
        .expect("one is left");
    let elapsed = start.elapsed();
    // One after the other would take four times as long; the machine may be busy.
    assert!(elapsed >= PATIENCE && elapsed < 4 * PATIENCE, "{elapsed:?}");
    assert_eq!(fleet.names(), ["a"]);
    // One for each, and one that the fleet is not whole.
    assert_eq!(performance.notes.len(), 5, "{performance:?}");
}

#[test]
fn who_can_not_begin_says_why_and_the_others_are_free_again() {
    let nats = server_or_skip!(Nats, "a fleet's failure");
    let options = NatsOptions::new(nats.url(""));
    let _a = Member::start(&options, "a", Fate::Works, "1.0");
    let _b = Member::start(&options, "b", Fate::Fails, "1.0");
    let mut fleet = gather(&options, 2);
    let error = run(&mut fleet, &planned_trial(4, 0.5), &mut RecordingObserver::default())
        .expect_err("b can't");
    assert_eq!(error, "load generator b: There is no database. start one");
    drop(fleet);
    let mut fleet = gather(&options, 1);
    assert_eq!(fleet.names(), ["a"]);
    run(&mut fleet, &planned_trial(1, 0.2), &mut RecordingObserver::default()).expect("a is free");
}
