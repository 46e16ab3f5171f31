//! `dyno tpch`: data, queries, load and tests of TPC-H, each as its own verb; here are `gen`, `load`, `drop`
//! and `qgen`.

use crate::{CommandResult, choice};
use dyno_core::{Dialect, counted};
use dyno_facts::format::{short, whole};
use dyno_load::Unobserved;
use dyno_runner::databases::{ReachedDatabase, reach};
use dyno_runner::failure::Failure;
use dyno_runner::progress::{DroppedTables, LoadProgress, follow_load};
use dyno_runner::{lock_tables, output, signals};
use dyno_tpch::generate::check_scale;
use dyno_tpch::generate::files::{self, Content, FileOptions, LineFormat};
use dyno_tpch::generate::refresh::SET_MAX;
use dyno_tpch::load::{TpchLoadOptions, TpchLoadReport, TpchStep, destroy, load};
use dyno_tpch::options::OFFER;
use dyno_tpch::parameters::{ParameterChoice, order, parameters, seed_is_usable};
use dyno_tpch::queries::{LAST, Q15, text};
use dyno_tpch::schema::SchemaTable;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::thread::available_parallelism;
use std::time::{SystemTime, UNIX_EPOCH};

mod run;

pub(crate) const HELP: &str = "\
The results are derived from TPC-H and are not comparable with published TPC-H results.";

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Write the tables or the refresh sets as files, byte for byte as dbgen does.
    Gen(GenArguments),
    /// Print the 22 queries with parameters, as qgen does.
    Qgen(QgenArguments),
    /// Create the tables, stream the rows into them, make keys, indexes and statistics.
    Load(LoadArguments),
    /// Drop the tables.
    Drop(DropArguments),
    /// Execute Q1 to Q22 in order at each parallel degree, and check the answers.
    Run(run::RunArguments),
    /// Execute the power test: refresh functions around the queries of one stream.
    Power(run::PowerArguments),
    /// Execute the throughput test: several streams of queries at once.
    Throughput(run::ThroughputArguments),
    /// Execute pairs of refresh functions alone.
    Refresh(run::RefreshArguments),
}

pub(crate) fn main(command: &Command) -> CommandResult {
    match command {
        Command::Gen(arguments) => generate(arguments),
        Command::Qgen(arguments) => qgen(arguments),
        Command::Load(arguments) => load_tables(arguments),
        Command::Drop(arguments) => drop_tables(arguments),
        Command::Run(arguments) => run::run(arguments),
        Command::Power(arguments) => run::power(arguments),
        Command::Throughput(arguments) => run::throughput(arguments),
        Command::Refresh(arguments) => run::refresh(arguments),
    }
}

/// A scale factor of which consistent tables can be made.
fn usable_scale(scale: f64) -> Result<f64, Failure> {
    let usable = check_scale(scale).map(|()| scale);
    usable.map_err(|error| Failure::usage(error.to_string()).hinted(error.hint()))
}

#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../../help/tpch_gen.txt").trim_ascii_end())]
pub(crate) struct GenArguments {
    /// Scale factor: 1 is 1.1 GB of text; fractions are fine.
    #[arg(short, long, value_name = "S")]
    scale: f64,
    /// The folder that gets the files; made if it does not exist.
    #[arg(short, long, value_name = "DIR")]
    out: PathBuf,
    /// Format of the rows: as dbgen writes them, or as CSV with the columns' names in the first line.
    #[arg(long, value_name = "FORMAT", default_value = "tbl", value_parser = choice(FORMATS))]
    format: LineFormat,
    /// Only these tables, separated by commas.
    #[arg(short = 'T', long, value_name = "TABLES", value_delimiter = ',')]
    tables: Vec<String>,
    /// Split every table into this many files; region and nation stay whole and come with part 1.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    parts: Option<u32>,
    /// Only this part, from 1.
    #[arg(long, value_name = "I", requires = "parts")]
    part: Option<u32>,
    /// Refresh sets instead of tables: the sets 1 to N, or A..B. The last possible set is 999.
    #[arg(short = 'U', long, value_name = "N|A..B", value_parser = parse_sets)]
    #[arg(conflicts_with_all = ["tables", "parts", "part"])]
    refresh: Option<RangeInclusive<u32>>,
    /// Threads; default: as many as there are cores.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: Option<u32>,
    /// Replace files that exist.
    #[arg(long)]
    overwrite: bool,
}

