//! Checks: what a careful reader would ask of the numbers, computed.

mod rules;

use crate::model::{
    Check, Experiment, Finding, Group, Level, Paper, Spot, SpotKind, Target, Trial,
};
use crate::text::Text;
use crate::{tpcc, tpch};

pub(crate) struct Rule {
    pub(crate) id: &'static str,
    pub(crate) group: Group,
    pub(crate) level: Level,
    /// What is expected, threshold included: a pattern of the dictionary, as are the next two.
    pub(crate) rule: &'static str,
    /// What it means where it is found.
    pub(crate) meaning: &'static str,
    /// What to do about it.
    pub(crate) advice: &'static str,
    pub(crate) find: Find,
}

pub(crate) enum Find {
    /// One value per trial.
    Trial(fn(&Trial) -> Option<Text>),
    Target(fn(&Target) -> Option<Text>),
    Experiment(fn(&Experiment) -> Option<Text>),
    Paper(fn(&Paper) -> Vec<Finding>),
    EnglishTrial(fn(&Trial) -> Option<String>),
    EnglishTarget(fn(&Target) -> Option<String>),
    EnglishExperiment(fn(&Experiment) -> Option<String>),
}

/// Makes all checks and leaves their numbers at the trials and points that they concern. Checks
/// that found something come first, the gravest first.
pub(crate) fn make(paper: &mut Paper) {
    let is_tpcc = paper.experiments.iter().any(|experiment| experiment.tpcc.is_some());
    let is_tpch = paper.experiments.iter().any(|experiment| experiment.tpch.is_some());
    let of_tpcc = if is_tpcc { tpcc::RULES } else { &[] };
    let of_tpch = if is_tpch { tpch::RULES } else { &[] };
    let rules = rules::RULES.iter().chain(of_tpcc).chain(of_tpch);
    let mut checks: Vec<Check> = rules.map(|rule| check(rule, paper)).collect();
    checks.sort_by_key(|check| (check.findings.is_empty(), check.level));
    for (index, check) in checks.iter_mut().enumerate() {
        check.number = index + 1;
    }
    for trial in &mut paper.trials {
        let place = Spot::trial(&trial.label);
        let found = checks
            .iter()
            .filter(|check| check.findings.iter().any(|finding| finding.place == place));
        trial.checks = found.map(|check| check.number).collect();
    }
    for point in paper.experiments.iter_mut().flat_map(|experiment| &mut experiment.points) {
        let own = paper.trials.iter().filter(|trial| point.trials.contains(&trial.label));
        let mut numbers: Vec<usize> = own.flat_map(|trial| trial.checks.iter().copied()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        point.checks = numbers;
    }
    paper.checks = checks;
}

fn check(rule: &Rule, paper: &Paper) -> Check {
    let finding = |place: Spot, value: Option<Text>| value.map(|value| Finding { place, value });
    let findings = match rule.find {
        Find::Trial(find) => paper
            .trials
            .iter()
            .filter_map(|trial| finding(Spot::trial(&trial.label), find(trial)))
            .collect(),
        Find::EnglishTrial(find) => paper
            .trials
            .iter()
            .filter_map(|trial| finding(Spot::trial(&trial.label), find(trial).map(Text::from)))
            .collect(),
        Find::Target(find) => paper
            .targets
            .iter()
            .filter_map(|target| finding(Spot::target(&target.label), find(target)))
            .collect(),
        Find::EnglishTarget(find) => paper
            .targets
            .iter()
            .filter_map(|target| finding(Spot::target(&target.label), find(target).map(Text::from)))
            .collect(),
        Find::Experiment(find) => paper
            .experiments
            .iter()
            .filter(|experiment| !experiment.points.is_empty())
            .filter_map(|experiment| finding(Spot::experiment(&experiment.name), find(experiment)))
            .collect(),
        Find::EnglishExperiment(find) => paper
            .experiments
            .iter()
            .filter(|experiment| !experiment.points.is_empty())
            .filter_map(|experiment| {
                finding(Spot::experiment(&experiment.name), find(experiment).map(Text::from))
            })
            .collect(),
        Find::Paper(find) => find(paper),
    };
    Check {
        number: 0,
        id: rule.id,
        group: rule.group,
        level: rule.level,
        rule: Text::of(rule.rule, &[]),
        meaning: Text::of(rule.meaning, &[]),
        advice: Text::of(rule.advice, &[]),
        lines: lines(&findings),
        findings,
    }
}

/// Places with the same value in one line: `trials 1, 4 and 5: 97 %`.
fn lines(findings: &[Finding]) -> Vec<Text> {
    let mut groups: Vec<(SpotKind, &Text, Vec<String>)> = Vec::new();
    for Finding { place, value } in findings {
        let same =
            |group: &&mut (SpotKind, &Text, Vec<String>)| (group.0, group.1) == (place.kind, value);
        match groups.iter_mut().find(same) {
            Some(group) => group.2.extend(place.names.iter().cloned()),
            None => groups.push((place.kind, value, place.names.clone())),
        }
    }
    let line = |(kind, value, names): (SpotKind, &Text, Vec<String>)| {
        let place = Spot { kind, names }.text();
        crate::say!("{place}: {value}", place = place, value = value)
    };
    groups.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_with_the_same_value_share_a_line() {
        let finding =
            |trial: &str, value: &str| Finding { place: Spot::trial(trial), value: value.into() };
        let findings = [finding("1", "97 %"), finding("2", "96 %"), finding("4", "97 %")];
        assert_eq!(lines(&findings), ["trials 1 and 4: 97 %", "trial 2: 96 %"]);
    }
}
