//! The promises of comparisons, kept in simulations with fixed seeds: how often equal systems are called different, and
//! how often a difference is found. `cargo run --release -p dyno-facts --example simulate` does the same in full.

#[path = "../examples/simulate/model.rs"]
mod model;

use dyno_facts::statistics::gate::{Gate, GateVerdict};
use dyno_facts::statistics::holm;
use dyno_facts::statistics::ratio::{Judging, PairedRatio, RatioVerdict};
use model::{
    Session, World, chained, is_difference, knee_is_low, plan, share, simulate_trials, together,
    verdict,
};

#[test]
fn equal_systems_are_seldom_called_different_whatever_is_wrong_with_the_machine() {
    for (world, name) in World::ALL {
        for pairs in [6, 10] {
            let false_positives = share(1_000, |seed| {
                let session = Session::new(seed, world, [pairs; 2]);
                is_difference(verdict(&session.fixed(), Judging::FIXED))
            });
            // The truth is 5% at most; here are four standard errors more.
            assert!(false_positives.upper <= 0.092, "{name}, {pairs} pairs: {false_positives:?}");
        }
    }
}

#[test]
fn pairs_that_end_by_their_figures_find_no_more_by_chance() {
    for (world, name) in World::ALL {
        for half_width in [Some(0.0125), None] {
            let plan = plan([6, 20], half_width);
            let false_positives = share(200, |seed| {
                let pairs = Session::new(seed, world, [6, 20]).run_until_stopped(&plan);
                is_difference(verdict(&pairs, plan.judging()))
            });
            assert!(
                false_positives.estimate <= 0.11,
                "{name}, {half_width:?}: {false_positives:?}"
            );
        }
    }
}

#[test]
fn concurrent_trials_keep_false_positives_low_and_detect_three_percent() {
    const TRIAL_S: usize = 5;
    for half_width in [Some(0.012), None] {
        for (world, name) in World::TOGETHER {
            let is_found =
                |seed| is_difference(together(seed, (world, 1.0), TRIAL_S, half_width).0);
            let false_positives = share(100, is_found);
            // 5%, and an error of sampling.
            assert!(
                false_positives.estimate <= 0.075,
                "{name}, {half_width:?}: {false_positives:?}"
            );
        }
        let mut seconds = 0;
        let power = share(40, |seed| {
            let (verdict, count) = together(seed, (World::Quiet, 1.03), TRIAL_S, half_width);
            seconds += count;
            verdict == RatioVerdict::Faster
        });
        assert!(power.estimate >= 0.95 && seconds < 120 * 40, "{power:?} in {seconds} s");
    }
    // Seconds are not independent of each other.
    let with_short_trials =
        share(100, |seed| is_difference(together(seed, (World::Bursts, 1.0), 1, None).0));
    assert!(with_short_trials.estimate > 0.08, "{with_short_trials:?}");
}

#[test]
fn sessions_that_continue_each_other_find_no_more_by_chance() {
    let plan = plan([6, 12], None);
    for (world, name) in World::ALL {
        let [one, three] = [1, 3].map(|sessions| {
            share(200, |seed| is_difference(chained(seed, world, &plan, sessions))).estimate
        });
        assert!(one <= 0.11 && three <= 0.11, "{name}: {one} with one, {three} with three");
    }
}

#[test]
fn starts_that_vary_find_no_more_by_chance_where_they_are_what_counts() {
    for (starts, each) in [(6, 3), (10, 2)] {
        let false_positives = share(1_000, |seed| {
            let session = Session::with_starts(seed, (starts, each), 2.0 * model::NOISE);
            let ratio = PairedRatio::from_units(&session.units(), Judging::FIXED);
            is_difference(ratio.expect("pairs").verdict(dyno_facts::statistics::Better::More, 0.03))
        });
        assert!(false_positives.upper <= 0.092, "{starts} starts of {each}: {false_positives:?}");
        let naive = share(300, |seed| {
            let session = Session::with_starts(seed, (starts, each), 2.0 * model::NOISE);
            is_difference(verdict(&session.fixed(), Judging::FIXED))
        });
        assert!(naive.estimate > 0.12, "pairs alone: {naive:?}");
    }
}

