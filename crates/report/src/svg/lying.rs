//! Groups of bars from left to right: on a screen as wide as a hand names and figures have no room side by side.

use super::columns::{arrow, shade, write_mark};
use super::{
    Anchor, BarColumn, BarColumns, BarGroup, NARROW, Svg, across, escape, fitted, open, place,
    text, text_over, widest, width_of,
};
use std::fmt::Write;

/// The height of a bar with what parts it from the next one.
const BAR: f64 = 15.0;
const THICK: f64 = 11.0;
/// Between groups.
const BETWEEN: f64 = 9.0;
const LINE: f64 = 16.0;
/// Short names are capitals and digits, which are wider than letters in general.
const CAPITAL: f64 = 1.3;
/// Wider names stand above their bars.
const MOST_BESIDE: f64 = 56.0;

/// Where things stand.
struct Layout {
    /// Where the scale begins and ends.
    left: f64,
    right: f64,
    is_beside: bool,
}

impl BarColumns {
    /// The same figures from left to right, as wide as a hand.
    pub fn lying(&self) -> Svg {
        Svg { markup: self.lying_markup(), data: self.data() }
    }

    fn lying_markup(&self) -> String {
        let columns = || self.groups.iter().flat_map(|group| &group.columns);
        let names = widest(self.groups.iter().map(|group| &group.name));
        let has_details = self.groups.iter().any(|group| !group.detail.is_empty());
        let is_beside = !has_details && names <= MOST_BESIDE;
        let layout = Layout {
            left: if is_beside { names * CAPITAL + 10.0 } else { 2.0 },
            right: NARROW - widest(columns().map(|column| &column.figure)) - 18.0,
            is_beside,
        };
        let mut body = String::new();
        let lines = self.write_legend(&mut body, 0.0, NARROW);
        let label = if lines == 0 { 0.0 } else { LINE * lines as f64 + 4.0 };
        text(&mut body, "label", 0.0, label + 12.0, Anchor::Start, &fitted(&self.y.label, NARROW));
        let top = label + LINE + 6.0;
        let high = |group: &BarGroup| {
            group.columns.len().max(1) as f64 * BAR + if is_beside { 0.0 } else { LINE }
        };
        let bottom = top + self.groups.iter().map(|group| high(group) + BETWEEN).sum::<f64>();
        let x = |value: f64| {
            let share = self.y.scale.position(value).clamp(0.0, 1.0);
            layout.left + share * (layout.right - layout.left)
        };
        self.y.down(&mut body, [top, bottom, NARROW], x);
        // Below names that stand over the bars.
        for (class, at) in [("bound", self.limit), ("axis", Some(self.base))] {
            if let Some(at) = at.map(x) {
                let _ =
                    write!(body, "<path class=\"{class}\" d=\"M{at:.1},{top:.1}V{bottom:.1}\"/>");
            }
        }
        let mut y = top + BETWEEN / 2.0;
        for group in &self.groups {
            self.write_lying(&mut body, group, y, &layout, x);
            y += high(group) + BETWEEN;
        }
        open(NARROW, bottom + 20.0, &self.description, "") + &body + "</svg>"
    }

    fn write_lying(
        &self,
        out: &mut String,
        group: &BarGroup,
        top: f64,
        layout: &Layout,
        x: impl Fn(f64) -> f64,
    ) {
        let rows = BAR * group.columns.len() as f64;
        let first = match layout.is_beside {
            true => {
                let middle = top + rows / 2.0 + 4.0;
                text(out, "tick", layout.left - 7.0, middle, Anchor::End, &group.name);
                top
            }
            false => {
                let parts =
                    [&group.name, &group.detail].into_iter().filter(|part| !part.is_empty());
                let name = parts.map(String::as_str).collect::<Vec<_>>().join(", ");
                text_over(out, "tick", 0.0, top + 11.0, &fitted(&name, NARROW));
                top + LINE
            }
        };
        for (place, column) in group.columns.iter().enumerate() {
            let middle = first + BAR * (place as f64 + 0.5);
            let (class, title) = (self.class_of(column), escape(&column.title));
            let _ = write!(out, "<g class=\"series {class}\"><title>{title}</title>");
            self.write_bar(out, column, middle, shade(place, group.columns.len()), &x);
            out.push_str("</g>");
        }
        let marks = group.marks.iter().enumerate();
        let marks = marks.filter_map(|(place, value)| Some((place, x((*value)?))));
        let marks: Vec<(usize, f64)> = marks.collect();
        for (place, at) in &marks {
            let middle = first + rows * (*place as f64 + 0.5) / group.marks.len() as f64;
            write_mark(out, *at, middle, shade(*place, group.marks.len()));
        }
        for (place, column) in group.columns.iter().enumerate() {
            let Some(value) = column.value.filter(|_| !column.figure.is_empty()) else { continue };
            let end = column.low_high.map_or(value, |(_, high)| high.max(value)).max(self.base);
            let wide = width_of(&column.figure);
            let mut at = x(end) + if column.is_bound { 14.0 } else { 5.0 };
            for (_, mark) in &marks {
                // Behind a mark that would lie on it.
                let is_under = at - 5.0 < *mark && *mark < at + wide + 5.0;
                if is_under && mark + 7.0 + wide <= NARROW {
                    at = mark + 7.0;
                }
            }
            let middle = first + BAR * (place as f64 + 0.5) + 4.0;
            text(out, "value small", at, middle, Anchor::Start, &column.figure);
        }
    }

