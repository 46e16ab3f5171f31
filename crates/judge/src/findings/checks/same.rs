//! D: same for same. Targets that stand beside each other differ in nothing but what is compared.
//!
//! Four of these rules are the PolarDB white paper's own (chapter 7): the same node class, the same
//! major version, no single statement, equal durability.

use super::case::each_node;
use super::sides::{self, DataAmount, TargetPair, TargetSide, difference};
use super::{Case, Rule, commas, foreign, parts};
use crate::evidence::{
    Evidence, Experiment, Finding, Group, Level, PairedComparison, PaperTarget, Spot, VetoReach,
    settings,
};
use crate::format;
use crate::messages::checks;
use crate::text::Message;
use dyno_facts::{Environment, NodeFacts, ServerFacts, say};
use std::collections::{BTreeMap, BTreeSet};

/// Round trips that differ by less are alike: the smallest difference between two hosts of one rack,
/// and what a median of some hundred round trips moves by.
const ROUND_TRIP_US: f64 = 50.0;
const ROUND_TRIP_SHARE: f64 = 0.20;
/// InnoDB and PostgreSQL estimate rows from samples; loads of the same size differ by less.
const ROWS_TIMES: f64 = 1.10;
/// PostgreSQL counts rows twice for a while that it has just loaded; samples err beside.
pub(super) const ROWS_TIMES_OF_ESTIMATES: f64 = 2.5;
/// Of columns, indexes and settings that differ so many are named.
const MOST_NAMED: usize = 12;
/// Statements of one transaction: more than this is no single statement.
const SINGLE_STATEMENT: f64 = 1.5;
/// A round trip within a zone takes well below a millisecond: from this median latency on it dominates nothing.
const FAR_ABOVE_A_ROUND_TRIP_US: f64 = 50_000.0;

pub(super) const RULES: &[Rule] = &[
    Rule::case(Group::D, Level::E, checks::durability, |case| where_written(case, unlike_promises)),
    Rule::pair(Group::D, Level::W, checks::node_class, classes),
    Rule::pair(Group::D, Level::W, checks::major_version, major_versions),
    Rule::experiment(Group::D, Level::W, checks::single_statement, single_statement),
    Rule::pair(Group::D, Level::W, checks::isolation, |pair| {
        let levels = (pair.baseline.isolation(), pair.candidate.isolation());
        difference(say!(isolation_level), levels.0, levels.1)
    }),
    Rule::case(Group::D, Level::W, checks::binary_log, |case| {
        where_written(case, |pair| {
            let logs = (pair.baseline.binary_log(), pair.candidate.binary_log());
            difference(say!(binary_log), logs.0, logs.1)
        })
    }),
    Rule::pair(Group::D, Level::W, checks::transport, |pair| {
        let (a, b) = (&pair.baseline, &pair.candidate);
        let texts = [
            difference(say!(connection), a.transport(), b.transport()),
            difference(say!(proxy), a.stated("proxy"), b.stated("proxy")),
        ];
        parts(texts.into_iter().flatten())
    }),
    Rule::pair(Group::D, Level::W, checks::round_trip, round_trips),
    Rule::pair(Group::D, Level::W, checks::schema, schemas),
    Rule::pair(Group::D, Level::W, checks::rows, rows),
    Rule::trial(Group::D, Level::W, checks::no_statistics, |trial| {
        each_node(trial, |node| commas(&node.tables_without_statistics))
    }),
    Rule::trial(Group::D, Level::W, checks::query_cache, |trial| {
        each_node(trial, |node| node.query_cache?.then(|| say!(query_cache_on)))
    }),
    Rule::evidence(Group::D, Level::W, checks::settings_differ, settings_differ),
    Rule::evidence(Group::D, Level::I, checks::other_settings, other_settings),
    Rule::case(Group::D, Level::W, checks::generators_differ, generators_differ),
    Rule::target(Group::D, Level::I, checks::weak_durability, weak),
    Rule::target_of_case(Group::D, Level::W, checks::unsafe_tables, |case, target| {
        let mut own = case.evidence.trials.iter().filter(|trial| trial.target == target.label);
        let has_written = own.any(|trial| trial.summary.statements.writes > 0);
        let engine = target.settings.iter().find(|row| row.name == settings::ENGINE);
        engine.filter(|_| has_written).map(|row| Message::verbatim(&row.value))
    }),
    Rule::case(Group::D, Level::E, checks::target_changed, |case| {
        foreign::each_comparison(case, |of| Some((target_changed(case, of)?, VetoReach::AnyFar)))
    }),
];

