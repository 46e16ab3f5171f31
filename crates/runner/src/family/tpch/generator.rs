//! What this machine and this process did while queries were timed.

use crate::resident_mib;
use dyno_facts::{GeneratorConditions, GeneratorSummary, HostSample, TrialSummary};
use dyno_observe::{GeneratorWatch, HostSampler, run_delay_of_process};
use dyno_reactor::monotonic_now;
use dyno_record::process_cpu;

/// Follows this machine and this process.
pub(super) struct Generator {
    sampler: HostSampler,
    watch: GeneratorWatch,
    cpu_ns: u64,
    run_delay_ns: Option<u64>,
    ended: Option<Ended>,
}

/// What is known once queries have ended.
#[derive(Default)]
struct Ended {
    host: HostSample,
    conditions: GeneratorConditions,
    cpu_ns: u64,
}

impl Generator {
    /// Queries begin.
    pub(super) fn begin() -> Self {
        let now = monotonic_now();
        Generator {
            sampler: HostSampler::new(now),
            watch: GeneratorWatch::new(now),
            cpu_ns: process_cpu(),
            run_delay_ns: run_delay_of_process(),
            ended: None,
        }
    }

    /// Queries have ended; what comes later does not count.
    pub(super) fn end(&mut self) {
        if self.ended.is_some() {
            return;
        }
        let now = monotonic_now();
        let mut conditions = self.watch.close(now);
        // Threads that have ended meanwhile are not in it: streams wait for the server, hardly for a
        // CPU.
        let waited = run_delay_of_process().zip(self.run_delay_ns);
        conditions.run_delay_s =
            waited.map(|(after, before)| after.saturating_sub(before) as f64 / 1e9);
        self.ended = Some(Ended {
            host: self.sampler.sample(now),
            conditions,
            cpu_ns: process_cpu().saturating_sub(self.cpu_ns),
        });
    }

    /// What is stored. The CPU of the whole process stands for that of its busiest loop: it is never
    /// less.
    pub(super) fn store(self, trial: &mut TrialSummary) {
        let Ended { host, conditions, cpu_ns } = self.ended.unwrap_or_default();
        trial.conditions.generator = conditions;
        let statements = trial.statements.total().max(1) as f64;
        trial.generator = GeneratorSummary {
            loops: trial.generator.loops,
            loops_cpu_s: cpu_ns as f64 / 1e9,
            busiest_loop_share: (cpu_ns as f64 / 1e9 / trial.window_s.max(1e-9)).min(1.0),
            cpu_us_per_statement: cpu_ns as f64 / 1e3 / statements,
            resident_mib: resident_mib(),
            host,
            ..GeneratorSummary::default()
        };
    }
}
