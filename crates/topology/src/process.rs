//! Processes of a cluster: started detached, known by number and start time, or by a mark in their environment when
//! no file names them.

use crate::folder::OrFailed;
use crate::machine::SharedMemory;
use crate::{Cluster, Result, State, StateNode, guarded};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::os::fd::BorrowedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The variable that marks a process as part of a cluster: `ID/NODE/`.
const MARK: &str = "DYNO_CLUSTER_NODE";
/// Pause between two looks at a process.
pub(crate) const LOOK_EACH: Duration = Duration::from_millis(20);
const LEAVE_WITHIN: Duration = Duration::from_secs(60);

/// A process, distinct from a later one with its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) started_ticks: u64,
}

struct Stat {
    state: char,
    parent: u32,
    /// True as soon as its end has begun, before its files and connections are closed (the kernel's `PF_EXITING`).
    is_ending: bool,
    /// User and system time.
    cpu_ticks: u64,
    started_ticks: u64,
}

fn read_stat(pid: u32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program is in brackets and may hold anything.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    Some(Stat {
        state: fields.first()?.chars().next()?,
        parent: fields.get(1)?.parse().ok()?,
        is_ending: fields.get(6)?.parse::<u64>().ok()? & 4 != 0,
        cpu_ticks: fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?,
        started_ticks: fields.get(19)?.parse().ok()?,
    })
}

impl Process {
    /// The living process with this number.
    pub(crate) fn living(pid: u32) -> Option<Self> {
        let stat = read_stat(pid).filter(|stat| !matches!(stat.state, 'Z' | 'X'))?;
        Some(Process { pid, started_ticks: stat.started_ticks })
    }

    pub(crate) fn is_alive(self) -> bool {
        Process::living(self.pid) == Some(self)
    }

    /// Returns true if it is gone or ends now. It may still have its files and ports, unlike one that is not alive.
    pub(crate) fn is_ending(self) -> bool {
        !self.is_alive() || read_stat(self.pid).is_none_or(|stat| stat.is_ending)
    }

    pub(crate) fn is_frozen(self) -> bool {
        self.is_alive() && read_stat(self.pid).is_some_and(|stat| stat.state == 'T')
    }

    pub(crate) fn cpu_ticks(self) -> Option<u64> {
        read_stat(self.pid).map(|stat| stat.cpu_ticks)
    }

    /// Sends a signal, unless another process has the number now.
    pub(crate) fn signal(self, signal: Signal) -> Result<()> {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        let Some(process) = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else {
            return Ok(());
        };
        // Whoever has the number when it is looked at is whoever was opened, or is gone.
        if !self.is_alive() {
            return Ok(());
        }
        match pidfd_send_signal(&process, signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(error) => Err(failed!("No signal can be sent to process {}: {error}.", self.pid)
                .with_hint("the cluster belongs to another user: act as who made it")),
        }
    }
}

/// A program that is started detached, and continues when dyno has ended.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    pub(crate) program: PathBuf,
    /// Its arguments, without passwords.
    pub(crate) arguments: Vec<OsString>,
    /// Variables alongside those of this process.
    pub(crate) environment: Vec<(String, OsString)>,
    pub(crate) folder: PathBuf,
    pub(crate) log: PathBuf,
}

impl Launch {
    /// The command, in its own session: a Ctrl-C at the terminal is not meant for it.
    fn command(&self, state: &State, node: &StateNode, namespace: Option<&str>) -> Command {
        let mut words: Vec<OsString> = vec!["setsid".into()];
        if let Some(namespace) = namespace {
            words.extend(["ip", "netns", "exec", namespace].map(Into::into));
            if let Some((user, group)) = state.run_as {
                // Only root may enter a namespace, so the user is changed after that.
                let [user, group] = [format!("--reuid={user}"), format!("--regid={group}")];
                words.extend(["setpriv", &user, &group, "--clear-groups"].map(Into::into));
            }
        }
        words.push(self.program.clone().into());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).args(&self.arguments).current_dir(&self.folder);
        if let (None, Some((user, group))) = (namespace, state.run_as) {
            command.uid(user).gid(group);
        }
        command.env(MARK, format!("{}/{}/", state.id, node.name)).env_remove("NOTIFY_SOCKET");
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null());
        command
    }

    fn spawn_logged(&self, mut command: Command) -> Result<Child> {
        let opened = guarded::append(&self.log).and_then(|log| Ok((log.try_clone()?, log)));
        let (out, log) = opened.or_failed("written", &self.log)?;
        command.stdout(out).stderr(log);
        command.spawn().or_failed("run", &self.program)
    }
}

/// Keeps servers, which outlive their caller, from inheriting open files of the caller, such as one that is locked.
#[expect(unsafe_code, reason = "a number of a descriptor, not an owner, is what the kernel lists")]
fn keep_descriptors() {
    let entries = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers: Vec<i32> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for number in numbers.into_iter().filter(|number| *number > 2) {
        // SAFETY: one that was closed meanwhile only makes the call fail, and all of dyno's own have the flag.
        let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
        let _ = fcntl_setfd(descriptor, FdFlags::CLOEXEC);
    }
}

/// Starts a server, which continues when this program has ended.
pub(crate) fn start(
    state: &State,
    node: &StateNode,
    namespace: Option<&str>,
    launch: &Launch,
) -> Result<Process> {
    keep_descriptors();
    let mut child = launch.spawn_logged(launch.command(state, node, namespace))?;
    // Waited for, so that a server that ends is gone, not a zombie.
    let process = Process::living(child.id());
    std::thread::spawn(move || child.wait());
    process.ok_or_else(|| {
        failed!("{} ended at once: {}", launch.program.display(), last_lines(&launch.log))
    })
}

