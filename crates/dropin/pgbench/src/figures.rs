//! From what a trial measured to what the report states.

use super::report::{Command, Counts, Latency, Report, Script};
use super::settings::Settings;
use super::setup::Tables;
use dyno_engine::TrialResult;
use dyno_pgbench::run::{self, PgBench, ScriptStatistics};

fn counts(statistics: &ScriptStatistics) -> Counts {
    Counts {
        processed: statistics.processed(),
        skipped: statistics.skipped,
        serialization_failures: statistics.serialization_failures,
        deadlock_failures: statistics.deadlock_failures,
        other_failures: statistics.other_failures,
        retried: statistics.retried,
        retries: statistics.retries,
    }
}

fn latency(latency: &run::Latency) -> Option<Latency> {
    (latency.count > 0).then(|| Latency {
        average_ms: latency.mean_ns() / 1e6,
        stddev_ms: latency.stddev_ns() / 1e6,
    })
}

pub(super) fn scripts(workload: &PgBench, per_command: bool) -> Vec<Script> {
    let statistics = workload.statistics();
    let scripts = workload.options().scripts.iter().zip(&statistics.scripts);
    let of_one = |((script, weight), statistics): (&(dyno_pgbench::script::Script, u32), _)| {
        let statistics: &ScriptStatistics = statistics;
        let commands = script.commands().iter().zip(&statistics.commands);
        let command = |(command, statistics): (&dyno_pgbench::script::ScriptCommand, _)| {
            let statistics: &run::CommandStatistics = statistics;
            Command {
                text: command.first_line().to_owned(),
                average_ms: statistics.latency.mean_ns() / 1e6,
                failures: statistics.failures,
                retries: statistics.retries,
            }
        };
        Script {
            description: script.description().to_owned(),
            weight: *weight,
            counts: counts(statistics),
            latency: latency(&statistics.latency),
            commands: if per_command { commands.map(command).collect() } else { Vec::new() },
        }
    };
    scripts.map(of_one).collect()
}

/// Percent and milliseconds of the percentiles that were asked for.
pub(super) fn percentiles(settings: &Settings, result: &TrialResult) -> Vec<(f64, f64)> {
    let latency = result.total.latency();
    let at = |&percent: &f64| (percent, latency.percentile(percent) as f64 / 1e6);
    settings.percentiles.iter().map(at).collect()
}

/// The report of a trial. `late` are the processed transactions that took longer than `-L`.
pub(super) fn report<'a>(
    settings: &'a Settings,
    tables: Tables,
    result: &TrialResult,
    total: &ScriptStatistics,
    late: u64,
    (scripts, percentiles): (&'a [Script], &'a [(f64, f64)]),
) -> Report<'a> {
    let connects: u64 = result.workers.iter().map(|worker| worker.connects).sum();
    let connecting: u64 = result.workers.iter().map(|worker| worker.connecting).sum();
    let connection_ns = match settings.connect_each {
        true => connecting as f64 / connects.max(1) as f64,
        false => result.connect as f64,
    };
    Report {
        settings,
        tables,
        threads: result.loops_cpu.len() as u32,
        counts: counts(total),
        late,
        latency: latency(&total.latency),
        percentiles,
        lag_ms: (total.lag.mean_ns() / 1e6, total.lag.max_ns as f64 / 1e6),
        connection_ms: connection_ns / 1e6,
        seconds: result.length() as f64 / 1e9,
        scripts,
    }
}
