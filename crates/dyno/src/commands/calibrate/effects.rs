//! Known effects on their way from the load to a verdict: which of them are found, and after how many pairs of trials.
//!
//! Pairs of trials with and without an effect are made in balanced order, a pair of each effect in turn, so that what
//! happens to the machine meets all alike. One of them has no effect: what is found there is noise. The verdicts are
//! those of `dyno run --until-decided`, which stay valid although they are looked at after every pair.

use dyno_facts::EffectFacts;
use dyno_facts::format::{percent, short};
use dyno_facts::text_table;
use dyno_runner::failure::Failure;
use dyno_runner::output;
use dyno_statistics::Metric;
use dyno_statistics::order::balanced;
use dyno_statistics::ratio::{DEFAULT_MARGIN, Judging, PairedRatio, RatioVerdict};

/// Pairs of each effect that the time is meant for.
const PAIRS: usize = 15;
/// Length of a trial, seconds. Shorter ones measure the connecting, longer ones give fewer pairs. The CPU time of a
/// server is counted in hundredths of a second: it needs the longer ones.
const TRIAL_S: std::ops::RangeInclusive<f64> = 0.1..=10.0;

/// What a trial has measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Measured {
    pub(super) tps: f64,
    /// Of all processes of the server; `None` where it isn't known.
    pub(super) cpu_us: Option<f64>,
}

impl Measured {
    fn figure(&self, metric: Metric) -> Option<f64> {
        if metric == Metric::Tps { Some(self.tps) } else { self.cpu_us }
    }
}

/// Measures for so many seconds, with so many units of cost in each transaction.
pub(super) type MeasureTrial<'a> = dyn FnMut(u64, f64) -> Result<Measured, Failure> + 'a;

pub(super) struct EffectSession<'a> {
    pub(super) budget_s: f64,
    /// Since its begin.
    pub(super) elapsed_s: &'a dyn Fn() -> f64,
    pub(super) measure: &'a mut MeasureTrial<'a>,
}

/// An effect and what came of it.
struct Arm {
    /// The share that it takes of the throughput; 0 is none.
    effect: f64,
    cost: u64,
    pairs: Vec<[Measured; 2]>,
    findings: Vec<EffectFacts>,
}

/// The length of a trial that gives each effect, and none, enough pairs within a time.
pub(super) fn trial_s(effects: usize, budget_s: f64) -> f64 {
    let trials = 2 * PAIRS * (effects + 1);
    (budget_s / trials as f64).clamp(*TRIAL_S.start(), *TRIAL_S.end())
}

impl EffectSession<'_> {
    /// Which of `effects` are found. `unit_s` is what a unit of cost takes; measured here where it is unknown, by
    /// trials with `probe` of them.
    pub(super) fn run(self, effects: &[f64], unit: CostUnit) -> Result<Vec<EffectFacts>, Failure> {
        let trial_s = trial_s(effects.len(), self.budget_s);
        // The first trial meets what nobody has used before.
        (self.measure)(0, trial_s)?;
        let plain_s = 1.0 / (self.measure)(0, trial_s)?.tps;
        let unit_s = match unit {
            CostUnit::Seconds(seconds) => seconds,
            CostUnit::Unknown { probe } => {
                let longer_s = 1.0 / (self.measure)(probe, trial_s)?.tps - plain_s;
                longer_s / probe as f64
            }
        };
        if !(unit_s > 0.0 && plain_s.is_finite()) {
            return Err(Failure::new("What a known effect costs can't be measured here.")
                .with_hint(
                    "Give it more time with --budget, or a machine with fewer neighbours.",
                ));
        }
        let mut arms = arms(effects, plain_s, unit_s);
        let seed = 1;
        while let Some(number) = next(&arms) {
            if (self.elapsed_s)() + 2.0 * trial_s > self.budget_s && !arms[number].pairs.is_empty()
            {
                break;
            }
            let arm = &mut arms[number];
            let mut pair = [None; 2];
            for side in balanced(2, PAIRS, arm.pairs.len(), seed + number as u64) {
                pair[side] = Some((self.measure)(arm.cost * side as u64, trial_s)?);
            }
            let [Some(without), Some(with)] = pair else { break };
            arm.pairs.push([without, with]);
            arm.judge(trial_s);
        }
        Ok(arms.into_iter().flat_map(|arm| arm.findings).collect())
    }
}

/// What a unit of cost takes.
#[derive(Clone, Copy, Debug)]
pub(super) enum CostUnit {
    Seconds(f64),
    /// To be measured with so many of them.
    Unknown {
        probe: u64,
    },
}

