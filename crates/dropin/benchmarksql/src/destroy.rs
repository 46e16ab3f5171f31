//! `dyno benchmarksql destroy`.

use super::settings::Reader;
use super::{PropertiesSource, warn};
use crate::Done;
use dyno_load::Unobserved;
use dyno_runner::databases::reach_target;
use dyno_runner::progress::DroppedTables;
use dyno_runner::{lock_tables, output};
use dyno_tpcc::options::OFFER;

pub(super) fn run(source: &PropertiesSource) -> Done {
    let properties = source.read()?;
    let mut reader = Reader::new(&properties);
    let place = reader.place()?;
    warn(&reader.warnings);
    let shown = place.target.to_string();
    let reached = reach_target(place.target, None)?;
    let _lock = lock_tables(&reached.database, OFFER.name, &Unobserved)?;
    let dropped = dyno_tpcc::load::destroy(&reached.database.admin(), &DroppedTables)?;
    output::talk(&match dropped.len() {
        0 => format!("{shown} has no tables of BenchmarkSQL: nothing was dropped."),
        count => format!("{count} tables of {shown} were dropped."),
    });
    Ok(())
}
