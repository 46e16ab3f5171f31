//! Promotion of a read-only node, the return of a node that was out, and faults: kill, stop, start, freeze.

use crate::admin::Admin;
use crate::cluster::not_in_time;
use crate::folder::{FolderLock, OrFailed};
use crate::mysql;
use crate::process::{LOOK_EACH, ProcessFilter, copy_data};
use crate::{Cluster, NodeProduct, Replication, Result, StateNode, postgres};
use rustix::process::Signal;
use std::fs;
use std::time::{Duration, Instant};

/// Seconds for asking a node that may be cut off from the network.
const CUT_OFF_LIMIT_S: u64 = 1;
/// Seconds for asking a node that can't be cut off: a slow one is only busy, and a primary that is taken for dead loses
/// what no other node has received.
const BUSY_LIMIT_S: u64 = 10;
/// A change of roles always waits for its shutdowns: the next step starts a node again.
const NEVER: fn() -> bool = || false;

impl Cluster {
    /// Makes a read-only node the primary; the other read-only nodes follow it. Nothing that any of them has received
    /// is lost: the node applies all that it has, then fetches what another one has beyond that. A primary that still
    /// answers first stops writing and passes all its writes on: its name is returned. The old primary is a read-only
    /// node that follows no one until it [rejoins](Cluster::rejoin).
    pub fn promote(&mut self, name: &str) -> Result<Option<String>> {
        let _lock = self.change_roles()?;
        let node = self.node(name)?.clone();
        if node.role != "read_only" {
            return Err(failed!("Node {name} isn't a read-only node, but {}.", node.role)
                .with_hint("a read-only node can be promoted"));
        }
        self.check_alive(&node)?;
        let retired = self.retire_primary(&node)?;
        let replicas = self.answering_replicas(name).cloned().collect::<Vec<_>>();
        match node.product {
            NodeProduct::Postgres => self.fetch_rest_postgres(&node, &replicas)?,
            _ => self.fetch_rest_mysql(&node, &replicas)?,
        }
        for other in self.state.nodes.iter_mut().filter(|other| other.product.is_server()) {
            let role = if other.name == name { "primary" } else { "read_only" };
            role.clone_into(&mut other.role);
        }
        let node = self.node(name)?.clone();
        match node.product {
            NodeProduct::Postgres => self.take_over_postgres(&node, &replicas)?,
            _ => self.take_over_mysql(&node, &replicas)?,
        }
        self.save()?;
        self.renew_endpoint()?;
        Ok(retired)
    }

    /// Begins a change of roles, unless it would stop at its first wait.
    fn change_roles(&mut self) -> Result<FolderLock> {
        if (self.is_stopped)() { Err(crate::stopped_error()) } else { self.change() }
    }

    /// The read-only nodes that answer, but not the one with this name.
    fn answering_replicas(&self, but: &str) -> impl Iterator<Item = &StateNode> {
        let replicas = self.servers().filter(|node| node.role == "read_only");
        replicas.filter(move |node| node.name != but && self.is_answering(node))
    }

    fn is_answering(&self, node: &StateNode) -> bool {
        let process = node.process();
        let limit_s = if self.state.isolated { CUT_OFF_LIMIT_S } else { BUSY_LIMIT_S };
        process.is_alive()
            && !process.is_frozen()
            && Admin::for_admin(node, &self.secrets.admin, limit_s)
                .and_then(|admin| admin.query("SELECT 1"))
                .is_ok()
    }

    /// Has a primary that answers hand over in an orderly way, and names it.
    fn retire_primary(&mut self, next: &StateNode) -> Result<Option<String>> {
        let old = self.primary().filter(|old| self.is_answering(old)).cloned();
        let Some(old) = old else { return Ok(None) };
        if old.product == NodeProduct::Postgres {
            // It sends everything to its standbys before it leaves.
            self.shut_down(&old.name, NEVER)?;
            return Ok(Some(old.name));
        }
        let admin = self.admin(&old)?;
        mysql::set_read_only(&admin, true)?;
        let caught_up = self.catch_up(next, &old);
        if caught_up.is_err() {
            // One node has to take writes.
            mysql::set_read_only(&admin, false)?;
        }
        caught_up.map(|()| Some(old.name))
    }

