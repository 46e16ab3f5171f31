//! A small writer of charts as inline SVG. Colors come from the page's style sheet by class, so
//! that light, dark and print need no second drawing; scales are left in `data-` attributes, so
//! that a script can turn positions back into values.

mod columns;
mod rows;

pub use columns::{BarColumn, BarColumns, BarGroup};
pub use rows::{ChartRow, RowChart};

use crate::format;
use dyno_core::is_command;
use std::fmt::Write;

/// Returns true for Chinese characters and full-width punctuation, which are as wide as two Latin letters.
pub(crate) fn is_wide(c: char) -> bool {
    matches!(c, '\u{2e80}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{fe30}'..='\u{fe4f}' | '\u{ff00}'..='\u{ff60}')
}

/// The width of a text in Latin letters; a Chinese character is as wide as two of them.
pub(crate) fn letters(text: &str) -> usize {
    text.chars().map(|c| if is_wide(c) { 2 } else { 1 }).sum()
}

/// Maps values to 0 (begin of the axis) to 1 (its end).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AxisScale {
    Linear { from: f64, to: f64 },
    Log { from: f64, to: f64 },
}

impl Default for AxisScale {
    fn default() -> Self {
        AxisScale::Linear { from: 0.0, to: 1.0 }
    }
}

impl AxisScale {
    /// A linear scale from 0 (or `lowest`, when that is below) to the tick above `highest`, for
    /// about `ticks` ticks.
    pub fn from_zero(lowest: f64, highest: f64, ticks: usize) -> Self {
        let from = lowest.min(0.0);
        let to = if highest > from { highest } else { from + 1.0 };
        let step = step((to - from) / ticks.max(1) as f64);
        AxisScale::Linear { from: (from / step).floor() * step, to: (to / step).ceil() * step }
    }

    /// A logarithmic scale that holds both values, which must be above 0, at its ends.
    pub fn log(lowest: f64, highest: f64) -> Self {
        let from = lowest.max(f64::MIN_POSITIVE);
        AxisScale::Log { from, to: if highest > from { highest } else { from * 10.0 } }
    }

    /// A logarithmic scale that ends at 1, 2 or 5 times a power of ten.
    pub fn round_log(lowest: f64, highest: f64) -> Self {
        let below = ladder(&ROUND, lowest, lowest * 10.0).into_iter().rfind(|at| *at <= lowest);
        let above =
            ladder(&ROUND, highest / 10.0, highest * 10.0).into_iter().find(|at| *at >= highest);
        AxisScale::log(below.unwrap_or(lowest), above.unwrap_or(highest))
    }

    /// Place of a value: 0 at the begin of the axis, 1 at its end; a value may lie beyond.
    pub fn position(self, value: f64) -> f64 {
        match self {
            AxisScale::Linear { from, to } => (value - from) / (to - from),
            AxisScale::Log { from, to } => (value.max(from / 2.0) / from).ln() / (to / from).ln(),
        }
    }

    /// The lowest and the highest value on the axis.
    pub fn ends(self) -> (f64, f64) {
        match self {
            AxisScale::Linear { from, to } | AxisScale::Log { from, to } => (from, to),
        }
    }

    pub fn is_log(self) -> bool {
        matches!(self, AxisScale::Log { .. })
    }

    /// Round values for about `wanted` ticks, all within the scale.
    pub fn ticks(self, wanted: usize) -> Vec<f64> {
        let (from, to) = self.ends();
        match self {
            AxisScale::Linear { .. } => {
                let step = step((to - from) / wanted.max(1) as f64);
                let first = (from / step).ceil() as i64;
                let last = (to / step + 1e-9).floor() as i64;
                (first..=last).map(|index| index as f64 * step).collect()
            }
            AxisScale::Log { .. } => {
                let near = 1e-9;
                let ladders: [&[f64]; 3] = [&[1.0], &ROUND, &FINE];
                let [powers, round, fine] = ladders.map(|factors| {
                    let mut ticks = ladder(factors, from, to);
                    ticks.retain(|at| *at >= from * (1.0 - near) && *at <= to * (1.0 + near));
                    ticks
                });
                match round.len() {
                    few if few < MIN_LOG_TICKS => fine,
                    many if many > wanted && powers.len() > 1 => powers,
                    _ => round,
                }
            }
        }
    }
}

