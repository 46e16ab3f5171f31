//! TPC-H in a paper: the table of the 22 queries, its charts and checks, and everything that has to
//! accompany them.

mod charts;
mod rules;
mod section;
mod tables;
mod words;

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
use section::TpchSection;
use tables::published_query;

/// Queries of TPC-H.
const QUERIES: u8 = 22;

/// Name of a trial's check of its answers.
pub(crate) const ANSWERS: &str = "answers";
/// Name of a trial's check that the tables hold the rows that were loaded.
pub(crate) const ROWS: &str = "rows";

/// A trial with its facts.
type TpchTrial<'a> = (&'a Trial, &'a TpchFacts);

fn tpch_facts(trial: &Trial) -> Option<&TpchFacts> {
    trial.summary.own::<TpchFacts>()
}

/// The trials of an experiment that are TPC-H.
fn tpch_trials<'a>(evidence: &'a Evidence, experiment: &'a Experiment) -> Vec<TpchTrial<'a>> {
    evidence.trials_in(experiment).filter_map(|trial| Some((trial, tpch_facts(trial)?))).collect()
}

/// The executions of queries, each with its trial.
fn executions<'a>(
    trials: &[TpchTrial<'a>],
) -> impl Iterator<Item = (TpchTrial<'a>, &'a QueryFacts)> {
    trials.iter().flat_map(|trial| trial.1.queries.iter().map(move |query| (*trial, query)))
}

/// Executions of queries without an answer.
fn failures<'a>(trials: &[TpchTrial<'a>]) -> impl Iterator<Item = (TpchTrial<'a>, &'a QueryFacts)> {
    executions(trials).filter(|(_, query)| query.outcome != QueryOutcome::Answered)
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
                test => say!(test_degree, test, degree = load.clone()),
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
        (!metrics.penalized.is_empty()).then_some(match metric.better() {
            Better::Less => FigureBound::AtLeast,
            Better::More => FigureBound::AtMost,
        })
    }

    fn judged_metrics(&self) -> Option<&'static [Metric]> {
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
        let trials = trials.iter().filter_map(|trial| Some((*trial, tpch_facts(trial)?)));
        let trials: Vec<TpchTrial<'_>> = trials.collect();
        (!trials.is_empty()).then(|| Method::Whole(words::method(&trials)))
    }

    fn section(&self, paper: &Paper, experiment: &Experiment, lang: Lang) -> Option<Blocks> {
        Some(TpchSection::new(paper, experiment)?.blocks(lang))
    }

    fn summary(&self, paper: &Paper) -> Option<PaperTable> {
        Some(section::summary(paper))
    }

    fn trials(&self, paper: &Paper) -> Option<PaperTable> {
        Some(section::trials(paper).into())
    }

    fn reached(&self, paper: &Paper, experiment: &Experiment) -> Vec<Message> {
        let tables = tables::tables(experiment, &tpch_trials(paper, experiment));
        tables.iter().map(|table| words::best(&experiment.title, table)).collect()
    }

    fn shows(&self, _: &Experiment, table: &PublishedTable) -> bool {
        table.rows.iter().any(|row| published_query(row).is_some())
    }

    fn has_failures(&self, paper: &Paper, experiment: &Experiment) -> bool {
        failures(&tpch_trials(paper, experiment)).next().is_some()
    }

    fn glossary(&self) -> Vec<GlossaryRow> {
        vec![glossary_row(say!(degree), say!(how_many_workers_a_server_may))]
    }
}
