//! A cluster as a whole: made, opened, taken down; data folders, start and replication of its nodes.

use crate::admin::Admin;
use crate::folder::FORMAT;
use crate::folder::{Folder, FolderLock, Secrets, random_hex};
use crate::mysql::Stream;
use crate::process::{LOOK_EACH, Launch, ProcessFilter, copy_data, last_lines, start};
use crate::request::{Request, SHARDS_USUAL};
use crate::{
    Account, ClusterError, NodeProduct, Result, State, StateNode, TopologyKind, endpoint, machine,
    mysql, network, postgres,
};
use dyno_core::counted;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// The user that logs in for the load, and the database that is made for it.
const USER: &str = "dyno";
pub(crate) const ENDPOINT: &str = "endpoint";

/// A local cluster of real servers. Each change reads `cluster.json` again, under a lock: other processes may
/// change the cluster while a value is kept.
pub struct Cluster {
    pub(crate) folder: Folder,
    pub(crate) state: State,
    pub(crate) secrets: Secrets,
    /// Asked while something is waited for.
    pub(crate) is_stopped: fn() -> bool,
}

impl Cluster {
    /// Makes a cluster and returns when it is ready: every node takes log-ins, every read-only node streams. Takes
    /// everything down again if that fails or [`Request::is_stopped`] says so. `step` gets a sentence for each step.
    pub fn up(request: &Request, step: &mut dyn FnMut(&str)) -> Result<Self> {
        request.check()?;
        let mut state = plan_state(request)?;
        check_programs(&state)?;
        let source = request.copy_of.as_deref().map(Folder::open).transpose()?;
        if let Some((folder, source)) = &source {
            check_source(source, &state, folder)?;
        }
        let folder = Folder::create(&request.dir)?;
        let lock = folder.lock()?;
        if let Err(error) = folder.check_reach(state.run_as) {
            drop(lock);
            folder.remove()?;
            return Err(error);
        }
        for node in &mut state.nodes {
            node.folder = folder.path().join(&node.name);
        }
        state.home = Some(folder.home()?);
        // From here on `down` finds everything, whatever happens to this process.
        folder.save(&state)?;
        let cluster = Self::make_in(&folder, state, source, request.is_stopped, step);
        cluster.map_err(|error| {
            step("Taking down what was started.");
            let down =
                Folder::open(folder.path()).and_then(|(folder, state)| take_down(&folder, &state));
            // The cause counts, also when something is left.
            let Err(left) = down else { return error };
            ClusterError {
                message: format!("{} It could not be taken down: {}", error.message, left.message),
                hint: Some(format!("`dyno cluster down --dir {}`", folder.path().display())),
                ..error
            }
        })
    }

    fn make_in(
        folder: &Folder,
        state: State,
        source: Option<(Folder, State)>,
        is_stopped: fn() -> bool,
        step: &mut dyn FnMut(&str),
    ) -> Result<Self> {
        let secrets = folder.make_secrets(source.as_ref().map(|(folder, _)| folder))?;
        if state.isolated {
            network::make(&state)?;
        }
        let mut cluster = Cluster { folder: folder.clone(), state, secrets, is_stopped };
        for node in &cluster.state.nodes {
            cluster.folder.make_inside(&node.name, cluster.state.run_as)?;
        }
        match &source {
            Some((_, source)) => cluster.copy_node(&source.nodes[0], step)?,
            None => cluster.make_nodes(step)?,
        }
        cluster.make_endpoint(step)?;
        cluster.state.is_ready = true;
        cluster.save()?;
        cluster.wait_for_acknowledgements()?;
        // Steps that had nothing to wait for did not look.
        if is_stopped() {
            return Err(crate::stopped_error());
        }
        Ok(cluster)
    }

    /// Opens the cluster in a folder.
    ///
    /// # Errors
    /// When there is none, it was never completed, or it belongs to another user.
    pub fn open(dir: &Path) -> Result<Self> {
        let (folder, state) = Folder::open(dir)?;
        if !state.is_ready {
            let show = folder.path().display();
            return Err(failed!("The cluster in {show} was never completed.")
                .with_hint(format!("wait for its `up`; if that was killed, take it down: `dyno cluster down --dir {show}`")));
        }
        let secrets = folder.secrets()?;
        Ok(Cluster { folder, state, secrets, is_stopped: || false })
    }

