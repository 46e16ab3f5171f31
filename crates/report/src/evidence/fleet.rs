//! What each load generator of a fleet did, where several made the load together: its part of the work, how
//! well they started together, what their machines had left.

use crate::evidence::{Point, Trial};
use crate::findings::checks::reads_of;
use crate::format;
use crate::text::Message;
use dyno_facts::{GeneratorMember, NodeConditions, say};
use std::collections::BTreeMap;

/// The load generators of a fleet at one load level.
#[derive(Clone, Debug, PartialEq)]
pub struct FleetTable {
    /// Label of the target.
    pub target: String,
    /// At which load, in words.
    pub load: Message,
    /// Labels of the trials that it rests on.
    pub trials: Vec<String>,
    /// Who made the load and how well they started together, in sentences.
    pub words: Vec<Message>,
    /// A row per load generator, in their order.
    pub generators: Vec<GeneratorLoad>,
    /// All of them together.
    pub sum: GeneratorLoad,
    /// Between the first and the last start, the largest of the trials, milliseconds.
    pub apart_ms: Option<f64>,
    /// True where it is known which nodes each drove.
    pub has_nodes: bool,
}

/// What a load generator did, over all trials of a load level.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GeneratorLoad {
    /// Its name; empty in the sum.
    pub name: String,
    /// Its machine as far as it is known.
    pub host: String,
    /// The read-only nodes that it drove; empty where the load isn't spread over nodes.
    pub nodes: Vec<String>,
    /// Workers that it drove.
    pub workers: u32,
    /// Committed transactions.
    pub committed: u64,
    /// Statements of transactions that did not fail.
    pub statements: u64,
    /// Its share of the statements of all, 0 to 1.
    pub share: Option<f64>,
    /// Statements per second of the trials' windows.
    pub qps: Option<f64>,
    /// The largest of the trials' 95th percentiles of the latency, microseconds. In the sum: of all
    /// transactions together, as their histograms were added.
    pub p95_us: Option<f64>,
    /// The same of the 99th percentile.
    pub p99_us: Option<f64>,
    /// How long after the agreed moment its workers started, the largest of the trials, milliseconds.
    pub late_ms: Option<f64>,
    /// How well its clock is known, the worst of the trials, milliseconds.
    pub clock_bound_ms: Option<f64>,
    /// Its calendar clock minus that of the first one, the farthest of the trials, milliseconds.
    pub clock_skew_ms: Option<f64>,
    /// CPU seconds of its loops.
    pub cpu_s: Option<f64>,
    /// Mean busy share of its machine, 0 to 1.
    pub cpu_share: Option<f64>,
}

/// A table for each load level that several load generators made.
pub(super) fn tables(points: &[Point], trials: &[&Trial]) -> Vec<FleetTable> {
    points.iter().filter_map(|point| table(point, trials)).collect()
}

fn table(point: &Point, trials: &[&Trial]) -> Option<FleetTable> {
    let is_own = |trial: &&&Trial| {
        point.trials.contains(&trial.label) && !trial.summary.conditions.members.is_empty()
    };
    let own: Vec<&Trial> = trials.iter().filter(is_own).copied().collect();
    let mut names: Vec<&str> = Vec::new();
    for member in own.iter().flat_map(|trial| &trial.summary.conditions.members) {
        if !names.contains(&member.name.as_str()) {
            names.push(&member.name);
        }
    }
    if names.is_empty() {
        return None;
    }
    let mut generators: Vec<GeneratorLoad> = names.iter().map(|name| load(name, &own)).collect();
    let sum = sum(&generators, &own);
    for generator in generators.iter_mut().filter(|_| sum.statements > 0) {
        generator.share = Some(generator.statements as f64 / sum.statements as f64);
    }
    let apart_ms = own.iter().filter_map(|trial| start_spread_ms(trial)).reduce(f64::max);
    Some(FleetTable {
        target: point.target.clone(),
        load: point.load_words(),
        trials: own.iter().map(|trial| trial.label.clone()).collect(),
        words: words(&generators, &sum, apart_ms).into_iter().chain(node_words(&own)).collect(),
        has_nodes: generators.iter().any(|one| !one.nodes.is_empty()),
        generators,
        sum,
        apart_ms,
    })
}

