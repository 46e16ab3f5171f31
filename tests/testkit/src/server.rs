//! Servers as children of a test.

use crate::Scratch;
use crate::binary::run_for_stdout;
use rustix::process::{Pid, Signal, geteuid, kill_process};
use std::fs::File;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// User and group that own a server's files and run it when the tests run as root: `nobody`.
const UNPRIVILEGED: u32 = 65_534;

/// A free port of the loopback address.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port is needed");
    listener.local_addr().expect("a bound socket has an address").port()
}

#[derive(Debug)]
pub struct TestServer {
    child: Option<Child>,
    scratch: Scratch,
    program: String,
    arguments: Vec<String>,
    /// Executed with the rights of the tester.
    is_own: bool,
}

impl TestServer {
    pub(crate) fn new(scratch: Scratch, program: &str, arguments: Vec<String>) -> Self {
        TestServer { child: None, scratch, program: program.to_owned(), arguments, is_own: false }
    }

    /// A server of a program that also runs as root.
    pub(crate) fn own(program: &str, arguments: Vec<String>) -> Self {
        let mut server = TestServer::new(Scratch::new(), program, arguments);
        server.is_own = true;
        server
    }

    pub fn folder(&self) -> &Path {
        self.scratch.path()
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.scratch.file("server.log")).unwrap_or_default()
    }

    /// Starts the process and waits until `ready` says yes.
    pub fn launch(&mut self, ready: impl Fn() -> bool) -> Result<(), String> {
        let log_error = |error: std::io::Error| format!("can't write the server's log: {error}");
        let path = self.scratch.file("server.log");
        let file = File::options().create(true).append(true).open(path).map_err(log_error)?;
        let mut command =
            if self.is_own { Command::new(&self.program) } else { unprivileged(&self.program) };
        let child = command
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(file.try_clone().map_err(log_error)?)
            .stderr(file)
            .spawn()
            .map_err(|error| format!("{} doesn't start: {error}", self.program))?;
        let child = self.child.insert(child);
        let begin = Instant::now();
        while !ready() {
            if let Ok(Some(status)) = child.try_wait() {
                return Err(format!("{} ended with {status}: {}", self.program, self.log()));
            }
            if begin.elapsed() > Duration::from_secs(60) {
                return Err(format!("{} isn't ready after a minute: {}", self.program, self.log()));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// kill -9. Returns when the process is gone.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Ends the process in order, as `signal` asks for.
    pub(crate) fn shut_down(&mut self, signal: Signal) -> Result<(), String> {
        let Some(mut child) = self.child.take() else { return Ok(()) };
        let ended = kill_process(Pid::from_child(&child), signal).map_err(std::io::Error::from);
        let ended = ended.and_then(|()| child.wait());
        ended.map(drop).map_err(|error| format!("{} can't be ended: {error}", self.program))
    }

    /// Asks the process with a signal to end, and kills it if it hasn't after 10 seconds.
    pub(crate) fn end(&mut self, signal: Signal) {
        if let Some(child) = &mut self.child
            && kill_process(Pid::from_child(child), signal).is_ok()
        {
            let begin = Instant::now();
            while matches!(child.try_wait(), Ok(None)) && begin.elapsed() < Duration::from_secs(10)
            {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        self.kill();
    }

    pub fn process(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.kill();
    }
}

fn is_root() -> bool {
    geteuid().is_root()
}

/// A command that runs without root's rights.
pub(crate) fn unprivileged(program: &str) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command
        .arg(format!("--reuid={UNPRIVILEGED}"))
        .arg(format!("--regid={UNPRIVILEGED}"))
        .arg("--clear-groups")
        .arg(program);
    command
}

/// Gives a folder to the unprivileged user.
pub(crate) fn hand_over(folder: &Path) -> Result<(), String> {
    if !is_root() {
        return Ok(());
    }
    std::os::unix::fs::chown(folder, Some(UNPRIVILEGED), Some(UNPRIVILEGED))
        .map_err(|error| format!("can't hand over {}: {error}", folder.display()))
}

/// Runs a set-up command to its end.
pub(crate) fn set_up(command: &mut Command) -> Result<(), String> {
    run_for_stdout(command).map(drop).map_err(|words| format!("{command:?}: {words}"))
}

/// The first of these programs that exists; a plain name is looked up in PATH and /usr/sbin.
pub(crate) fn find_program(candidates: &[&str]) -> Option<String> {
    let path = std::env::var("PATH").unwrap_or_default();
    let folders: Vec<&str> = path.split(':').chain(["/usr/sbin", "/usr/local/sbin"]).collect();
    candidates.iter().find_map(|candidate| {
        if candidate.contains('/') {
            return Path::new(candidate).is_file().then(|| (*candidate).to_owned());
        }
        let paths = folders.iter().map(|folder| Path::new(folder).join(candidate));
        paths.into_iter().find(|path| path.is_file()).map(|path| path.display().to_string())
    })
}
