//! Brings the data of a target back to their first state before a trial.

use super::command::ShellCommand;
use super::{Runner, ownership};
use crate::failure::Failure;
use dyno_facts::{ExperimentFacts, PlanStep, Restore, say};

/// What the data are like before each trial: `untouched`, `reloaded`, `grows`, or the command that restores them.
pub(super) fn data_state(planned: &ExperimentFacts, writes: bool) -> String {
    match &planned.restore {
        _ if planned.reload_each > 0 => if writes { "grows" } else { "untouched" }.to_owned(),
        Restore::Reload => "reloaded".to_owned(),
        Restore::Command(command) => command.to_string(),
        Restore::None => if writes { "grows" } else { "untouched" }.to_owned(),
    }
}

impl Runner<'_> {
    /// Restores the data as the experiment wants it; false when the user has stopped it. Data that no
    /// trial has touched since this process loaded them are left alone.
    pub(super) fn restore_before(&mut self, step: &PlanStep) -> Result<bool, Failure> {
        let is_of_pairs = |planned: &ExperimentFacts| planned.reload_each > 0;
        match self.plan.experiment(&step.experiment).is_some_and(is_of_pairs) {
            true => Ok(true),
            false => self.restore(step),
        }
    }

    pub(super) fn restore(&mut self, step: &PlanStep) -> Result<bool, Failure> {
        let wanted = self.plan.experiment(&step.experiment).map(|experiment| &experiment.restore);
        if self.fresh.contains(self.plan.owner(&step.target)) {
            return Ok(true);
        }
        match wanted {
            None | Some(Restore::None) => Ok(true),
            Some(Restore::Reload) => self.reload(step),
            Some(Restore::Command(text)) => {
                let owner = self.plan.owner(&step.target);
                let name = self.plan.reached_as(&step.target);
                // The command may make the database anew, which waits for all sessions in it.
                self.locks.release(name);
                let does = say!(command_restores_data);
                let (text, told, limit, key) = (text.expose(), &[], None, "restore");
                let command = ShellCommand { target: owner, told, text, does, key, limit };
                let has_ended = self.run_on(step, &command)?;
                self.seeds.made_anew(owner);
                self.lock(name)?;
                Ok(has_ended)
            }
        }
    }

    fn reload(&mut self, step: &PlanStep) -> Result<bool, Failure> {
        self.disown(step)?;
        let (experiment, _) = self.parties(step)?;
        let owner = self.plan.owner(&step.target);
        let parts = ownership::split(self.run.header().tables.get(owner), &experiment.tables());
        if let Some(table) = parts.found.first() {
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
}