fn weak(target: &PaperTarget) -> Option<Message> {
    let weak = target.settings.iter().filter(|setting| setting.is_weak);
    commas(weak.map(|row| format!("{} = {}", row.name, row.value)))
}

/// What a commit promises or logs costs nothing where nothing is written. Of targets of which some experiments only
/// read, the others are named.
fn where_written(
    case: &Case<'_>,
    find: impl Fn(&TargetPair<'_>) -> Option<Message>,
) -> Vec<Finding> {
    let pairs = sides::pairs(case);
    let mut findings = Vec::new();
    for pair in pairs.iter().filter(|pair| !pair.only_reads()) {
        let Some(value) = find(pair) else { continue };
        let mut same = pairs.iter().filter(|other| other.labels() == pair.labels());
        let places = match same.any(TargetPair::only_reads) {
            true => places_of(case, pair),
            false => vec![Spot::targets(&pair.labels())],
        };
        findings.extend(places.into_iter().map(|place| Finding::new(place, value.clone())));
    }
    // Once for all experiments in which it is the same.
    format::unique(findings)
}

/// The comparisons of two targets in an experiment, or that as a whole where it compares nothing.
fn places_of(case: &Case<'_>, pair: &TargetPair<'_>) -> Vec<Spot> {
    let labels = pair.labels();
    let is_own = |of: &&PairedComparison| {
        let is_of_both =
            [&of.baseline, &of.candidate].iter().all(|own| labels.contains(&own.as_str()));
        of.experiment == pair.experiment.name && is_of_both
    };
    let own = case.verdicts.comparisons.iter().filter(is_own);
    let own: Vec<Spot> = own.map(|of| Spot::comparison(&of.name)).collect();
    if own.is_empty() { vec![Spot::experiment(&pair.experiment.name)] } else { own }
}

fn unlike_promises(pair: &TargetPair<'_>) -> Option<Message> {
    let (a, b) = (&pair.baseline, &pair.candidate);
    let on_disk = |side: &TargetSide<'_>| match weak(side.target) {
        Some(settings) => say!(not_on_disk_at_commit, settings = settings),
        None => say!(on_disk),
    };
    let sides = |of_a: Message, of_b: Message| {
        say!(promises_of_sides, a = a.label(), of_a = of_a, b = b.label(), of_b = of_b)
    };
    let disks = a.is_on_disk().zip(b.is_on_disk()).filter(|(a, b)| a != b);
    let disks = disks.map(|_| sides(on_disk(a), on_disk(b)));
    let copies = a.copies().zip(b.copies()).filter(|(a, b)| a.0 != b.0);
    let copies = copies.map(|(a, b)| sides(a.1.text(), b.1.text()));
    parts(disks.into_iter().chain(copies))
}

fn classes(pair: &TargetPair<'_>) -> Option<Message> {
    let (a, b) = (&pair.baseline, &pair.candidate);
    let mut texts = vec![
        difference(Message::verbatim("vCPU"), a.vcpu(), b.vcpu()),
        difference(say!(memory_gib), a.memory_gib(), b.memory_gib()),
    ];
    if texts.iter().all(Option::is_none) {
        texts.push(difference(say!(node_class), a.class(), b.class()));
    }
    let names = [("cpu_model", say!(cpu_model)), ("disk", say!(disk)), ("zone", say!(zone))];
    let stated = names.map(|(name, told)| difference(told, a.stated(name), b.stated(name)));
    parts(texts.into_iter().chain(stated).flatten())
}

fn major_versions(pair: &TargetPair<'_>) -> Option<Message> {
    let (a, b) = (&pair.baseline, &pair.candidate);
    let is_same = a.product() == b.product();
    is_same
        .then(|| difference(Message::verbatim(a.product()), a.major_version(), b.major_version()))?
}

fn single_statement(experiment: &Experiment) -> Option<Message> {
    if experiment.is_pass() {
        return None;
    }
    let is_short = |point: &&crate::evidence::Point| {
        point.p50_us.is_none_or(|p50| p50.median < FAR_ABOVE_A_ROUND_TRIP_US)
    };
    let by_transaction = |point: &crate::evidence::Point| {
        (point.tps.median > 0.0).then(|| point.qps.median / point.tps.median)
    };
    let statements =
        experiment.points.iter().filter(is_short).filter_map(by_transaction).reduce(f64::max)?;
    (statements < SINGLE_STATEMENT)
        .then(|| say!(statements_per_transaction, statements = format!("{statements:.1}")))
}

