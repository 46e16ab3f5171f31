//! The data of a run's targets: how they are loaded, restored and removed, and which seeds they have seen. A run drops
//! only tables that it has made. Seeds of trials that write are never used twice on the same data: rows would be given
//! the values that they have, which costs a server nearly nothing.
//!
//! Trials that lost a server which did not come back in time, or whose checks the user has cut off, leave a ledger:
//! what was acknowledged in them is held against the data before these are used again, or dropped.

use crate::command::ShellCommand;
use crate::databases::ReachedDatabase;
use crate::failure::{Failure, Result};
use crate::family::{LoadOrder, ask, remove_tables};
use crate::nodes::Nodes;
use crate::progress::LoadProgress;
use crate::watch::{WatchedNode, guarded};
use crate::{Runner, output};
use dyno_core::Error;
use dyno_facts::{
    Event, EventKind, ExperimentFacts, Message, PlanStep, Restore, RunHeader, StepAction,
    TableOrigin, say,
};
use dyno_load::catalog::unmarked;
use dyno_store::{Run, RunData};
use dyno_suite::{Plan, fnv1a};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;

type Known = BTreeMap<String, TableOrigin>;

const LOOK: &str = "the look at the tables";

/// Notes where `tables` come from, those in `existing` being there now. What the run has begun to
/// make is its own also when it exists by now: an interrupted run continues with it.
fn note_origins(known: &mut Known, tables: &[String], existing: &BTreeSet<String>) {
    for table in tables {
        if known.get(table) != Some(&TableOrigin::Made) {
            let is_found = existing.contains(table);
            let origin = if is_found { TableOrigin::Found } else { TableOrigin::Made };
            known.insert(table.clone(), origin);
        }
    }
}

/// Notes that `unmarked` tables, which are there, are not the ones that the run has made.
fn disown(known: &mut Known, unmarked: &HashSet<String>) {
    for (_, origin) in known.iter_mut().filter(|(table, _)| unmarked.contains(*table)) {
        *origin = TableOrigin::Found;
    }
}

/// Notes that `dropped` are gone: tables of these names that appear later are somebody else's.
fn forget(known: &mut Known, dropped: &[String]) {
    known.extend(dropped.iter().map(|table| (table.clone(), TableOrigin::Dropped)));
}

/// The tables of an experiment by who has made them.
#[derive(Debug, Default, PartialEq, Eq)]
struct Parts {
    made: Vec<String>,
    found: Vec<String>,
}

impl Parts {
    /// One that the run has never looked at is not its own; one that it has dropped before is neither.
    fn from_origins(known: Option<&Known>, tables: &[String]) -> Self {
        let mut parts = Parts::default();
        for table in tables {
            match known.and_then(|known| known.get(table)) {
                Some(TableOrigin::Made) => parts.made.push(table.clone()),
                Some(TableOrigin::Found) | None => parts.found.push(table.clone()),
                Some(TableOrigin::Dropped) => {}
            }
        }
        parts
    }

    fn describe_removal(&self) -> Message {
        match (self.made.is_empty(), self.found.is_empty()) {
            (true, true) => say!(tables_none_left),
            (false, true) => say!(tables_dropped),
            (true, false) => say!(tables_kept),
            (false, false) => say!(
                tables_dropped_and_kept,
                made = self.made.join(", "),
                found = self.found.join(", ")
            ),
        }
    }
}

