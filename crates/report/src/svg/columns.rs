//! Groups of upright bars on one axis, with marks of others alongside them.

use super::*;

#[derive(Clone, Debug, Default)]
pub struct BarColumn {
    /// Its end; `None` leaves a gap.
    pub value: Option<f64>,
    /// Lowest and highest of the values that it summarizes.
    pub low_high: Option<(f64, f64)>,
    /// Set if the value is only a bound: the true one is larger.
    pub is_bound: bool,
    /// Instead of a bar that has no value.
    pub absent: Option<&'static str>,
    /// At its end.
    pub text: String,
    /// Its text when pointed at.
    pub title: String,
    /// Color class instead of the chart's; may be empty.
    pub class: String,
}

/// Bars side by side, and values of others as round marks.
#[derive(Clone, Debug, Default)]
pub struct BarGroup {
    pub name: String,
    /// On a separate line below the name; may be empty.
    pub detail: String,
    pub columns: Vec<BarColumn>,
    pub marks: Vec<Option<f64>>,
}

/// A chart of such groups. Among several bars the first is hollow and the last is solid, those between
/// are shaded, so that readers can distinguish them without colors; so are the marks.
#[derive(Clone, Debug, Default)]
pub struct BarColumns {
    pub width: f64,
    pub height: f64,
    /// For those who can't see it.
    pub description: String,
    /// Color class of the bars.
    pub class: String,
    pub y: Axis,
    /// Start of the bars.
    pub base: f64,
    /// A line across: where values that are only bounds end.
    pub limit: Option<f64>,
    /// Text of the arrow above a value that is only a bound.
    pub bound_name: String,
    /// Names of the bars of a group.
    pub names: Vec<String>,
    /// Names of the marks of a group.
    pub mark_names: Vec<String>,
    pub groups: Vec<BarGroup>,
}

const TOP: f64 = 44.0;
const BOTTOM: f64 = 24.0;
const LINE: f64 = 15.0;
/// A sample in the legend and what parts it from its words and from the next one.
const SAMPLE: f64 = 18.0;
const APART: f64 = 20.0;
const RADIUS: f64 = 3.1;
/// Wider bars are areas: no one takes them for heights.
const MAX_BAR_WIDTH: f64 = 96.0;
/// A text that takes more of its group has its marks on their own line.
const MAX_LINE_SHARE: f64 = 0.7;

/// From hollow (0) to solid (1).
fn shade(place: usize, count: usize) -> f64 {
    if count < 2 { 1.0 } else { place as f64 / (count - 1) as f64 }
}

/// The sample before a name in the legend: a bar or a mark of this shade, or the arrow.
enum Sample {
    Bar(f64),
    Mark(f64),
    Bound,
}

fn legend_entries(
    names: &[String],
    sample: fn(f64) -> Sample,
) -> impl Iterator<Item = (Sample, &String)> {
    let names_by_place = names.iter().enumerate();
    names_by_place.map(move |(place, name)| (sample(shade(place, names.len())), name))
}

impl BarColumns {
    /// The `<svg>` element.
    pub fn svg(&self) -> String {
        let left = self.y.letters() as f64 * LETTER + 14.0;
        let right = self.width - 8.0;
        let bottom = self.bottom();
        let mut out = open(self.width, self.height, &self.description, "");
        let lines = self.write_legend(&mut out, left, right);
        let top = TOP + LINE * lines.saturating_sub(1) as f64;
        let y = |value: f64| bottom - self.y.scale.position(value) * (bottom - top);
        self.y.across(&mut out, left, right, y);
        let step = (right - left) / self.groups.len().max(1) as f64;
        for (place, group) in self.groups.iter().enumerate() {
            self.write_group(&mut out, group, [left + step * place as f64, step], &y);
        }
        self.write_names(&mut out, left, step);
        if let Some(limit) = self.limit {
            across(&mut out, "bound", left, right, y(limit));
        }
        across(&mut out, "axis", left, right, y(self.base));
        text(&mut out, "label", 0.0, top - 14.0, Anchor::Start, &self.y.label);
        out.push_str("</svg>");
        out
    }

