//! Checks that verdicts keep their promises: the tables of the crate's README.
//!
//! `simulate [positives|bars|orders|levels|history|starts|together] [COUNT]`: seeds are 0 to COUNT, so equal arguments
//! print equal tables.
#![expect(clippy::print_stdout, reason = "a program that prints tables")]

mod model;

use dyno_facts::statistics::gate::{Gate, GateVerdict};
use dyno_facts::statistics::ratio::{Judging, PairedRatio, RatioVerdict};
use dyno_facts::statistics::{Better, rank, scaling_peak};
use model::{
    NOISE, Session, Share, World, chained, is_difference, knee_is_low, plan, share,
    simulate_trials, together, verdict,
};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let simulation = arguments.next().unwrap_or_else(|| "bars".to_owned());
    let count = arguments.next().and_then(|count| count.parse().ok()).unwrap_or(20_000);
    match simulation.as_str() {
        "orders" => orders(count),
        "levels" => levels(count),
        "history" => history(count),
        "starts" => starts(count),
        "together" => concurrent(count),
        "positives" => false_positives(count),
        _ => bars(count),
    }
}

/// The estimate and, in parentheses, the upper end of its interval, in percent.
fn percent(share: Share) -> String {
    format!("{:.2} ({:.2})", 100.0 * share.estimate, 100.0 * share.upper)
}

/// Half-widths at which pairs of [`NOISE`] end after the fewest, some, and many of thirty.
const HALF_WIDTHS: [f64; 4] = [0.008, 0.01, 0.0125, 0.02];

fn false_positives(count: u64) {
    println!(
        "| equal systems are called different, % | 6 pairs | 7 | 10 | half-width, 6..20 | half-width, 6..30 | until decided, ..60 | until decided, three sessions of ..20 |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for (world, name) in World::ALL {
        let continued =
            share(count, |seed| is_difference(chained(seed, world, &plan([6, 20], None), 3)));
        let until_decided = stopped_share(count, world, [6, 60], None);
        let cells = [
            fixed_share(count, world, 6),
            fixed_share(count, world, 7),
            fixed_share(count, world, 10),
            worst_share(count, world, [6, 20]),
            worst_share(count, world, [6, 30]),
            until_decided,
            continued,
        ];
        println!("| {name} | {} |", cells.map(percent).join(" | "));
    }
    println!();
}

/// False positives of a fixed number of pairs.
fn fixed_share(count: u64, world: World, pairs: usize) -> Share {
    share(count, |seed| {
        let pairs = Session::new(seed, world, [pairs; 2]).fixed();
        is_difference(verdict(&pairs, Judging::FIXED))
    })
}

/// False positives of pairs that end at a half-width, or without one at a verdict.
fn stopped_share(count: u64, world: World, planned: [usize; 2], half_width: Option<f64>) -> Share {
    let plan = plan(planned, half_width);
    share(count, |seed| {
        let pairs = Session::new(seed, world, planned).run_until_stopped(&plan);
        is_difference(verdict(&pairs, plan.judging()))
    })
}

/// False positives at the half-width that gives the most.
fn worst_share(count: u64, world: World, planned: [usize; 2]) -> Share {
    let shares =
        HALF_WIDTHS.map(|half_width| stopped_share(count, world, planned, Some(half_width)));
    let worst = shares.into_iter().max_by(|a, b| a.estimate.total_cmp(&b.estimate));
    worst.expect("half-widths")
}

/// Prints how often differences and equivalence are found.
fn bars(count: u64) {
    println!("| what | found, % (upper end of its 95% interval) |");
    println!("|---|---|");
    let print =
        |description: &str, share: Share| println!("| {description} | {} |", percent(share));
    for (world, name) in World::ALL {
        let frequency = share(count, |seed| {
            let session = Session { ratio: 1.03, ..Session::new(seed, world, [10; 2]) };
            verdict(&session.fixed(), Judging::FIXED) == RatioVerdict::Faster
        });
        print(&format!("a true 3% is found with 10 pairs: {name}"), frequency);
    }
    let gate: Gate = "tps.ratio.low > 0.97".parse().expect("a gate");
    for pairs in [6, 7] {
        let frequency = share(count, |seed| {
            let noise = [NOISE, 0.25];
            let session =
                Session { ratio: 0.1, noise, ..Session::new(seed, World::Quiet, [pairs; 2]) };
            let ratio = PairedRatio::from_pairs(&session.fixed(), Judging::FIXED).expect("pairs");
            ratio.verdict(Better::More, 0.03) == RatioVerdict::Slower
                && gate.judge(&[], Some(&ratio)).verdict == GateVerdict::Broken
        });
        print(
            &format!("10 times slower, 25% deviation: slower and broken with {pairs} pairs"),
            frequency,
        );
    }
    for (world, name) in World::ALL {
        let frequency = share(count, |seed| {
            let session = Session { ratio: 1.03, ..Session::new(seed, world, [10; 2]) };
            let ratio = PairedRatio::from_pairs(&session.fixed(), Judging::FIXED).expect("pairs");
            ratio.is_equivalent(0.03)
        });
        print(&format!("a true 3% is called equivalent within 3%: {name}"), frequency);
    }
    for world in [World::Quiet, World::Starved, World::StarvedRetried] {
        let frequency = share(count, |seed| {
            let pairs = Session::new(seed, world, [10; 2]).fixed();
            verdict(&pairs, Judging::FIXED) == RatioVerdict::Equivalent
        });
        print(&format!("A/A is called equivalent with 10 pairs: {world:?}"), frequency);
    }
    print("a peak is claimed of a saturating curve, 2% noise", share(count, peak_of_saturation));
    print("a search ends below 90% of capacity, 5% spurious failures", share(count, knee_is_low));
}

