//! Work of each node of a target: who executed the reads and the writes, how far copies were behind, and whether new
//! rows could be read at once. And the work of each load generator of a fleet: its part of the work, how well they
//! started together, what their machines had left.

use super::*;

pub(super) fn blocks(paper: &Paper, experiment: &Experiment, blocks: &mut Blocks) {
    let levels = of_levels(paper, experiment);
    let (best, mut others): (Vec<&Level<'_>>, Vec<&Level<'_>>) =
        levels.iter().partition(|level| is_best(experiment, level));
    for level in &best {
        blocks.table(nodes(level));
        blocks.paragraph(Message::sentences(&words(level)));
    }
    others.retain(|level| !words(level).is_empty());
    blocks.table(shares(&others));
    if best.iter().chain(&others).any(|level| level.counts_rows_only()) {
        blocks.fine(say!(statements_not_told_apart));
    }
    if !levels.is_empty() {
        blocks.fine(say!(statements_and_commits_are_counted_by));
    }
    let is_cpu_unknown = |level: &&Level<'_>| {
        let known = |node: &NodeWork<'_>| node.costs.get(Metric::ServerCpuUs).is_some();
        level.nodes.iter().any(known) && !level.nodes.iter().all(known)
    };
    if best.iter().any(is_cpu_unknown) {
        blocks.fine(say!(cpu_of_a_node_not_known));
    }
    let looks = experiment.points.iter().map(|point| (point, looks(paper, point)));
    let looks: Vec<(&Point, Vec<&Freshness>)> = looks.filter(|(_, own)| !own.is_empty()).collect();
    blocks.table(freshness(&looks));
    if !looks.is_empty() {
        blocks.fine(say!(a_read_is_stale_when_it));
    }
}

/// Statements per second of each node, and their sum.
pub(super) fn figures(paper: &Paper, experiment: &Experiment, lang: Lang) -> Vec<Drawing> {
    let figure = |level: &Level<'_>| {
        let bar = |node: &NodeWork<'_>| {
            let qps = level.qps(node)?;
            let name = match node.node {
                "" => say!(all_nodes).render(lang),
                name => name.to_owned(),
            };
            let class = charts::color(paper, &level.point.target);
            let text = format::short(qps);
            Some(ChartRow { name, class, bar: Some(qps), text, ..ChartRow::default() })
        };
        let nodes = level.counted().chain([&level.sum]);
        let nodes: Vec<ChartRow> = nodes.filter_map(bar).collect();
        let (target, load) = (&level.point.target, level.point.load_words());
        let caption = say!(statements_of_each_node, target, load);
        // Two that have worked, and their sum.
        let are_several = nodes.iter().filter(|row| row.bar > Some(0.0)).count() > 2;
        are_several.then(|| charts::bars(nodes, caption, None, lang))
    };
    let levels = of_levels(paper, experiment);
    levels.iter().filter(|level| is_best(experiment, level)).filter_map(figure).collect()
}

/// Returns true for the load level of a target at which it did most.
fn is_best(experiment: &Experiment, own: &Level<'_>) -> bool {
    let rank = |point: &Point| (point.status == "complete", point.throughput().median);
    let others = experiment.points.iter().filter(|point| point.target == own.point.target);
    let best = others.reduce(|best, other| if rank(other) > rank(best) { other } else { best });
    best.is_some_and(|best| std::ptr::eq(best, own.point))
}

/// Returns true if some target has several nodes that tell what they did.
pub(super) fn has_clusters(paper: &Paper) -> bool {
    paper.experiments.iter().any(|experiment| !of_levels(paper, experiment).is_empty())
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
    all: Vec<&'a NodeConditions>,
    cpu_share: Option<f64>,
    costs: Measures,
}

impl NodeWork<'_> {
    /// Returns `None` if the count is missing in a trial, or of a node of a sum.
    fn count(&self, of: Count) -> Option<u64> {
        self.all.iter().map(|node| of(node)).sum()
    }

    fn most(&self, value: fn(&NodeConditions) -> Option<f64>) -> Option<f64> {
        self.all.iter().filter_map(|node| value(node)).reduce(f64::max)
    }
}

