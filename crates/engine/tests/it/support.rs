//! A workload whose transactions are lists of statements, and short ways to run it.

use dyno_core::{
    DbError, Discard, Driver, EndedTransaction, MILLISECOND, Nanos, Outcome, Param, ParamType, Rng,
    SECOND, Session, Statement, Tally, TransactionId, TransactionKind, WorkerId, Workload,
};
use dyno_engine::record::{MeasuredInterval, Phase};
use dyno_engine::{Control, DriveError, Observer, TrialResult, TrialSpec, drive_simulated};
use dyno_reactor::now;
use dyno_testkit::sim::{Fault, Service, SimDriver, SimulatedAnswers};
use std::sync::Mutex;

pub(crate) const MS: Nanos = MILLISECOND;

/// One kind of transaction: its statements and how it ends when none of them fails.
#[derive(Clone)]
pub(crate) struct Kind {
    pub(crate) weight: u32,
    pub(crate) statements: Vec<&'static str>,
    pub(crate) outcome: Outcome,
}

/// Executes the statements of its kinds, each with a random number as parameter.
pub(crate) struct Lists<'a> {
    kinds: Vec<Kind>,
    names: Vec<TransactionKind>,
    /// At this time the first worker that begins an attempt asks for the end of the trial.
    pub(crate) stop: Option<(Nanos, &'a Control)>,
    /// From this time on who begins an attempt panics; before the start for 0.
    pub(crate) panics_at: Option<Nanos>,
    /// The first session of this worker is lost before it is prepared.
    pub(crate) loses: Option<WorkerId>,
    /// The statement that a worker sends after its last transaction.
    pub(crate) farewell: Option<&'static str>,
    /// Rows that its statements have to read.
    pub(crate) touches: Option<u64>,
    /// A failed attempt is rolled back before the next one.
    pub(crate) rolls_back: bool,
    /// Every transaction that was over, and every worker that left with its error.
    pub(crate) over: Mutex<Vec<EndedTransaction>>,
    pub(crate) left: Mutex<Vec<Option<DbError>>>,
}

impl Lists<'_> {
    pub(crate) fn new(kinds: Vec<Kind>) -> Self {
        let names = kinds.iter().enumerate().map(|(number, kind)| TransactionKind {
            name: format!("kind_{number}"),
            weight: kind.weight,
        });
        let names = names.collect();
        Lists {
            kinds,
            names,
            stop: None,
            panics_at: None,
            loses: None,
            farewell: None,
            touches: None,
            rolls_back: true,
            over: Mutex::default(),
            left: Mutex::default(),
        }
    }

    fn stop_where_due(&self) {
        if let Some((at, control)) = self.stop
            && now() >= at
        {
            control.stop();
        }
    }

    /// One kind that commits.
    pub(crate) fn one_kind(statements: &[&'static str]) -> Self {
        let statements = statements.to_vec();
        Lists::new(vec![Kind { weight: 1, statements, outcome: Outcome::Committed }])
    }

    async fn prepare<S: Session>(&self, session: &mut S) -> Result<Vec<Vec<Statement>>, DbError> {
        let mut prepared = Vec::new();
        for kind in &self.kinds {
            let mut statements = Vec::new();
            for sql in &kind.statements {
                statements.push(session.prepare(sql, &[ParamType::Int]).await?);
            }
            prepared.push(statements);
        }
        Ok(prepared)
    }
}

pub(crate) struct Worker {
    prepared: Vec<Vec<Statement>>,
    rng: Rng,
}

