//! `prepare`: creates and fills the tables, with several sessions also inside one table, and goes on
//! where an interrupted load ended.
//!
//! A table is loaded in chunks of [`CHUNK_ROWS`] rows. A chunk is stored wholly or not at all, and
//! what it holds depends only on the seed, the table and the chunk. So the database itself says
//! what is missing.

use crate::catalog;
use crate::options::Options;
use crate::rows::{COLUMNS, ChunkRows};
use crate::schema::{self, Index};
use crate::sessions::on_sessions;
use dyno_core::{
    BulkMethod, BulkReport, DbError, Dialect, Discard, Driver, ErrorClass, LoadObserver, Session,
};
use std::collections::HashSet;
use std::fmt;
use std::io;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Rows that are loaded, and committed, at once. A constant: an interrupted load can only be
/// continued with the same one.
pub const CHUNK_ROWS: u32 = 20_000;

/// Attempts at a chunk that other sessions' locks get in the way of.
const CHUNK_ATTEMPTS: u32 = 5;

/// What a load did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadReport {
    /// Tables of the data set.
    pub tables: u32,
    /// Tables that held all their rows and indexes before.
    pub tables_complete: u32,
    /// Rows stored by this load.
    pub rows_loaded: u64,
    /// Rows that an earlier load had stored.
    pub rows_found: u64,
    /// How the rows got there; `None` when none had to.
    pub method: Option<BulkMethod>,
    /// Why a faster method was not used.
    pub fallback_reason: Option<String>,
}

/// Why a load, a cleanup or a prewarm failed.
#[derive(Debug)]
pub enum LoadError {
    /// The database refused something or went away.
    Session {
        /// What was being done, such as `creating table 'sbtest1'`.
        doing: String,
        /// What the database or the way to it answered.
        error: DbError,
        /// A remedy, where one is known.
        hint: Option<String>,
    },
    /// A table exists and is not what the options describe.
    Table {
        table: String,
        /// What is wrong with it, in words that follow the table's name.
        problem: String,
        /// The remedy.
        hint: String,
    },
    /// The kernel refused an event loop.
    Loop(io::Error),
}

impl LoadError {
    /// A remedy, for a line of its own after `hint:`.
    pub fn hint(&self) -> Option<&str> {
        match self {
            LoadError::Session { error, hint, .. } => error.hint().or(hint.as_deref()),
            LoadError::Table { hint, .. } => Some(hint),
            LoadError::Loop(_) => None,
        }
    }

    /// The database's own error, if it was one.
    pub fn db_error(&self) -> Option<&DbError> {
        match self {
            LoadError::Session { error, .. } => Some(error),
            LoadError::Table { .. } | LoadError::Loop(_) => None,
        }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Session { doing, error, .. } => write!(f, "{doing} failed: {error}"),
            LoadError::Table { table, problem, .. } => write!(f, "table '{table}' {problem}"),
            LoadError::Loop(error) => write!(f, "no event loop could be made: {error}"),
        }
    }
}

impl std::error::Error for LoadError {}

/// Names what was being done when a session failed.
pub(crate) fn while_doing(doing: impl Into<String>) -> impl FnOnce(DbError) -> LoadError {
    let doing = doing.into();
    move |error| LoadError::Session { doing, error, hint: None }
}

