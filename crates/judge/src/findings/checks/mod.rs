//! Checks: what a careful reader would ask of the numbers, computed.
//!
//! A [`Rule`] is data: its id, its group, how much a finding weighs, what is expected, what it means
//! if it is not so, and what to do about it. Each file holds the rules of one group.
//!
//! Thresholds are named constants with their source. What is `None` fires nothing; what only a suite states
//! is marked "stated". The rules of families are in their crates. `doc/src/reference/checks.md` and
//! `checks.zh.md` next to it list all rules and are kept by a test; `tests/it/checks` has, for every id, a change
//! that makes it fire and one just alongside it that does not.

mod arithmetic;
mod disclosure;
mod effect;
pub(crate) mod generator;
mod nodes;
mod repetition;
mod same;
mod state;
mod truth;

pub use effect::Caveat;
pub use same::server_changed;

use super::verdict::veto;
use crate::evidence::*;
use crate::families::{KnownFamily, families};
use crate::format::{self, first_sentence};
use crate::messages::checks;
use dyno_facts::statistics::history::{self, FAMILY_ALPHA, HistoryMark, PlacedFigure};
use dyno_facts::statistics::ratio::{LEAST_PAIRS, MOST_VARIATION};
use dyno_facts::statistics::{ALPHA, is_below_noise, mean, mean_interval, median, variation};
use dyno_facts::{
    CheckTexts, CheckVerdict, DataFacts, Environment, ExperimentFacts, GeneratorConditions,
    GeneratorMember, KindSummary, Lang, LatencySummary, Message, NodeConditions, NodeFacts,
    Purpose, Role, Route, SAMPLES_BEYOND, ServerFacts, StatementCounts, TargetFacts, TrialStatus,
    TrialSummary, has_secret, say,
};
use dyno_store::{RunData, TrialData};
use nodes::{conflicts, joined_shards};
use same::{ROWS_TIMES_OF_ESTIMATES, TargetPair, has_copy, has_unknown_statements};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A check as data.
pub struct Rule {
    pub texts: CheckTexts,
    pub group: Group,
    pub level: Level,
    pub(crate) find: Find,
}

