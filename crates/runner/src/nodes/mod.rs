//! The surroundings of a trial: the nodes of its target before, meanwhile and after.
//!
//! Nothing here can fail a run: what can't be read is listed and stays unknown.
//!
//! Each node is looked at and sampled by itself, an endpoint only for the way to it: its counters are those
//! of whoever answers. What a replica applies is in none of its counts; positions (GTIDs) say how many
//! commits that were. Client and servers are compared by the sum over all nodes, since no one knows which
//! node took which transaction. Embedded databases are not sampled: another session would be in the way.

use crate::databases::{self, Database, ReachedDatabase, ReachedNode};
use crate::watch::{WatchedNode, trial_verdict};
use dyno_core::{AdminSession, AnswerTable, DbError, Dialect, Nanos, SECOND};
use dyno_drivers::postgres::sessions_opened;
use dyno_engine::record::{MeasuredInterval, Phase};
use dyno_facts::{
    Conditions, Counts, Freshness, Measures, Message, NodeConditions, NodeFacts, Role, Route,
    ServerFacts, StatementCounts, TargetFacts, Together, TrialSummary,
};
use dyno_load::LostNode;
use dyno_observe::{
    Asked, NodeLook, ServerProcess, ServerUsage, ServerWindow, commits_grown, glance, look,
    node_conditions, server_restarted, was_alone,
};
use dyno_reactor::{monotonic_now, now, sleep_until};
pub(super) use sampling::{EndOnDrop, Sampling, sample_during};
use std::collections::BTreeMap;
use std::time::Duration;

mod replicas;
mod sampling;

/// Time limit for all questions before or after a trial.
const PATIENCE: Nanos = 60 * SECOND;

pub(crate) struct Nodes<'a> {
    /// Sorted in the order of the plan, at least one.
    list: &'a [ReachedNode],
    /// The name of the only node, if the plan lists none.
    unlisted: Option<String>,
    /// The target as the load reaches it.
    load: &'a Database,
    /// Its address for people, without a password.
    pub(super) address: String,
    route: Route,
    tables: Vec<String>,
    pub(super) watched: Vec<WatchedNode>,
    /// Set if they are sampled while the trial runs.
    is_sampled: bool,
}

pub(super) struct NodeSnapshot {
    look: NodeLook,
    away: Option<Message>,
    /// Sessions that dyno had opened by then.
    opened: u64,
}

#[derive(Default)]
pub(crate) struct NodeObservations {
    /// Sorted in the order of the nodes; empty if no one looked.
    nodes: Vec<ServerWindow>,
    usages: Vec<NodeUse>,
    freshness: Option<Freshness>,
}

impl NodeObservations {
    /// Leaves statements of dyno's own, by the nodes that they were sent to, out of what these counted.
    pub(super) fn leave_out(&mut self, asked: &BTreeMap<usize, Asked>) {
        let required_len = asked.keys().next_back().map_or(0, |node| node + 1);
        self.nodes.resize(self.nodes.len().max(required_len), ServerWindow::default());
        for (node, asked) in asked {
            self.nodes[*node].asked += *asked;
        }
    }
}

impl<'a> Nodes<'a> {
    /// The nodes of `target`, which has been reached and which the plan has as `planned`. `tables` are those
    /// that transactions work on.
    pub(super) fn new(
        target: &str,
        planned: Option<&TargetFacts>,
        reached: &'a ReachedDatabase,
        tables: Vec<String>,
        is_sampled: bool,
    ) -> Self {
        let is_listed = planned.is_some_and(|planned| !planned.nodes.is_empty());
        let unlisted = (!is_listed).then(|| target.to_owned());
        let list = &reached.nodes[..];
        let route = planned.map(|planned| planned.route).unwrap_or_default();
        let load = &reached.database;
        let watched = WatchedNode::from_database(reached);
        let folder = planned.and_then(|planned| planned.nodes.first()?.cluster.as_ref());
        let address = match folder {
            Some(folder) => format!("cluster:{folder}"),
            None => planned.map(|planned| planned.url.to_string()).unwrap_or_default(),
        };
        Nodes { list, unlisted, load, address, route, tables, watched, is_sampled }
    }

    /// The name of a node in the paper.
    fn name<'n>(&'n self, node: &'n ReachedNode) -> &'n str {
        self.unlisted.as_ref().unwrap_or(&node.name)
    }

    pub(super) fn snapshot_all(&self) -> Vec<NodeSnapshot> {
        // Some node behind an endpoint counts the statements sent to it: it goes first.
        let mut snapshots: Vec<Option<NodeSnapshot>> = self
            .list
            .iter()
            .map(|node| self.is_passthrough(node).then(|| snapshot(node, None, false)))
            .collect();
        for (node, slot) in self.list.iter().zip(&mut snapshots) {
            slot.get_or_insert_with(|| snapshot(node, Some(&self.tables), false));
        }
        snapshots.into_iter().flatten().collect()
    }

