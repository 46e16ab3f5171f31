//! Trials that lost a server which did not come back in time, or whose checks the user has cut off: what was
//! acknowledged in them is held against the data before these are used again, or dropped.

use crate::failure::Failure;
use crate::nodes::Nodes;
use crate::watch::{self, WatchedNode};
use crate::{Runner, output, parties};
use dyno_facts::{Event, EventKind, PlanStep, StepAction, say};
use dyno_store::{Run, StoreError};
use std::path::Path;

/// Notes that a trial is still to be held against the data; says how the run goes on.
pub(crate) fn note(
    run: &mut Run,
    step: &PlanStep,
    ledger: &Path,
    nodes: &Nodes<'_>,
) -> Result<Failure, StoreError> {
    let file = ledger.strip_prefix(run.path()).unwrap_or(ledger).display().to_string();
    run.update(|header| {
        header.owed.insert(step.id.clone(), file);
    })?;
    let hint = format!(
        "Start it again, then give the same command: it looks for everything that was acknowledged before it goes on. \
         By hand: dyno check {} --ledger {} --only ledger",
        nodes.address,
        ledger.display()
    );
    Ok(Failure::new(say!(losses_owed)).with_hint(hint))
}

impl Runner<'_> {
    /// Holds what earlier trials have left against the data, before a step changes them.
    pub(crate) fn hold_owed_before(&mut self, step: &PlanStep) -> Result<(), Failure> {
        match step.action {
            StepAction::Prepare => Ok(()),
            _ => self.hold_owed(|owner| owner == self.plan.owner(&step.target)),
        }
    }

    /// The same for the targets that are meant.
    pub(crate) fn hold_owed(&mut self, is_meant: impl Fn(&str) -> bool) -> Result<(), Failure> {
        let owed = self.run.header().owed.clone();
        for (id, file) in owed {
            let of = self.plan.steps.iter().find(|of| of.id == id);
            let of = of.map(|of| (of, self.plan.owner(&of.target)));
            let Some((of, owner)) = of.filter(|(_, owner)| is_meant(owner)) else { continue };
            let reached_as = self.plan.reached_as(&of.target);
            let (experiment, reached) = parties(&self.experiments, &self.targets, of, reached_as)?;
            let nodes = WatchedNode::all(self.plan.target(owner), reached);
            let lost = watch::guarded(&file, "the look at the ledger", &nodes, || {
                experiment.settle(&reached.database, &self.run.path().join(&file))
            });
            let lost = lost.map_err(|failure| failure.at(&file))?;
            let [acknowledged, n] = [lost.acknowledged, lost.lost].map(Option::unwrap_or_default);
            let told = say!(
                owed_settled,
                step = &id,
                ledger = &file,
                acknowledged = acknowledged,
                lost = n,
                evidence = lost.evidence
            );
            output::talk(&told.to_string());
            self.denied += u32::from(n > 0);
            self.run.event(Event::new(EventKind::Note, told))?;
            self.run.update(|header| {
                header.owed.remove(&id);
            })?;
        }
        Ok(())
    }
}
