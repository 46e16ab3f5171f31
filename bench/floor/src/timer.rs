//! The loop without connections: it waits for due times as an open loop does, and notes how late it is for each.

use io_uring::IoUring;
use io_uring::types::{SubmitArgs, Timespec};
use rustix::io::Errno;
use std::io;
use std::time::{Duration, Instant};

/// How late the starts of a Poisson process with `rate_per_s` were over `length`: nanoseconds, sorted.
pub(crate) fn lateness_ns(rate_per_s: u32, length: Duration) -> io::Result<Vec<u64>> {
    let ring: IoUring = IoUring::builder().setup_single_issuer().setup_defer_taskrun().build(8)?;
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut gap = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let uniform = ((random >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        Duration::from_secs_f64(-uniform.ln() / f64::from(rate_per_s))
    };
    let mut late = Vec::with_capacity(rate_per_s as usize * (length.as_secs() as usize + 1));
    let mut due = Instant::now() + gap();
    let end = due + length;
    let mut now = Instant::now();
    while due < end {
        while now < due {
            let timeout = Timespec::from(due - now);
            match ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&timeout)) {
                Err(error) if error.raw_os_error() != Some(Errno::TIME.raw_os_error()) => {
                    return Err(error);
                }
                _ => now = Instant::now(),
            }
        }
        late.push((now - due).as_nanos() as u64);
        due += gap();
        now = Instant::now();
    }
    late.sort_unstable();
    Ok(late)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_due_time_is_waited_for() {
        let late = lateness_ns(1_000, Duration::from_millis(300)).unwrap();
        assert!((200..=400).contains(&late.len()), "{}", late.len());
        assert!(late.is_sorted() && late.last() > Some(&0));
    }
}
