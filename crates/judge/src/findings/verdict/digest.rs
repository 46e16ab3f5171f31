//! The output of `dyno compare`: few lines, to be pasted into a mail.

use super::*;
use crate::findings::checks::Caveat;
use dyno_facts::format::{clip, wrap};

/// With the error and the hint on the other stream these are 20.
const MAX_LINES: usize = 17;
/// Columns of a line: an email is not wrapped.
const COLUMNS: usize = 80;
const MAX_GATE_LINES: usize = 5;
/// Lines that the table has at least.
const MIN_TABLE_LINES: usize = 4;
/// More targets share a line.
const MAX_TARGET_LINES: usize = 3;
/// Lines about parts of the load.
const MAX_PART_LINES: usize = 2;
/// Checks that are named with what they found.
const MAX_DESCRIBED_CHECKS: usize = 2;
/// Longer names of targets are replaced by letters.
const MAX_NAME_CHARACTERS: usize = 12;
/// Caveats in words.
const MAX_CAVEATS: usize = 4;
/// The check of an interval that is wider than requested.
const HALF_WIDTH: &str = "half-width";
/// Longer sentences are cut.
const MAX_CHARACTERS: usize = 240;

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
        let mut lines = Vec::new();
        if self.is_rehearsal() {
            lines.extend(wrap_lines(&[say!(no_results)], lang));
        }
        lines.extend(wrap_lines(&self.compared_targets(), lang));
        let mut gates: Vec<_> = self.verdicts.gates.iter().collect();
        gates.sort_by_key(|gate| std::cmp::Reverse(gate.result));
        let mut footer = fit_gates(gates.into_iter().map(words::gate).collect(), lang);
        let meaning = exit_code_meaning(code, !self.verdicts.gates.is_empty());
        let papers = match papers {
            [] => say!(no_paper_yet),
            papers => say!(paper_files, files = papers.join(", ")),
        };
        let code = say!(exit_code_means, code = code.to_string(), meaning);
        footer.extend(wrap_lines(&[code, papers], lang));
        let line_budget = MAX_LINES.saturating_sub(footer.len());
        let mut caveats = wrap_lines(&self.objections(MAX_CAVEATS), lang);
        caveats.truncate(line_budget.saturating_sub(lines.len() + MIN_TABLE_LINES));
        lines.extend(
            self.compared_lines(lang, line_budget.saturating_sub(lines.len() + caveats.len())),
        );
        let mut parts = self.parts_that_changed(self.side_names());
        parts.truncate(MAX_PART_LINES);
        let mut parts = wrap_lines(&parts, lang);
        parts.truncate(line_budget.saturating_sub(lines.len() + caveats.len()));
        lines.extend(parts.into_iter().chain(caveats));
        lines.into_iter().chain(footer).map(|line| line + "\n").collect()
    }

    /// The names of both targets in the lines that follow, if there are two: A and B instead of long ones.
    fn side_names(&self) -> Option<[&str; 2]> {
        let labels = self.only_target_pair()?;
        let are_short = labels.iter().all(|label| label.chars().count() <= MAX_NAME_CHARACTERS);
        Some(if are_short { labels } else { ["A", "B"] })
    }

    /// Both targets, if there are two.
    fn only_target_pair(&self) -> Option<[&str; 2]> {
        let first = self.verdicts.comparisons.first()?;
        let have_same_targets = self.verdicts.comparisons.iter().all(|comparison| {
            (&comparison.baseline, &comparison.candidate) == (&first.baseline, &first.candidate)
        });
        have_same_targets.then_some([&first.baseline, &first.candidate])
    }

    fn compared_targets(&self) -> Vec<Message> {
        if let Some(sides) =
            self.only_target_pair().filter(|sides| self.side_names() != Some(*sides))
        {
            let lines = ["A", "B"].into_iter().zip(sides).map(|(name, label)| {
                Message::verbatim(match self.target_product(label) {
                    Some(product) => format!("{name}: {product} ({label})"),
                    None => format!("{name}: {label}"),
                })
            });
            return lines.collect();
        }
        let comparisons = self.verdicts.comparisons.iter();
        let labels =
            comparisons.flat_map(|comparison| [&comparison.baseline, &comparison.candidate]);
        let labels = format::unique(labels.collect::<Vec<_>>()).into_iter();
        let lines: Vec<Message> = labels
            .filter_map(|label| {
                Some(Message::verbatim(format!("{label}: {}", self.target_product(label)?)))
            })
            .collect();
        match lines.len() {
            0..=MAX_TARGET_LINES => lines,
            _ => vec![Message::joined(&lines, "; ", "；")],
        }
    }

    /// The product of the target with this label; `None` if it is unknown.
    fn target_product(&self, label: &str) -> Option<&str> {
        let target = self.targets.iter().find(|target| target.label == label)?;
        Some(target.product.trim()).filter(|product| !product.is_empty())
    }

    /// A line for each comparison, and one for each of its metrics, at most as many as `room`: if they don't fit,
    /// the metric that decides goes first, then what is slower.
    pub fn compared_lines(&self, lang: Lang, room: usize) -> Vec<String> {
        let comparisons = &self.verdicts.comparisons;
        // A comparison without a pair that counts has a sentence.
        let mut places: Vec<(usize, usize)> = (0..comparisons.len())
            .flat_map(|at| (0..comparisons[at].rows.len().max(1)).map(move |row| (at, row)))
            .collect();
        let line_count = places.len();
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
        let names = self.side_names();
        let mut lines = Vec::new();
        for &(at, row) in &places {
            let comparison = &comparisons[at];
            let Some(verdict) = comparison.rows.get(row) else {
                lines.extend(wrap_sentence(&comparison.sentence.line(lang)).into_iter().take(2));
                continue;
            };
            if titled.remove(&at) {
                let [a, b] = names.unwrap_or([&comparison.baseline, &comparison.candidate]);
                let title = say!(
                    comparison_title,
                    place = words::place(comparison),
                    sides = format!("{b} / {a}"),
                    pairs = words::pairs(verdict)
                );
                let title = if comparison.is_aa {
                    Message::joined(&[title, words::aa(comparison)], "; ", "；")
                } else {
                    title
                };
                lines.push(clip(&title.line(lang), COLUMNS));
            }
            lines.push(clip(&table_line(verdict, lang), COLUMNS));
        }
        if places.len() < line_count {
            let n = (line_count - places.len()) as u64;
            lines.push(say!(more_lines_by_long, n).line(lang));
        }
        lines
    }

    /// Returns what could change the answer: the checks that forbid to claim it, at most `max_caveats` that
    /// reach farthest, a half-width that was not reached, and what was accepted.
    pub fn objections(&self, max_caveats: usize) -> Vec<Message> {
        let (mut forbidding, mut further) = (Vec::new(), Vec::new());
        for check in self.open_checks(Level::E) {
            if forbidding.len() < MAX_DESCRIBED_CHECKS {
                forbidding.push(first_finding(check));
            } else {
                further.push(Message::verbatim(check.id));
            }
        }
        forbidding.extend(further);
        let mut caveats: Vec<Message> = Vec::new();
        if self.verdicts.comparisons.iter().any(PairedComparison::has_unlike_sessions) {
            caveats.push(say!(unlike_sessions));
        }
        caveats.extend(self.caveats().iter().take(max_caveats).map(Caveat::line));
        let mut rows = self.verdicts.comparisons.iter().flat_map(|comparison| &comparison.rows);
        let mut lines = Vec::new();
        if !forbidding.is_empty() {
            lines.push(say!(checks_forbid, checks = Message::joined(&forbidding, ", ", "、")));
        } else if !self.is_rehearsal() && rows.any(|row| !row.call.is_undecided()) {
            lines.push(say!(no_check_forbids));
        }
        if !caveats.is_empty() {
            lines.push(say!(could_change_this_answer));
            lines.extend(caveats.into_iter().map(|caveat| say!(caveat_item, caveat)));
        }
        let half_width = self.checks.iter().find(|check| check.id == HALF_WIDTH);
        lines.extend(half_width.filter(|check| check.is_open()).map(first_finding));
        let accepted =
            self.checks.iter().filter(|check| check.level < Level::I && check.is_accepted);
        let accepted: Vec<Message> =
            accepted.map(|check| say!(check_accepted, id = check.id)).collect();
        if !accepted.is_empty() {
            lines.push(Message::joined(&accepted, ", ", "、"));
        }
        lines
    }
}

