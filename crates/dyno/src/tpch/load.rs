//! `dyno tpch load` and `dyno tpch drop`.

use crate::Done;
use dyno_core::counted;
use dyno_facts::format::{short, whole};
use dyno_load::Unobserved;
use dyno_runner::databases::{ReachedDatabase, reach, reach_or_create};
use dyno_runner::failure::Failure;
use dyno_runner::progress::{DroppedTables, LoadProgress, follow_load};
use dyno_runner::{lock_tables, output};
use dyno_tpch::load::{TpchLoadOptions, TpchLoadReport, TpchStep, destroy, load};
use dyno_tpch::options::OFFER;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The steps are those of the paper: create, load, primary-keys, foreign-keys, indexes, analyze. A missing
database is created first. Then all rows are counted and added up, and compared with what was sent. A
load that was interrupted goes on when the same command is given again: what is stored is kept.

Data: a line for each step, its seconds and rows, with tabs between. On PostgreSQL keys and indexes of a table
are made while others are still filled, so that seconds of steps overlap; --serial prevents that.

PostgreSQL's sessions raise `maintenance_work_mem` for themselves, so that they make keys and indexes in memory: each
takes its part of the size of `shared_buffers`, if that is more than the server's setting, which stays as it is.

Examples:
  dyno tpch load --scale 1 --target postgres://bench@db:5432/tpch --sessions 8
  dyno tpch load --scale 0.1 --target sqlite:tpch.db
  dyno tpch load --scale 10 --target mysql://bench@db/tpch --steps create,load
  dyno tpch drop --target sqlite:tpch.db")]
pub(crate) struct Arguments {
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
    /// Each step waits for the one before, as in the paper; otherwise PostgreSQL makes keys and indexes of a table while
    /// others are still filled.
    #[arg(long)]
    serial: bool,
    /// Only these steps, separated by commas; the load is complete when all are done.
    #[arg(long, value_name = "STEPS", value_delimiter = ',')]
    steps: Vec<String>,
    /// Read all tables and indexes into memory at the end, as the paper does before its queries.
    #[arg(long)]
    warm_up: bool,
    /// Load although the estimate says that the data do not fit the disk or the memory.
    #[arg(long)]
    force: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Drops the eight tables and what a load has noted, also where a load was interrupted. Tables that are
not there are no error. Tables of these names in a database into which dyno has loaded nothing are not
dropped without --force.

Examples:
  dyno tpch drop --target sqlite:tpch.db")]
pub(crate) struct DropArguments {
    /// The database.
    #[arg(long, value_name = "URL")]
    target: String,
    /// Drop tables of these names, such as orders, although dyno did not load them.
    #[arg(long)]
    force: bool,
}

fn steps(names: &[String]) -> Result<Vec<TpchStep>, Failure> {
    if names.is_empty() {
        return Ok(TpchStep::ALL.to_vec());
    }
    let step = |name: &String| {
        TpchStep::named(name.trim()).ok_or_else(|| {
            let known = TpchStep::ALL.map(TpchStep::name).join(", ");
            Failure::usage(format!("A load has no step `{name}`."))
                .with_hint(format!("the steps are {known}"))
        })
    };
    names.iter().map(step).collect()
}

pub(super) fn run(arguments: &Arguments) -> Done {
    let steps = steps(&arguments.steps)?;
    let (ReachedDatabase { database, facts, same_host, .. }, database_s) =
        reach_or_create(&arguments.target)?;
    output::talk(&format!("{} {}", facts.product, facts.version));
    let _lock = lock_tables(&database, OFFER.name, &Unobserved)?;
    let options = TpchLoadOptions {
        sessions: arguments.sessions,
        foreign_keys: !arguments.no_foreign_keys,
        indexes: !arguments.no_indexes,
        steps,
        serial: arguments.serial,
        warm_up: arguments.warm_up,
        database_s,
        same_host,
        force: arguments.force,
        ..TpchLoadOptions::new(arguments.scale)
    };
    let load = |progress: &LoadProgress| load(&database.admin(), &options, progress);
    output::data(&table(&follow_load(load, told)?));
    Ok(())
}

fn told(report: &TpchLoadReport) -> String {
    if report.rows.was_complete {
        return "nothing was missing; the steps are those of the load that was complete before"
            .to_owned();
    }
    let rows = |rows: u64| whole(rows as f64);
    let method =
        report.rows.method.map_or(String::new(), |method| format!(" by {}", method.name()));
    let mut text = format!("{} rows loaded{method}", rows(report.rows.rows_loaded));
    if report.rows.rows_found > 0 {
        text = format!("{} rows were there; {text}", rows(report.rows.rows_found));
    }
    if !report.is_complete {
        return format!("{text}; steps are left, and the database is not complete");
    }
    let size = report.load.size_bytes.map_or(String::new(), |bytes| {
        format!(", {} MB with its indexes", short(bytes as f64 / 1e6))
    });
    let all_s = report
        .load
        .seconds
        .map_or(String::new(), |seconds| format!("; the steps took {seconds:.1} s in all"));
    format!("{text}, all counted and added up in {:.1} s{size}{all_s}", report.verify_s)
}

fn table(report: &TpchLoadReport) -> String {
    let mut text = "step\tseconds\trows\n".to_owned();
    for step in &report.load.steps {
        text.push_str(&format!("{}\t{:.2}\t{}\n", step.name, step.seconds, step.rows));
    }
    text
}

pub(super) fn drop_tables(arguments: &DropArguments) -> Done {
    let ReachedDatabase { database, .. } = reach("target", &arguments.target)?;
    let _lock = lock_tables(&database, OFFER.name, &Unobserved)?;
    let dropped = destroy(&database.admin(), arguments.force, &DroppedTables)?;
    output::talk(&match dropped.len() {
        0 => "The database has no tables of TPC-H: nothing was dropped.".to_owned(),
        count => format!("Dropped: {}.", counted(count as u64, "table")),
    });
    Ok(())
}