    /// Looks at them after a trial, once the sessions of the trial have left them; what they refused to say meanwhile
    /// is listed with the rest. No node is queried if one is `gone`: others may hang with it.
    pub(super) fn snapshot_after(
        &self,
        observations: &NodeObservations,
        gone: Option<&LostNode>,
    ) -> Vec<NodeSnapshot> {
        let mut snapshots = Vec::with_capacity(self.list.len());
        for (index, node) in self.list.iter().enumerate() {
            if gone.is_some() || self.is_passthrough(node) {
                let away = gone.filter(|gone| gone.sight.name == node.name).map(trial_verdict);
                snapshots.push(NodeSnapshot { look: NodeLook::default(), away, opened: 0 });
                continue;
            }
            let mut snapshot = snapshot(node, Some(&self.tables), true);
            if let Some(window) = observations.nodes.get(index) {
                snapshot.look.facts.not_readable.extend(window.not_readable.iter().cloned());
            }
            snapshots.push(snapshot);
        }
        snapshots
    }

    /// The facts of the servers by their names in the paper; endpoints have none.
    pub(super) fn facts(&self, snapshots: &[NodeSnapshot]) -> NodeFacts {
        let nodes = self.list.iter().zip(snapshots).filter(|(node, _)| !self.is_passthrough(node));
        nodes
            .map(|(node, snapshot)| (self.name(node).to_owned(), snapshot.look.facts.clone()))
            .collect()
    }

    /// The conditions of the nodes around a trial in which `measured` was found. `client` is what the client did
    /// from the first look to the second, if that is known.
    pub(super) fn surround(
        &self,
        dialect: Dialect,
        (before, after): (&[NodeSnapshot], &[NodeSnapshot]),
        observations: &NodeObservations,
        client: Option<&Client>,
        measured: &TrialSummary,
    ) -> Conditions {
        let empty_window = ServerWindow::default();
        let generator = measured.conditions.generator.clone();
        let mut conditions = Conditions { generator, ..Conditions::default() };
        let (mut commits, mut rollbacks) = (Some(0), Some(0));
        for (index, ((node, before), after)) in self.list.iter().zip(before).zip(after).enumerate()
        {
            let usage = observations.usages.get(index).and_then(Option::as_ref);
            let window = observations.nodes.get(index).unwrap_or(&empty_window);
            let mut observed = node_conditions(&before.look.state, &after.look.state, window);
            if let Some((measures, process)) = usage {
                observed.measures.extend(measures);
                observed.cpu_of = Some(process.clone());
            }
            observed.cpu_share = node.same_host.then_some(measured.generator.host.cpu_share);
            observed.down = observed.down.take().or_else(|| node_death(node, before, after));
            let node_commits = commits_grown(&before.look.state, &after.look.state, window);
            if self.unlisted.is_none() {
                self.set_cluster_fields(node, &mut observed);
                // That a node has none is worth knowing alongside others.
                observed.commits = node_commits;
            }
            if !self.is_passthrough(node) {
                commits = commits.zip(node_commits).map(|(sum, node_commits)| sum + node_commits);
                rollbacks = rollbacks.zip(observed.rollbacks).map(|(sum, count)| sum + count);
            }
            conditions.nodes.insert(self.name(node).to_owned(), observed);
        }
        self.raise_replica_lags(observations, &mut conditions.nodes);
        let unplaced = self.unplaced(observations);
        let freshness = observations.freshness.clone();
        conditions.freshness = freshness.map(|freshness| Freshness { unplaced, ..freshness });
        // Autocommit is not a commit to MySQL.
        let own_commits = if dialect == Dialect::Postgres { unplaced } else { 0 };
        let commits =
            commits.map(|sum: u64| sum.saturating_sub(own_commits)).filter(|&sum| sum > 0);
        let counts = client.zip(rollbacks);
        let unknown = counts.map(|(client, sum)| client.unknown_rollbacks(sum, measured.in_flight));
        let missing = client
            .map(|client| client.explicit_transactions().saturating_sub(commits.unwrap_or(0)));
        let client = client.map(|client| client.commits(dialect, measured.in_flight));
        let preparing_commits = preparing_commits(dialect, measured.workers, self.tables.len());
        // A transaction of two shards is committed on both, and by XA, which servers count apart.
        let is_sharded = self.list.iter().any(|node| node.role == Role::Shard);
        let client = client.filter(|client| commits.is_some() && *client > 0 && !is_sharded);
        let is_server = self.has_several_nodes() || self.list[0].role != Role::Endpoint;
        conditions.unknown_rollbacks = unknown.filter(|_| is_server && !is_sharded);
        if self.has_several_nodes() {
            let through_endpoint = self.list.iter().any(|node| node.role == Role::Endpoint);
            conditions.together = Some(Together {
                commits,
                client_commits: client,
                preparing_commits,
                through_endpoint,
            });
        } else if let Some(only) = conditions.nodes.get_mut(self.name(&self.list[0])) {
            // Each question to an endpoint may be answered by another node.
            only.client_commits = client.filter(|_| is_server);
            only.transactions_elsewhere = only.transactions_elsewhere.filter(|_| is_server);
            only.preparing_commits = preparing_commits;
            if let (Some(before), Some(after)) = (before.first(), after.first()) {
                let opened = after.opened.saturating_sub(before.opened);
                let (before, after) = (&before.look.state, &after.look.state);
                let window = observations.nodes.first().unwrap_or(&empty_window);
                only.was_alone = was_alone(before, after, window, opened);
            }
        }
        // Others may have rolled back what is theirs: then no commits are missing.
        if !conditions.nodes.values().all(|node| node.was_alone) {
            conditions.unknown_rollbacks = conditions.unknown_rollbacks.min(missing);
        }
        conditions
    }

