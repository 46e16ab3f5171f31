//! Work of each node of a target: who executed the reads and the writes, how far copies were behind, and whether new
//! rows could be read at once. And the work of each load generator of a fleet: its part of the work, how well they
//! started together, what their machines had left.

use super::*;

/// Adds the work of each node at every load level, and how fresh reads after writes were.
pub(super) fn blocks(paper: &Paper, experiment: &Experiment, blocks: &mut Blocks) {
    let levels = load_levels(paper, experiment);
    let (best_levels, mut other_levels): (Vec<&Level<'_>>, Vec<&Level<'_>>) =
        levels.iter().partition(|level| is_best(experiment, level));
    for level in &best_levels {
        blocks.table(nodes_table(level));
        blocks.paragraph(Message::sentences(&share_sentences(level)));
    }
    other_levels.retain(|level| !share_sentences(level).is_empty());
    blocks.table(shares_table(&other_levels));
    if best_levels.iter().chain(&other_levels).any(|level| level.counts_rows_only()) {
        blocks.fine(say!(statements_not_told_apart));
    }
    if !levels.is_empty() {
        blocks.fine(say!(statement_counts_note));
    }
    if best_levels.iter().any(|level| level.is_cpu_partly_known()) {
        blocks.fine(say!(cpu_of_a_node_not_known));
    }
    let freshness_rows =
        experiment.points.iter().map(|point| (point, freshness_facts(paper, point)));
    let freshness_rows: Vec<(&Point, Vec<&Freshness>)> =
        freshness_rows.filter(|(_, facts)| !facts.is_empty()).collect();
    blocks.table(freshness_table(&freshness_rows));
    if !freshness_rows.is_empty() {
        blocks.fine(say!(stale_read_meaning));
    }
}

/// Statements per second of each node, and their sum.
pub(super) fn figures(paper: &Paper, experiment: &Experiment, lang: Lang) -> Vec<Drawing> {
    let levels = load_levels(paper, experiment);
    let best_levels = levels.iter().filter(|level| is_best(experiment, level));
    best_levels.filter_map(|level| node_bars(paper, level, lang)).collect()
}

/// Draws a bar for each node and one for their sum, unless fewer than two nodes have worked.
fn node_bars(paper: &Paper, level: &Level<'_>, lang: Lang) -> Option<Drawing> {
    let rows = level.counted_nodes().chain([&level.sum]).filter_map(|node| {
        let qps = level.qps(node)?;
        let name = match node.node {
            "" => say!(all_nodes).render(lang),
            name => name.to_owned(),
        };
        let class = charts::color(paper, &level.point.target);
        let text = format::short(qps);
        Some(ChartRow { name, class, bar: Some(qps), text, ..ChartRow::default() })
    });
    let rows: Vec<ChartRow> = rows.collect();
    let (target, load) = (&level.point.target, level.point.load_words());
    let caption = say!(statements_of_each_node, target, load);
    let has_several = rows.iter().filter(|row| row.bar > Some(0.0)).count() > 2;
    has_several.then(|| charts::bars(rows, caption, None, lang))
}

/// Returns true for the load level of a target at which it did most.
fn is_best(experiment: &Experiment, level: &Level<'_>) -> bool {
    let points = experiment.points.iter().filter(|point| point.target == level.point.target);
    let ranked =
        points.map(|point| ((point.status == "complete", point.throughput().median), point));
    let best = ranked.reduce(|best, next| if next.0 > best.0 { next } else { best });
    best.is_some_and(|(_, best)| std::ptr::eq(best, level.point))
}

/// Returns true if some target has several nodes that report their work.
pub(super) fn has_clusters(paper: &Paper) -> bool {
    paper.experiments.iter().any(|experiment| !load_levels(paper, experiment).is_empty())
}

/// Gets a count of a server from before to after a trial.
type Count = fn(&NodeConditions) -> Option<u64>;
const READS: Count = |node| node.reads;
const WRITES: Count = |node| node.writes;
const STATEMENTS: Count = |node| node.statements;
const COMMITS: Count = |node| node.commits;
const ROWS_FETCHED: Count = |node| node.rows_fetched;
const ROWS_WRITTEN: Count = |node| node.rows_written;

