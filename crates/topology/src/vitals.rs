//! What the process, the memory and the log of a node say, for those who wait for it. The server itself is asked
//! nothing.

use crate::process::Process;
use crate::{Cluster, Health, StateNode, guarded};
use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The file to which ShardingSphere-Proxy writes what its collections of garbage leave.
pub(crate) const GARBAGE_LOG: &str = "gc.log";
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
/// The CPU is looked at for so long.
const SPAN: Duration = Duration::from_millis(500);
/// Of a tick of `/proc`, on all machines that Linux runs on.
const TICKS_PER_S: f64 = 100.0;
/// Most of a log that is read.
const READ_BYTES: u64 = 1 << 20;
/// A heap is full when a collection leaves that share of it.
const FULL: f64 = 0.8;
/// A server is starved when full collections took most of so long, and did not help.
const STARVING: Duration = Duration::from_secs(15);
const STARVED: f64 = 0.5;
/// Most of a log of collections that is read: a line is shorter than 100 bytes.
const COLLECTIONS_BYTES: u64 = 16 << 10;

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
    /// It does little but collect garbage, and its heap stays full.
    pub is_starved: bool,
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

    /// A node whose process is gone, or that is starved; `None` while it works.
    pub fn lost(&self) -> Option<Vitals> {
        let node = self.node()?;
        if node.process().is_alive() { starved(&node) } else { Some(self.dead(&node)) }
    }

    fn dead(&self, node: &StateNode) -> Vitals {
        let trouble = self.trouble(node);
        let is_out_of_memory = trouble.is_some();
        let said = tail(&node.log(), self.log_from, READ_BYTES);
        let said = trouble.or_else(|| said.as_deref().and_then(telling_line));
        let said = said.map_or("does not say why".to_owned(), |line| format!("says: {line}"));
        let text = format!("({}) is dead; its log {said}", node.product.name());
        Vitals { health: Health::Down, is_out_of_memory, is_starved: false, text }
    }

    /// Takes half a second.
    pub fn look(&self) -> Option<Vitals> {
        if let Some(lost) = self.lost() {
            return Some(lost);
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
        let collections = tail(&node.folder.join(GARBAGE_LOG), 0, COLLECTIONS_BYTES);
        let heap = collections.as_deref().and_then(heap_left);
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
        let is_out_of_memory = trouble.is_some();
        Some(Vitals { health, is_out_of_memory, is_starved: false, text })
    }

    /// The last line of its log with a word of trouble, since the watch began.
    fn trouble(&self, node: &StateNode) -> Option<String> {
        let text = tail(&node.log(), self.log_from, READ_BYTES)?;
        let line =
            text.lines().rev().find(|line| TROUBLE.iter().any(|word| line.contains(word)))?;
        Some(cut(line))
    }
}

