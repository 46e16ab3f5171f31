//! Describes the machine of the figures.

use dyno_testkit::peer;
use std::fs::read_to_string;
use std::process::Command;

pub(crate) fn description() -> String {
    let uname = rustix::system::uname();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let model = field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown".to_owned());
    let memory = field("/proc/meminfo", "MemTotal").unwrap_or_else(|| "unknown".to_owned());
    let mut lines = vec![
        format!("- {cores} cores, {model}, memory {memory}"),
        format!("- {} {}", uname.sysname().to_string_lossy(), uname.release().to_string_lossy()),
    ];
    for program in ["sysbench", "pgbench", "mariadbd"] {
        lines.push(format!("- {}", version(program)));
    }
    lines.join("\n")
}

/// Processes that could run, over the last 1, 5 and 15 minutes.
pub(crate) fn load_average() -> String {
    let text = read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

fn field(file: &str, name: &str) -> Option<String> {
    let text = read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn version(program: &str) -> String {
    let Some(path) = peer(program) else { return format!("no {program}") };
    match Command::new(path).arg("--version").output() {
        Ok(said) => String::from_utf8_lossy(&said.stdout).trim().replace("/usr/sbin/", ""),
        Err(error) => format!("{program}: {error}"),
    }
}