/// The work of a node over all trials of a load level; a sum has no name.
#[derive(Default)]
struct NodeWork<'a> {
    node: &'a str,
    role: &'a str,
    conditions: Vec<&'a NodeConditions>,
    cpu_share: Option<f64>,
    costs: Measures,
}

impl NodeWork<'_> {
    /// Returns `None` if the count is missing in a trial, or of a node of a sum.
    fn count(&self, get: Count) -> Option<u64> {
        self.conditions.iter().map(|node| get(node)).sum()
    }

    /// Returns the highest value in any trial; `None` if no trial has one.
    fn max(&self, value: fn(&NodeConditions) -> Option<f64>) -> Option<f64> {
        self.conditions.iter().filter_map(|node| value(node)).reduce(f64::max)
    }
}

/// The nodes of a target at a load level: the primary first, endpoints last.
struct Level<'a> {
    point: &'a Point,
    trials: Vec<&'a Trial>,
    nodes: Vec<NodeWork<'a>>,
    /// Without endpoints: what passes through one is executed by the others. It has a quantity only if every node
    /// reports it.
    sum: NodeWork<'a>,
}

impl<'a> Level<'a> {
    fn counted_nodes(&self) -> impl Iterator<Item = &NodeWork<'a>> {
        self.nodes.iter().filter(|node| node.role != "endpoint")
    }

    /// Returns true if servers count rows, and not statements.
    fn counts_rows_only(&self) -> bool {
        self.has_count(ROWS_WRITTEN) && !self.has_count(STATEMENTS) && !self.has_count(WRITES)
    }

    /// Returns true if some node reports the count in every trial.
    fn has_count(&self, count: Count) -> bool {
        self.nodes.iter().any(|node| node.count(count).is_some())
    }

    /// Returns true if the CPU time of some nodes is known and that of others is not.
    fn is_cpu_partly_known(&self) -> bool {
        let costs = self.nodes.iter().map(|node| node.costs.get(Metric::ServerCpuUs));
        let n_known = costs.flatten().count();
        n_known > 0 && n_known < self.nodes.len()
    }

    /// The node's part of a count.
    fn share(&self, node: &NodeWork<'_>, count: Count) -> Option<f64> {
        share_of_total(node, node.count(count), self.sum.count(count))
    }

    /// The node's part of the load generator's statements per second, divided as the nodes counted: those that read or
    /// write; all, if they are not told apart.
    fn qps(&self, node: &NodeWork<'_>) -> Option<f64> {
        let tells_apart = self.sum.count(READS).and(self.sum.count(WRITES)).is_some();
        let [count, total] = [node, &self.sum].map(|node| {
            if tells_apart {
                Some(node.count(READS)? + node.count(WRITES)?)
            } else {
                node.count(STATEMENTS)
            }
        });
        Some(share_of_total(node, count, total)? * self.point.qps.median)
    }
}

fn share_of_total(node: &NodeWork<'_>, count: Option<u64>, total: Option<u64>) -> Option<f64> {
    let total = total.filter(|total| *total > 0 && node.role != "endpoint")?;
    Some(count? as f64 / total as f64)
}

/// One for each load level whose target has several nodes that told something.
fn load_levels<'a>(paper: &'a Paper, experiment: &'a Experiment) -> Vec<Level<'a>> {
    experiment.points.iter().filter_map(|point| load_level(paper, point)).collect()
}

fn load_level<'a>(paper: &'a Paper, point: &'a Point) -> Option<Level<'a>> {
    let trials = paper.point_trials(point);
    let conditions = trials.iter().flat_map(|trial| &trial.summary.conditions.nodes);
    let with_role = conditions.filter(|(_, node)| node.role.is_some());
    let names = unique(with_role.map(|(name, _)| name.as_str()).collect());
    if names.len() < 2 {
        return None;
    }
    let target = paper.target(&point.target);
    let mut nodes: Vec<NodeWork<'_>> = names.iter().map(|name| node_work(name, &trials)).collect();
    nodes.sort_by_key(|node| {
        let position = target
            .and_then(|target| target.facts.nodes.iter().position(|known| known.name == node.node));
        (place_of_role(node.role), position.unwrap_or(usize::MAX), node.node)
    });
    let mut level = Level { point, trials, nodes, sum: NodeWork::default() };
    let costs = Metric::costs().map(|metric| {
        (metric, level.nodes.iter().map(|node| node.costs.get(metric)).sum::<Option<f64>>())
    });
    level.sum = NodeWork {
        conditions: level
            .counted_nodes()
            .flat_map(|node| node.conditions.iter().copied())
            .collect(),
        costs: costs.collect(),
        cpu_share: level.nodes.iter().filter_map(|node| node.cpu_share).reduce(f64::max),
        ..NodeWork::default()
    };
    Some(level)
}

