//! The suite's question, answered in a sentence or two, or line by line.

use crate::evidence::{Call, Level, PairedComparison, Paper, PaperTarget, VerdictRow};
use crate::format;
use crate::sections::{clauses, listed, summary};
use crate::text::{Message, first_sentence};
use dyno_facts::say;

/// So many sentences of what was reached; the others stand in the summary.
const MOST_REACHED: usize = 3;
/// So many pairs of targets are told.
const MOST_DUELS: usize = 3;
/// So many places are named with what holds there.
const MOST_PLACES: usize = 4;
/// An answer with more parts is a list.
const MOST_IN_TEXT: usize = 2;
/// From this ratio on a difference is told as so many times.
const TIMES: f64 = 2.0;

/// The answer as a text, or as a list with its head; where each line names what it is about the head is empty.
pub(super) fn answer(paper: &Paper) -> (Message, Vec<Message>) {
    if paper.trials.is_empty() {
        return (summary::no_trial(paper), Vec::new());
    }
    let duels = duels(paper);
    let said: Vec<Said> = duels.iter().take(MOST_DUELS).map(|duel| duel.said(paper)).collect();
    let is_list = said.iter().map(|own| own.parts().count()).sum::<usize>() > MOST_IN_TEXT;
    let (head, mut lines) = match said.as_slice() {
        [] => (Message::default(), reached(paper)),
        [only] if is_list => (only.head(), only.parts().cloned().collect()),
        all if is_list => (Message::default(), all.iter().flat_map(Said::lines).collect()),
        all => (Message::default(), all.iter().flat_map(Said::sentences).collect()),
    };
    if duels.len() > MOST_DUELS {
        lines.push(say!(further_comparisons, n = duels.len() - MOST_DUELS));
    }
    match lines.len() > MOST_IN_TEXT {
        true => (head, lines),
        false => (Message::sentences(&lines), Vec::new()),
    }
}

/// Where nothing is compared: what was reached.
fn reached(paper: &Paper) -> Vec<Message> {
    let (told, has_more) = summary::told(paper, MOST_REACHED);
    let more = has_more.then(|| match paper.is_short() {
        true => say!(section_6_has_the_others),
        false => say!(section_1_lists_the_others),
    });
    told.into_iter().chain(more).collect()
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
    fn said(&self, paper: &Paper) -> Said {
        let [baseline, candidate] = [self.baseline, self.candidate].map(|label| name(paper, label));
        let of = |wanted: Outcome| -> Vec<&PairedComparison> {
            self.of.iter().copied().filter(|of| outcome(paper, of) == wanted).collect()
        };
        let decided: [(Outcome, Clause); 3] =
            [(Outcome::Faster, difference), (Outcome::Slower, difference), (Outcome::Alike, alike)];
        let mut parts: Vec<Message> = Vec::new();
        for (wanted, clause) in decided {
            parts.extend(of_each_experiment(&of(wanted), clause));
        }
        let open = of(Outcome::Open);
        let mut nothing = None;
        if !open.is_empty() {
            if parts.is_empty() {
                nothing = Some(self.without_verdict(paper, &baseline, &candidate));
            } else {
                let why = reasons(paper, &open);
                parts.push(say!(no_verdict_at_places, places = places(&open), why = why));
            }
        }
        let forbidden = forbidden(paper, &of(Outcome::Forbidden));
        Said { baseline, candidate, clauses: parts, nothing, forbidden }
    }

    /// That nothing is decided anywhere: levels that a check forbids are counted too, as the summary counts them.
    fn without_verdict(&self, paper: &Paper, baseline: &Message, candidate: &Message) -> Message {
        let is_undecided =
            |of: &&PairedComparison| of.rows.first().is_none_or(|row| row.call.is_undecided());
        let all: Vec<&PairedComparison> = self.of.iter().copied().filter(is_undecided).collect();
        let why = reasons(paper, &all);
        match all.len() {
            1 => {
                say!(no_verdict_at_the_level, candidate = candidate, baseline = baseline, why = why)
            }
            n => say!(
                no_verdict_at_any,
                n = n,
                candidate = candidate,
                baseline = baseline,
                why = why
            ),
        }
    }
}

/// What is said of two targets.
struct Said {
    baseline: Message,
    candidate: Message,
    /// Their subject is the candidate.
    clauses: Vec<Message>,
    /// That there is no verdict at all: a sentence with both names.
    nothing: Option<Message>,
    /// Sentences on what checks forbid.
    forbidden: Vec<Message>,
}

impl Said {
    fn head(&self) -> Message {
        say!(candidate_against_baseline, candidate = &self.candidate, baseline = &self.baseline)
    }

    fn parts(&self) -> impl Iterator<Item = &Message> {
        self.clauses.iter().chain(&self.nothing).chain(&self.forbidden)
    }

    /// The parts, each with both names.
    fn lines(&self) -> Vec<Message> {
        let named = self.clauses.iter().chain(&self.forbidden);
        let named = named.map(|part| Message::sentences(&[self.head(), part.clone()]));
        self.nothing.iter().cloned().chain(named).collect()
    }

