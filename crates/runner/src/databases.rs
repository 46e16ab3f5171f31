//! From a URL to a driver: one server, the nodes of a plan's target, or a cluster of `dyno cluster` (`cluster:FOLDER`
//! where a URL is taken).

use crate::failure::{Failure, Result, sentence};
use crate::output::Streams;
use crate::signals::unless_stopped;
use crate::{output, watch};
use dyno_core::{
    Address, AdminDriver, AdminSession, Cause, DbError, Dialect, MILLISECOND, Nanos, SECOND,
    ShardRule,
};
pub use dyno_drivers::Database;
use dyno_drivers::route::NodeRouting;
use dyno_drivers::target::{Secret, TargetUrl, find_password};
use dyno_facts::{Role, Route, SecretUrl, ServerFacts, TargetFacts, TargetNode};
use dyno_load::query::answer_if_any;
use dyno_load::{StallTimeouts, doing};
use dyno_observe::{ServerProcess, follows, read_facts};
use dyno_reactor::{block_on, monotonic_now, now, sleep_until, timeout};
use dyno_suite::{Overrides, Plan, Suite, SuiteError};
use dyno_topology::{Cluster, ClusterError};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process;
use std::rc::Rc;

pub async fn server_facts(driver: &AdminDriver<'_>) -> Result<ServerFacts, DbError> {
    let within = StallTimeouts::default().says_after;
    in_session(driver, async |session| read_facts(session, within).await).await
}

/// The error of what a signal has ended.
pub const STOPPED: &str = "stopped by the user";