/// The smallest of 1, 2, 5 times a power of ten that is at least `rough`.
fn step(rough: f64) -> f64 {
    if !(rough.is_finite() && rough > 0.0) {
        return 1.0;
    }
    let power = 10_f64.powf(rough.log10().floor());
    let factor = rough / power;
    let round = [1.0, 2.0, 5.0].into_iter().find(|round| factor <= round * (1.0 + 1e-9));
    round.unwrap_or(10.0) * power
}

/// Factors of the ticks of a logarithmic scale.
const ROUND: [f64; 3] = [1.0, 2.0, 5.0];
/// Finer ticks, if fewer than [`MIN_LOG_TICKS`] of those lie on it: fewer say nothing of what lies between them.
const FINE: [f64; 6] = [1.0, 1.5, 2.0, 3.0, 5.0, 7.0];
const MIN_LOG_TICKS: usize = 4;

/// Products of the factors and the powers of ten from one decade below `from` to one above `to`.
fn ladder(factors: &[f64], from: f64, to: f64) -> Vec<f64> {
    let [first, last] = [from, to].map(|value| value.max(f64::MIN_POSITIVE).log10().floor() as i32);
    let powers = (first - 1..=last + 1).map(|power| 10_f64.powi(power));
    powers.flat_map(|power| factors.iter().map(move |factor| factor * power)).collect()
}

/// An axis with its ticks.
#[derive(Clone, Debug, Default)]
pub struct Axis {
    /// The quantity that it shows, with the unit.
    pub label: String,
    pub scale: AxisScale,
    /// Position and text.
    pub ticks: Vec<(f64, String)>,
}

impl Axis {
    /// With these ticks.
    pub fn new(label: String, scale: AxisScale, ticks: Vec<f64>) -> Axis {
        let ticks = ticks.into_iter().map(|value| (value, format::plain(value))).collect();
        Axis { label, scale, ticks }
    }

    /// Length of the longest tick label.
    pub fn letters(&self) -> usize {
        self.ticks.iter().map(|(_, text)| letters(text)).max().unwrap_or(0)
    }

    /// Places of the texts of its ticks on a horizontal axis; those that would touch are left out.
    fn free_ticks(&self, x: impl Fn(f64) -> f64) -> Vec<(f64, &str)> {
        let mut free_from = f64::NEG_INFINITY;
        let mut free = Vec::new();
        for (value, words) in &self.ticks {
            let (x, half) = (x(*value), text_width(words) / 2.0);
            if x - half >= free_from {
                free_from = x + half + 6.0;
                free.push((x, words.as_str()));
            }
        }
        free
    }

    /// The `data-` attributes that turn places from `begin` to `end` back into values.
    fn data(&self, name: &str, begin: f64, end: f64) -> String {
        let (from, to) = self.scale.ends();
        let log = u8::from(self.scale.is_log());
        let label = escape(&self.label);
        format!(
            " data-{name}=\"{begin:.1} {end:.1} {from} {to} {log}\" data-{name}-label=\"{label}\""
        )
    }

    /// Its ticks as lines from left to right, for a vertical axis.
    fn across(&self, out: &mut String, left: f64, right: f64, y: impl Fn(f64) -> f64) {
        for (value, words) in &self.ticks {
            let y = y(*value);
            across(out, "grid", left, right, y);
            text(out, "tick", left - 6.0, y + 4.0, Anchor::End, words);
        }
    }

    /// Its ticks as lines from top to bottom, for a horizontal axis, and their texts in a drawing of this width.
    fn down(&self, out: &mut String, [top, bottom, width]: [f64; 3], x: impl Fn(f64) -> f64) {
        for (value, _) in &self.ticks {
            let x = x(*value);
            let _ = write!(out, "<path class=\"grid\" d=\"M{x:.1},{top:.1}V{bottom:.1}\"/>");
        }
        for (at, words) in self.free_ticks(x) {
            let half = text_width(words) / 2.0;
            let at = at.min(width - half).max(half);
            text(out, "tick", at, bottom + 15.0, Anchor::Middle, words);
        }
    }
}

