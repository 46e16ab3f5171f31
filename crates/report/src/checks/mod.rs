//! Checks: what a careful reader would ask of the numbers, computed.
//!
//! A [`Rule`] is data: its id, its group, how much a finding weighs, what is expected, what it means
//! where it is not so, and what to do about it. Each file holds the rules of one group.

mod disclosure;
mod generator;
mod repetition;
mod same;
mod sides;
mod state;
mod time;
mod truth;
mod workload;

mod arithmetic;
mod case;

pub(crate) use case::Case;

use crate::model::{
    Check, Experiment, Finding, Group, Level, Paper, Spot, SpotKind, Target, Trial,
};
use crate::text::{Lang, Text};
use crate::{format, say, tpcc, tpch};
use dyno_store::RunData;

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
    /// One value per experiment that has measured something.
    Experiment(fn(&Experiment) -> Option<Text>),
    Paper(fn(&Paper) -> Vec<Finding>),
    /// What needs more than the model holds.
    Case(fn(&Case<'_>) -> Vec<Finding>),
}

/// The rules of every paper, by group; those of TPC-C and TPC-H are with their sections.
const GROUPS: [&[Rule]; 8] = [
    generator::RULES,
    time::RULES,
    repetition::RULES,
    same::RULES,
    state::RULES,
    truth::RULES,
    arithmetic::RULES,
    disclosure::RULES,
];

/// The ids of all checks, for `--deny` and `--allow`, in no order that matters.
pub fn check_ids() -> Vec<&'static str> {
    let of_families = [tpcc::RULES, tpch::RULES];
    GROUPS.iter().chain(&of_families).flat_map(|rules| rules.iter()).map(|rule| rule.id).collect()
}

/// Makes all checks and leaves their numbers at the trials and points that they concern. Checks
/// that found something come first, the gravest first, accepted ones after the others.
pub(crate) fn make(paper: &mut Paper, runs: &[RunData]) {
    let is_tpcc = paper.experiments.iter().any(|experiment| experiment.tpcc.is_some());
    let is_tpch = paper.experiments.iter().any(|experiment| experiment.tpch.is_some());
    let of_tpcc = if is_tpcc { tpcc::RULES } else { &[] };
    let of_tpch = if is_tpch { tpch::RULES } else { &[] };
    let case = Case { paper, runs };
    let rules = GROUPS.iter().flat_map(|rules| rules.iter()).chain(of_tpcc).chain(of_tpch);
    let mut checks: Vec<Check> = rules.map(|rule| check(rule, &case)).collect();
    checks.sort_by_key(|check| (check.findings.is_empty(), check.is_accepted, check.level));
    for (index, check) in checks.iter_mut().enumerate() {
        check.number = index + 1;
    }
    mark(paper, &checks);
    paper.checks = checks;
}

/// Leaves the numbers of checks at what they concern: a trial's at the trial and its point, those of
/// targets and experiments at the points, unless they only disclose.
fn mark(paper: &mut Paper, checks: &[Check]) {
    let numbers = |concerns: &dyn Fn(&Check, &Spot) -> bool| -> Vec<usize> {
        let is_found =
            |check: &&Check| check.findings.iter().any(|finding| concerns(check, &finding.place));
        checks.iter().filter(is_found).map(|check| check.number).collect()
    };
    for trial in &mut paper.trials {
        let label = &trial.label;
        trial.checks =
            numbers(&|_, spot| spot.kind == SpotKind::Trial && spot.names.contains(label));
    }
    for experiment in &mut paper.experiments {
        let of_experiment = Spot::experiment(&experiment.name);
        for point in &mut experiment.points {
            point.checks = numbers(&|check, spot| match spot.kind {
                SpotKind::Trial => spot.names.iter().any(|name| point.trials.contains(name)),
                SpotKind::Target => check.level < Level::I && spot.names.contains(&point.target),
                SpotKind::Experiment => check.level < Level::I && *spot == of_experiment,
                SpotKind::Run | SpotKind::Comparison => false,
            });
        }
    }
    for comparison in &mut paper.verdicts {
        let (place, experiment) =
            (Spot::comparison(&comparison.name), Spot::experiment(&comparison.experiment));
        let sides = [&comparison.baseline, &comparison.candidate];
        comparison.checks = numbers(&|check, spot| match spot.kind {
            SpotKind::Trial => {
                comparison.pairs.iter().flatten().any(|trial| spot.names.contains(trial))
            }
            SpotKind::Target => {
                check.level < Level::I && spot.names.iter().all(|name| sides.contains(&name))
            }
            SpotKind::Experiment => check.level < Level::I && *spot == experiment,
            SpotKind::Comparison => *spot == place,
            SpotKind::Run => false,
        });
    }
}