impl Runner<'_> {
    fn change_tables(&mut self, owner: &str, change: impl FnOnce(&mut Known)) -> Result<()> {
        Ok(self.run.update(|header: &mut RunHeader| {
            change(header.tables.entry(owner.to_owned()).or_default());
        })?)
    }

    fn table_parts(&self, step: &PlanStep) -> Result<Parts> {
        let origins = self.run.header().tables.get(self.plan.owner(&step.target));
        Ok(Parts::from_origins(origins, &self.family_and_database(step)?.0.tables()))
    }

    /// The tables of a step's experiment that are there.
    fn existing(&self, step: &PlanStep, place: &Message) -> Result<BTreeSet<String>> {
        let (experiment, reached) = self.family_and_database(step)?;
        guarded(place, LOOK, &WatchedNode::from_database(&reached), || {
            experiment.existing(&reached.database)
        })
    }

    /// Notes which tables of a target others have made where the run's own were.
    fn disown(&mut self, step: &PlanStep) -> Result<()> {
        let (_, reached) = self.family_and_database(step)?;
        let owner = self.plan.owner(&step.target);
        if self.run.header().made(owner).next().is_none() {
            return Ok(());
        }
        let place = format!("the tables of {owner}").into();
        let mark = self.run.header().table_mark();
        let unmarked = guarded(&place, LOOK, &WatchedNode::from_database(&reached), || {
            ask(&reached.database.primary_admin(), async |session| unmarked(session, &mark).await)
        })?;
        self.change_tables(owner, |known| disown(known, &unmarked))
    }

    /// Shows how the data of a target are loaded or removed.
    fn progress(&self, title: &Message, reached: &ReachedDatabase) -> LoadProgress {
        let (nodes, mark) = (WatchedNode::from_database(reached), self.run.header().table_mark());
        LoadProgress::watching(&title.to_string(), nodes, mark)
    }

    /// Loads the data of an experiment on its target, or what an interrupted load has left undone.
    pub(super) fn prepare(&mut self, step: &PlanStep) -> Result<()> {
        let PlanStep { experiment, target, .. } = step;
        let title = say!(preparing, experiment, target);
        let existing = self.existing(step, &title)?;
        let owner = self.plan.owner(target).to_owned();
        self.disown(step)?;
        let (family, reached) = self.family_and_database(step)?;
        // Before anything is made: a run that is killed while it loads still knows what is its own.
        self.change_tables(&owner, |known| note_origins(known, &family.tables(), &existing))?;
        let observer = self.progress(&title, &reached);
        let order = LoadOrder { seed: self.plan.seed, observer: &observer };
        let loaded =
            family.load(&reached.database, &order).map_err(|failure| failure.at(&title))?;
        if existing.is_empty() {
            self.fresh.insert(owner.clone());
            self.seeds.reset(&owner);
        }
        let has_only_own = self.table_parts(step)?.found.is_empty();
        let loaded = if has_only_own { loaded } else { say!(data_found, loaded) };
        observer.finish(&loaded.to_string());
        let note = say!(data_prepared, experiment, target, loaded);
        let prepared = Some(step.id.clone());
        Ok(self.run.event(Event { prepared, ..Event::new(EventKind::Note, note) })?)
    }

    /// Drops the tables of an experiment on its target that this run has made.
    pub(super) fn cleanup(&mut self, step: &PlanStep) -> Result<()> {
        let PlanStep { experiment, target, .. } = step;
        self.disown(step)?;
        let parts = self.table_parts(step)?;
        let (family, reached) = self.family_and_database(step)?;
        let title = say!(cleaning_up, experiment, target);
        let observer = self.progress(&title, &reached);
        remove_tables(&*family, &reached.database, &parts.made, &observer)
            .map_err(|failure| failure.at(&title))?;
        let removed = if family.keeps_existing() {
            parts.describe_removal()
        } else {
            // No one knows what it has dropped.
            say!(script_cleaned_up)
        };
        observer.finish(&removed.to_string());
        self.change_tables(self.plan.owner(target), |known| forget(known, &parts.made))?;
        if !parts.found.is_empty() {
            let note = say!(data_removed, experiment, target, removed);
            self.run.event(Event::new(EventKind::Note, note))?;
        }
        Ok(())
    }

    /// Restores the data as the experiment wants them before a trial; false when the user has stopped it. Data that no
    /// trial has touched since this process loaded them are left alone.
    pub(super) fn restore(&mut self, step: &PlanStep) -> Result<bool> {
        let owner = self.plan.owner(&step.target);
        let restore = self.plan.experiment(&step.experiment).map(|experiment| &experiment.restore);
        match restore.filter(|_| !self.fresh.contains(owner)) {
            None | Some(Restore::None) => Ok(true),
            Some(Restore::Reload) => self.reload_data(step),
            Some(Restore::Command(text)) => {
                let name = self.plan.reached_as(&step.target);
                // The command may make the database again, which waits for all sessions in it.
                self.locks.release(name);
                let (does, text) = (say!(command_restores_data), text.expose());
                let command = ShellCommand::new(owner, text, does, "restore");
                let has_ended = self.run_on(step, &command)?;
                self.seeds.reset(owner);
                self.lock(name)?;
                Ok(has_ended)
            }
        }
    }

    fn reload_data(&mut self, step: &PlanStep) -> Result<bool> {
        self.disown(step)?;
        if let Some(table) = self.table_parts(step)?.found.first() {
            return Err(Failure::new(format!(
                "The data of {} can't be reloaded before each trial: {table} was there before this \
                 run, and a run drops only what it has made.",
                step.target
            ))
            .with_hint(
                "Drop the tables, use another database, or write `restore = \"none\"` or a command.",
            ));
        }
        self.cleanup(step)?;
        self.prepare(step)?;
        Ok(!self.control.is_stopped())
    }

    /// Drops what this run has made and not dropped, as far as its plan would have dropped it: a run that fails where
    /// its tables are not to stay still has the lock of its tables. What can't be dropped stays noted as made.
    pub(super) fn clear(&mut self) {
        let plan = self.plan;
        for step in plan.steps.iter().filter(|step| step.action == StepAction::Cleanup) {
            if let Err(failure) = self.drop_own_tables(step) {
                let prefix = format!("note: tables of {} are left: ", step.target);
                return output::talk(&format!("{prefix}{}", failure.message));
            }
        }
    }

    fn drop_own_tables(&mut self, step: &PlanStep) -> Result<()> {
        // One question: what drops tables would wait for a server that is gone.
        if !self.left_tables(step)?.is_empty() {
            return self.cleanup(step);
        }
        let created = self.table_parts(step)?.made;
        if created.is_empty() {
            return Ok(());
        }
        self.change_tables(self.plan.owner(&step.target), |known| forget(known, &created))
    }

    /// Names what this run has made and leaves. What can't be seen is not named.
    pub(super) fn report_left_tables(&mut self) {
        let plan = self.plan;
        let mut tables_by_target: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for step in plan.steps.iter().filter(|step| step.action == StepAction::Prepare) {
            if let Ok(tables) = self.left_tables(step) {
                tables_by_target.entry(plan.owner(&step.target)).or_default().extend(tables);
            }
        }
        for (target, tables) in
            tables_by_target.into_iter().filter(|(_, tables)| !tables.is_empty())
        {
            let tables: Vec<String> = tables.into_iter().collect();
            output::talk(&format!(
                "note: tables that this run has made are left on {target}: {}",
                tables.join(", ")
            ));
        }
    }

    /// The tables of a step that this run has made and that are there.
    fn left_tables(&mut self, step: &PlanStep) -> Result<BTreeSet<String>> {
        if self.table_parts(step)?.made.is_empty() {
            return Ok(BTreeSet::new());
        }
        self.disown(step)?;
        let place = format!("the tables of {}", self.plan.owner(&step.target)).into();
        let mut tables = self.existing(step, &place)?;
        let created = self.table_parts(step)?.made;
        tables.retain(|table| created.contains(table));
        Ok(tables)
    }

    /// Holds what earlier trials have left against the data of the targets that are meant.
    pub(super) fn settle_owed(&mut self, is_meant: impl Fn(&str) -> bool) -> Result<()> {
        let owed = self.run.header().owed.clone();
        for (id, file) in owed {
            let step = self.plan.steps.iter().find(|step| step.id == id);
            let Some(step) = step.filter(|step| is_meant(self.plan.owner(&step.target))) else {
                continue;
            };
            let (experiment, reached) = self.family_and_database(step)?;
            let nodes = WatchedNode::from_database(&reached);
            let losses = guarded(&file.as_str().into(), "the look at the ledger", &nodes, || {
                experiment.settle(&reached.database, &self.run.path().join(&file))
            })?;
            let [acknowledged, n] =
                [losses.acknowledged, losses.lost].map(Option::unwrap_or_default);
            self.denied += u32::from(n > 0);
            self.record_note(say!(
                owed_settled,
                step = &id,
                ledger = &file,
                acknowledged,
                lost = n,
                evidence = losses.evidence
            ))?;
            self.run.update(|header| drop(header.owed.remove(&id)))?;
        }
        Ok(())
    }
}

