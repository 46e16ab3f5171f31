//! The objective of a search: `p99 < 20ms`.

use crate::gate::{Mistake, Relation, scale_of};
use crate::words::Reader;
use crate::{Better, Metric};
use std::str::FromStr;

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

const NAMES: [(&str, Metric); 7] = [
    ("mean", Metric::MeanMs),
    ("p50", Metric::P50Ms),
    ("p95", Metric::P95Ms),
    ("p99", Metric::P99Ms),
    ("p999", Metric::P999Ms),
    ("max", Metric::MaxMs),
    ("errors", Metric::Errors),
];

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
        let word = reader.word();
        let is_it = |name: &str| word == name || word.strip_suffix("_ms") == Some(name);
        let Some((name, metric)) = NAMES.into_iter().find(|(name, _)| is_it(name)) else {
            let message = match word {
                "" => "The name of a latency was expected.".to_owned(),
                word => format!("`{word}` is no latency."),
            };
            let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
            return Err(reader.mistake(0, message, format!("Known are {}.", names.join(", "))));
        };
        reader.skip_blanks();
        let at = reader.at();
        let relation = reader.relation()?;
        if !matches!(relation, Relation::Below | Relation::AtMost)
            || metric.better() == Better::More
        {
            let message = "An objective bounds a latency from above.".to_owned();
            return Err(reader.mistake(at, message, format!("Write `{name} < ...`.")));
        }
        let (number, unit) = reader.number()?;
        // In `p99 < 20` the unit is open; in `p99_ms < 20` it is not.
        let has_unit = word.ends_with("_ms");
        let scale = match (metric, unit) {
            (Metric::Errors, unit) => scale_of(unit, &[("", 1.0), ("%", 0.01)]),
            (_, "") if has_unit => Ok(1.0),
            (_, unit) => scale_of(unit, &[("us", 1e-3), ("ms", 1.0), ("s", 1e3)]),
        };
        let scale = scale.map_err(|known| {
            let message = match unit {
                "" => "The number has no unit.".to_owned(),
                unit => format!("`{unit}` is no unit of it."),
            };
            reader.mistake(reader.at() - unit.len(), message, format!("Units are {known}."))
        })?;
        reader.end()?;
        Ok(Objective { text: text.to_owned(), metric, relation, bound: number * scale })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_understood() {
        let bound = |text: &str| text.parse::<Objective>().expect(text).bound;
        assert_eq!(bound("p99 < 20ms"), 20.0);
        assert_eq!(bound("p95<=0.5 s"), 500.0);
        assert_eq!(bound(" p999_ms < 7"), 7.0);
        assert_eq!(bound("max < 800us"), 0.8);
        assert_eq!(bound("errors < 0.1%"), 0.001);
    }

    #[test]
    fn mistakes_name_the_place_and_the_remedy() {
        let mistake = |text: &str| {
            let mistake = text.parse::<Objective>().expect_err(text);
            (mistake.column, mistake.to_string(), mistake.hint)
        };
        let (column, text, hint) = mistake("p98 < 20ms");
        assert_eq!(column, 1);
        assert_eq!(text, "`p98 < 20ms` is no objective, character 1: `p98` is no latency.");
        assert_eq!(hint, "Known are mean, p50, p95, p99, p999, max, errors.");
        assert_eq!(mistake("p99 > 20ms").0, 5);
        assert_eq!(mistake("p99 < 20").2, "Units are us, ms, s.");
        assert_eq!(mistake("p99 < 20 parsecs").0, 10);
        assert_eq!(mistake("p99 < fast").0, 7);
        assert_eq!(mistake("p99 < 20ms, p95 < 3ms").0, 11);
        assert_eq!(mistake("").0, 1);
    }
}
