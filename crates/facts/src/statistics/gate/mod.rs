//! Gates: `tps.ratio.low > 0.97`, `p99_ms < 20`, `errors < 0.1%`.
//!
//! ```text
//! gate     = metric [ ".ratio" [ ".low" | ".high" ] ] ( "<" | "<=" | ">" | ">=" ) number [ unit ]
//! ```
//!
//! A metric's unit may stand behind the number instead of in its name: `p99 <= 3ms`, `server_cpu < 80us`. Without `.ratio` a gate is about the trials of a target; with it about a candidate by its baseline. `.low` and
//! `.high` are the bounds of the 95 % interval.
//!
//! - A gate **passes** when its figure keeps the bound: of a value or a ratio the whole interval, of `.low` and `.high`
//!   that end of it. So `tps.ratio.low > 0.97` asks for a proof that not more than 3 % are lost, and
//!   `tps.ratio.high > 0.97` only that no such loss is proven.
//! - It is **broken** when the whole interval violates the bound: the regression is proven.
//! - Else it is **inconclusive**: more pairs or trials would decide.
//!
//! [`Metric::MaxMs`] and [`Metric::Errors`] are facts of the trials; they pass or are broken.

use crate::statistics::ratio::{FigureBound, LEAST_PAIRS, PairedRatio, pairs_needed};
use crate::statistics::{ConfidenceInterval, Metric, deviation, mean, mean_interval};
use std::fmt;
use std::str::FromStr;

/// With fewer trials the interval of a value is so wide that it is shown only where it decides.
pub const LEAST_TRIALS: usize = 3;

dyno_core::named! {
    /// Longer signs first: they begin with shorter ones.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Relation {
        AtMost = "<=",
        AtLeast = ">=",
        Below = "<",
        Above = ">",
    }
}

