//! Child processes that a task waits for.

use crate::EventSource;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};

/// Output kept of a command; the rest is dropped.
const OUTPUT_LIMIT_BYTES: usize = 64 * 1024;

/// The place of a command's standard output: that of this process, or [`ShellEnd::output`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    Inherited,
    Kept,
}

/// The result of a command.
#[derive(Debug)]
pub struct ShellEnd {
    pub status: ExitStatus,
    /// The first 64 KiB of its standard output, if kept.
    pub output: Vec<u8>,
}

/// Kills the command when its waiter is dropped.
struct Running {
    child: Child,
    /// Leads a process group, which is killed with it.
    is_leader: bool,
}

impl Running {
    /// The process number of the child.
    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    async fn wait_for_end(&mut self) -> io::Result<ExitStatus> {
        let ended = EventSource::new(pidfd_open(self.pid(), PidfdFlags::NONBLOCK)?)?;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            ended.not_readable();
            ended.readable().await;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Processes of a command that has ended stay, such as a server.
        if self.is_leader && matches!(self.child.try_wait(), Ok(None)) {
            let _ = kill_process_group(self.pid(), Signal::KILL);
        }
        // Both fail only when the command has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs `command` by `sh -c` and waits for its end, or kills it when the waiter is dropped. Only the calling task
/// waits. Fails on a loop with a virtual clock.
pub async fn shell(command: &OsStr, output: Output) -> io::Result<ShellEnd> {
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(command);
    if output == Output::Kept {
        shell.stdout(Stdio::piped());
    }
    let mut running = Running { child: shell.spawn()?, is_leader: false };
    let bytes = match running.child.stdout.take() {
        Some(pipe) => read_all(pipe).await?,
        None => Vec::new(),
    };
    Ok(ShellEnd { status: running.wait_for_end().await?, output: bytes })
}

/// Runs a command in its own process group and waits for its end, or kills the group when the waiter is dropped.
/// Processes of a command that has ended continue.
pub async fn run_group(command: &mut Command) -> io::Result<ExitStatus> {
    let child = command.process_group(0).spawn()?;
    Running { child, is_leader: true }.wait_for_end().await
}

/// Reads until all other ends are closed.
async fn read_all<P: io::Read + AsFd>(pipe: P) -> io::Result<Vec<u8>> {
    let flags = fcntl_getfl(&pipe)?;
    fcntl_setfl(&pipe, flags | OFlags::NONBLOCK)?;
    let source = EventSource::new(pipe)?;
    let mut output = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        source.readable().await;
        match rustix::io::read(source.io(), &mut chunk) {
            Ok(0) => return Ok(output),
            Ok(length) => {
                let room = OUTPUT_LIMIT_BYTES - output.len();
                output.extend_from_slice(&chunk[..length.min(room)]);
                source.filled();
            }
            Err(rustix::io::Errno::AGAIN) => source.not_readable(),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{block_on, now, run_all, sleep_until};

    fn run(command: &str, output: Output) -> io::Result<ShellEnd> {
        block_on(shell(OsStr::new(command), output)).expect("a loop")
    }

    #[test]
    fn a_command_says_how_it_ended_and_what_it_wrote() {
        let end = run("echo 17; exit 3", Output::Kept).expect("a shell");
        assert_eq!((end.status.code(), end.output.as_slice()), (Some(3), &b"17\n"[..]));
        let end = run("exit 0", Output::Inherited).expect("a shell");
        assert!(end.status.success() && end.output.is_empty());
    }

    #[test]
    fn long_output_is_read_to_its_end_and_cut() {
        let end = run("yes | head -c 1000000", Output::Kept).expect("a shell");
        assert!(end.status.success());
        assert_eq!(end.output.len(), OUTPUT_LIMIT_BYTES);
    }

    #[test]
    fn a_killed_command_has_no_code() {
        let end = run("kill -9 $$", Output::Kept).expect("a shell");
        assert_eq!(end.status.code(), None);
    }

    #[test]
    fn other_tasks_go_on_meanwhile() {
        // The command waits for a file that only the other task makes.
        let folder = std::env::temp_dir().join(format!("dyno-child-{}", std::process::id()));
        let path = folder.display();
        let command = format!("mkdir {path}; while ! [ -e {path}/go ]; do sleep 0.01; done");
        let slow = async {
            shell(OsStr::new(&command), Output::Inherited).await.expect("a shell").status.success()
        };
        let folder = &folder;
        let helper = async move {
            while std::fs::write(folder.join("go"), "").is_err() {
                sleep_until(now() + 1_000_000).await;
            }
            true
        };
        type Task<'a> = std::pin::Pin<Box<dyn Future<Output = bool> + 'a>>;
        let tasks: [Task<'_>; 2] = [Box::pin(slow), Box::pin(helper)];
        assert_eq!(run_all(tasks).expect("a loop"), [true, true]);
        std::fs::remove_dir_all(folder).expect("the folder was made");
    }

    #[test]
    fn output_without_end_keeps_no_deadline_from_its_time() {
        let endless = async {
            crate::timeout(now() + 1_000_000, shell(OsStr::new("yes | head -c 4G"), Output::Kept))
                .await
        };
        assert_eq!(block_on(endless).expect("a loop").err(), Some(crate::Elapsed));
    }

    #[test]
    fn what_nobody_waits_for_is_killed() {
        let timed = async {
            let sleep = shell(OsStr::new("exec sleep 1000"), Output::Kept);
            crate::timeout(now() + 20_000_000, sleep).await.is_err()
        };
        assert!(block_on(timed).expect("a loop"));
    }

    /// Returns true if the process whose number the file has is there.
    fn lives(file: &std::path::Path) -> bool {
        let text = std::fs::read_to_string(file).expect("a number");
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", text.trim()));
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    }

    #[test]
    fn a_group_is_killed_as_a_whole_and_what_it_has_left_goes_on() {
        let file = std::env::temp_dir().join(format!("dyno-group-{}", std::process::id()));
        let start = format!("sleep 1000 & echo $! > {}", file.display());
        let run = |text: &str, patience_ms: u64| {
            let mut shell = Command::new("/bin/sh");
            shell.arg("-c").arg(text);
            let due = now() + patience_ms * 1_000_000;
            block_on(crate::timeout(due, async { run_group(&mut shell).await })).expect("a loop")
        };
        let ended = run(&start, 60_000).expect("it ends").expect("a shell");
        assert!(ended.success() && lives(&file), "what it has started continues");
        let pid = std::fs::read_to_string(&file).expect("a number").trim().parse().expect("one");
        let pid = Pid::from_raw(pid).expect("a number");
        rustix::process::kill_process(pid, Signal::KILL).expect("it can be killed");
        assert!(run(&format!("{start}; wait"), 500).is_err(), "it takes too long");
        let since = std::time::Instant::now();
        while lives(&file) {
            assert!(since.elapsed() < std::time::Duration::from_secs(60), "its child still runs");
        }
        std::fs::remove_file(file).expect("the file was made");
    }
}