fn check(rule: &Rule, case: &Case<'_>) -> Check {
    let findings = findings(rule, case);
    let accepts = |run: &RunData| run.header.allowed.iter().any(|id| id == rule.id);
    let is_accepted =
        !findings.is_empty() && !case.runs.is_empty() && case.runs.iter().all(accepts);
    let mut lines = lines(&findings);
    if is_accepted {
        lines.push(say!("Accepted by whoever made the run."));
    }
    Check {
        number: 0,
        id: rule.id,
        group: rule.group,
        level: rule.level,
        rule: Text::of(rule.rule, &[]),
        meaning: Text::of(rule.meaning, &[]),
        advice: Text::of(rule.advice, &[]),
        is_accepted,
        findings,
        lines,
    }
}

fn findings(rule: &Rule, case: &Case<'_>) -> Vec<Finding> {
    let paper = case.paper;
    let trials = |find: &dyn Fn(&Trial) -> Option<Text>| -> Vec<Finding> {
        let place = |trial: &Trial| Spot::trial(&trial.label);
        paper.trials.iter().filter_map(|trial| found(place(trial), find(trial))).collect()
    };
    let targets = |find: &dyn Fn(&Target) -> Option<Text>| -> Vec<Finding> {
        let place = |target: &Target| Spot::target(&target.label);
        paper.targets.iter().filter_map(|target| found(place(target), find(target))).collect()
    };
    let experiments = |find: &dyn Fn(&Experiment) -> Option<Text>| -> Vec<Finding> {
        let place = |experiment: &Experiment| Spot::experiment(&experiment.name);
        let measured = paper.experiments.iter().filter(|experiment| !experiment.points.is_empty());
        measured.filter_map(|experiment| found(place(experiment), find(experiment))).collect()
    };
    match rule.find {
        Find::Trial(find) => trials(&find),
        Find::Target(find) => targets(&find),
        Find::Experiment(find) => experiments(&find),
        Find::Paper(find) => find(paper),
        Find::Case(find) => find(case),
    }
}

fn found(place: Spot, value: Option<Text>) -> Option<Finding> {
    value.map(|value| Finding { place, value })
}

/// Places with the same value in one line: `trials 1, 4 and 5: 97 %`.
fn lines(findings: &[Finding]) -> Vec<Text> {
    let mut groups: Vec<(SpotKind, &Text, Vec<String>)> = Vec::new();
    for Finding { place, value } in findings {
        // Several targets are one finding: joined with others they would be compared wrongly.
        let is_single = place.names.len() == 1;
        let same = |group: &&mut (SpotKind, &Text, Vec<String>)| {
            is_single && (group.0, group.1) == (place.kind, value)
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.2.extend(place.names.iter().cloned()),
            None => groups.push((place.kind, value, place.names.clone())),
        }
    }
    let line = |(kind, value, names): (SpotKind, &Text, Vec<String>)| {
        let place = Spot { kind, names }.text();
        say!("{place}: {value}", place = place, value = value)
    };
    groups.into_iter().map(line).collect()
}

/// Evidence that has several parts, set apart by semicolons; `None` without any.
pub(crate) fn parts(texts: Vec<Text>) -> Option<Text> {
    (!texts.is_empty()).then(|| Text::joined(&texts, "; ", "；"))
}

