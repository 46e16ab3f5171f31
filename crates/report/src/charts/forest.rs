//! Forest plots of comparisons, and intervals for the charts of throughput.

use super::*;

/// If there are more rows, the plot has only the first metric of each comparison.
const MAX_ROWS: usize = 40;
/// An axis is not longer than this: what lies beyond is cut.
const MAX_RATIO: f64 = 4.0;

/// A plot of what is better when there is more of it, and one of times.
pub(crate) fn forests(paper: &Paper, lang: Lang) -> Vec<Drawing> {
    let mut plots = Vec::new();
    for are_times in [false, true] {
        let comparisons = paper.verdicts.comparisons.iter();
        let rows = comparisons.flat_map(|comparison| {
            comparison.rows.iter().enumerate().map(move |(place, row)| (place, comparison, row))
        });
        let mut rows: Vec<_> = rows.filter(|(.., row)| row.is_less_better == are_times).collect();
        if rows.len() > MAX_ROWS {
            rows.retain(|(place, ..)| *place == 0);
        }
        let rows: Vec<ForestRow<'_>> =
            rows.into_iter().map(|(_, comparison, row)| (comparison, row)).collect();
        if !rows.is_empty() {
            plots.push(forest_plot(paper, are_times, &rows, Message::default(), lang));
        }
    }
    plots
}

type ForestRow<'a> = (&'a PairedComparison, &'a VerdictRow);

/// The metric that decides of each of these comparisons; what is decided comes first if not all have room.
pub(super) fn deciding_rows_plot(
    paper: &Paper,
    comparisons: &[&PairedComparison],
    max_rows: usize,
    lang: Lang,
) -> Option<Drawing> {
    let deciding = comparisons.iter();
    let deciding: Vec<ForestRow<'_>> =
        deciding.filter_map(|comparison| Some((*comparison, comparison.rows.first()?))).collect();
    let are_times = deciding.first()?.1.is_less_better;
    let mut rows: Vec<ForestRow<'_>> =
        deciding.iter().copied().filter(|(_, row)| row.is_less_better == are_times).collect();
    if rows.len() > max_rows {
        rows.sort_by_key(|(comparison, row)| (row.call.is_undecided(), comparison.number));
        rows.truncate(max_rows);
        rows.sort_by_key(|(comparison, _)| comparison.number);
    }
    let hidden = match deciding.len() - rows.len() {
        0 => Message::default(),
        n => say!(further_results, n),
    };
    Some(forest_plot(paper, are_times, &rows, hidden, lang))
}

