//! The output of `dyno compare`: few lines, to be pasted into a mail.

use super::*;
use dyno_facts::format::{clip, wrap};

/// With the error and the hint on the other stream these are 20.
const MOST_LINES: usize = 17;
/// Columns of a line: an email is not wrapped.
const COLUMNS: usize = 80;
const MOST_GATE_LINES: usize = 5;
/// Lines that the table has at least.
const LEAST_TABLE_LINES: usize = 4;
/// Beyond so many targets they share a line.
const MOST_TARGETS: usize = 3;
/// Lines about parts of the load.
const MOST_PARTS: usize = 2;
/// Checks that are named with what they found.
const MOST_FORBIDDING: usize = 2;
/// Checks whose finding is told before others are named.
const TOLD_WITH_FACTS: [&str; 3] = ["schema", "settings-differ", "half-width"];
/// Longer sentences are cut.
const MOST_CHARACTERS: usize = 240;

impl Judgment {
    /// Returns true for a run of less than the suite's full size.
    pub fn is_rehearsal(&self) -> bool {
        let mut plans = self.runs.iter().filter_map(|run| run.header.plan.as_ref());
        plans.any(|plan| plan.shrink < 1.0)
    }

    /// Both targets, a table of what differs by how much, which statement changed most, which checks forbid the claim,
    /// the gates, what the exit code means, and where papers are: at most 17 lines of 80 columns, the gravest where
    /// there are more.
    pub fn digest(&self, lang: Lang, code: u8, papers: &[String]) -> String {
        let wrapped = |lines: Vec<Message>| -> Vec<String> {
            lines.iter().flat_map(|line| wrap_sentence(&line.line(lang))).collect()
        };
        let banner = self.is_rehearsal().then(|| say!(no_results));
        let mut lines = wrapped(banner.into_iter().chain(self.compared_targets()).collect());
        let mut gates: Vec<_> = self.verdicts.gates.iter().collect();
        gates.sort_by_key(|gate| std::cmp::Reverse(gate.result));
        let mut last = fit(gates.into_iter().map(words::gate).collect(), lang);
        let meaning = meaning(code, !self.verdicts.gates.is_empty());
        last.extend(wrapped(vec![
            say!(exit_code_means, code = code.to_string(), meaning),
            match papers.is_empty() {
                true => say!(no_paper_yet),
                false => say!(papers_are_in, files = papers.join(", ")),
            },
        ]));
        let most = MOST_LINES.saturating_sub(last.len());
        // What may explain the difference comes before what only describes it.
        let facts = self.facts_that_differ();
        let mut caveats = wrapped(self.objections(&facts));
        caveats.extend(wrapped(facts.into_iter().map(|(_, line)| line).collect()));
        caveats.truncate(most.saturating_sub(lines.len() + LEAST_TABLE_LINES));
        lines.extend(self.compared_lines(lang, most.saturating_sub(lines.len() + caveats.len())));
        let mut parts = self.parts_that_changed(self.only_target_pair().map(|_| ["A", "B"]));
        parts.truncate(MOST_PARTS);
        let mut parts = wrapped(parts);
        parts.truncate(most.saturating_sub(lines.len() + caveats.len()));
        lines.extend(parts.into_iter().chain(caveats));
        lines.into_iter().chain(last).map(|line| line + "\n").collect()
    }

    /// Both targets where there are two, called A and B in the lines that follow.
    fn only_target_pair(&self) -> Option<[&str; 2]> {
        let sides = |of: &PairedComparison| [of.baseline.clone(), of.candidate.clone()];
        let first = self.verdicts.comparisons.first()?;
        let is_one = self.verdicts.comparisons.iter().all(|of| sides(of) == sides(first));
        is_one.then_some([&first.baseline, &first.candidate])
    }

