//! D: same for same. Targets that stand beside each other differ in nothing but what is compared.
//!
//! Four of these rules are the PolarDB white paper's own (chapter 7): the same node class, the same
//! major version, no single statement, equal durability.

use super::case::each_node;
use super::sides::{Pair, Side, difference, pairs};
use super::{Case, Find, Rule, parts};
use crate::format;
use crate::model::{Experiment, Finding, Group, Level, Paper, Spot, Target};
use crate::say;
use crate::text::Text;
use dyno_store::Environment;

/// Round trips that differ by less are alike: the smallest difference between two hosts of one rack,
/// and what a median of some hundred round trips moves by.
const ROUND_TRIP_US: f64 = 50.0;
const ROUND_TRIP_SHARE: f64 = 0.20;
/// InnoDB and PostgreSQL estimate rows from samples; loads of the same size differ by less.
const ROWS_SHARE: f64 = 0.10;
/// Statements of one transaction: more than this is no single statement.
const SINGLE_STATEMENT: f64 = 1.5;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "durability",
        group: Group::D,
        level: Level::E,
        rule: "Targets that are compared promise the same when they acknowledge a commit: on disk or not, on another copy or not (a quorum stands beside a semi-synchronous replica, not an asynchronous one).",
        meaning: "One of them does less work for a commit: it may be faster for that alone.",
        advice: "Set both to the same durability: flush at commit, and a semi-synchronous replica beside a quorum.",
        find: Find::Case(|case| {
            between(case, |pair| parts(durability(&pair.baseline, &pair.candidate)))
        }),
    },
    Rule {
        id: "node-class",
        group: Group::D,
        level: Level::W,
        rule: "Targets that are compared have the same node class: CPUs, memory, CPU model, disk, zone.",
        meaning: "The difference may be one of hardware.",
        advice: "Compare the same class, or compare by vCPU and price and say so.",
        find: Find::Case(|case| {
            between(case, |pair| parts(classes(&pair.baseline, &pair.candidate)))
        }),
    },
    Rule {
        id: "major-version",
        group: Group::D,
        level: Level::W,
        rule: "Targets of the same product that are compared have the same major version.",
        meaning: "Major versions scale differently with CPUs (MySQL 8.0 against 5.6 and 5.7): the difference may be one of versions.",
        advice: "Compare the same major version, or say that versions are what is compared.",
        find: Find::Case(|case| between(case, major_versions)),
    },
    Rule {
        id: "single-statement",
        group: Group::D,
        level: Level::W,
        rule: "No claim rests on transactions of a single statement.",
        meaning: "The round trip decides such figures, and with a warm cache servers read alike; they do not stand for an application.",
        advice: "Add a mixed workload, and make the claim for that.",
        find: Find::Experiment(single_statement),
    },
    Rule {
        id: "isolation",
        group: Group::D,
        level: Level::W,
        rule: "Targets that are compared run transactions at the same isolation level.",
        meaning: "A weaker level locks and checks less: the difference may come from that.",
        advice: "Set the same level on both; defaults differ between products.",
        find: Find::Case(|case| {
            between(case, |pair| {
                let levels = (pair.baseline.isolation(), pair.candidate.isolation());
                difference(say!("isolation level"), levels.0, levels.1)
            })
        }),
    },
    Rule {
        id: "transport",
        group: Group::D,
        level: Level::W,
        rule: "Targets that are compared are reached in the same way: socket or TCP, TLS or not, proxy or not.",
        meaning: "The way to a server costs as much as a small statement: the difference may come from that.",
        advice: "Reach both in the same way.",
        find: Find::Case(|case| {
            between(case, |pair| {
                let (a, b) = (&pair.baseline, &pair.candidate);
                let texts = [
                    difference(say!("connection"), a.transport(), b.transport()),
                    difference(say!("proxy"), a.stated("proxy"), b.stated("proxy")),
                ];
                parts(texts.into_iter().flatten().collect())
            })
        }),
    },
    Rule {
        id: "round-trip",
        group: Group::D,
        level: Level::W,
        rule: "Targets that are compared are equally far away: round trips differ by at most 20 % or 50 µs.",
        meaning: "With a closed loop a longer way lowers throughput, whatever the server does.",
        advice: "Put both into the same zone as the load generator.",
        find: Find::Case(|case| between(case, round_trips)),
    },
    Rule {
        id: "schema",
        group: Group::D,
        level: Level::W,
        rule: "Targets of the same product and version that are compared have the same tables and indexes.",
        meaning: "An index more or less changes both reads and writes.",
        advice: "Let dyno prepare the data on both, or compare SHOW CREATE TABLE of both.",
        find: Find::Case(|case| between(case, schemas)),
    },
    Rule {
        id: "rows",
        group: Group::D,
        level: Level::W,
        rule: "Targets that are compared hold the same data: as many tables, and rows to 10 % (servers estimate them).",
        meaning: "One of them worked on more data than the other.",
        advice: "Load both anew with the same options.",
        find: Find::Case(|case| between(case, rows)),
    },
    Rule {
        id: "no-statistics",
        group: Group::D,
        level: Level::W,
        rule: "The optimizer has statistics of all tables.",
        meaning: "Plans were guessed, and may change when statistics are made.",
        advice: "Run ANALYZE on these tables before the first trial.",
        find: Find::Trial(|trial| {
            each_node(trial, |node| {
                let tables: Vec<Text> =
                    node.tables_without_statistics.iter().map(Text::from).collect();
                (!tables.is_empty()).then(|| Text::joined(&tables, ", ", "、"))
            })
        }),
    },
    Rule {
        id: "query-cache",
        group: Group::D,
        level: Level::W,
        rule: "No cache of whole answers is on.",
        meaning: "Repeated queries are not executed: reads look faster than they are.",
        advice: "Turn the query cache off (query_cache_type = 0).",
        find: Find::Trial(|trial| {
            each_node(trial, |node| node.query_cache?.then(|| say!("query cache on")))
        }),
    },
    Rule {
        id: "settings-differ",
        group: Group::D,
        level: Level::W,
        rule: "Targets of the same product have the same version and settings.",
        meaning: "A difference between these targets may come from their settings.",
        advice: "Set both alike, or say that the settings are what is compared.",
        find: Find::Paper(settings_differ),
    },
    Rule {
        id: "generators-differ",
        group: Group::D,
        level: Level::W,
        rule: "Runs that are compared come from the same load generator: machine, kernel, program.",
        meaning: "A difference between runs may come from the load generator.",
        advice: "Measure both in one run, from one machine.",
        find: Find::Case(generators_differ),
    },
    Rule {
        id: "weak-durability",
        group: Group::D,
        level: Level::I,
        rule: "A commit survives a power loss.",
        meaning: "With these settings a committed transaction may be lost or torn; compare only with targets that promise the same.",
        advice: "Turn durability on, or print these settings beside every figure.",
        find: Find::Target(|target| {
            let weak = weak(target);
            (!weak.is_empty()).then(|| Text::joined(&weak, ", ", "、"))
        }),
    },
];

