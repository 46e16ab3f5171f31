//! What an experiment does beyond measuring its points once: compare targets in pairs, search for the
//! highest rate, confirm the best point, restore the data, pass gates.

use std::ops::RangeInclusive;

use dyno_core::offer::{Levels, WorkloadOffer};
use dyno_facts::{ComparisonFacts, ExperimentFacts, RateSearch, Restore, StopRule, TargetFacts};
use dyno_statistics::gate::{Gate, Mistake};
use dyno_statistics::objective::Objective;
use dyno_statistics::ratio::DEFAULT_PAIRS;
use toml::de::DeValue;

use crate::problem::Problem;
use crate::reader::{Reader, Sheet, Value};
use crate::suite::{SuiteExperiment, WithSpan};
use crate::targets::{self, twin_name};

/// Most pairs where a half-width ends the repetition, unless the suite says otherwise.
const PAIRS_MOST: u32 = 30;
/// Trials that confirm the result of a search, unless the suite says otherwise.
const CONFIRMATIONS: u32 = 3;

#[derive(Clone, Debug)]
pub struct Compare {
    pub baseline: WithSpan<String>,
    /// The others; empty where `is_aa`.
    pub candidates: Vec<WithSpan<String>>,
    pub stop: StopRule,
    /// The baseline is measured twice, the second time under another name: what differs then is noise.
    pub is_aa: bool,
}

/// Six pairs; up to thirty where a half-width or a budget ends them. Who stops as soon as the
/// interval looks narrow stops where the deviation happens to be small: from four pairs on, equal
/// systems were called different in 8 % of simulated comparisons.
pub fn stop_rule(half_width: Option<f64>, budget_s: Option<f64>) -> StopRule {
    let is_open = half_width.is_some() || budget_s.is_some();
    let pairs_least = DEFAULT_PAIRS as u32;
    let pairs_most = if is_open { PAIRS_MOST } else { pairs_least };
    StopRule { pairs_least, pairs_most, half_width, budget_s }
}

/// Takes all keys of this, of an unknown workload as well; returns what is compared.
pub(crate) fn read(
    sheet: &Sheet<'_>,
    table: &mut Reader<'_, '_>,
    workload: Option<&WorkloadOffer>,
    facts: &mut ExperimentFacts,
) -> Option<Compare> {
    let compare = table
        .take("compare")
        .and_then(|(span, value)| Reader::of_value(sheet, "`compare`", span, value))
        .and_then(read_compare);
    let gates = table.texts("gate").unwrap_or_default();
    for gate in &gates {
        if let Err(mistake) = gate.value.parse::<Gate>() {
            table.note(&gate.span, problem(&mistake));
        }
    }
    facts.gates = gates.into_iter().map(|gate| gate.value).collect();
    facts.search = read_search(table, workload);
    facts.confirm = read_confirm(table).unwrap_or(match facts.search {
        Some(_) => CONFIRMATIONS,
        None => 0,
    });
    facts.restore = match table.text("restore").map(|text| text.value) {
        None => Restore::None,
        Some(text) if text == "none" => Restore::None,
        Some(text) if text == "reload" => Restore::Reload,
        Some(command) => Restore::Command(command),
    };
    compare
}

fn problem(mistake: &Mistake) -> Problem {
    Problem::new(mistake.to_string()).hint(mistake.hint.clone())
}

fn read_compare(mut table: Reader<'_, '_>) -> Option<Compare> {
    let baseline = table.required_text("baseline", "Add `baseline = \"NAME\"`, a target.");
    let is_aa = table.flag("aa").unwrap_or(false);
    let candidates = table.texts("candidates");
    let pairs = read_pairs(&mut table);
    let half_width = read_half_width(&mut table);
    let budget_s = read_seconds(&mut table, "budget", &(1.0..=31_536_000.0));
    if let (Some(first), true) = (candidates.iter().flatten().next(), is_aa) {
        let hint = "With `aa = true` the baseline is measured twice: leave the candidates out.";
        let message = "A comparison of a target with itself has no candidates.";
        table.note(&first.span.clone(), Problem::new(message).hint(hint));
    }
    if !is_aa && candidates.as_ref().is_none_or(Vec::is_empty) {
        table.missing("candidates", "Add `candidates = [\"NAME\"]`, or `aa = true`.");
    }
    for candidate in candidates.iter().flatten() {
        if baseline.as_ref().is_some_and(|baseline| baseline.value == candidate.value) {
            let hint = "To measure the noise, write `aa = true` instead of `candidates`.";
            let message = format!("`{}` is compared with itself.", candidate.value);
            table.note(&candidate.span, Problem::new(message).hint(hint));
        }
    }
    table.finish(
        &[("candidate", "candidates"), ("against", "baseline"), ("repeats", "pairs")],
        |_, known| known,
    );
    let stop = stop_rule(half_width, budget_s);
    let stop = match pairs {
        Some((pairs_least, pairs_most)) => StopRule { pairs_least, pairs_most, ..stop },
        None => stop,
    };
    Some(Compare { baseline: baseline?, candidates: candidates.unwrap_or_default(), stop, is_aa })
}

/// `pairs = 6`, or `pairs = [4, 20]`: fewest and most.
fn read_pairs(table: &mut Reader<'_, '_>) -> Option<(u32, u32)> {
    const RANGE: RangeInclusive<u64> = 1..=1_000;
    let list = table.wholes("pairs", &RANGE)?;
    let number = |index: usize| -> Option<u32> { u32::try_from(list.get(index)?.value).ok() };
    match (number(0), number(1), list.get(2)) {
        (Some(both), None, None) => Some((both, both)),
        (Some(least), Some(most), None) if least <= most => Some((least, most)),
        (None, ..) => None,
        _ => {
            let message = "`pairs` must be a number, or the fewest and the most.";
            let hint = "Write `pairs = 6`, or `pairs = [4, 20]`.";
            table.note(&list[0].span, Problem::new(message).hint(hint));
            None
        }
    }
}

