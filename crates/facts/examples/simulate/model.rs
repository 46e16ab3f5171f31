//! Sessions of trials whose truth is known.

use dyno_core::Rng;
use dyno_facts::statistics::Better;
use dyno_facts::statistics::history::{self, PlacedFigure};
use dyno_facts::statistics::knee::{self, KneeOutcome, KneeStep, Search, TestedRate};
use dyno_facts::statistics::order;
use dyno_facts::statistics::ratio::{
    DEFAULT_MARGIN, Judging, PairedRatio, RatioVerdict, unit_means,
};
use dyno_facts::statistics::sequential::{CandidatePairs, NextPair, StoppingPlan, decide};

/// Variation of single trials.
pub(crate) const NOISE: f64 = 0.015;

/// A fault of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum World {
    Quiet,
    /// Everything becomes 5% faster while the session lasts.
    Drift,
    /// Successive trials depend on each other: AR(1) with 0.5.
    Dependent,
    /// The second trial of each pair loses 2%.
    SecondLoses,
    /// 5% of the trials run at 3 to 50% of their speed.
    Starved,
    /// Starved trials, repeated up to twice if the load generator's own conditions call them starved: these
    /// find nine of ten, and one in a hundred that was not starved.
    StarvedRetried,
    /// Noise by Student's t with two degrees of freedom.
    HeavyTails,
    /// Half of the trials are 6% slower.
    Bimodal,
    /// Two targets share a machine: in each second a random one loses 0 to 20%.
    Steals,
    /// Like `Steals`, but each loss lasts one to five seconds, and an idle second starts one with probability 0.1.
    Bursts,
}

impl World {
    pub(crate) const ALL: [(World, &'static str); 8] = [
        (World::Quiet, "no drift"),
        (World::Drift, "5% drift"),
        (World::Dependent, "AR(1) 0.5"),
        (World::SecondLoses, "second loses 2%"),
        (World::Starved, "5% starved"),
        (World::StarvedRetried, "5% starved, retried"),
        (World::HeavyTails, "heavy tails"),
        (World::Bimodal, "bimodal"),
    ];
    /// Machines on which both targets are measured concurrently, second by second.
    pub(crate) const TOGETHER: [(World, &'static str); 5] = [
        (World::Quiet, "quiet"),
        (World::Drift, "5% drift"),
        (World::HeavyTails, "heavy tails"),
        (World::Steals, "interference"),
        (World::Bursts, "bursts of interference"),
    ];
}

pub(crate) struct Session {
    pub(crate) rng: Rng,
    pub(crate) seed: u64,
    pub(crate) world: World,
    /// The length of the blocks in which orders are drawn: 0 for none, the fewest pairs in dyno.
    pub(crate) block: usize,
    /// Variation of single trials of baseline and candidate.
    pub(crate) noise: [f64; 2],
    /// The candidate's true ratio.
    pub(crate) ratio: f64,
    /// The fewest and the most pairs.
    pub(crate) planned: [usize; 2],
    pub(crate) place: usize,
    pub(crate) last: f64,
    /// Pairs that share a start of both servers, and how much each server varies from start to start.
    pub(crate) starts: (usize, f64),
    /// Effects of the present starts on baseline and candidate.
    pub(crate) started: [f64; 2],
    /// Intervals that a burst still lasts.
    pub(crate) burst: u32,
}

impl Session {
    pub(crate) fn new(seed: u64, world: World, planned: [usize; 2]) -> Session {
        let rng = Rng::new(seed, "session", 0);
        let noise = [NOISE; 2];
        Session {
            rng,
            seed,
            world,
            block: planned[0],
            noise,
            ratio: 1.0,
            planned,
            place: 0,
            last: 0.0,
            starts: (1, 0.0),
            started: [0.0; 2],
            burst: 0,
        }
    }

    /// Pairs of `starts` starts of both servers, `each` of each start; `deviation` is how much a start varies.
    pub(crate) fn with_starts(
        seed: u64,
        (starts, each): (usize, usize),
        deviation: f64,
    ) -> Session {
        let session = Session::new(seed, World::Quiet, [starts * each; 2]);
        Session { starts: (each, deviation), ..session }
    }

    pub(crate) fn draw_normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.rng.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.rng.unit()).cos()
    }

