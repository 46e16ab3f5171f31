//! Step g: rows made here and sent to the server.
//!
//! One connection loads as pgbench does: all tables in one transaction, nothing is stored unless
//! all is. Several connections load the accounts of one branch after another, each branch wholly
//! or not at all; so the database itself says what is missing. MySQL always loads so, because one
//! transaction over all rows would fill its undo log.

use super::error::InitError;
use super::existing;
use super::meter::Meter;
use super::observer::InitObserver;
use super::options::Step;
use super::rows::{ACCOUNT_COLUMNS, Accounts, Small, SmallRows, chunk};
use super::schema::{ACCOUNTS, BRANCHES, TELLERS};
use super::sessions::{Stop, on_sessions};
use super::{Init, command};
use dyno_core::{BulkMethod, BulkReport, DbError, Dialect, Driver, ErrorClass, RowSource, Session};
use dyno_load::fallback_reason;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

const STEP: Step = Step::ClientData;

/// Attempts at a chunk that other sessions' locks get in the way of.
const CHUNK_ATTEMPTS: u32 = 5;

/// What the step did.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    pub(crate) rows: u64,
    pub(crate) rows_found: u64,
    pub(crate) connections: u32,
    pub(crate) how: Option<BulkReport>,
    /// True when pgbench would have frozen the rows and this load could not.
    pub(crate) unfrozen: bool,
}

/// Fills the tables, or what of them is missing.
pub(crate) async fn load<D: Driver>(
    init: &Init<'_, D>,
    session: &mut D::Session,
) -> Result<Loaded, InitError> {
    let options = init.schema.options;
    let dialect = init.schema.dialect;
    if options.connections == 1 && !options.resume && dialect != Dialect::Mysql {
        return load_at_once(init, session).await;
    }
    let missing = prepare_chunks(init, session).await?;
    let found = u64::from(options.scale) - missing.len() as u64;
    let rows_found = found * chunk_rows();
    init.is_stored.store(found > 0, Ordering::Relaxed);
    let sessions = if init.driver.blocks() { 1 } else { options.connections };
    let sessions = sessions.min(missing.len().try_into().unwrap_or(u32::MAX));
    tell_how(init, sessions);
    let total = options.accounts() as u64;
    let chunks = Chunks {
        dialect,
        missing,
        next: AtomicUsize::new(0),
        stored: AtomicU64::new(0),
        is_stored: &init.is_stored,
        observer: init.observer,
        meter: Meter::new(init.observer, total, rows_found),
        how: Mutex::new(None),
    };
    let loaded = if sessions <= 1 {
        // A database in memory belongs to its session, and one more connection gains nothing.
        chunks.work(session, &Stop::default()).await
    } else {
        let refused = |error| InitError::session(STEP, "connecting to the database", error);
        let (driver, observer) = (init.driver, init.observer);
        on_sessions(driver, observer, sessions, refused, async |session: &mut D::Session, stop| {
            chunks.work(session, stop).await
        })
    };
    loaded.map_err(InitError::with_resume_hint)?;
    Ok(Loaded {
        rows: chunks.stored.into_inner(),
        rows_found,
        connections: sessions,
        how: chunks.how.into_inner().unwrap_or_else(PoisonError::into_inner),
        unfrozen: init.can_freeze(session).await?,
    })
}

fn chunk_rows() -> u64 {
    u64::from(super::ACCOUNTS_PER_BRANCH)
}

fn tell_how<D: Driver>(init: &Init<'_, D>, sessions: u32) {
    let options = init.schema.options;
    if init.driver.blocks() && options.connections > 1 {
        init.observer.note("SQLite has one writer at a time: one connection loads all rows");
    }
    if init.schema.dialect == Dialect::Postgres && sessions > 0 {
        let rows = chunk_rows();
        init.observer.note(&format!(
            "Accounts are committed {rows} rows at a time, which COPY can't freeze; step v freezes \
             them instead, where pgbench would have"
        ));
    }
}

/// pgbench's way.
async fn load_at_once<D: Driver>(
    init: &Init<'_, D>,
    session: &mut D::Session,
) -> Result<Loaded, InitError> {
    let options = init.schema.options;
    command(session, STEP, "beginning the transaction", "begin").await?;
    empty(init, session).await?;
    let freeze = init.can_freeze(session).await?;
    let total = options.accounts();
    let (how, rows) = if init.schema.dialect == Dialect::Postgres {
        insert_small(init, session).await?;
        let meter = Meter::new(init.observer, total as u64, 0);
        let mut source = Accounts::new((1, total), init.schema.dialect, &meter);
        let options = if freeze { " with (freeze on)" } else { "" };
        let sql = format!("copy {ACCOUNTS} from stdin{options}");
        let rows = session
            .copy_in(&sql, &mut source)
            .await
            .map_err(|error| failed(ACCOUNTS, error).with_sql(&sql))?;
        let method = BulkMethod::Copy;
        (BulkReport { rows, method, fallback: None }, rows)
    } else {
        load_small(init, session, Small::Branches).await?;
        load_small(init, session, Small::Tellers).await?;
        let meter = Meter::new(init.observer, total as u64, 0);
        let mut source = Accounts::new((1, total), init.schema.dialect, &meter);
        let how = bulk_load(session, ACCOUNTS, &ACCOUNT_COLUMNS, total, &mut source).await?;
        let rows = how.rows;
        (how, rows)
    };
    command(session, STEP, "committing the rows", "commit").await?;
    Ok(Loaded { rows, connections: 1, how: Some(how), ..Loaded::default() })
}

async fn empty<D: Driver>(init: &Init<'_, D>, session: &mut D::Session) -> Result<(), InitError> {
    for sql in init.schema.empty_tables() {
        command(session, STEP, "emptying the tables", &sql).await?;
    }
    Ok(())
}