    fn write_group(&self, out: &mut String, group: &BarGroup, [left, step]: [f64; 2], y: Placed) {
        let bars = group.columns.len().max(1) as f64;
        let wide = (step * 0.76 / bars).min(MAX_BAR_WIDTH);
        let inner = wide * bars;
        let from = left + (step - inner) / 2.0;
        for (place, column) in group.columns.iter().enumerate() {
            let solid = shade(place, group.columns.len());
            let at = from + wide * place as f64;
            let (class, title) = (self.color_class(column), escape(&column.title));
            let _ = write!(out, "<g class=\"series {class}\"><title>{title}</title>");
            self.write_bar(out, column, [at, wide, solid], y);
            out.push_str("</g>");
        }
        for (place, value) in group.marks.iter().enumerate() {
            let Some(value) = value else { continue };
            let at = from + inner * (place as f64 + 0.5) / group.marks.len() as f64;
            write_mark(out, at, y(*value), shade(place, group.marks.len()));
        }
        for (place, column) in group.columns.iter().enumerate() {
            self.write_text(out, column, [from + wide * (place as f64 + 0.5), step], y);
        }
    }

    /// Names below the bars. Groups of one name are side by side: it appears once, below what tells them apart.
    fn write_names(&self, out: &mut String, left: f64, step: f64) {
        let bottom = self.bottom();
        let is_shared =
            self.has_details() && self.groups.windows(2).any(|two| two[0].name == two[1].name);
        let (name_at, detail_at) = if is_shared { (LINE, 0.0) } else { (0.0, LINE) };
        let mut from = left;
        for groups in self.groups.chunk_by(|a, b| is_shared && a.name == b.name) {
            let room = step * groups.len() as f64;
            let details = groups
                .iter()
                .enumerate()
                .map(|(place, group)| (from + step * place as f64, step, detail_at, &group.detail));
            for (from, room, below, words) in
                details.chain([(from, room, name_at, &groups[0].name)])
            {
                if !words.is_empty() {
                    let (x, y) = (from + room / 2.0, bottom + 17.0 + below);
                    text(out, "tick", x, y, Anchor::Middle, &fit_text(words, room - 4.0));
                }
            }
            if is_shared && from > left {
                let _ = write!(out, "<path class=\"grid\" d=\"M{from:.1},{bottom:.1}v36\"/>");
            }
            from += room;
        }
    }

    fn color_class<'a>(&'a self, column: &'a BarColumn) -> &'a str {
        if column.class.is_empty() { &self.class } else { &column.class }
    }

    /// End of the bars and start of the names.
    fn bottom(&self) -> f64 {
        self.height - BOTTOM - if self.has_details() { LINE } else { 0.0 }
    }

    fn has_details(&self) -> bool {
        self.groups.iter().any(|group| !group.detail.is_empty())
    }

    fn write_bar(&self, out: &mut String, bar: &BarColumn, [at, wide, solid]: [f64; 3], y: Placed) {
        let gap = (wide * 0.1).min(1.5);
        let middle = at + wide / 2.0;
        let base = y(self.base);
        let Some(value) = bar.value else {
            if let Some(absent) = bar.absent {
                text(out, "value", middle, base - 4.0, Anchor::Middle, absent);
            }
            return;
        };
        let end = y(value);
        let (width, height) = ((wide - 2.0 * gap).max(1.0), (end - base).abs().max(0.5));
        let place = place(at + gap, end.min(base), width, height);
        // The lines of the grid must not show through.
        let _ = write!(
            out,
            "<rect class=\"under\" {place}/><rect class=\"column\" {place} fill-opacity=\"{solid:.2}\"/>"
        );
        let (low, high) = bar.low_high.unwrap_or((value, value));
        let (low, high) = (y(low), y(high));
        if low - high > 0.5 {
            let half = (wide * 0.22).min(3.0);
            let (from, width) = (middle - half, half * 2.0);
            let line = format!("M{middle:.1},{low:.1}V{high:.1}");
            let _ = write!(
                out,
                "<path class=\"halo\" d=\"{line}\"/><path class=\"spread\" d=\"{line}M{from:.1},{low:.1}h{width:.1}M{from:.1},{high:.1}h{width:.1}\"/>"
            );
        }
        if bar.is_bound {
            arrow(out, middle, high.min(end) - 3.0);
        }
    }