    fn draw_noise(&mut self, deviation: f64) -> f64 {
        let normal = self.draw_normal();
        match self.world {
            World::Dependent => {
                self.last = 0.5 * self.last + 0.75_f64.sqrt() * normal;
                deviation * self.last
            }
            World::HeavyTails => {
                let square = self.rng.exponential(2.0);
                deviation * normal / (square / 2.0).sqrt()
            }
            World::Bimodal if self.rng.unit() < 0.5 => deviation * normal - 0.06,
            _ => deviation * normal,
        }
    }

    /// The share of its speed that a trial keeps, after the repeats that its world makes.
    fn starvation(&mut self) -> f64 {
        let tries = match self.world {
            World::Starved => 1,
            World::StarvedRetried => 3,
            _ => return 1.0,
        };
        let mut share = 1.0;
        for _ in 0..tries {
            let is_starved = self.rng.unit() < 0.05;
            share = if is_starved { 0.03 + 0.47 * self.rng.unit() } else { 1.0 };
            let is_seen = self.rng.unit() < if is_starved { 0.9 } else { 0.01 };
            if !is_seen {
                break;
            }
        }
        share
    }

    fn run_trial(&mut self, is_candidate: bool, is_second: bool) -> f64 {
        let time = self.place as f64 / (2 * self.planned[1]) as f64;
        self.place += 1;
        let drift = if self.world == World::Drift { 0.05 * time } else { 0.0 };
        let second = if is_second && self.world == World::SecondLoses { 0.98 } else { 1.0 };
        let level = if is_candidate { self.ratio } else { 1.0 };
        let noise = self.draw_noise(self.noise[usize::from(is_candidate)]);
        let noise = noise + self.started[usize::from(is_candidate)];
        10_000.0 * level * second * (1.0 + drift) * self.starvation() * noise.exp()
    }

    fn is_swapped(&mut self, number: usize) -> bool {
        match self.block {
            0 => self.rng.unit() < 0.5,
            block => order::balanced(2, block, number, self.seed)[0] == 1,
        }
    }

    pub(crate) fn run_pair(&mut self, number: usize) -> (f64, f64) {
        let (each, deviation) = self.starts;
        if deviation > 0.0 && number.is_multiple_of(each) {
            self.started = [(); 2].map(|()| deviation * self.draw_normal());
        }
        self.interfere();
        let is_swapped = self.is_swapped(number);
        let first = self.run_trial(is_swapped, false);
        let second = self.run_trial(!is_swapped, true);
        if is_swapped { (second, first) } else { (first, second) }
    }

    /// Draws the loss of one target to the other one.
    fn interfere(&mut self) {
        let begins = match self.world {
            World::Steals => true,
            World::Bursts => self.burst == 0 && self.rng.unit() < 0.1,
            _ => return,
        };
        if begins {
            self.burst = 1 + (5.0 * self.rng.unit()) as u32;
            self.started = [0.0; 2];
            self.started[usize::from(self.rng.unit() < 0.5)] = -0.2 * self.rng.unit();
        } else if self.burst == 0 {
            self.started = [0.0; 2];
        }
        self.burst = self.burst.saturating_sub(1);
    }

    /// The fewest pairs that are planned.
    pub(crate) fn fixed(mut self) -> Vec<(f64, f64)> {
        (0..self.planned[0]).map(|number| self.run_pair(number)).collect()
    }

