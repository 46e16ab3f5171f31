//! Rows on one common horizontal scale: bars from 0, ratios with their intervals.

use super::*;

/// A row: its name, color class, what is drawn, and words behind it.
#[derive(Clone, Debug, Default)]
pub struct ChartRow {
    pub name: String,
    pub class: String,
    /// The end of a bar that begins at 0.
    pub bar: Option<f64>,
    /// Values within these bounds are noise.
    pub noise: Option<(f64, f64)>,
    /// Lower and upper bound.
    pub interval: Option<(f64, f64)>,
    /// A figure between its bounds, and whether it is proven: its mark is full then, else hollow.
    pub mark: Option<(f64, bool)>,
    pub text: String,
}

/// Rows with a mark, a range or a bar each, over one horizontal axis.
#[derive(Clone, Debug, Default)]
pub struct RowChart {
    pub width: f64,
    /// For those who can't see it.
    pub description: String,
    /// Drawn below the rows, unless it has no ticks.
    pub axis: Axis,
    /// The words left and right of 1 on an axis of ratios.
    pub sides: Option<[String; 2]>,
    /// Rows below their heading, which may be empty.
    pub groups: Vec<(String, Vec<ChartRow>)>,
}

const ROW: f64 = 24.0;
const TOP: f64 = 26.0;
/// Names, and words behind rows, take at most this share of the width each.
const MAX_WORDS_SHARE: f64 = 0.42;

impl RowChart {
    /// The `<svg>` element.
    pub fn svg(&self) -> String {
        let rows: Vec<&ChartRow> = self.groups.iter().flat_map(|(_, rows)| rows).collect();
        let has_heads = self.groups.iter().any(|(head, _)| !head.is_empty());
        let indent = if has_heads { 16.0 } else { 0.0 };
        let max_width = self.width * MAX_WORDS_SHARE;
        let left_x = (widest(rows.iter().map(|row| &row.name)) + indent + 12.0).min(max_width);
        let right = self.width - (widest(rows.iter().map(|row| &row.text)) + 16.0).min(max_width);
        let x = |value: f64| {
            left_x + self.axis.scale.position(value).clamp(0.0, 1.0) * (right - left_x)
        };
        let has_axis = !self.axis.ticks.is_empty();
        let mut top = if has_axis { TOP } else { 2.0 };
        let heads = if has_heads { self.groups.len() } else { 0 };
        let bottom = top + ROW * (rows.len() + heads) as f64;
        let height = bottom + if has_axis { 36.0 } else { 2.0 };
        let mut out = open(self.width, height, &self.description, "");
        if has_axis {
            self.axis.down(&mut out, [top, bottom, self.width], x);
            across(&mut out, "axis", left_x, right, bottom);
            text(&mut out, "label", right, bottom + 31.0, Anchor::End, &self.axis.label);
        }
        self.write_sides(&mut out, bottom, x(1.0));
        for (head, rows) in &self.groups {
            if has_heads {
                text_over(&mut out, "heading", 0.0, top + 15.0, head);
                top += ROW;
            }
            for row in rows {
                let middle = top + ROW / 2.0;
                row.write(&mut out, [left_x, right], middle, x);
                let name = fit_text(&row.name, left_x - indent - 6.0);
                let (at, anchor) =
                    if has_heads { (indent, Anchor::Start) } else { (left_x - 8.0, Anchor::End) };
                text(&mut out, "tick", at, middle + 4.0, anchor, &name);
                let at = row.bar.map_or(right + 12.0, |end| {
                    x(row.interval.map_or(end, |(_, high)| high.max(end))) + 7.0
                });
                let words = fit_text(&row.text, self.width - at);
                text(&mut out, "value", at, middle + 4.0, Anchor::Start, &words);
                top += ROW;
            }
        }
        out + "</svg>"
    }

    /// Writes the words left and right of 1, if they fit.
    fn write_sides(&self, out: &mut String, bottom: f64, one: f64) {
        let Some([before, behind]) = &self.sides else { return };
        let _ = write!(out, "<path class=\"axis\" d=\"M{one:.1},{TOP:.1}V{bottom:.1}\"/>");
        if one - 8.0 >= text_width(before) {
            text(out, "label", one - 8.0, 12.0, Anchor::End, before);
        }
        if one + 8.0 + text_width(behind) <= self.width {
            text(out, "label", one + 8.0, 12.0, Anchor::Start, behind);
        }
    }
}