/// One load generator over the trials.
fn load(name: &str, trials: &[&Trial]) -> GeneratorLoad {
    let of = |trial: &&'_ Trial| {
        trial.summary.conditions.members.iter().find(|member| member.name == name).cloned()
    };
    let own: Vec<(f64, GeneratorMember)> =
        trials.iter().filter_map(|trial| Some((trial.summary.window_s, of(trial)?))).collect();
    let members = || own.iter().map(|(_, member)| member);
    let most = |of: fn(&GeneratorMember) -> Option<f64>| {
        members()
            .filter_map(of)
            .reduce(|one, other| if other.abs() > one.abs() { other } else { one })
    };
    let statements = members().map(|member| member.statements).sum();
    let busy: Vec<f64> = members().filter_map(|member| Some(member.host_load?.cpu_share)).collect();
    GeneratorLoad {
        name: name.to_owned(),
        host: members().map(|member| member.host.clone()).next().unwrap_or_default(),
        nodes: members().flat_map(|member| member.nodes.clone()).fold(Vec::new(), with),
        workers: members().map(|member| member.workers).max().unwrap_or_default(),
        committed: members().map(|member| member.committed).sum(),
        statements,
        share: None,
        qps: per_s(statements, own.iter().map(|(window_s, _)| window_s).sum()),
        p95_us: most(|member| member.latency.map(|latency| latency.p95_us)),
        p99_us: most(|member| member.latency.map(|latency| latency.p99_us)),
        late_ms: most(|member| member.late_ms),
        clock_bound_ms: most(|member| member.clock_bound_ms),
        clock_skew_ms: most(|member| member.clock_skew_ms),
        cpu_s: members().map(|member| member.cpu_s).sum(),
        cpu_share: (!busy.is_empty()).then(|| busy.iter().sum::<f64>() / busy.len() as f64),
    }
}

/// The list with a name that it may have already.
fn with(mut names: Vec<String>, name: String) -> Vec<String> {
    if !names.contains(&name) {
        names.push(name);
    }
    names
}

fn per_s(count: u64, seconds: f64) -> Option<f64> {
    (seconds > 0.0).then(|| count as f64 / seconds)
}

fn sum(generators: &[GeneratorLoad], trials: &[&Trial]) -> GeneratorLoad {
    let statements = generators.iter().map(|one| one.statements).sum();
    let largest = |of: fn(&Trial) -> f64| {
        let known = trials.iter().filter(|trial| trial.summary.latency.count > 0);
        known.map(|trial| of(trial)).reduce(f64::max)
    };
    GeneratorLoad {
        workers: generators.iter().map(|one| one.workers).sum(),
        committed: generators.iter().map(|one| one.committed).sum(),
        statements,
        share: (statements > 0).then_some(1.0),
        qps: per_s(statements, trials.iter().map(|trial| trial.summary.window_s).sum()),
        p95_us: largest(|trial| trial.summary.latency.p95_us),
        p99_us: largest(|trial| trial.summary.latency.p99_us),
        cpu_s: generators.iter().map(|one| one.cpu_s).sum(),
        ..GeneratorLoad::default()
    }
}

/// Between the first and the last start of a trial's load generators, as their clocks were known.
pub(crate) fn start_spread_ms(trial: &Trial) -> Option<f64> {
    let members = trial.summary.conditions.members.iter();
    let late: Vec<f64> = members.filter_map(|member| member.late_ms).collect();
    let first = late.iter().copied().reduce(f64::min)?;
    let last = late.iter().copied().reduce(f64::max)?;
    (late.len() > 1).then_some(last - first)
}

