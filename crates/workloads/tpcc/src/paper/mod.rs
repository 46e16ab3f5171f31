//! TPC-C in a paper: what its points, its tables, its checks and its charts say beyond those of
//! every workload.

mod charts;
mod evidence;
mod rows;
mod rules;
mod section;
mod words;

use evidence::{AuditRow, AuditTable, ConditionRow, Proof};
use rows::{MixRow, ResponseRow};

use charts::drawings;
use rules::RULES;

use crate::facts::TpccFacts;
use dyno_facts::{FamilyFacts, FamilyRecord, KindSummary, Lang, Message, TrialSummary, say};
use dyno_report::blocks::Blocks;
use dyno_report::format::unique;
use dyno_report::{
    Experiment, FamilyLevel, FamilyPaper, FamilyScale, GlossaryRow, Method, Paper, Point, Rule,
    SettingRow, Spread, Trial, glossary_row,
};
use dyno_statistics::Metric;

/// How TPC-C was run: what stands beside every number.
#[derive(Clone, Default)]
struct TpccSetup {
    /// `bmsql-5.0` or `spec`.
    profile: String,
    /// `statement` or `pipelined`.
    flight: String,
    /// The isolation level that sessions asked for, in lower case.
    isolation: Message,
    /// Warehouses used.
    warehouses: u32,
    warehouses_loaded: u32,
    terminals: u32,
    /// Sessions that executed what they entered.
    sessions: u32,
}

impl TpccSetup {
    /// That of a trial.
    fn of(facts: &TpccFacts) -> Self {
        TpccSetup {
            profile: facts.profile.clone(),
            flight: facts.flight.clone(),
            isolation: words::isolation(facts.isolation.as_deref()),
            warehouses: facts.warehouses,
            warehouses_loaded: facts.warehouses_loaded,
            terminals: facts.terminals,
            sessions: facts.sessions,
        }
    }
}

/// What a point of TPC-C has beyond those of other workloads.
#[derive(Clone)]
struct TpccPoint {
    /// How it was run.
    setup: TpccSetup,
    /// New-Orders per minute whose commit was acknowledged.
    tpmc: Spread,
    /// Transactions of all kinds per minute.
    tpm_total: Spread,
    /// Median of tpmC by the warehouses used.
    per_warehouse: f64,
    /// The tpmC that keying and think times allow; `None` without them.
    limit: Option<f64>,
    /// What that bound says of this point.
    bound: Message,
}

/// The TPC-C of a point whose figures rest on these trials; `None` where one is no TPC-C.
fn point(trials: &[&Trial]) -> Option<TpccPoint> {
    let facts: Option<Vec<&TpccFacts>> =
        trials.iter().map(|trial| trial.summary.own::<TpccFacts>()).collect();
    let facts = facts?;
    let first = *facts.first()?;
    let setup = TpccSetup::of(first);
    let of = |value: fn(&TpccFacts) -> f64| {
        Spread::of(facts.iter().map(|facts| value(facts)).collect()).unwrap_or_default()
    };
    let tpmc = of(|facts| facts.tpmc);
    let warehouses = f64::from(setup.warehouses);
    Some(TpccPoint {
        tpmc,
        tpm_total: of(|facts| facts.tpm_total),
        per_warehouse: tpmc.median / warehouses.max(1.0),
        limit: first.tpmc_limit,
        bound: words::bound(&setup, tpmc, first.tpmc_limit),
        setup,
    })
}

/// An experiment's section on TPC-C.
#[derive(Clone)]
struct TpccSection {
    /// That this is no TPC result.
    disclosure: Message,
    /// In what the trials depart from the specification, in sentences.
    deviations: Vec<Message>,
    /// What the bounds that pauses set say of the points; `None` where there are none.
    bounds: Option<Message>,
    /// The mix by point and kind.
    mix: Vec<MixRow>,
    /// Response times by point and kind.
    responses: Vec<ResponseRow>,
    /// The conditions before and after; empty where no trial has recorded any.
    conditions: Vec<ConditionRow>,
    /// Why none of them was checked before or after the trials, in sentences.
    conditions_left_out: Option<Message>,
    /// What was acknowledged against what the database holds.
    proofs: Vec<Proof>,
    /// The audit, trial by trial.
    audits: Vec<AuditTable>,
}

/// How an experiment's transactions arrive, in sentences; `None` where it is no TPC-C.
fn method(trials: &[&Trial]) -> Option<Vec<Message>> {
    let facts: Vec<&TpccFacts> =
        trials.iter().filter_map(|trial| trial.summary.own::<TpccFacts>()).collect();
    let setups: Vec<TpccSetup> = facts.iter().copied().map(TpccSetup::of).collect();
    let is_paced = facts.iter().any(|facts| facts.tpmc_limit.is_some());
    let has_deferred = trials.iter().any(|trial| has_deferred(trial));
    (!setups.is_empty()).then(|| words::method(&setups, is_paced, has_deferred))
}