/// Runs a command of the preparation to its end, in the network of this process.
pub(crate) fn run(cluster: &Cluster, node: &StateNode, launch: &Launch) -> Result<()> {
    if (cluster.is_stopped)() {
        return Err(crate::stopped_error());
    }
    let mut child = launch.spawn_logged(launch.command(&cluster.state, node, None))?;
    loop {
        match child.try_wait().or_failed("run", &launch.program)? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => {
                let (program, log) = (launch.program.display(), last_lines(&launch.log));
                return Err(failed!("{program} ended with {status}: {log}"));
            }
            None if (cluster.is_stopped)() => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(crate::stopped_error());
            }
            None => std::thread::sleep(LOOK_EACH),
        }
    }
}

/// Copies the data folder of a node whose server doesn't run. The servers' user does it: what lies there is its own.
pub(crate) fn copy_data(cluster: &Cluster, from: &StateNode, to: &StateNode) -> Result<()> {
    let words = ["-a", "--reflink=auto", "--no-target-directory"].map(Into::into).into_iter();
    let arguments = words.chain([from.data().into(), to.data().into()]).collect();
    run(cluster, to, &to.launch("cp".into(), arguments))
}

/// The end of a log without stack frames of Java: they say less than the line above them.
pub(crate) fn last_lines(log: &Path) -> String {
    let mut text = Vec::new();
    // What can't be read says nothing.
    let _ = guarded::read(log).and_then(|mut file| file.read_to_end(&mut text));
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> =
        text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with("\tat ")).collect();
    if lines.is_empty() {
        return "its log is empty.".to_owned();
    }
    format!("its log ends with\n{}", lines[lines.len().saturating_sub(8)..].join("\n"))
}

#[derive(Clone, Debug)]
pub(crate) struct ProcessFilter {
    /// The beginning of the processes' marks: `ID/`, or `ID/NODE/` for those of one node.
    mark: Vec<u8>,
    folder: PathBuf,
    known: Vec<Process>,
}

impl ProcessFilter {
    /// Selects processes whose mark begins with `mark` (`ID` or `ID/NODE`), those that work in `folder`, and `known`
    /// ones.
    pub(crate) fn new(mark: &str, folder: &Path, known: Vec<Process>) -> Self {
        let mark = format!("{MARK}={mark}/").into_bytes();
        ProcessFilter { mark, folder: folder.to_owned(), known }
    }

    fn has_mark(&self, pid: u32) -> bool {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|entry| entry.starts_with(&self.mark))
    }

    /// PostgreSQL's children write their title over the environment, and outlive a killed parent for a moment: they
    /// are found by the data folder that they work in.
    fn is_orphan(&self, pid: u32) -> bool {
        fs::read_link(format!("/proc/{pid}/cwd"))
            .is_ok_and(|folder| folder.starts_with(&self.folder))
            && fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|program| {
                program.file_name().is_some_and(|name| name == "postgres" || name == "pgpool")
            })
    }

    /// Living processes, parents before their children if they are known.
    pub(crate) fn find(&self) -> Vec<Process> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let me = std::process::id();
        let living: BTreeMap<u32, (Process, u32)> = numbers
            .filter(|&pid| pid != me)
            .filter_map(|pid: u32| Some((pid, (Process::living(pid)?, read_stat(pid)?.parent))))
            .collect();
        let mut processes: Vec<Process> =
            self.known.iter().copied().filter(|process| process.is_alive()).collect();
        for (process, _) in living.values() {
            if !processes.contains(process)
                && (self.has_mark(process.pid) || self.is_orphan(process.pid))
            {
                processes.push(*process);
            }
        }
        let mut at = 0;
        while let Some(&parent) = processes.get(at) {
            let children = living
                .values()
                .filter(|(_, parent_pid)| *parent_pid == parent.pid)
                .map(|entry| entry.0);
            let new: Vec<Process> = children.filter(|child| !processes.contains(child)).collect();
            processes.extend(new);
            at += 1;
        }
        processes
    }

    /// Sends a signal to all, until no further ones turn up.
    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        let mut signaled: Vec<Process> = Vec::new();
        loop {
            let mut new = self.find();
            new.retain(|process| !signaled.contains(process));
            if new.is_empty() {
                return Ok(());
            }
            for process in new {
                process.signal(signal)?;
                signaled.push(process);
            }
        }
    }

    /// kill -9 to all. Returns when they are gone, and the memory that they shared with them.
    pub(crate) fn kill(&self) -> Result<()> {
        let begin = Instant::now();
        let mut shared = SharedMemory::default();
        loop {
            let living = self.find();
            if living.is_empty() {
                shared.remove();
                return Ok(());
            }
            living.iter().for_each(|process| shared.add(process.pid));
            living.iter().try_for_each(|process| process.signal(Signal::KILL))?;
            if begin.elapsed() > LEAVE_WITHIN {
                let pids: Vec<String> = living.iter().map(|it| it.pid.to_string()).collect();
                return Err(failed!(
                    "Killed processes are still there after a minute: {}.",
                    pids.join(", ")
                ));
            }
            std::thread::sleep(LOOK_EACH);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_says_that_a_process_ends() {
        let current = Process::living(std::process::id()).expect("this one");
        assert!(current.is_alive() && !current.is_ending());
        let mut child = Command::new("sleep").arg("60").spawn().expect("it starts");
        let process = Process::living(child.id()).expect("it sleeps");
        assert!(!process.is_ending());
        child.kill().expect("it is killed");
        // Until it is waited for, its state is read as that of a process.
        while process.is_alive() {
            std::thread::sleep(LOOK_EACH);
        }
        assert!(read_stat(process.pid).expect("a zombie").is_ending && process.is_ending());
        child.wait().expect("it has ended");
        assert!(process.is_ending());
    }
}
