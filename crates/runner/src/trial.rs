//! One trial of a plan: one that the engine drives, or a pass that its family executes, one thing after the other, and
//! tells what has ended. Both share one frame: looks at the nodes before and after, samples meanwhile, and what is
//! stored.

use crate::calibration::Calibration;
use crate::data;
use crate::databases::Database;
use crate::failure::{Failure, Result, sentence};
use crate::family::{After, Driven, EndedTrial, Ready};
use crate::fault::Injection;
use crate::fleet::{FleetShare, Team};
use crate::nodes::{Client, NodeObservations, NodeSnapshot, Nodes, Sampling, sample_during};
use crate::progress::{ProgressBar, TrialProgress};
use crate::starving::Starving;
use crate::summary::{self, kinds, missing_table, resident_mib, summarize};
use crate::{output, signals, watch};
use dyno_core::{Error, Nanos, SECOND, counted};
use dyno_engine::record::{FaultWatch, MeasuredInterval, Window, process_cpu};
use dyno_engine::{
    Control, DriveError, GeneratorWatch, Observer, TrialResult, TrialSpec, default_loops,
    run_delay_of_process,
};
use dyno_facts::format::short;
use dyno_facts::{
    CheckVerdict, Conditions, DataCheck, Event, FaultFacts, GeneratorConditions, GeneratorSummary,
    Message, Metric, PlanStep, PlannedTrial, Purpose, StageOf, TrialIdentity, TrialStart,
    TrialStatus, TrialSummary, say,
};
use dyno_load::{Activity, LostNode};
use dyno_observe::HostSampler;
use dyno_reactor::monotonic_now;
use dyno_store::{Moment, NodeSeries, Run, TrialWriter};
use serde::Serialize;
use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub struct Job<'a> {
    pub step: &'a PlanStep,
    pub planned: &'a PlannedTrial,
    pub(super) purpose: Purpose,
    pub(super) stage: Option<StageOf>,
    pub(super) nodes: Nodes<'a>,
    pub(super) fault: Option<&'a Injection<'a>>,
    pub(super) team: Team<'a>,
    pub(super) starving: Starving,
    /// The number of the trial within the run.
    pub(super) number: u32,
    /// The run, which trials that are measured at once share.
    pub(super) run: &'a Mutex<&'a mut Run>,
    pub control: &'a Control,
}

impl Job<'_> {
    /// A folder in that of the run, for what a family stores itself.
    pub fn folder(&self, name: &str) -> PathBuf {
        lock_run(self.run).path().join(name)
    }

    /// Names the trial in messages: its experiment and its target.
    pub fn place(&self) -> String {
        format!("{} on {}", self.step.experiment, self.step.target)
    }

    /// Queries the nodes before the trial: long waits are reported, and no lost node is waited for.
    pub fn asks<T>(&self, ask: impl FnOnce() -> Result<T>) -> Result<T> {
        let place = self.place().into();
        watch::guarded(&place, "the check before the trial", &self.nodes.watched, ask)
    }

    /// The trial's identity; `known` supplies what the plan does not contain.
    pub(crate) fn identity(&self, known: TrialIdentity) -> TrialIdentity {
        TrialIdentity {
            step: self.step.id.clone(),
            experiment: self.step.experiment.clone(),
            target: self.step.target.clone(),
            repeat: self.planned.repeat,
            seed: self.planned.seed,
            is_together: self.planned.is_together && self.purpose == Purpose::Measure,
            purpose: self.purpose,
            stage: self.stage,
            ..known
        }
    }
}

pub(super) fn lock_run<'m, T>(shared: &'m Mutex<T>) -> MutexGuard<'m, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

pub enum TrialDone {
    Ended {
        status: TrialStatus,
        is_denied: bool,
    },
    /// The target can't execute it: why, in a sentence.
    Skipped(Message),
}

impl TrialDone {
    pub const INTERRUPTED: TrialDone =
        TrialDone::Ended { status: TrialStatus::Interrupted, is_denied: false };
}

/// The surroundings of a trial, however it is executed.
struct Frame<'a> {
    place: &'a str,
    nodes: &'a Nodes<'a>,
    /// The fault that is done meanwhile.
    fault: Option<&'a Injection<'a>>,
    control: &'a Control,
    writer: TrialWriter,
    sampling: Sampling,
    before: Vec<NodeSnapshot>,
}