/// Creates and fills the tables of `options` with up to `threads` sessions at once, creates their
/// indexes, and lets the server's numbering continue behind the rows. Tables that exist are
/// completed; complete ones are left alone. Must not be called within an event loop.
///
/// # Errors
/// The first error of a session; a table whose columns or rows are not those of this data set.
pub fn prepare<D: Driver>(
    driver: &D,
    options: &Options,
    threads: u32,
    seed: u64,
    observer: &impl LoadObserver,
) -> Result<LoadReport, LoadError> {
    let names = options.table_names(threads);
    // SQLite has one writer at a time: more sessions would only wait for each other.
    let limit = if driver.dialect() == Dialect::Sqlite { 1 } else { threads.max(1) };
    let tables = Mutex::new(Vec::with_capacity(names.len()));
    let next = AtomicUsize::new(0);
    on_sessions(driver, limit.min(names.len() as u32), async |session: &mut D::Session| {
        let existing = catalog::tables(session).await.map_err(while_doing("listing the tables"))?;
        while let Some((at, name)) = take(&next, &names) {
            let table =
                inspect_or_create(session, options, name, at as u32, &existing, observer).await?;
            locked(&tables).push(table);
        }
        Ok(())
    })?;
    let mut tables = tables.into_inner().unwrap_or_else(PoisonError::into_inner);
    tables.sort_by_key(|table| table.number);
    let load = Load::new(options, seed, observer, tables);
    observer.rows_planned(load.rows_missing());
    on_sessions(driver, limit.min(load.pieces.len() as u32), async |session: &mut D::Session| {
        load.work(session).await
    })?;
    Ok(load.report())
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes the next item of a list that several sessions work through.
pub(crate) fn take<'a, T>(next: &AtomicUsize, items: &'a [T]) -> Option<(usize, &'a T)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    items.get(at).map(|item| (at, item))
}

/// A table that exists now, and what it lacks.
#[derive(Debug)]
struct TableState {
    name: String,
    number: u32,
    missing_chunks: Vec<u32>,
    rows_missing: u64,
    missing_indexes: Vec<Index>,
    numbering: Option<String>,
    chunks_left: AtomicU32,
    announced: AtomicBool,
}

impl TableState {
    fn is_complete(&self) -> bool {
        self.missing_chunks.is_empty() && self.missing_indexes.is_empty()
    }
}

/// First and last id of a chunk (from 0) of a table with as many rows.
fn chunk_ids(chunk: u32, rows: u32) -> (u32, u32) {
    let first = chunk * CHUNK_ROWS + 1;
    (first, (first - 1).saturating_add(CHUNK_ROWS).min(rows))
}

async fn inspect_or_create<S: Session>(
    session: &mut S,
    options: &Options,
    name: &str,
    number: u32,
    existing: &HashSet<String>,
    observer: &impl LoadObserver,
) -> Result<TableState, LoadError> {
    let dialect = session.dialect();
    let rows = options.rows_to_load();
    let mut missing_chunks: Vec<u32> = (0..rows.div_ceil(CHUNK_ROWS)).collect();
    let mut missing_indexes = schema::indexes(options, dialect, name);
    if existing.contains(name) {
        check_columns(session, options, name).await?;
        if !options.test.is_bulk_insert() {
            let complete = complete_chunks(session, options, name).await?;
            missing_chunks.retain(|chunk| !complete.contains(chunk));
        }
        let doing = format!("reading the indexes of table '{name}'");
        let made = catalog::indexes(session, name).await.map_err(while_doing(doing))?;
        missing_indexes.retain(|index| !made.contains(&index.name));
    } else {
        observer.creating_table(name);
        let sql = schema::create_table(options, dialect, name);
        let doing = format!("creating table '{name}'");
        session.query(&sql, &mut Discard).await.map_err(while_doing(doing))?;
    }
    let size = |&chunk: &u32| {
        let (first, last) = chunk_ids(chunk, rows);
        u64::from(last - first + 1)
    };
    let table = TableState {
        name: name.to_owned(),
        number,
        rows_missing: missing_chunks.iter().map(size).sum(),
        chunks_left: AtomicU32::new(missing_chunks.len() as u32),
        missing_chunks,
        missing_indexes,
        numbering: schema::continue_numbering(options, dialect, name),
        announced: AtomicBool::new(false),
    };
    if existing.contains(name) && table.is_complete() {
        observer.note(&format!("Table '{name}' is already complete"));
    }
    Ok(table)
}

fn other_contents(options: &Options, table: &str, problem: String) -> LoadError {
    let remedy = format!(
        "run cleanup first, then prepare again; to use the table as it is, run with the options \
         it was prepared with (these say {} rows)",
        options.rows_to_load()
    );
    LoadError::Table { table: table.to_owned(), problem, hint: remedy }
}

