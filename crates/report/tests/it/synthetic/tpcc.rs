//! A made-up run of TPC-C: two load levels without pauses, one of whose trials lost an order, and one
//! with keying and think times that is too slow.

use super::{Shape, catalog_message, failed_check, header, latency, own_mut, run, trial};
use dyno_facts::{
    CheckVerdict, Counts, DataCheck, DataFacts, ExperimentFacts, FamilyFacts, KindSummary, Message,
    Metric, NodeConditions, PublishedRow, PublishedTable, SeriesRow, StatementCounts, TrialStatus,
};
use dyno_store::{RunData, TrialData};
use dyno_tpcc::facts::{AuditLine, ConditionLine, ConditionState, PauseFacts, TpccFacts, TpccKind};
use std::collections::BTreeMap;

const KINDS: [&str; 6] =
    ["new_order", "payment", "order_status", "delivery", "stock_level", "delivery_deferred"];
const LIMITS_S: [f64; 6] = [5.0, 5.0, 5.0, 5.0, 20.0, 80.0];
const LEAST: [f64; 6] = [0.0, 43.0, 4.0, 4.0, 4.0, 0.0];
const PAUSES_S: [(f64, f64); 5] = [(18.0, 12.0), (3.0, 12.0), (2.0, 10.0), (2.0, 5.0), (2.0, 5.0)];
/// Duration of each kind relative to the average transaction.
const SLOWNESS: [f64; 6] = [1.6, 0.6, 0.4, 2.8, 1.9, 5.0];

struct Case {
    number: u32,
    experiment: &'static str,
    target: &'static str,
    repeat: u32,
    terminals: u32,
    sessions: u32,
    is_spec: bool,
}

/// Share of each kind in `all` transactions, in percent; a Delivery is queued, then executed.
fn shares(is_spec: bool) -> Vec<f64> {
    if is_spec {
        return vec![43.48, 43.47, 4.35, 4.35, 4.35, 4.35];
    }
    vec![45.0, 43.0, 4.0, 4.0, 4.0]
}

/// The kinds of `all` transactions: their counts and latencies.
fn kinds(all: u64, mean_us: f64, case: &Case) -> Vec<KindSummary> {
    let kinds = shares(case.is_spec).into_iter().enumerate().map(|(index, share)| {
        let count = (all as f64 * share / 100.0) as u64;
        let rolled_back = if index == 0 { count / 100 } else { 0 };
        let counts = Counts {
            started: count + if case.number == 2 && index == 0 { 10 } else { 0 },
            committed: count - rolled_back,
            rolled_back,
            failed: if case.number == 2 && index == 0 { 10 } else { 0 },
            retries: if index == 1 { 7 } else { 0 },
            ..Counts::default()
        };
        KindSummary {
            name: KINDS[index].to_owned(),
            counts,
            statements: StatementCounts::default(),
            latency: latency(count, mean_us * SLOWNESS[index]),
        }
    });
    kinds.collect()
}

/// The record of a trial, without its rates.
fn facts(case: &Case) -> TpccFacts {
    let is_spec = case.is_spec;
    let kinds = shares(is_spec).into_iter().enumerate();
    let kinds = kinds.map(|(index, share_percent)| TpccKind {
        name: KINDS[index].to_owned(),
        limit_p90_s: LIMITS_S[index],
        share_percent: if index == 5 { 0.0 } else { share_percent },
        least_share_percent: LEAST[index],
        pauses: PAUSES_S.get(index).filter(|_| is_spec).map(|(keying_s, think_s)| PauseFacts {
            thinks: 4_000,
            think_s: think_s * 1.01,
            think_clause_s: *think_s,
            keyings: 3_980,
            keying_s: *keying_s,
            keying_clause_s: *keying_s,
        }),
    });
    TpccFacts {
        profile: if is_spec { "spec" } else { "bmsql-5.0" }.to_owned(),
        isolation: (!is_spec).then(|| "READ COMMITTED".to_owned()),
        warehouses: 2,
        warehouses_loaded: if is_spec { 2 } else { 5 },
        terminals: case.terminals,
        sessions: case.sessions,
        tpmc_limit: is_spec.then_some(25.72),
        kinds: kinds.collect(),
        orders_acknowledged: 2_700,
        orders_unknown: if case.number == 2 { 3 } else { 0 },
        deliveries: 240,
        deliveries_with_skips: if is_spec { 12 } else { 1 },
        audit: audit(case),
        conditions: conditions(case),
        ..TpccFacts::default()
    }
}

