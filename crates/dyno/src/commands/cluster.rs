//! `dyno cluster`: local clusters of real servers.

use crate::{CommandResult, choice, pretty};
use clap::{Args, Subcommand};
use dyno_facts::text_table;
use dyno_runner::failure::{Failure, sentence};
use dyno_runner::{output, signals};
use dyno_topology::endpoint::CrossShardCommit;
use dyno_topology::{
    Cluster, ClusterError, Health, NodeProduct, NodeStatus, Replication, Request, TopologyKind,
    endpoint,
};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Instant;

const DIR: &str = "dyno-cluster";

pub(crate) const HELP: &str = include_str!("../../help/cluster.txt").trim_ascii_end();

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a cluster and start it.
    Up(Up),
    /// Show the nodes: role, address, health, lag. Exits with 1 if one isn't up.
    Status(Status),
    /// Stop all servers of a cluster and remove its folder.
    Down(Folder),
    /// Kill a node (SIGKILL to all its processes), as when its machine dies.
    Kill(Node),
    /// Shut a node down cleanly.
    Stop(Node),
    /// Start a node that was killed or stopped.
    Start(Node),
    /// Stop a node in its tracks: its connections stay open and get no answer.
    Freeze(Node),
    /// Let a frozen node continue.
    Thaw(Node),
    /// Cut a node of an --isolated cluster off the network.
    Partition(Node),
    /// Connect a node that was cut off again.
    Heal(Node),
    /// Make a read-only node the primary; the others follow it, the old primary too if it answers.
    Promote(Node),
    /// Have a node that was out, such as an old primary, follow the primary again.
    Rejoin(Node),
}

