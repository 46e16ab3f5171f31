//! What `dyno compare` prints: so few lines that they can be pasted into a mail.

use super::words::{self, bounds, ratio};
use crate::evidence::{Call, Check, Judgment, Level, PairedComparison, VerdictRow};
use crate::format;
use crate::text::{Lang, Message};
use dyno_facts::say;

/// With the error and the hint on the other stream these are 15.
const MOST_LINES: usize = 13;
const MOST_GATES: usize = 4;
/// Beyond so many targets they share a line.
const MOST_TARGETS: usize = 3;
/// Lines about parts of the load.
const MOST_PARTS: usize = 2;
/// Checks that are named with what they found.
const MOST_FORBIDDING: usize = 2;
/// Checks whose finding is told before others are named.
const TOLD_WITH_FACTS: [&str; 3] = ["schema", "settings-differ", "half-width"];
/// A line that is longer is cut.
const MOST_CHARACTERS: usize = 240;

impl Judgment {
    /// True of a run of less than the suite's full size.
    pub fn is_rehearsal(&self) -> bool {
        let mut plans = self.runs.iter().filter_map(|run| run.header.plan.as_ref());
        plans.any(|plan| plan.shrink < 1.0)
    }

    /// Who is compared, what is faster by how much and how sure, which statement changed most, which checks forbid the
    /// claim, the gates, what the exit code means, and where papers are: at most 13 lines, the gravest where there are
    /// more.
    pub fn digest(&self, lang: Lang, code: u8, papers: &[String]) -> String {
        let banner = self.is_rehearsal().then(|| say!(no_results));
        let mut lines: Vec<Message> = banner.into_iter().chain(self.compared_targets()).collect();
        let mut last = Vec::new();
        let mut gates: Vec<_> = self.verdicts.gates.iter().collect();
        gates.sort_by_key(|gate| std::cmp::Reverse(gate.result));
        last.extend(fit(gates.into_iter().map(words::gate).collect(), MOST_GATES));
        let meaning = meaning(code, !self.verdicts.gates.is_empty());
        last.push(say!(exit_code_means, code = code.to_string(), meaning = meaning));
        last.push(match papers.is_empty() {
            true => say!(no_paper_yet),
            false => say!(papers_are_in, files = papers.join(", ")),
        });
        // Objections take two lines.
        let room = MOST_LINES.saturating_sub(lines.len() + last.len() + 2);
        let rows = self.compared_rows(room);
        let room = room.saturating_sub(rows.len());
        let facts = self.facts_that_differ(room);
        // What may explain the difference comes before what only describes it.
        let mut parts = self.parts_that_changed(self.duel().map(|_| ["A", "B"]));
        parts.truncate(room.saturating_sub(facts.len()).min(MOST_PARTS));
        lines.extend(rows);
        lines.extend(parts);
        lines.extend(self.objections(&facts));
        lines.extend(facts.into_iter().map(|(_, line)| line));
        lines.extend(last);
        lines.into_iter().map(|line| cut(line.line(lang)) + "\n").collect()
    }

    /// Both targets where there are two, called A and B in the lines that follow.
    fn duel(&self) -> Option<[&str; 2]> {
        let sides = |of: &PairedComparison| [of.baseline.clone(), of.candidate.clone()];
        let first = self.verdicts.comparisons.first()?;
        let is_one = self.verdicts.comparisons.iter().all(|of| sides(of) == sides(first));
        is_one.then_some([&first.baseline, &first.candidate])
    }

    fn compared_targets(&self) -> Vec<Message> {
        let told = |name: &str, label: &str| {
            let product = self.targets.iter().find(|target| target.label == label);
            match product.map(|target| target.product.trim()).filter(|it| !it.is_empty()) {
                Some(product) => Message::verbatim(format!("{name}: {product} ({label})")),
                None => Message::verbatim(format!("{name}: {label}")),
            }
        };
        if let Some([a, b]) = self.duel() {
            return vec![told("A", a), told("B", b)];
        }
        let sides = self.verdicts.comparisons.iter().flat_map(|of| [&of.baseline, &of.candidate]);
        let sides: Vec<&String> = sides.collect();
        let product = |label: &String| {
            let target = self.targets.iter().find(|target| target.label == *label)?;
            let product = target.product.trim();
            (!product.is_empty()).then(|| Message::verbatim(format!("{label}: {product}")))
        };
        let all: Vec<Message> = format::unique(sides).into_iter().filter_map(product).collect();
        match all.len() {
            0..=MOST_TARGETS => all,
            _ => vec![Message::joined(&all, "; ", "；")],
        }
    }

    /// A line for each metric of each comparison, what is decided before what is not; where they don't fit, each
    /// comparison's first one goes first, and what is slower.
    fn compared_rows(&self, room: usize) -> Vec<Message> {
        let comparisons = &self.verdicts.comparisons;
        let rows: Vec<Vec<&VerdictRow>> =
            comparisons.iter().map(PairedComparison::told_rows).collect();
        // A comparison without a pair that counts has a line too.
        let mut places: Vec<(usize, usize)> = (0..rows.len())
            .flat_map(|at| (0..rows[at].len().max(1)).map(move |row| (at, row)))
            .collect();
        let left = places.len().saturating_sub(room);
        if left > 0 {
            let gravity =
                |at: usize, row: usize| rows[at].get(row).map_or(0, |row| gravity(row.call));
            places.sort_by_key(|&(at, row)| (row, gravity(at, row), at));
            places.truncate(room.saturating_sub(1));
            places.sort_unstable();
        }
        let names = self.duel().map(|_| ["A", "B"]);
        let line = |&(at, row): &(usize, usize)| {
            let of: &PairedComparison = &comparisons[at];
            let [a, b] = names.unwrap_or([&of.baseline, &of.candidate]);
            match rows[at].get(row) {
                Some(found) => compared(of, found, [a, b]),
                None => of.sentence.clone(),
            }
        };
        let mut lines: Vec<Message> = places.iter().map(line).collect();
        if left > 0 {
            lines.push(say!(more_lines_by_long, n = left as u64 + 1));
        }
        lines
    }

