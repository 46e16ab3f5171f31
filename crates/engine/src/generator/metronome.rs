//! The load generator's own hiccups: a thread that asks to be woken every 10 ms and records how late it was. At 1,000
//! wake-ups a second it took 6 % of the CPU of a load that saturates a core; at 100 it takes 0.6 %.
//!
//! What makes it late (a busy or stolen CPU, a quota, a page that has to be read) makes the loops late
//! too, and would be taken for the server's latency. The idea is jHiccup's.

use crate::record::Latencies;
use dyno_core::{MILLISECOND, Nanos};
use rustix::thread::{ClockId, clock_nanosleep_absolute, set_current_timer_slack};
use rustix::time::{Timespec, clock_gettime};
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

const BEAT: Nanos = 10 * MILLISECOND;

/// A running metronome; it ends when dropped.
#[derive(Debug)]
pub(super) struct Metronome {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    stop: AtomicBool,
    beats: Mutex<Beats>,
}

#[derive(Debug)]
struct Beats {
    late: Latencies,
    /// When the next one is due.
    due: Nanos,
}

impl Metronome {
    /// Starts it; `None` when the system refuses a thread.
    pub(super) fn start() -> Option<Self> {
        let beats = Beats { late: Latencies::new(), due: now() + BEAT };
        let shared = Arc::new(Shared { stop: AtomicBool::new(false), beats: Mutex::new(beats) });
        let beating = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("metronome".to_owned());
        let thread = thread.spawn(move || beat(&beating)).ok()?;
        Some(Metronome { shared, thread: Some(thread) })
    }

    pub(super) fn restart(&self) {
        self.shared.beats().late.clear();
    }

    /// How late the beats since [`Metronome::restart`] were. A process that was stopped may ask before the metronome
    /// runs again: beats that are overdue count too.
    pub(super) fn late(&self) -> Latencies {
        let beats = self.shared.beats();
        let mut late = beats.late.clone();
        record(&mut late, beats.due, now());
        late
    }
}

impl Shared {
    fn beats(&self) -> MutexGuard<'_, Beats> {
        self.beats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Metronome {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It ends within a beat, and has nothing that could panic.
            let _ = thread.join();
        }
    }
}

fn beat(shared: &Shared) {
    // Without it the kernel may be 50 us late to save energy. Where that is refused, the hiccups are
    // so much larger.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    let mut due = shared.beats().due;
    while !shared.stop.load(Ordering::Relaxed) {
        let at = Timespec {
            tv_sec: (due / 1_000_000_000) as i64,
            tv_nsec: (due % 1_000_000_000) as i64,
        };
        // A signal wakes it early: then it sleeps again.
        let _ = clock_nanosleep_absolute(ClockId::Monotonic, &at);
        let woke = now();
        if woke >= due {
            let mut beats = shared.beats();
            due = record(&mut beats.late, due, woke);
            beats.due = due;
        }
    }
}

/// Records the beats from `due` until now; those that were slept through are late as well. Returns
/// when the next one is due.
fn record(late: &mut Latencies, mut due: Nanos, woke: Nanos) -> Nanos {
    while due <= woke {
        late.record(woke - due);
        due += BEAT;
    }
    due
}

fn now() -> Nanos {
    let time = clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beats_that_were_slept_through_are_late_too() {
        let mut late = Latencies::new();
        assert_eq!(record(&mut late, 10 * BEAT, 10 * BEAT + 7), 11 * BEAT);
        assert_eq!((late.count(), late.max()), (1, 7));
        // 3.5 ms late: four beats have passed.
        assert_eq!(record(&mut late, 11 * BEAT, 14 * BEAT + BEAT / 2), 15 * BEAT);
        assert_eq!(late.count(), 5);
        let largest = late.max() as f64 / (3.5 * BEAT as f64);
        assert!((largest - 1.0).abs() < 0.01, "{largest}");
    }

    #[test]
    fn a_beat_that_is_overdue_counts_before_the_metronome_runs_again() {
        let beats = Beats { late: Latencies::new(), due: now() - 3000 * BEAT };
        let shared = Arc::new(Shared { stop: AtomicBool::new(false), beats: Mutex::new(beats) });
        let late = Metronome { shared, thread: None }.late();
        assert!(late.count() >= 3000 && late.max() >= 2900 * BEAT, "{}", late.max());
    }

    #[test]
    fn a_metronome_beats_and_can_begin_anew() {
        let metronome = Metronome::start().expect("a thread");
        while metronome.late().count() < 5 {
            std::thread::yield_now();
        }
        metronome.restart();
        let before = metronome.late().count();
        while metronome.late().count() < before + 5 {
            std::thread::yield_now();
        }
        drop(metronome);
    }
}