#[test]
fn three_percent_are_found_with_ten_pairs() {
    let power = share(400, |seed| {
        let session = Session { ratio: 1.03, ..Session::new(seed, World::Drift, [10; 2]) };
        verdict(&session.fixed(), Judging::FIXED) == RatioVerdict::Faster
    });
    assert!(power.estimate >= 0.90, "{power:?}");
}

#[test]
fn a_server_ten_times_slower_is_slower_however_much_it_varies() {
    let gate: Gate = "tps.ratio.low > 0.97".parse().expect("a gate");
    for pairs in [6, 7] {
        let power = share(100, |seed| {
            let noise = [model::NOISE, 0.25];
            let session =
                Session { ratio: 0.1, noise, ..Session::new(seed, World::Quiet, [pairs; 2]) };
            let ratio = PairedRatio::from_pairs(&session.fixed(), Judging::FIXED).expect("pairs");
            let verdict = ratio.verdict(dyno_facts::statistics::Better::More, 0.03);
            verdict == RatioVerdict::Slower
                && gate.judge(&[], Some(&ratio)).verdict == GateVerdict::Broken
        });
        assert_eq!(power.estimate, 1.0, "{pairs} pairs");
    }
}

#[test]
fn blocks_one_after_the_other_would_take_drift_for_a_difference() {
    // Why pairs are interleaved: the same trials, all of A before all of B.
    let false_positives = share(200, |seed| {
        let trials = simulate_trials(&mut Session::new(seed, World::Drift, [6; 2]), 12);
        let (a, b) = trials.split_at(6);
        let pairs: Vec<(f64, f64)> = a.iter().copied().zip(b.iter().copied()).collect();
        is_difference(verdict(&pairs, Judging::FIXED))
    });
    assert!(false_positives.estimate > 0.3, "{false_positives:?}");
}

#[test]
fn the_history_of_a_session_is_seldom_seen_where_there_is_none() {
    for world in [World::Quiet, World::Starved, World::HeavyTails, World::Bimodal] {
        for pairs in [6, 10] {
            let false_alarms =
                share(120, |seed| Session::new(seed, world, [pairs; 2]).history().contains(&true));
            // The truth is 1% at most; here are four standard errors more.
            assert!(false_alarms.estimate <= 0.046, "{world:?}, {pairs} pairs: {false_alarms:?}");
        }
    }
    for (world, mark) in [(World::Dependent, 0), (World::Drift, 1), (World::SecondLoses, 2)] {
        let power = share(12, |seed| Session::new(seed, world, [40; 2]).history()[mark]);
        assert!(power.estimate >= 0.5, "{world:?}: {power:?}");
    }
}

#[test]
fn many_comparisons_find_no_more_by_chance_than_one() {
    let comparisons = 12;
    let [plain, corrected] = [false, true].map(|is_corrected| {
        share(200, |seed| {
            let p = (0..comparisons).map(|number| {
                let session = Session::new(seed * comparisons + number, World::Quiet, [10; 2]);
                PairedRatio::from_pairs(&session.fixed(), Judging::FIXED).expect("pairs").p
            });
            let p: Vec<f64> = p.collect();
            let p = if is_corrected { holm(&p) } else { p };
            p.iter().any(|p| *p <= 0.05)
        })
    });
    assert!(plain.estimate > 0.35, "{plain:?}");
    assert!(corrected.estimate < 0.10, "{corrected:?}");
}

#[test]
fn a_search_is_not_misled_by_trials_that_fail_for_unrelated_reasons() {
    let low_knees = share(400, knee_is_low);
    assert!(low_knees.estimate <= 0.035, "{low_knees:?}");
}

#[test]
fn the_planned_number_of_pairs_gives_the_half_width() {
    let mut widths: Vec<f64> = (0..200)
        .filter_map(|seed| {
            let noise = [0.02; 2];
            let session = Session { noise, ..Session::new(seed, World::Quiet, [12; 2]) };
            PairedRatio::from_pairs(&session.fixed(), Judging::FIXED)?.half_width()
        })
        .collect();
    widths.sort_by(f64::total_cmp);
    assert!((0.016..0.021).contains(&widths[100]), "{}", widths[100]);
}
