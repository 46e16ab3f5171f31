//! The one chart of page one.

use super::classes::{forbidding, of_comparison};
use super::{Drawing, WIDE, colour, figure, of_experiment, verdict};
use crate::evidence::{Experiment, KeyRow, Paper, Point, Spread};
use crate::format;
use crate::svg::{Bar, bars};
use crate::text::{Lang, Message};
use dyno_facts::say;
use dyno_facts::statistics::Metric;

/// More rows do not fit beside all else that page one has.
const MOST_ROWS: usize = 9;

/// Ratios where targets are compared, results beside published ones by class, the results of all experiments side by side where there are several, the first
/// chart of the only one.
pub(crate) fn figure_of(paper: &Paper, lang: Lang) -> Option<Drawing> {
    let compared = paper.cover_comparisons();
    if let Some(drawing) = verdict::of_first_rows(paper, &compared, MOST_ROWS, lang) {
        return Some(drawing);
    }
    if let Some(drawing) = beside_published(paper, lang) {
        return Some(drawing);
    }
    let measured: Vec<_> = paper.experiments.iter().filter(|own| !own.points.is_empty()).collect();
    match measured.as_slice() {
        [] => None,
        [only] => {
            let drawn = of_experiment(paper, only, lang).into_iter().next();
            drawn.or_else(|| results(paper, lang))
        }
        _ => results(paper, lang),
    }
}

/// The first quantity of the first published table that several experiments stand beside.
fn beside_published(paper: &Paper, lang: Lang) -> Option<Drawing> {
    paper.comparisons.iter().find_map(|of| of_comparison(paper, of, lang).into_iter().next())
}

/// The best point of each experiment and target, of the measure that most of them have.
fn results(paper: &Paper, lang: Lang) -> Option<Drawing> {
    let metric = |row: &KeyRow<'_>| row.point.main.map_or(Metric::Tps, |(metric, _)| metric);
    let all = paper.result_rows();
    let metrics = format::unique(all.iter().map(metric).collect());
    let count = |wanted: &Metric| all.iter().filter(|row| metric(row) == *wanted).count();
    let most = metrics.iter().copied().rev().max_by_key(count)?;
    let rows: Vec<KeyRow<'_>> = all.iter().copied().filter(|row| metric(row) == most).collect();
    if rows.len() < 2 {
        return None;
    }
    let metric = match most {
        Metric::Tps => say!(transactions_per_second_2),
        other => other.title(),
    };
    let caption = say!(best_of_each_experiment, metric = metric);
    let shown = &rows[..rows.len().min(MOST_ROWS)];
    let more = (rows.len() > shown.len())
        .then(|| say!(further_results_in_section_6, n = rows.len() - shown.len()));
    Some(bars_of(paper, shown, Point::throughput, caption, more, lang))
}

/// Its name, and where it is found.
type Quantity = (Message, fn(&Point) -> Spread);

/// Experiments with one point have no chart of their own: statements and transactions of all of them.
pub(crate) fn totals(
    paper: &Paper,
    experiments: &[(usize, &Experiment)],
    lang: Lang,
) -> Vec<Drawing> {
    let is_alone = |row: &KeyRow<'_>| {
        let own = row.experiment;
        own.points.len() == 1 && own.published.is_empty() && row.point.main.is_none()
    };
    let all = paper.result_rows().into_iter();
    let is_here = |row: &KeyRow<'_>| experiments.iter().any(|(index, _)| *index == row.index);
    let rows: Vec<KeyRow<'_>> = all.filter(|row| is_here(row) && is_alone(row)).collect();
    if rows.len() < 2 {
        return Vec::new();
    }
    let is_same = rows.iter().all(|row| row.point.qps.median < 1.01 * row.point.tps.median);
    let quantities: [Quantity; 2] = [
        (say!(transactions_per_second_2), |point| point.tps),
        (say!(statements_per_second_2), |point| point.qps),
    ];
    let shown = quantities.into_iter().take(if is_same { 1 } else { 2 });
    let drawn = shown.map(|(metric, of)| {
        let caption = say!(total_of_experiments_with_one_level, metric = metric);
        bars_of(paper, &rows, of, caption, None, lang)
    });
    drawn.collect()
}

/// A bar for each row, which says as much of its place as tells it apart.
fn bars_of(
    paper: &Paper,
    rows: &[KeyRow<'_>],
    of: impl Fn(&Point) -> Spread,
    caption: Message,
    more: Option<Message>,
    lang: Lang,
) -> Drawing {
    let has_targets = rows.iter().any(|row| row.point.target != rows[0].point.target);
    let has_experiments = rows.iter().any(|row| row.index != rows[0].index);
    let bar = |row: &KeyRow<'_>| {
        let (point, spread) = (row.point, of(row.point));
        let name = match (has_experiments, has_targets) {
            (true, true) => {
                let parts = [row.experiment.title.clone(), Message::verbatim(&point.target)];
                Message::joined(&parts, ", ", "，")
            }
            (true, false) => row.experiment.title.clone(),
            _ => Message::verbatim(&point.target),
        };
        Bar {
            name: name.render(lang),
            class: colour(paper, &point.target),
            value: spread.median,
            low_high: (point.repeats > 1).then_some((spread.min, spread.max)),
            // A figure that a check forbids says so wherever it stands.
            text: format::short(spread.median) + &forbidding(paper, &point.checks),
        }
    };
    let shown: Vec<Bar> = rows.iter().map(bar).collect();
    of_bars(&shown, caption, more, lang)
}

pub(crate) fn of_bars(
    shown: &[Bar],
    caption: Message,
    more: Option<Message>,
    lang: Lang,
) -> Drawing {
    let described = caption.render(lang);
    let chart = bars(WIDE.0, &described, shown);
    let caption: Vec<Message> = [caption].into_iter().chain(more).collect();
    figure(vec![chart], Vec::new(), &caption, lang)
}