/// A share with its sign: `97 %`.
fn percent(share: f64) -> Text {
    Text::same(format!("{} %", format::percent(share)))
}

impl Paper {
    /// Checks that found something and that a run denies: it ends with exit code 4.
    pub fn denied(&self) -> Vec<&Check> {
        let denies = |id: &str| {
            let mut denied = self.runs.iter().flat_map(|run| &run.header.denied);
            denied.any(|denied| denied == id)
        };
        self.checks.iter().filter(|check| !check.findings.is_empty() && denies(check.id)).collect()
    }

    /// How many checks of each level found something that nobody has accepted: E, W, I.
    pub fn check_counts(&self) -> [usize; 3] {
        [Level::E, Level::W, Level::I].map(|level| {
            let is_open = |check: &&Check| {
                check.level == level && !check.findings.is_empty() && !check.is_accepted
            };
            self.checks.iter().filter(is_open).count()
        })
    }

    /// What the checks found, as lines for a terminal: the gravest first, what only discloses in one
    /// line by their ids. Ends with a newline; empty when no check was made.
    pub fn checks_text(&self, lang: Lang) -> String {
        const MOST_LINES: usize = 4;
        let told = |text: Text| text.in_lang(lang).to_owned();
        let [errors, warnings, remarks] = self.check_counts().map(|count| count.to_string());
        let made = self.checks.len().to_string();
        let mut lines = match self.checks.is_empty() {
            true => return String::new(),
            false => vec![told(say!(
                "{made} checks: {errors} make figures unusable (E), {warnings} are caveats (W), {remarks} are disclosed (I).",
                made = made,
                errors = errors,
                warnings = warnings,
                remarks = remarks
            ))],
        };
        let found = self.checks.iter().filter(|check| !check.findings.is_empty());
        let (grave, light): (Vec<&Check>, Vec<&Check>) =
            found.partition(|check| check.level < Level::I && !check.is_accepted);
        for check in grave {
            lines.push(format!("{:?} {}: {}", check.level, check.id, check.rule.in_lang(lang)));
            for line in check.lines.iter().take(MOST_LINES) {
                lines.push(format!("    {}", line.in_lang(lang)));
            }
            if let Some(more) = check.lines.len().checked_sub(MOST_LINES).filter(|more| *more > 0) {
                let more = Text::count(more as u64, "and {n} more line", "and {n} more lines");
                lines.push(format!("    {}", told(more)));
            }
            lines.push(format!("    {}", check.advice.in_lang(lang)));
        }
        let ids = |is_accepted: bool| {
            let own = light.iter().filter(|check| check.is_accepted == is_accepted);
            let ids: Vec<Text> = own.map(|check| Text::same(check.id)).collect();
            (!ids.is_empty()).then(|| Text::list(&ids))
        };
        lines.extend(ids(false).map(|ids| told(say!("I: {ids}.", ids = ids))));
        lines.extend(ids(true).map(|ids| told(say!("Accepted: {ids}.", ids = ids))));
        lines.join("\n") + "\n"
    }
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

    #[test]
    fn no_two_checks_share_an_id_and_each_says_what_to_do() {
        let all = || GROUPS.iter().flat_map(|rules| rules.iter());
        let mut ids = check_ids();
        ids.sort_unstable();
        let count = ids.len();
        ids.dedup();
        assert_eq!(ids.len(), count);
        for rule in all() {
            for text in [rule.rule, rule.meaning, rule.advice] {
                assert!(text.ends_with('.'), "{}: {text}", rule.id);
                assert!(crate::text::chinese(text).is_some(), "{}: {text}", rule.id);
            }
        }
        for (rules, group) in GROUPS.iter().zip([
            Group::A,
            Group::B,
            Group::C,
            Group::D,
            Group::E,
            Group::F,
            Group::G,
            Group::H,
        ]) {
            assert!(rules.iter().all(|rule| rule.group == group), "{group:?}");
        }
    }
}