    fn write_bar(
        &self,
        out: &mut String,
        column: &BarColumn,
        middle: f64,
        solid: f64,
        x: impl Fn(f64) -> f64,
    ) {
        let base = x(self.base);
        let Some(value) = column.value else {
            if let Some(absent) = column.absent {
                text(out, "value", base + 4.0, middle + 4.0, Anchor::Start, absent);
            }
            return;
        };
        let end = x(value);
        let wide = (end - base).abs().max(0.5);
        let place = place(end.min(base), middle - THICK / 2.0, wide, THICK);
        let _ = write!(
            out,
            "<rect class=\"under\" {place}/><rect class=\"column\" {place} fill-opacity=\"{solid:.2}\"/>"
        );
        let (low, high) = column.low_high.unwrap_or((value, value));
        let (low, high) = (x(low), x(high));
        if high - low > 0.5 {
            across(out, "halo", low, high, middle);
            across(out, "spread", low, high, middle);
            for at in [low, high] {
                let _ =
                    write!(out, "<path class=\"spread\" d=\"M{at:.1},{:.1}v6\"/>", middle - 3.0);
            }
        }
        if column.is_bound {
            arrow(out, high.max(end) + 3.0, middle, (1.0, 0.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::svg::{Axis, AxisScale};

    #[test]
    fn bars_lie_on_their_scale_and_nothing_leaves_the_drawing() {
        let column = |value: f64| BarColumn {
            value: Some(value),
            low_high: Some((value, value * 2.0)),
            is_bound: value > 50.0,
            figure: format!("{value} s"),
            title: "<a>".to_owned(),
            ..BarColumn::default()
        };
        let group = |name: &str| BarGroup {
            name: name.to_owned(),
            columns: vec![column(1.0), column(100.0)],
            marks: vec![Some(10.0)],
            ..BarGroup::default()
        };
        let chart = |names: [&str; 2]| BarColumns {
            y: Axis::of("s".to_owned(), AxisScale::log(0.01, 100.0), vec![0.01, 1.0, 100.0]),
            base: 0.01,
            class: "s0".to_owned(),
            bound_name: "a long word for what was given up".to_owned(),
            names: vec!["one more long name".to_owned(), "another long name".to_owned()],
            groups: names.map(group).to_vec(),
            ..BarColumns::default()
        };
        let of = |svg: &str, name: &str| -> Vec<f64> {
            let begin = format!(" {name}=\"");
            let parts = svg.split(begin.as_str()).skip(1);
            let number = |part: &str| part.split('"').next().expect("a value").parse().ok();
            parts.filter_map(number).collect()
        };
        for names in [["Q1", "Q2"], ["a name that is too long to stand beside", "b"]] {
            let svg = chart(names).lying().markup;
            let bars: Vec<&str> = svg.split("<rect class=\"column\" x=").skip(3).collect();
            assert_eq!(bars.len(), 4);
            let wide: Vec<f64> = bars.iter().map(|bar| of(bar, "width")[0]).collect();
            // 1 is in the middle of 0.01 to 100, where the axis ends.
            assert!((wide[0] * 2.0 - wide[1]).abs() < 0.2, "{wide:?}");
            for part in svg.split("<text").skip(1) {
                let words = part.split('>').nth(1).and_then(|it| it.split('<').next());
                let (x, wide) = (of(part, "x")[0], width_of(words.expect("words")));
                let (from, to) = match (part.contains("\"end\""), part.contains("\"middle\"")) {
                    (true, _) => (x - wide, x),
                    (_, true) => (x - wide / 2.0, x + wide / 2.0),
                    _ => (x, x + wide),
                };
                assert!(from >= -0.1 && to <= NARROW + 0.1, "{from} to {to}: {part}");
            }
            assert_eq!(svg.matches("class=\"beyond\"").count(), 3, "two bars, and the legend");
        }
    }
}
