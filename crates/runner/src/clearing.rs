//! A run that fails where its tables are not to stay: what it has made goes while it still has the lock of its tables.

use super::{Runner, ownership};
use crate::failure::Failure;
use crate::output;
use crate::watch::{self, WatchedNode};
use dyno_facts::{PlanStep, StepAction, say};

impl Runner<'_> {
    /// Drops what this run has made and not dropped, as far as its plan would have dropped it. What can't be dropped stays
    /// noted as made.
    pub(super) fn clear(&mut self) {
        let plan = self.plan;
        let is_cleanup = |step: &&PlanStep| step.action == StepAction::Cleanup;
        for step in plan.steps.iter().filter(is_cleanup) {
            if let Err(failure) = self.clear_of(step) {
                let left = format!("note: tables of {} are left: ", step.target);
                output::talk(&format!("{left}{}", failure.message));
                return;
            }
        }
    }

    /// Names what this run has made and leaves.
    pub(super) fn tell_left(&self) {
        let header = self.run.header();
        for target in header.tables.keys() {
            let tables: Vec<&str> = header.made(target).collect();
            if !tables.is_empty() {
                output::talk(&format!(
                    "note: tables that this run has made are left on {target}: {}",
                    tables.join(", ")
                ));
            }
        }
    }

    fn clear_of(&mut self, step: &PlanStep) -> Result<(), Failure> {
        let (experiment, reached) = self.parties(step)?;
        let owner = self.plan.owner(&step.target).to_owned();
        let known = self.run.header().tables.get(&owner);
        let parts = ownership::split(known, &experiment.tables());
        if parts.made.is_empty() {
            return Ok(());
        }
        let title = say!(cleaning_up, experiment = &step.experiment, target = &step.target);
        let nodes = WatchedNode::all(self.plan.target(&owner), reached);
        // One question: what drops tables would wait for a server that is gone.
        let existing = watch::guarded(&title.to_string(), "the look at the tables", &nodes, || {
            experiment.existing(&reached.database)
        });
        let existing = existing.map_err(|failure| failure.at(&title))?;
        if parts.made.iter().any(|table| existing.contains(table)) {
            return self.cleanup(step);
        }
        self.run.update(|header| {
            let known = header.tables.entry(owner).or_default();
            ownership::forget(known, &parts.made);
        })?;
        Ok(())
    }
}