/// Declares [`Find`] and, for each of its kinds, the function that makes a rule of it.
macro_rules! kinds_of_rules {
    ($($(#[$doc:meta])* $seen:vis $name:ident: $kind:ident($find:ty),)+) => {
        /// Search for findings: in one item after the other, or in the whole.
        pub(crate) enum Find {
            $($(#[$doc])* $kind($find),)+
        }

        impl Rule {
            $($seen const fn $name(group: Group, level: Level, texts: CheckTexts, find: $find) -> Rule {
                Rule { texts, group, level, find: Find::$kind(find) }
            })+
        }
    };
}

kinds_of_rules! {
    pub trial: Trial(fn(&Trial) -> Option<Message>),
    pub(crate) trial_of_case: TrialOfCase(fn(&Case<'_>, &Trial) -> Option<Message>),
    pub target: Target(fn(&PaperTarget) -> Option<Message>),
    /// A rule for targets that were measured.
    pub(crate) target_of_case: TargetOfCase(fn(&Case<'_>, &PaperTarget) -> Option<Message>),
    /// A rule for experiments that have measured something.
    pub experiment: Experiment(fn(&Experiment) -> Option<Message>),
    pub experiment_of_paper: ExperimentOfPaper(fn(&Evidence, &Experiment) -> Option<Message>),
    pub comparison: Comparison(fn(&PairedComparison) -> Option<Message>),
    /// A rule for windows without a reason to be unsteady.
    pub window: Window(fn(&SteadyRow) -> Option<Message>),
    pub run: Run(fn(&RunData) -> Option<Message>),
    /// A rule for pairs of targets of an experiment.
    pub(crate) pair: Pair(fn(&TargetPair<'_>) -> Option<Message>),
    pub evidence: Evidence(fn(&Evidence) -> Vec<Finding>),
    /// Needs more than the model holds.
    pub(crate) case: Case(fn(&Case<'_>) -> Vec<Finding>),
}

/// The rules of every paper, by group but for those about nodes; those of families are with their sections.
const RULES: [&[Rule]; 9] = [
    generator::RULES,
    state::TIME_RULES,
    repetition::RULES,
    same::RULES,
    state::RULES,
    truth::RULES,
    arithmetic::RULES,
    disclosure::RULES,
    nodes::RULES,
];

/// The ids of all checks, for `--deny` and `--allow`, in no order that matters.
pub fn check_ids() -> Vec<&'static str> {
    let rules = RULES.into_iter().chain(families().map(|family| family.rules()));
    rules.flatten().map(|rule| rule.texts.id).collect()
}

/// Makes all checks. Those that found something come first, the gravest first, accepted ones after the others.
pub fn run_checks(evidence: &Evidence, verdicts: &Verdicts, runs: &[RunData]) -> Vec<Check> {
    let families = families().filter(|family| {
        let mut trials = evidence.trials.iter();
        trials.any(|trial| KnownFamily::from_summary(&trial.summary) == Some(*family))
    });
    let case = Case { evidence, verdicts, runs };
    let rules = RULES.into_iter().chain(families.map(|family| family.rules())).flatten();
    let mut checks: Vec<Check> = rules.map(|rule| run_check(rule, &case)).collect();
    checks.sort_by_key(|check| (check.findings.is_empty(), check.is_accepted, check.level));
    for (index, check) in checks.iter_mut().enumerate() {
        check.number = index + 1;
    }
    checks
}

/// Leaves the numbers of checks at what they concern: a trial's at the trial and its point, those of
/// targets and experiments at the points, unless they only disclose.
pub fn attach_check_numbers(
    mut evidence: Evidence,
    mut verdicts: Verdicts,
    checks: &[Check],
) -> (Evidence, Verdicts) {
    for trial in &mut evidence.trials {
        let label = &trial.label;
        trial.checks = find_numbers(checks, |_, spot| {
            spot.kind == SpotKind::Trial && spot.names.contains(label)
        });
    }
    for experiment in &mut evidence.experiments {
        let experiment_spot = SpotKind::Experiment.at(&experiment.name);
        for point in &mut experiment.points {
            point.checks = find_numbers(checks, |check, spot| match spot.kind {
                SpotKind::Trial => spot.names.iter().any(|name| point.trials.contains(name)),
                SpotKind::Target => check.level < Level::I && spot.names.contains(&point.target),
                SpotKind::Experiment => check.level < Level::I && *spot == experiment_spot,
                SpotKind::Run | SpotKind::Comparison => false,
            });
        }
    }
    for comparison in &mut verdicts.comparisons {
        comparison.checks = find_numbers(checks, |check, spot| match spot.kind {
            SpotKind::Target | SpotKind::Experiment => {
                check.level < Level::I && comparison.has(spot)
            }
            _ => comparison.has(spot),
        });
    }
    (evidence, verdicts)
}

/// The numbers of the checks with a finding that `is_concerned`.
fn find_numbers(checks: &[Check], is_concerned: impl Fn(&Check, &Spot) -> bool) -> Vec<usize> {
    let findings = checks
        .iter()
        .filter(|check| check.findings.iter().any(|finding| is_concerned(check, &finding.place)));
    findings.map(|check| check.number).collect()
}

fn run_check(rule: &Rule, case: &Case<'_>) -> Check {
    let findings = apply_rule(rule, case);
    let CheckTexts { id, rule: expected, meaning, advice } = rule.texts;
    let is_accepted = !findings.is_empty()
        && !case.runs.is_empty()
        && case.runs.iter().all(|run| run.header.allowed.iter().any(|allowed| allowed == id));
    let [expected, meaning, advice] = [expected, meaning, advice].map(|text| Message::of(text, []));
    Check {
        number: 0,
        id,
        group: rule.group,
        level: rule.level,
        rule: expected,
        meaning,
        advice,
        effect: Effect::from_findings(rule, &findings, case.evidence),
        is_accepted,
        lines: lines(&findings, case.evidence.trials.len()),
        findings,
    }
}

fn apply_rule(rule: &Rule, case: &Case<'_>) -> Vec<Finding> {
    let evidence = case.evidence;
    let at_trial = |trial: &Trial| SpotKind::Trial.at(&trial.label);
    let at_target = |target: &PaperTarget| SpotKind::Target.at(&target.label);
    let at_experiment = |experiment: &Experiment| SpotKind::Experiment.at(&experiment.name);
    match rule.find {
        Find::Trial(find) => each(&evidence.trials, at_trial, find),
        Find::TrialOfCase(find) => each(&evidence.trials, at_trial, |trial| find(case, trial)),
        Find::Target(find) => each(&evidence.targets, at_target, find),
        Find::TargetOfCase(find) => {
            each(case.measured_targets(), at_target, |target| find(case, target))
        }
        Find::Experiment(find) => {
            let experiments = case.measured_experiments().filter(|experiment| {
                !experiment.family.is_some_and(|family| family.replaced().contains(&rule.texts.id))
            });
            each(experiments, at_experiment, find)
        }
        Find::ExperimentOfPaper(find) => {
            let experiments = case.measured_experiments();
            each(experiments, at_experiment, |experiment| find(evidence, experiment))
        }
        Find::Comparison(find) => {
            let comparisons = &case.verdicts.comparisons;
            each(comparisons, |comparison| SpotKind::Comparison.at(&comparison.name), find)
        }
        Find::Window(find) => {
            each(state::judged_windows(case), |row| SpotKind::Trial.at(&row.trial), find)
        }
        Find::Run(find) => {
            let runs = case.runs.iter().zip(&evidence.runs);
            each(runs, |(_, facts)| SpotKind::Run.at(&facts.folder), |(run, _)| find(run))
        }
        Find::Pair(find) => {
            // Once for all experiments in which it is the same.
            format::unique(each(&same::pairs(case), |pair| Spot::targets(pair.labels()), find))
        }
        Find::Evidence(find) => find(evidence),
        Find::Case(find) => find(case),
    }
}

/// Findings of `find` for one item after the other.
fn each<T: Copy>(
    items: impl IntoIterator<Item = T>,
    place: impl Fn(T) -> Spot,
    find: impl Fn(T) -> Option<Message>,
) -> Vec<Finding> {
    let items = items.into_iter();
    items.filter_map(|item| Some(Finding::new(place(item), find(item)?))).collect()
}

/// Trials in more stretches than these are counted instead of listed.
const MAX_LISTED_RANGES: usize = 3;

/// Joins places with the same value in one line: `trials 1, 4 and 5: 97%`. Many trials are counted instead of listed.
fn lines(findings: &[Finding], trial_count: usize) -> Vec<Message> {
    let mut groups: Vec<(SpotKind, &Message, Vec<String>)> = Vec::new();
    for Finding { place, value, .. } in findings {
        // Several targets are one finding: joined with others they would be compared wrongly.
        let is_single = place.names.len() == 1;
        let group =
            groups.iter_mut().find(|group| is_single && (group.0, group.1) == (place.kind, value));
        match group {
            Some(group) => group.2.extend(place.names.iter().cloned()),
            None => groups.push((place.kind, value, place.names.clone())),
        }
    }
    let lines = groups.into_iter().map(|(kind, value, names)| {
        let listed = if kind == SpotKind::Trial { ranges(&names) } else { names.clone() };
        let place = if kind == SpotKind::Trial && listed.len() > MAX_LISTED_RANGES {
            let affected = names.len().to_string();
            say!(trials_of_all, found = affected, all = trial_count.to_string())
        } else {
            Spot { kind, names: listed }.text()
        };
        say!(place_value, place, value)
    });
    lines.collect()
}

/// Labels of trials with three and more in a row as a range: `1–7`, `2/3–2/9`.
fn ranges(labels: &[String]) -> Vec<String> {
    let rows = labels.chunk_by(|a, b| match (split_label(a), split_label(b)) {
        (Some((run_a, a)), Some((run_b, b))) => run_a == run_b && b == a + 1,
        _ => false,
    });
    let mut ranges = Vec::new();
    for row in rows {
        match row {
            [first, _, .., last] => ranges.push(format!("{first}–{last}")),
            few => ranges.extend_from_slice(few),
        }
    }
    ranges
}

/// The run and the number of a trial by its label; the run is empty if there is only one.
fn split_label(label: &str) -> Option<(&str, u32)> {
    let (run, number) = label.rsplit_once('/').unwrap_or(("", label));
    Some((run, number.parse().ok()?))
}

/// Returns each target with its distinct values, such as `warehouses: main 1, 2, other 1`; `None` if all targets have
/// equal ones.
pub fn differing_values<'a>(
    name: Option<Message>,
    values: impl IntoIterator<Item = (&'a str, Message)>,
) -> Option<Message> {
    let mut targets: Vec<(&str, Vec<Message>)> = Vec::new();
    for (target, value) in values {
        match targets.iter_mut().find(|(known, _)| *known == target) {
            Some((_, values)) if values.contains(&value) => {}
            Some((_, values)) => values.push(value),
            None => targets.push((target, vec![value])),
        }
    }
    let are_equal = targets.iter().all(|(_, values)| *values == targets[0].1);
    let texts = targets.iter().map(|(target, values)| {
        let values = Message::joined(values, ", ", "、");
        say!(target_values, target = *target, values)
    });
    let values = Message::joined(&texts.collect::<Vec<_>>(), ", ", "，");
    (!are_equal).then(|| match name {
        Some(name) => say!(name_values, name, values),
        None => values,
    })
}

/// Evidence that has several parts, set apart by semicolons; `None` without any.
pub fn parts(texts: impl IntoIterator<Item = Message>) -> Option<Message> {
    join_texts(texts, "; ", "；")
}

/// Evidence with parts set apart by commas: names and settings.
fn commas(names: impl IntoIterator<Item = impl Into<Message>>) -> Option<Message> {
    join_texts(names.into_iter().map(Into::into), ", ", "、")
}

/// Evidence as a list; `None` without any.
fn list(texts: impl IntoIterator<Item = Message>) -> Option<Message> {
    let texts: Vec<Message> = texts.into_iter().collect();
    (!texts.is_empty()).then(|| Message::list(&texts))
}

fn join_texts(texts: impl IntoIterator<Item = Message>, en: &str, zh: &str) -> Option<Message> {
    let texts: Vec<Message> = texts.into_iter().collect();
    (!texts.is_empty()).then(|| Message::joined(&texts, en, zh))
}

/// A share with its sign: `97%`.
fn percent(share: f64) -> Message {
    Message::verbatim(format!("{}%", format::percent(share)))
}

/// A share that is larger than it should be, with as many digits as show that.
fn above(share: Option<f64>, bound: f64) -> Option<Message> {
    const MAX_DIGITS: usize = 6;
    let share = share.filter(|share| *share > bound)?;
    let longer = (1..=MAX_DIGITS).map(|digits| format!("{:.digits$}", 100.0 * share));
    let text = std::iter::once(format::percent(share))
        .chain(longer)
        .find(|text| text.parse::<f64>().is_ok_and(|shown| shown > 100.0 * bound));
    Some(text.map_or_else(|| percent(share), |text| Message::verbatim(format!("{text}%"))))
}

impl Judgment {
    /// Checks that found something and that a run denies: it ends with exit code 4.
    pub fn denied(&self) -> Vec<&Check> {
        let denied = self.checks.iter().filter(|check| {
            let mut ids = self.runs.iter().flat_map(|run| &run.header.denied);
            !check.findings.is_empty() && ids.any(|id| id == check.id)
        });
        denied.collect()
    }

    /// Checks among these numbers whose findings forbid figures: level E, and accepted by no one.
    pub fn forbidding<'a>(&'a self, numbers: &'a [usize]) -> impl Iterator<Item = &'a Check> {
        self.checks.iter().filter(|check| {
            check.level == Level::E && !check.is_accepted && numbers.contains(&check.number)
        })
    }

    /// Checks of a level that found something which no one has accepted.
    pub fn open_checks(&self, level: Level) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(move |check| check.level == level && check.is_open())
    }

    /// Number of findings of each level: E, W, I.
    pub fn check_counts(&self) -> [usize; 3] {
        [Level::E, Level::W, Level::I].map(|level| self.open_checks(level).count())
    }

    /// The findings as lines for a terminal: in full if they make figures unusable, a line for
    /// each caveat, what only discloses by its ids. Ends with a newline; empty when no check was made.
    pub fn checks_text(&self, lang: Lang) -> String {
        if self.checks.is_empty() {
            return String::new();
        }
        let [errors, caveats, remarks] = self.check_counts().map(|count| count.to_string());
        let mut lines = vec![say!(
            check_counts_by_level,
            made = self.checks.len().to_string(),
            errors,
            caveats,
            remarks
        )];
        lines.extend(self.open_checks(Level::E).flat_map(in_full));
        lines.extend(self.open_checks(Level::W).map(in_a_line));
        let accepted = self.checks.iter().filter(|check| check.is_accepted);
        lines.extend(numbered_ids(self.open_checks(Level::I)).map(|ids| say!(i_ids, ids)));
        lines.extend(numbered_ids(accepted).map(|ids| say!(accepted_ids, ids)));
        lines.iter().map(|line| line.line(lang) + "\n").collect()
    }
}

/// The ids of checks with their numbers, as in the columns of notes; `None` without any.
fn numbered_ids<'a>(checks: impl Iterator<Item = &'a Check>) -> Option<Message> {
    list(checks.map(|check| {
        Message::verbatim(format!("{} ({:?}{})", check.id, check.level, check.number))
    }))
}

/// The expectation, the places at which it failed, and the remedy.
fn in_full(check: &Check) -> Vec<Message> {
    const MAX_LINES: usize = 4;
    let hidden_lines = check.lines.len().checked_sub(MAX_LINES).filter(|n| *n > 0);
    let hidden_lines = hidden_lines.map(|n| say!(and_more_lines, n));
    let texts = check.lines.iter().take(MAX_LINES).chain(&hidden_lines).chain([&check.advice]);
    let mut lines = vec![say!(e_id_rule, number = check.number, id = check.id, rule = &check.rule)];
    lines.extend(texts.map(|text| say!(line, line = text)));
    lines
}

fn in_a_line(check: &Check) -> Message {
    let first = check.lines.first().cloned().unwrap_or_default();
    match check.lines.len() {
        0 | 1 => say!(w_id_first, number = check.number, id = check.id, first),
        line_count => say!(
            w_id_first_more,
            number = check.number,
            id = check.id,
            first,
            more = say!(and_more_lines, n = line_count as u64 - 1)
        ),
    }
}

/// The material of a paper before its checks.
pub(crate) struct Case<'a> {
    pub(crate) evidence: &'a Evidence,
    pub(crate) verdicts: &'a Verdicts,
    pub(crate) runs: &'a [RunData],
}

impl<'a> Case<'a> {
    /// The run that a trial or target of this number belongs to.
    fn run(&self, number: usize) -> Option<&'a RunData> {
        self.runs.get(number.checked_sub(1)?)
    }

    /// The facts of a target in its run's header.
    fn facts(&self, target: &PaperTarget) -> Option<&'a TargetFacts> {
        self.run(target.run)?.header.targets.iter().find(|facts| facts.name == target.facts.name)
    }

    /// The plans of an experiment, one for each run that has it.
    fn plans(&self, experiment: &Experiment) -> Vec<&'a ExperimentFacts> {
        let plans = self.runs.iter().flat_map(|run| &run.header.experiments);
        plans.filter(|facts| facts.name == experiment.name).collect()
    }

    /// The trials of an experiment on all targets.
    fn trials(&self, experiment: &Experiment) -> Vec<&'a Trial> {
        let trials = self.evidence.trials.iter();
        trials.filter(|trial| trial.summary.experiment == experiment.name).collect()
    }

    fn measured_targets(&self) -> impl Iterator<Item = &'a PaperTarget> {
        let Evidence { targets, trials, .. } = self.evidence;
        targets.iter().filter(move |target| trials.iter().any(|trial| trial.target == target.label))
    }

    /// The experiment of a trial, if it has measured something.
    fn experiment(&self, trial: &Trial) -> Option<&'a Experiment> {
        self.measured_experiments().find(|experiment| experiment.name == trial.summary.experiment)
    }

    fn target_facts(&self, trial: &Trial) -> Option<&'a TargetFacts> {
        self.facts(self.evidence.targets.iter().find(|target| target.label == trial.target)?)
    }

    /// Experiments that have measured something.
    fn measured_experiments(&self) -> impl Iterator<Item = &'a Experiment> {
        self.evidence.experiments.iter().filter(|experiment| !experiment.points.is_empty())
    }
}