fn node_work<'a>(name: &'a str, trials: &[&'a Trial]) -> NodeWork<'a> {
    let conditions = trials.iter().filter_map(|trial| {
        let node = trial.summary.conditions.nodes.get(name)?;
        Some((&trial.summary, node))
    });
    let conditions: Vec<(&TrialSummary, &NodeConditions)> = conditions.collect();
    let nodes: Vec<&NodeConditions> = conditions.iter().map(|(_, node)| *node).collect();
    let costs = Metric::costs().map(|metric| {
        let costs =
            conditions.iter().filter_map(|(trial, node)| trial.cost(&node.measures, metric));
        (metric, Spread::from_values(costs.collect()).map(|costs| costs.median))
    });
    NodeWork {
        node: name,
        role: nodes.iter().find_map(|node| node.role.as_deref()).unwrap_or_default(),
        cpu_share: mean(&nodes.iter().filter_map(|node| node.cpu_share).collect::<Vec<_>>()),
        costs: costs.collect(),
        conditions: nodes,
    }
}

/// Nodes that executed the reads and the writes, in sentences.
fn share_sentences(level: &Level<'_>) -> Vec<Message> {
    let [reads, writes, rows] = [READS, WRITES, ROWS_WRITTEN].map(|count| {
        let shares = role_shares(level, count);
        (!shares.is_empty()).then(|| Message::list(&shares))
    });
    let rows = rows.filter(|_| level.counts_rows_only());
    let sentences = [
        reads.map(|shares| say!(reads_shares, shares)),
        writes.map(|shares| say!(writes_shares, shares)),
        rows.map(|shares| say!(rows_written_shares, shares)),
        lost_counters(level),
        own_statements(&level.trials),
    ];
    sentences.into_iter().flatten().collect()
}

/// The reason for missing shares, if a node was away.
fn lost_counters(level: &Level<'_>) -> Option<Message> {
    let uncounted = level.counted_nodes().filter(|node| node.count(STATEMENTS).is_none());
    let down = uncounted.filter(|node| node.conditions.iter().any(|node| node.down.is_some()));
    let names: Vec<Message> = down.map(|node| node.node.into()).collect();
    (!names.is_empty()).then(|| say!(counters_lost_while_away, nodes = Message::list(&names)))
}

/// Number of dyno's own statements, if no one knows which node executed them.
fn own_statements(trials: &[&Trial]) -> Option<Message> {
    let freshness = trials.iter().filter_map(|trial| trial.summary.conditions.freshness.as_ref());
    let unplaced: u64 = freshness.map(|freshness| freshness.unplaced).sum();
    let total: u64 = trials.iter().map(|trial| trial.summary.statements.total()).sum();
    (unplaced > 0 && total > 0).then(|| {
        say!(
            includes_own_statements,
            own = format::whole(unplaced as f64),
            share = format::percent(unplaced as f64 / total as f64)
        )
    })
}

/// The shares of each role; their evenness if there is only one role.
fn role_shares(level: &Level<'_>, count: Count) -> Vec<Message> {
    let shares = level.counted_nodes().map(|node| Some((node.role, level.share(node, count)?)));
    let Some(shares) = shares.collect::<Option<Vec<_>>>() else { return Vec::new() };
    let roles = grouped(shares);
    if let [(_, shares)] = roles.as_slice() {
        let (low, high) = min_and_max(shares.iter().copied()).unwrap_or_default();
        let (low, high) = (format::percent(low), format::percent(high));
        return vec![say!(share_of_each_node, low, high)];
    }
    let sentences = roles.iter().map(|(role, shares)| {
        let share = format::percent(shares.iter().sum());
        let number = shares.len() as u64;
        let nodes = match *role {
            "primary" => say!(n_primaries, n = number),
            "read_only" => say!(read_only_nodes, n = number),
            "shard" => say!(n_shards, n = number),
            other => Message::from(other),
        };
        say!(nodes_share_percent, nodes, share)
    });
    sentences.collect()
}

fn nodes_table<'a>(level: &'a Level<'_>) -> PaperRows<&'a NodeWork<'a>> {
    let (point, rows_only) = (level.point, level.counts_rows_only());
    let title = say!(work_of_nodes, target = &point.target, load = point.load_words());
    PaperRows::new(title, level.nodes.iter().chain([&level.sum]))
        .text(say!(node), |node| sum_or(node.node, say!(all_nodes)))
        .text(say!(role), |node| node_role(node.role))
        .when(!rows_only, |table| {
            table
                .col(say!(reads), Whole, |node| node.count(READS))
                .strong(say!(share_percent), Percent, |node| level.share(node, READS))
                .col(say!(writes), Whole, |node| node.count(WRITES))
                .strong(say!(share_percent), Percent, |node| level.share(node, WRITES))
                .col(say!(all_statements), Whole, |node| node.count(STATEMENTS))
        })
        .when(rows_only, |table| {
            table
                .col(say!(rows_fetched), Whole, |node| node.count(ROWS_FETCHED))
                .col(say!(rows_written), Whole, |node| node.count(ROWS_WRITTEN))
                .strong(say!(share_percent), Percent, |node| level.share(node, ROWS_WRITTEN))
        })
        .col(say!(commits), Whole, |node| node.count(COMMITS))
        .when(!rows_only, |table| {
            table.strong(say!(statements_per_s), Short, |node| level.qps(node))
        })
        .metrics(Metric::costs(), |node, metric| node.costs.get(metric))
        .col(say!(machine_busy_percent_column), Percent, |node| node.cpu_share)
        .col(say!(lag_p95_s), Short, |node| node.max(|node| node.lag_p95_s))
        .if_any()
        .col(say!(largest_lag_s), Short, |node| node.max(|node| node.lag_max_s))
        .if_any()
}