    /// What a reader of the verdict asks first, as far as there is room: how sides and sessions differ, and whether they
    /// are known as well as was wanted.
    fn facts_that_differ(&self, room: usize) -> Vec<(&'static str, Message)> {
        let found = TOLD_WITH_FACTS.iter().filter_map(|id| {
            let check = self.checks.iter().find(|check| check.id == *id && !check.is_accepted)?;
            let first = check.lines.first()?;
            Some((*id, say!(check_with_finding, id = *id, found = first)))
        });
        found.take(room).collect()
    }

    /// Which checks forbid to claim the result, and what is to be said beside it but for what has a line of its own.
    fn objections(&self, told_elsewhere: &[(&'static str, Message)]) -> Vec<Message> {
        let found = |level: Level| {
            let open = move |check: &&Check| {
                check.level == level && !check.findings.is_empty() && !check.is_accepted
            };
            self.checks.iter().filter(open)
        };
        let told = |(place, check): (usize, &Check)| match check.lines.first() {
            Some(first) if place < MOST_FORBIDDING => {
                say!(check_with_finding, id = check.id, found = first)
            }
            _ => Message::verbatim(check.id),
        };
        let forbidding: Vec<Message> = found(Level::E).enumerate().map(told).collect();
        let is_elsewhere = |check: &&Check| told_elsewhere.iter().any(|(id, _)| *id == check.id);
        let mut caveats: Vec<Message> = found(Level::W)
            .filter(|check| !is_elsewhere(check))
            .map(|check| Message::verbatim(check.id))
            .collect();
        let accepted = |check: &&Check| check.level < Level::I && check.is_accepted;
        caveats.extend(
            self.checks.iter().filter(accepted).map(|check| say!(check_accepted, id = check.id)),
        );
        if self.verdicts.comparisons.iter().any(PairedComparison::is_of_unlike_sessions) {
            caveats.insert(0, say!(unlike_sessions));
        }
        let joined = |all: &[Message]| Message::joined(all, ", ", "、");
        let mut rows = self.verdicts.comparisons.iter().flat_map(|of| &of.rows);
        let mut lines = Vec::new();
        if !forbidding.is_empty() {
            lines.push(say!(checks_forbid, checks = joined(&forbidding)));
        } else if !self.is_rehearsal() && rows.any(|row| !row.call.is_undecided()) {
            lines.push(say!(no_check_forbids));
        }
        if !caveats.is_empty() {
            lines.push(say!(caveats_are, checks = joined(&caveats)));
        }
        lines
    }
}

/// What a reader must not miss has the least.
fn gravity(call: Call) -> u8 {
    match call {
        Call::Slower => 0,
        Call::Faster => 1,
        Call::TooFewPairs | Call::Undecided | Call::Unproven | Call::Explained => 2,
        Call::Equivalent => 3,
    }
}

fn compared(of: &PairedComparison, row: &VerdictRow, [a, b]: [&str; 2]) -> Message {
    // A verdict by another metric never hides that the one that should decide does not.
    let first = of.rows.first().filter(|first| {
        first.metric != row.metric && !first.call.is_difference() && !row.call.is_undecided()
    });
    let call = match (row.call.is_difference(), first) {
        (true, Some(first)) => say!(
            call_is_certain_beside,
            call = &row.words,
            metric = &first.name,
            first = &first.words
        ),
        (false, Some(first)) => {
            say!(call_beside, call = &row.words, metric = &first.name, first = &first.words)
        }
        (true, None) => say!(call_is_certain, call = &row.words),
        (false, None) => row.words.clone(),
    };
    let found = match row.interval {
        Some(interval) => {
            format!("{b}/{a} {}{} {}", row.bound, ratio(row.ratio), bounds(interval))
        }
        None => format!("{b}/{a} {}{}", row.bound, ratio(row.ratio)),
    };
    let medians = [row.candidate.median, row.baseline.median].map(format::short);
    let share = |share: Option<f64>| share.map_or(format::DASH.to_owned(), format::percent);
    let line = say!(
        compared_in_a_line,
        place = words::place(of),
        metric = &row.name,
        candidate = b,
        call = call,
        found = found,
        medians = medians.join(" / "),
        deviations = [row.variation_candidate, row.variation_baseline].map(share).join(" / "),
        pairs = words::pairs(row),
    );
    match of.is_aa {
        true => Message::joined(&[line, words::aa(of)], "; ", "；"),
        false => line,
    }
}

fn meaning(code: u8, has_gates: bool) -> Message {
    match (code, has_gates) {
        (0, true) => say!(every_gate_is_kept),
        (0, false) => say!(no_regression_found),
        (3, true) => say!(a_gate_is_inconclusive),
        (3, false) => say!(a_comparison_is_undecided),
        (4, _) => say!(acknowledged_work_was_lost),
        (_, true) => say!(a_gate_is_broken),
        (_, false) => say!(a_regression_is_proven),
    }
}

/// The first lines of those that are too many, and how many are left.
fn fit(mut lines: Vec<Message>, most: usize) -> Vec<Message> {
    let left = lines.len().saturating_sub(most);
    if left > 0 {
        lines.truncate(most - 1);
        lines.push(say!(more_lines_by_long, n = left as u64 + 1));
    }
    lines
}

fn cut(line: String) -> String {
    match line.char_indices().nth(MOST_CHARACTERS) {
        Some((at, _)) => line[..at].to_owned() + "…",
        None => line,
    }
}
