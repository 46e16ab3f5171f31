//! The highest rate that is held under an objective: a search that asks for one trial at a time.
//!
//! The next step follows from the trials so far, so an interrupted search continues from its last trial. A trial may
//! fail for unrelated reasons, so a rate has failed only when failures lead by two: the boundary is repeated. The
//! result is an interval, from the highest rate that was held again and again to the lowest that failed.

use crate::statistics::Metric;
use crate::statistics::gate::Objective;

/// The share of its rate that a trial must reach.
pub const HELD_SHARE: f64 = 0.99;
/// Part of every objective: at most so large a share of what is offered fails.
pub const MOST_FAILED: f64 = 0.001;
/// More trials mean that the system answers differently each time.
pub const MOST_TRIALS: usize = 60;
/// The search gives up below this part of its first rate.
const LEAST_PART: f64 = 1.0 / 1024.0;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Search {
    /// The first rate, transactions per second; above zero.
    pub start_per_s: f64,
    pub most_per_s: Option<f64>,
    /// Largest share by which the lowest rate not held may exceed the highest held at the end.
    pub precision: f64,
    /// Trials that must hold the found rate again.
    pub confirmations: u32,
}

impl Search {
    /// From this rate, to 5%, with three confirmations.
    pub fn from(start_per_s: f64) -> Search {
        Search { start_per_s, most_per_s: None, precision: 0.05, confirmations: 3 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TestedRate {
    pub rate_per_s: f64,
    pub is_confirmation: bool,
    pub is_held: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KneeStep {
    Search {
        rate_per_s: f64,
    },
    /// `repeat`: number of the confirmation of this rate, from 1.
    Confirm {
        rate_per_s: f64,
        repeat: u32,
    },
    Done(KneeOutcome),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KneeOutcome {
    /// The highest rate that was held and confirmed, and the lowest that failed; `None` if no higher rate was
    /// allowed, so that the system may hold more.
    Held { rate_per_s: f64, failed_per_s: Option<f64> },
    /// Not even a small part of the first rate was held.
    NoneHeld { lowest_per_s: f64 },
    /// Held rates were not held again, [`MOST_TRIALS`] times.
    Unsteady,
}

/// Returns true if a trial held its rate. `done` counts what was committed, rolled back on purpose, skipped as its
/// profile allows or still under way: what failed has held nothing, and is limited unless the objective is about errors
/// itself.
pub fn is_held(offered: f64, done: f64, failed: f64, objective: &Objective, is_met: bool) -> bool {
    let has_few_errors = objective.metric == Metric::Errors || failed <= MOST_FAILED * offered;
    is_met && has_few_errors && done >= HELD_SHARE * offered
}

/// Returns true if a rate has failed after all trials of its search.
pub fn has_failed(tested_rates: &[TestedRate], rate_per_s: f64) -> bool {
    standing(tested_rates, rate_per_s) == Standing::Failed
}

/// A rate has failed if its failures lead by this many. One trial of twenty that fails for unrelated reasons then ends
/// a rate that is held in 0.3% of searches; "best of three" in 0.5%.
const FAILED_LEAD: u32 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Held,
    Failed,
    /// Is tried again.
    Open,
}

/// Judges a rate by its trials, those of the search and confirmations.
fn standing(tested_rates: &[TestedRate], rate_per_s: f64) -> Standing {
    let [[failed, held], [not_confirmed, _]] = counts(tested_rates, rate_per_s);
    if not_confirmed >= FAILED_LEAD || failed >= held + FAILED_LEAD {
        Standing::Failed
    } else if held > failed {
        Standing::Held
    } else {
        Standing::Open
    }
}

/// Trials of a rate: those of the search, then confirmations; of each those that failed, then those that were held.
fn counts(tested_rates: &[TestedRate], rate_per_s: f64) -> [[u32; 2]; 2] {
    let mut counts = [[0; 2]; 2];
    for trial in tested_rates.iter().filter(|trial| trial.rate_per_s == rate_per_s) {
        counts[usize::from(trial.is_confirmation)][usize::from(trial.is_held)] += 1;
    }
    counts
}

/// The next step after these trials, in any order.
pub fn next(search: &Search, tested_rates: &[TestedRate]) -> KneeStep {
    let max_rate = search.most_per_s.unwrap_or(f64::INFINITY);
    // Rounded rates may exceed the most that is allowed.
    let start = rounded(search.start_per_s).min(max_rate);
    let lowest_failed = rates_with(tested_rates, Standing::Failed).reduce(f64::min);
    // A rate held above one that was not held was luck.
    let highest_held = rates_with(tested_rates, Standing::Held)
        .filter(|rate| lowest_failed.is_none_or(|failed| *rate < failed))
        .reduce(f64::max);
    if tested_rates.len() >= MOST_TRIALS && !is_confirmed(search, tested_rates, highest_held) {
        return KneeStep::Done(KneeOutcome::Unsteady);
    }
    let lowest_open = rates_with(tested_rates, Standing::Open)
        .filter(|rate| lowest_failed.is_none_or(|failed| *rate < failed))
        .reduce(f64::min);
    if let Some(rate_per_s) = lowest_open {
        return KneeStep::Search { rate_per_s };
    }
    match (highest_held, lowest_failed) {
        (None, None) => KneeStep::Search { rate_per_s: start },
        (None, Some(failed)) if failed <= start * LEAST_PART => {
            KneeStep::Done(KneeOutcome::NoneHeld { lowest_per_s: failed })
        }
        (None, Some(failed)) => KneeStep::Search { rate_per_s: rounded(failed / 2.0) },
        (Some(held), None) => {
            if held < max_rate {
                KneeStep::Search { rate_per_s: rounded(held * 2.0).min(max_rate) }
            } else {
                confirm(search, tested_rates, held, None)
            }
        }
        (Some(held), Some(failed)) => {
            let middle = rounded((held * failed).sqrt());
            let is_between = held < middle && middle < failed;
            if failed / held > 1.0 + search.precision && is_between {
                KneeStep::Search { rate_per_s: middle }
            } else {
                confirm(search, tested_rates, held, Some(failed))
            }
        }
    }
}

fn rates_with(tested_rates: &[TestedRate], expected: Standing) -> impl Iterator<Item = f64> {
    let rates = tested_rates.iter().map(|trial| trial.rate_per_s);
    rates.filter(move |rate| standing(tested_rates, *rate) == expected)
}

fn is_confirmed(search: &Search, tested_rates: &[TestedRate], held: Option<f64>) -> bool {
    held.is_some_and(|held| counts(tested_rates, held)[1][1] >= search.confirmations)
}

/// The next confirmation of a rate, or the end of the search.
fn confirm(
    search: &Search,
    tested_rates: &[TestedRate],
    rate_per_s: f64,
    failed_per_s: Option<f64>,
) -> KneeStep {
    let [_, [failed, held]] = counts(tested_rates, rate_per_s);
    if held >= search.confirmations {
        KneeStep::Done(KneeOutcome::Held { rate_per_s, failed_per_s })
    } else {
        KneeStep::Confirm { rate_per_s, repeat: failed + held + 1 }
    }
}

/// To three digits: rates are names of steps.
fn rounded(rate: f64) -> f64 {
    if !rate.is_finite() || rate <= 0.0 {
        return rate;
    }
    let digits = 2 - rate.log10().floor() as i32;
    match digits {
        1.. => (rate * 10_f64.powi(digits)).round() / 10_f64.powi(digits),
        _ => (rate / 10_f64.powi(-digits)).round() * 10_f64.powi(-digits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches to the end; `holds` says whether a trial of a rate holds it, and learns whether it is a confirmation.
    fn run(
        search: &Search,
        mut holds: impl FnMut(f64, bool) -> bool,
    ) -> (KneeOutcome, Vec<TestedRate>) {
        let mut tested_rates = Vec::new();
        loop {
            let (rate_per_s, is_confirmation) = match next(search, &tested_rates) {
                KneeStep::Search { rate_per_s } => (rate_per_s, false),
                KneeStep::Confirm { rate_per_s, .. } => (rate_per_s, true),
                KneeStep::Done(outcome) => return (outcome, tested_rates),
            };
            let is_held = holds(rate_per_s, is_confirmation);
            tested_rates.push(TestedRate { rate_per_s, is_confirmation, is_held });
            assert!(tested_rates.len() <= MOST_TRIALS, "the search does not end");
        }
    }

    #[test]
    fn the_knee_is_found_wherever_it_is() {
        for knee in [3.7, 120.0, 4_999.0, 1_234_567.0] {
            for start in [10.0, 1_000.0] {
                let (outcome, tested_rates) = run(&Search::from(start), |rate, _| rate <= knee);
                let KneeOutcome::Held { rate_per_s, failed_per_s: Some(failed) } = outcome else {
                    panic!("{outcome:?}");
                };
                assert!(rate_per_s <= knee && knee < failed, "{rate_per_s} to {failed} of {knee}");
                assert!(failed < rate_per_s * 1.06, "{rate_per_s} to {failed}");
                assert_eq!(tested_rates.iter().filter(|trial| trial.is_confirmation).count(), 3);
            }
        }
    }

    #[test]
    fn a_rate_that_is_not_confirmed_is_not_held() {
        // Found at 1000 by luck; held again and again below 800 only.
        let (outcome, tested_rates) = run(&Search::from(500.0), |rate, is_confirmation| {
            if is_confirmation { rate <= 800.0 } else { rate <= 1_000.0 }
        });
        let KneeOutcome::Held { rate_per_s, .. } = outcome else { panic!("{outcome:?}") };
        assert!(rate_per_s <= 800.0 && rate_per_s > 500.0, "{rate_per_s}");
        assert!(tested_rates.iter().any(|trial| trial.is_confirmation && !trial.is_held));
    }

    #[test]
    fn one_trial_that_fails_for_unrelated_reasons_changes_nothing() {
        let expected = run(&Search::from(500.0), |rate, _| rate <= 3_000.0).0;
        for number in 0..12 {
            let mut trials = 0;
            let (outcome, _) = run(&Search::from(500.0), |rate, _| {
                trials += 1;
                rate <= 3_000.0 && trials != number
            });
            assert_eq!(outcome, expected, "trial {number}");
        }
    }

    #[test]
    fn it_ends_at_the_most_and_at_nothing() {
        let search = Search { most_per_s: Some(3_000.0), ..Search::from(1_000.0) };
        let (outcome, _) = run(&search, |_, _| true);
        assert_eq!(outcome, KneeOutcome::Held { rate_per_s: 3_000.0, failed_per_s: None });
        let search = Search { most_per_s: Some(2_996.0), ..search };
        let (outcome, tested_rates) = run(&search, |_, _| true);
        assert_eq!(outcome, KneeOutcome::Held { rate_per_s: 2_996.0, failed_per_s: None });
        assert!(tested_rates.iter().all(|trial| trial.rate_per_s <= 2_996.0), "{tested_rates:?}");
        let (outcome, _) = run(&search, |_, _| false);
        assert!(matches!(outcome, KneeOutcome::NoneHeld { lowest_per_s } if lowest_per_s < 1.0));
        let (outcome, _) = run(&search, |_, is_confirmation| !is_confirmation);
        assert!(!matches!(outcome, KneeOutcome::Held { .. }), "{outcome:?}");
    }

    #[test]
    fn a_search_that_was_interrupted_continues_alike() {
        let search = Search::from(1_000.0);
        let (_, tested_rates) = run(&search, |rate, _| rate <= 5_000.0);
        for cut in 0..tested_rates.len() {
            let rate = match next(&search, &tested_rates[..cut]) {
                KneeStep::Search { rate_per_s } | KneeStep::Confirm { rate_per_s, .. } => {
                    rate_per_s
                }
                KneeStep::Done(outcome) => panic!("{outcome:?} after {cut}"),
            };
            assert_eq!(rate, tested_rates[cut].rate_per_s);
        }
    }

    #[test]
    fn a_trial_that_falls_short_of_its_rate_does_not_hold_it() {
        let [latency, errors] =
            ["p99 < 20ms", "errors < 1%"].map(|text| text.parse::<Objective>().expect(text));
        for (done, failed, is_met, holds) in [
            (990.0, 0.0, true, true),
            (989.9, 0.0, true, false),
            (1_000.0, 0.0, false, false),
            // The survivors of an overload are fast.
            (995.0, 5.0, true, false),
        ] {
            assert_eq!(is_held(1e3, done, failed, &latency, is_met), holds, "{done} {failed}");
        }
        assert!(is_held(1e3, 995.0, 5.0, &errors, true));
    }

    #[test]
    fn rates_have_three_digits() {
        let cases = [(1_414.2, 1_410.0), (0.012_345, 0.0123), (99.96, 100.0), (5.0, 5.0)];
        for (rate, wanted) in cases {
            assert_eq!(rounded(rate), wanted);
        }
    }
}
