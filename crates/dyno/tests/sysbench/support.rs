//! Running the front end and reading what it prints.

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// How it ended and what it said.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// `dyno sysbench` in `folder`, without anybody's passwords in its environment.
pub(crate) fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dyno"));
    command
        .arg("sysbench")
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .env("HOME", folder)
        .env_remove("MYSQL_PWD")
        .env_remove("PGPASSWORD");
    command
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Ran {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

pub(crate) fn finish(command: &mut Command) -> Ran {
    command.output().expect("the program can be started").into()
}

pub(crate) fn sysbench(folder: &Path, arguments: &[&str]) -> Ran {
    finish(&mut command(folder, arguments))
}

impl Ran {
    /// Both streams, for messages of failed tests.
    pub(crate) fn all(&self) -> String {
        format!("exit code {}\n{}\n-- stderr --\n{}", self.code, self.stdout, self.stderr)
    }

    /// The number after a label of the report.
    pub(crate) fn number(&self, label: &str) -> f64 {
        let line = self.stdout.lines().map(str::trim_start).find(|line| line.starts_with(label));
        let rest = line.and_then(|line| line.strip_prefix(label)).unwrap_or_default().trim_start();
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        rest[..end].parse().unwrap_or_else(|_| panic!("no number after {label}: {}", self.all()))
    }

    /// The report: from its first line to dyno's own notes, which depend on what workers met.
    pub(crate) fn report(&self) -> &str {
        let start = self.stdout.find("SQL statistics:").unwrap_or_else(|| panic!("{}", self.all()));
        let report = &self.stdout[start..];
        report.split("Notes:\n").next().unwrap_or(report)
    }
}

/// A text without its numbers and with one blank where there are several: what stays is labels,
/// their order and the lines.
pub(crate) fn shape(text: &str) -> String {
    let mut shape = String::new();
    let mut last = '\n';
    for c in text.chars() {
        let in_number = c.is_ascii_digit() || (c == '.' && last == '#');
        let next = if in_number { '#' } else { c };
        if !(next == last && (next == '#' || next == ' ')) {
            shape.push(next);
        }
        last = next;
    }
    shape
}
