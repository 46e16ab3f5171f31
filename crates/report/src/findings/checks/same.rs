//! D: same for same. Targets that stand beside each other differ in nothing but what is compared.
//!
//! Four of these rules are the PolarDB white paper's own (chapter 7): the same node class, the same
//! major version, no single statement, equal durability.

use super::case::each_node;
use super::sides::{TargetPair, TargetSide, difference};
use super::{Case, Rule, commas, parts};
use crate::evidence::{Evidence, Experiment, Finding, Group, Level, PaperTarget, Spot};
use crate::format;
use crate::messages::checks;
use crate::text::Message;
use dyno_facts::{Environment, say};

/// Round trips that differ by less are alike: the smallest difference between two hosts of one rack,
/// and what a median of some hundred round trips moves by.
const ROUND_TRIP_US: f64 = 50.0;
const ROUND_TRIP_SHARE: f64 = 0.20;
/// InnoDB and PostgreSQL estimate rows from samples; loads of the same size differ by less.
const ROWS_SHARE: f64 = 0.10;
/// Statements of one transaction: more than this is no single statement.
const SINGLE_STATEMENT: f64 = 1.5;

pub(super) const RULES: &[Rule] = &[
    Rule::pair(Group::D, Level::E, checks::durability, durability),
    Rule::pair(Group::D, Level::W, checks::node_class, classes),
    Rule::pair(Group::D, Level::W, checks::major_version, major_versions),
    Rule::experiment(Group::D, Level::W, checks::single_statement, single_statement),
    Rule::pair(Group::D, Level::W, checks::isolation, |pair| {
        let levels = (pair.baseline.isolation(), pair.candidate.isolation());
        difference(say!(isolation_level), levels.0, levels.1)
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
    Rule::case(Group::D, Level::W, checks::generators_differ, generators_differ),
    Rule::target(Group::D, Level::I, checks::weak_durability, weak),
];

fn weak(target: &PaperTarget) -> Option<Message> {
    let weak = target.settings.iter().filter(|setting| setting.is_weak);
    commas(weak.map(|row| format!("{} = {}", row.name, row.value)))
}

fn durability(pair: &TargetPair<'_>) -> Option<Message> {
    let (a, b) = (&pair.baseline, &pair.candidate);
    let on_disk = |side: &TargetSide<'_>| weak(side.target).unwrap_or_else(|| say!(on_disk));
    let disks = a.is_on_disk().zip(b.is_on_disk()).filter(|(a, b)| a != b);
    let disks = disks.map(|_| say!(a_against_b, a = on_disk(a), b = on_disk(b)));
    let copies = a.copies().zip(b.copies()).filter(|(a, b)| a.0 != b.0);
    let copies = copies.map(|(a, b)| say!(a_against_b, a = a.1.text(), b = b.1.text()));
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
    let by_transaction = |point: &crate::evidence::Point| {
        (point.tps.median > 0.0).then(|| point.qps.median / point.tps.median)
    };
    let statements = experiment.points.iter().filter_map(by_transaction).reduce(f64::max)?;
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
    is_same.then(|| difference(say!(checksum), a.schema(), b.schema()))?
}

fn rows(pair: &TargetPair<'_>) -> Option<Message> {
    let ((tables_a, rows_a), (tables_b, rows_b)) = (pair.baseline.rows()?, pair.candidate.rows()?);
    let (least, most) = (rows_a.min(rows_b) as f64, rows_a.max(rows_b) as f64);
    let told = |tables: usize, rows: u64| say!(tables_with_rows, tables = tables, rows = rows);
    (tables_a != tables_b || most - least > ROWS_SHARE * most)
        .then(|| say!(a_against_b, a = told(tables_a, rows_a), b = told(tables_b, rows_b)))
}

fn settings_differ(evidence: &Evidence) -> Vec<Finding> {
    let product = |target: &PaperTarget| target.product.split(' ').next().map(str::to_owned);
    let mut findings = Vec::new();
    for (index, target) in evidence.targets.iter().enumerate() {
        let earlier = &evidence.targets[..index];
        let Some(first) = earlier.iter().find(|first| product(first) == product(target)) else {
            continue;
        };
        let mut differences = Vec::new();
        if first.product != target.product {
            differences.push(say!(a_against_b, a = &first.product, b = &target.product));
        }
        for setting in &target.settings {
            let other = first.settings.iter().find(|other| other.name == setting.name);
            if let Some(other) = other.filter(|other| other.value != setting.value) {
                differences.push(say!(
                    setting_is_a_against_b,
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
type Told = (Message, fn(&Environment) -> String);

fn generators_differ(case: &Case<'_>) -> Vec<Finding> {
    let Some((first, others)) = case.runs.split_first() else { return Vec::new() };
    let told: [Told; 5] = [
        (say!(host_name), |of| of.host.clone()),
        (say!(kernel_version), |of| of.kernel.clone()),
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
        findings.extend(parts(differences).map(|value| Finding { place, value }));
    }
    findings
}