/// The nodes of a target at a load level: the primary first, endpoints last.
struct Level<'a> {
    point: &'a Point,
    trials: Vec<&'a Trial>,
    nodes: Vec<NodeWork<'a>>,
    /// Without endpoints: what passes through one is executed by the others. A quantity is only told where every node
    /// tells it.
    sum: NodeWork<'a>,
}

impl<'a> Level<'a> {
    fn counted(&self) -> impl Iterator<Item = &NodeWork<'a>> {
        self.nodes.iter().filter(|node| node.role != "endpoint")
    }

    /// Returns true if servers count rows, and not statements.
    fn counts_rows_only(&self) -> bool {
        let has = |count: Count| self.nodes.iter().any(|node| node.count(count).is_some());
        has(ROWS_WRITTEN) && !has(STATEMENTS) && !has(WRITES)
    }

    /// The node's part of a count.
    fn share(&self, node: &NodeWork<'_>, count: Count) -> Option<f64> {
        part(node, node.count(count), self.sum.count(count))
    }

    /// The node's part of the load generator's statements per second, divided as the nodes counted: those that read or
    /// write; all, if they are not told apart.
    fn qps(&self, node: &NodeWork<'_>) -> Option<f64> {
        let tells_apart = self.sum.count(READS).and(self.sum.count(WRITES)).is_some();
        let work = |node: &NodeWork<'_>| match tells_apart {
            true => Some(node.count(READS)? + node.count(WRITES)?),
            false => node.count(STATEMENTS),
        };
        part(node, work(node), work(&self.sum)).map(|share| share * self.point.qps.median)
    }
}

fn part(node: &NodeWork<'_>, own: Option<u64>, all: Option<u64>) -> Option<f64> {
    let all = all.filter(|all| *all > 0 && node.role != "endpoint")?;
    Some(own? as f64 / all as f64)
}

/// One for each load level whose target has several nodes that told something.
fn of_levels<'a>(paper: &'a Paper, experiment: &'a Experiment) -> Vec<Level<'a>> {
    experiment.points.iter().filter_map(|point| of_level(paper, point)).collect()
}

fn of_level<'a>(paper: &'a Paper, point: &'a Point) -> Option<Level<'a>> {
    let trials = paper.trials_of(point);
    let known = trials.iter().flat_map(|trial| &trial.summary.conditions.nodes);
    let named = known.filter(|(_, node)| node.role.is_some()).map(|(name, _)| name.as_str());
    let names = unique(named.collect());
    if names.len() < 2 {
        return None;
    }
    let target = paper.target(&point.target);
    let stands = |name: &str| target?.facts.nodes.iter().position(|node| node.name == name);
    let mut nodes: Vec<NodeWork<'_>> = names.iter().map(|name| of_node(name, &trials)).collect();
    nodes.sort_by_key(|node| {
        (place_of_role(node.role), stands(node.node).unwrap_or(usize::MAX), node.node)
    });
    let mut level = Level { point, trials, nodes, sum: NodeWork::default() };
    let total = |metric: Metric| level.nodes.iter().map(|node| node.costs.get(metric)).sum();
    level.sum = NodeWork {
        all: level.counted().flat_map(|node| node.all.iter().copied()).collect(),
        costs: Metric::costs().map(|metric| (metric, total(metric))).collect(),
        cpu_share: level.nodes.iter().filter_map(|node| node.cpu_share).reduce(f64::max),
        ..NodeWork::default()
    };
    Some(level)
}

fn of_node<'a>(name: &'a str, trials: &[&'a Trial]) -> NodeWork<'a> {
    let conditions = |trial: &&'a Trial| {
        let node = trial.summary.conditions.nodes.get(name)?;
        Some((&trial.summary, node))
    };
    let own: Vec<(&TrialSummary, &NodeConditions)> = trials.iter().filter_map(conditions).collect();
    let cost = |metric: Metric| {
        let costs = own.iter().filter_map(|(trial, node)| trial.cost_of(&node.measures, metric));
        Some(Spread::of(costs.collect())?.median)
    };
    NodeWork {
        node: name,
        role: own.iter().find_map(|(_, node)| node.role.as_deref()).unwrap_or_default(),
        cpu_share: mean(&own.iter().filter_map(|(_, node)| node.cpu_share).collect::<Vec<_>>()),
        costs: Metric::costs().map(|metric| (metric, cost(metric))).collect(),
        all: own.into_iter().map(|(_, node)| node).collect(),
    }
}

