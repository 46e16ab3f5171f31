//! Every sentence that a paper says of TPC-C alone.

use super::{TpccPoint, TpccSetup};
use crate::format::{self, count_of, list_of, unique, whole};
use crate::model::{SettingRow, Spread};

/// The highest tpmC of a warehouse that keying and think times allow (clause 4.2.2), and the lowest
/// that the specification takes for a result.
pub(super) const PER_WAREHOUSE: (f64, f64) = (9.0, 12.86);
/// Least length of a measurement interval, seconds.
pub(super) const LEAST_INTERVAL_S: f64 = 7200.0;
/// Terminals of a warehouse (clause 4.2.2).
const TERMINALS_PER_WAREHOUSE: u32 = 10;

/// The name that the specification gives to a kind of transaction.
pub(crate) fn kind(name: &str) -> String {
    match name {
        "new_order" => "New-Order",
        "payment" => "Payment",
        "order_status" => "Order-Status",
        "delivery" => "Delivery",
        "delivery_deferred" => "Delivery, deferred part",
        "stock_level" => "Stock-Level",
        other => other,
    }
    .to_owned()
}

/// The isolation that sessions asked for.
pub(super) fn isolation(asked: Option<&str>) -> String {
    asked.map_or_else(|| "the server's own".to_owned(), |level| level.to_lowercase())
}

/// What stands beside every number: `10 terminals over 4 sessions, 2 of 5 warehouses, ...`.
pub(crate) fn setup(setup: &TpccSetup) -> String {
    let sessions = match setup.sessions {
        sessions if sessions == setup.terminals => String::new(),
        sessions => format!(" over {}", count_of(sessions.into(), "session", "sessions")),
    };
    let warehouses = if setup.warehouses == setup.warehouses_loaded {
        count_of(setup.warehouses.into(), "warehouse", "warehouses")
    } else {
        format!(
            "{} of {} warehouses",
            whole(setup.warehouses.into()),
            whole(setup.warehouses_loaded.into())
        )
    };
    format!(
        "{}{sessions}, {warehouses}, profile {}, {} flight, isolation {}",
        count_of(setup.terminals.into(), "terminal", "terminals"),
        setup.profile,
        setup.flight,
        setup.isolation
    )
}

/// The point with the most tpmC in a sentence.
pub(crate) fn best(experiment: &str, target: &str, point: &TpccPoint) -> String {
    format!(
        "{experiment}: {target} reached {} tpmC ({} tpmTOTAL) with {}.",
        format::short(point.tpmc.median),
        format::short(point.tpm_total.median),
        setup(&point.setup)
    )
}

/// True when the pauses that allow this tpmC are those of the specification.
pub(super) fn is_of_spec(limit: f64, warehouses: u32) -> bool {
    (limit / (PER_WAREHOUSE.1 * f64::from(warehouses)) - 1.0).abs() < 1e-3
}

/// What the bound that pauses set says of a point.
pub(super) fn bound(setup: &TpccSetup, tpmc: Spread, limit: Option<f64>) -> String {
    let (floor, most) = PER_WAREHOUSE;
    let Some(limit) = limit else {
        return format!(
            "The bound of {most} tpmC per warehouse does not apply: terminals without keying and think times enter as much as the server takes."
        );
    };
    let reached = format!(
        "{} is {} % of that bound",
        format::plain(tpmc.median),
        format::percent(tpmc.median / limit)
    );
    let warehouses = count_of(setup.warehouses.into(), "warehouse", "warehouses");
    if !is_of_spec(limit, setup.warehouses) {
        return format!(
            "With the keying and think times of this run, which are not those of the specification, {warehouses} may reach {} tpmC at most; {reached}.",
            format::plain(limit)
        );
    }
    let judged = match tpmc.median / f64::from(setup.warehouses.max(1)) {
        of_one if of_one > most => "more than the pauses allow in the long run",
        of_one if of_one < floor => "less than the specification takes for so many warehouses",
        _ => "within what the specification wants",
    };
    format!(
        "With keying and think times {warehouses} must reach {} tpmC ({floor} each) and may reach {} at most ({most} each); {reached}, {judged}.",
        format::plain(floor * f64::from(setup.warehouses)),
        format::plain(limit),
    )
}

/// Who sends transactions when, and what response times are counted from.
pub(super) fn method(setups: &[TpccSetup], is_paced: bool, has_deferred: bool) -> Vec<String> {
    let setups = unique(setups.iter().map(setup).collect());
    let mut sentences = vec![format!("Run with {}.", setups.join("; "))];
    if is_paced {
        sentences.push("A terminal keys its input, enters it, waits for the answer, thinks and goes on; keying takes a fixed time, thinking a random one. Response times count from the entering to the answer: the wait for a free session and retries are in them.".to_owned());
    } else {
        sentences.push("A terminal enters its next transaction as soon as the last one has ended. Response times count from its begin to its end, retries included; what was not entered while the server stood still has none.".to_owned());
    }
    if has_deferred {
        sentences.push("A Delivery is only queued by its terminal; its deferred part is executed later, and its response time counts from the queueing.".to_owned());
    }
    sentences
}

