//! Statement by statement, over the repeats of each load level.

use super::Trial;
use dyno_facts::StatementLatency;

/// Target, workers and latencies of each statement at each load level, in the order of the trials and scripts.
/// As with points, trials that were cut off or failed stand back where there are complete ones.
pub(crate) fn rows<'a>(
    trials: impl Iterator<Item = &'a Trial>,
) -> Vec<(&'a str, u32, StatementLatency)> {
    fn level(trial: &Trial) -> (&str, u32) {
        (&trial.target, trial.summary.workers)
    }
    let trials: Vec<&Trial> = trials.collect();
    let is_complete = |trial: &Trial| trial.status == "complete";
    let has_better =
        |trial: &Trial| trials.iter().any(|o| level(o) == level(trial) && is_complete(o));
    let mut rows: Vec<(&str, u32, StatementLatency)> = Vec::new();
    for trial in trials.iter().filter(|trial| is_complete(trial) || !has_better(trial)) {
        let (target, workers) = level(trial);
        for statement in &trial.summary.statement_latencies {
            let same = |row: &&mut (&str, u32, StatementLatency)| {
                let known = (row.0, row.1, &row.2.script, row.2.number);
                known == (target, workers, &statement.script, statement.number)
            };
            match rows.iter_mut().find(same) {
                Some(row) => add(&mut row.2, statement),
                None => rows.push((target, workers, statement.clone())),
            }
        }
    }
    rows
}

fn add(row: &mut StatementLatency, more: &StatementLatency) {
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