    fn compared_targets(&self) -> Vec<Message> {
        let product = |label: &str| {
            let target = self.targets.iter().find(|target| target.label == label)?;
            Some(target.product.trim()).filter(|product| !product.is_empty())
        };
        if let Some(sides) = self.only_target_pair() {
            let line = |(name, label)| match product(label) {
                Some(product) => format!("{name}: {product} ({label})"),
                None => format!("{name}: {label}"),
            };
            return ["A", "B"].into_iter().zip(sides).map(line).map(Message::verbatim).collect();
        }
        let sides = self.verdicts.comparisons.iter().flat_map(|of| [&of.baseline, &of.candidate]);
        let sides = format::unique(sides.collect::<Vec<_>>()).into_iter();
        let line =
            |label: &String| Some(Message::verbatim(format!("{label}: {}", product(label)?)));
        let all: Vec<Message> = sides.filter_map(line).collect();
        match all.len() {
            0..=MOST_TARGETS => all,
            _ => vec![Message::joined(&all, "; ", "；")],
        }
    }

    /// A line for each comparison, and one for each of its metrics, at most as many as `room`: if they don't fit,
    /// the metric that decides goes first, then what is slower.
    pub fn compared_lines(&self, lang: Lang, room: usize) -> Vec<String> {
        let comparisons = &self.verdicts.comparisons;
        // A comparison without a pair that counts has a sentence.
        let mut places: Vec<(usize, usize)> = (0..comparisons.len())
            .flat_map(|at| (0..comparisons[at].rows.len().max(1)).map(move |row| (at, row)))
            .collect();
        let all = places.len();
        places.sort_by_key(|&(at, row)| {
            let grave = comparisons[at].rows.get(row).map_or(0, |row| gravity(row.call));
            (row > 0, grave, at, row)
        });
        let mut lines_left = room;
        let mut titled = BTreeSet::new();
        places.retain(|&(at, _)| {
            let lines = if titled.contains(&at) { 1 } else { 2 };
            // The last line says how many are left out.
            let fits = lines_left > lines;
            if fits {
                lines_left -= lines;
                titled.insert(at);
            }
            fits
        });
        places.sort_unstable();
        let names = self.only_target_pair().map(|_| ["A", "B"]);
        let mut lines = Vec::new();
        for &(at, row) in &places {
            let of: &PairedComparison = &comparisons[at];
            let Some(found) = of.rows.get(row) else {
                lines.extend(wrap_sentence(&of.sentence.line(lang)).into_iter().take(2));
                continue;
            };
            if titled.remove(&at) {
                let [a, b] = names.unwrap_or([&of.baseline, &of.candidate]);
                let title = say!(
                    compared_at,
                    place = words::place(of),
                    sides = format!("{b} / {a}"),
                    pairs = words::pairs(found)
                );
                let title = match of.is_aa {
                    true => Message::joined(&[title, words::aa(of)], "; ", "；"),
                    false => title,
                };
                lines.push(clip(&title.line(lang), COLUMNS));
            }
            lines.push(clip(&table_line(found, lang), COLUMNS));
        }
        if places.len() < all {
            lines.push(say!(more_lines_by_long, n = (all - places.len()) as u64).line(lang));
        }
        lines
    }

    /// Returns the findings that explain a verdict: differences of sides and sessions, and a half-width that was not
    /// reached.
    fn facts_that_differ(&self) -> Vec<(&'static str, Message)> {
        let found = TOLD_WITH_FACTS.iter().filter_map(|id| {
            let check = self.checks.iter().find(|check| check.id == *id && !check.is_accepted)?;
            let first = check.lines.first()?;
            Some((*id, say!(check_with_finding, id = *id, found = first)))
        });
        found.collect()
    }

