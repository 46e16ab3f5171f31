//! `dyno show`.

mod fleet;
mod tpcc;
mod tpch;

use super::{RUNS, find_run};
use crate::Done;
use dyno_facts::{Purpose, TrialStatus, TrialSummary};
use dyno_report::fault_sentence;
use dyno_runner::output;
use dyno_runner::table::{grouped, layout, number};
use dyno_store::RunData;
use std::path::PathBuf;

/// What `dyno show` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A run: its folder, its name, the beginning of its name, or `last`.
    #[arg(default_value = "last")]
    run: String,
    /// Folder in which runs are kept.
    #[arg(long, value_name = "FOLDER", default_value = RUNS)]
    dir: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> Done {
    let data = dyno_store::read(&find_run(&arguments.dir, &arguments.run)?)?;
    for warning in &data.warnings {
        output::talk(&format!("warning: {warning}"));
    }
    output::data(&tables(&data));
    output::data(&statements(&data));
    Ok(())
}

/// Points, errors and accounting of a run as text.
pub(crate) fn tables(data: &RunData) -> String {
    let mut text = format!("{}\n", data.header.title);
    for target in &data.header.targets {
        text.push_str(&format!("{}: {} {}\n", target.name, target.product, target.version));
    }
    if data.trials.is_empty() {
        text.push_str("\nNo trial was run.\n");
        return text;
    }
    // Queries of TPC-H are no transactions per second: they have tables of their own.
    let of_transactions = || data.trials.iter().filter(|trial| trial.summary.tpch.is_none());
    let rows: Vec<Vec<String>> = of_transactions().map(|trial| row(&trial.summary)).collect();
    let header = [
        "trial",
        "experiment",
        "target",
        "workers",
        "tx/s",
        "stmt/s",
        "mean ms",
        "p50",
        "p95",
        "p99",
        "max",
        "errors",
        "CPU us/stmt",
        "status",
    ];
    if !rows.is_empty() {
        text.push_str(&format!("\n{}\n", layout(&header, &rows, 3)));
    }
    for trial in of_transactions() {
        text.push_str(&accounting(&trial.summary));
        text.push('\n');
        // Where it did not happen, the status of the trial says why.
        let fault = trial.summary.fault.as_ref();
        if let Some(fault) = fault.filter(|fault| !fault.steps.is_empty()) {
            text.push_str(&format!(
                "trial {}, fault: {}\n",
                trial.summary.trial,
                fault_sentence(fault)
            ));
        }
    }
    text.push_str(&fleet::tables(data));
    text.push_str(&tpcc::tables(data));
    text.push_str(&tpch::tables(data));
    text.push_str(&errors(data));
    text.push_str(&hot_data(data));
    text.push_str(&checks(data));
    text
}

fn row(trial: &TrialSummary) -> Vec<String> {
    let ms = |us: f64| number(us / 1e3);
    let errors: u64 = trial.errors.iter().map(|error| error.count).sum();
    vec![
        trial.trial.to_string(),
        trial.experiment.clone(),
        trial.target.clone(),
        load(trial),
        number(trial.tps),
        number(trial.qps),
        ms(trial.latency.mean_us),
        ms(trial.latency.p50_us),
        ms(trial.latency.p95_us),
        ms(trial.latency.p99_us),
        ms(trial.latency.max_us),
        grouped(&errors.to_string()),
        number(trial.generator.cpu_us_per_statement),
        status(trial).to_owned(),
    ]
}

/// Workers, and the rate that they were offered.
fn load(trial: &TrialSummary) -> String {
    match trial.rate_per_s {
        Some(rate) => format!("{} at {}/s", trial.workers, number(rate)),
        None => trial.workers.to_string(),
    }
}

fn status(trial: &TrialSummary) -> &'static str {
    match trial.status {
        TrialStatus::Complete => match trial.purpose {
            Purpose::Measure => "complete",
            Purpose::Search => "search",
            Purpose::Confirm => "confirmation",
        },
        TrialStatus::Interrupted => "interrupted",
        TrialStatus::Failed(_) => "failed",
    }
}