/// Does something in its own session, which ends soon after Ctrl-C, also where the server hangs.
pub async fn in_session<T, E: From<DbError>>(
    driver: &AdminDriver<'_>,
    work: impl AsyncFnOnce(&mut AdminSession<'_>) -> Result<T, E>,
) -> Result<T, E> {
    // In a box: what calls this is moved around, and a driver's connecting takes tens of kilobytes.
    let task = Box::pin(async {
        let connected = unless_stopped(driver.connect(0)).await;
        let mut session = connected.ok_or_else(stopped)??;
        dyno_load::opened(&session);
        doing("waiting for an answer");
        match unless_stopped(work(&mut session)).await {
            Some(result) => {
                unless_stopped(session.close()).await;
                result
            }
            None => {
                dyno_load::cancel(session).await;
                Err(stopped().into())
            }
        }
    });
    watch::note_waiting("connecting", task).await
}

/// The error of a question that no one waits for any more: the user has stopped it, or a server is lost.
pub fn stopped() -> DbError {
    DbError::workload(watch::given_up().unwrap_or_else(|| STOPPED.to_owned()))
}

/// Runs a short task on its own loop.
pub fn run<T>(task: impl Future<Output = Result<T, DbError>>) -> Result<T, DbError> {
    block_on(task).unwrap_or_else(|error| Err(DbError::unreachable(error.to_string())))
}

/// Asks something in its own session; no one waits for that longer than `within`.
pub fn ask_within<T>(
    driver: &AdminDriver<'_>,
    within: Nanos,
    ask: impl AsyncFnOnce(&mut AdminSession<'_>) -> Result<T, DbError>,
) -> Result<T, DbError> {
    let answer = in_session(driver, ask);
    // An embedded database answers on this thread: no clock could interrupt it.
    let due = if driver.blocks() { Nanos::MAX } else { monotonic_now().saturating_add(within) };
    run(in_time(due, answer))
}

/// Gives up what has not been answered at `due`.
pub(crate) async fn in_time<T>(
    due: Nanos,
    answer: impl Future<Output = Result<T, DbError>>,
) -> Result<T, DbError> {
    let answer = timeout(due, answer).await;
    answer.unwrap_or_else(|_| Err(DbError::unreachable("it did not answer in time")))
}

/// Like [`run`], for what fails in other ways.
pub fn on_loop<T>(task: impl Future<Output = T>) -> Result<T> {
    block_on(task).map_err(|error| Failure::new(format!("No event loop: {error}.")))
}

pub struct ReachedDatabase {
    pub database: Database,
    pub facts: ServerFacts,
    pub same_host: bool,
    /// Its nodes in the order of the plan, at least one.
    pub nodes: Vec<ReachedNode>,
}

impl ReachedDatabase {
    /// The server's first process; `None` if it doesn't run on this machine or isn't known.
    pub fn process(&self) -> Option<ServerProcess> {
        self.nodes.first().filter(|_| self.nodes.len() == 1)?.server.process()
    }
}

/// Finds the password of target `name`, connects once and asks the server who it is. When
/// the server refuses and somebody sits at the terminal, asks for the password.
pub fn reach(name: &str, url: &str) -> Result<ReachedDatabase> {
    if let Some(cluster) = sharded_target(name, url)? {
        return reach_planned(&cluster, Path::new(""));
    }
    reach_target(loading_url(url)?.parse()?, Some(name))
}

/// Like [`reach`] for a target that has been read; without a name, no variable holds its password.
pub fn reach_target(target: TargetUrl, name: Option<&str>) -> Result<ReachedDatabase> {
    let (_, node) = open_first(target, name)?;
    let (database, facts, same_host) = (node.database.clone(), node.facts.clone(), node.same_host);
    Ok(ReachedDatabase { database, facts, same_host, nodes: vec![node] })
}

/// Finds the password and opens the target; asks at the terminal if that may help. No password gets to a server that
/// it was not given for.
fn open_first(mut target: TargetUrl, name: Option<&str>) -> Result<(TargetUrl, ReachedNode)> {
    let login = find_password(&target, name);
    if let Some(warning) = &login.warning {
        output::talk(&format!("warning: {warning}"));
    }
    login.complete(&mut target);
    let first = match open_target(&target) {
        Err(error) if may_ask(&error, &target) => {
            target.password = Some(ask(&format!("Password for {target}: "))?);
            open_target(&target)
        }
        other => other,
    };
    let (database, facts) = first.map_err(|error| with_variable(error, &target, name))?;
    let node = ReachedNode {
        name: database.admin().place(),
        role: Role::default(),
        same_host: target.hosts.0.iter().all(Address::is_local),
        server: ServerPlace::from_target(&target),
        database,
        facts,
    };
    Ok((target, node))
}

/// Adds the variable of a target that has a name to what the driver says of a missing password.
fn with_variable(error: DbError, target: &TargetUrl, name: Option<&str>) -> DbError {
    let is_missing = is_denied(&error) && target.password.is_none();
    let hint = match (name, error.hint()) {
        (Some(name), Some(hint)) if is_missing => {
            format!("{hint}; or set the variable {}", dyno_facts::password_variable(name))
        }
        _ => return error,
    };
    error.with_hint(hint)
}

fn open_target(target: &TargetUrl) -> Result<(Database, ServerFacts), DbError> {
    let database = Database::open(target)?;
    let facts = run(server_facts(&database.admin()))?;
    Ok((database, facts))
}

/// Returns true if a password may help: access was denied without one, and somebody sits at the terminal.
pub fn may_ask(error: &DbError, target: &TargetUrl) -> bool {
    is_denied(error) && target.password.is_none() && output::streams().is_some_and(Streams::can_ask)
}

/// Returns true if the server does not know the user, or not with this password.
fn is_denied(error: &DbError) -> bool {
    let is_login_error = error.errno() == 1045 || error.sqlstate().starts_with("28");
    error.cause() == Cause::Rejected && is_login_error
}

/// Asks for a password at the terminal.
///
/// # Errors
/// No terminal, or the end of its input.
pub fn ask(prompt: &str) -> Result<Secret> {
    let streams =
        output::streams().ok_or_else(|| Failure::new("There is no terminal to ask at."))?;
    let typed = streams.ask_password(prompt);
    typed
        .map(|typed| Secret::new(&typed))
        .map_err(|error| Failure::new(format!("The password can't be read: {error}.")))
}

pub struct ReachedNode {
    /// Its name in the plan; of a target with one node, the target's.
    pub name: String,
    pub role: Role,
    /// Connection to this node alone, wherever the load goes.
    pub database: Database,
    pub facts: ServerFacts,
    pub same_host: bool,
    pub(crate) server: ServerPlace,
}

/// Reaches all nodes of a target of a plan, in the plan's order; at least one.
///
/// # Errors
/// When a node can't be reached or does not fit its role; the message names it, with the remedy.
pub fn reach_planned(target: &TargetFacts, run: &Path) -> Result<ReachedDatabase> {
    if target.nodes.is_empty() {
        let mut database = reach(&target.name, target.url_in(run).expose())?;
        for node in &mut database.nodes {
            (node.name, node.role) = (target.name.clone(), target.role);
        }
        return Ok(database);
    }
    check_clusters(target)?;
    let (mut places, mut nodes) = (Vec::new(), Vec::new());
    for node in &target.nodes {
        let (place, reached) = reach_node(target, node)
            .map_err(|failure| failure.at(format!("node {}", node.name)))?;
        places.push(place);
        nodes.push(reached);
    }
    let (mut database, writable) = open_nodes(target, &places)?;
    let facts = nodes[writable].facts.clone();
    let shards = nodes.iter().enumerate().filter(|(_, node)| node.role == Role::Shard);
    let shards: Vec<_> = shards.map(|(number, node)| (node.name.clone(), number)).collect();
    if !shards.is_empty() {
        database = database.with_shards(shards, target.shard_map());
    }
    let same_host = nodes.iter().any(|node| node.same_host);
    Ok(ReachedDatabase { database, facts, same_host, nodes })
}

fn reach_node(target: &TargetFacts, node: &TargetNode) -> Result<(TargetUrl, ReachedNode)> {
    let place: TargetUrl = secret_url(node).expose().parse()?;
    let node_password = std::env::var(target.node_password_variable(node));
    let name = if node_password.is_ok_and(|password| !password.is_empty()) {
        target.node_name(node)
    } else {
        target.owner().to_owned()
    };
    let (place, mut reached) = open_first(place, Some(&name))?;
    (reached.name, reached.role) = (node.name.clone(), node.role);
    if let Some(folder) = &node.cluster {
        // Isolated nodes have separate addresses, but are on this machine.
        reached.same_host = true;
        reached.server = ServerPlace::Cluster { folder: folder.into(), node: node.name.clone() };
    }
    Ok((place, reached))
}

/// The driver of a target with several nodes, and the node that takes writes, or the nearest to one.
fn open_nodes(target: &TargetFacts, places: &[TargetUrl]) -> Result<(Database, usize), DbError> {
    let [endpoint, primary, shard, read_only] =
        [Role::Endpoint, Role::Primary, Role::Shard, Role::ReadOnly]
            .map(|role| target.nodes.iter().position(|node| node.role == role));
    let primary = primary.filter(|_| shard.is_none());
    let writable = primary.or(endpoint).or(read_only).unwrap_or(0);
    let nodes = target.nodes.iter().enumerate();
    let readers = nodes.filter(|(_, node)| node.role == Role::ReadOnly);
    let readers: Vec<usize> = readers.map(|(number, _)| number).collect();
    let routing = match target.route {
        Route::Primary => NodeRouting::Primary,
        Route::Endpoint => NodeRouting::Through(endpoint.unwrap_or(writable)),
        Route::Split => NodeRouting::Split(readers),
        Route::Spread => NodeRouting::Spread(readers),
    };
    // Routes of loads, looks and checks.
    let loads = primary.map_or(NodeRouting::Through(writable), |_| NodeRouting::Primary);
    Ok((Database::open_nodes(places, writable, routing, loads)?, writable))
}

const SCHEME: &str = "cluster:";

/// Adds a target given as `NAME=URL`, `NAME:ROLE=URL` or `NAME=cluster:FOLDER`.
pub fn add_target(overrides: &mut Overrides, text: &str) -> Result<()> {
    match text.split_once('=').and_then(|(name, url)| Some((name, url.strip_prefix(SCHEME)?))) {
        Some((name, folder)) if !name.contains(':') => {
            overrides.nodes.push((name.to_owned(), cluster_nodes(folder)?));
            Ok(())
        }
        _ => overrides.add_target(text).map_err(|problem| SuiteError::from(problem).into()),
    }
}

/// Returns true if the two targets that are compared are different servers on this machine: the CPU time of their
/// processes can be read.
pub fn are_costs_readable(suite: &Suite, overrides: &Overrides) -> bool {
    let names: Vec<&str> = match &overrides.compare {
        Some(versus) => vec![&versus.baseline, &versus.candidate],
        None => {
            let nodes = overrides.nodes.iter().map(|(name, _)| name.as_str());
            overrides.targets.iter().map(|(name, _)| name.as_str()).chain(nodes).collect()
        }
    };
    let mut places = BTreeSet::new();
    for name in &names {
        let url = overrides.targets.iter().find(|(other, _)| other == name).map(|(_, url)| url);
        let nodes = overrides.nodes.iter().find(|(other, _)| other == name);
        if nodes.is_some_and(|(_, nodes)| nodes.iter().all(|node| node.cluster.is_some())) {
            places.insert((*name).to_owned());
            continue;
        }
        let written = suite.target(name).and_then(|target| target.nodes.first()?.url.as_ref());
        let Some(url) = url.or(written.map(|url| &url.value)) else { return false };
        let Ok(target) = url.expose().parse::<TargetUrl>() else { return false };
        match target.hosts.0.as_slice() {
            [address] if address.is_local() => places.insert(address.to_string()),
            _ => return false,
        };
    }
    names.len() == 2 && places.len() == 2 && !overrides.by_fleet
}

/// The URL on which data are loaded and checked, where `url` is a cluster; else `url` itself.
fn loading_url(url: &str) -> Result<String> {
    let Some(folder) = url.strip_prefix(SCHEME) else { return Ok(url.to_owned()) };
    let nodes = cluster_nodes(folder)?;
    match TargetNode::loading(&nodes) {
        Some(node) => Ok(node.url.expose().to_owned()),
        None => Err(Failure::new(format!("No node of the cluster in {folder} takes writes."))),
    }
}

/// The target that `url` is, if it is a cluster with shards.
fn sharded_target(name: &str, url: &str) -> Result<Option<TargetFacts>> {
    let Some(folder) = url.strip_prefix(SCHEME) else { return Ok(None) };
    let nodes = cluster_nodes(folder)?;
    let is_sharded = nodes.iter().any(|node| node.role == Role::Shard);
    Ok(is_sharded.then(|| TargetFacts {
        name: name.to_owned(),
        nodes,
        route: Route::Endpoint,
        shard_rule: Some(ShardRule::OF_CLUSTERS),
        ..TargetFacts::default()
    }))
}

/// The URL of a node with its password. A plan that was read back from a run has no passwords, but the
/// cluster that a node belongs to may still be there.
fn secret_url(node: &TargetNode) -> SecretUrl {
    let cluster_url = if node.url.has_password() { None } else { cluster_url(node) };
    cluster_url.unwrap_or_else(|| node.url.clone())
}

fn cluster_url(node: &TargetNode) -> Option<SecretUrl> {
    let cluster = Cluster::open(Path::new(node.cluster.as_deref()?)).ok()?;
    let url = SecretUrl::new(cluster.node_url(&node.name).ok()?);
    // Another cluster may have been made in the same folder.
    (url.redacted() == node.url.redacted()).then_some(url)
}

/// Fails where nodes of dyno's own clusters are as no one would measure them: frozen, or following no one.
fn check_clusters(target: &TargetFacts) -> Result<()> {
    let folders: BTreeSet<&str> =
        target.nodes.iter().filter_map(|node| node.cluster.as_deref()).collect();
    // A folder of another machine's is none here.
    let mut clusters = folders.into_iter().filter_map(|dir| Cluster::open(Path::new(dir)).ok());
    clusters.try_for_each(|cluster| cluster.check_followers()).map_err(cluster_failure)
}

pub fn cluster_nodes(folder: &str) -> Result<Vec<TargetNode>> {
    let cluster = Cluster::open(Path::new(folder)).map_err(cluster_failure)?;
    // A run can be continued from any working directory.
    let absolute = std::path::absolute(folder)
        .map_err(|error| Failure::new(format!("The folder {folder} can't be found: {error}.")))?;
    let nodes = cluster.nodes().iter().map(|node| {
        let role = Role::parse(&node.role).ok_or_else(|| {
            Failure::new(format!("The node {} has the unknown role {}.", node.name, node.role))
        })?;
        let url = SecretUrl::new(cluster.node_url(&node.name).map_err(cluster_failure)?);
        let cluster = Some(absolute.to_string_lossy().into_owned());
        Ok(TargetNode { cluster, ..TargetNode::new(&node.name, role, url) })
    });
    nodes.collect()
}

fn cluster_failure(error: ClusterError) -> Failure {
    Failure::usage(sentence(&error.message)).hinted(error.hint)
}

/// The place where the processes of a node are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ServerPlace {
    /// On another machine, in this process, or behind several addresses.
    Unknown,
    Listening(Address),
    /// A node of a cluster of `dyno cluster`, perhaps in its own network.
    Cluster {
        folder: PathBuf,
        node: String,
    },
}

impl ServerPlace {
    pub(crate) fn from_target(target: &TargetUrl) -> Self {
        match target.hosts.0.as_slice() {
            [only] if !target.is_embedded() && only.is_local() => {
                ServerPlace::Listening(only.clone())
            }
            _ => ServerPlace::Unknown,
        }
    }

    /// A server may have been started again since the last trial.
    pub(crate) fn process(&self) -> Option<ServerProcess> {
        match self {
            ServerPlace::Unknown => None,
            ServerPlace::Listening(address) => ServerProcess::listening(address),
            ServerPlace::Cluster { folder, node } => {
                let pid = Cluster::open(folder).ok()?.node(node).ok()?.pid;
                (pid > 0).then(|| ServerProcess::numbered(pid))?
            }
        }
    }
}

pub(crate) fn target_facts(
    plan: &Plan,
    reached: &BTreeMap<String, Rc<ReachedDatabase>>,
) -> Vec<TargetFacts> {
    let mut targets = plan.targets.clone();
    for target in &mut targets {
        let Some(database) = reached.get(target.reached_as()) else { continue };
        target.product.clone_from(&database.facts.product);
        target.version.clone_from(&database.facts.version);
        target.log_in.clone_from(&database.facts.log_in);
        target.same_host = database.same_host;
        for node in &mut target.nodes {
            let reached_node = database.nodes.iter().find(|reached| reached.name == node.name);
            let Some(reached_node) = reached_node else { continue };
            node.product.clone_from(&reached_node.facts.product);
            node.version.clone_from(&reached_node.facts.version);
            node.log_in.clone_from(&reached_node.facts.log_in);
            node.same_host = reached_node.same_host;
        }
    }
    targets
}

const ARRIVES_WITHIN: Nanos = 10 * SECOND;
/// Time limit for all questions to a node.
const KINSHIP_WITHIN: Nanos = 30 * SECOND;
const STEP: Nanos = 20 * MILLISECOND;

/// Checks that read-only nodes show the data that were loaded: those of a primary that they copy.
///
/// # Errors
/// A read-only node is the primary itself, or does not show a table that was made there.
pub(crate) fn check_copies(reached: &ReachedDatabase) -> Result<()> {
    let Some(primary) = reached.nodes.iter().find(|node| node.role == Role::Primary) else {
        return Ok(());
    };
    for node in reached.nodes.iter().filter(|node| node.role == Role::ReadOnly) {
        let question = async {
            let reason = timeout(now() + KINSHIP_WITHIN, why_no_copy(primary, node)).await;
            reason.ok().transpose()
        };
        // What can't be found out now is seen in the trials.
        if let Ok(Some(Some(message))) = run(question) {
            let hint =
                format!("Name a replica of {} instead, or leave the node out.", primary.name);
            return Err(Failure::new(message).with_hint(hint));
        }
    }
    Ok(())
}

/// The reason why a read-only node is not a copy of the primary, in a sentence; `None` if it is one.
async fn why_no_copy(primary: &ReachedNode, node: &ReachedNode) -> Result<Option<String>, DbError> {
    let (name, origin) = (&node.name, &primary.name);
    let (primary, node) = (primary.database.admin(), node.database.admin());
    in_session(&node, async |reader| {
        if follows(reader).await? {
            return Ok(None);
        }
        in_session(&primary, async |writer| {
            if is_same_server(writer, reader).await? {
                let reason = format!(
                    "The read-only node {name} is the same server as the primary {origin}."
                );
                return Ok(Some(reason));
            }
            Ok((!sees_writes(writer, reader).await?).then(|| {
                format!(
                    "The read-only node {name} isn't a replica of the primary {origin}: a table that was made there has not \
                     appeared within {} s.",
                    ARRIVES_WITHIN / SECOND
                )
            }))
        })
        .await
    })
    .await
}

/// Returns true if both sessions are on one server, by its start or by its address and data folder.
async fn is_same_server(
    writer: &mut AdminSession<'_>,
    reader: &mut AdminSession<'_>,
) -> Result<bool, DbError> {
    if !["PostgreSQL", "MySQL", "MariaDB"].contains(&writer.product().name.as_str()) {
        return Ok(false);
    }
    let server = match writer.dialect() {
        Dialect::Postgres => "SELECT pg_postmaster_start_time()",
        _ => "SELECT CONCAT_WS(' ', @@hostname, @@port, @@datadir)",
    };
    let writer_answer = answer_if_any(writer, server).await?;
    Ok(writer_answer.is_some() && writer_answer == answer_if_any(reader, server).await?)
}

/// Returns true if a table that is made in one session appears in the other.
async fn sees_writes(
    writer: &mut AdminSession<'_>,
    reader: &mut AdminSession<'_>,
) -> Result<bool, DbError> {
    let table = format!("dyno_copy_{}", process::id());
    // Who may make no table loads none.
    let create = format!("CREATE TABLE {table} (id INTEGER NOT NULL PRIMARY KEY)");
    if answer_if_any(writer, &create).await?.is_none() {
        return Ok(true);
    }
    let look = format!("SELECT count(*) FROM {table}");
    let arrival = async {
        while answer_if_any(reader, &look).await?.is_none() {
            sleep_until(now() + STEP).await;
        }
        Ok::<(), DbError>(())
    };
    // The table goes whatever becomes of the reader, which may hang.
    let arrived = timeout(now() + ARRIVES_WITHIN, arrival).await;
    answer_if_any(writer, &format!("DROP TABLE {table}")).await?;
    Ok(arrived.ok().transpose()?.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_target_with_a_name_has_a_variable_for_its_password() {
        let mut target: TargetUrl = "postgres://h/d".parse().expect("a URL");
        fn find_hint(target: &TargetUrl, name: Option<&str>) -> Option<String> {
            let denied = DbError::rejected(0, *b"28P01", "no password").with_hint("give it");
            with_variable(denied, target, name).hint().map(str::to_owned)
        }
        let hint_text = find_hint(&target, Some("main"));
        assert_eq!(hint_text.as_deref(), Some("give it; or set the variable DYNO_PASSWORD_MAIN"));
        assert_eq!(find_hint(&target, None).as_deref(), Some("give it"));
        target.password = Some(Secret::new("wrong"));
        assert_eq!(find_hint(&target, Some("main")).as_deref(), Some("give it"));
    }

    #[test]
    fn places_of_servers_are_on_this_machine() {
        fn server_place(url: &str) -> ServerPlace {
            ServerPlace::from_target(&url.parse().expect("a URL"))
        }
        let at =
            |host: &str| ServerPlace::Listening(Address::Tcp { host: host.to_owned(), port: 3306 });
        assert_eq!(server_place("mysql://localhost/x"), at("localhost"));
        assert_eq!(server_place("mysql://127.0.0.1/x"), at("127.0.0.1"));
        assert_eq!(server_place("mysql://db.example.org/x"), ServerPlace::Unknown);
        assert_eq!(server_place("mysql://127.0.0.1,127.0.0.2/x"), ServerPlace::Unknown);
        assert_eq!(server_place("sqlite:x.db"), ServerPlace::Unknown);
        assert_eq!(
            server_place("postgres://?host=/run/postgresql"),
            ServerPlace::Listening(Address::Unix("/run/postgresql/.s.PGSQL.5432".into()))
        );
    }
}