/// The load generator's conditions, if they were collected at all: older runs have none.
fn generator(trial: &Trial) -> Option<&GeneratorConditions> {
    let conditions = &trial.summary.conditions.generator;
    (*conditions != GeneratorConditions::default()).then_some(conditions)
}

/// Findings of `find` for the load generators of a trial, each with its name if there are several.
fn each_generator(
    trial: &Trial,
    find: impl Fn(&GeneratorConditions) -> Option<Message>,
) -> Option<Message> {
    each_member(trial, |member| find(&member.conditions), || find(generator(trial)?))
}

/// Findings of `find` for the load generators of a fleet, each with its name; without a fleet that of `find_alone`.
fn each_member(
    trial: &Trial,
    find: impl Fn(&GeneratorMember) -> Option<Message>,
    find_alone: impl FnOnce() -> Option<Message>,
) -> Option<Message> {
    let members = &trial.summary.conditions.members;
    if members.is_empty() {
        return find_alone();
    }
    // A lost one says nothing more.
    let findings = members.iter().filter(|member| member.lost.is_none()).filter_map(|member| {
        let value = find(member)?;
        Some(say!(node_value, node = &member.name, value))
    });
    parts(findings)
}

/// Findings of `find` for the nodes of a trial, each with its name if there are several.
fn each_node(trial: &Trial, find: impl Fn(&NodeConditions) -> Option<Message>) -> Option<Message> {
    let is_single = trial.summary.conditions.nodes.len() == 1;
    let findings = nodes_of(trial).filter_map(|(name, node)| {
        let value = find(node)?;
        Some(if is_single { value } else { say!(node_value, node = name, value) })
    });
    parts(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_with_the_same_value_share_a_line() {
        let finding =
            |trial: &str, value: &str| Finding::new(SpotKind::Trial.at(trial), value.into());
        let findings = [finding("1", "97%"), finding("2", "96%"), finding("4", "97%")];
        assert_eq!(lines(&findings, 9), ["trials 1 and 4: 97%", "trial 2: 96%"]);
        let labels = ["1", "2", "3", "5", "6", "2/1", "2/2", "2/3"].map(str::to_owned);
        assert_eq!(ranges(&labels), ["1–3", "5", "6", "2/1–2/3"]);
    }

    #[test]
    fn no_two_checks_share_an_id_and_each_says_what_to_do() {
        let mut ids = check_ids();
        ids.sort_unstable();
        let count = ids.len();
        ids.dedup();
        assert_eq!(ids.len(), count);
        for rule in RULES.into_iter().flatten() {
            let CheckTexts { id, rule, meaning, advice } = rule.texts;
            for text in [rule.en, meaning.en, advice.en] {
                assert!(text.ends_with('.'), "{id}: {text}");
            }
        }
        for (rules, group) in RULES.iter().zip([
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
