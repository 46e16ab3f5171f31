//! Gates: `tps.ratio.low > 0.97`, `p99_ms < 20`, `errors < 0.1%`.
//!
//! ```text
//! gate     = metric [ ".ratio" [ ".low" | ".high" ] ] ( "<" | "<=" | ">" | ">=" ) number [ unit ]
//! ```
//!
//! A metric's unit may follow the number instead of being in its name: `p99 <= 3ms`, `server_cpu < 80us`. Without
//! `.ratio` a gate is about the trials of a target; with it about a candidate by its baseline. `.low` and `.high` are
//! the bounds of the 95% interval.
//!
//! - A gate **passes** when its figure keeps the bound: of a value or a ratio the whole interval, of `.low` and `.high`
//!   that end of it. So `tps.ratio.low > 0.97` asks for a proof that not more than 3% are lost, and
//!   `tps.ratio.high > 0.97` only that no such loss is proven.
//! - It is **broken** when the whole interval violates the bound: the regression is proven.
//! - Else it is **inconclusive**: more pairs or trials would decide.
//!
//! [`Metric::MaxMs`] and [`Metric::Errors`] are facts of the trials; they pass or are broken.

use crate::statistics::ratio::{FigureBound, LEAST_PAIRS, PairedRatio, pairs_needed};
use crate::statistics::{ConfidenceInterval, Metric, deviation, mean, mean_interval};
use std::fmt;
use std::str::FromStr;

/// With fewer trials the interval of a value is so wide that it is shown only if it decides.
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
    /// Returns true if the value keeps the bound.
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
    /// Text as written, without blanks at the ends.
    pub text: String,
    pub metric: Metric,
    pub figure: GateFigure,
    pub relation: Relation,
    /// The bound in the metric's unit; shares and ratios as numbers, not percent.
    pub bound: f64,
}

/// The error in a text that should be a gate or an objective, with the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    message: String,
    pub hint: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Mistake {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateVerdict {
    Pass,
    Broken,
    Inconclusive(GateReason),
}

impl GateVerdict {
    fn is_inconclusive(self) -> bool {
        matches!(self, GateVerdict::Inconclusive(_))
    }
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
        read(text, "gate")
    }
}

/// Reads a gate, or an `objective`, which is about a latency or errors.
fn read(text: &str, kind: &str) -> Result<Gate, Mistake> {
    let text = text.trim();
    read_parts(text, kind).map_err(|(message, hint)| {
        let article = if kind == "gate" { "a" } else { "an" };
        Mistake { message: format!("`{text}` is not {article} {kind}: {message}"), hint }
    })
}

/// Like [`read`]; the message of an error is about a part of the text.
fn read_parts(text: &str, kind: &str) -> Result<Gate, (String, String)> {
    let at = text.find(['<', '>']).unwrap_or(text.len());
    let (name, figure) = text[..at].trim().split_once('.').unwrap_or((text[..at].trim(), ""));
    let metric = metric(name, kind).map_err(|known| {
        let noun = if kind == "gate" { "metric" } else { "latency" };
        (format!("`{name}` is not a {noun}."), format!("Known are {}.", known.join(", ")))
    })?;
    let needs_unit = metric.name() != name;
    let figure = match figure {
        "" => GateFigure::Value,
        "ratio" => GateFigure::Ratio,
        "ratio.low" => GateFigure::RatioLow,
        "ratio.high" => GateFigure::RatioHigh,
        other => {
            let hint = "A gate is about `tps`, `tps.ratio`, `tps.ratio.low` or `tps.ratio.high`.";
            return Err((format!("`{other}` is not a figure of a metric."), hint.to_owned()));
        }
    };
    let relation =
        Relation::ALL.into_iter().find(|relation| text[at..].starts_with(relation.name()));
    let relation = relation.ok_or_else(|| {
        let hint = "Comparisons are <, <=, > and >=.".to_owned();
        ("A comparison was expected.".to_owned(), hint)
    })?;
    let bound_text = text[at + relation.name().len()..].trim();
    let number_end =
        bound_text.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '-' | '+'));
    let (number, unit) = bound_text.split_at(number_end.unwrap_or(bound_text.len()));
    let number: f64 = number.parse().map_err(|_| {
        let example = if kind == "gate" { "tps.ratio.low > 0.97" } else { "p99 < 20ms" };
        (format!("`{bound_text}` is not a number."), format!("An example: `{example}`."))
    })?;
    let unit = unit.trim();
    let scale = scale(unit, metric, needs_unit, figure).map_err(|known| {
        let hint = match known.as_slice() {
            [] => "It has no unit.".to_owned(),
            known if needs_unit => format!("Units are {}.", known.join(", ")),
            known => format!("Units are {}, or none.", known.join(", ")),
        };
        let message = match unit {
            "" => "The number has no unit.".to_owned(),
            unit => format!("`{unit}` is not a unit of this figure."),
        };
        (message, hint)
    })?;
    Ok(Gate { text: text.to_owned(), metric, figure, relation, bound: number * scale })
}

