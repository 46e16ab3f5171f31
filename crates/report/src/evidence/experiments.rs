//! Trials by experiment.

use super::{fleet, method, nodes, scaling};
use crate::evidence::{ErrorRow, Experiment, LeftOut, Target, Trial};
use crate::evidence::{points, statements};
use crate::text::stored;
use crate::{Published, PublishedTable, tpcc, tpch};
use dyno_facts::ExperimentFacts;
use dyno_store::RunData;

pub(super) fn experiments(
    runs: &[RunData],
    targets: &[Target],
    trials: &[Trial],
    published: &[PublishedTable],
) -> Vec<Experiment> {
    let mut known: Vec<ExperimentFacts> = Vec::new();
    for facts in runs.iter().flat_map(|run| &run.header.experiments) {
        if !known.iter().any(|other| other.name == facts.name) {
            known.push(facts.clone());
        }
    }
    for trial in trials {
        let name = &trial.summary.experiment;
        if !known.iter().any(|facts| facts.name == *name) {
            let test = trial.summary.test.clone();
            known.push(ExperimentFacts {
                name: name.clone(),
                title: name.clone(),
                test,
                ..ExperimentFacts::default()
            });
        }
    }
    let experiment = |facts: ExperimentFacts| {
        let place = |trial: &&Trial| targets.iter().position(|target| target.label == trial.target);
        let mut own: Vec<&Trial> =
            trials.iter().filter(|trial| trial.summary.experiment == facts.name).collect();
        own.sort_by_key(place);
        let measured =
            own.iter().map(|trial| trial.summary.window_s).filter(|window| *window > 0.0);
        let published: Vec<&PublishedTable> =
            published.iter().filter(|table| table.experiment == facts.name).collect();
        let points = points::points(&own);
        Experiment {
            method: method::sentences(&facts, &own),
            is_open_loop: own.iter().any(|trial| trial.summary.rate_per_s.is_some()),
            shortest_window_s: measured.reduce(f64::min),
            statements: statements::rows(&own),
            access: statements::access(&own),
            tpcc: tpcc::section(&own, targets),
            tpch: tpch::section(&own, &points, targets, &published),
            errors: errors(&own),
            published: published.into_iter().map(Published::from).collect(),
            left_out: left_out(runs, &facts.name),
            node_scaling: scaling::by_nodes(&points, targets),
            node_tables: nodes::tables(&points, &own, targets),
            freshness: nodes::freshness(&points, &own),
            fleet: fleet::tables(&points, &own),
            points,
            comparison: facts.comparison,
            gates: facts.gates,
            objective: facts.objective,
            title: if facts.title.is_empty() { facts.name.clone() } else { facts.title },
            name: facts.name,
            test: facts.test,
            options: facts.options,
            scripts: facts.scripts,
        }
    };
    known.into_iter().map(experiment).collect()
}

/// The steps of an experiment that were skipped, repeats told once.
fn left_out(runs: &[RunData], experiment: &str) -> Vec<LeftOut> {
    let mut rows: Vec<LeftOut> = Vec::new();
    for (id, why) in runs.iter().flat_map(|run| &run.header.skipped) {
        let Some(step) = id.strip_prefix(experiment).and_then(|rest| rest.strip_prefix('/')) else {
            continue;
        };
        let step = step.split("/repeat=").next().unwrap_or(step);
        let row = LeftOut { what: step.replace('/', ", "), why: stored(why) };
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    rows
}

fn errors(trials: &[&Trial]) -> Vec<ErrorRow> {
    let mut rows: Vec<ErrorRow> = Vec::new();
    for trial in trials {
        for error in &trial.summary.errors {
            let same = |row: &&mut ErrorRow| {
                row.target == trial.target
                    && (&row.class, row.errno, &row.sqlstate)
                        == (&error.class, error.errno, &error.sqlstate)
            };
            match rows.iter_mut().find(same) {
                Some(row) => {
                    row.count += error.count;
                    row.trials.push(trial.label.clone());
                }
                None => rows.push(ErrorRow {
                    target: trial.target.clone(),
                    class: error.class.clone(),
                    errno: error.errno,
                    sqlstate: error.sqlstate.clone(),
                    count: error.count,
                    message: error.message.clone(),
                    trials: vec![trial.label.clone()],
                }),
            }
        }
    }
    rows
}
