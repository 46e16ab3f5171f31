//! One trial of a plan.

use super::family::{After, Driven, EndedTrial, Ready};
use super::fault::Injection;
use super::fleet::{FleetShare, Team};
use super::nodes::{AllSeen, Client, Looked, Nodes, Sampling, sampled};
use crate::calibration::Calibration;
use crate::databases::Database;
use crate::failure::Failure;
use crate::output;
use crate::owed;
use crate::progress::{ProgressBar, TrialProgress};
use crate::signals;
use crate::starving::Starving;
use crate::summary::{self, kinds, missing_table, summarise};
use crate::watch;
use dyno_core::{Nanos, counted};
use dyno_engine::record::{FaultWatch, MeasuredInterval, Window};
use dyno_engine::{Control, DriveError, Observer, TrialResult, TrialSpec, default_loops};
use dyno_facts::format::short;
use dyno_facts::{
    CheckVerdict, Conditions, DataCheck, Event, FaultFacts, Message, Metric, PlanStep,
    PlannedTrial, Purpose, StageOf, TrialIdentity, TrialStart, TrialStatus, TrialSummary, say,
};
use dyno_load::Activity;
use dyno_store::{Moment, Run, StoreError, TrialWriter};

/// What is done before a trial, in sentences.
const CHECK_BEFORE: &str = "the check before the trial";
pub(super) const LOOK_BEFORE: &str = "the look at the nodes";

pub struct Job<'a> {
    pub step: &'a PlanStep,
    pub planned: &'a PlannedTrial,
    pub(super) purpose: Purpose,
    /// Which part of a long trial this is.
    pub(super) stage: Option<StageOf>,
    pub(super) nodes: Nodes<'a>,
    /// What is done to a node in it.
    pub(super) fault: Option<&'a Injection<'a>>,
    pub(super) team: Team<'a>,
    pub(super) starving: Starving,
    pub run: &'a mut Run,
    pub control: &'a Control,
}

impl Job<'_> {
    pub fn place(&self) -> String {
        format!("{} on {}", self.step.experiment, self.step.target)
    }

    /// Asks the nodes something before the trial: who waits for what is said, and no lost node is waited for.
    pub fn asks<T>(&self, ask: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
        let place = self.place();
        let asked = watch::guarded(&place, CHECK_BEFORE, &self.nodes.watched, ask);
        asked.map_err(|failure| failure.at(&place))
    }

    /// What its trial is; `known` says what does not stand in the plan.
    pub(crate) fn identity(&self, known: TrialIdentity) -> TrialIdentity {
        TrialIdentity {
            step: self.step.id.clone(),
            experiment: self.step.experiment.clone(),
            target: self.step.target.clone(),
            repeat: self.planned.repeat,
            seed: self.planned.seed,
            purpose: self.purpose,
            stage: self.stage,
            ..known
        }
    }
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
    /// The user has stopped it.
    pub const INTERRUPTED: TrialDone =
        TrialDone::Ended { status: TrialStatus::Interrupted, is_denied: false };
}