    /// Statements of dyno's own that went through an endpoint: some node behind it has counted them.
    fn unplaced(&self, observations: &NodeObservations) -> u64 {
        let endpoints =
            self.list.iter().zip(&observations.nodes).filter(|(node, _)| self.is_passthrough(node));
        endpoints.map(|(_, window)| window.asked.all).sum()
    }

    /// Sets what only holds if a node may be one of several.
    fn set_cluster_fields(&self, node: &ReachedNode, found: &mut NodeConditions) {
        found.role = Some(node.role.name().to_owned());
        match node.role {
            // Each listed copy speaks for itself.
            Role::Primary if self.has_several_nodes() => {
                (found.lag_max_s, found.lag_p95_s) = (None, None)
            }
            // No commit is acknowledged there.
            Role::ReadOnly => found.acknowledged_by = None,
            Role::Primary | Role::Endpoint | Role::Shard => {}
        }
    }

    /// A primary sees of its replicas what they don't know themselves: what they have not received.
    fn raise_replica_lags(
        &self,
        observations: &NodeObservations,
        nodes: &mut BTreeMap<String, NodeConditions>,
    ) {
        let primaries = self.list.iter().zip(&observations.nodes);
        let primaries = primaries.filter(|(node, _)| node.role == Role::Primary);
        for (name, lags_s) in primaries.flat_map(|(_, window)| &window.lags_s) {
            let is_replica =
                self.list.iter().any(|node| node.role == Role::ReadOnly && node.name == *name);
            let Some(replica) = nodes.get_mut(name).filter(|_| is_replica) else {
                continue;
            };
            let window = ServerWindow {
                lags_s: [(name.clone(), lags_s.clone())].into(),
                ..ServerWindow::default()
            };
            let reported = node_conditions(&Default::default(), &Default::default(), &window);
            if reported.lag_max_s > replica.lag_max_s {
                (replica.lag_max_s, replica.lag_p95_s) = (reported.lag_max_s, reported.lag_p95_s);
            }
        }
    }

    fn has_several_nodes(&self) -> bool {
        self.list.len() > 1
    }

    /// Returns true for an endpoint whose nodes are known: they count, it would count them twice.
    fn is_passthrough(&self, node: &ReachedNode) -> bool {
        self.has_several_nodes() && node.role == Role::Endpoint
    }
}

/// The reason why a node was not there all the time, by the snapshots before a trial and after it.
fn node_death(node: &ReachedNode, before: &NodeSnapshot, after: &NodeSnapshot) -> Option<Message> {
    // An endpoint may have led to another server; those that are back look as if nothing had happened.
    let (old, new) = (&before.look.state.sample, &after.look.state.sample);
    let is_new = node.role != Role::Endpoint && new.was_started_after(old);
    let away = before.away.as_ref().or(after.away.as_ref());
    away.cloned().or_else(|| is_new.then(server_restarted))
}