    /// Checks that forbid to claim the result, and remarks besides those that have their own line.
    fn objections(&self, told_elsewhere: &[(&'static str, Message)]) -> Vec<Message> {
        let told = |(place, check): (usize, &Check)| match check.lines.first() {
            Some(first) if place < MOST_FORBIDDING => {
                say!(check_with_finding, id = check.id, found = first)
            }
            _ => Message::verbatim(check.id),
        };
        let forbidding: Vec<Message> = self.open_checks(Level::E).enumerate().map(told).collect();
        let is_elsewhere = |check: &&Check| told_elsewhere.iter().any(|(id, _)| *id == check.id);
        let mut caveats: Vec<Message> = self
            .open_checks(Level::W)
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

/// Rank of a verdict: the ones that a reader must not miss come first.
fn gravity(call: Call) -> u8 {
    match call {
        Call::Slower => 0,
        Call::Faster => 1,
        Call::TooFewPairs | Call::Undecided | Call::Unproven | Call::Explained => 2,
        Call::Equivalent => 3,
    }
}

/// A line of the table: metric, medians, change, its interval, verdict.
fn table_line(row: &VerdictRow, lang: Lang) -> String {
    let call = match row.call {
        Call::Slower | Call::Faster => row.words.clone(),
        Call::Equivalent => say!(equivalent),
        _ => say!(undecided),
    };
    let medians = [row.candidate.median, row.baseline.median].map(format::short).join(" / ");
    let (name, change) = (row.metric.name(), words::change_of_row(row));
    let interval = row.interval.map(words::interval_of_change).unwrap_or_default();
    // Long names take room from the medians, and then from the interval.
    let width = 35_usize.saturating_sub(name.len().max(18));
    let figures = format!("{name:<18} {medians:>width$}");
    let width = 55_usize.saturating_sub(figures.chars().count());
    format!("  {figures} {change:>9}  {interval:<width$} {}", call.line(lang))
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

/// Gates in lines; if those are too many, the first, and how many are left.
fn fit(gates: Vec<Message>, lang: Lang) -> Vec<String> {
    let (mut lines, all) = (Vec::new(), gates.len());
    for (told, gate) in gates.into_iter().enumerate() {
        let own = wrap_sentence(&gate.line(lang));
        if lines.len() + own.len() > MOST_GATE_LINES {
            lines.push(say!(more_lines_by_long, n = (all - told) as u64).line(lang));
            break;
        }
        lines.extend(own);
    }
    lines
}

/// Lines of 80 columns; those after the first are indented.
pub fn wrap_sentence(text: &str) -> Vec<String> {
    let text = match text.char_indices().nth(MOST_CHARACTERS) {
        Some((at, _)) => &format!("{}…", &text[..at]),
        None => text,
    };
    wrap(text, COLUMNS, "  ")
}

/// Executions of a part below which a trial says nothing of it.
const LEAST_COUNT: u64 = 20;
/// Less than this, as a ratio, is not worth a line.
const LEAST_CHANGE: f64 = 1.03;
/// Longer statements are cut.
const MOST_STATEMENT_CHARACTERS: usize = 70;

impl Judgment {
    /// A line for each comparison that is decided by its first metric and has parts, those of slower candidates first.
    /// `sides` is how a line calls both targets.
    pub(super) fn parts_that_changed(&self, sides: Option<[&str; 2]>) -> Vec<Message> {
        let first = |of: &PairedComparison| of.rows.first().map(|row| row.call);
        let of_call = |call: Call| {
            let own = self
                .verdicts
                .comparisons
                .iter()
                .filter(move |of| !of.is_aa && first(of) == Some(call));
            own.filter_map(|of| {
                self.changed_most(of, sides.unwrap_or([&of.baseline, &of.candidate]))
            })
        };
        of_call(Call::Slower).chain(of_call(Call::Faster)).collect()
    }

    fn changed_most(&self, of: &PairedComparison, [a, b]: [&str; 2]) -> Option<Message> {
        let summary = |label: &String| self.trial(label).map(|trial| &trial.summary);
        let mut ratios: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        let mut pairs = 0;
        for [baseline, candidate] in &of.pairs {
            let (baseline, candidate) =
                (means_us(summary(baseline)?), means_us(summary(candidate)?));
            pairs += 1;
            for (name, before) in baseline {
                let both = candidate.get(&name).map(|after| after / before);
                ratios.entry(name).or_default().extend(both);
            }
        }
        let mut parts: Vec<(String, f64)> = ratios
            .into_iter()
            .filter(|(_, ratios)| ratios.len() == pairs)
            .filter_map(|(name, ratios)| Some((name, median(&ratios)?)))
            .collect();
        parts.sort_by(|a, b| b.1.ln().abs().total_cmp(&a.1.ln().abs()));
        let ((name, most), others) = parts.split_first()?;
        let others = median(&others.iter().map(|(_, ratio)| *ratio).collect::<Vec<f64>>())?;
        if most.ln().abs() < LEAST_CHANGE.ln() {
            return None;
        }
        Some(say!(
            part_changed_most,
            place = words::place(of),
            part = name,
            sides = format!("{b}/{a}"),
            ratio = ratio(*most),
            others = ratio(others),
        ))
    }
}

/// Mean latency of each statement of its scripts, or where it tells none of each kind of transaction, microseconds.
fn means_us(summary: &TrialSummary) -> BTreeMap<String, f64> {
    let counts = |count: u64, mean_us: f64| count >= LEAST_COUNT && mean_us > 0.0;
    let statements = summary.statement_latencies.iter().map(|one| {
        let text: String = one.text.trim().chars().take(MOST_STATEMENT_CHARACTERS).collect();
        (format!("`{text}` ({} {})", one.script, one.number), one.count, one.mean_us)
    });
    let mut parts: Vec<(String, u64, f64)> = statements.collect();
    if parts.is_empty() {
        let kind = |kind: &dyno_facts::KindSummary| {
            (kind.name.clone(), kind.latency.count, kind.latency.mean_us)
        };
        parts = summary.kinds.iter().map(kind).collect();
    }
    let known = parts.into_iter().filter(|(_, count, mean_us)| counts(*count, *mean_us));
    known.map(|(name, _, mean_us)| (name, mean_us)).collect()
}

/// The check of trials that do not take turns.
const BLOCK_ORDER: &str = "block-order";

/// Pairs of a comparison that would prove a difference among all comparisons of its experiment.
pub(super) fn pairs_to_prove(of: &PairedComparison, row: &VerdictRow) -> usize {
    let adjusted = row.p_adjusted.unwrap_or(row.p);
    let units = dyno_facts::statistics::ratio::pairs_to_prove(
        row.units,
        row.p,
        adjusted,
        of.stop.is_until_decided,
    );
    units * of.unit_pairs as usize
}

impl Verdicts {
    /// The remedy in a sentence: for gates if there are some, else for the first metric of each comparison.
    pub fn remedy(&self) -> Message {
        if self.is_open_by_order() {
            return say!(only_turns_give_a_verdict);
        }
        let deciding = self.comparisons.iter().filter(|_| self.gates.is_empty());
        let deciding = deciding.flat_map(|of| of.deciding_vetoes());
        let of_gates = self
            .comparisons
            .iter()
            .flat_map(|of| of.vetoes.iter().filter(move |veto| self.opens_a_gate(of, veto)));
        let vetoes: BTreeSet<&str> = deciding.chain(of_gates).map(|veto| veto.check).collect();
        if !vetoes.is_empty() {
            let is_of_pairs = vetoes.iter().all(|id| *id == STOPPED);
            let ids: Vec<Message> = vetoes.into_iter().map(Message::verbatim).collect();
            let ids = Message::list(&ids);
            return match is_of_pairs {
                true => say!(pairs_outweigh_what_checks_found, ids),
                false => say!(take_away_what_checks_found, ids),
            };
        }
        let mut first = self.comparisons.iter().filter_map(|of| of.rows.first());
        if first.any(|row| row.call == Call::Undecided && !row.bound.is_empty()) {
            return say!(a_longer_time_out_would_decide);
        }
        if !self.gates.is_empty() {
            let open = self.gates.iter().filter(|gate| gate.result == GateResult::Inconclusive);
            // A figure too near its bound gives no number.
            let needed = |gate: &GateRow| {
                gate.needed.filter(|pairs| *pairs <= MOST_PAIRS).unwrap_or(usize::MAX)
            };
            return match open.filter(|gate| gate.is_ratio).map(needed).max() {
                None => say!(more_repeats_narrow_the_interval),
                Some(usize::MAX) => say!(pairs_alone_dont_help),
                Some(pairs) => say!(pairs_would_decide_gates, pairs = format::whole(pairs as f64)),
            };
        }
        let rows = self.comparisons.iter().filter_map(|of| Some((of, of.rows.first()?)));
        let needed = rows.filter(|(_, row)| row.call.is_undecided()).map(|(of, row)| {
            let pairs = match row.call {
                Call::TooFewPairs => of.least_pairs(),
                Call::Unproven => pairs_to_prove(of, row),
                _ => row.pairs_needed.unwrap_or(usize::MAX),
            };
            let pairs = if pairs > MOST_PAIRS { usize::MAX } else { pairs };
            (pairs, row.call, of.margin)
        });
        match needed.max_by_key(|(pairs, ..)| *pairs) {
            None => say!(trials_failed_mend_the_cause),
            Some((usize::MAX, ..)) => say!(pairs_alone_dont_help),
            Some((pairs, Call::Undecided, margin)) => {
                let pairs = format::whole(pairs as f64);
                say!(pairs_would_show_margin, pairs, margin = format::percent(margin))
            }
            Some((pairs, Call::TooFewPairs, _)) => {
                say!(verdict_needs_pairs, pairs = format::whole(pairs as f64))
            }
            Some((pairs, ..)) => say!(pairs_would_decide_it, pairs = format::whole(pairs as f64)),
        }
    }

    /// Returns true if a verdict is open because trials did not take turns, as those of two runs: the check finds it
    /// from two pairs on, and may be accepted.
    fn is_open_by_order(&self) -> bool {
        let is_in_blocks = |of: &&PairedComparison| {
            of.order == PairOrder::Blocks
                && (of.pairs.len() == 1 || of.vetoes.iter().any(|veto| veto.check == BLOCK_ORDER))
        };
        let is_open = |of: &PairedComparison| match self.gates.is_empty() {
            true => of.rows.first().is_some_and(|row| row.call.is_undecided()),
            false => self.open_gates(of).next().is_some(),
        };
        self.comparisons.iter().filter(is_in_blocks).any(is_open)
    }

    /// The comparison whose ratio a gate is about.
    pub fn comparison_of(&self, gate: &GateRow) -> Option<&PairedComparison> {
        self.comparisons.iter().find(|of| gate.comparison == Some(of.number))
    }

    fn opens_a_gate(&self, of: &PairedComparison, veto: &Veto) -> bool {
        self.open_gates(of).any(|gate| explains_gate(veto.reach, gate, &of.rows))
    }

    fn open_gates(&self, of: &PairedComparison) -> impl Iterator<Item = &GateRow> {
        let is_own = |gate: &&GateRow| gate.comparison == Some(of.number);
        let own = self.gates.iter().filter(is_own);
        own.filter(|gate| gate.result == GateResult::Inconclusive)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::tests::{comparison, row};

    fn verdicts(rows: &[VerdictRow], gates: Vec<GateRow>) -> Verdicts {
        let comparisons = rows.iter().map(|row| comparison(vec![row.clone()])).collect();
        Verdicts { comparisons, gates, scaling: Vec::new(), steady: Vec::new() }
    }

    fn row_of(call: Call, pairs_needed: Option<usize>) -> VerdictRow {
        VerdictRow { call, pairs_needed, ..row(Metric::Tps) }
    }

    fn gate(needed: Option<usize>, is_ratio: bool) -> GateRow {
        let gate = "tps.ratio > 0.97".to_owned();
        GateRow { gate, needed, is_ratio, comparison: Some(1), ..GateRow::default() }
    }

    #[test]
    fn the_comparison_that_needs_most_pairs_says_how_many() {
        let remedy = |rows: &[VerdictRow]| verdicts(rows, Vec::new()).remedy();
        let margin = || format::percent(0.03);
        let undecided = |pairs: &str| say!(pairs_would_show_margin, pairs, margin = margin());
        let rows = [row_of(Call::Undecided, Some(20)), row_of(Call::Undecided, Some(30))];
        assert_eq!(remedy(&rows), undecided("30"));
        assert_eq!(remedy(&[row_of(Call::Undecided, Some(100))]), undecided("100"));
        assert_eq!(remedy(&[row_of(Call::Undecided, Some(101))]), say!(pairs_alone_dont_help));
        assert_eq!(remedy(&[row_of(Call::Undecided, None)]), say!(pairs_alone_dont_help));
        let few = say!(verdict_needs_pairs, pairs = "6");
        assert_eq!(remedy(&[row_of(Call::TooFewPairs, None)]), few);
        let decided = row_of(Call::Faster, Some(90));
        assert_eq!(remedy(&[decided.clone(), row_of(Call::TooFewPairs, None)]), few);
        assert_eq!(remedy(&[decided]), say!(trials_failed_mend_the_cause));
        let unproven =
            VerdictRow { p: 0.02, p_adjusted: Some(0.08), ..row_of(Call::Unproven, None) };
        let pairs = pairs_to_prove(&comparison(Vec::new()), &unproven);
        assert!(pairs > 8 && pairs < 40, "{pairs}");
        let wanted = say!(pairs_would_decide_it, pairs = pairs.to_string());
        assert_eq!(remedy(&[unproven]), wanted);
        let bound = VerdictRow { bound: "≥", ..row_of(Call::Undecided, Some(9)) };
        assert_eq!(remedy(&[bound]), say!(a_longer_time_out_would_decide));
    }

    #[test]
    fn gates_decide_where_there_are_some() {
        let remedy = |gates| verdicts(&[row_of(Call::Undecided, Some(30))], gates).remedy();
        let pairs = |pairs: &str| say!(pairs_would_decide_gates, pairs);
        assert_eq!(remedy(vec![gate(Some(12), true), gate(Some(40), true)]), pairs("40"));
        assert_eq!(remedy(vec![gate(Some(100), true)]), pairs("100"));
        assert_eq!(remedy(vec![gate(Some(101), true)]), say!(pairs_alone_dont_help));
        assert_eq!(remedy(vec![gate(None, true)]), say!(pairs_alone_dont_help));
        let repeats = say!(more_repeats_narrow_the_interval);
        assert_eq!(remedy(vec![gate(Some(12), false)]), repeats);
        let passed = GateRow { result: GateResult::Pass, ..gate(Some(12), true) };
        assert_eq!(remedy(vec![passed]), repeats);
    }

    #[test]
    fn what_checks_found_comes_before_pairs() {
        let veto = |check| Veto { check, found: "f".into(), reach: VetoReach::AnyFar };
        let remedy = |checks: &[&'static str], gates| {
            let mut found = verdicts(&[row_of(Call::Undecided, Some(30))], gates);
            found.comparisons[0].vetoes = checks.iter().map(|check| veto(check)).collect();
            found.remedy()
        };
        let ids = |ids: &[&str]| {
            Message::list(&ids.iter().map(|id| Message::verbatim(*id)).collect::<Vec<_>>())
        };
        let advice = say!(take_away_what_checks_found, ids = ids(&["a", STOPPED]));
        assert_eq!(remedy(&[STOPPED, "a"], Vec::new()), advice);
        let outweighed = say!(pairs_outweigh_what_checks_found, ids = ids(&[STOPPED]));
        assert_eq!(remedy(&[STOPPED], Vec::new()), outweighed);
        // Only a check that opens a gate counts.
        let advice = say!(take_away_what_checks_found, ids = ids(&["a"]));
        assert_eq!(remedy(&["a"], vec![gate(Some(12), true)]), advice);
        let passed = GateRow { result: GateResult::Pass, ..gate(Some(12), true) };
        assert_eq!(remedy(&["a"], vec![passed]), say!(more_repeats_narrow_the_interval));
    }

    #[test]
    fn trials_that_do_not_take_turns_need_to() {
        let remedy = |pairs: usize, check: &'static str, call, gates| {
            let mut found = verdicts(&[row_of(call, Some(30))], gates);
            let own = &mut found.comparisons[0];
            own.order = PairOrder::Blocks;
            own.pairs.truncate(pairs);
            own.vetoes = vec![Veto { check, found: "f".into(), reach: VetoReach::HeldUp(0.0) }];
            found.remedy() == say!(only_turns_give_a_verdict)
        };
        assert!(remedy(8, BLOCK_ORDER, Call::Undecided, Vec::new()));
        assert!(remedy(1, "a", Call::TooFewPairs, Vec::new()));
        assert!(!remedy(8, "a", Call::Undecided, Vec::new()));
        assert!(!remedy(8, BLOCK_ORDER, Call::Faster, Vec::new()));
        assert!(remedy(8, BLOCK_ORDER, Call::Faster, vec![gate(None, true)]));
        let passed = GateRow { result: GateResult::Pass, ..gate(None, true) };
        assert!(!remedy(8, BLOCK_ORDER, Call::Undecided, vec![passed]));
    }
}