impl Frame<'_> {
    /// Looks at the nodes before the trial; makes the file for their samples.
    fn open(&mut self) -> Result<NodeSeries> {
        let nodes = self.nodes;
        self.before = watch::watching(self.place, "the look at the nodes", &nodes.watched, || {
            nodes.snapshot_all()
        });
        self.writer.server(Moment::Before, &self.nodes.facts(&self.before))?;
        Ok(self.writer.node_series()?)
    }

    /// Looks at the nodes after it; at none if one is `gone`.
    fn close(
        &mut self,
        observations: &NodeObservations,
        gone: Option<&LostNode>,
    ) -> Result<Vec<NodeSnapshot>> {
        for event in take_events(&self.sampling, self.fault) {
            self.writer.event(event)?;
        }
        let after = self.nodes.snapshot_after(observations, gone);
        self.writer.server(Moment::After, &self.nodes.facts(&after))?;
        Ok(after)
    }
}

/// Runs one trial by the engine and stores it.
pub fn drive_trial<F: Driven>(family: &F, database: &Database, job: Job<'_>) -> Result<TrialDone> {
    let place = job.place();
    let mut spec = trial_spec(job.planned);
    family.tune(&mut spec);
    job.fault.inspect(|fault| fault.tune(&mut spec));
    let stem = lock_run(job.run).stem(job.number);
    let ready = match job.asks(|| family.look_before(database, &spec, &stem)) {
        // Work that was called off has not failed.
        Err(_) if job.control.is_stopped() => return Ok(TrialDone::INTERRUPTED),
        ready => ready?,
    };
    for text in &ready.warnings {
        output::talk(&format!("warning: {}: {text}", job.step.experiment));
    }
    let Ready { workload, before, test, data, own, .. } = ready;
    let identity = job.identity(TrialIdentity { data, own, ..summary::identity(test, &spec) });
    let ledger = family.ledger(database, &stem);
    let Job { step, planned, fault, control, run, .. } = job;
    let Job { nodes, mut team, .. } = job;
    let calibration = Calibration::for_environment(&lock_run(run).header().environment)
        .filter(|_| !team.is_fleet());
    let loops = spec.loops.unwrap_or_else(|| default_loops(spec.workers)).min(spec.workers);
    let writer = begin(run, job.number, identity.clone(), loops, kinds(&workload))?;
    let (sampling, none) = (Sampling::default(), Vec::new());
    let frame =
        Frame { place: &place, nodes: &nodes, fault, control, writer, sampling, before: none };
    // Load generators on other machines count by themselves.
    let fault_node = fault.filter(|_| !team.is_fleet()).map(Injection::node);
    let Some(measured) = measure(
        frame,
        &spec,
        Client::new(family.rolls_back_reads()),
        &format!("{place}, {}{}", describe_load(&spec, job.purpose), stage_suffix(job.stage)),
        ledger.is_some(),
        &|| family.acknowledged_on(database, &workload, fault_node?),
        &mut |observer| team.drive(family, &workload, database, &spec, control, observer),
    )?
    else {
        return Ok(TrialDone::INTERRUPTED);
    };
    let Measured { frame, result, client, observations, after, watch, gone, is_back, progress } =
        measured;
    // A search finds out which rate is held; what a transaction costs is known at a rate that was missed, too.
    let may_miss_rate = planned.purpose == Purpose::Search || planned.is_together;
    let is_late = result.ended.failure().is_none() && result.missed_rate().is_some();
    let starving = Starving { is_late: is_late && !may_miss_rate, ..job.starving };
    let mut measured = summarize(identity, &kinds(&workload), &spec, &result, may_miss_rate);
    let headroom = calibration
        .and_then(|proof| proof.headroom(database.dialect(), spec.workers, measured.qps));
    let generator = &mut measured.conditions.generator;
    generator.headroom = headroom.or(generator.headroom);
    let fleet = team.share(family, &workload).map_err(|failure| failure.at(&place))?;
    let (committed, unanswered) = (client.committed().collect::<Vec<u64>>(), client.unanswered());
    let client = Some(&client).filter(|_| fleet.lost.is_none());
    let looks = (&frame.before[..], &after[..]);
    measured.conditions =
        nodes.surround(database.dialect(), looks, &observations, client, &measured);
    let is_away = gone.is_some() && !is_back;
    let unchecked = unchecked(&measured.status, fleet.lost.is_some(), gone.is_some(), is_away);
    let (summary, committed) = (&measured, &committed[..]);
    let ended = EndedTrial { spec: &spec, summary, unchecked, committed, unanswered };
    // A fault may have left a node down: that says nothing new.
    let watched = watch::living(&nodes.watched);
    let mut after = watch::watching(&place, "the check of the data", &watched, || {
        family.look_after(database, &workload, before, &ended)
    });
    let losses = after.lost.take();
    let fault =
        fault.zip(watch).map(|(fault, watch)| (fault.facts(&watch, losses), fault.failure()));
    let parts = TrialParts { measured, gone, fleet, fault, after, starving };
    let is_owed = is_away || are_cut_off(&parts);
    let outcome = store_trial(run, frame.writer, parts, progress, &place)?;
    let owed_ledger = ledger.filter(|_| is_owed);
    let failure =
        owed_ledger.map(|ledger| data::note_owed(&mut lock_run(run), step, &ledger, &nodes));
    match failure.transpose()? {
        Some(failure) if is_away => Err(failure.at(place)),
        _ => Ok(outcome),
    }
}

