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
            Err(why) => return Ok(vec![Line::new_note($name, format!("skipped: {why}"))]),
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
use comparisons::{Comparison, Section};
use dyno_testkit::{Scratch, peer};
use page::Page;
use quiet::Quiet;
use rustix::process::{Resource, getrlimit, setrlimit};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::{register, register_conditional_shutdown};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use table::Line;

/// Compares dyno with sysbench, pgbench, go-tpc, psql and tpchgen-cli: client CPU per query, throughput, memory,
/// loading.
///
/// Prints a page like `bench/RESULTS.md` to stdout, or into that file with --into, and each line to stderr as soon
/// unchanged measured. Servers are started for each comparison and end with it. All comparisons with five rounds take
/// about two hours, one takes one to three minutes, a load of TPC-H ten. Nothing else may use the machine meanwhile.
///
/// Peers are looked for in PATH: sysbench, PostgreSQL with pgbench and psql, MariaDB (Debian packages `sysbench`,
/// `postgresql`, `mariadb-server`), go-tpc and tpchgen-cli (`bench/method.md`). What lacks its peer is skipped.
///
/// Exits with 1 when a run fails, when its figures can't be right, or when nothing could be measured; a missed bar is
/// no failure. After Ctrl-C the page has what was measured until then.
#[derive(Parser)]
#[command(version)]
struct Options {
    /// Rounds per comparison; in each one dyno, its peer and the bare loop run one after the other.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=99))]
    pairs: u32,
    /// Length of a long run in seconds; a short one takes a fifth of it, but at least one second.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(2..=600))]
    seconds: u64,
    /// Only comparisons of these names, or whose name contains one of these; --list prints all.
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Prints the names of all comparisons and ends.
    #[arg(long)]
    list: bool,
    /// The page: rows of what is measured now replace those that it has, the others stay with their dates.
    #[arg(long, value_name = "FILE")]
    into: Option<PathBuf>,
    /// Leaves out what the page has figures of, to continue a page after an interruption.
    #[arg(long, requires = "into")]
    missing: bool,
    /// A document, such as README.md, whose marked list of claims becomes that of the page.
    #[arg(long, value_name = "FILE", requires = "into")]
    claims: Option<PathBuf>,
    /// Measures programs as they were built before, perhaps from older sources.
    #[arg(long)]
    built: bool,
    /// One round of two seconds each: shows that all comparisons work, measures little.
    #[arg(long, conflicts_with_all = ["pairs", "seconds", "into"])]
    quick: bool,
}

