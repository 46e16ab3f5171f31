//! B: time.

use super::case::nodes;
use super::{Find, Rule, parts};
use crate::format;
use crate::model::{Finding, Group, Level, Paper, Spot, Trial};
use crate::say;
use crate::text::Text;
use crate::verdict::{LevelChange, StallRow, SteadyRow};
use dyno_measure::{NodeConditions, Purpose};

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
        rule: "Every interval of a window has a commit.",
        meaning: "The server stood still or was away. Without a schedule the percentiles hide most of it: requests that were not sent have no latency.",
        advice: "Look at the events of that time; measure latency with a schedule (a rate), which counts what waited.",
        find: Find::Trial(|trial| {
            let seconds: f64 = trial.gaps.iter().map(|gap| gap.to_s - gap.from_s).sum();
            // An outage that was asked for is told beside its fault.
            let is_told = trial.summary.fault.is_some();
            let seconds = Some(seconds).filter(|seconds| *seconds > 0.0 && !is_told)?;
            Some(say!("{seconds} s without a commit", seconds = format::plain(seconds)))
        }),
    },
    Rule {
        id: "warm-up",
        group: Group::B,
        level: Level::W,
        rule: "First and last third of a window differ by at most 3 %, or show no trend (Theil-Sen slope).",
        meaning: "Warm-up was not over, or the system slows down as it goes: the mean depends on when it was measured.",
        advice: "Warm up for longer, until the throughput stays level, and look for growing data or backlogs.",
        find: Find::Paper(|paper| each_window(paper, warm_up)),
    },
    Rule {
        id: "change-point",
        group: Group::B,
        level: Level::W,
        rule: "The level of throughput does not change for good inside a window.",
        meaning: "Two states of the system were measured as one; the mean describes neither.",
        advice: "Find out what changed at that moment (server events, host, neighbours), and repeat the trial.",
        find: Find::Paper(|paper| each_window(paper, change_points)),
    },
    Rule {
        id: "slow-seconds",
        group: Group::B,
        level: Level::W,
        rule: "No interval of a window has less than half of the median throughput.",
        meaning: "The system stalled now and then; means and medians hide it.",
        advice: "Read the seconds together with the server's events; take latency from a schedule, where stalls show.",
        find: Find::Paper(|paper| each_window(paper, slow_seconds)),
    },
    Rule {
        id: "checkpoint-cycles",
        group: Group::B,
        level: Level::W,
        rule: "A window in which data are written is at least two checkpoint cycles long.",
        meaning: "Writing that the server puts off falls into the window by chance or not at all.",
        advice: "Measure for at least two checkpoint intervals.",
        find: Find::Trial(checkpoint_cycles),
    },
    Rule {
        id: "cut-off",
        group: Group::B,
        level: Level::W,
        rule: "Every trial lasts as long as planned.",
        meaning: "The trial was stopped early; its figures cover a shorter window.",
        advice: "Run the same command again: it goes on with what is missing.",
        find: Find::Trial(|trial| {
            let window = || match &trial.summary.tpch {
                Some(facts) => Text::count(
                    facts.queries.len() as u64,
                    "{n} query executed",
                    "{n} queries executed",
                ),
                None => {
                    say!("{seconds} s measured", seconds = format::plain(trial.summary.window_s))
                }
            };
            matches!(trial.status, "interrupted" | "running").then(window)
        }),
    },
    Rule {
        id: "short-window",
        group: Group::B,
        level: Level::I,
        rule: "A window lasts at least 60 s.",
        meaning: "Checkpoints and other slow cycles of a server may not show in it.",
        advice: "Measure for several minutes, and for longer than two checkpoints where data are written.",
        find: Find::Experiment(|experiment| {
            // The 22 queries take the time that they take.
            let window_s = experiment.shortest_window_s.filter(|_| experiment.tpch.is_none())?;
            let is_short = window_s < LEAST_WINDOW_S;
            is_short.then(|| Text::same(format!("{} s", format::plain(window_s))))
        }),
    },
];

/// One finding for each trial whose window has something to remark. Steps of a search overload a
/// server on purpose, and a fault makes it unsteady.
fn each_window(paper: &Paper, find: fn(&SteadyRow) -> Option<Text>) -> Vec<Finding> {
    let is_disturbed =
        |trial: &&Trial| trial.summary.purpose == Purpose::Search || trial.summary.fault.is_some();
    let searches = paper.trials.iter().filter(is_disturbed);
    let searches: Vec<&str> = searches.map(|trial| trial.label.as_str()).collect();
    let finding =
        |row: &SteadyRow| Some(Finding { place: Spot::trial(&row.trial), value: find(row)? });
    let judged = paper.steady.iter().filter(|row| !searches.contains(&row.trial.as_str()));
    judged.filter_map(finding).collect()
}

fn warm_up(row: &SteadyRow) -> Option<Text> {
    let drift = row.drift.filter(|_| row.is_warmed_up == Some(false))?;
    let drift = format!("{:+.1}", 100.0 * drift);
    Some(say!("{drift} % from the first to the last third", drift = drift))
}

fn change_points(row: &SteadyRow) -> Option<Text> {
    let change = |change: &LevelChange| {
        say!(
            "after {at} s from {before} to {after} per second",
            at = format::plain(change.at_s),
            before = format::short(change.before_per_s),
            after = format::short(change.after_per_s)
        )
    };
    parts(row.changes.iter().map(change).collect())
}

/// The stalls of a trial, each with what the server did at that time.
fn slow_seconds(row: &SteadyRow) -> Option<Text> {
    let mut texts: Vec<Text> = row.stalls.iter().take(MOST_LISTED).map(stall).collect();
    if let Some(more) = row.stalls.len().checked_sub(MOST_LISTED).filter(|more| *more > 0) {
        texts.push(Text::count(more as u64, "{n} more", "{n} more"));
    }
    parts(texts)
}

fn stall(stall: &StallRow) -> Text {
    let told = say!(
        "{from} to {to} s: {lowest} per second",
        from = format::plain(stall.from_s),
        to = format::plain(stall.to_s),
        lowest = format::short(stall.lowest_per_s)
    );
    // That nothing was committed is what a stall is, and no reason for it.
    let reasons = stall.events.iter().filter(|event| **event != "No transaction was committed.");
    let reasons: Vec<Text> = reasons.cloned().collect();
    match reasons.is_empty() {
        true => told,
        false => say!("{stall} – {events}", stall = told, events = Text::sentences(&reasons)),
    }
}

fn checkpoint_cycles(trial: &Trial) -> Option<Text> {
    let summary = &trial.summary;
    let has_seen_two = |node: &NodeConditions| node.checkpoints.is_some_and(|seen| seen >= 2);
    let intervals = nodes(trial).filter(|(_, node)| !has_seen_two(node));
    let interval_s =
        intervals.filter_map(|(_, node)| node.checkpoint_interval_s).reduce(f64::max)?;
    let is_short = summary.window_s < LEAST_CYCLES * interval_s;
    (is_short && summary.statements.writes > 0 && summary.tpch.is_none()).then(|| {
        say!(
            "window of {window} s, a checkpoint every {interval} s",
            window = format::plain(summary.window_s),
            interval = format::plain(interval_s)
        )
    })
}
