//! The load of an experiment: workers that are driven for some time, or passes over queries at
//! parallel degrees; and `[experiment.fault]`: what is done to a node in the middle of each trial, so that failover and
//! durability are measured.

use crate::reader::{Reader, Sheet, hint_of_known, short};
use crate::suite::{SuiteExperiment, WithSpan};
use dyno_core::offer::{Levels, WorkloadOffer};
use dyno_facts::{ExperimentFacts, FaultAction, FaultPlan, SecretCommand};
use toml::de::DeValue;

/// Keys of experiments that are driven for some time.
const OF_TIME: [&str; 8] =
    ["workers", "rate", "duration_s", "stage_s", "events", "warmup_s", "interval_s", "percentiles"];
/// Longer trials are cut into stages unless the suite says otherwise: of shorter ones little is lost.
const WHOLE_MOST_S: f64 = 600.0;
const STAGE_S: f64 = 300.0;
/// The largest parallel degree of a product that is known.
const DEGREE_MAX: u64 = 1_024;

/// Takes all keys that say how much load there is; of an unknown workload those of most.
pub(crate) fn read(
    table: &mut Reader<'_, '_>,
    workload: Option<&WorkloadOffer>,
) -> Option<ExperimentFacts> {
    match workload.map(|workload| (workload.name, workload.levels)) {
        Some((name, Levels::Degrees)) => read_passes(table, name),
        Some((name, Levels::Workers)) => {
            let hint = "It is a key of workloads whose queries can be parallel.";
            refuse_keys(table, &["degrees"], name, hint);
            read_time(table, workload)
        }
        None => {
            let _ = table.take_entry("degrees");
            read_time(table, workload)
        }
    }
}

/// Reads how often a trial is repeated whose load generator was starved.
pub(crate) fn read_retry_starved(table: &mut Reader<'_, '_>) -> Option<u32> {
    table.whole_number("retry_starved", 0..=10).and_then(|times| u32::try_from(times).ok())
}

/// The length of the stages into which long trials are cut; 0 if they are not. `facts` are what the rest of the
/// experiment says.
pub(crate) fn read_stage(
    table: &mut Reader<'_, '_>,
    workload: Option<&WorkloadOffer>,
    facts: &ExperimentFacts,
) -> Option<f64> {
    let span = table.key_span("stage_s");
    let number = table.number("stage_s", 0.0..=86_400.0);
    let is_whole = [
        (facts.fault.is_some(), "with a fault"),
        (facts.events.is_some(), "that ends after a count of transactions"),
        (facts.search.is_some(), "of a search"),
        (workload.is_some_and(|workload| !workload.has_stages), "of this workload"),
    ];
    let uncut_kind = is_whole.iter().find(|(is_whole, _)| *is_whole).map(|(_, which)| *which);
    let Some((span, stage_s)) = span.zip(number) else {
        let is_long = facts.duration_s.is_some_and(|duration_s| duration_s > WHOLE_MOST_S);
        return (is_long && uncut_kind.is_none()).then_some(STAGE_S);
    };
    if let Some(which) = uncut_kind.filter(|_| stage_s > 0.0) {
        let message = format!("A trial {which} can't be cut into stages.");
        table.report(&span, message, "Leave `stage_s` out.");
    } else if stage_s > 0.0 && stage_s < 1.0 {
        let message = format!("A stage of {stage_s} s is too short.");
        table.report(&span, message, "Give at least 1, or 0 for one piece.");
    }
    Some(stage_s)
}

fn read_time(
    table: &mut Reader<'_, '_>,
    workload: Option<&WorkloadOffer>,
) -> Option<ExperimentFacts> {
    let workers = read_workers(table, workload);
    let rates = table.numbers("rate", &(0.001..=100_000_000.0));
    let (duration_s, events) = read_length(table);
    let warmup_s = table.number("warmup_s", 0.0..=86_400.0);
    let interval_s = table.number("interval_s", 0.1..=3_600.0);
    let percentiles = table.numbers("percentiles", &(0.001..=100.0));
    Some(ExperimentFacts {
        workers: workers?,
        rates: rates.map_or_else(Vec::new, WithSpan::values),
        warmup_s: warmup_s.unwrap_or(0.0),
        duration_s,
        events,
        interval_s: interval_s.unwrap_or(1.0),
        percentiles: percentiles.map_or_else(|| vec![50.0, 95.0, 99.0], WithSpan::values),
        ..ExperimentFacts::default()
    })
}