    /// The words at the end of a bar, above everything else.
    fn write_text(&self, out: &mut String, bar: &BarColumn, [middle, room]: [f64; 2], y: Placed) {
        let Some(value) = bar.value.filter(|_| !bar.text.is_empty()) else { return };
        let (figure, marks) = match bar.text.split_once(' ') {
            Some(parts) if text_width(&bar.text) > room * MAX_LINE_SHARE => parts,
            _ => (bar.text.as_str(), ""),
        };
        let (low, high) = bar.low_high.unwrap_or((value, value));
        let (end, low, high) = (y(value), y(low), y(high));
        let place = if end <= y(self.base) {
            high.min(end) - if bar.is_bound { 13.0 } else { 5.0 }
        } else {
            low.max(end) + 13.0
        };
        text(out, "value small", middle, place, Anchor::Middle, figure);
        if !marks.is_empty() {
            text(out, "value small", middle, place - LINE + 2.0, Anchor::Middle, marks);
        }
    }

    /// The samples of the legend with their names.
    fn samples(&self) -> impl Iterator<Item = (Sample, &String)> {
        let is_bound =
            self.groups.iter().flat_map(|group| &group.columns).any(|column| column.is_bound);
        let bound = is_bound.then_some((Sample::Bound, &self.bound_name));
        legend_entries(&self.names, Sample::Bar)
            .chain(legend_entries(&self.mark_names, Sample::Mark))
            .chain(bound)
    }

    /// The names of bars and marks at the top; returns in how many lines.
    fn write_legend(&self, out: &mut String, left: f64, right: f64) -> usize {
        let (mut x, mut lines) = (left, 0);
        for (sample, words) in self.samples() {
            let wide = SAMPLE + text_width(words);
            if lines == 0 || x + wide > right {
                (x, lines) = (left, lines + 1);
            }
            let y = LINE * (lines - 1) as f64;
            match sample {
                Sample::Bar(solid) => {
                    let (class, place) = (&self.class, place(x, y + 1.5, 12.0, 10.0));
                    let _ = write!(
                        out,
                        "<g class=\"series {class}\"><rect class=\"column\" {place} fill-opacity=\"{solid:.2}\"/></g>"
                    );
                }
                Sample::Mark(solid) => write_mark(out, x + 6.0, y + 6.5, solid),
                Sample::Bound => arrow(out, x + 6.0, y + 11.0),
            }
            let words = fit_text(words, right - x - SAMPLE);
            text(out, "tick", x + SAMPLE, y + 11.0, Anchor::Start, &words);
            x += wide + APART;
        }
        lines
    }
}

fn write_mark(out: &mut String, x: f64, y: f64, solid: f64) {
    let _ = write!(
        out,
        "<g class=\"theirs\"><circle class=\"under\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{:.1}\"/><circle class=\"over\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{RADIUS}\" fill-opacity=\"{solid:.2}\"/></g>",
        RADIUS + 1.6
    );
}

