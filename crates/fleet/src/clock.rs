//! The offset of another machine's clock.
//!
//! A question and its answer bound it: the other clock was read between them. Of several rounds, the one with the
//! shortest round trip counts.

use dyno_core::Nanos;
use std::time::{SystemTime, UNIX_EPOCH};

/// Nanoseconds since 1970.
pub(crate) fn calendar_now() -> i64 {
    let calendar = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    calendar.as_nanos().min(i64::MAX as u128) as i64
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Round {
    pub(crate) asked: Nanos,
    pub(crate) there: Nanos,
    pub(crate) calendar_there: i64,
    pub(crate) answered: Nanos,
    pub(crate) calendar_here: i64,
}

impl Round {
    fn trip(&self) -> Nanos {
        self.answered.saturating_sub(self.asked)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockOffset {
    /// The other monotonic clock minus the one here, nanoseconds.
    pub ahead: i64,
    /// The other calendar minus the one here, nanoseconds.
    pub calendar_ahead: i64,
    /// Half of the round trip: both are known to this many nanoseconds to either side.
    pub bound: Nanos,
}

impl ClockOffset {
    pub(crate) fn of(rounds: &[Round]) -> Option<ClockOffset> {
        let best = rounds.iter().min_by_key(|round| round.trip())?;
        let half = (best.trip() / 2) as i64;
        Some(ClockOffset {
            ahead: best.there as i64 - (best.asked as i64 + half),
            calendar_ahead: best.calendar_there - (best.calendar_here - half),
            bound: best.trip().div_ceil(2),
        })
    }

    /// A moment of the clock here on the other one.
    pub(crate) fn there(&self, here: Nanos) -> Nanos {
        here.saturating_add_signed(self.ahead)
    }

    /// The summand that moves times of the other clock to the one here.
    pub(crate) fn back(&self) -> i64 {
        self.ahead.saturating_neg()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(asked: Nanos, before: Nanos, trip: Nanos, ahead: i64) -> Round {
        let there = (asked + before).saturating_add_signed(ahead);
        let calendar_here = (asked + trip) as i64 + 1_000_000;
        let calendar_there = (asked + before) as i64 + 1_000_000 + ahead;
        Round { asked, there, calendar_there, answered: asked + trip, calendar_here }
    }

    #[test]
    fn the_shortest_round_trip_bounds_the_clock() {
        for ahead in [-5_000_000_i64, 0, 7_777_777_777] {
            let rounds = [
                round(10_000_000, 900, 1000, ahead),
                round(20_000_000, 10, 200, ahead),
                round(30_000_000, 5000, 5001, ahead),
            ];
            let clock = ClockOffset::of(&rounds).expect("there are rounds");
            assert_eq!(clock.bound, 100);
            assert!((clock.ahead - ahead).abs() <= 100, "{clock:?}");
            assert!((clock.calendar_ahead - ahead).abs() <= 100, "{clock:?}");
            let there = clock.there(123_456_789);
            assert_eq!(there.saturating_add_signed(clock.back()), 123_456_789);
        }
        assert_eq!(ClockOffset::of(&[]), None);
    }
}