/// Begins to store a trial.
fn begin(
    run: &Mutex<&mut Run>,
    trial: u32,
    identity: TrialIdentity,
    loops: u32,
    kinds: Vec<String>,
) -> Result<TrialWriter> {
    let start = TrialStart { trial, identity, loops, kinds, ..TrialStart::default() };
    Ok(lock_run(run).begin_trial(start)?)
}

/// Returns true if the user has stopped the run within the checks of a whole trial. What was measured stays.
fn are_cut_off(TrialParts { measured, after, .. }: &TrialParts) -> bool {
    let is_whole = measured.status == TrialStatus::Complete;
    let mut checks = after.checks.iter();
    signals::has_come() && is_whole && checks.any(|check| check.verdict == CheckVerdict::NotMade)
}

struct TrialParts {
    measured: TrialSummary,
    /// The server for which the trial was ended.
    gone: Option<Message>,
    fleet: FleetShare,
    /// The fault, and the reason if it did not happen.
    fault: Option<(FaultFacts, Option<Message>)>,
    after: After,
    starving: Starving,
}

/// The summary of a trial, judged by its checks. True when a check of the data failed.
fn conclude(parts: TrialParts) -> (TrialSummary, bool) {
    let is_cut_off = are_cut_off(&parts);
    let TrialParts { measured, gone, fleet, fault, after, starving } = parts;
    let (fault, no_fault) = fault.unzip();
    let denial = denial(&after, fault.as_ref());
    let is_denied = denial.is_some();
    let is_gone = gone.is_some();
    let is_lost = is_gone || fleet.lost.is_some();
    let status = gone.or(fleet.lost).map_or(measured.status, TrialStatus::Failed);
    let died = if fault.is_none() && !is_gone { died(&measured.conditions) } else { None };
    let is_about_a_server = died.is_some();
    // Before what the checks say, which is a consequence.
    let no_table = missing_table(&measured.errors);
    let failure = no_fault.flatten().or(died).or(no_table).or(denial);
    let failure = failure.or_else(|| unproven(&after).filter(|_| !is_cut_off));
    let has_failed = is_lost || failure.is_some();
    let status = match (status, failure) {
        (TrialStatus::Complete, Some(reason)) => TrialStatus::Failed(reason),
        // An error that ended the trial is what a server's end looks like from the other side of the wire.
        (TrialStatus::Failed(reason), Some(cause)) if is_about_a_server => {
            TrialStatus::Failed(Message::sentences(&[cause, reason]))
        }
        (status, _) => status,
    };
    let own_facts = after.own.or(measured.identity.own);
    let mut summary = TrialSummary {
        identity: TrialIdentity { own: own_facts, ..measured.identity },
        status,
        notes: [measured.notes, fleet.notes, after.notes].concat(),
        statement_latencies: after.statements,
        conditions: Conditions { members: fleet.members, ..measured.conditions },
        fault,
        checks: after.checks,
        ..measured
    };
    starving.judge(&mut summary, has_failed);
    if summary.stage.is_some() && summary.status == TrialStatus::Complete {
        summary.status = TrialStatus::Stage;
    }
    (summary, is_denied)
}

