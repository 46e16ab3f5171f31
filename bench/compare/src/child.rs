//! Children whose cost is measured.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const LOOK: Duration = Duration::from_millis(20);

#[derive(Clone, Debug)]
pub(crate) struct Ended {
    /// User and system time of all its threads.
    pub(crate) cpu_s: f64,
    pub(crate) wall_s: f64,
    /// Largest resident memory (VmHWM), as last read before it ended.
    pub(crate) peak_kib: u64,
    /// The most memory of its own (RssAnon) at a look: without pages of programs and libraries, which the kernel maps
    /// from its cache.
    pub(crate) own_kib: u64,
    pub(crate) output: String,
}

impl Ended {
    pub(crate) fn peak_mib(&self) -> f64 {
        self.peak_kib as f64 / 1024.0
    }

    pub(crate) fn own_mib(&self) -> f64 {
        self.own_kib as f64 / 1024.0
    }
}

/// Starts a child on one core, or on all of them; on a machine with a single core always there.
pub(crate) fn spawn(command: &mut Command, core: Option<usize>) -> Result<Child, String> {
    let program = command.get_program().to_owned();
    let describe_error =
        |error: &dyn std::fmt::Display| format!("{} can't be started: {error}", program.display());
    let all_cores = sched_getaffinity(None).map_err(|error| describe_error(&error))?;
    let single_core = core.and_then(|core| single_core_set(&all_cores, core));
    if let Some(single_core) = &single_core {
        // A child begins on the cores of the thread that starts it: all its threads stay there.
        sched_setaffinity(None, single_core).map_err(|error| describe_error(&error))?;
    }
    let child = command.stdin(Stdio::null()).spawn();
    if single_core.is_some() {
        sched_setaffinity(None, &all_cores).map_err(|error| describe_error(&error))?;
    }
    child.map_err(|error| describe_error(&error))
}

/// One of these cores; `None` if it is not among them, and on a machine that has no other.
fn single_core_set(all_cores: &CpuSet, core: usize) -> Option<CpuSet> {
    (all_cores.is_set(core) && all_cores.count() > 1).then(|| {
        let mut set = CpuSet::new();
        set.set(core);
        set
    })
}

/// Runs a command to its end, with its output in files of `folder`. No other child may end meanwhile: the kernel adds
/// up the cost of ended children.
pub(crate) fn run(
    command: &mut Command,
    core: Option<usize>,
    folder: &Path,
) -> Result<Ended, String> {
    let (out, err) = (folder.join("stdout"), folder.join("stderr"));

    command.stdout(create_file(&out)?).stderr(create_file(&err)?);
    let before_s = children_cpu_s()?;
    let began = Instant::now();
    let mut child = spawn(command, core)?;
    let number = child.id();
    let (status, wall_s, [peak_kib, own_kib]) = std::thread::scope(|scope| {
        let peak = scope.spawn(move || peak_memory_kib(number));
        let status = child.wait();
        (status, began.elapsed().as_secs_f64(), peak.join().unwrap_or_default())
    });
    let cpu_s = children_cpu_s()? - before_s;
    let output = std::fs::read_to_string(&out).unwrap_or_default();
    match status {
        Ok(status) if status.success() => Ok(Ended { cpu_s, wall_s, peak_kib, own_kib, output }),
        Ok(status) => {
            let stderr = std::fs::read_to_string(&err).unwrap_or_default();
            Err(format!("{command:?} ended with {status}:\n{output}{stderr}"))
        }
        Err(error) => Err(format!("{command:?}: {error}")),
    }
}

fn create_file(path: &Path) -> Result<std::fs::File, String> {
    std::fs::File::create(path).map_err(|error| format!("{path:?}: {error}"))
}

/// Keeps a process, its threads and its children on one core, with all that they start from now on; on a machine with
/// a single core nothing changes.
pub(crate) fn pin(process: Pid, core: usize) -> Result<(), String> {
    let describe_error = |error: &dyn std::fmt::Display| format!("process {process:?}: {error}");
    let all_cores = sched_getaffinity(None).map_err(|error| describe_error(&error))?;
    let Some(set) = single_core_set(&all_cores, core) else { return Ok(()) };
    let folder = format!("/proc/{}/task", process.as_raw_nonzero());
    for thread in std::fs::read_dir(&folder).map_err(|error| describe_error(&error))?.flatten() {
        let number = thread.file_name().to_str().and_then(|name| Pid::from_raw(name.parse().ok()?));
        // A thread that has ended meanwhile needs no core.
        let _ = number.map(|number| sched_setaffinity(Some(number), &set));
        let children = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        for child in
            children.split_whitespace().filter_map(|text| Pid::from_raw(text.parse().ok()?))
        {
            let _ = pin(child, core);
        }
    }
    Ok(())
}

fn children_cpu_s() -> Result<f64, String> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).map_err(|error| error.to_string())?;
    let microseconds =
        usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Ok(microseconds as f64 / 1e6)
}

/// Reads VmHWM and RssAnon until the process is gone; a dead one has none.
fn peak_memory_kib(process: u32) -> [u64; 2] {
    let mut peak = [0; 2];
    loop {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        let [Some(resident), Some(own)] = ["VmHWM:", "RssAnon:"].map(|name| kib(&status, name))
        else {
            return peak;
        };
        peak = [peak[0].max(resident), peak[1].max(own)];
        std::thread::sleep(LOOK);
    }
}

fn kib(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_from_the_status() {
        let status = "VmPeak:\t  900 kB\nVmHWM:\t    14700 kB\nRssAnon:\t    8076 kB\n";
        assert_eq!((kib(status, "VmHWM:"), kib(status, "RssAnon:")), (Some(14_700), Some(8_076)));
        assert_eq!(kib("State:\tZ (zombie)\n", "VmHWM:"), None);
    }
}