fn has_deferred(trial: &Trial) -> bool {
    let is_it = |kind: &KindSummary| kind.name == TpccFacts::DEFERRED && kind.counts.started > 0;
    trial.summary.kinds.iter().any(is_it)
}

/// True when the pauses are those of the specification, and with them its bounds.
fn has_pauses_of_spec(facts: &TpccFacts) -> bool {
    facts.tpmc_limit.is_some_and(|limit| words::is_of_spec(limit, facts.warehouses))
}

/// The section of an experiment; `None` where none of its trials is TPC-C.
fn section(paper: &Paper, experiment: &Experiment) -> Option<TpccSection> {
    let is_own = |trial: &&Trial| trial.summary.own::<TpccFacts>().is_some();
    let own: Vec<&Trial> = paper.trials_in(experiment).filter(is_own).collect();
    if own.is_empty() {
        return None;
    }
    let facts = || own.iter().filter_map(|trial| trial.summary.own::<TpccFacts>());
    let settings: Vec<(&str, &[SettingRow])> = paper
        .targets
        .iter()
        .filter(|target| own.iter().any(|trial| trial.target == target.label))
        .map(|target| (target.label.as_str(), target.settings.as_slice()))
        .collect();
    let deviations = words::Deviations {
        setups: &facts().map(TpccSetup::of).collect::<Vec<_>>(),
        is_without_pauses: facts().any(|facts| facts.tpmc_limit.is_none()),
        has_other_pauses: facts()
            .any(|facts| facts.tpmc_limit.is_some() && !has_pauses_of_spec(facts)),
        has_inline_delivery: !own.iter().all(|trial| has_deferred(trial)),
        shortest_window_s: own.iter().map(|trial| trial.summary.window_s).reduce(f64::min),
        settings: &settings,
    };
    let points: Vec<Vec<&Trial>> =
        experiment.points.iter().map(|point| paper.trials_of(point)).collect();
    let mut conditions = evidence::conditions(&own);
    let conditions_left_out = evidence::common_reasons(&mut conditions);
    let bounds: Vec<Message> =
        points.iter().filter_map(|trials| point(trials)).map(|point| point.bound).collect();
    Some(TpccSection {
        disclosure: words::disclosure(),
        deviations: words::deviations(&deviations),
        bounds: (!bounds.is_empty()).then(|| Message::sentences(&unique(bounds))),
        mix: points.iter().flat_map(|point| rows::mix(point)).collect(),
        responses: points.iter().flat_map(|point| rows::responses(point)).collect(),
        conditions,
        conditions_left_out,
        proofs: evidence::proofs(&own),
        audits: evidence::audits(&own),
    })
}

/// TPC-C in a paper.
pub struct TpccPaper;

/// Its chapter of papers.
pub const PAPER: TpccPaper = TpccPaper;

impl FamilyPaper for TpccPaper {
    fn title(&self) -> Message {
        say!(tpc_c_like)
    }

    fn name(&self) -> &'static str {
        TpccFacts::FAMILY
    }

    fn tests(&self) -> &'static [&'static str] {
        &["tpcc", "tpc-c"]
    }

    fn derived_from(&self) -> Option<&'static str> {
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
            setup: words::setup(&TpccSetup::of(facts)),
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

    fn figure(&self, trial: &TrialSummary, metric: Metric) -> Option<f64> {
        let facts = trial.own::<TpccFacts>().filter(|_| trial.window_s > 0.0)?;
        (metric == Metric::Tpmc).then_some(facts.tpmc)
    }

    fn judged(&self) -> Option<&'static [Metric]> {
        Some(&[Metric::Tpmc, Metric::P95Ms, Metric::P99Ms])
    }

    fn rules(&self) -> &'static [Rule] {
        RULES
    }

    fn method(&self, trials: &[&Trial]) -> Option<Method> {
        method(trials).map(Method::Arrival)
    }

    fn best(&self, paper: &Paper, experiment: &Experiment, best: &Point) -> Option<Message> {
        let own = point(&paper.trials_of(best))?;
        Some(words::best(&experiment.title, &best.target, &own))
    }

    fn section(&self, paper: &Paper, experiment: &Experiment, lang: Lang) -> Option<Blocks> {
        Some(section::blocks(paper, experiment, &section(paper, experiment)?, lang))
    }

    fn terminal(&self, paper: &Paper, experiment: &Experiment) -> Option<Blocks> {
        Some(section::terminal(paper, experiment, &section(paper, experiment)?))
    }

    fn glossary(&self) -> Vec<GlossaryRow> {
        vec![
            glossary_row(say!(tpmc), say!(new_order_transactions_per_minute_whose)),
            glossary_row(say!(terminal), say!(a_virtual_client_of_tpc_c)),
        ]
    }
}