/// Runs one trial by the engine and stores it.
pub fn drive_trial<F: Driven>(
    family: &F,
    database: &Database,
    job: Job<'_>,
) -> Result<TrialDone, Failure> {
    let place = job.place();
    let spec = tuned_spec(family, &job);
    let stem = job.run.next_stem();
    let look = || family.look_before(database, &spec, &stem);
    let Some(ready) = look_before(&job, &place, look)? else {
        return Ok(TrialDone::INTERRUPTED);
    };
    let (workload, data, own) = (ready.workload, ready.data, ready.own);
    let identity =
        job.identity(TrialIdentity { data, own, ..summary::identity(ready.test, &spec) });
    let ledger = family.ledger(database, &stem);
    let Job { step, planned, purpose, stage, nodes, fault, mut team, starving, run, control } = job;
    let calibration = Calibration::of(&run.header().environment);
    let start = started(identity.clone(), &spec, kinds(&workload));
    let mut writer = run.begin_trial(start)?;
    let title = format!("{place}, {}{}", what(&spec, purpose), of_trial(stage));
    let client = Client::new(family.rolls_back_reads());
    let is_recorded = ledger.is_some();
    let parties = Parties {
        family,
        workload: &workload,
        database,
        nodes: &nodes,
        fault,
        is_recorded,
        place: &place,
    };
    let measured = measure(&parties, &mut team, &spec, &title, (control, client), &mut writer)?;
    let Some(measured) = measured else {
        return Ok(TrialDone::INTERRUPTED);
    };
    let Measured { result, client, seen, before, after, watch, gone, is_back, progress } = measured;
    let is_search = planned.purpose == Purpose::Search;
    let is_late = result.ended.failure().is_none() && result.missed_rate().is_some();
    let starving = Starving { is_late: is_late && !is_search, ..starving };
    let measured = summarise(identity, &kinds(&workload), &spec, &result, is_search);
    let headroom =
        |proof: Calibration| proof.headroom(database.dialect(), spec.workers, measured.qps);
    let headroom = calibration.filter(|_| !team.is_fleet()).and_then(headroom);
    let fleet = team.share(family, &workload).map_err(|failure| failure.at(&place))?;
    let committed: Vec<u64> = client.committed().collect();
    let client = Some(&client).filter(|_| fleet.lost.is_none());
    let looks = (&before[..], &after[..]);
    let surroundings = nodes.surround(database.dialect(), looks, &seen, client, &measured);
    let is_away = gone.is_some() && !is_back;
    let unchecked = unchecked(&measured.status, fleet.lost.is_some(), gone.is_some(), is_away);
    let committed = &committed[..];
    let ran = EndedTrial { spec: &spec, summary: &measured, unchecked, committed };
    // A fault may have left a node down: that says nothing new.
    let watched = watch::living(&nodes.watched);
    let mut after = watch::watching(&place, "the check of the data", &watched, || {
        family.look_after(database, &workload, ready.before, &ran)
    });
    let lost = after.lost.take();
    let fault = fault.zip(watch).map(|(fault, watch)| (fault.facts(&watch, lost), fault.failure()));
    let parts =
        TrialParts { measured, headroom, surroundings, gone, fleet, fault, after, starving };
    let is_owed = is_away || are_cut_off(&parts);
    let done = store(writer, parts, progress, &place)?;
    let owed = ledger.filter(|_| is_owed);
    match owed.map(|ledger| owed::note(run, step, &ledger, &nodes)).transpose()? {
        Some(owed) if is_away => Err(owed.at(place)),
        _ => Ok(done),
    }
}

/// Whether the user has stopped the run within the checks of a whole trial. What was measured stays.
fn are_cut_off(TrialParts { measured, after, .. }: &TrialParts) -> bool {
    let not_made = |check: &DataCheck| check.verdict == CheckVerdict::NotMade;
    let is_whole = measured.status == TrialStatus::Complete;
    signals::has_come() && is_whole && after.checks.iter().any(not_made)
}

/// What the family finds before a trial; `None` where the run was stopped meanwhile.
fn look_before<F: Driven>(
    job: &Job<'_>,
    place: &str,
    look: impl FnOnce() -> Result<Ready<F>, Failure>,
) -> Result<Option<Ready<F>>, Failure> {
    let ready = match watch::guarded(place, CHECK_BEFORE, &job.nodes.watched, look) {
        // What it was asked to leave off is no failure.
        Err(_) if job.control.is_stopped() => return Ok(None),
        looked => looked.map_err(|failure| failure.at(place))?,
    };
    let warn = |text| output::talk(&format!("warning: {}: {text}", job.step.experiment));
    ready.warnings.iter().for_each(warn);
    Ok(Some(ready))
}

/// What is asked of the engine.
fn tuned_spec<F: Driven>(family: &F, job: &Job<'_>) -> TrialSpec {
    let mut spec = trial_spec(job.planned);
    family.tune(&mut spec);
    if let Some(fault) = job.fault {
        fault.tune(&mut spec);
    }
    spec
}

