//! Limits that the load generator met in the measured window.
//!
//! [`GeneratorWatch`] counts from the opening of the window to its end; a thread that asks to be woken every 10 ms
//! records how late it was. The collecting thread owns it: loops only read their own run delay, in warm-up and at
//! their end.

use std::fs;
use std::num::NonZeroU64;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use dyno_core::{MILLISECOND, Nanos};
use dyno_facts::GeneratorConditions;
use dyno_observe::{governor, proc};
use rustix::thread::{ClockId, clock_nanosleep_absolute, set_current_timer_slack};
use rustix::time::{Timespec, clock_gettime};

use crate::record::Latencies;

/// Follows this machine from before a trial. Counting begins again whenever the window opens.
#[derive(Debug)]
pub struct GeneratorWatch {
    metronome: Option<Metronome>,
    before: Counters,
    opened: Nanos,
    /// When it was made.
    suspended_ns: i64,
}

impl GeneratorWatch {
    /// Starts the metronome and counts from `now`.
    pub fn new(now: Nanos) -> Self {
        GeneratorWatch {
            metronome: Metronome::start(),
            before: Counters::read(),
            opened: now,
            suspended_ns: suspended_ns(),
        }
    }

    /// The window opens: what was before doesn't count.
    pub fn open(&mut self, now: Nanos) {
        self.before = Counters::read();
        self.opened = now;
        if let Some(metronome) = &self.metronome {
            metronome.restart();
        }
    }

    /// Conditions since the window opened. The waiting of the loops for a CPU and the headroom
    /// are left to the caller.
    pub fn close(&self, now: Nanos) -> GeneratorConditions {
        let window_s = now.saturating_sub(self.opened).max(1) as f64 / 1e9;
        let mut conditions = conditions_between(&self.before, &Counters::read(), window_s);
        conditions.governor = governor();
        conditions.suspended_ms = Some(suspended_ms(self.suspended_ns, suspended_ns()));
        let late = self.metronome.as_ref().map(Metronome::late).filter(|late| late.count() > 0);
        conditions.hiccup_p999_us = late.as_ref().map(|late| late.percentile(99.9) as f64 / 1e3);
        conditions.hiccup_max_us = late.as_ref().map(|late| late.max() as f64 / 1e3);
        conditions
    }
}

/// Time for which this machine has been suspended since it was started, which CLOCK_MONOTONIC leaves out: of a few
/// readings the one that was least disturbed.
fn suspended_ns() -> i64 {
    let offsets = std::iter::repeat_with(|| {
        let before = read_clock_ns(ClockId::Monotonic);
        let boot = read_clock_ns(ClockId::Boottime);
        let after = read_clock_ns(ClockId::Monotonic);
        (after - before, boot - before)
    });
    offsets.take(5).min().unwrap_or_default().1
}

