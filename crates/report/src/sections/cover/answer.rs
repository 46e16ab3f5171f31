//! The suite's question, answered in a sentence or two.

use crate::evidence::{Call, Level, PairedComparison, Paper, PaperTarget, VerdictRow};
use crate::format;
use crate::sections::{clauses, listed, summary};
use crate::text::{Message, first_sentence};
use dyno_facts::say;
use dyno_statistics::Metric;

/// So many sentences of what was reached; the others stand in the summary.
const MOST_REACHED: usize = 3;
/// So many pairs of targets are told.
const MOST_DUELS: usize = 3;
/// So many places are named with what holds there.
const MOST_PLACES: usize = 4;
/// From this ratio on a difference is told as so many times.
const TIMES: f64 = 2.0;

pub(super) fn answer(paper: &Paper) -> Message {
    if paper.trials.is_empty() {
        return summary::no_trial(paper);
    }
    let duels = duels(paper);
    let mut sentences: Vec<Message> =
        duels.iter().take(MOST_DUELS).flat_map(|duel| duel.sentences(paper)).collect();
    if duels.len() > MOST_DUELS {
        sentences.push(say!(further_comparisons, n = duels.len() - MOST_DUELS));
    }
    if duels.is_empty() {
        let (told, has_more) = summary::told(paper, MOST_REACHED);
        sentences.extend(told);
        sentences.extend(has_more.then(|| match paper.is_short() {
            true => say!(section_6_has_the_others),
            false => say!(section_1_lists_the_others),
        }));
    }
    Message::sentences(&sentences)
}

/// Two targets with all their comparisons.
struct Duel<'a> {
    baseline: &'a str,
    candidate: &'a str,
    of: Vec<&'a PairedComparison>,
}

fn duels(paper: &Paper) -> Vec<Duel<'_>> {
    let mut duels: Vec<Duel<'_>> = Vec::new();
    for of in paper.cover_comparisons() {
        let (baseline, candidate) = (of.baseline.as_str(), of.candidate.as_str());
        match duels.iter_mut().find(|own| (own.baseline, own.candidate) == (baseline, candidate)) {
            Some(duel) => duel.of.push(of),
            None => duels.push(Duel { baseline, candidate, of: vec![of] }),
        }
    }
    duels
}

/// What a comparison says by the metric that decides.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Faster,
    Slower,
    Alike,
    Open,
    /// A check forbids it.
    Forbidden,
}

fn outcome(paper: &Paper, of: &PairedComparison) -> Outcome {
    if paper.forbidding(&of.checks).next().is_some() {
        return Outcome::Forbidden;
    }
    match of.rows.first().map(|row| row.call) {
        Some(Call::Faster) => Outcome::Faster,
        Some(Call::Slower) => Outcome::Slower,
        Some(Call::Equivalent) => Outcome::Alike,
        _ => Outcome::Open,
    }
}

impl Duel<'_> {
    fn sentences(&self, paper: &Paper) -> Vec<Message> {
        let [a, b] = [self.baseline, self.candidate].map(|label| name(paper, label));
        let of = |wanted: Outcome| -> Vec<&PairedComparison> {
            self.of.iter().copied().filter(|of| outcome(paper, of) == wanted).collect()
        };
        let mut parts = Vec::new();
        for wanted in [Outcome::Faster, Outcome::Slower] {
            parts.extend(by_experiment(&of(wanted)).iter().map(|own| difference(own)));
        }
        let alike = of(Outcome::Alike);
        if let Some(first) = alike.first() {
            let margin = format::percent(first.margin);
            parts.push(say!(as_fast_within, margin = margin, places = places(&alike)));
        }
        let open = of(Outcome::Open);
        let mut sentences = Vec::new();
        if !parts.is_empty() {
            let parts = clauses(&parts);
            sentences.push(say!(compared_with, baseline = &a, candidate = &b, parts = parts));
            if !open.is_empty() {
                let why = reasons(paper, &open);
                sentences.push(say!(no_verdict_at_places, places = places(&open), why = why));
            }
        } else if !open.is_empty() {
            let why = reasons(paper, &open);
            sentences.push(match open.len() {
                1 => say!(no_verdict_at_the_level, candidate = b, baseline = a, why = why),
                n => say!(no_verdict_at_any, n = n, candidate = b, baseline = a, why = why),
            });
        }
        let forbidden = of(Outcome::Forbidden);
        if let Some(first) = forbidden.first() {
            let why = why_forbidden(paper, &first.checks);
            sentences.push(say!(not_comparable_at, places = places(&forbidden), why = why));
        }
        sentences
    }
}

/// What the paper calls it, with product and version where that is a name of the command line only.
fn name(paper: &Paper, label: &str) -> Message {
    let target = paper.targets.iter().find(|target| target.label == label);
    let untitled = target.filter(|target| target.facts.name == label);
    match untitled.and_then(PaperTarget::major_product) {
        Some(product) if !label.contains(&product) => {
            Message::verbatim(format!("{label} ({product})"))
        }
        _ => Message::verbatim(label),
    }
}

