//! TPC-H in a paper: the table of the 22 queries, its charts and checks, and everything that has to
//! stand beside them.

mod charts;
mod rules;
mod section;
mod tables;
mod words;

pub(crate) use tables::AnswerCount;
pub(crate) use words::answers as answers_words;

use crate::facts::{QueryFacts, QueryOutcome, TpchFacts};
use dyno_facts::statistics::ratio::FigureBound;
use dyno_facts::statistics::{Better, Metric};
use dyno_facts::{FamilyRecord, Lang, Message, PublishedTable, TrialSummary, say};
use dyno_report::blocks::{Blocks, PaperTable};
use dyno_report::{
    Evidence, Experiment, FamilyLevel, FamilyPaper, GlossaryRow, JudgedFamily, Method, Paper, Rule,
    Trial, glossary_row,
};
use tables::{PublishedSeconds, TpchTable, published_query};

/// Queries of TPC-H.
const QUERIES: u8 = 22;

/// Name of a trial's check of its answers.
pub(crate) const ANSWERS: &str = "answers";
/// Name of a trial's check that the tables hold the rows that were loaded.
pub(crate) const ROWS: &str = "rows";

/// What the section of an experiment is made from.
struct TpchSection<'a> {
    trials: Vec<&'a Trial>,
    /// By target and test: the 22 queries at every degree.
    tables: Vec<TpchTable<'a>>,
    /// Published times of the same queries.
    published: Vec<PublishedSeconds<'a>>,
}

impl<'a> TpchSection<'a> {
    /// `None` where no trial is TPC-H.
    fn new(paper: &'a Paper, experiment: &'a Experiment) -> Option<Self> {
        let trials = trials_of(paper, experiment);
        let tables = tables::tables(&trials, &experiment.points);
        let published = tables::published(experiment);
        (!trials.is_empty()).then_some(TpchSection { trials, tables, published })
    }
}

/// The facts of a trial.
fn facts(trial: &Trial) -> Option<&TpchFacts> {
    trial.summary.own::<TpchFacts>()
}

/// The trials of an experiment that are TPC-H.
fn trials_of<'a>(evidence: &'a Evidence, experiment: &'a Experiment) -> Vec<&'a Trial> {
    evidence.trials_in(experiment).filter(|trial| facts(trial).is_some()).collect()
}

fn tables_of<'a>(evidence: &'a Evidence, experiment: &'a Experiment) -> Vec<TpchTable<'a>> {
    tables::tables(&trials_of(evidence, experiment), &experiment.points)
}

fn executions<'a>(
    trials: &[&'a Trial],
) -> impl Iterator<Item = (&'a Trial, &'a TpchFacts, &'a QueryFacts)> {
    let with_facts = trials.iter().filter_map(|trial| Some((*trial, facts(trial)?)));
    with_facts
        .flat_map(|(trial, facts)| facts.queries.iter().map(move |query| (trial, facts, query)))
}

/// Executions of queries without an answer.
fn failures<'a>(
    trials: &[&'a Trial],
) -> impl Iterator<Item = (&'a Trial, &'a TpchFacts, &'a QueryFacts)> {
    executions(trials).filter(|(.., query)| query.outcome != QueryOutcome::Answered)
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
        let facts = summary.own::<TpchFacts>()?;
        let degree = facts.degree.asked;
        let load = say!(degree_degree, degree = degree.to_string());
        Some(FamilyLevel {
            setup: words::setup(facts, summary.workers.max(1)),
            size: degree.into(),
            words: match facts.test.as_str() {
                "queries" => load.clone(),
                test => say!(test_degree, test = test, degree = load.clone()),
            },
            name: format!("{} degree={degree}", facts.test),
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
        rules::RULES
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
        let own: Vec<&Trial> = trials.iter().copied().filter(|own| facts(own).is_some()).collect();
        (!own.is_empty()).then(|| Method::Whole(words::method(&own)))
    }

    fn section(&self, paper: &Paper, experiment: &Experiment, lang: Lang) -> Option<Blocks> {
        let section = TpchSection::new(paper, experiment)?;
        Some(section::blocks(paper, experiment, &section, lang))
    }

    fn terminal(&self, paper: &Paper, experiment: &Experiment) -> Option<Blocks> {
        Some(section::terminal(paper, experiment, &TpchSection::new(paper, experiment)?))
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
        failures(&trials_of(paper, experiment)).next().is_some()
    }

    fn glossary(&self) -> Vec<GlossaryRow> {
        vec![glossary_row(say!(degree), say!(how_many_workers_a_server_may))]
    }
}
