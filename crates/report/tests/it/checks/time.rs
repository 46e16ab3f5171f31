//! B: time.

use super::{AS_IT_IS, Case, nodes, trials};
use dyno_facts::{Event, EventKind, SeriesRow, TrialStatus};
use dyno_store::RunData;

/// Multiplies the commits of the first trial's seconds.
fn seconds(runs: &mut [RunData], factor: impl Fn(f64) -> f64) {
    let rows = runs[0].trials[0].series.iter_mut();
    for row in rows.filter(|row: &&mut SeriesRow| row.phase == "measured") {
        row.committed = (row.committed as f64 * factor(row.begins_s)) as u64;
        row.tps = row.committed as f64;
    }
}

/// All trials write, without a checkpoint, which the servers make this often.
fn writes(runs: &mut [RunData], checkpoint_interval_s: f64) {
    trials(runs, |trial| {
        trial.statements.reads = trial.counts.committed * 10;
        trial.statements.writes = trial.counts.committed * 4;
    });
    nodes(runs, |node| {
        node.checkpoint_interval_s = Some(checkpoint_interval_s);
        node.checkpoints = Some(0);
    });
}

/// Taken up again at this time; its first trial began before the 22nd, the others then.
fn resumed(run: &mut RunData, at: &str) {
    for (index, trial) in run.trials.iter_mut().enumerate() {
        let day = if index == 0 { 21 } else { 22 };
        trial.summary.started_at = format!("2026-11-{day}T01:00:00Z");
    }
    run.header.resumed_at = vec![at.to_owned()];
}

pub(super) const CASES: &[Case] = &[
    Case {
        id: "gaps",
        evidence: "trial 1: 3 s without a commit",
        fires: |runs| seconds(runs, |at_s| if (20.0..23.0).contains(&at_s) { 0.0 } else { 1.0 }),
        silent: |runs| seconds(runs, |at_s| if (20.0..23.0).contains(&at_s) { 0.01 } else { 1.0 }),
    },
    Case {
        id: "warm-up",
        evidence: "% from the first to the last third",
        fires: |runs| seconds(runs, |at_s| 1.0 + at_s / 300.0),
        silent: |runs| seconds(runs, |at_s| 1.0 + at_s / 6_000.0),
    },
    Case {
        id: "change-point",
        evidence: "trial 1: after 30 s from",
        fires: |runs| seconds(runs, |at_s| if at_s < 30.0 { 1.0 } else { 1.2 }),
        silent: |runs| seconds(runs, |at_s| if at_s < 30.0 { 1.0 } else { 1.01 }),
    },
    Case {
        id: "slow-seconds",
        evidence: "per second – checkpoint ended",
        fires: |runs| {
            seconds(runs, |at_s| if (20.0..23.0).contains(&at_s) { 0.4 } else { 1.0 });
            runs[0].events.push(Event {
                trial: Some(1),
                at_s: Some(21.0),
                ..Event::new(EventKind::Server, "checkpoint ended")
            });
        },
        silent: |runs| seconds(runs, |at_s| if (20.0..23.0).contains(&at_s) { 0.6 } else { 1.0 }),
    },
    Case {
        id: "steadiness-unknown",
        evidence: "fewer than 12 intervals",
        fires: |runs| runs[0].trials.iter_mut().for_each(|trial| trial.series.truncate(5 + 11)),
        silent: |runs| runs[0].trials.iter_mut().for_each(|trial| trial.series.truncate(5 + 12)),
    },
    Case {
        id: "checkpoint-cycles",
        evidence: "window of 60 s, a checkpoint every 31 s",
        fires: |runs| writes(runs, 31.0),
        silent: |runs| writes(runs, 30.0),
    },
    Case {
        id: "cut-off",
        evidence: "trial 3: 60 s measured",
        fires: |runs| runs[0].trials[2].summary.status = TrialStatus::Interrupted,
        silent: AS_IT_IS,
    },
    Case {
        id: "resumed-run",
        evidence: "2 sessions: resumed between trials 1 and 2 at 2026-11-22T00:00:00Z",
        fires: |runs| resumed(&mut runs[0], "2026-11-22T00:00:00Z"),
        // Before its first trial there was nothing to interrupt.
        silent: |runs| resumed(&mut runs[0], "2026-11-20T00:00:00Z"),
    },
    Case {
        id: "short-window",
        evidence: "experiment read_only: 59 s",
        fires: |runs| runs[0].trials[2].summary.window_s = 59.0,
        silent: AS_IT_IS,
    },
];

#[test]
fn a_window_that_ends_at_once_has_no_gap() {
    let mut runs = super::quiet();
    let series = &mut runs[0].trials[0].series;
    series.retain(|row| row.phase == "measured" && row.begins_s == 0.0);
    (series[0].committed, series[0].length_s) = (0, 0.000_945);
    let paper = dyno_report::Paper::new(&runs, &[]);
    assert!(super::check(&paper, "gaps").lines.is_empty());
}