/// What `find` says of the pairs of targets, once for all experiments in which it is the same.
fn between(case: &Case<'_>, find: impl Fn(&Pair<'_>) -> Option<Text>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for pair in pairs(case) {
        let place = Spot::targets(&[pair.baseline.label(), pair.candidate.label()]);
        let finding = find(&pair).map(|value| Finding { place, value });
        findings.extend(finding.filter(|finding| !findings.contains(finding)));
    }
    findings
}

fn weak(target: &Target) -> Vec<Text> {
    let weak = target.settings.iter().filter(|setting| setting.is_weak);
    weak.map(|row| Text::same(format!("{} = {}", row.name, row.value))).collect()
}

fn durability(a: &Side<'_>, b: &Side<'_>) -> Vec<Text> {
    let on_disk = |side: &Side<'_>| match side.is_on_disk() {
        Some(true) => say!("on disk"),
        _ => Text::joined(&weak(side.target), ", ", "、"),
    };
    let disks = a.is_on_disk().zip(b.is_on_disk()).filter(|(a, b)| a != b);
    let disks = disks.map(|_| say!("{a} against {b}", a = on_disk(a), b = on_disk(b)));
    let copies = a.copies().zip(b.copies()).filter(|(a, b)| a.0 != b.0);
    let copies = copies.map(|(a, b)| say!("{a} against {b}", a = a.1.text(), b = b.1.text()));
    disks.into_iter().chain(copies).collect()
}

fn classes(a: &Side<'_>, b: &Side<'_>) -> Vec<Text> {
    let mut texts = vec![
        difference(Text::same("vCPU"), a.vcpu(), b.vcpu()),
        difference(say!("memory, GiB"), a.memory_gib(), b.memory_gib()),
    ];
    if texts.iter().all(Option::is_none) {
        texts.push(difference(say!("node class"), a.class(), b.class()));
    }
    let names = [("cpu_model", say!("CPU model")), ("disk", say!("disk")), ("zone", say!("zone"))];
    let stated = names.map(|(name, told)| difference(told, a.stated(name), b.stated(name)));
    texts.into_iter().chain(stated).flatten().collect()
}

