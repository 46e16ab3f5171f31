//! What each node of a target did: who executed the reads and the writes, how far copies were behind, and
//! whether what was written could be read at once.

use super::sum_or;
use crate::blocks::{Blocks, Drawing, PaperRows};
use crate::charts;
use crate::evidence::{Experiment, Paper, Point, Spread, Trial, node_role, place_of_role};
use crate::format::{
    self,
    NumberFormat::{Percent, Short, Whole},
};
use crate::svg::Bar;
use crate::text::{Lang, Message};
use dyno_facts::{Freshness, Measures, Metric, NodeConditions, say};

pub(super) fn blocks(paper: &Paper, experiment: &Experiment, blocks: &mut Blocks) {
    let tables = of_levels(paper, experiment);
    let is_any = !tables.is_empty();
    let (best, mut others): (Vec<Level<'_>>, Vec<Level<'_>>) =
        tables.into_iter().partition(|level| is_best(experiment, level));
    for level in &best {
        blocks.table(nodes(level));
        blocks.paragraph(Message::sentences(&words(level)));
    }
    others.retain(|level| !words(level).is_empty());
    blocks.table(shares(&others));
    if best.iter().chain(&others).any(Level::counts_rows_only) {
        blocks.fine(say!(statements_not_told_apart));
    }
    if is_any {
        blocks.fine(say!(statements_and_commits_are_counted_by));
    }
    let is_cpu_unknown = |level: &Level<'_>| {
        let known = |node: &NodeWork<'_>| node.costs.get(Metric::ServerCpuUs).is_some();
        level.nodes.iter().any(known) && !level.nodes.iter().all(known)
    };
    if best.iter().any(is_cpu_unknown) {
        blocks.fine(say!(cpu_of_a_node_not_known));
    }
    let looked: Vec<(&Point, Vec<&Freshness>)> =
        experiment.points.iter().map(|point| (point, looks(paper, point))).collect();
    let looked: Vec<_> = looked.iter().filter(|(_, looks)| !looks.is_empty()).collect();
    if !looked.is_empty() {
        blocks.table(freshness(looked));
        blocks.fine(say!(a_read_is_stale_when_it));
    }
}

/// Statements per second of each node, and their sum.
pub(super) fn figures(paper: &Paper, experiment: &Experiment, lang: Lang) -> Vec<Drawing> {
    let figure = |level: &Level<'_>| {
        let bar = |node: &NodeWork<'_>| {
            let value = node.qps?;
            let name = match node.node {
                "" => say!(all_nodes),
                name => Message::from(name),
            };
            Some(Bar {
                name: name.render(lang),
                class: charts::colour(paper, &level.point.target),
                value,
                low_high: None,
                text: format::short(value),
            })
        };
        let nodes: Vec<Bar> = counted(&level.nodes).chain([&level.sum]).filter_map(bar).collect();
        let (target, load) = (&level.point.target, level.point.load_words());
        let caption = say!(statements_of_each_node, target = target, load = load);
        // Two that have worked, and their sum.
        let are_several = nodes.iter().filter(|bar| bar.value > 0.0).count() > 2;
        are_several.then(|| charts::cover::of_bars(&nodes, caption, None, lang))
    };
    of_levels(paper, experiment)
        .iter()
        .filter(|level| is_best(experiment, level))
        .filter_map(figure)
        .collect()
}

/// True of the load level of a target at which it did most.
fn is_best(experiment: &Experiment, own: &Level<'_>) -> bool {
    let rank = |point: &Point| (point.status == "complete", point.throughput().median);
    let others = experiment.points.iter().filter(|point| point.target == own.point.target);
    let best = others.reduce(|best, other| if rank(other) > rank(best) { other } else { best });
    best.is_some_and(|best| std::ptr::eq(best, own.point))
}

/// True where some target has several nodes that tell what they did.
pub(super) fn has_clusters(paper: &Paper) -> bool {
    paper.experiments.iter().any(|experiment| !of_levels(paper, experiment).is_empty())
}

/// The nodes of a target at a load level: the primary first, endpoints last.
struct Level<'a> {
    point: &'a Point,
    trials: Vec<&'a Trial>,
    nodes: Vec<NodeWork<'a>>,
    /// Without endpoints: what passes through one is executed by the others.
    sum: NodeWork<'a>,
}