/// The metric of a name, which may leave the unit out; or the known names.
fn metric(name: &str, kind: &str) -> Result<Metric, Vec<&'static str>> {
    let is_gate = kind == "gate";
    let trial_metrics: Vec<Metric> = Metric::trial_metrics()
        .filter(|metric| is_gate || *metric == Metric::Errors || metric.unit() == Some("ms"))
        .collect();
    let matching_metric = trial_metrics.iter().copied().find(|metric| {
        metric.name() == name
            || metric.unit().is_some_and(|unit| metric.name() == format!("{name}_{unit}"))
    });
    matching_metric.ok_or_else(|| {
        let names = trial_metrics.iter().map(|metric| metric.name());
        names.map(|name| if is_gate { name } else { name.trim_end_matches("_ms") }).collect()
    })
}

/// The factor from a unit to that of the figure; or the known units.
fn scale(
    unit: &str,
    metric: Metric,
    needs_unit: bool,
    figure: GateFigure,
) -> Result<f64, Vec<&'static str>> {
    /// Seconds.
    const TIMES: [(&str, f64); 5] =
        [("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("min", 60.0), ("h", 3600.0)];
    let factor_to_seconds =
        |name: &str| TIMES.iter().find(|(known, _)| *known == name).map(|(_, scale)| scale);
    match (figure, metric.unit().and_then(factor_to_seconds)) {
        (GateFigure::Value, Some(_)) if unit.is_empty() && !needs_unit => Ok(1.0),
        (GateFigure::Value, Some(own)) => factor_to_seconds(unit)
            .map(|scale| scale / own)
            .ok_or_else(|| TIMES.iter().map(|(name, _)| *name).collect()),
        _ if unit.is_empty() => Ok(1.0),
        (GateFigure::Value, None) if metric != Metric::Errors => Err(Vec::new()),
        _ if unit == "%" => Ok(0.01),
        _ => Err(vec!["%"]),
    }
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

    /// Judges a gate about values; `bound` if some of them are only bounds.
    pub fn judge_values(&self, trials: &[f64], bound: Option<FigureBound>) -> JudgedGate {
        if self.metric.is_fact() {
            self.judge_fact(trials)
        } else {
            self.judge_value(trials, bound)
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
            .map(|interval| bound.map_or(interval, |bound| bound.widen(interval)));
        let count = logs.len();
        let verdict = interval.map(|range| self.judge_interval(range, [range.low, range.high]));
        let verdict = match verdict {
            None if count == 0 => GateVerdict::Inconclusive(GateReason::NoValue),
            None => GateVerdict::Inconclusive(GateReason::TooFewTrials),
            Some(open) if count < LEAST_TRIALS && open.is_inconclusive() => {
                GateVerdict::Inconclusive(GateReason::TooFewTrials)
            }
            Some(verdict) => verdict,
        };
        let is_shown = verdict != GateVerdict::Inconclusive(GateReason::TooFewTrials);
        let interval = interval.filter(|_| is_shown);
        let needed = match (value, deviation(&logs)) {
            (Some(value), Some(deviation)) if verdict.is_inconclusive() && bound.is_none() => {
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
                self.judge_interval(interval, figure)
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

    fn judge_interval(&self, interval: ConfidenceInterval, figure: [f64; 2]) -> GateVerdict {
        let [figure, interval] = [figure, [interval.low, interval.high]]
            .map(|ends| ends.map(|end| self.relation.holds(end, self.bound)));
        match (figure == [true; 2], interval != [false; 2]) {
            (true, _) => GateVerdict::Pass,
            (false, false) => GateVerdict::Broken,
            (false, true) => GateVerdict::Inconclusive(GateReason::IntervalHoldsBound),
        }
    }
}

/// A condition for rates, such as `p99 < 20ms`.
#[derive(Clone, Debug, PartialEq)]
pub struct Objective {
    /// Text as written, without blanks at the ends.
    pub text: String,
    /// A latency, or [`Metric::Errors`].
    pub metric: Metric,
    /// [`Relation::Below`] or [`Relation::AtMost`].
    pub relation: Relation,
    pub bound: f64,
}

impl Objective {
    /// False for a trial without the value (too few samples for the percentile).
    pub fn is_satisfied_by(&self, value: Option<f64>) -> bool {
        value.is_some_and(|value| self.relation.holds(value, self.bound))
    }
}

impl FromStr for Objective {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Objective, Mistake> {
        let Gate { text, metric, relation, bound, figure } = read(text, "objective")?;
        if figure != GateFigure::Value || !matches!(relation, Relation::Below | Relation::AtMost) {
            return Err(Mistake {
                message: format!("`{text}` is not an objective: it bounds a latency from above."),
                hint: format!("Write `{} < ...`.", metric.name()),
            });
        }
        Ok(Objective { text, metric, relation, bound })
    }
}

#[cfg(test)]
mod tests;
