//! C: work of others, between the sides of a comparison. Both rules look for a difference between the sides: neighbours
//! that disturb both alike are in the interval of the ratio already, and take no verdict away.

use super::{Case, Rule, arithmetic, parts, percent};
use crate::evidence::{
    Bounds, Evidence, Finding, Group, Level, PairedComparison, Spot, Trial, Verdicts, VetoReach,
};
use crate::findings::verdict::veto;
use crate::format;
use crate::messages::checks;
use crate::text::Message;
use dyno_facts::say;
use dyno_statistics::{mean, mean_interval};

pub(crate) const FOREIGN_LOAD: &str = "foreign-load";
pub(crate) const UNEVEN_CPU_SECONDARY: &str = "uneven-foreign-cpu-secondary";
/// What programs take from others is more than their CPU time: cold caches, and locks held by who doesn't run.
const CPU_COUNTS: f64 = 2.0;
/// What is left of the CPUs is not known so well that larger reaches would say more.
const MOST_TOLD_TIMES: f64 = 10.0;
/// A smaller change of throughput is less than what comparisons look for.
const LEAST_CHANGE: f64 = 0.01;

pub(super) const RULES: &[Rule] = &[
    Rule::case(Group::C, Level::E, checks::uneven_foreign_load, |case| {
        each_comparison(case, |of| Some((uneven_load(case.evidence, of)?, VetoReach::AnyFar)))
    }),
    Rule::case(Group::C, Level::E, checks::uneven_background, |case| {
        each_comparison(case, |of| Some((uneven_background(case.evidence, of)?, VetoReach::AnyFar)))
    }),
    Rule::case(Group::C, Level::E, checks::uneven_foreign_cpu, |case| {
        uneven_cpu(case, veto::explains_the_deciding)
    }),
    Rule::case(Group::C, Level::W, checks::uneven_foreign_cpu_secondary, |case| {
        uneven_cpu(case, |reach, of, verdicts| {
            veto::explains_any(reach, of, verdicts)
                && !veto::explains_the_deciding(reach, of, verdicts)
        })
    }),
];

/// What `find` says of each comparison, and how far it reaches.
pub(super) fn each_comparison(
    case: &Case<'_>,
    find: impl Fn(&PairedComparison) -> Option<(Message, VetoReach)>,
) -> Vec<Finding> {
    let finding = |of: &PairedComparison| {
        let (value, reach) = find(of)?;
        Some(Finding { reach, ..Finding::new(Spot::comparison(&of.name), value) })
    };
    case.verdicts.comparisons.iter().filter_map(finding).collect()
}

/// The trials of each pair, baseline first.
pub(super) fn pairs<'a>(
    evidence: &'a Evidence,
    of: &'a PairedComparison,
) -> impl Iterator<Item = [&'a Trial; 2]> {
    let trial = |label: &String| evidence.trials.iter().find(|trial| trial.label == *label);
    of.pairs.iter().filter_map(move |[a, b]| Some([trial(a)?, trial(b)?]))
}

/// Nobody knows what a transaction of others costs, so that it may explain anything.
fn uneven_load(evidence: &Evidence, of: &PairedComparison) -> Option<Message> {
    let sides = |share: fn(&Trial) -> Option<f64>| {
        let both = pairs(evidence, of).filter_map(|[a, b]| Some([share(a)?, share(b)?]));
        let both: Vec<[f64; 2]> = both.collect();
        let told = |side: usize| {
            let shares: Vec<f64> = both.iter().map(|pair| pair[side]).collect();
            percent(mean(&shares).unwrap_or_default())
        };
        // Now and then a server does its own work there.
        is_uneven(&both, both.len().div_ceil(5).max(2)).then(|| [told(0), told(1)])
    };
    let (a, b) = (&of.baseline, &of.candidate);
    let here = sides(arithmetic::share_here).map(|[of_a, of_b]| {
        say!(others_committed_on_sides, a = a, of_a = of_a, b = b, of_b = of_b)
    });
    let elsewhere = sides(arithmetic::share_elsewhere).map(|[of_a, of_b]| {
        say!(others_elsewhere_on_sides, a = a, of_a = of_a, b = b, of_b = of_b)
    });
    parts(here.into_iter().chain(elsewhere))
}

