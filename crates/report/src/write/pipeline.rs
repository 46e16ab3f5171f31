//! The verdicts of a run as pipelines read them: few lines for a terminal or a mail, Markdown for a pull request, JUnit
//! XML, and what trackers of benchmarks take.

use super::text::escaped;
use crate::evidence::{Call, GateResult, GateRow, PairOrder, PairedComparison, Paper};
use crate::evidence::{VerdictRow, Veto};
use crate::format;
use crate::svg::escape;
use dyno_facts::Lang;
use dyno_facts::statistics::{Better, Metric};
use dyno_judge::findings::verdict::{change, change_of_row, interval_of_change, wrap_sentence};
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// Lines of text, with those of the two streams around them.
const MOST_LINES: usize = 18;
const MOST_CAVEATS: usize = 3;
/// Longest time to suggest, in minutes. A gate that needs more lies at its bound.
const MOST_MINUTES: f64 = 120.0;
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
        let described =
            |result| self.gates(result).map(describe_gate).collect::<Vec<_>>().join("; ");
        let (broken, open) = (described(GateResult::Broken), described(GateResult::Inconclusive));
        let first = figures
            .first()
            .map(|figure| format!("{} {}", figure.name, describe_change(figure.row)));
        let first = first.unwrap_or_else(|| "nothing was compared".to_owned());
        let or_first = |gates: String| if gates.is_empty() { first.clone() } else { gates };
        match self.exit_code {
            0 => format!("No regression: {first}."),
            3 => {
                let established = figures.first().and_then(describe_bound).unwrap_or_default();
                let remedy = self.time_needed().unwrap_or(self.paper.verdicts.remedy().line(LANG));
                format!("Undecided: {}. {established}{remedy}", or_first(open))
            }
            _ => format!("Regression: {}.", or_first(broken)),
        }
    }

    /// At most 18 lines of 80 columns.
    pub fn text(&self) -> String {
        let mut lines = wrap_sentence(&self.headline());
        let caveats: Vec<String> =
            self.caveats().iter().flat_map(|line| wrap_sentence(line)).collect();
        let last = wrap_sentence(&format!("Paper: {}", self.link));
        let caveat_lines = caveats.len().min(2 * MOST_CAVEATS);
        let room = MOST_LINES.saturating_sub(lines.len() + last.len() + caveat_lines);
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
        let failed = self.gates(GateResult::Broken).count();
        let skipped = self.gates(GateResult::Inconclusive).count();
        document_of_tests(gates.len(), [failed, 0, skipped], &tests)
    }

    /// Bencher Metric Format: ratios by place and metric.
    pub fn bencher(&self) -> Value {
        let mut all: Map<String, Value> = Map::new();
        for ComparedFigure { place, metric, row, .. } in self.figures() {
            let mut ratio = json!({ "value": row.ratio });
            if let Some(both) = row.interval {
                (ratio["lower_value"], ratio["upper_value"]) = (json!(both.low), json!(both.high));
            }
            let candidate = json!({ "value": row.candidate.median });
            let place = all.entry(place).or_insert_with(|| json!({}));
            place[format!("{}_ratio", metric.name())] = ratio;
            place[metric.name()] = candidate;
        }
        Value::Object(all)
    }

    /// `customSmallerIsBetter` of github-action-benchmark: ratios of which less is better.
    pub fn benchmark_action(&self) -> Value {
        let entry = |figure: &ComparedFigure<'_>| {
            let ComparedFigure { place, metric, row, .. } = figure;
            let (mut ratio, mut ends) = (row.ratio, row.interval.map(|both| [both.low, both.high]));
            let mut unit = "candidate / baseline";
            if metric.better() == Better::More {
                (ratio, unit) = (1.0 / ratio, "baseline / candidate");
                ends = ends.map(|[low, high]| [1.0 / high, 1.0 / low]);
            }
            let range = ends.map(|[low, high]| format!("{low:.4} to {high:.4}"));
            json!({ "name": format!("{place}: {}", metric.name()), "unit": unit, "value": ratio, "range": range })
        };
        self.figures().iter().map(entry).collect()
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
        for gate in self.gates(GateResult::Inconclusive) {
            let comparison = verdicts.comparison_of(gate)?;
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
        let is_known = minutes > 0.0 && minutes <= MOST_MINUTES;
        is_known.then(|| format!("About {:.0} min more would decide.", minutes.ceil()))
    }

    fn gates(&self, result: GateResult) -> impl Iterator<Item = &GateRow> {
        self.paper.verdicts.gates.iter().filter(move |gate| gate.result == result)
    }

    /// Costs and latencies of concurrent trials, and the first figure of trials in turn: their costs are known better.
    fn figures(&self) -> Vec<ComparedFigure<'_>> {
        let mut figures = Vec::new();
        for of in self.paper.verdicts.comparisons.iter().filter(|of| !of.is_aa) {
            let rows = if of.order == PairOrder::Together { of.rows.len() } else { 1 };
            figures.extend(of.rows.iter().take(rows).map(|row| figure_of(of, row)));
        }
        figures
    }

    /// Returns the difference of the control and the findings of checks, which can invalidate a verdict.
    fn caveats(&self) -> Vec<String> {
        let all = || self.paper.verdicts.comparisons.iter();
        let clones = all().filter(|of| of.is_aa).filter_map(|of| of.rows.first());
        let clone = |row: &VerdictRow| {
            let name = row.name.line(LANG);
            format!("The same source built twice: {name} {}.", describe_change(row))
        };
        let line = |veto: &Veto| format!("{}: {}", veto.check, veto.found.line(LANG));
        let vetoes = all().flat_map(|of| &of.vetoes).map(line);
        let mut lines = format::unique(clones.map(clone).chain(vetoes).collect());
        lines.truncate(MOST_CAVEATS);
        lines
    }
}

