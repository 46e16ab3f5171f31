//! TPC-C in a paper: what its points, its tables, its checks and its charts say beyond those of
//! every workload.

mod rules;
mod section;

use rules::RULES;

use crate::facts::TpccFacts;
use dyno_facts::statistics::Metric;
use dyno_facts::{FamilyFacts, FamilyRecord, KindSummary, Lang, Message, TrialSummary, say};
use dyno_report::blocks::Blocks;
use dyno_report::format::{self, unique, whole};
use dyno_report::{
    Evidence, Experiment, FamilyLevel, FamilyPaper, FamilyScale, GlossaryRow, JudgedFamily, Method,
    Paper, Point, Rule, Spread, Trial, glossary_row,
};

fn tpcc_facts(trial: &Trial) -> Option<&TpccFacts> {
    trial.summary.own()
}

/// Facts of a point of TPC-C beyond those of other workloads.
struct TpccPoint<'a> {
    /// The facts of the point's first trial.
    facts: &'a TpccFacts,
    tpmc: Spread,
    tpmc_committed: Spread,
    tpm_total: Spread,
}

/// The TPC-C of a point; `None` if one of its trials is not TPC-C.
fn tpcc_point<'a>(evidence: &'a Evidence, point: &Point) -> Option<TpccPoint<'a>> {
    let trials: Option<Vec<&TpccFacts>> =
        evidence.point_trials(point).into_iter().map(tpcc_facts).collect();
    let trials = trials?;
    let spread =
        |get: fn(&TpccFacts) -> f64| Spread::from_values(trials.iter().map(|t| get(t)).collect());
    Some(TpccPoint {
        facts: trials.first()?,
        tpmc: spread(|facts| facts.tpmc)?,
        tpmc_committed: spread(|facts| facts.tpmc_committed)?,
        tpm_total: spread(|facts| facts.tpm_total)?,
    })
}

fn has_deferred(trial: &Trial) -> bool {
    let is_deferred =
        |kind: &KindSummary| kind.name == TpccFacts::DEFERRED && kind.counts.started > 0;
    trial.summary.kinds.iter().any(is_deferred)
}