async fn check_columns<S: Session>(
    session: &mut S,
    options: &Options,
    table: &str,
) -> Result<(), LoadError> {
    let doing = format!("reading the columns of table '{table}'");
    let found = catalog::columns(session, table).await.map_err(while_doing(doing))?;
    let wanted = schema::column_names(options);
    if found.iter().map(|name| name.to_ascii_lowercase()).eq(wanted.iter().copied()) {
        return Ok(());
    }
    let problem = format!(
        "exists with other columns: it has {}, this test needs {}",
        found.join(", "),
        wanted.join(", ")
    );
    let hint = "drop or rename the table, or use another database".to_owned();
    Err(LoadError::Table { table: table.to_owned(), problem, hint })
}

/// The chunks (from 0) that are wholly there; an error when one is there in part.
async fn complete_chunks<S: Session>(
    session: &mut S,
    options: &Options,
    table: &str,
) -> Result<HashSet<u32>, LoadError> {
    let doing = format!("counting the rows of table '{table}'");
    let counts =
        catalog::chunk_counts(session, table, CHUNK_ROWS).await.map_err(while_doing(doing))?;
    let rows = options.rows_to_load();
    let mut complete = HashSet::new();
    for count in counts {
        let chunk = u32::try_from(count.number - 1).ok();
        let Some(chunk) = chunk.filter(|&chunk| chunk < rows.div_ceil(CHUNK_ROWS)) else {
            let problem = format!(
                "has rows that this data set does not have: {} with ids from {} to {}",
                count.rows, count.lowest, count.highest
            );
            return Err(other_contents(options, table, problem));
        };
        let (first, last) = chunk_ids(chunk, rows);
        if count.rows != i64::from(last - first + 1) || count.highest > i64::from(last) {
            let problem = format!(
                "holds {} rows with ids from {} to {}, where this data set has the ids {first} to \
                 {last}",
                count.rows, count.lowest, count.highest
            );
            return Err(other_contents(options, table, problem));
        }
        complete.insert(chunk);
    }
    Ok(complete)
}

/// A unit of work for one session.
#[derive(Clone, Copy, Debug)]
enum Piece {
    Chunk {
        table: usize,
        chunk: u32,
    },
    /// What follows the last chunk of a table that has all chunks already.
    Finish {
        table: usize,
    },
}

/// A load in progress, shared by its sessions.
struct Load<'a, O: LoadObserver> {
    options: &'a Options,
    seed: u64,
    observer: &'a O,
    tables: Vec<TableState>,
    pieces: Vec<Piece>,
    next: AtomicUsize,
    failed: AtomicBool,
    rows_loaded: AtomicU64,
    method: Mutex<Option<BulkReport>>,
}

impl<'a, O: LoadObserver> Load<'a, O> {
    fn new(options: &'a Options, seed: u64, observer: &'a O, tables: Vec<TableState>) -> Self {
        let mut pieces = Vec::new();
        for (table, state) in tables.iter().enumerate() {
            // Whether the numbering was set before an interruption can't be seen: it is set again.
            let unfinished = !state.is_complete() || state.numbering.is_some();
            if state.missing_chunks.is_empty() && unfinished {
                pieces.push(Piece::Finish { table });
            }
        }
        // The first chunks of all tables come first, then the second ones: sessions meet in one
        // table as late as possible. MySQL locks the numbering of a table during LOAD DATA.
        let most = tables.iter().map(|table| table.missing_chunks.len()).max().unwrap_or(0);
        for at in 0..most {
            for (table, state) in tables.iter().enumerate() {
                if let Some(&chunk) = state.missing_chunks.get(at) {
                    pieces.push(Piece::Chunk { table, chunk });
                }
            }
        }
        Load {
            options,
            seed,
            observer,
            tables,
            pieces,
            next: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
            rows_loaded: AtomicU64::new(0),
            method: Mutex::new(None),
        }
    }

    fn rows_missing(&self) -> u64 {
        self.tables.iter().map(|table| table.rows_missing).sum()
    }

