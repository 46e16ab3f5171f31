//! A running dyno, for tests that break something in the middle.

use crate::{ProcessOutput, dyno_command};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Enough for the slowest machine; successful tests never wait so long.
const DEADLINE: Duration = Duration::from_secs(180);

pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < DEADLINE, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Killed at the end of its life.
#[derive(Debug)]
pub struct RunningDyno {
    child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl RunningDyno {
    /// Starts dyno in `folder`, with its output in files there.
    pub fn start(folder: &Path, arguments: &[&str]) -> Self {
        let mut command = dyno_command(folder);
        command.args(arguments);
        Self::spawn(folder, command)
    }

    /// Starts a command that runs dyno, with its output in files in `folder`.
    pub fn spawn(folder: &Path, mut command: Command) -> Self {
        let (stdout, stderr) = (folder.join("stdout"), folder.join("stderr"));
        let create_file = |path| File::create(path).expect("the test's folder can be written");
        command.stdout(create_file(&stdout)).stderr(create_file(&stderr));
        let child = command.spawn().expect("dyno can be run");
        RunningDyno { child, stdout, stderr }
    }

    pub fn stdout(&self) -> String {
        fs::read_to_string(&self.stdout).unwrap_or_default()
    }

    pub fn stderr(&self) -> String {
        fs::read_to_string(&self.stderr).unwrap_or_default()
    }

    /// Waits until `is_so` while dyno runs.
    pub fn wait_until(&mut self, what: &str, mut is_so: impl FnMut(&RunningDyno) -> bool) {
        wait_until(what, || {
            if is_so(self) {
                return true;
            }
            let ended = self.child.try_wait().expect("a child can be waited for");
            assert!(
                ended.is_none(),
                "ended before {what}: {ended:?}\n{}\n{}",
                self.stdout(),
                self.stderr()
            );
            false
        });
    }

    pub fn process(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("a process has a number"), signal).expect("dyno runs");
    }

    pub fn end(&mut self) -> ProcessOutput {
        let mut status = None;
        wait_until("the end of dyno", || {
            status = self.child.try_wait().expect("a child can be waited for");
            status.is_some()
        });
        let code = status.and_then(|status| status.code()).unwrap_or(-1);
        ProcessOutput { code, stdout: self.stdout(), stderr: self.stderr() }
    }
}

impl Drop for RunningDyno {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns true if the only run of `folder` has stored a trial.
pub fn is_stored(folder: &Path, trial: u32) -> bool {
    only_run(&folder.join("dyno-runs"))
        .is_some_and(|run| run.join(format!("trials/{trial}.json")).exists())
}

/// The only run in a folder of runs, once it exists.
pub fn only_run(runs: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(runs).ok()?;
    let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let path = paths.next().filter(|path| path.join("run.json").is_file())?;
    assert!(paths.next().is_none(), "there is more than one run");
    Some(path)
}

/// Commits of the measured intervals of a trial so far.
pub fn commits(run: &Path, trial: u32) -> Vec<u64> {
    let text = fs::read_to_string(run.join(format!("trials/{trial}.csv"))).unwrap_or_default();
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let find_column = |name: &str| header.iter().position(|&column| column == name);
    let (Some(phase), Some(committed)) = (find_column("phase"), find_column("committed")) else {
        return Vec::new();
    };
    let get_cell = |line: &str, at: usize| line.split(',').nth(at).map(str::to_owned);
    lines
        .filter(|line| get_cell(line, phase).as_deref() == Some("measured"))
        .filter_map(|line| get_cell(line, committed)?.parse().ok())
        .collect()
}