fn read_clock_ns(clock: ClockId) -> i64 {
    let time = clock_gettime(clock);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

fn suspended_ms(before_ns: i64, after_ns: i64) -> f64 {
    (after_ns - before_ns).max(0) as f64 / 1e6
}

/// Time for which the calling thread waited for a CPU although it could run, since it began.
pub(crate) fn run_delay_of_thread() -> Option<Nanos> {
    proc::run_delay_ns(&fs::read_to_string("/proc/thread-self/schedstat").ok()?)
}

/// Time for which all live threads of this process together waited for a CPU.
pub fn run_delay_of_process() -> Option<Nanos> {
    let threads = fs::read_dir("/proc/self/task").ok()?;
    let delays: Vec<Nanos> = threads
        .filter_map(|entry| fs::read_to_string(entry.ok()?.path().join("schedstat")).ok())
        .filter_map(|text| proc::run_delay_ns(&text))
        .collect();
    (!delays.is_empty()).then(|| delays.iter().sum())
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Counters {
    /// Microseconds in which some task waited, for CPU, memory, input and output.
    pressure_us: [Option<u64>; 3],
    throttled_us: Option<u64>,
    swapped_pages: Option<u64>,
    segments: Option<proc::Segments>,
    links: Vec<Link>,
}

#[derive(Clone, Debug, PartialEq)]
struct Link {
    name: String,
    bytes_per_s: f64,
    received: u64,
    sent: u64,
}

impl Counters {
    /// Reads the counters of this machine; unreadable ones are `None`.
    fn read() -> Self {
        let [vmstat, snmp] =
            ["/proc/vmstat", "/proc/net/snmp"].map(|path| fs::read_to_string(path).ok());
        Counters {
            pressure_us: ["cpu", "memory", "io"].map(|resource| {
                proc::pressure_us(&fs::read_to_string(format!("/proc/pressure/{resource}")).ok()?)
            }),
            throttled_us: throttled_us(),
            swapped_pages: vmstat.and_then(|text| proc::swapped_pages(&text)),
            segments: snmp.and_then(|text| proc::segments(&text)),
            links: links(),
        }
    }
}

/// The network links of known speed, with their counters of bytes.
fn links() -> Vec<Link> {
    let text = fs::read_to_string("/proc/net/dev").unwrap_or_default();
    let networks = proc::networks(&text).filter(|&(name, _)| name != "lo");
    let links = networks.filter_map(|(name, counters)| {
        // Virtual ones say nothing or -1.
        let speed = fs::read_to_string(format!("/sys/class/net/{name}/speed")).ok()?;
        let mbit_per_s = speed.trim().parse::<f64>().ok().filter(|&speed| speed > 0.0)?;
        Some(Link {
            name: name.to_owned(),
            bytes_per_s: mbit_per_s * 1e6 / 8.0,
            received: counters.received_bytes,
            sent: counters.sent_bytes,
        })
    });
    links.collect()
}

/// Time for which this process's group was held back by a CPU quota.
fn throttled_us() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let (controllers, path) = proc::cpu_group(&groups)?;
    // Version 2 has one tree, mounted in one of two places; version 1 one per set of controllers.
    let roots = match controllers {
        "" => vec!["/sys/fs/cgroup".to_owned(), "/sys/fs/cgroup/unified".to_owned()],
        names => vec![format!("/sys/fs/cgroup/{names}"), "/sys/fs/cgroup/cpu".to_owned()],
    };
    roots.iter().find_map(|root| {
        // In a container the path may be the host's: then the root is this container's.
        let inner = Path::new(root).join(path.trim_start_matches('/')).join("cpu.stat");
        let text = fs::read_to_string(inner);
        let text = text.or_else(|_| fs::read_to_string(Path::new(root).join("cpu.stat")));
        proc::throttled_us(&text.ok()?)
    })
}

fn conditions_between(before: &Counters, after: &Counters, window_s: f64) -> GeneratorConditions {
    let [cpu, memory, io] = [0, 1, 2].map(|index| {
        share_of_window(before.pressure_us[index], after.pressure_us[index], window_s)
    });
    GeneratorConditions {
        cpu_pressure_share: cpu,
        memory_pressure_share: memory,
        io_pressure_share: io,
        throttled_share: share_of_window(before.throttled_us, after.throttled_us, window_s),
        swapped_pages: growth(before.swapped_pages, after.swapped_pages),
        retransmitted_share: retransmitted_share(before.segments, after.segments),
        network_share: network_share(&before.links, &after.links, window_s),
        ..GeneratorConditions::default()
    }
}

/// Returns the share of a window by which a counter of microseconds has grown, at most 1.
fn share_of_window(before: Option<u64>, after: Option<u64>, window_s: f64) -> Option<f64> {
    Some((growth(before, after)? as f64 / 1e6 / window_s).min(1.0))
}

/// Returns `None` if a counter is unknown or has become smaller.
fn growth(before: Option<u64>, after: Option<u64>) -> Option<u64> {
    after?.checked_sub(before?)
}

/// With fewer segments, a few retransmissions say nothing about the loss rate.
const SEGMENTS_LEAST: u64 = 10_000;

fn retransmitted_share(
    before: Option<proc::Segments>,
    after: Option<proc::Segments>,
) -> Option<f64> {
    let (before, after) = (before?, after?);
    let segments = after.sent.checked_sub(before.sent)?;
    let resent = after.retransmitted.checked_sub(before.retransmitted)?;
    (segments >= SEGMENTS_LEAST).then(|| resent as f64 / segments as f64)
}

/// The busier direction of the busiest interface.
fn network_share(before: &[Link], after: &[Link], window_s: f64) -> Option<f64> {
    let shares = after.iter().filter_map(|link| {
        let old = before.iter().find(|old| old.name == link.name)?;
        let received_bytes = proc::counter_growth(old.received, link.received)?;
        let sent_bytes = proc::counter_growth(old.sent, link.sent)?;
        Some(received_bytes.max(sent_bytes) as f64 / window_s / link.bytes_per_s)
    });
    shares.reduce(f64::max)
}

const BEAT: Nanos = 10 * MILLISECOND;

/// A running metronome; it ends when dropped.
#[derive(Debug)]
struct Metronome {
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
    fn start() -> Option<Self> {
        let beats = Beats { late: Latencies::new(), due: now() + BEAT };
        let shared = Arc::new(Shared { stop: AtomicBool::new(false), beats: Mutex::new(beats) });
        let beating = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("metronome".to_owned());
        let thread = thread.spawn(move || beat(&beating)).ok()?;
        Some(Metronome { shared, thread: Some(thread) })
    }

    /// Forgets the delays so far.
    fn restart(&self) {
        self.shared.beats().late.clear();
    }

    /// Lateness of the beats since [`Metronome::restart`]. A process that was stopped may ask before the metronome
    /// runs again: beats that are overdue count too.
    fn late(&self) -> Latencies {
        let beats = self.shared.beats();
        let mut late = beats.late.clone();
        record(&mut late, beats.due, now());
        late
    }
}

impl Shared {
    /// Locks the beats, also after a panic.
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

/// Body of the metronome's thread, until it is stopped.
fn beat(shared: &Shared) {
    // Without it the kernel may be 50 us late to save energy. If that is refused, the hiccups are
    // larger by that.
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

/// Monotonic time of the system, in nanoseconds.
fn now() -> Nanos {
    let time = clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_the_window() {
        let link =
            |received, sent| Link { name: "eth0".to_owned(), bytes_per_s: 1e6, received, sent };
        let before = Counters {
            pressure_us: [Some(1_000_000), None, Some(5)],
            throttled_us: Some(0),
            swapped_pages: Some(10),
            segments: Some(proc::Segments { sent: 1000, retransmitted: 10 }),
            links: vec![link(0, 0)],
        };
        let after = Counters {
            pressure_us: [Some(1_500_000), Some(7), Some(9_000_005)],
            throttled_us: Some(200_000),
            swapped_pages: Some(15),
            segments: Some(proc::Segments { sent: 21_000, retransmitted: 30 }),
            links: vec![link(500_000, 1_000_000)],
        };
        let conditions = conditions_between(&before, &after, 2.0);
        assert_eq!(conditions.cpu_pressure_share, Some(0.25));
        assert_eq!(conditions.memory_pressure_share, None, "it was not there before");
        assert_eq!(conditions.io_pressure_share, Some(1.0), "never more than the whole window");
        assert_eq!(conditions.throttled_share, Some(0.1));
        assert_eq!(conditions.swapped_pages, Some(5));
        assert_eq!(conditions.retransmitted_share, Some(0.001));
        assert_eq!(conditions.network_share, Some(0.5));
        let short = proc::Segments { sent: 3000, retransmitted: 16 };
        assert_eq!(retransmitted_share(before.segments, Some(short)), None, "6 of 2000");
        assert_eq!(network_share(&[], &[link(1, 1)], 1.0), None);
    }

    #[test]
    fn a_suspension_is_what_one_clock_left_out() {
        let slept = with_suspension(suspended_ms(7_000, 5_000_007_000));
        assert_eq!((slept.suspended_ms, slept.suspension_ms()), (Some(5_000.0), Some(5_000.0)));
        // Clocks that are read one after the other differ by a little.
        assert_eq!(with_suspension(suspended_ms(7_000, 600_000)).suspension_ms(), None);
        assert_eq!(with_suspension(suspended_ms(7_000, 6_000)).suspended_ms, Some(0.0));
        assert!(suspended_ns() >= 0, "{}", suspended_ns());
    }

    fn with_suspension(suspended_ms: f64) -> GeneratorConditions {
        let suspended_ms = Some(suspended_ms);
        GeneratorConditions { suspended_ms, ..GeneratorConditions::default() }
    }

    #[test]
    fn this_machine_can_be_watched() {
        let mut watch = GeneratorWatch::new(0);
        watch.open(1);
        assert_eq!(watch.opened, 1);
        while watch.metronome.as_ref().is_some_and(|metronome| metronome.late().count() < 3) {
            std::thread::yield_now();
        }
        let conditions = watch.close(1_000_000_001);
        assert!(conditions.hiccup_max_us >= conditions.hiccup_p999_us, "{conditions:?}");
        let shares = [
            conditions.cpu_pressure_share,
            conditions.throttled_share,
            conditions.retransmitted_share,
        ];
        for share in shares.into_iter().flatten() {
            assert!((0.0..=1.0).contains(&share), "{conditions:?}");
        }
        assert!(run_delay_of_process() >= run_delay_of_thread());
    }

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
    fn a_restart_forgets_the_beats_before() {
        let mut late = Latencies::new();
        late.record(7);
        let beats = Beats { late, due: now() + 3_600_000 * MILLISECOND };
        let shared = Arc::new(Shared { stop: AtomicBool::new(false), beats: Mutex::new(beats) });
        let metronome = Metronome { shared, thread: None };
        assert_eq!(metronome.late().count(), 1);
        metronome.restart();
        assert_eq!(metronome.late().count(), 0);
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
