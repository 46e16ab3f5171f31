//! What each target reached at the only load level, beside the published rows: classes on the axis.

use super::{Drawing, PUBLISHED, WIDE, colour, figure, linear_axis, targets_of};
use crate::evidence::{Experiment, Paper, Point, Published, Spread};
use crate::findings::comparison::{counterpart, published_metric};
use crate::format;
use crate::levels::Measure;
use crate::svg::{Bar, BarColumn, BarColumns, BarGroup, NARROW, bars};
use crate::text::Lang;
use dyno_facts::{PublishedRow, say};

/// Beyond so many groups only what was measured has room for its number.
const MOST_NUMBERS: usize = 8;

/// A group of bars, before it is drawn.
struct Class<'a> {
    name: String,
    published: Option<f64>,
    point: Option<&'a Point>,
}

/// A chart for each published quantity; without any, one of the experiment's own. A bar alone shows nothing.
pub(super) fn figures(paper: &Paper, experiment: &Experiment, lang: Lang) -> Vec<Drawing> {
    let published = experiment.published.first();
    let metrics: Vec<String> = match published {
        Some(table) => table.metrics.iter().take(2).cloned().collect(),
        None => vec![Measure::of(experiment).metric.name().to_owned()],
    };
    let drawn = metrics.iter().filter_map(|metric| drawing(paper, experiment, metric, lang));
    drawn.collect()
}

fn drawing(paper: &Paper, experiment: &Experiment, metric: &str, lang: Lang) -> Option<Drawing> {
    let classes = classes(experiment, metric);
    let has_published = classes.iter().any(|class| class.published.is_some());
    let measured = |class: &Class<'_>| class.point.and_then(|point| point.metric(metric));
    if classes.len() < 2 || classes.iter().all(|class| measured(class).is_none()) {
        return None;
    }
    let names = shortened(&classes);
    let highest = classes.iter().flat_map(|class| {
        [class.published, measured(class).map(|spread| spread.max)].into_iter().flatten()
    });
    let title = published_metric(metric);
    let what = say!(metric_by_class, metric = &title, experiment = &experiment.title);
    let y = linear_axis(&title.render(lang), highest, 5);
    let is_crowded = classes.len() > MOST_NUMBERS;
    let groups = classes.iter().zip(names).map(|(class, name)| {
        let theirs = class.published.map(|value| bar(value, None, String::new(), is_crowded));
        let ours = measured(class).map(|spread| {
            let marks = class.point.map_or(String::new(), |point| forbidding(paper, point));
            let spread = (spread, class.point.map_or(1, |point| point.repeats));
            bar(spread.0.median, Some(spread), marks, false)
        });
        let ours = ours.unwrap_or_default();
        let columns = match has_published {
            true => vec![theirs.unwrap_or_default(), ours],
            false => vec![ours],
        };
        BarGroup { name, columns, marks: Vec::new() }
    });
    let mut names = vec![say!(measured).render(lang)];
    if has_published {
        names.insert(0, say!(published).render(lang));
    }
    let first = classes.iter().find_map(|class| class.point).map(|point| point.target.as_str());
    let chart = BarColumns {
        width: WIDE.0,
        height: WIDE.1 - 60.0,
        description: what.render(lang),
        class: colour(paper, first.unwrap_or_default()),
        y,
        base: 0.0,
        limit: None,
        bound_name: String::new(),
        names: if has_published { names } else { Vec::new() },
        mark_names: Vec::new(),
        groups: groups.collect(),
    };
    let narrow = bars(NARROW, &what.render(lang), &narrow_bars(&chart));
    let drawing = figure(vec![chart.svg()], Vec::new(), &[what], lang);
    Some(Drawing { narrow: vec![narrow], ..drawing })
}

/// The same as bars from left to right.
fn narrow_bars(chart: &BarColumns) -> Vec<Bar> {
    let is_paired = chart.names.len() > 1;
    let of_group = |group: &BarGroup| -> Vec<Bar> {
        let bar = |(place, column): (usize, &BarColumn)| {
            let name = match is_paired {
                true => format!("{}, {}", group.name, chart.names[place]),
                false => group.name.clone(),
            };
            let class: &str = if is_paired && place == 0 { PUBLISHED } else { &chart.class };
            Some(Bar {
                name,
                class: class.to_owned(),
                value: column.value?,
                low_high: column.low_high,
                text: column.title.clone(),
            })
        };
        group.columns.iter().enumerate().filter_map(bar).collect()
    };
    chart.groups.iter().flat_map(of_group).collect()
}

fn bar(value: f64, spread: Option<(Spread, usize)>, marks: String, is_crowded: bool) -> BarColumn {
    let shown = format::short(value) + &marks;
    BarColumn {
        value: Some(value),
        low_high: spread.filter(|(_, n)| *n > 1).map(|(spread, _)| (spread.min, spread.max)),
        text: if is_crowded { String::new() } else { shown.clone() },
        title: shown,
        ..BarColumn::default()
    }
}

/// The checks that forbid a figure, behind it.
pub(super) fn forbidding(paper: &Paper, point: &Point) -> String {
    paper.forbidding(&point.checks).map(|check| format!(" E{}", check.number)).collect()
}

/// Published rows in their order with their counterparts, then targets without one.
fn classes<'a>(experiment: &'a Experiment, metric: &str) -> Vec<Class<'a>> {
    let rows = |table: &'a Published| table.table.rows.iter();
    let rows = experiment.published.first().into_iter().flat_map(rows);
    let class = |row: &'a PublishedRow| {
        let published = *row.metrics.get(metric)?;
        let point = row.targets.iter().find_map(|target| counterpart(experiment, row, target));
        Some(Class { name: row.label.clone(), published: Some(published), point })
    };
    let mut classes: Vec<Class<'a>> = rows.filter_map(class).collect();
    let mut others = Vec::new();
    for target in targets_of(experiment) {
        let is_shown = |class: &Class<'_>| class.point.is_some_and(|point| point.target == target);
        let point = experiment.points.iter().find(|point| point.target == target);
        if !classes.iter().any(is_shown) {
            others.push(Class { name: target.to_owned(), published: None, point });
        }
    }
    classes.extend(others);
    classes
}

/// Names without what all of them begin with, up to a point, a blank or a comma.
fn shortened(classes: &[Class<'_>]) -> Vec<String> {
    let first = classes.first().map_or("", |class| class.name.as_str());
    let is_shared = |end: usize| classes.iter().all(|class| class.name.starts_with(&first[..end]));
    let ends = first.char_indices().filter(|(_, c)| matches!(c, '.' | ' ' | ','));
    let shared = ends.map(|(at, c)| at + c.len_utf8()).filter(|end| is_shared(*end)).max();
    let cut = |class: &Class<'_>| class.name[shared.unwrap_or(0)..].trim().to_owned();
    classes.iter().map(cut).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(of: &[&str]) -> Vec<String> {
        let class = |name: &&str| Class { name: (*name).to_owned(), published: None, point: None };
        shortened(&of.iter().map(class).collect::<Vec<_>>())
    }

    #[test]
    fn what_all_names_begin_with_is_left_out() {
        assert_eq!(names(&["rds.mysql.t1.small", "rds.mysql.s1.small"]), ["t1.small", "s1.small"]);
        assert_eq!(names(&["standard", "enterprise"]), ["standard", "enterprise"]);
        assert_eq!(names(&["polar.o.x4.large", "polar.o.x4.medium"]), ["large", "medium"]);
    }
}