/// Prints false positives, power and length of comparisons by concurrent trials of 1, 3 and 5 s.
fn concurrent(count: u64) {
    println!(
        "| until 1.2% to each side: equal ones are called different, % / a true 3% is found, % / seconds | trials of 1 s | 3 s | 5 s |"
    );
    println!("|---|---|---|---|");
    for (world, name) in World::TOGETHER {
        let cells = [1, 3, 5].map(|unit| {
            let equal = share(count, |seed| {
                is_difference(together(seed, (world, 1.0), unit, Some(0.012)).0)
            });
            let mut seconds = 0;
            let slower = share(count, |seed| {
                let (verdict, made) = together(seed, (world, 1.03), unit, Some(0.012));
                seconds += made;
                verdict == RatioVerdict::Faster
            });
            let mean = seconds as f64 / count as f64;
            format!("{:.1} / {:.0} / {mean:.0}", 100.0 * equal.estimate, 100.0 * slower.estimate)
        });
        println!("| {name} | {} |", cells.join(" | "));
    }
}

/// Frequency of the checks of a session's history, all three together and one by one.
fn history(count: u64) {
    let pairs = [6, 10, 20, 40];
    println!(
        "| any / lag-1 / drift / second of a pair, % | {} pairs |",
        pairs.map(|n| n.to_string()).join(" | ")
    );
    println!("|---|{}", "---|".repeat(pairs.len()));
    for (world, name) in World::ALL {
        let cells = pairs.map(|pairs| {
            let histories: Vec<[bool; 3]> =
                (0..count).map(|seed| Session::new(seed, world, [pairs; 2]).history()).collect();
            let any = histories.iter().filter(|fired| fired.contains(&true)).count();
            let separate = [0, 1, 2].map(|at| {
                let fired = histories.iter().filter(|fired| fired[at]).count();
                format!("{:.1}", 100.0 * fired as f64 / count as f64)
            });
            format!("{:.2} / {}", 100.0 * any as f64 / count as f64, separate.join(" / "))
        });
        println!("| {name} | {} |", cells.join(" | "));
    }
}

/// Starts that vary: what pairs find by chance if each counts for itself, and if a start does.
fn starts(count: u64) {
    let cells = [(6, 1), (6, 3), (10, 1), (10, 2), (10, 3), (20, 3)];
    let names = cells.map(|(starts, each)| format!("{starts} starts of {each}"));
    println!("| pairs count / starts count, % | {} |", names.join(" | "));
    println!("|---|{}", "---|".repeat(cells.len()));
    for (deviation, name) in [
        (0.0, "do not vary"),
        (0.5, "vary by half as much as trials"),
        (1.0, "as much"),
        (2.0, "twice as much"),
    ] {
        let cells = cells.map(|(starts, each)| {
            let pairs = share(count, |seed| {
                let session = Session::with_starts(seed, (starts, each), deviation * NOISE);
                is_difference(verdict(&session.fixed(), Judging::FIXED))
            });
            let units = share(count, |seed| {
                let session = Session::with_starts(seed, (starts, each), deviation * NOISE);
                let ratio = PairedRatio::from_units(&session.units(), Judging::FIXED);
                is_difference(ratio.expect("pairs").verdict(Better::More, 0.03))
            });
            format!("{} / {}", percent(pairs), percent(units))
        });
        println!("| {name} | {} |", cells.join(" | "));
    }
}

