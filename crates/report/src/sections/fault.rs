//! Failover and durability: what was done to nodes and what followed, with its moments over time.

use super::*;
use crate::charts::{TPS, WIDE, color, linear_axis, panel, rate_over_time, stretches};
use dyno_judge::findings::fault::{FaultTrials, half_done, in_doubt, shard_success, what};

/// Returns the section: what each configuration lost, timelines, and the steps of each trial.
pub(super) fn blocks(paper: &Paper, lang: Lang) -> Blocks {
    let mut blocks = Blocks::default();
    let rows = paper.faults();
    blocks.paragraph(say!(fault_trials_intro));
    blocks.table(configurations_table(paper, &rows));
    let facts: Vec<&FaultFacts> = rows.iter().flat_map(FaultTrials::facts).collect();
    let interval_s = facts.iter().map(|facts| facts.resolution_s).fold(0.0, f64::max);
    let mut sentences = vec![say!(times_are_known_to_an_interval, s = format::tenth(interval_s))];
    if facts.iter().any(|facts| facts.first_success_after_s == Some(0.0)) {
        let noticed_s = facts.iter().map(|facts| facts.noticed_s).fold(0.0, f64::max);
        sentences.push(say!(first_success_after_0_0_s, s = format::plain(noticed_s)));
    }
    if facts.iter().any(|facts| facts.shard.is_some()) {
        sentences.push(say!(shard_outage_counts));
    }
    sentences.extend(has_dashes(&rows).then(|| say!(dashes_of_faults)));
    blocks.fine(Message::sentences(&sentences));
    blocks.figures(timelines(paper, &rows, lang));
    blocks.table(trials_table(&rows));
    blocks
}

fn has_shards(row: &FaultTrials<'_>) -> bool {
    row.facts().any(|facts| facts.across_shards.is_some())
}

/// Returns true if a figure of the table is not known.
fn has_dashes(rows: &[FaultTrials<'_>]) -> bool {
    let mut facts = rows.iter().flat_map(FaultTrials::facts);
    let is_mixed = rows.iter().any(has_shards) && !rows.iter().all(has_shards);
    is_mixed || facts.any(|facts| facts.lost.is_none() || facts.tps_after.is_none())
}

/// The event that a commit waits for, as the servers report it; else as the suite states it.
fn acknowledged_by(paper: &Paper, target: &str) -> Option<Message> {
    let waits_for = paper.nodes_of(target).find_map(|node| node.acknowledged_by.as_ref());
    waits_for
        .map(|wait| wait.words().clone())
        .or_else(|| paper.target(target)?.facts.durability.as_ref().map(Message::from))
}

/// Errors by class, over all trials, the most frequent first.
fn error_lines(row: &FaultTrials<'_>) -> TextLine {
    let errors = row.facts().flat_map(|facts| &facts.errors);
    let classes = grouped(errors.map(|error| (error.class.as_str(), error.count))).into_iter();
    let mut classes: Vec<(&str, u64)> =
        classes.map(|(class, counts)| (class, counts.into_iter().sum())).collect();
    classes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    lines(classes.into_iter().map(|(class, count)| {
        vec![code(class), Span::plain(format!(" {}", format::whole(count as f64)))]
    }))
}

/// Seconds of the trials that have such a time, and the number of trials without.
fn seconds(row: &FaultTrials<'_>, get: fn(&FaultFacts) -> Option<f64>) -> Cell {
    let (total, never) = (row.trials.len(), row.without(get));
    let cell = Cell::from(row.spread(get).map(|times| spread(times, total - never)));
    cell.with_if(never > 0, || {
        let words = say!(never_in_n_trials, n = never.to_string(), all = total.to_string());
        vec![Span::plain(words)]
    })
}

fn configurations_table<'a>(
    paper: &'a Paper,
    rows: &'a [FaultTrials<'a>],
) -> PaperRows<&'a FaultTrials<'a>> {
    PaperRows::new(say!(configurations_side_by_side), rows)
        .text(say!(experiment), |row| &row.experiment.title)
        .text(say!(target_column), |row| &row.first().target)
        .text(say!(commit_wait_column), |row| acknowledged_by(paper, &row.first().target))
        .text(say!(fault), FaultTrials::describe_fault)
        .col(say!(trials), Whole, |row| row.trials.len())
        .strong(say!(first_success_s), Tenth, |row| {
            seconds(row, |facts| facts.first_success_after_s)
        })
        .strong(say!(shard_outage_s), Tenth, |row| {
            let has_shard = row.facts().any(|facts| facts.shard.is_some());
            if has_shard { seconds(row, shard_success) } else { Cell::default() }
        })
        .if_any()
        .strong(say!(recovered_s), Tenth, |row| seconds(row, |facts| facts.recovered_after_s))
        .col(say!(per_s_before), Short, |row| rate_cell(row, |facts| Some(facts.tps_before)))
        .col(say!(per_s_after), Short, |row| rate_cell(row, |facts| facts.tps_after))
        .text(say!(errors), error_lines)
        .col(say!(acknowledged), Whole, |row| row.sum(|facts| facts.acknowledged))
        .strong(say!(lost), Whole, |row| row.sum(|facts| facts.lost))
        .when(rows.iter().any(has_shards), |table| {
            let table = table.strong(say!(half_done), Whole, |row| row.sum(half_done));
            table.col(say!(in_doubt), Whole, |row| row.sum(in_doubt))
        })
        .col(say!(unknown_column), Whole, |row| row.sum(|facts| facts.unknown))
        .text(say!(notes), |row| {
            let trials = row.trials.iter();
            let numbers: BTreeSet<usize> =
                trials.flat_map(|(trial, _)| trial.checks.clone()).collect();
            notes(paper, &numbers.into_iter().collect::<Vec<_>>())
        })
}

