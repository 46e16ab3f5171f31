//! A made-up run: the same folder on every machine.

pub(crate) mod cluster;
pub(crate) mod fault;
pub(crate) mod pairs;
pub(crate) mod pgbench;
pub(crate) mod tpcc;
pub(crate) mod tpch;

use dyno_facts::{
    Counts, Environment, ErrorSummary, Event, EventKind, ExperimentFacts, FamilyFacts,
    FamilyRecord, GeneratorSummary, HostSample, KindSummary, Lang, LatencySummary, Message,
    PublishedRow, PublishedTable, RunHeader, RunPlan, RunStatus, SCHEMA_VERSION, SecretUrl,
    SeriesRow, ServerFacts, StatementCounts, TargetFacts, TrialIdentity, TrialStatus, TrialSummary,
};
use dyno_store::{RunData, TrialData};
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;

/// Papers of the families of these tests.
pub(crate) const PAPERS: dyno_report::FamilyPapers =
    &[&dyno_sysbench::PAPER, &dyno_pgbench::PAPER, &dyno_tpcc::PAPER, &dyno_tpch::PAPER, &SCRIPTS];

const SCRIPTS: dyno_report::NamedPaper = dyno_report::NamedPaper {
    tests: &["lua"],
    own_tables: &["lua"],
    ..dyno_report::NamedPaper::new("lua", "sysbench scripts")
};

/// Names that a hostile suite or server could choose.
pub(crate) const HOSTILE: &str = "<script>alert(1)</script>|\"'&`](x)";

/// The header of a complete run of two experiments on these targets.
pub(crate) fn header(targets: &[&str]) -> RunHeader {
    dyno_report::register(PAPERS);
    let words =
        ["dyno", "run", "two targets.toml", "--target", "main=mysql://root@127.0.0.1:3306/sbtest"];
    RunHeader {
        schema_version: SCHEMA_VERSION,
        suite: "synthetic".to_owned(),
        title: "Two made-up servers under sysbench".to_owned(),
        plan: Some(RunPlan {
            hash: "00c0ffee00c0ffee".to_owned(),
            shrink: 1.0,
            ..RunPlan::default()
        }),
        environment: Environment {
            host: "generator-1".to_owned(),
            system: "Debian GNU/Linux 12 (bookworm)".to_owned(),
            kernel: "Linux 6.1.0-18-amd64 x86_64".to_owned(),
            cpu_model: "Example CPU at 2.60 GHz".to_owned(),
            cores: 16,
            memory_mib: 64_222.0,
            dyno_version: "0.1.0".to_owned(),
            binary_sha256: "00".repeat(32),
            ..Environment::default()
        },
        command_line: words.map(str::to_owned).to_vec(),
        seed: 42,
        targets: targets.iter().enumerate().map(|(index, name)| target(index, name)).collect(),
        experiments: vec![
            experiment("read_only", "Read only", "sysbench oltp_read_only"),
            experiment("open", "Point selects on a schedule", "sysbench oltp_point_select"),
        ],
        started_at: "2026-11-21T21:10:30Z".to_owned(),
        finished_at: Some("2026-11-21T22:02:11Z".to_owned()),
        status: RunStatus::Complete,
        ..RunHeader::default()
    }
}

/// A target at this place in the run: every other one is PostgreSQL, the first is on the load generator's host.
fn target(index: usize, name: &str) -> TargetFacts {
    let product = [("MariaDB", "10.11.6-MariaDB"), ("PostgreSQL", "15.5")][index % 2];
    TargetFacts {
        name: name.to_owned(),
        url: SecretUrl::new(format!("mysql://root@10.0.0.{index}:3306/sbtest")),
        product: product.0.to_owned(),
        version: product.1.to_owned(),
        class: if index == 0 { "16 vCPU, 64 GiB".to_owned() } else { String::new() },
        same_host: index == 0,
        ..TargetFacts::default()
    }
}

