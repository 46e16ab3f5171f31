//! Due times of transactions.

use crate::TrialSpec;
use crate::record::Window;
use dyno_core::{Nanos, Rng, SECOND};
use std::sync::atomic::{AtomicU64, Ordering};

/// Steps of a nanosecond in which Poisson arrivals are kept, so that rounding doesn't change the rate: enough for 200
/// days.
const STEPS: u32 = 10;

/// More arrivals in one interval are estimated, with an error below one in a thousand.
const COUNTED_ARRIVALS: f64 = 1e6;

/// One queue of due times, a Poisson process or at even gaps, that the workers of all loops take from.
///
/// A free worker takes the next arrival and waits for it; when all are busy, arrivals wait in time order and keep their
/// due times. So an arrival waits only while all workers are busy, however many loops there are. Each due time follows
/// from the one before and the seed alone: the queue is one number, exchanged atomically, and the same arrivals come
/// whoever takes them.
#[derive(Debug)]
pub(crate) struct Schedule {
    gaps: Gaps,
    mean_gap: f64,
    /// Poisson: the next due time in steps after `released`. Even gaps: the number of the next arrival.
    next: AtomicU64,
    released: Nanos,
    /// Earlier arrivals are warm-up.
    opens: Nanos,
    /// Later arrivals are not offered.
    ends: AtomicU64,
}

#[derive(Clone, Copy, Debug)]
enum Gaps {
    Poisson {
        key: u64,
    },
    /// The first arrival comes `lead` gaps after the release, 0 to 1.
    Even {
        lead: f64,
    },
}

impl Schedule {
    /// Poisson arrivals at `rate_per_s`, the first one a gap after the release.
    fn poisson(key: u64, rate_per_s: f64, window: Window) -> Self {
        let mut schedule = Schedule::new(Gaps::Poisson { key }, rate_per_s, window);
        schedule.next = AtomicU64::new(schedule.after(0));
        schedule
    }

    /// Arrivals at even gaps: load generators that share a rate take turns.
    fn even(lead: f64, rate_per_s: f64, window: Window) -> Self {
        Schedule::new(Gaps::Even { lead }, rate_per_s, window)
    }

    fn new(gaps: Gaps, rate_per_s: f64, window: Window) -> Self {
        Schedule {
            gaps,
            mean_gap: SECOND as f64 / rate_per_s,
            next: AtomicU64::new(0),
            released: window.released,
            opens: window.opens,
            ends: AtomicU64::new(Nanos::MAX),
        }
    }

    /// The part of `next` after `place`.
    #[inline]
    fn after(&self, place: u64) -> u64 {
        let gap = match self.gaps {
            Gaps::Poisson { key } => {
                let steps = self.mean_gap * f64::from(1_u32 << STEPS);
                let gap = -steps * (1.0 - Rng::unit_at(key, place)).ln();
                // A gap of nothing would be followed by itself for ever.
                gap.round().max(1.0) as u64
            }
            Gaps::Even { .. } => 1,
        };
        place.saturating_add(gap)
    }

    /// Time at which the arrival with this number comes due.
    #[inline]
    fn due(&self, place: u64) -> Nanos {
        self.released.saturating_add(match self.gaps {
            Gaps::Poisson { .. } => place >> STEPS,
            Gaps::Even { lead } => ((lead + place as f64) * self.mean_gap) as Nanos,
        })
    }

    /// Takes the next arrival; returns its due time.
    #[inline]
    pub(crate) fn take_next(&self) -> Nanos {
        let mut place = self.next.load(Ordering::Relaxed);
        loop {
            let after = self.after(place);
            let exchanged =
                self.next.compare_exchange_weak(place, after, Ordering::Relaxed, Ordering::Relaxed);
            match exchanged {
                Ok(_) => return self.due(place),
                Err(other) => place = other,
            }
        }
    }

    /// Returns true for an arrival in the window, as far as its begin is concerned.
    #[inline]
    pub(crate) fn is_offered(&self, due: Nanos) -> bool {
        due >= self.opens
    }

    /// Arrivals at `due` and later are not offered: all wanted transactions have begun.
    pub(crate) fn refuse(&self, due: Nanos) {
        self.ends.fetch_min(due, Ordering::Relaxed);
    }

    /// Takes the arrivals left in the window that closes at `closes`; returns their number.
    pub(crate) fn untaken(&self, closes: Nanos) -> u64 {
        self.take_until(self.opens);
        self.take_until(closes.min(self.ends.load(Ordering::Relaxed)))
    }

    /// Takes the arrivals before `until`; returns their number. Where the rate is beyond reach, they are estimated: to
    /// count each would outlast the trial.
    fn take_until(&self, until: Nanos) -> u64 {
        let next = self.next.load(Ordering::Relaxed);
        let expected = until.saturating_sub(self.due(next)) as f64 / self.mean_gap;
        if expected > COUNTED_ARRIVALS {
            let since_release = until.saturating_sub(self.released);
            let place = match self.gaps {
                Gaps::Poisson { .. } => since_release << STEPS,
                Gaps::Even { lead } => (since_release as f64 / self.mean_gap - lead).ceil() as u64,
            };
            self.next.store(place, Ordering::Relaxed);
            return expected as u64;
        }
        let mut count = 0;
        while self.due(self.next.load(Ordering::Relaxed)) < until {
            self.take_next();
            count += 1;
        }
        count
    }
}

