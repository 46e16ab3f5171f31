//! Scaling, steadiness, errors and gaps.

use crate::blocks::{Blocks, Cell, PaperRows, Span, TextLine, code, lines, strong};
use crate::evidence::{Experiment, Gap, Paper, RunFacts, Trial};
use crate::evidence::{Scaling, SteadyRow};
use crate::families::family_of;
use crate::format::{
    self,
    NumberFormat::{Percent, Right, Short, Whole},
};
use crate::text::Message;
use dyno_facts::{ErrorSummary, Event, EventKind, say};

pub(super) fn blocks(paper: &Paper) -> Blocks {
    let mut blocks = Blocks::default();
    blocks.table(scaling(paper));
    let unsteady: Vec<&SteadyRow> =
        paper.verdicts.steady.iter().filter(|row| row.is_steady == Some(false)).collect();
    let is_judged = paper.verdicts.steady.iter().any(|row| row.is_warmed_up.is_some());
    if unsteady.is_empty() && is_judged {
        blocks.paragraph(say!(every_window_with_at_least_12));
    }
    blocks.table(of_unsteady(unsteady));
    errors(paper, &mut blocks);
    let of = |trial| move |gap| (trial, gap);
    let broken: Vec<(&Trial, &Gap)> =
        paper.trials.iter().flat_map(|trial| trial.gaps.iter().map(of(trial))).collect();
    if broken.is_empty() && !super::trials::of_transactions(paper).is_empty() {
        blocks.paragraph(say!(every_interval_of_every_window_had));
    }
    blocks.table(gaps(broken));
    paper.runs.iter().for_each(|run| events(run, &mut blocks));
    for run in paper.runs.iter().filter(|run| !run.warnings.is_empty()) {
        blocks.fine(say!(
            damaged_or_missing_in,
            run = &run.folder,
            what = Message::sentences(&run.warnings)
        ));
    }
    blocks
}

fn scaling(paper: &Paper) -> PaperRows<&Scaling> {
    let title = say!(throughput_against_concurrency);
    PaperRows::new(title, &paper.verdicts.scaling)
        .text(say!(experiment), |row| &row.title)
        .text(say!(target_2), |row| &row.target)
        .col(say!(workers), Right, |row| {
            let [least, most] = row.workers.map(format::whole);
            format!("{least}{}{most}", format::DASH)
        })
        .text(say!(peak), |row| &row.words)
}

fn of_unsteady(rows: Vec<&SteadyRow>) -> PaperRows<&SteadyRow> {
    PaperRows::new(say!(trials_that_were_not_steady_in), rows)
        .text(say!(trial_2), |row| &row.trial)
        .text(say!(target_2), |row| Cell::from(&row.target).with(&row.experiment))
        .col(say!(median_per_s), Short, |row| row.median_per_s)
        .text(say!(warm_up_2), |row| {
            row.is_warmed_up.map(|is_over| match is_over {
                true => Span::plain(say!(over)),
                false => strong(say!(not_over)),
            })
        })
        .col(say!(last_third_by_first_percent), Percent, |row| row.drift)
        .col(say!(slope_over_the_window_percent), Percent, |row| row.slope)
        .text(say!(changes_of_the_level), |row| {
            lines(row.changes.iter().map(|change| {
                say!(
                    at_s_from_to,
                    at = format::plain(change.at_s),
                    before = format::short(change.before_per_s),
                    after = format::short(change.after_per_s)
                )
            }))
        })
        .text(say!(seconds_below_half_of_the_median), stalls)
}

fn stalls(row: &SteadyRow) -> TextLine {
    const MOST: usize = 6;
    let told = row.stalls.iter().take(MOST).map(|stall| {
        let words = say!(
            to_s_lowest,
            from = format::plain(stall.from_s),
            to = format::plain(stall.to_s),
            lowest = format::short(stall.lowest_per_s)
        );
        let events = super::clauses(&stall.events);
        if events.is_empty() { words } else { say!(what_why, what = words, why = events) }
    });
    let more = row.stalls.len().saturating_sub(MOST);
    let more = (more > 0).then(|| say!(and_n_more, n = more.to_string()));
    lines(told.chain(more))
}

/// A kind of error, and the trials that met it.
struct Met<'a> {
    experiment: &'a Experiment,
    first: &'a ErrorSummary,
    trials: Vec<&'a Trial>,
    count: u64,
}

