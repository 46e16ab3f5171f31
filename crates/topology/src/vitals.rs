//! What the process, the memory and the log of a node say, for those who wait for it. The server itself is asked
//! nothing.

use crate::process::Process;
use crate::{Cluster, Health, StateNode};
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The file to which ShardingSphere-Proxy writes what its collections of garbage leave.
pub(crate) const GARBAGE_LOG: &str = "gc.log";
/// Words of servers that have no memory left, or have given up.
const TROUBLE: [&str; 4] = ["OutOfMemory", "GC overhead limit", "out of memory", "PANIC"];
/// The CPU is looked at for so long.
const SPAN: Duration = Duration::from_millis(500);
/// Of a tick of `/proc`, on all machines that Linux runs on.
const TICKS_PER_S: f64 = 100.0;
/// Most of a log that is read.
const READ_BYTES: u64 = 1 << 20;
/// A heap is full when a collection leaves that share of it.
const FULL: f64 = 0.8;

/// Watches a node of a cluster from now on.
#[derive(Clone, Debug)]
pub struct NodeWatch {
    folder: PathBuf,
    name: String,
    /// Where its log ended when the watch began.
    log_from: u64,
}

/// How a node is, from bad to worse.
#[derive(Clone, Debug, PartialEq)]
pub struct Vitals {
    /// Up says no more than that its process runs; failing that its heap is full.
    pub health: Health,
    /// Its log says so.
    pub is_out_of_memory: bool,
    /// Goes on with a sentence that begins with its name.
    pub text: String,
}

impl NodeWatch {
    /// `None` where there is no such node any more.
    pub fn new(folder: &Path, name: &str) -> Option<Self> {
        let watch = NodeWatch { folder: folder.to_owned(), name: name.to_owned(), log_from: 0 };
        let log_from = fs::metadata(watch.node()?.log()).map_or(0, |log| log.len());
        Some(NodeWatch { log_from, ..watch })
    }

    /// As `cluster.json` has it now: a node that was started again has another process.
    fn node(&self) -> Option<StateNode> {
        Cluster::open(&self.folder).ok()?.node(&self.name).ok().cloned()
    }

    /// What is left of a node whose process is gone; `None` while it runs.
    pub fn dead(&self) -> Option<Vitals> {
        let node = self.node().filter(|node| !node.process().is_alive())?;
        let trouble = self.trouble(&node);
        let is_out_of_memory = trouble.is_some();
        let said = tail(&node.log(), self.log_from);
        let said = trouble.or_else(|| said.as_deref().and_then(telling_line));
        let said = said.map_or("does not say why".to_owned(), |line| format!("ends with: {line}"));
        let text = format!("({}) is dead; its log {said}", node.product.name());
        Some(Vitals { health: Health::Down, is_out_of_memory, text })
    }

    /// Takes half a second.
    pub fn look(&self) -> Option<Vitals> {
        if let Some(dead) = self.dead() {
            return Some(dead);
        }
        let node = self.node()?;
        let process = node.process();
        let before = process.cpu_ticks();
        std::thread::sleep(SPAN);
        let busy =
            process.cpu_ticks().zip(before).map(|(after, before)| after.saturating_sub(before));
        let share = busy.unwrap_or(0) as f64 / TICKS_PER_S / SPAN.as_secs_f64();
        let is_frozen = process.is_frozen();
        let runs = if is_frozen { "is frozen" } else { "runs" };
        let mut text = format!("({}) {runs}: CPU {:.0} %", node.product.name(), share * 100.0);
        if let Some(mib) = resident_mib(process) {
            text.push_str(&format!(", {mib} MiB of memory"));
        }
        let heap = tail(&node.folder.join(GARBAGE_LOG), 0).as_deref().and_then(heap_left);
        if let Some(heap) = &heap {
            let Heap { used_mib, bound_mib } = heap;
            text.push_str(&format!(", heap {used_mib} of {bound_mib} MiB after a full collection"));
        }
        let trouble = self.trouble(&node);
        if let Some(line) = &trouble {
            text.push_str(&format!(", and its log says: {line}"));
        }
        let health = match (is_frozen, heap.is_some_and(Heap::is_full)) {
            (true, _) => Health::Frozen,
            (false, true) => Health::Failing,
            (false, false) => Health::Up,
        };
        Some(Vitals { health, is_out_of_memory: trouble.is_some(), text })
    }