/// The queues of a trial over `loops` loops: one, or as many, or none without a rate.
pub(crate) fn schedules(spec: &TrialSpec, window: Window, loops: usize) -> Vec<Schedule> {
    let Some(rate) = spec.rate_per_s.filter(|_| spec.terminals.is_none()) else {
        return Vec::new();
    };
    let queues = if spec.rate_each_loop { loops.max(1) } else { 1 };
    let share = rate / queues as f64;
    let schedules = (0..queues).map(|queue| {
        let before = f64::from(spec.share.workers_before) / f64::from(spec.all_workers().max(1));
        if spec.even_rate {
            let lead = (before + queue as f64 / queues as f64).fract();
            return Schedule::even(lead, share, window);
        }
        // Load generators have other workers before them, so that no two draw the same.
        let number = u64::from(spec.share.workers_before) << 32 | queue as u64;
        let key = Rng::new(spec.seed, "arrival", number).next_u64();
        Schedule::poisson(key, share, window)
    });
    schedules.collect()
}

/// The arrivals of a trial with a rate, counted as they come due: the same ones that its workers take.
#[derive(Debug)]
pub struct DueArrivals {
    queues: Vec<Schedule>,
    /// Nothing comes due from then on.
    ends: Nanos,
    due: u64,
}

impl DueArrivals {
    /// `None` for a closed loop and for terminals.
    pub fn new(spec: &TrialSpec) -> Option<Self> {
        let window = Window { released: 0, opens: 0, closes: Nanos::MAX, interval: SECOND };
        let queues = schedules(spec, window, spec.loops.unwrap_or(1) as usize);
        (!queues.is_empty()).then_some(DueArrivals { queues, ends: spec.ends(spec.warmup), due: 0 })
    }

