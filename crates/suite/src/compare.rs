//! Work of an experiment beyond measuring its points once: compare targets in pairs, search for the
//! highest rate, confirm the best point, restore the data, pass gates. And `dyno run SUITE --compare A B`: a suite's
//! experiments on two targets, in pairs.

use crate::parse::is_name;
use crate::plan::Overrides;
use crate::reader::{Problem, Reader, SuiteError};
use crate::suite::{Node, Suite, SuiteExperiment, SuiteTarget, WithSpan};
use crate::targets::{self, twin_name};
use dyno_core::offer::{Levels, WorkloadOffer};
use dyno_facts::statistics::gate::{Gate, Objective};
use dyno_facts::statistics::{ALPHA, rank};
use dyno_facts::{
    ComparisonFacts, Design, ExperimentFacts, Message, RateSearch, Restore, Role, StopRule,
    TargetFacts, say,
};
use toml::de::DeValue;

/// Most pairs where a half-width ends the repetition, unless the suite says otherwise.
const PAIRS_MOST: u32 = 30;
/// Most pairs where a verdict ends the repetition.
const PAIRS_MOST_UNDECIDED: u32 = 200;
/// The half-width that ends concurrent trials, and how many of them there are, unless the suite says otherwise:
/// differences of 2 to 3% are then seen.
const TOGETHER_HALF_WIDTH: f64 = 0.012;
const TOGETHER_PAIRS: (u32, u32) = (8, 60);
/// Length of the concurrent trials that the command line asks for. Trials differ by about 1% more
/// than their intervals explain (`bench/together/RESULTS.md`): all intervals of one long trial would share that error.
const TOGETHER_TRIAL_S: f64 = 5.0;
/// Time that a concurrent trial takes in addition to its window.
const TOGETHER_OVERHEAD_S: f64 = 2.0;
/// Repeats of a starved trial of a comparison unless its suite states them.
const RETRIES: u32 = 2;
/// Trials that confirm the result of a search, unless the suite says otherwise.
const CONFIRMATIONS: u32 = 3;

#[derive(Clone, Debug)]
pub struct Compare {
    pub baseline: WithSpan<String>,
    /// The others; where `is_aa` the second clone of the baseline, if there is one.
    pub candidates: Vec<WithSpan<String>>,
    pub design: WithSpan<Design>,
    pub stop: WantedStop,
    /// An experiment before this one whose time is part of the budget, too.
    pub shares_budget_with: Option<String>,
    /// Ratios that differ from 1 by less are equivalent.
    pub equivalence: Option<f64>,
    /// Compares a system with itself, under another name or as its clone: the difference is noise.
    pub is_aa: bool,
}

/// When pairs end, as it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WantedStop {
    /// The fewest and the most.
    pub pairs: Option<(u32, u32)>,
    pub half_width: Option<f64>,
    pub is_until_decided: bool,
    pub budget_s: Option<f64>,
}

impl WantedStop {
    /// Without a number: the fewest pairs that can decide each of `comparisons` after Holm's correction, six of
    /// one; up to thirty where a half-width or a budget ends them, up to two hundred where a verdict does.
    ///
    /// `unit`: pairs that count as one, since they share a start of their servers; they are made to the last.
    ///
    /// Concurrent trials are short: unless the suite says otherwise, a narrow half-width ends them.
    fn rule(mut self, design: Design, comparisons: usize, unit: u32) -> StopRule {
        if design == Design::Together && self == WantedStop::default() {
            self.half_width = Some(TOGETHER_HALF_WIDTH);
            self.pairs = Some(TOGETHER_PAIRS);
        }
        let min_pairs = rank::least_count(ALPHA / comparisons.max(1) as f64) as u32 * unit;
        let max_pairs =
            match (self.is_until_decided, self.half_width.is_some() || self.budget_s.is_some()) {
                (true, _) => PAIRS_MOST_UNDECIDED,
                (false, true) => PAIRS_MOST.max(min_pairs),
                (false, false) => min_pairs,
            };
        let (pairs_least, pairs_most) = self.pairs.unwrap_or((min_pairs, max_pairs));
        let (pairs_least, pairs_most) =
            (pairs_least.next_multiple_of(unit), pairs_most.next_multiple_of(unit));
        let WantedStop { half_width, is_until_decided, budget_s, .. } = self;
        StopRule { pairs_least, pairs_most, half_width, is_until_decided, budget_s }
    }
}