const FORMATS: [(&str, LineFormat); 2] = [("tbl", LineFormat::Tbl), ("csv", LineFormat::Csv)];

fn parse_sets(text: &str) -> Result<RangeInclusive<u32>, String> {
    let (first, last) = text.split_once("..").unwrap_or(("1", text));
    match [first, last].map(|number| number.trim().parse::<u32>()) {
        [Ok(first), Ok(last)] if first >= 1 && first <= last && last <= SET_MAX => Ok(first..=last),
        _ => Err(format!("refresh sets are numbered from 1 to {SET_MAX}")),
    }
}

/// Executes `dyno tpch gen`.
pub(super) fn generate(arguments: &GenArguments) -> CommandResult {
    let options = file_options(arguments)?;
    if let Err(error) = signals::on_interrupt(|| {}) {
        output::talk(&format!("warning: Ctrl-C will leave an unfinished file: {error}"));
    }
    let progress = LoadProgress::new("gen");
    let written = match files::write(&options, &progress, &signals::has_come) {
        Ok(written) => written,
        Err(error) => {
            progress.clear();
            return Err(error);
        }
    };
    let rows = whole(written.iter().map(|file| file.rows).sum::<u64>() as f64);
    let megabytes = short(written.iter().map(|file| file.bytes).sum::<u64>() as f64 / 1e6);
    progress.finish(&format!("{rows} rows, {megabytes} MB in {} files", written.len()));
    let lines = written
        .iter()
        .map(|file| format!("{}\t{}\t{}\n", file.path.display(), file.rows, file.bytes));
    output::data(&lines.collect::<String>());
    Ok(())
}

fn file_options(arguments: &GenArguments) -> Result<FileOptions, Failure> {
    let scale = usable_scale(arguments.scale)?;
    let content = match (&arguments.refresh, arguments.parts) {
        (Some(sets), _) => Content::Refresh(sets.clone()),
        (None, None) => Content::Tables(select_tables(&arguments.tables)?),
        (None, Some(parts)) => {
            let part = match arguments.part {
                Some(part) if part == 0 || part > parts => {
                    return Err(Failure::usage(format!(
                        "There is no part {part} of {parts}: parts are numbered from 1 to {parts}."
                    ))
                    .with_hint("Leave --part out to write all parts."));
                }
                Some(part) => part..=part,
                None => 1..=parts,
            };
            Content::Parts { tables: select_tables(&arguments.tables)?, part, parts }
        }
    };
    let format = arguments.format;
    let threads = match arguments.threads {
        Some(threads) => threads as usize,
        None => available_parallelism().map_or(1, |cores| cores.get()),
    };
    let (folder, overwrite) = (arguments.out.clone(), arguments.overwrite);
    Ok(FileOptions { scale, folder, format, content, threads, overwrite })
}

