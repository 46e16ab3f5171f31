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

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Line {
    label: String,
    dyno: String,
    peer: String,
    ratio: String,
    /// The bare loop's figure, and dyno's ratio to it.
    floor: String,
    floor_ratio: Option<f64>,
    bar: String,
    met: Option<bool>,
    is_note: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Spread {
    median: f64,
    min: f64,
    max: f64,
}

impl Spread {
    fn from_values(values: impl IntoIterator<Item = f64>) -> Option<Self> {
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
    /// A line about a value of rounds: dyno's, its peer's, and the bare loop's where it knows the load. A ratio is the
    /// median of the rounds' ratios, not the ratio of the medians, because the machine's speed drifts meanwhile.
    pub(crate) fn from_rounds<T>(
        label: String,
        rounds: &[Vec<T>],
        value: impl Fn(&T) -> f64,
        bar: Bar,
    ) -> Self {
        let spreads_at = |place| beside_dyno(rounds, &value, place);
        let ((dyno, _), (peer, ratio), floor) = (spreads_at(0), spreads_at(1), spreads_at(2));
        let (peer, line) = (text(peer), Line::from_bar(bar, dyno, ratio));
        Line { label, dyno: text(dyno), peer, ratio: text(ratio), ..line }.with_floor(floor)
    }

    /// A line about rounds of dyno and the bare loop, without a peer.
    pub(crate) fn beside_floor(label: String, rounds: &[Vec<f64>], bar: Bar) -> Self {
        let spreads_at = |place| beside_dyno(rounds, |value| *value, place);
        let ((dyno, _), floor) = (spreads_at(0), spreads_at(1));
        Line { label, dyno: text(dyno), ..Line::from_bar(bar, dyno, None) }.with_floor(floor)
    }

    fn with_floor(self, (floor, ratio): (Option<Spread>, Option<Spread>)) -> Self {
        let floor = floor
            .zip(ratio)
            .map_or(String::new(), |(floor, ratio)| format!("{floor}: {:.2} x", ratio.median));
        Line { floor, floor_ratio: ratio.map(|all| all.median), ..self }
    }

    pub(crate) fn from_values(label: String, values: &[f64], bar: Bar) -> Self {
        let dyno = Spread::from_values(values.iter().copied());
        Line { label, dyno: text(dyno), ..Line::from_bar(bar, dyno, None) }
    }

    /// The peer's figure alongside dyno's, where the two are not pairs.
    pub(crate) fn beside(self, values: &[f64]) -> Self {
        Line { peer: text(Spread::from_values(values.iter().copied())), ..self }
    }

    /// Asks dyno's figure to be at most `limit` times the bare loop's too, if that was measured.
    pub(crate) fn near_floor(mut self, limit: f64) -> Self {
        if let Some(ratio) = self.floor_ratio {
            let and = if self.bar.is_empty() { "" } else { ", " };
            self.bar = format!("{}{and}<= {limit} x bare loop", self.bar);
            self.met = Some(self.met != Some(false) && ratio <= limit);
        }
        self
    }

    /// A line with a text instead of figures.
    pub(crate) fn new_note(label: &str, dyno: String) -> Self {
        Line { label: label.to_owned(), dyno, is_note: true, ..Line::default() }
    }

    pub(crate) fn is_note(&self) -> bool {
        self.is_note
    }

    fn from_bar(bar: Bar, dyno: Option<Spread>, ratio: Option<Spread>) -> Self {
        let at_most = |limit: f64, value: Option<Spread>| value.map(|all| all.median <= limit);
        let (bar, met) = match bar {
            Bar::None => (String::new(), None),
            Bar::Value(limit) => (format!("<= {limit}"), at_most(limit, dyno)),
            Bar::Ratio(limit) => (format!("<= {limit} x peer"), at_most(limit, ratio)),
            Bar::RatioAtLeast(limit) => {
                (format!(">= {limit} x peer"), ratio.map(|all| all.median >= limit))
            }
        };
        Line { bar, met, ..Line::default() }
    }
}

/// The values of the program in a place of all rounds, and dyno's ratios to them.
fn beside_dyno<T>(
    rounds: &[Vec<T>],
    value: impl Fn(&T) -> f64,
    place: usize,
) -> (Option<Spread>, Option<Spread>) {
    let pairs = || rounds.iter().filter_map(move |round| Some((&round[0], round.get(place)?)));
    let ratios = Spread::from_values(pairs().map(|(dyno, other)| value(dyno) / value(other)));
    (Spread::from_values(pairs().map(|(_, other)| value(other))), ratios)
}

fn text(spread: Option<Spread>) -> String {
    spread.map_or(String::new(), |all| all.to_string())
}

pub(crate) const HEAD: &str = "\
| what is measured | dyno | peer | dyno / peer | bare loop: dyno / bare loop | bar | met | run (UTC) |
|---|---|---|---|---|---|---|---|";

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Line { label, dyno, peer, ratio, floor, bar, .. } = self;
        let verdict = self.met.map_or("", |is_met| if is_met { "yes" } else { "**no**" });
        write!(f, "| {label} | {dyno} | {peer} | {ratio} | {floor} | {bar} | {verdict} |")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_is_the_median_of_the_rounds_ratios() {
        let rounds = [vec![1.0, 10.0], vec![3.0, 10.0], vec![20.0, 40.0]];
        let line = Line::from_rounds("x".to_owned(), &rounds, |one| *one, Bar::Ratio(0.3));
        assert_eq!(
            line.to_string(),
            "| x | 3.00 (1.00..20.00) | 10.00 (10.00..40.00) | 0.30 (0.10..0.50) |  | <= 0.3 x peer | yes |"
        );
    }

    #[test]
    fn the_bare_loop_stands_beside_where_it_was_measured() {
        fn unbarred_line(rounds: &[Vec<f64>]) -> Line {
            Line::from_rounds("x".to_owned(), rounds, |one| *one, Bar::None)
        }
        let line = unbarred_line(&[vec![3.0, 6.0, 2.0], vec![4.0, 8.0, 2.0]]);
        let text = "| x | 3.50 (3.00..4.00) | 7.00 (6.00..8.00) | 0.50 (0.50..0.50) | 2.00 (2.00..2.00): 1.75 x |  |  |";
        assert_eq!(line.to_string(), text);
        let near_floor = line.near_floor(1.25).to_string();
        assert!(near_floor.ends_with("1.75 x | <= 1.25 x bare loop | **no** |"), "{near_floor}");
        let without = unbarred_line(&[vec![3.0, 6.0]]);
        assert_eq!(without.clone().near_floor(1.25), without);
    }

    #[test]
    fn the_bare_loop_stands_beside_dyno_without_a_peer() {
        let rounds = [vec![90.0, 45.0], vec![50.0, 40.0], vec![60.0, 40.0]];
        let line = Line::beside_floor("x".to_owned(), &rounds, Bar::Value(60.0)).to_string();
        let text =
            "| x | 60.00 (50.00..90.00) |  |  | 40.00 (40.00..45.00): 1.50 x | <= 60 | yes |";
        assert_eq!(line, text);
    }

    #[test]
    fn a_missed_bar_is_said() {
        let line = Line::from_values("y".to_owned(), &[61.0, 60.2], Bar::Value(60.0));
        assert_eq!(line.to_string(), "| y | 60.60 (60.20..61.00) |  |  |  | <= 60 | **no** |");
        let slower = Line::from_rounds(
            "z".to_owned(),
            &[vec![9.0, 10.0]],
            |one| *one,
            Bar::RatioAtLeast(1.0),
        );
        assert_eq!(slower.met, Some(false));
        // Near the floor, but not within the bar that was missed.
        let rounds = [vec![9.0, 10.0, 9.0]];
        let missed = Line::from_rounds("z".to_owned(), &rounds, |one| *one, Bar::Ratio(0.5));
        assert_eq!(missed.near_floor(1.25).met, Some(false));
    }

    #[test]
    fn nothing_measured_meets_nothing() {
        assert_eq!(
            Line::from_rounds(String::new(), &[], |one: &f64| *one, Bar::Ratio(1.0)).met,
            None
        );
        let line = Line::new_note("z", "skipped: sysbench is not installed".to_owned()).to_string();
        assert_eq!(line, "| z | skipped: sysbench is not installed |  |  |  |  |  |");
    }
}