    /// The last line of its log with a word of trouble, since the watch began.
    fn trouble(&self, node: &StateNode) -> Option<String> {
        let text = tail(&node.log(), self.log_from)?;
        let line =
            text.lines().rev().find(|line| TROUBLE.iter().any(|word| line.contains(word)))?;
        Some(cut(line))
    }
}

/// The last line of a log that may say why a server has ended. Frames of Java, what belongs to the line above it and
/// errors of single statements don't.
fn telling_line(log: &str) -> Option<String> {
    const NOISE: [&str; 7] =
        ["at ", "Caused by:", "STATEMENT:", "CONTEXT:", "DETAIL:", "HINT:", "ERROR:"];
    let is_noise = |line: &str| NOISE.iter().any(|noise| line.contains(noise));
    let said = log.lines().filter(|line| !line.starts_with(char::is_whitespace));
    said.filter(|line| !line.trim().is_empty()).rfind(|line| !is_noise(line)).map(cut)
}

/// Long lines of logs carry whole statements.
fn cut(line: &str) -> String {
    line.trim().chars().take(300).collect()
}

/// The end of a file, behind `from` bytes.
fn tail(path: &Path, from: u64) -> Option<String> {
    let mut file = File::open(path).ok()?;
    let end = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(from.max(end.saturating_sub(READ_BYTES)))).ok()?;
    let mut bytes = Vec::new();
    file.take(READ_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn resident_mib(process: Process) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{}/status", process.pid)).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? / 1024)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Heap {
    used_mib: u64,
    bound_mib: u64,
}

impl Heap {
    fn is_full(self) -> bool {
        self.used_mib as f64 >= FULL * self.bound_mib as f64
    }
}

/// What the last collection left, where it was a full one: `Pause Full (Ergonomics) 254M->251M(256M) 350.2ms`.
fn heap_left(log: &str) -> Option<Heap> {
    let line = log.lines().rev().find(|line| line.contains("->"))?;
    let (_, sizes) = line.split_once("Pause Full")?.1.split_once("->")?;
    let (used, rest) = sizes.split_once("M(")?;
    let (bound, _) = rest.split_once('M')?;
    Some(Heap { used_mib: used.parse().ok()?, bound_mib: bound.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heap_is_full_when_a_full_collection_leaves_most_of_it() {
        let young = "[1.2s][info][gc] GC(4) Pause Young (Allocation Failure) 70M->9M(247M) 3.1ms\n";
        let full = "[9.9s][info][gc] GC(5) Pause Full (Ergonomics) 254M->251M(256M) 350.2ms\n";
        assert_eq!(heap_left(young), None);
        let heap = heap_left(&format!("{young}{full}")).expect("the last one");
        assert_eq!(heap, Heap { used_mib: 251, bound_mib: 256 });
        assert!(heap.is_full());
        assert_eq!(heap_left(&format!("{full}{young}")), None, "it has recovered");
        assert!(!Heap { used_mib: 200, bound_mib: 256 }.is_full());
    }

    #[test]
    fn the_line_of_a_log_that_tells_most_is_one_line() {
        let log = "LOG:  starting\n2026 LOG:  server process was terminated by signal 9\n\
                   2026 ERROR:  could not serialize access due to concurrent update\n\
                   2026 CONTEXT:  SQL statement\n\tSELECT 1\n\
                   2026 STATEMENT:  UPDATE t\n\tat io.netty.channel.read(Channel.java:12)\n\n";
        let told = telling_line(log);
        assert_eq!(told.as_deref(), Some("2026 LOG:  server process was terminated by signal 9"));
        assert_eq!(telling_line("\tat io.netty\nERROR:  could not serialize\n"), None);
    }

    #[test]
    fn only_what_a_log_says_later_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("log");
        fs::write(&log, "old\nnew\n").expect("it can be written");
        assert_eq!(tail(&log, 4).as_deref(), Some("new\n"));
        assert_eq!(tail(&folder.path().join("none"), 0), None);
    }

    #[test]
    fn a_process_has_memory_and_has_used_the_cpu() {
        let process = Process::of(std::process::id()).expect("this one");
        assert!(resident_mib(process).expect("it has some") > 0);
        assert!(process.cpu_ticks().is_some());
    }
}
