//! Faults: kill, stop, start, freeze a node.

use crate::process::{LOOK_EACH, ProcessFilter};
use crate::{Cluster, ClusterError, NodeProduct, Result, StateNode};
use rustix::process::Signal;
use std::time::{Duration, Instant};

/// How long a server may take to shut down cleanly.
const STOP_WITHIN: Duration = Duration::from_secs(120);

impl Cluster {
    pub(crate) fn processes(&self, node: &StateNode) -> ProcessFilter {
        ProcessFilter::node(&self.state.id, &node.name, &node.folder, node.process())
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
                return Err(ClusterError::stopped());
            }
            if begin.elapsed() > STOP_WITHIN {
                return Err(failed!(
                    "Node {name} is still shutting down after {} s.",
                    STOP_WITHIN.as_secs()
                )
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

    /// Lets a frozen node go on (SIGCONT).
    pub fn thaw(&mut self, name: &str) -> Result<()> {
        let _lock = self.change()?;
        self.processes(self.node(name)?).signal(Signal::CONT)
    }
}
