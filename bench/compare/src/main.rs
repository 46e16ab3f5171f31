//! `dyno-bench`: dyno and its peers side by side, on the null server, MariaDB and PostgreSQL.
//!
//! Every figure comes from pairs of runs on the same server, one after the other in random order.
//! CPU is user and system time of the whole client process, as the kernel accounts it when the
//! process has ended; start-up is taken out by the difference of a long and a short run.

/// What is there to be compared on, or a line that says why there is nothing.
macro_rules! or_skip {
    ($name:expr, $subject:expr) => {
        match $subject {
            Ok(subject) => subject,
            Err(why) => return Ok(vec![Line::skipped($name, &why)]),
        }
    };
}

mod bench;
mod child;
mod client;
mod comparisons;
mod machine;
mod mariadb;
mod null;
mod postgres;
mod table;
mod tpcc;
mod tpch;
mod tpch_gen;

use bench::Bench;
use clap::Parser;
use client::Programs;
use dyno_testkit::{Scratch, peer};
use rustix::process::{Resource, getrlimit, setrlimit};
use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, ExitCode};
use table::Line;

/// Compares dyno with sysbench, pgbench, go-tpc and tpchgen-cli: client CPU per query, throughput, memory, loading.
/// Prints a table in Markdown to stdout. A client runs on core 0 and the null server on core 1;
/// MariaDB or PostgreSQL and their clients share all cores. Exits with 1 when a run fails or its figures can't be
/// right, not when a bar is missed.
#[derive(Parser)]
#[command(version)]
struct Options {
    /// Pairs of runs per comparison.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=99))]
    pairs: u32,
    /// Length of a long run in seconds; a short one takes a fifth of it, but at least one second.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(2..=600))]
    seconds: u64,
    /// Only comparisons whose name contains this.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// One pair of two seconds each: shows that everything works, measures little.
    #[arg(long)]
    quick: bool,
}

fn main() -> ExitCode {
    match measure(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn say(text: &str) {
    // Nobody is left to be told if stderr is gone.
    let _ = writeln!(io::stderr(), "{text}");
}

fn measure(options: &Options) -> Result<(), String> {
    let (pairs, seconds) = if options.quick { (1, 2) } else { (options.pairs, options.seconds) };
    let wanted = |name: &str| options.only.as_ref().is_none_or(|only| name.contains(only));
    let comparisons: Vec<_> =
        comparisons::all().into_iter().filter(|comparison| wanted(&comparison.name)).collect();
    if comparisons.is_empty() {
        let names: Vec<_> = comparisons::all().into_iter().map(|one| one.name).collect();
        return Err(format!("no comparison has that name; there are {}", names.join(", ")));
    }
    raise_file_limit();
    let short_seconds = (seconds / 5).max(1);
    let scratch = Scratch::new();
    let is_any = |prefix: &str| comparisons.iter().any(|one| one.name.starts_with(prefix));
    let is_own = |name: &str| name.starts_with("tpcc-") || name.starts_with("tpch-");
    let parts = Parts {
        tpcc: is_any("tpcc-"),
        tpch: is_any("tpch-"),
        rest: comparisons.iter().any(|one| !is_own(&one.name)),
    };
    let bench = Bench { programs: programs(&parts)?, pairs, seconds, short_seconds, scratch };
    let print = |line: &str| writeln!(io::stdout(), "{line}").map_err(|error| error.to_string());
    print(&machine::description())?;
    print(&format!("- {pairs} pairs of runs of {seconds} s less {short_seconds} s"))?;
    print(&format!("- load average before: {}\n", machine::load_average()))?;
    print(table::HEAD)?;
    let mut failed = Vec::new();
    for comparison in comparisons {
        match comparison.lines(&bench) {
            Ok(lines) => lines.iter().try_for_each(|line| print(&line.to_string()))?,
            // One failure must not cost the other comparisons of an hour.
            Err(error) => {
                say(&format!("{} failed: {error}", comparison.name));
                print(&Line::failed(&comparison.name).to_string())?;
                failed.push(comparison.name);
            }
        }
    }
    print(&format!("\nLoad average after: {}", machine::load_average()))?;
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
}

/// What is compared, and so has to be built.
struct Parts {
    tpcc: bool,
    tpch: bool,
    rest: bool,
}

/// Builds what is measured, so that no stale program is, and looks for its peers. dyno as a whole
/// takes minutes: TPC-C and TPC-H, which have programs of their own, don't wait for it.
fn programs(parts: &Parts) -> Result<Programs, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let folder = own.parent().ok_or("this program lies in no folder")?;
    if folder.file_name() != Some("release".as_ref()) {
        return Err("run with --release: a debug build measures nothing".to_owned());
    }
    say("building dyno");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--release", "--package=dyno-nullserver", "--bins"]);
    if parts.tpcc {
        cargo.args(["--package=dyno-tpcc", "--example=cost", "--example=terminals"]);
    }
    if parts.tpch {
        cargo.args(["--package=dyno-tpch", "--example=tpch_load"]);
    }
    if parts.rest {
        cargo.arg("--package=dyno");
    }
    let status = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).status();
    if !status.is_ok_and(|status| status.success()) {
        return Err("dyno can't be built".to_owned());
    }
    let find = |name: &str| peer(name).map(|path| Path::new(&path).to_owned());
    Ok(Programs {
        dyno: folder.join("dyno"),
        null_server: folder.join("dyno-nullserver"),
        sysbench: find("sysbench"),
        pgbench: find("pgbench"),
        go_tpc: find("go-tpc"),
        tpchgen_cli: find("tpchgen-cli"),
        dyno_tpcc: folder.join("examples/cost"),
        dyno_terminals: folder.join("examples/terminals"),
        dyno_tpch: folder.join("examples/tpch_load"),
    })
}

/// A thousand connections need more files than the usual soft limit; children inherit this one.
fn raise_file_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Without permission the old limit stays, and a client says what it lacks.
    let _ = setrlimit(Resource::Nofile, limit);
}
