//! TPC-C in a paper: what its points, its tables, its checks and its charts say beyond those of
//! every workload.

mod charts;
mod editions;
mod rows;
mod rules;
mod section;
mod words;

use rules::RULES;

use crate::facts::TpccFacts;
use dyno_facts::{FamilyFacts, FamilyRecord, KindSummary, Lang, Message, TrialSummary, say};
use dyno_report::blocks::Blocks;
use dyno_report::{
    Evidence, Experiment, FamilyLevel, FamilyPaper, FamilyScale, GlossaryRow, JudgedFamily, Method,
    Paper, Point, Rule, Spread, Trial, glossary_row,
};
use dyno_statistics::Metric;

/// The facts of a trial.
fn facts(trial: &Trial) -> Option<&TpccFacts> {
    trial.summary.own()
}

/// What a point of TPC-C has beyond those of other workloads.
struct TpccPoint<'a> {
    /// Those of its first trial.
    facts: &'a TpccFacts,
    tpmc: Spread,
    /// New-Orders per minute whose commit was acknowledged.
    tpmc_committed: Spread,
    /// Transactions of all kinds per minute.
    tpm_total: Spread,
}

/// The TPC-C of a point; `None` where one of its trials is no TPC-C.
fn tpcc_of<'a>(evidence: &'a Evidence, point: &Point) -> Option<TpccPoint<'a>> {
    let all: Option<Vec<&TpccFacts>> = evidence.trials_of(point).into_iter().map(facts).collect();
    let all = all?;
    let of = |value: fn(&TpccFacts) -> f64| Spread::of(all.iter().map(|own| value(own)).collect());
    Some(TpccPoint {
        facts: all.first()?,
        tpmc: of(|own| own.tpmc)?,
        tpmc_committed: of(|own| own.tpmc_committed)?,
        tpm_total: of(|own| own.tpm_total)?,
    })
}

/// The trials of an experiment that are TPC-C.
fn trials_of<'a>(evidence: &'a Evidence, experiment: &'a Experiment) -> Vec<&'a Trial> {
    evidence.trials_in(experiment).filter(|trial| facts(trial).is_some()).collect()
}

/// The trials that each point of an experiment rests on.
fn trials_of_points<'a>(evidence: &'a Evidence, experiment: &Experiment) -> Vec<Vec<&'a Trial>> {
    experiment.points.iter().map(|point| evidence.trials_of(point)).collect()
}

fn has_deferred(trial: &Trial) -> bool {
    let is_it = |kind: &KindSummary| kind.name == TpccFacts::DEFERRED && kind.counts.started > 0;
    trial.summary.kinds.iter().any(is_it)
}

/// True when the pauses are those of the specification, and with them its bounds.
fn has_pauses_of_spec(facts: &TpccFacts) -> bool {
    facts.tpmc_limit.is_some_and(|limit| words::is_of_spec(limit, facts.warehouses))
}

/// TPC-C in a paper.
pub struct TpccPaper;

/// Its chapter of papers.
pub const PAPER: TpccPaper = TpccPaper;

impl JudgedFamily for TpccPaper {
    fn name(&self) -> &'static str {
        TpccFacts::FAMILY
    }

    fn tests(&self) -> &'static [&'static str] {
        &["tpcc", "tpc-c"]
    }

    fn derived_from(&self, _test: &str) -> Option<&'static str> {
        Some("TPC-C")
    }

    fn throughput(&self) -> Option<Metric> {
        Some(Metric::Tpmc)
    }

    fn replaced(&self) -> &'static [&'static str] {
        &["data-in-memory"]
    }

    fn level(&self, summary: &TrialSummary) -> Option<FamilyLevel> {
        let facts = summary.own::<TpccFacts>()?;
        let (warehouses, terminals) = (facts.warehouses, facts.terminals);
        let load = words::terminals(terminals);
        Some(FamilyLevel {
            setup: words::setup(facts),
            size: f64::from(warehouses) * 1e6 + f64::from(terminals),
            words: say!(
                warehouses_terminals,
                warehouses = words::warehouses(warehouses),
                terminals = load.clone()
            ),
            name: format!("warehouses={warehouses} terminals={terminals}"),
            load,
            terminals: Some(terminals),
            scale: Some(FamilyScale {
                name: "warehouses",
                label: say!(warehouses),
                value: warehouses.into(),
            }),
        })
    }

    fn is_paced(&self, summary: &TrialSummary) -> bool {
        summary.own::<TpccFacts>().is_some_and(|facts| facts.tpmc_limit.is_some())
    }

    fn isolation(&self, summary: &TrialSummary) -> Option<String> {
        summary.own::<TpccFacts>()?.isolation.clone()
    }

    fn weight(&self, summary: &TrialSummary, kind: &str) -> Option<f64> {
        rows::facts_of(summary.own()?, kind).map(|kind| kind.share_percent)
    }

    fn complete(&self, summary: &mut TrialSummary) {
        let Some(mut facts) = summary.own::<TpccFacts>().cloned() else { return };
        facts.set_rates(&summary.kinds, summary.window_s);
        summary.own = Some(FamilyFacts::new(&facts));
    }

    fn judged(&self) -> Option<&'static [Metric]> {
        Some(&[Metric::Tpmc, Metric::P95Ms, Metric::P99Ms])
    }

    fn rules(&self) -> &'static [Rule] {
        RULES
    }
}

impl FamilyPaper for TpccPaper {
    fn title(&self) -> Message {
        say!(tpc_c_like)
    }

    fn method(&self, trials: &[&Trial]) -> Option<Method> {
        let facts: Vec<&TpccFacts> = trials.iter().filter_map(|trial| facts(trial)).collect();
        let has_deferred = trials.iter().any(|trial| has_deferred(trial));
        (!facts.is_empty()).then(|| Method::Arrival(words::method(&facts, has_deferred)))
    }

    fn best(&self, paper: &Paper, experiment: &Experiment, best: &Point) -> Option<Message> {
        Some(words::best(&experiment.title, &best.target, &tpcc_of(paper, best)?))
    }

    fn section(&self, paper: &Paper, experiment: &Experiment, lang: Lang) -> Option<Blocks> {
        section::blocks(paper, experiment, lang)
    }

    fn terminal(&self, paper: &Paper, experiment: &Experiment) -> Option<Blocks> {
        section::terminal(paper, experiment)
    }

    fn glossary(&self) -> Vec<GlossaryRow> {
        vec![
            glossary_row(say!(tpmc), say!(new_order_transactions_per_minute)),
            glossary_row(say!(terminal), say!(a_virtual_client_of_tpc_c)),
            glossary_row(say!(profile_2), say!(glossary_profile)),
            glossary_row(say!(books_2), say!(glossary_books)),
            glossary_row(say!(ledger_2), say!(glossary_of_ledger)),
        ]
    }
}