/// Nodes that executed the reads and the writes, in sentences.
fn words(level: &Level<'_>) -> Vec<Message> {
    let list = |count: Count| {
        let shares = shares_of_roles(level, count);
        (!shares.is_empty()).then(|| Message::list(&shares))
    };
    let rows = level.counts_rows_only().then(|| list(ROWS_WRITTEN)).flatten();
    let all = [
        list(READS).map(|shares| say!(reads_shares, shares)),
        list(WRITES).map(|shares| say!(writes_shares, shares)),
        rows.map(|shares| say!(rows_written_shares, shares)),
        away(level),
        own(&level.trials),
    ];
    all.into_iter().flatten().collect()
}

/// The reason for missing shares, if a node was away.
fn away(level: &Level<'_>) -> Option<Message> {
    let was_away = |node: &&NodeWork<'_>| {
        node.count(STATEMENTS).is_none() && node.all.iter().any(|node| node.down.is_some())
    };
    let names: Vec<Message> =
        level.counted().filter(was_away).map(|node| node.node.into()).collect();
    (!names.is_empty()).then(|| say!(lost_counters_while_away_in_a, nodes = Message::list(&names)))
}

/// Number of dyno's own statements, if no one knows which node executed them.
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

/// The shares of each role; their evenness if there is only one role.
fn shares_of_roles(level: &Level<'_>, count: Count) -> Vec<Message> {
    let shares = level.counted().map(|node| Some((node.role, level.share(node, count)?)));
    let Some(shares) = shares.collect::<Option<Vec<_>>>() else { return Vec::new() };
    let roles = grouped(shares);
    if let [(_, shares)] = roles.as_slice() {
        let (low, high) = extremes(shares.iter().copied()).unwrap_or_default();
        let (low, high) = (format::percent(low), format::percent(high));
        return vec![say!(percent_to_percent_for_each_node, low, high)];
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
        say!(nodes_share_percent, nodes, share)
    };
    roles.iter().map(of_role).collect()
}

fn nodes<'a>(level: &'a Level<'_>) -> PaperRows<&'a NodeWork<'a>> {
    type Of<'a> = &'a NodeWork<'a>;
    let (point, rows_only) = (level.point, level.counts_rows_only());
    let count = |count: Count| move |node: Of<'a>| node.count(count);
    let share = |count: Count| move |node: Of<'a>| level.share(node, count);
    let title = say!(what_each_node_of_did, target = &point.target, load = point.load_words());
    PaperRows::new(title, level.nodes.iter().chain([&level.sum]))
        .text(say!(node), |node| sum_or(node.node, say!(all_nodes)))
        .text(say!(role), |node| node_role(node.role))
        .when(!rows_only, |table| {
            table
                .col(say!(reads), Whole, count(READS))
                .strong(say!(share_percent), Percent, share(READS))
                .col(say!(writes), Whole, count(WRITES))
                .strong(say!(share_percent), Percent, share(WRITES))
                .col(say!(all_statements), Whole, count(STATEMENTS))
        })
        .when(rows_only, |table| {
            table
                .col(say!(rows_fetched), Whole, count(ROWS_FETCHED))
                .col(say!(rows_written), Whole, count(ROWS_WRITTEN))
                .strong(say!(share_percent), Percent, share(ROWS_WRITTEN))
        })
        .col(say!(commits), Whole, count(COMMITS))
        .when(!rows_only, |table| {
            table.strong(say!(statements_per_s), Short, |node| level.qps(node))
        })
        .metrics(Metric::costs(), |node, metric| node.costs.get(metric))
        .col(say!(machine_busy_percent_2), Percent, |node| node.cpu_share)
        .col(say!(lag_p95_s), Short, |node| node.most(|node| node.lag_p95_s))
        .if_any()
        .col(say!(largest_lag_s), Short, |node| node.most(|node| node.lag_max_s))
        .if_any()
}