/// The audit of the random inputs; not made in trial 3.
fn audit(case: &Case) -> Vec<AuditLine> {
    if case.number == 3 {
        return Vec::new();
    }
    let (remote, verdict) = if case.is_spec {
        ("0.00%", CheckVerdict::Failed)
    } else {
        ("1.02%", CheckVerdict::Passed)
    };
    vec![
        audit_line(
            catalog_message("tpcc.audit_mix_new_order", &[]),
            "45.1%".into(),
            "45%",
            "+- 1.2%".into(),
            6_000,
            CheckVerdict::Passed,
        ),
        audit_line("remote lines".into(), remote.into(), "1%", "+- 0.21%".into(), 27_000, verdict),
        audit_line(
            catalog_message("tpcc.audit_items", &[]),
            catalog_message("tpcc.audit_chi_square", &[("value", "14.2")]),
            "NURand(8191)",
            catalog_message("tpcc.audit_at_most", &[("value", "38.9")]),
            27_000,
            CheckVerdict::Passed,
        ),
        audit_line(
            catalog_message("tpcc.audit_last_names", &[]),
            "-".into(),
            "NURand(255)",
            "-".into(),
            12,
            CheckVerdict::NotMade,
        ),
    ]
}

/// A line of the audit of the random inputs.
fn audit_line(
    name: Message,
    observed: Message,
    expected: &str,
    bound: Message,
    of: u64,
    verdict: CheckVerdict,
) -> AuditLine {
    AuditLine { name, observed, expected: expected.into(), bound, of, verdict }
}

/// The consistency conditions; not checked in the trial with pauses.
fn conditions(case: &Case) -> Vec<ConditionLine> {
    let passed = ConditionState { verdict: CheckVerdict::Passed, evidence: Message::default() };
    if case.is_spec {
        return Vec::new();
    }
    let violated = Message::both("1 violation: d_w_id 1, d_id 4", "1 处违反：d_w_id 1, d_id 4");
    let violated = ConditionState { verdict: CheckVerdict::Failed, evidence: violated };
    let unread = catalog_message("tpcc.check_stopped", &[]);
    let unread = ConditionState { verdict: CheckVerdict::NotMade, evidence: unread };
    let c2 = if case.number == 4 { violated } else { passed.clone() };
    let x5 = if case.number == 3 { unread } else { passed.clone() };
    let lines = [
        ("C1", "tpcc.c1", Some(passed.clone())),
        ("C2", "tpcc.c2", Some(c2)),
        ("C11", "tpcc.c11", None),
        ("X5", "tpcc.x5", Some(x5)),
    ];
    let lines = lines.map(|(id, rule, after)| ConditionLine {
        id: id.to_owned(),
        rule: catalog_message(rule, &[]),
        before: Some(passed.clone()),
        after,
    });
    lines.into()
}

/// Splits the transactions of each interval over the kinds.
fn share_out(case: &Case, series: &mut [SeriesRow]) {
    let parts = shares(case.is_spec);
    for (place, row) in series.iter_mut().enumerate() {
        if case.is_spec {
            // Ten seconds with about ten transactions.
            (row.begins_s, row.length_s) = (row.begins_s * 10.0, 10.0);
            let orders = 3 + (place as u64 * 7) % 4;
            row.committed = orders + 7;
            row.committed_by_kind = vec![orders, 4, 1, 1, 1, 1];
            continue;
        }
        let committed = row.committed as f64;
        row.committed_by_kind =
            parts.iter().map(|share| (committed * share / 100.0) as u64).collect();
    }
}

