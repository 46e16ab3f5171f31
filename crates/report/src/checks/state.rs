//! E: the state of data, caches and machines.

use super::case::{each_node, generator, nodes};
use super::{Case, Find, Rule, parts, percent};
use crate::build::{DISK_BOUND, IN_MEMORY};
use crate::format;
use crate::model::{Experiment, Finding, Group, Level, Place, Point, Spot, Trial};
use crate::say;
use crate::text::Text;
use dyno_measure::NodeConditions;

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
/// A server at its limit leaves less of its CPU idle.
const BUSY_SERVER: f64 = 0.70;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "memory-class",
        group: Group::E,
        level: Level::W,
        rule: "The data of targets that are compared fit into memory on all of them or on none.",
        meaning: "One target answers from memory what the other reads from disk: the comparison is one of memory.",
        advice: "Give both the same memory for data, or choose data that are far smaller or larger than both.",
        find: Find::Case(memory_class),
    },
    Rule {
        id: "data-at-edge",
        group: Group::E,
        level: Level::W,
        rule: "The data are clearly smaller or larger than the server's memory for them (not 0.8 to 1.2 times).",
        meaning: "Just here a little more data or memory changes the figures by a lot.",
        advice: "Choose another size of data, so that the class (in memory, disk-bound) is clear.",
        find: Find::Experiment(|experiment| {
            sizes(experiment, |times| (IN_MEMORY..=DISK_BOUND).contains(&times))
        }),
    },
    Rule {
        id: "data-in-memory",
        group: Group::E,
        level: Level::I,
        rule: "The data do not fit into the server's memory for them.",
        meaning: "Reads are answered from memory: the figures say nothing about data that are larger than it.",
        advice: "Add an experiment with data of several times the memory.",
        find: Find::Experiment(|experiment| {
            // Warehouses have a rule of their own.
            experiment.tpcc.is_none().then(|| sizes(experiment, |times| times < IN_MEMORY))?
        }),
    },
    Rule {
        id: "cold",
        group: Group::E,
        level: Level::W,
        rule: "Data that fit into memory are there: at least 99 % of the page requests in the window are answered from it.",
        meaning: "The cache was still cold: part of the window measured the disk.",
        advice: "Warm up for longer, or read all tables and indexes before the first trial.",
        find: Find::Trial(|trial| {
            let times = trial.summary.data.as_ref()?.size_to_memory()?;
            (times < IN_MEMORY).then(|| misses(trial))?
        }),
    },
    Rule {
        id: "disk-reads",
        group: Group::E,
        level: Level::I,
        rule: "At least 99 % of the page requests in the window are answered from memory.",
        meaning: "The figures depend on the disk below the server.",
        advice: "State the disk (kind, IOPS, throughput) beside the figures.",
        find: Find::Trial(|trial| {
            let times =
                trial.summary.data.as_ref().and_then(dyno_measure::DataFacts::size_to_memory);
            times.is_none_or(|times| times >= IN_MEMORY).then(|| misses(trial))?
        }),
    },
    Rule {
        id: "unsettled-start",
        group: Group::E,
        level: Level::W,
        rule: "When a trial begins the server has no backlog: at most 10 % dirty pages, 75 % of the log since the last checkpoint, 100,000 old row versions.",
        meaning: "Work of an earlier load was done inside this window.",
        advice: "Wait between trials until the server has settled, or restore the data (restore).",
        find: Find::Trial(|trial| each_node(trial, backlog)),
    },
    Rule {
        id: "background",
        group: Group::E,
        level: Level::I,
        rule: "The server does no work of its own in the window.",
        meaning: "Part of the server's time went into it; that belongs to a realistic load, but by chance more into one trial than another.",
        advice: "Measure long enough for several such jobs, and repeat.",
        find: Find::Trial(|trial| {
            each_node(trial, |node| {
                let jobs: Vec<Text> = node.background.iter().map(Text::from).collect();
                (!jobs.is_empty()).then(|| Text::joined(&jobs, ", ", "、"))
            })
        }),
    },
    Rule {
        id: "growth",
        group: Group::E,
        level: Level::W,
        rule: "The data grow by at most 5 % in a trial.",
        meaning: "Later trials ran on larger data than earlier ones.",
        advice: "Restore the data before each trial (restore), or compare trials of the same repeat only.",
        find: Find::Trial(|trial| {
            each_node(trial, |node| node.growth_share.filter(|share| *share > GROWTH).map(percent))
        }),
    },
    Rule {
        id: "idle-server",
        group: Group::E,
        level: Level::W,
        rule: "At the highest throughput of a sweep the server's CPU is at most 30 % idle.",
        meaning: "CPU was not the limit: locks, the disk, the network or too few workers were. The maximum of this server may be higher.",
        advice: "Add load levels; if throughput stays level, name what the limit is.",
        find: Find::Case(idle_server),
    },
    Rule {
        id: "steal",
        group: Group::E,
        level: Level::W,
        rule: "The hypervisor takes at most 1 % of the load generator's CPU for others.",
        meaning: "Other virtual machines disturbed the measurement.",
        advice: "Use a dedicated machine, or repeat at another time.",
        find: Find::Trial(|trial| {
            let share = trial.summary.generator.host.steal_share;
            (share > STEAL).then(|| percent(share))
        }),
    },
    Rule {
        id: "throttled",
        group: Group::E,
        level: Level::W,
        rule: "No CPU quota holds the load generator back for more than 1 % of the window.",
        meaning: "The container's quota may have been the limit, and its pauses are in the latency.",
        advice: "Raise or remove the CPU quota of the load generator's container.",
        find: Find::Trial(|trial| {
            generator(trial)?.throttled_share.filter(|share| *share > THROTTLED).map(percent)
        }),
    },
    Rule {
        id: "swap",
        group: Group::E,
        level: Level::W,
        rule: "The load generator's machine neither swaps nor waits for memory.",
        meaning: "Memory was short: any program there stopped now and then.",
        advice: "Give the machine more memory, or turn swapping off.",
        find: Find::Trial(swap),
    },
    Rule {
        id: "governor",
        group: Group::E,
        level: Level::I,
        rule: "The load generator's CPUs keep their frequency (governor performance).",
        meaning: "CPUs that clock down while idle answer later: latency at low load is too high.",
        advice: "Set the governor to performance before measuring latency.",
        find: Find::Trial(|trial| {
            let governor = generator(trial)?.governor.as_deref()?;
            (governor != "performance" && !governor.is_empty()).then(|| Text::same(governor))
        }),
    },
];

