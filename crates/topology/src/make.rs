//! Nodes of a new cluster: data folders, start, replication.

use crate::admin::Admin;
use crate::cluster::product_of;
use crate::mysql::replication::{self, Stream};
use crate::process::{LOOK_EACH, Launch, last_lines, start};
use crate::{Cluster, ClusterError, NodeProduct, Result, StateNode};
use crate::{mysql, network, postgres};
use std::fs;
use std::time::{Duration, Instant};

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
        let product = product_of(self.state.topology);
        let servers: Vec<StateNode> = self.servers().cloned().collect();
        step(&format!("Making the data folders of {}.", count(servers.len(), product.name())));
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
        step(&format!("Starting replication to {}.", count(replicas.len(), "read-only")));
        if product == NodeProduct::Postgres {
            postgres::replication::make_slots(self, &servers[0])?;
        } else {
            for node in &replicas {
                self.follow_mysql(node, &servers[0])?;
            }
        }
        replicas.iter().try_for_each(|node| self.wait_until_streaming(&node.name))
    }

    /// Has a node of MariaDB or MySQL follow `source` from what it has.
    pub(crate) fn follow_mysql(&self, node: &StateNode, source: &StateNode) -> Result<()> {
        let password = &self.secrets.replication;
        replication::follow(&self.admin(node)?, node.product, source, password)
    }

    /// The nodes that hold data.
    pub(crate) fn servers(&self) -> impl Iterator<Item = &StateNode> {
        self.state.nodes.iter().filter(|node| node.product.is_server())
    }

    pub(crate) fn admin(&self, node: &StateNode) -> Result<Admin> {
        Admin::for_admin(node, &self.secrets.admin, STATEMENT_LIMIT_S)
    }

    /// An [`Admin`] of a node that may not answer.
    pub(crate) fn probe(&self, node: &StateNode) -> Result<Admin> {
        Admin::for_admin(node, &self.secrets.admin, PROBE_LIMIT_S)
    }

    fn launch_of(&self, node: &StateNode) -> Result<Launch> {
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
        let launch = self.launch_of(node)?;
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
            let Err(error) = admin.ask("SELECT 1") else { return Ok(None) };
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
        for node in self.servers().filter(|node| node.role != "read_only") {
            match node.product {
                NodeProduct::Postgres => postgres::make_database(self, node)?,
                _ => self
                    .admin(node)?
                    .ask(&format!("CREATE DATABASE {}", self.state.database))
                    .map(drop)?,
            }
        }
        Ok(())
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
            let why = stream.error.unwrap_or_else(|| "no error is given".to_owned());
            Ok((!stream.is_running).then(|| format!("doesn't follow {}: {why}", primary.name)))
        })?;
        self.catch_up(node, primary)
    }

    /// The state of a node's replication; `None` where it has none.
    pub(crate) fn stream(&self, node: &StateNode, admin: &Admin) -> Result<Option<Stream>> {
        match node.product {
            NodeProduct::Postgres => postgres::replication::stream(admin),
            product => replication::stream(admin, product),
        }
    }

    /// Waits until a node has applied what `source` has now.
    pub(crate) fn catch_up(&self, node: &StateNode, source: &StateNode) -> Result<()> {
        let (admin, of_source) = (self.admin(node)?, self.admin(source)?);
        let what = || format!("doesn't catch up with {}", source.name);
        if node.product == NodeProduct::Postgres {
            let position = postgres::replication::position(&of_source)?;
            return self.wait_for(node, || {
                Ok((postgres::replication::applied(&admin)? < position).then(what))
            });
        }
        let position = replication::position(&of_source, source.product)?;
        self.wait_for(node, || {
            Ok((!replication::wait_for(&admin, node.product, &position, 1)?).then(what))
        })
    }

    /// Has the primary wait for its read-only nodes, if the request asked for that.
    pub(crate) fn wait_for_acknowledgements(&self) -> Result<()> {
        let Some(primary) = self.primary() else { return Ok(()) };
        let replicas = || self.servers().filter(|node| node.role == "read_only");
        let present = replicas().filter(|node| node.pid != 0).count();
        let wanted = self.state.replication.acknowledgements(replicas().count()).min(present);
        if wanted == 0 {
            return Ok(());
        }
        let admin = self.admin(primary)?;
        if primary.product == NodeProduct::Postgres {
            postgres::replication::reconfigure(self, primary)?;
        } else {
            replication::wait_for_replicas(&admin, primary.product, true)?;
        }
        let name = self.state.replication.name();
        let what = || format!("is not acknowledged to, which {name} replication needs");
        self.wait_for(primary, || {
            let acknowledging = match primary.product {
                NodeProduct::Postgres => postgres::replication::acknowledging(&admin)?,
                product => replication::acknowledging(&admin, product)?,
            };
            Ok((acknowledging < wanted).then(what))
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
                return Err(ClusterError::stopped());
            }
            let Some(lacking) = lacks()? else { return Ok(()) };
            last = lacking;
            std::thread::sleep(LOOK_EACH);
        }
        Err(not_in_time(node, &last))
    }
}

fn count(number: usize, kind: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {kind} node{plural}")
}

pub(crate) fn not_in_time(node: &StateNode, what: &str) -> ClusterError {
    failed!("Node {} {what}; that took longer than {} s.", node.name, READY_WITHIN.as_secs())
        .with_hint(format!("its log is {}", node.log().display()))
}