/// Looks at a node; a server that can't be queried (it may have been killed) is noted as such. Without `tables` only
/// the way to it is looked at.
fn snapshot(node: &ReachedNode, tables: Option<&[String]>, is_after: bool) -> NodeSnapshot {
    let answer = databases::ask_within(&node.database.admin(), PATIENCE, async |session| {
        let Some(tables) = tables else { return glance(session).await };
        if is_after {
            wait_for_statistics(session).await?;
        }
        look(session, tables).await
    });
    let (look, away) = match answer {
        Ok(mut look) => {
            let server = tables.and_then(|_| node.server.process());
            let storage = server.map(|server| server.storage(&look.facts.settings));
            look.facts.settings.extend(storage.unwrap_or_default());
            (look, None)
        }
        Err(error) => {
            let away = Message::from(error.to_string());
            let not_readable = vec![away.clone()];
            let facts = ServerFacts { not_readable, ..ServerFacts::default() };
            // A user who does not wait for the look says nothing about the node.
            let is_stopped = error.message() == databases::STOPPED;
            (NodeLook { facts, ..NodeLook::default() }, Some(away).filter(|_| !is_stopped))
        }
    };
    NodeSnapshot { look, away, opened: sessions_opened() }
}

/// Waits, a second at most, until the sessions that have just been closed are in the statistics:
/// PostgreSQL counts the last transactions of a session when its process ends.
async fn wait_for_statistics(session: &mut AdminSession<'_>) -> Result<(), DbError> {
    const STEP: Nanos = SECOND / 10;
    if session.dialect() != Dialect::Postgres || !session.capabilities().server_views {
        return Ok(());
    }
    let query = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()";
    let mut last = None;
    for _ in 0..8 {
        let mut table = AnswerTable::default();
        if let Err(error) = session.query(query, &mut table).await {
            return if error.is_fatal() { Err(error) } else { Ok(()) };
        }
        let count = table.single().map(str::to_owned);
        if count == last {
            return Ok(());
        }
        last = count;
        sleep_until(now() + STEP).await;
    }
    Ok(())
}

/// The work of the client in all intervals, warm-up among them, by kind of transaction.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Client {
    kinds: Vec<(u64, StatementCounts)>,
    /// Transactions rolled back, and attempts that failed.
    rolled_back: u64,
    /// Transactions that failed, and sessions that were lost.
    unanswered: u64,
    /// The last phase, and what was counted in it.
    phase: Option<Phase>,
    counts: Counts,
    rolls_back_reads: bool,
}

impl Client {
    /// `rolls_back_reads` is true where transactions that only read end with ROLLBACK: no server counts
    /// them as commits.
    pub(crate) fn new(rolls_back_reads: bool) -> Self {
        Client { rolls_back_reads, ..Client::default() }
    }

    /// Adds an interval; one of another phase begins the counts in flight again.
    pub(crate) fn add(&mut self, interval: &MeasuredInterval) {
        self.kinds.resize(interval.frame.kinds.len(), Default::default());
        // What is in flight when the window opens is started in it.
        if self.phase.replace(interval.phase) != Some(interval.phase) {
            self.counts = Counts::default();
        }
        for ((committed, statements), kind) in self.kinds.iter_mut().zip(&interval.frame.kinds) {
            *committed += kind.counts.committed;
            let counts = kind.counts;
            self.rolled_back += counts.rolled_back + counts.failed + counts.retries;
            self.unanswered += counts.failed + counts.reconnects;
            self.counts.add(&counts);
            statements.reads += kind.work.reads;
            statements.writes += kind.work.writes;
            statements.others += kind.work.others;
            statements.misses += kind.work.misses;
            statements.rows_written += kind.work.rows_written;
        }
    }

    /// Committed transactions of each kind.
    pub(crate) fn committed(&self) -> impl Iterator<Item = u64> {
        self.kinds.iter().map(|(committed, _)| *committed)
    }

    /// Transactions that may have been committed without an answer: those in flight at the end, also of a trial that
    /// was aborted in its warm-up, those that failed, and those of lost sessions.
    pub(crate) fn unanswered(&self) -> u64 {
        self.unanswered + self.counts.in_flight()
    }

    /// The number of transactions among those that the servers rolled back of which the client knows nothing. One that
    /// only read loses nothing.
    fn unknown_rollbacks(&self, rollbacks: u64, in_flight: u64) -> u64 {
        let read_only = self.kinds.iter().filter(|(_, statements)| {
            statements.writes + statements.misses + statements.rows_written == 0
        });
        let reads: u64 = read_only.map(|(committed, _)| committed).sum();
        rollbacks.saturating_sub(self.rolled_back + reads + in_flight)
    }

    /// Transactions with a beginning and an end, also several within one that counts as committed.
    fn explicit_transactions(&self) -> u64 {
        let transactions = self.kinds.iter().map(|&(committed, statements)| {
            let controls = statements.others.saturating_sub(statements.misses);
            if controls as f64 >= 0.9 * committed as f64 { committed.max(controls / 2) } else { 0 }
        });
        transactions.sum()
    }

