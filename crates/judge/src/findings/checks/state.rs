//! E: the state of data, caches and machines.

use super::case::{each_node, generator};
use super::sides::TargetPair;
use super::{Case, Rule, above, commas, parts, percent};
use crate::evidence::{
    BEYOND_MEMORY, Experiment, Finding, Group, IN_MEMORY, Level, Point, Spot, TargetPlace, Trial,
    nodes_of,
};
use crate::messages::checks;
use crate::text::Message;
use dyno_facts::{NodeConditions, say};

/// Of the load generator's CPU, taken by the hypervisor, or held back by a quota.
const STEAL: f64 = 0.01;
const THROTTLED: f64 = 0.01;
/// Pages of 4 KiB: a MiB in and out may be chance.
const SWAPPED_PAGES: u64 = 256;
const MEMORY_PRESSURE: f64 = 0.01;
/// Requests that memory answers once it is warm (PolarDB's paper, chapter 7).
const WARM_HITS: f64 = 0.99;
/// innodb_max_dirty_pages_pct_lwm of MySQL 8.0: from here on pages are flushed beside the load.
const DIRTY: f64 = 0.10;
/// InnoDB flushes in haste from three quarters of its log on.
const CHECKPOINT_AGE: f64 = 0.75;
/// Old row versions: as many lengthen every scan noticeably.
const PURGE_BACKLOG: u64 = 100_000;
/// Of the data, in one trial.
const GROWTH: f64 = 0.05;
/// Servers estimate the sizes of small tables, give them whole extents, and notice late what was loaded.
const SIZE_NOISE_BYTES: f64 = (16 << 20) as f64;
/// A server at its limit leaves less of its CPU idle.
const BUSY_SERVER: f64 = 0.70;

pub(super) const RULES: &[Rule] = &[
    Rule::pair(Group::E, Level::W, checks::memory_class, memory_class),
    Rule::experiment(Group::E, Level::W, checks::data_at_edge, |experiment| {
        sizes(experiment, |times| (IN_MEMORY..=BEYOND_MEMORY).contains(&times))
    }),
    Rule::experiment(Group::E, Level::I, checks::data_in_memory, |experiment| {
        sizes(experiment, |times| times < IN_MEMORY)
    }),
    Rule::trial(Group::E, Level::W, checks::cold, |trial| {
        let times = trial.summary.data.as_ref()?.size_to_memory()?;
        (times < IN_MEMORY).then(|| misses(trial))?
    }),
    Rule::trial(Group::E, Level::I, checks::disk_reads, |trial| {
        let times = trial.summary.data.as_ref().and_then(dyno_facts::DataFacts::size_to_memory);
        times.is_none_or(|times| times >= IN_MEMORY).then(|| misses(trial))?
    }),
    Rule::trial(Group::E, Level::W, checks::unsettled_start, |trial| each_node(trial, backlog)),
    Rule::trial(Group::E, Level::I, checks::background, |trial| {
        each_node(trial, |node| commas(&node.background))
    }),
    Rule::trial(Group::E, Level::W, checks::growth, |trial| {
        each_node(trial, |node| {
            let grown_bytes = node.growth_share.zip(node.data_bytes).map(|(by, of)| by * of as f64);
            let is_counted = grown_bytes.is_none_or(|bytes| bytes > SIZE_NOISE_BYTES);
            above(node.growth_share.filter(|_| is_counted), GROWTH)
        })
    }),
    Rule::case(Group::E, Level::W, checks::idle_server, idle_server),
    Rule::trial(Group::E, Level::W, checks::steal, |trial| {
        above(Some(trial.summary.generator.host.steal_share), STEAL)
    }),
    Rule::trial(Group::E, Level::W, checks::throttled, |trial| {
        above(generator(trial)?.throttled_share, THROTTLED)
    }),
    Rule::trial(Group::E, Level::W, checks::swap, swap),
    Rule::trial(Group::E, Level::I, checks::governor, |trial| {
        let governor = generator(trial)?.governor.as_deref()?;
        (governor != "performance" && !governor.is_empty()).then(|| Message::verbatim(governor))
    }),
];

