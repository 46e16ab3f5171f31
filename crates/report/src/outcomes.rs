//! How something ended in some trials, told once for all that ended alike.

use crate::evidence::{Spot, SpotKind, Trial};
use crate::text::Message;
use dyno_facts::CheckVerdict;
use serde::Serialize;

/// How something ended, and in which trials.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CountedOutcome {
    /// How it ended; `None` where there is nothing to judge.
    pub verdict: Option<CheckVerdict>,
    /// The figures it rests on, or why it was not made.
    pub evidence: Option<Message>,
    /// `trial 1`, `trials 2 and 3`; `None` where it is about every trial of the experiment.
    pub trials: Option<Message>,
}

/// A verdict and what it rests on.
pub type Judged = (Option<CheckVerdict>, Option<Message>);

/// Groups trials of the same outcome, in the order of their first.
pub fn outcomes(trials: &[&Trial], of: impl Fn(&Trial) -> Judged) -> Vec<CountedOutcome> {
    let mut groups: Vec<(Judged, Vec<String>)> = Vec::new();
    for trial in trials {
        let judged = of(trial);
        match groups.iter_mut().find(|group| group.0 == judged) {
            Some(group) => group.1.push(trial.label.clone()),
            None => groups.push((judged, vec![trial.label.clone()])),
        }
    }
    let is_one = groups.len() == 1;
    let outcome = |((verdict, evidence), names): (Judged, Vec<String>)| {
        let trials = (!is_one).then(|| Spot { kind: SpotKind::Trial, names }.text());
        CountedOutcome { verdict, evidence, trials }
    };
    groups.into_iter().map(outcome).collect()
}