    /// A cluster whose changes give up waiting as soon as `is_stopped` says so. What was begun stays.
    #[must_use]
    pub fn stopped_by(self, is_stopped: fn() -> bool) -> Self {
        Cluster { is_stopped, ..self }
    }

    /// Stops all processes of the cluster in a folder and removes the folder, also when making it was
    /// interrupted at any point.
    pub fn down(dir: &Path) -> Result<()> {
        let (folder, _) = Folder::open(dir)?;
        let _lock = folder.lock()?;
        let (_, state) = Folder::open(dir)?;
        take_down(&folder, &state)
    }

    /// The folder of the cluster, as an absolute path without links.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// `cluster.json` as it was last read.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// All nodes, the first primary first, the endpoint last.
    pub fn nodes(&self) -> &[StateNode] {
        &self.state.nodes
    }

    /// The node of this name, or an error that lists the names there are.
    pub fn node(&self, name: &str) -> Result<&StateNode> {
        self.position(name).map(|at| &self.state.nodes[at])
    }

    /// The node that takes writes; `None` in a sharded cluster.
    pub fn primary(&self) -> Option<&StateNode> {
        self.state.nodes.iter().find(|node| node.role == "primary")
    }

    /// The node that takes writes, or an error.
    pub(crate) fn need_primary(&self) -> Result<&StateNode> {
        self.primary().ok_or_else(|| ClusterError::new("No node takes writes."))
    }

    /// The load's account, with the password from its file.
    pub fn account(&self) -> Result<Account> {
        Ok(Account {
            user: self.state.user.clone(),
            password: self.folder.password()?,
            database: self.state.database.clone(),
        })
    }

    /// The URL of a node **with its password**, for callers that keep it secret.
    pub fn node_url(&self, name: &str) -> Result<String> {
        let password = self.folder.password()?;
        Ok(self.url(self.node(name)?, Some(&password)))
    }

    /// The URL of a node for the load's account.
    pub(crate) fn url(&self, node: &StateNode, password: Option<&str>) -> String {
        let password = password.map(|text| format!(":{text}")).unwrap_or_default();
        format!(
            "{}://{}{password}@{}:{}/{}",
            node.product.scheme(),
            self.state.user,
            node.host,
            node.port,
            self.state.database
        )
    }

    /// The place of a node in the list of nodes.
    pub(crate) fn position(&self, name: &str) -> Result<usize> {
        self.state.nodes.iter().position(|node| node.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.state.nodes.iter().map(|node| node.name.as_str()).collect();
            failed!("The cluster has no node `{name}`.")
                .with_hint(format!("its nodes are {}", names.join(", ")))
        })
    }

    /// Begins a change: takes the lock and reads the state that others may have changed.
    pub(crate) fn change(&mut self) -> Result<FolderLock> {
        let lock = self.folder.lock()?;
        self.state = Folder::open(self.folder.path())?.1;
        Ok(lock)
    }

    /// Writes the state to `cluster.json`.
    pub(crate) fn save(&self) -> Result<()> {
        self.folder.save(&self.state)
    }
}

fn take_down(folder: &Folder, state: &State) -> Result<()> {
    let running = state.nodes.iter().filter(|node| node.pid != 0);
    let running = running.map(StateNode::process).collect();
    // Everything they hold is removed, so nothing needs a clean shutdown.
    ProcessFilter::new(&state.id, folder.path(), running).kill()?;
    network::remove(state)?;
    folder.remove()
}

pub(crate) fn server_product(topology: TopologyKind) -> NodeProduct {
    match topology {
        TopologyKind::Mariadb | TopologyKind::Sharded => NodeProduct::Mariadb,
        TopologyKind::Mysql => NodeProduct::Mysql,
        TopologyKind::Postgres | TopologyKind::ShardedPostgres => NodeProduct::Postgres,
    }
}

