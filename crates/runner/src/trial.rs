//! One trial of a plan.

use super::family::{After, Driven, Ran};
use super::fault::Injection;
use super::fleet::Team;
use super::nodes::{AllSeen, Client, Looked, Nodes, Sampling, sampled};
use super::{TrialName, summarise};
use crate::calibration::Calibration;
use crate::failure::Failure;
use crate::output;
use crate::progress::{Progress, TrialProgress};
use crate::table::number;
use dyno_core::{Driver, Nanos, Workload};
use dyno_engine::{Control, DriveError, Observer, TrialResult, TrialSpec};
use dyno_facts::{
    DataCheck, DataFacts, Event, FamilyFacts, Message, PlanStep, PlannedTrial, Purpose,
    TrialIdentity, TrialStatus, TrialSummary, Verdict, say,
};
use dyno_record::{FaultWatch, Interval, Window};
use dyno_store::{Moment, Run, StoreError, TrialWriter};

/// A trial of a plan, and where it is stored.
pub struct Job<'a> {
    pub step: &'a PlanStep,
    pub planned: &'a PlannedTrial,
    pub(super) purpose: Purpose,
    pub(super) nodes: Nodes<'a>,
    /// What is done to a node in it.
    pub(super) fault: Option<&'a Injection<'a>>,
    /// Who makes the load.
    pub(super) team: Team<'a>,
    pub run: &'a mut Run,
    pub control: &'a Control,
}

impl Job<'_> {
    /// Experiment and target, for errors.
    pub fn place(&self) -> String {
        format!("{} on {}", self.step.experiment, self.step.target)
    }
}

/// What became of a trial.
pub enum Done {
    /// It was executed and is stored.
    Ended {
        /// How it ended.
        status: TrialStatus,
        /// True when a check of the data failed.
        is_denied: bool,
    },
    /// The target can't execute it: why, in a sentence.
    Skipped(Message),
}

impl Done {
    /// The user has stopped it.
    pub const INTERRUPTED: Done =
        Done::Ended { status: TrialStatus::Interrupted, is_denied: false };
}

/// Runs one trial by the engine and stores it.
///
/// # Errors
/// When it can't begin, or can't be stored.
pub(crate) fn drive_trial<F: Driven, D: Driver>(
    family: &F,
    driver: &D,
    job: Job<'_>,
) -> Result<Done, Failure> {
    let Job { step, planned, purpose, nodes, fault, mut team, run, control } = job;
    let target = &step.target;
    let place = format!("{} on {target}", step.experiment);
    let mut spec = trial_spec(planned);
    family.tune(&mut spec);
    if let Some(fault) = fault {
        fault.tune(&mut spec);
    }
    let ready = match family.look_before(driver.primary(), &spec, &run.next_stem()) {
        // What it was asked to leave off is no failure.
        Err(_) if control.is_stopped() => {
            return Ok(Done::INTERRUPTED);
        }
        looked => looked.map_err(|failure| failure.at(&place))?,
    };
    for warning in &ready.warnings {
        output::talk(&format!("warning: {}: {warning}", step.experiment));
    }
    let workload = ready.workload;
    let name = TrialName {
        step: step.id.clone(),
        experiment: step.experiment.clone(),
        target: target.clone(),
        test: ready.test,
        repeat: planned.repeat,
        purpose,
        is_search: planned.purpose == Purpose::Search,
        kinds: workload.transactions().iter().map(|kind| kind.name.clone()).collect(),
    };
    let calibration = Calibration::of(&run.header().environment);
    let mut writer = run.begin_trial(identity(&name, &spec, ready.data.clone(), ready.own))?;
    let title = format!("{} on {target}, {}", name.experiment, what(&spec, purpose));
    let client = Client::new(family.rolls_back_reads());
    let parties = Parties { workload: &workload, driver, nodes: &nodes, fault, place: &place };
    let measured = measure(&parties, &mut team, &spec, &title, (control, client), &mut writer)?;
    let Some(measured) = measured else {
        return Ok(Done::INTERRUPTED);
    };
    let Measured { result, client, seen, before, after, watch, progress } = measured;
    let mut summary = summarise(&name, &spec, &result);
    let headroom = |proof: Calibration| proof.headroom(driver.dialect(), spec.workers, summary.qps);
    if !team.is_fleet() {
        summary.conditions.generator.headroom = calibration.and_then(headroom);
    }
    let lost = team.tell(family, &workload, &mut summary).map_err(|failure| failure.at(&place))?;
    let client = Some(&client).filter(|_| lost.is_none());
    nodes.surround(driver.dialect(), (&before, &after), &seen, client, &mut summary);
    let ran = Ran { spec: &spec, summary: &summary, lost: lost.as_ref() };
    let mut after = family.look_after(driver.primary(), &workload, ready.before, &ran);
    summary.data = ready.data;
    if let Some((fault, watch)) = fault.zip(watch) {
        fault.tell(&watch, after.lost.take(), &mut summary);
    }
    conclude(writer, summary, after, progress, &place)
}

