//! Failover and durability: what was done to nodes, and what followed.

use super::notes;
use crate::blocks::{Blocks, Cell, PaperRows, Span, TextLine, code, lines, spread};
use crate::charts;
use crate::evidence::{Paper, Trial};
use crate::format::{
    self,
    NumberFormat::{Short, Tenth, Whole},
};
use crate::text::{Lang, Message};
use dyno_facts::{FaultFacts, FaultStep, say};
use dyno_judge::findings::fault::{FaultTrials, half_done, in_doubt, shard_success};
use std::collections::BTreeSet;

pub(super) fn blocks(paper: &Paper, lang: Lang) -> Blocks {
    let mut blocks = Blocks::default();
    let rows = paper.faults();
    blocks.paragraph(say!(in_the_middle_of_each_of));
    blocks.table(configurations(paper, &rows));
    let facts = || rows.iter().flat_map(FaultTrials::facts);
    let most = |of: fn(&FaultFacts) -> f64| facts().map(of).fold(0.0, f64::max);
    let mut words =
        vec![say!(times_are_known_to_an_interval, s = format::tenth(most(|row| row.resolution_s)))];
    if facts().any(|facts| facts.first_success_after_s == Some(0.0)) {
        words.push(say!(first_success_after_0_0_s, s = format::plain(most(|row| row.noticed_s))));
    }
    if facts().any(|facts| facts.shard.is_some()) {
        words.push(say!(shard_outage_counts));
    }
    words.extend(unknown(&rows));
    blocks.fine(Message::sentences(&words));
    blocks.figures(charts::fault::figures(paper, &rows, lang));
    blocks.table(trials(&rows));
    blocks
}

fn has_shards(row: &FaultTrials<'_>) -> bool {
    row.facts().any(|facts| facts.across_shards.is_some())
}

/// What a dash in the table stands for.
fn unknown(rows: &[FaultTrials<'_>]) -> Vec<Message> {
    let any = |is: fn(&FaultFacts) -> bool| rows.iter().flat_map(FaultTrials::facts).any(is);
    let is_untold = any(|facts| facts.lost.is_none());
    let is_cut_off = any(|facts| facts.tps_after.is_none());
    let is_mixed = rows.iter().any(has_shards) && !rows.iter().all(has_shards);
    let words = [
        is_untold.then(|| say!(dash_of_losses)),
        is_cut_off.then(|| say!(dash_of_rate_after)),
        is_mixed.then(|| say!(dash_of_shards)),
    ];
    words.into_iter().flatten().collect()
}

/// What a commit waits for, as the servers say; else as the suite states it.
fn acknowledged_by(paper: &Paper, target: &str) -> Option<Message> {
    let stated = || {
        let target = paper.targets.iter().find(|known| known.label == target)?;
        target.facts.durability.as_ref().map(Message::from)
    };
    let waits_for = paper.nodes_of(target).find_map(|node| node.acknowledged_by.as_ref());
    waits_for.map(|wait| wait.words().clone()).or_else(stated)
}

/// Errors by class, over all trials, the most frequent first.
fn errors(row: &FaultTrials<'_>) -> TextLine {
    let mut classes: Vec<(&str, u64)> = Vec::new();
    for error in row.facts().flat_map(|facts| &facts.errors) {
        match classes.iter_mut().find(|(class, _)| *class == error.class) {
            Some((_, count)) => *count += error.count,
            None => classes.push((&error.class, error.count)),
        }
    }
    classes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let one = |(class, count): (&str, u64)| -> TextLine {
        vec![code(class), Span::plain(format!(" {}", format::whole(count as f64)))]
    };
    lines(classes.into_iter().map(one))
}

/// Of the trials that have such a time, and how many have none.
fn seconds(row: &FaultTrials<'_>, of: fn(&FaultFacts) -> Option<f64>) -> Cell {
    let (all, never) = (row.trials.len(), row.without(of));
    let cell = Cell::from(row.spread(of).map(|times| spread(times, all - never)));
    cell.with_if(never > 0, || {
        let words = say!(never_in_of, n = never.to_string(), all = all.to_string());
        vec![Span::plain(words)]
    })
}

fn configurations<'a>(
    paper: &'a Paper,
    rows: &'a [FaultTrials<'a>],
) -> PaperRows<&'a FaultTrials<'a>> {
    let per_s = |row: &FaultTrials<'_>, of: fn(&FaultFacts) -> Option<f64>| {
        row.spread(of).map(|tps| spread(tps, row.trials.len()))
    };
    let checks = |row: &FaultTrials<'_>| {
        let all: BTreeSet<usize> = row.trials.iter().flat_map(|(t, _)| t.checks.clone()).collect();
        all.into_iter().collect::<Vec<_>>()
    };
    PaperRows::new(say!(configurations_side_by_side), rows)
        .text(say!(experiment), |row| &row.experiment.title)
        .text(say!(target_2), |row| &row.first().target)
        .text(say!(a_commit_waits_for), |row| acknowledged_by(paper, &row.first().target))
        .text(say!(fault), FaultTrials::what)
        .col(say!(trials), Whole, |row| row.trials.len())
        .col(say!(first_success_s), Tenth, |row| seconds(row, |facts| facts.first_success_after_s))
        .class("strong")
        .when(
            rows.iter().flat_map(FaultTrials::facts).any(|facts| facts.shard.is_some()),
            |table| {
                table
                    .col(say!(shard_outage_s), Tenth, |row| {
                        let has_shard = row.facts().any(|facts| facts.shard.is_some());
                        if has_shard { seconds(row, shard_success) } else { Cell::default() }
                    })
                    .class("strong")
            },
        )
        .col(say!(recovered_s), Tenth, |row| seconds(row, |facts| facts.recovered_after_s))
        .class("strong")
        .col(say!(per_s_before), Short, |row| per_s(row, |facts| Some(facts.tps_before)))
        .col(say!(per_s_after), Short, |row| per_s(row, |facts| facts.tps_after))
        .text(say!(errors), errors)
        .col(say!(acknowledged), Whole, |row| row.sum(|facts| facts.acknowledged))
        .col(say!(lost), Whole, |row| row.sum(|facts| facts.lost))
        .class("strong")
        .when(rows.iter().any(has_shards), |table| {
            table.col(say!(half_done), Whole, |row| row.sum(half_done)).class("strong").col(
                say!(in_doubt),
                Whole,
                |row| row.sum(in_doubt),
            )
        })
        .col(say!(unknown_2), Whole, |row| row.sum(|facts| facts.unknown))
        .text(say!(notes), |row| notes(paper, &checks(row)))
}

fn trials<'a>(rows: &[FaultTrials<'a>]) -> PaperRows<(&'a Trial, &'a FaultFacts)> {
    let rows = rows.iter().flat_map(|row| row.trials.iter().copied());
    PaperRows::new(say!(what_happened_trial_by_trial), rows)
        .look("text")
        .text(say!(trial_2), |(trial, _)| &trial.label)
        .text(say!(target_2), |(trial, _)| &trial.target)
        .text(say!(steps_each_with_the_second_at), |(_, facts)| steps(facts))
        .text(say!(how_the_lost_ones_were_looked), |(_, facts)| &facts.evidence)
}

fn steps(facts: &FaultFacts) -> Message {
    let step =
        |step: &FaultStep| say!(fault_step, at = format!("{:.1}", step.at_s), what = &step.what);
    Message::sentences(&facts.steps.iter().map(step).collect::<Vec<_>>())
}