    /// Pairs of a fixed number, each with the number of its start.
    pub(crate) fn units(self) -> Vec<(u32, (f64, f64))> {
        let pairs_per_start = self.starts.0;
        let with_start =
            |(number, pair): (usize, (f64, f64))| ((number / pairs_per_start) as u32, pair);
        self.fixed().into_iter().enumerate().map(with_start).collect()
    }

    /// Returns whether successive trials depend on each other, drift, and lose as second of a pair, as the checks of
    /// papers find it.
    pub(crate) fn history(mut self) -> [bool; 3] {
        let (mut figures, mut ratios) = (Vec::new(), Vec::new());
        for number in 0..self.planned[0] {
            let is_swapped = self.is_swapped(number);
            let (baseline, candidate) = self.run_pair(number);
            let logs = [baseline, candidate].map(f64::ln);
            let order = if is_swapped { [1, 0] } else { [0, 1] };
            figures.extend(order.map(|group| PlacedFigure { group, log: logs[group] }));
            let ratio = PlacedFigure { group: 0, log: logs[1] - logs[0] };
            ratios.push((ratio, !is_swapped));
        }
        let marks = [
            history::lag1(&figures, self.seed),
            history::drift(&figures, self.seed),
            history::second_of_pair(&ratios, self.seed),
        ];
        let test_count = marks.iter().flatten().count() as f64;
        marks.map(|mark| mark.is_some_and(|mark| mark.p <= history::FAMILY_ALPHA / test_count))
    }

    /// Pairs until the plan ends them.
    pub(crate) fn run_until_stopped(mut self, plan: &StoppingPlan) -> Vec<(f64, f64)> {
        self.after(plan, Vec::new()).pairs
    }

    /// Pairs of a session that continues others: these count, and it makes at least one pair.
    fn after(&mut self, plan: &StoppingPlan, earlier: Vec<Vec<(f64, f64)>>) -> CandidatePairs {
        let min_pairs = if earlier.is_empty() { plan.pairs_least } else { 1 };
        let mut candidates = [CandidatePairs { earlier, ..CandidatePairs::default() }];
        while candidates[0].pairs.len() < min_pairs
            || decide(plan, &candidates, 0.0, 0.0).next == NextPair::Continue
        {
            let pair = self.run_pair(candidates[0].pairs.len());
            candidates[0].pairs.push(pair);
        }
        let [candidate] = candidates;
        candidate
    }
}

/// Simulates concurrent trials of `unit` seconds each, and returns their verdict and the seconds that they took. They
/// end at `half_width`, or without one at a verdict.
pub(crate) fn together(
    seed: u64,
    (world, ratio): (World, f64),
    unit: usize,
    half_width: Option<f64>,
) -> (RatioVerdict, usize) {
    const LEAST: usize = 40;
    const MOST: usize = 300;
    let plan = plan([LEAST / unit, MOST / unit], half_width);
    let mut session = Session::new(seed, world, [LEAST, MOST]);
    (session.noise, session.ratio) = ([0.03; 2], ratio);
    let mut pairs = Vec::new();
    loop {
        let batch = unit.max(5);
        pairs.extend((pairs.len()..pairs.len() + batch).map(|number| session.run_pair(number)));
        if pairs.len() < LEAST {
            continue;
        }
        let numbered: Vec<(u32, (f64, f64))> =
            (0..).zip(&pairs).map(|(at, pair)| (at / unit as u32, *pair)).collect();
        let candidate =
            CandidatePairs { pairs: unit_means(&numbered), ..CandidatePairs::default() };
        let is_over =
            decide(&plan, std::slice::from_ref(&candidate), 0.0, 0.0).next != NextPair::Continue;
        if is_over {
            return (verdict(&candidate.pairs, plan.judging()), pairs.len());
        }
    }
}

