//! The null server as a process on its own core.

use crate::child::spawn;
use dyno_testkit::free_port;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

#[derive(Debug)]
pub(crate) struct Null {
    child: Option<Child>,
    pub(crate) folder: PathBuf,
    pub(crate) mysql_port: u16,
    pub(crate) postgres_port: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    /// Executed statements of both protocols.
    pub(crate) statements: u64,
    /// Rows of INSERT statements, of LOAD DATA and of COPY.
    pub(crate) rows: u64,
}

impl Null {
    /// Starts it on `core`. `is_empty`: its catalog shows no table.
    pub(crate) fn start(
        program: &Path,
        folder: &Path,
        core: usize,
        is_empty: bool,
    ) -> Result<Self, String> {
        let (mysql_port, postgres_port) = (free_port(), free_port());
        let mut command = Command::new(program);
        command
            .arg(format!("--mysql-port={mysql_port}"))
            .arg(format!("--postgres-port={postgres_port}"))
            .arg(format!("--mysql-socket={}", mysql_socket(folder).display()))
            .arg(format!("--postgres-socket-dir={}", folder.display()))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if is_empty {
            command.arg("--empty");
        }
        let mut child = spawn(&mut command, Some(core))?;
        let stderr = child.stderr.take().ok_or("the null server has no standard error")?;
        let mut message = String::new();
        for line in BufReader::new(stderr).lines() {
            let line = line.map_err(|error| error.to_string())?;
            if line == "ready" {
                let folder = folder.to_owned();
                return Ok(Null { child: Some(child), folder, mysql_port, postgres_port });
            }
            message.push_str(&line);
        }
        let _ = child.wait();
        Err(format!("the null server doesn't start: {message}"))
    }

    pub(crate) fn mysql_socket(&self) -> PathBuf {
        mysql_socket(&self.folder)
    }

    pub(crate) fn stop(mut self) -> Result<Counted, String> {
        let child = self.child.take().ok_or("the null server has been stopped before")?;
        terminate(&child);
        let ended = child.wait_with_output().map_err(|error| error.to_string())?;
        let output = String::from_utf8_lossy(&ended.stdout);
        let counters: Value = serde_json::from_str(&output)
            .map_err(|error| format!("the null server's counters: {error}: {output}"))?;
        if !ended.status.success() || counters["violations"] != 0 {
            return Err(format!("the null server refused requests: {counters}"));
        }
        let sum = |names: &[&str]| {
            let keys = names.iter().flat_map(|name| [("mysql", name), ("postgres", name)]);
            keys.filter_map(|(protocol, name)| counters[protocol][name].as_u64()).sum()
        };
        Ok(Counted {
            statements: sum(&["statements"]),
            rows: sum(&["rows_inserted", "rows_loaded"]),
        })
    }
}

impl Drop for Null {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            terminate(&child);
            let _ = child.wait();
        }
    }
}

fn terminate(child: &Child) {
    if let Some(number) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // It may have died by itself; waiting for it shows that.
        let _ = kill_process(number, Signal::TERM);
    }
}

fn mysql_socket(folder: &Path) -> PathBuf {
    folder.join("m")
}
