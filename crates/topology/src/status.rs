//! Health of a cluster's nodes; and what the process, the memory and the log of a node say, for those who wait for it:
//! those sources need no answer from the server.

use crate::process::Process;
use crate::{Cluster, Result, StateNode, guarded};
use dyno_core::{NodeHealth, NodeSight};
use serde::Serialize;
use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

dyno_core::named! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Health {
        /// Takes log-ins; a read-only node streams.
        Up = "up",
        /// Runs and doesn't work; the status says why.
        Failing = "failing",
        Frozen = "frozen",
        Down = "down",
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NodeStatus {
    pub name: String,
    pub product: String,
    pub role: String,
    pub url: String,
    /// Its process; 0 when it was stopped.
    pub pid: u32,
    pub health: Health,
    /// Seconds behind the primary, by the node's own account.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lag_s: Option<f64>,
    /// Reason why it doesn't work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl Cluster {
    /// Fails where a run would wait in vain: for a node that is frozen, or for data of one that follows no one.
    pub fn check_followers(&self) -> Result<()> {
        let dir = self.folder().display();
        for node in &self.state.nodes {
            let name = &node.name;
            if node.process().is_frozen() {
                return Err(failed!("Node {name} is frozen: a dyno that froze it was killed, or somebody did it by hand.")
                    .with_hint(format!("`dyno cluster thaw {name} --dir {dir}` lets it continue")));
            }
            if node.role != "read_only" {
                continue;
            }
            let stream = self.probe(node).and_then(|admin| self.stream(node, &admin));
            // A node that doesn't answer is reported when the run connects to it.
            if matches!(stream, Ok(None)) {
                return Err(failed!("Node {name} follows nobody: what is read there is old.")
                    .with_hint(format!(
                        "`dyno cluster rejoin {name} --dir {dir}` has it follow the primary"
                    )));
            }
        }
        Ok(())
    }

    /// The status of each node. Nodes that don't answer cost a few seconds each.
    pub fn status(&self) -> Vec<NodeStatus> {
        self.state.nodes.iter().map(|node| self.node_status(node)).collect()
    }

    fn node_status(&self, node: &StateNode) -> NodeStatus {
        let process = node.process();
        let (health, lag_s, problem) = if !process.is_alive() {
            let problem = format!(
                "it was stopped or killed, or ended by itself: its log may say why; `dyno cluster start {}` starts it \
                 again",
                node.name
            );
            (Health::Down, None, Some(problem))
        } else if process.is_frozen() {
            (Health::Frozen, None, None)
        } else {
            match self.query_health(node) {
                Ok((lag_s, None)) => (Health::Up, lag_s, None),
                Ok((lag_s, problem)) => (Health::Failing, lag_s, problem),
                Err(error) => (Health::Failing, None, Some(error.message)),
            }
        };
        NodeStatus {
            name: node.name.clone(),
            product: node.product.name().to_owned(),
            role: node.role.clone(),
            url: self.url(node, None),
            pid: node.pid,
            health,
            lag_s,
            problem,
        }
    }

    /// Connects to a node; returns the replication lag of a read-only one in seconds, and its problem if it doesn't follow
    /// the primary.
    fn query_health(&self, node: &StateNode) -> Result<(Option<f64>, Option<String>)> {
        if node.role == "endpoint" {
            return self.ask_endpoint(node).map(|()| (None, None));
        }
        let admin = self.probe(node)?;
        if node.role != "read_only" {
            return admin.query("SELECT 1").map(|_| (None, None));
        }
        let Some(stream) = self.stream(node, &admin)? else {
            return Ok((None, Some("it follows no primary".to_owned())));
        };
        let problem = (!stream.is_running)
            .then(|| stream.error.unwrap_or("it doesn't follow the primary".to_owned()));
        Ok((stream.lag_s, problem))
    }
}

/// Words of servers that have no memory left, or have given up.
const TROUBLE: [&str; 4] = ["OutOfMemory", "GC overhead limit", "out of memory", "PANIC"];
/// Words of servers that end.
const ENDINGS: [&str; 7] = [
    "terminated by signal",
    "got signal",
    "hutdown",
    "FATAL:  could not",
    "Aborting",
    "fatal error has been detected",
    "Exception in thread \"main\"",
];
/// Time for which the CPU is observed.
const SPAN: Duration = Duration::from_millis(500);
/// Rate of ticks of `/proc`, on all machines that Linux runs on.
const TICKS_PER_S: f64 = 100.0;
/// Most of a log that is read.
const READ_BYTES: u64 = 1 << 20;

/// Watches a node of a cluster from now on.
#[derive(Clone, Debug)]
pub struct NodeWatch {
    folder: PathBuf,
    name: String,
    /// End of its log when the watch began.
    log_from: u64,
}

impl NodeWatch {
    /// `None` if the cluster has no such node any more.
    pub fn new(folder: &Path, name: &str) -> Option<Self> {
        let watch = NodeWatch { folder: folder.to_owned(), name: name.to_owned(), log_from: 0 };
        let log_from = fs::metadata(watch.node()?.log()).map_or(0, |log| log.len());
        Some(NodeWatch { log_from, ..watch })
    }

    /// Like `cluster.json` has it now: a node that was started again has another process.
    fn node(&self) -> Option<StateNode> {
        Cluster::open(&self.folder).ok()?.node(&self.name).ok().cloned()
    }

    /// A node whose process is gone; `None` while it is there.
    pub fn lost(&self) -> Option<NodeSight> {
        let node = self.node().filter(|node| node.process().is_ending())?;
        let log = self.log(&node);
        let reason = last_line(&log, &TROUBLE).or_else(|| last_line(&log, &ENDINGS));
        let reason = reason.map_or("does not say why".to_owned(), |line| format!("says: {line}"));
        let evidence = format!("({}) is dead; its log {reason}", node.product.name());
        Some(NodeSight { name: self.name.clone(), health: NodeHealth::Dead, evidence })
    }

    /// Takes half a second.
    pub fn look(&self) -> Option<NodeSight> {
        if let Some(lost) = self.lost() {
            return Some(lost);
        }
        let node = self.node()?;
        let process = node.process();
        let before = process.cpu_ticks();
        std::thread::sleep(SPAN);
        let ticks = process.cpu_ticks().zip(before);
        let busy = ticks.map_or(0, |(after, before)| after.saturating_sub(before));
        let share = busy as f64 / TICKS_PER_S / SPAN.as_secs_f64();
        let is_frozen = process.is_frozen();
        let runs = if is_frozen { "is frozen" } else { "runs" };
        let memory = resident_mib(process).map(|mib| format!(", {mib} MiB of memory"));
        let (product, memory) = (node.product.name(), memory.unwrap_or_default());
        let mut evidence = format!("({product}) {runs}: CPU {:.0}%{memory}", share * 100.0);
        let trouble = last_line(&self.log(&node), &TROUBLE);
        if let Some(line) = &trouble {
            evidence.push_str(&format!(", and its log says: {line}"));
        }
        let health = match trouble {
            Some(_) => NodeHealth::OutOfMemory,
            None if is_frozen => NodeHealth::Stuck,
            None => NodeHealth::Works,
        };
        Some(NodeSight { name: self.name.clone(), health, evidence })
    }

    /// The end of the node's log since the watch began.
    fn log(&self, node: &StateNode) -> String {
        tail(&node.log(), self.log_from, READ_BYTES).unwrap_or_default()
    }
}

/// The last line of a log with one of these words. A process that was killed says nothing, and what it said of
/// something else before isn't the reason.
fn last_line(log: &str, words: &[&str]) -> Option<String> {
    log.lines().rfind(|line| words.iter().any(|word| line.contains(word))).map(cut)
}

/// Long lines of logs carry whole statements.
fn cut(line: &str) -> String {
    line.trim().chars().take(300).collect()
}

/// The last `most` bytes of a file, behind `from` bytes.
fn tail(path: &Path, from: u64, most: u64) -> Option<String> {
    let mut file = guarded::read(path).ok()?;
    let end = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(from.max(end.saturating_sub(most)))).ok()?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn resident_mib(process: Process) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{}/status", process.pid)).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? / 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_quoted_where_it_says_how_the_server_ended() {
        let log = "LOG:  starting\n2026 LOG:  server process was terminated by signal 9\n\
                   2026 ERROR:  could not serialize access due to concurrent update\n\
                   2026 STATEMENT:  UPDATE t\n\tat io.netty.channel.read(Channel.java:12)\n\n";
        let line = last_line(log, &ENDINGS);
        assert_eq!(line.as_deref(), Some("2026 LOG:  server process was terminated by signal 9"));
        let statement_error = "[ERROR] CommandExecutorTask - Exception occur: \njava.sql.SQLException: no\n\
                              [INFO ] ShardingSphere-Proxy start success\n";
        assert_eq!(last_line(statement_error, &ENDINGS), None, "it was killed");
    }

    #[test]
    fn only_what_a_log_says_later_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("log");
        fs::write(&log, "old\nnew\n").expect("it can be written");
        assert_eq!(tail(&log, 4, 99).as_deref(), Some("new\n"));
        assert_eq!(tail(&folder.path().join("none"), 0, 99), None);
    }

    #[test]
    fn a_process_has_memory_and_has_used_the_cpu() {
        let process = Process::living(std::process::id()).expect("this one");
        assert!(resident_mib(process).expect("it has some") > 0);
        assert!(process.cpu_ticks().is_some());
    }
}
