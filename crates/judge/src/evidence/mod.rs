//! Evidence read from runs, before any judgment.

mod model;
mod nodes;
mod runs;
pub mod settings;
mod verdicts;

pub use model::*;
pub use nodes::*;
pub use runs::{Naming, why_set_aside};
pub use settings::query_settings;
pub use verdicts::*;

use crate::families::{FamilyLevel, FamilyScale, KnownFamily, completed};
use crate::format::{self, shell_word, unique};
use dyno_core::is_shardingsphere;
use dyno_facts::statistics::gate::Objective;
use dyno_facts::statistics::knee;
use dyno_facts::statistics::ratio::{FigureBound, Judging};
use dyno_facts::statistics::{Better, Metric, median, sequential};
use dyno_facts::{
    DataFacts, Event, EventKind, ExperimentFacts, KindSummary, Lang, LatencySummary, Message,
    NodeConditions, NodeRow, PaperTexts, PublishedRow, PublishedTable, Purpose, Role, Route,
    RunHeader, RunStatus, SAMPLES_BEYOND, SeriesRow, ServerFacts, StopRule, SuiteFacts,
    TargetFacts, TargetTexts, TrialStatus, TrialSummary, say,
};
use dyno_store::{RunData, TrialData};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

impl Evidence {
    /// Reads these runs, to be compared with these published figures, before anything is found in them.
    pub fn read(runs: &[RunData], published: &[PublishedTable], naming: &Naming<'_>) -> Evidence {
        let numbered = runs.iter().enumerate();
        let targets =
            numbered.clone().flat_map(|(index, run)| runs::make_targets(runs, index, run, naming));
        let mut targets: Vec<PaperTarget> = targets.collect();
        let texts = naming.texts(runs.first()).cloned().unwrap_or_default();
        targets.sort_by_key(|target| {
            texts.order.iter().position(|name| *name == target.facts.name).unwrap_or(usize::MAX)
        });
        let published = &merge_tables(published);
        let trials =
            numbered.clone().flat_map(|(index, run)| runs::make_trials(runs, index, run, naming));
        let (set_aside, trials): (Vec<Trial>, Vec<Trial>) =
            trials.partition(|trial| runs::is_set_aside(&runs[trial.run - 1], &trial.summary));
        let (stages, trials) = runs::stages(trials);
        let experiments = make_experiments(runs, &targets, &trials, published);
        let other_published = published.iter().filter(|table| {
            !experiments.iter().any(|experiment| experiment.name == table.experiment)
        });
        let mut run_facts: Vec<RunFacts> =
            numbered.map(|(index, run)| runs::make_facts(index, run)).collect();
        if let [run] = run_facts.as_mut_slice() {
            // The paper of one run is in its folder.
            run.link = Some(String::new());
        }
        Evidence {
            title: runs::title(runs, &texts),
            subtitle: runs::subtitle(runs, &texts),
            texts,
            runs: run_facts,
            other_published: other_published.map(Published::from).collect(),
            targets,
            experiments,
            trials,
            set_aside,
            stages,
        }
    }

