//! Every sentence that a paper says of TPC-C alone.

use super::{TpccPoint, TpccSetup};
use crate::format::{self, unique, whole};
use crate::model::{SettingRow, Spread};
use crate::say;
use crate::text::Text;

/// The highest tpmC of a warehouse that keying and think times allow (clause 4.2.2), and the lowest
/// that the specification takes for a result.
pub(super) const PER_WAREHOUSE: (f64, f64) = (9.0, 12.86);
/// Least length of a measurement interval, seconds.
pub(super) const LEAST_INTERVAL_S: f64 = 7200.0;
/// Terminals of a warehouse (clause 4.2.2).
const TERMINALS_PER_WAREHOUSE: u32 = 10;

/// The name that the specification gives to a kind of transaction.
pub(crate) fn kind(name: &str) -> Text {
    match name {
        "new_order" => Text::same("New-Order"),
        "payment" => Text::same("Payment"),
        "order_status" => Text::same("Order-Status"),
        "delivery" => Text::same("Delivery"),
        "delivery_deferred" => say!("Delivery, deferred part"),
        "stock_level" => Text::same("Stock-Level"),
        other => Text::same(other),
    }
}

/// The isolation that sessions asked for.
pub(super) fn isolation(asked: Option<&str>) -> Text {
    asked.map_or_else(|| say!("the server's own"), |level| Text::same(level.to_lowercase()))
}

/// How statements travel: `pipelined flight`.
pub(super) fn flight(mode: &str) -> Text {
    match mode {
        "statement" => say!("statement flight"),
        "pipelined" => say!("pipelined flight"),
        other => say!("{mode} flight", mode = other),
    }
}

/// `1 terminal`, `10 terminals`.
pub(super) fn terminals(number: u32) -> Text {
    Text::count(number.into(), "{n} terminal", "{n} terminals")
}

/// `1 warehouse`, `10 warehouses`.
fn warehouses(number: u32) -> Text {
    Text::count(number.into(), "{n} warehouse", "{n} warehouses")
}

/// What stands beside every number: `10 terminals over 4 sessions, 2 of 5 warehouses, ...`.
pub(crate) fn setup(setup: &TpccSetup) -> Text {
    let entered = match setup.sessions {
        sessions if sessions == setup.terminals => terminals(setup.terminals),
        sessions => say!(
            "{terminals} over {sessions}",
            terminals = terminals(setup.terminals),
            sessions = Text::count(sessions.into(), "{n} session", "{n} sessions")
        ),
    };
    let used = if setup.warehouses == setup.warehouses_loaded {
        warehouses(setup.warehouses)
    } else {
        say!(
            "{used} of {loaded} warehouses",
            used = whole(setup.warehouses.into()),
            loaded = whole(setup.warehouses_loaded.into())
        )
    };
    say!(
        "{terminals}, {warehouses}, profile {profile}, {flight}, isolation {isolation}",
        terminals = entered,
        warehouses = used,
        profile = &setup.profile,
        flight = flight(&setup.flight),
        isolation = &setup.isolation
    )
}

/// The point with the most tpmC in a sentence.
pub(crate) fn best(experiment: &str, target: &str, point: &TpccPoint) -> Text {
    say!(
        "{experiment}: {target} reached {tpmc} tpmC ({total} tpmTOTAL) with {setup}.",
        experiment = experiment,
        target = target,
        tpmc = format::short(point.tpmc.median),
        total = format::short(point.tpm_total.median),
        setup = setup(&point.setup)
    )
}

/// True when the pauses that allow this tpmC are those of the specification.
pub(super) fn is_of_spec(limit: f64, warehouses: u32) -> bool {
    (limit / (PER_WAREHOUSE.1 * f64::from(warehouses)) - 1.0).abs() < 1e-3
}