/// Returns the items with these names; all of them if there is no name. The texts complete sentences on an unknown
/// name.
fn select<T: Copy>(
    names: &[String],
    (items, name): (&[T], fn(T) -> &'static str),
    (problem, list): (&str, &str),
) -> Result<Vec<T>, Failure> {
    if names.is_empty() {
        return Ok(items.to_vec());
    }
    let selected = names.iter().map(|text| {
        let text = text.trim();
        items.iter().copied().find(|item| name(*item) == text).ok_or_else(|| {
            let names: Vec<&str> = items.iter().map(|item| name(*item)).collect();
            let hint = match dyno_core::nearest(text, names.iter().copied()) {
                Some(nearest) => format!("Did you mean `{nearest}`?"),
                None => format!("The {list} are {}.", names.join(", ")),
            };
            Failure::usage(format!("{problem} `{text}`.")).with_hint(hint)
        })
    });
    selected.collect()
}

fn select_tables(names: &[String]) -> Result<Vec<SchemaTable>, Failure> {
    let choices = (&SchemaTable::ALL[..], SchemaTable::name as fn(_) -> _);
    select(names, choices, ("TPC-H has no table", "tables"))
}

#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../../help/tpch_load.txt").trim_ascii_end())]
pub(crate) struct LoadArguments {
    /// Scale factor: 1 is about a gigabyte of rows; fractions are fine.
    #[arg(long, value_name = "S")]
    scale: f64,
    /// The database.
    #[arg(long, value_name = "URL")]
    target: String,
    /// Sessions that load and make keys and indexes at the same time; SQLite has one.
    #[arg(long, value_name = "N", default_value_t = 4)]
    sessions: u32,
    /// Without the ten foreign keys.
    #[arg(long)]
    no_foreign_keys: bool,
    /// Without the 14 secondary indexes.
    #[arg(long)]
    no_indexes: bool,
    /// Each step waits for the one before, as in the paper; otherwise PostgreSQL makes keys and indexes of a table
    /// while others are still filled.
    #[arg(long)]
    serial: bool,
    /// Only these steps, separated by commas; the load is complete when all are done.
    #[arg(long, value_name = "STEPS", value_delimiter = ',')]
    steps: Vec<String>,
    /// Read all tables and indexes into memory at the end, as the paper does before its queries.
    #[arg(long)]
    warm_up: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../../help/tpch_drop.txt").trim_ascii_end())]
pub(crate) struct DropArguments {
    /// The database.
    #[arg(long, value_name = "URL")]
    target: String,
    /// Drop tables of these names, such as orders, although dyno did not load them.
    #[arg(long)]
    force: bool,
}

pub(super) fn load_tables(arguments: &LoadArguments) -> CommandResult {
    let choices = (&TpchStep::ALL[..], TpchStep::name as fn(_) -> _);
    let steps = select(&arguments.steps, choices, ("A load has no step", "steps"))?;
    let ReachedDatabase { database, facts, .. } = reach("target", &arguments.target)?;
    output::talk(&format!("{} {}", facts.product, facts.version));
    let _lock = lock_tables(&database, OFFER.name, &Unobserved)?;
    let options = TpchLoadOptions {
        sessions: arguments.sessions,
        foreign_keys: !arguments.no_foreign_keys,
        indexes: !arguments.no_indexes,
        steps,
        serial: arguments.serial,
        warm_up: arguments.warm_up,
        ..TpchLoadOptions::new(arguments.scale)
    };
    let admin = database.admin();
    let report = follow_load(|progress| load(&admin, &options, progress), load_summary)?;
    output::data(&steps_table(&report));
    Ok(())
}

fn load_summary(report: &TpchLoadReport) -> String {
    if report.rows.was_complete {
        return "nothing was missing; the steps are those of the load that was complete before"
            .to_owned();
    }
    let method =
        report.rows.method.map_or(String::new(), |method| format!(" by {}", method.name()));
    let mut text = format!("{} rows loaded{method}", whole(report.rows.rows_loaded as f64));
    if report.rows.rows_found > 0 {
        text = format!("{} rows were there; {text}", whole(report.rows.rows_found as f64));
    }
    if !report.is_complete {
        return format!("{text}; steps are left, and the database is not complete");
    }
    let size = report.load.size_bytes.map_or(String::new(), |bytes| {
        format!(", {} MB with its indexes", short(bytes as f64 / 1e6))
    });
    let total_note = report
        .load
        .seconds
        .map_or(String::new(), |seconds| format!("; the steps took {seconds:.1} s in all"));
    format!("{text}, all counted and added up in {:.1} s{size}{total_note}", report.verify_s)
}

fn steps_table(report: &TpchLoadReport) -> String {
    let mut text = "step\tseconds\trows\n".to_owned();
    for step in &report.load.steps {
        text.push_str(&format!("{}\t{:.2}\t{}\n", step.name, step.seconds, step.rows));
    }
    text
}

pub(super) fn drop_tables(arguments: &DropArguments) -> CommandResult {
    let ReachedDatabase { database, .. } = reach("target", &arguments.target)?;
    let _lock = lock_tables(&database, OFFER.name, &Unobserved)?;
    let dropped = destroy(&database.admin(), arguments.force, &DroppedTables)?;
    output::talk(&match dropped.len() {
        0 => "The database has no tables of TPC-H: nothing was dropped.".to_owned(),
        count => format!("Dropped: {}.", counted(count as u64, "table")),
    });
    Ok(())
}

#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../../help/tpch_qgen.txt").trim_ascii_end())]
pub(crate) struct QgenArguments {
    /// Queries by their numbers; default: all, in the order of the stream.
    #[arg(value_name = "QUERY", value_parser = clap::value_parser!(u8).range(1..=i64::from(LAST)))]
    queries: Vec<u8>,
    /// Parameters of the validation (clause 2.4); the fraction of query 11 follows the scale factor.
    #[arg(short, long, conflicts_with = "seed")]
    default: bool,
    /// Seed of the parameters; default: the time of day.
    #[arg(short = 'r', long, value_name = "SEED")]
    seed: Option<u64>,
    /// Order of this stream: 0 is the power test, 1 and more are those of the throughput test. Without
    /// it, from query 1 to query 22.
    #[arg(short = 'p', long, value_name = "STREAM")]
    stream: Option<u32>,
    /// Scale factor: query 11 depends on it.
    #[arg(short, long, value_name = "S", default_value_t = 1.0)]
    scale: f64,
    /// For which database; `postgres` is the specification's text, for all that speak standard SQL.
    #[arg(long, value_name = "DIALECT", default_value = "postgres", value_parser = choice(Dialect::ALL.map(|kind| (kind.name(), kind))))]
    dialect: Dialect,
    /// Query 15 as the specification has it: a view is created, queried and dropped. The view is named
    /// after the stream.
    #[arg(long)]
    view: bool,
    /// Print the parameters alone.
    #[arg(long, conflicts_with_all = ["dialect", "view"])]
    parameters: bool,
}

/// Executes `dyno tpch qgen`.
pub(super) fn qgen(arguments: &QgenArguments) -> CommandResult {
    let scale = usable_scale(arguments.scale)?;
    let choice = seed_choice(arguments)?;
    let queries = match (arguments.queries.as_slice(), arguments.stream) {
        ([], Some(stream)) => order(stream).to_vec(),
        ([], None) => (1..=LAST).collect(),
        (chosen, _) => chosen.to_vec(),
    };
    let texts = queries.iter().map(|query| {
        let values = parameters(*query, scale, choice);
        if arguments.parameters {
            return format!("{query}\t{}\n", values.join("\t"));
        }
        let text = text(*query, &values, arguments.dialect, q15_form(arguments));
        format!("-- TPC-H query {query}: {}\n{text};\n\n", values.join(", "))
    });
    output::data(&texts.collect::<String>());
    Ok(())
}

fn seed_choice(arguments: &QgenArguments) -> Result<ParameterChoice, Failure> {
    match arguments.seed {
        _ if arguments.default => Ok(ParameterChoice::Default),
        Some(seed) if seed_is_usable(seed) => Ok(ParameterChoice::Seed(seed)),
        Some(seed) => Err(Failure::usage(format!(
            "The seed {seed} draws the same parameters for ever, as every multiple of 2147483647 does."
        ))
        .with_hint("Clause 2.1.3.3 takes the end of the load as month, day, hour, minute, second.")),
        None => {
            let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
            // A second that is a multiple of the modulus comes in 2038.
            let seed = since_epoch.map_or(1, |time| time.as_secs());
            output::talk(&format!("seed: {seed}"));
            Ok(ParameterChoice::Seed(seed))
        }
    }
}

fn q15_form(arguments: &QgenArguments) -> Q15 {
    if arguments.view { Q15::View(arguments.stream.unwrap_or(0)) } else { Q15::Cte }
}