/// Returns true if the pauses are those of the specification, and with them its bounds.
fn has_pauses_of_spec(facts: &TpccFacts) -> bool {
    let specified = PER_WAREHOUSE.1 * f64::from(facts.warehouses);
    facts.tpmc_limit.is_some_and(|limit| (limit / specified - 1.0).abs() < 1e-3)
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
        let load = terminals_text(terminals);
        Some(FamilyLevel {
            setup: setup_text(facts),
            size: f64::from(warehouses) * 1e6 + f64::from(terminals),
            words: say!(
                warehouses_terminals,
                warehouses = warehouses_text(warehouses),
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
        section::kind_facts(summary.own()?, kind).map(|kind| kind.share_percent)
    }

    fn complete(&self, summary: &mut TrialSummary) {
        let Some(mut facts) = summary.own::<TpccFacts>().cloned() else { return };
        facts.set_rates(&summary.kinds, summary.window_s);
        summary.own = Some(FamilyFacts::new(&facts));
    }

    fn judged_metrics(&self) -> Option<&'static [Metric]> {
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
        let facts: Vec<&TpccFacts> = trials.iter().filter_map(|trial| tpcc_facts(trial)).collect();
        let has_deferred = trials.iter().any(|trial| has_deferred(trial));
        (!facts.is_empty()).then(|| Method::Arrival(method_sentences(&facts, has_deferred)))
    }

    fn best(&self, paper: &Paper, experiment: &Experiment, best: &Point) -> Option<Message> {
        Some(best_sentence(&experiment.title, &best.target, &tpcc_point(paper, best)?))
    }

    fn section(&self, paper: &Paper, experiment: &Experiment, lang: Lang) -> Option<Blocks> {
        section::blocks(paper, experiment, lang)
    }

    fn glossary(&self) -> Vec<GlossaryRow> {
        vec![
            glossary_row(say!(tpmc), say!(new_order_transactions_per_minute)),
            glossary_row(say!(terminal), say!(a_virtual_client_of_tpc_c)),
            glossary_row(say!(profile_title), say!(glossary_profile)),
            glossary_row(say!(books_term), say!(glossary_books)),
            glossary_row(say!(ledger_term), say!(glossary_of_ledger)),
        ]
    }
}

/// The highest tpmC of a warehouse that keying and think times allow (clause 4.2.2), and the lowest
/// that the specification takes for a result.
const PER_WAREHOUSE: (f64, f64) = (9.0, 12.86);
/// Least length of a measurement interval, seconds.
const MIN_INTERVAL_S: f64 = 7200.0;

/// The name that the specification gives to a kind of transaction: `New-Order`.
fn kind_name(name: &str) -> Message {
    if name == TpccFacts::DEFERRED {
        return say!(delivery_deferred_part);
    }
    let words = name.split('_').map(|word| match word.split_at_checked(1) {
        Some((first, rest)) => first.to_uppercase() + rest,
        None => word.to_owned(),
    });
    Message::verbatim(words.collect::<Vec<_>>().join("-"))
}

fn isolation_text(level: Option<&str>) -> Message {
    level.map_or_else(|| say!(the_servers_own), |level| Message::verbatim(level.to_lowercase()))
}

/// The meaning of a profile, in a sentence.
fn profile_text(name: &str) -> Message {
    match name {
        "bmsql-5.0" => say!(as_bmsql_does),
        "spec" => say!(as_the_specification_says),
        other => say!(as_the_profile_says, profile = other),
    }
}

fn terminals_text(number: u32) -> Message {
    say!(n_terminals, n = number)
}

fn warehouses_text(number: u32) -> Message {
    say!(n_warehouses, n = number)
}

/// The conditions printed with every number: `10 terminals over 4 sessions, 2 of 5 warehouses, ...`.
fn setup_text(setup: &TpccFacts) -> Message {
    let entered = match setup.sessions {
        sessions if sessions == setup.terminals => terminals_text(setup.terminals),
        sessions => say!(
            terminals_over_sessions,
            terminals = terminals_text(setup.terminals),
            sessions = say!(n_sessions, n = sessions)
        ),
    };
    let used = match setup.warehouses_loaded {
        loaded if loaded == setup.warehouses => warehouses_text(loaded),
        loaded => say!(
            used_of_loaded_warehouses,
            used = whole(setup.warehouses.into()),
            loaded = whole(loaded.into())
        ),
    };
    say!(
        terminals_warehouses_profile_isolation,
        terminals = entered,
        warehouses = used,
        profile = profile_text(&setup.profile),
        isolation = isolation_text(setup.isolation.as_deref())
    )
}

/// The point with the most tpmC in a sentence.
fn best_sentence(experiment: &Message, target: &str, point: &TpccPoint) -> Message {
    say!(
        reached_rates,
        experiment,
        target,
        tpmc = format::short(point.tpmc.median),
        committed = format::short(point.tpmc_committed.median),
        total = format::short(point.tpm_total.median),
        setup = setup_text(point.facts)
    )
}

/// The bound that pauses set, and how near to it a point comes.
fn bound_sentence(point: &TpccPoint<'_>) -> Message {
    let (setup, tpmc) = (point.facts, point.tpmc.median);
    let (floor, ceiling) = PER_WAREHOUSE;
    let Some(limit) = setup.tpmc_limit else {
        return say!(the_bound_of_tpmc_per_warehouse, most = ceiling.to_string());
    };
    let warehouses = warehouses_text(setup.warehouses);
    let share = say!(
        is_percent_of_that_bound,
        tpmc = format::plain(tpmc),
        share = format::percent(tpmc / limit)
    );
    let limit = format::plain(limit);
    if !has_pauses_of_spec(setup) {
        return say!(with_the_keying_and_think_times, warehouses, limit, reached = share);
    }
    say!(
        with_keying_and_think_times_must,
        warehouses,
        least = format::plain(floor * f64::from(setup.warehouses)),
        floor = floor.to_string(),
        limit,
        most = ceiling.to_string(),
        reached = share
    )
}

/// Senders of transactions and their times, and the start of response times.
fn method_sentences(facts: &[&TpccFacts], has_deferred: bool) -> Vec<Message> {
    let setups = unique(facts.iter().map(|facts| setup_text(facts)).collect());
    let arrival = if facts.iter().any(|facts| facts.tpmc_limit.is_some()) {
        say!(a_terminal_keys_its_input_enters)
    } else {
        say!(a_terminal_enters_its_next_transaction)
    };
    let deferred = has_deferred.then(|| say!(deferred_delivery_note));
    let setups = say!(run_with_setups, setups = Message::joined(&setups, "; ", "；"));
    [setups, arrival].into_iter().chain(deferred).collect()
}

/// Points in which trials depart from the specification, as far as they show it.
fn deviations(trials: &[&Trial]) -> Vec<Message> {
    let facts: Vec<&TpccFacts> = trials.iter().filter_map(|trial| tpcc_facts(trial)).collect();
    let has_other_pauses =
        facts.iter().any(|facts| facts.tpmc_limit.is_some() && !has_pauses_of_spec(facts));
    let is_inline = !trials.iter().all(|trial| has_deferred(trial));
    let shortest_s = trials.iter().map(|trial| trial.summary.window_s).reduce(f64::min);
    let levels = facts.iter().map(|facts| isolation_text(facts.isolation.as_deref()));
    let weak: Vec<Message> = levels.filter(|level| *level != "serializable").collect();
    let too_short = shortest_s.filter(|shortest_s| *shortest_s < MIN_INTERVAL_S);
    let departures = [
        facts
            .iter()
            .any(|facts| facts.tpmc_limit.is_none())
            .then(|| say!(terminals_neither_key_nor_think_they)),
        has_other_pauses.then(|| say!(pauses_differ_from_specification)),
        facts
            .iter()
            .any(|facts| facts.warehouses == 1)
            .then(|| say!(with_one_warehouse_nothing_is_remote)),
        (!weak.is_empty()).then(|| {
            let levels = Message::list(&unique(weak));
            say!(isolation_was_the_specification_wants_every, levels)
        }),
        is_inline.then(|| say!(deliveries_were_executed_by_the_terminals)),
        too_short.map(|shortest_s| {
            let minutes = format::plain(shortest_s / 60.0);
            say!(the_shortest_measurement_interval_lasted_min, minutes)
        }),
    ];
    // What the specification asks for and no run of dyno does.
    let never = say!(untested_properties);
    departures.into_iter().flatten().chain([never]).collect()
}