/// What the bound that pauses set says of a point.
pub(super) fn bound(setup: &TpccSetup, tpmc: Spread, limit: Option<f64>) -> Text {
    let (floor, most) = PER_WAREHOUSE;
    let Some(limit) = limit else {
        return say!(
            "The bound of {most} tpmC per warehouse does not apply: terminals without keying and think times enter as much as the server takes.",
            most = most.to_string()
        );
    };
    let reached = say!(
        "{tpmc} is {share} % of that bound",
        tpmc = format::plain(tpmc.median),
        share = format::percent(tpmc.median / limit)
    );
    let warehouses = warehouses(setup.warehouses);
    if !is_of_spec(limit, setup.warehouses) {
        return say!(
            "With the keying and think times of this run, which are not those of the specification, {warehouses} may reach {limit} tpmC at most; {reached}.",
            warehouses = warehouses,
            limit = format::plain(limit),
            reached = reached
        );
    }
    let judged = match tpmc.median / f64::from(setup.warehouses.max(1)) {
        of_one if of_one > most => say!("more than the pauses allow in the long run"),
        of_one if of_one < floor => {
            say!("less than the specification takes for so many warehouses")
        }
        _ => say!("within what the specification wants"),
    };
    say!(
        "With keying and think times {warehouses} must reach {least} tpmC ({floor} each) and may reach {limit} at most ({most} each); {reached}, {judged}.",
        warehouses = warehouses,
        least = format::plain(floor * f64::from(setup.warehouses)),
        floor = floor.to_string(),
        limit = format::plain(limit),
        most = most.to_string(),
        reached = reached,
        judged = judged
    )
}

/// Who sends transactions when, and what response times are counted from.
pub(super) fn method(setups: &[TpccSetup], is_paced: bool, has_deferred: bool) -> Vec<Text> {
    let setups = unique(setups.iter().map(setup).collect());
    let mut sentences =
        vec![say!("Run with {setups}.", setups = Text::joined(&setups, "; ", "；"))];
    sentences.push(if is_paced {
        say!("A terminal keys its input, enters it, waits for the answer, thinks and goes on; keying takes a fixed time, thinking a random one. Response times count from the entering to the answer: the wait for a free session and retries are in them.")
    } else {
        say!("A terminal enters its next transaction as soon as the last one has ended. Response times count from its begin to its end, retries included; what was not entered while the server stood still has none.")
    });
    if has_deferred {
        sentences.push(say!("A Delivery is only queued by its terminal; its deferred part is executed later, and its response time counts from the queueing."));
    }
    sentences
}

/// What a reader must know before anything else.
pub(super) fn disclosure() -> Text {
    say!(
        "This is not a TPC result. The workload is derived from TPC-C and only like it: no auditor has seen it, nothing was filed with the TPC, and the figures must not be compared with published TPC results. tpmC stands here for New-Orders per minute whose commit was acknowledged in the measured window."
    )
}

/// What the specification asks for and no run of dyno does.
fn never() -> [Text; 2] {
    [
        say!(
            "New-Orders that are rolled back for an unused item are not counted in tpmC, because the database does not hold them; the specification counts them."
        ),
        say!(
            "The tests of atomicity, isolation and durability of clause 3 are not part of a run, nor are prices and room for growth."
        ),
    ]
}

/// In what the trials depart from the specification, as far as it can be told from them.
pub(super) fn deviations(facts: &Deviations<'_>) -> Vec<Text> {
    let mut sentences = Vec::new();
    if facts.is_without_pauses {
        sentences.push(say!("Terminals neither key nor think: they enter their next transaction at once, so that few of them load a server more than the ten terminals of each warehouse would."));
    }
    if facts.has_other_pauses {
        sentences.push(say!("Keying and think times are not those of the specification."));
    }
    sentences.extend(crowded(facts.setups));
    if facts.setups.iter().any(|setup| setup.warehouses == 1) {
        sentences.push(say!("With one warehouse nothing is remote: no order line and no payment concerns another one."));
    }
    sentences.extend(weak_isolation(facts.setups));
    if facts.has_inline_delivery {
        sentences.push(say!("Deliveries were executed by the terminals themselves; the specification queues them and answers at once."));
    }
    if let Some(shortest_s) =
        facts.shortest_window_s.filter(|shortest| *shortest < LEAST_INTERVAL_S)
    {
        sentences.push(say!(
            "The shortest measurement interval lasted {minutes} min; the specification wants at least 120 min of steady state.",
            minutes = format::plain(shortest_s / 60.0)
        ));
    }
    if facts.setups.iter().any(|setup| setup.flight == "pipelined") {
        sentences.push(say!("In pipelined flight statements that do not need each other's answers travel together. The specification allows that; BenchmarkSQL and published runs of it send them one by one."));
    }
    sentences.extend(durability(facts.settings));
    sentences.extend(never());
    sentences
}