/// Takes all keys of this, of an unknown workload as well; returns what is compared.
pub(crate) fn read(
    table: &mut Reader<'_, '_>,
    workload: Option<&WorkloadOffer>,
    facts: &mut ExperimentFacts,
) -> Option<Compare> {
    let compare = table.table("compare").and_then(read_compare);
    let gates = table.texts("gate").unwrap_or_default();
    for gate in &gates {
        if let Err(mistake) = gate.value.parse::<Gate>() {
            table.report(&gate.span, mistake.to_string(), mistake.hint.clone());
        }
    }
    facts.gates = WithSpan::values(gates);
    facts.search = read_search(table, workload);
    facts.confirm = read_confirm(table).unwrap_or(match facts.search {
        Some(_) => CONFIRMATIONS,
        None => 0,
    });
    facts.restore = match table.text("restore").map(|text| text.value) {
        None => Restore::None,
        Some(text) if text == "none" => Restore::None,
        Some(text) if text == "reload" => Restore::Reload,
        Some(command) => Restore::Command(command.into()),
    };
    read_renewals(table, facts);
    compare
}

/// Numbers of restarts of servers and reloads of data; one level lies within the other.
fn read_renewals(table: &mut Reader<'_, '_>, facts: &mut ExperimentFacts) {
    let spans = ["restart_each", "reload_each"].map(|key| table.key_span(key));
    facts.restart_each = read_each(table, "restart_each");
    facts.reload_each = read_each(table, "reload_each");
    let Some(span) = spans.into_iter().flatten().next() else { return };
    let (less, more) = (facts.restart_each.min(facts.reload_each), facts.pairs_per_unit());
    if less > 0 && !more.is_multiple_of(less) {
        let message = format!("{more} pairs are not a multiple of {less} pairs.");
        let hint = "`restart_each` must divide `reload_each`, or the other way round.";
        table.report(&span, message, hint);
    }
    if facts.reload_each > 0 && facts.restore.is_none() {
        facts.restore = Restore::Reload;
    }
}

/// `restart_each = "pair"`, or of how many pairs the first; 0 if it is not there.
fn read_each(table: &mut Reader<'_, '_>, key: &'static str) -> u32 {
    let pairs =
        table.parsed(key, "\"pair\", or a number of pairs from 1 to 100", |value| match value {
            DeValue::String(text) if text == "pair" => Some(1),
            DeValue::Integer(digits) => {
                digits.as_str().parse().ok().filter(|n| (1..=100).contains(n))
            }
            _ => None,
        });
    pairs.unwrap_or(0)
}

