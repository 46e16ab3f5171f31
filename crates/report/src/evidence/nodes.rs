//! What each node of a target did: who executed the reads and the writes, how far copies were behind, and
//! whether what was written could be read at once.

use crate::evidence::{Point, Target, Trial};
use crate::format;
use crate::text::Message;
use dyno_facts::{NodeConditions, TargetFacts, TargetNode, say};

/// A node of a target with several.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeFacts {
    /// Its name in its target.
    pub name: String,
    /// `primary`, `read_only`, `endpoint` or `shard`.
    pub role: String,
    /// The role in words.
    pub role_words: Message,
    /// Product and version.
    pub product: String,
    /// Its URL without password.
    pub url: String,
    /// True when it is on the load generator's machine.
    pub same_host: bool,
}

/// The nodes of a target at one load level.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeTable {
    /// Label of the target.
    pub target: String,
    /// At which load, in words.
    pub load: Message,
    /// Labels of the trials that it rests on.
    pub trials: Vec<String>,
    /// True of the load level with the highest throughput of its target.
    pub is_best: bool,
    /// Who executed the reads and the writes, in sentences.
    pub words: Vec<Message>,
    /// A row per node: the primary first, endpoints last.
    pub nodes: Vec<NodeLoad>,
    /// All nodes together, without endpoints: what passes through one is executed by the others.
    pub sum: NodeLoad,
}

/// What a node did, over all trials of a load level. Counts are those of the servers, from before to after
/// each trial.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeLoad {
    /// The node; empty in the sum.
    pub node: String,
    /// `primary`, `read_only`, `endpoint` or `shard`; empty in the sum.
    pub role: String,
    /// The role in words.
    pub role_words: Message,
    /// Statements that only read.
    pub reads: Option<u64>,
    /// Statements that write.
    pub writes: Option<u64>,
    /// All statements.
    pub statements: Option<u64>,
    pub commits: Option<u64>,
    /// Its share of the reads of all nodes, 0 to 1.
    pub read_share: Option<f64>,
    /// Its share of the writes of all nodes, 0 to 1.
    pub write_share: Option<f64>,
    /// Its part of the load generator's statements per second, divided as the nodes counted.
    pub qps: Option<f64>,
    /// Mean share of all CPUs of its machine that were busy, 0 to 1.
    pub cpu_share: Option<f64>,
    /// The largest of the trials' 95th percentiles of the replica lag.
    pub lag_p95_s: Option<f64>,
    /// Largest replica lag.
    pub lag_max_s: Option<f64>,
}

/// Reads after writes at one load level, over all of its trials.
#[derive(Clone, Debug, PartialEq)]
pub struct FreshnessRow {
    /// Label of the target.
    pub target: String,
    /// At which load, in words.
    pub load: Message,
    /// Writes that were read again by the session that wrote.
    pub asked: u64,
    /// Of these, reads that did not show the write.
    pub stale: u64,
    /// Writes that were read again by another session.
    pub asked_other: u64,
    /// Of these, reads that did not show the write.
    pub stale_other: u64,
    /// The longest time after which a write was still not shown.
    pub stale_max_ms: Option<f64>,
}

const ROLES: [&str; 4] = ["primary", "read_only", "shard", "endpoint"];

/// The nodes of a target; none where it has one.
pub(super) fn facts(target: &TargetFacts) -> Vec<NodeFacts> {
    let node = |node: &TargetNode| NodeFacts {
        name: node.name.clone(),
        role: node.role.clone(),
        role_words: role(&node.role),
        product: format!("{} {}", node.product, node.version).trim().to_owned(),
        url: node.url.clone(),
        same_host: node.same_host,
    };
    let mut nodes: Vec<NodeFacts> = target.nodes.iter().map(node).collect();
    nodes.sort_by_key(|node| place(&node.role));
    nodes
}

fn place(role: &str) -> usize {
    ROLES.iter().position(|known| *known == role).unwrap_or(ROLES.len())
}

fn role(role: &str) -> Message {
    match role {
        "primary" => say!(primary),
        "read_only" => say!(read_only_node),
        "shard" => say!(shard),
        "endpoint" => say!(endpoint),
        other => Message::from(other),
    }
}

/// How the load reaches the nodes of a target, in a sentence.
pub(super) fn route(target: &TargetFacts) -> Option<Message> {
    match target.route.as_str() {
        "primary" => Some(say!(all_load_goes_to_the_primary)),
        "endpoint" => Some(say!(all_load_goes_through_the_endpoint)),
        "split" => Some(say!(transactions_and_writes_go_to_the)),
        "spread" => Some(say!(all_load_goes_to_the_read)),
        _ => None,
    }
}

