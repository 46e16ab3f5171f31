//! Creates and fills the tables, in parallel, and goes on where an interrupted load ended.
//!
//! Rows are stored in chunks of about 30,000, each wholly or not at all, and what a chunk holds
//! depends only on the seed. The database itself keeps the list of chunks that were begun and done:
//! a chunk that was begun and not noted as done is removed and loaded again.
//!
//! - `chunks`, `rows`: what is loaded at once, and its rows. `csv`: the same rows as files.
//! - `state`: what the database says. `verify`: whether all is there.

mod chunks;
mod csv;
mod error;
mod rows;
mod state;
mod verify;

pub use csv::{CsvError, CsvFile, write_csv};
pub use error::LoadError;
pub use state::{Loaded, existing_tables, foreign_keys, loaded};
pub use verify::cardinalities;

use crate::random::Constants;
use crate::schema::{self, KeyTime, LateKey, Schema, Shard, Table};
use crate::text::Timestamp;
use chunks::Chunk;
use dyno_core::{
    BulkMethod, BulkReport, DbError, Dialect, Discard, Driver, ErrorClass, LoadObserver, Rng,
    RowSource, Session, Table as Answer,
};
use dyno_reactor::Stop;
use error::while_doing;
use rows::{ChunkRows, Common};
use state::Found;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Attempts at a chunk that other sessions' locks get in the way of.
const CHUNK_ATTEMPTS: u32 = 5;

/// Points in time are in UTC: in another zone of MySQL's session some do not exist.
pub(crate) const UTC: &str = "SET SESSION time_zone = '+00:00'";

/// What is to be loaded, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadOptions {
    /// Warehouses, 1 to [`crate::WAREHOUSES_MAX`].
    pub warehouses: u32,
    /// Sessions at once; SQLite has one.
    pub sessions: u32,
    /// What makes the rows: the same seed and the same point in time give the same database.
    pub seed: u64,
    /// The point in time that all rows of the load have.
    pub loaded_at: Timestamp,
    /// When keys are made; `None` is what suits the dialect.
    pub keys: Option<KeyTime>,
    /// Foreign keys, after the load.
    pub foreign_keys: bool,
    /// What a distributed database is told.
    pub shard: Option<Shard>,
}

impl LoadOptions {
    /// As many warehouses by four sessions, as BenchmarkSQL has them; no foreign keys.
    pub fn new(warehouses: u32) -> Self {
        LoadOptions {
            warehouses,
            sessions: 4,
            seed: 1,
            loaded_at: Timestamp::now(),
            keys: None,
            foreign_keys: false,
            shard: None,
        }
    }
}

/// What a load did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadReport {
    /// Rows stored by this load.
    pub rows_loaded: u64,
    /// Rows that an earlier load had stored.
    pub rows_found: u64,
    /// How the rows got there; `None` when none had to.
    pub method: Option<BulkMethod>,
    /// Why a faster method was not used.
    pub fallback_reason: Option<String>,
    /// True when the database was complete before.
    pub was_complete: bool,
}

/// Creates and fills the tables. A database that an interrupted load has left is completed; a
/// complete one is left alone. Must not be called within an event loop.
///
/// # Errors
/// Options that the database can't have; tables of another load; the first error of a session.
pub fn load<D: Driver>(
    driver: &D,
    options: &LoadOptions,
    observer: &impl LoadObserver,
) -> Result<LoadReport, LoadError> {
    let dialect = driver.dialect();
    check_options(options, dialect)?;
    let schema = Schema {
        dialect,
        keys: options.keys.unwrap_or(KeyTime::usual(dialect)),
        foreign_keys: options.foreign_keys,
        shard: options.shard.clone(),
    };
    let begun = on_one_session(driver, async |session: &mut D::Session| {
        begin(session, options, &schema, observer).await
    })?;
    let Some((loaded_at, progress)) = begun else {
        observer.note(&format!("{} warehouses are already loaded", options.warehouses));
        return Ok(LoadReport { was_complete: true, ..LoadReport::default() });
    };
    let constants = Constants::for_load(&mut Rng::new(options.seed, "tpcc constants", 0));
    let common = Common { seed: options.seed, dialect, loaded_at, constants };
    let load = Load::new(common, options.warehouses, &progress, observer);
    let sessions = if dialect == Dialect::Sqlite { 1 } else { options.sessions.max(1) };
    let work = async |session: &mut D::Session, stop: &Stop| load.work(session, stop).await;
    on_sessions(driver, sessions, work).map_err(LoadError::with_resume_hint)?;
    let finish = Finish { schema: &schema, observer };
    finish.keys(driver, sessions).map_err(LoadError::with_resume_hint)?;
    on_one_session(driver, async |session: &mut D::Session| {
        finish.rest(session, options.warehouses, &constants).await
    })
    .map_err(LoadError::with_resume_hint)?;
    Ok(load.report())
}

