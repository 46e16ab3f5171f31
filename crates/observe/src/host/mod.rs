//! The load generator's own machine: what it is and how busy it was.
//!
//! Everything is read from `/proc` and `/sys`; what is not there is `None`.

mod machine;
mod processes;

use std::fs;
use std::fs::File;
use std::io::Read as _;

use dyno_core::Nanos;
use dyno_facts::HostSample;

use crate::proc;

pub use machine::{environment, governor, machine};
pub use processes::{ServerProcess, ServerUsage};

/// A small file of the kernel, without its line end; `None` if it is missing or empty.
fn read_line(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Totals {
    busy: u64,
    steal: u64,
    iowait: u64,
    all: u64,
    received: u64,
    sent: u64,
}

/// Reads `/proc` and remembers what was there before.
#[derive(Debug)]
pub struct HostSampler {
    before: Totals,
    at: Nanos,
}

impl HostSampler {
    pub fn new(now: Nanos) -> Self {
        HostSampler { before: read_totals(), at: now }
    }

    /// Activity since the last call (or the start). If `/proc` can't be read, the figures
    /// are 0.
    pub fn sample(&mut self, now: Nanos) -> HostSample {
        let totals = read_totals();
        let seconds = now.saturating_sub(self.at).max(1) as f64 / 1e9;
        let sample = sample_between(&self.before, &totals, seconds, memory_available_mib());
        self.before = totals;
        self.at = now;
        sample
    }
}

fn sample_between(
    before: &Totals,
    after: &Totals,
    seconds: f64,
    memory_available_mib: f64,
) -> HostSample {
    let total = grown_by(after.all, before.all).max(1.0);
    HostSample {
        cpu_share: grown_by(after.busy, before.busy) / total,
        steal_share: grown_by(after.steal, before.steal) / total,
        iowait_share: grown_by(after.iowait, before.iowait) / total,
        memory_available_mib,
        network_received_bytes_per_s: grown_by(after.received, before.received) / seconds,
        network_sent_bytes_per_s: grown_by(after.sent, before.sent) / seconds,
    }
}

/// Growth of a counter; 0 if it was reset.
fn grown_by(after: u64, before: u64) -> f64 {
    after.saturating_sub(before) as f64
}

/// A file that has no length before it is read: room for all of it spares reads of pieces that double, while a loop may
/// wait for this core.
fn read(path: &str) -> String {
    let mut text = String::with_capacity(8192);
    // What can't be read says nothing.
    let _ = File::open(path).and_then(|mut file| file.read_to_string(&mut text));
    text
}

fn read_totals() -> Totals {
    parse_totals(&read("/proc/stat"), &read("/proc/net/dev"))
}

fn parse_totals(stat: &str, net: &str) -> Totals {
    let mut totals = Totals::default();
    if let Some(ticks) = proc::cpu_ticks(stat) {
        (totals.all, totals.busy) = (ticks.all(), ticks.busy());
        (totals.iowait, totals.steal) = (ticks.iowait(), ticks.steal());
    }
    for (_, counters) in proc::networks(net).filter(|&(name, _)| name != "lo") {
        totals.received += counters.received_bytes;
        totals.sent += counters.sent_bytes;
    }
    totals
}

fn memory_available_mib() -> f64 {
    read("/proc/meminfo")
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))
        .and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok())
        .map_or(0.0, |kib| kib / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_rates_come_from_differences() {
        let before =
            parse_totals("cpu  100 0 100 800 0 0 0 0 0 0\n", "eth0: 1000 1 0 0 0 0 0 0 500 1\n");
        let after = parse_totals(
            "cpu  150 0 110 820 10 0 0 10 0 0\n",
            "  lo: 9999 1 0 0 0 0 0 0 9999 1\neth0: 3000 1 0 0 0 0 0 0 900 1\n",
        );
        let sample = sample_between(&before, &after, 2.0, 7.0);
        assert!((sample.cpu_share - 0.7).abs() < 1e-9, "{sample:?}");
        assert!((sample.iowait_share - 0.1).abs() < 1e-9);
        assert!((sample.steal_share - 0.1).abs() < 1e-9);
        assert!((sample.network_received_bytes_per_s - 1000.0).abs() < 1e-9);
        assert!((sample.network_sent_bytes_per_s - 200.0).abs() < 1e-9);
    }

    #[test]
    fn this_machine_can_be_sampled() {
        let mut sampler = HostSampler::new(0);
        let sample = sampler.sample(1_000_000_000);
        assert!((0.0..=1.0).contains(&sample.cpu_share));
        assert!(sample.memory_available_mib > 0.0);
    }
}