    /// The point with the most throughput per experiment and target; complete ones are preferred. Where
    /// something was done to a node, throughput over the whole window means little.
    pub fn key_rows(&self) -> Vec<KeyRow<'_>> {
        let mut rows = Vec::new();
        for (index, experiment) in self.experiments.iter().enumerate() {
            for target in &self.targets {
                let results = experiment.points.iter().filter(|point| {
                    point.target == target.label
                        && !experiment.is_pass()
                        && !point.has_fault
                        // Only what a search found is a result: its steps offer more than is held.
                        && (experiment.objective.is_none() || point.purpose == Purpose::Confirm)
                });
                let best =
                    results.reduce(
                        |best, point| {
                            if rank_point(point) > rank_point(best) { point } else { best }
                        },
                    );
                rows.extend(best.map(|point| KeyRow { experiment, index, point }));
            }
        }
        rows
    }

    /// Like [`Evidence::key_rows`], but without points whose trials failed: those have no result.
    pub fn result_rows(&self) -> Vec<KeyRow<'_>> {
        self.key_rows().into_iter().filter(|row| row.point.status != "failed").collect()
    }

    /// The trials of an experiment, target by target.
    pub fn trials_in(&self, experiment: &Experiment) -> impl Iterator<Item = &Trial> {
        let mut trials: Vec<&Trial> = self.trials.iter().collect();
        trials.retain(|trial| trial.summary.experiment == experiment.name);
        trials.sort_by_key(|trial| {
            self.targets.iter().position(|target| target.label == trial.target)
        });
        trials.into_iter()
    }

    /// The trial with this label.
    pub fn trial(&self, label: &str) -> Option<&Trial> {
        self.trials.iter().find(|trial| trial.label == label)
    }

    /// The trials of each pair, baseline first.
    pub(crate) fn pairs<'a>(
        &'a self,
        comparison: &'a PairedComparison,
    ) -> impl Iterator<Item = (&'a Trial, &'a Trial)> {
        comparison.pairs.iter().filter_map(|[a, b]| Some((self.trial(a)?, self.trial(b)?)))
    }

    /// The trials that the figures of a point rest on.
    pub fn point_trials(&self, point: &Point) -> Vec<&Trial> {
        self.trials.iter().filter(|trial| point.trials.contains(&trial.label)).collect()
    }

    /// The conditions of a target's nodes, trial by trial.
    pub fn nodes_of<'a>(&'a self, target: &'a str) -> impl Iterator<Item = &'a NodeConditions> {
        let trials = self.trials.iter().filter(move |trial| trial.target == target);
        trials.flat_map(|trial| nodes::nodes_of(trial).map(|(_, node)| node))
    }
}

/// Orders points by completeness and throughput. If points were measured again, only the second time is without bias.
fn rank_point(point: &Point) -> (bool, bool, f64) {
    let is_confirmed = point.purpose == Purpose::Confirm;
    (point.status == "complete", is_confirmed, point.throughput().median)
}

fn make_experiments(
    runs: &[RunData],
    targets: &[PaperTarget],
    trials: &[Trial],
    published: &[PublishedTable],
) -> Vec<Experiment> {
    let mut known_facts: Vec<ExperimentFacts> = Vec::new();
    let run_facts = runs.iter().flat_map(|run| run.header.experiments.iter().cloned());
    let trial_facts = trials.iter().map(|trial| ExperimentFacts {
        name: trial.summary.experiment.clone(),
        title: trial.summary.experiment.clone(),
        test: trial.summary.test.clone(),
        ..ExperimentFacts::default()
    });
    for facts in run_facts.chain(trial_facts) {
        if !known_facts.iter().any(|known| known.name == facts.name) {
            known_facts.push(facts);
        }
    }
    let experiments = known_facts.into_iter().map(|facts| {
        let mut trials: Vec<&Trial> =
            trials.iter().filter(|trial| trial.summary.experiment == facts.name).collect();
        trials.sort_by_key(|trial| targets.iter().position(|target| target.label == trial.target));
        let windows_s =
            trials.iter().map(|trial| trial.summary.window_s).filter(|window_s| *window_s > 0.0);
        let published = published.iter().filter(|table| table.experiment == facts.name);
        // Calibration trials only determine the rate; they are not results.
        let results = trials
            .iter()
            .copied()
            .filter(|trial| !facts.is_together() || trial.summary.purpose != Purpose::Search);
        let points = model::points(&results.collect::<Vec<_>>());
        let test = facts.load();
        Experiment {
            is_open_loop: trials.iter().any(|trial| trial.summary.rate_per_s.is_some()),
            shortest_window_s: windows_s.reduce(f64::min),
            family: KnownFamily::for_experiment(&trials, &test),
            published: published.map(Published::from).collect(),
            node_scaling: nodes::scaling_by_nodes(&points, targets),
            points,
            objective: facts.search.as_ref().map(|search| search.objective.clone()),
            title: match facts.title.as_str() {
                "" => Message::verbatim(&facts.name),
                title => Message::either(title, &facts.title_zh),
            },
            description: Message::either(&facts.description, &facts.description_zh),
            test,
            facts,
        }
    });
    experiments.collect()
}

/// The reason why [`TrialSummary::figure`] has no figure of it above zero, in a few words.
pub fn why_no_figure(trial: &TrialSummary, metric: Metric) -> Message {
    match trial.figure(metric) {
        Some(_) => say!(figure_is_zero),
        None if metric.percentile().is_some() => say!(too_few_for_percentile),
        None => say!(it_has_no_such_figure),
    }
}

