//! Every trial: accounting, checks of the data, charts over time.

use super::summary::no_trial;
use super::{ended, notes, verdict_of};
use crate::blocks::{Blocks, Look, PaperRows, Span, TextLine, bad, coded};
use crate::charts;
use crate::evidence::why_set_aside;
use crate::evidence::{Paper, Trial};
use crate::families::families;
use crate::format::NumberFormat::{Right, Tenth, Whole};
use crate::text::{Lang, Message};
use dyno_facts::say;
use dyno_facts::{DataCheck, TrialStatus};

pub(super) fn blocks(paper: &Paper, lang: Lang) -> Blocks {
    let mut blocks = Blocks::default();
    if paper.trials.is_empty() {
        blocks.paragraph(no_trial(paper));
        return blocks;
    }
    families().filter_map(|family| family.trials(paper)).for_each(|own| blocks.table(own));
    let of_transactions = of_transactions(paper);
    if !of_transactions.is_empty() {
        blocks.table(accounting(paper, of_transactions));
        blocks.fine(say!(wasted_statements_belong_to_attempts_that));
    }
    blocks.table(set_aside(paper));
    blocks.table(stages(paper));
    blocks.table(checks(paper));
    let (drawn, not_drawn) = charts::of_trials(paper, lang);
    if !drawn.is_empty() {
        blocks.heading(4, "", say!(over_time), "");
        blocks.fine(shades(say!(warm_up)));
        if not_drawn > 0 {
            let (n, file) = (not_drawn.to_string(), "`trials/`");
            blocks.fine(coded(say!(more_trials_are_not_drawn_their, n = n, file = file)));
        }
        blocks.grid(drawn);
    }
    for trial in paper.trials.iter().filter(|trial| !trial.summary.notes.is_empty()) {
        let told: Vec<Message> = trial.summary.notes.to_vec();
        blocks.fine(say!(
            trial_trial_notes,
            trial = &trial.label,
            notes = Message::sentences(&told)
        ));
    }
    blocks
}

/// What a terminal shows of them.
pub(super) fn terminal(paper: &Paper, blocks: &mut Blocks) {
    families().filter_map(|family| family.trials(paper)).for_each(|own| blocks.table(own));
    blocks.table(accounting(paper, of_transactions(paper)));
    for trial in &paper.trials {
        if let TrialStatus::Failed(why) = &trial.summary.status {
            blocks.paragraph(say!(trial_trial_notes, trial = &trial.label, notes = why));
        }
    }
    blocks.table(set_aside(paper));
    blocks.table(stages(paper));
    blocks.table(checks(paper));
}

/// Trials that count for nothing, in grey.
fn set_aside(paper: &Paper) -> PaperRows<&Trial> {
    ended_trials(say!(trials_made_again), &paper.set_aside)
        .look("text")
        .text(say!(why_again), |t| why_set_aside(&t.summary))
        .each(|t, row| {
            row.anchor = format!("trial-{}", t.label);
            row.class = "grey";
        })
}

/// The parts of long trials, with the seams between them.
fn stages(paper: &Paper) -> PaperRows<&Trial> {
    let seam = |stage: &Trial| {
        let own = paper.trials.iter().filter(|trial| trial.run == stage.run);
        let mut seams = own.flat_map(|trial| &trial.summary.stages);
        seams.find(|seam| seam.trial == stage.summary.trial)
    };
    let number = |stage: &Trial| {
        let stage = stage.summary.stage.unwrap_or_default();
        say!(stage_of, number = stage.number.to_string(), of = stage.of.to_string())
    };
    let why = |stage: &Trial| match &stage.summary.status {
        TrialStatus::Failed(why) => Some(why.clone()),
        _ => None,
    };
    ended_trials(say!(stages_of_trials), &paper.stages)
        .text(say!(stage), number)
        .col(say!(window_from_s), Tenth, |stage| seam(stage).map(|seam| seam.from_s))
        .col(say!(gap_before_s), Tenth, |stage| seam(stage).and_then(|seam| seam.gap_s))
        .col(say!(window_s), Tenth, |stage| stage.summary.window_s)
        .col(say!(committed_2), Whole, |stage| stage.summary.counts.committed)
        .text(say!(notes), why)
        .each(|stage, row| {
            row.anchor = format!("trial-{}", stage.label);
            row.class = if stage.status == "stage" { "" } else { "grey" };
        })
}

