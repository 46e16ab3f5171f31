//! Describes the machine of the figures and the measured programs.

use dyno_testkit::peer;
use std::fs::read_to_string;
use std::process::Command;

/// A description of the hardware: equal descriptions make figures comparable.
pub(crate) fn hardware() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let model = field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown".to_owned());
    let kib = field("/proc/meminfo", "MemTotal")
        .and_then(|text| text.strip_suffix(" kB")?.parse::<f64>().ok());
    let memory = kib.map_or("unknown".to_owned(), |kib| format!("{:.0} GB", kib * 1_024.0 / 1e9));
    format!("{cores} cores, {model}, memory {memory}")
}

pub(crate) fn description() -> String {
    let uname = rustix::system::uname();
    let mut lines = vec![
        format!("- {}", hardware()),
        format!("- {} {}", uname.sysname().to_string_lossy(), uname.release().to_string_lossy()),
    ];
    for program in ["sysbench", "pgbench", "mariadbd", "tpchgen-cli"] {
        lines.push(format!("- {}", version(program)));
    }
    lines.join("\n")
}

/// The sources of this program, which built dyno from the same ones unless it was built before.
pub(crate) fn commit() -> String {
    let mut git = Command::new("git");
    git.args(["-C", env!("CARGO_MANIFEST_DIR"), "describe", "--always", "--dirty"]);
    let output = git.output().ok().filter(|output| output.status.success());
    output.map_or("unknown".to_owned(), |output| {
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    })
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
