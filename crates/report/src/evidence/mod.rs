//! Runs to the model of a paper.

mod capacity;
mod chapters;
mod distributions;
mod experiments;
mod fairness;
mod fault;
mod fleet;
mod glossary;
mod limits;
mod method;
mod model;
mod nodes;
pub(crate) mod points;
mod purpose;
mod resources;
mod runs;
mod scaling;
mod schema;
pub(crate) mod settings;
pub(crate) mod statements;
mod summary;

pub use capacity::Capacity;
pub use chapters::Chapter;
pub use distributions::{Distribution, Quantile};
pub use fairness::{CommitRow, Difference, DifferenceTable, Fairness, MemoryRow};
pub(crate) use fairness::{DISK_BOUND, IN_MEMORY};
pub(crate) use fault::what;
pub use fault::{FaultSummary, FaultTrial, fault_sentence};
pub use fleet::{FleetTable, GeneratorLoad};
pub(crate) use fleet::{start_spread_ms, strayed};
pub use glossary::GlossaryRow;
pub(crate) use glossary::row as glossary_row;
pub use nodes::{FreshnessRow, NodeFacts, NodeLoad, NodeTable};
pub use resources::{NodeUse, Resources, Use};
pub use scaling::NodeScaling;
pub use schema::SchemaRow;
pub(crate) use summary::headline;

use crate::findings::{checks, comparison, published, verdict};
use crate::text::Message;
use crate::{Published, PublishedTable};
use dyno_store::RunData;
pub use model::{
    Check, Counter, ErrorRow, Experiment, Finding, Gap, Group, KeyRow, LeftOut, Level, Paper,
    Place, Point, PointData, RunFacts, SettingRow, Spot, SpotKind, Spread, StatementRow, Target,
    Trial,
};

impl Paper {
    /// A paper about these runs, beside these published figures.
    pub fn new(runs: &[RunData], published: &[PublishedTable]) -> Paper {
        Paper::gated(runs, published, &[])
    }

    /// The same with gates beside those of the suites, judged in every experiment.
    pub fn gated(runs: &[RunData], published: &[PublishedTable], gates: &[String]) -> Paper {
        let numbered = || runs.iter().enumerate();
        let targets: Vec<Target> =
            numbered().flat_map(|(index, run)| runs::targets(runs, index, run)).collect();
        let trials: Vec<Trial> =
            numbered().flat_map(|(index, run)| runs::trials(runs, index, run)).collect();
        let experiments = experiments::experiments(runs, &targets, &trials, published);
        let is_elsewhere = |table: &&PublishedTable| {
            !experiments.iter().any(|experiment| experiment.name == table.experiment)
        };
        let mut titles: Vec<Message> = Vec::new();
        for run in runs {
            let title = Message::from(&run.header.title);
            if !titles.contains(&title) {
                titles.push(title);
            }
        }
        let mut run_facts: Vec<RunFacts> =
            numbered().map(|(index, run)| runs::facts(index, run)).collect();
        if let [run] = run_facts.as_mut_slice() {
            // The paper of one run stands in its folder.
            run.link = Some(String::new());
        }
        let mut paper = Paper {
            title: Message::list(&titles),
            summary: Vec::new(),
            purpose: Vec::new(),
            key_rows: Vec::new(),
            runs: run_facts,
            fairness: fairness::fairness(&targets, &trials, &experiments),
            method: Vec::new(),
            chapters: chapters::chapters(&experiments),
            capacity: Vec::new(),
            resources: resources::resources(&trials),
            other_published: published.iter().filter(is_elsewhere).map(Published::from).collect(),
            comparisons: Vec::new(),
            beside: Vec::new(),
            costs: Vec::new(),
            faults: Vec::new(),
            schema: schema::rows(&targets, &trials),
            distributions: Vec::new(),
            glossary: glossary::rows(&experiments),
            targets,
            experiments,
            trials,
            checks: Vec::new(),
            verdict: None,
            verdicts: Vec::new(),
            gates: Vec::new(),
            scaling: Vec::new(),
            steady: Vec::new(),
            limits: Vec::new(),
        };
        verdict::make(&mut paper, gates);
        checks::make(&mut paper, runs);
        // With the numbers of the checks that the points have now.
        paper.comparisons = comparison::comparisons(&paper.experiments);
        paper.key_rows = summary::key_rows(&paper);
        paper.beside = published::beside(&paper);
        paper.costs = published::costs(&paper);
        paper.faults = fault::summaries(&paper);
        paper.summary = summary::sentences(&paper);
        paper.purpose = purpose::sentences(&paper);
        paper.method = method::of_all(&paper);
        paper.capacity = capacity::rows(&paper);
        paper.distributions = distributions::distributions(&paper, runs);
        paper.limits = limits::sentences(&paper);
        paper
    }

    /// Says what leads from where the paper will stand to the folder of each run, in their order: a
    /// path with a slash at its end or an empty text; `None` leaves the files of a run unlinked.
    /// Without it the paper of one run links as if it stood in its folder, others don't link.
    #[must_use]
    pub fn linked(mut self, links: Vec<Option<String>>) -> Paper {
        for (run, link) in self.runs.iter_mut().zip(links) {
            run.link = link;
        }
        self
    }
}
