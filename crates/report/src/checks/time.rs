//! B: time.

use super::{Find, Rule};
use crate::format;
use crate::model::{Group, Level};
use crate::say;
use crate::text::Text;

/// Shorter windows see few checkpoints and other slow cycles, seconds.
const LEAST_WINDOW_S: f64 = 60.0;

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
            let seconds = Some(seconds).filter(|seconds| *seconds > 0.0)?;
            Some(say!("{seconds} s without a commit", seconds = format::plain(seconds)))
        }),
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
