//! What this machine and this process did while queries were timed.

use crate::runner::resident_mib;
use dyno_measure::{GeneratorSummary, HostSample, HostSampler, TrialSummary, process_cpu};
use dyno_reactor::monotonic_now;

/// Follows this machine and this process.
pub(super) struct Generator {
    sampler: HostSampler,
    cpu_ns: u64,
    /// The machine and the CPU of this process, once it has ended.
    ended: Option<(HostSample, u64)>,
}

impl Generator {
    /// Queries begin.
    pub(super) fn begin() -> Self {
        Generator { sampler: HostSampler::new(monotonic_now()), cpu_ns: process_cpu(), ended: None }
    }

    /// Queries have ended; what comes later does not count.
    pub(super) fn end(&mut self) {
        if self.ended.is_none() {
            let host = self.sampler.sample(monotonic_now());
            self.ended = Some((host, process_cpu().saturating_sub(self.cpu_ns)));
        }
    }

    /// What is stored. The CPU of the whole process stands for that of its busiest loop: it is never
    /// less.
    pub(super) fn summary(self, trial: &TrialSummary) -> GeneratorSummary {
        let (host, cpu_ns) = self.ended.unwrap_or_default();
        let statements = trial.statements.total().max(1) as f64;
        GeneratorSummary {
            loops: trial.generator.loops,
            loops_cpu_s: cpu_ns as f64 / 1e9,
            busiest_loop_share: (cpu_ns as f64 / 1e9 / trial.window_s.max(1e-9)).min(1.0),
            cpu_us_per_statement: cpu_ns as f64 / 1e3 / statements,
            resident_mib: resident_mib(),
            host,
            ..GeneratorSummary::default()
        }
    }
}