pub(crate) struct TrialParts {
    pub(crate) measured: TrialSummary,
    pub(crate) headroom: Option<f64>,
    pub(crate) surroundings: Conditions,
    /// The server for which the trial was ended.
    pub(crate) gone: Option<Message>,
    pub(crate) fleet: FleetShare,
    /// What was done to a node, and why it did not happen.
    pub(crate) fault: Option<(FaultFacts, Option<Message>)>,
    pub(crate) after: After,
    pub(crate) starving: Starving,
}

/// The summary of a trial, judged by its checks. True when a check of the data failed.
fn conclude(parts: TrialParts) -> (TrialSummary, bool) {
    let is_cut_off = are_cut_off(&parts);
    let TrialParts { measured, headroom, surroundings, gone, fleet, fault, after, starving } =
        parts;
    let (fault, no_fault) = fault.unzip();
    let denial = denial(&after, fault.as_ref());
    let is_denied = denial.is_some();
    let is_gone = gone.is_some();
    let is_lost = is_gone || fleet.lost.is_some();
    let status = gone.or(fleet.lost).map_or(measured.status, TrialStatus::Failed);
    let died = if fault.is_none() && !is_gone { died(&surroundings) } else { None };
    let is_about_a_server = died.is_some();
    // Before what the checks say, which is a consequence.
    let no_table = missing_table(&measured.errors);
    let unproven = || unproven(&after).filter(|_| !is_cut_off);
    let failure = no_fault.flatten().or(died).or(no_table).or(denial).or_else(unproven);
    let has_failed = is_lost || failure.is_some();
    let status = match (status, failure) {
        (TrialStatus::Complete, Some(why)) => TrialStatus::Failed(why),
        // An error that ended the trial is what a server's end looks like from the other side of the wire.
        (TrialStatus::Failed(why), Some(more)) if is_about_a_server => {
            TrialStatus::Failed(Message::sentences(&[more, why]))
        }
        (status, _) => status,
    };
    let mut generator = measured.conditions.generator;
    generator.headroom = headroom.or(generator.headroom);
    let own = after.own.or(measured.identity.own);
    let mut summary = TrialSummary {
        identity: TrialIdentity { own, ..measured.identity },
        status,
        notes: [measured.notes, fleet.notes, after.notes].concat(),
        statement_latencies: after.statements,
        conditions: Conditions { generator, members: fleet.members, ..surroundings },
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

pub(crate) fn store(
    writer: TrialWriter<'_>,
    mut parts: TrialParts,
    progress: ProgressBar,
    place: &str,
) -> Result<TrialDone, Failure> {
    let headline = parts.after.headline.take();
    let is_last = parts.starving.is_last;
    let (summary, is_denied) = conclude(parts);
    let figures = figures(&summary, headline);
    match &summary.status {
        TrialStatus::Complete | TrialStatus::Stage => progress.finish(&figures),
        TrialStatus::Interrupted => progress.fail(&format!("interrupted; until then {figures}")),
        TrialStatus::Failed(why) => progress.fail(&format!("failed: {why} Measured: {figures}")),
        TrialStatus::Starved => {
            let why = summary.conditions.generator.starved.clone().unwrap_or_default();
            let then = if is_last { "more than an attempt before" } else { "is made again" };
            progress.fail(&format!("starved, {then}: {why} Measured: {figures}"));
        }
    }
    tell_checks(&summary.checks, place);
    let status = summary.status.clone();
    writer.finish(summary)?;
    Ok(TrialDone::Ended { status, is_denied })
}

/// Each check in a line; those that were not made for the same reason stand in one.
fn tell_checks(checks: &[DataCheck], place: &str) {
    let not_made = |check: &DataCheck| check.verdict == CheckVerdict::NotMade;
    for (at, check) in checks.iter().enumerate() {
        let same = |other: &&DataCheck| not_made(other) && other.evidence == check.evidence;
        if not_made(check) && checks[..at].iter().any(|earlier| same(&earlier)) {
            continue;
        }
        let names = match not_made(check) {
            true => checks.iter().filter(same).map(|check| &check.name[..]).collect::<Vec<_>>(),
            false => vec![&check.name[..]],
        };
        let tell = match check.verdict {
            CheckVerdict::Passed => output::step,
            _ => output::talk,
        };
        let (names, verdict) = (names.join(", "), check.verdict.name());
        tell(&format!("{place}: check {names}: {verdict}: {}", check.evidence));
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
fn of_trial(stage: Option<StageOf>) -> String {
    stage.map_or(String::new(), |stage| format!(", stage {} of {}", stage.number, stage.of))
}

/// Rates and the 95th percentile of the latency, as they are shown when a trial has ended; of nothing there is none.
pub fn with_p95(rates: &str, summary: &TrialSummary) -> String {
    match summary.latency.p95_us / 1e3 {
        0.0 => rates.to_owned(),
        p95_ms => format!("{rates}, p95 {} ms", short(p95_ms)),
    }
}

struct Parties<'a, F: Driven> {
    family: &'a F,
    workload: &'a F::Workload,
    database: &'a Database,
    nodes: &'a Nodes<'a>,
    fault: Option<&'a Injection<'a>>,
    /// Whether what is acknowledged can be looked for one by one.
    is_recorded: bool,
    place: &'a str,
}

struct Measured {
    result: TrialResult,
    client: Client,
    seen: AllSeen,
    before: Vec<Looked>,
    after: Vec<Looked>,
    watch: Option<FaultWatch>,
    gone: Option<Message>,
    /// The server for which the trial was ended answers again.
    is_back: bool,
    progress: ProgressBar,
}

/// Has the engine drive a trial while its nodes are watched. `None` when the user has stopped it before
/// it began.
fn measure<F: Driven>(
    parties: &Parties<'_, F>,
    team: &mut Team<'_>,
    spec: &TrialSpec,
    title: &str,
    (control, client): (&Control, Client),
    writer: &mut TrialWriter<'_>,
) -> Result<Option<Measured>, Failure> {
    let &Parties { family, workload, database, nodes, fault, is_recorded, place } = parties;
    // Load generators on other machines count by themselves.
    let counted = fault.filter(|_| !team.is_fleet()).map(Injection::node);
    let acknowledged_on_shard = || family.acknowledged_on(database, workload, counted?);
    let before = watch::watching(place, LOOK_BEFORE, &nodes.watched, || nodes.look());
    writer.server(Moment::Before, &nodes.facts(&before))?;
    let series = writer.node_series()?;
    let warmup_s = spec.warmup as f64 / 1e9;
    let planned_s = warmup_s + spec.duration.map_or(0.0, |duration| duration as f64 / 1e9);
    let (sampling, activity) = (Sampling::default(), Activity::default());
    let mut observer = StoringObserver {
        writer,
        activity: &activity,
        sampling: &sampling,
        fault: fault.map(|fault| (fault, fault.watch())),
        acknowledged_on_shard: &acknowledged_on_shard,
        client,
        progress: TrialProgress::new(title, planned_s),
        warmup_s,
        control,
        error: None,
    };
    let (driven, mut seen) = sampled(nodes, series, &sampling, || {
        let driven = || team.drive(family, workload, database, spec, control, &mut observer);
        match fault {
            Some(fault) => fault.meanwhile(driven),
            None => watch::watch_trial(&activity, &nodes.watched, control, driven),
        }
    });
    let StoringObserver { writer, progress, error, client, fault: watched, .. } = observer;
    let result = match driven {
        Ok(result) => result,
        Err(DriveError::Interrupted) => {
            let lost = activity.verdict().map(watch::trial_verdict);
            return lost.map_or(Ok(None), |why| Err(Failure::new(why).at(place)));
        }
        Err(error) => {
            let failure = Failure::from(error);
            return Err(watch::explain(failure, &nodes.watched).at(place));
        }
    };
    if let Some(error) = error {
        return Err(error.into());
    }
    writer.stage(&result)?;
    let gone = activity.verdict().cloned();
    let is_back = gone.is_some() && is_recorded && watch::wait_for_return(&nodes.watched, place);
    if let Some(fault) = fault {
        fault.settle();
        seen.leave_out(&fault.asked());
    }
    for event in events(&sampling, fault) {
        writer.event(event)?;
    }
    let (watch, progress) = (watched.map(|(_, watch)| watch), progress.progress);
    let after = nodes.look_again(&seen, gone.as_ref().filter(|_| !is_back));
    writer.server(Moment::After, &nodes.facts(&after))?;
    let gone = gone.as_ref().map(watch::trial_verdict);
    Ok(Some(Measured { result, client, seen, before, after, watch, gone, is_back, progress }))
}

fn events(sampling: &Sampling, fault: Option<&Injection<'_>>) -> Vec<Event> {
    let mut events = sampling.take_events();
    events.extend(fault.into_iter().flat_map(Injection::take_events));
    events
}

/// Why a trial whose data are wrong afterwards is not usable, however well it ended.
fn denial(after: &After, fault: Option<&FaultFacts>) -> Option<Message> {
    // What a fault has cost is the result of its trial, and no reason to throw that away.
    let is_result = |check: &&DataCheck| fault.is_some_and(|fault| fault.explains(&check.name));
    let mut failures = after.checks.iter().filter(|check| check.verdict == CheckVerdict::Failed);
    let failed = failures.find(|check| !is_result(check))?;
    Some(say!(check_failed, name = &failed.name, evidence = &failed.evidence))
}

/// Why a trial without a fault measures something else than its servers: one of them was away meanwhile.
fn died(surroundings: &Conditions) -> Option<Message> {
    let mut away = surroundings.nodes.iter();
    let (node, why) = away.find_map(|(name, node)| Some((name, node.down.as_ref()?)))?;
    Some(say!(node_died_in_trial, node = node, why = why))
}

/// What was acknowledged and could not be looked for is not proven to be there.
fn unproven(after: &After) -> Option<Message> {
    let unproven = after.checks.iter().find(|check| after.unproven.contains(&check.name))?;
    Some(say!(check_not_made, name = &unproven.name, evidence = &unproven.evidence))
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

fn who(spec: &TrialSpec) -> String {
    match spec.terminals {
        Some(terminals) => {
            format!("{} over {}", counted(terminals, "terminal"), counted(spec.workers, "session"))
        }
        None => counted(spec.workers, "worker"),
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

fn started(identity: TrialIdentity, spec: &TrialSpec, kinds: Vec<String>) -> TrialStart {
    let loops = spec.loops.unwrap_or_else(|| default_loops(spec.workers)).min(spec.workers);
    TrialStart { identity, loops, kinds, ..TrialStart::default() }
}

/// Why the data are not checked after a trial, in a sentence: nobody waits, nobody answers, or nobody knows what they
/// must be.
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

struct StoringObserver<'a, 'run> {
    writer: &'a mut TrialWriter<'run>,
    sampling: &'a Sampling,
    activity: &'a Activity,
    fault: Option<(&'a Injection<'a>, FaultWatch)>,
    /// What was acknowledged so far whose home is the shard that the fault is done to.
    acknowledged_on_shard: &'a dyn Fn() -> Option<u64>,
    client: Client,
    progress: TrialProgress,
    warmup_s: f64,
    control: &'a Control,
    error: Option<StoreError>,
}

impl StoringObserver<'_, '_> {
    fn store(&mut self, interval: &MeasuredInterval) -> Result<(), StoreError> {
        for event in events(self.sampling, self.fault.as_ref().map(|(fault, _)| *fault)) {
            self.writer.event(event)?;
        }
        self.writer.interval(interval)
    }
}

impl Observer for StoringObserver<'_, '_> {
    fn connected(&mut self, connected: u32, of: u32) {
        self.activity.moved();
        self.progress.connected(connected, of);
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
        if let Err(error) = self.store(interval) {
            output::talk("The run folder can't be written any more; the trial is being stopped.");
            self.error = Some(error);
            self.control.stop();
        }
    }
}
