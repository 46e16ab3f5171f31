//! How something ended in some trials, told once for all that ended alike.

use crate::format::list_of;
use crate::model::Trial;
use dyno_measure::Verdict;
use serde::Serialize;

/// How something ended, and in which trials.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// How it ended; `None` where there is nothing to judge.
    pub verdict: Option<Verdict>,
    /// The figures it rests on, or why it was not made; may be empty.
    pub evidence: String,
    /// `trial 1`, `trials 2 and 3`; empty where it is about every trial of the experiment.
    pub trials: String,
}

/// A verdict and what it rests on.
pub(crate) type Judged = (Option<Verdict>, String);

/// Groups trials of the same outcome, in the order of their first.
pub(crate) fn outcomes(trials: &[&Trial], of: impl Fn(&Trial) -> Judged) -> Vec<Outcome> {
    let mut groups: Vec<(Option<Verdict>, String, Vec<String>)> = Vec::new();
    for trial in trials {
        let (verdict, evidence) = of(trial);
        match groups.iter_mut().find(|group| (group.0, &group.1) == (verdict, &evidence)) {
            Some(group) => group.2.push(trial.label.clone()),
            None => groups.push((verdict, evidence, vec![trial.label.clone()])),
        }
    }
    let is_one = groups.len() == 1;
    let outcome = |(verdict, evidence, labels): (Option<Verdict>, String, Vec<String>)| {
        let noun = if labels.len() == 1 { "trial" } else { "trials" };
        let trials = if is_one { String::new() } else { format!("{noun} {}", list_of(&labels)) };
        Outcome { verdict, evidence, trials }
    };
    groups.into_iter().map(outcome).collect()
}