fn met(paper: &Paper) -> Vec<Met<'_>> {
    let mut all: Vec<Met<'_>> = Vec::new();
    for experiment in &paper.experiments {
        for trial in paper.trials_in(experiment) {
            for error in &trial.summary.errors {
                let kind = |of: &'_ ErrorSummary| (of.class.clone(), of.errno, of.sqlstate.clone());
                let same = |met: &&mut Met<'_>| {
                    std::ptr::eq(met.experiment, experiment)
                        && met.trials[0].target == trial.target
                        && kind(met.first) == kind(error)
                };
                match all.iter_mut().find(same) {
                    Some(met) => {
                        met.count += error.count;
                        met.trials.push(trial);
                    }
                    None => all.push(Met {
                        experiment,
                        first: error,
                        trials: vec![trial],
                        count: error.count,
                    }),
                }
            }
        }
    }
    all
}

pub(super) fn errors(paper: &Paper, blocks: &mut Blocks) {
    let all = met(paper);
    let has_failures =
        |own: &Experiment| family_of(own).is_some_and(|family| family.has_failures(paper, own));
    if all.is_empty() {
        blocks.paragraph(match paper.experiments.iter().any(has_failures) {
            true => say!(queries_that_were_given_up_or),
            false => say!(no_statement_and_no_connect_met),
        });
    }
    blocks.table(
        PaperRows::new(say!(errors_of_attempts_and_connects), &all)
            .look("text")
            .text(say!(experiment), |met| &met.experiment.title)
            .text(say!(target_2), |met| &met.trials[0].target)
            .text(say!(error_class), |met| match met.first.is_own_conflict() {
                true => Span::plain(say!(own_conflict)),
                false => code(&met.first.class),
            })
            .col(say!(number), Right, |met| {
                (met.first.errno > 0).then(|| met.first.errno.to_string())
            })
            .text("SQLSTATE", |met| match met.first.is_own_conflict() {
                true => Span::plain("–"),
                false => code(&met.first.sqlstate),
            })
            .col(say!(count), Whole, |met| met.count)
            .text(say!(first_message), |met| met.first.message.clone())
            .text(say!(in_trials), |met| {
                let labels: Vec<&str> = met.trials.iter().map(|t| t.label.as_str()).collect();
                labels.join(", ")
            }),
    );
}

fn gaps<'a>(rows: Vec<(&'a Trial, &'a Gap)>) -> PaperRows<(&'a Trial, &'a Gap)> {
    PaperRows::new(say!(stretches_of_a_measured_window_without), rows)
        .text(say!(trial_2), |(trial, _)| &trial.label)
        .text(say!(target_2), |(trial, _)| &trial.target)
        .col(say!(from_s), Short, |(_, gap)| gap.from_s)
        .col(say!(to_s), Short, |(_, gap)| gap.to_s)
        .col(say!(length_s), Short, |(_, gap)| gap.to_s - gap.from_s)
        .col(say!(errors_in_it), Whole, |(_, gap)| gap.errors)
        .col(say!(reconnects), Whole, |(_, gap)| gap.reconnects)
}

fn events(run: &RunFacts, blocks: &mut Blocks) {
    const MOST: usize = 100;
    let when = |event: &Event| {
        let trial = event.trial.map(|trial| trial.to_string()).unwrap_or_default();
        match event.at_s {
            Some(at_s) => format!("{trial}, {} s", format::short(at_s)),
            None => trial,
        }
    };
    let kind = |event: &Event| match event.kind {
        EventKind::Server => say!(server),
        EventKind::Note => say!(note),
        other => Message::from(format!("{other:?}").to_lowercase()),
    };
    let title = say!(events_of_run, run = &run.folder);
    blocks.table(
        PaperRows::new(title, run.events.iter().take(MOST))
            .look("text")
            .text(say!(time), |event| &event.at)
            .text(say!(trial_2), when)
            .text(say!(kind), kind)
            .text(say!(what_2), |event| event.text.clone()),
    );
    let more = run.events.len().saturating_sub(MOST);
    if more > 0 {
        let (n, file) = (more.to_string(), "`events.jsonl`");
        blocks.fine(crate::blocks::coded(say!(more_are_in, n = n, file = file)));
    }
}