fn plan_state(request: &Request) -> Result<State> {
    let is_sharded = request.topology.is_sharded();
    let product = server_product(request.topology);
    let shards = request.shards.unwrap_or(SHARDS_USUAL);
    let servers = if is_sharded { shards } else { 1 + request.replicas } as usize;
    let endpoint = match request.topology {
        TopologyKind::Sharded => Some(NodeProduct::Shardingsphere),
        _ => request.endpoint,
    };
    let ports = machine::free_ports(servers + 1)?;
    let mut nodes = Vec::new();
    for (index, &port) in ports[..servers].iter().enumerate() {
        let role = match (is_sharded, index) {
            (true, _) => "shard",
            (false, 0) => "primary",
            (false, _) => "read_only",
        };
        nodes.push(plan_node(format!("n{}", index + 1), product, role, port));
    }
    let is_joined = request.topology == TopologyKind::ShardedPostgres;
    let in_front = endpoint.or(is_joined.then_some(NodeProduct::Postgres));
    nodes.extend(
        in_front.map(|product| plan_node(ENDPOINT.to_owned(), product, "endpoint", ports[servers])),
    );
    let mut endpoint_options = request.endpoint_options.clone();
    if endpoint == Some(NodeProduct::Router) && endpoint_options.software.is_none() {
        // Router comes in the folder that MySQL was unpacked to.
        endpoint_options.software.clone_from(&request.software);
    }
    let users = if product == NodeProduct::Postgres { ["postgres"] } else { ["mysql"] };
    let mut state = State {
        format: FORMAT,
        id: random_hex(8)?,
        boot_id: machine::boot_id(),
        home: None,
        topology: request.topology,
        replication: request.replication,
        endpoint,
        user: USER.to_owned(),
        database: USER.to_owned(),
        run_as: machine::unprivileged(&users),
        isolated: request.isolated,
        software: request.software.clone(),
        cache_mib: machine::cache_mib(nodes.iter().filter(|node| node.product.is_server()).count()),
        is_ready: false,
        endpoint_options,
        settings: request.settings.clone(),
        nodes,
    };
    if state.isolated {
        network::check()?;
        let prefix = network::free_prefix(&state)?;
        for (number, node) in (1..).zip(&mut state.nodes[..servers]) {
            node.host = network::address(&prefix, number);
        }
    }
    Ok(state)
}

/// A node on loopback that is still without a folder and a process.
fn plan_node(name: String, product: NodeProduct, role: &str, port: u16) -> StateNode {
    StateNode {
        name,
        product,
        role: role.to_owned(),
        host: "127.0.0.1".to_owned(),
        port,
        folder: Path::new("").to_owned(),
        pid: 0,
        pid_started_ticks: 0,
    }
}

/// Refuses to begin `state` with a copy of what runs, or of another shape.
fn check_source(source: &State, state: &State, folder: &Folder) -> Result<()> {
    let show = folder.path().display();
    if source.topology != state.topology || source.nodes.len() != 1 || state.nodes.len() != 1 {
        let name = state.topology.name();
        return Err(failed!("{show} can't be copied: only one server of {name} to one."));
    }
    if source.nodes[0].process().is_alive() {
        let name = &source.nodes[0].name;
        return Err(failed!("The server in {show} runs: its data can't be copied.")
            .with_hint(format!("`dyno cluster stop {name} --dir {show}`")));
    }
    Ok(())
}

fn check_programs(state: &State) -> Result<()> {
    machine::need(&["setsid"], "util-linux")?;
    if let Some(product) = state.endpoint {
        endpoint::check(product, &state.endpoint_options)?;
    }
    match server_product(state.topology) {
        NodeProduct::Postgres => crate::postgres::check(state),
        product => mysql::check(state, product),
    }
}

/// Time limit for a server to take log-ins, and for a read-only node to stream. Recovery of a busy server takes a
/// while, and a Java proxy minutes to start on a busy machine.
const READY_WITHIN: Duration = Duration::from_secs(300);
/// Seconds for one statement that arranges something.
pub(crate) const STATEMENT_LIMIT_S: u64 = 60;
/// Seconds for a question to a server that may not answer.
pub(crate) const PROBE_LIMIT_S: u64 = 5;

