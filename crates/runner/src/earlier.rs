//! What servers said in the part of a run that this process goes on with.

use dyno_facts::{NodeFacts, PlanStep, ServerFacts};
use dyno_judge::findings::checks::server_changed;
use dyno_store::RunData;
use std::collections::BTreeMap;
use std::path::Path;

/// By experiment and target: what the nodes said before the last trial of it.
#[derive(Default)]
pub(crate) struct EarlierLooks(BTreeMap<(String, String), NodeFacts>);

impl EarlierLooks {
    /// Those of the run's own trials and of the runs that it continues. What can't be read is named by its paper.
    pub(crate) fn of(run: &RunData) -> Self {
        let folder = run.path.parent().unwrap_or(Path::new("."));
        let sessions = run.header.continues.iter().map(|session| folder.join(&session.folder));
        let sessions = sessions.filter_map(|path| dyno_store::read(&path).ok());
        let mut looks = BTreeMap::new();
        let mut look = |data: &RunData| {
            for trial in data.trials.iter().filter(|trial| !trial.before.is_empty()) {
                let key = (trial.summary.experiment.clone(), trial.summary.target.clone());
                looks.insert(key, trial.before.clone());
            }
        };
        sessions.for_each(|data| look(&data));
        look(run);
        EarlierLooks(looks)
    }

    /// Whether there is anything to compare with at this step; asked again, there isn't.
    pub(crate) fn take(&mut self, step: &PlanStep) -> Option<NodeFacts> {
        self.0.remove(&(step.experiment.clone(), step.target.clone()))
    }
}

/// A warning for each node that has changed.
pub(crate) fn warnings(step: &PlanStep, (before, now): (&NodeFacts, &NodeFacts)) -> Vec<String> {
    let warning = |(node, now): (&String, &ServerFacts)| {
        let what = server_changed(before.get(node)?, now)?;
        let place = if *node == step.target { String::new() } else { format!(", node {node}") };
        Some(format!(
            "warning: {} on {}{place}: the server has changed since the last trial here: {what}.",
            step.experiment, step.target
        ))
    };
    now.iter().filter_map(warning).collect()
}
