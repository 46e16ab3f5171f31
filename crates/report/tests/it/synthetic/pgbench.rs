//! A made-up run of two pgbench scripts: data, statements, a check that failed.

use super::{Shape, failed_check, header, run, trial};
use dyno_facts::{
    CheckVerdict, DataCheck, DataFacts, ExperimentFacts, Message, PublishedRow, PublishedTable,
    ScriptFacts, StatementCounts, StatementLatency, TrialStatus,
};
use dyno_store::{RunData, TrialData};

const SELECT: &str = "SELECT abalance\nFROM pgbench_accounts\nWHERE aid = :aid;";

/// The latencies of a statement, longer the higher its number.
fn latency(number: u32, text: &str, count: u64) -> StatementLatency {
    let us = f64::from(number) * 100.0;
    StatementLatency {
        script: "pgbench/read.sql".to_owned(),
        number,
        text: text.to_owned(),
        count,
        mean_us: us,
        min_us: us / 2.0,
        max_us: us * 9.0,
        failures: u64::from(number == 2),
        retries: u64::from(number == 3),
    }
}

/// A trial on 8 workers; the second repeat of a write breaks the data.
fn one(number: u32, experiment: &str, repeat: u32, is_write: bool) -> TrialData {
    let shape = Shape {
        experiment,
        target: "medium",
        workers: 8,
        repeat,
        rate_per_s: None,
        speed: 1.0,
        seconds: 6,
        away_at: None,
    };
    let mut data = trial(number, &shape);
    let summary = &mut data.summary;
    let committed = summary.counts.committed;
    summary.statements = if is_write {
        StatementCounts {
            reads: committed,
            writes: 4 * committed,
            others: 2 * committed,
            ..StatementCounts::default()
        }
    } else {
        StatementCounts { reads: committed, ..StatementCounts::default() }
    };
    summary.qps = summary.statements.total() as f64 / summary.window_s;
    summary.data = Some(DataFacts {
        rows: 1_000_000,
        hot_rows: Some(500_000),
        access: Message::both(
            "Accounts are drawn uniformly from the hot range.",
            "账户在热点范围内均匀抽取。",
        ),
        size_bytes: Some(157_286_400),
        memory_setting: "shared_buffers".to_owned(),
        memory_bytes: Some(134_217_728),
    });
    let texts: &[&str] = if is_write { &["BEGIN;", SELECT, "END;"] } else { &[SELECT] };
    summary.statement_latencies =
        (1..).zip(texts).map(|(number, text)| latency(number, text, committed)).collect();
    if is_write {
        let (verdict, evidence) = match repeat {
            1 => (
                CheckVerdict::Passed,
                Message::both(
                    "The sums of accounts, tellers and branches changed by 5 each.",
                    "accounts、tellers 与 branches 的总额各变化 5。",
                ),
            ),
            _ => (
                CheckVerdict::Failed,
                Message::both(
                    "The sums changed by different amounts, but must change alike: accounts by 6, tellers by 5.",
                    "各总额的变化不同，而它们必须一致：accounts by 6, tellers by 5。",
                ),
            ),
        };
        if verdict == CheckVerdict::Failed {
            summary.status = TrialStatus::Failed(failed_check("balances", &evidence));
        }
        summary.checks = vec![DataCheck { name: "balances".to_owned(), verdict, evidence }];
    }
    data
}

/// One experiment that reads, one that writes; of the latter's two trials the second broke the data.
pub(crate) fn pgbench() -> RunData {
    let trials = vec![one(1, "reads", 1, false), one(2, "pays", 1, true), one(3, "pays", 2, true)];
    let mut run = run(&["medium"], trials);
    run.events.clear();
    run.header = header(&["medium"]);
    run.header.title = "pgbench".to_owned();
    let experiments = [("reads", "It reads"), ("pays", "It pays")];
    let experiments = experiments.map(|(name, title)| ExperimentFacts {
        name: name.to_owned(),
        title: title.to_owned(),
        test: "pgbench script".to_owned(),
        options: [("scale".to_owned(), "10".to_owned())].into(),
        scripts: vec![ScriptFacts {
            name: "pgbench/read.sql".to_owned(),
            weight: 1,
            text: format!("\\set aid 5\n{SELECT}\n"),
            ..ScriptFacts::default()
        }],
        ..ExperimentFacts::default()
    });
    run.header.experiments = experiments.into();
    run
}

/// One printed row: a column for each experiment.
pub(crate) fn published() -> Vec<PublishedTable> {
    let tables = [("reads", "read-only", 34_386.0), ("pays", "read-write", 19_886.0)];
    let tables = tables.map(|(experiment, script, qps)| PublishedTable {
        experiment: experiment.to_owned(),
        title: "A vendor's classes".into(),
        source: "A vendor's white paper".into(),
        method: "pgbench -M prepared.".into(),
        note: None,
        rows: vec![PublishedRow {
            label: "class.medium".to_owned(),
            number: 4,
            conditions: [
                ("clients", "8"),
                ("threads", "16"),
                ("rows", "100000000"),
                ("script", script),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
            metrics: [("data_qps".to_owned(), qps)].into(),
            targets: vec!["medium".to_owned()],
        }],
    });
    tables.into()
}
