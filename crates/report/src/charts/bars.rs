//! Bars: what each target reached at the only load level alongside the published rows, classes on the axis; and the one
//! chart of page one.

use super::*;

/// If there are more groups, only measured values have room for their numbers.
const MAX_NUMBERED_GROUPS: usize = 8;

/// A group of bars, before it is drawn.
#[derive(Default)]
struct Class {
    name: String,
    /// Shown below the name if several classes share it.
    detail: String,
    /// Label of the target that was measured.
    target: String,
    published: Option<f64>,
    measured: Option<(Spread, usize)>,
    /// The checks that forbid what was measured.
    marks: String,
}

/// A chart for each published quantity; without any, one of the experiment's own. A bar alone shows nothing.
pub(super) fn classes(paper: &Paper, experiment: &Experiment, lang: Lang) -> Vec<Drawing> {
    let published = experiment.published.first();
    let metrics: Vec<String> = match published {
        Some(table) => table.metrics.iter().take(2).cloned().collect(),
        None => vec![Measure::new(experiment).metric.name().to_owned()],
    };
    let drawings = metrics.iter().filter_map(|metric| {
        let metric_title = published_metric(metric);
        let (metric_name, title) = (&metric_title, &experiment.title);
        let caption = match published {
            Some(_) => say!(metric_by_class, metric = metric_name, experiment = title),
            None => say!(metric_by_target, metric = metric_name, experiment = title),
        };
        class_chart(
            paper,
            &published_classes(paper, experiment, metric),
            &metric_title,
            caption,
            lang,
        )
    });
    drawings.collect()
}

/// The best load level of each target if these differ in the class of their nodes.
pub(super) fn target_class_charts(
    paper: &Paper,
    experiment: &Experiment,
    lang: Lang,
) -> Vec<Drawing> {
    let rows: Vec<KeyRow<'_>> = paper.result_rows();
    let rows = rows.iter().filter(|row| row.experiment.name == experiment.name);
    let rows = rows.map(|row| {
        let class = paper.target(&row.point.target)?.facts.class.clone();
        (!class.is_empty()).then_some((class, row.point))
    });
    let Some(rows) = rows.collect::<Option<Vec<_>>>() else { return Vec::new() };
    if unique(rows.iter().map(|(class, _)| class.as_str()).collect()).len() < 2 {
        return Vec::new();
    }
    let measure = Measure::new(experiment);
    let statements = measure.statements_measure(experiment);
    let drawings = [measure].into_iter().chain(statements).filter_map(|measure| {
        let classes = rows.iter().map(|(class, point)| Class {
            name: class.clone(),
            detail: point.target.clone(),
            target: point.target.clone(),
            measured: Some(((measure.get)(point), point.repeats)),
            marks: forbidding(paper, &point.checks),
            ..Class::default()
        });
        let classes: Vec<Class> = classes.collect();
        let caption =
            say!(metric_by_class, metric = &measure.label, experiment = &experiment.title);
        class_chart(paper, &classes, &measure.label, caption, lang)
    });
    drawings.collect()
}

/// A chart for each quantity of a published table that several experiments are compared with.
pub(crate) fn comparison_charts(
    paper: &Paper,
    comparison: &Comparison,
    lang: Lang,
) -> Vec<Drawing> {
    let drawings = comparison.columns.iter().enumerate().filter_map(|(place, column)| {
        let caption =
            say!(metric_by_class, metric = column, experiment = &comparison.published.table.title);
        class_chart(paper, &comparison_classes(paper, comparison, place), column, caption, lang)
    });
    drawings.collect()
}

/// The rows of a table with their counterparts.
fn comparison_classes(paper: &Paper, comparison: &Comparison, place: usize) -> Vec<Class> {
    let detail = distinguishing_conditions(comparison);
    let classes = comparison.rows.iter().filter_map(|row| {
        let pair = row.pairs[place]?;
        let detail = detail.iter().filter_map(|at| row.conditions.get(*at));
        (pair.published().is_some() || pair.measured().is_some()).then(|| Class {
            name: row.first.row.label.clone(),
            detail: detail.map(|value| shorten_number(value)).collect::<Vec<_>>().join(" / "),
            target: row.target.to_owned(),
            published: pair.published(),
            measured: pair.measured().map(|measured| (measured, pair.repeats())),
            marks: forbidding(paper, pair.checks()),
        })
    });
    classes.collect()
}

