//! TPC-H's tables as files, alongside tpchgen-cli, which uses the same generator.

use crate::bench::Bench;
use crate::child::Ended;
use crate::client::Who;
use crate::comparisons::Lines;
use crate::table::{Bar, Line};
use std::fs;
use std::path::Path;
use std::process::Command;

/// The scale factor: 1.1 GB in eight files.
const SCALE: &str = "1";
/// Bytes of dbgen's files.
const BYTES: u64 = 1_100_693_130;

pub(crate) fn files(bench: &Bench, name: &str, threads: u32) -> Lines {
    let rounds = bench.pairs(name, Who::TpchgenCli, |who| {
        let folder = bench.scratch.path().join("tpch");
        let ended = generate(bench, who, &folder, threads);
        // The next one finds the same free disk.
        fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        ended
    })?;
    let label = |text: &str| {
        format!("{name}: files at scale {SCALE}, {threads} threads, beside tpchgen-cli, {text}")
    };
    let bar = Bar::Ratio(1.0);
    Ok(vec![
        Line::from_rounds(label("seconds"), &rounds, |ended| ended.wall_s, bar),
        Line::from_rounds(label("CPU seconds"), &rounds, |ended| ended.cpu_s, bar),
        Line::from_rounds(label("resident memory, MiB"), &rounds, Ended::peak_mib, bar),
    ])
}

fn generate(bench: &Bench, who: Who, folder: &Path, threads: u32) -> Result<Ended, String> {
    let mut command = Command::new(bench.programs.find(who)?);
    let threads = threads.to_string();
    match who {
        Who::Dyno => {
            command.args(["tpch", "gen", "--scale", SCALE, "--threads", &threads, "--out"])
        }
        _ => command.args(["--scale-factor", SCALE, "--num-threads", &threads, "--output-dir"]),
    };
    command.arg(folder);
    let ended = bench.run(command, None)?;
    let mut bytes = 0;
    for entry in fs::read_dir(folder).map_err(|error| error.to_string())? {
        bytes += entry.and_then(|entry| entry.metadata()).map_err(|error| error.to_string())?.len();
    }
    if bytes != BYTES {
        return Err(format!("{who:?} wrote {bytes} bytes instead of {BYTES}"));
    }
    Ok(ended)
}