fn main() -> ExitCode {
    match measure(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log(&format!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn log(text: &str) {
    // Without stderr the text has no reader.
    let _ = writeln!(io::stderr(), "{text}");
}

fn print(text: &str) -> Result<(), String> {
    io::stdout().write_all(text.as_bytes()).map_err(|error| error.to_string())
}

fn measure(options: &Options) -> Result<(), String> {
    if options.list {
        return print(&listed());
    }
    let mut comparisons = select_comparisons(comparisons::all(), &options.only)?;
    let old = match &options.into {
        Some(path) if path.exists() => read(path)?,
        _ => String::new(),
    };
    comparisons.retain(|one| !options.missing || !page::has_figures(&old, &one.name));
    let (pairs, seconds) = if options.quick { (1, 2) } else { (options.pairs, options.seconds) };
    raise_file_limit();
    let bench = Bench {
        programs: programs(&comparisons, options.built)?,
        pairs,
        seconds,
        short_seconds: (seconds / 5).max(1),
        scratch: Scratch::new(),
        quiet: Quiet::default(),
        is_interrupted: interruptions()?,
    };
    let mut page = Page::new(&bench, &old)?;
    let (mut failed, mut skipped, mut measured) = (Vec::new(), Vec::new(), 0);
    let count = comparisons.len();
    for (place, comparison) in comparisons.into_iter().enumerate() {
        let name = comparison.name.clone();
        log(&format!("{name} ({} of {count})", place + 1));
        match bench.go_on().and_then(|()| comparison.lines(&bench)) {
            Ok(lines) => {
                lines.iter().for_each(|line| log(&line.to_string()));
                page.add(&name, &lines);
                if lines.iter().all(Line::is_note) {
                    skipped.push(name);
                } else {
                    measured += 1;
                }
            }
            // Whatever the signal has ended is not a failure of its own.
            Err(_) if bench.go_on().is_err() => break,
            Err(error) => {
                log(&format!("{name} failed: {error}"));
                page.add(&name, &[Line::new_note(&name, "failed".to_owned())]);
                failed.push(name);
            }
        }
        // An hour later a failure must not have cost the lines.
        if let Some(path) = &options.into {
            write(path, &page.text(&bench))?;
        }
    }
    if options.into.is_none() {
        print(&page.text(&bench))?;
    }
    if let Some(path) = &options.claims {
        write(path, &page::with_claims(&read(path)?, &page.claims())?)?;
    }
    if !skipped.is_empty() {
        log(&format!("skipped: {}", skipped.join(", ")));
    }
    bench.go_on()?;
    match (failed.is_empty(), measured) {
        (true, 0) => Err("nothing was measured".to_owned()),
        (true, _) => Ok(()),
        (false, _) => Err(format!("failed: {}", failed.join(", "))),
    }
}

/// The names of all comparisons, by section of the page.
fn listed() -> String {
    let comparisons = comparisons::all();
    let mut text = String::new();
    for (section, title) in Section::ALL {
        text.push_str(&format!("{title}\n"));
        for one in comparisons.iter().filter(|one| one.section == section) {
            text.push_str(&format!("  {}\n", one.name));
        }
    }
    text
}

fn select_comparisons(
    comparisons: Vec<Comparison>,
    texts: &[String],
) -> Result<Vec<Comparison>, String> {
    let names: Vec<_> = comparisons.iter().map(|comparison| comparison.name.clone()).collect();
    let matches = |name: &String, text: &String| {
        if names.contains(text) { name == text } else { name.contains(text.as_str()) }
    };
    if let Some(text) = texts.iter().find(|text| !names.iter().any(|name| matches(name, text))) {
        return Err(format!("no comparison's name contains {text:?}; there are\n{}", listed()));
    }
    let is_selected =
        |name: &String| texts.is_empty() || texts.iter().any(|text| matches(name, text));
    Ok(comparisons.into_iter().filter(|comparison| is_selected(&comparison.name)).collect())
}

/// The first signal lets a comparison end where it can, a second one ends the program.
fn interruptions() -> Result<Arc<AtomicBool>, String> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        register_conditional_shutdown(signal, 128 + signal, Arc::clone(&flag))
            .and_then(|_| register(signal, Arc::clone(&flag)))
            .map_err(|error| error.to_string())?;
    }
    Ok(flag)
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Finds the measured programs, built again so that none is stale, and their peers. dyno as a whole takes minutes:
/// TPC-C and loads of TPC-H, which have their own programs, don't wait for it.
fn programs(comparisons: &[Comparison], built: bool) -> Result<Programs, String> {
    let executable = std::env::current_exe().map_err(|error| error.to_string())?;
    let folder = executable.parent().ok_or("this program lies in no folder")?;
    if folder.file_name() != Some("release".as_ref()) {
        let place = "run it by `cargo run --release`, from its place beside dyno";
        return Err(format!("{} is no release build: {place}", executable.display()));
    }
    if !built {
        build(comparisons)?;
    }
    let programs = Programs {
        dyno: folder.join("dyno"),
        null_server: folder.join("dyno-nullserver"),
        floor: folder.join("dyno-floor"),
        sysbench: find_peer("sysbench"),
        pgbench: find_peer("pgbench"),
        go_tpc: find_peer("go-tpc"),
        tpchgen_cli: find_peer("tpchgen-cli"),
        dyno_tpcc: folder.join("examples/cost"),
        dyno_terminals: folder.join("examples/terminals"),
        dyno_tpch: folder.join("examples/tpch_load"),
        are_older: built,
    };
    let (needs_tpcc, needs_tpch) =
        (comparisons.iter().any(is_tpcc), comparisons.iter().any(is_tpch));
    let needs_dyno = comparisons.iter().any(|one| !is_tpcc(one) && !is_tpch(one));
    let needed = [
        (true, &programs.null_server),
        (true, &programs.floor),
        (needs_dyno, &programs.dyno),
        (needs_tpcc, &programs.dyno_tpcc),
        (needs_tpcc, &programs.dyno_terminals),
        (needs_tpch, &programs.dyno_tpch),
    ];
    if let Some((_, path)) = needed.iter().find(|(is_needed, path)| *is_needed && !path.exists()) {
        return Err(format!("{} is not built: run without --built", path.display()));
    }
    Ok(programs)
}

fn find_peer(name: &str) -> Option<PathBuf> {
    peer(name).map(|path| Path::new(&path).to_owned())
}

fn is_tpcc(one: &Comparison) -> bool {
    one.name.starts_with("tpcc-")
}

fn is_tpch(one: &Comparison) -> bool {
    one.name.ends_with("-load")
}

fn build(comparisons: &[Comparison]) -> Result<(), String> {
    log("building dyno");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args([
        "build",
        "--quiet",
        "--release",
        "--package=dyno-nullserver",
        "--package=dyno-floor",
        "--bins",
    ]);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn names(texts: &[&str]) -> Result<Vec<String>, String> {
        let texts: Vec<_> = texts.iter().map(|&text| text.to_owned()).collect();
        Ok(select_comparisons(comparisons::all(), &texts)?
            .into_iter()
            .map(|one| one.name)
            .collect())
    }

    #[test]
    fn a_whole_name_means_that_comparison_alone() {
        assert_eq!(names(&["shared-postgres-unix-1"]).unwrap(), ["shared-postgres-unix-1"]);
        assert_eq!(names(&["tpch-gen"]).unwrap(), ["tpch-gen-1", "tpch-gen-2"]);
        assert_eq!(names(&[]).unwrap().len(), comparisons::all().len());
    }

    #[test]
    fn a_name_that_fits_nothing_is_an_error_beside_others_that_do() {
        let error = names(&["open-loop", "opne-loop"]).unwrap_err();
        assert!(error.contains("\"opne-loop\"") && error.contains("\n  init-null\n"), "{error}");
    }
}