/// An experiment of sysbench.
fn experiment(name: &str, title: &str, test: &str) -> ExperimentFacts {
    let options = [
        ("tables", "64"),
        ("table_size", "100000"),
        ("point_selects", "14"),
        ("range_selects", "off"),
    ];
    ExperimentFacts {
        name: name.to_owned(),
        title: title.to_owned(),
        test: test.to_owned(),
        options: options.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        scripts: Vec::new(),
        warmup_s: 5.0,
        duration_s: Some(60.0),
        ..ExperimentFacts::default()
    }
}

/// Throughput that grows, saturates and falls a little.
fn throughput(workers: u32, speed: f64) -> f64 {
    let workers = f64::from(workers);
    speed * 950.0 * workers / (1.0 + 0.035 * (workers - 1.0) + 0.000_25 * workers * (workers - 1.0))
}

/// Repeatable noise of a few percent.
fn noise(seed: u64) -> f64 {
    let mixed = (seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33) as f64 / f64::from(1_u32 << 31);
    1.0 + 0.06 * (mixed - 0.5)
}

pub(crate) struct Shape<'a> {
    pub(crate) experiment: &'a str,
    pub(crate) target: &'a str,
    pub(crate) workers: u32,
    pub(crate) repeat: u32,
    pub(crate) rate_per_s: Option<f64>,
    pub(crate) speed: f64,
    pub(crate) seconds: u32,
    /// The server is away from this second on, for four seconds.
    pub(crate) away_at: Option<u32>,
}

/// A trial of this shape, whose figures follow from its number.
pub(crate) fn trial(number: u32, shape: &Shape<'_>) -> TrialData {
    let seed = u64::from(number) * 1000;
    let tps =
        shape.rate_per_s.unwrap_or_else(|| throughput(shape.workers, shape.speed)) * noise(seed);
    let mean_us = f64::from(shape.workers) * 1e6 / tps;
    let series: Vec<SeriesRow> = (-5..shape.seconds as i32)
        .map(|second| {
            row(second, tps * noise(seed + 7 + second.unsigned_abs() as u64), mean_us, shape)
        })
        .collect();
    let measured: Vec<&SeriesRow> = series.iter().filter(|row| row.phase == "measured").collect();
    let committed: u64 = measured.iter().map(|row| row.committed).sum();
    let failed: u64 = measured.iter().map(|row| row.failed).sum();
    let counts = Counts {
        started: committed + failed + u64::from(shape.workers),
        committed,
        failed,
        retries: failed * 2,
        reconnects: measured.iter().map(|row| row.reconnects).sum(),
        ..Counts::default()
    };
    let window_s = f64::from(shape.seconds);
    let statements = StatementCounts {
        reads: committed * 14,
        others: committed * 2,
        rows_read: committed * 414,
        ..StatementCounts::default()
    };
    let latency = latency(committed, mean_us);
    let identity = TrialIdentity {
        step: format!("{}/{}/{}/{}", shape.experiment, shape.target, shape.workers, shape.repeat),
        experiment: shape.experiment.to_owned(),
        target: shape.target.to_owned(),
        test: "oltp_read_only".to_owned(),
        workers: shape.workers,
        repeat: shape.repeat,
        rate_per_s: shape.rate_per_s,
        warmup_s: 5.0,
        seed: 42,
        ..TrialIdentity::default()
    };
    let summary = TrialSummary {
        trial: number,
        started_at: "2026-11-21T21:11:00Z".to_owned(),
        connect_s: 0.042,
        window_s,
        counts,
        in_flight: u64::from(shape.workers),
        tps: committed as f64 / window_s,
        qps: statements.total() as f64 / window_s,
        offered: shape.rate_per_s.map(|rate| (rate * window_s) as u64),
        statements,
        wasted: StatementCounts { reads: failed * 3, ..StatementCounts::default() },
        latency,
        service: shape.rate_per_s.map(|_| latency),
        lateness: shape.rate_per_s.map(|_| latency),
        kinds: vec![KindSummary { name: "oltp_read_only".to_owned(), counts, statements, latency }],
        errors: errors(failed),
        generator: generator(&statements, window_s),
        ..identity.summary(TrialStatus::Complete)
    };
    let mut data = TrialData::new(summary, series);
    data.before = [("primary".to_owned(), facts(0))].into();
    data.after = [("primary".to_owned(), facts(committed))].into();
    data
}