impl Level<'_> {
    /// True where servers count rows, and not statements.
    fn counts_rows_only(&self) -> bool {
        let has = |of: fn(&NodeWork<'_>) -> Option<u64>| self.nodes.iter().any(|n| of(n).is_some());
        has(|node| node.rows_written) && !has(|node| node.statements) && !has(|node| node.writes)
    }
}

/// What a node did over all trials of a load level. Counts are those of the servers, from before to after
/// each trial; a sum has no name.
#[derive(Clone, Default)]
struct NodeWork<'a> {
    node: &'a str,
    role: &'a str,
    reads: Option<u64>,
    writes: Option<u64>,
    statements: Option<u64>,
    commits: Option<u64>,
    rows_fetched: Option<u64>,
    rows_written: Option<u64>,
    rows_share: Option<f64>,
    read_share: Option<f64>,
    write_share: Option<f64>,
    /// Its part of the load generator's statements per second, divided as the nodes counted.
    qps: Option<f64>,
    cpu_share: Option<f64>,
    costs: Measures,
    lag_p95_s: Option<f64>,
    lag_max_s: Option<f64>,
}

impl NodeWork<'_> {
    /// What statements per second are divided by: those that read or write; all, where they are not told
    /// apart.
    fn work(&self) -> Option<u64> {
        match (self.reads, self.writes) {
            (Some(reads), Some(writes)) => Some(reads + writes),
            _ => self.statements,
        }
    }
}

/// One for each load level whose target has several nodes that told something.
fn of_levels<'a>(paper: &'a Paper, experiment: &'a Experiment) -> Vec<Level<'a>> {
    experiment.points.iter().filter_map(|point| of_level(paper, point)).collect()
}

fn of_level<'a>(paper: &'a Paper, point: &'a Point) -> Option<Level<'a>> {
    let trials = paper.trials_of(point);
    let known = trials.iter().flat_map(|trial| &trial.summary.conditions.nodes);
    let named = known.filter(|(_, node)| node.role.is_some()).map(|(name, _)| name.as_str());
    let names = format::unique(named.collect());
    if names.len() < 2 {
        return None;
    }
    let target = paper.targets.iter().find(|target| target.label == point.target);
    let stands = |name: &str| target?.facts.nodes.iter().position(|node| node.name == name);
    let mut nodes: Vec<NodeWork<'_>> = names.iter().map(|name| of_node(name, &trials)).collect();
    nodes.sort_by_key(|node| {
        (place_of_role(node.role), stands(node.node).unwrap_or(usize::MAX), node.node)
    });
    let qps = point.qps.median;
    let sum = sum(&nodes, qps);
    let share = |own: Option<u64>, all: Option<u64>| match (own, all) {
        (Some(own), Some(all)) if all > 0 => Some(own as f64 / all as f64),
        _ => None,
    };
    let tells_apart = sum.reads.is_some() && sum.writes.is_some();
    for node in nodes.iter_mut().filter(|node| node.role != "endpoint") {
        node.read_share = share(node.reads, sum.reads);
        node.write_share = share(node.writes, sum.writes);
        node.rows_share = share(node.rows_written, sum.rows_written);
        let own = if tells_apart { node.work() } else { node.statements };
        node.qps = share(own, sum.work()).map(|share| share * qps);
    }
    Some(Level { point, trials, nodes, sum })
}

