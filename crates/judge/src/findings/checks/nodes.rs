//! Checks of several nodes: who executed what, how far replicas were behind, and whether all were there. Their
//! groups are those of what they concern.

use super::*;

/// Share of the reads that read-only nodes would have if all nodes had the same.
const READS_MOVED: f64 = 0.5;
/// Fewer reads prove nothing: dyno asks nodes too.
const READS_LEAST: u64 = 1_000;
/// Amount by which the busiest and the idlest of like nodes may differ, as a share of their mean.
const UNEVEN: f64 = 0.20;
/// Share of all reads below which nodes are not compared: the load keeps its own elsewhere, and dyno's questions weigh
/// most.
const READS_SHARED: f64 = 0.10;
/// Share of all reads; dyno's own questions and the warm-up don't come from the load generators evenly.
const STRAYED: f64 = 0.05;
/// Servers tell lag in whole seconds: one of these is not a lag yet.
const LAG_S: f64 = 1.0;

pub(super) const RULES: &[Rule] = &[
    Rule::trial_of_case(Group::F, Level::W, checks::reads_on_primary, reads_on_primary),
    Rule::trial_of_case(Group::F, Level::W, checks::uneven_nodes, uneven_reads),
    Rule::trial(Group::F, Level::W, checks::strayed_load, |trial| {
        let readers = nodes_in_role(trial, "read_only");
        let reads = readers.iter().filter_map(|(_, node)| node.reads).sum::<u64>();
        let (share, nodes) = strayed(trial, read_counter(trial))
            .filter(|(share, _)| *share > STRAYED && reads >= READS_LEAST)?;
        Some(say!(of_all_reads_more_or_less, nodes, share = percent(share)))
    }),
    Rule::trial(Group::E, Level::W, checks::replica_lag, |trial| {
        each_node(trial, |node| {
            let lag_s = node.lag_p95_s.filter(|lag_s| *lag_s > LAG_S)?;
            let max_s = node.lag_max_s.unwrap_or(lag_s);
            Some(say!(
                s_behind_at_the_95th_percentile,
                lag = format!("{lag_s:.1}"),
                most = format!("{max_s:.1}")
            ))
        })
    }),
    Rule::trial(Group::F, Level::W, checks::stale_reads, |trial| {
        let freshness = trial.summary.conditions.freshness.as_ref()?;
        stale_reads(freshness.stale, freshness.asked, freshness.stale_max_ms)
    }),
    Rule::trial(Group::F, Level::I, checks::stale_reads_of_others, |trial| {
        let freshness = trial.summary.conditions.freshness.as_ref()?;
        stale_reads(freshness.stale_other, freshness.asked_other, freshness.stale_max_ms)
    }),
    Rule::trial(Group::F, Level::E, checks::node_down, |trial| {
        // A fault is what such a trial is about.
        trial.summary.fault.is_none().then(|| each_node(trial, |node| node.down.clone()))?
    }),
    Rule::trial(Group::D, Level::W, checks::semi_sync_fallback, |trial| {
        each_node(trial, |node| {
            let commits = node.unacknowledged.filter(|commits| *commits > 0)?;
            Some(say!(commits_without_a_replicas_answer, n = commits))
        })
    }),
    Rule::trial(Group::D, Level::W, checks::no_atomic_commit, |trial| {
        let (name, node) = joined_shards(trial)?;
        let names = node.foreign_servers.join(", ");
        let apart = say!(commits_of_each_shard_apart, node = name, servers = names);
        let (refused, counts) = (conflicts(trial), trial.summary.counts);
        let share = refused as f64 / counts.started.max(1) as f64;
        let refusals = (refused > 0).then(|| {
            say!(refused_by_shards, n = format::whole(refused as f64), share = percent(share))
        });
        parts([apart].into_iter().chain(refusals))
    }),
    // A server that names its copies and waits for none has none that counts.
    Rule::target_of_case(Group::D, Level::E, checks::durability_claimed, |case, target| {
        unmet_claim(case, target, |node| !node.replicas.is_empty())
    }),
    Rule::target_of_case(Group::D, Level::W, checks::copies_unseen, |case, target| {
        unmet_claim(case, target, |node| node.replicas.is_empty())
    }),
    Rule::trial(Group::D, Level::E, checks::nodes_differ, |trial| {
        each_replica(trial, |primary, node| {
            let schemas = primary.schema_checksum.as_ref().zip(node.schema_checksum.as_ref());
            schemas.filter(|(a, b)| a != b).map(|_| say!(other_tables_or_indexes))
        })
    }),
    Rule::trial(Group::D, Level::W, checks::nodes_rows, |trial| each_replica(trial, other_rows)),
];

/// An endpoint that joins shards by postgres_fdw: they commit apart, and are REPEATABLE READ.
pub(super) fn joined_shards(trial: &Trial) -> Option<(&str, &NodeConditions)> {
    let endpoint = nodes_in_role(trial, "endpoint")
        .into_iter()
        .find(|(_, node)| node.joins_foreign_shards())?;
    (!nodes_in_role(trial, "shard").is_empty()).then_some(endpoint)
}

/// Attempts that ended since two of them met on a row.
pub(super) fn conflicts(trial: &Trial) -> u64 {
    let conflicts = trial.summary.errors.iter().filter(|error| error.sqlstate == "40001");
    conflicts.map(|error| error.count).sum()
}