/// A trial with its record.
fn one(case: &Case) -> TrialData {
    let shape = Shape {
        experiment: case.experiment,
        target: case.target,
        workers: case.sessions,
        repeat: case.repeat,
        rate_per_s: None,
        speed: if case.is_spec { 0.001 } else { 0.1 },
        seconds: if case.is_spec { 60 } else { 12 },
        away_at: (case.number == 2).then_some(5),
    };
    let mut data = trial(case.number, &shape);
    share_out(case, &mut data.series);
    let summary = &mut data.summary;
    let mean_us = if case.is_spec { 2_600_000.0 } else { summary.latency.mean_us };
    let n_transactions = if case.is_spec { 530 } else { summary.counts.committed };
    if case.is_spec {
        (summary.window_s, summary.warmup_s) = (600.0, 50.0);
    }
    summary.kinds = kinds(n_transactions, mean_us, case);
    let mut sum = Counts::default();
    summary.kinds.iter().for_each(|kind| sum.add(&kind.counts));
    sum.started += summary.in_flight;
    summary.counts = sum;
    summary.test = format!("tpcc {}", if case.is_spec { "spec" } else { "bmsql-5.0" });
    let mut facts = facts(case);
    facts.set_rates(&summary.kinds, summary.window_s);
    summary.own = Some(FamilyFacts::new(&facts));
    summary.data = Some(DataFacts {
        rows: 200_000,
        size_bytes: Some(200_000_000),
        memory_setting: "innodb_buffer_pool_size".to_owned(),
        memory_bytes: Some(8 << 30),
        access: Message::both(
            "Items and customers are drawn by NURand. Terminals have a warehouse and district each, drawn once; they choose by weights of 43, 4, 4, 4.",
            "商品与客户由 NURand 抽取。每个终端有一次抽定的仓库与区；终端按权重（43, 4, 4, 4）选择事务。",
        ),
        ..DataFacts::default()
    });
    let is_lost = case.number == 4;
    let books = |verdict, evidence: Message| DataCheck {
        name: DataCheck::BOOKS.to_owned(),
        verdict,
        evidence,
    };
    summary.checks = match (case.is_spec, is_lost) {
        (true, _) => Vec::new(),
        (false, false) => vec![books(CheckVerdict::Passed, "2 warehouses, 20 districts.".into())],
        (false, true) => {
            vec![books(
                CheckVerdict::Failed,
                Message::both(
                    "The orders of district 4 of warehouse 1 grew by 9, and 10 were acknowledged, 0 of unknown outcome.",
                    "仓库 1 区 4 的订单 增加了 9，而已确认的为 10，结果未知的为 0。",
                ),
            )]
        }
    };
    if is_lost {
        summary.status = TrialStatus::Failed(failed_check("books", &summary.checks[0].evidence));
    }
    data
}

/// Four trials without pauses on one target, one with them on another.
pub(crate) fn tpcc() -> RunData {
    let cases = [(1, 1, 10), (2, 2, 10), (3, 1, 1000), (4, 2, 1000)];
    let cases = cases.map(|(number, repeat, terminals)| Case {
        number,
        experiment: "orders",
        target: "standard",
        repeat,
        terminals,
        sessions: terminals,
        is_spec: false,
    });
    let paced = Case {
        number: 5,
        experiment: "paced",
        target: "other",
        repeat: 1,
        terminals: 20,
        sessions: 4,
        is_spec: true,
    };
    let trials = cases.iter().chain([&paced]).map(one);
    let mut run = run(&["standard", "other"], trials.collect());
    run.events.clear();
    run.header = header(&["standard", "other"]);
    run.header.title = "TPC-C on made-up servers".to_owned();
    let experiments = [
        ("orders", "BenchmarkSQL's profile", "tpcc bmsql-5.0"),
        ("paced", "With keying and think times", "tpcc spec"),
    ];
    let experiments = experiments.map(|(name, title, test)| ExperimentFacts {
        name: name.to_owned(),
        title: title.to_owned(),
        test: test.to_owned(),
        options: [("warehouses".to_owned(), "2".to_owned())].into(),
        ..ExperimentFacts::default()
    });
    run.header.experiments = experiments.into();
    run
}

