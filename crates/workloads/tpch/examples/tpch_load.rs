//! TPC-H without a front end, so that what a load costs the client can be measured from outside;
//! `dyno-bench` does that alongside psql.
//!
//! - `tpch_load load URL SCALE SESSIONS`: the whole load; prints its steps.
//! - `tpch_load files FOLDER SCALE PARTS`: the same rows as CSV files, large tables in parts.
//! - `tpch_load statements STEP`: what a step is on PostgreSQL, a statement a line.
#![expect(clippy::print_stdout, reason = "a measurement prints its result")]

use dyno_core::Dialect;
use dyno_core::Driver;
use dyno_drivers::TargetUrl;
use dyno_drivers::mysql::MysqlDriver;
use dyno_drivers::postgres::PostgresDriver;
use dyno_drivers::sqlite::SqliteDriver;
use dyno_load::Unobserved;
use dyno_tpch::generate::files::{Content, FileOptions, LineFormat, write};
use dyno_tpch::load::{TpchLoadOptions, TpchStep, load, statements};
use dyno_tpch::schema::SchemaTable;
use std::error::Error;

const USAGE: &str = "load URL SCALE SESSIONS | files FOLDER SCALE PARTS | statements STEP";

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["load", url, scale, sessions] => {
            let sessions = sessions.parse()?;
            measure_load(url, &TpchLoadOptions { sessions, ..TpchLoadOptions::new(scale.parse()?) })
        }
        ["files", folder, scale, parts] => {
            let parts = parts.parse()?;
            let (large, small): (Vec<_>, Vec<_>) =
                SchemaTable::ALL.into_iter().partition(|table| {
                    matches!(
                        table,
                        SchemaTable::Lineitem | SchemaTable::Orders | SchemaTable::Partsupp
                    )
                });
            write_files(folder, scale.parse()?, Content::Tables(small))?;
            write_files(
                folder,
                scale.parse()?,
                Content::Parts { tables: large, part: 1..=parts, parts },
            )
        }
        ["statements", step] => {
            let mut steps = TpchStep::ALL.into_iter();
            let step = steps.find(|known| known.name() == *step).ok_or("no step has this name")?;
            for sql in statements(step, Dialect::Postgres, &TpchLoadOptions::new(1.0)) {
                println!("{}", sql.replace('\n', " "));
            }
            Ok(())
        }
        _ => Err(USAGE.into()),
    }
}

fn measure_load(url: &str, options: &TpchLoadOptions) -> Result<(), Box<dyn Error>> {
    let target: TargetUrl = url.parse()?;
    let report = match target.dialect {
        Dialect::Mysql => load(&MysqlDriver::new(&target)?.admin(), options, &Unobserved),
        Dialect::Postgres => load(&PostgresDriver::new(&target)?.admin(), options, &Unobserved),
        Dialect::Sqlite => load(&SqliteDriver::new(&target)?.admin(), options, &Unobserved),
    }?;
    for step in &report.load.steps {
        println!("{}\t{:.2}\t{}", step.name, step.seconds, step.rows);
    }
    println!("rows {}", report.rows.rows_loaded);
    println!("bytes {}", report.load.size_bytes.unwrap_or(0));
    println!("verify_s {:.2}", report.verify_s);
    Ok(())
}

fn write_files(folder: &str, scale: f64, content: Content) -> Result<(), Box<dyn Error>> {
    let options = FileOptions {
        scale,
        folder: folder.into(),
        format: LineFormat::Csv,
        content,
        threads: 2,
        overwrite: true,
    };
    let written = write(&options, &Unobserved, &|| false);
    for file in written.map_err(|failure| failure.message.to_string())? {
        println!("{}", file.path.display());
    }
    Ok(())
}
