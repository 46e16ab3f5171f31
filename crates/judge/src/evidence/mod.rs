//! What was read of runs, before anything is said of it.

mod experiments;
mod figures;
mod fleet;
mod model;
mod naming;
mod nodes;
pub mod points;
mod published;
pub mod runs;
pub mod scaling;
pub mod settings;
mod verdicts;

pub use figures::why_no_figure;
pub use figures::{bound_of, figure_of, judged_metrics};
pub use fleet::{by_nodes, start_spread_ms, strayed};
pub use model::{BEYOND_MEMORY, IN_MEMORY};
pub use model::{
    Check, Counter, Evidence, Experiment, Finding, Gap, Group, Judgment, KeyRow, Level,
    PaperTarget, Point, PointData, RunFacts, SettingRow, Spot, SpotKind, TargetPlace, Trial,
    Verdicts,
};
pub use model::{GlossaryRow, glossary_row};
pub use naming::Naming;
pub use nodes::{is_autocommit, node_role, nodes_of, only_reads, place_of_role, reads, reads_of};
pub use points::Spread;
pub use published::{Published, counterpart};
pub use runs::why_set_aside;
pub use scaling::NodeScaling;
pub use settings::of_queries as settings_of_queries;
pub use verdicts::judging;
pub use verdicts::{
    AaKind, Bounds, Call, GateResult, GateRow, LevelChange, LevelNumbers, PairOrder,
    PairedComparison, RepetitionLevel, RepetitionLevels, Scaling, SessionRow, StallRow, SteadyRow,
    VerdictRow, Veto, VetoReach,
};

use dyno_facts::{NodeConditions, PublishedTable, Purpose};
use dyno_store::RunData;

impl Evidence {
    /// What was read of these runs, beside these published figures, before anything is found in it.
    pub fn read(runs: &[RunData], published: &[PublishedTable], naming: &Naming<'_>) -> Evidence {
        let numbered = || runs.iter().enumerate();
        let mut targets: Vec<PaperTarget> =
            numbered().flat_map(|(index, run)| runs::targets(runs, index, run, naming)).collect();
        let texts = naming.texts(runs.first()).cloned().unwrap_or_default();
        let place = |target: &PaperTarget| {
            texts.order.iter().position(|name| *name == target.facts.name).unwrap_or(usize::MAX)
        };
        targets.sort_by_key(place);
        let published = &published::merged(published);
        let all = numbered().flat_map(|(index, run)| runs::trials(runs, index, run, naming));
        let (set_aside, trials): (Vec<Trial>, Vec<Trial>) =
            all.partition(|trial| runs::is_set_aside(&runs[trial.run - 1], &trial.summary));
        let (stages, trials) = runs::stages(trials);
        let experiments = experiments::experiments(runs, &targets, &trials, published);
        let is_elsewhere = |table: &&PublishedTable| {
            !experiments.iter().any(|experiment| experiment.name == table.experiment)
        };
        let mut run_facts: Vec<RunFacts> =
            numbered().map(|(index, run)| runs::facts(index, run)).collect();
        if let [run] = run_facts.as_mut_slice() {
            // The paper of one run stands in its folder.
            run.link = Some(String::new());
        }
        Evidence {
            title: naming::title(runs, &texts),
            subtitle: naming::subtitle(runs, &texts),
            texts,
            runs: run_facts,
            other_published: published.iter().filter(is_elsewhere).map(Published::from).collect(),
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
            // Of a search only what it found is a result: its steps offer more than is held.
            let is_result =
                |point: &Point| experiment.objective.is_none() || point.purpose == Purpose::Confirm;
            let is_usual = |point: &&Point| !experiment.is_pass() && !point.has_fault;
            // Of points that were measured again, only the second time is without bias.
            let rank = |point: &Point| {
                let is_confirmed = point.purpose == Purpose::Confirm;
                (point.status == "complete", is_confirmed, point.throughput().median)
            };
            for target in &self.targets {
                let own = experiment.points.iter().filter(|point| point.target == target.label);
                let own = own.filter(is_usual).filter(|point| is_result(point));
                let best =
                    own.reduce(|best, point| if rank(point) > rank(best) { point } else { best });
                rows.extend(best.map(|point| KeyRow { experiment, index, point }));
            }
        }
        rows
    }

    /// The same without points whose trials failed: those have no result.
    pub fn result_rows(&self) -> Vec<KeyRow<'_>> {
        self.key_rows().into_iter().filter(|row| row.point.status != "failed").collect()
    }

    /// The trials of an experiment, target by target.
    pub fn trials_in(&self, experiment: &Experiment) -> impl Iterator<Item = &Trial> {
        let place = |trial: &Trial| self.targets.iter().position(|own| own.label == trial.target);
        let own = self.trials.iter().filter(|trial| trial.summary.experiment == experiment.name);
        let mut own: Vec<&Trial> = own.collect();
        own.sort_by_key(|trial| place(trial));
        own.into_iter()
    }

    /// The trials that the figures of a point rest on.
    pub fn trials_of(&self, point: &Point) -> Vec<&Trial> {
        self.trials.iter().filter(|trial| point.trials.contains(&trial.label)).collect()
    }

    /// The conditions of a target's nodes, trial by trial.
    pub fn nodes_of<'a>(&'a self, target: &'a str) -> impl Iterator<Item = &'a NodeConditions> {
        let own = self.trials.iter().filter(move |trial| trial.target == target);
        own.flat_map(|trial| nodes::nodes_of(trial).map(|(_, node)| node))
    }
}