fn read_compare(mut table: Reader<'_, '_>) -> Option<Compare> {
    table.refuse_both(&[
        ("aa", "candidates", "With `aa` the baseline is measured twice."),
        (
            "half_width",
            "until_decided",
            "Each keeps its 5% of false positives only if it alone ends the pairs.",
        ),
    ]);
    let baseline = table.required_text("baseline", "Add `baseline = \"NAME\"`, a target.");
    let (is_aa, clone) = read_aa(&mut table);
    let candidates = table.texts("candidates");
    let form = "a number from 1 to 1000, or two such as \"6..20\", the smaller one first";
    let pairs = table.parsed("pairs", form, |value| pairs(value_text(value)?));
    let half_width = read_share(&mut table, "half_width");
    let equivalence = read_share(&mut table, "equivalence");
    let is_until_decided = table.flag("until_decided").unwrap_or(false);
    let span = table.key_span("design").unwrap_or(0..0);
    let design = table.parsed("design", "\"in_turn\" or \"together\"", |value| {
        Design::ALL.into_iter().find(|design| value_text(value) == Some(design.name()))
    });
    let design = WithSpan { value: design.unwrap_or_default(), span };
    let form = "a length of time such as \"90s\", \"30m\" or \"2h\"";
    let budget_s = table.parsed("budget", form, |value| {
        seconds(value_text(value)?).filter(|seconds| (1.0..=31_536_000.0).contains(seconds))
    });
    if !is_aa && candidates.as_ref().is_none_or(Vec::is_empty) {
        table.report_missing("candidates", "Add `candidates = [\"NAME\"]`, or `aa = true`.");
    }
    for candidate in candidates.iter().flatten().chain(&clone) {
        if baseline.as_ref().is_some_and(|baseline| baseline.value == candidate.value) {
            let hint = "To measure the noise, write `aa = true` instead of `candidates`.";
            let message = format!("`{}` is compared with itself.", candidate.value);
            table.report(&candidate.span, message, hint);
        }
    }
    table.finish(
        &[("candidates", "candidate"), ("baseline", "against"), ("pairs", "repeats")],
        |_, known| known,
    );
    let stop = WantedStop { pairs, half_width, is_until_decided, budget_s };
    let candidates = clone.map(|clone| vec![clone]).or(candidates).unwrap_or_default();
    let shares_budget_with = None;
    Some(Compare {
        baseline: baseline?,
        candidates,
        design,
        stop,
        shares_budget_with,
        equivalence,
        is_aa,
    })
}

/// Returns the reason why an experiment can't run on two targets concurrently: a fault, restart or restore would affect
/// one of them alone.
fn concurrency_problem(facts: &ExperimentFacts) -> Option<&'static str> {
    Some(match facts {
        _ if facts.is_renewed() || !facts.restore.is_none() => {
            "Targets that are measured together are neither restored nor restarted between trials."
        }
        _ if facts.fault.is_some() => "Targets that are measured together have no fault.",
        _ if facts.stage_s.is_some() => {
            "Trials of targets that are measured together have no stages."
        }
        _ if facts.duration_s.is_none() => {
            "Targets that are measured together need a `duration_s`."
        }
        _ => return None,
    })
}

fn check_together(compare: &Compare, facts: &ExperimentFacts) -> Result<(), Problem> {
    let problem = match compare.candidates.len() {
        0 => "One target can't be measured twice at once: name its clone, `aa = \"NAME\"`.",
        2.. => "Two targets are measured together, not more: name one candidate.",
        _ => match concurrency_problem(facts) {
            Some(problem) => problem,
            None => return Ok(()),
        },
    };
    Err(Problem::new(problem).hint("Or leave `design` out: trials are then made in turn."))
}

/// `aa = true`, or the name of a second clone of the baseline.
fn read_aa(table: &mut Reader<'_, '_>) -> (bool, Option<WithSpan<String>>) {
    let span = table.key_span("aa");
    let expected = "true, false, or the name of a target that is its clone";
    let read = table.parsed("aa", expected, |value| match value {
        DeValue::Boolean(is_aa) => Some((*is_aa, None)),
        DeValue::String(name) => {
            Some((true, Some(WithSpan { value: name.to_string(), span: span.clone()? })))
        }
        _ => None,
    });
    read.unwrap_or_default()
}

/// A text, or a number as it is written.
pub(crate) fn value_text<'v>(value: &'v DeValue<'_>) -> Option<&'v str> {
    match value {
        DeValue::String(text) => Some(text),
        DeValue::Integer(digits) => Some(digits.as_str()),
        DeValue::Float(digits) => Some(digits.as_str()),
        _ => None,
    }
}

/// Pairs as users write them: `6`, or the fewest and the most, `6..20`.
pub fn pairs(text: &str) -> Option<(u32, u32)> {
    let (least, most) = text.split_once("..").unwrap_or((text, text));
    let (least, most) = (pair_count(least)?, pair_count(most)?);
    (least <= most).then_some((least, most))
}

/// Returns a number of pairs from 1 to 1,000; white space around it is ignored.
fn pair_count(text: &str) -> Option<u32> {
    text.trim().parse().ok().filter(|n| (1..=1_000).contains(n))
}