fn round_trips(pair: &TargetPair<'_>) -> Option<Message> {
    let (a, b) = (pair.baseline.round_trip_us()?, pair.candidate.round_trip_us()?);
    let difference = (a - b).abs();
    (difference > ROUND_TRIP_US && difference > ROUND_TRIP_SHARE * a.min(b))
        .then(|| say!(s_against_s, a = format::whole(a), b = format::whole(b)))
}

fn schemas(pair: &TargetPair<'_>) -> Option<Message> {
    let (a, b) = (&pair.baseline, &pair.candidate);
    // Products and versions describe the same table in different words.
    let is_same = a.product() == b.product() && a.major_version() == b.major_version();
    let checksums = is_same.then(|| difference(say!(checksum), a.schema(), b.schema()))??;
    let told =
        |name: &String, [a, b]: [Message; 2]| say!(name_a_against_b, name = name, a = a, b = b);
    Some(parts_that_differ(&a.target.schema, &b.target.schema, told).unwrap_or(checksums))
}

/// Columns, indexes and triggers that only one side has, or that are defined otherwise.
fn parts_that_differ(
    a: &BTreeMap<String, String>,
    b: &BTreeMap<String, String>,
    tell: fn(&String, [Message; 2]) -> Message,
) -> Option<Message> {
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let differ: Vec<&String> =
        names.into_iter().filter(|name| a.get(*name) != b.get(*name)).collect();
    let told = |side: &BTreeMap<String, String>, name: &String| {
        side.get(name).map_or_else(|| say!(is_missing), Message::from)
    };
    let each = differ.iter().map(|name| tell(name, [told(a, name), told(b, name)]));
    parts_up_to(each, MOST_NAMED)
}

/// The first of them, and how many more there are.
fn parts_up_to(texts: impl ExactSizeIterator<Item = Message>, most: usize) -> Option<Message> {
    let more = texts.len().saturating_sub(most);
    let more = (more > 0).then(|| say!(and_more_differences, n = more as u64));
    parts(texts.take(most).chain(more))
}

fn rows(pair: &TargetPair<'_>) -> Option<Message> {
    let experiment = pair.experiment;
    if experiment.family.is_some_and(|family| !family.knows_tables(&experiment.test)) {
        return None;
    }
    let (a, b) = (pair.baseline.amount()?, pair.candidate.amount()?);
    let told = |of: DataAmount| say!(tables_with_rows, n = of.tables, rows = of.rows);
    (a.tables != b.tables || has_more_rows(a, b) || has_more_rows(b, a))
        .then(|| say!(a_against_b, a = told(a), b = told(b)))
}

/// By more than an estimate may err, or by less and the bytes say so too: by half as much, as not all of them are rows.
fn has_more_rows(more: DataAmount, less: DataAmount) -> bool {
    let times = |more: u64, less: u64| more as f64 / less.max(1) as f64;
    let rows = times(more.rows, less.rows);
    let bytes = more.bytes.zip(less.bytes).map_or(1.0, |(more, less)| times(more, less));
    rows > ROWS_TIMES_OF_ESTIMATES || rows > ROWS_TIMES && bytes - 1.0 > (rows - 1.0) / 2.0
}

/// Settings that decide durability, memory, plans or logging, and versions.
fn settings_differ(evidence: &Evidence) -> Vec<Finding> {
    differing(evidence, |first, target| {
        let versions = (first.product != target.product)
            .then(|| say!(a_against_b, a = &first.product, b = &target.product));
        parts(versions.into_iter().chain(settings_of(first, target, settings::matters)))
    })
}

/// All other settings, as far as they name no place.
fn other_settings(evidence: &Evidence) -> Vec<Finding> {
    differing(evidence, |first, target| {
        let settings = settings_of(first, target, |name| !settings::matters(name));
        parts_up_to(settings.into_iter(), MOST_NAMED)
    })
}

/// What both servers state, of settings that `is_asked`.
fn settings_of(
    first: &PaperTarget,
    target: &PaperTarget,
    is_asked: fn(&str) -> bool,
) -> Vec<Message> {
    let differs = |(name, value): (&String, &String)| {
        let other = first.all_settings.get(name).filter(|other| *other != value)?;
        let is_told = is_asked(name) && !settings::names_a_place(name);
        let [a, b] = [other, value].map(|value| settings::readable(name, value));
        is_told.then(|| say!(setting_is_a_against_b, setting = name, a = a, b = b))
    };
    target.all_settings.iter().filter_map(differs).collect()
}