/// `half_width = "2%"` or `0.02`.
fn read_half_width(table: &mut Reader<'_, '_>) -> Option<f64> {
    let (_, value) = table.take("half_width")?;
    let number = match value.get_ref() {
        DeValue::String(text) => half_width(text),
        DeValue::Float(digits) => digits.as_str().parse().ok().filter(is_half_width),
        _ => None,
    };
    match number {
        Some(number) => Some(number),
        None => table.wrong("half_width", "a share such as \"2%\", from 0.01% to 50%", value),
    }
}

/// A half-width as users write it: `2%` or `0.02`; from 0.0001 to 0.5.
pub fn half_width(text: &str) -> Option<f64> {
    let text = text.trim();
    let number: f64 = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().ok()? / 100.0,
        None => text.parse().ok()?,
    };
    Some(number).filter(is_half_width)
}

fn is_half_width(number: &f64) -> bool {
    (0.000_1..=0.5).contains(number)
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

fn read_seconds(
    table: &mut Reader<'_, '_>,
    key: &'static str,
    range: &RangeInclusive<f64>,
) -> Option<f64> {
    let (_, value) = table.take(key)?;
    let number = match value.get_ref() {
        DeValue::String(text) => seconds(text),
        DeValue::Integer(digits) => digits.as_str().parse().ok(),
        DeValue::Float(digits) => digits.as_str().parse().ok(),
        _ => None,
    };
    match number.filter(|seconds| range.contains(seconds)) {
        Some(seconds) => Some(seconds),
        None => table.wrong(key, "a length of time such as \"90s\", \"30m\" or \"2h\"", value),
    }
}

fn read_search(table: &mut Reader<'_, '_>, workload: Option<&WorkloadOffer>) -> Option<RateSearch> {
    let objective = table.text("objective");
    let rates = 0.001..=100_000_000.0;
    let start = table.take("start_rate");
    let most = table.take("most_rate");
    let rate = |key: &str, found: Option<(crate::source::Span, Value<'_>)>| {
        let (span, value) = found?;
        if objective.is_none() {
            let hint = "Add `objective = \"p99 < 20ms\"`, or write `rate = [...]`.";
            let message = format!("`{key}` is a bound of a search, and there is none.");
            table.note(&span, Problem::new(message).hint(hint));
        }
        table.item_number(key, value, &rates)
    };
    let start_rate = rate("start_rate", start);
    let most_rate = rate("most_rate", most);
    let objective = objective?;
    if workload.is_some_and(|workload| workload.levels == Levels::Degrees) {
        let message = "A pass over queries has no rate that could be searched for.";
        table.note(&objective.span, Problem::new(message).hint("Leave `objective` out."));
    }
    if let Err(mistake) = objective.value.parse::<Objective>() {
        table.note(&objective.span, problem(&mistake));
    }
    if let (Some(start), Some(most)) = (&start_rate, &most_rate)
        && start.value > most.value
    {
        let message = "`start_rate` is higher than `most_rate`.";
        table.note(&start.span, Problem::new(message));
    }
    Some(RateSearch {
        objective: objective.value,
        start_rate: start_rate.map(|rate| rate.value),
        most_rate: most_rate.map(|rate| rate.value),
    })
}

/// `confirm = true`, or how often.
fn read_confirm(table: &mut Reader<'_, '_>) -> Option<u32> {
    let (_, value) = table.take("confirm")?;
    match value.get_ref() {
        DeValue::Boolean(true) => Some(CONFIRMATIONS),
        DeValue::Boolean(false) => Some(0),
        DeValue::Integer(digits) => match digits.as_str().parse() {
            Ok(number @ 0..=1_000) => Some(number),
            _ => table.wrong("confirm", "true, false, or a number of trials", value),
        },
        _ => table.wrong("confirm", "true, false, or a number of trials", value),
    }
}

/// Plans what the experiment compares, of those targets that have a URL.
pub(crate) fn plan(
    experiment: &SuiteExperiment,
    planned: &mut ExperimentFacts,
    targets: &mut Vec<TargetFacts>,
    notes: &mut Vec<String>,
) {
    let Some(wanted) = &experiment.compare else { return };
    let baseline = &wanted.baseline.value;
    let is_there = |name: &String| planned.targets.contains(name);
    let candidates: Vec<String> = match wanted.is_aa {
        true => vec![twin_name(baseline)],
        false => {
            let named = wanted.candidates.iter().map(|candidate| candidate.value.clone());
            named.filter(is_there).collect()
        }
    };
    if !is_there(baseline) || candidates.is_empty() {
        notes.push(format!(
            "The experiment `{}` compares targets of which only one has a URL: it is measured by \
             itself.",
            planned.name
        ));
        return;
    }
    if wanted.is_aa {
        let twin = &candidates[0];
        if !targets.iter().any(|target| target.name == *twin) {
            let of = targets.iter().position(|target| target.name == *baseline);
            if let Some(at) = of {
                targets.insert(at + 1, targets::twin(&targets[at]));
            }
        }
        planned.targets.push(twin.clone());
    }
    planned.repeats = wanted.stop.pairs_most;
    planned.comparison = Some(ComparisonFacts {
        baseline: baseline.clone(),
        candidates,
        is_aa: wanted.is_aa,
        stop: wanted.stop,
        data_state: String::new(),
    });
}
