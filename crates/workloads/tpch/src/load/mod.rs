//! Creates, fills and finishes the tables in the paper's steps, several sessions at a time, and goes
//! on where an interrupted load ended.
//!
//! A step consists of pieces: about 100,000 rows, the key of a table, an index. The database itself
//! remembers each piece that is done, in the same transaction if it has one.
//!
//! - `steps`: what is done, and by which statements. `work`: the parallel work. `order`: what of it overlaps.
//! - `rows`: rows on their way, and whether what is stored is what was sent.

mod order;
mod rows;
mod steps;
mod work;

pub use dyno_load::LoadError;
pub use steps::TpchStep;
pub(crate) use steps::needs;
use steps::{Piece, Work};

use crate::facts::{LoadStep, TpchLoad};
use crate::generate::check_scale;
use crate::schema::SchemaTable;
use crate::state::{self, CompletedPiece, TpchDatabase};
use dyno_core::{AdminDriver, AdminSession, Dialect};
use dyno_load::catalog;
use dyno_load::query::{drop_tables, execute};
use dyno_load::{LoadObserver, LoadReport, LoadSessions, StoredRows, while_doing};
use std::collections::HashSet;
use std::time::{SystemTime, UNIX_EPOCH};
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
    /// Each step begins when the one before has ended, as in the paper. Otherwise PostgreSQL makes keys and indexes of
    /// a table while others are still filled.
    pub serial: bool,
    /// Reads all into memory at the end, as its own step.
    pub warm_up: bool,
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
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct TpchLoadReport {
    pub rows: LoadReport,
    /// Set if the database is complete now: all steps are done.
    pub is_complete: bool,
    /// Seconds that counting and adding up all rows took, which is not a step of the load.
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
    check_scale(options.scale)?;
    if options.sessions == 0 {
        return Err(LoadError::option("A load needs at least one session."));
    }
    let needs = needs(options.scale);
    let loader = LoadSessions::new(driver, observer, options.sessions).needing(&needs);
    let (database, completed) = loader
        .one(async |session: &mut AdminSession<'_>| begin(session, options, observer).await)?;
    if database.is_complete() {
        return Ok(report_already_loaded(database, observer));
    }
    let (pieces, completes_load) = plan(options, driver.dialect(), &completed)?;
    let stored = StoredRows::new(observer);
    let worker = Worker { scale: options.scale, sessions: options.sessions, observer, stored };
    if pieces.iter().any(|piece| piece.step == TpchStep::Load) {
        // Once in a process, whatever the scale factor: no table is to be blamed for it.
        crate::generate::prepare();
        observer.rows_planned(steps::row_count(&pieces, options.scale));
    }
    let is_postgres = driver.dialect() == Dialect::Postgres;
    if is_postgres && !pieces.is_empty() {
        observer.note(
            "Sessions of the load raise maintenance_work_mem for themselves, to make keys and indexes in memory; \
             the server's setting stays as it is",
        );
    }
    if !pieces.is_empty() {
        worker.execute(driver, &pieces, is_postgres && !options.serial)?;
    }
    let rows = worker.stored.report(completed.iter().map(|piece| piece.rows).sum());
    let report = TpchLoadReport { rows, ..TpchLoadReport::default() };
    finish(&loader, options, observer, database, completes_load, report)
}

fn report_already_loaded(loaded: TpchDatabase, observer: &dyn LoadObserver) -> TpchLoadReport {
    observer.note(&format!("Scale factor {} is already loaded", loaded.scale));
    if loaded.load.refresh_pairs > 0 {
        observer.note(
            "Refresh functions have changed its data since: answers are those of a fresh load only after `dyno tpch drop` \
             and another load",
        );
    }
    let load_steps = loaded.load.steps.iter().filter(|step| step.name == "load");
    let rows_found = load_steps.map(|step| step.rows).sum();
    let rows = LoadReport { rows_found, was_complete: true, ..LoadReport::default() };
    TpchLoadReport { rows, is_complete: true, load: loaded.load, ..TpchLoadReport::default() }
}

/// The pieces that are left of the steps that are requested, and whether nothing is left after them.
fn plan(
    options: &TpchLoadOptions,
    dialect: Dialect,
    completed: &[CompletedPiece],
) -> Result<(Vec<Piece>, bool), LoadError> {
    let names: HashSet<&str> = completed.iter().map(|piece| piece.name.as_str()).collect();
    let (mut remaining, mut skipped_step): (Vec<Piece>, Option<TpchStep>) = (Vec::new(), None);
    for step in TpchStep::ALL.into_iter().filter(|step| step.is_wanted(options)) {
        let mut pieces = steps::pieces(step, dialect, options);
        pieces.retain(|piece| !names.contains(piece.name.as_str()));
        if !options.steps.contains(&step) {
            skipped_step = skipped_step.or((!pieces.is_empty()).then_some(step));
        } else if let Some(before) = skipped_step.filter(|_| !pieces.is_empty()) {
            return Err(LoadError::option(format!(
                "The step {} can't be done before the step {}, which was not asked for.",
                step.name(),
                before.name()
            )));
        } else {
            remaining.extend(pieces);
        }
    }
    Ok((remaining, skipped_step.is_none()))
}

/// The statements of a step, in the order in which sessions take them; those of the rows are not
/// among them.
pub fn statements(step: TpchStep, dialect: Dialect, options: &TpchLoadOptions) -> Vec<String> {
    let pieces = steps::pieces(step, dialect, options).into_iter();
    let statements = pieces.filter_map(|piece: Piece| match piece.work {
        Work::Sql { sql, .. } | Work::Outside { sql } => Some(sql),
        Work::Rows { .. } => None,
    });
    statements.collect()
}

/// Looks what is there, and notes that the load begins. Returns what is being loaded, or is complete, and the pieces
/// that are done.
async fn begin(
    session: &mut AdminSession<'_>,
    options: &TpchLoadOptions,
    observer: &dyn LoadObserver,
) -> Result<(TpchDatabase, Vec<CompletedPiece>), LoadError> {
    let TpchLoadOptions { scale, foreign_keys, indexes, .. } = *options;
    let requested = TpchDatabase { scale, foreign_keys, indexes, load: TpchLoad::default() };
    let mut database =
        state::find(session).await?.loaded_by_dyno()?.unwrap_or_else(|| requested.clone());
    if (database.scale, database.foreign_keys, database.indexes) != (scale, foreign_keys, indexes) {
        return Err(other_data_error(&database, &requested));
    }
    if database.is_complete() {
        return Ok((database, Vec::new()));
    }
    let existing = state::tables(session).await?;
    refuse_foreign(session, &existing, &state::all_tables()).await?;
    if database.load.attempts > 0 {
        observer.note("Continuing an unfinished load");
    }
    database.load.attempts += 1;
    state::create_own_tables(session, observer).await?;
    note_load(session, &database, "begin").await?;
    Ok((database, state::read_steps(session).await?))
}

fn other_data_error(existing: &TpchDatabase, requested: &TpchDatabase) -> LoadError {
    let (found, wanted) = (describe_data(existing), describe_data(requested));
    let state =
        if existing.is_complete() { "is loaded" } else { "is being loaded or was interrupted" };
    LoadError::data(
        format!("In this database {found} {state}, and {wanted} was asked for."),
        "ask for what is there, use another database, or drop the tables first (dyno tpch drop)",
    )
}

fn describe_data(data: &TpchDatabase) -> String {
    let [keys, indexes] =
        [data.foreign_keys, data.indexes].map(|has_part| if has_part { "with" } else { "without" });
    format!("scale factor {} {keys} foreign keys and {indexes} secondary indexes", data.scale)
}

/// Tells the steps until now, and concludes a load whose steps are all done: compares what is stored with what was
/// sent, notes the end in the database, and warms it up if that is wanted.
fn finish(
    loader: &LoadSessions<'_>,
    options: &TpchLoadOptions,
    observer: &dyn LoadObserver,
    mut database: TpchDatabase,
    completes_load: bool,
    mut report: TpchLoadReport,
) -> Result<TpchLoadReport, LoadError> {
    let pieces =
        loader.one(async |session: &mut AdminSession<'_>| state::read_steps(session).await)?;
    database.load.steps = load_steps(&pieces);
    database.load.seconds = Some(covered_s(&pieces));
    if completes_load {
        let at = OffsetDateTime::now_utc().truncate_to_second();
        database.load.finished_at = at.format(&Rfc3339).unwrap_or_default();
        observer.note("Counting and adding up all rows");
        let began_s = now_s();
        // The largest first.
        let tables: Vec<SchemaTable> = SchemaTable::ALL.into_iter().rev().collect();
        loader.each(&tables, async |session: &mut AdminSession<'_>, &table| {
            rows::verify(session, table, &pieces).await
        })?;
        report.verify_s = now_s() - began_s;
        loader.one(async |session: &mut AdminSession<'_>| {
            if let Some(sql) = session.capabilities().checkpoint {
                execute(session, "writing all to the file", sql).await?;
            }
            database.load.size_bytes = state::size_bytes(session).await;
            note_load(session, &database, "end").await?;
            if options.warm_up {
                let began_s = now_s();
                crate::warm::warm(session).await.map_err(while_doing("warming up"))?;
                let (name, seconds) = ("warm-up".to_owned(), now_s() - began_s);
                database.load.steps.push(LoadStep { name, seconds, rows: 0 });
                note_load(session, &database, "end").await?;
            }
            Ok(())
        })?;
        report.is_complete = true;
    }
    report.load = database.load;
    Ok(report)
}