/// `half_width = "2%"` or `0.02`.
fn read_share(table: &mut Reader<'_, '_>, key: &'static str) -> Option<f64> {
    let form = "a share such as \"2%\", from 0.01% to 50%";
    table.parsed(key, form, |value| share(value_text(value)?))
}

/// A half-width or a margin as users write it: `2%` or `0.02`; from 0.0001 to 0.5.
pub fn share(text: &str) -> Option<f64> {
    let text = text.trim();
    let number: f64 = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().ok()? / 100.0,
        None => text.parse().ok()?,
    };
    Some(number).filter(|number| (0.000_1..=0.5).contains(number))
}

/// A length of time as users write it: `90s`, `30m`, `2h`, `1d`, or a number of seconds.
pub fn seconds(text: &str) -> Option<f64> {
    let text = text.trim();
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let unit = match text[split..].trim() {
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3_600.0,
        "d" => 86_400.0,
        _ => return None,
    };
    let number: f64 = text[..split].trim().parse().ok()?;
    Some(number * unit).filter(|seconds| seconds.is_finite() && *seconds > 0.0)
}

fn read_search(table: &mut Reader<'_, '_>, workload: Option<&WorkloadOffer>) -> Option<RateSearch> {
    table.refuse_alone(&[
        ("start_rate", "objective", "It is a bound of a search: add an objective."),
        ("most_rate", "objective", "It is a bound of a search: add an objective."),
    ]);
    let objective = table.text("objective");
    let span = table.key_span("start_rate");
    let [start_rate, most_rate] =
        ["start_rate", "most_rate"].map(|key| table.number(key, 0.001..=100_000_000.0));
    let objective = objective?;
    if workload.is_some_and(|workload| workload.levels == Levels::Degrees) {
        let message = "A pass over queries has no rate that could be searched for.";
        table.report(&objective.span, message, "Leave `objective` out.");
    }
    if let Err(mistake) = objective.value.parse::<Objective>() {
        table.report(&objective.span, mistake.to_string(), mistake.hint.clone());
    }
    if let (Some(span), true) = (span, most_rate.is_some_and(|most| start_rate > Some(most))) {
        table.report(&span, "`start_rate` is higher than `most_rate`.", "");
    }
    Some(RateSearch { objective: objective.value, start_rate, most_rate })
}

/// `confirm = true`, or how often.
fn read_confirm(table: &mut Reader<'_, '_>) -> Option<u32> {
    table.parsed("confirm", "true, false, or a number of trials", |value| match value {
        DeValue::Boolean(is_wanted) => Some(if *is_wanted { CONFIRMATIONS } else { 0 }),
        DeValue::Integer(digits) => digits.as_str().parse().ok().filter(|number| *number <= 1_000),
        _ => None,
    })
}

/// Repeats of a starved trial. Comparisons repeat by default: repeating 5% of starved trials lifts the
/// power for 3% from 59 to 91%, at no cost in false positives (crates/facts/src/statistics/README.md).
pub(crate) fn retries(
    experiment: &SuiteExperiment,
    planned: &ExperimentFacts,
    overrides: &Overrides,
) -> u32 {
    // A rehearsal isn't evidence: what starved it is reported, and nothing is repeated.
    if overrides.shrink.is_some_and(|shrink| shrink < 1.0) {
        return 0;
    }
    // In a fleet, too: if one load generator stalls while the others continue, their sum measures nothing.
    // Concurrent trials are not repeated: a starved load generator affects both sides alike.
    let is_in_turn = planned.comparison.is_some() && !planned.is_together();
    let is_repeated = is_in_turn || overrides.by_fleet;
    experiment.retry_starved.unwrap_or(if is_repeated { RETRIES } else { 0 })
}