fn of_node<'a>(name: &'a str, trials: &[&'a Trial]) -> NodeWork<'a> {
    let own: Vec<&NodeConditions> =
        trials.iter().filter_map(|trial| trial.summary.conditions.nodes.get(name)).collect();
    let total =
        |of: fn(&NodeConditions) -> Option<u64>| own.iter().map(|n| of(n)).sum::<Option<u64>>();
    let most =
        |of: fn(&NodeConditions) -> Option<f64>| own.iter().filter_map(|n| of(n)).reduce(f64::max);
    let cost = |metric: Metric| {
        let of = |trial: &&Trial| {
            let node = trial.summary.conditions.nodes.get(name)?;
            trial.summary.cost_of(&node.measures, metric)
        };
        Some(Spread::of(trials.iter().filter_map(of).collect())?.median)
    };
    let busy: Vec<f64> = own.iter().filter_map(|node| node.cpu_share).collect();
    NodeWork {
        node: name,
        role: own.iter().find_map(|node| node.role.as_deref()).unwrap_or_default(),
        reads: total(|node| node.reads),
        writes: total(|node| node.writes),
        statements: total(|node| node.statements),
        commits: total(|node| node.commits),
        rows_fetched: total(|node| node.rows_fetched),
        rows_written: total(|node| node.rows_written),
        cpu_share: (!busy.is_empty()).then(|| busy.iter().sum::<f64>() / busy.len() as f64),
        costs: Metric::costs().map(|metric| (metric, cost(metric))).collect(),
        lag_p95_s: most(|node| node.lag_p95_s),
        lag_max_s: most(|node| node.lag_max_s),
        ..NodeWork::default()
    }
}

fn counted<'a, 'b>(nodes: &'b [NodeWork<'a>]) -> impl Iterator<Item = &'b NodeWork<'a>> {
    nodes.iter().filter(|node| node.role != "endpoint")
}