/// Whether a load of these options can be made in a dialect.
///
/// # Errors
/// The option that can't be had.
pub fn check_options(options: &LoadOptions, dialect: Dialect) -> Result<(), LoadError> {
    if !(1..=crate::WAREHOUSES_MAX).contains(&options.warehouses) {
        return Err(LoadError::Option(format!(
            "The number of warehouses must be between 1 and {}, not {}.",
            crate::WAREHOUSES_MAX,
            options.warehouses
        )));
    }
    if dialect == Dialect::Sqlite && (options.foreign_keys || options.shard.is_some()) {
        let text = "SQLite can't add foreign keys to tables, and has no shards.";
        return Err(LoadError::Option(text.to_owned()));
    }
    Ok(())
}

/// Removes what a load has made, also a part of it. Returns the names of the tables that were there.
/// Must not be called within an event loop.
///
/// # Errors
/// The first error of the session.
pub fn destroy<D: Driver>(
    driver: &D,
    observer: &impl LoadObserver,
) -> Result<Vec<String>, LoadError> {
    on_one_session(driver, async |session: &mut D::Session| {
        let existing = state::tables(session).await?;
        let mut dropped = Vec::new();
        for sql in schema::drop_all(driver.dialect()) {
            let name = sql.rsplit(' ').next().unwrap_or_default().to_owned();
            if existing.contains(&name) {
                observer.dropping_table(&name);
                dropped.push(name);
            }
            execute(session, &format!("executing {sql}"), &sql).await?;
        }
        Ok(dropped)
    })
}

/// Several sessions at once. The first error ends the work of all, each at its next piece.
fn on_sessions<D: Driver>(
    driver: &D,
    sessions: u32,
    work: impl AsyncFn(&mut D::Session, &Stop) -> Result<(), LoadError> + Sync,
) -> Result<(), LoadError> {
    let refused = |error| while_doing("connecting to the database")(error);
    dyno_reactor::on_sessions(driver, sessions, refused, work).map_err(LoadError::Loop)?
}

fn on_one_session<D: Driver, T>(
    driver: &D,
    work: impl AsyncFn(&mut D::Session) -> Result<T, LoadError>,
) -> Result<T, LoadError> {
    dyno_reactor::block_on(async {
        let connected = driver.connect(0).await;
        let mut session = connected.map_err(while_doing("connecting to the database"))?;
        let done = work(&mut session).await;
        session.close().await;
        done
    })
    .map_err(LoadError::Loop)?
}

async fn execute<S: Session>(session: &mut S, doing: &str, sql: &str) -> Result<(), LoadError> {
    session.query(sql, &mut Discard).await.map(drop).map_err(while_doing(doing))
}

/// Creates what is missing. Returns the point in time of the rows and what has been done before;
/// `None` when the database is complete.
async fn begin<S: Session>(
    session: &mut S,
    options: &LoadOptions,
    schema: &Schema,
    observer: &impl LoadObserver,
) -> Result<Option<(Timestamp, HashMap<String, bool>)>, LoadError> {
    let found = state::inspect(session, options).await?;
    let existing = state::tables(session).await?;
    if found == Found::Complete {
        return Ok(None);
    }
    for (name, sql) in schema.create_own_tables() {
        if !existing.contains(name) {
            execute(session, &format!("creating table {name}"), &sql).await?;
        }
    }
    let loaded_at = match found {
        Found::Unfinished(at) => {
            observer.note("Going on with an unfinished load");
            at
        }
        Found::Nothing | Found::Complete => {
            let noting = while_doing("noting the begin of the load");
            state::begin(session, options).await.map_err(noting)?;
            options.loaded_at
        }
    };
    let progress = state::progress(session).await?;
    for table in Table::ALL {
        create_table(session, schema, table, &progress, observer).await?;
    }
    if schema.keys == KeyTime::BeforeLoad {
        make_keys(session, schema.late_keys(), observer).await?;
    }
    Ok(Some((loaded_at, progress)))
}