/// JUnit XML of a run without a verdict, with its error.
pub fn junit_of_failure(message: &str) -> String {
    let test = format!(
        "  <testcase classname=\"dyno\" name=\"run\"><error message=\"{}\"/></testcase>\n",
        escape(message)
    );
    document_of_tests(1, [0, 1, 0], &test)
}

fn document_of_tests(count: usize, [failures, errors, skipped]: [usize; 3], tests: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n <testsuite name=\"dyno\" tests=\"{count}\" \
         failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\">\n{tests} </testsuite>\n</testsuites>\n"
    )
}

fn figure_of<'a>(of: &PairedComparison, row: &'a VerdictRow) -> ComparedFigure<'a> {
    let name = row.name.line(LANG);
    // Ratios have no unit.
    let name = name.rsplit_once(", ").map_or(name.as_str(), |(name, _)| name).to_owned();
    let call = match row.call {
        Call::TooFewPairs => "too few pairs".to_owned(),
        Call::Unproven => "undecided".to_owned(),
        Call::Equivalent => "equivalent".to_owned(),
        _ => row.words.line(LANG),
    };
    let place = format!("{}, {}", of.experiment, of.level.line(LANG));
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
    let both = figure.row.interval?;
    let (share, direction) = match figure.metric.better() {
        Better::Less => (both.high - 1.0, "higher"),
        Better::More => (1.0 - both.low, "lower"),
    };
    let share = 100.0 * share.max(0.0);
    Some(format!("Established: {} at most {share:.1}% {direction}. ", figure.name))
}

fn describe_gate(gate: &GateRow) -> String {
    let why = gate.why.line(LANG);
    let value = gate.value.map(|value| match gate.is_ratio {
        true => change(value),
        false => format::short(value),
    });
    let interval = gate.interval.filter(|_| gate.is_ratio);
    let interval = interval.map(|both| format!(" ({})", interval_of_change(both)));
    let figure = value.map(|value| format!(": {value}{}", interval.unwrap_or_default()));
    // A sentence, whose end callers write.
    let why = why.trim_end_matches('.');
    let why = if why.is_empty() { String::new() } else { format!(". {why}") };
    format!("{}{}{why}", gate.gate, figure.unwrap_or_default())
}