/// The conditions that tell rows of one label apart: one if that is enough.
fn distinguishing_conditions(comparison: &Comparison) -> Vec<usize> {
    let conditions: Vec<usize> = (0..comparison.conditions.len()).collect();
    match conditions.iter().find(|at| are_unique(comparison, &[**at])) {
        _ if are_unique(comparison, &[]) => Vec::new(),
        Some(at) => vec![*at],
        None => conditions,
    }
}

/// Returns true if no two rows have the same label and the same values of these conditions.
fn are_unique(comparison: &Comparison, conditions: &[usize]) -> bool {
    let keys = comparison.rows.iter().map(|row| {
        let values = conditions.iter().map(|at| row.conditions.get(*at).cloned());
        (row.first.row.label.clone(), values.collect::<Vec<_>>())
    });
    let keys: Vec<_> = keys.collect();
    unique(keys.clone()).len() == keys.len()
}

/// Millions and thousands as such: `50 M`.
fn shorten_number(value: &str) -> String {
    let digits: String = value.chars().filter(|c| *c != ',').collect();
    match digits.parse::<f64>() {
        Ok(number) if number >= 1e9 => format!("{} G", format::plain(number / 1e9)),
        Ok(number) if number >= 1e6 => format!("{} M", format::plain(number / 1e6)),
        _ => value.to_owned(),
    }
}

fn class_chart(
    paper: &Paper,
    classes: &[Class],
    metric: &Message,
    caption: Message,
    lang: Lang,
) -> Option<Drawing> {
    let has_published = classes.iter().any(|class| class.published.is_some());
    if classes.len() < 2 || classes.iter().all(|class| class.measured.is_none()) {
        return None;
    }
    let names = short_names(classes);
    let highest = classes.iter().flat_map(|class| {
        [class.published, class.measured.map(|(spread, _)| spread.max)].into_iter().flatten()
    });
    let y = linear_axis(&metric.render(lang), highest, 5);
    let is_crowded = classes.len() > MAX_NUMBERED_GROUPS;
    let groups = classes.iter().zip(names).map(|(class, name)| {
        let published = class.published.map(|value| bar(value, None, "", is_crowded));
        let measured = class
            .measured
            .map(|(spread, n)| bar(spread.median, Some((spread, n)), &class.marks, false));
        // Bars alone have the color of their target, as all other charts do.
        let color_class = if has_published { String::new() } else { color(paper, &class.target) };
        let measured = BarColumn { class: color_class, ..measured.unwrap_or_default() };
        let columns = if has_published {
            vec![published.unwrap_or_default(), measured]
        } else {
            vec![measured]
        };
        BarGroup { name, detail: class.detail.clone(), columns, marks: Vec::new() }
    });
    let names = [say!(published), say!(measured)].map(|name| name.render(lang)).into();
    let first_measured = classes.iter().find(|class| class.measured.is_some());
    let chart = BarColumns {
        width: WIDE.0,
        height: WIDE.1 - 60.0,
        description: caption.render(lang),
        class: color(paper, first_measured.map_or("", |class| class.target.as_str())),
        y,
        names: if has_published { names } else { Vec::new() },
        groups: groups.collect(),
        ..BarColumns::default()
    };
    let drawing = figure(vec![chart.svg()], Vec::new(), &[caption], lang);
    let half = BarColumns { width: SMALL.0, ..chart };
    Some(Drawing { halves: vec![half.svg()], ..drawing })
}

/// Returns a bar with its number, which is left out of a crowded chart, and its range if it has several trials.
fn bar(value: f64, spread: Option<(Spread, usize)>, marks: &str, is_crowded: bool) -> BarColumn {
    let text = format::short(value) + marks;
    BarColumn {
        value: Some(value),
        low_high: spread.filter(|(_, n)| *n > 1).map(|(spread, _)| (spread.min, spread.max)),
        text: if is_crowded { String::new() } else { text.clone() },
        title: text,
        ..BarColumn::default()
    }
}