/// A table counts as made once that is noted: what follows CREATE TABLE on a distributed database
/// may be missing otherwise. No row is stored before.
async fn create_table<S: Session>(
    session: &mut S,
    schema: &Schema,
    table: Table,
    progress: &HashMap<String, bool>,
    observer: &impl LoadObserver,
) -> Result<(), LoadError> {
    let name = table.name();
    if progress.get(name) == Some(&true) {
        return Ok(());
    }
    let doing = format!("creating table {name}");
    observer.creating_table(name);
    if progress.contains_key(name) {
        execute(session, &doing, &format!("DROP TABLE IF EXISTS {name}")).await?;
    } else {
        state::note_begun(session, name).await.map_err(while_doing(&*doing))?;
    }
    for sql in schema.create_table(table) {
        let created = session.query(&sql, &mut Discard).await;
        created.map_err(|error| while_doing(&*doing)(suspect_shard(schema, error)))?;
    }
    state::note_done(session, name).await.map_err(while_doing(&*doing))
}

/// A server that isn't distributed understands no shard clause.
fn suspect_shard(schema: &Schema, error: DbError) -> DbError {
    if schema.shard.is_none() || error.is_fatal() || error.hint().is_some() {
        return error;
    }
    error.with_hint(
        "The shard clauses are part of this statement: give those of this database, or none (in a \
         bundled suite, name the database as the target that has none).",
    )
}

async fn make_keys<S: Session>(
    session: &mut S,
    keys: Vec<LateKey>,
    observer: &impl LoadObserver,
) -> Result<(), LoadError> {
    let existing = state::keys(session).await?;
    for key in keys.into_iter().filter(|key| !existing.contains(&key.name)) {
        make_key(session, &key, observer).await?;
    }
    Ok(())
}

async fn make_key<S: Session>(
    session: &mut S,
    key: &LateKey,
    observer: &impl LoadObserver,
) -> Result<(), LoadError> {
    observer.creating_index(key.table.name());
    let doing = format!("creating key {} of table {}", key.name, key.table.name());
    execute(session, &doing, &key.sql).await
}

/// A chunk that is not there yet.
#[derive(Clone, Copy, Debug)]
struct Missing {
    chunk: Chunk,
    rows: u64,
    /// Rows of it may be there.
    was_begun: bool,
}

/// Rows that are being loaded; shared by the sessions.
struct Load<'a, O> {
    common: Common,
    missing: Vec<Missing>,
    next: AtomicUsize,
    rows_found: u64,
    rows_loaded: AtomicU64,
    how: Mutex<Option<BulkReport>>,
    observer: &'a O,
}

impl<'a, O: LoadObserver> Load<'a, O> {
    fn new(
        common: Common,
        warehouses: u32,
        progress: &HashMap<String, bool>,
        observer: &'a O,
    ) -> Self {
        let mut rows_found = 0;
        let mut missing = Vec::new();
        for chunk in chunks::all(warehouses) {
            let rows = rows::row_count(common.seed, &chunk);
            match progress.get(&chunk.name()) {
                Some(true) => rows_found += rows,
                begun => missing.push(Missing { chunk, rows, was_begun: begun.is_some() }),
            }
        }
        observer.rows_planned(missing.iter().map(|missing| missing.rows).sum());
        Load {
            common,
            missing,
            next: AtomicUsize::new(0),
            rows_found,
            rows_loaded: AtomicU64::new(0),
            how: Mutex::new(None),
            observer,
        }
    }

    /// What one session does: chunk after chunk, until none is left or another session has failed.
    async fn work<S: Session>(&self, session: &mut S, stop: &Stop) -> Result<(), LoadError> {
        if self.common.dialect == Dialect::Mysql {
            execute(session, "setting the time zone", UTC).await?;
        }
        while !stop.is_wanted()
            && let Some(missing) = self.missing.get(self.next.fetch_add(1, Ordering::Relaxed))
        {
            self.chunk(session, missing).await?;
        }
        Ok(())
    }

