//! A small writer of charts as inline SVG. Colours come from the page's style sheet by class, so
//! that light, dark and print need no second drawing; scales are left in `data-` attributes, so
//! that a script can turn positions back into values.

mod columns;
mod forest;
mod marks;
mod scale;

pub(crate) use columns::{Column, Columns, Group};
pub(crate) use forest::{ForestGroup, ForestRow, forest};
pub(crate) use marks::{Mark, MarkRow, marks};
pub(crate) use scale::Scale;

use crate::text::is_wide;
use std::fmt::Write;

/// The width of a text in Latin letters; a Chinese character is as wide as two of them.
pub(crate) fn letters(text: &str) -> usize {
    text.chars().map(|c| if is_wide(c) { 2 } else { 1 }).sum()
}

/// An axis with its ticks.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    /// What it shows, with the unit.
    pub(crate) label: String,
    pub(crate) scale: Scale,
    /// Position and text.
    pub(crate) ticks: Vec<(f64, String)>,
}

impl Axis {
    /// Length of the longest tick label.
    pub(crate) fn letters(&self) -> usize {
        self.ticks.iter().map(|(_, text)| letters(text)).max().unwrap_or(0)
    }
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stroke {
    Solid,
    Dashed,
    Dotted,
}

impl Stroke {
    /// The class with a space in front, or nothing.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Stroke::Solid => "",
            Stroke::Dashed => " dashed",
            Stroke::Dotted => " dotted",
        }
    }
}

/// A line with its points, and perhaps a band around it.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub(crate) name: String,
    /// Colour class, such as `s0` or `published`.
    pub(crate) class: String,
    pub(crate) stroke: Stroke,
    /// In the order of x; `None` breaks the line.
    pub(crate) points: Vec<(f64, Option<f64>)>,
    /// x, lowest, highest.
    pub(crate) band: Vec<(f64, f64, f64)>,
    pub(crate) has_dots: bool,
    pub(crate) has_line: bool,
    /// Message at its end.
    pub(crate) end_label: Option<String>,
}

/// A shaded stretch of the x axis.
#[derive(Clone, Debug)]
pub(crate) struct Shade {
    pub(crate) from: f64,
    pub(crate) to: f64,
    /// Such as `gap`.
    pub(crate) class: &'static str,
    pub(crate) title: String,
}

/// A chart of lines.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    pub(crate) width: f64,
    pub(crate) height: f64,
    /// For those who can't see it.
    pub(crate) description: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    /// Room for so many letters left of the plot, so that charts above each other align.
    pub(crate) left_letters: usize,
    pub(crate) shades: Vec<Shade>,
    pub(crate) series: Vec<Series>,
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
/// The same of the bold labels at the ends of lines.
const BOLD_LETTER: f64 = 7.4;

impl Chart {
    fn plot(&self) -> Plot {
        let ticks = self.y.letters().max(self.left_letters) as f64;
        let labels = self.series.iter().filter_map(|series| series.end_label.as_ref());
        let labels = labels.map(|label| letters(label)).max().unwrap_or(0) as f64;
        let right = if labels > 0.0 { labels * BOLD_LETTER + 14.0 } else { 16.0 };
        Plot {
            left: ticks * LETTER + 14.0,
            right: self.width - right,
            top: 24.0,
            bottom: self.height - if self.x.label.is_empty() { 24.0 } else { 38.0 },
        }
    }

    /// The chart as an `<svg>` element.
    pub(crate) fn svg(&self) -> String {
        let plot = self.plot();
        let x = |value: f64| plot.left + self.x.scale.position(value) * (plot.right - plot.left);
        let y = |value: f64| plot.bottom - self.y.scale.position(value) * (plot.bottom - plot.top);
        let mut out = open(self.width, self.height, &self.description, &self.data(&plot));
        self.axes(&mut out, &plot, x, y);
        for shade in &self.shades {
            let (from, to) = (x(shade.from), x(shade.to));
            let _ = write!(
                out,
                "<rect class=\"{}\" x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"><title>{}</title></rect>",
                shade.class,
                plot.top,
                (to - from).max(1.5),
                plot.bottom - plot.top,
                escape(&shade.title)
            );
        }
        for series in &self.series {
            draw_series(&mut out, series, x, y);
        }
        self.end_labels(&mut out, &plot, x, y);
        out.push_str("</svg>");
        out
    }

    fn data(&self, plot: &Plot) -> String {
        let axis = |name: &str, axis: &Axis, begin: f64, end: f64| {
            let (from, to) = axis.scale.ends();
            let log = u8::from(axis.scale.is_log());
            let label = escape(&axis.label);
            format!(
                " data-{name}=\"{begin:.1} {end:.1} {from} {to} {log}\" data-{name}-label=\"{label}\""
            )
        };
        axis("x", &self.x, plot.left, plot.right) + &axis("y", &self.y, plot.bottom, plot.top)
    }