impl Cluster {
    /// Makes data folders, starts the servers and arranges replication.
    pub(crate) fn make_nodes(&mut self, step: &mut dyn FnMut(&str)) -> Result<()> {
        let product = server_product(self.state.topology);
        let servers: Vec<StateNode> = self.servers().cloned().collect();
        step(&format!(
            "Making the data folders of {}.",
            counted(servers.len() as u64, &format!("{} node", product.name()))
        ));
        match product {
            NodeProduct::Postgres => postgres::make_data(self, &servers)?,
            _ => mysql::make_data(self, &servers)?,
        }
        step("Starting the servers.");
        for node in &servers {
            self.launch(&node.name)?;
        }
        for node in &servers {
            self.wait_for_log_in(&node.name)?;
            // It made the accounts of the first start, and holds passwords.
            let _ = fs::remove_file(node.folder.join("accounts.sql"));
        }
        self.make_database()?;
        let replicas: Vec<&StateNode> =
            servers.iter().filter(|node| node.role == "read_only").collect();
        if replicas.is_empty() {
            return Ok(());
        }
        step(&format!(
            "Starting replication to {}.",
            counted(replicas.len() as u64, "read-only node")
        ));
        if product == NodeProduct::Postgres {
            postgres::make_slots(self, &servers[0])?;
        } else {
            for node in &replicas {
                self.follow_mysql(node, &servers[0])?;
            }
        }
        replicas.iter().try_for_each(|node| self.wait_until_streaming(&node.name))
    }

    /// Has a node of MariaDB or MySQL follow `source` from what it has.
    pub(crate) fn follow_mysql(&self, node: &StateNode, source: &StateNode) -> Result<()> {
        mysql::follow(&self.admin(node)?, source, &self.secrets.replication)
    }

    /// Starts the only server with a copy of another one's data.
    fn copy_node(&mut self, source: &StateNode, step: &mut dyn FnMut(&str)) -> Result<()> {
        let node = self.state.nodes[0].clone();
        step("Copying the data folder.");
        copy_data(self, source, &node)?;
        // MySQL takes copies with the same identity for one server.
        let _ = fs::remove_file(node.data().join("auto.cnf"));
        step("Starting the server.");
        self.launch(&node.name)?;
        self.wait_for_log_in(&node.name)
    }

    /// The nodes that hold data.
    pub(crate) fn servers(&self) -> impl Iterator<Item = &StateNode> {
        self.state.nodes.iter().filter(|node| node.product.is_server())
    }

    /// An [`Admin`] of a node, with the time limit of long statements.
    pub(crate) fn admin(&self, node: &StateNode) -> Result<Admin> {
        Admin::for_admin(node, &self.secrets.admin, STATEMENT_LIMIT_S)
    }

    /// An [`Admin`] of a node that may not answer.
    pub(crate) fn probe(&self, node: &StateNode) -> Result<Admin> {
        Admin::for_admin(node, &self.secrets.admin, PROBE_LIMIT_S)
    }

    fn node_launch(&self, node: &StateNode) -> Result<Launch> {
        let number = self.position(&node.name)? + 1;
        match node.product {
            NodeProduct::Mariadb | NodeProduct::Mysql => mysql::launch(&self.state, node, number),
            NodeProduct::Postgres => postgres::launch(&self.state, node),
            NodeProduct::Pgpool | NodeProduct::Shardingsphere | NodeProduct::Router => {
                self.endpoint_launch(node)
            }
        }
    }

    /// Starts a node's process and stores its number.
    pub(crate) fn launch(&mut self, name: &str) -> Result<()> {
        let at = self.position(name)?;
        let node = &self.state.nodes[at];
        let launch = self.node_launch(node)?;
        let namespace = network::namespace(&self.state, node);
        let process = start(&self.state, node, namespace.as_deref(), &launch)?;
        let node = &mut self.state.nodes[at];
        (node.pid, node.pid_started_ticks) = (process.pid, process.started_ticks);
        self.save()
    }

    pub(crate) fn wait_for_log_in(&self, name: &str) -> Result<()> {
        let node = self.node(name)?;
        let admin = self.probe(node)?;
        self.wait_for(node, || {
            let Err(error) = admin.query("SELECT 1") else { return Ok(None) };
            self.check_alive(node)?;
            Ok(Some(format!("doesn't take log-ins: {}", error.message)))
        })
    }

    /// Fails with the end of the log when a server has ended.
    pub(crate) fn check_alive(&self, node: &StateNode) -> Result<()> {
        if node.process().is_alive() {
            return Ok(());
        }
        let log = last_lines(&node.log());
        let name = node.product.name();
        Err(failed!("{name} of node {} ended by itself: {log}", node.name))
    }

