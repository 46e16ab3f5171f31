//! TPC-H's tables as files, beside tpchgen-cli, which stands on the same generator.

use crate::bench::Bench;
use crate::child::{Ended, run as run_child};
use crate::client::Who;
use crate::comparisons::Lines;
use crate::table::{Bar, Line};
use std::fs;
use std::path::Path;
use std::process::Command;

/// The scale factor: 1.1 GB in eight files.
const SCALE: &str = "1";
/// Their bytes, as dbgen writes them.
const BYTES: u64 = 1_100_693_130;

pub(crate) fn files(bench: &Bench, name: &str, threads: u32) -> Lines {
    let pairs = bench.pairs(name, Who::TpchgenCli, |who| {
        let folder = bench.scratch.path().join("tpch");
        let ended = written(bench, who, &folder, threads);
        // The next one finds the disk as this one did.
        fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        ended
    })?;
    let of = |value: fn(&Ended) -> f64| -> Vec<(f64, f64)> {
        pairs.iter().map(|(dyno, peer)| (value(dyno), value(peer))).collect()
    };
    let what = |text: &str| {
        format!("{name}: files at scale {SCALE}, {threads} threads, tpchgen-cli, {text}")
    };
    let bar = Bar::Ratio(1.0);
    Ok(vec![
        Line::of_pairs(what("seconds"), &of(|ended| ended.wall_s), bar),
        Line::of_pairs(what("CPU seconds"), &of(|ended| ended.cpu_s), bar),
        Line::of_pairs(
            what("resident memory, MiB"),
            &of(|ended| ended.peak_kib as f64 / 1024.0),
            bar,
        ),
    ])
}

fn written(bench: &Bench, who: Who, folder: &Path, threads: u32) -> Result<Ended, String> {
    let mut command = Command::new(bench.programs.find(who)?);
    let threads = threads.to_string();
    match who {
        Who::Dyno => {
            command.args(["tpch", "gen", "--scale", SCALE, "--threads", &threads, "--out"])
        }
        _ => command.args(["--scale-factor", SCALE, "--num-threads", &threads, "--output-dir"]),
    };
    command.arg(folder);
    let ended = run_child(&mut command, None, bench.scratch.path())?;
    let mut bytes = 0;
    for entry in fs::read_dir(folder).map_err(|error| error.to_string())? {
        bytes += entry.and_then(|entry| entry.metadata()).map_err(|error| error.to_string())?.len();
    }
    if bytes != BYTES {
        return Err(format!("{who:?} wrote {bytes} bytes instead of {BYTES}"));
    }
    Ok(ended)
}
