//! Resources that the servers on this machine use: which processes a server is made of, and their CPU time.
//!
//! A server is the process that listens at an address, with all that descend from it. Times of children that have ended
//! are with their parent once it has waited for them, so that a session that began and ended between two looks is not
//! missed. A control group of the server's own counts the same without these detours.

use crate::proc::{self, SocketOwner};
use dyno_core::Address;
use dyno_facts::{Measures, Metric};
use rustix::fs::statfs;
use rustix::param::clock_ticks_per_second;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Programs that hand connections on to a server that is in another place: their CPU is not its.
const FORWARDERS: &str =
    "docker-proxy rootlesskit rootlessport pasta slirp4netns kubectl socat ssh sshd";
/// File systems by the numbers that `statfs` gives them; others are shown as these.
const FILE_SYSTEMS: &str = "6969 nfs, ef53 ext4, 1021994 tmpfs, 2fc12fc1 zfs, 58465342 xfs, 65735546 fuse, \
                            794c7630 overlay, 858458f6 ramfs, 9123683e btrfs";
/// The kernel counts in ticks of 10 ms, rounded down for each process: less than this may be nothing.
const FEWEST_TICKS: u64 = 10;

/// A server's first process: a later one with its number is another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerProcess {
    pid: u32,
    started_ticks: u64,
    /// The kernel's name of it, such as `postgres`.
    pub name: String,
}

/// A process as its `/proc/PID/stat` has it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ProcessStat {
    name: String,
    parent: u32,
    /// Its CPU time without that of its children, in clock ticks: user and system.
    own_ticks: u64,
    /// CPU time of children that have ended and were waited for, in clock ticks.
    ended_ticks: u64,
    /// When it was started, in clock ticks after the start of the system.
    started_ticks: u64,
}

/// Resources that a server had used at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerUsage {
    process: ServerProcess,
    /// CPU time of its processes, and of children that have ended.
    ticks: u64,
    /// The part of children that have ended and were waited for.
    ended_ticks: u64,
    processes: u64,
    /// The server's own control group and the microseconds that it counted.
    group: Option<(PathBuf, u64)>,
    threads: BTreeMap<u32, ThreadUsage>,
}

/// Counters of a thread at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ThreadUsage {
    /// Number of context switches, voluntary or not.
    switches: u64,
    /// Its time on a CPU; `None` if the kernel keeps no such statistics.
    cpu_ns: Option<u64>,
    /// Bytes that it gave to file systems, when they were written to the cache; `None` where this user may not see
    /// them.
    written_bytes: Option<u64>,
    /// Bytes that were read from devices for it.
    read_bytes: Option<u64>,
}

impl ServerProcess {
    /// The process with this number.
    pub fn numbered(pid: u32) -> Option<Self> {
        let stat = read_stat(pid)?;
        Some(ServerProcess { pid, started_ticks: stat.started_ticks, name: stat.name })
    }

    /// The process that listens at an address of this machine; `None` if there is none, or several that don't
    /// descend from one, or one that only forwards. For a server of another user, whose sockets can't be seen, it is
    /// the only one that this user's processes descend from.
    pub fn listening(address: &Address) -> Option<Self> {
        let owners = owners(address);
        let by_pid = all_processes();
        let inodes: BTreeSet<u64> = owners.iter().map(|owner| owner.inode).collect();
        let mut holders: BTreeSet<u32> =
            by_pid.keys().copied().filter(|&pid| pid > 1 && holds_socket(pid, &inodes)).collect();
        if holders.is_empty() {
            let users = owners.iter().filter_map(|owner| owner.user).collect::<BTreeSet<u32>>();
            holders = other_user_processes(&by_pid, &users);
        }
        let mut first = holders.iter().filter(|pid| !holders.contains(&by_pid[*pid].parent));
        let (Some(&pid), None) = (first.next(), first.next()) else { return None };
        let server = ServerProcess::numbered(pid)?;
        (!FORWARDERS.split(' ').any(|name| name == server.name)).then_some(server)
    }

