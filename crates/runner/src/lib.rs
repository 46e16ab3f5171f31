//! Executes a plan step by step and keeps everything in the run folder.
//!
//! Before each step the [`schedule`] says what becomes of it, from the results so far and nothing else, so that an
//! interrupted run continues as it would have. What is not needed stands in `run.json` as skipped, with the reason.

pub mod calibration;
mod command;
mod data;
pub mod databases;
pub mod failure;
pub mod family;
mod fault;
pub mod fleet;
pub mod front_end;
mod nodes;
pub mod output;
mod permits;
pub mod prelude;
pub mod process_list;
pub mod progress;
mod renewal;
mod schedule;
pub mod signals;
mod stages;
mod starving;
mod summary;
mod target_lock;
#[cfg(test)]
mod tests;
mod together;
mod trial;
pub mod watch;

dyno_facts::catalog!();

pub use permits::Permits;
pub use summary::{identity, kinds, summarize};
pub use target_lock::{TableLock, TableSharing, lock_holder, lock_tables, shared_warning};

use crate::data::UsedSeeds;
use crate::databases::{ReachedDatabase, check_copies, reach_planned, target_facts};
use crate::failure::{Failure, Result};
use crate::family::{Families, Trials, check_settings, experiment};
use crate::fault::Injection;
use crate::fleet::Team;
use crate::nodes::Nodes;
use crate::progress::Remaining;
use crate::schedule::{Schedule, Turn};
use crate::starving::Starving;
use crate::target_lock::{LockAnswer, TargetLocks};
use crate::trial::{Job, TrialDone};
use crate::watch::{WatchedNode, guarded};
use dyno_engine::Control;
use dyno_facts::{
    Event, EventKind, ExperimentFacts, FleetMember, Message, PlanStep, PlannedTrial, Purpose,
    Renewed, RunStatus, StageOf, StepAction, TargetFacts, TrialStatus, say,
};
use dyno_fleet::Fleet;
use dyno_store::Run;
use dyno_suite::Plan;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Mutex;
use std::time::Instant;

pub struct RunOutcome {
    pub path: PathBuf,
    /// Complete, interrupted or failed.
    pub status: RunStatus,
    /// The failure that ended the run early, with its remedy.
    pub failure: Option<Failure>,
    /// Trials after which a check of the data failed.
    pub denied: u32,
}

/// The terms on which a run is executed.
pub struct RunTerms {
    /// The load generators, if it isn't this process.
    pub fleet: Option<Fleet>,
    /// The rule for other runs on the same tables.
    pub sharing: TableSharing,
    /// Set if a failure drops what the run has made: it is not to be continued.
    pub drops_when_failed: bool,
    /// Said as soon as all targets have been reached: what is to come is no news where nothing can begin.
    pub begins: Vec<String>,
}

/// Executes what is left of `plan` in `run`.
///
/// # Errors
/// When the run folder can't be written or a target can't be reached: nothing was executed then. What
/// goes wrong later is in the outcome.
pub fn execute(
    families: Families,
    plan: &Plan,
    run: Run,
    control: &Control,
    terms: RunTerms,
) -> Result<RunOutcome> {
    let RunTerms { fleet, sharing, drops_when_failed, begins } = terms;
    let environment = &run.header().environment;
    let (suite, host) = (&plan.suite.name, &environment.host);
    let name = format!("dyno run {suite}, process {} on {host}", std::process::id());
    let locks = TargetLocks::new(&name);
    let mut runner = Runner {
        locks,
        sharing,
        seeds: UsedSeeds::new(plan, run.data()),
        families,
        plan,
        run,
        control,
        fleet,
        targets: BTreeMap::new(),
        denied: 0,
        experiments: BTreeMap::new(),
        fresh: BTreeSet::new(),
        renewed: BTreeSet::new(),
    };
    if let Err(failure) = runner.look_ahead() {
        // Nothing was touched, by no earlier process either: a wrong password leaves no folder behind.
        if runner.run.last_trial() == 0 && runner.run.header().resumed_at.is_empty() {
            runner.run.discard()?;
        } else {
            runner.run.finish(RunStatus::Interrupted)?;
        }
        return Err(match signals::has_come() {
            true => Failure::interrupted(failure.message),
            false => failure,
        });
    }
    begins.iter().for_each(|line| output::talk(line));
    let (status, failure) = match runner.steps() {
        Ok(status) => (status, None),
        Err(failure) => {
            runner.run.event(Event::new(EventKind::Note, failure.message.clone()))?;
            if drops_when_failed {
                runner.clear();
            } else {
                runner.report_left_tables();
            }
            (RunStatus::Failed(failure.message.clone()), Some(failure))
        }
    };
    // From now on nothing is waited for any more: the process ends by itself.
    std::mem::forget(signals::hold_process());
    let denied = runner.denied;
    let path = runner.run.finish(status.clone())?;
    Ok(RunOutcome { path, status, failure, denied })
}