/// A rate of the trials that have it.
fn rate_cell(row: &FaultTrials<'_>, get: fn(&FaultFacts) -> Option<f64>) -> Option<Cell> {
    row.spread(get).map(|tps| spread(tps, row.trials.len()))
}

fn trials_table<'a>(rows: &[FaultTrials<'a>]) -> PaperRows<(&'a Trial, &'a FaultFacts)> {
    let rows = rows.iter().flat_map(|row| row.trials.iter().copied());
    PaperRows::new(say!(what_happened_trial_by_trial), rows)
        .look("text")
        .text(say!(trial_column), |(trial, _)| &trial.label)
        .text(say!(target_column), |(trial, _)| &trial.target)
        .text(say!(fault_steps_column), |(_, facts)| describe_steps(facts))
        .text(say!(search_method_column), |(_, facts)| &facts.evidence)
}

fn describe_steps(facts: &FaultFacts) -> Message {
    let steps = facts
        .steps
        .iter()
        .map(|step| say!(fault_step, at = format!("{:.1}", step.at_s), what = &step.what));
    Message::sentences(&steps.collect::<Vec<_>>())
}

/// A moment is drawn as wide as this share of the whole.
const MOMENT: f64 = 0.003;
/// Trials of each configuration that are drawn.
const MAX_DRAWN: usize = 3;

/// Returns a timeline for each of the first `MAX_DRAWN` trials of each row.
fn timelines(paper: &Paper, rows: &[FaultTrials<'_>], lang: Lang) -> Vec<Drawing> {
    let trials = rows.iter().flat_map(|row| row.trials.iter().take(MAX_DRAWN));
    trials.filter_map(|(trial, _)| timeline(paper, trial, lang)).collect()
}

/// Draws the throughput of a trial with a fault, and the moments of the fault.
fn timeline(paper: &Paper, trial: &Trial, lang: Lang) -> Option<Drawing> {
    let facts = trial.summary.fault.as_ref().filter(|_| trial.series.len() > 1)?;
    let per_s = say!(transactions_per_second);
    let mut line = rate_over_time(&stretches(&trial.series), &TPS, &color(paper, &trial.target));
    line.name = per_s.render(lang);
    let axis = linear_axis(per_s.render(lang).as_str(), trial.series.iter().map(|row| row.tps), 4);
    let mut chart = panel(trial, &say!(throughput), axis, vec![line], lang);
    (chart.width, chart.height) = (WIDE.0, 240.0);
    let last = &trial.series[trial.series.len() - 1];
    let width_s = (last.begins_s + last.length_s - trial.series[0].begins_s) * MOMENT;
    // The effects of the fault replace the shades that charts of any trial have.
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
        at = format::tenth(facts.at_s)
    );
    let titles = moments.into_iter().map(|(_, title)| title).collect::<Vec<_>>();
    let lines = say!(lines_from_left_to_right, moments = Message::list(&titles));
    let shade = outage.map(|(from_s, to_s)| {
        let (from, to) = (format::tenth(from_s), format::tenth(to_s));
        say!(shaded_outage, from, to)
    });
    let note = Message::sentences(&shade.into_iter().chain([lines]).collect::<Vec<_>>());
    Some(Drawing {
        caption: caption.render(lang),
        note: note.render(lang),
        svgs: vec![chart.svg()],
        ..Drawing::default()
    })
}

/// Begin and end of the time without a commit. A node that is cut off or frozen may continue to work for a while after
/// the fault, so the intervals decide when it began.
fn outage(facts: &FaultFacts, series: &[SeriesRow], ends_s: f64) -> Option<(f64, f64)> {
    let to_s = match facts.first_success_after_s {
        Some(after_s) => facts.at_s + after_s,
        None => ends_s,
    };
    let half_s = facts.resolution_s / 2.0;
    let before = series.iter().rev().skip_while(|row| row.begins_s > to_s - half_s);
    let without_commit = before.take_while(|row| row.committed == 0);
    let from_s = without_commit.last().map_or(to_s, |row| row.begins_s).max(facts.at_s);
    (to_s > from_s).then_some((from_s, to_s))
}

/// The moments of the trial in the order of time, and of cause and effect if the intervals don't tell them
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
    moments.sort_by(|a, b| {
        let [a, b] = [a, b].map(|(at_s, _)| (at_s / facts.resolution_s.max(0.1)).round());
        a.total_cmp(&b)
    });
    moments
}