fn forest_plot(
    paper: &Paper,
    are_times: bool,
    rows: &[ForestRow<'_>],
    hidden: Message,
    lang: Lang,
) -> Drawing {
    let pairs = rows
        .iter()
        .map(|(comparison, _)| format!("{} / {}", comparison.candidate, comparison.baseline));
    let pairs: Vec<String> = pairs.collect();
    let only_pair = pairs.first().filter(|first| pairs.iter().all(|pair| pair == *first));
    let named_rows = rows.iter().map(|(comparison, row)| {
        // A single pair of targets is named at the axis.
        let name = match only_pair {
            Some(_) => comparison.title.clone(),
            None => say!(
                experiment_candidate_by_baseline,
                experiment = &comparison.title,
                candidate = &comparison.candidate,
                baseline = &comparison.baseline
            ),
        };
        (name.render(lang), forest_row(paper, comparison, row, lang))
    });
    let groups = grouped(named_rows);
    let verdicts: Vec<&VerdictRow> = rows.iter().map(|(_, row)| *row).collect();
    let mut sides = [say!(slower), say!(faster)].map(|side| side.render(lang));
    if are_times {
        sides.reverse();
    }
    let description = if are_times {
        say!(times_and_latencies_candidate_by_baseline)
    } else {
        say!(throughput_ratio_caption)
    };
    let marks = if verdicts.iter().any(|row| row.call.is_undecided()) {
        say!(marks_are_pseudo_medians)
    } else {
        say!(marks_are_pseudo_medians_all_decided)
    };
    let caption = Message::sentences(&[say!(what, what = &description), marks, hidden]);
    let has_noise = verdicts.iter().any(|row| row.noise_floor.is_some());
    let note = if has_noise { say!(shaded_noise) } else { Message::default() };
    let label = match only_pair {
        Some(pair) => say!(axis_logarithmic, axis = pair),
        None => say!(ratio_logarithmic),
    };
    let plot = RowChart {
        width: WIDE.0,
        description: description.render(lang),
        axis: axis(&verdicts, &label.render(lang)),
        sides: Some(sides),
        groups,
    };
    let (caption, note) = (caption.render(lang), note.render(lang));
    Drawing { caption, note, svgs: vec![plot.svg()], ..Drawing::default() }
}

fn forest_row(
    paper: &Paper,
    comparison: &PairedComparison,
    row: &VerdictRow,
    lang: Lang,
) -> ChartRow {
    let rows = comparison.rows.iter();
    let name = match rows.filter(|other| other.is_less_better == row.is_less_better).count() {
        1 => comparison.level.clone(),
        _ => say!(level_metric, level = &comparison.level, metric = &row.name),
    };
    let ratio = match row.interval {
        Some(interval) => format!("{} {}", ratio_of_row(row), bounds(interval)),
        None => ratio_of_row(row),
    };
    let verdict = short_verdict(paper, comparison, row);
    let text = say!(found_verdict, found = ratio, verdict);
    ChartRow {
        name: name.render(lang),
        class: color(paper, &comparison.candidate),
        interval: row.interval.map(|interval| (interval.low, interval.high)),
        noise: row.noise_floor.map(|share| (1.0 / (1.0 + share), 1.0 + share)),
        mark: Some((row.ratio, !row.call.is_undecided())),
        text: text.render(lang),
        ..ChartRow::default()
    }
}

/// A verdict without its reasons: checks by their numbers.
fn short_verdict(paper: &Paper, comparison: &PairedComparison, row: &VerdictRow) -> Message {
    match row.call {
        Call::Explained => {
            let vetoes = comparison.vetoes.iter();
            let vetoes = vetoes.filter(|veto| veto.reach.touches(row.metric));
            let numbers = vetoes.filter_map(|veto| {
                let check = paper.checks.iter().find(|check| check.id == veto.check)?;
                Some(format!("{:?}{}", check.level, check.number))
            });
            say!(undecided_by_check, id = numbers.collect::<Vec<_>>().join(", "))
        }
        Call::Unproven => say!(undecided),
        _ => row.words.clone(),
    }
}

/// Logarithmic around 1: twice as fast is as far from 1 as half as fast.
fn axis(rows: &[&VerdictRow], label: &str) -> Axis {
    let values = rows.iter().flat_map(|row| match row.interval {
        Some(interval) => [interval.low, interval.high, row.ratio],
        None => [row.ratio; 3],
    });
    let values: Vec<f64> = values.collect();
    // Intervals of two pairs reach anywhere; the marks themselves always have room.
    let ratios = rows.iter().map(|row| row.ratio);
    let (min_ratio, max_ratio) = (ratios.clone().fold(1.0, f64::min), ratios.fold(1.0, f64::max));
    let low = values.iter().copied().fold(0.98, f64::min).max(min_ratio.min(1.0 / MAX_RATIO));
    let high = values.iter().copied().fold(1.02, f64::max).min(max_ratio.max(MAX_RATIO));
    let (low, high) = (low / (high / low).powf(0.03), high * (high / low).powf(0.03));
    Axis::new(label.to_owned(), AxisScale::log(low, high), round_ratios(low, high))
}

/// Round ratios between these, 1 among them: some three to nine.
fn round_ratios(low: f64, high: f64) -> Vec<f64> {
    const MAX_TICKS: usize = 8;
    let is_narrow = high / low < 5.0;
    let linear = AxisScale::Linear { from: low, to: high };
    let scale = if is_narrow { linear } else { AxisScale::log(low, high) };
    scale.ticks(MAX_TICKS)
}

/// 95% interval of the mean throughput over the repeats of a point; `None` under four: it
/// would say more about the number of repeats than about the target.
pub(super) fn throughput_interval(paper: &Paper, point: &Point) -> Option<(f64, f64)> {
    let metric = main_metric(point);
    let trials = paper.trials.iter().filter(|trial| point.trials.contains(&trial.label));
    let values: Vec<f64> = trials.filter_map(|trial| trial.summary.figure(metric)).collect();
    let interval = mean_interval(&values).filter(|_| values.len() >= 4)?;
    Some((interval.low, interval.high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::svg::text_width;

    #[test]
    fn an_axis_of_ratios_has_at_least_three_ticks_and_1_among_them() {
        for low in [0.25, 0.33, 0.5, 0.62, 0.7, 0.9, 0.98] {
            for high in [1.02, 1.1, 1.56, 1.85, 2.0, 3.0, 4.0] {
                let ratios = round_ratios(low, high);
                assert!((3..=9).contains(&ratios.len()), "{low} to {high}: {ratios:?}");
                assert!(ratios.iter().any(|at| (at - 1.0).abs() < 1e-9), "{low} to {high}");
            }
        }
    }

    #[test]
    fn ticks_of_a_narrow_plot_do_not_touch() {
        let axis = Axis::new(String::new(), AxisScale::log(0.33, 1.56), round_ratios(0.33, 1.56));
        let svg = RowChart { width: 360.0, axis, ..RowChart::default() }.svg();
        let ticks = svg.split("<text class=\"tick\" x=\"").skip(1).map(|part| {
            let x = part.split('"').next().and_then(|x| x.parse::<f64>().ok()).expect("a place");
            let words = part.split(['>', '<']).nth(1).expect("a text");
            (x, text_width(words) / 2.0)
        });
        let ticks: Vec<(f64, f64)> = ticks.collect();
        assert!(ticks.len() >= 4, "{ticks:?}");
        assert!(ticks.windows(2).all(|two| two[0].0 + two[0].1 < two[1].0 - two[1].1), "{ticks:?}");
    }
}