/// The checks that forbid a figure, behind it.
pub fn forbidding(paper: &Paper, checks: &[usize]) -> String {
    paper.forbidding(checks).map(|check| format!(" E{}", check.number)).collect()
}

/// Published rows in their order with their counterparts, then targets without one.
fn published_classes(paper: &Paper, experiment: &Experiment, metric: &str) -> Vec<Class> {
    let rows = experiment.published.first().into_iter().flat_map(|table| &table.table.rows);
    let published = rows.filter_map(|row| {
        let published = *row.metrics.get(metric)?;
        let point = row.targets.iter().find_map(|target| counterpart(experiment, row, target));
        let measured = point.map_or(Class::default(), |point| measured_class(paper, point, metric));
        Some(Class { name: row.label.clone(), published: Some(published), ..measured })
    });
    let mut classes: Vec<Class> = published.collect();
    for target in target_labels(experiment) {
        let point = experiment.points.iter().find(|point| point.target == target);
        if !classes.iter().any(|class| class.target == target) {
            let measured =
                point.map_or(Class::default(), |point| measured_class(paper, point, metric));
            classes.push(Class { name: target.to_owned(), ..measured });
        }
    }
    classes
}

/// Returns what a point has measured, without a name.
fn measured_class(paper: &Paper, point: &Point, metric: &str) -> Class {
    Class {
        target: point.target.clone(),
        measured: point.metric(metric).map(|measured| (measured, point.repeats)),
        marks: forbidding(paper, &point.checks),
        ..Class::default()
    }
}

/// Names without what all of them begin with, up to a point, a blank or a comma.
fn short_names(classes: &[Class]) -> Vec<String> {
    let first = classes.first().map_or("", |class| class.name.as_str());
    let ends = first.char_indices().filter(|(_, c)| matches!(c, '.' | ' ' | ','));
    let ends = ends.map(|(at, c)| at + c.len_utf8());
    let shared =
        ends.filter(|end| classes.iter().all(|class| class.name.starts_with(&first[..*end]))).max();
    let names = classes.iter().map(|class| class.name[shared.unwrap_or(0)..].trim().to_owned());
    names.collect()
}

/// More rows do not fit alongside all else that page one has.
const MAX_ROWS: usize = 9;

/// Ratios if targets are compared, results alongside published ones by class, the results of all experiments side by
/// side if there are several, the first chart of the only one.
pub(crate) fn cover_chart(paper: &Paper, lang: Lang) -> Option<Drawing> {
    let comparisons = paper.cover_comparisons();
    if let Some(drawing) = deciding_rows_plot(paper, &comparisons, MAX_ROWS, lang) {
        return Some(drawing);
    }
    let published = paper.comparisons();
    let against_published = published
        .iter()
        .find_map(|comparison| comparison_charts(paper, comparison, lang).into_iter().next());
    if against_published.is_some() {
        return against_published;
    }
    let measured: Vec<_> =
        paper.experiments.iter().filter(|experiment| !experiment.points.is_empty()).collect();
    match measured.as_slice() {
        [] => None,
        [only] => {
            let first = experiment_charts(paper, only, lang).into_iter().next();
            first.or_else(|| best_results(paper, lang))
        }
        _ => best_results(paper, lang),
    }
}

/// The best point of each experiment and target, of the measure that most of them have.
fn best_results(paper: &Paper, lang: Lang) -> Option<Drawing> {
    let rows = paper.result_rows();
    let metrics = unique(rows.iter().map(|row| main_metric(row.point)).collect());
    let most_common = metrics
        .into_iter()
        .rev()
        .max_by_key(|metric| rows.iter().filter(|row| main_metric(row.point) == *metric).count())?;
    let rows: Vec<KeyRow<'_>> =
        rows.iter().copied().filter(|row| main_metric(row.point) == most_common).collect();
    if rows.len() < 2 {
        return None;
    }
    let metric = match most_common {
        Metric::Tps => say!(transactions_per_second_title),
        metric => metric.title(),
    };
    let caption = say!(best_of_each_experiment, metric);
    let shown_rows = &rows[..rows.len().min(MAX_ROWS)];
    let n_hidden = rows.len() - shown_rows.len();
    let note = (n_hidden > 0).then(|| say!(further_results, n = n_hidden));
    Some(row_bars(paper, shown_rows, Point::throughput, caption, note, lang))
}