/// Plans what the experiment compares, of those targets that have a URL.
pub(crate) fn plan(
    experiment: &SuiteExperiment,
    planned: &mut ExperimentFacts,
    targets: &mut Vec<TargetFacts>,
    notes: &mut Vec<Message>,
) -> Result<(), Problem> {
    let Some(wanted) = &experiment.compare else { return Ok(()) };
    let baseline = &wanted.baseline.value;
    let candidates: Vec<String> = if wanted.is_aa && wanted.candidates.is_empty() {
        vec![twin_name(baseline)]
    } else {
        let names = wanted.candidates.iter().map(|candidate| candidate.value.clone());
        names.filter(|name| planned.targets.contains(name)).collect()
    };
    if !planned.targets.contains(baseline) || candidates.is_empty() {
        notes.push(say!(only_one_has_a_url, name = &planned.name));
        return Ok(());
    }
    if wanted.design.value == Design::Together {
        check_together(wanted, planned)?;
        // A smaller run has no shorter trials: they would tell less of a server's CPU.
        let full_s = experiment.facts.duration_s.unwrap_or(0.0);
        let least_s = TOGETHER_TRIAL_S.min(full_s);
        planned.duration_s = planned.duration_s.map(|seconds| seconds.max(least_s));
    }
    if wanted.is_aa && wanted.candidates.is_empty() {
        let twin = &candidates[0];
        let is_missing = !targets.iter().any(|target| target.name == *twin);
        let baseline = targets.iter().position(|target| target.name == *baseline);
        if let Some(at) = baseline.filter(|_| is_missing) {
            targets.insert(at + 1, targets::twin_target(&targets[at]));
        }
        planned.targets.push(twin.clone());
    }
    let levels = planned.degrees.len().max(planned.workers.len() * planned.rates.len().max(1));
    let unit = planned.pairs_per_unit();
    let comparisons = levels * candidates.len();
    let design = wanted.design.value;
    let stop = wanted.stop.rule(design, comparisons, unit);
    let min_pairs = rank::least_count(ALPHA / comparisons.max(1) as f64) as u32 * unit;
    if stop.pairs_most < min_pairs {
        let (name, pairs) = (&planned.name, stop.pairs_most);
        notes.push(say!(too_few_pairs, name, pairs, n = comparisons, least = min_pairs));
    }
    planned.comparison = Some(ComparisonFacts {
        baseline: baseline.clone(),
        candidates,
        is_aa: wanted.is_aa,
        design,
        stop,
        shares_budget_with: wanted.shares_budget_with.clone(),
        equivalence: wanted.equivalence,
        data_state: String::new(),
    });
    planned.repeats = stop.pairs_most;
    Ok(())
}

#[derive(Clone, Debug, PartialEq)]
pub struct Versus {
    pub baseline: String,
    /// The other; the same name measures the noise.
    pub candidate: String,
    /// A second clone of the baseline: its cost is compared too, as noise.
    pub control: Option<String>,
    /// Each experiment measures both in each of these ways, in this order. None: in the usual ways.
    pub ways: Vec<ComparisonWay>,
    /// Ratios that differ from 1 by less are equivalent.
    pub equivalence: Option<f64>,
}

/// A design with the rule that ends it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ComparisonWay {
    pub design: Design,
    pub stop: WantedStop,
    /// Added to those of the experiment.
    pub gates: Vec<String>,
}

/// A suite that names no target, with those of the command line: nothing is known of them but how to reach them.
pub(crate) fn take_targets(suite: &Suite, overrides: &Overrides) -> Result<Suite, SuiteError> {
    let mut extended = suite.clone();
    let with_url = overrides.targets.iter().map(|(name, _)| name);
    let with_nodes = overrides.nodes.iter().map(|(name, _)| name);
    with_url.chain(with_nodes).try_for_each(|name| add_target(&mut extended, "--target", name))?;
    Ok(extended)
}

/// Adds a target without further facts, unless the suite has it.
fn add_target(suite: &mut Suite, option: &str, name: &str) -> Result<(), SuiteError> {
    if !is_name(name) {
        let message = format!("`{option} {name}` does not name a target.");
        let hint = "Write `--target NAME=URL`; NAME has letters, digits, `.`, `_` and `-`.";
        return Err(Problem::new(message).hint(hint).into());
    }
    if suite.target(name).is_none() {
        suite.targets.push(SuiteTarget {
            name: without_place(name),
            product: None,
            facts: TargetFacts { name: name.to_owned(), ..TargetFacts::default() },
            nodes: vec![Node { name: None, role: Role::Primary, url: None }],
            route: None,
            nodes_span: 0..0,
        });
    }
    Ok(())
}