/// The interval that begins at this second.
fn row(second: i32, tps: f64, mean_us: f64, shape: &Shape<'_>) -> SeriesRow {
    let from = shape.away_at.map_or(i32::MAX, |second| second as i32);
    let is_away = (from..from.saturating_add(4)).contains(&second);
    let is_back = shape.away_at.is_some() && second == from + 4;
    let committed = if is_away { 0 } else { tps as u64 };
    let slow = if is_back { 30.0 } else { 1.0 } * tps / tps.max(1.0);
    let us = |factor: f64| if is_away { 0.0 } else { mean_us * factor * slow };
    SeriesRow {
        begins_s: f64::from(second),
        length_s: 1.0,
        phase: if second < 0 { "warm_up" } else { "measured" }.to_owned(),
        started: committed,
        committed,
        failed: if is_away && second == from { u64::from(shape.workers) } else { 0 },
        retries: if is_away { 2 } else { 0 },
        reconnects: if is_back { u64::from(shape.workers) } else { 0 },
        errors: if is_away { 3 * u64::from(shape.workers) } else { 0 },
        reads: committed * 14,
        others: committed * 2,
        tps: committed as f64,
        qps: committed as f64 * 16.0,
        mean_us: us(1.0),
        p50_us: us(0.92),
        p95_us: us(1.7) * noise(second.unsigned_abs().into()),
        p99_us: us(2.9) * noise(second.unsigned_abs() as u64 + 5),
        max_us: us(9.0),
        loops_cpu_s: 0.4,
        host_cpu_share: 0.43,
        ..SeriesRow::default()
    }
}

/// Latencies around this mean.
fn latency(count: u64, mean_us: f64) -> LatencySummary {
    LatencySummary {
        count,
        missing: 0,
        min_us: mean_us * 0.4,
        mean_us,
        p50_us: mean_us * 0.92,
        p90_us: mean_us * 1.4,
        p95_us: mean_us * 1.7,
        p99_us: mean_us * 2.9,
        p999_us: mean_us * 5.5,
        max_us: mean_us * 14.0,
        sum_us: mean_us * count as f64,
    }
}

/// The errors of this many failed transactions.
fn errors(failed: u64) -> Vec<ErrorSummary> {
    if failed == 0 {
        return Vec::new();
    }
    vec![ErrorSummary {
        class: "connection_lost".to_owned(),
        errno: 2013,
        sqlstate: "08006".to_owned(),
        message: "Lost connection to server during query".into(),
        count: failed * 12,
    }]
}

/// A load generator that had time to spare.
fn generator(statements: &StatementCounts, window_s: f64) -> GeneratorSummary {
    let loops_cpu_s = 0.4 * window_s;
    GeneratorSummary {
        loop_queue: None,
        awaited: None,
        loops: 2,
        loops_cpu_s,
        busiest_loop_share: 0.27,
        cpu_us_per_statement: loops_cpu_s * 1e6 / statements.total() as f64,
        resident_mib: 23.4,
        host: HostSample {
            cpu_share: 0.43,
            memory_available_mib: 51_200.0,
            ..HostSample::default()
        },
        worker_transactions_mean: 1234.5,
        worker_transactions_stddev: 12.3,
        worker_busy_s_mean: window_s * 0.99,
        worker_busy_s_stddev: 0.01,
    }
}

/// Returns the state that a server reports after this many commits of the trial.
fn facts(committed: u64) -> ServerFacts {
    let mut counters = owned_map(&[("Innodb_data_fsyncs", "12"), ("Questions", "900")]);
    counters.insert("Com_commit".to_owned(), (1000 + committed * 11 / 10).to_string());
    ServerFacts {
        product: "MariaDB".to_owned(),
        version: "10.11.6-MariaDB".to_owned(),
        settings: owned_map(&[
            ("innodb_flush_log_at_trx_commit", "2"),
            ("sync_binlog", "0"),
            ("log_bin", "OFF"),
            ("innodb_doublewrite", "ON"),
            ("innodb_buffer_pool_size", "8589934592"),
            ("tx_isolation", "REPEATABLE-READ"),
            ("max_connections", "151"),
        ]),
        counters,
        ..ServerFacts::default()
    }
}

