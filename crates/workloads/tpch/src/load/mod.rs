//! Creates, fills and finishes the tables in the paper's steps, several sessions at a time, and goes
//! on where an interrupted load ended.
//!
//! A step consists of pieces: about 100,000 rows, the key of a table, an index. The database itself
//! remembers each piece that is done, in the same transaction where it has one.
//!
//! - `steps`, `ddl`: what is done, and by which statements. `work`: the parallel work. `order`: what of it overlaps.
//! - `binary`: rows in PostgreSQL's binary format.
//! - `sums`: whether what is stored is what was sent. `times`: how long steps and tables lasted.
//! - `estimate`: whether it will fit, and how large it is.

mod binary;
mod ddl;
mod estimate;
mod order;
mod steps;
mod sums;
mod times;
mod work;

pub use dyno_load::LoadError;
pub use estimate::{Estimate, estimate};
pub use steps::TpchStep;
pub(crate) use steps::needs;
use steps::{Piece, Work};

use crate::facts::{LoadStep, TpchLoad};
use crate::generate::check_scale;
use crate::schema::SchemaTable;
use crate::state::{self, Done, LoadRequest, LoadState, TpchDatabase};
use dyno_core::{AdminDriver, AdminSession, Dialect, Driver, Session};
use dyno_load::catalog;
use dyno_load::query::{drop_tables, execute};
use dyno_load::{LoadObserver, LoadReport, LoadSessions, StoredRows, while_doing};
use std::collections::HashSet;
use sums::Sums;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use work::Worker;

const RESUME: &str = "load again with the same options: what is stored is kept, the rest is loaded";

#[derive(Clone, Debug, PartialEq)]
pub struct TpchLoadOptions {
    /// Scale factor, above 0: 1 is about a gigabyte.
    pub scale: f64,
    /// Sessions at once, at least 1; SQLite has one.
    pub sessions: u32,
    pub foreign_keys: bool,
    /// The 14 secondary indexes.
    pub indexes: bool,
    /// The steps to be done now; a load is complete when all are done.
    pub steps: Vec<TpchStep>,
    /// Each step begins when the one before has ended, as in the paper. Otherwise PostgreSQL makes keys and indexes of a
    /// table while others are still filled.
    pub serial: bool,
    /// Reads all into memory at the end, as a step of its own.
    pub warm_up: bool,
    /// Seconds that making the database itself took, where that was done for this load.
    pub database_s: Option<f64>,
    /// Whether the server runs on this machine, so that its disk can be looked at.
    pub same_host: bool,
    /// Loads what does not fit the disk or the memory by the estimate.
    pub force: bool,
}