    /// Commits as a server counts them. Those in flight when the window closed are ended before the second look.
    fn commits(&self, dialect: Dialect, in_flight: u64) -> u64 {
        let commits = self.kinds.iter().map(|&(committed, statements)| {
            let controls = statements.others.saturating_sub(statements.misses);
            let is_explicit = controls as f64 >= 0.9 * committed as f64;
            let only_reads = statements.writes + statements.misses == 0;
            match (is_explicit, dialect) {
                (true, _) if self.rolls_back_reads && only_reads => 0,
                (true, _) => committed,
                // Without COMMIT, each statement is a commit to PostgreSQL, and none to MySQL.
                (false, Dialect::Postgres) => statements.total(),
                (false, Dialect::Mysql | Dialect::Sqlite) => 0,
            }
        });
        commits.sum::<u64>() + in_flight
    }
}

/// Commits that PostgreSQL may count for sessions that connect and prepare: workloads prepare up to nine
/// statements per table, and a few more.
fn preparing_commits(dialect: Dialect, workers: u32, tables: usize) -> u64 {
    match dialect {
        Dialect::Postgres => u64::from(workers) * (9 * tables as u64 + 20),
        Dialect::Mysql | Dialect::Sqlite => 0,
    }
}

/// Longest sleep of the thread before it looks whether the trial is over.
const LOOK: Nanos = 20_000_000;

/// Counters of a node on this machine in the window, and a description of the process tree that they cover.
type NodeUse = Option<(Measures, String)>;

/// Waits for the window and counts what each node uses in it.
fn watch_usage(nodes: &Nodes<'_>, sampling: &Sampling) -> Vec<NodeUse> {
    let Some(window) = sampling.wait_for_window() else { return Vec::new() };
    // Searched for before the window opens: that takes some milliseconds.
    let processes: Vec<Option<ServerProcess>> =
        nodes.list.iter().map(|node| node.server.process()).collect();
    // If nodes share a process, no one knows which one used what.
    let exclusive = processes.iter().map(|process| {
        let process = process.as_ref()?;
        let nodes = processes.iter().flatten().filter(|other| *other == process).count();
        (nodes == 1).then_some(process)
    });
    let exclusive: Vec<Option<&ServerProcess>> = exclusive.collect();
    // Sessions end with the window, and what their processes counted may end with them.
    let length = window.closes - window.opens;
    let closes = window.closes - LOOK.min(length / 10);
    let (first, last) = (
        UsageLook::at_moment(&exclusive, window.opens, sampling),
        UsageLook::at_moment(&exclusive, closes, sampling),
    );
    let pairs = first.nodes.iter().zip(&last.nodes);
    let mut pairs = pairs.filter_map(|(before, after)| before.as_ref().zip(after.as_ref()));
    // What one of them uses makes the sum known well enough.
    let is_known = pairs.any(|(before, after)| after.used_s(before).is_some());
    let usages =
        last.since(&first, length).into_iter().zip(&last.nodes).map(|(measures, after)| {
            measures.zip(after.as_ref().map(ServerUsage::counted)).filter(|_| is_known)
        });
    usages.collect()
}

/// Counters of the nodes at one moment.
struct UsageLook {
    due: Nanos,
    at: Nanos,
    nodes: Vec<Option<ServerUsage>>,
}

impl UsageLook {
    /// The counters of these processes at `due`, or at the end of the trial.
    fn at_moment(
        processes: &[Option<&ServerProcess>],
        due: Nanos,
        sampling: &Sampling,
    ) -> UsageLook {
        wait_until(due, sampling);
        // Looked for first: this thread may have woken late, like any other.
        let at = monotonic_now();
        let nodes = processes.iter().map(|process| (*process)?.usage()).collect();
        UsageLook { due, at, nodes }
    }

    /// Growth of each node's counters since `before`, scaled to `length`, because looks may be late.
    fn since(&self, before: &UsageLook, length: Nanos) -> Vec<Option<Measures>> {
        let share = if self.at >= self.due {
            length as f64 / (self.at - before.at).max(1) as f64
        } else {
            1.0
        };
        let pairs = before.nodes.iter().zip(&self.nodes);
        let growths = pairs
            .map(|(before, after)| Some(after.as_ref()?.since(before.as_ref()?)?.scaled(share)));
        growths.collect()
    }
}