/// Single rows, as pgbench 15 sends them.
async fn insert_small<D: Driver>(
    init: &Init<'_, D>,
    session: &mut D::Session,
) -> Result<(), InitError> {
    let options = init.schema.options;
    for bid in 1..=options.scale {
        let sql = format!("insert into {BRANCHES}(bid,bbalance) values({bid},0)");
        command(session, STEP, "filling table pgbench_branches", &sql).await?;
    }
    for tid in 1..=options.tellers() {
        let bid = Small::branch_of(tid);
        let sql = format!("insert into {TELLERS}(tid,bid,tbalance) values ({tid},{bid},0)");
        command(session, STEP, "filling table pgbench_tellers", &sql).await?;
    }
    Ok(())
}

fn small_table<D: Driver>(init: &Init<'_, D>, small: Small) -> (&'static str, i64) {
    match small {
        Small::Branches => (BRANCHES, i64::from(init.schema.options.scale)),
        Small::Tellers => (TELLERS, init.schema.options.tellers()),
    }
}

async fn load_small<D: Driver>(
    init: &Init<'_, D>,
    session: &mut D::Session,
    small: Small,
) -> Result<(), InitError> {
    let (table, rows) = small_table(init, small);
    let mut source = SmallRows::new(small, rows);
    bulk_load(session, table, small.columns(), rows, &mut source).await.map(drop)
}

fn failed(table: &str, error: DbError) -> InitError {
    InitError::session(STEP, format!("filling table {table}"), error)
}

async fn bulk_load<S: Session>(
    session: &mut S,
    table: &'static str,
    columns: &[&str],
    rows: i64,
    source: &mut impl RowSource,
) -> Result<BulkReport, InitError> {
    let report =
        session.bulk_load(table, columns, source).await.map_err(|error| failed(table, error))?;
    if report.rows == rows as u64 {
        return Ok(report);
    }
    Err(InitError::Table {
        step: STEP,
        table,
        problem: format!("took {} of {rows} rows of a load", report.rows),
        hint: "look for triggers and rules on the table, or begin with step d".to_owned(),
    })
}

/// Brings the tables into the state in which only whole branches of accounts are missing; returns
/// which.
async fn prepare_chunks<D: Driver>(
    init: &Init<'_, D>,
    session: &mut D::Session,
) -> Result<Vec<u32>, InitError> {
    let options = init.schema.options;
    let mut missing_small = vec![Small::Branches, Small::Tellers];
    let mut complete = HashSet::new();
    if options.resume {
        missing_small.clear();
        for small in [Small::Branches, Small::Tellers] {
            let (_, rows) = small_table(init, small);
            if !existing::is_small_complete(session, small, rows).await? {
                missing_small.push(small);
            }
        }
        existing::wait_for_writers(session).await?;
        complete = existing::complete_chunks(session, options).await?;
    }
    // MySQL commits at each TRUNCATE and loads in transactions of its own.
    let in_transaction = init.schema.dialect != Dialect::Mysql;
    if in_transaction {
        command(session, STEP, "beginning the transaction", "begin").await?;
    }
    if !options.resume {
        empty(init, session).await?;
    }
    for small in missing_small {
        load_small(init, session, small).await?;
    }
    if in_transaction {
        command(session, STEP, "committing branches and tellers", "commit").await?;
    }
    Ok((1..=options.scale).filter(|branch| !complete.contains(branch)).collect())
}

/// A load in progress, shared by its sessions.
struct Chunks<'a> {
    dialect: Dialect,
    missing: Vec<u32>,
    next: AtomicUsize,
    stored: AtomicU64,
    is_stored: &'a AtomicBool,
    observer: &'a dyn InitObserver,
    meter: Meter<'a>,
    /// The first report; its reason for a slower method is told once.
    how: Mutex<Option<BulkReport>>,
}

impl Chunks<'_> {
    /// What one session does: chunk after chunk, until none is left or another session has failed.
    async fn work<S: Session>(&self, session: &mut S, stop: &Stop) -> Result<(), InitError> {
        while !stop.is_wanted()
            && let Some(&branch) = self.missing.get(self.next.fetch_add(1, Ordering::Relaxed))
        {
            let report = self.load(session, branch).await?;
            self.stored.fetch_add(report.rows, Ordering::Relaxed);
            self.is_stored.store(true, Ordering::Relaxed);
            let mut how = self.how.lock().unwrap_or_else(PoisonError::into_inner);
            if how.is_none() {
                if let Some(why) = &report.fallback {
                    self.observer.note(&fallback_reason(why).to_string());
                }
                *how = Some(report);
            }
        }
        Ok(())
    }

    async fn load<S: Session>(
        &self,
        session: &mut S,
        branch: u32,
    ) -> Result<BulkReport, InitError> {
        let range = chunk(branch);
        let rows = range.1 - range.0 + 1;
        let mut source = Accounts::new(range, self.dialect, &self.meter);
        let mut attempt = 1;
        loop {
            match bulk_load(session, ACCOUNTS, &ACCOUNT_COLUMNS, rows, &mut source).await {
                Err(InitError::Session { error, .. })
                    if is_conflict(&error) && attempt < CHUNK_ATTEMPTS =>
                {
                    let doing = "undoing a chunk that met a lock";
                    let lost = |error| InitError::session(STEP, doing, error);
                    session.rollback().await.map_err(lost)?;
                    source.restart();
                    attempt += 1;
                }
                result => return result,
            }
        }
    }
}

fn is_conflict(error: &DbError) -> bool {
    matches!(
        error.class(),
        ErrorClass::Deadlock | ErrorClass::LockTimeout | ErrorClass::Serialization
    )
}
