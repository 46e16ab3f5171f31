//! Lines of the printed table.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Bar {
    None,
    /// dyno's value is at most this.
    Value(f64),
    /// dyno's value is at most this many times the peer's.
    Ratio(f64),
    /// dyno's value is at least this many times the peer's.
    RatioAtLeast(f64),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    what: String,
    dyno: String,
    pub(crate) peer: String,
    ratio: String,
    bar: String,
    met: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Spread {
    median: f64,
    min: f64,
    max: f64,
}

impl Spread {
    fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        Some(Spread { median: f64::midpoint(low, high), min, max })
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Spread { median, min, max } = self;
        let digits = if *median >= 1_000.0 { 0 } else { 2 };
        write!(f, "{median:.digits$} ({min:.digits$}..{max:.digits$})")
    }
}

impl Line {
    /// A line about a value of pairs: the ratio is the median of the pairs' ratios, not the ratio of the medians,
    /// because the machine's speed drifts from pair to pair.
    pub(crate) fn of_pairs<T>(
        what: String,
        pairs: &[(T, T)],
        value: impl Fn(&T) -> f64,
        bar: Bar,
    ) -> Self {
        let dyno = Spread::of(pairs.iter().map(|pair| value(&pair.0)));
        let ratio = Spread::of(pairs.iter().map(|(dyno, peer)| value(dyno) / value(peer)));
        let peer = text(Spread::of(pairs.iter().map(|pair| value(&pair.1))));
        Line { what, dyno: text(dyno), peer, ratio: text(ratio), ..Line::judged(bar, dyno, ratio) }
    }

    pub(crate) fn of_values(what: String, values: &[f64], bar: Bar) -> Self {
        let dyno = Spread::of(values.iter().copied());
        Line { what, dyno: text(dyno), ..Line::judged(bar, dyno, None) }
    }

    pub(crate) fn of_peer(what: String, values: &[f64]) -> Self {
        Line { what, peer: text(Spread::of(values.iter().copied())), ..Line::default() }
    }

    /// A line with a text in place of figures.
    pub(crate) fn note(what: &str, dyno: String) -> Self {
        Line { what: what.to_owned(), dyno, ..Line::default() }
    }

    fn judged(bar: Bar, dyno: Option<Spread>, ratio: Option<Spread>) -> Self {
        let at_most = |limit: f64, value: Option<Spread>| value.map(|all| all.median <= limit);
        let (bar, met) = match bar {
            Bar::None => (String::new(), None),
            Bar::Value(limit) => (format!("<= {limit}"), at_most(limit, dyno)),
            Bar::Ratio(limit) => (format!("<= {limit} x"), at_most(limit, ratio)),
            Bar::RatioAtLeast(limit) => {
                (format!(">= {limit} x"), ratio.map(|all| all.median >= limit))
            }
        };
        let met = met.map_or("", |met| if met { "yes" } else { "**no**" });
        Line { bar, met, ..Line::default() }
    }
}

fn text(spread: Option<Spread>) -> String {
    spread.map_or(String::new(), |all| all.to_string())
}

pub(crate) const HEAD: &str = "\
| what | dyno | peer | ratio | bar | met |
|---|---|---|---|---|---|";

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Line { what, dyno, peer, ratio, bar, met } = self;
        write!(f, "| {what} | {dyno} | {peer} | {ratio} | {bar} | {met} |")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_is_the_median_of_the_pairs_ratios() {
        let pairs = [(1.0, 10.0), (3.0, 10.0), (20.0, 40.0)];
        let line = Line::of_pairs("x".to_owned(), &pairs, |one| *one, Bar::Ratio(0.3));
        assert_eq!(
            line.to_string(),
            "| x | 3.00 (1.00..20.00) | 10.00 (10.00..40.00) | 0.30 (0.10..0.50) | <= 0.3 x | yes |"
        );
    }

    #[test]
    fn a_missed_bar_is_said() {
        let line = Line::of_values("y".to_owned(), &[61.0, 60.2], Bar::Value(60.0));
        assert_eq!(line.to_string(), "| y | 60.60 (60.20..61.00) |  |  | <= 60 | **no** |");
        let slower =
            Line::of_pairs("z".to_owned(), &[(9.0, 10.0)], |one| *one, Bar::RatioAtLeast(1.0));
        assert_eq!(slower.met, "**no**");
    }

    #[test]
    fn nothing_measured_meets_nothing() {
        assert_eq!(Line::of_pairs(String::new(), &[], |one| *one, Bar::Ratio(1.0)).met, "");
        let line = Line::note("z", "skipped: sysbench is not installed".to_owned()).to_string();
        assert_eq!(line, "| z | skipped: sysbench is not installed |  |  |  |  |");
    }
}
