//! The verdicts of a run as pipelines read them: few lines for a terminal or a mail, Markdown for a pull request, JUnit
//! XML, and what trackers of benchmarks take.

use super::text::escaped;
use crate::evidence::{Call, GateResult, GateRow, PairOrder, PairedComparison, Paper, VerdictRow};
use crate::format;
use crate::svg::escape;
use dyno_facts::Lang;
use dyno_facts::statistics::{Better, Metric};
use dyno_judge::findings::verdict::{change, change_of_row, interval_of_change, wrap_sentence};
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// Lines of text, with those of the two streams around them.
const MAX_LINES: usize = 18;
const MAX_CAVEATS: usize = 3;
/// Longest time to suggest, in minutes. A gate that needs more lies at its bound.
const MAX_MINUTES: f64 = 120.0;
const LANG: Lang = Lang::En;

/// A line of the table.
struct ComparedFigure<'a> {
    place: String,
    metric: Metric,
    name: String,
    row: &'a VerdictRow,
    call: String,
}

/// A judged run, for pipelines.
#[derive(Clone, Copy, Debug)]
pub struct PipelineSummary<'a> {
    pub paper: &'a Paper,
    /// 0, 3 or 5.
    pub exit_code: u8,
    /// The place of the paper, for readers.
    pub link: &'a str,
}

