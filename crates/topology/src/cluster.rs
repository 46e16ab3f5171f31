//! A cluster as a whole: made, opened, taken down.

use crate::folder::{Folder, FolderLock, Secrets, random_hex};
use crate::process::ProcessFilter;
use crate::request::{Request, SHARDS_USUAL};
use crate::state::FORMAT;
use crate::{
    Account, ClusterError, EndpointKind, NodeProduct, Result, State, StateNode, TopologyKind,
};
use crate::{endpoint, machine, mysql, network, programs};
use std::path::Path;

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
        let mut state = plan(request)?;
        check_programs(&state)?;
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
        let made = Self::make(&folder, state, request.is_stopped, step);
        made.map_err(|error| {
            step("Taking down what was started.");
            let down =
                Folder::open(folder.path()).and_then(|(folder, state)| take_down(&folder, &state));
            // The cause counts, also when something is left.
            match down {
                Ok(()) => error,
                Err(left) => ClusterError {
                    message: format!(
                        "{} It could not be taken down: {}",
                        error.message, left.message
                    ),
                    hint: Some(format!("`dyno cluster down --dir {}`", folder.path().display())),
                    ..error
                },
            }
        })
    }

    fn make(
        folder: &Folder,
        state: State,
        is_stopped: fn() -> bool,
        step: &mut dyn FnMut(&str),
    ) -> Result<Self> {
        let secrets = folder.make_secrets()?;
        if state.isolated {
            network::make(&state)?;
        }
        let mut cluster = Cluster { folder: folder.clone(), state, secrets, is_stopped };
        for node in &cluster.state.nodes {
            cluster.folder.make_inside(&node.name, cluster.state.run_as)?;
        }
        cluster.make_nodes(step)?;
        cluster.make_endpoint(step)?;
        cluster.state.is_ready = true;
        cluster.save()?;
        cluster.wait_for_acknowledgements()?;
        // Steps that had nothing to wait for did not look.
        if is_stopped() {
            return Err(ClusterError::stopped());
        }
        Ok(cluster)
    }

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

    pub fn node(&self, name: &str) -> Result<&StateNode> {
        self.position(name).map(|at| &self.state.nodes[at])
    }

    pub fn primary(&self) -> Option<&StateNode> {
        self.state.nodes.iter().find(|node| node.role == "primary")
    }

    /// The node that takes writes, or an error.
    pub(crate) fn need_primary(&self) -> Result<&StateNode> {
        self.primary().ok_or_else(|| ClusterError::new("No node takes writes."))
    }

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

    pub(crate) fn save(&self) -> Result<()> {
        self.folder.save(&self.state)
    }
}

fn take_down(folder: &Folder, state: &State) -> Result<()> {
    let known = state.nodes.iter().filter(|node| node.pid != 0);
    let known = known.map(StateNode::process).collect();
    // Everything they hold is removed, so nothing needs a clean shutdown.
    ProcessFilter::cluster(&state.id, folder.path(), known).kill()?;
    network::remove(state)?;
    folder.remove()
}

pub(crate) fn product_of(topology: TopologyKind) -> NodeProduct {
    match topology {
        TopologyKind::Mariadb | TopologyKind::Sharded => NodeProduct::Mariadb,
        TopologyKind::Mysql => NodeProduct::Mysql,
        TopologyKind::Postgres | TopologyKind::ShardedPostgres => NodeProduct::Postgres,
    }
}

fn plan(request: &Request) -> Result<State> {
    let is_sharded = request.topology.is_sharded();
    let product = product_of(request.topology);
    let shards = request.shards.unwrap_or(SHARDS_USUAL);
    let servers = if is_sharded { shards } else { 1 + request.replicas } as usize;
    let endpoint = match request.topology {
        TopologyKind::Sharded => Some(EndpointKind::Shardingsphere),
        _ => request.endpoint,
    };
    let ports = machine::free_ports(servers + 1)?;
    let node = |name: String, product: NodeProduct, role: &str, port: u16| StateNode {
        name,
        product,
        role: role.to_owned(),
        host: "127.0.0.1".to_owned(),
        port,
        folder: Path::new("").to_owned(),
        pid: 0,
        pid_started_ticks: 0,
    };
    let role = |index: usize| match (is_sharded, index) {
        (true, _) => "shard",
        (false, 0) => "primary",
        (false, _) => "read_only",
    };
    let mut nodes: Vec<StateNode> = (0..servers)
        .map(|index| node(format!("n{}", index + 1), product, role(index), ports[index]))
        .collect();
    let in_front = match (endpoint, request.topology) {
        (None, TopologyKind::ShardedPostgres) => Some(NodeProduct::Postgres),
        (None, _) => None,
        (Some(EndpointKind::Pgpool), _) => Some(NodeProduct::Pgpool),
        (Some(EndpointKind::Shardingsphere), _) => Some(NodeProduct::Shardingsphere),
        (Some(EndpointKind::Router), _) => Some(NodeProduct::Router),
    };
    nodes.extend(
        in_front.map(|product| node(ENDPOINT.to_owned(), product, "endpoint", ports[servers])),
    );
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
        run_as: programs::unprivileged(&users),
        isolated: request.isolated,
        mysql: request.mysql.clone(),
        cache_mib: machine::cache_mib(nodes.iter().filter(|node| node.product.is_server()).count()),
        is_ready: false,
        endpoint_options: endpoint_options(request, endpoint),
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

/// Router comes in the folder that MySQL was unpacked to.
fn endpoint_options(request: &Request, kind: Option<EndpointKind>) -> endpoint::EndpointOptions {
    let mut options = request.endpoint_options.clone();
    if kind == Some(EndpointKind::Router) && options.software.is_none() {
        options.software.clone_from(&request.mysql);
    }
    options
}

fn check_programs(state: &State) -> Result<()> {
    programs::need(&["setsid"], "util-linux")?;
    if let Some(kind) = state.endpoint {
        endpoint::check(kind, &state.endpoint_options)?;
    }
    match product_of(state.topology) {
        NodeProduct::Postgres => crate::postgres::check(),
        product => mysql::check(state, product),
    }
}