impl Workload for Lists<'_> {
    type Worker = Worker;
    type Terminal = ();

    fn transactions(&self) -> &[TransactionKind] {
        &self.names
    }

    fn rows_touched(&self) -> Option<u64> {
        self.touches
    }

    async fn open<S: Session>(
        &self,
        session: &mut S,
        id: WorkerId,
        _workers: u32,
        rng: Rng,
    ) -> Result<Worker, DbError> {
        assert!(id > 0 || self.panics_at != Some(0), "worker 0 is broken");
        if self.loses == Some(id) {
            return Err(DbError::lost("gone"));
        }
        Ok(Worker { prepared: self.prepare(session).await?, rng })
    }

    async fn reopen<S: Session>(
        &self,
        worker: &mut Worker,
        session: &mut S,
    ) -> Result<(), DbError> {
        worker.prepared = self.prepare(session).await?;
        Ok(())
    }

    async fn run<S: Session>(
        &self,
        worker: &mut Worker,
        session: &mut S,
        transaction: TransactionId,
        _attempt: u32,
        tally: &mut Tally,
    ) -> Result<Outcome, DbError> {
        self.stop_where_due();
        assert!(self.panics_at.is_none_or(|at| now() < at), "a worker is broken");
        for &statement in &worker.prepared[transaction] {
            let param = [Param::Int(worker.rng.uniform(1, 1_000_000) as i64)];
            tally.count(session.execute(statement, &param, &mut Discard).await?);
        }
        Ok(self.kinds[transaction].outcome)
    }

    fn rolls_back(&self, _error: &DbError) -> bool {
        self.rolls_back
    }

    fn ended(&self, _worker: &mut Worker, ended: &EndedTransaction) {
        self.stop_where_due();
        self.over.lock().expect("no thread panicked").push(*ended);
    }

    fn retire(&self, _worker: Worker, error: Option<&DbError>) {
        self.left.lock().expect("no thread panicked").push(error.cloned());
    }

    async fn finish<S: Session>(
        &self,
        _worker: &mut Worker,
        session: &mut S,
        tally: &mut Tally,
    ) -> Result<(), DbError> {
        if let Some(sql) = self.farewell {
            tally.count(session.query(sql, &mut Discard).await?);
        }
        Ok(())
    }
}

pub(crate) const TRANSFER: [&str; 3] = ["BEGIN", "UPDATE account", "COMMIT"];

/// Statements of a constant time.
pub(crate) fn constant(time: Nanos, faults: Vec<Fault>) -> SimDriver {
    SimDriver::new(SimulatedAnswers {
        service: Service::Constant(time),
        faults,
        ..SimulatedAnswers::default()
    })
}

/// A closed loop of `workers` for `seconds`.
pub(crate) fn closed(workers: u32, seconds: u64) -> TrialSpec {
    TrialSpec { duration: Some(seconds * SECOND), ..TrialSpec::closed(workers) }
}

/// Keeps what an observer receives.
#[derive(Default)]
pub(crate) struct RecordedIntervals(pub(crate) Vec<MeasuredInterval>);

impl Observer for RecordedIntervals {
    fn interval(&mut self, interval: &MeasuredInterval) {
        self.0.push(interval.clone());
    }
}

impl RecordedIntervals {
    /// Commits of each measured interval.
    pub(crate) fn commits(&self) -> Vec<u64> {
        let measured = self.0.iter().filter(|interval| interval.phase == Phase::Measured);
        measured.map(|interval| interval.frame.counts().committed).collect()
    }
}

/// Runs a trial that begins, and checks what holds for each of them.
pub(crate) fn run(
    workload: &Lists<'_>,
    driver: &impl Driver,
    spec: &TrialSpec,
) -> (TrialResult, RecordedIntervals) {
    let control = Control::new();
    let control = workload.stop.map_or(&control, |(_, control)| control);
    let (result, seen) = try_run(workload, driver, spec, control);
    (result.expect("the trial begins"), seen)
}

/// Runs a trial; checks its accounting when it began.
pub(crate) fn try_run(
    workload: &Lists<'_>,
    driver: &impl Driver,
    spec: &TrialSpec,
    control: &Control,
) -> (Result<TrialResult, DriveError>, RecordedIntervals) {
    let mut observer = RecordedIntervals::default();
    let result = drive_simulated(workload, driver, spec, control, &mut observer);
    if let Ok(result) = &result {
        check(result, &observer, spec);
    }
    (result, observer)
}

/// The accounting identity, and that all ways of counting agree.
pub(crate) fn check(result: &TrialResult, seen: &RecordedIntervals, spec: &TrialSpec) {
    let counts = result.total.counts();
    let ended = counts.committed + counts.rolled_back + counts.failed + counts.skipped;
    assert_eq!(counts.started, ended + result.in_flight, "{counts:?}");
    assert!(result.in_flight <= u64::from(spec.workers), "{}", result.in_flight);
    assert!(u64::from(result.unfinished) <= u64::from(spec.workers));
    let mut sum = dyno_facts::Counts::default();
    let measured = seen.0.iter().filter(|interval| interval.phase == Phase::Measured);
    measured.for_each(|interval| sum.add(&interval.frame.counts()));
    assert_eq!(sum, counts, "the intervals add up to the total");
    let latencies = result.total.latency().count();
    assert_eq!(latencies, counts.committed + counts.rolled_back);
    let by_workers: u64 = result.workers.iter().map(|worker| worker.transactions).sum();
    assert_eq!(by_workers, counts.committed + counts.rolled_back);
    assert_eq!(result.workers.len(), spec.workers as usize);
    if let Some(duration) = spec.duration
        && !spec.finish_begun
    {
        assert!(result.length() <= duration);
    }
}