fn store_trial(
    run: &Mutex<&mut Run>,
    writer: TrialWriter,
    mut parts: TrialParts,
    progress: ProgressBar,
    place: &str,
) -> Result<TrialDone> {
    let headline = parts.after.headline.take();
    let (summary, is_denied) = conclude(parts);
    let figures = figures(&summary, headline);
    match &summary.status {
        TrialStatus::Complete | TrialStatus::Stage => progress.finish(&figures),
        TrialStatus::Interrupted => progress.fail(&format!("interrupted; until then {figures}")),
        TrialStatus::Failed(reason) => {
            progress.fail(&format!("failed: {reason} Measured: {figures}"))
        }
        TrialStatus::Starved => {
            let reason = summary.conditions.generator.starved.clone().unwrap_or_default();
            progress.fail(&format!("starved, is repeated: {reason} Measured: {figures}"));
        }
    }
    report_checks(&summary.checks, place);
    let status = summary.status.clone();
    lock_run(run).end_trial(writer, summary)?;
    Ok(TrialDone::Ended { status, is_denied })
}

fn report_checks(checks: &[DataCheck], place: &str) {
    for DataCheck { name, verdict, evidence } in checks {
        let print = match verdict {
            CheckVerdict::Passed => output::print_step,
            _ => output::talk,
        };
        print(&format!("{place}: check {name}: {}: {evidence}", verdict.name()));
    }
}

/// A trial in a line; `headline` is what its family says of it.
pub(crate) fn figures(summary: &TrialSummary, headline: Option<String>) -> String {
    let figures = headline.unwrap_or_else(|| {
        let rates = format!("{} tx/s, {} statements/s", short(summary.tps), short(summary.qps));
        with_p95(&rates, summary)
    });
    match summary.figure(Metric::ServerCpuUs) {
        Some(cpu_us) => format!("{figures}, server CPU {} us/tx", short(cpu_us)),
        None => figures,
    }
}

/// `, stage 2 of 4`.
fn stage_suffix(stage: Option<StageOf>) -> String {
    stage.map_or(String::new(), |stage| format!(", stage {} of {}", stage.number, stage.of))
}

/// Rates and the 95th percentile of the latency, as they are shown when a trial has ended; of nothing there is none.
pub fn with_p95(rates: &str, summary: &TrialSummary) -> String {
    match summary.latency.p95_us / 1e3 {
        0.0 => rates.to_owned(),
        p95_ms => format!("{rates}, p95 {} ms", short(p95_ms)),
    }
}

struct Measured<'a> {
    frame: Frame<'a>,
    result: TrialResult,
    client: Client,
    observations: NodeObservations,
    after: Vec<NodeSnapshot>,
    watch: Option<FaultWatch>,
    gone: Option<Message>,
    /// The server for which the trial was ended answers again.
    is_back: bool,
    progress: ProgressBar,
}

/// Has the engine drive a trial while its nodes are watched, and writes its series and stage. `None` when the user has
/// stopped it before all workers were connected.
///
/// `is_recorded`: acknowledged work can be verified one by one, so a lost node is awaited until it is back.
/// `acknowledged_on_shard`: the acknowledged transactions whose home is the shard with the fault.
fn measure<'a>(
    mut frame: Frame<'a>,
    spec: &TrialSpec,
    client: Client,
    title: &str,
    is_recorded: bool,
    acknowledged_on_shard: &dyn Fn() -> Option<u64>,
    drive: &mut dyn FnMut(&mut dyn Observer) -> Result<TrialResult, DriveError>,
) -> Result<Option<Measured<'a>>> {
    let series = frame.open()?;
    let Frame { place, nodes, fault, control, .. } = frame;
    let warmup_s = spec.warmup as f64 / 1e9;
    let planned_s = warmup_s + spec.duration.map_or(0.0, |duration| duration as f64 / 1e9);
    let activity = Activity::default();
    let mut observer = StoringObserver {
        writer: &mut frame.writer,
        activity: &activity,
        sampling: &frame.sampling,
        fault: fault.map(|fault| (fault, fault.new_watch())),
        acknowledged_on_shard,
        client,
        progress: TrialProgress::new(title, planned_s),
        warmup_s,
        control,
        error: None,
    };
    let (outcome, mut observations) =
        sample_during(nodes, series, &frame.sampling, || match fault {
            Some(fault) => fault.meanwhile(|| drive(&mut observer)),
            None => watch::watch_trial(&activity, &nodes.watched, control, || drive(&mut observer)),
        });
    let StoringObserver { progress, error, client, fault: fault_watch, .. } = observer;
    let (watch, progress) = (fault_watch.map(|(_, watch)| watch), progress.progress);
    let result = match outcome {
        Ok(result) => result,
        Err(DriveError::Interrupted) => {
            let reason = activity.verdict().map(watch::trial_verdict);
            return reason.map_or(Ok(None), |reason| Err(Failure::new(reason).at(place)));
        }
        Err(error) => {
            let failure = Failure::from(error);
            return Err(watch::explain(failure, &nodes.watched).at(place));
        }
    };
    if let Some(error) = error {
        return Err(error.into());
    }
    frame.writer.stage(&result)?;
    let gone = activity.verdict().cloned();
    let is_back = gone.is_some() && is_recorded && watch::wait_for_return(&nodes.watched, place);
    if let Some(fault) = fault {
        fault.wait_until_writable();
        observations.leave_out(&fault.statements());
    }
    let after = frame.close(&observations, gone.as_ref().filter(|_| !is_back))?;
    let gone = gone.as_ref().map(watch::trial_verdict);
    Ok(Some(Measured {
        frame,
        result,
        client,
        observations,
        after,
        watch,
        gone,
        is_back,
        progress,
    }))
}