/// Two targets of the command line are compared, in the order in which they were given, unless experiments say what
/// they do with theirs.
pub(crate) fn pair(suite: &Suite) -> Option<Versus> {
    let [baseline, candidate] = &suite.targets[..] else { return None };
    let are_open = suite.experiments.iter().all(|experiment| {
        let facts = &experiment.facts;
        experiment.targets.is_none() && experiment.compare.is_none() && facts.search.is_none()
    });
    are_open.then(|| Versus {
        baseline: baseline.name.value.clone(),
        candidate: candidate.name.value.clone(),
        control: None,
        ways: Vec::new(),
        equivalence: None,
    })
}

/// Share of a budget for costs; the rest is for loading and for capacity.
const COST_SHARE: f64 = 0.4;

/// The ways in which both targets are compared, unless the user says otherwise: where costs can be read, first the cost
/// of a transaction, concurrently, then capacity, in turn.
fn usual_ways(versus: &Versus, overrides: &Overrides, experiments: usize) -> Vec<ComparisonWay> {
    let capacity = ComparisonWay::default();
    if !overrides.costs_are_readable || versus.candidate == versus.baseline {
        return vec![capacity];
    }
    let (least, most) = TOGETHER_PAIRS;
    let max_pairs = overrides.budget_s.map_or(most, |budget_s| {
        let trials_s = COST_SHARE * budget_s / experiments.max(1) as f64;
        let trials = (trials_s / (TOGETHER_TRIAL_S + TOGETHER_OVERHEAD_S)) as u32;
        trials.clamp(least, most)
    });
    let stop = WantedStop {
        pairs: Some((least, max_pairs)),
        half_width: Some(TOGETHER_HALF_WIDTH),
        ..WantedStop::default()
    };
    vec![ComparisonWay { design: Design::Together, stop, gates: Vec::new() }, capacity]
}

/// The suite as if each of its experiments compared the two. Names that it does not know become
/// targets without further facts.
pub(crate) fn apply(
    suite: &Suite,
    versus: &Versus,
    overrides: &Overrides,
    notes: &mut Vec<Message>,
) -> Result<Suite, SuiteError> {
    let mut names = vec![versus.baseline.clone()];
    if versus.candidate != versus.baseline {
        names.push(versus.candidate.clone());
    }
    names.extend(versus.control.clone());
    let mut changed = suite.clone();
    names.iter().try_for_each(|name| add_target(&mut changed, "--compare", name))?;
    changed.targets.retain(|target| names.contains(&target.name.value));
    let (chosen, left_out) = choose_experiments(suite, &names);
    if !left_out.is_empty() {
        notes.push(say!(repeated_loads_left_out, names = left_out.join(", ")));
    }
    let searches = chosen.iter().filter(|experiment| experiment.facts.search.is_some());
    let searches: Vec<&str> = searches.map(|experiment| experiment.name.value.as_str()).collect();
    if !searches.is_empty() {
        notes.push(say!(searches_are_no_pairs, names = searches.join(", ")));
    }
    changed.experiments.clear();
    let is_usual = versus.ways.is_empty();
    let ways =
        if is_usual { usual_ways(versus, overrides, chosen.len()) } else { versus.ways.clone() };
    for experiment in chosen {
        let possible = ways.iter().filter(|way| {
            way.design == Design::InTurn
                || !is_usual
                || concurrency_problem(&experiment.facts).is_none()
        });
        let ways: Vec<&ComparisonWay> = possible.collect();
        let last = ways.len().saturating_sub(1);
        let is_renamed = last > 0 || versus.control.is_some();
        let mut first = None;
        for (place, way) in ways.iter().enumerate() {
            let mut comparison = comparison_experiment(experiment, versus, way);
            if let Some(compare) =
                comparison.compare.as_mut().filter(|_| way.stop.budget_s.is_some())
            {
                compare.shares_budget_with.clone_from(&first);
            }
            first.get_or_insert_with(|| {
                format!("{}-{}", experiment.name.value, way.design.purpose())
            });
            // The data serve all ways.
            comparison.facts.prepare &= place == 0;
            comparison.facts.cleanup &= place == last;
            if is_renamed {
                append_to_name(&mut comparison, way.design.purpose());
            }
            changed.experiments.push(comparison);
        }
        let Some(clone) = &versus.control else { continue };
        let noise = Versus { candidate: clone.clone(), ..versus.clone() };
        for way in ways.into_iter().filter(|way| way.design == Design::Together) {
            let mut comparison = comparison_experiment(experiment, &noise, way);
            comparison.facts.gates.clear();
            comparison.compare.as_mut().expect("it compares").is_aa = true;
            append_to_name(&mut comparison, clone);
            changed.experiments.push(comparison);
        }
    }
    Ok(changed)
}

