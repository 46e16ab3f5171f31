//! What each load generator of a fleet did, where several made the load together: its part of the work, how
//! well they started together, what their machines had left.

use super::sum_or;
use crate::blocks::{Blocks, PaperRows};
use crate::evidence::reads_of;
use crate::evidence::{Experiment, Paper, Trial, by_nodes, start_spread_ms, strayed};
use crate::format::{
    self,
    NumberFormat::{Ms, Percent, Short, Whole},
    unique,
};
use crate::text::Message;
use dyno_facts::{GeneratorMember, say};

pub(super) fn blocks(paper: &Paper, experiment: &Experiment, blocks: &mut Blocks) {
    let mut is_any = false;
    for point in &experiment.points {
        let mut trials = paper.trials_of(point);
        trials.retain(|trial| !trial.summary.conditions.members.is_empty());
        let members = trials.iter().flat_map(|trial| &trial.summary.conditions.members);
        let names = unique(members.map(|member| member.name.as_str()).collect());
        if names.is_empty() {
            continue;
        }
        let mut rows: Vec<GeneratorWork> = names.iter().map(|name| load(name, &trials)).collect();
        rows.push(sum(&rows, &trials));
        let (load, target) = (point.load_words(), &point.target);
        let title = say!(what_each_load_generator_did_on, target = target, load = load);
        blocks.table(generators(title, &rows));
        let words = words(&rows, &trials).into_iter().chain(node_words(&trials));
        blocks.paragraph(Message::sentences(&words.collect::<Vec<_>>()));
        is_any = true;
    }
    if is_any {
        blocks.fine(say!(times_of_starts_clocks_and_percentiles));
    }
}

/// What a load generator did over all trials of a load level: of times the worst, of the clock the farthest.
/// The last one is the sum and has no name; its latencies are those of all transactions together.
#[derive(Default)]
struct GeneratorWork {
    name: String,
    host: String,
    /// The read-only nodes that it drove; empty where the load isn't spread over nodes.
    nodes: Vec<String>,
    workers: u32,
    committed: u64,
    statements: u64,
    qps: Option<f64>,
    p95_us: Option<f64>,
    p99_us: Option<f64>,
    late_ms: Option<f64>,
    clock_bound_ms: Option<f64>,
    clock_skew_ms: Option<f64>,
    cpu_s: Option<f64>,
    cpu_share: Option<f64>,
}

/// One load generator over the trials.
fn load(name: &str, trials: &[&Trial]) -> GeneratorWork {
    let own: Vec<(f64, &GeneratorMember)> = trials
        .iter()
        .filter_map(|trial| {
            let mut members = trial.summary.conditions.members.iter();
            Some((trial.summary.window_s, members.find(|member| member.name == name)?))
        })
        .collect();
    let members = || own.iter().map(|(_, member)| *member);
    let most = |of: fn(&GeneratorMember) -> Option<f64>| {
        members()
            .filter_map(of)
            .reduce(|one, other| if other.abs() > one.abs() { other } else { one })
    };
    let statements = members().map(|member| member.statements).sum();
    let busy: Vec<f64> = members().filter_map(|member| Some(member.host_load?.cpu_share)).collect();
    GeneratorWork {
        name: name.to_owned(),
        host: members().map(|member| member.host.clone()).next().unwrap_or_default(),
        nodes: unique(members().flat_map(|member| member.nodes.clone()).collect()),
        workers: members().map(|member| member.workers).max().unwrap_or_default(),
        committed: members().map(|member| member.committed).sum(),
        statements,
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

fn per_s(count: u64, seconds: f64) -> Option<f64> {
    (seconds > 0.0).then(|| count as f64 / seconds)
}

fn sum(generators: &[GeneratorWork], trials: &[&Trial]) -> GeneratorWork {
    let statements = generators.iter().map(|one| one.statements).sum();
    let largest = |of: fn(&Trial) -> f64| {
        let known = trials.iter().filter(|trial| trial.summary.latency.count > 0);
        known.map(|trial| of(trial)).reduce(f64::max)
    };
    GeneratorWork {
        workers: generators.iter().map(|one| one.workers).sum(),
        committed: generators.iter().map(|one| one.committed).sum(),
        statements,
        qps: per_s(statements, trials.iter().map(|trial| trial.summary.window_s).sum()),
        p95_us: largest(|trial| trial.summary.latency.p95_us),
        p99_us: largest(|trial| trial.summary.latency.p99_us),
        cpu_s: generators.iter().map(|one| one.cpu_s).sum(),
        ..GeneratorWork::default()
    }
}

/// Who made the load and how well they started together.
fn words(rows: &[GeneratorWork], trials: &[&Trial]) -> Vec<Message> {
    let Some((sum, generators)) = rows.split_last() else { return Vec::new() };
    let number = generators.len();
    let apart_ms = trials.iter().filter_map(|trial| start_spread_ms(trial)).reduce(f64::max);
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

fn generators(title: Message, rows: &[GeneratorWork]) -> PaperRows<&GeneratorWork> {
    let all = rows.last().map_or(0, |sum| sum.statements);
    let has_nodes = rows.iter().any(|one| !one.nodes.is_empty());
    PaperRows::new(title, rows)
        .text(say!(load_generator_2), |one| sum_or(&one.name, say!(all_together)))
        .text(say!(machine), |one| &one.host)
        .when(has_nodes, |rows| rows.text(say!(nodes_driven), |one| one.nodes.join(", ")))
        .col(say!(workers), Whole, |one| one.workers)
        .col(say!(committed_2), Whole, |one| one.committed)
        .col(say!(statements_per_s), Short, |one| one.qps)
        .class("strong")
        .col(say!(share_percent), Percent, |one| {
            (all > 0).then(|| one.statements as f64 / all as f64)
        })
        .col(say!(p95_ms), Ms, |one| one.p95_us)
        .col(say!(p99_ms), Ms, |one| one.p99_us)
        .col(say!(started_late_ms), Short, |one| one.late_ms)
        .col(say!(clock_known_to_ms), Short, |one| one.clock_bound_ms)
        .col(say!(calendar_ahead_ms), Short, |one| one.clock_skew_ms)
        .col(say!(cpu_of_loops_s), Short, |one| one.cpu_s)
        .col(say!(machine_busy_percent_2), Percent, |one| one.cpu_share)
}