fn take_events(sampling: &Sampling, fault: Option<&Injection<'_>>) -> Vec<Event> {
    let mut events = sampling.take_events();
    events.extend(fault.into_iter().flat_map(Injection::take_events));
    events
}

/// The reason why a trial whose data are wrong afterwards is not usable, however well it ended.
fn denial(after: &After, fault: Option<&FaultFacts>) -> Option<Message> {
    // What a fault has cost is the result of its trial, and no reason to throw that away.
    let mut failures = after.checks.iter().filter(|check| check.verdict == CheckVerdict::Failed);
    let failed = failures.find(|check| fault.is_none_or(|fault| !fault.explains(&check.name)))?;
    Some(say!(check_failed, name = &failed.name, evidence = &failed.evidence))
}

/// The reason why a trial without a fault measures something else than its servers: one of them was away meanwhile.
fn died(conditions: &Conditions) -> Option<Message> {
    let mut away = conditions.nodes.iter();
    let (node, reason) = away.find_map(|(name, node)| Some((name, node.down.as_ref()?)))?;
    Some(say!(node_died_in_trial, node, why = reason))
}

/// Names the check that could not be made: what was acknowledged is then not proven to be there.
fn unproven(after: &After) -> Option<Message> {
    let unproven = after.checks.iter().find(|check| after.unproven.contains(&check.name))?;
    Some(say!(check_not_made, name = &unproven.name, evidence = &unproven.evidence))
}

pub(super) fn describe_load(spec: &TrialSpec, purpose: Purpose) -> String {
    let rate = spec.rate_per_s.map(|rate| format!(" at {rate} tx/s")).unwrap_or_default();
    let suffix = match purpose {
        Purpose::Measure => "",
        Purpose::Search => ", search",
        Purpose::Confirm => ", confirmation",
    };
    let sessions = match spec.terminals {
        Some(terminals) => {
            format!("{} over {}", counted(terminals, "terminal"), counted(spec.workers, "session"))
        }
        None => counted(spec.workers, "worker"),
    };
    format!("{sessions}{rate}{suffix}")
}

pub(super) fn trial_spec(trial: &PlannedTrial) -> TrialSpec {
    TrialSpec {
        warmup: to_nanos(trial.warmup_s),
        duration: trial.duration_s.map(to_nanos),
        events: trial.events,
        rate_per_s: trial.rate,
        interval: to_nanos(trial.interval_s),
        seed: trial.seed,
        ..TrialSpec::closed(trial.workers)
    }
}

fn to_nanos(seconds: f64) -> Nanos {
    (seconds * 1e9) as Nanos
}

/// The reason why the data are not checked after a trial, in a sentence: no one waits, no server answers, or their
/// right state is unknown.
fn unchecked(
    status: &TrialStatus,
    is_part_lost: bool,
    was_server_gone: bool,
    is_away: bool,
) -> Option<Message> {
    match status {
        _ if is_away => Some(say!(lost_node_unchecked)),
        _ if is_part_lost => Some(say!(generator_lost_unchecked)),
        // A trial that its lost server has ended is checked when that is back.
        TrialStatus::Interrupted if !was_server_gone => Some(say!(trial_interrupted)),
        _ => None,
    }
}