    /// All clauses in one.
    fn sentences(&self) -> Vec<Message> {
        let compared = (!self.clauses.is_empty()).then(|| {
            say!(
                compared_with,
                baseline = &self.baseline,
                candidate = &self.candidate,
                parts = clauses(&self.clauses)
            )
        });
        let others = self.nothing.iter().chain(&self.forbidden).cloned();
        compared.into_iter().chain(others).collect()
    }
}

/// What holds for comparisons of one outcome.
type Clause = fn(&[&PairedComparison]) -> Message;

/// A clause with medians for each experiment, and one without for those beyond the most.
fn of_each_experiment(all: &[&PairedComparison], clause: Clause) -> Vec<Message> {
    let groups = by_experiment(all);
    let shown = if groups.len() > MOST_PLACES { MOST_PLACES - 1 } else { groups.len() };
    let rest: Vec<&PairedComparison> = groups[shown..].concat();
    let own = groups[..shown].iter().map(|own| with_medians(clause(own), own));
    own.chain((!rest.is_empty()).then(|| clause(&rest))).collect()
}

/// With the medians of both, at the last level where there are several; a figure that is only a bound is no median.
fn with_medians(said: Message, own: &[&PairedComparison]) -> Message {
    let Some((of, row)) = own.last().and_then(|of| Some((of, of.rows.first()?))) else {
        return said;
    };
    if !row.bound.is_empty() {
        return said;
    }
    let [a, b] = [row.candidate, row.baseline].map(|side| format::short(side.median));
    let metric = &row.name;
    let medians = match row.is_less_better {
        true => say!(medians_of_a_time, candidate = a, baseline = b, metric = metric),
        false => say!(medians_of_a_rate, candidate = a, baseline = b, metric = metric),
    };
    match own.len() {
        1 => say!(said_with_medians, said = said, medians = medians),
        _ => say!(said_with_medians_at, said = said, medians = medians, level = &of.level),
    }
}

fn alike(own: &[&PairedComparison]) -> Message {
    let margin = own.iter().map(|of| of.margin).fold(0.0, f64::max);
    say!(as_fast_within, margin = format::percent(margin), places = places(own))
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
    let range = |a: String, b: String| match a == b {
        true => Message::verbatim(a),
        false => say!(low_to_high, low = a, high = b),
    };
    let is_faster = rows().next().is_some_and(|row| row.call == Call::Faster);
    if is_faster && low >= TIMES {
        let range = range(format::short(low), format::short(high));
        return say!(times_as_fast_at, range = range, place = place);
    }
    let cost = rows()
        .next()
        .filter(|first| first.metric.is_cost() && rows().all(|row| row.metric == first.metric));
    let is_time = rows().all(|row| row.is_less_better);
    // In the words of the verdicts: half the time is not "50 % faster".
    let (least, most) = match (is_faster, is_time) {
        (true, true) => (1.0 - 1.0 / low, 1.0 - 1.0 / high),
        (false, true) => (1.0 / high - 1.0, 1.0 / low - 1.0),
        (true, false) => (low - 1.0, high - 1.0),
        (false, false) => (1.0 - high, 1.0 - low),
    };
    let range = range(format::percent(least), format::percent(most));
    match (is_faster, cost.map(|row| &row.name), is_time) {
        (true, Some(cost), _) => say!(cheaper_at, range = range, cost = cost, place = place),
        (false, Some(cost), _) => say!(dearer_at, range = range, cost = cost, place = place),
        (true, _, true) => say!(faster_by_time_at, range = range, place = place),
        (false, _, true) => say!(slower_by_time_at, range = range, place = place),
        (true, ..) => say!(faster_by_at, range = range, place = place),
        (false, ..) => say!(slower_by_at, range = range, place = place),
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

/// What checks forbid: those that forbid the same comparisons are told together.
fn forbidden(paper: &Paper, all: &[&PairedComparison]) -> Vec<Message> {
    let numbers: Vec<usize> = all.iter().flat_map(|of| of.checks.iter().copied()).collect();
    let mut found: Vec<(Vec<&PairedComparison>, Vec<usize>)> = Vec::new();
    for check in paper.forbidding(&numbers) {
        let is_own = |of: &&PairedComparison| of.checks.contains(&check.number);
        let own: Vec<&PairedComparison> = all.iter().copied().filter(is_own).collect();
        let is_same = |(known, _): &&mut (Vec<&PairedComparison>, _)| {
            known.iter().map(|of| of.number).eq(own.iter().map(|of| of.number))
        };
        match found.iter_mut().find(is_same) {
            Some((_, numbers)) => numbers.push(check.number),
            None => found.push((own, vec![check.number])),
        }
    }
    let told = |(own, numbers): &(Vec<&PairedComparison>, Vec<usize>)| {
        say!(not_comparable_at, places = places(own), why = why_forbidden(paper, numbers))
    };
    found.iter().map(told).collect()
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
            let rule = of.deciding_vetoes().next().and_then(|veto| of_veto(veto.check));
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