/// Notes that a trial is still to be held against the data; says how the run continues.
pub(crate) fn note_owed(
    run: &mut Run,
    step: &PlanStep,
    ledger: &Path,
    nodes: &Nodes<'_>,
) -> Result<Failure, Error> {
    let file = ledger.strip_prefix(run.path()).unwrap_or(ledger).display().to_string();
    run.update(|header| drop(header.owed.insert(step.id.clone(), file)))?;
    let hint = format!(
        "Start it again, then give the same command: it looks for everything that was acknowledged before it continues. \
         By hand: dyno check {} --ledger {} --only ledger",
        nodes.address,
        ledger.display()
    );
    Ok(Failure::new(say!(losses_owed)).with_hint(hint))
}

/// The state of the data before each trial: `untouched`, `reloaded`, `grows`, or the command that restores them.
pub(super) fn data_state(planned: &ExperimentFacts, writes: bool) -> String {
    match &planned.restore {
        Restore::Reload if planned.reload_each == 0 => "reloaded".to_owned(),
        Restore::Command(command) if planned.reload_each == 0 => command.to_string(),
        _ => if writes { "grows" } else { "untouched" }.to_owned(),
    }
}

/// The bits of a number that readers of JSON in other languages keep.
pub(crate) const BITS_OF_SEEDS: u64 = (1 << 53) - 1;