/// Passes over queries: as long as they take.
fn read_passes(table: &mut Reader<'_, '_>, workload: &str) -> Option<ExperimentFacts> {
    let degrees = table.whole_numbers("degrees", &(0..=DEGREE_MAX));
    let hint = "A trial is one pass over the queries, as long as it takes; `degrees = [0, 16]` \
                makes a point of each parallel degree.";
    refuse_keys(table, &OF_TIME, workload, hint);
    Some(ExperimentFacts {
        degrees: degrees.map_or_else(|| vec![0], numbers),
        interval_s: 1.0,
        ..ExperimentFacts::default()
    })
}

fn refuse_keys(table: &mut Reader<'_, '_>, keys: &[&'static str], workload: &str, hint: &str) {
    for key in keys {
        if let Some((span, _)) = table.take_entry(key) {
            table.report(&span, format!("An experiment of `{workload}` has no `{key}`."), hint);
        }
    }
}

/// The range of each was checked: every number fits.
fn numbers(list: Vec<WithSpan<u64>>) -> Vec<u32> {
    list.into_iter().filter_map(|number| u32::try_from(number.value).ok()).collect()
}

/// `workers`, for which a workload may have another word.
fn read_workers(table: &mut Reader<'_, '_>, workload: Option<&WorkloadOffer>) -> Option<Vec<u32>> {
    let alias = workload.and_then(|workload| workload.workers_alias);
    if let Some(alias) = alias.filter(|alias| table.has(alias)) {
        table.refuse_both(&[("workers", alias, "They are two words for the same number.")]);
    } else {
        table.require("workers", "Add `workers = [1, 2, 4]`, for example.");
    }
    let range = 1..=100_000;
    let workers = table.whole_numbers("workers", &range);
    let Some(alias) = alias else { return workers.map(numbers) };
    let aliased = table.whole_numbers(alias, &range);
    workers.or(aliased).map(numbers)
}

/// `duration_s` and `events`: at least one must end the window.
fn read_length(table: &mut Reader<'_, '_>) -> (Option<f64>, Option<u64>) {
    let has_duration = table.has("duration_s");
    let has_events = table.has("events");
    let duration_s = table.number("duration_s", 0.1..=2_592_000.0);
    let events = table.whole_number("events", 0..=1_000_000_000_000);
    if !has_duration && (!has_events || events == Some(0)) {
        let message = format!("{} would never end: it has no `duration_s`.", table.name);
        let hint = "Add `duration_s = 60`, or `events = 10000`, or both.";
        table.report(&table.span.clone(), message, hint);
    }
    (duration_s, events.filter(|events| *events > 0))
}

/// Seconds between two lines of the interval series where the suite doesn't say it: the times of a
/// fault are known as well as this.
pub(crate) const FAULT_INTERVAL_S: f64 = 0.1;
/// Longest time of a transaction before its session is given up, unless the suite states it.
const ANSWER_LIMIT_S: f64 = 5.0;
/// The throughput before the fault needs some time to be known.
const BEFORE_LEAST_S: f64 = 1.0;

/// Takes the key `fault` of an experiment; `facts` are what the rest of it says.
pub(crate) fn read_fault(
    experiment: &mut Reader<'_, '_>,
    facts: &ExperimentFacts,
) -> Option<FaultPlan> {
    let (span, value) = experiment.take_entry("fault")?;
    if !facts.degrees.is_empty() {
        experiment.report(
            &span,
            "A pass over queries has no moment for a fault.",
            "Faults belong to experiments whose trials have a length.",
        );
    } else if facts.duration_s.is_none() {
        experiment.report(
            &span,
            "A trial with a fault needs a length: it has no `duration_s`.",
            "Add `duration_s = 60`, so that there is a time before the fault and one after it.",
        );
    }
    let table = Reader::from_value(experiment.sheet, "`fault`", span.clone(), value)?;
    read_table(table, facts.duration_s)
}

fn read_table(mut table: Reader<'_, '_>, duration_s: Option<f64>) -> Option<FaultPlan> {
    table.refuse_alone(&[
        ("heal_command", "command", "It ends what a command has done."),
        ("promote_command", "promote", "Add `promote = true`, or leave `promote_command` out."),
    ]);
    let action = table
        .required_text("action", "Add `action = \"kill\"`, for example.")
        .and_then(|written| read_action(&table, &written));
    let node = table.text("node");
    let at_s = read_at(&mut table, duration_s);
    let heal_span = table.key_span("heal_after_s");
    let heal_after_s = table.number("heal_after_s", 0.0..=86_400.0);
    let promote = read_promote(&mut table);
    let answer_limit_s = table.number("answer_limit_s", 0.1..=3_600.0);
    let [command, heal_command, promote_command] =
        ["command", "heal_command", "promote_command"].map(|key| table.text(key));
    let allow_lost = read_allow_lost(&mut table);
    match (action, &command) {
        (Some(FaultAction::Command), None) => table.report_missing(
            "command",
            "Add `command = \"...\"`: what the shell executes at the moment of the fault.",
        ),
        (Some(other), Some(command)) if other != FaultAction::Command => {
            let message = format!("The fault `{}` is done by dyno itself.", other.name());
            let hint = "Write `action = \"command\"`, or leave `command` out.";
            table.report(&command.span, message, hint);
        }
        _ => {}
    }
    if let (Some(span), Some(FaultAction::Restart)) = (heal_span, action) {
        let hint = "Leave `heal_after_s` out, or write `action = \"stop\"`.";
        table.report(&span, "A restart starts the node again at once.", hint);
    }
    if node.as_ref().is_some_and(|node| promote.as_ref() == Some(&node.value)) {
        let message = "The node that takes over is the one that the fault is done to.";
        table.report(&table.span, message, "Name another node, or write `promote = true`.");
    }
    table.finish(
        &[
            ("at_s", "at time"),
            ("heal_after_s", "heal heal_s"),
            ("node", "target"),
            ("answer_limit_s", "timeout"),
            ("promote", "failover"),
        ],
        |_, known| known,
    );
    let [command, heal_command, promote_command] = [command, heal_command, promote_command]
        .map(|written| written.map(|written| SecretCommand::from(written.value)));
    Some(FaultPlan {
        action: action?,
        node: node.map_or_else(|| "primary".to_owned(), |node| node.value),
        at_s: at_s?,
        heal_after_s,
        promote,
        answer_limit_s: answer_limit_s.unwrap_or(ANSWER_LIMIT_S),
        command,
        heal_command,
        promote_command,
        allow_lost: allow_lost.unwrap_or_default(),
    })
}

/// `allow_lost = true`, or the targets of which a loss is expected.
fn read_allow_lost(table: &mut Reader<'_, '_>) -> Option<Vec<String>> {
    table.parsed("allow_lost", "true, false, or names of targets", |value| match value {
        DeValue::Boolean(true) => Some(vec!["*".to_owned()]),
        DeValue::Boolean(false) => Some(Vec::new()),
        DeValue::Array(items) => {
            items.iter().map(|item| item.get_ref().as_str().map(str::to_owned)).collect()
        }
        _ => Some(vec![value.as_str()?.to_owned()]),
    })
}

fn read_action(table: &Reader<'_, '_>, written: &WithSpan<String>) -> Option<FaultAction> {
    let action = FaultAction::parse(&written.value);
    if action.is_none() {
        table.sheet.report_unknown(
            written,
            ("fault", "Faults"),
            &FaultAction::ALL.map(FaultAction::name),
        );
    }
    action
}

/// The moment must lie within the window, with time before and after it.
fn read_at(table: &mut Reader<'_, '_>, duration_s: Option<f64>) -> Option<f64> {
    table.require("at_s", "Add `at_s = 20`: seconds from the opening of the window.");
    let (span, value) = table.take_entry("at_s")?;
    let at_s = table.item_number("at_s", value, &(BEFORE_LEAST_S..=2_592_000.0))?.value;
    if duration_s.is_some_and(|duration_s| at_s + BEFORE_LEAST_S > duration_s) {
        let message = format!("The fault at {at_s} s has no second of the window after it.");
        let hint = "Let `duration_s` be longer, so that the time after the fault is measured.";
        table.report(&span, message, hint);
    }
    Some(at_s)
}

/// `promote = true`, or the name of a node.
fn read_promote(table: &mut Reader<'_, '_>) -> Option<String> {
    let promote =
        table.parsed("promote", "true, false, or the name of a node", |value| match value {
            DeValue::Boolean(true) => Some(Some(String::new())),
            DeValue::Boolean(false) => Some(None),
            DeValue::String(name) if !name.trim().is_empty() => Some(Some(name.to_string())),
            _ => None,
        });
    promote.flatten()
}

/// Targets of which a loss is expected must exist.
pub(crate) fn check_allowed(sheet: &Sheet<'_>, experiment: &SuiteExperiment, known: &[&str]) {
    for target in experiment.facts.fault.iter().flat_map(|fault| &fault.allow_lost) {
        if target != "*" && !known.is_empty() && !known.contains(&target.as_str()) {
            let message = format!("`allow_lost` names `{}`, which isn't a target.", short(target));
            let hint = hint_of_known(target, "Targets of this file", known);
            sheet.report(&experiment.name.span, message, hint);
        }
    }
}
