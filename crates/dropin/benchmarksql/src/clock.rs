//! The wall clock beside the clock of the loops.

use dyno_core::Nanos;
use dyno_reactor::monotonic_now;
use time::{Duration, OffsetDateTime, UtcOffset};

/// Tells local time of any moment of the run.
#[derive(Clone, Copy, Debug)]
pub(super) struct WallClock {
    /// When the clock of the loops was 0, in local time.
    zero: OffsetDateTime,
}

impl WallClock {
    /// Reads both clocks. To be called before there are other threads: with them the zone can't be
    /// read, and times are UTC.
    pub(super) fn read() -> Self {
        let offset = UtcOffset::current_local_offset().unwrap_or(UtcOffset::UTC);
        let now = OffsetDateTime::now_utc().to_offset(offset);
        WallClock { zero: now - Duration::nanoseconds(monotonic_now() as i64) }
    }

    /// Local time at a moment of the loops' clock.
    pub(super) fn at(&self, moment: Nanos) -> OffsetDateTime {
        self.zero + Duration::nanoseconds(moment as i64)
    }

    pub(super) fn now(&self) -> OffsetDateTime {
        self.at(monotonic_now())
    }
}