/// Seeds that the data have seen which this run has loaded, by the target that owns them.
#[derive(Debug, Default)]
pub(crate) struct UsedSeeds(BTreeMap<String, BTreeSet<u64>>);

impl UsedSeeds {
    /// The seeds of the trials that the run's folder has, including trials that were cut off.
    pub(crate) fn new(plan: &Plan, run: &RunData) -> Self {
        let mut used = UsedSeeds::default();
        for trial in &run.trials {
            let owner = plan.owner(&trial.summary.target).to_owned();
            used.0.entry(owner).or_default().insert(trial.summary.seed);
        }
        used
    }

    /// The data of a target are as a load leaves them.
    fn reset(&mut self, owner: &str) {
        self.0.insert(owner.to_owned(), BTreeSet::new());
    }

    /// The seed of the next trial on these data: as planned, unless it was used there, or data were found that another
    /// run may have used. `trial` is its place: the folder of the run and its number there.
    pub(crate) fn next(&mut self, owner: &str, planned: u64, trial: &str) -> u64 {
        if self.0.get_mut(owner).is_some_and(|used| used.insert(planned)) {
            planned
        } else {
            (planned ^ fnv1a(trial.as_bytes())) & BITS_OF_SEEDS
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table_names(words: &str) -> Vec<String> {
        words.split_whitespace().map(str::to_owned).collect()
    }

    fn existing_tables(words: &str) -> BTreeSet<String> {
        table_names(words).into_iter().collect()
    }

    fn find_parts(known: &Known, tables: &str) -> (String, String) {
        let parts = Parts::from_origins(Some(known), &table_names(tables));
        (parts.made.join(" "), parts.found.join(" "))
    }

    fn made_and_found(made: &str, found: &str) -> (String, String) {
        (made.to_owned(), found.to_owned())
    }

    #[test]
    fn only_what_was_missing_at_the_first_look_is_the_runs_own() {
        let mut origins = Known::new();
        note_origins(&mut origins, &table_names("a b"), &existing_tables("a"));
        assert_eq!(find_parts(&origins, "a b c"), made_and_found("b", "a c"));
        // A second look finds what the run has made, and a further table.
        note_origins(&mut origins, &table_names("a b c"), &existing_tables("a b"));
        assert_eq!(find_parts(&origins, "a b c"), made_and_found("b c", "a"));
        disown(&mut origins, &["c".to_owned()].into());
        assert_eq!(find_parts(&origins, "a b c"), made_and_found("b", "a c"));
        forget(&mut origins, &table_names("b c"));
        assert_eq!(find_parts(&origins, "a b c"), made_and_found("", "a"));
        // Somebody else's table under a name that was dropped.
        note_origins(&mut origins, &table_names("b c"), &existing_tables("c"));
        assert_eq!(find_parts(&origins, "b c"), made_and_found("b", "c"));
        assert_eq!(Parts::from_origins(None, &table_names("a")).found, table_names("a"));
    }

    #[test]
    fn a_cleanup_says_what_it_does() {
        fn describe_removal(made: &str, found: &str) -> String {
            let parts = Parts { made: table_names(made), found: table_names(found) };
            parts.describe_removal().to_string()
        }
        assert_eq!(describe_removal("a", ""), "tables dropped");
        assert_eq!(describe_removal("", "a"), "kept: this run has not made the tables");
        assert_eq!(describe_removal("a b", "c"), "dropped: a, b; kept: c, not made by this run");
        assert_eq!(describe_removal("", ""), "nothing left to drop");
    }

    #[test]
    fn a_seed_is_used_once_on_the_same_data() {
        let mut used = UsedSeeds::default();
        used.reset("a");
        assert_eq!(used.next("a", 7, "run/1"), 7);
        // The second side of a comparison of a target with itself, a repeated attempt.
        let seeds = [used.next("a", 7, "run/2"), used.next("a", 7, "run/3")];
        assert!(seeds[0] != 7 && seeds[1] != 7 && seeds[0] != seeds[1], "{seeds:?}");
        assert!(seeds.iter().all(|seed| *seed <= BITS_OF_SEEDS));
        assert_eq!(used.next("a", 8, "run/4"), 8);
        used.reset("a");
        assert_eq!(used.next("a", 7, "run/5"), 7);
    }

    #[test]
    fn data_that_were_found_may_have_seen_the_seed() {
        let mut used = UsedSeeds::default();
        assert_ne!(used.next("a", 7, "run/1"), 7);
    }
}
