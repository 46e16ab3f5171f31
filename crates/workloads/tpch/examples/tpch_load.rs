//! Loads TPC-H into a database, for comparisons that need no whole dyno. Arguments: URL, scale
//! factor, sessions.

use dyno_core::{Dialect, Unobserved};
use dyno_drivers::Target;
use dyno_drivers::mysql::MysqlDriver;
use dyno_drivers::postgres::PostgresDriver;
use dyno_drivers::sqlite::SqliteDriver;
use dyno_tpch::load::{LoadOptions, load};
use std::error::Error;
use std::io::{Write, stdout};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, scale, sessions] = arguments.as_slice() else {
        return Err("three arguments are needed: URL, scale factor, sessions".into());
    };
    let target: Target = url.parse()?;
    let options = LoadOptions { sessions: sessions.parse()?, ..LoadOptions::new(scale.parse()?) };
    let report = match target.dialect {
        Dialect::Mysql => load(&MysqlDriver::new(&target)?, &options, &Unobserved),
        Dialect::Postgres => load(&PostgresDriver::new(&target)?, &options, &Unobserved),
        Dialect::Sqlite => load(&SqliteDriver::new(&target)?, &options, &Unobserved),
    }?;
    let mut out = stdout().lock();
    for step in &report.load.steps {
        writeln!(out, "{}\t{:.2}\t{}", step.name, step.seconds, step.rows)?;
    }
    writeln!(out, "rows {}", report.rows_loaded)?;
    writeln!(out, "bytes {}", report.load.size_bytes.unwrap_or(0))?;
    writeln!(out, "verify_s {:.2}", report.verify_s)?;
    Ok(())
}
