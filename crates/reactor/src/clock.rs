//! The two clocks of a loop.

use dyno_core::Nanos;
use rustix::time::{ClockId, clock_gettime};

/// The time of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// CLOCK_MONOTONIC, the same on all loops of the machine.
    Monotonic,
    /// Starts at 0 and jumps to the next due time when no task can run, without file descriptors.
    Virtual,
}

/// CLOCK_MONOTONIC in nanoseconds. Inside tasks use [`crate::now`], which follows the loop's clock.
#[inline]
pub fn monotonic_now() -> Nanos {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
