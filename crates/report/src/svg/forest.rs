//! A forest plot: ratios with their intervals around 1, row by row.

use super::{
    Anchor, Axis, Datum, Svg, across, escape, fitted, open, place, text, text_over, widest,
    width_of,
};
use std::fmt::Write;

/// A ratio.
#[derive(Clone, Debug)]
pub(crate) struct ForestRow {
    pub(crate) name: String,
    /// Colour class.
    pub(crate) class: String,
    pub(crate) ratio: f64,
    /// Lower and upper bound.
    pub(crate) interval: Option<(f64, f64)>,
    /// Ratios within these bounds are noise.
    pub(crate) noise: Option<(f64, f64)>,
    /// A full mark for what is proven, a hollow one for what is not.
    pub(crate) is_proven: bool,
    /// Behind the plot.
    pub(crate) text: String,
}

/// Rows under one heading.
#[derive(Clone, Debug)]
pub(crate) struct ForestGroup {
    pub(crate) name: String,
    pub(crate) rows: Vec<ForestRow>,
}

const ROW: f64 = 22.0;
const TOP: f64 = 22.0;

/// The plot as an `<svg>` element; `sides` says what lies left and right of 1.
pub(crate) fn forest(
    width: f64,
    description: &str,
    axis: &Axis,
    sides: [&str; 2],
    groups: &[ForestGroup],
) -> Svg {
    let datum = |group: &ForestGroup, row: &ForestRow| Datum {
        measure: axis.label.clone(),
        at: row.name.clone(),
        series: group.name.clone(),
        value: Some(row.ratio),
        low_high: row.interval,
        ..Datum::default()
    };
    let data = groups.iter().flat_map(|group| group.rows.iter().map(move |row| datum(group, row)));
    Svg { markup: plot(width, description, axis, sides, groups), data: data.collect() }
}

fn plot(
    width: f64,
    description: &str,
    axis: &Axis,
    sides: [&str; 2],
    groups: &[ForestGroup],
) -> String {
    let rows = || groups.iter().flat_map(|group| &group.rows);
    let left = (widest(rows().map(|row| &row.name)) + 24.0).min(width * 0.42);
    let right = width - (widest(rows().map(|row| &row.text)) + 16.0).min(width * 0.4);
    let lines: usize = groups.iter().map(|group| group.rows.len() + 1).sum();
    let bottom = TOP + ROW * lines as f64;
    let x = |value: f64| left + axis.scale.position(value).clamp(0.0, 1.0) * (right - left);
    let mut out = open(width, bottom + 36.0, description, "");
    axis.down(&mut out, [TOP, bottom, width], x);
    let one = x(1.0);
    across(&mut out, "axis", left, right, bottom);
    let _ = write!(out, "<path class=\"axis\" d=\"M{one:.1},{TOP:.1}V{bottom:.1}\"/>");
    name_sides(&mut out, one, width, sides);
    text(&mut out, "label", right, bottom + 31.0, Anchor::End, &axis.label);
    let mut top = TOP;
    for group in groups {
        text_over(&mut out, "heading", 0.0, top + 15.0, &group.name);
        for row in &group.rows {
            top += ROW;
            let middle = top + ROW / 2.0;
            draw(&mut out, row, left, right, middle, x);
            let name = fitted(&row.name, left - 22.0);
            text(&mut out, "tick", 16.0, middle + 4.0, Anchor::Start, &name);
            let words = fitted(&row.text, width - right - 12.0);
            text(&mut out, "value", right + 12.0, middle + 4.0, Anchor::Start, &words);
        }
        top += ROW;
    }
    out.push_str("</svg>");
    out
}

/// What lies left and right of 1, where there is room for it.
fn name_sides(out: &mut String, one: f64, width: f64, [before, behind]: [&str; 2]) {
    if one - 8.0 >= width_of(before) {
        text(out, "label", one - 8.0, 12.0, Anchor::End, before);
    }
    if one + 8.0 + width_of(behind) <= width {
        text(out, "label", one + 8.0, 12.0, Anchor::Start, behind);
    }
}