/// A check with the first line of what it found.
fn first_finding(check: &Check) -> Message {
    let first = check.lines.first().cloned().unwrap_or_default();
    say!(check_with_finding, id = check.id, found = first)
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

fn exit_code_meaning(code: u8, has_gates: bool) -> Message {
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
fn fit_gates(gates: Vec<Message>, lang: Lang) -> Vec<String> {
    let (mut lines, gate_count) = (Vec::new(), gates.len());
    for (index, gate) in gates.into_iter().enumerate() {
        let gate_lines = wrap_sentence(&gate.line(lang));
        if lines.len() + gate_lines.len() > MAX_GATE_LINES {
            lines.push(say!(more_lines_by_long, n = (gate_count - index) as u64).line(lang));
            break;
        }
        lines.extend(gate_lines);
    }
    lines
}

fn wrap_lines(texts: &[Message], lang: Lang) -> Vec<String> {
    texts.iter().flat_map(|text| wrap_sentence(&text.line(lang))).collect()
}

/// Lines of 80 columns; those after the first are indented.
pub fn wrap_sentence(text: &str) -> Vec<String> {
    let text = match text.char_indices().nth(MAX_CHARACTERS) {
        Some((at, _)) => &format!("{}…", &text[..at]),
        None => text,
    };
    wrap(text, COLUMNS, "  ")
}

/// Executions of a part below which a trial says nothing of it.
const MIN_EXECUTIONS: u64 = 20;
/// Less than this, as a ratio, is not worth a line.
const MIN_CHANGE: f64 = 1.03;
/// Longer statements are cut.
const MAX_STATEMENT_CHARACTERS: usize = 70;

impl Judgment {
    /// A line for each comparison that is decided by its first metric and has parts, those of slower candidates first.
    /// `sides` is how a line calls both targets.
    pub(super) fn parts_that_changed(&self, sides: Option<[&str; 2]>) -> Vec<Message> {
        let mut lines = Vec::new();
        for call in [Call::Slower, Call::Faster] {
            let comparisons = self.verdicts.comparisons.iter().filter(|comparison| {
                !comparison.is_aa && comparison.rows.first().is_some_and(|row| row.call == call)
            });
            lines.extend(comparisons.filter_map(|comparison| {
                let labels = [comparison.baseline.as_str(), &comparison.candidate];
                self.most_changed_part(comparison, sides.unwrap_or(labels))
            }));
        }
        lines
    }

    fn most_changed_part(
        &self,
        comparison: &PairedComparison,
        [a, b]: [&str; 2],
    ) -> Option<Message> {
        let mut ratios: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        let mut pairs = 0;
        for [baseline, candidate] in &comparison.pairs {
            let (baseline, candidate) = (self.trial(baseline)?, self.trial(candidate)?);
            let candidate = means_us(&candidate.summary);
            pairs += 1;
            for (name, before) in means_us(&baseline.summary) {
                let ratio = candidate.get(&name).map(|after| after / before);
                ratios.entry(name).or_default().extend(ratio);
            }
        }
        let mut parts: Vec<(String, f64)> = ratios
            .into_iter()
            .filter(|(_, ratios)| ratios.len() == pairs)
            .filter_map(|(name, ratios)| Some((name, median(&ratios)?)))
            .collect();
        parts.sort_by(|a, b| b.1.ln().abs().total_cmp(&a.1.ln().abs()));
        let ((name, largest), remaining) = parts.split_first()?;
        let remaining: Vec<f64> = remaining.iter().map(|(_, ratio)| *ratio).collect();
        let other_parts = median(&remaining)?;
        if largest.ln().abs() < MIN_CHANGE.ln() {
            return None;
        }
        Some(say!(
            part_changed_most,
            place = words::place(comparison),
            part = name,
            sides = format!("{b}/{a}"),
            ratio = ratio(*largest),
            others = ratio(other_parts),
        ))
    }
}

/// Mean latency of each statement of its scripts, or, if it reports none, of each kind of transaction, microseconds.
fn means_us(summary: &TrialSummary) -> BTreeMap<String, f64> {
    let statements = summary.statement_latencies.iter().map(|row| {
        let text: String = row.text.trim().chars().take(MAX_STATEMENT_CHARACTERS).collect();
        (format!("`{text}` ({} {})", row.script, row.number), row.count, row.mean_us)
    });
    let mut parts: Vec<(String, u64, f64)> = statements.collect();
    if parts.is_empty() {
        let kinds = summary.kinds.iter();
        parts = kinds
            .map(|kind| (kind.name.clone(), kind.latency.count, kind.latency.mean_us))
            .collect();
    }
    parts.retain(|(_, count, mean_us)| *count >= MIN_EXECUTIONS && *mean_us > 0.0);
    parts.into_iter().map(|(name, _, mean_us)| (name, mean_us)).collect()
}

/// The check of trials that do not take turns.
const BLOCK_ORDER: &str = "block-order";

/// Pairs of a comparison that would prove a difference among all comparisons of its experiment.
pub(super) fn pairs_to_prove(comparison: &PairedComparison, row: &VerdictRow) -> usize {
    let adjusted = row.p_adjusted.unwrap_or(row.p);
    let units = dyno_facts::statistics::ratio::pairs_to_prove(
        row.units,
        row.p,
        adjusted,
        comparison.stop.is_until_decided,
    );
    units * comparison.unit_pairs as usize
}

impl Verdicts {
    /// The remedy in a sentence: for gates if there are some, else for the first metric of each comparison.
    pub fn remedy(&self) -> Message {
        if self.is_open_by_order() {
            return say!(only_turns_give_a_verdict);
        }
        let deciding = self.comparisons.iter().filter(|_| self.gates.is_empty());
        let deciding = deciding.flat_map(|comparison| comparison.deciding_vetoes());
        let gate_vetoes = self.comparisons.iter().flat_map(|comparison| {
            let vetoes = comparison.vetoes.iter();
            vetoes.filter(move |veto| self.opens_a_gate(comparison, veto))
        });
        let vetoes: BTreeSet<&str> = deciding.chain(gate_vetoes).map(|veto| veto.check).collect();
        if !vetoes.is_empty() {
            let can_be_outweighed = vetoes.iter().all(|id| *id == STOPPED);
            let ids: Vec<Message> = vetoes.into_iter().map(Message::verbatim).collect();
            let ids = Message::list(&ids);
            return if can_be_outweighed {
                say!(pairs_outweigh_what_checks_found, ids)
            } else {
                say!(take_away_what_checks_found, ids)
            };
        }
        let mut deciding_rows =
            self.comparisons.iter().filter_map(|comparison| comparison.rows.first());
        if deciding_rows.any(|row| row.call == Call::Undecided && !row.bound.is_empty()) {
            return say!(a_longer_time_out_would_decide);
        }
        if !self.gates.is_empty() {
            let open = self.gates.iter().filter(|gate| gate.result == GateResult::Inconclusive);
            // A figure too near its bound gives no number.
            let needed_pairs = open
                .filter(|gate| gate.is_ratio)
                .map(|gate| gate.needed.filter(|pairs| *pairs <= MAX_PAIRS).unwrap_or(usize::MAX));
            return match needed_pairs.max() {
                None => say!(more_repeats_narrow_the_interval),
                Some(usize::MAX) => say!(pairs_alone_dont_help),
                Some(pairs) => say!(pairs_would_decide_gates, pairs = format::whole(pairs as f64)),
            };
        }
        let needed_pairs = self.comparisons.iter().filter_map(|comparison| {
            let row = comparison.rows.first().filter(|row| row.call.is_undecided())?;
            let pairs = match row.call {
                Call::TooFewPairs => comparison.least_pairs(),
                Call::Unproven => pairs_to_prove(comparison, row),
                _ => row.pairs_needed.unwrap_or(usize::MAX),
            };
            let pairs = if pairs > MAX_PAIRS { usize::MAX } else { pairs };
            Some((pairs, row.call, comparison.margin))
        });
        match needed_pairs.max_by_key(|(pairs, ..)| *pairs) {
            None => say!(trials_failed_mend_the_cause),
            Some((usize::MAX, ..)) => say!(pairs_alone_dont_help),
            Some((pairs, Call::Undecided, margin)) => {
                let pairs = format::whole(pairs as f64);
                say!(pairs_would_show_margin, pairs, margin = format::percent(margin))
            }
            Some((pairs, Call::TooFewPairs, _)) => {
                say!(verdict_needs_pairs, pairs = format::whole(pairs as f64))
            }
            Some((pairs, ..)) => {
                say!(pairs_would_decide_comparison, pairs = format::whole(pairs as f64))
            }
        }
    }

    /// Returns true if a verdict is open because trials did not take turns, as those of two runs: the check finds it
    /// from two pairs on, and may be accepted.
    fn is_open_by_order(&self) -> bool {
        let mut in_blocks = self.comparisons.iter().filter(|comparison| {
            let mut vetoes = comparison.vetoes.iter();
            comparison.order == PairOrder::Blocks
                && (comparison.pairs.len() == 1 || vetoes.any(|veto| veto.check == BLOCK_ORDER))
        });
        in_blocks.any(|comparison| {
            if self.gates.is_empty() {
                comparison.rows.first().is_some_and(|row| row.call.is_undecided())
            } else {
                self.open_gates(comparison).next().is_some()
            }
        })
    }

    /// The comparison whose ratio a gate is about.
    pub fn gate_comparison(&self, gate: &GateRow) -> Option<&PairedComparison> {
        self.comparisons.iter().find(|comparison| gate.comparison == Some(comparison.number))
    }

    fn opens_a_gate(&self, comparison: &PairedComparison, veto: &Veto) -> bool {
        let mut gates = self.open_gates(comparison);
        gates.any(|gate| explains_gate(veto.reach, gate, &comparison.rows))
    }

    fn open_gates(&self, comparison: &PairedComparison) -> impl Iterator<Item = &GateRow> {
        let gates = self.gates.iter().filter(|gate| gate.comparison == Some(comparison.number));
        gates.filter(|gate| gate.result == GateResult::Inconclusive)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::tests::{comparison, row};

    fn make_verdicts(rows: &[VerdictRow], gates: Vec<GateRow>) -> Verdicts {
        let comparisons = rows.iter().map(|row| comparison(vec![row.clone()])).collect();
        Verdicts { comparisons, gates, scaling: Vec::new(), steady: Vec::new() }
    }

    fn make_row(call: Call, pairs_needed: Option<usize>) -> VerdictRow {
        VerdictRow { call, pairs_needed, ..row(Metric::Tps) }
    }

    fn make_gate(needed: Option<usize>, is_ratio: bool) -> GateRow {
        let gate = "tps.ratio > 0.97".to_owned();
        GateRow { gate, needed, is_ratio, comparison: Some(1), ..GateRow::default() }
    }

    fn find_remedy(rows: &[VerdictRow]) -> Message {
        make_verdicts(rows, Vec::new()).remedy()
    }

    #[test]
    fn the_comparison_that_needs_most_pairs_says_how_many() {
        let margin = &format::percent(0.03);
        let rows = [make_row(Call::Undecided, Some(20)), make_row(Call::Undecided, Some(30))];
        assert_eq!(find_remedy(&rows), say!(pairs_would_show_margin, pairs = "30", margin));
        let upper_bound = say!(pairs_would_show_margin, pairs = "100", margin);
        assert_eq!(find_remedy(&[make_row(Call::Undecided, Some(100))]), upper_bound);
        assert_eq!(
            find_remedy(&[make_row(Call::Undecided, Some(101))]),
            say!(pairs_alone_dont_help)
        );
        assert_eq!(find_remedy(&[make_row(Call::Undecided, None)]), say!(pairs_alone_dont_help));
        let too_few = say!(verdict_needs_pairs, pairs = "6");
        assert_eq!(find_remedy(&[make_row(Call::TooFewPairs, None)]), too_few);
        let decided = make_row(Call::Faster, Some(90));
        assert_eq!(find_remedy(&[decided.clone(), make_row(Call::TooFewPairs, None)]), too_few);
        assert_eq!(find_remedy(&[decided]), say!(trials_failed_mend_the_cause));
        let unproven =
            VerdictRow { p: 0.02, p_adjusted: Some(0.08), ..make_row(Call::Unproven, None) };
        let pairs = pairs_to_prove(&comparison(Vec::new()), &unproven);
        assert!(pairs > 8 && pairs < 40, "{pairs}");
        let expected = say!(pairs_would_decide_comparison, pairs = pairs.to_string());
        assert_eq!(find_remedy(&[unproven]), expected);
        let bound = VerdictRow { bound: "≥", ..make_row(Call::Undecided, Some(9)) };
        assert_eq!(find_remedy(&[bound]), say!(a_longer_time_out_would_decide));
    }

    fn remedy_with_gates(gates: Vec<GateRow>) -> Message {
        make_verdicts(&[make_row(Call::Undecided, Some(30))], gates).remedy()
    }

    #[test]
    fn gates_decide_where_there_are_some() {
        let gates = vec![make_gate(Some(12), true), make_gate(Some(40), true)];
        assert_eq!(remedy_with_gates(gates), say!(pairs_would_decide_gates, pairs = "40"));
        let upper_bound = say!(pairs_would_decide_gates, pairs = "100");
        assert_eq!(remedy_with_gates(vec![make_gate(Some(100), true)]), upper_bound);
        assert_eq!(
            remedy_with_gates(vec![make_gate(Some(101), true)]),
            say!(pairs_alone_dont_help)
        );
        assert_eq!(remedy_with_gates(vec![make_gate(None, true)]), say!(pairs_alone_dont_help));
        let repeats = say!(more_repeats_narrow_the_interval);
        assert_eq!(remedy_with_gates(vec![make_gate(Some(12), false)]), repeats);
        let passed = GateRow { result: GateResult::Pass, ..make_gate(Some(12), true) };
        assert_eq!(remedy_with_gates(vec![passed]), repeats);
    }

    fn remedy_with_vetoes(checks: &[&'static str], gates: Vec<GateRow>) -> Message {
        let mut verdicts = make_verdicts(&[make_row(Call::Undecided, Some(30))], gates);
        let vetoes =
            checks.iter().map(|&check| Veto { check, found: "f".into(), reach: VetoReach::AnyFar });
        verdicts.comparisons[0].vetoes = vetoes.collect();
        verdicts.remedy()
    }

    fn list_ids(ids: &[&str]) -> Message {
        Message::list(&ids.iter().map(|id| Message::verbatim(*id)).collect::<Vec<_>>())
    }

    #[test]
    fn what_checks_found_comes_before_pairs() {
        let advice = say!(take_away_what_checks_found, ids = list_ids(&["a", STOPPED]));
        assert_eq!(remedy_with_vetoes(&[STOPPED, "a"], Vec::new()), advice);
        let outweighed = say!(pairs_outweigh_what_checks_found, ids = list_ids(&[STOPPED]));
        assert_eq!(remedy_with_vetoes(&[STOPPED], Vec::new()), outweighed);
        // Only a check that opens a gate counts.
        let advice = say!(take_away_what_checks_found, ids = list_ids(&["a"]));
        assert_eq!(remedy_with_vetoes(&["a"], vec![make_gate(Some(12), true)]), advice);
        let passed = GateRow { result: GateResult::Pass, ..make_gate(Some(12), true) };
        assert_eq!(
            remedy_with_vetoes(&["a"], vec![passed]),
            say!(more_repeats_narrow_the_interval)
        );
    }

    fn needs_turns(pairs: usize, check: &'static str, call: Call, gates: Vec<GateRow>) -> bool {
        let mut verdicts = make_verdicts(&[make_row(call, Some(30))], gates);
        let comparison = &mut verdicts.comparisons[0];
        comparison.order = PairOrder::Blocks;
        comparison.pairs.truncate(pairs);
        comparison.vetoes = vec![Veto { check, found: "f".into(), reach: VetoReach::HeldUp(0.0) }];
        verdicts.remedy() == say!(only_turns_give_a_verdict)
    }

    #[test]
    fn trials_that_do_not_take_turns_need_to() {
        assert!(needs_turns(8, BLOCK_ORDER, Call::Undecided, Vec::new()));
        assert!(needs_turns(1, "a", Call::TooFewPairs, Vec::new()));
        assert!(!needs_turns(8, "a", Call::Undecided, Vec::new()));
        assert!(!needs_turns(8, BLOCK_ORDER, Call::Faster, Vec::new()));
        assert!(needs_turns(8, BLOCK_ORDER, Call::Faster, vec![make_gate(None, true)]));
        let passed = GateRow { result: GateResult::Pass, ..make_gate(None, true) };
        assert!(!needs_turns(8, BLOCK_ORDER, Call::Undecided, vec![passed]));
    }
}
