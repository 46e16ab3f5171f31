//! A trial with a fault over time, with its moments.

use super::over_time::{TPS, panel, rate_over_time, stretches};
use super::{Drawing, WIDE, colour, linear_axis};
use crate::evidence::{Paper, Trial};
use crate::format;
use crate::svg::Shade;
use crate::text::{Lang, Message};
use dyno_facts::{FaultFacts, SeriesRow, say};
use dyno_judge::findings::fault::{FaultTrials, what};

/// A moment is drawn as wide as this share of the whole.
const MOMENT: f64 = 0.003;
/// So many trials of a configuration are drawn.
const MOST_DRAWN: usize = 3;

/// The timelines of the first trials of each row.
pub(crate) fn figures(paper: &Paper, rows: &[FaultTrials<'_>], lang: Lang) -> Vec<Drawing> {
    let drawn = rows.iter().flat_map(|row| row.trials.iter().take(MOST_DRAWN));
    drawn.filter_map(|(trial, _)| figure(paper, trial, lang)).collect()
}

fn figure(paper: &Paper, trial: &Trial, lang: Lang) -> Option<Drawing> {
    let facts = trial.summary.fault.as_ref().filter(|_| trial.series.len() > 1)?;
    let per_s = say!(transactions_per_second);
    let mut line = rate_over_time(&stretches(&trial.series), &TPS, &colour(paper, &trial.target));
    line.name = per_s.render(lang);
    let axis = linear_axis(per_s.render(lang).as_str(), trial.series.iter().map(|row| row.tps), 4);
    let mut chart = panel(trial, &say!(throughput), axis, vec![line], lang);
    (chart.width, chart.height) = (WIDE.0, 240.0);
    let last = &trial.series[trial.series.len() - 1];
    let width_s = (last.begins_s + last.length_s - trial.series[0].begins_s) * MOMENT;
    // What the fault has done takes the place of what is told of any trial.
    chart.shades.retain(|shade| shade.class == "warm");
    let ends_s = last.begins_s + last.length_s;
    let outage = outage(facts, &trial.series, ends_s);
    chart.shades.extend(outage.map(|(from, to)| Shade {
        from,
        to,
        class: "gap",
        title: say!(no_commit).render(lang),
    }));
    let moments = moments(facts, ends_s);
    chart.shades.extend(moments.clone().into_iter().map(|(at_s, title)| Shade {
        from: at_s,
        to: at_s + width_s,
        class: "moment",
        title: title.render(lang),
    }));
    let caption = say!(
        trial_fault_at_s,
        trial = &trial.label,
        target = &trial.target,
        what = what(facts),
        at = format::tenth(facts.at_s),
    );
    let marks = moments.into_iter().map(|(_, title)| title).collect::<Vec<_>>();
    let marked = say!(lines_from_left_to_right, moments = Message::list(&marks));
    let shaded = outage.map(|(from_s, to_s)| {
        let (from, to) = (format::tenth(from_s), format::tenth(to_s));
        say!(shaded_no_commit_from_s_to, from = from, to = to)
    });
    let note = Message::sentences(&shaded.into_iter().chain([marked]).collect::<Vec<_>>());
    Some(Drawing {
        caption: caption.render(lang),
        note: note.render(lang),
        svgs: vec![chart.svg()],
        ..Drawing::default()
    })
}

/// From when to when there was no commit. The work of a node that is cut off or frozen may go on for a while
/// after the fault, so the begin is looked for in the intervals.
fn outage(facts: &FaultFacts, series: &[SeriesRow], ends_s: f64) -> Option<(f64, f64)> {
    let to_s = match facts.first_success_after_s {
        Some(after_s) => facts.at_s + after_s,
        None => ends_s,
    };
    let half_s = facts.resolution_s / 2.0;
    let before = series.iter().rev().skip_while(|row| row.begins_s > to_s - half_s);
    let silent = before.take_while(|row| row.committed == 0);
    let from_s = silent.last().map_or(to_s, |row| row.begins_s).max(facts.at_s);
    (to_s > from_s).then_some((from_s, to_s))
}

/// The moments of the trial in the order of time, and of cause and effect where the intervals don't tell them
/// apart; a node may have been brought back after the trial.
fn moments(facts: &FaultFacts, ends_s: f64) -> Vec<(f64, Message)> {
    let at = format::tenth;
    let recovered_s = facts.recovered_after_s.map(|after_s| facts.at_s + after_s);
    let mut moments = vec![(facts.at_s, say!(the_fault_s, at = at(facts.at_s)))];
    if let Some(at_s) = facts.promoted_at_s {
        moments.push((at_s, say!(another_node_takes_writes_s, at = at(at_s))));
    }
    if let Some(at_s) = facts.healed_at_s {
        moments.push((at_s, say!(the_node_is_back_s, at = at(at_s))));
    }
    if let Some(at_s) = recovered_s {
        moments.push((at_s, say!(n_90_percent_of_the_throughput_s, at = at(at_s))));
    }
    moments.retain(|(at_s, _)| *at_s <= ends_s);
    // Throughput is known to an interval, the others are exact.
    let interval = |at_s: f64| (at_s / facts.resolution_s.max(0.1)).round();
    moments.sort_by(|a, b| interval(a.0).total_cmp(&interval(b.0)));
    moments
}