/// Targets whose data have such a size by the memory for them. An embedded database shares its memory
/// with the load generator and the system's cache.
fn sizes(experiment: &Experiment, is_found: fn(f64) -> bool) -> Option<Text> {
    let mut texts: Vec<Text> = Vec::new();
    for point in &experiment.points {
        let Some((times, text)) = size(point) else { continue };
        if is_found(times) && !texts.contains(&text) {
            texts.push(text);
        }
    }
    parts(texts)
}

/// How many times the data of a point fill the memory, and that in words.
fn size(point: &Point) -> Option<(f64, Text)> {
    let data = point.data.as_ref()?;
    let times = data.size_to_memory?;
    let text = say!(
        "{target}: {times} times {setting}",
        target = &point.target,
        times = format!("{times:.1}"),
        setting = &data.facts.memory_setting
    );
    Some((times, text))
}

/// Pairs of targets in an experiment, one of which holds its data in memory and the other doesn't.
fn memory_class(case: &Case<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for pair in super::sides::pairs(case) {
        let of = |label: &str| {
            let mut own = pair.experiment.points.iter().filter(|point| point.target == label);
            own.find_map(size)
        };
        let (a, b) = (pair.baseline.label(), pair.candidate.label());
        let (Some((times_a, text_a)), Some((times_b, text_b))) = (of(a), of(b)) else { continue };
        if (times_a < IN_MEMORY) != (times_b < IN_MEMORY) {
            let value = Text::joined(&[text_a, text_b], "; ", "；");
            findings.push(Finding { place: Spot::targets(&[a, b]), value });
        }
    }
    findings.dedup();
    findings
}

/// The nodes on which more than one page request in a hundred went to disk.
fn misses(trial: &Trial) -> Option<Text> {
    each_node(trial, |node| {
        let hits = node.hit_share.filter(|share| *share < WARM_HITS)?;
        let hits = Text::same(format!("{:.1} %", 100.0 * hits));
        Some(match node.pages_read {
            Some(pages) => say!(
                "{hits} from memory, {pages} pages read",
                hits = hits,
                pages = format::whole(pages as f64)
            ),
            None => say!("{hits} from memory", hits = hits),
        })
    })
}

fn backlog(node: &NodeConditions) -> Option<Text> {
    let dirty = node.dirty_share.filter(|share| *share > DIRTY);
    let age = node.checkpoint_age_share.filter(|share| *share > CHECKPOINT_AGE);
    let purge = node.purge_backlog.filter(|backlog| *backlog > PURGE_BACKLOG);
    let texts = [
        dirty.map(|share| say!("{share} of the pages dirty", share = percent(share))),
        age.map(|share| say!("checkpoint age {share}", share = percent(share))),
        purge.map(|rows| say!("{rows} old row versions", rows = format::whole(rows as f64))),
    ];
    parts(texts.into_iter().flatten().collect())
}

/// The best points of sweeps whose server had CPU to spare.
fn idle_server(case: &Case<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for experiment in case.measured().filter(|experiment| experiment.tpch.is_none()) {
        for target in &case.paper.targets {
            let own = || experiment.points.iter().filter(|point| point.target == target.label);
            let top =
                |a: &Point, b: &Point| a.throughput().median.total_cmp(&b.throughput().median);
            let Some(best) = own().max_by(|a, b| top(a, b)).filter(|_| own().count() > 1) else {
                continue;
            };
            for trial in case.paper.trials.iter().filter(|trial| best.trials.contains(&trial.label))
            {
                let idle = server_cpu(trial).filter(|share| *share < BUSY_SERVER);
                let value = idle.map(|share| say!("{share} busy", share = percent(share)));
                let place = Spot::trial(&trial.label);
                findings.extend(value.map(|value| Finding { place, value }));
            }
        }
    }
    findings
}

/// The busiest node's CPU, where dyno can see it.
fn server_cpu(trial: &Trial) -> Option<f64> {
    let busiest = nodes(trial).filter_map(|(_, node)| node.cpu_share).reduce(f64::max);
    let of_host = || trial.summary.generator.host.cpu_share;
    busiest.or_else(|| (trial.place == Place::SameHost).then(of_host))
}

fn swap(trial: &Trial) -> Option<Text> {
    let known = generator(trial)?;
    let pages = known.swapped_pages.filter(|pages| *pages > SWAPPED_PAGES);
    let pressure = known.memory_pressure_share.filter(|share| *share > MEMORY_PRESSURE);
    let texts = [
        pages.map(|pages| Text::count(pages, "{n} page swapped", "{n} pages swapped")),
        pressure
            .map(|share| say!("waited for memory {share} of the window", share = percent(share))),
    ];
    parts(texts.into_iter().flatten().collect())
}