struct StoringObserver<'a> {
    writer: &'a mut TrialWriter,
    sampling: &'a Sampling,
    activity: &'a Activity,
    fault: Option<(&'a Injection<'a>, FaultWatch)>,
    /// The number of transactions acknowledged so far whose home is the shard that the fault is done to.
    acknowledged_on_shard: &'a dyn Fn() -> Option<u64>,
    client: Client,
    progress: TrialProgress,
    warmup_s: f64,
    control: &'a Control,
    error: Option<Error>,
}

impl StoringObserver<'_> {
    fn store_interval(&mut self, interval: &MeasuredInterval) -> Result<(), Error> {
        for event in take_events(self.sampling, self.fault.as_ref().map(|(fault, _)| *fault)) {
            self.writer.event(event)?;
        }
        self.writer.interval(interval)
    }
}

impl Observer for StoringObserver<'_> {
    fn connected(&mut self, connected: u32, total: u32) {
        self.activity.moved();
        self.progress.connected(connected, total);
    }

    fn released(&mut self, window: &Window) {
        self.sampling.released(*window);
        if let Some((fault, _)) = &self.fault {
            fault.released(*window);
        }
    }

    fn interval(&mut self, interval: &MeasuredInterval) {
        self.progress.interval(interval, self.warmup_s);
        if interval.frame.counts().committed > 0 {
            self.activity.moved();
        }
        self.client.add(interval);
        if let Some((_, watch)) = &mut self.fault {
            watch.add(interval, (self.acknowledged_on_shard)());
        }
        if self.error.is_some() {
            return;
        }
        if let Err(error) = self.store_interval(interval) {
            self.error = Some(error);
            stop_unwritable(self.control);
        }
    }
}

/// Stops a trial of which nothing could be stored any more.
fn stop_unwritable(control: &Control) {
    output::talk("The run folder can't be written any more; the trial is being stopped.");
    control.stop();
}

pub struct Pass<'a> {
    /// The identity as far as the family knows it: test, workers, and its own facts.
    pub identity: TrialIdentity,
    /// Sessions at once, each with a thread.
    pub loops: u32,
    /// The text shown with experiment and target.
    pub title: &'a str,
    pub length: u64,
}

/// Has a family execute a trial, and stores it. What `execute` returns says what was measured, and the rest.
pub fn drive_pass<T: FnOnce(TrialStart) -> (TrialSummary, After)>(
    database: &Database,
    job: Job<'_>,
    pass: Pass<'_>,
    execute: impl FnOnce(&PassWatch<'_>) -> Result<T>,
) -> Result<TrialDone> {
    let (place, identity) = (job.place(), job.identity(pass.identity));
    let Job { nodes, starving, number, run, control, .. } = job;
    let writer = begin(run, number, identity, pass.loops, Vec::new())?;
    let (sampling, before) = (Sampling::default(), Vec::new());
    let mut frame =
        Frame { place: &place, nodes: &nodes, fault: None, control, writer, sampling, before };
    let series = frame.open()?;
    let progress = ProgressBar::new(&format!("{place}, {}", pass.title), pass.length, "queries");
    let watch = PassWatch {
        writer: RefCell::new(&mut frame.writer),
        sampling: &frame.sampling,
        progress,
        length: pass.length,
        control,
        generator: RefCell::new(OwnWatch::begin_now()),
        ended: Cell::new(0),
        error: RefCell::new(None),
    };
    let (outcome, observations) = sample_during(&nodes, series, &frame.sampling, || {
        let outcome = watch::guarded(&place.as_str().into(), "the pass", &nodes.watched, || {
            let conclude = execute(&watch)?;
            // What has ended is stored, and a pass that lost its server counts for nothing.
            match watch::given_up() {
                Some(reason) => Err(Failure::new(sentence(&reason))),
                None => Ok(conclude),
            }
        });
        watch.over();
        outcome
    });
    let PassWatch { progress, error, generator, .. } = watch;
    if let Some(error) = error.into_inner() {
        return Err(error.into());
    }
    let conclude = match outcome {
        Err(_) if control.is_stopped() => return Ok(TrialDone::INTERRUPTED),
        outcome => outcome?,
    };
    let after_snapshots = frame.close(&observations, None)?;
    let (measured, after) = conclude(frame.writer.start().clone());
    let mut measured = generator.into_inner().add_to(measured);
    let looks = (&frame.before[..], &after_snapshots[..]);
    measured.conditions = nodes.surround(database.dialect(), looks, &observations, None, &measured);
    let (gone, fleet, fault) = (None, FleetShare::default(), None);
    store_trial(
        run,
        frame.writer,
        TrialParts { measured, gone, fleet, fault, after, starving },
        progress,
        &place,
    )
}

pub struct PassWatch<'a> {
    writer: RefCell<&'a mut TrialWriter>,
    sampling: &'a Sampling,
    progress: ProgressBar,
    length: u64,
    control: &'a Control,
    generator: RefCell<OwnWatch>,
    ended: Cell<u64>,
    error: RefCell<Option<Error>>,
}