impl ChartRow {
    /// Draws all but the name and the text.
    fn write(&self, out: &mut String, ends: [f64; 2], middle: f64, x: impl Fn(f64) -> f64) {
        let title = escape(&format!("{} \u{2013} {}", self.name, self.text));
        let _ = write!(out, "<g class=\"series {}\"><title>{title}</title>", self.class);
        if let Some((low, high)) = self.noise {
            let place = place(x(low), middle - ROW / 2.0 + 2.0, x(high) - x(low), ROW - 4.0);
            let _ = write!(out, "<rect class=\"warm\" {place}/>");
        }
        if let Some(end) = self.bar {
            let place = place(ends[0], middle - 8.0, (x(end) - ends[0]).max(0.5), 16.0);
            let _ = write!(out, "<rect class=\"bar\" {place}/>");
        }
        if let Some((low, high)) = self.interval {
            self.write_interval(out, ends, middle, [x(low), x(high)]);
        }
        if let Some((value, is_proven)) = self.mark {
            let class = if is_proven { " class=\"disc\"" } else { "" };
            let x = x(value);
            let _ = write!(out, "<circle{class} cx=\"{x:.1}\" cy=\"{middle:.1}\" r=\"4.2\"/>");
        }
        out.push_str("</g>");
    }

    /// Draws an interval; one that leaves the plot has an arrow instead of an end.
    fn write_interval(&self, out: &mut String, ends: [f64; 2], middle: f64, places: [f64; 2]) {
        if self.bar.is_some() {
            return across(out, "spread", places[0], places[1], middle);
        }
        across(out, "line", places[0], places[1], middle);
        let is_beyond = [places[0] <= ends[0], places[1] >= ends[1]];
        for ((place, is_beyond), tip) in places.into_iter().zip(is_beyond).zip([-7.0, 7.0]) {
            let _ = if is_beyond {
                let (from, top) = (place - tip, middle - 4.0);
                write!(out, "<path class=\"arrow\" d=\"M{from:.1},{top:.1}v8l{tip},-4z\"/>")
            } else {
                write!(out, "<path class=\"line\" d=\"M{place:.1},{:.1}v7\"/>", middle - 3.5)
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::svg::AxisScale;

    fn ratio_chart(width: f64, from: f64, rows: Vec<ChartRow>) -> String {
        let ticks = [(1.0, "1".to_owned()), (2.0, "2".to_owned())];
        let scale = AxisScale::log(from, 2.0);
        RowChart {
            width,
            axis: Axis { label: "B / A".to_owned(), scale, ticks: ticks.into() },
            sides: Some(["slower", "faster"].map(str::to_owned)),
            groups: vec![("g".to_owned(), rows)],
            ..RowChart::default()
        }
        .svg()
    }

    #[test]
    fn ratios_lie_on_the_axis_and_what_leaves_it_is_cut() {
        let row = ChartRow {
            name: "<8>".to_owned(),
            class: "s1".to_owned(),
            mark: Some((9.0, true)),
            ..ChartRow::default()
        };
        let cut = ChartRow { interval: Some((0.01, 1.5)), mark: Some((1.0, false)), ..row.clone() };
        let rows = vec![cut, row];
        let svg = ratio_chart(900.0, 0.5, rows);
        let left_x = text_width("<8>") + 28.0;
        let right = 900.0 - 16.0;
        let middle = format!("cx=\"{:.1}\"", f64::midpoint(left_x, right));
        assert!(svg.contains(&middle), "1 is in the middle: {svg}");
        assert!(svg.contains(&format!("cx=\"{right:.1}\"")), "9 lies at the end");
        assert_eq!(svg.matches("v7\"").count(), 1, "the lower bound has no end in the plot");
        assert_eq!(svg.matches("class=\"disc\"").count(), 1);
        assert!(svg.contains("&lt;8&gt;") && !svg.contains("<8>"));
    }

    #[test]
    fn long_names_and_verdicts_stay_in_their_columns() {
        let row = ChartRow {
            name: "a name ".repeat(12),
            mark: Some((1.0, false)),
            text: "a verdict ".repeat(12),
            ..ChartRow::default()
        };
        let svg = ratio_chart(900.0, 0.5, vec![row]);
        for part in svg.split("<text class=\"").skip(1) {
            let x = part.split(" x=\"").nth(1).and_then(|part| part.split('"').next());
            let x = x.and_then(|x| x.parse::<f64>().ok()).expect("a place");
            let words = part.split(['>', '<']).nth(1).expect("words");
            let end = if words.starts_with("a name") { 900.0 * 0.42 } else { 900.0 };
            assert!(part.contains("\"end\"") || x + text_width(words) <= end, "{part}");
        }
    }

    #[test]
    fn what_has_no_room_next_to_1_is_not_cut_but_left_out() {
        let svg = ratio_chart(360.0, 0.98, Vec::new());
        assert!(svg.contains(">faster<") && !svg.contains(">slower<"), "{svg}");
    }
}
