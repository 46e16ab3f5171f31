//! Failover and durability: what was done to nodes, and what followed.

use super::notes;
use crate::blocks::{Blocks, Cell, Line, Rows, Span, code, lines, spread};
use crate::charts;
use crate::evidence::{FaultSummary, FaultTrial};
use crate::evidence::{Paper, Spread};
use crate::format::{
    self,
    Format::{Short, Tenth, Whole},
};
use crate::text::{Lang, Message};
use dyno_facts::{FaultFacts, FaultStep, say};

pub(super) fn blocks(paper: &Paper, lang: Lang) -> Blocks {
    let mut blocks = Blocks::default();
    blocks.paragraph(say!(in_the_middle_of_each_of));
    blocks.table(configurations(paper));
    let most = |of: fn(&FaultSummary) -> f64| paper.faults.iter().map(of).fold(0.0, f64::max);
    let mut words =
        vec![say!(times_are_known_to_an_interval, s = format::tenth(most(|row| row.resolution_s)))];
    let is_at_once = |row: &FaultSummary| row.first_success_s.is_some_and(|s| s.min == 0.0);
    if paper.faults.iter().any(is_at_once) {
        words.push(say!(first_success_after_0_0_s, s = format::plain(most(|row| row.noticed_s))));
    }
    blocks.fine(Message::sentences(&words));
    blocks.figures(charts::fault::figures(paper, lang).into_iter().flatten());
    blocks.table(trials(paper));
    blocks
}

fn configurations(paper: &Paper) -> Rows<&FaultSummary> {
    let seconds = |times: Option<Spread>, row: &FaultSummary, never: usize| {
        let all = row.trials.len();
        let cell = Cell::from(times.map(|times| spread(times, all - never)));
        cell.with_if(never > 0, || {
            let words = say!(never_in_of, n = never.to_string(), all = all.to_string());
            vec![Span::plain(words)]
        })
    };
    let errors = |row: &FaultSummary| {
        let one = |(class, count): &(String, u64)| -> Line {
            vec![code(class), Span::plain(format!(" {}", format::whole(*count as f64)))]
        };
        lines(row.errors.iter().map(one))
    };
    Rows::new(say!(configurations_side_by_side), &paper.faults)
        .text(say!(experiment), |row| &row.experiment)
        .text(say!(target_2), |row| &row.target)
        .text(say!(a_commit_waits_for), |row| row.acknowledged_by.clone())
        .text(say!(fault), |row| &row.what)
        .col(say!(trials), Whole, |row| row.trials.len())
        .col(say!(first_success_s), Tenth, |row| {
            seconds(row.first_success_s, row, row.without_success)
        })
        .class("strong")
        .col(say!(recovered_s), Tenth, |row| seconds(row.recovered_s, row, row.not_recovered))
        .class("strong")
        .col(say!(per_s_before), Short, |row| spread(row.tps_before, row.trials.len()))
        .col(say!(per_s_after), Short, |row| row.tps_after.map(|tps| spread(tps, row.trials.len())))
        .text(say!(errors), errors)
        .col(say!(acknowledged), Whole, |row| row.acknowledged)
        .col(say!(lost), Whole, |row| row.lost)
        .class("strong")
        .col(say!(unknown_2), Whole, |row| row.unknown)
        .text(say!(notes), |row| notes(paper, &row.checks))
}

fn trials(paper: &Paper) -> Rows<(&FaultSummary, &FaultTrial)> {
    let of = |row| move |trial| (row, trial);
    let rows = paper.faults.iter().flat_map(|row| row.trials.iter().map(of(row)));
    Rows::new(say!(what_happened_trial_by_trial), rows)
        .look("text")
        .text(say!(trial_2), |(_, one)| &one.trial)
        .text(say!(target_2), |(row, _)| &row.target)
        .text(say!(steps_each_with_the_second_at), |(_, one)| steps(&one.facts))
        .text(say!(how_the_lost_ones_were_looked), |(_, one)| &one.facts.evidence)
}

fn steps(facts: &FaultFacts) -> Message {
    let step =
        |step: &FaultStep| say!(fault_step, at = format!("{:.1}", step.at_s), what = &step.what);
    Message::sentences(&facts.steps.iter().map(step).collect::<Vec<_>>())
}