/// Queries are no transactions: what they did stands in a table of their own.
pub(super) fn of_transactions(paper: &Paper) -> Vec<&Trial> {
    paper.trials.iter().filter(|trial| !trial.summary.is_pass()).collect()
}

/// What the shades of charts over time mean.
pub fn shades(warm: Message) -> TextLine {
    let mut line = vec![Span::plain(say!(zero_is_the_opening_of_the))];
    let shades = [
        ("warm", warm),
        ("error", say!(intervals_with_errors_or_reconnects)),
        ("gap", say!(no_commit)),
    ];
    for (name, meaning) in shades {
        line.extend([Span::plain(" "), Span::of("", Look::Swatch(name)), Span::plain(" ")]);
        line.push(Span::plain(meaning));
    }
    line
}

/// The experiment and the target of a trial.
pub fn place(trial: &Trial) -> String {
    format!("{}, {}", trial.summary.experiment, trial.target)
}

/// A table of trials that begins with which they are, and how they ended.
fn ended_trials<'a>(
    title: Message,
    trials: impl IntoIterator<Item = &'a Trial>,
) -> PaperRows<&'a Trial> {
    PaperRows::new(title, trials)
        .text(say!(trial_2), |t| &t.label)
        .text(say!(experiment_target), place)
        .col(say!(workers), Whole, |t| t.summary.workers)
        .col(say!(repeat), Whole, |t| t.summary.repeat)
        .col(say!(began), Right, |t| t.summary.started_at.get(11..19).unwrap_or_default())
        .class("keep")
        .text(say!(ended), |t| ended(t.status))
}

fn accounting<'a>(paper: &'a Paper, trials: Vec<&'a Trial>) -> PaperRows<&'a Trial> {
    let title = say!(accounting_started_committed_rolled_back_failed);
    ended_trials(title, trials)
        .col(say!(started), Whole, |t| t.summary.counts.started)
        .col(say!(committed_2), Whole, |t| t.summary.counts.committed)
        .col(say!(rolled_back_2), Whole, |t| t.summary.counts.rolled_back)
        .col(say!(failed_3), Whole, |t| t.summary.counts.failed)
        .col(say!(skipped), Whole, |t| t.summary.counts.skipped)
        .col(say!(in_flight), Whole, |t| t.summary.in_flight)
        .text(say!(adds_up), |t| match t.adds_up {
            true => Span::plain(say!(yes)),
            false => bad(say!(no_3)),
        })
        .col(say!(wasted_statements), Whole, |t| t.summary.wasted.total())
        .text(say!(notes), |t| notes(paper, &t.checks))
        .each(|t, row| row.anchor = format!("trial-{}", t.label))
}

fn checks(paper: &Paper) -> PaperRows<(&Trial, &DataCheck)> {
    let of = |trial| move |check| (trial, check);
    let rows = paper.trials.iter().flat_map(|t| t.summary.checks.iter().map(of(t)));
    PaperRows::new(say!(checks_of_the_data_after_each), rows)
        .look("text")
        .text(say!(trial_2), |(trial, _)| &trial.label)
        .text(say!(experiment_target), |(trial, _)| place(trial))
        .text(say!(check_2), |(_, check)| check.name.clone())
        .text(say!(verdict), |(_, check)| verdict_of(check.verdict))
        .text(say!(evidence_2), |(_, check)| check.evidence.clone())
}
