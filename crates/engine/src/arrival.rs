//! Due times of transactions.

use dyno_core::{Nanos, Rng, SECOND};

/// The arrivals of one loop, as a Poisson process or at even gaps. A free worker takes the next arrival and waits for
/// it; when all are busy, arrivals wait in time order and keep their due times.
#[derive(Debug)]
pub struct Schedule {
    /// `None` for even gaps.
    rng: Option<Rng>,
    mean_gap: f64,
    next: f64,
    /// Earlier arrivals are warm-up.
    opens: Nanos,
    /// Later arrivals are not offered.
    ends: Nanos,
    offered: u64,
}

impl Schedule {
    /// Poisson arrivals at `rate_per_s` (this loop's share), the first one a gap after `released`.
    pub fn new(rng: Rng, rate_per_s: f64, released: Nanos, opens: Nanos) -> Self {
        let mut schedule = Schedule {
            rng: Some(rng),
            mean_gap: SECOND as f64 / rate_per_s,
            next: released as f64,
            opens,
            ends: Nanos::MAX,
            offered: 0,
        };
        schedule.advance();
        schedule
    }

    /// Arrivals at even gaps, the first one `lead` gaps after `released`, 0 to 1: loops that share a rate take turns.
    pub fn even(lead: f64, rate_per_s: f64, released: Nanos, opens: Nanos) -> Self {
        let mean_gap = SECOND as f64 / rate_per_s;
        let next = released as f64 + lead * mean_gap;
        Schedule { rng: None, mean_gap, next, opens, ends: Nanos::MAX, offered: 0 }
    }

    fn advance(&mut self) {
        self.next += match &mut self.rng {
            Some(rng) => rng.exponential(self.mean_gap),
            None => self.mean_gap,
        };
    }

    /// Takes the next arrival; returns its due time.
    #[inline]
    pub fn take(&mut self) -> Nanos {
        let due = self.next as Nanos;
        if due >= self.opens {
            self.offered += 1;
        }
        self.advance();
        due
    }

    /// Takes back the arrival for `due` and all later ones: all wanted transactions have begun.
    pub fn refuse(&mut self, due: Nanos) {
        self.ends = self.ends.min(due);
        if due >= self.opens {
            self.offered = self.offered.saturating_sub(1);
        }
    }

    /// Arrivals, taken or not, in the window that closes at `closes`. `waiting`: taken arrivals due at or after `closes`.
    pub fn offered(mut self, closes: Nanos, waiting: u64) -> u64 {
        while (self.next as Nanos) < closes.min(self.ends) {
            self.take();
        }
        self.offered.saturating_sub(waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_core::MILLISECOND;

    #[test]
    fn arrivals_come_at_the_rate_and_in_order() {
        let mut schedule = Schedule::new(Rng::new(1, "arrival", 0), 1_000.0, SECOND, SECOND);
        let due: Vec<_> = (0..10_000).map(|_| schedule.take()).collect();
        assert!(due.is_sorted());
        let seconds = (due[9_999] - SECOND) as f64 / SECOND as f64;
        // 10,000 exponential gaps: 10 s with a standard deviation of 0.1 s.
        assert!((9.6..10.4).contains(&seconds), "{seconds}");
    }

    #[test]
    fn even_arrivals_of_two_loops_take_turns() {
        let mut loops = [0.0, 0.5].map(|lead| Schedule::even(lead, 10.0, SECOND, SECOND));
        let due: Vec<_> = (0..6).map(|at| loops[at % 2].take() / MILLISECOND).collect();
        assert_eq!(due, [1_000, 1_050, 1_100, 1_150, 1_200, 1_250]);
        let [first, second] = loops;
        assert_eq!(first.offered(2 * SECOND, 0) + second.offered(2 * SECOND, 0), 20);
    }

    #[test]
    fn offered_counts_the_window_only() {
        let schedule = Schedule::new(Rng::new(1, "arrival", 0), 1_000.0, 0, 2 * SECOND);
        let offered = schedule.offered(12 * SECOND, 0);
        assert!((9_600..10_400).contains(&offered), "{offered}");
        let mut taken = Schedule::new(Rng::new(1, "arrival", 0), 1_000.0, 0, 2 * SECOND);
        let mut waiting = 0;
        while waiting == 0 {
            waiting = u64::from(taken.take() >= 12 * SECOND);
        }
        assert_eq!(taken.offered(12 * SECOND, waiting), offered);
    }
}
