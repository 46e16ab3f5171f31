//! Statement by statement, over the repeats of each load level.

use crate::evidence::{StatementRow, Trial};
use crate::text::{Message, stored};

/// One row per load level and statement, in the order of the trials and scripts. As with points,
/// trials that were cut off or failed stand back where there are complete ones.
pub(crate) fn rows(trials: &[&Trial]) -> Vec<StatementRow> {
    let mut rows: Vec<StatementRow> = Vec::new();
    let level = |trial: &Trial| (trial.target.clone(), trial.summary.workers);
    for trial in trials {
        let has_better =
            trials.iter().any(|other| level(other) == level(trial) && other.status == "complete");
        if has_better && trial.status != "complete" {
            continue;
        }
        for statement in &trial.summary.statement_latencies {
            let new = StatementRow {
                target: trial.target.clone(),
                workers: trial.summary.workers,
                script: statement.script.clone(),
                number: statement.number,
                text: statement.text.split_whitespace().collect::<Vec<_>>().join(" "),
                count: statement.count,
                mean_us: statement.mean_us,
                min_us: statement.min_us,
                max_us: statement.max_us,
                failures: statement.failures,
                retries: statement.retries,
            };
            let key = |row: &StatementRow| {
                (row.target.clone(), row.workers, row.script.clone(), row.number)
            };
            match rows.iter_mut().find(|row| key(row) == key(&new)) {
                Some(row) => add(row, &new),
                None => rows.push(new),
            }
        }
    }
    rows
}

fn add(row: &mut StatementRow, more: &StatementRow) {
    let count = row.count + more.count;
    if more.count > 0 {
        let sum_us = row.mean_us * row.count as f64 + more.mean_us * more.count as f64;
        row.min_us = if row.count == 0 { more.min_us } else { row.min_us.min(more.min_us) };
        row.mean_us = sum_us / count as f64;
        row.max_us = row.max_us.max(more.max_us);
    }
    row.count = count;
    row.failures += more.failures;
    row.retries += more.retries;
}

/// How keys are drawn, each way once.
pub(crate) fn access(trials: &[&Trial]) -> Vec<Message> {
    let mut sentences: Vec<Message> = Vec::new();
    for data in trials.iter().filter_map(|trial| trial.summary.data.as_ref()) {
        let sentence = stored(&data.access);
        if !sentence.is_empty() && !sentences.contains(&sentence) {
            sentences.push(sentence);
        }
    }
    sentences
}