async fn note_load(
    session: &mut AdminSession<'_>,
    database: &TpchDatabase,
    stage: &str,
) -> Result<(), LoadError> {
    let doing = while_doing(format!("noting the {stage} of the load"));
    state::note_load(session, database).await.map_err(doing)
}

/// Seconds since 1970.
fn now_s() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |passed| passed.as_secs_f64())
}

/// Seconds in which at least one of the pieces was being done. What an interruption has lost, and
/// the time until the load continued, are not among them.
fn covered_s<'a>(pieces: impl IntoIterator<Item = &'a CompletedPiece>) -> f64 {
    let mut spans: Vec<(f64, f64)> =
        pieces.into_iter().map(|piece| (piece.began_s, piece.began_s + piece.seconds)).collect();
    spans.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut covered = 0.0;
    let mut covered_until = f64::NEG_INFINITY;
    for (from, to) in spans {
        covered += (to - from.max(covered_until)).max(0.0);
        covered_until = covered_until.max(to);
    }
    covered
}

/// The steps in their order, each followed by its tables.
fn load_steps(completed: &[CompletedPiece]) -> Vec<LoadStep> {
    let mut steps = Vec::new();
    for step in TpchStep::ALL {
        let prefix = format!("{}/", step.name());
        steps.extend(sum_pieces(step.name(), completed, |name| name.starts_with(&prefix)));
        for table in SchemaTable::ALL {
            let table_step = format!("{prefix}{}", table.name());
            let parts = format!("{table_step}.");
            steps.extend(sum_pieces(&table_step, completed, |name| {
                name == table_step || name.starts_with(&parts)
            }));
        }
    }
    steps
}

