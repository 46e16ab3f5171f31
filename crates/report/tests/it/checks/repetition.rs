//! C: repetition.

use super::quiet::{BASELINE, CANDIDATE, one, with_ratios};
use super::{AS_IT_IS, Case, trials};
use dyno_facts::{ComparisonFacts, Purpose, TrialStatus};
use dyno_store::RunData;

const NOISE: [f64; 6] = [0.998, 1.003, 0.999, 1.001, 1.002, 0.997];

/// The comparison of the first experiment, to be changed.
fn comparison(runs: &mut [RunData]) -> &mut ComparisonFacts {
    runs[0].header.experiments[0].comparison.as_mut().expect("a comparison")
}

fn keep_repeats(runs: &mut [RunData], most: u32) {
    runs[0].trials.retain(|trial| trial.summary.repeat <= most);
}

/// Six ratios around this one.
fn times(by: f64) -> [f64; 6] {
    NOISE.map(|noise| noise * by)
}

/// A third target at the baseline's address, which differs from it by turns.
fn with_itself(runs: &mut [RunData], by: f64) {
    with_ratios(runs, times(1.02), [1.0; 6]);
    let run = &mut runs[0];
    let mut again = run.header.targets[0].clone();
    again.name = "again".to_owned();
    run.header.targets.push(again);
    let baseline_trials: Vec<_> =
        run.trials.iter().filter(|trial| trial.summary.target == BASELINE).cloned().collect();
    for (index, mut trial) in baseline_trials.into_iter().enumerate() {
        trial.summary.trial = 13 + index as u32;
        trial.summary.target = "again".to_owned();
        trial.summary.tps *= if index % 2 == 0 { 1.0 - by } else { 1.0 + by };
        run.trials.push(trial);
    }
    comparison(runs).candidates.push("again".to_owned());
}

/// A second load level, whose best point may be run again.
fn sweep(runs: &mut [RunData], is_confirmed: bool) {
    let mut number = 12;
    for (workers, purpose) in [(32, Purpose::Measure), (32, Purpose::Confirm)] {
        if purpose == Purpose::Confirm && !is_confirmed {
            continue;
        }
        for repeat in 1..=4 {
            for target in [BASELINE, CANDIDATE] {
                number += 1;
                let mut trial = one(number, target, repeat, workers);
                trial.summary.purpose = purpose;
                runs[0].trials.push(trial);
            }
        }
    }
}

/// Forty trials in pairs of drawn order; `log` says how a figure differs by its place and whether it is a second one.
fn session(runs: &mut [RunData], log: impl Fn(u32, bool) -> f64) {
    let trials = (1..=20).flat_map(|repeat: u32| {
        let mut order = [BASELINE, CANDIDATE];
        if repeat * repeat % 7 > 2 {
            order.reverse();
        }
        (0..2).map(move |at| (2 * repeat - 1 + at, order[at as usize], repeat))
    });
    let trials = trials.map(|(number, target, repeat)| {
        let mut trial = one(number, target, repeat, 16);
        let noise = f64::from(number * 7919 % 101) / 101.0 - 0.5;
        trial.summary.tps = 1e4 * (0.004 * noise + log(number, number % 2 == 0)).exp();
        trial
    });
    runs[0].trials = trials.collect();
}

pub(super) const CASES: &[Case] = &[
    Case {
        id: "trials-depend",
        evidence: "over 40 trials",
        fires: |runs| session(runs, |number, _| 0.01 * (f64::from(number) / 3.0).sin()),
        silent: |runs| session(runs, |_, _| 0.0),
    },
    Case {
        id: "session-drifts",
        evidence: "+4.",
        fires: |runs| session(runs, |number, _| 0.04 * f64::from(number) / 40.0),
        silent: |runs| session(runs, |number, _| 0.005 * f64::from(number) / 40.0),
    },
    Case {
        id: "second-of-pair",
        evidence: "-2.",
        fires: |runs| session(runs, |_, is_second| if is_second { -0.02 } else { 0.0 }),
        silent: |runs| session(runs, |_, is_second| if is_second { -0.005 } else { 0.0 }),
    },
    Case {
        id: "aa-differs",
        evidence: "comparison read_only workers=16: new / old: ",
        fires: |runs| comparison(runs).is_aa = true,
        silent: |runs| {
            comparison(runs).is_aa = true;
            with_ratios(runs, NOISE, [1.0; 6]);
        },
    },
    Case {
        id: "few-pairs",
        evidence: "5 of 6 pairs",
        fires: |runs| keep_repeats(runs, 5),
        silent: AS_IT_IS,
    },
    Case {
        id: "pairs-missing",
        evidence: "1 pair without both trials",
        fires: |runs| {
            runs[0].trials[3].summary.status = TrialStatus::Failed("It has failed.".into());
        },
        // A pair that is not begun is none.
        silent: |runs| runs[0].trials.truncate(10),
    },
    Case {
        id: "block-order",
        evidence: "one after the other",
        fires: |runs| {
            trials(runs, |trial| {
                let block = if trial.target == BASELINE { 0 } else { 6 };
                trial.trial = block + trial.repeat;
            });
            runs[0].trials.sort_by_key(|trial| trial.summary.trial);
        },
        silent: AS_IT_IS,
    },
    Case {
        id: "noise-floor",
        evidence: "the same system differs by",
        fires: |runs| with_itself(runs, 0.03),
        silent: |runs| with_itself(runs, 0.005),
    },
    Case {
        id: "variation",
        evidence: "6 of 12 trials: new: ",
        fires: |runs| with_ratios(runs, [0.9, 1.1, 0.9, 1.1, 0.9, 1.1], [1.0; 6]),
        silent: |runs| with_ratios(runs, [0.98, 1.02, 0.98, 1.02, 0.98, 1.02], [1.0; 6]),
    },
    Case {
        id: "peak-not-rerun",
        evidence: "experiment read_only: old and new",
        fires: |runs| sweep(runs, false),
        silent: |runs| sweep(runs, true),
    },
    Case {
        id: "half-width",
        evidence: "instead of 0.1%",
        fires: |runs| {
            with_ratios(runs, NOISE, [1.0; 6]);
            comparison(runs).stop.half_width = Some(0.001);
        },
        silent: |runs| comparison(runs).stop.half_width = Some(0.2),
    },
    Case {
        id: "many-metrics",
        evidence: "new / old: ",
        // Latency comes after a throughput that does not differ.
        fires: |runs| with_ratios(runs, NOISE, times(1.1)),
        silent: |runs| with_ratios(runs, times(1.1), [0.999, 1.001, 1.0, 1.001, 0.999, 1.0]),
    },
    Case {
        id: "few-repeats",
        evidence: "5 trials per point",
        fires: |runs| keep_repeats(runs, 5),
        silent: AS_IT_IS,
    },
];
