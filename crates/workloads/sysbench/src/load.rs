//! `prepare`: creates and fills the tables, with several sessions also inside one table, and continues
//! where an interrupted load ended.
//!
//! A table is loaded in chunks of [`CHUNK_ROWS`] rows. A chunk is stored wholly or not at all, and
//! what it holds depends only on the seed, the table and the chunk. So the database itself says
//! what is missing.

use std::collections::HashSet;
use std::fmt::Display;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use dyno_core::{AdminDriver, AdminSession, DbError, Dialect};
use dyno_load::catalog::{self, foreign};
use dyno_load::query::{column, drop_tables, execute, integers};
use dyno_load::settings::{ServerNeed, load_needs};
use dyno_load::{
    LoadError, LoadObserver, LoadReport, LoadSessions, StoredRows, store, while_doing,
};

use crate::options::SysbenchOptions;
use crate::rows::{COLUMNS, ChunkRows};
use crate::schema::{self, Index};

/// Rows that are loaded, and committed, at once. A constant: an interrupted load can only be
/// continued with the same one.
pub const CHUNK_ROWS: u32 = 20_000;

const RESUME: &str =
    "run prepare again with the same options: it keeps the rows that are stored and loads the rest";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PrepareReport {
    pub tables: u32,
    /// Tables that held all their rows and indexes before.
    pub tables_complete: u32,
    pub rows: LoadReport,
}

/// Creates and fills the tables of `options` with up to `threads` sessions at once, creates their
/// indexes, and lets the server's numbering continue behind the rows. Tables that exist are
/// completed; complete ones are left alone. Must not be called within an event loop.
pub fn prepare(
    driver: &AdminDriver<'_>,
    options: &SysbenchOptions,
    threads: u32,
    seed: u64,
    observer: &dyn LoadObserver,
) -> Result<PrepareReport, LoadError> {
    let names: Vec<_> = (0..).zip(options.table_names(threads)).collect();
    // One session finishes a table before it begins the next one, as the original does.
    let group = if threads <= 1 { 1 } else { names.len().max(1) };
    let mut total = PrepareReport::default();
    for names in names.chunks(group) {
        let part = prepare_tables(driver, options, (threads, seed), names, &total, observer)?;
        total.tables += part.tables;
        total.tables_complete += part.tables_complete;
        total.rows.add(part.rows);
    }
    Ok(total)
}

/// Creates and fills these tables; the report counts these alone. `before`: rows that the call has loaded so far, for
/// the observer.
fn prepare_tables(
    driver: &AdminDriver<'_>,
    options: &SysbenchOptions,
    (threads, seed): (u32, u64),
    names: &[NumberedName],
    before: &PrepareReport,
    observer: &dyn LoadObserver,
) -> Result<PrepareReport, LoadError> {
    let loader = LoadSessions::new(driver, observer, threads)
        .needing(&[ServerNeed::WRITES, chunk_need(options)]);
    let tables = Mutex::new(Vec::with_capacity(names.len()));
    let (existing, foreign) = loader.one(async |session: &mut AdminSession<'_>| {
        let existing = catalog::tables(session).await.map_err(while_doing("listing the tables"))?;
        Ok((existing, foreign(session, observer).await?))
    })?;
    let (old, new): (Vec<_>, Vec<_>) =
        names.iter().partition::<Vec<_>, _>(|(_, name)| existing.contains(name));
    // All that exist are looked at before one is made: tables of other contents leave nothing behind.
    for (some, are_there) in [(old, true), (new, false)] {
        loader.each(&some, async |session: &mut AdminSession<'_>, table: &&NumberedName| {
            let state = if !are_there {
                create_table(session, options, table, observer).await?
            } else if foreign.contains(&table.1) {
                inspect_foreign(session, options, table, observer).await?
            } else {
                inspect(session, options, table, observer).await?
            };
            tables.lock().unwrap_or_else(PoisonError::into_inner).push(state);
            Ok(())
        })?;
    }
    let mut tables = tables.into_inner().unwrap_or_else(PoisonError::into_inner);
    tables.sort_by_key(|table| table.number);
    let pieces = pieces(&tables);
    let missing: u64 = tables.iter().map(|table| table.rows_missing).sum();
    observer.rows_planned(before.rows.rows_loaded + missing);
    let load = Load { options, seed, observer, tables, stored: StoredRows::new(observer) };
    let result =
        loader.each(&pieces, async |session: &mut AdminSession<'_>, piece: &Piece| match *piece {
            Piece::Chunk { table, chunk } => load.load_chunk(session, table, chunk).await,
            Piece::Finish { table } => load.finish(session, table).await,
        });
    result.map_err(|error| error.with_resume_hint(RESUME))?;
    Ok(load.report())
}