/// Time and rows of the pieces with such names as a step; `None` if there are none.
fn sum_pieces(
    step: &str,
    completed: &[CompletedPiece],
    is_part: impl Fn(&str) -> bool,
) -> Option<LoadStep> {
    let pieces: Vec<&CompletedPiece> =
        completed.iter().filter(|piece| is_part(&piece.name)).collect();
    let rows = pieces.iter().map(|piece| piece.rows).sum();
    (!pieces.is_empty()).then(|| LoadStep {
        name: step.to_owned(),
        seconds: covered_s(pieces),
        rows,
    })
}

/// Removes what a load has made, also a part of it. Returns the names of the tables that were there.
/// Tables of these names that no load has noted are somebody else's: only `force` drops them.
/// Must not be called within an event loop.
pub fn destroy(
    driver: &AdminDriver<'_>,
    force: bool,
    observer: &dyn LoadObserver,
) -> Result<Vec<String>, LoadError> {
    destroy_tables(driver, &state::all_tables(), force, observer)
}

/// Removes some of the tables, in the order of [`state::all_tables`].
pub(crate) fn destroy_tables(
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
        let mut dropped = names.to_vec();
        dropped.retain(|name| existing.contains(name));
        if !force {
            refuse_foreign(session, &existing, &dropped).await?;
        }
        drop_tables(session, &dropped, observer).await?;
        Ok(dropped)
    })
}

