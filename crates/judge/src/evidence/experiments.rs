//! Trials by experiment.

use super::scaling;
use crate::evidence::Published;
use crate::evidence::points;
use crate::evidence::{Experiment, PaperTarget, Trial};
use crate::families::KnownFamily;
use crate::text::Message;
use dyno_facts::{ExperimentFacts, PublishedTable};
use dyno_store::RunData;

pub(super) fn experiments(
    runs: &[RunData],
    targets: &[PaperTarget],
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
        let test = facts.load();
        Experiment {
            planned_window_s: facts.duration_s,
            is_open_loop: own.iter().any(|trial| trial.summary.rate_per_s.is_some()),
            shortest_window_s: measured.reduce(f64::min),
            family: KnownFamily::of_experiment(&own, &test),
            published: published.into_iter().map(Published::from).collect(),
            node_scaling: scaling::by_nodes(&points, targets),
            points,
            comparison: facts.comparison,
            restart_each: facts.restart_each,
            reload_each: facts.reload_each,
            gates: facts.gates,
            objective: facts.search.map(|search| search.objective),
            title: match facts.title.as_str() {
                "" => Message::verbatim(&facts.name),
                title => Message::either(title, &facts.title_zh),
            },
            description: Message::either(&facts.description, &facts.description_zh),
            name: facts.name,
            test,
            options: facts.options,
            scripts: facts.scripts,
        }
    };
    known.into_iter().map(experiment).collect()
}