fn major_versions(pair: &Pair<'_>) -> Option<Text> {
    let (a, b) = (&pair.baseline, &pair.candidate);
    let is_same = a.product() == b.product();
    is_same.then(|| difference(Text::same(a.product()), a.major_version(), b.major_version()))?
}

fn single_statement(experiment: &Experiment) -> Option<Text> {
    let is_asked = experiment.tpch.is_none() && experiment.tpcc.is_none();
    let by_transaction = |point: &crate::model::Point| {
        (point.tps.median > 0.0).then(|| point.qps.median / point.tps.median)
    };
    let statements = experiment.points.iter().filter_map(by_transaction).reduce(f64::max)?;
    (is_asked && statements < SINGLE_STATEMENT).then(|| {
        say!("{statements} statements per transaction", statements = format!("{statements:.1}"))
    })
}

fn round_trips(pair: &Pair<'_>) -> Option<Text> {
    let (a, b) = (pair.baseline.round_trip_us()?, pair.candidate.round_trip_us()?);
    let difference = (a - b).abs();
    (difference > ROUND_TRIP_US && difference > ROUND_TRIP_SHARE * a.min(b))
        .then(|| say!("{a} µs against {b} µs", a = format::whole(a), b = format::whole(b)))
}

fn schemas(pair: &Pair<'_>) -> Option<Text> {
    let (a, b) = (&pair.baseline, &pair.candidate);
    // Products and versions describe the same table in different words.
    let is_same = a.product() == b.product() && a.major_version() == b.major_version();
    is_same.then(|| difference(say!("checksum"), a.schema(), b.schema()))?
}

fn rows(pair: &Pair<'_>) -> Option<Text> {
    let ((tables_a, rows_a), (tables_b, rows_b)) = (pair.baseline.rows()?, pair.candidate.rows()?);
    let (least, most) = (rows_a.min(rows_b) as f64, rows_a.max(rows_b) as f64);
    let told = |tables: usize, rows: u64| {
        say!(
            "{tables} tables with {rows} rows",
            tables = format::whole(tables as f64),
            rows = format::whole(rows as f64)
        )
    };
    (tables_a != tables_b || most - least > ROWS_SHARE * most)
        .then(|| say!("{a} against {b}", a = told(tables_a, rows_a), b = told(tables_b, rows_b)))
}

fn settings_differ(paper: &Paper) -> Vec<Finding> {
    let product = |target: &Target| target.product.split(' ').next().map(str::to_owned);
    let mut findings = Vec::new();
    for (index, target) in paper.targets.iter().enumerate() {
        let earlier = &paper.targets[..index];
        let Some(first) = earlier.iter().find(|first| product(first) == product(target)) else {
            continue;
        };
        let mut differences = Vec::new();
        if first.product != target.product {
            differences.push(say!("{a} against {b}", a = &first.product, b = &target.product));
        }
        for setting in &target.settings {
            let other = first.settings.iter().find(|other| other.name == setting.name);
            if let Some(other) = other.filter(|other| other.value != setting.value) {
                differences.push(say!(
                    "{setting} is {a} against {b}",
                    setting = &setting.name,
                    a = &other.value,
                    b = &setting.value
                ));
            }
        }
        let place = Spot::targets(&[&first.label, &target.label]);
        findings.extend(parts(differences).map(|value| Finding { place, value }));
    }
    findings
}

/// A fact of a load generator: its name, and how it is told.
type Told = (Text, fn(&Environment) -> String);

fn generators_differ(case: &Case<'_>) -> Vec<Finding> {
    let Some((first, others)) = case.runs.split_first() else { return Vec::new() };
    let told: [Told; 5] = [
        (say!("host name"), |of| of.host.clone()),
        (say!("kernel version"), |of| of.kernel.clone()),
        (say!("CPU model"), |of| of.cpu_model.clone()),
        (say!("cores"), |of| of.cores.to_string()),
        (say!("program"), |of| of.binary_sha256.chars().take(12).collect()),
    ];
    let mut findings = Vec::new();
    for (index, other) in others.iter().enumerate() {
        let differences = told.iter().filter_map(|(name, of)| {
            let (a, b) = (of(&first.header.environment), of(&other.header.environment));
            (a != b).then(|| say!("{name}: {a} against {b}", name = name, a = a, b = b))
        });
        let place = Spot::run(&case.paper.runs[index + 1].folder);
        findings.extend(parts(differences.collect()).map(|value| Finding { place, value }));
    }
    findings
}