/// # Errors
/// Some of these tables are there and not dyno's.
async fn refuse_foreign(
    session: &mut AdminSession<'_>,
    existing: &HashSet<String>,
    names: &[String],
) -> Result<(), LoadError> {
    let unmarked = catalog::unmarked(session, catalog::MARK).await;
    let unmarked = unmarked.map_err(while_doing("looking whose the tables are"))?;
    foreign_tables_error(existing, &unmarked, names).map_or(Ok(()), Err)
}

/// Tables that a load has not marked, or of which nothing is noted where servers keep no marks.
fn foreign_tables_error(
    existing: &HashSet<String>,
    unmarked: &HashSet<String>,
    names: &[String],
) -> Option<LoadError> {
    let is_noted = state::OWN_TABLES.iter().any(|name| existing.contains(*name));
    let mut foreign = SchemaTable::ALL.map(SchemaTable::name).to_vec();
    foreign.retain(|name| {
        existing.contains(*name)
            && names.iter().any(|known| known == name)
            && (!is_noted || unmarked.contains(*name))
    });
    let (subject, verb) = match foreign.len() {
        0 => return None,
        1 => ("The table", "was"),
        _ => ("The tables", "were"),
    };
    Some(LoadError::data(
        format!("{subject} {} {verb} not loaded by dyno: nothing was changed.", foreign.join(", ")),
        "drop them yourself if no one needs them; `dyno tpch drop --force` drops them, too",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error of a drop if these tables exist, of which some bear no mark of a load.
    fn refusal(tables: &[&str], unmarked: &[&str]) -> Option<String> {
        let [tables, unmarked]: [HashSet<String>; 2] =
            [tables, unmarked].map(|names| names.iter().map(|&name| name.to_owned()).collect());
        let error = foreign_tables_error(&tables, &unmarked, &state::all_tables());
        error.map(|error| error.to_string())
    }

    #[test]
    fn only_tables_that_a_load_has_noted_and_marked_are_dropped_unasked() {
        assert_eq!(refusal(&[], &[]), None);
        assert_eq!(refusal(&["people"], &["people"]), None);
        assert_eq!(refusal(&["orders", "dyno_tpch"], &["dyno_tpch"]), None);
        assert_eq!(refusal(&["lineitem", "dyno_tpch_steps"], &[]), None);
        let one_table = "The table orders was not loaded by dyno: nothing was changed.";
        assert_eq!(refusal(&["orders", "people"], &[]).as_deref(), Some(one_table));
        let marked = ["orders", "part", "dyno_tpch"];
        assert_eq!(refusal(&marked, &["orders"]).as_deref(), Some(one_table));
        let two = refusal(&["orders", "part"], &[]).expect("a refusal");
        assert!(two.starts_with("The tables ") && two.contains(" were not loaded"), "{two}");
    }

    fn new_piece(name: &str, began_s: f64, seconds: f64, rows: u64) -> CompletedPiece {
        CompletedPiece { name: name.to_owned(), began_s, seconds, rows, sums: String::new() }
    }

    #[test]
    fn a_step_lasts_while_one_of_its_pieces_does() {
        let pieces = [
            new_piece("create/part", 90.0, 1.0, 0),
            new_piece("load/part.1", 100.0, 4.0, 10),
            new_piece("load/partsupp.1", 102.0, 1.0, 7),
            new_piece("load/part.2", 103.0, 3.0, 10),
            // After an interruption.
            new_piece("load/part.3", 500.0, 2.0, 5),
        ];
        let expected = [
            ("create", 1.0, 0),
            ("create/part", 1.0, 0),
            ("load", 8.0, 32),
            ("load/part", 8.0, 25),
            ("load/partsupp", 1.0, 7),
        ]
        .map(|(name, seconds, rows)| LoadStep { name: name.to_owned(), seconds, rows });
        assert_eq!(load_steps(&pieces), expected);
    }
}