/// Look of a series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stroke {
    #[default]
    Solid,
    Dashed,
    Dotted,
}

impl Stroke {
    /// The class with a space in front, or nothing.
    pub fn class(self) -> &'static str {
        match self {
            Stroke::Solid => "",
            Stroke::Dashed => " dashed",
            Stroke::Dotted => " dotted",
        }
    }
}

/// A line with its points, and perhaps a band around it.
#[derive(Clone, Debug, Default)]
pub struct Series {
    pub name: String,
    /// Color class, such as `s0` or `published`.
    pub class: String,
    pub stroke: Stroke,
    /// Sorted in the order of x; `None` breaks the line.
    pub points: Vec<(f64, Option<f64>)>,
    /// x, lowest, highest.
    pub band: Vec<(f64, f64, f64)>,
    pub has_dots: bool,
    /// Set if only its dots are drawn.
    pub is_bare: bool,
    /// Message at its end.
    pub end_label: Option<String>,
}

impl Series {
    /// A solid line without dots.
    pub fn line(name: String, class: String, points: Vec<(f64, Option<f64>)>) -> Series {
        Series { name, class, points, ..Series::default() }
    }

    /// The values of all of them.
    pub fn values(series: &[Series]) -> Vec<f64> {
        series.iter().flat_map(|series| &series.points).filter_map(|(_, value)| *value).collect()
    }
}

/// A shaded stretch of the x axis.
#[derive(Clone, Debug)]
pub struct Shade {
    pub from: f64,
    pub to: f64,
    /// For example `gap`.
    pub class: &'static str,
    pub title: String,
}

/// Turns a value into a place in the drawing.
type Placed<'a> = &'a dyn Fn(f64) -> f64;

/// A chart of lines.
#[derive(Clone, Debug, Default)]
pub struct Chart {
    pub width: f64,
    pub height: f64,
    /// For those who can't see it.
    pub description: String,
    pub x: Axis,
    pub y: Axis,
    /// Number of letters that have room left of the plot at least, so that charts above each other align.
    pub left_letters: usize,
    pub shades: Vec<Shade>,
    pub series: Vec<Series>,
}

/// The drawing area in the units of the view box.
struct Plot {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

const LINE_HEIGHT: f64 = 14.0;
/// About the width of a letter at the charts' font size.
pub(crate) const LETTER: f64 = 6.4;
/// About the width of a letter of the bold labels at the ends of lines.
const BOLD_LETTER: f64 = 8.0;

impl Chart {
    /// The area that axes, labels and legends leave.
    fn plot(&self) -> Plot {
        let ticks = self.y.letters().max(self.left_letters) as f64;
        let labels = self.series.iter().filter_map(|series| series.end_label.as_ref());
        let labels = widest(labels) / LETTER;
        let tick = self.x.ticks.last().map_or(0.0, |(_, words)| text_width(words) / 2.0);
        let right = if labels > 0.0 { labels * BOLD_LETTER + 14.0 } else { (tick + 2.0).max(16.0) };
        Plot {
            left: ticks * LETTER + 14.0,
            right: self.width - right,
            top: 24.0,
            bottom: self.height - if self.x.label.is_empty() { 24.0 } else { 38.0 },
        }
    }

    /// The `<svg>` element.
    pub fn svg(&self) -> String {
        let plot = self.plot();
        let x = |value: f64| plot.left + self.x.scale.position(value) * (plot.right - plot.left);
        let y = |value: f64| plot.bottom - self.y.scale.position(value) * (plot.bottom - plot.top);
        let data =
            self.x.data("x", plot.left, plot.right) + &self.y.data("y", plot.bottom, plot.top);
        let mut out = open(self.width, self.height, &self.description, &data);
        self.axes(&mut out, &plot, x, y);
        for shade in &self.shades {
            let (from, to) = (x(shade.from), x(shade.to));
            let (width, height) = ((to - from).max(1.5), plot.bottom - plot.top);
            let place = place(from, plot.top, width, height);
            let (class, title) = (shade.class, escape(&shade.title));
            let _ = write!(out, "<rect class=\"{class}\" {place}><title>{title}</title></rect>");
        }
        for series in &self.series {
            draw_series(&mut out, series, x, y);
        }
        self.end_labels(&mut out, &plot, &x, &y);
        out.push_str("</svg>");
        out
    }