    /// Number of arrivals due before `elapsed` nanoseconds since the release, which grow from call to call.
    pub fn count_due(&mut self, elapsed: Nanos) -> u64 {
        let end = elapsed.min(self.ends);
        self.due += self.queues.iter().map(|schedule| schedule.take_until(end)).sum::<u64>();
        self.due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_core::MILLISECOND;

    const WINDOW: Window =
        Window { released: SECOND, opens: SECOND, closes: 2 * SECOND, interval: SECOND };

    /// Due times of all arrivals of the first second, over all queues.
    fn arrivals(spec: &TrialSpec, loops: usize) -> Vec<Nanos> {
        let mut due_times = Vec::new();
        for schedule in schedules(spec, WINDOW, loops) {
            let due = std::iter::repeat_with(|| schedule.take_next());
            due_times.extend(due.take_while(|&due| due < 2 * SECOND));
        }
        due_times.sort_unstable();
        due_times
    }

    #[test]
    fn arrivals_come_at_the_rate_and_in_order() {
        let schedule = Schedule::poisson(7, 1_000.0, WINDOW);
        let due: Vec<_> = (0..10_000).map(|_| schedule.take_next()).collect();
        assert!(due.is_sorted() && due[0] > SECOND);
        let seconds = (due[9_999] - SECOND) as f64 / SECOND as f64;
        // 10,000 exponential gaps: 10 s with a standard deviation of 0.1 s.
        assert!((9.6..10.4).contains(&seconds), "{seconds}");
        let gaps: Vec<f64> = due.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        // Exponential: the deviation is the mean, and successive gaps know nothing of each other.
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.05, "{}", variance.sqrt() / mean);
        let products = gaps.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean));
        let covariance = products.sum::<f64>() / gaps.len() as f64;
        assert!((covariance / variance).abs() < 0.04, "{}", covariance / variance);
    }

    #[test]
    fn a_hopeless_rate_is_estimated() {
        for even_rate in [false, true] {
            let spec = TrialSpec { rate_per_s: Some(1e12), even_rate, ..TrialSpec::closed(1) };
            let schedule = &schedules(&spec, WINDOW, 1)[0];
            schedule.take_next();
            let untaken = schedule.untaken(2 * SECOND) as f64;
            assert!((untaken / 1e12 - 1.0).abs() < 1e-3, "{untaken}");
            assert!(schedule.take_next() >= 2 * SECOND, "none is taken twice");
        }
    }

    #[test]
    fn a_fast_rate_is_kept_although_times_are_whole_nanoseconds() {
        let schedule = Schedule::poisson(3, 50e6, WINDOW);
        let last = (0..1_000_000).map(|_| schedule.take_next()).last().unwrap();
        let mean = (last - SECOND) as f64 / 1e6;
        assert!((mean - 20.0).abs() < 0.1, "{mean}");
    }

    #[test]
    fn the_arrivals_are_the_same_whoever_takes_them() {
        for even_rate in [false, true] {
            let spec = TrialSpec {
                rate_per_s: Some(100_000.0),
                even_rate,
                seed: 5,
                ..TrialSpec::closed(64)
            };
            let alone = arrivals(&spec, 1);
            assert!(alone == arrivals(&spec, 16));
            let schedule = schedules(&spec, WINDOW, 8).remove(0);
            let mut together: Vec<Nanos> = std::thread::scope(|scope| {
                let takers = (0..4).map(|_| {
                    scope.spawn(|| {
                        let due = std::iter::repeat_with(|| schedule.take_next());
                        due.take_while(|&due| due < 2 * SECOND).collect::<Vec<_>>()
                    })
                });
                let takers: Vec<_> = takers.collect();
                takers.into_iter().flat_map(|taker| taker.join().unwrap()).collect()
            });
            together.sort_unstable();
            assert!(together == alone);
        }
    }

    #[test]
    fn due_arrivals_are_those_that_workers_take() {
        let spec = TrialSpec { rate_per_s: Some(1_000.0), seed: 5, ..TrialSpec::closed(1) };
        let schedule = &schedules(&spec, WINDOW, 1)[0];
        let before = (0..)
            .take_while(|_| schedule.take_next() < WINDOW.released + 2 * SECOND)
            .count() as u64;
        let mut due = DueArrivals::new(&spec).unwrap();
        assert_eq!(due.count_due(0), 0);
        let half = due.count_due(SECOND);
        assert!(half.abs_diff(1_000) < 150, "{half}");
        assert_eq!(due.count_due(2 * SECOND), before);
        assert_eq!(
            due.count_due(10 * SECOND),
            due.count_due(20 * SECOND),
            "nothing after the duration"
        );
        assert!(DueArrivals::new(&TrialSpec::closed(1)).is_none());
    }

    #[test]
    fn a_queue_for_each_loop_has_its_share_of_the_rate() {
        for even_rate in [false, true] {
            let per_loop = TrialSpec {
                rate_per_s: Some(10_000.0),
                rate_each_loop: true,
                even_rate,
                ..TrialSpec::closed(10)
            };
            let counts: Vec<u64> = schedules(&per_loop, WINDOW, 4)
                .iter()
                .map(|queue| queue.untaken(2 * SECOND))
                .collect();
            assert_eq!(counts.len(), 4);
            assert!(counts.iter().all(|count| count.abs_diff(2_500) < 250), "{counts:?}");
            let is_equal = arrivals(&per_loop, 4) == arrivals(&per_loop, 1);
            assert_eq!(is_equal, even_rate, "loops at even gaps take turns");
        }
    }

    #[test]
    fn load_generators_share_a_rate() {
        let full = TrialSpec { rate_per_s: Some(1_000.0), ..TrialSpec::closed(10) };
        let poisson = arrivals_of_parts(&full);
        assert!((850..1_150).contains(&poisson.len()), "{}", poisson.len());
        assert!(count_equal(&poisson) < 3, "no two draw the same");
        let even = arrivals_of_parts(&TrialSpec { even_rate: true, ..full });
        assert_eq!((even.len(), count_equal(&even)), (1_000, 0));
    }

    /// The sorted arrivals of three load generators.
    fn arrivals_of_parts(spec: &TrialSpec) -> Vec<Nanos> {
        let parts = (0..3).filter_map(|n| spec.part(n, 3));
        let mut due_times: Vec<_> = parts.flat_map(|part| arrivals(&part, 2)).collect();
        due_times.sort_unstable();
        due_times
    }

    fn count_equal(due: &[Nanos]) -> usize {
        due.windows(2).filter(|pair| pair[0] == pair[1]).count()
    }

    #[test]
    fn even_arrivals_of_two_generators_take_turns() {
        let queues = [0.0, 0.5].map(|lead| Schedule::even(lead, 10.0, WINDOW));
        let due: Vec<_> = (0..6).map(|at| queues[at % 2].take_next() / MILLISECOND).collect();
        assert_eq!(due, [1_000, 1_050, 1_100, 1_150, 1_200, 1_250]);
        assert_eq!(queues.map(|queue| queue.untaken(2 * SECOND)), [7, 7]);
    }

    #[test]
    fn untaken_arrivals_are_those_of_the_window() {
        let window = Window { released: 0, opens: 2 * SECOND, ..WINDOW };
        let untaken = Schedule::poisson(1, 1_000.0, window).untaken(12 * SECOND);
        assert!((9_600..10_400).contains(&untaken), "{untaken}");
        let schedule = Schedule::poisson(1, 1_000.0, window);
        let offered =
            (0..5_000).filter(|_| schedule.is_offered(schedule.take_next())).count() as u64;
        assert_eq!(offered + schedule.untaken(12 * SECOND), untaken);
        let schedule = Schedule::poisson(1, 1_000.0, window);
        schedule.refuse(schedule.take_next());
        assert_eq!(schedule.untaken(12 * SECOND), 0);
    }
}
