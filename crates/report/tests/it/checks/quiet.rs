//! A run in which everything is known and nothing is to be remarked.

use crate::synthetic::{Shape, header, run, trial};
use dyno_facts::{
    CommitWait, ComparisonFacts, Conditions, DataFacts, ExperimentFacts, GeneratorConditions,
    NodeConditions, ReplicaFacts, ServerFacts, StopRule,
};
use dyno_store::{RunData, TrialData};

pub(crate) const BASELINE: &str = "old";
pub(crate) const CANDIDATE: &str = "new";
/// Pairs of trials.
const PAIRS: u32 = 6;

/// Two servers of one product on separate machines, six pairs in turns.
pub(crate) fn quiet() -> Vec<RunData> {
    let mut trials = Vec::new();
    for repeat in 1..=PAIRS {
        trials.push(one(2 * repeat - 1, BASELINE, repeat, 16));
        trials.push(one(2 * repeat, CANDIDATE, repeat, 16));
    }
    vec![quiet_run(trials)]
}

fn quiet_run(trials: Vec<TrialData>) -> RunData {
    let mut run = run(&[BASELINE, CANDIDATE], trials);
    run.header = header(&[BASELINE, CANDIDATE]);
    run.events.clear();
    run.header.environment.machine.disk = Some("vda, ext4".to_owned());
    for target in &mut run.header.targets {
        target.product = "MariaDB".to_owned();
        target.version = "10.11.6-MariaDB".to_owned();
        target.class = "16 vCPU, 64 GiB".to_owned();
        target.same_host = false;
    }
    let comparison = ComparisonFacts {
        baseline: BASELINE.to_owned(),
        candidates: vec![CANDIDATE.to_owned()],
        stop: StopRule { pairs_least: 6, half_width: None, ..StopRule::default() },
        data_state: "untouched".to_owned(),
        ..ComparisonFacts::default()
    };
    let options = [("tables", "64"), ("table_size", "100000"), ("rand_type", "uniform")];
    run.header.experiments = vec![ExperimentFacts {
        name: "read_only".to_owned(),
        title: "Read only".to_owned(),
        test: "sysbench oltp_read_only".to_owned(),
        options: options.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        warmup_s: 5.0,
        duration_s: Some(60.0),
        comparison: Some(comparison),
        ..ExperimentFacts::default()
    }];
    run
}

/// A trial of 60 s.
pub(crate) fn one(number: u32, target: &str, repeat: u32, workers: u32) -> TrialData {
    let shape = Shape {
        experiment: "read_only",
        target,
        workers,
        repeat,
        rate_per_s: None,
        speed: if target == BASELINE { 1.0 } else { 1.1 },
        seconds: 60,
        away_at: None,
    };
    // The noise of numbers in a row is none: it would be a history of the session.
    let mut data = trial(number * number * 5 % 97, &shape);
    data.summary.trial = number;
    data.summary.conditions = conditions(data.summary.counts.committed);
    data.summary.data = Some(DataFacts {
        rows: 6_400_000,
        hot_rows: Some(6_400_000),
        size_bytes: Some(16 << 30),
        memory_setting: "innodb_buffer_pool_size".to_owned(),
        memory_bytes: Some(8 << 30),
        ..DataFacts::default()
    });
    data.before.values_mut().chain(data.after.values_mut()).for_each(settings);
    data
}

/// A server that keeps what it has acknowledged.
fn settings(facts: &mut ServerFacts) {
    facts.settings.insert("innodb_flush_log_at_trx_commit".to_owned(), "1".to_owned());
}

/// Conditions in which no check finds anything, after this many commits.
fn conditions(committed: u64) -> Conditions {
    let node = NodeConditions {
        round_trip_us: Some(180.0),
        cpu_share: Some(0.93),
        isolation: Some("REPEATABLE-READ".to_owned()),
        cache_bytes: Some(8 << 30),
        hit_share: Some(0.995),
        pages_read: Some(50_000),
        dirty_share: Some(0.02),
        purge_backlog: Some(40),
        checkpoint_age_share: Some(0.1),
        checkpoints: Some(2),
        checkpoint_interval_s: Some(30.0),
        commits: Some(committed * 11 / 10 + 50),
        client_commits: Some(committed * 11 / 10),
        statements: Some(committed * 16),
        growth_share: Some(0.0),
        query_cache: Some(false),
        schema_checksum: Some("5f3a".to_owned()),
        table_rows: (1..=64).map(|table| (format!("sbtest{table}"), 100_000)).collect(),
        replicas: vec![ReplicaFacts { mode: "semi-sync".to_owned(), ..ReplicaFacts::default() }],
        acknowledged_by: Some(CommitWait::Copies("1 semi-sync replica".into())),
        transport: Some("tcp".to_owned()),
        ..NodeConditions::default()
    };
    Conditions {
        generator: GeneratorConditions {
            cpu_pressure_share: Some(0.01),
            memory_pressure_share: Some(0.0),
            io_pressure_share: Some(0.0),
            foreign_cpu_share: None,
            run_delay_s: Some(0.5),
            hiccup_p999_us: Some(90.0),
            hiccup_max_us: Some(700.0),
            network_share: Some(0.2),
            retransmitted_share: Some(0.000_1),
            swapped_pages: Some(0),
            throttled_share: Some(0.0),
            suspended_ms: Some(0.0),
            governor: Some("performance".to_owned()),
            headroom: Some(5.0),
            starved: None,
            starved_share: None,
        },
        nodes: [("primary".to_owned(), node)].into(),
        ..Conditions::default()
    }
}

/// Gives the candidate's trials the baseline's figures, times these ratios by repeat; latencies keep
/// their own ratio.
pub(crate) fn with_ratios(runs: &mut [RunData], tps: [f64; 6], latency: [f64; 6]) {
    let baseline: Vec<TrialData> =
        runs[0].trials.iter().filter(|trial| trial.summary.target == BASELINE).cloned().collect();
    for trial in runs[0].trials.iter_mut().filter(|trial| trial.summary.target == CANDIDATE) {
        let index = trial.summary.repeat as usize - 1;
        let like = &baseline[index].summary;
        trial.summary.tps = like.tps * tps[index];
        trial.summary.qps = like.qps * tps[index];
        trial.summary.latency = like.latency;
        let latencies = &mut trial.summary.latency;
        for value in [
            &mut latencies.mean_us,
            &mut latencies.p50_us,
            &mut latencies.p95_us,
            &mut latencies.p99_us,
            &mut latencies.p999_us,
        ] {
            *value *= latency[index];
        }
    }
}