/// Two printed rows, one of which is measured.
pub(crate) fn published() -> Vec<PublishedTable> {
    let row = |number, label: &str, processes: &str, tpmc: f64, targets: &[&str]| PublishedRow {
        label: label.to_owned(),
        number,
        conditions: [
            ("edition", label),
            ("warehouses", "1000"),
            ("load_generators", processes),
            ("terminals_per_generator", "1000"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into(),
        metrics: [("tpmc".to_owned(), tpmc)].into(),
        targets: targets.iter().map(|target| (*target).to_owned()).collect(),
    };
    vec![PublishedTable {
        experiment: "orders".to_owned(),
        title: "A vendor's editions".into(),
        source: "A vendor's white paper".into(),
        method: "BenchmarkSQL 5.0.".into(),
        note: None,
        rows: vec![
            row(1, "standard", "1", 65_735.14, &["standard"]),
            row(2, "extra-large", "6", 821_547.97, &[]),
        ],
    }]
}

/// Three editions at two numbers of terminals each, behind an endpoint over 1, 2 and 4 shards. Every second shard has
/// twice the work of the others.
pub(crate) fn editions() -> RunData {
    const TARGETS: [(&str, u32); 3] = [("shards-1", 1), ("shards-2", 2), ("shards-4", 4)];
    let cases =
        TARGETS.into_iter().flat_map(|target| [16, 64].map(|terminals| (target, terminals)));
    // The first numbers are those of trials that went wrong.
    let trials = (5..).zip(cases).map(|(number, ((target, shards), terminals))| {
        let (experiment, repeat, is_spec) = ("stand-ins", 1, false);
        let sessions = terminals;
        let case = Case { number, experiment, target, repeat, terminals, sessions, is_spec };
        let mut data = one(&case);
        let committed = data.summary.counts.committed as f64;
        let mut facts = own_mut::<TpccFacts>(&mut data.summary);
        facts.shards = Some(shards);
        facts.crossing_share = Some(if shards > 1 { 0.05 } else { 0.0 });
        drop(facts);
        data.summary.conditions.nodes = nodes(shards, committed);
        data
    });
    let trials = trials.collect();
    let names = TARGETS.map(|(name, _)| name);
    let mut run = run(&names, trials);
    run.events.clear();
    run.header = header(&names);
    run.header.experiments = vec![ExperimentFacts {
        name: "stand-ins".to_owned(),
        title: "Stand-ins".to_owned(),
        test: "tpcc bmsql-5.0".to_owned(),
        ..ExperimentFacts::default()
    }];
    run
}

/// An endpoint that uses 40 us a transaction, and shards that use 60 us together.
fn nodes(shards: u32, committed: f64) -> BTreeMap<String, NodeConditions> {
    let node = |role: &str, cpu_us: f64| NodeConditions {
        role: Some(role.to_owned()),
        measures: [(Metric::CpuS, Some(committed * cpu_us / 1e6))].into(),
        cpu_of: Some("mariadbd".to_owned()),
        ..NodeConditions::default()
    };
    let parts: Vec<f64> = (0..shards).map(|shard| f64::from(1 + shard % 2)).collect();
    let total_parts: f64 = parts.iter().sum();
    let shards = parts.iter().enumerate().map(|(place, part)| {
        let conditions = NodeConditions {
            writes: Some((committed * 20.0 * part / total_parts) as u64),
            ..node("shard", 60.0 * part / total_parts)
        };
        (format!("n{}", place + 1), conditions)
    });
    shards.chain([("endpoint".to_owned(), node("endpoint", 40.0))]).collect()
}