    /// The kinds of the file systems of a server's data and log, as settings of dyno's own; those that can't be seen
    /// are missing. `settings` are the server's.
    pub fn storage(&self, settings: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let data = ["data_directory", "datadir"].iter().find_map(|name| settings.get(*name));
        // What a pooler hands on may be the settings of a server elsewhere.
        let data = data.filter(|_| ["mariadbd", "mysqld", "postgres"].contains(&&*self.name));
        let log = settings.get("innodb_log_group_home_dir").map_or("pg_wal", String::as_str);
        let places = data.into_iter().flat_map(|data| {
            [("data_file_system", data.into()), ("log_file_system", Path::new(data).join(log))]
        });
        let kinds = places.filter_map(|(name, place): (&str, PathBuf)| {
            // A container has its own files below its own root.
            let seen_by_server = format!("/proc/{}/root{}", self.pid, place.display());
            let file_system = statfs(seen_by_server).or_else(|_| statfs(&place)).ok()?;
            let number = format!("{:x} ", file_system.f_type as u32);
            let kind_name = FILE_SYSTEMS.split(", ").find_map(|kind| kind.strip_prefix(&number));
            Some((name.to_owned(), kind_name.unwrap_or(number.trim()).to_owned()))
        });
        kinds.collect()
    }

    /// Resources used until now; `None` when it has ended.
    pub fn usage(&self) -> Option<ServerUsage> {
        /// A child that ends between two lines of this look would be missed, or counted twice.
        const LOOKS: u32 = 5;
        let mut snapshot = self.snapshot()?;
        for _ in 1..LOOKS {
            let ended_ticks = read_stat(self.pid)?.ended_ticks;
            if snapshot.1 == ended_ticks {
                break;
            }
            snapshot = self.snapshot()?;
        }
        Some(snapshot.0)
    }

    /// The second number is the time of children that had ended when the look began.
    fn snapshot(&self) -> Option<(ServerUsage, u64)> {
        let by_pid = all_processes();
        let stat = by_pid.get(&self.pid).filter(|stat| stat.started_ticks == self.started_ticks)?;
        let tree = descendants(&by_pid, self.pid);
        let ticks = tree.iter().map(|pid| by_pid[pid].own_ticks + by_pid[pid].ended_ticks).sum();
        let ended_ticks = tree.iter().map(|pid| by_pid[pid].ended_ticks).sum();
        let group = own_group(self.pid, &tree);
        let (process, threads) = (self.clone(), threads(&tree));
        let processes = tree.len() as u64;
        let usage = ServerUsage { process, ticks, ended_ticks, processes, group, threads };
        Some((usage, stat.ended_ticks))
    }
}

impl ServerUsage {
    /// Seconds used from `before` to `self`; `None` for another process, and if that is too little to be known.
    pub fn used_s(&self, before: &ServerUsage) -> Option<f64> {
        self.used_beside_s(before).filter(|used_s| {
            let is_by_group = self.group.is_some() && before.group.is_some();
            let is_fine = is_by_group || self.cpu_s_of_living(before).is_some();
            is_fine || *used_s * clock_ticks_per_second() as f64 >= FEWEST_TICKS as f64 - 0.5
        })
    }

    /// All that was used from `before` to `self`, even if it is little: by a node that is idle alongside others that
    /// are not.
    pub fn since(&self, before: &ServerUsage) -> Option<Measures> {
        let used_s = self.used_beside_s(before)?;
        let measures = [
            (Metric::CpuS, Some(used_s)),
            (Metric::ContextSwitches, self.grown_since(before, |thread| Some(thread.switches))),
            (Metric::WrittenBytes, self.grown_since(before, |thread| thread.written_bytes)),
            (Metric::ReadBytes, self.grown_since(before, |thread| thread.read_bytes)),
        ];
        Some(measures.into())
    }

    /// The sum of a counter's growth over all threads since `before`; `None` if a thread has ended, as its counter is
    /// lost.
    fn grown_since(
        &self,
        before: &ServerUsage,
        count: impl Fn(&ThreadUsage) -> Option<u64>,
    ) -> Option<f64> {
        let growth = self.grown_of_living(before, count).map(|count| count as f64);
        growth.filter(|_| !self.has_lost_threads(before))
    }

    /// Returns true if a thread has ended since `before`, be it one that had begun since then: a session of a trial that was
    /// closed before this look.
    fn has_lost_threads(&self, before: &ServerUsage) -> bool {
        let is_gone = before.threads.keys().any(|thread| !self.threads.contains_key(thread));
        // User and system time are cut to ticks, at both looks.
        let coarse_ticks = 4 * self.processes;
        let living_s = self.cpu_s_of_living(before).unwrap_or(f64::INFINITY);
        let living_ticks = (living_s * clock_ticks_per_second() as f64) as u64;
        is_gone
            || self.ended_ticks > before.ended_ticks
            || self.ticks.saturating_sub(before.ticks) > living_ticks.saturating_add(coarse_ticks)
    }

