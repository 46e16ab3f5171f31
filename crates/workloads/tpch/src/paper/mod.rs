//! TPC-H in a paper: the table of the 22 queries, its charts and checks, and everything that has to
//! stand beside them.

mod charts;
mod evidence;
mod load;
mod rules;
mod section;
mod tables;
mod words;

pub(crate) use tables::AnswerCount;
use tables::{PublishedSeconds, TpchTable, published_query};
pub(crate) use words::answers as answers_words;

use rules::RULES;

use crate::facts::TpchFacts;
use dyno_facts::statistics::ratio::FigureBound;
use dyno_facts::statistics::{Better, Metric};
use dyno_facts::{FamilyRecord, Lang, Message, PublishedTable, TrialSummary, say};
use dyno_report::blocks::{Blocks, PaperTable};
use dyno_report::{
    Evidence, Experiment, FamilyLevel, FamilyPaper, GlossaryRow, JudgedFamily, Method, Paper,
    Point, Rule, Trial, glossary_row,
};

/// Queries of TPC-H.
const QUERIES: u8 = 22;

/// Name of a trial's check of its answers.
const ANSWERS: &str = "answers";

/// What tells apart the points of a TPC-H experiment.
#[derive(Clone, PartialEq)]
struct TpchSetup {
    /// `queries`, `power`, `throughput` or `performance`.
    test: String,
    /// Scale factor: 1 is about a gigabyte.
    scale: f64,
    /// Sessions that execute queries side by side.
    streams: u32,
    /// `warm`, `cold` or `as found`.
    cache: String,
    /// The parallel degree asked for; 0 is off.
    degree: u32,
}

impl TpchSetup {
    /// That of a trial; `None` where it is no TPC-H.
    fn of(trial: &TrialSummary) -> Option<Self> {
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

/// What the section of an experiment is made from.
struct TpchSection<'a> {
    trials: Vec<&'a Trial>,
    /// By target and test: the 22 queries at every degree.
    tables: Vec<TpchTable<'a>>,
    /// Published times of the same queries.
    published: Vec<PublishedSeconds>,
}

/// The facts of a trial.
fn facts(trial: &Trial) -> Option<&TpchFacts> {
    trial.summary.own::<TpchFacts>()
}

/// True when the trial has executed queries.
fn is_measured(trial: &Trial) -> bool {
    facts(trial).is_some_and(|facts| !facts.queries.is_empty())
}

/// How an experiment's queries are executed and timed, in sentences; `None` where it is no TPC-H.
fn method(trials: &[&Trial]) -> Option<Vec<Message>> {
    let own: Vec<&Trial> = trials.iter().copied().filter(|trial| facts(trial).is_some()).collect();
    (!own.is_empty()).then(|| words::method(&own))
}

/// The trials of an experiment that are TPC-H.
fn trials_of<'a>(evidence: &'a Evidence, experiment: &'a Experiment) -> Vec<&'a Trial> {
    evidence.trials_in(experiment).filter(|trial| facts(trial).is_some()).collect()
}

fn tables_of<'a>(evidence: &'a Evidence, experiment: &'a Experiment) -> Vec<TpchTable<'a>> {
    tables::tables(&trials_of(evidence, experiment), &experiment.points)
}

/// What tells a point apart.
fn setup_of(trials: &[&Trial], point: &Point) -> Option<TpchSetup> {
    let first = trials.iter().find(|trial| point.trials.contains(&trial.label))?;
    TpchSetup::of(&first.summary)
}

/// `None` where no trial is TPC-H.
fn section<'a>(paper: &'a Paper, experiment: &'a Experiment) -> Option<TpchSection<'a>> {
    let trials = trials_of(paper, experiment);
    let tables = tables::tables(&trials, &experiment.points);
    let published = tables::published(experiment);
    (!trials.is_empty()).then_some(TpchSection { trials, tables, published })
}

/// TPC-H in a paper.
pub struct TpchPaper;

/// Its chapter of papers.
pub const PAPER: TpchPaper = TpchPaper;

impl JudgedFamily for TpchPaper {
    fn name(&self) -> &'static str {
        TpchFacts::FAMILY
    }