/// None first: it is measured as long as anything else is.
fn arms(effects: &[f64], plain_s: f64, unit_s: f64) -> Vec<Arm> {
    let arm = |effect: f64| {
        // A transaction that takes 1 / (1 - effect) as long.
        let units = plain_s * effect / (1.0 - effect) / unit_s;
        let cost = if effect > 0.0 { units.round().max(1.0) as u64 } else { 0 };
        let longer_s = cost as f64 * unit_s;
        Arm {
            effect: longer_s / (plain_s + longer_s),
            cost,
            pairs: Vec::new(),
            findings: Vec::new(),
        }
    };
    [0.0].iter().chain(effects).map(|effect| arm(*effect)).collect()
}

/// The effect that has the fewest pairs of those that are not found yet; none when all others are.
fn next(arms: &[Arm]) -> Option<usize> {
    let is_open = |arm: &Arm| arm.findings.iter().any(|of| !of.is_found) || arm.pairs.is_empty();
    let (none, others) = arms.split_first()?;
    if !others.iter().any(is_open) && none.pairs.len() >= PAIRS.min(most_pairs(others)) {
        return None;
    }
    let open = (0..arms.len()).filter(|&number| number == 0 || is_open(&arms[number]));
    open.min_by_key(|&number| arms[number].pairs.len())
}

fn most_pairs(arms: &[Arm]) -> usize {
    arms.iter().map(|arm| arm.pairs.len()).max().unwrap_or(0)
}

impl Arm {
    /// What its pairs say of each metric; what was found stays.
    fn judge(&mut self, trial_s: f64) {
        for metric in [Metric::Tps, Metric::ServerCpuUs] {
            let known = self.findings.iter().position(|of| of.metric == metric.name());
            if known.is_some_and(|place| self.findings[place].is_found) {
                continue;
            }
            let both = |[a, b]: &[Measured; 2]| Some((a.figure(metric)?, b.figure(metric)?));
            let pairs: Vec<(f64, f64)> = self.pairs.iter().filter_map(both).collect();
            let Some(ratio) = PairedRatio::of(&pairs, Judging::Anytime) else { continue };
            let verdict = ratio.verdict(metric.better(), DEFAULT_MARGIN);
            let found = EffectFacts {
                effect: self.effect,
                metric: metric.name().to_owned(),
                is_found: is_found(self.effect, verdict),
                pairs: ratio.pairs,
                ratio: ratio.ratio,
                low: ratio.interval.map(|both| both.low),
                high: ratio.interval.map(|both| both.high),
                trial_s,
                ..EffectFacts::default()
            };
            match known {
                Some(place) => self.findings[place] = found,
                None => self.findings.push(found),
            }
        }
    }
}

/// An effect is a delay: what noise makes faster is not found. Where there is none, either way is a false alarm.
fn is_found(effect: f64, verdict: RatioVerdict) -> bool {
    verdict == RatioVerdict::Slower || (effect == 0.0 && verdict == RatioVerdict::Faster)
}

pub(super) fn table(effects: &[EffectFacts]) -> String {
    let row = |of: &EffectFacts| {
        let interval = match (of.low, of.high) {
            (Some(low), Some(high)) => format!("[{low:.3}, {high:.3}]"),
            _ => "-".to_owned(),
        };
        vec![
            if of.effect > 0.0 { percent(of.effect) } else { "none".to_owned() },
            of.metric.clone(),
            if of.is_found { "yes" } else { "no" }.to_owned(),
            of.pairs.to_string(),
            format!("{:.3}", of.ratio),
            interval,
        ]
    };
    let rows: Vec<Vec<String>> = effects.iter().map(row).collect();
    let titles = ["effect", "metric", "found", "pairs", "ratio", "95 % interval"];
    text_table(&titles, &rows, |place| place >= 3)
}

/// What the table says, in sentences; of noise that was taken for an effect most of all.
pub(super) fn say(effects: &[EffectFacts]) {
    for of in effects.iter().filter(|of| of.effect == 0.0 && of.is_found) {
        output::talk(&format!(
            "warning: {} differs by {} where nothing does: this machine was not quiet, or chance was at work (5 %)",
            of.metric,
            percent((of.ratio - 1.0).abs())
        ));
    }
    if let Some(least) = least_found(effects) {
        output::talk(&format!(
            "the least effect that was found: {} by {}, with {} pairs of trials of {} s",
            percent(least.effect),
            least.metric,
            least.pairs,
            short(least.trial_s)
        ));
    }
}