fn shares<'a>(levels: &'a [&'a Level<'a>]) -> PaperRows<&'a &'a Level<'a>> {
    PaperRows::new(say!(who_executed_what_at_the_other), levels)
        .text(say!(target_2), |level| &level.point.target)
        .text(say!(load), |level| level.point.load_words())
        .text(say!(shares_of_the_nodes), |level| Message::sentences(&words(level)))
        .col(say!(largest_lag_s), Short, |level| level.sum.most(|node| node.lag_max_s))
        .if_any()
}

/// Reads after writes in the trials of a load level.
fn looks<'a>(paper: &'a Paper, point: &Point) -> Vec<&'a Freshness> {
    let trials = paper.trials_of(point).into_iter();
    trials.filter_map(|trial| trial.summary.conditions.freshness.as_ref()).collect()
}

type Looked<'a> = &'a (&'a Point, Vec<&'a Freshness>);

fn freshness<'a>(rows: &'a [(&'a Point, Vec<&'a Freshness>)]) -> PaperRows<Looked<'a>> {
    let sum = |count: fn(&Freshness) -> u64| {
        move |(_, looks): Looked<'_>| looks.iter().map(|look| count(look)).sum::<u64>()
    };
    PaperRows::new(say!(reads_right_after_writes_through_the), rows)
        .text(say!(target_2), |(point, _)| &point.target)
        .text(say!(load), |(point, _)| point.load_words())
        .col(say!(read_by_the_session_that_wrote), Whole, sum(|look| look.asked))
        .strong(say!(of_these_stale), Whole, sum(|look| look.stale))
        .col(say!(read_by_another_session), Whole, sum(|look| look.asked_other))
        .strong(say!(of_these_stale), Whole, sum(|look| look.stale_other))
        .col(say!(longest_stale_ms), Short, |(_, looks)| {
            looks.iter().filter_map(|look| look.stale_max_ms).reduce(f64::max)
        })
}

pub(super) fn fleet_blocks(paper: &Paper, experiment: &Experiment, blocks: &mut Blocks) {
    let mut is_any = false;
    for point in &experiment.points {
        let mut trials = paper.trials_of(point);
        trials.retain(|trial| !trial.summary.conditions.members.is_empty());
        let members = || trials.iter().flat_map(|trial| &trial.summary.conditions.members);
        let names = unique(members().map(|member| member.name.as_str()).collect());
        if names.is_empty() {
            continue;
        }
        let work = |name| {
            let is_own = |member: &&GeneratorMember| str::is_empty(name) || member.name == name;
            let is_member =
                |trial: &&&Trial| trial.summary.conditions.members.iter().any(|it| is_own(&it));
            let windows_s = trials.iter().filter(is_member).map(|trial| trial.summary.window_s);
            GeneratorWork {
                name,
                members: members().filter(is_own).collect(),
                window_s: windows_s.sum(),
            }
        };
        let generators: Vec<GeneratorWork<'_>> = names.iter().map(|name| work(name)).collect();
        let sum = work("");
        let (load, target) = (point.load_words(), &point.target);
        let title = say!(what_each_load_generator_did_on, target, load);
        blocks.table(generators_table(title, &generators, &sum, &trials));
        let words = generator_words(&sum, generators.len(), &trials);
        let words = words.into_iter().chain(node_words(&trials));
        blocks.paragraph(Message::sentences(&words.collect::<Vec<_>>()));
        is_any = true;
    }
    if is_any {
        blocks.fine(say!(times_of_starts_clocks_and_percentiles));
    }
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
    fn own(&self) -> impl Iterator<Item = &'a GeneratorMember> {
        self.members.iter().copied().filter(|_| !self.name.is_empty())
    }

    fn sum(&self, of: fn(&GeneratorMember) -> u64) -> u64 {
        self.members.iter().map(|member| of(member)).sum()
    }

    /// Returns the value that is farthest from 0, the worst; `None` for all load generators together.
    fn most(&self, value: fn(&GeneratorMember) -> Option<f64>) -> Option<f64> {
        let values = self.own().filter_map(value);
        values.reduce(|one, other| if other.abs() > one.abs() { other } else { one })
    }

    fn workers(&self) -> u32 {
        let mut most: BTreeMap<&str, u32> = BTreeMap::new();
        for member in &self.members {
            let workers = most.entry(&member.name).or_default();
            *workers = member.workers.max(*workers);
        }
        most.values().sum()
    }
}

