//! Running the front end and reading what it prints.

use dyno_testkit::{Ran, Scratch, dyno_command};
use std::path::Path;
use std::process::Command;

/// `dyno sysbench` in `folder`, without anybody's passwords in its environment.
pub(crate) fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = dyno_command(folder);
    command.arg("sysbench").args(arguments);
    command
}

/// `dyno sysbench` without a server.
pub(crate) fn command_of(folder: &Scratch) -> Command {
    command(folder.path(), &[])
}

pub(crate) fn sysbench(folder: &Path, arguments: &[&str]) -> Ran {
    Ran::of(&mut command(folder, arguments))
}

/// The number after a label of the report.
pub(crate) fn number(ran: &Ran, label: &str) -> f64 {
    let line = ran.stdout.lines().map(str::trim_start).find(|line| line.starts_with(label));
    let rest = line.and_then(|line| line.strip_prefix(label)).unwrap_or_default().trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    rest[..end].parse().unwrap_or_else(|_| panic!("no number after {label}: {}", ran.all()))
}

/// The report, from its first line.
pub(crate) fn report(ran: &Ran) -> &str {
    let start = ran.stdout.find("SQL statistics:").unwrap_or_else(|| panic!("{}", ran.all()));
    &ran.stdout[start..]
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