#[derive(Debug, Args)]
pub(crate) struct Folder {
    /// Folder of the cluster.
    #[arg(long, value_name = "FOLDER", default_value = DIR)]
    dir: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Status {
    #[command(flatten)]
    folder: Folder,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Node {
    /// Name of the node, as `dyno cluster status` shows it.
    #[arg(value_name = "NODE")]
    name: String,
    #[command(flatten)]
    folder: Folder,
}

#[derive(Debug, Args)]
pub(crate) struct Up {
    /// The shape: a primary (and read-only nodes) of MariaDB, MySQL or PostgreSQL; a SQL layer over MariaDB shards
    /// (ShardingSphere-Proxy); or over PostgreSQL shards (a PostgreSQL with postgres_fdw, whose commits over several
    /// shards are not atomic).
    #[arg(value_name = "TOPOLOGY", value_parser = choice(TopologyKind::ALL.map(|kind| (kind.name(), kind))))]
    topology: TopologyKind,
    #[command(flatten)]
    folder: Folder,
    /// Read-only nodes alongside the primary, at most 8.
    #[arg(long, value_name = "N", default_value_t = 0)]
    replicas: u32,
    /// Shards of a sharded topology, 1 to 16; four without this option.
    #[arg(long, value_name = "N")]
    shards: Option<u32>,
    /// The event that a commit waits for: nothing, one read-only node, or a majority of all nodes.
    #[arg(long, value_name = "KIND", default_value = "async", value_parser = choice(Replication::ALL.map(|kind| (kind.name(), kind))))]
    replication: Replication,
    /// The endpoint in front of the nodes, which spreads reads.
    #[arg(long, value_name = "KIND", value_parser = choice(ENDPOINTS))]
    endpoint: Option<NodeProduct>,
    /// A setting of all servers, over that of the template. May be repeated.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = parse_setting)]
    settings: Vec<(String, String)>,
    /// Give each node a network namespace, so that it can be cut off (`partition`). Needs root.
    #[arg(long)]
    isolated: bool,
    /// Folder that the servers were installed to (`bin`), or that MySQL (and MySQL Router) was unpacked to; without it
    /// they are looked for on this machine.
    #[arg(long, value_name = "FOLDER")]
    software: Option<PathBuf>,
    /// Folder of a stopped cluster of one server: begin with a copy of its data, and its passwords.
    #[arg(long, value_name = "FOLDER")]
    copy_of: Option<PathBuf>,
    /// Folder that pgpool-II was unpacked to.
    #[arg(long, value_name = "FOLDER")]
    pgpool: Option<PathBuf>,
    /// Folder with the jars of ShardingSphere-Proxy; DYNO_SHARDINGSPHERE may name it instead.
    #[arg(long, value_name = "FOLDER")]
    shardingsphere: Option<PathBuf>,
    /// Connections that the endpoint takes at once.
    #[arg(long, value_name = "N", default_value_t = endpoint::EndpointOptions::default().clients_max)]
    clients_max: u32,
    /// Tables of sysbench that a sharded cluster spreads.
    #[arg(long, value_name = "N", default_value_t = endpoint::EndpointOptions::default().sysbench_tables)]
    sysbench_tables: u32,
    /// Commit of transactions on several shards of a sharded cluster: by XA, in two phases (the default), or one shard
    /// after the other, as `sharded-postgres` always does.
    #[arg(long, value_name = "KIND", value_parser = choice(CrossShardCommit::ALL.map(|kind| (kind.name(), kind))))]
    transactions: Option<CrossShardCommit>,
}

const ENDPOINTS: [(&str, NodeProduct); 3] = [
    ("pgpool", NodeProduct::Pgpool),
    ("shardingsphere", NodeProduct::Shardingsphere),
    ("router", NodeProduct::Router),
];

fn parse_setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

impl Up {
    /// Returns what to start, as the arguments ask for it.
    fn request(&self) -> Request {
        let is_sharded = self.topology == TopologyKind::Sharded;
        let software = match self.endpoint {
            Some(NodeProduct::Pgpool) => self.pgpool.clone(),
            Some(NodeProduct::Router) => self.software.clone(),
            Some(NodeProduct::Shardingsphere) => self.shardingsphere.clone(),
            None if is_sharded => self.shardingsphere.clone(),
            _ => None,
        };
        Request {
            replicas: self.replicas,
            shards: self.shards,
            replication: self.replication,
            endpoint: self.endpoint,
            settings: self.settings.clone(),
            isolated: self.isolated,
            software: self.software.clone(),
            copy_of: self.copy_of.clone(),
            endpoint_options: endpoint::EndpointOptions {
                software,
                clients_max: self.clients_max,
                sysbench_tables: self.sysbench_tables,
                transactions: self.transactions.unwrap_or_default(),
                ..endpoint::EndpointOptions::default()
            },
            is_stopped: signals::has_come,
            ..Request::new(&self.folder.dir, self.topology)
        }
    }
}

/// Executes a command of `dyno cluster`.
pub(crate) fn run(command: &Command) -> CommandResult {
    match command {
        Command::Up(arguments) => start_cluster(arguments),
        Command::Status(arguments) => print_status(arguments),
        Command::Down(folder) => {
            Cluster::down(&folder.dir)?;
            output::talk(&format!("The cluster in {} is gone.", folder.dir.display()));
            Ok(())
        }
        Command::Kill(node) => change_node(node, "was killed", Cluster::kill),
        Command::Stop(node) => change_node(node, "is shut down", Cluster::stop),
        Command::Start(node) => change_node(node, "runs", Cluster::start),
        Command::Freeze(node) => change_node(node, "is frozen", Cluster::freeze),
        Command::Thaw(node) => change_node(node, "continues", Cluster::thaw),
        Command::Partition(node) => change_node(node, "is cut off", Cluster::partition),
        Command::Heal(node) => change_node(node, "is connected again", Cluster::heal),
        Command::Promote(node) => promote(node),
        Command::Rejoin(node) => change_node(node, "follows the primary", Cluster::rejoin),
    }
}

fn start_cluster(arguments: &Up) -> CommandResult {
    let is_joined = arguments.topology == TopologyKind::ShardedPostgres;
    if is_joined && arguments.transactions == Some(CrossShardCommit::Xa) {
        let message = "The coordinator of `sharded-postgres` commits on one shard after the other: it has no XA.";
        let hint = "Leave --transactions out, or use the topology `sharded`.";
        return Err(Failure::usage(message).with_hint(hint));
    }
    let begin = Instant::now();
    signals::on_interrupt(|| {
        output::talk("Stopping. Once more ends at once and leaves the rest to `down`.")
    })
    .map_err(|error| Failure::new(format!("Ctrl-C can't be listened to: {error}.")))?;
    let cluster = Cluster::up(&arguments.request(), &mut output::talk)?;
    output::talk(&format!("Ready after {:.1} s.", begin.elapsed().as_secs_f64()));
    output::data(&nodes_table(&cluster.status()));
    let dir = arguments.folder.dir.display();
    output::talk(&format!("hint: measure it with `dyno run SUITE --target NAME=cluster:{dir}`"));
    output::talk(&format!(
        "hint: `dyno cluster down{}` takes it down",
        dir_option(&arguments.folder.dir)
    ));
    Ok(())
}

/// The option that names the folder, with a space before it.
fn dir_option(dir: &Path) -> String {
    if dir == Path::new(DIR) { String::new() } else { format!(" --dir {}", dir.display()) }
}

fn change_node(
    node: &Node,
    became: &str,
    act: impl FnOnce(&mut Cluster, &str) -> Result<(), ClusterError>,
) -> CommandResult {
    let mut cluster = Cluster::open(&node.folder.dir)?;
    act(&mut cluster, &node.name)?;
    output::talk(&format!("Node {} {became}.", node.name));
    Ok(())
}

/// Makes a node the primary, and the old one follow it if it is there.
fn promote(node: &Node) -> CommandResult {
    let mut cluster = Cluster::open(&node.folder.dir)?;
    let before = cluster.primary().map(|primary| primary.name.clone());
    let retired = cluster.promote(&node.name)?;
    output::talk(&format!("Node {} is the primary.", node.name));
    let rejoin =
        |name: &str| format!("`dyno cluster rejoin {name}{}`", dir_option(&node.folder.dir));
    match (retired, before) {
        (Some(old), _) => {
            cluster.rejoin(&old).map_err(|error| {
                let hint = rejoin(&old);
                error.with_hint(format!("{old} follows no one: {hint} has it follow {}", node.name))
            })?;
            output::talk(&format!("Node {old} follows it."));
        }
        (None, Some(old)) => output::talk(&format!(
            "hint: {old} did not answer and follows no one: {} once it is there again",
            rejoin(&old)
        )),
        (None, None) => {}
    }
    Ok(())
}

fn print_status(arguments: &Status) -> CommandResult {
    let cluster = Cluster::open(&arguments.folder.dir)?;
    let (nodes, state) = (cluster.status(), cluster.state());
    if arguments.json {
        let document = json!({
            "folder": cluster.folder(),
            "topology": state.topology,
            "replication": state.replication,
            "endpoint": state.endpoint,
            "user": state.user,
            "database": state.database,
            "password_file": cluster.folder().join("password"),
            "nodes": nodes,
        });
        output::data(&pretty(&document)?);
    } else {
        output::data(&nodes_table(&nodes));
    }
    let not_up: Vec<&NodeStatus> = nodes.iter().filter(|node| node.health != Health::Up).collect();
    if not_up.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = not_up
        .iter()
        .map(|node| {
            let problem = node.problem.as_ref().map(|text| format!(": {text}")).unwrap_or_default();
            format!("Node {} is {}{}", node.name, node.health.name(), sentence(&problem))
        })
        .collect();
    Err(Failure::new(lines.join("\n")))
}

fn nodes_table(nodes: &[NodeStatus]) -> String {
    let rows: Vec<Vec<String>> = nodes
        .iter()
        .map(|node| {
            let lag = node.lag_s.map(|lag_s| format!("{lag_s:.1} s")).unwrap_or_default();
            vec![
                node.name.clone(),
                node.role.clone(),
                node.product.clone(),
                node.health.name().to_owned(),
                node.url.clone(),
                lag,
            ]
        })
        .collect();
    text_table(&["node", "role", "product", "health", "url", "lag"], &rows, |place| place >= 5)
}