/// Adds what the family says, judges the trial by its checks, and stores it.
pub(crate) fn conclude(
    writer: TrialWriter<'_>,
    mut summary: TrialSummary,
    after: After,
    progress: Progress,
    place: &str,
) -> Result<Done, Failure> {
    summary.statement_latencies = after.statements;
    summary.checks = after.checks;
    summary.own = after.own.or(summary.own);
    summary.notes.extend(after.notes);
    let is_denied = deny(&mut summary, &after.unproven);
    let figures = after.headline.unwrap_or_else(|| {
        let rates = format!("{} tx/s, {} statements/s", number(summary.tps), number(summary.qps));
        with_p95(&rates, &summary)
    });
    progress.finish(&match &summary.status {
        TrialStatus::Complete => figures,
        TrialStatus::Interrupted => format!("interrupted; until then {figures}"),
        TrialStatus::Failed(why) => format!("failed: {why} Measured: {figures}"),
    });
    for check in &summary.checks {
        let verdict = check.verdict.name();
        output::talk(&format!("{place}: check {}: {verdict}: {}", check.name, check.evidence));
    }
    let status = summary.status.clone();
    writer.finish(summary)?;
    Ok(Done::Ended { status, is_denied })
}

/// Rates and the 95th percentile of the latency, as they are shown when a trial has ended.
pub fn with_p95(rates: &str, summary: &TrialSummary) -> String {
    format!("{rates}, p95 {} ms", number(summary.latency.p95_us / 1e3))
}

/// Who takes part in a trial.
struct Parties<'a, W, D> {
    workload: &'a W,
    driver: &'a D,
    nodes: &'a Nodes<'a>,
    fault: Option<&'a Injection<'a>>,
    /// Experiment and target, for errors.
    place: &'a str,
}

/// What a trial has left.
struct Measured {
    result: TrialResult,
    client: Client,
    seen: AllSeen,
    before: Vec<Looked>,
    after: Vec<Looked>,
    watch: Option<FaultWatch>,
    progress: Progress,
}

/// Has the engine drive a trial while its nodes are watched. `None` when the user has stopped it before
/// it began.
fn measure<W: Workload, D: Driver>(
    parties: &Parties<'_, W, D>,
    team: &mut Team<'_>,
    spec: &TrialSpec,
    title: &str,
    (control, client): (&Control, Client),
    writer: &mut TrialWriter<'_>,
) -> Result<Option<Measured>, Failure> {
    let &Parties { workload, driver, nodes, fault, place } = parties;
    let before = nodes.look();
    writer.server(Moment::Before, &nodes.facts(&before))?;
    let series = writer.node_series()?;
    let warmup_s = spec.warmup as f64 / 1e9;
    let planned_s = warmup_s + spec.duration.map_or(0.0, |duration| duration as f64 / 1e9);
    let sampling = Sampling::default();
    let mut observer = StoringObserver {
        writer,
        sampling: &sampling,
        fault: fault.map(|fault| (fault, fault.watch())),
        client,
        progress: TrialProgress::new(title, planned_s),
        warmup_s,
        control,
        error: None,
    };
    let (driven, mut seen) = sampled(nodes, series, &sampling, || {
        let mut driven = || team.drive(workload, driver, spec, control, &mut observer);
        match fault {
            Some(fault) => fault.meanwhile(driven),
            None => driven(),
        }
    });
    let StoringObserver { writer, progress, error, client, fault: watched, .. } = observer;
    let result = match driven {
        Ok(result) => result,
        Err(DriveError::Interrupted) => return Ok(None),
        Err(error) => return Err(Failure::from(error).at(place)),
    };
    if let Some(error) = error {
        return Err(error.into());
    }
    if let Some(fault) = fault {
        fault.settle();
        seen.leave_out(&fault.asked());
    }
    for event in events(&sampling, fault) {
        writer.event(event)?;
    }
    let (watch, progress) = (watched.map(|(_, watch)| watch), progress.progress);
    let after = nodes.look_again(&seen);
    writer.server(Moment::After, &nodes.facts(&after))?;
    Ok(Some(Measured { result, client, seen, before, after, watch, progress }))
}

/// What happened to the nodes since the last call.
fn events(sampling: &Sampling, fault: Option<&Injection<'_>>) -> Vec<Event> {
    let mut events = sampling.take_events();
    events.extend(fault.into_iter().flat_map(Injection::take_events));
    events
}