/// The verdict of `count` sessions, each of which continues with those before it unless they have decided.
pub(crate) fn chained(seed: u64, world: World, plan: &StoppingPlan, count: u64) -> RatioVerdict {
    let mut earlier = Vec::new();
    for number in 0..count {
        // Each has its own seed, like the sessions of a continued run.
        let session =
            Session::new((number << 40) + seed, world, [plan.pairs_least, plan.pairs_most]);
        let candidate =
            Session { noise: [NOISE * (1.0 + number as f64); 2], ..session }.after(plan, earlier);
        let ratio = PairedRatio::from_pairs(&candidate.pairs, Judging::Anytime).expect("pairs");
        let ratio = if candidate.earlier.is_empty() {
            ratio
        } else {
            ratio.continued(&candidate.earlier, &candidate.pairs)
        };
        let verdict = ratio.verdict(Better::More, DEFAULT_MARGIN);
        if verdict != RatioVerdict::Undecided || number + 1 == count {
            return verdict;
        }
        earlier = [candidate.earlier, vec![candidate.pairs]].concat();
    }
    RatioVerdict::Undecided
}

/// Trials of one target, one after the other.
pub(crate) fn simulate_trials(session: &mut Session, count: usize) -> Vec<f64> {
    (0..count).map(|_| session.run_trial(false, false)).collect()
}

/// Returns true if a search ends below 90% of the capacity when 5% of the trials fail for unrelated reasons.
pub(crate) fn knee_is_low(seed: u64) -> bool {
    const CAPACITY: f64 = 10_000.0;
    let mut rng = Rng::new(seed, "knee", 0);
    let search = Search::from(CAPACITY * (0.3 + 0.4 * rng.unit()));
    let mut tested_rates = Vec::new();
    loop {
        let (rate_per_s, is_confirmation) = match knee::next(&search, &tested_rates) {
            KneeStep::Search { rate_per_s } => (rate_per_s, false),
            KneeStep::Confirm { rate_per_s, .. } => (rate_per_s, true),
            KneeStep::Done(KneeOutcome::Held { rate_per_s, .. }) => {
                return rate_per_s < 0.9 * CAPACITY;
            }
            KneeStep::Done(_) => return true,
        };
        let is_held = rate_per_s <= CAPACITY && rng.unit() >= 0.05;
        tested_rates.push(TestedRate { rate_per_s, is_confirmation, is_held });
    }
}

/// A plan of pairs that end at a half-width, or without one at a verdict.
pub(crate) fn plan(planned: [usize; 2], half_width: Option<f64>) -> StoppingPlan {
    StoppingPlan {
        pairs_least: planned[0],
        pairs_most: planned[1],
        half_width,
        is_until_decided: half_width.is_none(),
        comparisons: 1,
        margin: DEFAULT_MARGIN,
        budget_s: None,
    }
}

/// The verdict of pairs on a metric of which more is better.
pub(crate) fn verdict(pairs: &[(f64, f64)], judging: Judging) -> RatioVerdict {
    let ratio = PairedRatio::from_pairs(pairs, judging).expect("pairs");
    ratio.verdict(Better::More, DEFAULT_MARGIN)
}

pub(crate) fn is_difference(verdict: RatioVerdict) -> bool {
    matches!(verdict, RatioVerdict::Faster | RatioVerdict::Slower)
}

/// Frequency of an event, and the upper end of its 95% interval (Wilson's).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    pub(crate) estimate: f64,
    pub(crate) upper: f64,
}

/// Returns how often an event occurs with the seeds from 0 to `count`.
pub(crate) fn share(count: u64, mut occurs: impl FnMut(u64) -> bool) -> Share {
    let n = count as f64;
    let estimate = (0..count).filter(|seed| occurs(*seed)).count() as f64 / n;
    let z = 1.96_f64;
    let spread = z * (estimate * (1.0 - estimate) / n + z * z / (4.0 * n * n)).sqrt();
    let upper = (estimate + z * z / (2.0 * n) + spread) / (1.0 + z * z / n);
    Share { estimate, upper }
}