/// Comparisons of one experiment together.
fn by_experiment<'a>(all: &[&'a PairedComparison]) -> Vec<Vec<&'a PairedComparison>> {
    let mut groups: Vec<Vec<&PairedComparison>> = Vec::new();
    for of in all {
        match groups.last_mut().filter(|group| group[0].experiment_index == of.experiment_index) {
            Some(group) => group.push(of),
            None => groups.push(vec![of]),
        }
    }
    groups
}

/// By how much the candidate is faster or slower, over all these levels.
fn difference(own: &[&PairedComparison]) -> Message {
    let rows = || own.iter().filter_map(|of| of.rows.first());
    // As speed: of times the smaller one is the faster one.
    let ends = |row: &VerdictRow| {
        let (low, high) = row.interval.map_or((row.ratio, row.ratio), |both| (both.low, both.high));
        if row.is_less_better { (1.0 / high, 1.0 / low) } else { (low, high) }
    };
    let (low, high) = rows()
        .map(ends)
        .fold((f64::INFINITY, 0.0_f64), |(low, high), own| (low.min(own.0), high.max(own.1)));
    let place = places(own);
    let percent = |share: f64| format::percent(share);
    let range = |a: String, b: String| match a == b {
        true => Message::verbatim(a),
        false => say!(low_to_high, low = a, high = b),
    };
    let is_faster = rows().next().is_some_and(|row| row.call == Call::Faster);
    let metric = rows().next().map(|row| row.metric).unwrap_or_default();
    let is_cost = metric == Metric::ServerCpuUs.name();
    match is_faster {
        true if low >= TIMES => {
            let range = range(format::short(low), format::short(high));
            say!(times_as_fast_at, range = range, place = place)
        }
        true if is_cost => say!(
            cheaper_at,
            range = range(percent(1.0 - 1.0 / low), percent(1.0 - 1.0 / high)),
            place = place
        ),
        true => say!(
            faster_by_at,
            range = range(percent(low - 1.0), percent(high - 1.0)),
            place = place
        ),
        false => say!(
            slower_by_at,
            range = range(percent(1.0 - high), percent(1.0 - low)),
            place = place
        ),
    }
}

/// Experiments with their load levels.
fn places(all: &[&PairedComparison]) -> Message {
    let groups = by_experiment(all);
    let place = |own: &Vec<&PairedComparison>| {
        let levels: Vec<Message> = own.iter().map(|of| of.level.clone()).collect();
        let levels = match levels.len() {
            0..=2 => listed(&levels),
            n => say!(n_load_levels, n = n),
        };
        say!(experiment_at_levels, experiment = &own[0].title, levels = levels)
    };
    let mut told: Vec<Message> = groups.iter().take(MOST_PLACES).map(place).collect();
    if groups.len() > MOST_PLACES {
        told.push(say!(n_more_experiments, n = groups.len() - MOST_PLACES));
    }
    Message::list(&told)
}

/// Why there is no verdict, most frequent first.
fn reasons(paper: &Paper, open: &[&PairedComparison]) -> Message {
    let mut counted: Vec<(Message, usize)> = Vec::new();
    for of in open {
        let why = reason(paper, of);
        match counted.iter_mut().find(|(known, _)| *known == why) {
            Some((_, count)) => *count += 1,
            None => counted.push((why, 1)),
        }
    }
    counted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    match counted.as_slice() {
        [(only, _)] => only.clone(),
        all => {
            let part = |(why, n): &(Message, usize)| say!(at_n_of_them, n = *n, why = why);
            clauses(&all.iter().take(3).map(part).collect::<Vec<_>>())
        }
    }
}

fn reason(paper: &Paper, of: &PairedComparison) -> Message {
    let Some(row) = of.rows.first() else { return say!(because_no_pair_counts) };
    match row.call {
        Call::Explained => {
            let of_veto = |id: &str| paper.checks.iter().find(|check| check.id == id);
            let rule = of.vetoes.first().and_then(|veto| of_veto(veto.check));
            rule.map_or_else(
                || say!(because_of_a_check),
                |check| say!(because_check, id = check.id, number = check.number.to_string()),
            )
        }
        Call::TooFewPairs => say!(because_of_few_pairs, least = of.least_pairs().to_string()),
        Call::Unproven => say!(because_of_many),
        _ => say!(because_of_variation),
    }
}

/// The checks that forbid a figure, in words.
pub(crate) fn why_forbidden(paper: &Paper, numbers: &[usize]) -> Message {
    let told = paper.forbidding(numbers).map(|check| {
        let number = format!("{:?}{}", Level::E, check.number);
        say!(check_in_words, number = number, meaning = first_sentence(&check.meaning))
    });
    Message::sentences(&told.collect::<Vec<_>>())
}

/// A sentence with the checks that forbid its figures.
pub(crate) fn with_objections(paper: &Paper, said: Message, numbers: &[usize]) -> Message {
    match paper.forbidding(numbers).next() {
        None => said,
        Some(_) => {
            let objection = say!(not_usable_because, why = why_forbidden(paper, numbers));
            Message::sentences(&[said, objection])
        }
    }
}