/// Until a moment, or the end of the trial.
fn wait_until(due: Nanos, sampling: &Sampling) {
    loop {
        let now = monotonic_now();
        if now >= due || sampling.is_over() {
            break;
        }
        std::thread::sleep(Duration::from_nanos((due - now).min(LOOK)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::databases::ServerPlace;
    use dyno_drivers::target::TargetUrl;
    use dyno_engine::record::Frame;
    use dyno_facts::{CommitWait, StatementCounts};
    use dyno_observe::{NodeState, Sample};

    const ROLES: [(&str, Role); 4] = [
        ("all", Role::Endpoint),
        ("n1", Role::Primary),
        ("n2", Role::ReadOnly),
        ("n3", Role::ReadOnly),
    ];

    /// No query is ever sent there.
    fn database() -> Database {
        let target = "mysql://dyno@127.0.0.1:1/dyno".parse::<TargetUrl>().expect("a URL");
        Database::open(&target).expect("an address")
    }

    fn new_list(database: &Database, roles: &[(&str, Role)]) -> &'static [ReachedNode] {
        let nodes = roles.iter().map(|(name, role)| ReachedNode {
            name: (*name).to_owned(),
            role: *role,
            database: database.clone(),
            facts: ServerFacts::default(),
            same_host: false,
            server: ServerPlace::Unknown,
        });
        Vec::leak(nodes.collect())
    }

    fn new_nodes(database: &Database) -> Nodes<'_> {
        Nodes {
            list: new_list(database, &ROLES),
            unlisted: None,
            load: database,
            address: String::new(),
            route: Route::Endpoint,
            tables: Vec::new(),
            watched: Vec::new(),
            is_sampled: true,
        }
    }

    fn snapshot_with(commits: u64, replicated: Option<u64>) -> NodeSnapshot {
        let sample = Sample { commits: Some(commits), replicated, ..Sample::default() };
        let acknowledged_by = Some(CommitWait::Local("local".into()));
        let state = NodeState { sample, acknowledged_by, ..NodeState::default() };
        NodeSnapshot { look: NodeLook { state, ..NodeLook::default() }, away: None, opened: 0 }
    }

    fn empty_snapshot() -> NodeSnapshot {
        NodeSnapshot { look: NodeLook::default(), away: None, opened: 0 }
    }

    /// `commits` of explicit transactions.
    fn client(commits: u64) -> Client {
        let statements = StatementCounts { others: 2 * commits, ..StatementCounts::default() };
        let mut client = Client::new(false);
        client.kinds.push((commits, statements));
        client
    }

    #[test]
    fn nodes_are_compared_with_the_client_together_and_endpoints_count_nothing() {
        let database = database();
        let nodes = new_nodes(&database);
        let before = [
            empty_snapshot(),
            snapshot_with(100, None),
            snapshot_with(10, Some(5)),
            snapshot_with(10, Some(5)),
        ];
        let mut after = [
            empty_snapshot(),
            snapshot_with(1100, None),
            snapshot_with(510, Some(305)),
            snapshot_with(12, Some(5)),
        ];
        after[3].away = Some("it is gone".into());
        let mut observations = NodeObservations {
            nodes: vec![ServerWindow::default(); 4],
            ..NodeObservations::default()
        };
        // The primary knows of one replica more than that itself.
        observations.nodes[1].lags_s.insert("n2".to_owned(), vec![0.5, 3.0]);
        observations.nodes[1].lags_s.insert("elsewhere".to_owned(), vec![9.0]);
        observations.nodes[2].lags_s.insert("itself".to_owned(), vec![0.0, 1.0]);
        observations.nodes[3].lags_s.insert("itself".to_owned(), vec![2.0]);
        let (looks, measured) = ((&before[..], &after[..]), TrialSummary::default());
        let conditions =
            nodes.surround(Dialect::Mysql, looks, &observations, Some(&client(1200)), &measured);
        let per_node = &conditions.nodes;
        let commits = ["all", "n1", "n2", "n3"].map(|name| per_node[name].commits);
        assert_eq!(commits, [None, Some(1000), Some(200), Some(2)]);
        let together = conditions.together.as_ref().expect("several nodes");
        assert_eq!((together.commits, together.client_commits), (Some(1202), Some(1200)));
        assert!(together.through_endpoint);
        assert!(per_node.values().all(|node| node.client_commits.is_none()));
        let lags_s = ["n1", "n2", "n3"].map(|name| per_node[name].lag_max_s);
        assert_eq!(lags_s, [None, Some(3.0), Some(2.0)]);
        assert_eq!(per_node["n1"].acknowledged_by.as_ref().unwrap().words(), &"local");
        assert_eq!(per_node["n2"].acknowledged_by, None, "no commit is acknowledged there");
        assert_eq!(per_node["n2"].role.as_deref(), Some("read_only"));
        assert_eq!(per_node["n3"].down.as_ref().unwrap(), &"it is gone");
        let facts: Vec<String> = nodes.facts(&before).into_keys().collect();
        assert_eq!(facts, ["n1", "n2", "n3"], "an endpoint has no settings itself");
    }

    #[test]
    fn a_later_start_is_a_restart_but_not_behind_an_endpoint() {
        let database = database();
        let mut nodes = new_nodes(&database);
        // Behind an endpoint another server may have answered.
        for (role, started_s, is_down) in
            [(Role::Primary, 8.0, true), (Role::Primary, 3.0, false), (Role::Endpoint, 8.0, false)]
        {
            nodes.list = new_list(&database, &[("n1", role)]);
            let [before, after] = [3.0, started_s].map(|started_s| {
                let mut snapshot = empty_snapshot();
                snapshot.look.state.sample.started_s = Some((started_s, started_s));
                [snapshot]
            });
            let (observations, measured) = (NodeObservations::default(), TrialSummary::default());
            let looks = (&before[..], &after[..]);
            let conditions = nodes.surround(Dialect::Mysql, looks, &observations, None, &measured);
            assert_eq!(conditions.nodes["n1"].down.is_some(), is_down, "{role:?}");
        }
    }

    #[test]
    fn own_statements_are_left_out_where_it_is_known_who_executed_them() {
        let database = database();
        let nodes = new_nodes(&database);
        fn with_counts(commits: u64) -> NodeSnapshot {
            let mut snapshot = snapshot_with(commits, None);
            let sample = &mut snapshot.look.state.sample;
            (sample.reads, sample.writes, sample.statements) =
                (Some(commits), Some(commits), Some(2 * commits));
            sample.counts_own_commits = true;
            snapshot
        }
        let before = [empty_snapshot(), with_counts(100), with_counts(100), with_counts(100)];
        let after = [empty_snapshot(), with_counts(600), with_counts(600), with_counts(600)];
        let mut observations = NodeObservations {
            freshness: Some(Freshness::default()),
            ..NodeObservations::default()
        };
        let statements = [(0, [7, 4, 2]), (1, [5, 0, 3]), (2, [10, 8, 0])];
        let statements =
            statements.map(|(node, [all, reads, writes])| (node, Asked { all, reads, writes }));
        observations.leave_out(&statements.into());
        let looks = (&before[..], &after[..]);
        let surround =
            |dialect| nodes.surround(dialect, looks, &observations, None, &TrialSummary::default());
        let conditions = surround(Dialect::Postgres);
        for (name, counts) in [
            ("n1", [500, 497, 995, 495]),
            ("n2", [492, 500, 990, 490]),
            ("n3", [500, 500, 1000, 500]),
        ] {
            let node = &conditions.nodes[name];
            let measured = [node.reads, node.writes, node.statements, node.commits];
            assert_eq!(measured, counts.map(Some), "{name}");
        }
        // Somebody behind the endpoint has counted these.
        assert_eq!(conditions.freshness.expect("looked at").unplaced, 7);
        assert_eq!(conditions.together.expect("several").commits, Some(495 + 490 + 500 - 7));
        let together = surround(Dialect::Mysql).together.expect("several");
        assert_eq!(together.commits, Some(495 + 490 + 500));
    }

    #[test]
    fn a_single_node_is_compared_by_itself() {
        let database = database();
        let mut nodes = new_nodes(&database);
        nodes.list = new_list(&database, &ROLES[1..2]);
        nodes.unlisted = Some("n1".to_owned());
        let (mut before, mut after) = ([snapshot_with(0, None)], [snapshot_with(1000, None)]);
        before[0].look.state.sample.transactions_elsewhere = Some(10);
        after[0].look.state.sample.transactions_elsewhere = Some(610);
        let looks = (&before[..], &after[..]);
        let (observations, measured) = (NodeObservations::default(), TrialSummary::default());
        let client = client(990);
        let conditions =
            nodes.surround(Dialect::Mysql, looks, &observations, Some(&client), &measured);
        let node = &conditions.nodes["n1"];
        assert_eq!((node.commits, node.client_commits), (Some(1000), Some(990)));
        assert_eq!(node.transactions_elsewhere, Some(600));
        assert_eq!((&node.role, &conditions.together), (&None, &None));
        nodes.list = new_list(&database, &[("n1", Role::Endpoint)]);
        let conditions =
            nodes.surround(Dialect::Mysql, looks, &observations, Some(&client), &measured);
        let node = &conditions.nodes["n1"];
        let counts = (node.client_commits, node.transactions_elsewhere);
        assert_eq!(counts, (None, None), "no one knows who answered");
    }

    #[test]
    fn freshness_is_looked_at_where_reads_may_go_elsewhere_than_writes() {
        let database = database();
        let mut nodes = new_nodes(&database);
        let routes = [Route::Primary, Route::Endpoint, Route::Split, Route::Spread];
        let probed = routes.map(|route| {
            nodes.route = route;
            nodes.is_probed()
        });
        assert_eq!(probed, [false, true, true, true]);
        nodes.list = new_list(&database, &[ROLES[0], ROLES[2], ROLES[3]]);
        nodes.route = Route::Spread;
        assert!(!nodes.is_probed(), "nothing can be written");
        nodes.list = new_list(&database, &ROLES[..1]);
        nodes.route = Route::Endpoint;
        assert!(!nodes.is_probed(), "no one knows whether there are read-only nodes");
    }

    fn client_with(committed: u64, reads: u64, others: u64, misses: u64) -> Client {
        let statements = StatementCounts { reads, others, misses, ..StatementCounts::default() };
        Client { kinds: vec![(committed, statements)], ..Client::new(false) }
    }

    #[test]
    fn statements_outside_of_transactions_are_commits_to_postgres_only() {
        fn commits_by_dialect(client: Client) -> [u64; 2] {
            [Dialect::Postgres, Dialect::Mysql].map(|dialect| client.commits(dialect, 3))
        }
        // BEGIN, ten reads, COMMIT.
        assert_eq!(commits_by_dialect(client_with(100, 1000, 200, 0)), [103, 103]);
        // One read each.
        assert_eq!(commits_by_dialect(client_with(100, 100, 0, 0)), [103, 3]);
        // Ten reads each, without BEGIN and COMMIT.
        assert_eq!(commits_by_dialect(client_with(100, 1000, 0, 0)), [1003, 3]);
        // Updates that met no row are not controls.
        assert_eq!(commits_by_dialect(client_with(100, 1000, 90, 90)), [1093, 3]);
    }

    #[test]
    fn transactions_without_an_answer_may_be_committed() {
        let mut client = Client::new(false);
        for (phase, [started, committed, failed], unanswered) in [
            // It may be aborted here.
            (Phase::WarmUp, [31, 27, 1], 4),
            // The three in flight are started once more when the window opens.
            (Phase::Measured, [13, 10, 0], 4),
            (Phase::Measured, [5, 8, 0], 1),
        ] {
            let mut frame = Frame::new(1, false);
            frame.kinds[0].counts = Counts { started, committed, failed, ..Counts::default() };
            let (begins_s, length_s, host) = Default::default();
            client.add(&MeasuredInterval { phase, index: 0, begins_s, length_s, frame, host });
            assert_eq!(client.unanswered(), unanswered, "{started}");
        }
    }

    #[test]
    fn transactions_that_are_rolled_back_by_profile_are_no_commits() {
        let writes = StatementCounts { writes: 500, others: 100, ..StatementCounts::default() };
        let mut client = client_with(40, 40, 40, 0);
        client.kinds.push((100, writes));
        assert_eq!(client.commits(Dialect::Mysql, 0), 140);
        client.rolls_back_reads = true;
        assert_eq!(client.commits(Dialect::Mysql, 0), 100);
    }

    #[test]
    fn rollbacks_are_unknown_where_the_client_counts_commits_of_changes() {
        let writes = StatementCounts { writes: 100, others: 200, ..StatementCounts::default() };
        let mut client = Client { kinds: vec![(100, writes)], ..Client::new(false) };
        client.rolled_back = 5;
        assert_eq!([100, 107].map(|rollbacks| client.unknown_rollbacks(rollbacks, 2)), [93, 100]);
        // BEGIN, a query, ROLLBACK.
        client.kinds.push(client_with(50, 50, 100, 0).kinds[0]);
        assert_eq!([55, 60].map(|rollbacks| client.unknown_rollbacks(rollbacks, 0)), [0, 5]);
        // Two transactions in each that counts.
        client.kinds[0].1.others = 400;
        client.kinds.push(client_with(70, 70, 0, 0).kinds[0]);
        assert_eq!(client.explicit_transactions(), 250);
    }

    #[test]
    fn rollbacks_of_others_miss_no_commits() {
        let database = database();
        let mut nodes = new_nodes(&database);
        nodes.list = new_list(&database, &ROLES[1..2]);
        let unknown_rollbacks = [1000, 90].map(|commits| {
            let (mut before, mut after) =
                ([snapshot_with(0, None)], [snapshot_with(commits, None)]);
            before[0].look.state.sample.rollbacks = Some(0);
            after[0].look.state.sample.rollbacks = Some(900);
            let writes = StatementCounts { writes: 990, others: 1980, ..Default::default() };
            let client = Client { kinds: vec![(990, writes)], ..Client::new(false) };
            let (looks, measured) = ((&before[..], &after[..]), TrialSummary::default());
            let observations = NodeObservations::default();
            nodes
                .surround(Dialect::Mysql, looks, &observations, Some(&client), &measured)
                .unknown_rollbacks
        });
        assert_eq!(unknown_rollbacks, [Some(0), Some(900)]);
    }

    #[test]
    fn preparing_counts_where_each_statement_is_a_commit() {
        assert_eq!(preparing_commits(Dialect::Postgres, 4, 2), 152);
        assert_eq!(preparing_commits(Dialect::Mysql, 4, 2), 0);
    }
}