/// A quantity is only told where every node tells it.
fn sum<'a>(nodes: &[NodeWork<'a>], qps: f64) -> NodeWork<'a> {
    let total = |of: fn(&NodeWork<'_>) -> Option<u64>| counted(nodes).map(of).sum::<Option<u64>>();
    let most =
        |of: fn(&NodeWork<'_>) -> Option<f64>| counted(nodes).filter_map(of).reduce(f64::max);
    let cost = |metric: Metric| (metric, nodes.iter().map(|node| node.costs.get(metric)).sum());
    let mut sum = NodeWork {
        costs: Metric::costs().map(cost).collect(),
        reads: total(|node| node.reads),
        writes: total(|node| node.writes),
        statements: total(|node| node.statements),
        commits: total(|node| node.commits),
        rows_fetched: total(|node| node.rows_fetched),
        rows_written: total(|node| node.rows_written),
        lag_p95_s: most(|node| node.lag_p95_s),
        lag_max_s: most(|node| node.lag_max_s),
        ..NodeWork::default()
    };
    let whole = |of: Option<u64>| of.filter(|all| *all > 0).map(|_| 1.0);
    (sum.read_share, sum.write_share) = (whole(sum.reads), whole(sum.writes));
    sum.rows_share = whole(sum.rows_written);
    sum.cpu_share = nodes.iter().filter_map(|node| node.cpu_share).reduce(f64::max);
    sum.qps = sum.work().filter(|work| *work > 0).map(|_| qps);
    sum
}

/// Who executed the reads and the writes, in sentences.
fn words(level: &Level<'_>) -> Vec<Message> {
    let reads = shares_of_roles(&level.nodes, |node| node.read_share);
    let writes = shares_of_roles(&level.nodes, |node| node.write_share);
    let reads = (!reads.is_empty()).then(|| say!(reads_shares, shares = Message::list(&reads)));
    let writes = (!writes.is_empty()).then(|| say!(writes_shares, shares = Message::list(&writes)));
    let rows = if level.counts_rows_only() {
        shares_of_roles(&level.nodes, |node| node.rows_share)
    } else {
        Vec::new()
    };
    let rows = (!rows.is_empty()).then(|| say!(rows_written_shares, shares = Message::list(&rows)));
    reads
        .into_iter()
        .chain(writes)
        .chain(rows)
        .chain(gone(level))
        .chain(own(&level.trials))
        .collect()
}

/// Why there are no shares, where a node was away.
fn gone(level: &Level<'_>) -> Option<Message> {
    let was_away = |node: &&NodeWork<'_>| {
        let nodes = |trial: &&'_ Trial| trial.summary.conditions.nodes.get(node.node).cloned();
        let mut own = level.trials.iter().filter_map(nodes);
        node.statements.is_none() && own.any(|found| found.down.is_some())
    };
    let names: Vec<Message> =
        counted(&level.nodes).filter(was_away).map(|node| node.node.into()).collect();
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
fn shares_of_roles(nodes: &[NodeWork<'_>], of: fn(&NodeWork<'_>) -> Option<f64>) -> Vec<Message> {
    let mut roles: Vec<(&str, Vec<f64>)> = Vec::new();
    for node in counted(nodes) {
        let Some(share) = of(node) else { return Vec::new() };
        match roles.iter_mut().find(|(role, _)| *role == node.role) {
            Some((_, shares)) => shares.push(share),
            None => roles.push((node.role, vec![share])),
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

fn nodes<'a>(level: &'a Level<'_>) -> PaperRows<&'a NodeWork<'a>> {
    let (point, rows_only) = (level.point, level.counts_rows_only());
    let is_known = |metric: &Metric| level.nodes.iter().any(|n| n.costs.get(*metric).is_some());
    let costs = Metric::costs().filter(is_known);
    let title = say!(what_each_node_of_did, target = &point.target, load = point.load_words());
    PaperRows::new(title, level.nodes.iter().chain([&level.sum]))
        .text(say!(node), |node| sum_or(node.node, say!(all_nodes)))
        .text(say!(role), |node| node_role(node.role))
        .when(!rows_only, |table| {
            table
                .col(say!(reads), Whole, |node| node.reads)
                .col(say!(share_percent), Percent, |node| node.read_share)
                .class("strong")
                .col(say!(writes), Whole, |node| node.writes)
                .col(say!(share_percent), Percent, |node| node.write_share)
                .class("strong")
                .col(say!(all_statements), Whole, |node| node.statements)
        })
        .when(rows_only, |table| {
            table
                .col(say!(rows_fetched), Whole, |node| node.rows_fetched)
                .col(say!(rows_written), Whole, |node| node.rows_written)
                .col(say!(share_percent), Percent, |node| node.rows_share)
                .class("strong")
        })
        .col(say!(commits), Whole, |node| node.commits)
        .when(!rows_only, |table| {
            table.col(say!(statements_per_s), Short, |node| node.qps).class("strong")
        })
        .metrics(costs, |node, metric| node.costs.get(metric))
        .col(say!(machine_busy_percent_2), Percent, |node| node.cpu_share)
        .when(level.sum.lag_max_s.is_some(), |table| {
            table.col(say!(lag_p95_s), Short, |node| node.lag_p95_s).col(
                say!(largest_lag_s),
                Short,
                |node| node.lag_max_s,
            )
        })
}

fn shares<'a>(levels: &'a [Level<'a>]) -> PaperRows<&'a Level<'a>> {
    PaperRows::new(say!(who_executed_what_at_the_other), levels)
        .text(say!(target_2), |level| &level.point.target)
        .text(say!(load), |level| level.point.load_words())
        .text(say!(shares_of_the_nodes), |level| Message::sentences(&words(level)))
        .when(levels.iter().any(|level| level.sum.lag_max_s.is_some()), |table| {
            table.col(say!(largest_lag_s), Short, |level| level.sum.lag_max_s)
        })
}

/// Reads after writes in the trials of a load level.
fn looks<'a>(paper: &'a Paper, point: &Point) -> Vec<&'a Freshness> {
    let trials = paper.trials_of(point).into_iter();
    trials.filter_map(|trial| trial.summary.conditions.freshness.as_ref()).collect()
}

type Looked<'a> = &'a (&'a Point, Vec<&'a Freshness>);

fn freshness<'a>(rows: Vec<Looked<'a>>) -> PaperRows<Looked<'a>> {
    let sum = |of: fn(&Freshness) -> u64| {
        move |(_, looks): Looked<'_>| looks.iter().map(|look| of(look)).sum::<u64>()
    };
    PaperRows::new(say!(reads_right_after_writes_through_the), rows)
        .text(say!(target_2), |(point, _)| &point.target)
        .text(say!(load), |(point, _)| point.load_words())
        .col(say!(read_by_the_session_that_wrote), Whole, sum(|look| look.asked))
        .col(say!(of_these_stale), Whole, sum(|look| look.stale))
        .class("strong")
        .col(say!(read_by_another_session), Whole, sum(|look| look.asked_other))
        .col(say!(of_these_stale), Whole, sum(|look| look.stale_other))
        .class("strong")
        .col(say!(longest_stale_ms), Short, |(_, looks)| {
            looks.iter().filter_map(|look| look.stale_max_ms).reduce(f64::max)
        })
}