fn shares_table<'a>(levels: &'a [&'a Level<'a>]) -> PaperRows<&'a &'a Level<'a>> {
    PaperRows::new(say!(work_of_nodes_elsewhere), levels)
        .text(say!(target_column), |level| &level.point.target)
        .text(say!(load), |level| level.point.load_words())
        .text(say!(shares_of_the_nodes), |level| Message::sentences(&share_sentences(level)))
        .col(say!(largest_lag_s), Short, |level| level.sum.max(|node| node.lag_max_s))
        .if_any()
}

/// Reads after writes in the trials of a load level.
fn freshness_facts<'a>(paper: &'a Paper, point: &Point) -> Vec<&'a Freshness> {
    let trials = paper.point_trials(point).into_iter();
    trials.filter_map(|trial| trial.summary.conditions.freshness.as_ref()).collect()
}

type FreshnessRow<'a> = &'a (&'a Point, Vec<&'a Freshness>);

fn freshness_table<'a>(rows: &'a [(&'a Point, Vec<&'a Freshness>)]) -> PaperRows<FreshnessRow<'a>> {
    PaperRows::new(say!(reads_after_writes_title), rows)
        .text(say!(target_column), |(point, _)| &point.target)
        .text(say!(load), |(point, _)| point.load_words())
        .col(say!(read_by_the_session_that_wrote), Whole, |(_, facts)| {
            add_up(facts, |facts| facts.asked)
        })
        .strong(say!(of_these_stale), Whole, |(_, facts)| add_up(facts, |facts| facts.stale))
        .col(say!(read_by_another_session), Whole, |(_, facts)| {
            add_up(facts, |facts| facts.asked_other)
        })
        .strong(say!(of_these_stale), Whole, |(_, facts)| add_up(facts, |facts| facts.stale_other))
        .col(say!(longest_stale_ms), Short, |(_, facts)| {
            facts.iter().filter_map(|freshness| freshness.stale_max_ms).reduce(f64::max)
        })
}

/// Returns the sum of a count over trials.
fn add_up(facts: &[&Freshness], count: fn(&Freshness) -> u64) -> u64 {
    facts.iter().map(|freshness| count(freshness)).sum()
}