    /// The sum of a counter's growth over the threads that exist now.
    fn grown_of_living(
        &self,
        before: &ServerUsage,
        count: impl Fn(&ThreadUsage) -> Option<u64>,
    ) -> Option<u64> {
        let growths = self.threads.iter().map(|(thread, now)| {
            let (now, before) = (count(now)?, before.threads.get(thread).map_or(Some(0), &count)?);
            // A smaller count belongs to a new thread with the same number.
            Some(now.checked_sub(before).unwrap_or(now))
        });
        growths.sum::<Option<u64>>().filter(|_| !self.threads.is_empty())
    }

    fn cpu_s_of_living(&self, before: &ServerUsage) -> Option<f64> {
        let cpu_ns = self.grown_of_living(before, |thread| thread.cpu_ns)?;
        Some(cpu_ns as f64 / 1e9)
    }

    fn used_beside_s(&self, before: &ServerUsage) -> Option<f64> {
        if self.process != before.process {
            return None;
        }
        if let (Some((path, after_us)), Some((same, before_us))) = (&self.group, &before.group)
            && path == same
        {
            return Some(after_us.checked_sub(*before_us).filter(|us| *us > 0)? as f64 / 1e6);
        }
        let living_s = self.cpu_s_of_living(before);
        if living_s.is_some() && !self.has_lost_threads(before) {
            return living_s;
        }
        // Ticks are coarse, but threads that have ended are among them.
        let ticks = self.ticks.checked_sub(before.ticks)?;
        let ticks_s = ticks as f64 / clock_ticks_per_second() as f64;
        Some(living_s.map_or(ticks_s, |living_s| living_s.max(ticks_s)))
    }

    /// The counted processes, for the paper: `mariadbd`, or its control group.
    pub fn counted(&self) -> String {
        match &self.group {
            Some((path, _)) => format!("{}, {}", self.process.name, path.display()),
            None => self.process.name.clone(),
        }
    }
}

fn process_stat(stat: &str) -> Option<ProcessStat> {
    // The name is in parentheses and may hold anything; field 3 follows the last one.
    let (front, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    Some(ProcessStat {
        name: front.split_once('(')?.1.to_owned(),
        parent: u32::try_from(stat_field(&fields, 4)?).ok()?,
        own_ticks: stat_field(&fields, 14)? + stat_field(&fields, 15)?,
        ended_ticks: stat_field(&fields, 16)? + stat_field(&fields, 17)?,
        started_ticks: stat_field(&fields, 22)?,
    })
}

/// A field by its number in proc(5); `fields` begin with the third.
fn stat_field(fields: &[&str], number: usize) -> Option<u64> {
    fields.get(number - 3)?.parse().ok()
}

fn read_stat(pid: u32) -> Option<ProcessStat> {
    process_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn all_processes() -> BTreeMap<u32, ProcessStat> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter_map(|pid| Some((pid, read_stat(pid)?))).collect()
}

/// Counters of each thread of these processes.
fn threads(tree: &BTreeSet<u32>) -> BTreeMap<u32, ThreadUsage> {
    let folders = tree.iter().flat_map(|pid| fs::read_dir(format!("/proc/{pid}/task")));
    folders.flatten().flatten().filter_map(|thread| thread_usage(&thread)).collect()
}

/// The number of a thread and its counters, from its folder; `None` if it has ended.
fn thread_usage(thread: &fs::DirEntry) -> Option<(u32, ThreadUsage)> {
    let status = fs::read_to_string(thread.path().join("status")).ok()?;
    let counts = status.lines().filter_map(|line| line.split_once("voluntary_ctxt_switches:"));
    let counts = counts.filter_map(|(_, count)| count.trim().parse::<u64>().ok());
    // Its first number is in nanoseconds, where ticks are 10 ms.
    let schedule = fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
    let cpu_ns = schedule.split(' ').next().and_then(|number| number.parse().ok());
    let transfers = fs::read_to_string(thread.path().join("io")).unwrap_or_default();
    let usage = ThreadUsage {
        switches: counts.sum(),
        cpu_ns,
        written_bytes: proc::value(&transfers, "write_bytes:"),
        read_bytes: proc::value(&transfers, "read_bytes:"),
    };
    Some((thread.file_name().to_str()?.parse().ok()?, usage))
}

/// A process and all that descend from it.
fn descendants(all: &BTreeMap<u32, ProcessStat>, pid: u32) -> BTreeSet<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (&pid, stat) in all {
        children.entry(stat.parent).or_default().push(pid);
    }
    let mut tree = BTreeSet::from([pid]);
    let mut open = vec![pid];
    while let Some(parent) = open.pop() {
        let new = children.get(&parent).into_iter().flatten().filter(|pid| !tree.contains(*pid));
        let new: Vec<u32> = new.copied().collect();
        tree.extend(&new);
        open.extend(new);
    }
    tree
}