/// An arrowhead that points up: the value lies beyond the axis.
fn arrow(out: &mut String, x: f64, y: f64) {
    let (from, to, tip) = (x - 4.0, x + 4.0, y - 7.0);
    let _ = write!(
        out,
        "<path class=\"beyond\" d=\"M{to:.1},{y:.1}L{from:.1},{y:.1}L{x:.1},{tip:.1}Z\"/>"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::svg::AxisScale;

    fn two_columns(base: f64) -> BarColumns {
        let title = "<a>".to_owned();
        let absent = BarColumn { title, ..BarColumn::default() };
        BarColumns {
            width: 400.0,
            height: 268.0,
            description: "d".to_owned(),
            class: "s0".to_owned(),
            y: Axis {
                label: "s".to_owned(),
                scale: AxisScale::log(0.01, 100.0),
                ticks: vec![(0.01, "0.01".to_owned()), (100.0, "100".to_owned())],
            },
            base,
            limit: None,
            bound_name: String::new(),
            names: vec!["off".to_owned(), "on".to_owned()],
            mark_names: Vec::new(),
            groups: vec![BarGroup {
                name: "Q1".to_owned(),
                detail: String::new(),
                columns: vec![BarColumn { value: Some(1.0), ..absent.clone() }, absent],
                marks: vec![None, Some(10.0)],
            }],
        }
    }

    fn tops_and_heights(svg: &str) -> Vec<(f64, f64)> {
        let parts = svg.split("<rect class=\"column\"").skip(1);
        parts
            .map(|part| Some((attribute(part, "y")?, attribute(part, "height")?)))
            .collect::<Option<_>>()
            .expect("numbers")
    }

    /// The first attribute of this name, if it is a number.
    fn attribute(part: &str, name: &str) -> Option<f64> {
        part.split(&format!(" {name}=\"")).nth(1)?.split('"').next()?.parse().ok()
    }

    #[test]
    fn bars_go_from_the_base_to_their_value_and_a_missing_one_has_none() {
        // 0.01 to 100 over 200 units: a decade is 50.
        let svg = two_columns(0.01).svg();
        assert_eq!(
            tops_and_heights(&svg)[2..],
            [(144.0, 100.0)],
            "two of the legend, one of the group"
        );
        assert_eq!(svg.matches("<circle class=\"over\"").count(), 1);
        assert!(svg.contains("&lt;a&gt;") && !svg.contains("<a>"));
        // Below its base a bar hangs down.
        assert_eq!(tops_and_heights(&two_columns(10.0).svg())[2..], [(94.0, 50.0)]);
    }

    #[test]
    fn names_and_figures_of_many_groups_do_not_touch() {
        let groups = (0..15).map(|place| BarGroup {
            name: format!("x{}.4xlarge", place / 3),
            detail: format!("{} M", 50 * (place % 3 + 1)),
            columns: [60.0, 10.0]
                .map(|value| BarColumn {
                    value: Some(value),
                    text: if value < 50.0 { "71,258 E1".to_owned() } else { String::new() },
                    ..BarColumn::default()
                })
                .to_vec(),
            marks: Vec::new(),
        });
        let groups = groups.collect();
        let svg = BarColumns { width: 960.0, groups, ..two_columns(0.01) }.svg();
        let texts = svg.split("<text class=\"").skip(1).filter_map(|part| {
            let words = part.split(['>', '<']).nth(1)?;
            let is_middle = part.contains("\"middle\"");
            Some((attribute(part, "x")?, attribute(part, "y")?, text_width(words) / 2.0, words))
                .filter(|_| is_middle)
        });
        let texts: Vec<(f64, f64, f64, &str)> = texts.collect();
        assert_eq!(texts.iter().filter(|text| text.3.ends_with(".4xlarge")).count(), 5);
        assert_eq!(texts.iter().filter(|text| text.3 == "E1").count(), 15);
        for (place, text) in texts.iter().enumerate() {
            assert!(text.0 + text.2 <= 960.0, "{text:?}");
            for other in &texts[place + 1..] {
                let is_free = (text.1 - other.1).abs() > 10.0;
                assert!(
                    is_free || (text.0 - other.0).abs() >= text.2 + other.2,
                    "{text:?} {other:?}"
                );
            }
        }
    }

    #[test]
    fn bars_of_few_groups_are_no_areas() {
        let svg = BarColumns { width: 960.0, ..two_columns(0.01) }.svg();
        let wide = svg.split("<rect class=\"column\"").skip(3).map(|part| {
            let from = part.split(" width=\"").nth(1).expect("a width");
            from.split('"').next().expect("a value").parse::<f64>().expect("a number")
        });
        let wide: Vec<f64> = wide.collect();
        assert!(!wide.is_empty() && wide.iter().all(|wide| *wide <= MAX_BAR_WIDTH), "{wide:?}");
    }

    #[test]
    fn the_first_is_hollow_and_the_last_is_solid() {
        assert_eq!([shade(0, 3), shade(1, 3), shade(2, 3), shade(0, 1)], [0.0, 0.5, 1.0, 1.0]);
    }
}
