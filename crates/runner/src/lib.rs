//! Executes a plan step by step and keeps everything in the run folder.
//!
//! Before each step the [`schedule`] says what becomes of it, from the results so far and nothing else, so that an
//! interrupted run continues as it would have. What is not needed is in `run.json` as skipped, with the reason.

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
    Event, EventKind, FleetMember, Message, PlanStep, PlannedTrial, Purpose, Renewed, RunStatus,
    StageOf, StepAction, TargetFacts, TrialStatus, say,
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
    /// Printed as soon as all targets have been reached, which shows that the run can begin.
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
        return Err(if signals::has_come() {
            Failure::interrupted(failure.message)
        } else {
            failure
        });
    }
    begins.iter().for_each(|line| output::talk(line));
    let (status, failure) = match runner.execute_steps() {
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
    /// Keys are their names; a twin is reached as the target whose twin it is.
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
        self.record_fleet_members()?;
        let mut examined = BTreeSet::new();
        for step in &self.plan.steps {
            let (experiment, reached) = self.family_and_database(step)?;
            let place = format!("{} on {}", step.experiment, step.target).into();
            let is_new = examined.insert((&step.experiment, &step.target));
            guarded(&place, "the check", &WatchedNode::from_database(&reached), || {
                if is_new {
                    check_settings(&reached.database.primary_admin(), &experiment.needs())?;
                    experiment.fits(&reached.database)?;
                }
                Injection::for_step(self.plan, step, &reached).map(drop)
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
        let steps =
            self.plan.steps.iter().filter(|step| self.plan.reached_as(&step.target) == name);
        let experiments = steps.filter_map(|step| self.plan.experiment(&step.experiment));
        let workloads: BTreeSet<String> =
            experiments.map(|experiment| experiment.workload.clone()).collect();
        let workloads: Vec<String> = workloads.into_iter().collect();
        match self.locks.lock(name, reached, &workloads, self.sharing)? {
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
        let [first, second] = targets.map(|name| self.plan.target(name));
        let [first_options, second_options] = [first, second].map(|target| {
            let url = target?.loading_url()?.expose();
            url.split_once('?').map(|(_, options)| options.to_owned())
        });
        let is_apart = first.map(TargetFacts::owner) == second.map(TargetFacts::owner)
            || first_options != second_options;
        let mut loaded = self.plan.experiments.iter().filter(|planned| planned.prepare);
        let has_both = loaded.any(|planned| {
            targets.iter().all(|name| planned.targets.iter().any(|target| target == name))
        });
        if is_apart || !has_both {
            return Ok(());
        }
        let message =
            format!("The targets {other} and {name} are the same database under two names.");
        Err(Failure::new(message).with_hint(
            "Give each target a database of its own, or set `prepare = false` in a suite.",
        ))
    }

    /// Writes down who makes the load.
    fn record_fleet_members(&mut self) -> Result<()> {
        let Some(fleet) = &self.fleet else { return Ok(()) };
        let recorded = &self.run.header().fleet;
        let new = fleet.known.iter().filter(|member| !recorded.contains(member));
        let new: Vec<FleetMember> = new.cloned().collect();
        if !new.is_empty() {
            self.run.update(|header| header.fleet.extend(new))?;
        }
        Ok(())
    }

    fn execute_steps(&mut self) -> Result<RunStatus> {
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
            if let Some(line) = remaining.show(schedule.remaining_steps(), schedule.len(), spent_s)
            {
                output::talk(&line);
            }
            let began_at = Instant::now();
            let outcome = self.execute_step(step, turn);
            let seconds = began_at.elapsed().as_secs_f64();
            let is_made = !matches!(outcome, Ok(None | Some(TrialDone::Skipped(_))));
            if is_made && schedule::is_timed(self.plan, step) {
                let is_complete = self.run.data().is_complete(&step.id);
                self.run.update(|header| schedule::spend(header, step, seconds, is_complete))?;
            }
            let outcome = match outcome {
                // What a signal has ended has not failed.
                Err(_) if signals::has_come() => return Ok(RunStatus::Interrupted),
                outcome => outcome?,
            };
            match outcome {
                // It was left out.
                None if step.trial().is_some() => {}
                None => remaining.record_duration(step, seconds),
                Some(TrialDone::Skipped(reason)) => self.skip(step, reason)?,
                Some(TrialDone::Ended { status, is_denied }) => {
                    remaining.record_duration(step, seconds);
                    self.denied += u32::from(is_denied);
                    let is_given_up = schedule.record_end(step, &status);
                    if let Some(trial) = step.trial().filter(|_| is_given_up) {
                        output::talk(&format!(
                            "{}: three trials in a row failed, so its others are left out. The same command makes them \
                             again.",
                            trial.point
                        ));
                    }
                    match status {
                        TrialStatus::Complete | TrialStatus::Starved | TrialStatus::Stage => {}
                        TrialStatus::Interrupted => return Ok(RunStatus::Interrupted),
                        TrialStatus::Failed(reason) => failures.push(reason),
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
            Some(reason) => RunStatus::Failed(say!(trials_failed, n, why = reason)),
        })
    }

    /// Does a step; `None` if no trial is made or skipped.
    fn execute_step(&mut self, step: &PlanStep, turn: Turn<'_>) -> Result<Option<TrialDone>> {
        // Before a step changes the data.
        if step.action != StepAction::Prepare {
            self.settle_owed(|owner| owner == self.plan.owner(&step.target))?;
        }
        match turn {
            Turn::Data => match step.action {
                StepAction::Cleanup => self.cleanup(step)?,
                _ => self.prepare(step)?,
            },
            Turn::Run(trial, purpose) => {
                return self.run_whole_or_staged(step, &trial, purpose).map(Some);
            }
            Turn::RunTogether(trials) => return self.together(&trials).map(Some),
            Turn::Skip(reason) => return Ok(Some(TrialDone::Skipped(reason))),
            Turn::Over => {}
        }
        Ok(None)
    }

    /// A trial, or a stage of one, again while its load generator is starved and the plan allows it.
    fn repeat_while_starved(
        &mut self,
        step: &PlanStep,
        trial: &PlannedTrial,
        purpose: Purpose,
        stage: Option<StageOf>,
    ) -> Result<TrialDone> {
        loop {
            let outcome = self.execute_trial(step, trial, purpose, stage)?;
            if !matches!(outcome, TrialDone::Ended { status: TrialStatus::Starved, .. }) {
                return Ok(outcome);
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
            let database =
                reach_planned(target, self.run.path()).map_err(|failure| failure.at(&place))?;
            output::talk(&format!(
                "target {}: {} {}",
                target.name, database.facts.product, database.facts.version
            ));
            let nodes = WatchedNode::from_database(&database);
            guarded(&place, "the check", &nodes, || check_copies(&database))?;
            self.targets.insert(target.name.clone(), Rc::new(database));
        }
        let facts = target_facts(self.plan, &self.targets);
        self.run.update(|header| header.targets = facts)?;
        Ok(())
    }

    fn execute_trial(
        &mut self,
        step: &PlanStep,
        planned: &PlannedTrial,
        purpose: Purpose,
        stage: Option<StageOf>,
    ) -> Result<TrialDone> {
        let Some(ground) = self.prepare_ground(step, planned, stage, 0)? else {
            return Ok(TrialDone::INTERRUPTED);
        };
        let TrialGround { number, experiment, reached, planned, starving, .. } = &ground;
        let nodes = self.catch_up_nodes(step, &ground)?;
        let injection = Injection::for_step(self.plan, step, reached)?;
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
        if let Some(reason) = injection.and_then(|injection| injection.restore()) {
            output::talk(&format!("warning: {}: {reason}", step.target));
            self.run.event(Event::new(EventKind::Note, reason))?;
        }
        let outcome = outcome?;
        self.record_fleet_members()?;
        Ok(outcome)
    }

    /// Prepares servers and data for a trial; `earlier` is the number of concurrent trials that begin before it. Returns
    /// `None` if the user has stopped the run.
    fn prepare_ground(
        &mut self,
        step: &PlanStep,
        planned: &PlannedTrial,
        stage: Option<StageOf>,
        earlier: u32,
    ) -> Result<Option<TrialGround>> {
        // Within a trial nothing is renewed.
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
        let (experiment, reached) = self.family_and_database(step)?;
        let number = self.run.next_trial() + earlier;
        let seed = if experiment.writes() {
            let place = self.run.stem(number).display().to_string();
            self.seeds.next(owner, planned.seed, &place)
        } else {
            // As others that it is compared with.
            planned.seed
        };
        let (mut tables, idle) = (experiment.tables(), experiment.idle_tables());
        tables.retain(|table| !idle.contains(&table.as_str()));
        let seeded = PlannedTrial { seed, ..planned.clone() };
        let starving = Starving::next(&self.run, self.plan, step, stage, reached.same_host);
        Ok(Some(TrialGround { number, experiment, reached, planned: seeded, tables, starving }))
    }

    /// Returns the nodes of a trial after replicas have caught up.
    fn catch_up_nodes<'g>(
        &mut self,
        step: &'g PlanStep,
        ground: &'g TrialGround,
    ) -> Result<Nodes<'g>> {
        let (target, is_sampled) = (self.plan.target(&step.target), self.plan.sample_servers);
        let TrialGround { reached, tables, .. } = ground;
        let nodes = Nodes::new(&step.target, target, reached, tables.clone(), is_sampled);
        for note in nodes.catch_up(self.control) {
            self.record_note(note)?;
        }
        Ok(nodes)
    }

    /// Says and notes that a step can't be executed on its target.
    fn skip(&mut self, step: &PlanStep, reason: Message) -> Result<()> {
        match step.trial() {
            Some(trial) if trial.purpose == Purpose::Search => {
                output::talk(&format!("{}: {reason}", trial.point));
            }
            // The end of repeats is reported once.
            Some(trial)
                if schedule::end_reason(self.plan, self.run.data(), step, trial).is_some() => {}
            _ => output::print_step(&format!("{}: skipped: {reason}", step.id)),
        }
        Ok(self.run.update(|header| drop(header.skipped.insert(step.id.clone(), reason)))?)
    }

    /// Says something that stays in the run as a note.
    fn record_note(&mut self, note: Message) -> Result<()> {
        output::talk(&note.to_string());
        Ok(self.run.event(Event::new(EventKind::Note, note))?)
    }

    fn family_and_database(
        &self,
        step: &PlanStep,
    ) -> Result<(Rc<dyn Trials>, Rc<ReachedDatabase>)> {
        let PlanStep { experiment, target, .. } = step;
        let family = self.experiments.get(experiment);
        let database = self.targets.get(self.plan.reached_as(target));
        let parties = family.cloned().zip(database.cloned());
        parties.ok_or_else(|| Failure::new(format!("The plan has no {experiment} on {target}.")))
    }
}

/// Looks at the options of all experiments of a plan, and notes in it what comparisons find in the data.
pub fn check_options(families: Families, plan: &mut Plan) -> Result<()> {
    let writes = plan
        .experiments
        .iter()
        .map(|planned| experiment(families, plan, planned).map(|family| family.writes()));
    let writes: Vec<bool> = writes.collect::<Result<_, _>>()?;
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
        return Err(fleet::embedded_failure(&target.name));
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
