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
mod null;
mod page;
mod quiet;
mod server;
mod table;
mod tpcc;
mod tpch;
mod tpch_gen;

use bench::Bench;
use clap::Parser;
use client::Programs;
use comparisons::Comparison;
use dyno_testkit::{Scratch, peer};
use page::Page;
use quiet::Quiet;
use rustix::process::{Resource, getrlimit, setrlimit};
use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, ExitCode};

/// Compares dyno with sysbench, pgbench, go-tpc and tpchgen-cli: client CPU per query, throughput, memory, loading.
/// Prints the page `bench/RESULTS.md` to stdout, and each line to stderr as soon as it is measured. Exits with 1 when a run fails or its figures can't be right; a missed bar is no
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
    /// Only comparisons whose name contains one of these.
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Measures programs as they were built before.
    #[arg(long)]
    built: bool,
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
    let wanted =
        |name: &str| options.only.is_empty() || options.only.iter().any(|only| name.contains(only));
    let comparisons: Vec<_> =
        comparisons::all().into_iter().filter(|comparison| wanted(&comparison.name)).collect();
    if comparisons.is_empty() {
        let names: Vec<_> = comparisons::all().into_iter().map(|one| one.name).collect();
        return Err(format!("no comparison has that name; there are {}", names.join(", ")));
    }
    raise_file_limit();
    let short_seconds = (seconds / 5).max(1);
    let scratch = Scratch::new();
    let programs = programs(&comparisons, options.built)?;
    let quiet = Quiet::default();
    let bench = Bench { programs, pairs, seconds, short_seconds, scratch, quiet };
    let mut page = Page::new(&bench);
    for comparison in comparisons {
        match comparison.lines(&bench) {
            Ok(lines) => {
                // An hour later a failure must not have cost them.
                lines.iter().for_each(|line| say(&line.to_string()));
                page.add(&comparison, lines);
            }
            Err(error) => {
                say(&format!("{} failed: {error}", comparison.name));
                page.fail(comparison);
            }
        }
    }
    let text = page.text(&bench);
    io::stdout().write_all(text.as_bytes()).map_err(|error| error.to_string())?;
    page.failed()
}

/// Finds the measured programs, built anew so that none is stale, and their peers. dyno as a whole takes minutes: TPC-C and
/// loads of TPC-H, which have their own programs, don't wait for it.
fn programs(comparisons: &[Comparison], built: bool) -> Result<Programs, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let folder = own.parent().ok_or("this program lies in no folder")?;
    if folder.file_name() != Some("release".as_ref()) {
        return Err("run with --release: a debug build measures nothing".to_owned());
    }
    if !built {
        build(comparisons)?;
    }
    let find = |name: &str| peer(name).map(|path| Path::new(&path).to_owned());
    Ok(Programs {
        dyno: folder.join("dyno"),
        null_server: folder.join("dyno-nullserver"),
        floor: folder.join("dyno-floor"),
        sysbench: find("sysbench"),
        pgbench: find("pgbench"),
        go_tpc: find("go-tpc"),
        tpchgen_cli: find("tpchgen-cli"),
        dyno_tpcc: folder.join("examples/cost"),
        dyno_terminals: folder.join("examples/terminals"),
        dyno_tpch: folder.join("examples/tpch_load"),
    })
}

fn build(comparisons: &[Comparison]) -> Result<(), String> {
    say("building dyno");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args([
        "build",
        "--quiet",
        "--release",
        "--package=dyno-nullserver",
        "--package=dyno-floor",
        "--bins",
    ]);
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
    Ok(())
}

/// A thousand connections need more files than the usual soft limit; children inherit this one.
fn raise_file_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Without permission the old limit stays, and a client reports its error.
    let _ = setrlimit(Resource::Nofile, limit);
}
