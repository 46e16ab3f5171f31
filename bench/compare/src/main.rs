//! `dyno-bench`: dyno and its peers side by side, on the null server, MariaDB and PostgreSQL.
//!
//! Every figure comes from pairs of runs on the same server, one after the other in random order. CPU is user and
//! system time of the whole client process, which the kernel knows after its end; the difference of a long and a short
//! run is free of start-up.

/// The subject of a comparison; without it the comparison ends with a line that says why.
macro_rules! or_skip {
    ($name:expr, $subject:expr) => {
        match $subject {
            Ok(subject) => subject,
            Err(why) => return Ok(vec![Line::note($name, format!("skipped: {why}"))]),
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
use comparisons::Comparison;
use dyno_testkit::{Scratch, peer};
use rustix::process::{Resource, getrlimit, setrlimit};
use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, ExitCode};
use table::Line;

/// Compares dyno with sysbench, pgbench, go-tpc and tpchgen-cli: client CPU per query, throughput, memory, loading.
/// Prints a table in Markdown to stdout. A client runs on core 0 and the null server on core 1; MariaDB or PostgreSQL
/// and their clients share all cores. Exits with 1 when a run fails or its figures can't be right; a missed bar is no
/// failure.
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
    /// One pair of two seconds each: shows that all comparisons work, measures little.
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
    // Without stderr the text has no reader.
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
    let programs = programs(&comparisons)?;
    let bench = Bench { programs, pairs, seconds, short_seconds, scratch };
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
                print(&Line::note(&comparison.name, "failed".to_owned()).to_string())?;
                failed.push(comparison.name);
            }
        }
    }
    print(&format!("\nLoad average after: {}", machine::load_average()))?;
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
}

/// Builds the measured programs, so that none is stale, and finds its peers. dyno as a whole takes minutes: TPC-C and
/// loads of TPC-H, which have their own programs, don't wait for it.
fn programs(comparisons: &[Comparison]) -> Result<Programs, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let folder = own.parent().ok_or("this program lies in no folder")?;
    if folder.file_name() != Some("release".as_ref()) {
        return Err("run with --release: a debug build measures nothing".to_owned());
    }
    say("building dyno");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--release", "--package=dyno-nullserver", "--bins"]);
    let is_tpcc = |one: &Comparison| one.name.starts_with("tpcc-");
    let is_tpch = |one: &Comparison| one.name.ends_with("-load");
    if comparisons.iter().any(is_tpcc) {
        cargo.args(["--package=dyno-tpcc", "--example=cost", "--example=terminals"]);
    }
    if comparisons.iter().any(is_tpch) {
        cargo.args(["--package=dyno-tpch", "--example=tpch_load"]);
    }
    if !comparisons.iter().all(|one| is_tpcc(one) || is_tpch(one)) {
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
    // Without permission the old limit stays, and a client reports its error.
    let _ = setrlimit(Resource::Nofile, limit);
}