impl PipelineSummary<'_> {
    /// Returns one sentence with the established change, the open gates or the broken ones.
    pub fn headline(&self) -> String {
        let figures = self.figures();
        let first = figures
            .first()
            .map(|figure| format!("{} {}", figure.name, describe_change(figure.row)));
        let first = first.unwrap_or_else(|| "nothing was compared".to_owned());
        let [broken, open] = [GateResult::Broken, GateResult::Inconclusive].map(|result| {
            let gates = self.gates_with(result).map(describe_gate).collect::<Vec<_>>().join("; ");
            if gates.is_empty() { first.clone() } else { gates }
        });
        match self.exit_code {
            0 => format!("No regression: {first}."),
            3 => {
                let established = figures.first().and_then(describe_bound).unwrap_or_default();
                let remedy = self.time_needed().unwrap_or(self.paper.verdicts.remedy().line(LANG));
                format!("Undecided: {open}. {established}{remedy}")
            }
            _ => format!("Regression: {broken}."),
        }
    }

    /// At most 18 lines of 80 columns.
    pub fn text(&self) -> String {
        let mut lines = wrap_sentence(&self.headline());
        let caveats: Vec<String> =
            self.caveats().iter().flat_map(|line| wrap_sentence(line)).collect();
        let last = wrap_sentence(&format!("Paper: {}", self.link));
        let caveat_lines = caveats.len().min(2 * MAX_CAVEATS);
        let room = MAX_LINES.saturating_sub(lines.len() + last.len() + caveat_lines);
        lines.extend(self.paper.compared_lines(LANG, room));
        lines.extend(caveats.into_iter().take(caveat_lines).chain(last));
        lines.into_iter().map(|line| line + "\n").collect()
    }

    /// One sentence, one table, what could change it, and where the paper is.
    pub fn markdown(&self) -> String {
        let mut out = format!("**{}**\n\n", escaped(&self.headline()));
        out.push_str("| | change | 95% interval | pairs | verdict |\n|---|--:|---|--:|---|\n");
        for figure in self.figures() {
            let [change, interval] = changes(figure.row);
            let name = escaped(&format!("{}: {}", figure.place, figure.name));
            let (pairs, call) = (figure.row.pairs, escaped(&figure.call));
            let _ = writeln!(out, "| {name} | {change} | {interval} | {pairs} | {call} |");
        }
        out.push('\n');
        for caveat in self.caveats() {
            let _ = writeln!(out, "- {}", escaped(&caveat));
        }
        let _ = writeln!(out, "\nPaper: {}", escaped(self.link));
        out
    }

    /// A test for each gate: a broken one fails, an inconclusive one is skipped.
    pub fn junit(&self) -> String {
        let gates = &self.paper.verdicts.gates;
        let mut tests = String::new();
        for gate in gates {
            let place = format!("{}, {}", gate.title.line(LANG), gate.level.line(LANG));
            let _ = write!(
                tests,
                "  <testcase classname=\"{}\" name=\"{}\">",
                escape(&place),
                escape(&gate.gate)
            );
            let message = escape(&describe_gate(gate));
            match gate.result {
                GateResult::Pass => {}
                GateResult::Broken => {
                    let _ = write!(tests, "<failure message=\"{message}\"/>");
                }
                GateResult::Inconclusive => {
                    let _ = write!(tests, "<skipped message=\"{message}\"/>");
                }
            }
            tests.push_str("</testcase>\n");
        }
        let failed = self.gates_with(GateResult::Broken).count();
        let skipped = self.gates_with(GateResult::Inconclusive).count();
        junit_document(gates.len(), [failed, 0, skipped], &tests)
    }

    /// Bencher Metric Format: ratios by place and metric.
    pub fn bencher(&self) -> Value {
        let mut places: Map<String, Value> = Map::new();
        for ComparedFigure { place, metric, row, .. } in self.figures() {
            let mut ratio = json!({ "value": row.ratio });
            if let Some(interval) = row.interval {
                (ratio["lower_value"], ratio["upper_value"]) =
                    (json!(interval.low), json!(interval.high));
            }
            let candidate = json!({ "value": row.candidate.median });
            let place = places.entry(place).or_insert_with(|| json!({}));
            place[format!("{}_ratio", metric.name())] = ratio;
            place[metric.name()] = candidate;
        }
        Value::Object(places)
    }

    /// `customSmallerIsBetter` of github-action-benchmark: ratios of which less is better.
    pub fn benchmark_action(&self) -> Value {
        let figures = self.figures().into_iter();
        let entries = figures.map(|ComparedFigure { place, metric, row, .. }| {
            let mut ratio = row.ratio;
            let mut ends = row.interval.map(|interval| [interval.low, interval.high]);
            let mut unit = "candidate / baseline";
            if metric.better() == Better::More {
                (ratio, unit) = (1.0 / ratio, "baseline / candidate");
                ends = ends.map(|[low, high]| [1.0 / high, 1.0 / low]);
            }
            let range = ends.map(|[low, high]| format!("{low:.4} to {high:.4}"));
            json!({ "name": format!("{place}: {}", metric.name()), "unit": unit, "value": ratio, "range": range })
        });
        entries.collect()
    }

    /// Header and row for Apache Otava, which looks for changes in a series of such rows.
    pub fn otava(&self, commit: &str) -> String {
        let began = self.paper.runs.first().map_or("", |run| run.header.started_at.as_str());
        let mut header = vec!["time".to_owned(), "commit".to_owned()];
        let mut values = vec![began.to_owned(), commit.to_owned()];
        for figure in self.figures() {
            header.push(format!(
                "{}.{}",
                figure.place.replace([',', ' '], "_"),
                figure.metric.name()
            ));
            values.push(figure.row.ratio.to_string());
        }
        format!("{}\n{}\n", header.join(","), values.join(","))
    }

    /// A sentence on the time that open gates would need, if both sides are as measured; `None` if that is unknown.
    fn time_needed(&self) -> Option<String> {
        let verdicts = &self.paper.verdicts;
        let experiments = &self.paper.runs.first()?.header.experiments;
        let mut minutes: f64 = 0.0;
        for gate in self.gates_with(GateResult::Inconclusive) {
            let comparison = verdicts.gate_comparison(gate)?;
            if !comparison.vetoes.is_empty() {
                return None;
            }
            let experiment =
                experiments.iter().find(|other| other.name == comparison.experiment)?;
            let in_turn = if comparison.order == PairOrder::Together { 1.0 } else { 2.0 };
            let pair_s = in_turn * (experiment.warmup_s + experiment.duration_s?);
            let pairs = comparison.rows.first().map_or(0, |row| row.pairs);
            minutes = minutes.max(gate.needed?.saturating_sub(pairs) as f64 * pair_s / 60.0);
        }
        let is_known = minutes > 0.0 && minutes <= MAX_MINUTES;
        is_known.then(|| format!("About {:.0} min more would decide.", minutes.ceil()))
    }

    fn gates_with(&self, result: GateResult) -> impl Iterator<Item = &GateRow> {
        self.paper.verdicts.gates.iter().filter(move |gate| gate.result == result)
    }

    /// Costs and latencies of concurrent trials, and the first figure of trials in turn: their costs are known better.
    fn figures(&self) -> Vec<ComparedFigure<'_>> {
        let mut figures = Vec::new();
        let comparisons = self.paper.verdicts.comparisons.iter();
        for comparison in comparisons.filter(|comparison| !comparison.is_aa) {
            let is_together = comparison.order == PairOrder::Together;
            let n_rows = if is_together { comparison.rows.len() } else { 1 };
            let rows = comparison.rows.iter().take(n_rows);
            figures.extend(rows.map(|row| compared_figure(comparison, row)));
        }
        figures
    }

    /// Returns the difference of the control and the findings of checks, which can invalidate a verdict.
    fn caveats(&self) -> Vec<String> {
        let comparisons = &self.paper.verdicts.comparisons;
        let clones = comparisons
            .iter()
            .filter(|comparison| comparison.is_aa)
            .filter_map(|comparison| comparison.rows.first());
        let clones = clones.map(|row| {
            let name = row.name.line(LANG);
            format!("The same source built twice: {name} {}.", describe_change(row))
        });
        let vetoes = comparisons
            .iter()
            .flat_map(|comparison| &comparison.vetoes)
            .map(|veto| format!("{}: {}", veto.check, veto.found.line(LANG)));
        let mut lines = format::unique(clones.chain(vetoes).collect());
        lines.truncate(MAX_CAVEATS);
        lines
    }
}