    /// Draws the grid, the axes and their labels.
    fn axes(&self, out: &mut String, plot: &Plot, x: impl Fn(f64) -> f64, y: impl Fn(f64) -> f64) {
        self.y.across(out, plot.left, plot.right, y);
        for (value, _) in &self.x.ticks {
            let x = x(*value);
            let _ = write!(out, "<path class=\"axis\" d=\"M{x:.1},{:.1}v4\"/>", plot.bottom);
        }
        for (x, words) in self.x.free_ticks(x) {
            text(out, "tick", x, plot.bottom + 17.0, Anchor::Middle, words);
        }
        across(out, "axis", plot.left, plot.right, plot.bottom);
        text(out, "label", 0.0, 11.0, Anchor::Start, &self.y.label);
        let right = text_width(&self.x.label).clamp(plot.right, self.width.max(plot.right));
        text(out, "label", right, self.height - 4.0, Anchor::End, &self.x.label);
    }

    /// Names at the ends of lines, pushed apart if they would overlap.
    fn end_labels(&self, out: &mut String, plot: &Plot, x: Placed<'_>, y: Placed<'_>) {
        let mut labels: Vec<(f64, &str, &str)> = Vec::new();
        let mut right: f64 = plot.left;
        for series in &self.series {
            let last = series.points.iter().rev().find_map(|(at, value)| Some((*at, (*value)?)));
            if let (Some(label), Some((at, last))) = (&series.end_label, last) {
                labels.push((y(last) + 4.0, label, &series.class));
                right = right.max(x(at));
            }
        }
        labels.sort_by(|a, b| a.0.total_cmp(&b.0));
        for index in 1..labels.len() {
            labels[index].0 = labels[index].0.max(labels[index - 1].0 + LINE_HEIGHT);
        }
        let mut limit = plot.bottom + 4.0;
        for label in labels.iter_mut().rev() {
            label.0 = label.0.min(limit);
            limit = label.0 - LINE_HEIGHT;
        }
        for (y, label, class) in labels {
            text(out, &format!("end {class}"), right + 9.0, y, Anchor::Start, label);
        }
    }
}

fn draw_series(out: &mut String, series: &Series, x: impl Fn(f64) -> f64, y: impl Fn(f64) -> f64) {
    let name = escape(&series.name);
    let _ = write!(out, "<g class=\"series {}\" data-name=\"{name}\">", series.class);
    if !series.band.is_empty() {
        let upper = series.band.iter().map(|(at, _, high)| (x(*at), y(*high)));
        let lower = series.band.iter().rev().map(|(at, low, _)| (x(*at), y(*low)));
        let path: Vec<String> = upper.chain(lower).map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = write!(out, "<path class=\"band\" d=\"M{}Z\"/>", path.join("L"));
    }
    let mut path = String::new();
    let mut is_down = false;
    for (at, value) in &series.points {
        match value {
            Some(value) => {
                let pen = if is_down { 'L' } else { 'M' };
                let _ = write!(path, "{pen}{:.1},{:.1}", x(*at), y(*value));
                is_down = true;
            }
            None => is_down = false,
        }
    }
    let hidden = if series.is_bare { " none" } else { "" };
    let _ = write!(out, "<path class=\"line{}{hidden}\" d=\"{path}\"/>", series.stroke.class());
    if series.has_dots {
        for (at, value) in &series.points {
            if let Some(value) = value {
                let _ =
                    write!(out, "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.2\"/>", x(*at), y(*value));
            }
        }
    }
    out.push_str("</g>");
}

/// A text that is not wider; what is cut off ends with an ellipsis.
pub(crate) fn fit_text(text: &str, width: f64) -> String {
    if text_width(text) <= width {
        return text.to_owned();
    }
    let mut cut = String::new();
    for c in text.chars() {
        if text_width(&cut) + text_width("mm") > width {
            break;
        }
        cut.push(c);
    }
    cut.trim_end().to_owned() + "…"
}

/// Drawings that are not wider are not blown up to the width of a page.
const SMALL: f64 = 480.0;

/// Begins an `<svg>` element, which the caller ends.
pub(crate) fn open(width: f64, height: f64, description: &str, data: &str) -> String {
    let description = escape(description);
    let compact = if width <= SMALL { " compact" } else { "" };
    format!(
        "<svg class=\"chart{compact}\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"{description}\"{data}>"
    )
}

/// Width and height of a drawing's view box.
pub(crate) fn svg_size(svg: &str) -> (f64, f64) {
    let inside = svg.split_once("viewBox=\"0 0 ").and_then(|(_, rest)| rest.split_once('"'));
    let sizes = inside.and_then(|(size, _)| size.split_once(' '));
    let parsed = sizes.and_then(|(wide, high)| Some((wide.parse().ok()?, high.parse().ok()?)));
    parsed.unwrap_or((960.0, 360.0))
}

/// About the width of a text.
pub(crate) fn text_width(text: &str) -> f64 {
    letters(text) as f64 * LETTER
}

/// The width of the widest of these texts.
fn widest<'a>(texts: impl Iterator<Item = &'a String>) -> f64 {
    texts.map(|text| text_width(text)).fold(0.0, f64::max)
}