/// The name of a quantity, and its value at a point.
type Quantity = (Message, fn(&Point) -> Spread);

/// Experiments with one point have no separate charts: statements and transactions of all of them.
pub(crate) fn totals(
    paper: &Paper,
    experiments: &[(usize, &Experiment)],
    lang: Lang,
) -> Vec<Drawing> {
    let mut rows: Vec<KeyRow<'_>> = paper.result_rows();
    rows.retain(|row| experiments.iter().any(|(index, _)| *index == row.index));
    rows.retain(|row| row.experiment.points.len() == 1 && row.experiment.published.is_empty());
    rows.retain(|row| row.point.main.is_none());
    if rows.len() < 2 {
        return Vec::new();
    }
    let has_equal_rates = rows.iter().all(|row| row.point.qps.median < 1.01 * row.point.tps.median);
    let quantities: [Quantity; 2] = [
        (say!(transactions_per_second_title), |point| point.tps),
        (say!(statements_per_second_title), |point| point.qps),
    ];
    let quantities = quantities.into_iter().take(if has_equal_rates { 1 } else { 2 });
    let drawings = quantities.map(|(metric, get)| {
        let caption = say!(total_of_experiments_with_one_level, metric);
        row_bars(paper, &rows, get, caption, None, lang)
    });
    drawings.collect()
}

/// A bar for each row, which says as much of its place as tells it apart.
fn row_bars(
    paper: &Paper,
    rows: &[KeyRow<'_>],
    get: impl Fn(&Point) -> Spread,
    caption: Message,
    note: Option<Message>,
    lang: Lang,
) -> Drawing {
    let has_targets = rows.iter().any(|row| row.point.target != rows[0].point.target);
    let has_experiments = rows.iter().any(|row| row.index != rows[0].index);
    let chart_rows = rows.iter().map(|row| {
        let (point, spread) = (row.point, get(row.point));
        let name = match (has_experiments, has_targets) {
            (true, true) => {
                let parts = [row.experiment.title.clone(), Message::verbatim(&point.target)];
                Message::joined(&parts, ", ", "，")
            }
            (true, false) => row.experiment.title.clone(),
            _ => Message::verbatim(&point.target),
        };
        ChartRow {
            name: name.render(lang),
            class: color(paper, &point.target),
            bar: Some(spread.median),
            interval: (point.repeats > 1).then_some((spread.min, spread.max)),
            // A figure that a check forbids says so wherever it appears.
            text: format::short(spread.median) + &forbidding(paper, &point.checks),
            ..ChartRow::default()
        }
    });
    bars(chart_rows.collect(), caption, note, lang)
}

/// Bars from 0, each with its name and value.
pub(crate) fn bars(
    rows: Vec<ChartRow>,
    caption: Message,
    note: Option<Message>,
    lang: Lang,
) -> Drawing {
    let ends = rows.iter().flat_map(|row| [row.bar, row.interval.map(|(_, high)| high)]);
    let highest = ends.flatten().fold(f64::MIN_POSITIVE, f64::max);
    let scale = AxisScale::Linear { from: 0.0, to: highest };
    let chart = RowChart {
        width: WIDE.0,
        description: caption.render(lang),
        axis: Axis { scale, ..Axis::default() },
        groups: vec![(String::new(), rows)],
        ..RowChart::default()
    };
    let caption: Vec<Message> = [caption].into_iter().chain(note).collect();
    figure(vec![chart.svg()], Vec::new(), &caption, lang)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shorten_names(names: &[&str]) -> Vec<String> {
        let classes =
            names.iter().map(|name| Class { name: (*name).to_owned(), ..Class::default() });
        short_names(&classes.collect::<Vec<_>>())
    }

    #[test]
    fn what_all_names_begin_with_is_left_out() {
        assert_eq!(
            shorten_names(&["rds.mysql.t1.small", "rds.mysql.s1.small"]),
            ["t1.small", "s1.small"]
        );
        assert_eq!(shorten_names(&["standard", "enterprise"]), ["standard", "enterprise"]);
        assert_eq!(shorten_names(&["polar.o.x4.large", "polar.o.x4.medium"]), ["large", "medium"]);
    }
}
