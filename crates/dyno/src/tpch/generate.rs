//! `dyno tpch gen`.

use super::usable_scale;
use crate::Done;
use crate::choice;
use dyno_facts::format::{short, whole};
use dyno_runner::failure::Failure;
use dyno_runner::progress::LoadProgress;
use dyno_runner::{output, signals};
use dyno_tpch::generate::files::{
    self, Content, FileOptions, LineFormat, WrittenFile, estimated_bytes,
};
use dyno_tpch::generate::refresh::SET_MAX;
use dyno_tpch::schema::SchemaTable;
use rustix::fs::statvfs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The .tbl files equal dbgen's byte for byte, also those of parts (dbgen -C N: lineitem.tbl.1, ...) and
of refresh sets (dbgen -U N: orders.tbl.u1, lineitem.tbl.u1, delete.1). A file has its name only once it
is complete. dbgen knows whole scale factors and thousandths below 1; others have rows of their own.

Data: a line for each file, its path, rows and bytes, with tabs between.

Examples:
  dyno tpch gen --scale 1 --out data                               1.1 GB in eight files
  dyno tpch gen --scale 100 --out data --tables lineitem --parts 8 --part 3
  dyno tpch gen --scale 0.1 --out data --format csv
  dyno tpch gen --scale 1 --out data --refresh 3                   refresh sets 1 to 3")]
pub(crate) struct Arguments {
    /// Scale factor: 1 is 1.1 GB of text; fractions are fine.
    #[arg(short, long, value_name = "S")]
    scale: f64,
    /// The folder that gets the files; made if it does not exist.
    #[arg(short, long, value_name = "DIR")]
    out: PathBuf,
    /// How rows are written: as dbgen does, or as CSV with the columns' names in the first line.
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
    #[arg(short = 'U', long, value_name = "N|A..B", value_parser = sets)]
    #[arg(conflicts_with_all = ["tables", "parts", "part"])]
    refresh: Option<RangeInclusive<u32>>,
    /// Threads; default: as many as there are cores.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: Option<u32>,
    /// Replace files that exist.
    #[arg(long)]
    overwrite: bool,
    /// Begin although the estimate says that the disk is too small.
    #[arg(long)]
    force: bool,
}

const FORMATS: &[(&str, LineFormat)] = &[("tbl", LineFormat::Tbl), ("csv", LineFormat::Csv)];

fn sets(text: &str) -> Result<RangeInclusive<u32>, String> {
    let (first, last) = text.split_once("..").unwrap_or(("1", text));
    let number = |text: &str| text.trim().parse::<u32>().ok();
    match (number(first), number(last)) {
        (Some(first), Some(last)) if first >= 1 && first <= last && last <= SET_MAX => {
            Ok(first..=last)
        }
        _ => Err(format!("refresh sets are numbered from 1 to {SET_MAX}")),
    }
}

pub(super) fn run(arguments: &Arguments) -> Done {
    let options = options(arguments)?;
    if !arguments.force {
        refuse_small_disk(&options)?;
    }
    let watched = signals::on_interrupt(|| {});
    if let Err(error) = watched {
        output::talk(&format!("warning: Ctrl-C will leave an unfinished file: {error}"));
    }
    let progress = LoadProgress::new("gen");
    match files::write(&options, &progress, &signals::has_come) {
        Ok(written) => {
            let sum = |of: fn(&WrittenFile) -> u64| written.iter().map(of).sum::<u64>() as f64;
            let (rows, megabytes) = (sum(|file| file.rows), sum(|file| file.bytes) / 1e6);
            let (rows, megabytes) = (whole(rows), short(megabytes));
            progress.finish(&format!("{rows} rows, {megabytes} MB in {} files", written.len()));
            let line = |file: &WrittenFile| {
                format!("{}\t{}\t{}\n", file.path.display(), file.rows, file.bytes)
            };
            output::data(&written.iter().map(line).collect::<String>());
            Ok(())
        }
        Err(error) => {
            progress.clear();
            Err(error)
        }
    }
}

fn options(arguments: &Arguments) -> Result<FileOptions, Failure> {
    let scale = usable_scale(arguments.scale)?;
    let content = match (&arguments.refresh, arguments.parts) {
        (Some(sets), _) => Content::Refresh(sets.clone()),
        (None, None) => Content::Tables(tables(&arguments.tables)?),
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
            Content::Parts { tables: tables(&arguments.tables)?, part, parts }
        }
    };
    let format = arguments.format;
    let cores = || available_parallelism().map_or(1, |cores| cores.get());
    let threads = arguments.threads.map_or_else(cores, |threads| threads as usize);
    let (folder, overwrite) = (arguments.out.clone(), arguments.overwrite);
    Ok(FileOptions { scale, folder, format, content, threads, overwrite })
}

fn tables(names: &[String]) -> Result<Vec<SchemaTable>, Failure> {
    if names.is_empty() {
        return Ok(SchemaTable::ALL.to_vec());
    }
    let table = |name: &String| {
        SchemaTable::named(name.trim()).ok_or_else(|| {
            let known = SchemaTable::ALL.map(SchemaTable::name);
            let hint = match dyno_core::nearest(name.trim(), known) {
                Some(nearest) => format!("Did you mean `{nearest}`?"),
                None => format!("The tables are {}.", known.join(", ")),
            };
            Failure::usage(format!("TPC-H has no table `{}`.", name.trim())).with_hint(hint)
        })
    };
    names.iter().map(table).collect()
}

/// The room of files that will be replaced counts as free.
fn refuse_small_disk(options: &FileOptions) -> Done {
    let Some(free) = free_bytes(&options.folder) else { return Ok(()) };
    let needed = estimated_bytes(options);
    let replaced = if options.overwrite { files::paths(options) } else { Vec::new() };
    let replaced = replaced.iter().filter_map(|path| Some(path.metadata().ok()?.len()));
    let room = free + replaced.sum::<u64>();
    if needed <= room { Ok(()) } else { Err(too_small(options, needed, room)) }
}

fn too_small(options: &FileOptions, needed: u64, free: u64) -> Failure {
    let gigabytes = |bytes: u64| short(bytes as f64 / 1e9);
    Failure::new(format!(
        "The files will take about {} GB, and the disk of {} has {} GB free.",
        gigabytes(needed),
        options.folder.display(),
        gigabytes(free)
    ))
    .with_hint(
        "Choose another folder with --out, write less (--tables, or one --part of several --parts), \
         or add --force if you know better.",
    )
}

/// What the disk of a folder, which need not exist yet, has free for us.
fn free_bytes(folder: &Path) -> Option<u64> {
    let absolute = std::path::absolute(folder).ok()?;
    let found = absolute.ancestors().find_map(|folder| statvfs(folder).ok())?;
    Some(found.f_bavail * found.f_frsize)
}
