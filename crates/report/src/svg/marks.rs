//! Rows of marks on one common scale: several figures of each of several things, and a limit.

use super::{Anchor, Axis, Datum, Svg, across, open, text, widest, width_of};
use std::fmt::Write;

/// What a mark looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    Ring,
    /// A disc: the figure that counts.
    Disc,
    /// A short stroke.
    Tick,
}

/// A row: its name, colour class, marks from left to right, its limit, and words behind it.
#[derive(Clone, Debug)]
pub struct MarkRow {
    pub name: String,
    pub class: String,
    pub marks: Vec<(Mark, f64)>,
    pub limit: Option<f64>,
    pub text: String,
}

const ROW: f64 = 26.0;
const TOP: f64 = 30.0;

/// The rows as an `<svg>` element; `legend` names the marks and the limit.
pub fn marks(
    width: f64,
    description: &str,
    axis: &Axis,
    legend: &[(Option<Mark>, &str)],
    rows: &[MarkRow],
) -> Svg {
    let named = |mark: Option<Mark>| {
        let own = legend.iter().find(|(known, _)| *known == mark);
        own.map_or(String::new(), |(_, words)| (*words).to_owned())
    };
    let datum = |row: &MarkRow, mark: Option<Mark>, value: f64| Datum {
        measure: axis.label.clone(),
        at: row.name.clone(),
        series: named(mark),
        value: Some(value),
        ..Datum::default()
    };
    let mut data = Vec::new();
    for row in rows {
        data.extend(row.marks.iter().map(|(mark, value)| datum(row, Some(*mark), *value)));
        data.extend(row.limit.map(|limit| datum(row, None, limit)));
    }
    Svg { markup: drawn(width, description, axis, legend, rows), data }
}

fn drawn(
    width: f64,
    description: &str,
    axis: &Axis,
    legend: &[(Option<Mark>, &str)],
    rows: &[MarkRow],
) -> String {
    let [names, texts] =
        [widest(rows.iter().map(|row| &row.name)), widest(rows.iter().map(|row| &row.text))];
    let (left, right) = ((names + 14.0).min(width / 2.0), width - texts - 18.0);
    let x = |value: f64| left + axis.scale.position(value) * (right - left);
    let bottom = TOP + ROW * rows.len() as f64;
    let mut out = open(width, bottom + 38.0, description, "");
    write_legend(&mut out, left, legend);
    axis.down(&mut out, [TOP, bottom, width], x);
    across(&mut out, "axis", left, right, bottom);
    text(&mut out, "label", right, bottom + 33.0, Anchor::End, &axis.label);
    for (index, row) in rows.iter().enumerate() {
        let middle = TOP + ROW * (index as f64 + 0.5);
        let _ = write!(out, "<g class=\"series {}\">", row.class);
        text(&mut out, "tick", left - 9.0, middle + 4.0, Anchor::End, &row.name);
        text(&mut out, "value", right + 14.0, middle + 4.0, Anchor::Start, &row.text);
        let places: Vec<f64> = row.marks.iter().map(|(_, value)| x(*value)).collect();
        let from = places.iter().copied().fold(f64::INFINITY, f64::min);
        let to = places.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if from < to {
            across(&mut out, "range", from, to, middle);
        }
        for ((mark, _), place) in row.marks.iter().zip(&places) {
            draw(&mut out, *mark, *place, middle);
        }
        if let Some(limit) = row.limit {
            draw_limit(&mut out, x(limit), middle);
        }
        out.push_str("</g>");
    }
    out.push_str("</svg>");
    out
}

fn write_legend(out: &mut String, left: f64, legend: &[(Option<Mark>, &str)]) {
    let (mut x, y) = (left + 4.0, 10.0);
    for (mark, words) in legend {
        out.push_str("<g class=\"series key-marks\">");
        match mark {
            Some(mark) => draw(out, *mark, x, y),
            None => draw_limit(out, x, y),
        }
        text(out, "tick", x + 9.0, y + 4.0, Anchor::Start, words);
        out.push_str("</g>");
        x += width_of(words) + 40.0;
    }
}

fn draw(out: &mut String, mark: Mark, x: f64, y: f64) {
    let _ = match mark {
        Mark::Ring => write!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.6\"/>"),
        Mark::Disc => write!(out, "<circle class=\"disc\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4.4\"/>"),
        Mark::Tick => write!(out, "<path class=\"mark\" d=\"M{x:.1},{:.1}v9\"/>", y - 4.5),
    };
}

fn draw_limit(out: &mut String, x: f64, y: f64) {
    let _ = write!(out, "<path class=\"limit\" d=\"M{x:.1},{:.1}v18\"/>", y - 9.0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::svg::{AxisScale, LETTER};

    #[test]
    fn marks_lie_on_the_axis_and_the_limit_is_drawn_where_there_is_one() {
        let axis = Axis {
            label: "s".to_owned(),
            scale: AxisScale::log(1.0, 100.0),
            ticks: vec![(1.0, "1".to_owned()), (100.0, "100".to_owned())],
        };
        let row = |limit| MarkRow {
            name: "<a>".to_owned(),
            class: "s0".to_owned(),
            marks: vec![(Mark::Ring, 1.0), (Mark::Disc, 10.0), (Mark::Tick, 100.0)],
            limit,
            text: "10".to_owned(),
        };
        let svg =
            marks(400.0, "d", &axis, &[(None, "limit")], &[row(Some(10.0)), row(None)]).markup;
        assert_eq!(svg.matches("<circle").count(), 4);
        assert_eq!(svg.matches("class=\"limit\"").count(), 2, "one in the legend");
        assert!(svg.contains("&lt;a&gt;") && !svg.contains("<a>"));
        // The middle of a logarithmic axis from 1 to 100 is 10.
        let left = 3.0 * LETTER + 14.0;
        let right = 400.0 - 2.0 * LETTER - 18.0;
        let middle = format!("cx=\"{:.1}\"", f64::midpoint(left, right));
        assert_eq!(svg.matches(&middle).count(), 2, "{svg}");
    }
}
