//! What load an experiment makes: workers that are driven for some time, or passes over queries at
//! parallel degrees.

use dyno_core::offer::{Levels, WorkloadOffer};
use dyno_facts::ExperimentFacts;

use crate::problem::Problem;
use crate::reader::Reader;
use crate::suite::WithSpan;

/// What only an experiment has that is driven for some time.
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
            refuse(table, &["degrees"], name, hint);
            read_time(table, workload)
        }
        None => {
            let _ = table.take("degrees");
            read_time(table, workload)
        }
    }
}

/// How often a trial is made again whose load generator was starved.
pub(crate) fn read_retry_starved(table: &mut Reader<'_, '_>) -> Option<u32> {
    table.whole("retry_starved", 0..=10).and_then(|times| u32::try_from(times).ok())
}

/// The length of the stages into which long trials are cut; 0 where they are not. `facts` are what the rest of the
/// experiment says.
pub(crate) fn read_stage(
    table: &mut Reader<'_, '_>,
    workload: Option<&WorkloadOffer>,
    facts: &ExperimentFacts,
) -> Option<f64> {
    let span = table.span_of("stage_s");
    let given = table.number("stage_s", 0.0..=86_400.0);
    let is_whole = [
        (facts.fault.is_some(), "with a fault"),
        (facts.events.is_some(), "that ends after a count of transactions"),
        (facts.search.is_some(), "of a search"),
        (workload.is_some_and(|workload| !workload.has_stages), "of this workload"),
    ];
    let whole = is_whole.iter().find(|(is_whole, _)| *is_whole).map(|(_, which)| *which);
    let Some((span, stage_s)) = span.zip(given) else {
        let is_long = facts.duration_s.is_some_and(|duration_s| duration_s > WHOLE_MOST_S);
        return (is_long && whole.is_none()).then_some(STAGE_S);
    };
    if let Some(which) = whole.filter(|_| stage_s > 0.0) {
        let message = format!("A trial {which} can't be cut into stages.");
        table.note(&span, Problem::new(message).hint("Leave `stage_s` out."));
    } else if stage_s > 0.0 && stage_s < 1.0 {
        let message = format!("A stage of {stage_s} s is too short.");
        table.note(&span, Problem::new(message).hint("Give at least 1, or 0 for one piece."));
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
        rates: rates.map_or_else(Vec::new, values),
        warmup_s: warmup_s.unwrap_or(0.0),
        duration_s,
        events,
        interval_s: interval_s.unwrap_or(1.0),
        percentiles: percentiles.map_or_else(|| vec![50.0, 95.0, 99.0], values),
        ..ExperimentFacts::default()
    })
}

/// Passes over queries: as long as they take.
fn read_passes(table: &mut Reader<'_, '_>, workload: &str) -> Option<ExperimentFacts> {
    let degrees = table.wholes("degrees", &(0..=DEGREE_MAX));
    let hint = "A trial is one pass over the queries, as long as it takes; `degrees = [0, 16]` \
                makes a point of each parallel degree.";
    refuse(table, &OF_TIME, workload, hint);
    Some(ExperimentFacts {
        degrees: degrees.map_or_else(|| vec![0], numbers),
        interval_s: 1.0,
        ..ExperimentFacts::default()
    })
}

fn refuse(table: &mut Reader<'_, '_>, keys: &[&'static str], workload: &str, hint: &str) {
    for key in keys {
        if let Some((span, _)) = table.take(key) {
            let message = format!("An experiment of `{workload}` has no `{key}`.");
            table.note(&span, Problem::new(message).hint(hint));
        }
    }
}

fn values(list: Vec<WithSpan<f64>>) -> Vec<f64> {
    list.into_iter().map(|item| item.value).collect()
}

/// The range of each was checked: every number fits.
fn numbers(list: Vec<WithSpan<u64>>) -> Vec<u32> {
    list.into_iter().filter_map(|number| u32::try_from(number.value).ok()).collect()
}

/// `workers`, for which a workload may have another word.
fn read_workers(table: &mut Reader<'_, '_>, workload: Option<&WorkloadOffer>) -> Option<Vec<u32>> {
    let alias = workload.and_then(|workload| workload.workers_alias);
    let given = alias.filter(|alias| table.has(alias));
    if given.is_none() {
        table.require("workers", "Add `workers = [1, 2, 4]`, for example.");
    }
    let range = 1..=100_000;
    let workers = table.wholes("workers", &range);
    let Some(alias) = alias else { return workers.map(numbers) };
    let span = table.span_of(alias);
    let aliased = table.wholes(alias, &range);
    if let (Some(span), Some(_)) = (span, &workers) {
        let message = format!("{} has both `workers` and `{alias}`.", table.name);
        let hint = "They are two words for the same number: keep one.";
        table.note(&span, Problem::new(message).hint(hint));
    }
    workers.or(aliased).map(numbers)
}

/// `duration_s` and `events`: at least one must end the window.
fn read_length(table: &mut Reader<'_, '_>) -> (Option<f64>, Option<u64>) {
    let timed = table.has("duration_s");
    let counted = table.has("events");
    let duration_s = table.number("duration_s", 0.1..=2_592_000.0);
    let events = table.whole("events", 0..=1_000_000_000_000);
    if !timed && (!counted || events == Some(0)) {
        let message = format!("{} would never end: it has no `duration_s`.", table.name);
        let hint = "Add `duration_s = 60`, or `events = 10000`, or both.";
        table.note(&table.span.clone(), Problem::new(message).hint(hint));
    }
    (duration_s, events.filter(|events| *events > 0))
}