/// The sockets that listen at an address.
fn owners(address: &Address) -> Vec<SocketOwner> {
    match address {
        Address::Unix(path) => {
            let text = fs::read_to_string("/proc/net/unix").unwrap_or_default();
            let user = fs::metadata(path).ok().map(|socket| socket.uid());
            let inodes = proc::unix_listeners(&text, path);
            inodes.map(|inode| SocketOwner { inode, user }).collect()
        }
        Address::Tcp { host, port } => {
            let host_ip: Option<IpAddr> = host.parse().ok();
            let texts = ["/proc/net/tcp", "/proc/net/tcp6"].map(fs::read_to_string);
            let texts: Vec<String> = texts.into_iter().flatten().collect();
            let listeners = texts.iter().flat_map(|text| proc::tcp_listeners(text, *port));
            let serving_host = listeners.filter(|(at, _)| match host_ip {
                _ if at.is_unspecified() => true,
                Some(host_ip) => host_ip == at.to_canonical(),
                None => at.to_canonical().is_loopback(),
            });
            serving_host.map(|(_, owner)| owner).collect()
        }
    }
}

fn holds_socket(pid: u32, inodes: &BTreeSet<u64>) -> bool {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let mut sockets = files.filter_map(|file| {
        let link = fs::read_link(file.path()).ok()?;
        link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse::<u64>().ok()
    });
    sockets.any(|inode| inodes.contains(&inode))
}

/// The processes of the only owner of sockets whose files can't be seen: not those of this user, whose can, and not
/// those of root, which has many servers.
fn other_user_processes(
    by_pid: &BTreeMap<u32, ProcessStat>,
    users: &BTreeSet<u32>,
) -> BTreeSet<u32> {
    let me = rustix::process::geteuid().as_raw();
    let [user] = users.iter().copied().collect::<Vec<_>>()[..] else { return BTreeSet::new() };
    if user == 0 || user == me {
        return BTreeSet::new();
    }
    let owned = by_pid
        .keys()
        .filter(|pid| fs::metadata(format!("/proc/{pid}")).is_ok_and(|it| it.uid() == user));
    owned.copied().collect()
}