/// Returns pairs as settings or counters.
fn owned_map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// A run of these trials, with a note on a restart.
pub(crate) fn run(targets: &[&str], trials: Vec<TrialData>) -> RunData {
    let note = Event {
        at: "2026-11-21T21:30:00Z".to_owned(),
        trial: Some(2),
        at_s: Some(21.0),
        ..Event::new(
            EventKind::Server,
            Message::both("The server was restarted.", "服务器已重启。"),
        )
    };
    RunData {
        path: PathBuf::from("dyno-runs/2026-11-21T211030Z-synthetic"),
        header: header(targets),
        trials,
        events: vec![note],
        is_growing: false,
        warnings: Vec::new(),
    }
}

/// Two targets, several load levels, some repeats, one restart, an open loop, a short trial.
pub(crate) fn two_targets(workers: &[u32], repeats: u32, seconds: u32) -> RunData {
    let mut trials = Vec::new();
    let mut number = 0;
    for (target, speed) in [("maria", 1.0), ("postgres", 1.22)] {
        for &workers in workers {
            for repeat in 1..=repeats {
                number += 1;
                let away_at = (number == 2).then_some(seconds / 3);
                let shape = Shape {
                    experiment: "read_only",
                    target,
                    workers,
                    repeat,
                    rate_per_s: None,
                    speed,
                    seconds,
                    away_at,
                };
                trials.push(trial(number, &shape));
            }
        }
    }
    let shape = Shape {
        experiment: "open",
        target: "maria",
        workers: 64,
        repeat: 1,
        rate_per_s: Some(12.0),
        speed: 1.0,
        seconds,
        away_at: None,
    };
    trials.push(trial(number + 1, &shape));
    run(&["maria", "postgres"], trials)
}

/// A table of two rows, both about one target.
pub(crate) fn published() -> PublishedTable {
    let rows = [("class.small", "32", 9_000.0), ("class.large", "128", 16_500.0)];
    let rows = rows.map(|(label, threads, tps)| PublishedRow {
        label: label.to_owned(),
        number: 0,
        conditions: [("threads", threads), ("class", label)]
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
            .into(),
        metrics: [("tps".to_owned(), tps), ("qps".to_owned(), tps * 18.0)].into(),
        targets: vec!["maria".to_owned()],
    });
    PublishedTable {
        experiment: "read_only".to_owned(),
        title: "A vendor's figures".into(),
        source: "A vendor's white paper, 2020".into(),
        method: "sysbench 1.0.18 from one machine of the same zone.".into(),
        note: Some("Another data size.".into()),
        rows: rows.into(),
    }
}

/// A message as it is read from a run folder.
pub(crate) fn catalog_message(key: &str, args: &[(&str, &str)]) -> Message {
    dyno_facts::register(&[dyno_tpcc::CATALOG, dyno_tpch::CATALOG]);
    let args: serde_json::Value = args.iter().map(|(name, text)| (*name, *text)).collect();
    let stored = serde_json::json!({ "key": key, "args": args, "en": "unknown" });
    serde_json::from_value(stored).expect("a message")
}

/// The failure of a trial that a check denies.
fn failed_check(name: &str, evidence: &Message) -> Message {
    let [en, zh] = Lang::ALL.map(|lang| evidence.render(lang));
    Message::both(format!("The check {name} failed. {en}"), format!("校验 {name} 未通过。{zh}"))
}

/// The record of a family about a trial, to be changed: it is stored again when this is dropped.
pub(crate) struct Own<'a, T: FamilyRecord> {
    summary: &'a mut TrialSummary,
    facts: T,
}

pub(crate) fn own_mut<T: FamilyRecord + Clone>(summary: &mut TrialSummary) -> Own<'_, T> {
    let facts = summary.own::<T>().expect("facts").clone();
    Own { summary, facts }
}

impl<T: FamilyRecord> Deref for Own<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.facts
    }
}

impl<T: FamilyRecord> DerefMut for Own<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.facts
    }
}

impl<T: FamilyRecord> Drop for Own<'_, T> {
    fn drop(&mut self) {
        self.summary.own = Some(FamilyFacts::new(&self.facts));
    }
}