fn crowded(setups: &[TpccSetup]) -> Option<Text> {
    let crowded: Vec<Text> = setups
        .iter()
        .filter(|setup| setup.terminals != TERMINALS_PER_WAREHOUSE * setup.warehouses)
        .map(|setup| {
            say!(
                "{terminals} on {warehouses}",
                terminals = whole(setup.terminals.into()),
                warehouses = whole(setup.warehouses.into())
            )
        })
        .collect();
    (!crowded.is_empty()).then(|| {
        say!(
            "A warehouse has ten terminals in the specification; here the terminals and warehouses were {pairs}.",
            pairs = Text::list(&unique(crowded))
        )
    })
}

fn weak_isolation(setups: &[TpccSetup]) -> Option<Text> {
    let levels = setups.iter().map(|setup| setup.isolation.clone());
    let weak: Vec<Text> = levels.filter(|isolation| *isolation != "serializable").collect();
    (!weak.is_empty()).then(|| {
        say!(
            "Isolation was {levels}. The specification wants every transaction but Stock-Level isolated from the others as if they ran one after another, which no level below serializable promises in general.",
            levels = Text::list(&unique(weak))
        )
    })
}

/// What [`deviations`] looks at.
pub(super) struct Deviations<'a> {
    pub(super) setups: &'a [TpccSetup],
    pub(super) is_without_pauses: bool,
    pub(super) has_other_pauses: bool,
    pub(super) has_inline_delivery: bool,
    pub(super) shortest_window_s: Option<f64>,
    /// Those of the targets of the experiment; a target's label and its settings.
    pub(super) settings: &'a [(&'a str, &'a [SettingRow])],
}

fn durability(targets: &[(&str, &[SettingRow])]) -> Option<Text> {
    let words = |(target, settings): &(&str, &[SettingRow])| {
        let weak: Vec<Text> = settings
            .iter()
            .filter(|setting| setting.is_weak)
            .map(|setting| Text::same(format!("{} = {}", setting.name, setting.value)))
            .collect();
        match (settings.is_empty(), weak.is_empty()) {
            (true, _) => Some(say!("{target} did not tell its settings", target = *target)),
            (false, true) => None,
            (false, false) => Some(say!(
                "{target} has {settings}",
                target = *target,
                settings = Text::list(&weak)
            )),
        }
    };
    let told: Vec<Text> = targets.iter().filter_map(words).collect();
    (!told.is_empty()).then(|| {
        say!(
            "Durability, which the specification demands of every acknowledged commit, is not what the settings promise: {settings}.",
            settings = Text::joined(&told, "; ", "；")
        )
    })
}

/// Why there is no verdict on the books.
pub(super) fn no_books() -> Text {
    say!("the trial has no record of it; a trial that is cut off is not compared with the database")
}

/// Why there is none on the ledger.
pub(super) fn no_ledger() -> Text {
    say!("no durable ledger was kept (option --ledger)")
}

/// Of a condition that a database with transactions need not meet.
pub(super) fn need_not_hold() -> Text {
    say!("need not hold then")
}

/// Why there is no verdict on a condition.
pub(super) fn no_condition() -> Text {
    say!("the trial has no record of it")
}
