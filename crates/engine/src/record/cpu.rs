//! CPU time of this process and its threads.

use dyno_core::Nanos;
use rustix::time::{ClockId, clock_gettime};

pub fn thread_cpu() -> Nanos {
    nanos_of(ClockId::ThreadCPUTime)
}

/// CPU time of this process, all its threads together, in nanoseconds.
pub fn process_cpu() -> Nanos {
    nanos_of(ClockId::ProcessCPUTime)
}

fn nanos_of(clock: ClockId) -> Nanos {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