/// The last line of a log that says how a server has ended. A process that was killed says nothing, and what it said of
/// something else before is no reason.
fn telling_line(log: &str) -> Option<String> {
    let is_telling = |line: &&str| ENDINGS.iter().any(|ending| line.contains(ending));
    log.lines().rfind(is_telling).map(cut)
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Heap {
    used_mib: u64,
    bound_mib: u64,
}

impl Heap {
    fn is_full(self) -> bool {
        self.used_mib as f64 >= FULL * self.bound_mib as f64
    }

    /// The parts of it that a collection keeps apart are full long before the whole is.
    fn is_half_full(self) -> bool {
        2 * self.used_mib >= self.bound_mib
    }
}

/// What the last collection left, where it was a full one.
fn heap_left(log: &str) -> Option<Heap> {
    let last = log.lines().rev().find(|line| line.contains("->"))?;
    full_collection(last).map(|collection| collection.left)
}

struct FullCollection {
    /// Since the server's start.
    ended_s: f64,
    took_s: f64,
    left: Heap,
}

/// `[9.961s][info][gc] GC(5) Pause Full (Ergonomics) 254M->251M(256M) 350.2ms`.
fn full_collection(line: &str) -> Option<FullCollection> {
    let (ended_s, rest) = line.strip_prefix('[')?.split_once("s]")?;
    let (_, sizes) = rest.split_once("Pause Full")?.1.split_once("->")?;
    let (used, rest) = sizes.split_once("M(")?;
    let (bound, took) = rest.split_once("M) ")?;
    let took_ms: f64 = took.trim().strip_suffix("ms")?.parse().ok()?;
    Some(FullCollection {
        ended_s: ended_s.parse().ok()?,
        took_s: took_ms / 1e3,
        left: Heap { used_mib: used.parse().ok()?, bound_mib: bound.parse().ok()? },
    })
}

/// Seconds of the last [`STARVING`] in which full collections freed little, and what the last one left. `age_s` is
/// how long ago the last line was written.
fn starving(log: &str, age_s: f64) -> Option<(f64, Heap)> {
    let full: Vec<FullCollection> = log.lines().filter_map(full_collection).collect();
    let last_line = log.lines().rev().find(|line| line.contains("->"))?;
    let (last_s, _) = last_line.strip_prefix('[')?.split_once("s]")?;
    let since_s = last_s.parse::<f64>().ok()? + age_s - STARVING.as_secs_f64();
    let within = |one: &FullCollection| one.took_s.min(one.ended_s - since_s).max(0.0);
    let in_vain = full.iter().filter(|one| one.left.is_half_full());
    Some((in_vain.map(within).sum(), full.last()?.left))
}

fn starved(node: &StateNode) -> Option<Vitals> {
    let path = node.folder.join(GARBAGE_LOG);
    let age = fs::metadata(&path).ok()?.modified().ok()?.elapsed().unwrap_or_default();
    let log = tail(&path, 0, COLLECTIONS_BYTES)?;
    let (took_s, Heap { used_mib, bound_mib }) = starving(&log, age.as_secs_f64())?;
    let of_s = STARVING.as_secs();
    let text = format!(
        "({}) has too little memory: full collections of garbage took {took_s:.0} of its last {of_s} s and leave {used_mib} \
         of {bound_mib} MiB of its heap in use",
        node.product.name()
    );
    let is_starved = took_s >= STARVED * STARVING.as_secs_f64();
    is_starved.then_some(Vitals {
        health: Health::Failing,
        is_out_of_memory: true,
        is_starved,
        text,
    })
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
    fn a_server_is_starved_when_it_does_little_but_collect_garbage_in_vain() {
        let line = |at_s: u64, left_mib: u64, ms: u64| {
            format!(
                "[{at_s}.000s][info][gc] GC(1) Pause Full (Ergonomics) 254M->{left_mib}M(256M) {ms}.5ms\n"
            )
        };
        let log = |left_mib, ms| (80..100).map(|at_s| line(at_s, left_mib, ms)).collect::<String>();
        let took_s = |log: &str, age_s| starving(log, age_s).expect("there are collections").0;
        let is_about = |found: f64, s: f64| assert!((found - s).abs() < 0.1, "{found} : {s}");
        is_about(took_s(&log(251, 900), 0.0), 13.5);
        is_about(took_s(&log(251, 900), 10.0), 4.5);
        is_about(took_s(&log(251, 100), 0.0), 1.5);
        is_about(took_s(&log(120, 900), 0.0), 0.0);
        // One collection that is longer than all that is looked at.
        is_about(took_s(&line(100, 251, 40_000), 0.0), 15.0);
        is_about(took_s(&line(100, 251, 40_000), 60.0), 0.0);
        assert_eq!(
            starving("[1.2s][info][gc] GC(4) Pause Young (x) 70M->9M(247M) 3.1ms\n", 0.0),
            None
        );
    }

    #[test]
    fn a_log_is_quoted_where_it_says_how_the_server_ended() {
        let log = "LOG:  starting\n2026 LOG:  server process was terminated by signal 9\n\
                   2026 ERROR:  could not serialize access due to concurrent update\n\
                   2026 STATEMENT:  UPDATE t\n\tat io.netty.channel.read(Channel.java:12)\n\n";
        let told = telling_line(log);
        assert_eq!(told.as_deref(), Some("2026 LOG:  server process was terminated by signal 9"));
        let of_a_statement = "[ERROR] CommandExecutorTask - Exception occur: \njava.sql.SQLException: no\n\
                              [INFO ] ShardingSphere-Proxy start success\n";
        assert_eq!(telling_line(of_a_statement), None, "it was killed");
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
        let process = Process::of(std::process::id()).expect("this one");
        assert!(resident_mib(process).expect("it has some") > 0);
        assert!(process.cpu_ticks().is_some());
    }
}