fn words(generators: &[GeneratorLoad], sum: &GeneratorLoad, apart_ms: Option<f64>) -> Vec<Message> {
    let number = generators.len();
    let mut words = vec![match number {
        1 => say!(one_load_generator_of_a_fleet, workers = say!(n_workers, n = sum.workers)),
        _ => say!(
            load_generators_made_the_load_together,
            n = format::whole(number as f64),
            workers = format::whole(f64::from(sum.workers))
        ),
    }];
    let bound = generators.iter().filter_map(|one| one.clock_bound_ms).reduce(f64::max);
    if let (Some(apart_ms), Some(bound_ms)) = (apart_ms, bound) {
        words.push(say!(
            they_started_within_ms_of_each,
            apart = format::short(apart_ms),
            bound = format::short(bound_ms)
        ));
    }
    words
}

/// Statements of the load generators by the nodes over which their workers were spread. Those with the same nodes
/// are counted together.
fn by_nodes(trial: &Trial) -> BTreeMap<&[String], f64> {
    let mut groups: BTreeMap<&[String], f64> = BTreeMap::new();
    for member in trial.summary.conditions.members.iter().filter(|one| !one.nodes.is_empty()) {
        *groups.entry(&member.nodes).or_default() += member.statements as f64;
    }
    groups
}

/// Where load generators have nodes of their own: by how much the servers' counts of reads on these differ from what
/// their load generators did, the largest share of all reads, and the nodes of that.
pub(crate) fn strayed(
    trial: &Trial,
    reads: impl Fn(&NodeConditions) -> Option<u64>,
) -> Option<(f64, String)> {
    let conditions = &trial.summary.conditions;
    let groups = by_nodes(trial);
    if groups.len() < 2 || conditions.members.iter().any(|member| member.lost.is_some()) {
        return None;
    }
    let counted = |names: &[String]| {
        let counts = names.iter().map(|name| conditions.nodes.get(name).and_then(&reads));
        counts.sum::<Option<u64>>().map(|count| count as f64)
    };
    let counts = groups.keys().map(|names| counted(names)).collect::<Option<Vec<f64>>>()?;
    let (done, all) = (groups.values().sum::<f64>(), counts.iter().sum::<f64>());
    if done <= 0.0 || all <= 0.0 {
        return None;
    }
    let differs = groups.iter().zip(&counts);
    let differs = differs.map(|((names, done_there), counted)| {
        ((counted / all - done_there / done).abs(), names.join(", "))
    });
    differs.reduce(|one, other| if other.0 > one.0 { other } else { one })
}

/// Who drove which read-only nodes, and whether the servers say so too.
fn node_words(trials: &[&Trial]) -> Vec<Message> {
    let kind = |trial: &&Trial| {
        let members = &trial.summary.conditions.members;
        let sets: Vec<&[String]> = by_nodes(trial).into_keys().collect();
        let all: usize = sets.iter().map(|set| set.len()).sum();
        let is_single = sets.iter().all(|set| set.len() == 1);
        match (members.len(), sets.len()) {
            (0 | 1, _) | (_, 0) => None,
            (_, 1) if !is_single => {
                Some(say!(the_load_generators_could_not_have, n = format::whole(all as f64)))
            }
            (members, sets) if members > sets => Some(say!(several_load_generators_shared_a_read)),
            _ if is_single => Some(say!(each_load_generator_drove_a_read)),
            _ => Some(say!(each_load_generator_drove_read_only)),
        }
    };
    let mut kinds: Vec<Option<Message>> = trials.iter().map(kind).collect();
    kinds.dedup();
    // Where load generators were lost, it was one way before and another after.
    let [Some(kind)] = &kinds[..] else { return Vec::new() };
    let off: Vec<f64> =
        trials.iter().filter_map(|trial| Some(strayed(trial, reads_of(trial))?.0)).collect();
    let agrees = (off.len() == trials.len()).then(|| off.into_iter().fold(0.0, f64::max));
    let agrees =
        agrees.map(|off| say!(the_servers_own_counts_of_reads, share = format::percent(off)));
    [kind.clone()].into_iter().chain(agrees).collect()
}