    /// What one session does: piece after piece, until none is left or another session has failed.
    async fn work<S: Session>(&self, session: &mut S) -> Result<(), LoadError> {
        while !self.failed.load(Ordering::Relaxed)
            && let Some((_, &piece)) = take(&self.next, &self.pieces)
        {
            let done = match piece {
                Piece::Chunk { table, chunk } => self.chunk(session, table, chunk).await,
                Piece::Finish { table } => self.finish(session, table).await,
            };
            if let Err(error) = done {
                self.failed.store(true, Ordering::Relaxed);
                return Err(self.with_resume_hint(error));
            }
        }
        Ok(())
    }

    /// What is stored is not lost: a second prepare goes on from there.
    fn with_resume_hint(&self, error: LoadError) -> LoadError {
        match error {
            LoadError::Session { doing, error, hint: None } => {
                let hint = "run prepare again with the same options: it keeps the rows that are \
                            stored and loads the rest";
                LoadError::Session { doing, error, hint: Some(hint.to_owned()) }
            }
            other => other,
        }
    }

    async fn chunk<S: Session>(
        &self,
        session: &mut S,
        table: usize,
        chunk: u32,
    ) -> Result<(), LoadError> {
        let state = &self.tables[table];
        if !state.announced.swap(true, Ordering::Relaxed) {
            self.observer.inserting(state.rows_missing, &state.name);
        }
        let (first, last) = chunk_ids(chunk, self.options.rows_to_load());
        let mut rows = ChunkRows::new(self.options, self.seed, state.number, first, last);
        let report = load_chunk(session, &state.name, &mut rows).await.map_err(while_doing(
            format!("loading the rows {first} to {last} of table '{}'", state.name),
        ))?;
        let expected = u64::from(last - first + 1);
        if report.rows != expected {
            let problem = format!("took {} of {expected} rows of a bulk load", report.rows);
            return Err(other_contents(self.options, &state.name, problem));
        }
        self.remember(report);
        self.rows_loaded.fetch_add(expected, Ordering::Relaxed);
        self.observer.rows_done(expected);
        if state.chunks_left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.finish(session, table).await?;
        }
        Ok(())
    }

    /// Keeps the first report; its reason for a slower method is told once.
    fn remember(&self, report: BulkReport) {
        let mut kept = locked(&self.method);
        if kept.is_none() {
            if let Some(reason) = &report.fallback_reason {
                self.observer.note(reason);
            }
            *kept = Some(report);
        }
    }

    /// Creates the indexes of a table whose rows are all there.
    async fn finish<S: Session>(&self, session: &mut S, table: usize) -> Result<(), LoadError> {
        let state = &self.tables[table];
        let name = &state.name;
        if let Some(sql) = &state.numbering {
            let doing = format!("setting the numbering of table '{name}'");
            session.query(sql, &mut Discard).await.map_err(while_doing(doing))?;
        }
        if !state.missing_indexes.is_empty() {
            self.observer.creating_index(name);
        }
        for index in &state.missing_indexes {
            let doing = format!("creating index '{}' of table '{name}'", index.name);
            session.query(&index.sql, &mut Discard).await.map_err(while_doing(doing))?;
        }
        Ok(())
    }

    fn report(self) -> LoadReport {
        let rows_loaded = self.rows_loaded.into_inner();
        let wanted = u64::from(self.options.rows_to_load()) * self.tables.len() as u64;
        let missing: u64 = self.tables.iter().map(|table| table.rows_missing).sum();
        let kept = self.method.into_inner().unwrap_or_else(PoisonError::into_inner);
        LoadReport {
            tables: self.tables.len() as u32,
            tables_complete: self.tables.iter().filter(|table| table.is_complete()).count() as u32,
            rows_loaded,
            rows_found: wanted - missing,
            method: kept.as_ref().map(|report| report.method),
            fallback_reason: kept.and_then(|report| report.fallback_reason),
        }
    }
}

async fn load_chunk<S: Session>(
    session: &mut S,
    table: &str,
    rows: &mut ChunkRows,
) -> Result<BulkReport, DbError> {
    let mut attempt = 1;
    loop {
        match session.bulk_load(table, &COLUMNS, rows).await {
            Err(error) if is_conflict(&error) && attempt < CHUNK_ATTEMPTS => {
                session.rollback().await?;
                dyno_core::RowSource::restart(rows);
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