/// Targets whose data have such a size by the memory for them. An embedded database shares its memory
/// with the load generator and the system's cache.
fn sizes(experiment: &Experiment, is_found: fn(f64) -> bool) -> Option<Message> {
    let mut texts: Vec<Message> = Vec::new();
    for point in &experiment.points {
        let Some((times, text)) = size(point) else { continue };
        if is_found(times) && !texts.contains(&text) {
            texts.push(text);
        }
    }
    parts(texts)
}

/// How many times the data of a point fill the memory, and that in words.
fn size(point: &Point) -> Option<(f64, Message)> {
    let data = point.data.as_ref()?;
    let times = data.size_to_memory?;
    let text = say!(
        target_times_times_setting,
        target = &point.target,
        times = format!("{times:.1}"),
        setting = &data.facts.memory_setting
    );
    Some((times, text))
}

/// One of the targets holds its data in memory and the other doesn't.
fn memory_class(pair: &TargetPair<'_>) -> Option<Message> {
    let of = |label: &str| {
        let mut own = pair.experiment.points.iter().filter(|point| point.target == label);
        own.find_map(size)
    };
    let ((a, text_a), (b, text_b)) = (of(pair.baseline.label())?, of(pair.candidate.label())?);
    (a.min(b) < IN_MEMORY && a.max(b) > BEYOND_MEMORY).then(|| parts([text_a, text_b]))?
}

/// The nodes on which more than one page request in a hundred was not answered by their buffers: the system's cache may
/// have answered it, or the disk.
fn misses(trial: &Trial) -> Option<Message> {
    each_node(trial, |node| {
        let hits = node.hit_share.filter(|share| *share < WARM_HITS)?;
        let hits = Message::verbatim(format!("{:.1} %", 100.0 * hits));
        Some(match node.pages_read {
            Some(pages) => say!(from_memory_pages_read, hits = hits, pages = pages),
            None => say!(hits_from_memory, hits = hits),
        })
    })
}

fn backlog(node: &NodeConditions) -> Option<Message> {
    let dirty = node.dirty_share.filter(|share| *share > DIRTY);
    let age = node.checkpoint_age_share.filter(|share| *share > CHECKPOINT_AGE);
    let purge = node.purge_backlog.filter(|backlog| *backlog > PURGE_BACKLOG);
    let texts = [
        dirty.map(|share| say!(of_the_pages_dirty, share = percent(share))),
        age.map(|share| say!(checkpoint_age_share, share = percent(share))),
        purge.map(|rows| say!(old_row_versions, rows = rows)),
    ];
    parts(texts.into_iter().flatten())
}

/// The best points of sweeps whose server had CPU to spare.
fn idle_server(case: &Case<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for experiment in case.measured().filter(|experiment| !experiment.is_pass()) {
        for target in &case.evidence.targets {
            let own = || experiment.points.iter().filter(|point| point.target == target.label);
            let top =
                |a: &Point, b: &Point| a.throughput().median.total_cmp(&b.throughput().median);
            let Some(best) = own().max_by(|a, b| top(a, b)).filter(|_| own().count() > 1) else {
                continue;
            };
            for trial in
                case.evidence.trials.iter().filter(|trial| best.trials.contains(&trial.label))
            {
                let idle = server_cpu(trial).filter(|share| *share < BUSY_SERVER);
                let value = idle.map(|share| say!(share_busy, share = percent(share)));
                let place = Spot::trial(&trial.label);
                findings.extend(value.map(|value| Finding::new(place, value)));
            }
        }
    }
    findings
}

/// The busiest node's CPU, where dyno can see it.
fn server_cpu(trial: &Trial) -> Option<f64> {
    let busiest = nodes_of(trial).filter_map(|(_, node)| node.cpu_share).reduce(f64::max);
    let of_host = || trial.summary.generator.host.cpu_share;
    busiest.or_else(|| (trial.place == TargetPlace::SameHost).then(of_host))
}

fn swap(trial: &Trial) -> Option<Message> {
    let known = generator(trial)?;
    let pages = known.swapped_pages.filter(|pages| *pages > SWAPPED_PAGES);
    let pressure = known.memory_pressure_share.filter(|share| *share > MEMORY_PRESSURE);
    let texts = [
        pages.map(|pages| say!(n_pages_swapped, n = pages)),
        pressure.map(|share| say!(waited_for_memory_of_the_window, share = percent(share))),
    ];
    parts(texts.into_iter().flatten())
}
