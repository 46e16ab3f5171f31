//! B: time.

use super::{Case, Rule, parts};
use crate::evidence::{
    Finding, Group, Level, LevelChange, RunFacts, Spot, StallRow, SteadyRow, Trial, nodes_of,
};
use crate::families::KnownFamily;
use crate::format;
use crate::messages::checks;
use crate::text::Message;
use dyno_facts::{NodeConditions, Purpose, TrialStatus, say};
use dyno_store::{RunData, TrialData};

/// Shorter windows see few checkpoints and other slow cycles, seconds.
const LEAST_WINDOW_S: f64 = 60.0;
/// A window covers at least so many checkpoint cycles (catalogue of checks).
const LEAST_CYCLES: f64 = 2.0;
/// More are counted, not listed.
const MOST_LISTED: usize = 6;

pub(super) const RULES: &[Rule] = &[
    Rule::trial(Group::B, Level::W, checks::gaps, |trial| {
        let seconds: f64 = trial.gaps.iter().map(|gap| gap.to_s - gap.from_s).sum();
        // An outage that was asked for is told beside its fault.
        let is_told = trial.summary.fault.is_some();
        let seconds = Some(seconds).filter(|seconds| *seconds > 0.0 && !is_told)?;
        Some(say!(s_without_a_commit, seconds = format::plain(seconds)))
    }),
    Rule::window(Group::B, Level::W, checks::warm_up, warm_up),
    Rule::window(Group::B, Level::W, checks::change_point, change_points),
    Rule::window(Group::B, Level::W, checks::slow_seconds, slow_seconds),
    Rule::window(Group::B, Level::I, checks::steadiness_unknown, |row| {
        row.is_steady.is_none().then(|| say!(too_few_intervals))
    }),
    Rule::trial(Group::B, Level::W, checks::checkpoint_cycles, checkpoint_cycles),
    Rule::trial(Group::B, Level::W, checks::cut_off, |trial| {
        let summary = &trial.summary;
        let own = || KnownFamily::of(summary).and_then(|family| family.progress(summary));
        let window = || say!(seconds_s_measured, seconds = format::plain(summary.window_s));
        trial.is_cut_off().then(|| own().unwrap_or_else(window))
    }),
    Rule::case(Group::B, Level::W, checks::resumed_run, resumed),
    Rule::experiment(Group::B, Level::I, checks::short_window, |experiment| {
        // The statements of a pass take the time that they take.
        let window_s = experiment.shortest_window_s.filter(|_| !experiment.is_pass())?;
        let is_short = window_s < LEAST_WINDOW_S;
        is_short.then(|| Message::verbatim(format!("{} s", format::plain(window_s))))
    }),
];

/// Where runs were taken up again, whether they had been interrupted or had ended with failed trials. What was there
/// before the first trial lies between no trials.
fn resumed(case: &Case<'_>) -> Vec<Finding> {
    let of_run = |(run, facts): (&RunData, &RunFacts)| {
        let between = |resumed: &String| {
            // Times are whole seconds: what was cut off in the second of the resumption was cut off by the interruption.
            let began = |trial: &&TrialData| {
                let is_cut = trial.summary.status == TrialStatus::Interrupted;
                trial.summary.started_at < *resumed
                    || (is_cut && trial.summary.started_at == *resumed)
            };
            let numbers = |is_before: bool| {
                let own = run.trials.iter().filter(move |trial| began(trial) == is_before);
                // The sum of stages began with the first of them.
                let own = own.filter(|trial| trial.summary.stages.is_empty());
                own.map(|trial| trial.summary.trial)
            };
            let (before, after) = (numbers(true).max()?, numbers(false).min()?);
            Some(say!(resumed_between, before = before, after = after, resumed = resumed))
        };
        let all: Vec<Message> = run.header.resumed_at.iter().filter_map(between).collect();
        let n = all.len() + 1;
        let value = parts(all).map(|all| say!(run_of_sessions, n = n, resumed = all))?;
        Some(Finding::new(Spot::run(&facts.folder), value))
    };
    case.runs.iter().zip(&case.evidence.runs).filter_map(of_run).collect()
}

/// Windows without a reason to be unsteady: steps of a search overload a server on purpose, and a fault disturbs.
pub(super) fn judged<'a>(case: &Case<'a>) -> impl Iterator<Item = &'a SteadyRow> {
    let is_disturbed =
        |trial: &&Trial| trial.summary.purpose == Purpose::Search || trial.summary.fault.is_some();
    let disturbed: Vec<&String> =
        case.evidence.trials.iter().filter(is_disturbed).map(|trial| &trial.label).collect();
    case.verdicts.steady.iter().filter(move |row| !disturbed.contains(&&row.trial))
}

fn warm_up(row: &SteadyRow) -> Option<Message> {
    let drift = row.drift.filter(|_| row.is_warmed_up == Some(false))?;
    let drift = format!("{:+.1}", 100.0 * drift);
    Some(say!(percent_from_the_first_to_the, drift = drift))
}

fn change_points(row: &SteadyRow) -> Option<Message> {
    let change = |change: &LevelChange| {
        say!(
            after_s_from_to_per_second,
            at = format::plain(change.at_s),
            before = format::short(change.before_per_s),
            after = format::short(change.after_per_s)
        )
    };
    parts(row.changes.iter().map(change))
}

/// The stalls of a trial, each with what the server did at that time.
fn slow_seconds(row: &SteadyRow) -> Option<Message> {
    let mut texts: Vec<Message> = row.stalls.iter().take(MOST_LISTED).map(stall).collect();
    if let Some(more) = row.stalls.len().checked_sub(MOST_LISTED).filter(|more| *more > 0) {
        texts.push(say!(n_more, n = more));
    }
    parts(texts)
}

fn stall(stall: &StallRow) -> Message {
    let told = say!(
        to_s_per_second,
        from = format::plain(stall.from_s),
        to = format::plain(stall.to_s),
        lowest = format::short(stall.lowest_per_s)
    );
    // That nothing was committed is what a stall is, and no reason for it.
    let reasons = stall.events.iter().filter(|event| **event != "No transaction was committed.");
    let reasons: Vec<Message> = reasons.cloned().collect();
    match reasons.is_empty() {
        true => told,
        false => say!(stall_events, stall = told, events = Message::sentences(&reasons)),
    }
}

fn checkpoint_cycles(trial: &Trial) -> Option<Message> {
    let summary = &trial.summary;
    let has_seen_two = |node: &NodeConditions| node.checkpoints.is_some_and(|seen| seen >= 2);
    let intervals = nodes_of(trial).filter(|(_, node)| !has_seen_two(node));
    let interval_s =
        intervals.filter_map(|(_, node)| node.checkpoint_interval_s).reduce(f64::max)?;
    let is_short = summary.window_s < LEAST_CYCLES * interval_s;
    (is_short && summary.statements.writes > 0 && !summary.is_pass()).then(|| {
        say!(
            window_of_s_a_checkpoint_every,
            window = format::plain(summary.window_s),
            interval = format::plain(interval_s)
        )
    })
}