/// Alignment of a text at its place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// Words at a place.
pub(crate) fn text(out: &mut String, class: &str, x: f64, y: f64, anchor: Anchor, words: &str) {
    let anchor = match anchor {
        Anchor::Start => "",
        Anchor::Middle => " text-anchor=\"middle\"",
        Anchor::End => " text-anchor=\"end\"",
    };
    let words = escape(words);
    let _ = write!(out, "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\"{anchor}>{words}</text>");
}

/// Words over lines, on their own ground: nothing shows through between them.
pub(crate) fn text_over(out: &mut String, class: &str, x: f64, y: f64, words: &str) {
    let place = place(x - 2.0, y - 11.0, text_width(words) + 4.0, 15.0);
    let _ = write!(out, "<rect class=\"under\" {place}/>");
    text(out, class, x, y, Anchor::Start, words);
}

/// A horizontal line.
fn across(out: &mut String, class: &str, from: f64, to: f64, y: f64) {
    let _ = write!(out, "<path class=\"{class}\" d=\"M{from:.1},{y:.1}H{to:.1}\"/>");
}

/// The attributes of a rectangle.
pub(crate) fn place(x: f64, y: f64, width: f64, height: f64) -> String {
    format!("x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"")
}

/// Message for elements and attributes.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // XML has no U+FFFE and U+FFFF.
            c if is_command(c) || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_lines(names: [&str; 2], last: [f64; 2]) -> Chart {
        let scale = AxisScale::from_zero(0.0, 100.0, 5);
        let [x, y] = ["x", "y"].map(|label| Axis {
            label: label.to_owned(),
            scale,
            ticks: vec![(0.0, "0".to_owned())],
        });
        let series = [0_usize, 1].map(|index| Series {
            name: names[index].to_owned(),
            class: format!("s{index}"),
            points: vec![(0.0, Some(1.0)), (50.0, None), (100.0, Some(last[index]))],
            has_dots: true,
            end_label: Some(names[index].to_owned()),
            ..Series::default()
        });
        Chart {
            width: 600.0,
            height: 300.0,
            description: "d".to_owned(),
            x,
            y,
            left_letters: 0,
            shades: Vec::new(),
            series: series.into(),
        }
    }

    #[test]
    fn a_missing_value_breaks_the_line() {
        let svg = two_lines(["a", "b"], [10.0, 90.0]).svg();
        let line = svg.split("class=\"line\" d=\"").nth(1).expect("a line");
        let path = line.split('"').next().expect("a path");
        assert_eq!(path.matches('M').count(), 2, "{path}");
        assert_eq!(svg.matches("<circle").count(), 4);
    }

    #[test]
    fn labels_do_not_overlap_nor_leave_the_plot() {
        let svg = two_lines(["a", "b"], [0.0, 0.5]).svg();
        let places: Vec<f64> = svg
            .split("class=\"end ")
            .skip(1)
            .map(|part| part.split(" y=\"").nth(1).expect("y").split('"').next().expect("end"))
            .map(|y| y.parse().expect("a number"))
            .collect();
        assert!(places[1] - places[0] >= LINE_HEIGHT - 0.1, "{places:?}");
        assert!(places[1] <= 300.0 - 34.0, "{places:?}");
    }

    #[test]
    fn the_last_tick_stays_in_the_drawing() {
        let mut chart = two_lines(["a", "b"], [1.0, 2.0]);
        chart.series.iter_mut().for_each(|series| series.end_label = None);
        let words = "1,000,000";
        chart.x.ticks = vec![(100.0, words.to_owned())];
        let svg = chart.svg();
        let before = svg.split(words).next().and_then(|part| part.rsplit(" x=\"").next());
        let x = before.and_then(|part| part.split('"').next()).and_then(|x| x.parse::<f64>().ok());
        assert!(x.expect("a place") + text_width(words) / 2.0 <= chart.width, "{}", svg);
    }

    #[test]
    fn only_what_is_as_wide_as_a_page_grows_to_its_width() {
        assert!(open(470.0, 160.0, "", "").starts_with("<svg class=\"chart compact\""));
        assert!(open(960.0, 360.0, "", "").starts_with("<svg class=\"chart\""));
    }

    #[test]
    fn names_can_not_leave_their_place() {
        let svg = two_lines(["<script>\"'&", "b"], [10.0, 90.0]).svg();
        assert!(!svg.contains("<script>"));
        assert!(svg.contains("&lt;script&gt;&quot;&#39;&amp;"));
    }

    fn assert_near(values: &[f64], wanted: &[f64]) {
        assert_eq!(values.len(), wanted.len(), "{values:?}");
        for (a, b) in values.iter().zip(wanted) {
            assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{values:?}");
        }
    }

    #[test]
    fn linear_scales_begin_at_zero_and_end_round() {
        let scale = AxisScale::from_zero(120.0, 873.0, 5);
        assert_eq!(scale.ends(), (0.0, 1000.0));
        assert_near(&scale.ticks(5), &[0.0, 200.0, 400.0, 600.0, 800.0, 1000.0]);
        assert!((scale.position(250.0) - 0.25).abs() < 1e-12);
        assert_near(&AxisScale::from_zero(0.0, 0.0, 2).ticks(2), &[0.0, 0.5, 1.0]);
    }

    #[test]
    fn negative_values_have_room() {
        let (from, to) = AxisScale::from_zero(-7.0, 30.0, 4).ends();
        assert!(from <= -7.0 && to >= 30.0);
    }

    #[test]
    fn the_last_tick_is_the_end_of_the_axis() {
        for highest in [0.7, 1.0, 3.3, 5.9, 7.1, 9.4, 6_100.0, 123_456.0] {
            for wanted in [2, 3, 5] {
                let scale = AxisScale::from_zero(0.0, highest, wanted);
                let last = *scale.ticks(wanted).last().expect("ticks");
                assert!((last / scale.ends().1 - 1.0).abs() < 1e-9, "{highest} {wanted}");
            }
        }
    }

    #[test]
    fn log_ticks_are_1_2_5() {
        assert_near(&AxisScale::round_log(1.3, 18.0).ticks(8), &[1.0, 2.0, 5.0, 10.0, 20.0]);
        assert_near(
            &AxisScale::round_log(0.011, 9_000.0).ticks(6),
            &[0.01, 0.1, 1.0, 10.0, 100.0, 1000.0, 10_000.0],
        );
        assert!((AxisScale::log(1.0, 100.0).position(10.0) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn a_short_log_scale_has_ticks_between_them() {
        assert_near(&AxisScale::log(0.25, 4.0).ticks(8), &[0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0]);
    }

    #[test]
    fn values_below_a_log_scale_do_not_run_away() {
        assert!(AxisScale::log(1.0, 100.0).position(0.0) > -0.2);
    }
}