/// The kind of bound that a figure is which was not measured to its end.
pub fn figure_bound(trial: &TrialSummary, metric: Metric) -> Option<FigureBound> {
    KnownFamily::from_summary(trial)?.bound(trial, metric)
}

/// Metrics that comparisons of such trials judge, the deciding one first, and costs of a transaction. Among metrics that
/// follow from another (statements from transactions, in a closed loop the mean latency from the throughput) only one
/// is judged: every judgment costs the others some power.
pub fn judged_metrics(trial: &TrialSummary) -> Vec<Metric> {
    let family_metrics =
        KnownFamily::from_summary(trial).and_then(|family| family.judged_metrics());
    // For concurrent trials at one rate, the cost of a transaction is the most precise figure.
    if trial.is_together {
        return Metric::costs().chain([Metric::MeanMs, Metric::P95Ms]).collect();
    }
    let first = family_metrics.unwrap_or(match trial.rate_per_s {
        Some(_) => &[Metric::P99Ms, Metric::P95Ms, Metric::P50Ms],
        None => &[Metric::Tps, Metric::P95Ms, Metric::P99Ms],
    });
    first.iter().copied().chain(Metric::costs()).collect()
}

/// A published table with its columns, as a paper shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    pub table: PublishedTable,
    /// Names of the conditions that some row states, the row's label left out.
    pub conditions: Vec<String>,
    /// Names of the metrics that some row has.
    pub metrics: Vec<String>,
    /// The condition that states the number of workers; empty when none does.
    pub load_level: &'static str,
}

impl From<&PublishedTable> for Published {
    fn from(table: &PublishedTable) -> Self {
        let mut conditions = BTreeSet::new();
        let mut metrics = BTreeSet::new();
        for row in &table.rows {
            let row_conditions = row.conditions.iter().filter(|(_, value)| **value != row.label);
            conditions.extend(row_conditions.map(|(name, _)| name.clone()));
            metrics.extend(row.metrics.keys().cloned());
        }
        let mut metrics: Vec<String> = metrics.into_iter().collect();
        // Throughput first, as everywhere in the paper.
        metrics.sort_by_key(|name| {
            let place = ["tps", "qps", "data_qps"].iter().position(|known| known == name);
            place.unwrap_or(usize::MAX)
        });
        let mut load_levels = PublishedRow::LOAD_LEVELS.iter();
        let load_level = load_levels.find(|name| conditions.contains(**name));
        let load_level = load_level.copied().unwrap_or_default();
        let conditions = conditions.into_iter().collect();
        Published { table: table.clone(), conditions, metrics, load_level }
    }
}

/// Tables that several runs of a suite are compared with, each once: a row is the counterpart of all runs' targets.
fn merge_tables(tables: &[PublishedTable]) -> Vec<PublishedTable> {
    let mut merged: Vec<PublishedTable> = Vec::new();
    for table in tables {
        let merged_table = merged.iter_mut().find(|merged| {
            let mut rows = merged.rows.iter().zip(&table.rows);
            (&merged.experiment, &merged.title) == (&table.experiment, &table.title)
                && merged.rows.len() == table.rows.len()
                && rows.all(|(a, b)| (&a.label, &a.conditions) == (&b.label, &b.conditions))
        });
        let Some(merged_table) = merged_table else {
            merged.push(table.clone());
            continue;
        };
        for (row, other) in merged_table.rows.iter_mut().zip(&table.rows) {
            row.targets.extend_from_slice(&other.targets);
            row.targets = unique(std::mem::take(&mut row.targets));
        }
    }
    merged
}

/// The measured counterpart of a published row.
pub fn counterpart<'a>(
    experiment: &'a Experiment,
    row: &PublishedRow,
    target: &str,
) -> Option<&'a Point> {
    let points = experiment.points.iter().filter(|point| {
        point.target_name == target && point.status == "complete" && !point.has_fault
    });
    let workers = row.workers();
    let same_load =
        points.clone().find(|point| workers.is_none_or(|workers| workers == point.load()));
    // With a cap on workers no point has the published number: the nearest is shown.
    same_load.or_else(|| points.max_by(|a, b| a.load().total_cmp(&b.load())))
}

#[cfg(test)]
pub(crate) mod tests;