/// The least effect from which on, by one metric, all were found: a smaller one beside a larger one that was missed was
/// luck.
fn least_found(effects: &[EffectFacts]) -> Option<&EffectFacts> {
    let is_sure = |of: &&EffectFacts| {
        let mut larger =
            effects.iter().filter(|other| other.metric == of.metric && other.effect >= of.effect);
        of.effect > 0.0 && larger.all(|other| other.is_found)
    };
    effects.iter().filter(is_sure).min_by(|a, b| a.effect.total_cmp(&b.effect))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_core::Rng;
    use std::cell::{Cell, RefCell};

    /// A server whose transactions take a millisecond and 10 us for each unit of cost, with this noise.
    fn simulated(effects: &[f64], budget_s: f64, noise: f64, unit: CostUnit) -> Vec<EffectFacts> {
        let (clock, rng) = (Cell::new(0.0), RefCell::new(Rng::new(5, "effects", 0)));
        let mut measure = |cost: u64, seconds: f64| {
            clock.set(clock.get() + seconds);
            let mut rng = rng.borrow_mut();
            let mut spread = || 1.0 + noise * (rng.unit() + rng.unit() + rng.unit() - 1.5);
            let longer = 1e-3 + 1e-5 * cost as f64;
            Ok(Measured {
                tps: spread() / longer,
                cpu_us: Some(longer * 3e5 * (1.0 + (spread() - 1.0) / 10.0)),
            })
        };
        let elapsed_s = || clock.get();
        let session = EffectSession { budget_s, elapsed_s: &elapsed_s, measure: &mut measure };
        session.run(effects, unit).expect("a table")
    }

    #[test]
    fn known_effects_are_found_and_none_where_there_is_none() {
        for unit in [CostUnit::Seconds(1e-5), CostUnit::Unknown { probe: 200 }] {
            let found = simulated(&[0.02, 0.05], 240.0, 0.01, unit);
            assert_eq!(found.len(), 6, "three arms of two metrics");
            for of in &found {
                assert_eq!(of.is_found, of.effect > 0.0, "{of:?}");
                assert!(of.pairs >= 3 && of.pairs <= 60, "{of:?}");
            }
            assert!((found[2].effect - 0.02).abs() < 0.002, "{found:?}");
            assert!((found[2].ratio - 0.98).abs() < 0.01, "{found:?}");
        }
    }

    #[test]
    fn what_noise_hides_is_not_found_and_the_time_is_kept() {
        let found = simulated(&[0.01], 20.0, 0.5, CostUnit::Seconds(1e-5));
        let tps: Vec<_> = found.iter().filter(|of| of.metric == "tps").collect();
        assert!(tps.iter().all(|of| !of.is_found), "{tps:?}");
        // 20 s of trials of a third of a second each, three of which come before.
        assert!(
            (0.3..0.35).contains(&tps[0].trial_s) && tps[0].pairs + tps[1].pairs <= 30,
            "{tps:?}"
        );
        let table = table(&found);
        assert!(table.contains("none") && table.contains("server_cpu_us"), "{table}");
    }

    #[test]
    fn a_delay_is_not_found_as_faster() {
        for (effect, verdict, expected) in [
            (0.02, RatioVerdict::Slower, true),
            (0.02, RatioVerdict::Faster, false),
            (0.02, RatioVerdict::Undecided, false),
            (0.0, RatioVerdict::Slower, true),
            (0.0, RatioVerdict::Faster, true),
        ] {
            assert_eq!(is_found(effect, verdict), expected, "{effect} {verdict:?}");
        }
    }

    #[test]
    fn the_least_effect_is_one_from_which_on_all_were_found() {
        let of = |metric: &str, effect: f64, is_found: bool| EffectFacts {
            effect,
            metric: metric.to_owned(),
            is_found,
            ..EffectFacts::default()
        };
        let least = |effects: &[EffectFacts]| {
            least_found(effects).map(|least| (least.metric.clone(), least.effect))
        };
        // Noise is no effect, and 1 % was luck: 2 % was missed.
        let tps = [
            of("tps", 0.0, true),
            of("tps", 0.01, true),
            of("tps", 0.02, false),
            of("tps", 0.05, true),
        ];
        assert_eq!(least(&tps), Some(("tps".to_owned(), 0.05)));
        let both = [&tps[..], &[of("server_cpu_us", 0.02, true)]].concat();
        assert_eq!(least(&both), Some(("server_cpu_us".to_owned(), 0.02)));
        assert_eq!(least(&[of("tps", 0.01, true), of("tps", 0.05, false)]), None);
    }

    #[test]
    fn a_cost_that_takes_no_time_is_an_error() {
        let mut measure = |_, _| Ok(Measured { tps: 100.0, cpu_us: None });
        let session = EffectSession { budget_s: 1.0, elapsed_s: &|| 0.0, measure: &mut measure };
        let failure = session.run(&[0.01], CostUnit::Unknown { probe: 10 }).expect_err("no time");
        assert!(failure.message.to_string().contains("can't be measured"), "{failure:?}");
    }
}