    fn tests(&self) -> &'static [&'static str] {
        &["tpch", "tpc-h"]
    }

    fn derived_from(&self, _test: &str) -> Option<&'static str> {
        Some("TPC-H")
    }

    fn is_pass(&self) -> bool {
        true
    }

    fn level(&self, summary: &TrialSummary) -> Option<FamilyLevel> {
        let setup = TpchSetup::of(summary)?;
        let load = say!(degree_degree, degree = setup.degree.to_string());
        Some(FamilyLevel {
            setup: words::setup(&setup),
            size: setup.degree.into(),
            words: match setup.test.as_str() {
                "queries" => load.clone(),
                test => say!(test_degree, test = test, degree = load.clone()),
            },
            name: format!("{} degree={}", setup.test, setup.degree),
            load,
            terminals: None,
            scale: None,
        })
    }

    fn is_measured(&self, summary: &TrialSummary) -> bool {
        summary.own::<TpchFacts>().is_some_and(|facts| !facts.queries.is_empty())
    }

    fn progress(&self, summary: &TrialSummary) -> Option<Message> {
        Some(say!(n_queries_executed, n = summary.own::<TpchFacts>()?.queries.len()))
    }

    fn judges(&self, data_check: &str) -> bool {
        data_check == ANSWERS
    }

    fn complete(&self, summary: &mut TrialSummary) {
        if let Some(facts) = summary.own::<TpchFacts>().cloned() {
            facts.set_totals(summary);
        }
    }

    /// With a query that was given up.
    fn bound(&self, trial: &TrialSummary, metric: Metric) -> Option<FigureBound> {
        let metrics = trial.own::<TpchFacts>()?.metrics.as_ref()?;
        (!metrics.penalised.is_empty()).then_some(match metric.better() {
            Better::Less => FigureBound::AtLeast,
            Better::More => FigureBound::AtMost,
        })
    }

    fn judged(&self) -> Option<&'static [Metric]> {
        Some(&[Metric::TotalS, Metric::GeometricMeanS, Metric::Qphh])
    }

    fn rules(&self) -> &'static [Rule] {
        RULES
    }
}

impl FamilyPaper for TpchPaper {
    fn title(&self) -> Message {
        say!(tpc_h_like)
    }

    fn priced(&self) -> Option<Metric> {
        Some(Metric::Qphh)
    }

    fn method(&self, trials: &[&Trial]) -> Option<Method> {
        method(trials).map(Method::Whole)
    }

    fn section(&self, paper: &Paper, experiment: &Experiment, lang: Lang) -> Option<Blocks> {
        Some(section::blocks(paper, experiment, &section(paper, experiment)?, lang))
    }

    fn terminal(&self, paper: &Paper, experiment: &Experiment) -> Option<Blocks> {
        Some(section::terminal(paper, experiment, &section(paper, experiment)?))
    }

    fn summary(&self, paper: &Paper) -> Option<PaperTable> {
        let tables = paper.experiments.iter().map(|own| tables_of(paper, own));
        Some(section::summary(paper, &tables.collect::<Vec<_>>()).into())
    }

    fn trials(&self, paper: &Paper) -> Option<PaperTable> {
        Some(section::trials(paper).into())
    }

    fn reached(&self, paper: &Paper, experiment: &Experiment) -> Vec<Message> {
        let tables = tables_of(paper, experiment);
        tables.iter().map(|table| words::best(&experiment.title, table)).collect()
    }

    fn shows(&self, _: &Experiment, table: &PublishedTable) -> bool {
        table.rows.iter().any(|row| published_query(row).is_some())
    }

    fn has_failures(&self, paper: &Paper, experiment: &Experiment) -> bool {
        !evidence::failures(&trials_of(paper, experiment)).is_empty()
    }

    fn glossary(&self) -> Vec<GlossaryRow> {
        vec![glossary_row(say!(degree), say!(how_many_workers_a_server_may))]
    }
}