/// The need of the largest chunk. Rows have up to 256 bytes in the logs of transactions.
pub(crate) fn chunk_need(options: &SysbenchOptions) -> ServerNeed {
    let rows = options.rows_to_load().min(CHUNK_ROWS).into();
    load_needs(rows, rows * 256)[2]
}

/// A table's place among those of the test, from 0, and its name.
type NumberedName = (u32, String);

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
    fn new(
        options: &SysbenchOptions,
        dialect: Dialect,
        (number, name): &NumberedName,
        missing_chunks: Vec<u32>,
        missing_indexes: Vec<Index>,
    ) -> Self {
        let missing_rows = missing_chunks.iter().map(|&chunk| {
            let (first, last) = chunk_ids(chunk, options.rows_to_load());
            u64::from(last - first + 1)
        });
        TableState {
            name: name.clone(),
            number: *number,
            rows_missing: missing_rows.sum(),
            chunks_left: AtomicU32::new(missing_chunks.len() as u32),
            missing_chunks,
            missing_indexes,
            numbering: schema::continue_numbering(options, dialect, name),
            announced: AtomicBool::new(false),
        }
    }

    fn is_complete(&self) -> bool {
        self.missing_chunks.is_empty() && self.missing_indexes.is_empty()
    }
}

/// First and last id of a chunk (from 0) of a table with as many rows.
fn chunk_ids(chunk: u32, rows: u32) -> (u32, u32) {
    let first = chunk * CHUNK_ROWS + 1;
    (first, (first - 1).saturating_add(CHUNK_ROWS).min(rows))
}

fn all_chunks(options: &SysbenchOptions) -> Vec<u32> {
    (0..options.rows_to_load().div_ceil(CHUNK_ROWS)).collect()
}

async fn create_table(
    session: &mut AdminSession<'_>,
    options: &SysbenchOptions,
    table: &NumberedName,
    observer: &dyn LoadObserver,
) -> Result<TableState, LoadError> {
    let (dialect, name) = (session.dialect(), table.1.as_str());
    observer.creating_table(name);
    let sql = schema::create_table(options, dialect, name);
    let doing = format!("creating table '{name}'");
    dyno_load::doing(&*doing);
    let created = catalog::create_table(session, name, &sql, observer).await;
    created.map_err(|error| while_doing(doing)(error).with_sql(&sql))?;
    let indexes = schema::indexes(options, dialect, name);
    Ok(TableState::new(options, dialect, table, all_chunks(options), indexes))
}

/// Finds the missing parts of an existing table.
async fn inspect(
    session: &mut AdminSession<'_>,
    options: &SysbenchOptions,
    table: &NumberedName,
    observer: &dyn LoadObserver,
) -> Result<TableState, LoadError> {
    let (dialect, name) = (session.dialect(), table.1.as_str());
    check_columns(session, options, name).await?;
    let mut missing_chunks = all_chunks(options);
    if !options.test.is_bulk_insert() {
        check_definition(session, options, name).await?;
        let complete = complete_chunks(session, options, name).await?;
        missing_chunks.retain(|chunk| !complete.contains(chunk));
    }
    let doing = format!("reading the indexes of table '{name}'");
    let existing_indexes = indexes(session, name).await.map_err(while_doing(doing))?;
    let mut missing_indexes = schema::indexes(options, dialect, name);
    missing_indexes.retain(|index| !existing_indexes.contains(&index.name));
    let table = TableState::new(options, dialect, table, missing_chunks, missing_indexes);
    if table.is_complete() {
        let unread = if options.create_table_options.is_empty() {
            ""
        } else {
            "; whether it has the options of --create-table-options was not looked at"
        };
        observer.note(&format!("Table '{name}' is already complete{unread}"));
    }
    Ok(table)
}