/// Describes who made the load and how well they started together.
fn generator_words(sum: &GeneratorWork<'_>, number: usize, trials: &[&Trial]) -> Vec<Message> {
    let workers = sum.workers();
    let apart_ms = trials.iter().filter_map(|trial| start_spread_ms(trial)).reduce(f64::max);
    let mut words = vec![match number {
        1 => say!(one_load_generator_of_a_fleet, workers = say!(n_workers, n = workers)),
        _ => say!(
            load_generators_made_the_load_together,
            n = format::whole(number as f64),
            workers = format::whole(f64::from(workers))
        ),
    }];
    let bound = sum.members.iter().filter_map(|one| one.clock_bound_ms).reduce(f64::max);
    if let (Some(apart_ms), Some(bound_ms)) = (apart_ms, bound) {
        let (apart, bound) = (format::short(apart_ms), format::short(bound_ms));
        words.push(say!(they_started_within_ms_of_each, apart, bound));
    }
    words
}

/// Load generators of the read-only nodes, and the servers' confirmation.
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

fn generators_table<'a>(
    title: Message,
    generators: &'a [GeneratorWork<'a>],
    sum: &'a GeneratorWork<'a>,
    trials: &[&Trial],
) -> PaperRows<&'a GeneratorWork<'a>> {
    type Of<'a> = &'a GeneratorWork<'a>;
    let all = sum.sum(|one| one.statements);
    // The percentiles of all load generators together are those of all transactions.
    let percentile = |of: fn(&LatencySummary) -> f64| {
        let measured = trials.iter().filter(|trial| trial.summary.latency.count > 0);
        let whole = measured.map(|trial| of(&trial.summary.latency)).reduce(f64::max);
        move |one: Of<'_>| {
            let own = one.members.iter().filter_map(|member| Some(of(member.latency.as_ref()?)));
            if one.name.is_empty() { whole } else { own.reduce(f64::max) }
        }
    };
    PaperRows::new(title, generators.iter().chain([sum]))
        .text(say!(load_generator_2), |one| sum_or(one.name, say!(all_together)))
        .text(say!(machine), |one| one.own().next().map_or("", |member| &member.host))
        .text(say!(nodes_driven), |one| {
            unique(one.own().flat_map(|member| member.nodes.clone()).collect()).join(", ")
        })
        .if_any()
        .col(say!(workers), Whole, |one| one.workers())
        .col(say!(committed_2), Whole, |one| one.sum(|one| one.committed))
        .strong(say!(statements_per_s), Short, |one| {
            (one.window_s > 0.0).then(|| one.sum(|one| one.statements) as f64 / one.window_s)
        })
        .col(say!(share_percent), Percent, |one| {
            (all > 0).then(|| one.sum(|one| one.statements) as f64 / all as f64)
        })
        .col(say!(p95_ms), Ms, percentile(|latency| latency.p95_us))
        .col(say!(p99_ms), Ms, percentile(|latency| latency.p99_us))
        .col(say!(started_late_ms), Short, |one| one.most(|one| one.late_ms))
        .col(say!(clock_known_to_ms), Short, |one| one.most(|one| one.clock_bound_ms))
        .col(say!(calendar_ahead_ms), Short, |one| one.most(|one| one.clock_skew_ms))
        .col(say!(cpu_of_loops_s), Short, |one| -> Option<f64> {
            one.members.iter().map(|member| member.cpu_s).sum()
        })
        .col(say!(machine_busy_percent_2), Percent, |one| {
            let busy = one.own().filter_map(|member| Some(member.host_load?.cpu_share));
            mean(&busy.collect::<Vec<_>>())
        })
}
