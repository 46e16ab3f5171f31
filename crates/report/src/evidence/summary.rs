//! The whole in a table and a paragraph.

use super::{fault, scaling};
use crate::evidence::{KeyRow, Paper, Point, Target};
use crate::families::FAMILIES;
use crate::format;
use crate::text::Message;
use crate::tpcc;
use dyno_facts::{Purpose, say};

/// The point with the most throughput per experiment and target; complete ones are preferred. Where
/// something was done to a node, throughput over the whole window means little.
pub(super) fn key_rows(paper: &Paper) -> Vec<KeyRow> {
    let mut rows = Vec::new();
    for (experiment_index, experiment) in paper.experiments.iter().enumerate() {
        for target in &paper.targets {
            // Of a search only what it found is a result: its steps offer more than is held.
            let is_result =
                |point: &Point| experiment.objective.is_none() || point.purpose == Purpose::Confirm;
            let is_own = |point: &&Point| {
                let is_usual = point.tpch.is_none() && !point.has_fault;
                point.target == target.label && is_usual && is_result(point)
            };
            let own = experiment.points.iter().filter(is_own);
            // Of points that were measured again, only the second time is without bias.
            let is_confirmed = |point: &Point| point.purpose == Purpose::Confirm;
            let rank = |point: &Point| {
                (point.status == "complete", is_confirmed(point), point.throughput().median)
            };
            let best =
                own.reduce(|best, point| if rank(point) > rank(best) { point } else { best });
            rows.extend(best.map(|point| KeyRow {
                experiment: experiment.title.clone(),
                experiment_index,
                point: point.clone(),
            }));
        }
    }
    rows
}

/// So many sentences of what was reached are in the summary.
const MOST: usize = 3;

/// What was measured, what did not end well, what was reached.
pub(super) fn sentences(paper: &Paper) -> Vec<Message> {
    if paper.trials.is_empty() {
        return vec![say!(no_trial_has_been_executed_yet)];
    }
    let mut sentences = vec![extent(paper)];
    sentences.extend(not_ended_well(paper));
    sentences.extend(paper.verdict.clone());
    let told = reached(paper);
    sentences.extend(told.iter().take(MOST).cloned());
    if told.len() > MOST {
        sentences.push(say!(the_table_has_the_others));
    }
    sentences.extend(paper.experiments.iter().flat_map(scaling::sentences));
    sentences
}

/// The first sentences of what was reached: the cover has no more room.
pub(crate) fn headline(paper: &Paper) -> Vec<Message> {
    match paper.trials.is_empty() {
        true => vec![say!(no_trial_has_been_executed_yet)],
        false => paper.verdict.iter().cloned().chain(reached(paper)).take(2).collect(),
    }
}

/// A sentence for each experiment and target.
fn reached(paper: &Paper) -> Vec<Message> {
    let of_families = paper.experiments.iter().flat_map(|experiment| {
        FAMILIES.into_iter().flat_map(move |family| family.reached(experiment))
    });
    let of_faults = paper.faults.iter().map(fault::summary_sentence);
    let of_transactions = paper.key_rows.iter().map(best);
    of_faults.chain(of_transactions).chain(of_families).collect()
}

fn extent(paper: &Paper) -> Message {
    let describe = |target: &Target| match target.product.as_str() {
        "" => Message::from(&target.label),
        product => say!(target_product, target = &target.label, product = product),
    };
    let is_measured =
        |target: &&Target| paper.trials.iter().any(|trial| trial.target == target.label);
    let targets: Vec<Message> = paper.targets.iter().filter(is_measured).map(describe).collect();
    let points: usize = paper.experiments.iter().map(|experiment| experiment.points.len()).sum();
    let points = match paper.experiments.iter().any(|experiment| experiment.tpch.is_some()) {
        true => say!(n_points, n = points),
        false => say!(n_load_levels, n = points),
    };
    say!(
        dyno_measured_at_on,
        trials = say!(n_complete_trials, n = ended(paper, "complete")),
        points = points,
        targets = Message::list(&targets),
    )
}

fn ended(paper: &Paper, status: &str) -> u64 {
    paper.trials.iter().filter(|trial| trial.status == status).count() as u64
}

fn not_ended_well(paper: &Paper) -> Option<Message> {
    let cut = ended(paper, "interrupted") + ended(paper, "running");
    let failed = ended(paper, "failed");
    let others: Vec<Message> =
        [(cut, say!(trials_were_cut_off, n = cut)), (failed, say!(n_trials_failed, n = failed))]
            .into_iter()
            .filter(|(number, _)| *number > 0)
            .map(|(_, words)| words)
            .collect();
    (!others.is_empty()).then(|| say!(beside_these_others, others = Message::list(&others)))
}

fn best(row: &KeyRow) -> Message {
    let point = &row.point;
    if let Some(tpcc) = &point.tpcc {
        return tpcc::words::best(&row.experiment, &point.target, tpcc);
    }
    let workers = say!(n_workers, n = point.workers);
    let (tps, qps) = (format::short(point.tps.median), format::short(point.qps.median));
    match point.p95_us {
        Some(p95) => say!(
            reached_transactions_s_statements_s_with,
            experiment = &row.experiment,
            target = &point.target,
            tps = tps,
            qps = qps,
            workers = workers,
            p95 = format::ms(p95.median),
        ),
        None => say!(
            reached_transactions_s_statements_s_with_2,
            experiment = &row.experiment,
            target = &point.target,
            tps = tps,
            qps = qps,
            workers = workers,
        ),
    }
}