pub(super) fn fleet_blocks(paper: &Paper, experiment: &Experiment, blocks: &mut Blocks) {
    let mut has_table = false;
    for point in &experiment.points {
        let mut trials = paper.point_trials(point);
        trials.retain(|trial| !trial.summary.conditions.members.is_empty());
        let members = trials.iter().flat_map(|trial| &trial.summary.conditions.members);
        let names = unique(members.map(|member| member.name.as_str()).collect());
        if names.is_empty() {
            continue;
        }
        let generators: Vec<GeneratorWork<'_>> =
            names.iter().map(|name| generator_work(name, &trials)).collect();
        let sum = generator_work("", &trials);
        let (load, target) = (point.load_words(), &point.target);
        let title = say!(work_of_load_generators, target, load);
        blocks.table(generators_table(title, &generators, &sum, &trials));
        let sentences = describe_generators(&sum, generators.len(), &trials);
        let sentences = sentences.into_iter().chain(describe_driven_nodes(&trials));
        blocks.paragraph(Message::sentences(&sentences.collect::<Vec<_>>()));
        has_table = true;
    }
    if has_table {
        blocks.fine(say!(load_generators_note));
    }
}

/// Returns the work of a load generator in these trials; without a name that of all of them.
fn generator_work<'a>(name: &'a str, trials: &[&'a Trial]) -> GeneratorWork<'a> {
    let mut work = GeneratorWork { name, members: Vec::new(), window_s: 0.0 };
    for trial in trials.iter().copied() {
        let members = trial.summary.conditions.members.iter();
        let n_before = work.members.len();
        work.members.extend(members.filter(|member| name.is_empty() || member.name == name));
        if work.members.len() > n_before {
            work.window_s += trial.summary.window_s;
        }
    }
    work
}

/// A load generator over all trials of a load level; all together have no name.
struct GeneratorWork<'a> {
    name: &'a str,
    members: Vec<&'a GeneratorMember>,
    /// Seconds of the windows that it took part in.
    window_s: f64,
}

impl<'a> GeneratorWork<'a> {
    /// Returns what one load generator reported; nothing for all together.
    fn own_members(&self) -> impl Iterator<Item = &'a GeneratorMember> {
        self.members.iter().copied().filter(|_| !self.name.is_empty())
    }

    /// Returns the sum of a count over its trials.
    fn sum(&self, get: fn(&GeneratorMember) -> u64) -> u64 {
        self.members.iter().map(|member| get(member)).sum()
    }

    /// Returns the value that is farthest from 0, the worst; `None` for all load generators together.
    fn largest(&self, value: fn(&GeneratorMember) -> Option<f64>) -> Option<f64> {
        let values = self.own_members().filter_map(value);
        values.reduce(|worst, value| if value.abs() > worst.abs() { value } else { worst })
    }

    /// Returns the highest percentile of any trial; for all load generators together that of all transactions.
    fn max_percentile(&self, trials: &[&Trial], get: fn(&LatencySummary) -> f64) -> Option<f64> {
        if self.name.is_empty() {
            let measured = trials.iter().filter(|trial| trial.summary.latency.count > 0);
            return measured.map(|trial| get(&trial.summary.latency)).reduce(f64::max);
        }
        let latencies = self.members.iter().filter_map(|member| member.latency.as_ref());
        latencies.map(get).reduce(f64::max)
    }

    /// Returns the most workers that it had in a trial; of several load generators their sum.
    fn workers(&self) -> u32 {
        let mut max_workers: BTreeMap<&str, u32> = BTreeMap::new();
        for member in &self.members {
            let workers = max_workers.entry(&member.name).or_default();
            *workers = member.workers.max(*workers);
        }
        max_workers.values().sum()
    }
}