/// Like [`inspect`], of a table that dyno has not made: it is used unchanged, or not at all.
async fn inspect_foreign(
    session: &mut AdminSession<'_>,
    options: &SysbenchOptions,
    table: &NumberedName,
    observer: &dyn LoadObserver,
) -> Result<TableState, LoadError> {
    let existing = inspect(session, options, table, observer).await?;
    if existing.is_complete() {
        return Ok(TableState { numbering: None, ..existing });
    }
    // The server says itself that it exists, as it does to the original.
    let result = create_table(session, options, table, observer).await;
    let rows = u64::from(options.rows_to_load()) - existing.rows_missing;
    let remedy = match existing.missing_indexes.first() {
        Some(Index { name, sql }) if existing.rows_missing == 0 => format!(
            "index {name} is missing (a view has none): make it by `{sql}`, or leave out what asks for it, as \
             --create_secondary=off does (in a suite `create_secondary = false`)"
        ),
        _ => as_it_is(options, rows),
    };
    let reason = "dyno has not made the table and changes nothing in it";
    result.map_err(|error| LoadError { remedy: Some(format!("{reason}: {remedy}")), ..error })
}

async fn check_columns(
    session: &mut AdminSession<'_>,
    options: &SysbenchOptions,
    table: &str,
) -> Result<(), LoadError> {
    let doing = format!("reading the columns of table '{table}'");
    let existing_columns = catalog::columns(session, table).await.map_err(while_doing(doing))?;
    let expected_columns = schema::column_names(options);
    if existing_columns
        .iter()
        .map(|name| name.to_ascii_lowercase())
        .eq(expected_columns.iter().copied())
    {
        return Ok(());
    }
    let problem = format!(
        "table '{table}' exists with other columns: it has {}, this test needs {}",
        existing_columns.join(", "),
        expected_columns.join(", ")
    );
    Err(LoadError::data(problem, "drop or rename the table, or use another database"))
}

/// An error when the table is not what the options ask for. Where MySQL's protocol has no SHOW, nothing is known.
async fn check_definition(
    session: &mut AdminSession<'_>,
    options: &SysbenchOptions,
    table: &str,
) -> Result<(), LoadError> {
    if session.dialect() != Dialect::Mysql {
        return Ok(());
    }
    let doing = format!("reading the definition of table '{table}'");
    let definition = catalog::mysql_definition(session, table).await.map_err(while_doing(doing))?;
    match schema::difference(options, &definition) {
        Some(problem) => Err(LoadError::data(
            format!("table '{table}' exists and {problem}"),
            "run cleanup first, then prepare again, or give the options it was prepared with",
        )),
        None => Ok(()),
    }
}

/// The names of a table's indexes.
async fn indexes(session: &mut AdminSession<'_>, table: &str) -> Result<HashSet<String>, DbError> {
    let sql = match session.dialect() {
        Dialect::Mysql => return catalog::mysql_indexes(session, table).await,
        Dialect::Postgres => format!(
            "SELECT indexname FROM pg_indexes \
             WHERE schemaname = ANY (current_schemas(false)) AND tablename = '{table}'"
        ),
        Dialect::Sqlite => {
            format!("SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = '{table}'")
        }
    };
    column(session, &sql).await
}

/// The rows of one chunk of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ChunkCount {
    /// From 1; ids below 1 are in chunk 0 or a negative one.
    number: i64,
    rows: i64,
    lowest: i64,
    highest: i64,
}

/// Counts the rows of a table by chunks: a scan of the whole table.
async fn chunk_counts(
    session: &mut AdminSession<'_>,
    table: &str,
) -> Result<Vec<ChunkCount>, DbError> {
    let divide = if session.dialect() == Dialect::Mysql { "DIV" } else { "/" };
    // Adding before dividing keeps the id 0 out of the first chunk, and works on unsigned columns.
    let chunk = format!("(id + {}) {divide} {CHUNK_ROWS}", CHUNK_ROWS - 1);
    let sql = format!("SELECT {chunk}, COUNT(*), MIN(id), MAX(id) FROM {table} GROUP BY {chunk}");
    let rows = integers(session, &sql, 0).await?.into_iter();
    let counts = rows.filter_map(|row| match row[..] {
        [number, rows, lowest, highest] => Some(ChunkCount { number, rows, lowest, highest }),
        _ => None,
    });
    Ok(counts.collect())
}

/// The chunks (from 0) that are wholly there; an error when one is there in part.
async fn complete_chunks(
    session: &mut AdminSession<'_>,
    options: &SysbenchOptions,
    table: &str,
) -> Result<HashSet<u32>, LoadError> {
    let doing = format!("counting the rows of table '{table}'");
    let counts = chunk_counts(session, table).await.map_err(while_doing(doing))?;
    let rows = options.rows_to_load();
    let mut complete = HashSet::new();
    for count in &counts {
        let chunk = u32::try_from(count.number - 1).ok();
        let Some(chunk) = chunk.filter(|&chunk| is_whole(count, chunk, rows)) else {
            return Err(other_rows(options, table, &counts));
        };
        complete.insert(chunk);
    }
    Ok(complete)
}

