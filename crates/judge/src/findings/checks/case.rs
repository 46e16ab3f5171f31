//! What checks look at: the model of the paper and the runs behind it.

use crate::evidence::{Evidence, Experiment, PaperTarget, Trial, Verdicts, nodes_of};
use crate::text::Message;
use dyno_facts::{
    ExperimentFacts, GeneratorConditions, GeneratorMember, NodeConditions, TargetFacts,
};
use dyno_store::RunData;

/// What a paper is made of, before its checks.
pub(crate) struct Case<'a> {
    pub(crate) evidence: &'a Evidence,
    pub(crate) verdicts: &'a Verdicts,
    pub(crate) runs: &'a [RunData],
}

impl<'a> Case<'a> {
    /// The run that a trial or target of this number belongs to.
    pub(super) fn run(&self, number: usize) -> Option<&'a RunData> {
        self.runs.get(number.checked_sub(1)?)
    }

    /// What the header of its run says of a target.
    pub(super) fn facts(&self, target: &PaperTarget) -> Option<&'a TargetFacts> {
        self.run(target.run)?.header.targets.iter().find(|facts| facts.name == target.facts.name)
    }

    /// What the suites say of an experiment, one for each run that has it.
    pub(super) fn planned(&self, experiment: &Experiment) -> Vec<&'a ExperimentFacts> {
        let all = self.runs.iter().flat_map(|run| &run.header.experiments);
        all.filter(|facts| facts.name == experiment.name).collect()
    }

    /// The trials of an experiment.
    pub(super) fn trials(&self, experiment: &Experiment) -> Vec<&'a Trial> {
        let own = |trial: &&Trial| trial.summary.experiment == experiment.name;
        self.evidence.trials.iter().filter(own).collect()
    }

    /// Targets that were measured.
    pub(super) fn targets(&self) -> impl Iterator<Item = &'a PaperTarget> {
        let is_own = |target: &PaperTarget, trial: &Trial| trial.target == target.label;
        let trials = &self.evidence.trials;
        self.evidence
            .targets
            .iter()
            .filter(move |own| trials.iter().any(|trial| is_own(own, trial)))
    }

    /// The experiment of a trial, if it has measured something.
    pub(super) fn experiment(&self, trial: &Trial) -> Option<&'a Experiment> {
        self.measured().find(|experiment| experiment.name == trial.summary.experiment)
    }

    /// What its run says of the target of a trial.
    pub(super) fn target_of(&self, trial: &Trial) -> Option<&'a TargetFacts> {
        self.facts(self.evidence.targets.iter().find(|target| target.label == trial.target)?)
    }

    /// Experiments that have measured something.
    pub(super) fn measured(&self) -> impl Iterator<Item = &'a Experiment> {
        self.evidence.experiments.iter().filter(|experiment| !experiment.points.is_empty())
    }
}

/// The load generator's conditions, where they were collected at all: older runs have none.
pub(super) fn generator(trial: &Trial) -> Option<&GeneratorConditions> {
    let conditions = &trial.summary.conditions.generator;
    (*conditions != GeneratorConditions::default()).then_some(conditions)
}

/// What `find` says of the load generators of a trial, each with its name where there are several.
pub(super) fn each_generator(
    trial: &Trial,
    find: impl Fn(&GeneratorConditions) -> Option<Message>,
) -> Option<Message> {
    each_member(trial, |member| find(&member.conditions), || find(generator(trial)?))
}

/// What `of_one` says of the load generators of a fleet, each with its name; where there is no fleet, what
/// `alone` says.
pub(super) fn each_member(
    trial: &Trial,
    of_one: impl Fn(&GeneratorMember) -> Option<Message>,
    alone: impl FnOnce() -> Option<Message>,
) -> Option<Message> {
    let members = &trial.summary.conditions.members;
    if members.is_empty() {
        return alone();
    }
    // Of one that was lost nothing is known but that.
    let told = |member: &GeneratorMember| {
        let value = of_one(member)?;
        Some(dyno_facts::say!(node_value, node = &member.name, value = value))
    };
    super::parts(members.iter().filter(|member| member.lost.is_none()).filter_map(told))
}

/// What `find` says of the nodes of a trial, each with its name where there are several.
pub(super) fn each_node(
    trial: &Trial,
    find: impl Fn(&NodeConditions) -> Option<Message>,
) -> Option<Message> {
    let is_one = trial.summary.conditions.nodes.len() == 1;
    let told = |(name, node): (&str, &NodeConditions)| {
        let value = find(node)?;
        Some(match is_one {
            true => value,
            false => dyno_facts::say!(node_value, node = name, value = value),
        })
    };
    super::parts(nodes_of(trial).filter_map(told))
}