/// The control group (version 2) of a process, if it holds exactly this tree, and what it has used.
fn own_group(pid: u32, tree: &BTreeSet<u32>) -> Option<(PathBuf, u64)> {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(Path::new);
    let mut folders = roots.iter().map(|root| root.join(path.trim_start_matches('/')));
    let folder = folders.find(|it| it.join("cgroup.procs").exists())?;
    let members = fs::read_to_string(folder.join("cgroup.procs")).ok()?;
    let members: BTreeSet<u32> = members.lines().filter_map(|line| line.parse().ok()).collect();
    let mut inner = fs::read_dir(&folder).ok()?.flatten();
    if members != *tree || inner.any(|entry| entry.path().is_dir()) {
        return None;
    }
    let used_us = proc::used_us(&fs::read_to_string(folder.join("cpu.stat")).ok()?)?;
    Some((PathBuf::from(path), used_us))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;

    #[test]
    fn the_process_that_listens_is_found() {
        let socket = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = socket.local_addr().expect("bound").port();
        let me = ServerProcess::numbered(std::process::id());
        for host in ["127.0.0.1", "localhost"] {
            assert_eq!(ServerProcess::listening(&tcp_address(host, port)), me, "{host}");
        }
        assert_eq!(ServerProcess::listening(&tcp_address("127.0.0.2", port)), None);
        let folder = make_folder();
        let path = folder.join("a socket");
        let _unix = UnixListener::bind(&path).expect("a socket");
        assert_eq!(ServerProcess::listening(&Address::Unix(path)), me);
        fs::remove_dir_all(folder).expect("removed");
        drop(socket);
        assert_eq!(ServerProcess::listening(&tcp_address("127.0.0.1", port)), None);
    }

    fn tcp_address(host: &str, port: u16) -> Address {
        Address::Tcp { host: host.to_owned(), port }
    }

    fn make_folder() -> PathBuf {
        let folder = std::env::temp_dir().join(format!("dyno-processes-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        folder
    }

    #[test]
    fn a_process_has_a_name_with_anything_in_it() {
        let fields = "S 7 1 1 0 -1 4194560 9 8 7 6 150 50 20 10 20 0 1 0 4242 99 11";
        let stat = process_stat(&format!("815 (a) b (c) {fields}")).expect("a process");
        assert_eq!((stat.name.as_str(), stat.parent), ("a) b (c", 7));
        assert_eq!((stat.own_ticks, stat.ended_ticks, stat.started_ticks), (200, 30, 4242));
        assert_eq!(process_stat("815 (cut off"), None);
        assert_eq!(process_stat("815 (cut off) S 7"), None);
    }

    fn server_named(name: &str) -> ServerProcess {
        let process = ServerProcess::numbered(std::process::id()).expect("alive");
        ServerProcess { name: name.to_owned(), ..process }
    }

    #[test]
    fn the_file_systems_of_a_servers_data_and_log_are_told_apart() {
        let memory = PathBuf::from(format!("/dev/shm/dyno-{}", std::process::id()));
        let data = make_folder().join("data");
        fs::create_dir_all(&memory).expect("a folder");
        fs::create_dir_all(&data).expect("a folder");
        std::os::unix::fs::symlink(&memory, data.join("pg_wal")).expect("a link");
        let settings = BTreeMap::from([("data_directory".to_owned(), data.display().to_string())]);
        let storage = server_named("postgres").storage(&settings);
        assert_eq!(storage["log_file_system"], "tmpfs");
        assert!(storage.contains_key("data_file_system"), "{storage:?}");
        assert_eq!(server_named("pgbouncer").storage(&settings), BTreeMap::new());
        let settings = [("datadir", "/proc/"), ("innodb_log_group_home_dir", "/dev/shm/")];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let storage = server_named("mariadbd").storage(&settings);
        assert_eq!([&storage["data_file_system"], &storage["log_file_system"]], ["9fa0", "tmpfs"]);
        fs::remove_dir_all(memory).expect("removed");
        fs::remove_dir_all(data).expect("removed");
    }

    #[test]
    fn children_count_while_they_live_and_when_they_have_ended() {
        let me = ServerProcess::numbered(std::process::id()).expect("alive");
        let before = me.usage().expect("alive");
        let busy = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done";
        let mut used_s = None;
        while used_s.is_none() {
            std::process::Command::new("sh").args(["-c", busy]).status().expect("a shell");
            used_s = me.usage().expect("alive").used_s(&before);
        }
        assert!(used_s.is_some_and(|used_s| used_s >= 0.1), "{used_s:?}");
        let mut child = std::process::Command::new("sh");
        let child = child.args(["-c", "while :; do :; done"]).spawn();
        let mut child = child.expect("a shell");
        let server = ServerProcess::numbered(child.id()).expect("alive");
        let (begun, server_begun) = (me.usage().expect("alive"), server.usage().expect("alive"));
        while server.usage().and_then(|now| now.used_s(&server_begun)).is_none() {}
        assert!(me.usage().expect("alive").used_s(&begun).is_some(), "living children count");
        let measures =
            server.usage().expect("alive").since(&server_begun).expect("the same process");
        child.kill().expect("killed");
        child.wait().expect("ended");
        // A metric of nodes that nothing counts would be missing everywhere, and no other test would say so.
        let by_server = [Metric::StatementCpuS, Metric::LogBytes];
        let trial_metrics: Vec<Metric> = Metric::trial_metrics().collect();
        for metric in Metric::ALL.into_iter().filter(|metric| !trial_metrics.contains(metric)) {
            let is_counted = measures.get(metric).is_some() != by_server.contains(&metric);
            assert!(is_counted, "{}", metric.name());
        }
        assert_eq!(server.usage(), None);
        assert_eq!(begun.used_s(&server_begun), None, "of another process");
    }

    #[test]
    fn switches_are_known_where_no_thread_has_ended() {
        let me = ServerProcess::numbered(std::process::id()).expect("alive");
        let usage = me.usage().expect("alive");
        assert!(usage.threads.values().map(|thread| thread.switches).sum::<u64>() > 0);
        let before = with_switches(&usage, &[(1, 5), (2, 7)]);
        for (switches, expected) in [
            (&[(1, 9), (2, 10), (3, 4)][..], Some(11.0)),
            // Another thread has the number 2.
            (&[(1, 9), (2, 3)][..], Some(7.0)),
            (&[(1, 9), (3, 4)][..], None),
        ] {
            let used = with_switches(&usage, switches).since(&before).expect("the same process");
            assert_eq!(used.get(Metric::ContextSwitches), expected);
        }
    }

    fn with_switches(usage: &ServerUsage, switches: &[(u32, u64)]) -> ServerUsage {
        let threads = switches.iter().map(|&(thread, switches)| {
            (thread, ThreadUsage { switches, ..ThreadUsage::default() })
        });
        ServerUsage { threads: threads.collect(), group: None, ..usage.clone() }
    }

    fn usage_at(ticks: u64, group: Option<(&str, u64)>) -> ServerUsage {
        ServerUsage {
            process: ServerProcess { pid: 7, started_ticks: 1, name: "postgres".to_owned() },
            ticks,
            ended_ticks: 0,
            processes: 1,
            group: group.map(|(path, used_us)| (PathBuf::from(path), used_us)),
            threads: BTreeMap::new(),
        }
    }

    fn usage_with_threads(ticks: u64, cpu_ns: &[(u32, u64)]) -> ServerUsage {
        let threads = cpu_ns.iter().map(|&(thread, cpu_ns)| {
            (thread, ThreadUsage { cpu_ns: Some(cpu_ns), ..ThreadUsage::default() })
        });
        ServerUsage { threads: threads.collect(), ..usage_at(ticks, None) }
    }

    #[test]
    fn too_little_is_not_known() {
        assert_eq!(usage_at(109, None).used_s(&usage_at(100, None)), None);
        assert!(
            usage_at(109, None).used_beside_s(&usage_at(100, None)).is_some(),
            "but it is among others"
        );
        assert!(usage_at(110, None).used_s(&usage_at(100, None)).is_some());
        assert!(usage_at(120, None).used_s(&usage_at(100, None)).is_some());
        assert_eq!(usage_at(90, None).used_s(&usage_at(100, None)), None);
        let used_s = usage_at(109, Some(("/pg", 1_500))).used_s(&usage_at(100, Some(("/pg", 500))));
        assert_eq!(used_s, Some(0.001), "a group counts finely");
        assert_eq!(usage_at(109, Some(("/pg", 1))).used_s(&usage_at(100, None)), None);
    }

    #[test]
    fn threads_that_are_still_there_count_in_nanoseconds() {
        let before = usage_with_threads(100, &[(7, 1_000_000_000), (8, 0)]);
        let after = usage_with_threads(125, &[(7, 1_250_000_000), (8, 4_000_000)]);
        assert_eq!(after.used_beside_s(&before), Some(0.254));
        let after = usage_with_threads(130, &[(7, 1_250_000_000)]);
        assert_eq!(after.used_beside_s(&before), Some(0.3), "in ticks: one has ended");
        let after = usage_with_threads(104, &[(7, 1_050_000_000)]);
        assert_eq!(
            after.used_s(&before),
            Some(0.05),
            "a thread that has ended used little at most"
        );
    }

    #[test]
    fn sessions_that_came_and_went_between_two_looks_count() {
        let before =
            ServerUsage { ended_ticks: 30, ..usage_with_threads(100, &[(7, 1_000_000_000)]) };
        for (ticks, ended_ticks, cpu_ns, expected, ended) in [
            (120, 50, 1_000_200_000, (Some(0.2), false), "processes"),
            (120, 30, 1_000_200_000, (Some(0.2), false), "threads of a process"),
            (102, 30, 1_010_000_000, (Some(0.01), true), "none"),
        ] {
            let after = ServerUsage { ended_ticks, ..usage_with_threads(ticks, &[(7, cpu_ns)]) };
            let used = after.since(&before).expect("the same process");
            let has_switches = used.get(Metric::ContextSwitches).is_some();
            assert_eq!((after.used_s(&before), has_switches), expected, "{ended}");
        }
    }
}