/// JUnit XML of a run without a verdict, with its error.
pub fn junit_of_failure(message: &str) -> String {
    let test = format!(
        "  <testcase classname=\"dyno\" name=\"run\"><error message=\"{}\"/></testcase>\n",
        escape(message)
    );
    junit_document(1, [0, 1, 0], &test)
}

fn junit_document(count: usize, [failures, errors, skipped]: [usize; 3], tests: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n <testsuite name=\"dyno\" tests=\"{count}\" \
         failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\">\n{tests} </testsuite>\n</testsuites>\n"
    )
}

fn compared_figure<'a>(comparison: &PairedComparison, row: &'a VerdictRow) -> ComparedFigure<'a> {
    let name = row.name.line(LANG);
    // Ratios have no unit.
    let name = name.rsplit_once(", ").map_or(name.as_str(), |(name, _)| name).to_owned();
    let call = match row.call {
        Call::TooFewPairs => "too few pairs".to_owned(),
        Call::Unproven => "undecided".to_owned(),
        Call::Equivalent => "equivalent".to_owned(),
        _ => row.words.line(LANG),
    };
    let place = format!("{}, {}", comparison.experiment, comparison.level.line(LANG));
    ComparedFigure { place, metric: row.metric, name, row, call }
}

/// The change, and the ends of its interval.
fn changes(row: &VerdictRow) -> [String; 2] {
    let interval = row.interval.map(interval_of_change).unwrap_or_default();
    [change_of_row(row), interval]
}

fn describe_change(row: &VerdictRow) -> String {
    let [change, interval] = changes(row);
    if interval.is_empty() { change } else { format!("{change} ({interval})") }
}

/// A sentence on how much worse a figure is at most.
fn describe_bound(figure: &ComparedFigure<'_>) -> Option<String> {
    let interval = figure.row.interval?;
    let (share, direction) = match figure.metric.better() {
        Better::Less => (interval.high - 1.0, "higher"),
        Better::More => (1.0 - interval.low, "lower"),
    };
    let share = 100.0 * share.max(0.0);
    Some(format!("Established: {} at most {share:.1}% {direction}. ", figure.name))
}

fn describe_gate(gate: &GateRow) -> String {
    let reason = gate.why.line(LANG);
    let value =
        gate.value.map(|value| if gate.is_ratio { change(value) } else { format::short(value) });
    let interval = gate.interval.filter(|_| gate.is_ratio);
    let interval = interval.map(|interval| format!(" ({})", interval_of_change(interval)));
    let figure = value.map(|value| format!(": {value}{}", interval.unwrap_or_default()));
    // A sentence, whose end callers write.
    let reason = reason.trim_end_matches('.');
    let reason = if reason.is_empty() { String::new() } else { format!(". {reason}") };
    format!("{}{}{reason}", gate.gate, figure.unwrap_or_default())
}