/// Returns true if all rows of this chunk are there, and no other ones.
fn is_whole(count: &ChunkCount, chunk: u32, rows: u32) -> bool {
    if chunk >= rows.div_ceil(CHUNK_ROWS) {
        return false;
    }
    let (first, last) = chunk_ids(chunk, rows);
    count.rows == i64::from(last - first + 1) && count.highest <= i64::from(last)
}

/// A table of which not all chunks are those of this data set: what all of it holds.
fn other_rows(options: &SysbenchOptions, table: &str, counts: &[ChunkCount]) -> LoadError {
    let found_rows: i64 = counts.iter().map(|count| count.rows).sum();
    let lowest = counts.iter().map(|count| count.lowest).min().unwrap_or_default();
    let highest = counts.iter().map(|count| count.highest).max().unwrap_or_default();
    let rows = options.rows_to_load();
    let expected_rows = match rows {
        0 => "none".to_owned(),
        rows => format!("{rows} rows with ids from 1 to {rows}"),
    };
    let problem = format!(
        "holds {found_rows} rows with ids from {lowest} to {highest}, where this data set has {expected_rows}"
    );
    LoadError::data(format!("table '{table}' {problem}"), as_it_is(options, found_rows))
}

fn as_it_is(options: &SysbenchOptions, rows: impl Display) -> String {
    format!(
        "drop the table, as `cleanup` does, then prepare again, or use another database; a table of {rows} whole rows is \
         used as it is with --{0}={rows} (in a suite with the key `{1}`)",
        options.size_option(),
        options.size_option().replace('-', "_")
    )
}

/// A unit of work for one session.
#[derive(Clone, Copy, Debug)]
enum Piece {
    Chunk {
        table: usize,
        chunk: u32,
    },
    /// The work after the last chunk of a table that has all chunks already.
    Finish {
        table: usize,
    },
}

/// Pieces of work on the tables, in the order in which sessions take them.
fn pieces(tables: &[TableState]) -> Vec<Piece> {
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
    let max_chunks = tables.iter().map(|table| table.missing_chunks.len()).max().unwrap_or(0);
    for at in 0..max_chunks {
        for (table, state) in tables.iter().enumerate() {
            if let Some(&chunk) = state.missing_chunks.get(at) {
                pieces.push(Piece::Chunk { table, chunk });
            }
        }
    }
    pieces
}

/// A load in progress, shared by its sessions.
struct Load<'a> {
    options: &'a SysbenchOptions,
    seed: u64,
    observer: &'a dyn LoadObserver,
    tables: Vec<TableState>,
    stored: StoredRows<'a>,
}

impl Load<'_> {
    async fn load_chunk(
        &self,
        session: &mut AdminSession<'_>,
        table: usize,
        chunk: u32,
    ) -> Result<(), LoadError> {
        let state = &self.tables[table];
        if !state.announced.swap(true, Ordering::Relaxed) {
            self.observer.inserting(state.rows_missing, &state.name);
        }
        let (first, last) = chunk_ids(chunk, self.options.rows_to_load());
        let mut rows = ChunkRows::new(self.options, self.seed, state.number, first, last);
        let doing = format!("loading the rows {first} to {last} of table '{}'", state.name);
        let (into, sent) = ((&*state.name, &COLUMNS[..]), u64::from(last - first + 1));
        self.stored.add(store(session, &doing, into, &mut rows, sent).await?);
        if state.chunks_left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.finish(session, table).await?;
        }
        Ok(())
    }

    /// Creates the indexes of a table whose rows are all there.
    async fn finish(&self, session: &mut AdminSession<'_>, table: usize) -> Result<(), LoadError> {
        let state = &self.tables[table];
        let name = &state.name;
        if let Some(sql) = &state.numbering {
            execute(session, format!("setting the numbering of table '{name}'"), sql).await?;
        }
        if !state.missing_indexes.is_empty() {
            self.observer.creating_index(name);
        }
        for index in &state.missing_indexes {
            let doing = format!("creating index '{}' of table '{name}'", index.name);
            let result = execute(session, doing, &index.sql).await;
            result.map_err(|error| error.with_sql(&index.sql))?;
        }
        Ok(())
    }

    /// Numbers of tables and rows after the load.
    fn report(self) -> PrepareReport {
        let tables = self.tables.len() as u32;
        let expected_rows = u64::from(self.options.rows_to_load()) * u64::from(tables);
        let missing: u64 = self.tables.iter().map(|table| table.rows_missing).sum();
        let tables_complete = self.tables.iter().filter(|table| table.is_complete()).count() as u32;
        let filled = self.tables.iter().filter(|table| table.missing_chunks.is_empty());
        let indexes = filled.flat_map(|table| &table.missing_indexes);
        let indexes_made = indexes.map(|index| index.name.clone()).collect();
        let rows = LoadReport { indexes_made, ..self.stored.report(expected_rows - missing) };
        PrepareReport { tables, tables_complete, rows }
    }
}