/// Found where others executed transactions on the server of one side only, in the fewest pairs that count, or where
/// their share differs between the sides (95 % t interval over the pairs).
fn is_uneven(pairs: &[[f64; 2]], least: usize) -> bool {
    let found = [0, 1].map(|side| pairs.iter().filter(|pair| pair[side] > 0.0).count());
    let differences: Vec<f64> = pairs.iter().map(|[a, b]| b - a).collect();
    match found {
        [0, one] | [one, 0] => one >= least,
        _ => mean_interval(&differences).is_some_and(|both| !both.contains(0.0)),
    }
}

/// What others have a server do in a trial that is no load: `VACUUM`, `CREATE INDEX` and the like. What the server begins
/// by itself follows from the load.
fn maintenance(trial: &Trial) -> Option<&String> {
    let nodes = trial.summary.conditions.nodes.values();
    nodes.flat_map(|node| &node.background).find(|work| !work.starts_with("autovacuum"))
}

/// Found where a fifth of the pairs, and two at least, had it on one side alone, three times as many as on the other.
fn uneven_background(evidence: &Evidence, of: &PairedComparison) -> Option<Message> {
    let pairs: Vec<[&Trial; 2]> = pairs(evidence, of).collect();
    let alone = |side: usize| {
        let is_alone = |pair: &&[&Trial; 2]| {
            maintenance(pair[side]).is_some() && maintenance(pair[1 - side]).is_none()
        };
        pairs.iter().filter(is_alone).count()
    };
    let both = [alone(0), alone(1)];
    let (more, fewer) = (both[0].max(both[1]), both[0].min(both[1]));
    let what = pairs.iter().flatten().find_map(|trial| maintenance(trial))?;
    let is_uneven = more >= 2 && more * 5 >= pairs.len() && more >= 3 * fewer;
    is_uneven.then(|| {
        say!(
            maintenance_on_sides,
            a = &of.baseline,
            of_a = both[0].to_string(),
            b = &of.candidate,
            of_b = both[1].to_string(),
            n = pairs.len() as u64,
            what = what
        )
    })
}

/// Comparisons whose verdicts fall, as `explains` says, by what other programs took from one side.
fn uneven_cpu(
    case: &Case<'_>,
    explains: fn(VetoReach, &PairedComparison, &Verdicts) -> bool,
) -> Vec<Finding> {
    each_comparison(case, |of| {
        let uneven = UnevenCpu::of(&cpu_of_pairs(case.evidence, of))?;
        let reach = VetoReach::HeldUp(uneven.log_reach);
        explains(reach, of, case.verdicts).then(|| (uneven.told(of), reach))
    })
}

/// The share of the CPUs that other programs took in both trials of each pair in which that is known.
fn cpu_of_pairs(evidence: &Evidence, of: &PairedComparison) -> Vec<[f64; 2]> {
    let share = |trial: &Trial| trial.summary.conditions.generator.foreign_cpu_share;
    pairs(evidence, of).filter_map(|[a, b]| Some([share(a)?, share(b)?])).collect()
}

/// Other programs took the CPUs from one side more than from the other.
#[derive(Clone, Copy, Debug, PartialEq)]
struct UnevenCpu {
    /// Means of both sides.
    shares: [f64; 2],
    /// 95 % t interval of the difference over the pairs.
    difference: Bounds,
    /// Positive where the candidate was held up, as [`VetoReach::HeldUp`] has it.
    log_reach: f64,
}

