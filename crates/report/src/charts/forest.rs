//! Forest plots of comparisons, and intervals for the charts of throughput.

use super::*;

/// More rows than these are told in the table only, the first metric of each comparison excepted.
const MOST_ROWS: usize = 40;
/// An axis is not longer than this: what lies beyond is cut.
const LONGEST: f64 = 4.0;

/// A plot of what is better when there is more of it, and one of times.
pub(crate) fn forests(paper: &Paper, lang: Lang) -> Vec<Drawing> {
    let plot = |of_times: bool| {
        let comparisons = paper.verdicts.comparisons.iter();
        let rows = comparisons.flat_map(|of| of.rows.iter().enumerate().map(move |it| (of, it)));
        let mut rows: Vec<_> =
            rows.filter(|(_, (_, row))| row.is_less_better == of_times).collect();
        if rows.len() > MOST_ROWS {
            rows.retain(|(_, (place, _))| *place == 0);
        }
        let rows: Vec<RowOf<'_>> = rows.into_iter().map(|(of, (_, row))| (of, row)).collect();
        (!rows.is_empty()).then(|| plot(paper, of_times, &rows, Message::default(), lang))
    };
    [false, true].into_iter().filter_map(plot).collect()
}

type RowOf<'a> = (&'a PairedComparison, &'a VerdictRow);

/// The metric that decides of each of these comparisons; what is decided comes first where not all have room.
pub(super) fn of_first_rows(
    paper: &Paper,
    comparisons: &[&PairedComparison],
    most: usize,
    lang: Lang,
) -> Option<Drawing> {
    let firsts = comparisons.iter().filter_map(|of| Some((*of, of.rows.first()?)));
    let firsts: Vec<RowOf<'_>> = firsts.collect();
    let of_times = firsts.first()?.1.is_less_better;
    let mut shown: Vec<RowOf<'_>> =
        firsts.iter().copied().filter(|(_, row)| row.is_less_better == of_times).collect();
    if shown.len() > most {
        shown.sort_by_key(|(of, row)| (row.call.is_undecided(), of.number));
        shown.truncate(most);
        shown.sort_by_key(|(of, _)| of.number);
    }
    let more = match firsts.len() - shown.len() {
        0 => Message::default(),
        n => say!(further_results_in_section_6, n),
    };
    Some(plot(paper, of_times, &shown, more, lang))
}

fn plot(paper: &Paper, of_times: bool, rows: &[RowOf<'_>], more: Message, lang: Lang) -> Drawing {
    let pair = |of: &PairedComparison| format!("{} / {}", of.candidate, of.baseline);
    let only = rows.first().map(|(of, _)| pair(of));
    let only = only.filter(|only| rows.iter().all(|(of, _)| pair(of) == *only));
    let named = |(of, row): &RowOf<'_>| {
        // One pair of targets stands at the axis.
        let name = match &only {
            Some(_) => of.title.clone(),
            None => say!(
                experiment_candidate_by_baseline,
                experiment = &of.title,
                candidate = &of.candidate,
                baseline = &of.baseline
            ),
        };
        (name.render(lang), forest_row(paper, of, row, lang))
    };
    let groups = grouped(rows.iter().map(named));
    let shown: Vec<&VerdictRow> = rows.iter().map(|(_, row)| *row).collect();
    let mut sides = [say!(slower), say!(faster)].map(|side| side.render(lang));
    if of_times {
        sides.reverse();
    }
    let what = match of_times {
        true => say!(times_and_latencies_candidate_by_baseline),
        false => say!(throughput_candidate_by_baseline_right_of),
    };
    let caption = Message::sentences(&[
        say!(what, what = &what),
        match shown.iter().any(|row| row.call.is_undecided()) {
            true => say!(marks_are_pseudo_medians),
            false => say!(marks_are_pseudo_medians_all_decided),
        },
        more,
    ]);
    let has_noise = shown.iter().any(|row| row.noise_floor.is_some());
    let note = match has_noise {
        true => say!(shaded_what_the_same_system_differs),
        false => Message::default(),
    };
    let label = match &only {
        Some(pair) => say!(axis_logarithmic, axis = pair),
        None => say!(ratio_logarithmic),
    };
    let plot = RowChart {
        width: WIDE.0,
        description: what.render(lang),
        axis: axis(&shown, &label.render(lang)),
        sides: Some(sides),
        groups,
    };
    let (caption, note) = (caption.render(lang), note.render(lang));
    Drawing { caption, note, svgs: vec![plot.svg()], ..Drawing::default() }
}