/// A trial whose data are wrong afterwards is not usable, however well it ended; nor is one of which checks
/// are `unproven`.
fn deny(summary: &mut TrialSummary, unproven: &[String]) -> bool {
    // What a fault has cost is the result of its trial, and no reason to throw that away.
    let has_lost = summary.fault.as_ref().and_then(|fault| fault.lost).is_some_and(|lost| lost > 0);
    let is_result = |check: &DataCheck| has_lost && check.name == DataCheck::BOOKS;
    let mut failures = summary.checks.iter().filter(|check| check.verdict == Verdict::Failed);
    let failed = failures.find(|check| !is_result(check));
    let why =
        failed.map(|check| say!(check_failed, name = &check.name, evidence = &check.evidence));
    // What was acknowledged and could not be looked for is not proven to be there.
    let unproven = summary.checks.iter().find(|check| unproven.contains(&check.name));
    let unproven =
        unproven.map(|check| say!(check_not_made, name = &check.name, evidence = &check.evidence));
    let is_denied = why.is_some();
    if let (Some(why), TrialStatus::Complete) = (why.or(unproven), &summary.status) {
        summary.status = TrialStatus::Failed(why);
    }
    is_denied
}

/// What load is made and what for, in words.
pub(super) fn what(spec: &TrialSpec, purpose: Purpose) -> String {
    let rate = spec.rate_per_s.map(|rate| format!(" at {rate} tx/s")).unwrap_or_default();
    let why = match purpose {
        Purpose::Measure => "",
        Purpose::Search => ", search",
        Purpose::Confirm => ", confirmation",
    };
    format!("{}{rate}{why}", who(spec))
}

/// Who makes the load, in words.
fn who(spec: &TrialSpec) -> String {
    match spec.terminals {
        Some(terminals) => format!("{terminals} terminals over {} sessions", spec.workers),
        None => format!("{} workers", spec.workers),
    }
}

pub(super) fn trial_spec(trial: &PlannedTrial) -> TrialSpec {
    let nanos = |seconds: f64| (seconds * 1e9) as Nanos;
    TrialSpec {
        warmup: nanos(trial.warmup_s),
        duration: trial.duration_s.map(nanos),
        events: trial.events,
        rate_per_s: trial.rate,
        interval: nanos(trial.interval_s),
        seed: trial.seed,
        ..TrialSpec::closed(trial.workers)
    }
}

fn identity(
    name: &TrialName,
    spec: &TrialSpec,
    data: Option<DataFacts>,
    own: Option<FamilyFacts>,
) -> TrialIdentity {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
    TrialIdentity {
        step: name.step.clone(),
        experiment: name.experiment.clone(),
        target: name.target.clone(),
        test: name.test.clone(),
        workers: spec.workers,
        repeat: name.repeat,
        purpose: name.purpose,
        rate_per_s: spec.rate_per_s,
        warmup_s: spec.warmup as f64 / 1e9,
        seed: spec.seed,
        loops: spec.loops.unwrap_or(cores).min(spec.workers),
        kinds: name.kinds.clone(),
        data,
        own,
        ..TrialIdentity::default()
    }
}

/// Stores every interval as it comes and shows it.
struct StoringObserver<'a, 'run> {
    writer: &'a mut TrialWriter<'run>,
    sampling: &'a Sampling,
    fault: Option<(&'a Injection<'a>, FaultWatch)>,
    client: Client,
    progress: TrialProgress,
    warmup_s: f64,
    control: &'a Control,
    error: Option<StoreError>,
}

impl StoringObserver<'_, '_> {
    fn store(&mut self, interval: &Interval) -> Result<(), StoreError> {
        for event in events(self.sampling, self.fault.as_ref().map(|(fault, _)| *fault)) {
            self.writer.event(event)?;
        }
        self.writer.interval(interval)
    }
}

impl Observer for StoringObserver<'_, '_> {
    fn connected(&mut self, connected: u32, of: u32) {
        self.progress.connected(connected, of);
    }

    fn released(&mut self, window: &Window) {
        self.sampling.released(*window);
        if let Some((fault, _)) = &self.fault {
            fault.released(*window);
        }
    }

    fn interval(&mut self, interval: &Interval) {
        self.progress.interval(interval, self.warmup_s);
        self.client.add(interval);
        if let Some((_, watch)) = &mut self.fault {
            watch.add(interval);
        }
        if self.error.is_some() {
            return;
        }
        if let Err(error) = self.store(interval) {
            output::talk("The run folder can't be written any more; the trial is being stopped.");
            self.error = Some(error);
            self.control.stop();
        }
    }
}
