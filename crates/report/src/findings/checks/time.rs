//! B: time.

use super::case::nodes;
use super::{Find, Rule, parts};
use crate::evidence::{Finding, Group, Level, Paper, Spot, Trial};
use crate::findings::verdict::{LevelChange, StallRow, SteadyRow};
use crate::format;
use crate::messages;
use crate::text::Message;
use dyno_facts::{NodeConditions, Purpose, say};

/// Shorter windows see few checkpoints and other slow cycles, seconds.
const LEAST_WINDOW_S: f64 = 60.0;
/// A window covers at least so many checkpoint cycles (catalogue of checks).
const LEAST_CYCLES: f64 = 2.0;
/// More are counted, not listed.
const MOST_LISTED: usize = 6;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "gaps",
        group: Group::B,
        level: Level::W,
        rule: messages::gaps_rule,
        meaning: messages::gaps_meaning,
        advice: messages::gaps_advice,
        find: Find::Trial(|trial| {
            let seconds: f64 = trial.gaps.iter().map(|gap| gap.to_s - gap.from_s).sum();
            // An outage that was asked for is told beside its fault.
            let is_told = trial.summary.fault.is_some();
            let seconds = Some(seconds).filter(|seconds| *seconds > 0.0 && !is_told)?;
            Some(say!(s_without_a_commit, seconds = format::plain(seconds)))
        }),
    },
    Rule {
        id: "warm-up",
        group: Group::B,
        level: Level::W,
        rule: messages::warm_up_rule,
        meaning: messages::warm_up_meaning,
        advice: messages::warm_up_advice,
        find: Find::Paper(|paper| each_window(paper, warm_up)),
    },
    Rule {
        id: "change-point",
        group: Group::B,
        level: Level::W,
        rule: messages::change_point_rule,
        meaning: messages::change_point_meaning,
        advice: messages::change_point_advice,
        find: Find::Paper(|paper| each_window(paper, change_points)),
    },
    Rule {
        id: "slow-seconds",
        group: Group::B,
        level: Level::W,
        rule: messages::slow_seconds_rule,
        meaning: messages::slow_seconds_meaning,
        advice: messages::slow_seconds_advice,
        find: Find::Paper(|paper| each_window(paper, slow_seconds)),
    },
    Rule {
        id: "checkpoint-cycles",
        group: Group::B,
        level: Level::W,
        rule: messages::checkpoint_cycles_rule,
        meaning: messages::checkpoint_cycles_meaning,
        advice: messages::checkpoint_cycles_advice,
        find: Find::Trial(checkpoint_cycles),
    },
    Rule {
        id: "cut-off",
        group: Group::B,
        level: Level::W,
        rule: messages::cut_off_rule,
        meaning: messages::cut_off_meaning,
        advice: messages::cut_off_advice,
        find: Find::Trial(|trial| {
            let window = || match &trial.summary.tpch {
                Some(facts) => say!(n_queries_executed, n = facts.queries.len()),
                None => {
                    say!(seconds_s_measured, seconds = format::plain(trial.summary.window_s))
                }
            };
            matches!(trial.status, "interrupted" | "running").then(window)
        }),
    },
    Rule {
        id: "short-window",
        group: Group::B,
        level: Level::I,
        rule: messages::short_window_rule,
        meaning: messages::short_window_meaning,
        advice: messages::short_window_advice,
        find: Find::Experiment(|experiment| {
            // The 22 queries take the time that they take.
            let window_s = experiment.shortest_window_s.filter(|_| experiment.tpch.is_none())?;
            let is_short = window_s < LEAST_WINDOW_S;
            is_short.then(|| Message::verbatim(format!("{} s", format::plain(window_s))))
        }),
    },
];

/// One finding for each trial whose window has something to remark. Steps of a search overload a
/// server on purpose, and a fault makes it unsteady.
fn each_window(paper: &Paper, find: fn(&SteadyRow) -> Option<Message>) -> Vec<Finding> {
    let is_disturbed =
        |trial: &&Trial| trial.summary.purpose == Purpose::Search || trial.summary.fault.is_some();
    let searches = paper.trials.iter().filter(is_disturbed);
    let searches: Vec<&str> = searches.map(|trial| trial.label.as_str()).collect();
    let finding =
        |row: &SteadyRow| Some(Finding { place: Spot::trial(&row.trial), value: find(row)? });
    let judged = paper.steady.iter().filter(|row| !searches.contains(&row.trial.as_str()));
    judged.filter_map(finding).collect()
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
    parts(row.changes.iter().map(change).collect())
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
    let intervals = nodes(trial).filter(|(_, node)| !has_seen_two(node));
    let interval_s =
        intervals.filter_map(|(_, node)| node.checkpoint_interval_s).reduce(f64::max)?;
    let is_short = summary.window_s < LEAST_CYCLES * interval_s;
    (is_short && summary.statements.writes > 0 && summary.tpch.is_none()).then(|| {
        say!(
            window_of_s_a_checkpoint_every,
            window = format::plain(summary.window_s),
            interval = format::plain(interval_s)
        )
    })
}