    /// Applies what the node has received, and what another one has received beyond that.
    fn fetch_rest_mysql(&self, node: &StateNode, others: &[StateNode]) -> Result<()> {
        for one in others.iter().chain([node]) {
            let admin = self.admin(one)?;
            let received = mysql::stop_receiving(&admin)?;
            self.wait_for(one, || {
                let is_applied = mysql::wait_for(&admin, &received)?;
                Ok((!is_applied).then(|| "doesn't apply what it has received".to_owned()))
            })?;
        }
        let admin = self.admin(node)?;
        for other in others {
            let position = mysql::position(&self.admin(other)?)?;
            if !mysql::has(&admin, &position)? {
                self.follow_mysql(node, other)?;
                self.catch_up(node, other)?;
            }
        }
        Ok(())
    }

    fn take_over_mysql(&self, node: &StateNode, others: &[StateNode]) -> Result<()> {
        let admin = self.admin(node)?;
        mysql::follow_nobody(&admin)?;
        if self.state.replication != Replication::Async {
            mysql::acknowledge(&admin, false)?;
            mysql::wait_for_replicas(&admin, !others.is_empty())?;
        }
        mysql::set_read_only(&admin, false)?;
        others.iter().try_for_each(|other| self.follow_mysql(other, node))
    }

    /// Like [`Cluster::fetch_rest_mysql`], for PostgreSQL, whose standbys can follow each other.
    fn fetch_rest_postgres(&self, node: &StateNode, others: &[StateNode]) -> Result<()> {
        let admin = self.admin(node)?;
        for other in others {
            let position = postgres::position(&self.admin(other)?)?;
            if postgres::position(&admin)? < position {
                postgres::follow(self, node, Some(other))?;
                self.catch_up(node, other)?;
            }
        }
        Ok(())
    }

    fn take_over_postgres(&self, node: &StateNode, others: &[StateNode]) -> Result<()> {
        let admin = self.admin(node)?;
        if admin.query("SELECT pg_promote(true, 50)")?.single() != "t" {
            return Err(not_in_time(node, "doesn't become the primary"));
        }
        postgres::make_slots(self, node)?;
        for other in others {
            postgres::reconfigure(self, other)?;
        }
        postgres::reconfigure(self, node)
    }

    /// Has a node that was out, such as an old primary, follow the primary again with exactly its data. Returns when it
    /// has caught up. Transactions that only this node had are lost; if they can't be undone, the data folder is
    /// copied from another node's, which is shut down meanwhile (MariaDB, MySQL; PostgreSQL copies from the
    /// running primary).
    pub fn rejoin(&mut self, name: &str) -> Result<()> {
        let _lock = self.change_roles()?;
        let node = self.node(name)?.clone();
        if node.role != "read_only" {
            return Err(failed!("Node {name} can't rejoin: it is {}.", node.role));
        }
        let primary = self.need_primary()?.clone();
        if self.is_answering(&node) {
            self.shut_down(name, NEVER)?;
        } else {
            self.processes(&node).kill()?;
            self.set_stopped(name)?;
        }
        match node.product {
            NodeProduct::Postgres => {
                postgres::make_slots(self, &primary)?;
                postgres::copy_primary(self, &primary, &node)?;
                self.start_again(name)?;
            }
            _ => self.rejoin_mysql(&node, &primary)?,
        }
        self.wait_until_streaming(name)?;
        self.wait_for_acknowledgements()?;
        self.renew_endpoint()
    }

    fn rejoin_mysql(&mut self, node: &StateNode, primary: &StateNode) -> Result<()> {
        self.start_again(&node.name)?;
        let admin = self.admin(node)?;
        if mysql::has_diverged(&admin, &self.admin(primary)?)? {
            self.copy_from_another(node, primary)?;
        }
        mysql::begin_from_own(&admin)?;
        if self.state.replication != Replication::Async {
            mysql::acknowledge(&admin, true)?;
        }
        self.follow_mysql(node, primary)
    }