/// Tells comparisons of one experiment apart.
fn append_to_name(comparison: &mut SuiteExperiment, purpose: &str) {
    comparison.name.value = format!("{}-{purpose}", comparison.name.value);
    comparison.facts.name.clone_from(&comparison.name.value);
}

fn comparison_experiment(
    experiment: &SuiteExperiment,
    versus: &Versus,
    way: &ComparisonWay,
) -> SuiteExperiment {
    let is_aa = versus.candidate == versus.baseline;
    let candidates = if is_aa { Vec::new() } else { vec![without_place(&versus.candidate)] };
    let mut facts = experiment.facts.clone();
    facts.gates.extend(way.gates.iter().cloned());
    if way.design == Design::Together {
        facts.duration_s = facts.duration_s.map(|seconds| seconds.min(TOGETHER_TRIAL_S));
    }
    SuiteExperiment {
        facts,
        targets: None,
        read_only: Vec::new(),
        compare: Some(Compare {
            baseline: without_place(&versus.baseline),
            candidates,
            design: WithSpan { value: way.design, span: 0..0 },
            stop: way.stop,
            shares_budget_with: None,
            equivalence: versus.equivalence,
            is_aa,
        }),
        ..experiment.clone()
    }
}

/// A name that is not written in the suite's file.
fn without_place(name: &str) -> WithSpan<String> {
    WithSpan { value: name.to_owned(), span: 0..0 }
}

/// The experiments that are meant for one of the two targets; if none is, all of them, but each load
/// once: suites repeat loads for further targets. Experiments that share data stay together.
fn choose_experiments<'a>(
    suite: &'a Suite,
    names: &[String],
) -> (Vec<&'a SuiteExperiment>, Vec<String>) {
    let meant = suite.experiments.iter().filter(|experiment| {
        let mut targets = experiment.targets.iter().flatten();
        experiment.targets.is_none() || targets.any(|target| names.contains(&target.value))
    });
    let mut groups = sharing_data(meant);
    if groups.is_empty() {
        groups = sharing_data(suite.experiments.iter());
    }
    let (mut chosen, mut left_out): (Vec<&SuiteExperiment>, Vec<String>) = (Vec::new(), Vec::new());
    for group in groups {
        let mut experiments = group.iter();
        if experiments.all(|new| chosen.iter().any(|old| load_key(old) == load_key(new))) {
            left_out.extend(group.iter().map(|experiment| experiment.name.value.clone()));
        } else {
            chosen.extend(group);
        }
    }
    (chosen, left_out)
}

/// Cuts experiments where data are dropped and others loaded.
fn sharing_data<'a>(
    experiments: impl Iterator<Item = &'a SuiteExperiment>,
) -> Vec<Vec<&'a SuiteExperiment>> {
    let mut groups: Vec<Vec<&SuiteExperiment>> = Vec::new();
    for experiment in experiments {
        match groups.last_mut().filter(|_| !experiment.facts.prepare) {
            Some(group) => group.push(experiment),
            None => groups.push(vec![experiment]),
        }
    }
    groups
}

fn load_key(experiment: &SuiteExperiment) -> impl PartialEq + '_ {
    let facts = &experiment.facts;
    let test = (&facts.workload, &facts.test, &facts.options, &facts.search);
    let length = (facts.warmup_s, facts.duration_s, facts.events);
    (test, length, &facts.workers, &facts.degrees, &facts.rates)
}