fn nodes_in_role<'a>(trial: &'a Trial, role: &str) -> Vec<(&'a str, &'a NodeConditions)> {
    nodes_of(trial).filter(|(_, node)| node.role.as_deref() == Some(role)).collect()
}

fn reads_on_primary(case: &Case<'_>, trial: &Trial) -> Option<Message> {
    let readers = nodes_in_role(trial, "read_only");
    let is_split = matches!(case.target_facts(trial)?.route, Route::Endpoint | Route::Split);
    if !is_split || readers.is_empty() {
        return None;
    }
    let (mut total, mut single) = (0, 0);
    for kind in &trial.summary.kinds {
        total += kind.statements.reads;
        single += if is_autocommit(kind) { kind.statements.reads } else { 0 };
    }
    let reads = read_counter(trial);
    let [reader_counts, primary_counts] = [&readers, &nodes_in_role(trial, "primary")]
        .map(|nodes| nodes.iter().filter_map(|(_, node)| reads(node)).collect::<Vec<u64>>());
    if reader_counts.len() < readers.len() || primary_counts.is_empty() || total == 0 {
        return None;
    }
    let (moved, stayed): (u64, u64) = (reader_counts.iter().sum(), primary_counts.iter().sum());
    let nodes = (reader_counts.len() + primary_counts.len()) as f64;
    let even = reader_counts.len() as f64 / nodes;
    // The servers' counts reach beyond the window; the shares of the load are those of the window.
    let movable = (moved + stayed) as f64 * single as f64 / total as f64;
    (movable >= READS_LEAST as f64 && (moved as f64) < READS_MOVED * even * movable)
        .then(|| say!(reads_of_primary_and_readers, stayed, moved))
}

fn uneven_reads(case: &Case<'_>, trial: &Trial) -> Option<Message> {
    let readers = nodes_in_role(trial, "read_only");
    if readers.len() < 2 || case.target_facts(trial)?.route == Route::Primary {
        return None;
    }
    let reads = read_counter(trial);
    let counts = readers.iter().map(|(_, node)| reads(node)).collect::<Option<Vec<u64>>>()?;
    let (sum, count) = (counts.iter().sum::<u64>(), counts.len() as f64);
    let (min, max) = (*counts.iter().min()?, *counts.iter().max()?);
    let primaries = nodes_in_role(trial, "primary");
    let primary_counts = primaries.iter().filter_map(|(_, node)| reads(node));
    let total = sum + primary_counts.sum::<u64>();
    let is_shared = sum >= READS_LEAST && sum as f64 >= READS_SHARED * total as f64;
    let is_found = is_shared && (max - min) as f64 > UNEVEN * sum as f64 / count;
    is_found.then(|| {
        let nodes = readers
            .iter()
            .zip(&counts)
            .map(|((name, _), reads)| say!(node_value, node = *name, value = *reads));
        say!(reads_nodes, nodes = Message::list(&nodes.collect::<Vec<_>>()))
    })
}

fn stale_reads(stale: u64, asked: u64, longest_ms: Option<f64>) -> Option<Message> {
    let longest = format::whole(longest_ms.unwrap_or_default().ceil());
    (stale > 0).then(|| say!(stale_reads_found, stale, asked, longest))
}

/// A stated copy that no commit waited for, on a node that `is_included`, of targets that have written.
fn unmet_claim(
    case: &Case<'_>,
    target: &PaperTarget,
    is_included: fn(&NodeConditions) -> bool,
) -> Option<Message> {
    let claim = copy_claim(case, target)?;
    let trials = case
        .evidence
        .trials
        .iter()
        .filter(|trial| trial.target == target.label && trial.summary.statements.writes > 0);
    // What fell back meanwhile has its own rule.
    let words = trials
        .flat_map(nodes_of)
        .filter(|(_, node)| is_included(node))
        .filter_map(|(_, node)| node.acknowledged_by.as_ref())
        .find(|wait| !wait.has_copy())?
        .words();
    Some(say!(stated_copy_not_awaited, claim, words))
}

/// The suite's claim about the durability of a target, if it claims another copy.
fn copy_claim<'a>(case: &Case<'a>, target: &PaperTarget) -> Option<&'a String> {
    let facts = case.facts(target)?;
    let claim = facts.durability.as_ref().or_else(|| facts.stated.get("durability"))?;
    // What storage does below a server, the server can't tell.
    let is_visible = !claim.to_lowercase().contains("shared storage");
    (is_visible && has_copy(claim) == Some(true)).then_some(claim)
}

/// Findings on read-only nodes, each next to its primary.
fn each_replica(
    trial: &Trial,
    find: fn(&NodeConditions, &NodeConditions) -> Option<Message>,
) -> Option<Message> {
    let (_, primary) = *nodes_in_role(trial, "primary").first()?;
    let readers = nodes_in_role(trial, "read_only");
    let findings = readers.iter().filter_map(|(name, node)| {
        Some(say!(node_value, node = *name, value = find(primary, node)?))
    });
    parts(findings)
}

fn other_rows(primary: &NodeConditions, node: &NodeConditions) -> Option<Message> {
    let is_known = !primary.table_rows.is_empty() && !node.table_rows.is_empty();
    let [a, b] = [primary, node].map(|node| node.table_rows.values().sum::<u64>() as f64);
    let differs = a.max(b) > ROWS_TIMES_OF_ESTIMATES * a.min(b);
    let share = if a == 0.0 { 1.0 } else { b / a };
    (is_known && differs).then(|| say!(of_the_primarys_rows, share = percent(share)))
}