/// A table for each load level whose target has several nodes that told something.
pub(super) fn tables(points: &[Point], trials: &[&Trial], targets: &[Target]) -> Vec<NodeTable> {
    let is_best = |point: &Point| {
        let rank = |point: &Point| (point.status == "complete", point.throughput().median);
        let own = points.iter().filter(|other| other.target == point.target);
        own.reduce(|best, other| if rank(other) > rank(best) { other } else { best })
            .is_some_and(|best| std::ptr::eq(best, point))
    };
    let of = |point: &Point| {
        let table = table(point, &of_point(point, trials), targets)?;
        Some(NodeTable { is_best: is_best(point), ..table })
    };
    points.iter().filter_map(of).collect()
}

fn of_point<'a>(point: &Point, trials: &[&'a Trial]) -> Vec<&'a Trial> {
    trials.iter().copied().filter(|trial| point.trials.contains(&trial.label)).collect()
}

fn table(point: &Point, trials: &[&Trial], targets: &[Target]) -> Option<NodeTable> {
    let mut names: Vec<&str> = Vec::new();
    for (name, node) in trials.iter().flat_map(|trial| &trial.summary.conditions.nodes) {
        if node.role.is_some() && !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    if names.len() < 2 {
        return None;
    }
    let known = targets.iter().find(|target| target.label == point.target);
    let stands = |name: &str| {
        known.and_then(|target| target.nodes.iter().position(|node| node.name == name))
    };
    let mut nodes: Vec<NodeLoad> = names.iter().map(|name| load(name, trials)).collect();
    nodes.sort_by_key(|node| {
        (place(&node.role), stands(&node.node).unwrap_or(usize::MAX), node.node.clone())
    });
    let sum = sum(&nodes, point.qps.median);
    share_out(&mut nodes, &sum, point.qps.median);
    let words = words(&nodes).into_iter().chain(gone(&nodes, trials)).chain(own(trials));
    Some(NodeTable {
        target: point.target.clone(),
        load: point.load_words(),
        trials: point.trials.clone(),
        is_best: false,
        words: words.collect(),
        nodes,
        sum,
    })
}

/// One node over the trials.
fn load(name: &str, trials: &[&Trial]) -> NodeLoad {
    let own: Vec<&NodeConditions> =
        trials.iter().filter_map(|trial| trial.summary.conditions.nodes.get(name)).collect();
    let kind = own.iter().find_map(|node| node.role.clone()).unwrap_or_default();
    let total = |of: fn(&NodeConditions) -> Option<u64>| {
        own.iter().map(|node| of(node)).sum::<Option<u64>>()
    };
    let most = |of: fn(&NodeConditions) -> Option<f64>| {
        own.iter().filter_map(|node| of(node)).reduce(f64::max)
    };
    let busy: Vec<f64> = own.iter().filter_map(|node| node.cpu_share).collect();
    NodeLoad {
        node: name.to_owned(),
        role_words: role(&kind),
        role: kind,
        reads: total(|node| node.reads),
        writes: total(|node| node.writes),
        statements: total(|node| node.statements),
        commits: total(|node| node.commits),
        cpu_share: (!busy.is_empty()).then(|| busy.iter().sum::<f64>() / busy.len() as f64),
        lag_p95_s: most(|node| node.lag_p95_s),
        lag_max_s: most(|node| node.lag_max_s),
        ..NodeLoad::default()
    }
}

fn counted(nodes: &[NodeLoad]) -> impl Iterator<Item = &NodeLoad> {
    nodes.iter().filter(|node| node.role != "endpoint")
}

/// A quantity is only told where every node tells it.
fn sum(nodes: &[NodeLoad], qps: f64) -> NodeLoad {
    let total = |of: fn(&NodeLoad) -> Option<u64>| counted(nodes).map(of).sum::<Option<u64>>();
    let most = |of: fn(&NodeLoad) -> Option<f64>| counted(nodes).filter_map(of).reduce(f64::max);
    let mut sum = NodeLoad {
        reads: total(|node| node.reads),
        writes: total(|node| node.writes),
        statements: total(|node| node.statements),
        commits: total(|node| node.commits),
        lag_p95_s: most(|node| node.lag_p95_s),
        lag_max_s: most(|node| node.lag_max_s),
        ..NodeLoad::default()
    };
    sum.qps = work(&sum).filter(|work| *work > 0).map(|_| qps);
    sum
}

/// What statements per second are divided by: those that read or write; all, where they are not told
/// apart.
fn work(node: &NodeLoad) -> Option<u64> {
    match (node.reads, node.writes) {
        (Some(reads), Some(writes)) => Some(reads + writes),
        _ => node.statements,
    }
}

fn share_out(nodes: &mut [NodeLoad], sum: &NodeLoad, qps: f64) {
    let share = |own: Option<u64>, all: Option<u64>| match (own, all) {
        (Some(own), Some(all)) if all > 0 => Some(own as f64 / all as f64),
        _ => None,
    };
    let tells_apart = sum.reads.is_some() && sum.writes.is_some();
    for node in nodes.iter_mut().filter(|node| node.role != "endpoint") {
        node.read_share = share(node.reads, sum.reads);
        node.write_share = share(node.writes, sum.writes);
        let own = if tells_apart { work(node) } else { node.statements };
        node.qps = share(own, work(sum)).map(|share| share * qps);
    }
}

fn words(nodes: &[NodeLoad]) -> Vec<Message> {
    let reads = shares(nodes, |node| node.read_share);
    let writes = shares(nodes, |node| node.write_share);
    let reads = (!reads.is_empty()).then(|| say!(reads_shares, shares = Message::list(&reads)));
    let writes = (!writes.is_empty()).then(|| say!(writes_shares, shares = Message::list(&writes)));
    reads.into_iter().chain(writes).collect()
}

/// Why there are no shares, where a node was away.
fn gone(nodes: &[NodeLoad], trials: &[&Trial]) -> Option<Message> {
    let was_away = |node: &&NodeLoad| {
        let own = trials.iter().filter_map(|trial| trial.summary.conditions.nodes.get(&node.node));
        node.statements.is_none() && own.into_iter().any(|found| found.down.is_some())
    };
    let names: Vec<Message> =
        counted(nodes).filter(was_away).map(|node| node.node[..].into()).collect();
    (!names.is_empty()).then(|| say!(lost_counters_while_away_in_a, nodes = Message::list(&names)))
}

/// How many of the statements are dyno's own, where nobody knows which node executed them.
fn own(trials: &[&Trial]) -> Option<Message> {
    let freshness = trials.iter().filter_map(|trial| trial.summary.conditions.freshness.as_ref());
    let own: u64 = freshness.map(|freshness| freshness.unplaced).sum();
    let of_load: u64 = trials.iter().map(|trial| trial.summary.statements.total()).sum();
    (own > 0 && of_load > 0).then(|| {
        say!(
            among_these_are_statements_of_dynos,
            own = format::whole(own as f64),
            share = format::percent(own as f64 / of_load as f64)
        )
    })
}

/// What each role did; how even it was where there is only one.
fn shares(nodes: &[NodeLoad], of: fn(&NodeLoad) -> Option<f64>) -> Vec<Message> {
    let mut roles: Vec<(&str, Vec<f64>)> = Vec::new();
    for node in counted(nodes) {
        let Some(share) = of(node) else { return Vec::new() };
        match roles.iter_mut().find(|(role, _)| *role == node.role) {
            Some((_, shares)) => shares.push(share),
            None => roles.push((&node.role, vec![share])),
        }
    }
    if let [(_, shares)] = roles.as_slice() {
        let low = shares.iter().copied().fold(f64::INFINITY, f64::min);
        let high = shares.iter().copied().fold(0.0, f64::max);
        return vec![say!(
            percent_to_percent_for_each_node,
            low = format::percent(low),
            high = format::percent(high)
        )];
    }
    let of_role = |(role, shares): &(&str, Vec<f64>)| {
        let share = format::percent(shares.iter().sum());
        let number = shares.len() as u64;
        let nodes = match *role {
            "primary" => say!(n_primaries, n = number),
            "read_only" => say!(read_only_nodes, n = number),
            "shard" => say!(n_shards, n = number),
            other => Message::from(other),
        };
        say!(nodes_share_percent, nodes = nodes, share = share)
    };
    roles.iter().map(of_role).collect()
}

/// A row for each load level at which somebody looked.
pub(super) fn freshness(points: &[Point], trials: &[&Trial]) -> Vec<FreshnessRow> {
    let row = |point: &Point| {
        let own = of_point(point, trials);
        let mut looked = own.iter().filter_map(|trial| trial.summary.conditions.freshness.as_ref());
        let first = looked.next()?;
        let mut row = FreshnessRow {
            target: point.target.clone(),
            load: point.load_words(),
            asked: 0,
            stale: 0,
            asked_other: 0,
            stale_other: 0,
            stale_max_ms: None,
        };
        for freshness in [first].into_iter().chain(looked) {
            row.asked += freshness.asked;
            row.stale += freshness.stale;
            row.asked_other += freshness.asked_other;
            row.stale_other += freshness.stale_other;
            row.stale_max_ms =
                [row.stale_max_ms, freshness.stale_max_ms].into_iter().flatten().reduce(f64::max);
        }
        Some(row)
    };
    points.iter().filter_map(row).collect()
}