impl UnevenCpu {
    /// Found where the interval excludes zero: what comes to both sides by chance is in the interval of the ratio
    /// already. Programs that take a share of the CPUs leave the rest: the side with more of them, at the end of the
    /// interval that is farthest from zero, has had so much less, and that counts twice.
    fn of(pairs: &[[f64; 2]]) -> Option<UnevenCpu> {
        let differences: Vec<f64> = pairs.iter().map(|[a, b]| b - a).collect();
        let both = mean_interval(&differences).filter(|both| !both.contains(0.0))?;
        let side = |side: usize| mean(&pairs.iter().map(|pair| pair[side]).collect::<Vec<_>>());
        let shares = [side(0)?, side(1)?];
        let left = 1.0 - shares[0].min(shares[1]);
        let most = both.low.abs().max(both.high.abs()).min(left);
        let log_reach = (CPU_COUNTS * (left / (left - most)).ln()).copysign(both.low);
        let difference = Bounds { low: both.low, high: both.high };
        (log_reach.abs() > LEAST_CHANGE).then_some(UnevenCpu { shares, difference, log_reach })
    }

    fn told(&self, of: &PairedComparison) -> Message {
        let (low, high) = (self.difference.low.abs(), self.difference.high.abs());
        let [low, high] =
            [low.min(high), low.max(high)].map(|share| format!("{:.0}", 100.0 * share));
        let (freer, busier) = match self.log_reach > 0.0 {
            true => (&of.baseline, &of.candidate),
            false => (&of.candidate, &of.baseline),
        };
        let left = 1.0 - self.shares[0].min(self.shares[1]);
        let times = self.log_reach.abs().exp();
        say!(
            other_programs_took_cpus,
            a = &of.baseline,
            of_a = percent(self.shares[0]),
            b = &of.candidate,
            of_b = percent(self.shares[1]),
            points =
                if low == high { low.into() } else { say!(low_to_high, low = low, high = high) },
            left = percent(left),
            least = percent(left / times.powf(1.0 / CPU_COUNTS)),
            freer = freer,
            busier = busier,
            times = match times <= MOST_TOLD_TIMES {
                true => Message::verbatim(format!("{times:.2}")),
                false => say!(more_than, times = format::plain(MOST_TOLD_TIMES)),
            }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_core::Rng;

    /// What neighbours take who come and go, each pair and each trial anew.
    fn neighbours(rng: &mut Rng, pairs: usize, most: f64) -> Vec<[f64; 2]> {
        let mut level = most / 2.0;
        let mut next = || {
            level = 0.5 * level + 0.5 * (most * rng.unit());
            (level + 0.1 * rng.unit()).min(0.9)
        };
        (0..pairs).map(|_| [next(), next()]).collect()
    }

    #[test]
    fn neighbours_of_both_sides_take_no_verdict_away() {
        let mut rng = Rng::new(17, "neighbours", 0);
        for pairs in [6, 10, 30] {
            let is_found = |_: &usize| UnevenCpu::of(&neighbours(&mut rng, pairs, 0.6)).is_some();
            let found = (0..1000).filter(is_found).count();
            assert!(found <= 65, "{pairs} pairs: {found} of 1000");
        }
    }

    #[test]
    fn a_neighbour_of_one_side_explains_what_it_may_have_taken() {
        let mut rng = Rng::new(18, "neighbours", 0);
        // As a sceptic did it, in half of the pairs; beside wild neighbours, and on a machine that is quiet else.
        for (most, least) in [(0.6, 850), (0.1, 1000)] {
            let is_found = |_: &usize| {
                let mut pairs = neighbours(&mut rng, 10, most);
                pairs.iter_mut().take(5).for_each(|pair| pair[1] = (pair[1] + 0.5).min(0.95));
                UnevenCpu::of(&pairs).is_some_and(|uneven| uneven.log_reach > 1.372_f64.ln())
            };
            let found = (0..1000).filter(is_found).count();
            assert!(found >= least, "{most}: {found} of 1000");
        }
        let little = UnevenCpu::of(&[[0.10, 0.102], [0.10, 0.101], [0.10, 0.102]]);
        assert_eq!(little, None, "less than comparisons look for");
    }
}