fn draw(
    out: &mut String,
    row: &ForestRow,
    left: f64,
    right: f64,
    middle: f64,
    x: impl Fn(f64) -> f64,
) {
    let title = escape(&format!("{} \u{2013} {}", row.name, row.text));
    let _ = write!(out, "<g class=\"series {}\"><title>{title}</title>", row.class);
    if let Some((low, high)) = row.noise {
        let place = place(x(low), middle - ROW / 2.0 + 2.0, x(high) - x(low), ROW - 4.0);
        let _ = write!(out, "<rect class=\"warm\" {place}/>");
    }
    if let Some((low, high)) = row.interval {
        across(out, "line", x(low), x(high), middle);
        // An interval that leaves the plot has no end there.
        for end in [low, high].map(&x).into_iter().filter(|end| left < *end && *end < right) {
            let _ = write!(out, "<path class=\"line\" d=\"M{end:.1},{:.1}v7\"/>", middle - 3.5);
        }
    }
    let class = if row.is_proven { " class=\"disc\"" } else { "" };
    let _ = write!(out, "<circle{class} cx=\"{:.1}\" cy=\"{middle:.1}\" r=\"4.2\"/>", x(row.ratio));
    // An arrow where the interval goes on beyond the plot.
    if let Some((low, high)) = row.interval {
        if x(high) >= right {
            let _ = write!(
                out,
                "<path class=\"arrow\" d=\"M{:.1},{:.1}v8l7,-4z\"/>",
                right - 7.0,
                middle - 4.0
            );
        }
        if x(low) <= left {
            let _ = write!(
                out,
                "<path class=\"arrow\" d=\"M{:.1},{:.1}v8l-7,-4z\"/>",
                left + 7.0,
                middle - 4.0
            );
        }
    }
    out.push_str("</g>");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::svg::AxisScale;

    #[test]
    fn rows_lie_on_the_axis_and_what_leaves_it_is_cut() {
        let axis = Axis {
            label: "B / A".to_owned(),
            scale: AxisScale::log(0.5, 2.0),
            ticks: vec![(0.5, "0.5".to_owned()), (1.0, "1".to_owned()), (2.0, "2".to_owned())],
        };
        let row = |ratio: f64, interval, is_proven| ForestRow {
            name: "<8>".to_owned(),
            class: "s1".to_owned(),
            ratio,
            interval,
            noise: None,
            is_proven,
            text: String::new(),
        };
        let rows = vec![row(1.0, Some((0.01, 1.5)), false), row(9.0, None, true)];
        let groups = [ForestGroup { name: "g".to_owned(), rows }];
        let svg = forest(900.0, "d", &axis, ["slower", "faster"], &groups).markup;
        let left = width_of("<8>") + 24.0;
        let right = 900.0 - 16.0;
        let middle = format!("cx=\"{:.1}\"", f64::midpoint(left, right));
        assert!(svg.contains(&middle), "1 is in the middle: {svg}");
        assert!(svg.contains(&format!("cx=\"{right:.1}\"")), "9 lies at the end");
        assert_eq!(svg.matches("v7\"").count(), 1, "the lower bound has no end in the plot");
        assert_eq!(svg.matches("class=\"disc\"").count(), 1);
        assert!(svg.contains("&lt;8&gt;") && !svg.contains("<8>"));
    }

    #[test]
    fn long_names_and_verdicts_stay_in_their_columns() {
        let axis = Axis { scale: AxisScale::log(0.5, 2.0), ..Axis::default() };
        let row = ForestRow {
            name: "a name ".repeat(12),
            class: "s1".to_owned(),
            ratio: 1.0,
            interval: None,
            noise: None,
            is_proven: false,
            text: "a verdict ".repeat(12),
        };
        let groups = [ForestGroup { name: "g".to_owned(), rows: vec![row] }];
        let svg = forest(900.0, "d", &axis, ["slower", "faster"], &groups).markup;
        for part in svg.split("<text class=\"").skip(1) {
            let x = part.split(" x=\"").nth(1).and_then(|it| it.split('"').next());
            let x = x.and_then(|x| x.parse::<f64>().ok()).expect("a place");
            let words = part.split(['>', '<']).nth(1).expect("words");
            let end = if words.starts_with("a name") { 900.0 * 0.42 } else { 900.0 };
            assert!(part.contains("\"end\"") || x + width_of(words) <= end, "{part}");
        }
    }

    #[test]
    fn what_has_no_room_beside_1_is_not_cut_but_left_out() {
        let axis = Axis {
            label: "B / A".to_owned(),
            scale: AxisScale::log(0.98, 2.0),
            ticks: vec![(1.0, "1".to_owned()), (2.0, "2".to_owned())],
        };
        let svg = forest(360.0, "d", &axis, ["slower", "faster"], &[]);
        assert!(svg.contains(">faster<") && !svg.contains(">slower<"), "{}", svg.markup);
    }
}
