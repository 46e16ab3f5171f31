//! Running the front end and reading what it prints.

use dyno_testkit::{ProcessOutput, Scratch, dyno_command};
use std::path::Path;
use std::process::Command;

/// `dyno sysbench` in `folder`, without anybody's passwords in its environment.
pub(crate) fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = dyno_command(folder);
    command.arg("sysbench").args(arguments);
    command
}

/// `dyno sysbench` without a server.
pub(crate) fn offline_command(folder: &Scratch) -> Command {
    command(folder.path(), &[])
}

pub(crate) fn sysbench(folder: &Path, arguments: &[&str]) -> ProcessOutput {
    ProcessOutput::capture(&mut command(folder, arguments))
}

/// The number after a label of the report.
pub(crate) fn number(output: &ProcessOutput, label: &str) -> f64 {
    let line = output.stdout.lines().map(str::trim_start).find(|line| line.starts_with(label));
    let text = line.and_then(|line| line.strip_prefix(label)).unwrap_or_default().trim_start();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    text[..end].parse().unwrap_or_else(|_| panic!("no number after {label}: {output}"))
}

/// The report, from its first line.
pub(crate) fn report(output: &ProcessOutput) -> &str {
    let start = output.stdout.find("SQL statistics:").unwrap_or_else(|| panic!("{output}"));
    &output.stdout[start..]
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