/// Drops the tables of `options`, if they exist. Must not be called within an event loop.
pub fn cleanup(
    driver: &AdminDriver<'_>,
    options: &SysbenchOptions,
    threads: u32,
    observer: &dyn LoadObserver,
) -> Result<(), LoadError> {
    let names = options.table_names(threads);
    LoadSessions::new(driver, observer, 1)
        .one(async |session: &mut AdminSession<'_>| drop_tables(session, &names, observer).await)
}

/// Reads the tables of `options` and their indexes into the server's memory and refreshes the
/// optimizer's statistics, several tables at once. Must not be called within an event loop.
pub fn prewarm(
    driver: &AdminDriver<'_>,
    options: &SysbenchOptions,
    threads: u32,
    observer: &dyn LoadObserver,
) -> Result<(), LoadError> {
    let names = options.table_names(threads);
    LoadSessions::new(driver, observer, threads).each_at(
        &[(driver, &names[..])],
        async |session: &mut AdminSession<'_>| {
            if session.dialect() == Dialect::Mysql {
                // The copies of the tables that the statements below make are to stay in memory.
                execute_quoted(session, "SET tmp_table_size=2*1024*1024*1024").await?;
                execute_quoted(session, "SET max_heap_table_size=2*1024*1024*1024").await?;
            }
            Ok(())
        },
        async |session: &mut AdminSession<'_>, (): &(), name: &String| {
            observer.prewarming_table(name);
            for sql in prewarm_statements(options, session.dialect(), name) {
                execute_quoted(session, &sql).await?;
            }
            Ok(())
        },
    )
}

fn prewarm_statements(options: &SysbenchOptions, dialect: Dialect, table: &str) -> [String; 3] {
    if dialect != Dialect::Mysql {
        return [
            format!("ANALYZE {table}"),
            format!("SELECT AVG(id), SUM(LENGTH(c)) FROM {table}"),
            format!("SELECT COUNT(k) FROM (SELECT k FROM {table} ORDER BY k) t"),
        ];
    }
    let rows = options.table_size;
    let key = if options.secondary { "xid" } else { "PRIMARY" };
    let [by_key, by_text] = [format!("FORCE KEY ({key})"), "WHERE k LIKE '%0%'".to_owned()]
        .map(|part| format!("FROM (SELECT * FROM {table} {part} LIMIT {rows}) t"));
    [
        format!("ANALYZE TABLE {table}"),
        format!("SELECT AVG(id) {by_key}"),
        format!("SELECT COUNT(*) {by_text}"),
    ]
}

/// Like [`prepare`]. Has PostgreSQL make the optimizer's statistics of what was loaded, which it else does by itself
/// while trials are under way. Must not be called within an event loop.
pub fn prepare_with_statistics(
    driver: &AdminDriver<'_>,
    options: &SysbenchOptions,
    threads: u32,
    seed: u64,
    observer: &dyn LoadObserver,
) -> Result<PrepareReport, LoadError> {
    let report = prepare(driver, options, threads, seed, observer)?;
    let keeps_some = driver.dialect() == Dialect::Postgres && driver.capabilities().server_views;
    if keeps_some && report.tables_complete < report.tables {
        let names = options.table_names(threads);
        let loader = LoadSessions::new(driver, observer, threads);
        loader.each(&names, async |session: &mut AdminSession<'_>, name| {
            execute_quoted(session, &format!("ANALYZE {name}")).await
        })?;
    }
    Ok(report)
}

async fn execute_quoted(session: &mut AdminSession<'_>, sql: &str) -> Result<(), LoadError> {
    execute(session, format!("`{sql}`"), sql).await.map_err(|error| error.with_sql(sql))
}