    fn axes(&self, out: &mut String, plot: &Plot, x: impl Fn(f64) -> f64, y: impl Fn(f64) -> f64) {
        for (value, text) in &self.y.ticks {
            let y = y(*value);
            let _ = write!(
                out,
                "<path class=\"grid\" d=\"M{:.1},{y:.1}H{:.1}\"/><text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                plot.left,
                plot.right,
                plot.left - 6.0,
                y + 4.0,
                escape(text)
            );
        }
        let mut free_from = f64::NEG_INFINITY;
        for (value, text) in &self.x.ticks {
            let x = x(*value);
            let _ = write!(out, "<path class=\"axis\" d=\"M{x:.1},{:.1}v4\"/>", plot.bottom);
            let half = letters(text) as f64 * LETTER / 2.0;
            // Labels that would touch are left out; their tick stays.
            if x - half >= free_from {
                free_from = x + half + 6.0;
                let _ = write!(
                    out,
                    "<text class=\"tick\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                    plot.bottom + 17.0,
                    escape(text)
                );
            }
        }
        let _ = write!(
            out,
            "<path class=\"axis\" d=\"M{:.1},{:.1}H{:.1}\"/><text class=\"label\" x=\"0\" y=\"11\">{}</text><text class=\"label\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            plot.left,
            plot.bottom,
            plot.right,
            escape(&self.y.label),
            plot.right,
            self.height - 4.0,
            escape(&self.x.label)
        );
    }

    /// Names at the ends of lines, pushed apart where they would overlap.
    fn end_labels(
        &self,
        out: &mut String,
        plot: &Plot,
        x: impl Fn(f64) -> f64,
        y: impl Fn(f64) -> f64,
    ) {
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
            let _ = write!(
                out,
                "<text class=\"end {class}\" x=\"{:.1}\" y=\"{y:.1}\">{}</text>",
                right + 9.0,
                escape(label)
            );
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
    let hidden = if series.has_line { "" } else { " none" };
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

/// One bar: name, colour class, value with its spread, and the value as text.
#[derive(Clone, Debug)]
pub(crate) struct Bar {
    pub(crate) name: String,
    pub(crate) class: String,
    pub(crate) value: f64,
    pub(crate) low_high: Option<(f64, f64)>,
    pub(crate) text: String,
}

/// Horizontal bars from 0, each with its name and value.
pub(crate) fn bars(width: f64, description: &str, bars: &[Bar]) -> String {
    const ROW: f64 = 26.0;
    let longest = |text: fn(&Bar) -> &String| {
        bars.iter().map(|bar| letters(text(bar))).max().unwrap_or(0) as f64 * LETTER
    };
    let left = (longest(|bar| &bar.name) + 12.0).min(width / 2.0);
    let right = width - longest(|bar| &bar.text) - 12.0;
    let highest =
        bars.iter().map(|bar| bar.low_high.map_or(bar.value, |(_, high)| high.max(bar.value)));
    let scale = Scale::Linear { from: 0.0, to: highest.fold(f64::MIN_POSITIVE, f64::max) };
    let x = |value: f64| left + scale.position(value) * (right - left);
    let height = ROW * bars.len() as f64 + 4.0;
    let mut out = open(width, height, description, "");
    for (row, bar) in bars.iter().enumerate() {
        let top = ROW * row as f64 + 2.0;
        let end = x(bar.value);
        let spread = bar.low_high.map_or(String::new(), |(low, high)| {
            format!(
                "<path class=\"spread\" d=\"M{:.1},{:.1}H{:.1}\"/>",
                x(low),
                top + 11.0,
                x(high)
            )
        });
        let _ = write!(
            out,
            "<g class=\"series {}\"><text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text><rect class=\"bar\" x=\"{left:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"16\"/>{spread}<text class=\"value\" x=\"{:.1}\" y=\"{:.1}\">{}</text></g>",
            bar.class,
            left - 8.0,
            top + 15.0,
            escape(&bar.name),
            top + 3.0,
            (end - left).max(0.5),
            bar.low_high.map_or(end, |(_, high)| x(high).max(end)) + 7.0,
            top + 15.0,
            escape(&bar.text)
        );
    }
    out.push_str("</svg>");
    out
}

pub(crate) fn open(width: f64, height: f64, description: &str, data: &str) -> String {
    let description = escape(description);
    format!(
        "<svg class=\"chart\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"{description}\"{data}>"
    )
}

/// About the width of a text.
pub(crate) fn width_of(text: &str) -> f64 {
    letters(text) as f64 * LETTER
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
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(names: [&str; 2], last: [f64; 2]) -> Chart {
        let scale = Scale::from_zero(0.0, 100.0, 5);
        let axis = |label: &str| Axis {
            label: label.to_owned(),
            scale,
            ticks: vec![(0.0, "0".to_owned())],
        };
        let series = |index: usize| Series {
            name: names[index].to_owned(),
            class: format!("s{index}"),
            stroke: Stroke::Solid,
            points: vec![(0.0, Some(1.0)), (50.0, None), (100.0, Some(last[index]))],
            band: Vec::new(),
            has_dots: true,
            has_line: true,
            end_label: Some(names[index].to_owned()),
        };
        Chart {
            width: 600.0,
            height: 300.0,
            description: "d".to_owned(),
            x: axis("x"),
            y: axis("y"),
            left_letters: 0,
            shades: Vec::new(),
            series: vec![series(0), series(1)],
        }
    }

    #[test]
    fn a_missing_value_breaks_the_line() {
        let svg = chart(["a", "b"], [10.0, 90.0]).svg();
        let line = svg.split("class=\"line\" d=\"").nth(1).expect("a line");
        let path = line.split('"').next().expect("a path");
        assert_eq!(path.matches('M').count(), 2, "{path}");
        assert_eq!(svg.matches("<circle").count(), 4);
    }

    #[test]
    fn labels_do_not_overlap_nor_leave_the_plot() {
        let svg = chart(["a", "b"], [0.0, 0.5]).svg();
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
    fn names_can_not_leave_their_place() {
        let svg = chart(["<script>\"'&", "b"], [10.0, 90.0]).svg();
        assert!(!svg.contains("<script>"));
        assert!(svg.contains("&lt;script&gt;&quot;&#39;&amp;"));
    }
}
