//! What generator and servers did during the trials of the best points.

use super::{COLOURS, Drawing, PUBLISHED, colour, legend, linear_axis, panel};
use crate::evidence::{Paper, Trial};
use crate::format::unique;
use crate::svg::{Series, Stroke};
use crate::text::{Lang, Message};
use dyno_facts::{NodeRow, say};

/// So many trials are drawn; the table has all of them.
const MOST: usize = 12;
/// A series with more samples is drawn in as many stretches.
const MOST_SAMPLES: usize = 120;

/// One figure for the first trial of each best point whose servers were asked.
pub(crate) fn figures(paper: &Paper, lang: Lang) -> Vec<Drawing> {
    let firsts = paper.key_rows().into_iter().filter_map(|row| row.point.trials.first());
    let own = firsts.filter_map(|label| paper.trials.iter().find(|trial| trial.label == *label));
    own.filter(|trial| trial.series.len() > 1 && !trial.nodes.is_empty())
        .take(MOST)
        .map(|trial| figure(paper, trial, lang))
        .collect()
}

fn figure(paper: &Paper, trial: &Trial, lang: Lang) -> Drawing {
    let generator = trial.series.iter().map(|row| (row.begins_s, Some(row.host_cpu_share * 100.0)));
    let generator: Vec<(f64, Option<f64>)> = generator.collect();
    let mut busy = vec![line(say!(load_generator).render(lang), PUBLISHED.to_owned(), &generator)];
    busy.extend(lines(paper, trial, None, |row| row.cpu_share.map(|share| share * 100.0), lang));
    let mut sessions = lines(paper, trial, Some(&say!(at_work)), |row| row.active_sessions, lang);
    let waiting = lines(paper, trial, Some(&say!(waiting)), |row| row.waiting_sessions, lang);
    sessions.extend(waiting.into_iter().map(|series| Series { stroke: Stroke::Dotted, ..series }));
    let mut entries = Vec::new();
    let mut svgs = Vec::new();
    for (what, unit, series) in [
        (say!(machine_busy), say!(machine_busy_percent), busy),
        (say!(sessions), say!(sessions_2), sessions),
    ] {
        let values = Series::values(&series);
        let y = linear_axis(unit.render(lang).as_str(), values.into_iter(), 3);
        let chart = panel(trial, &what, y, series, lang);
        if !chart.series.is_empty() {
            entries.extend(legend(&chart));
            svgs.push(chart.svg());
        }
    }
    let caption = say!(
        trial_how_busy_the_machines_were,
        trial = &trial.label,
        experiment = &trial.summary.experiment,
        target = &trial.target,
    );
    super::figure(svgs, entries, &[caption], lang)
}

/// A line for each node that tells the quantity.
fn lines(
    paper: &Paper,
    trial: &Trial,
    what: Option<&Message>,
    of: fn(&NodeRow) -> Option<f64>,
    lang: Lang,
) -> Vec<Series> {
    let mut names: Vec<String> = unique(trial.nodes.iter().map(|row| row.node.clone()).collect());
    names.sort();
    // The last samples are taken when the trial has ended.
    let end = trial.series.last().map_or(f64::INFINITY, |row| row.begins_s + row.length_s);
    let own = |(place, name): (usize, &String)| {
        let rows = trial.nodes.iter().filter(|row| row.node == *name && row.at_s <= end);
        let points: Vec<(f64, Option<f64>)> =
            rows.filter_map(|row| Some((row.at_s, Some(of(row)?)))).collect();
        let label = match what {
            Some(what) => say!(node_what, node = name, what = what),
            None => Message::from(name),
        };
        let class = match names.len() {
            1 => colour(paper, &trial.target),
            _ => format!("s{}", place % COLOURS),
        };
        (!points.is_empty()).then(|| line(label.render(lang), class, &points))
    };
    names.iter().enumerate().filter_map(own).collect()
}

/// Means of stretches where there are many samples.
fn line(name: String, class: String, points: &[(f64, Option<f64>)]) -> Series {
    let mean = |points: &[(f64, Option<f64>)], of: fn(&(f64, Option<f64>)) -> f64| {
        points.iter().map(of).sum::<f64>() / points.len() as f64
    };
    let length = points.len().div_ceil(MOST_SAMPLES).max(1);
    let stretch = |part: &[(f64, Option<f64>)]| {
        (mean(part, |point| point.0), Some(mean(part, |point| point.1.unwrap_or(0.0))))
    };
    Series::line(name, class, points.chunks(length).map(stretch).collect())
}