    fn make_database(&self) -> Result<()> {
        let sql = format!("CREATE DATABASE {}", self.state.database);
        let mut writable = self.servers().filter(|node| node.role != "read_only");
        writable.try_for_each(|node| match node.product {
            NodeProduct::Postgres => postgres::make_database(self, node),
            _ => self.admin(node)?.query(&sql).map(drop),
        })
    }

    /// Waits until a read-only node streams and has what the primary had when this was called.
    pub(crate) fn wait_until_streaming(&self, name: &str) -> Result<()> {
        let node = self.node(name)?;
        let primary = self.need_primary()?;
        let admin = self.probe(node)?;
        self.wait_for(node, || {
            self.check_alive(node)?;
            let Some(stream) = self.stream(node, &admin)? else {
                return Err(failed!("Node {name} follows nobody."));
            };
            let reason = stream.error.unwrap_or_else(|| "no error is given".to_owned());
            Ok((!stream.is_running).then(|| format!("doesn't follow {}: {reason}", primary.name)))
        })?;
        self.catch_up(node, primary)
    }

    /// The state of a node's replication; `None` if it has none.
    pub(crate) fn stream(&self, node: &StateNode, admin: &Admin) -> Result<Option<Stream>> {
        match node.product {
            NodeProduct::Postgres => postgres::stream(admin),
            _ => mysql::stream(admin),
        }
    }

    /// Waits until a node has applied what `source` has now.
    pub(crate) fn catch_up(&self, node: &StateNode, source: &StateNode) -> Result<()> {
        let (admin, source_admin) = (self.admin(node)?, self.admin(source)?);
        let problem = format!("doesn't catch up with {}", source.name);
        if node.product == NodeProduct::Postgres {
            let position = postgres::position(&source_admin)?;
            return self.wait_for(node, || {
                Ok((postgres::applied(&admin)? < position).then(|| problem.clone()))
            });
        }
        let position = mysql::position(&source_admin)?;
        self.wait_for(node, || Ok((!mysql::wait_for(&admin, &position)?).then(|| problem.clone())))
    }

    /// Has the primary wait for its read-only nodes, if the request asked for that.
    pub(crate) fn wait_for_acknowledgements(&self) -> Result<()> {
        let Some(primary) = self.primary() else { return Ok(()) };
        let replicas: Vec<&StateNode> =
            self.servers().filter(|node| node.role == "read_only").collect();
        let present = replicas.iter().filter(|node| node.pid != 0).count();
        let needed = self.state.replication.acknowledgements(replicas.len()).min(present);
        if needed == 0 {
            return Ok(());
        }
        let admin = self.admin(primary)?;
        if primary.product == NodeProduct::Postgres {
            postgres::reconfigure(self, primary)?;
        } else {
            mysql::wait_for_replicas(&admin, true)?;
        }
        let name = self.state.replication.name();
        self.wait_for(primary, || {
            let acknowledging = match primary.product {
                NodeProduct::Postgres => postgres::acknowledging(&admin)?,
                _ => mysql::acknowledging(&admin)?,
            };
            Ok((acknowledging < needed)
                .then(|| format!("is not acknowledged to, which {name} replication needs")))
        })
    }

    /// Asks again and again what a node still lacks, until that is nothing.
    pub(crate) fn wait_for(
        &self,
        node: &StateNode,
        mut lacks: impl FnMut() -> Result<Option<String>>,
    ) -> Result<()> {
        let begin = Instant::now();
        let mut last = String::new();
        while begin.elapsed() < READY_WITHIN {
            if (self.is_stopped)() {
                return Err(crate::stopped_error());
            }
            let Some(lacking) = lacks()? else { return Ok(()) };
            last = lacking;
            std::thread::sleep(LOOK_EACH);
        }
        Err(not_in_time(node, &last))
    }
}

pub(crate) fn not_in_time(node: &StateNode, what: &str) -> ClusterError {
    failed!("Node {} {what}; that took longer than {} s.", node.name, READY_WITHIN.as_secs())
        .with_hint(format!("its log is {}", node.log().display()))
}