/// What a reader must know before anything else.
pub(super) const DISCLOSURE: &str = "This is not a TPC result. The workload is derived from TPC-C and only like it: no auditor has seen it, nothing was filed with the TPC, and the figures must not be compared with published TPC results. tpmC stands here for New-Orders per minute whose commit was acknowledged in the measured window.";

/// What the specification asks for and no run of dyno does.
const NEVER: [&str; 2] = [
    "New-Orders that are rolled back for an unused item are not counted in tpmC, because the database does not hold them; the specification counts them.",
    "The tests of atomicity, isolation and durability of clause 3 are not part of a run, nor are prices and room for growth.",
];

/// In what the trials depart from the specification, as far as it can be told from them.
pub(super) fn deviations(facts: &Deviations<'_>) -> Vec<String> {
    let mut sentences = Vec::new();
    let mut say = |sentence: String| sentences.push(sentence);
    if facts.is_without_pauses {
        say("Terminals neither key nor think: they enter their next transaction at once, so that few of them load a server more than the ten terminals of each warehouse would.".to_owned());
    }
    if facts.has_other_pauses {
        say("Keying and think times are not those of the specification.".to_owned());
    }
    let crowded: Vec<String> = facts
        .setups
        .iter()
        .filter(|setup| setup.terminals != TERMINALS_PER_WAREHOUSE * setup.warehouses)
        .map(|setup| {
            format!("{} on {}", whole(setup.terminals.into()), whole(setup.warehouses.into()))
        })
        .collect();
    if !crowded.is_empty() {
        say(format!(
            "A warehouse has ten terminals in the specification; here the terminals and warehouses were {}.",
            list_of(&unique(crowded))
        ));
    }
    if facts.setups.iter().any(|setup| setup.warehouses == 1) {
        say("With one warehouse nothing is remote: no order line and no payment concerns another one.".to_owned());
    }
    let weak: Vec<String> = facts
        .setups
        .iter()
        .map(|setup| setup.isolation.clone())
        .filter(|isolation| isolation != "serializable")
        .collect();
    if !weak.is_empty() {
        say(format!(
            "Isolation was {}. The specification wants every transaction but Stock-Level isolated from the others as if they ran one after another, which no level below serializable promises in general.",
            list_of(&unique(weak))
        ));
    }
    if facts.has_inline_delivery {
        say("Deliveries were executed by the terminals themselves; the specification queues them and answers at once.".to_owned());
    }
    if let Some(shortest_s) =
        facts.shortest_window_s.filter(|shortest| *shortest < LEAST_INTERVAL_S)
    {
        say(format!(
            "The shortest measurement interval lasted {} min; the specification wants at least 120 min of steady state.",
            format::plain(shortest_s / 60.0)
        ));
    }
    if facts.setups.iter().any(|setup| setup.flight == "pipelined") {
        say("In pipelined flight statements that do not need each other's answers travel together. The specification allows that; BenchmarkSQL and published runs of it send them one by one.".to_owned());
    }
    sentences.extend(durability(facts.settings));
    sentences.extend(NEVER.map(str::to_owned));
    sentences
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

fn durability(targets: &[(&str, &[SettingRow])]) -> Option<String> {
    let words = |(target, settings): &(&str, &[SettingRow])| {
        let weak: Vec<String> = settings
            .iter()
            .filter(|setting| setting.is_weak)
            .map(|setting| format!("{} = {}", setting.name, setting.value))
            .collect();
        match (settings.is_empty(), weak.is_empty()) {
            (true, _) => Some(format!("{target} did not tell its settings")),
            (false, true) => None,
            (false, false) => Some(format!("{target} has {}", list_of(&weak))),
        }
    };
    let told: Vec<String> = targets.iter().filter_map(words).collect();
    (!told.is_empty()).then(|| {
        format!("Durability, which the specification demands of every acknowledged commit, is not what the settings promise: {}.", told.join("; "))
    })
}

/// Why there is no verdict on the books, the ledger or a condition.
pub(super) const NO_BOOKS: &str =
    "the trial has no record of it; a trial that is cut off is not compared with the database";
/// See [`NO_BOOKS`].
pub(super) const NO_LEDGER: &str = "no durable ledger was kept (option --ledger)";
/// Of a condition that a database with transactions need not meet.
pub(super) const NEED_NOT_HOLD: &str = "need not hold then";
/// See [`NO_BOOKS`].
pub(super) const NO_CONDITION: &str = "the trial has no record of it";