    async fn chunk<S: Session>(&self, session: &mut S, missing: &Missing) -> Result<(), LoadError> {
        let Missing { chunk, rows, was_begun } = missing;
        let name = chunk.name();
        let doing = format!("loading the rows {name}");
        if *was_begun {
            execute(session, &doing, &chunk.delete()).await?;
        } else {
            state::note_begun(session, &name).await.map_err(while_doing(&*doing))?;
        }
        let table = chunk.table.name();
        let mut source = ChunkRows::new(self.common, *chunk);
        let stored = store(session, table, &chunk.table.columns(), &mut source).await;
        let report = stored.map_err(while_doing(&*doing))?;
        if report.rows != *rows {
            return Err(LoadError::Data {
                problem: format!("{table} took {} of {rows} rows of a load.", report.rows),
                hint: "look for triggers and rules on the table".to_owned(),
            });
        }
        state::note_done(session, &name).await.map_err(while_doing(&*doing))?;
        self.rows_loaded.fetch_add(*rows, Ordering::Relaxed);
        self.observer.rows_done(*rows);
        self.remember(report);
        Ok(())
    }

    /// Keeps the first report; its reason for a slower method is told once.
    fn remember(&self, report: BulkReport) {
        let mut how = self.how.lock().unwrap_or_else(PoisonError::into_inner);
        if how.is_none() {
            if let Some(reason) = &report.fallback_reason {
                self.observer.note(reason);
            }
            *how = Some(report);
        }
    }

    fn report(self) -> LoadReport {
        let how = self.how.into_inner().unwrap_or_else(PoisonError::into_inner);
        LoadReport {
            rows_loaded: self.rows_loaded.into_inner(),
            rows_found: self.rows_found,
            method: how.as_ref().map(|report| report.method),
            fallback_reason: how.and_then(|report| report.fallback_reason),
            was_complete: false,
        }
    }
}

async fn store<S: Session>(
    session: &mut S,
    table: &str,
    columns: &[&str],
    source: &mut ChunkRows,
) -> Result<BulkReport, DbError> {
    let mut attempt = 1;
    loop {
        match session.bulk_load(table, columns, source).await {
            Err(error) if is_conflict(&error) && attempt < CHUNK_ATTEMPTS => {
                session.rollback().await?;
                source.restart();
                attempt += 1;
            }
            result => return result,
        }
    }
}

fn is_conflict(error: &DbError) -> bool {
    matches!(
        error.class(),
        ErrorClass::Deadlock | ErrorClass::LockTimeout | ErrorClass::Serialization
    )
}

/// What follows the rows.
struct Finish<'a, O> {
    schema: &'a Schema,
    observer: &'a O,
}

impl<O: LoadObserver> Finish<'_, O> {
    /// Keys and indexes, several at once.
    fn keys<D: Driver>(&self, driver: &D, sessions: u32) -> Result<(), LoadError> {
        let existing =
            on_one_session(driver, async |session: &mut D::Session| state::keys(session).await)?;
        let mut missing = self.schema.late_keys();
        missing.retain(|key| !existing.contains(&key.name));
        let next = AtomicUsize::new(0);
        let work = async |session: &mut D::Session, stop: &Stop| {
            while !stop.is_wanted()
                && let Some(key) = missing.get(next.fetch_add(1, Ordering::Relaxed))
            {
                make_key(session, key, self.observer).await?;
            }
            Ok(())
        };
        on_sessions(driver, sessions.min(missing.len() as u32), work)
    }

    async fn rest<S: Session>(
        &self,
        session: &mut S,
        warehouses: u32,
        constants: &Constants,
    ) -> Result<(), LoadError> {
        make_keys(session, self.schema.foreign_keys(), self.observer).await?;
        for sql in self.schema.number_history() {
            execute(session, "numbering the history", &sql).await?;
        }
        for sql in self.schema.analyze() {
            let mut answer = Answer::default();
            let done = session.query(&sql, &mut answer).await;
            done.map_err(while_doing(format!("executing {sql}")))?;
        }
        let counting = while_doing("counting the rows");
        let problems = cardinalities(session, warehouses).await.map_err(counting)?;
        if !problems.is_empty() {
            let hint = "destroy the database and build it again".to_owned();
            return Err(LoadError::Data { problem: format!("{}.", problems.join("; ")), hint });
        }
        let noting = while_doing("noting the end of the load");
        state::complete(session, warehouses, constants).await.map_err(noting)
    }
}