/// What `find` says of each target beside the first one of its product.
fn differing(
    evidence: &Evidence,
    find: impl Fn(&PaperTarget, &PaperTarget) -> Option<Message>,
) -> Vec<Finding> {
    let product = |target: &PaperTarget| target.product.split(' ').next().map(str::to_owned);
    let mut findings = Vec::new();
    for (index, target) in evidence.targets.iter().enumerate() {
        let mut earlier = evidence.targets[..index].iter();
        let Some(first) = earlier.find(|first| product(first) == product(target)) else {
            continue;
        };
        let place = Spot::targets(&[&first.label, &target.label]);
        findings.extend(find(first, target).map(|value| Finding::new(place, value)));
    }
    findings
}

/// What a server said otherwise before a trial of a comparison than before its first one, also where that belongs to an
/// earlier session, and before which.
fn target_changed(case: &Case<'_>, of: &PairedComparison) -> Option<Message> {
    let of_side = |side: usize| {
        let own = foreign::pairs(case.evidence, of).map(|pair| pair[side]);
        let with_data = own.filter_map(|trial| {
            let mut all = case.run(trial.run)?.trials.iter();
            Some((trial, all.find(|data| data.summary.trial == trial.summary.trial)?))
        });
        let mut trials: Vec<_> = with_data.collect();
        trials.sort_by_key(|(trial, _)| (trial.run, trial.summary.trial));
        let (own, first) = *trials.first()?;
        let sessions = &case.run(own.run)?.header.continues;
        let mut earlier =
            sessions.iter().filter_map(|session| session.looks.get(&own.summary.target));
        let first = earlier.next().unwrap_or(&first.before);
        let change = |now: &NodeFacts| {
            let mut changes =
                now.iter().filter_map(|(name, now)| server_changed(first.get(name)?, now));
            changes.next()
        };
        if let Some(value) = earlier.find_map(change) {
            return Some(say!(changed_between_sessions, target = &own.target, value = value));
        }
        trials.iter().find_map(|(trial, data)| {
            let looks = [&data.before, &data.after];
            let value = looks.into_iter().find_map(change)?;
            Some(say!(
                changed_by_trial,
                target = &trial.target,
                trial = &trial.label,
                value = value
            ))
        })
    };
    parts([0, 1].into_iter().filter_map(of_side))
}

/// How a server differs from what it said before, in a sentence: settings of durability, memory, plans and logging, and
/// the tables. `None` where these are the same.
pub fn server_changed(first: &ServerFacts, now: &ServerFacts) -> Option<Message> {
    let changed = |(name, value): (&String, &String)| {
        let before = first.settings.get(name).filter(|before| *before != value)?;
        let is_asked = settings::matters(name) && !settings::names_a_place(name);
        let [a, b] = [before, value].map(|value| settings::readable(name, value));
        is_asked.then(|| say!(setting_was_a_is_b, setting = name, a = a, b = b))
    };
    let mut all: Vec<Message> = now.settings.iter().filter_map(changed).collect();
    let is_known = !first.schema.is_empty() && !now.schema.is_empty();
    let told = |name: &String, [a, b]: [Message; 2]| {
        say!(setting_was_a_is_b, setting = name, a = a, b = b)
    };
    all.extend(is_known.then(|| parts_that_differ(&first.schema, &now.schema, told)).flatten());
    parts_up_to(all.into_iter(), MOST_NAMED)
}

/// A fact of a load generator: its name, and how it is told.
type Told = (Message, fn(&Environment) -> String);

fn generators_differ(case: &Case<'_>) -> Vec<Finding> {
    let Some((first, others)) = case.runs.split_first() else { return Vec::new() };
    let told: [Told; 6] = [
        (say!(host_name), |of| of.host.clone()),
        (say!(kernel_version), |of| of.kernel.clone()),
        (say!(loops_io), |of| of.loops_io.clone()),
        (say!(cpu_model), |of| of.cpu_model.clone()),
        (say!(cores), |of| of.cores.to_string()),
        (say!(program), |of| of.binary_sha256.chars().take(12).collect()),
    ];
    let mut findings = Vec::new();
    for (index, other) in others.iter().enumerate() {
        let differences = told.iter().filter_map(|(name, of)| {
            let (a, b) = (of(&first.header.environment), of(&other.header.environment));
            (a != b).then(|| say!(name_a_against_b, name = name, a = a, b = b))
        });
        let place = Spot::run(&case.evidence.runs[index + 1].folder);
        findings.extend(parts(differences).map(|value| Finding::new(place, value)));
    }
    findings
}