/// The accounting identity of a trial in words.
fn accounting(trial: &TrialSummary) -> String {
    let counts = &trial.counts;
    let n = |number: u64| grouped(&number.to_string());
    let why = match &trial.status {
        TrialStatus::Failed(why) => format!(" Failed: {why}"),
        TrialStatus::Complete | TrialStatus::Interrupted => String::new(),
    };
    format!(
        "trial {}: {} started = {} committed + {} rolled back + {} failed + {} skipped + {} in \
         flight; {} retries, {} reconnects.{why}",
        trial.trial,
        n(counts.started),
        n(counts.committed),
        n(counts.rolled_back),
        n(counts.failed),
        n(counts.skipped),
        n(trial.in_flight),
        n(counts.retries),
        n(counts.reconnects),
    )
}

/// How much of the data is hot, and how large they are.
fn hot_data(data: &RunData) -> String {
    let share =
        |share: Option<f64>| share.map_or_else(|| "-".to_owned(), |share| number(share * 100.0));
    let mib = |bytes: Option<u64>| {
        bytes.map_or_else(|| "-".to_owned(), |bytes| number(bytes as f64 / 1_048_576.0))
    };
    let described =
        data.trials.iter().filter_map(|trial| Some((trial, trial.summary.data.as_ref()?)));
    let rows: Vec<Vec<String>> = described
        .map(|(trial, facts)| {
            vec![
                trial.summary.trial.to_string(),
                facts.memory_setting.clone(),
                grouped(&facts.rows.to_string()),
                facts.hot_rows.map_or_else(|| "-".to_owned(), |rows| grouped(&rows.to_string())),
                share(facts.hot_share()),
                mib(facts.size_bytes),
                mib(facts.memory_bytes),
                facts.size_to_memory().map_or_else(|| "-".to_owned(), number),
                number(trial.summary.data_qps()),
            ]
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let header = [
        "trial",
        "memory setting",
        "rows",
        "hot rows",
        "hot %",
        "data MiB",
        "memory MiB",
        "data/memory",
        "reads+writes/s",
    ];
    format!("\n{}", layout(&header, &rows, 2))
}

/// How the checks of the data ended.
fn checks(data: &RunData) -> String {
    let rows: Vec<Vec<String>> = data
        .trials
        .iter()
        .flat_map(|trial| {
            trial.summary.checks.iter().map(|check| {
                vec![
                    trial.summary.trial.to_string(),
                    check.name.clone(),
                    check.verdict.name().to_owned(),
                    check.evidence.clone(),
                ]
            })
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    format!("\n{}", layout(&["trial", "check", "verdict", "evidence"], &rows, 4))
}

/// Statement by statement.
fn statements(data: &RunData) -> String {
    let ms = |us: f64| number(us / 1e3);
    let rows: Vec<Vec<String>> = data
        .trials
        .iter()
        .flat_map(|trial| {
            trial.summary.statement_latencies.iter().map(move |statement| {
                vec![
                    trial.summary.trial.to_string(),
                    statement.script.clone(),
                    statement.text.split_whitespace().collect::<Vec<_>>().join(" "),
                    grouped(&statement.count.to_string()),
                    ms(statement.mean_us),
                    ms(statement.min_us),
                    ms(statement.max_us),
                    grouped(&statement.failures.to_string()),
                    grouped(&statement.retries.to_string()),
                ]
            })
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let header = [
        "trial",
        "script",
        "statement",
        "executions",
        "mean ms",
        "min",
        "max",
        "failures",
        "retries",
    ];
    format!("\n{}", layout(&header, &rows, 3))
}

fn errors(data: &RunData) -> String {
    let rows: Vec<Vec<String>> = data
        .trials
        .iter()
        .flat_map(|trial| {
            trial.summary.errors.iter().map(|error| {
                vec![
                    trial.summary.trial.to_string(),
                    error.class.clone(),
                    error.errno.to_string(),
                    error.sqlstate.clone(),
                    error.message.clone(),
                    grouped(&error.count.to_string()),
                ]
            })
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let header = ["trial", "class", "errno", "SQLSTATE", "first message", "count"];
    format!("\n{}", layout(&header, &rows, 5))
}