impl PassWatch<'_> {
    /// Keeps the first error and stops the trial: nothing of it could be stored any more.
    fn keep_error<T: Default>(&self, result: Result<T, Error>) -> T {
        result.unwrap_or_else(|error| {
            let mut first = self.error.borrow_mut();
            if first.is_none() {
                *first = Some(error);
                stop_unwritable(self.control);
            }
            T::default()
        })
    }

    /// All that is timed has ended.
    pub fn over(&self) {
        self.generator.borrow_mut().end();
        self.sampling.end();
    }

    /// All that is timed begins.
    pub fn started(&self) {
        *self.generator.borrow_mut() = OwnWatch::begin_now();
        let now = monotonic_now();
        // It closes with the last execution.
        let window = Window { released: now, opens: now, closes: Nanos::MAX, interval: SECOND };
        self.sampling.released(window);
    }

    /// An element of a list of the family's facts has ended; `what` is shown of it.
    pub fn ended<T: Serialize>(&self, list: &str, element: &T, what: &str) {
        self.keep_error(self.writer.borrow_mut().executed(list, element));
        for event in self.sampling.take_events() {
            self.keep_error(self.writer.borrow_mut().event(event));
        }
        self.ended.set(self.ended.get() + 1);
        self.progress.at(self.ended.get(), self.length, what);
    }

    /// Stores a plan of the database; returns where.
    pub fn plan(&self, name: &str, text: &str, what: &str) -> String {
        self.progress.at(self.length, self.length, what);
        self.keep_error(self.writer.borrow().plan(name, text))
    }

    /// Prints a line that stays above the bar.
    pub fn note(&self, text: &str) {
        self.progress.note(text);
    }
}

/// The load generator of a pass.
struct OwnWatch {
    sampler: HostSampler,
    watch: GeneratorWatch,
    cpu_ns: u64,
    run_delay_ns: Option<u64>,
    ended: Option<(GeneratorSummary, GeneratorConditions)>,
}

impl OwnWatch {
    fn begin_now() -> Self {
        let now = monotonic_now();
        OwnWatch {
            sampler: HostSampler::new(now),
            watch: GeneratorWatch::new(now),
            cpu_ns: process_cpu(),
            run_delay_ns: run_delay_of_process(),
            ended: None,
        }
    }

    /// All that is timed has ended; what comes later does not count.
    fn end(&mut self) {
        if self.ended.is_some() {
            return;
        }
        let now = monotonic_now();
        let mut conditions = self.watch.close(now);
        // Threads that have ended meanwhile are not in it: streams wait for the server, hardly for a CPU.
        let delays = run_delay_of_process().zip(self.run_delay_ns);
        conditions.run_delay_s =
            delays.map(|(after, before)| after.saturating_sub(before) as f64 / 1e9);
        let loops_cpu_s = process_cpu().saturating_sub(self.cpu_ns) as f64 / 1e9;
        let host = self.sampler.sample(now);
        let summary = GeneratorSummary { loops_cpu_s, host, ..GeneratorSummary::default() };
        self.ended = Some((summary, conditions));
    }

    /// Adds what is known of the load generator. The CPU of the whole process counts as that of its busiest
    /// loop: it is never less.
    fn add_to(self, mut measured: TrialSummary) -> TrialSummary {
        let (summary, conditions) = self.ended.unwrap_or_default();
        let statements = measured.statements.total().max(1) as f64;
        measured.generator = GeneratorSummary {
            loops: measured.generator.loops,
            busiest_loop_share: (summary.loops_cpu_s / measured.window_s.max(1e-9)).min(1.0),
            cpu_us_per_statement: summary.loops_cpu_s * 1e6 / statements,
            resident_mib: resident_mib(),
            ..summary
        };
        measured.conditions = Conditions { generator: conditions, ..Conditions::default() };
        measured
    }
}