impl TpchLoadOptions {
    /// All steps by four sessions, with keys and indexes; the warm-up is left to the run.
    pub fn new(scale: f64) -> Self {
        TpchLoadOptions {
            scale,
            sessions: 4,
            foreign_keys: true,
            indexes: true,
            steps: TpchStep::ALL.to_vec(),
            serial: false,
            warm_up: false,
            database_s: None,
            same_host: false,
            force: false,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct TpchLoadReport {
    pub rows: LoadReport,
    /// True when the database is complete now: all steps are done.
    pub is_complete: bool,
    /// Seconds that counting and adding up all rows took, which is no step of the load.
    pub verify_s: f64,
    /// The steps until now and, of a complete load, its end and size.
    pub load: TpchLoad,
}

/// Loads the tables. A database that an interrupted load has left is completed; a complete one is
/// left alone. Must not be called within an event loop.
pub fn load(
    driver: &AdminDriver<'_>,
    options: &TpchLoadOptions,
    observer: &dyn LoadObserver,
) -> Result<TpchLoadReport, LoadError> {
    check_options(options)?;
    let needs = needs(options.scale);
    let loader = LoadSessions::new(driver, observer, options.sessions).needing(&needs);
    let beginning = loader
        .one(async |session: &mut AdminSession<'_>| begin(session, options, observer).await)?;
    let found = match beginning {
        Begun::Complete(loaded) => return Ok(complete_before(*loaded, observer)),
        Begun::Unfinished(done) => done,
    };
    let plan = Plan::new(options, driver.dialect(), &found)?;
    let stored = StoredRows::new(observer);
    let worker = Worker { scale: options.scale, sessions: options.sessions, observer, stored };
    for (_, pieces) in plan.steps.iter().filter(|(step, _)| *step == TpchStep::Load) {
        // Once in a process, whatever the scale factor: no table is to be blamed for it.
        crate::generate::prepare();
        observer.rows_planned(steps::row_count(pieces, options.scale));
    }
    let is_postgres = driver.dialect() == Dialect::Postgres;
    if is_postgres && !plan.steps.is_empty() {
        observer.note(
            "Sessions of the load raise maintenance_work_mem for themselves, to make keys and indexes in memory; \
             the server's setting stays as it is",
        );
    }
    let overlaps = !options.serial && is_postgres;
    // Every other piece needs a table.
    let first = plan.steps.partition_point(|(step, _)| !overlaps || *step == TpchStep::Create);
    let (serial, overlapped) = plan.steps.split_at(first);
    for (step, pieces) in serial {
        worker.step(driver, *step, pieces)?;
    }
    if !overlapped.is_empty() {
        worker.overlapped(driver, overlapped.iter().flat_map(|(_, pieces)| pieces))?;
    }
    let rows_found = found.iter().map(|done| done.rows).sum();
    let rows = worker.stored.report(rows_found);
    let mut report = TpchLoadReport { rows, ..TpchLoadReport::default() };
    finish(&loader, options, plan.is_all, observer, &mut report)?;
    Ok(report)
}

fn complete_before(loaded: TpchDatabase, observer: &dyn LoadObserver) -> TpchLoadReport {
    observer.note(&format!("Scale factor {} is already loaded", loaded.scale));
    if loaded.load.refresh_pairs > 0 {
        observer.note(
            "Refresh functions have changed its data since: answers are those of a fresh load only after `dyno tpch drop` \
             and another load",
        );
    }
    let of_load = loaded.load.steps.iter().filter(|step| step.name == "load");
    let rows_found = of_load.map(|step| step.rows).sum();
    TpchLoadReport {
        rows: LoadReport { rows_found, was_complete: true, ..LoadReport::default() },
        is_complete: true,
        load: loaded.load,
        ..TpchLoadReport::default()
    }
}

struct Plan {
    steps: Vec<(TpchStep, Vec<Piece>)>,
    /// Nothing is left after it.
    is_all: bool,
}

impl Plan {
    fn new(options: &TpchLoadOptions, dialect: Dialect, found: &[Done]) -> Result<Self, LoadError> {
        let wanted = options.wanted();
        let names: HashSet<&str> = found.iter().map(|done| done.name.as_str()).collect();
        let mut plan = Plan { steps: Vec::new(), is_all: true };
        let mut left_out = None;
        for step in TpchStep::ALL.into_iter().filter(|step| step.is_wanted(&wanted)) {
            let mut pieces = steps::pieces(step, dialect, &wanted);
            pieces.retain(|piece| !names.contains(piece.name.as_str()));
            match (pieces.is_empty(), options.steps.contains(&step), left_out) {
                (true, ..) => {}
                (false, true, None) => plan.steps.push((step, pieces)),
                (false, true, Some(before)) => return Err(out_of_order(step, before)),
                (false, false, _) => {
                    left_out = left_out.or(Some(step));
                    plan.is_all = false;
                }
            }
        }
        Ok(plan)
    }
}

fn out_of_order(step: TpchStep, before: TpchStep) -> LoadError {
    LoadError::option(format!(
        "The step {} can't be done before the step {}, which was not asked for.",
        step.name(),
        before.name()
    ))
}

/// The statements of a step, in the order in which sessions take them; those of the rows are not
/// among them.
pub fn statements(step: TpchStep, dialect: Dialect, options: &TpchLoadOptions) -> Vec<String> {
    let sql = |piece: Piece| match piece.work {
        Work::Sql { sql, .. } | Work::Outside { sql } => Some(sql),
        Work::Rows { .. } => None,
    };
    steps::pieces(step, dialect, &options.wanted()).into_iter().filter_map(sql).collect()
}

pub fn check_options(options: &TpchLoadOptions) -> Result<(), LoadError> {
    check_scale(options.scale)?;
    if options.sessions == 0 {
        return Err(LoadError::option("A load needs at least one session."));
    }
    Ok(())
}

impl TpchLoadOptions {
    fn wanted(&self) -> LoadRequest {
        let TpchLoadOptions { scale, foreign_keys, indexes, .. } = *self;
        LoadRequest { scale, foreign_keys, indexes }
    }
}

enum Begun {
    Complete(Box<TpchDatabase>),
    Unfinished(Vec<Done>),
}

/// Looks what is there, and notes that the load begins.
async fn begin(
    session: &mut AdminSession<'_>,
    options: &TpchLoadOptions,
    observer: &dyn LoadObserver,
) -> Result<Begun, LoadError> {
    let wanted = options.wanted();
    let attempt = match state::find(session).await? {
        LoadState::Nothing => 1,
        LoadState::Complete(loaded) => {
            let TpchDatabase { scale, foreign_keys, indexes, .. } = *loaded;
            return match (LoadRequest { scale, foreign_keys, indexes }) == wanted {
                true => Ok(Begun::Complete(loaded)),
                false => Err(other_data(
                    "is loaded",
                    &LoadRequest { scale, foreign_keys, indexes },
                    &wanted,
                )),
            };
        }
        LoadState::Unfinished(there, attempts) => {
            if there != wanted {
                return Err(other_data("is being loaded or was interrupted", &there, &wanted));
            }
            refuse_foreign(session, &state::all_tables()).await?;
            observer.note("Going on with an unfinished load");
            attempts + 1
        }
    };
    estimate::check_room(session, options, observer).await?;
    let noting = || while_doing("noting the begin of the load");
    for sql in state::create_own_tables(session.dialect()) {
        execute(session, "noting the begin of the load", &sql).await?;
    }
    for name in state::OWN_TABLES {
        catalog::mark(session, name, observer).await?;
    }
    state::begin(session, &wanted, attempt).await.map_err(noting())?;
    let mut done = state::read_steps(session).await?;
    if attempt == 1
        && let Some(seconds) = options.database_s
    {
        let name = times::CREATE_DATABASE.to_owned();
        let piece = Done { name, began_s: times::now_s() - seconds, seconds, ..Done::default() };
        state::note(session, &piece).await.map_err(noting())?;
        done.push(piece);
    }
    Ok(Begun::Unfinished(done))
}

fn other_data(how: &str, there: &LoadRequest, asked: &LoadRequest) -> LoadError {
    let text = |wanted: &LoadRequest| {
        let word = |is_there| if is_there { "with" } else { "without" };
        format!(
            "scale factor {} {} foreign keys and {} secondary indexes",
            wanted.scale,
            word(wanted.foreign_keys),
            word(wanted.indexes)
        )
    };
    LoadError::data(
        format!("In this database {} {how}, and {} was asked for.", text(there), text(asked)),
        "ask for what is there, use another database, or drop the tables first (dyno tpch drop)",
    )
}

/// Verifies and concludes a load whose steps are all done.
fn finish(
    loader: &LoadSessions<'_>,
    options: &TpchLoadOptions,
    is_complete: bool,
    observer: &dyn LoadObserver,
    report: &mut TpchLoadReport,
) -> Result<(), LoadError> {
    let steps =
        loader.one(async |session: &mut AdminSession<'_>| state::read_steps(session).await)?;
    report.load.steps = times::steps(&steps);
    report.load.seconds = Some(times::seconds(&steps));
    if !is_complete {
        return Ok(());
    }
    let at = OffsetDateTime::now_utc().truncate_to_second();
    report.load.finished_at = at.format(&Rfc3339).unwrap_or_default();
    observer.note("Counting and adding up all rows");
    let began_s = times::now_s();
    verify(loader, &steps)?;
    report.verify_s = times::now_s() - began_s;
    loader.one(async |session: &mut AdminSession<'_>| {
        conclude(session, options, &mut report.load).await
    })?;
    report.is_complete = true;
    Ok(())
}

/// Compares what is stored with what was sent, table by table.
fn verify(loader: &LoadSessions<'_>, done: &[Done]) -> Result<(), LoadError> {
    // The largest first.
    let tables: Vec<SchemaTable> = SchemaTable::ALL.into_iter().rev().collect();
    let no_set_up = async |_: &mut AdminSession<'_>| Ok(());
    loader.each(&tables, no_set_up, async |session: &mut AdminSession<'_>, (), &table| {
        let prefix = format!("{}/{}.", TpchStep::Load.name(), table.name());
        let mut sums: Sums = vec![0; table.columns().len()];
        let mut rows = 0;
        for piece in done.iter().filter(|piece| piece.name.starts_with(&prefix)) {
            sums::add_text(&mut sums, &piece.sums);
            rows += piece.rows;
        }
        sums::verify(session, table, rows, &sums).await
    })
}

/// Notes the end of the load in the database, then warms it up where that is wanted.
async fn conclude(
    session: &mut AdminSession<'_>,
    options: &TpchLoadOptions,
    load: &mut TpchLoad,
) -> Result<(), LoadError> {
    if let Some(sql) = session.capabilities().checkpoint {
        execute(session, "writing all to the file", sql).await?;
    }
    load.size_bytes = estimate::size_bytes(session).await;
    let noting = || while_doing("noting the end of the load");
    state::complete(session, load).await.map_err(noting())?;
    if options.warm_up {
        let began_s = times::now_s();
        crate::warm::warm(session).await.map_err(while_doing("warming up"))?;
        let seconds = times::now_s() - began_s;
        let step = LoadStep { name: "warm-up".to_owned(), seconds, rows: 0 };
        state::note_step(session, load.steps.len(), &step).await.map_err(noting())?;
        load.steps.push(step);
    }
    Ok(())
}

/// Removes what a load has made, also a part of it. Returns the names of the tables that were there.
/// Tables of these names that no load has noted are somebody else's: only `force` drops them.
/// Must not be called within an event loop.
pub fn destroy(
    driver: &AdminDriver<'_>,
    force: bool,
    observer: &dyn LoadObserver,
) -> Result<Vec<String>, LoadError> {
    destroy_of(driver, &state::all_tables(), force, observer)
}

/// The same for some of the tables, in the order of [`state::all_tables`].
pub(crate) fn destroy_of(
    driver: &AdminDriver<'_>,
    names: &[String],
    force: bool,
    observer: &dyn LoadObserver,
) -> Result<Vec<String>, LoadError> {
    LoadSessions::new(driver, observer, 1).one(async |session: &mut AdminSession<'_>| {
        if session.dialect() == Dialect::Sqlite {
            // Otherwise each row is looked up in the tables that refer to it.
            execute(session, "setting up SQLite", "PRAGMA foreign_keys = off").await?;
        }
        let existing = state::tables(session).await?;
        let is_there = |name: &&String| existing.contains(name.as_str());
        let there: Vec<String> = names.iter().filter(is_there).cloned().collect();
        if !force {
            refuse_foreign(session, &there).await?;
        }
        drop_tables(session, &there, observer).await?;
        Ok(there)
    })
}

/// # Errors
/// Some of these tables are there and not dyno's.
async fn refuse_foreign(
    session: &mut AdminSession<'_>,
    names: &[String],
) -> Result<(), LoadError> {
    let existing = state::tables(session).await?;
    let unmarked = catalog::unmarked(session, catalog::MARK).await;
    let unmarked = unmarked.map_err(while_doing("looking whose the tables are"))?;
    not_of_dyno(&existing, &unmarked, names).map_or(Ok(()), Err)
}

/// Tables that a load has not marked, or of which nothing is noted where servers keep no marks.
fn not_of_dyno(
    existing: &HashSet<String>,
    unmarked: &HashSet<String>,
    names: &[String],
) -> Option<LoadError> {
    let is_noted = state::OWN_TABLES.iter().any(|own| existing.contains(*own));
    let is_foreign = |name: &&str| {
        existing.contains(*name)
            && names.iter().any(|known| known == name)
            && (!is_noted || unmarked.contains(*name))
    };
    let foreign: Vec<&str> =
        SchemaTable::ALL.iter().map(|table| table.name()).filter(is_foreign).collect();
    let (subject, verb) = match foreign.as_slice() {
        [] => return None,
        [_] => ("The table", "was"),
        _ => ("The tables", "were"),
    };
    Some(LoadError::data(
        format!("{subject} {} {verb} not loaded by dyno: nothing was changed.", foreign.join(", ")),
        "drop them yourself if nobody needs them; `dyno tpch drop --force` drops them, too",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tables_that_a_load_has_noted_and_marked_are_dropped_unasked() {
        let set = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let refused = |tables: &[&str], unmarked: &[&str]| {
            not_of_dyno(&set(tables), &set(unmarked), &state::all_tables())
                .map(|error| error.to_string())
        };
        assert_eq!(refused(&[], &[]), None);
        assert_eq!(refused(&["people"], &["people"]), None);
        assert_eq!(refused(&["orders", "dyno_tpch"], &["dyno_tpch"]), None);
        assert_eq!(refused(&["lineitem", "dyno_tpch_steps"], &[]), None);
        let one = "The table orders was not loaded by dyno: nothing was changed.";
        assert_eq!(refused(&["orders", "people"], &[]).as_deref(), Some(one));
        let marked = ["orders", "part", "dyno_tpch"];
        assert_eq!(refused(&marked, &["orders"]).as_deref(), Some(one));
        let two = refused(&["orders", "part"], &[]).expect("a refusal");
        assert!(two.starts_with("The tables ") && two.contains(" were not loaded"), "{two}");
    }
}