    /// Makes a node's data folder again as a copy of a read-only node's, else of the primary's, whose server is shut
    /// down meanwhile.
    fn copy_from_another(&mut self, node: &StateNode, primary: &StateNode) -> Result<()> {
        let spare = self.answering_replicas(&node.name).next().unwrap_or(primary).clone();
        if spare.name != primary.name {
            self.catch_up(&spare, primary)?;
        }
        self.shut_down(&node.name, NEVER)?;
        self.shut_down(&spare.name, NEVER)?;
        let data = node.data();
        let copied = fs::remove_dir_all(&data)
            .or_failed("removed", &data)
            .and_then(|()| copy_data(self, &spare, node));
        // Whatever became of the copy, the cluster must have its other node back.
        self.start_again(&spare.name)?;
        copied?;
        // MySQL takes copies with the same identity for one server.
        let _ = fs::remove_file(data.join("auto.cnf"));
        self.start_again(&node.name)
    }
}

/// Time limit of a clean shutdown of a server.
const STOP_WITHIN: Duration = Duration::from_secs(120);

impl Cluster {
    /// The filter for the processes of a node.
    pub(crate) fn processes(&self, node: &StateNode) -> ProcessFilter {
        let mark = format!("{}/{}", self.state.id, node.name);
        ProcessFilter::new(&mark, &node.folder, vec![node.process()])
    }

    pub(crate) fn set_stopped(&mut self, name: &str) -> Result<()> {
        let at = self.position(name)?;
        let node = &mut self.state.nodes[at];
        (node.pid, node.pid_started_ticks) = (0, 0);
        self.save()
    }

    /// Kills all processes of a node at once (SIGKILL), as when its machine dies. Returns when they are
    /// gone; the data folder stays.
    pub fn kill(&mut self, name: &str) -> Result<()> {
        let _lock = self.change()?;
        self.processes(self.node(name)?).kill()?;
        self.set_stopped(name)
    }

    /// Shuts a node down cleanly and returns when it is gone.
    pub fn stop(&mut self, name: &str) -> Result<()> {
        let _lock = self.change()?;
        self.shut_down(name, self.is_stopped)
    }

    pub(crate) fn shut_down(&mut self, name: &str, is_stopped: fn() -> bool) -> Result<()> {
        let node = self.node(name)?;
        let process = node.process();
        if process.is_frozen() {
            self.processes(node).signal(Signal::CONT)?;
        }
        // PostgreSQL waits for its clients after SIGTERM, and sends them away after SIGINT.
        let is_postgres = matches!(node.product, NodeProduct::Postgres | NodeProduct::Pgpool);
        process.signal(if is_postgres { Signal::INT } else { Signal::TERM })?;
        let begin = Instant::now();
        while process.is_alive() {
            if is_stopped() {
                return Err(crate::stopped_error());
            }
            if begin.elapsed() > STOP_WITHIN {
                let limit_s = STOP_WITHIN.as_secs();
                return Err(failed!("Node {name} is still shutting down after {limit_s} s.")
                    .with_hint("it may wait for transactions; killing it is the other way"));
            }
            std::thread::sleep(LOOK_EACH);
        }
        self.processes(self.node(name)?).kill()?;
        self.set_stopped(name)
    }

    /// Starts a node that was killed or stopped, in the role that `cluster.json` gives it, and returns
    /// when it takes log-ins. Nothing to do when it runs.
    pub fn start(&mut self, name: &str) -> Result<()> {
        let _lock = self.change()?;
        self.start_again(name)
    }

    pub(crate) fn start_again(&mut self, name: &str) -> Result<()> {
        let node = self.node(name)?;
        if self.check_alive(node).is_ok() {
            return Ok(());
        }
        // Children of a killed PostgreSQL hold its shared memory until they notice.
        self.processes(node).kill()?;
        self.launch(name)?;
        match self.node(name)?.role.as_str() {
            "endpoint" => self.wait_for_endpoint(),
            _ => self.wait_for_log_in(name),
        }
    }

    /// Stops all processes of a node in their tracks (SIGSTOP): connections stay open, nothing is answered any more.
    pub fn freeze(&mut self, name: &str) -> Result<()> {
        let _lock = self.change()?;
        self.processes(self.node(name)?).signal(Signal::STOP)
    }

    /// Lets a frozen node continue (SIGCONT).
    pub fn thaw(&mut self, name: &str) -> Result<()> {
        let _lock = self.change()?;
        self.processes(self.node(name)?).signal(Signal::CONT)
    }
}
