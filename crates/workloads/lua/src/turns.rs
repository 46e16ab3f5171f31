//! When a worker that only computes lets the other workers of its loop have their turn.

use dyno_core::{MILLISECOND, Nanos};

/// How long it keeps its loop. A turn of the loop costs one or two microseconds.
const TURN: Nanos = MILLISECOND / 20;
/// Most events between two looks at the clock, which cost as much as a tenth of an empty event.
const MOST_EVENTS: u32 = 16;

#[derive(Debug)]
pub(crate) struct Turns {
    /// Events since the worker last waited for something, or looked at the clock.
    events: u32,
    /// Events until it looks again: as many as take half a turn.
    patience: u32,
    looked: Nanos,
    /// When others last had their turn.
    turned: Nanos,
}

impl Default for Turns {
    fn default() -> Self {
        Turns { events: 0, patience: MOST_EVENTS, looked: 0, turned: 0 }
    }
}

impl Turns {
    /// Others have had their turn.
    #[inline]
    pub(crate) fn waited(&mut self) {
        (self.events, self.patience) = (0, MOST_EVENTS);
    }

    /// An event begins: true when the others have waited for this worker for long.
    #[inline]
    pub(crate) fn has_held_up(&mut self, clock: impl FnOnce() -> Nanos) -> bool {
        self.events += 1;
        self.events >= self.patience && self.look(clock())
    }

    fn look(&mut self, now: Nanos) -> bool {
        let taken = now.saturating_sub(self.looked).max(1);
        let patience = u64::from(self.events) * (TURN / 2) / taken;
        self.patience = patience.clamp(1, u64::from(MOST_EVENTS)) as u32;
        (self.events, self.looked) = (0, now);
        let is_long = now.saturating_sub(self.turned) >= TURN;
        if is_long {
            self.turned = now;
        }
        is_long
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks at the clock and turns in 100 ms of events of this length.
    fn looks_and_turns(event: Nanos) -> (u64, u64) {
        let mut turns = Turns::default();
        let (mut looks, mut held_up) = (0, 0);
        let mut now = 0;
        while now < 100 * MILLISECOND {
            now += event;
            held_up += u64::from(turns.has_held_up(|| {
                looks += 1;
                now
            }));
        }
        (looks, held_up)
    }

    #[test]
    fn others_have_their_turn_however_long_an_event_is() {
        let (looks, turns) = looks_and_turns(300);
        assert!(looks <= 100_000_000 / 300 / 16 + 1, "{looks}: the clock has its price");
        assert!((1_500..=2_000).contains(&turns), "{turns}");
        // An event of a loop in Lua: 16 of them would be a sixth of a millisecond.
        let (_, turns) = looks_and_turns(MILLISECOND / 100);
        assert!((1_000..=2_000).contains(&turns), "{turns}");
        assert!(looks_and_turns(MILLISECOND).1 >= 80);
    }

    #[test]
    fn a_worker_that_waits_never_looks() {
        let mut turns = Turns::default();
        for _ in 0..100 {
            assert!(!turns.has_held_up(|| unreachable!("no look")));
            turns.waited();
        }
    }
}