fn forest_row(paper: &Paper, of: &PairedComparison, row: &VerdictRow, lang: Lang) -> ChartRow {
    let is_only = of.rows.iter().filter(|other| other.is_less_better == row.is_less_better).count();
    let name = match is_only {
        1 => of.level.clone(),
        _ => say!(level_metric, level = &of.level, metric = &row.name),
    };
    let found = match row.interval {
        Some(both) => format!("{} {}", ratio_of_row(row), bounds(both)),
        None => ratio_of_row(row),
    };
    let text = say!(found_verdict, found, verdict = briefly(paper, of, row));
    ChartRow {
        name: name.render(lang),
        class: color(paper, &of.candidate),
        interval: row.interval.map(|both| (both.low, both.high)),
        noise: row.noise_floor.map(|share| (1.0 / (1.0 + share), 1.0 + share)),
        mark: Some((row.ratio, !row.call.is_undecided())),
        text: text.render(lang),
        ..ChartRow::default()
    }
}

/// A verdict for where there is no room for reasons: checks by their numbers.
fn briefly(paper: &Paper, of: &PairedComparison, row: &VerdictRow) -> Message {
    let number = |veto: &Veto| {
        let check = paper.checks.iter().find(|check| check.id == veto.check)?;
        Some(format!("{:?}{}", check.level, check.number))
    };
    match row.call {
        Call::Explained => {
            let own = of.vetoes.iter().filter(|veto| veto.reach.touches(row.metric));
            let numbers: Vec<String> = own.filter_map(number).collect();
            say!(undecided_by_check, id = numbers.join(", "))
        }
        Call::Unproven => say!(undecided),
        _ => row.words.clone(),
    }
}

/// Logarithmic around 1: twice as fast is as far from 1 as half as fast.
fn axis(rows: &[&VerdictRow], label: &str) -> Axis {
    let ends = |row: &&VerdictRow| match row.interval {
        Some(both) => [both.low, both.high, row.ratio],
        None => [row.ratio; 3],
    };
    let values: Vec<f64> = rows.iter().flat_map(ends).collect();
    // Intervals of two pairs reach anywhere; the marks themselves always have room.
    let marks = |of: fn(f64, f64) -> f64| rows.iter().map(|row| row.ratio).fold(1.0, of);
    let low = values.iter().copied().fold(0.98, f64::min).max(marks(f64::min).min(1.0 / LONGEST));
    let high = values.iter().copied().fold(1.02, f64::max).min(marks(f64::max).max(LONGEST));
    let (low, high) = (low / (high / low).powf(0.03), high * (high / low).powf(0.03));
    Axis::of(label.to_owned(), AxisScale::log(low, high), round_ratios(low, high))
}

/// Round ratios between these, 1 among them: some three to nine.
fn round_ratios(low: f64, high: f64) -> Vec<f64> {
    const WANTED: usize = 8;
    match high / low < 5.0 {
        true => AxisScale::Linear { from: low, to: high }.ticks(WANTED),
        false => AxisScale::log(low, high).ticks(WANTED),
    }
}

/// 95% interval of the mean throughput over the repeats of a point; `None` under four, where it
/// would say more of the number of repeats than of the target.
pub(super) fn throughput_interval(paper: &Paper, point: &Point) -> Option<(f64, f64)> {
    let metric = point.main.map_or(Metric::Tps, |(metric, _)| metric);
    let own = paper.trials.iter().filter(|trial| point.trials.contains(&trial.label));
    let values: Vec<f64> = own.filter_map(|trial| trial.summary.figure(metric)).collect();
    let interval = mean_interval(&values).filter(|_| values.len() >= 4)?;
    Some((interval.low, interval.high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::svg::width_of;

    #[test]
    fn an_axis_of_ratios_has_at_least_three_ticks_and_1_among_them() {
        for low in [0.25, 0.33, 0.5, 0.62, 0.7, 0.9, 0.98] {
            for high in [1.02, 1.1, 1.56, 1.85, 2.0, 3.0, 4.0] {
                let found = round_ratios(low, high);
                assert!((3..=9).contains(&found.len()), "{low} to {high}: {found:?}");
                assert!(found.iter().any(|at| (at - 1.0).abs() < 1e-9), "{low} to {high}");
            }
        }
    }

    #[test]
    fn ticks_of_a_narrow_plot_do_not_touch() {
        let axis = Axis::of(String::new(), AxisScale::log(0.33, 1.56), round_ratios(0.33, 1.56));
        let svg = RowChart { width: 360.0, axis, ..RowChart::default() }.svg();
        let ticks = svg.split("<text class=\"tick\" x=\"").skip(1).map(|part| {
            let x = part.split('"').next().and_then(|x| x.parse::<f64>().ok()).expect("a place");
            let words = part.split(['>', '<']).nth(1).expect("a text");
            (x, width_of(words) / 2.0)
        });
        let ticks: Vec<(f64, f64)> = ticks.collect();
        assert!(ticks.len() >= 4, "{ticks:?}");
        assert!(ticks.windows(2).all(|two| two[0].0 + two[0].1 < two[1].0 - two[1].1), "{ticks:?}");
    }
}
