//! TPC-H in a paper: the table of the 22 queries, its charts and checks, and everything that has to
//! stand beside them.

mod charts;
mod evidence;
mod load;
mod plans;
mod rules;
mod section;
mod tables;
pub(crate) mod words;

pub use evidence::{CacheRow, FailureRow, FormulaRow, RefreshRow, Told, WrongAnswer};
pub use load::{LoadRow, LoadTable};
pub use plans::{PlanCell, PlanLink, PlanRow};
pub use tables::{
    AnswerCount, DegreeColumn, PublishedSeconds, QueryCell, QueryRow, Speedup, TpchTable,
};

use charts::drawings;
use rules::RULES;
pub(crate) use section::TpchPaper;

use crate::evidence::settings;
use crate::evidence::{Experiment, Paper, Point, SettingRow, Target, Trial};
use crate::text::Message;
use dyno_facts::TrialSummary;
use dyno_tpch::facts::TpchFacts;
use serde::Serialize;

/// Queries of TPC-H.
pub(crate) const QUERIES: u8 = 22;

/// Name of a trial's check of its answers.
pub(crate) const ANSWERS: &str = "answers";

/// What tells apart the points of a TPC-H experiment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct TpchSetup {
    /// `queries`, `power` or `throughput`.
    pub test: String,
    /// Scale factor: 1 is about a gigabyte.
    pub scale: f64,
    /// Sessions that execute queries side by side.
    pub streams: u32,
    /// `warm`, `cold` or `as found`.
    pub cache: String,
    /// The parallel degree asked for; 0 is off.
    pub degree: u32,
}

impl TpchSetup {
    /// That of a trial; `None` where it is no TPC-H.
    pub(crate) fn of(trial: &TrialSummary) -> Option<Self> {
        let facts = trial.own::<TpchFacts>()?;
        Some(TpchSetup {
            test: facts.test.clone(),
            scale: facts.scale,
            streams: trial.workers.max(1),
            cache: facts.cache.state.clone(),
            degree: facts.degree.asked,
        })
    }
}

/// An experiment's section on TPC-H.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct TpchSection {
    /// That this is no TPC result.
    pub disclosure: Message,
    /// Which columns have something in them.
    pub shown: Shown,
    /// By target and test: the 22 queries at every degree.
    pub tables: Vec<TpchTable>,
    /// How the degrees were set and what is to be said of them, in sentences.
    pub degrees: Vec<Message>,
    /// Published times of the same queries.
    pub published: Vec<PublishedSeconds>,
    /// Answers that differ from those that they were held against.
    pub wrong: Vec<WrongAnswer>,
    /// Queries that were given up, failed or were interrupted.
    pub failures: Vec<FailureRow>,
    /// What the caches held, by point.
    pub caches: Vec<CacheRow>,
    /// How the data were loaded.
    pub loads: Vec<LoadTable>,
    /// How the metrics were computed.
    pub formulas: Vec<FormulaRow>,
    /// The refresh functions.
    pub refreshes: Vec<RefreshRow>,
    /// What the queries' texts differ in from the specification's.
    pub rewrites: Vec<Told>,
    /// In what the trials depart from the specification.
    pub deviations: Vec<Told>,
    /// By target: settings that decide how queries are executed.
    pub settings: Vec<QuerySettings>,
}

/// Columns that only some runs can fill.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Shown {
    pub power: bool,
    pub throughput: bool,
    /// The composite of both.
    pub qphh: bool,
    /// Pages read for a query.
    pub pages: bool,
}

impl Shown {
    fn of(tables: &[TpchTable]) -> Self {
        let any = |has: fn(&DegreeColumn) -> bool| {
            tables.iter().flat_map(|table| &table.degrees).any(has)
        };
        let cells = || tables.iter().flat_map(|table| &table.plans).flat_map(|row| &row.cells);
        Shown {
            power: any(|degree| degree.power.is_some()),
            throughput: any(|degree| degree.throughput.is_some()),
            qphh: any(|degree| degree.qphh.is_some()),
            pages: cells().any(|cell| cell.pages_read.is_some()),
        }
    }
}

/// The settings of a target that decide how queries are executed.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct QuerySettings {
    /// Label of the target.
    pub target: String,
    /// In a fixed order.
    pub rows: Vec<SettingRow>,
}

/// The facts of a trial.
pub(crate) fn facts(trial: &Trial) -> Option<&TpchFacts> {
    trial.summary.own::<TpchFacts>()
}

/// True when the trial has executed queries.
pub(crate) fn is_measured(trial: &Trial) -> bool {
    facts(trial).is_some_and(|facts| !facts.queries.is_empty())
}

/// How an experiment's queries are executed and timed, in sentences; `None` where it is no TPC-H.
fn method(trials: &[&Trial]) -> Option<Vec<Message>> {
    let own: Vec<&Trial> = trials.iter().copied().filter(|trial| facts(trial).is_some()).collect();
    (!own.is_empty()).then(|| words::method(&own))
}

/// The trials of an experiment that are TPC-H.
fn trials_of<'a>(paper: &'a Paper, experiment: &'a Experiment) -> Vec<&'a Trial> {
    paper.trials_in(experiment).filter(|trial| facts(trial).is_some()).collect()
}

fn tables_of(paper: &Paper, experiment: &Experiment) -> Vec<TpchTable> {
    tables::tables(&trials_of(paper, experiment), &experiment.points)
}

/// What tells a point apart.
fn setup_of(trials: &[&Trial], point: &Point) -> Option<TpchSetup> {
    let first = trials.iter().find(|trial| point.trials.contains(&trial.label))?;
    TpchSetup::of(&first.summary)
}

/// The section of an experiment; `None` where none of its trials is TPC-H.
fn section(paper: &Paper, experiment: &Experiment) -> Option<TpchSection> {
    let (own, points) = (trials_of(paper, experiment), &experiment.points);
    if own.is_empty() {
        return None;
    }
    let is_own = |target: &&Target| own.iter().any(|trial| trial.target == target.label);
    let settings = |target: &Target| QuerySettings {
        target: target.label.clone(),
        rows: settings::of_queries(&target.all_settings),
    };
    let mut deviations = evidence::told(&own, |facts| &facts.deviations);
    deviations.extend(words::never().map(Told::of_all));
    let tables = tables::tables(&own, points);
    Some(TpchSection {
        disclosure: words::disclosure(),
        shown: Shown::of(&tables),
        degrees: words::degrees_set(&tables),
        tables,
        published: tables::published(experiment),
        wrong: evidence::wrong(&own),
        failures: evidence::failures(&own),
        caches: evidence::caches(&own, points),
        loads: load::tables(&own),
        formulas: evidence::formulas(&own),
        refreshes: evidence::refreshes(&own),
        rewrites: evidence::told(&own, |facts| &facts.rewrites),
        deviations,
        settings: paper
            .targets
            .iter()
            .filter(is_own)
            .map(settings)
            .filter(|settings| !settings.rows.is_empty())
            .collect(),
    })
}