/// One queue with a delay, three trials a level.
fn peak_of_saturation(seed: u64) -> bool {
    let levels = [1.0, 1.98, 3.86, 7.11, 9.89, 10.0, 10.0, 10.0];
    let noise = [0.02; 2];
    let mut session = Session { noise, ..Session::new(seed, World::Quiet, [1; 2]) };
    let trials = levels.iter().enumerate().flat_map(|(power, level)| {
        let rates = simulate_trials(&mut session, 3);
        rates.into_iter().map(move |tps| (f64::from(1 << power), level * tps))
    });
    scaling_peak(&trials.collect::<Vec<_>>()).is_some()
}

/// The ways of drawing orders, and the tests: ranks and Student's t.
fn orders(count: u64) {
    let names: Vec<&str> = World::ALL.iter().map(|(_, name)| *name).collect();
    println!("| order, pairs: false positives of ranks / t, % | {} |", names.join(" | "));
    println!("|---|{}", "---|".repeat(names.len()));
    for (block, name) in [(0, "each alone"), (2, "blocks of two"), (usize::MAX, "over all planned")]
    {
        for (pairs, ratio) in [(6, 1.0), (7, 1.0), (10, 1.0), (20, 1.0), (10, 1.03)] {
            let cells: Vec<String> = World::ALL
                .iter()
                .map(|(world, _)| {
                    let ranks = share(count, |seed| {
                        let session = Session::new(seed, *world, [pairs; 2]);
                        estimate_ratio(session, block, ratio).p <= 0.05
                    });
                    let t = share(count, |seed| {
                        let session = Session::new(seed, *world, [pairs; 2]);
                        estimate_ratio(session, block, ratio).t.is_some_and(|t| t.p <= 0.05)
                    });
                    format!("{:.2} / {:.2}", 100.0 * ranks.estimate, 100.0 * t.estimate)
                })
                .collect();
            let note = if ratio == 1.0 { "" } else { ", power for 3%" };
            println!("| {name}, {pairs}{note} | {} |", cells.join(" | "));
        }
    }
}

/// The estimate with orders that are drawn in blocks of at most `block` pairs.
fn estimate_ratio(session: Session, block: usize, ratio: f64) -> PairedRatio {
    let session = Session { block: block.min(session.block), ratio, ..session };
    PairedRatio::from_pairs(&session.fixed(), Judging::FIXED).expect("pairs")
}

/// Pairs until their interval at this level is narrow.
fn stopped_at(mut session: Session, alpha: f64, half_width: f64) -> Vec<(f64, f64)> {
    let [min_pairs, max_pairs] = session.planned;
    let mut pairs: Vec<(f64, f64)> = Vec::new();
    let mut logs: Vec<f64> = Vec::new();
    while pairs.len() < max_pairs {
        let pair = session.run_pair(pairs.len());
        pairs.push(pair);
        logs.push((pair.1 / pair.0).ln());
        let interval =
            rank::pseudo_median_interval(&logs, alpha).filter(|_| pairs.len() >= min_pairs);
        if interval
            .is_some_and(|interval| ((interval.high - interval.low) / 2.0).sinh() <= half_width)
        {
            break;
        }
    }
    pairs
}

/// At which level pairs that a half-width ends find 5% by chance: the worst half-width counts.
fn levels(count: u64) {
    let alphas = [0.05, 0.04, 0.035, 0.032, 0.03, 0.025];
    println!("| pairs | {} |", alphas.map(|alpha| alpha.to_string()).join(" | "));
    println!("|---|{}", "---|".repeat(alphas.len()));
    for planned in [
        [6, 8],
        [6, 10],
        [6, 12],
        [6, 20],
        [6, 30],
        [6, 60],
        [8, 20],
        [10, 15],
        [10, 20],
        [10, 30],
        [20, 40],
    ] {
        let cells = alphas.map(|alpha| {
            let widths = [0.006, 0.007, 0.008, 0.009, 0.01, 0.0115, 0.0125, 0.015, 0.0175, 0.02];
            let frequencies = widths.map(|half_width| {
                let positives = share(count, |seed| {
                    let session = Session::new(seed, World::Quiet, planned);
                    let pairs = stopped_at(session, alpha, half_width);
                    is_difference(verdict(&pairs, Judging::Level(alpha)))
                });
                (positives.estimate, half_width)
            });
            let worst =
                frequencies.into_iter().max_by(|a, b| a.0.total_cmp(&b.0)).expect("half-widths");
            format!("{:.2} at {}", 100.0 * worst.0, worst.1)
        });
        println!("| {}..{} | {} |", planned[0], planned[1], cells.join(" | "));
    }
}