impl Relation {
    pub fn holds(self, value: f64, bound: f64) -> bool {
        match self {
            Relation::Below => value < bound,
            Relation::AtMost => value <= bound,
            Relation::Above => value > bound,
            Relation::AtLeast => value >= bound,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateFigure {
    Value,
    /// The ratio of a candidate to its baseline.
    Ratio,
    RatioLow,
    RatioHigh,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    /// As written, without blanks at the ends.
    pub text: String,
    pub metric: Metric,
    pub figure: GateFigure,
    pub relation: Relation,
    /// In the metric's unit; shares and ratios as numbers, not percent.
    pub bound: f64,
}

/// A text that is no gate or no objective.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    kind: &'static str,
    text: String,
    /// The character of the mistake, from 1.
    pub column: usize,
    pub message: String,
    pub hint: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mistake { kind, text, column, message, .. } = self;
        let article = if *kind == "objective" { "no objective" } else { "no gate" };
        write!(f, "`{text}` is {article}, character {column}: {message}")
    }
}

impl std::error::Error for Mistake {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateVerdict {
    Pass,
    Broken,
    Inconclusive(GateReason),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateReason {
    NoValue,
    /// Fewer than [`LEAST_TRIALS`], and their interval decides nothing.
    TooFewTrials,
    /// Without a comparison, or without a pair that has values.
    NoPair,
    TooFewPairs,
    IntervalHoldsBound,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JudgedGate {
    pub verdict: GateVerdict,
    /// A geometric mean of the trials or the pairs, or the largest of facts.
    pub value: Option<f64>,
    pub interval: Option<ConfidenceInterval>,
    pub count: usize,
    /// Trials or pairs that would decide an inconclusive one if they vary as they did, up to a million.
    pub needed: Option<usize>,
}

impl FromStr for Gate {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Gate, Mistake> {
        let text = text.trim();
        let mut reader = Reader::new(text, "gate");
        let (metric, needs_unit) = metric(&mut reader)?;
        let figure = figure(&mut reader)?;
        let relation = reader.relation()?;
        let bound = bound(&mut reader, metric, needs_unit, figure)?;
        reader.end()?;
        Ok(Gate { text: text.to_owned(), metric, figure, relation, bound })
    }
}

/// The metric, and whether its name left the unit out. Objectives are about latencies and errors.
fn metric(reader: &mut Reader<'_>) -> Result<(Metric, bool), Mistake> {
    let at = reader.at();
    let word = reader.word();
    let is_gate = reader.kind == "gate";
    let is_allowed =
        |metric: &Metric| is_gate || *metric == Metric::Errors || metric.unit() == Some("ms");
    let is_short = |metric: &Metric| {
        metric.unit().is_some_and(|unit| metric.name() == format!("{word}_{unit}"))
    };
    let metrics: Vec<Metric> = Metric::of_trials().filter(is_allowed).collect();
    let whole = metrics.iter().find(|metric| metric.name() == word);
    let short = || metrics.iter().find(|metric| is_short(metric));
    let known = whole.map(|metric| (*metric, false));
    known.or_else(|| Some((*short()?, true))).ok_or_else(|| {
        let noun = if is_gate { "metric" } else { "latency" };
        let names = metrics.iter().map(|metric| match is_gate {
            true => metric.name(),
            false => metric.name().trim_end_matches("_ms"),
        });
        let names: Vec<&str> = names.collect();
        let message = match word {
            "" => format!("The name of a {noun} was expected."),
            word => format!("`{word}` is no {noun}."),
        };
        let known = if is_gate { "Metrics" } else { "Known" };
        reader.mistake(at, message, format!("{known} are {}.", names.join(", ")))
    })
}

fn figure(reader: &mut Reader<'_>) -> Result<GateFigure, Mistake> {
    if !reader.has(".") {
        return Ok(GateFigure::Value);
    }
    let at = reader.at();
    let word = reader.word();
    if word != "ratio" {
        let message = format!("After a metric and a dot, `ratio` was expected, not `{word}`.");
        let hint = "A gate is about `tps`, `tps.ratio`, `tps.ratio.low` or `tps.ratio.high`.";
        return Err(reader.mistake(at, message, hint.to_owned()));
    }
    if !reader.has(".") {
        return Ok(GateFigure::Ratio);
    }
    let at = reader.at();
    match reader.word() {
        "low" => Ok(GateFigure::RatioLow),
        "high" => Ok(GateFigure::RatioHigh),
        word => {
            let message = format!("`{word}` is no bound of an interval.");
            Err(reader.mistake(at, message, "The bounds are `low` and `high`.".to_owned()))
        }
    }
}

fn bound(
    reader: &mut Reader<'_>,
    metric: Metric,
    needs_unit: bool,
    figure: GateFigure,
) -> Result<f64, Mistake> {
    /// In seconds.
    const TIMES: [(&str, f64); 5] =
        [("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("min", 60.0), ("h", 3600.0)];
    // What an objective bounds takes seconds at most.
    let times = if reader.kind == "gate" { &TIMES[..] } else { &TIMES[..3] };
    let (number, unit) = reader.number()?;
    let at = reader.at() - unit.len();
    let own = metric.unit().and_then(|own| TIMES.iter().find(|(unit, _)| *unit == own));
    let scale = match (figure, own) {
        (GateFigure::Value, Some((_, own))) => match unit {
            "" if needs_unit => scale_of("no", times),
            "" => Ok(1.0),
            unit => scale_of(unit, times).map(|scale| scale / own),
        },
        (GateFigure::Value, None) if metric != Metric::Errors => scale_of(unit, &[("", 1.0)]),
        _ => scale_of(unit, &[("", 1.0), ("%", 0.01)]),
    };
    scale.map(|scale| number * scale).map_err(|known| {
        let message = match unit {
            "" => "The number has no unit.".to_owned(),
            unit => format!("`{unit}` is no unit of this figure."),
        };
        let hint = match (known.as_str(), needs_unit) {
            ("", _) => "It has no unit.".to_owned(),
            (known, true) => format!("Units are {known}."),
            (known, false) => format!("Units are {known}, or none."),
        };
        reader.mistake(at, message, hint)
    })
}

/// The factor of a unit, or the known units.
fn scale_of(unit: &str, units: &[(&str, f64)]) -> Result<f64, String> {
    let known = || {
        let names: Vec<&str> =
            units.iter().map(|(name, _)| *name).filter(|name| !name.is_empty()).collect();
        names.join(", ")
    };
    units.iter().find(|(name, _)| *name == unit).map(|(_, scale)| *scale).ok_or_else(known)
}

impl Gate {
    /// `trials` holds the metric of each trial of a target (for gates about values), `ratio` the comparison (for gates
    /// about ratios).
    pub fn judge(&self, trials: &[f64], ratio: Option<&PairedRatio>) -> JudgedGate {
        match self.figure {
            GateFigure::Value => self.judge_values(trials, None),
            _ => self.judge_ratio(ratio),
        }
    }

    /// Of a gate about values; `bound` where some of them are only bounds.
    pub fn judge_values(&self, trials: &[f64], bound: Option<FigureBound>) -> JudgedGate {
        match self.metric.is_fact() {
            true => self.judge_fact(trials),
            false => self.judge_value(trials, bound),
        }
    }

    fn judge_fact(&self, trials: &[f64]) -> JudgedGate {
        let value = trials.iter().copied().reduce(f64::max);
        let verdict = match value {
            None => GateVerdict::Inconclusive(GateReason::NoValue),
            Some(value) if self.relation.holds(value, self.bound) => GateVerdict::Pass,
            Some(_) => GateVerdict::Broken,
        };
        JudgedGate { verdict, value, interval: None, count: trials.len(), needed: None }
    }

    fn judge_value(&self, trials: &[f64], bound: Option<FigureBound>) -> JudgedGate {
        let logs: Vec<f64> =
            trials.iter().filter(|value| **value > 0.0).map(|value| value.ln()).collect();
        let value = mean(&logs).map(f64::exp);
        let interval = mean_interval(&logs)
            .map(|logs| ConfidenceInterval { low: logs.low.exp(), high: logs.high.exp() })
            .map(|both| bound.map_or(both, |bound| bound.widen(both)));
        let of_interval = |both: ConfidenceInterval| self.of_interval(both, [both.low, both.high]);
        let is_open = |verdict: &GateVerdict| matches!(verdict, GateVerdict::Inconclusive(_));
        let count = logs.len();
        let verdict = match interval.map(of_interval) {
            None if count == 0 => GateVerdict::Inconclusive(GateReason::NoValue),
            None => GateVerdict::Inconclusive(GateReason::TooFewTrials),
            Some(open) if count < LEAST_TRIALS && is_open(&open) => {
                GateVerdict::Inconclusive(GateReason::TooFewTrials)
            }
            Some(verdict) => verdict,
        };
        let is_shown = verdict != GateVerdict::Inconclusive(GateReason::TooFewTrials);
        let interval = interval.filter(|_| is_shown);
        let needed = match (value, deviation(&logs)) {
            (Some(value), Some(deviation)) if is_open(&verdict) && bound.is_none() => {
                pairs_needed(deviation, self.distance(value)).map(|count| count.max(LEAST_TRIALS))
            }
            _ => None,
        };
        JudgedGate { verdict, value, interval, count, needed }
    }

    fn judge_ratio(&self, ratio: Option<&PairedRatio>) -> JudgedGate {
        let Some(ratio) = ratio else {
            let verdict = GateVerdict::Inconclusive(GateReason::NoPair);
            return JudgedGate { verdict, value: None, interval: None, count: 0, needed: None };
        };
        let verdict = match ratio.interval {
            None => GateVerdict::Inconclusive(GateReason::TooFewPairs),
            Some(interval) => {
                let figure = match self.figure {
                    GateFigure::RatioLow => [interval.low; 2],
                    GateFigure::RatioHigh => [interval.high; 2],
                    _ => [interval.low, interval.high],
                };
                self.of_interval(interval, figure)
            }
        };
        let needed = match verdict {
            GateVerdict::Inconclusive(GateReason::TooFewPairs) => Some(LEAST_PAIRS),
            GateVerdict::Inconclusive(_) => ratio.pairs_to_tell_from(self.bound),
            _ => None,
        };
        JudgedGate {
            verdict,
            value: Some(ratio.ratio),
            interval: ratio.interval,
            count: ratio.pairs,
            needed,
        }
    }

    /// The half-width with which an interval around `value` excludes the bound.
    fn distance(&self, value: f64) -> f64 {
        (value / self.bound).ln().abs().sinh()
    }

    fn of_interval(&self, interval: ConfidenceInterval, figure: [f64; 2]) -> GateVerdict {
        let holds = |value: f64| self.relation.holds(value, self.bound);
        match (figure.into_iter().all(holds), holds(interval.low) || holds(interval.high)) {
            (true, _) => GateVerdict::Pass,
            (false, false) => GateVerdict::Broken,
            (false, true) => GateVerdict::Inconclusive(GateReason::IntervalHoldsBound),
        }
    }
}

/// A condition for rates, such as `p99 < 20ms`.
#[derive(Clone, Debug, PartialEq)]
pub struct Objective {
    /// As written, without blanks at the ends.
    pub text: String,
    /// A latency, or [`Metric::Errors`].
    pub metric: Metric,
    /// [`Relation::Below`] or [`Relation::AtMost`].
    pub relation: Relation,
    pub bound: f64,
}

impl Objective {
    /// False for a trial without the value (too few samples for the percentile).
    pub fn is_met(&self, value: Option<f64>) -> bool {
        value.is_some_and(|value| self.relation.holds(value, self.bound))
    }
}

impl FromStr for Objective {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Objective, Mistake> {
        let text = text.trim();
        let mut reader = Reader::new(text, "objective");
        let (metric, needs_unit) = metric(&mut reader)?;
        reader.skip_blanks();
        let at = reader.at();
        let relation = reader.relation()?;
        if !matches!(relation, Relation::Below | Relation::AtMost) {
            let message = "An objective bounds a latency from above.".to_owned();
            return Err(reader.mistake(at, message, format!("Write `{} < ...`.", metric.name())));
        }
        let bound = bound(&mut reader, metric, needs_unit, GateFigure::Value)?;
        reader.end()?;
        Ok(Objective { text: text.to_owned(), metric, relation, bound })
    }
}

/// Reads what gates and objectives are written in.
struct Reader<'a> {
    text: &'a str,
    at: usize,
    /// `gate` or `objective`.
    kind: &'static str,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str, kind: &'static str) -> Reader<'a> {
        Reader { text, at: 0, kind }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_blanks(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    /// A mistake at a byte offset.
    fn mistake(&self, at: usize, message: String, hint: impl Into<String>) -> Mistake {
        let column = self.text[..at].chars().count() + 1;
        Mistake { kind: self.kind, text: self.text.to_owned(), column, message, hint: hint.into() }
    }

    fn at(&self) -> usize {
        self.at
    }

    /// Letters, digits and underscores; may be empty.
    fn word(&mut self) -> &'a str {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let rest = self.rest();
        let end = rest.find(|c: char| !is_part(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn has(&mut self, sign: &str) -> bool {
        let is_next = self.rest().starts_with(sign);
        if is_next {
            self.at += sign.len();
        }
        is_next
    }

    fn relation(&mut self) -> Result<Relation, Mistake> {
        self.skip_blanks();
        Relation::ALL.into_iter().find(|relation| self.has(relation.name())).ok_or_else(|| {
            let message = format!("A comparison was expected{}.", self.found());
            self.mistake(self.at, message, "Comparisons are <, <=, > and >=.")
        })
    }

    /// A number and the unit behind it, which may be empty.
    fn number(&mut self) -> Result<(f64, &'a str), Mistake> {
        self.skip_blanks();
        let rest = self.rest();
        let is_part = |c: char| c.is_ascii_digit() || c == '.' || c == '-' || c == '+';
        let end = rest.find(|c: char| !is_part(c)).unwrap_or(rest.len());
        let Ok(number) = rest[..end].parse::<f64>() else {
            let message = format!("A number was expected{}.", self.found());
            let example = if self.kind == "gate" { "tps.ratio.low > 0.97" } else { "p99 < 20ms" };
            return Err(self.mistake(self.at, message, format!("An example: `{example}`.")));
        };
        self.at += end;
        self.skip_blanks();
        let unit = if self.has("%") { "%" } else { self.word() };
        Ok((number, unit))
    }

    fn end(&mut self) -> Result<(), Mistake> {
        self.skip_blanks();
        if self.rest().is_empty() {
            return Ok(());
        }
        let message = format!("Nothing was expected any more{}.", self.found());
        let hint = format!("One comparison is one {}; write several as a list.", self.kind);
        Err(self.mistake(self.at, message, hint))
    }

    fn found(&self) -> String {
        match self.rest().split_whitespace().next() {
            Some(word) => format!(", but `{word}` was found"),
            None => ", but the text ends here".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests;