struct Runner<'a> {
    families: Families,
    plan: &'a Plan,
    run: Run,
    control: &'a Control,
    /// The load generators, if it isn't this process.
    fleet: Option<Fleet>,
    locks: TargetLocks,
    /// The rule for other runs on the same tables.
    sharing: TableSharing,
    seeds: UsedSeeds,
    /// By their names; a twin is reached as the target whose twin it is.
    targets: BTreeMap<String, Rc<ReachedDatabase>>,
    /// Trials after which a check of the data failed.
    denied: u32,
    experiments: BTreeMap<String, Rc<dyn Trials>>,
    /// Targets whose data this process has loaded and no trial has touched.
    fresh: BTreeSet<String>,
    /// States renewed by this process: by the first step that they were made for.
    renewed: BTreeSet<(Renewed, String)>,
}

/// A trial that is ready to begin: its number, workload, target and plan.
struct TrialGround {
    number: u32,
    experiment: Rc<dyn Trials>,
    reached: Rc<ReachedDatabase>,
    /// The planned trial, with the seed for the state of its data.
    planned: PlannedTrial,
    tables: Vec<String>,
    starving: Starving,
}

impl Runner<'_> {
    /// Everything that can be found wrong before anything is executed.
    fn look_ahead(&mut self) -> Result<()> {
        for planned in &self.plan.experiments {
            let valid = experiment(self.families, self.plan, planned)?;
            for warning in valid.warnings() {
                output::talk(&format!("warning: {}: {warning}", planned.name));
            }
            self.experiments.insert(planned.name.clone(), valid.into());
        }
        self.see_who_restarts()?;
        self.reach_targets()?;
        self.muster()?;
        let mut examined = BTreeSet::new();
        for step in &self.plan.steps {
            let (experiment, reached) = self.parties(step)?;
            let place = format!("{} on {}", step.experiment, step.target).into();
            let is_new = examined.insert((&step.experiment, &step.target));
            guarded(&place, "the check", &WatchedNode::all(&reached), || {
                if is_new {
                    check_settings(&reached.database.primary_admin(), &experiment.needs())?;
                    experiment.fits(&reached.database)?;
                }
                Injection::of(self.plan, step, &reached).map(drop)
            })?;
        }
        for name in self.targets.keys().cloned().collect::<Vec<_>>() {
            self.lock(&name)?;
        }
        Ok(())
    }

    /// Keeps other runs away from the tables of a target, or notes that they are there.
    fn lock(&mut self, name: &str) -> Result<()> {
        let Some(reached) = self.targets.get(name) else { return Ok(()) };
        let here = |step: &&PlanStep| self.plan.reached_as(&step.target) == name;
        let experiments = self.plan.steps.iter().filter(here).map(|step| &step.experiment);
        let planned = experiments.filter_map(|name| self.plan.experiment(name));
        let workloads: BTreeSet<String> = planned.map(|planned| planned.workload.clone()).collect();
        let workloads: Vec<String> = workloads.into_iter().collect();
        match self.locks.take(name, reached, &workloads, self.sharing)? {
            LockAnswer::Refused(who) => {
                output::talk(&format!("warning: target {name}: another run is on it: {who}"));
                self.run
                    .update(|header| drop(header.shared.insert(name.to_owned(), who.into())))?;
            }
            LockAnswer::Own(number) => self.check_apart(name, self.locks.target(number))?,
            LockAnswer::Held | LockAnswer::Unknown(_) => {}
        }
        Ok(())
    }

    /// Checks that two targets that are one database may be that.
    ///
    /// # Errors
    /// Both are targets of one experiment that loads data. As in a plan, options of their URLs
    /// tell them apart: settings of sessions are compared on one database.
    fn check_apart(&self, name: &str, other: &str) -> Result<()> {
        let targets = [name, other];
        let [one, two] = targets.map(|name| self.plan.target(name));
        let options = |target: Option<&TargetFacts>| {
            let url = target?.loading_url()?.expose();
            url.split_once('?').map(|(_, options)| options.to_owned())
        };
        let is_apart = one.map(TargetFacts::owner) == two.map(TargetFacts::owner)
            || options(one) != options(two);
        let mut loaded = self.plan.experiments.iter().filter(|planned| planned.prepare);
        let is_measured = |planned: &ExperimentFacts| {
            targets.iter().all(|name| planned.targets.iter().any(|target| target == name))
        };
        if is_apart || !loaded.any(is_measured) {
            return Ok(());
        }
        let message =
            format!("The targets {other} and {name} are the same database under two names.");
        Err(Failure::new(message).with_hint(
            "Give each target a database of its own, or set `prepare = false` in a suite.",
        ))
    }

    /// Writes down who makes the load.
    fn muster(&mut self) -> Result<()> {
        let Some(fleet) = &self.fleet else { return Ok(()) };
        let is_new = |member: &&FleetMember| !self.run.header().fleet.contains(member);
        let new: Vec<FleetMember> = fleet.known.iter().filter(is_new).cloned().collect();
        if !new.is_empty() {
            self.run.update(|header| header.fleet.extend(new))?;
        }
        Ok(())
    }

    fn steps(&mut self) -> Result<RunStatus> {
        let halves = schedule::half_pairs(self.plan, self.run.data());
        if !halves.is_empty() {
            self.run.set_aside(&halves)?;
        }
        let mut failures: Vec<Message> = Vec::new();
        let mut schedule = Schedule::new(self.plan, self.run.data());
        let mut remaining = Remaining::new(&self.plan.experiments);
        while !self.control.is_stopped()
            && let Some((step, turn)) = schedule.next(self.run.data())
        {
            let spent_s = &self.run.header().spent_s;
            if let Some(line) = remaining.show(schedule.left(), schedule.len(), spent_s) {
                output::talk(&line);
            }
            let begun = Instant::now();
            let done = self.step(step, turn);
            let seconds = begun.elapsed().as_secs_f64();
            let is_made = !matches!(done, Ok(None | Some(TrialDone::Skipped(_))));
            if is_made && schedule::is_timed(self.plan, step) {
                let is_complete = self.run.data().is_complete(&step.id);
                self.run.update(|header| schedule::spend(header, step, seconds, is_complete))?;
            }
            let done = match done {
                // What a signal has ended has not failed.
                Err(_) if signals::has_come() => return Ok(RunStatus::Interrupted),
                done => done?,
            };
            match done {
                // It was left out.
                None if step.trial().is_some() => {}
                None => remaining.took(step, seconds),
                Some(TrialDone::Skipped(why)) => self.skip(step, why)?,
                Some(TrialDone::Ended { status, is_denied }) => {
                    remaining.took(step, seconds);
                    self.denied += u32::from(is_denied);
                    let ended = schedule.ended(step, &status);
                    if let Some(trial) = step.trial().filter(|_| ended) {
                        output::talk(&format!(
                            "{}: three trials in a row failed, so its others are left out. The same command makes them \
                             again.",
                            trial.point
                        ));
                    }
                    match status {
                        TrialStatus::Complete | TrialStatus::Starved | TrialStatus::Stage => {}
                        TrialStatus::Interrupted => return Ok(RunStatus::Interrupted),
                        TrialStatus::Failed(why) => failures.push(why),
                    }
                }
            }
        }
        let is_left = !schedule.is_over() || !self.run.header().owed.is_empty();
        if self.control.is_stopped() && is_left {
            return Ok(RunStatus::Interrupted);
        }
        self.settle_owed(|_| true)?;
        let n = failures.len();
        Ok(match failures.into_iter().next() {
            None => RunStatus::Complete,
            Some(why) => RunStatus::Failed(say!(trials_failed, n, why)),
        })
    }

    /// Does a step; `None` if no trial is made or skipped.
    fn step(&mut self, step: &PlanStep, turn: Turn<'_>) -> Result<Option<TrialDone>> {
        // Before a step changes the data.
        if step.action != StepAction::Prepare {
            self.settle_owed(|owner| owner == self.plan.owner(&step.target))?;
        }
        match turn {
            Turn::Data => match step.action {
                StepAction::Cleanup => self.cleanup(step)?,
                _ => self.prepare(step)?,
            },
            Turn::Run(trial, purpose) => return self.made(step, &trial, purpose).map(Some),
            Turn::RunTogether(all) => return self.together(&all).map(Some),
            Turn::Skip(why) => return Ok(Some(TrialDone::Skipped(why))),
            Turn::Over => {}
        }
        Ok(None)
    }

    /// A trial, or a stage of one, again while its load generator is starved and the plan allows it.
    fn attempts(
        &mut self,
        step: &PlanStep,
        trial: &PlannedTrial,
        purpose: Purpose,
        stage: Option<StageOf>,
    ) -> Result<TrialDone> {
        loop {
            let done = self.trial(step, trial, purpose, stage)?;
            if !matches!(done, TrialDone::Ended { status: TrialStatus::Starved, .. }) {
                return Ok(done);
            }
            // The server that it is made on again is as fresh as it was.
            self.renewed.retain(|(_, first)| *first != step.id);
            if self.control.is_stopped() {
                return Ok(TrialDone::INTERRUPTED);
            }
        }
    }

    /// Connects to every target once, before anything is touched.
    fn reach_targets(&mut self) -> Result<()> {
        for target in self.plan.targets.iter().filter(|target| target.twin_of.is_none()) {
            let place = format!("target {}", target.name).into();
            let reached =
                reach_planned(target, self.run.path()).map_err(|failure| failure.at(&place))?;
            output::talk(&format!(
                "target {}: {} {}",
                target.name, reached.facts.product, reached.facts.version
            ));
            let nodes = WatchedNode::all(&reached);
            guarded(&place, "the check", &nodes, || check_copies(&reached))?;
            self.targets.insert(target.name.clone(), Rc::new(reached));
        }
        let facts = target_facts(self.plan, &self.targets);
        self.run.update(|header| header.targets = facts)?;
        Ok(())
    }

    fn trial(
        &mut self,
        step: &PlanStep,
        planned: &PlannedTrial,
        purpose: Purpose,
        stage: Option<StageOf>,
    ) -> Result<TrialDone> {
        let Some(ground) = self.ground(step, planned, stage, 0)? else {
            return Ok(TrialDone::INTERRUPTED);
        };
        let TrialGround { number, experiment, reached, planned, starving, .. } = &ground;
        let nodes = self.nodes_of(step, &ground)?;
        let injection = Injection::of(self.plan, step, reached)?;
        let is_shared = fleet::is_shared(self.plan, &step.experiment, &**experiment)?;
        let fleet = self.fleet.as_mut().filter(|_| is_shared);
        let team = Team::new(fleet, self.plan, (step, planned), self.run.path());
        let job = Job {
            step,
            planned,
            purpose,
            stage,
            nodes,
            fault: injection.as_ref(),
            team,
            starving: *starving,
            number: *number,
            run: &Mutex::new(&mut self.run),
            control: self.control,
        };
        let outcome = experiment.trial(&reached.database, job);
        // Also when the trial could not be stored: no cluster is left behind with a dead node.
        let _held = injection.as_ref().map(|_| signals::hold_process());
        if let Some(why) = injection.and_then(|injection| injection.restore()) {
            output::talk(&format!("warning: {}: {why}", step.target));
            self.run.event(Event::new(EventKind::Note, why))?;
        }
        let outcome = outcome?;
        self.muster()?;
        Ok(outcome)
    }

    /// Prepares servers and data for a trial; `others` is the number of concurrent trials that begin before it. Returns
    /// `None` if the user has stopped the run.
    fn ground(
        &mut self,
        step: &PlanStep,
        planned: &PlannedTrial,
        stage: Option<StageOf>,
        others: u32,
    ) -> Result<Option<TrialGround>> {
        // Within a trial nothing is made again.
        let is_within = stage.is_some() && !self.run.data().stages(&step.id).is_empty();
        // Those that are reloaded for pairs are renewed.
        let facts = self.plan.experiment(&step.experiment);
        let is_reloaded = facts.is_some_and(|facts| facts.reload_each > 0);
        let is_ready =
            is_within || (self.renew(step, planned)? && (is_reloaded || self.restore(step)?));
        if !is_ready {
            return Ok(None);
        }
        let owner = self.plan.owner(&step.target);
        self.fresh.remove(owner);
        let (experiment, reached) = self.parties(step)?;
        let number = self.run.next_trial() + others;
        let seed = match experiment.writes() {
            true => {
                let place = self.run.stem(number).display().to_string();
                self.seeds.next(owner, planned.seed, &place)
            }
            // As others that it is compared with.
            false => planned.seed,
        };
        let (mut tables, idle) = (experiment.tables(), experiment.idle_tables());
        tables.retain(|table| !idle.contains(&table.as_str()));
        let planned = PlannedTrial { seed, ..planned.clone() };
        let starving = Starving::next(&self.run, self.plan, step, stage, reached.same_host);
        Ok(Some(TrialGround { number, experiment, reached, planned, tables, starving }))
    }

    /// Returns the nodes of a trial after replicas have caught up.
    fn nodes_of<'g>(&mut self, step: &'g PlanStep, ground: &'g TrialGround) -> Result<Nodes<'g>> {
        let (target, is_sampled) = (self.plan.target(&step.target), self.plan.sample_servers);
        let TrialGround { reached, tables, .. } = ground;
        let nodes = Nodes::new(&step.target, target, reached, tables.clone(), is_sampled);
        for note in nodes.catch_up(self.control) {
            self.note(note)?;
        }
        Ok(nodes)
    }

    /// Says and notes that a step can't be executed on its target.
    fn skip(&mut self, step: &PlanStep, why: Message) -> Result<()> {
        let ended = |trial| schedule::ended(self.plan, self.run.data(), step, trial).is_some();
        match step.trial() {
            Some(trial) if trial.purpose == Purpose::Search => {
                output::talk(&format!("{}: {why}", trial.point));
            }
            // What ends repeats is said once.
            Some(trial) if ended(trial) => {}
            _ => output::print_step(&format!("{}: skipped: {why}", step.id)),
        }
        Ok(self.run.update(|header| drop(header.skipped.insert(step.id.clone(), why)))?)
    }

    /// Says something that stays in the run as a note.
    fn note(&mut self, note: Message) -> Result<()> {
        output::talk(&note.to_string());
        Ok(self.run.event(Event::new(EventKind::Note, note))?)
    }

    fn parties(&self, step: &PlanStep) -> Result<(Rc<dyn Trials>, Rc<ReachedDatabase>)> {
        let PlanStep { experiment, target, .. } = step;
        let family = self.experiments.get(experiment);
        let database = self.targets.get(self.plan.reached_as(target));
        let unknown = || Failure::new(format!("The plan has no {experiment} on {target}."));
        family.cloned().zip(database.cloned()).ok_or_else(unknown)
    }
}

/// Looks at the options of all experiments of a plan, and notes in it what comparisons find in the data.
pub fn check_options(families: Families, plan: &mut Plan) -> Result<()> {
    let writes = |planned| experiment(families, plan, planned).map(|family| family.writes());
    let writes: Vec<bool> = plan.experiments.iter().map(writes).collect::<Result<_, _>>()?;
    for (planned, writes) in plan.experiments.iter_mut().zip(writes) {
        let data_state = data::data_state(planned, writes);
        if let Some(comparison) = &mut planned.comparison {
            comparison.data_state = data_state;
        }
    }
    Ok(())
}

/// Looks whether load generators on other machines can drive the plan; says what this process does alone.
pub fn refuse_fleet(families: Families, plan: &Plan) -> Result<()> {
    if let Some(target) = plan.targets.iter().find(|target| !fleet::is_server(target.url.expose()))
    {
        return Err(fleet::embedded(&target.name));
    }
    for planned in &plan.experiments {
        let family = experiment(families, plan, planned)?;
        if !fleet::is_shared(plan, &planned.name, &*family)? {
            output::talk(&format!(
                "note: {}: this process makes all of its load; no load generator takes part.",
                planned.name
            ));
        }
    }
    Ok(())
}