/// Describes who made the load and how well they started together.
fn describe_generators(sum: &GeneratorWork<'_>, number: usize, trials: &[&Trial]) -> Vec<Message> {
    let workers = sum.workers();
    let apart_ms = trials.iter().filter_map(|trial| start_spread_ms(trial)).reduce(f64::max);
    let mut sentences = vec![match number {
        1 => say!(one_load_generator_of_a_fleet, workers = say!(n_workers, n = workers)),
        _ => say!(
            load_generators_made_the_load_together,
            n = format::whole(number as f64),
            workers = format::whole(f64::from(workers))
        ),
    }];
    let bound = sum.members.iter().filter_map(|member| member.clock_bound_ms).reduce(f64::max);
    if let (Some(apart_ms), Some(bound_ms)) = (apart_ms, bound) {
        let (apart, bound) = (format::short(apart_ms), format::short(bound_ms));
        sentences.push(say!(start_spread, apart, bound));
    }
    sentences
}

/// Load generators of the read-only nodes, and the servers' confirmation.
fn describe_driven_nodes(trials: &[&Trial]) -> Vec<Message> {
    let kinds = trials.iter().map(|trial| {
        let members = &trial.summary.conditions.members;
        let sets: Vec<&[String]> = by_nodes(trial).into_keys().collect();
        let n_nodes: usize = sets.iter().map(|set| set.len()).sum();
        let is_single = sets.iter().all(|set| set.len() == 1);
        match (members.len(), sets.len()) {
            (0 | 1, _) | (_, 0) => None,
            (_, 1) if !is_single => {
                Some(say!(workers_spread_over_read_only_nodes, n = format::whole(n_nodes as f64)))
            }
            (members, sets) if members > sets => Some(say!(load_generators_shared_read_only_nodes)),
            _ if is_single => Some(say!(load_generators_drove_one_node_each)),
            _ => Some(say!(load_generators_drove_several_nodes)),
        }
    });
    let mut kinds: Vec<Option<Message>> = kinds.collect();
    kinds.dedup();
    // If load generators were lost, it was one way before and another after.
    let [Some(kind)] = &kinds[..] else { return Vec::new() };
    let deviations: Vec<f64> =
        trials.iter().filter_map(|trial| Some(strayed(trial, read_counter(trial))?.0)).collect();
    let confirmation = (deviations.len() == trials.len()).then(|| {
        let share = format::percent(deviations.into_iter().fold(0.0, f64::max));
        say!(servers_confirm_shares, share)
    });
    [kind.clone()].into_iter().chain(confirmation).collect()
}

fn generators_table<'a>(
    title: Message,
    generators: &'a [GeneratorWork<'a>],
    sum: &'a GeneratorWork<'a>,
    trials: &[&Trial],
) -> PaperRows<&'a GeneratorWork<'a>> {
    let total = sum.sum(|member| member.statements);
    PaperRows::new(title, generators.iter().chain([sum]))
        .text(say!(load_generator_column), |row| sum_or(row.name, say!(all_together)))
        .text(say!(machine), |row| row.own_members().next().map_or("", |member| &member.host))
        .text(say!(nodes_driven), |row| {
            unique(row.own_members().flat_map(|member| member.nodes.clone()).collect()).join(", ")
        })
        .if_any()
        .col(say!(workers), Whole, |row| row.workers())
        .col(say!(committed_column), Whole, |row| row.sum(|member| member.committed))
        .strong(say!(statements_per_s), Short, |row| {
            (row.window_s > 0.0).then(|| row.sum(|member| member.statements) as f64 / row.window_s)
        })
        .col(say!(share_percent), Percent, |row| {
            (total > 0).then(|| row.sum(|member| member.statements) as f64 / total as f64)
        })
        .col(say!(p95_ms), Ms, |row| row.max_percentile(trials, |latency| latency.p95_us))
        .col(say!(p99_ms), Ms, |row| row.max_percentile(trials, |latency| latency.p99_us))
        .col(say!(started_late_ms), Short, |row| row.largest(|member| member.late_ms))
        .col(say!(clock_known_to_ms), Short, |row| row.largest(|member| member.clock_bound_ms))
        .col(say!(calendar_ahead_ms), Short, |row| row.largest(|member| member.clock_skew_ms))
        .col(say!(cpu_of_loops_s), Short, |row| -> Option<f64> {
            row.members.iter().map(|member| member.cpu_s).sum()
        })
        .col(say!(machine_busy_percent_column), Percent, |row| {
            let busy = row.own_members().filter_map(|member| Some(member.host_load?.cpu_share));
            mean(&busy.collect::<Vec<_>>())
        })
}
