//! Statements per second against the number of read-only nodes.

use super::{Drawing, colour, linear_axis, wide};
use crate::NodeScaling;
use crate::evidence::{Experiment, Paper};
use crate::svg::{Axis, AxisScale, Series, Stroke};
use crate::text::Lang;
use dyno_facts::say;

/// `None` unless targets differ in their number of nodes.
pub(super) fn figure(paper: &Paper, experiment: &Experiment, lang: Lang) -> Option<Drawing> {
    let rows = &experiment.node_scaling;
    let most = rows.iter().map(|row| row.nodes).max()?;
    let least = rows.iter().map(|row| row.nodes).min()?;
    let clusters: Vec<&[NodeScaling]> = rows.chunk_by(|a, b| a.cluster == b.cluster).collect();
    let mut series: Vec<Series> = Vec::new();
    for cluster in &clusters {
        series.push(measured(paper, cluster, lang));
        series.push(proportional(paper, cluster, clusters.len() > 1, lang));
    }
    let values = Series::values(&series);
    let highest = rows.iter().map(|row| row.qps.max);
    let description = say!(statements_per_second_of_against_the, experiment = &experiment.title);
    let label = say!(statements_per_second).render(lang);
    let y = linear_axis(label.as_str(), values.into_iter().chain(highest), 5);
    let mut caption = vec![
        say!(statements_per_second_against_the_number),
        say!(dashed_in_proportion_to_the_fewest),
    ];
    if series.iter().any(|series| !series.band.is_empty()) {
        caption.push(say!(lines_join_the_medians_the_band_spans));
    }
    Some(wide(&description, [nodes_axis(least, most, lang), y], series, &caption, lang))
}

fn nodes_axis(least: u32, most: u32, lang: Lang) -> Axis {
    let scale = AxisScale::Linear { from: f64::from(least), to: f64::from(most) };
    Axis {
        label: say!(read_only_nodes_2).render(lang),
        scale,
        ticks: (least..=most).map(|nodes| (f64::from(nodes), nodes.to_string())).collect(),
    }
}

fn class(paper: &Paper, cluster: &[NodeScaling]) -> String {
    cluster.first().map_or(String::new(), |row| colour(paper, &row.target))
}

fn measured(paper: &Paper, cluster: &[NodeScaling], lang: Lang) -> Series {
    let name = match cluster.first().map(|row| row.cluster.as_str()) {
        None | Some("") => say!(measured).render(lang),
        Some(name) => name.to_owned(),
    };
    let is_repeated = cluster.iter().any(|row| row.qps.max > row.qps.min);
    let band = cluster.iter().map(|row| (f64::from(row.nodes), row.qps.min, row.qps.max));
    let points = cluster.iter().map(|row| (f64::from(row.nodes), Some(row.qps.median))).collect();
    Series {
        band: if is_repeated { band.collect() } else { Vec::new() },
        has_dots: true,
        end_label: Some(name.clone()),
        ..Series::line(name, class(paper, cluster), points)
    }
}

/// What the fewest nodes promise for more of them.
fn proportional(paper: &Paper, cluster: &[NodeScaling], is_named: bool, lang: Lang) -> Series {
    let name = match cluster.first() {
        Some(row) if is_named => say!(in_proportion_cluster, cluster = &row.cluster),
        _ => say!(in_proportion),
    };
    let ideal = |row: &NodeScaling| {
        (f64::from(row.nodes), (row.efficiency > 0.0).then(|| row.qps.median / row.efficiency))
    };
    let points = cluster.iter().map(ideal).collect();
    let line = Series::line(name.render(lang), class(paper, cluster), points);
    Series { stroke: Stroke::Dashed, ..line }
}
