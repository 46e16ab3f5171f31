//! `/metrics`: what runs now, in Prometheus' text format 0.0.4.

use crate::follow::RunFollower;
use crate::server::App;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use dyno_core::harmless;
use dyno_facts::{NodeRow, SeriesRow};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// `/metrics`: the state of the current run, or of the last one.
pub(crate) async fn metrics(State(app): State<Arc<App>>) -> Response {
    let mut follower = app.metrics.lock().await;
    follower.poll();
    let text = render_metrics(follower.run.as_ref());
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response()
}

/// Lines of the format, metric by metric.
#[derive(Debug, Default)]
struct Exposition(String);

impl Exposition {
    /// Writes the help and the kind of a metric; its samples follow.
    fn metric(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string can't fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// Writes a value of the metric whose head was written last.
    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<String> = labels
            .iter()
            .map(|(name, value)| format!("{name}=\"{}\"", escape_label(value)))
            .collect();
        let labels =
            if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }

    /// Writes a metric that has one value.
    fn single(&mut self, name: &str, kind: &str, help: &str, labels: &[(&str, &str)], value: f64) {
        self.metric(name, kind, help);
        self.sample(name, labels, value);
    }
}

fn escape_label(value: &str) -> String {
    harmless(value).replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn render_metrics(run: Option<&RunFollower>) -> String {
    let mut out = Exposition::default();
    let version = [("version", env!("CARGO_PKG_VERSION"))];
    out.single("dyno_build_info", "gauge", "Version of dyno.", &version, 1.0);
    let Some(run) = run else { return out.0 };
    write_run(&mut out, run);
    let Some(current) = &run.current else { return out.0 };
    let view = &current.view;
    let (trial, workers) = (view.number.to_string(), view.identity.workers.to_string());
    let labels = [
        ("experiment", view.identity.experiment.as_str()),
        ("target", &view.identity.target),
        ("test", &view.identity.test),
        ("workers", &workers),
    ];
    let trial_labels =
        [("trial", trial.as_str()), ("step", &view.identity.step), ("status", view.status)];
    let info = [&labels[..], &trial_labels].concat();
    out.single("dyno_trial_info", "gauge", "The trial that runs, or the last one.", &info, 1.0);
    write_totals(&mut out, &labels, &current.totals);
    for (metric, figure) in view.measures.iter().filter(|_| view.status != "running") {
        let (name, help) = (format!("dyno_trial_{}", metric.name()), metric.title().to_string());
        out.single(&name, "gauge", &help, &labels, figure);
    }
    if view.status == "running"
        && let Some(last) = &current.last
    {
        write_interval(&mut out, &labels, last);
    }
    write_nodes(&mut out, &view.identity.target, &current.nodes);
    out.0
}

fn write_run(out: &mut Exposition, run: &RunFollower) {
    let (view, progress) = (&run.view, &run.progress);
    let labels = [("run", view.folder.as_str()), ("suite", &view.suite), ("status", view.status)];
    let help = "The run that is executed, or the last one.";
    out.single("dyno_run_info", "gauge", help, &labels, 1.0);
    let is_running = f64::from(u8::from(view.status == "running"));
    out.single("dyno_run_running", "gauge", "1 while a run is executed.", &[], is_running);
    out.metric("dyno_run_steps", "gauge", "Steps of the run's plan.");
    let remaining = progress.total.saturating_sub(progress.done + progress.skipped);
    for (state, count) in
        [("done", progress.done), ("skipped", progress.skipped), ("left", remaining)]
    {
        out.sample("dyno_run_steps", &[("state", state)], count as f64);
    }
    if let Some(seconds) = progress.remaining_s {
        let help = "Seconds that the rest of the run will take, as its plan guesses.";
        out.single("dyno_run_remaining_seconds", "gauge", help, &[], seconds);
    }
}

/// Counters begin again with each trial, as Prometheus expects of a restart.
fn write_totals(out: &mut Exposition, labels: &[(&str, &str)], totals: &SeriesRow) {
    let ends = [
        ("committed", totals.committed),
        ("rolled_back", totals.rolled_back),
        ("failed", totals.failed),
        ("skipped", totals.skipped),
    ];
    let help = "Transactions of the trial, warm-up among them, by how they ended.";
    let kinds = [("read", totals.reads), ("write", totals.writes), ("other", totals.others)];
    let kinds_help = "Statements of transactions that did not fail.";
    for (name, help, label, values) in [
        ("dyno_transactions_total", help, "outcome", &ends[..]),
        ("dyno_statements_total", kinds_help, "kind", &kinds[..]),
    ] {
        out.metric(name, "counter", help);
        for (value, count) in values {
            out.sample(name, &[labels, &[(label, *value)]].concat(), *count as f64);
        }
    }
    let counters = [
        ("dyno_errors_total", "Errors of attempts and connects.", totals.errors),
        ("dyno_retries_total", "Attempts beyond the first of a transaction.", totals.retries),
        ("dyno_reconnects_total", "Sessions connected again after a loss.", totals.reconnects),
    ];
    for (name, help, count) in counters {
        out.single(name, "counter", help, labels, count as f64);
    }
    let help = "CPU seconds of the threads that make the load.";
    out.single("dyno_loops_cpu_seconds_total", "counter", help, labels, totals.loops_cpu_s);
}

/// A gauge: its name, its help and its getter.
type Gauge = (&'static str, &'static str, fn(&SeriesRow) -> f64);

const LOAD_GAUGES: [Gauge; 3] = [
    ("dyno_transactions_per_second", "Commits per second in the last interval.", |row| row.tps),
    ("dyno_statements_per_second", "Statements per second in the last interval.", |row| row.qps),
    ("dyno_latency_mean_seconds", "Mean latency in the last interval.", |row| row.mean_us / 1e6),
];
const HOST_GAUGES: [Gauge; 2] = [
    ("dyno_host_cpu_ratio", "Busy share of the load generator's CPUs.", |row| row.host_cpu_share),
    ("dyno_host_steal_ratio", "Share of them taken by the hypervisor.", |row| row.host_steal_share),
];

fn write_interval(out: &mut Exposition, labels: &[(&str, &str)], row: &SeriesRow) {
    for (gauges, labels) in [(&LOAD_GAUGES[..], labels), (&HOST_GAUGES, &[])] {
        for (name, help, value) in gauges {
            out.single(name, "gauge", help, labels, value(row));
        }
    }
    out.metric("dyno_latency_seconds", "gauge", "Latency of transactions in the last interval.");
    let quantiles =
        [("0.5", row.p50_us), ("0.95", row.p95_us), ("0.99", row.p99_us), ("1", row.max_us)];
    for (quantile, value_us) in quantiles {
        let labels = [labels, &[("quantile", quantile)]].concat();
        out.sample("dyno_latency_seconds", &labels, value_us / 1e6);
    }
}

fn write_nodes(out: &mut Exposition, target: &str, rows: &[NodeRow]) {
    type Value = fn(&NodeRow) -> Option<f64>;
    let last: BTreeMap<&str, &NodeRow> = rows.iter().map(|row| (row.node.as_str(), row)).collect();
    let metrics: [(&str, &str, Value); 5] = [
        ("dyno_node_active_sessions", "Sessions that execute something.", |row| {
            row.active_sessions
        }),
        ("dyno_node_waiting_sessions", "Sessions that wait for a lock.", |row| {
            row.waiting_sessions
        }),
        ("dyno_node_cpu_ratio", "Busy share of the node's CPUs.", |row| row.cpu_share),
        ("dyno_node_dirty_ratio", "Dirty share of its memory for data.", |row| row.dirty_share),
        ("dyno_node_replica_lag_seconds", "Largest lag of its copies.", |row| row.lag_s),
    ];
    for (name, help, value) in metrics {
        let values: Vec<(&str, f64)> =
            last.iter().filter_map(|(node, row)| Some((*node, value(row)?))).collect();
        if !values.is_empty() {
            out.metric(name, "gauge", help);
        }
        for (node, value) in values {
            out.sample(name, &[("target", target), ("node", node)], value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped_and_only_the_build_is_reported_without_a_run() {
        let mut out = Exposition::default();
        out.single("x", "gauge", "Help.", &[("a", "\"b\\\n\u{9b}"), ("c", "d")], 0.5);
        let line = "x{a=\"\\\"b\\\\\\n\u{fffd}\",c=\"d\"} 0.5\n";
        assert_eq!(out.0, format!("# HELP x Help.\n# TYPE x gauge\n{line}"));
        let nothing = render_metrics(None);
        assert_eq!(nothing.lines().count(), 3, "{nothing}");
    }

    #[test]
    fn each_node_has_its_last_sample_without_unknown_values() {
        let rows = [(0.0, "a", Some(0.5)), (1.0, "a", Some(0.75)), (1.0, "b", None)];
        let rows = rows.map(|(at_s, node, cpu_share)| NodeRow {
            at_s,
            node: node.to_owned(),
            cpu_share,
            ..NodeRow::default()
        });
        let mut out = Exposition::default();
        write_nodes(&mut out, "t", &rows);
        let samples: Vec<&str> = out.0.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(samples, ["dyno_node_cpu_ratio{target=\"t\",node=\"a\"} 0.75"]);
    }
}
