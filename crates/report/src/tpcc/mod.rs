//! TPC-C in a paper: what its points, its tables, its checks and its charts say beyond those of
//! every workload.

mod charts;
mod evidence;
mod rows;
mod rules;
mod section;
pub(crate) mod words;

pub use evidence::{AuditRow, AuditTable, ConditionRow, Proof};
pub use rows::{MixRow, ResponseRow};

use charts::drawings;
use rules::RULES;
pub(crate) use rules::{named, target_has};
pub(crate) use section::TpccPaper;

use crate::evidence::{Experiment, Paper, SettingRow, Spread, Trial};
use crate::format::unique;
use crate::text::Message;
use dyno_facts::KindSummary;
use dyno_tpcc::facts::TpccFacts;
use serde::Serialize;

/// How TPC-C was run: what stands beside every number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct TpccSetup {
    /// `bmsql-5.0` or `spec`.
    pub profile: String,
    /// `statement` or `pipelined`.
    pub flight: String,
    /// The isolation level that sessions asked for, in lower case.
    pub isolation: Message,
    /// Warehouses used.
    pub warehouses: u32,
    pub warehouses_loaded: u32,
    pub terminals: u32,
    /// Sessions that executed what they entered.
    pub sessions: u32,
}

impl TpccSetup {
    /// That of a trial.
    pub(crate) fn of(facts: &TpccFacts) -> Self {
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
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct TpccPoint {
    /// How it was run.
    #[serde(flatten)]
    pub setup: TpccSetup,
    /// New-Orders per minute whose commit was acknowledged.
    pub tpmc: Spread,
    /// Transactions of all kinds per minute.
    pub tpm_total: Spread,
    /// Median of tpmC by the warehouses used.
    pub per_warehouse: f64,
    /// The tpmC that keying and think times allow; `None` without them.
    pub limit: Option<f64>,
    /// The least tpmC that the specification takes for as many warehouses; `None` without its pauses.
    pub floor: Option<f64>,
    /// What that bound says of this point.
    pub bound: Message,
    /// New-Orders whose commit was sent and never answered, of all repeats and their warm-ups.
    pub orders_unknown: u64,
}

/// The TPC-C of a point whose figures rest on these trials; `None` where one is no TPC-C.
pub(crate) fn point(trials: &[&Trial]) -> Option<TpccPoint> {
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
        floor: has_pauses_of_spec(first).then_some(words::PER_WAREHOUSE.0 * warehouses),
        bound: words::bound(&setup, tpmc, first.tpmc_limit),
        orders_unknown: facts.iter().map(|facts| facts.orders_unknown).sum(),
        setup,
    })
}

/// An experiment's section on TPC-C.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct TpccSection {
    /// That this is no TPC result.
    pub disclosure: Message,
    /// In what the trials depart from the specification, in sentences.
    pub deviations: Vec<Message>,
    /// What the bounds that pauses set say of the points; `None` where there are none.
    pub bounds: Option<Message>,
    /// The mix by point and kind.
    pub mix: Vec<MixRow>,
    /// Response times by point and kind.
    pub responses: Vec<ResponseRow>,
    /// The conditions before and after; empty where no trial has recorded any.
    pub conditions: Vec<ConditionRow>,
    /// Why none of them was checked before or after the trials, in sentences.
    pub conditions_left_out: Option<Message>,
    /// What was acknowledged against what the database holds.
    pub proofs: Vec<Proof>,
    /// The audit, trial by trial.
    pub audits: Vec<AuditTable>,
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
