//! How latency is distributed.

use super::{COLOURS, Drawing, colour, latency_axis, wide};
use crate::evidence::LatencyDistribution;
use crate::evidence::Paper;
use crate::svg::{Axis, AxisScale, Series, Stroke};
use crate::text::Lang;
use dyno_facts::say;

/// One figure per experiment: the slower a transaction, the further right it is, each share of the
/// rest as far as the one before.
pub(crate) fn figures(paper: &Paper, lang: Lang) -> Vec<Drawing> {
    let of = |index: usize| -> Vec<&LatencyDistribution> {
        paper.distributions.iter().filter(|d| d.experiment_index == index).collect()
    };
    let all = (0..paper.experiments.len()).map(|index| (index, of(index)));
    all.filter_map(|(index, own)| figure(paper, index, &own, lang)).collect()
}

fn figure(
    paper: &Paper,
    index: usize,
    own: &[&LatencyDistribution],
    lang: Lang,
) -> Option<Drawing> {
    let is_many = own.iter().any(|d| d.target != own[0].target);
    let series: Vec<Series> = own
        .iter()
        .enumerate()
        .map(|(place, d)| {
            let name = match (is_many, d.kind.is_empty()) {
                (_, true) => d.target.clone(),
                (true, false) => format!("{} {}", d.target, d.kind),
                (false, false) => d.kind.clone(),
            };
            let class = match d.kind.is_empty() {
                true => colour(paper, &d.target),
                false => format!("s{}", place % COLOURS),
            };
            let quantiles = d.quantiles.iter().filter(|q| q.share < 1.0 && q.us > 0.0);
            let points = quantiles.map(|q| (1.0 / (1.0 - q.share), Some(q.us / 1e3))).collect();
            Series {
                stroke: if place < COLOURS { Stroke::Solid } else { Stroke::Dashed },
                has_dots: true,
                end_label: (own.len() <= 6).then(|| name.clone()),
                ..Series::line(name, class, points)
            }
        })
        .collect();
    let values = Series::values(&series);
    let points = series.iter().flat_map(|series| &series.points);
    let longest = points.map(|(x, _)| *x).fold(10.0, f64::max);
    if values.len() < 2 {
        return None;
    }
    let shares = [(1.0, "0 %"), (2.0, "50 %"), (10.0, "90 %"), (20.0, "95 %"), (100.0, "99 %")];
    let finer = [(1e3, "99.9 %"), (1e4, "99.99 %"), (1e5, "99.999 %"), (1e6, "99.9999 %")];
    let ticks = shares.into_iter().chain(finer).filter(|(at, _)| *at <= longest * 1.001);
    let experiment = &paper.experiments[index].title;
    let x = say!(share_of_the_transactions_that_take);
    let x = Axis {
        label: x.render(lang),
        scale: AxisScale::log(1.0, longest),
        ticks: ticks.map(|(at, text)| (at, text.to_owned())).collect(),
    };
    let description = say!(distribution_of_latency_of, experiment = experiment);
    let caption = say!(distribution_of_latency_of_at_the, experiment = experiment);
    Some(wide(&description, [x, latency_axis(&values, 5, lang)], series, &[caption], lang))
}
