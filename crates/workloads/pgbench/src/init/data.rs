//! Step g: rows made here and sent to the server.
//!
//! One connection loads as pgbench does: all tables in one transaction, nothing is stored unless
//! all is. Several connections load the accounts of one branch after another, each branch wholly
//! or not at all; so the database itself says what is missing. MySQL always loads so, because one
//! transaction over all rows would fill its undo log.

use super::error::{RESUME, failed};
use super::existing;
use super::options::InitStep;
use super::rows::{ACCOUNT_COLUMNS, Accounts, Small, SmallRows, chunk};
use super::schema::{ACCOUNTS, BRANCHES, TELLERS};
use super::{Init, command};
use dyno_core::{AdminSession, BulkMethod, BulkReport, Dialect, Driver, RowSource, Session};
use dyno_load::{LoadError, LoadReport, StoredRows, doing, noting, retrying};
use std::collections::HashSet;
use std::sync::atomic::Ordering;

const STEP: InitStep = InitStep::ClientData;

pub(super) struct Loaded {
    pub(super) report: LoadReport,
    pub(super) connections: u32,
    /// True when pgbench would have frozen the rows and this load could not.
    pub(super) unfrozen: bool,
}

/// Fills the tables, or what of them is missing.
pub(super) async fn load(
    init: &Init<'_>,
    session: &mut AdminSession<'_>,
) -> Result<Loaded, LoadError> {
    let options = init.schema.options;
    if options.connections == 1 && !options.resume && init.schema.dialect != Dialect::Mysql {
        return load_at_once(init, session).await;
    }
    let missing = prepare_chunks(init, session).await?;
    let found = u64::from(options.scale) - missing.len() as u64;
    init.is_stored.store(found > 0, Ordering::Relaxed);
    let connections = if init.driver.blocks() { 1 } else { options.connections };
    let connections = connections.min(missing.len().try_into().unwrap_or(u32::MAX));
    let unfrozen = init.can_freeze(session).await?;
    note_how(init, missing.len(), unfrozen);
    init.observer.rows_planned(missing.len() as u64 * chunk_rows());
    let stored = StoredRows::new(init.observer);
    let no_set_up = async |_: &mut AdminSession<'_>| Ok(());
    let work = async |session: &mut AdminSession<'_>, (): &(), branch: &u32| {
        stored.add(load_chunk(session, init.schema.dialect, *branch).await?);
        init.is_stored.store(true, Ordering::Relaxed);
        Ok(())
    };
    let all = async |session: &mut AdminSession<'_>| {
        if connections > 1 {
            return init.loader.each(&missing, no_set_up, work);
        }
        // A database in memory belongs to its session, and one more connection gains nothing.
        for branch in &missing {
            work(session, &(), branch).await?;
        }
        Ok(())
    };
    all(session).await.map_err(|error| error.with_resume_hint(RESUME))?;
    Ok(Loaded { report: stored.report(found * chunk_rows()), connections, unfrozen })
}

fn chunk_rows() -> u64 {
    u64::from(super::ACCOUNTS_PER_BRANCH)
}

fn note_how(init: &Init<'_>, commits: usize, unfrozen: bool) {
    let options = init.schema.options;
    if init.driver.blocks() && options.connections > 1 {
        init.observer.note("SQLite has one writer at a time: one connection loads all rows");
    }
    if unfrozen && commits > 1 {
        let rows = chunk_rows();
        let freezes = match options.effective_steps().contains(&InitStep::Vacuum) {
            true => "VACUUM freezes them at the end",
            false => "nothing freezes them without step v",
        };
        init.observer.note(&format!(
            "Accounts are committed {rows} rows at a time. COPY can't freeze these; {freezes}"
        ));
    }
}

/// pgbench's way.
async fn load_at_once(
    init: &Init<'_>,
    session: &mut AdminSession<'_>,
) -> Result<Loaded, LoadError> {
    command(session, STEP, "beginning the transaction", "begin").await?;
    empty(init, session).await?;
    let freeze = init.can_freeze(session).await?;
    let is_postgres = init.schema.dialect == Dialect::Postgres;
    if is_postgres {
        insert_small(init, session).await?;
    } else {
        load_small(init, session, Small::Branches).await?;
        load_small(init, session, Small::Tellers).await?;
    }
    let total = init.schema.options.accounts();
    init.observer.rows_planned(total as u64);
    let mut source = Accounts::new((1, total), init.schema.dialect, Some(init.observer));
    let stored = if is_postgres {
        let freeze = if freeze { " with (freeze on)" } else { "" };
        let sql = format!("copy {ACCOUNTS} from stdin{freeze}");
        doing(filling(ACCOUNTS));
        let copied = session.copy_in(&sql, &mut noting(&mut source)).await;
        let rows = copied.map_err(|error| failed(STEP, filling(ACCOUNTS))(error).with_sql(&sql))?;
        all_taken(ACCOUNTS, rows, total)?;
        BulkReport { rows, method: BulkMethod::Copy, fallback: None }
    } else {
        bulk_load(session, ACCOUNTS, &ACCOUNT_COLUMNS, total, &mut source).await?
    };
    command(session, STEP, "committing the rows", "commit").await?;
    Ok(Loaded { report: stored.into(), connections: 1, unfrozen: false })
}

async fn empty(init: &Init<'_>, session: &mut AdminSession<'_>) -> Result<(), LoadError> {
    for sql in init.schema.empty_tables() {
        command(session, STEP, "emptying the tables", &sql).await?;
    }
    Ok(())
}

/// Single rows, as pgbench 15 sends them.
async fn insert_small(init: &Init<'_>, session: &mut AdminSession<'_>) -> Result<(), LoadError> {
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

fn small_table(init: &Init<'_>, small: Small) -> (&'static str, i64) {
    match small {
        Small::Branches => (BRANCHES, i64::from(init.schema.options.scale)),
        Small::Tellers => (TELLERS, init.schema.options.tellers()),
    }
}

async fn load_small(
    init: &Init<'_>,
    session: &mut AdminSession<'_>,
    small: Small,
) -> Result<(), LoadError> {
    let (table, rows) = small_table(init, small);
    let mut source = SmallRows::new(small, rows);
    bulk_load(session, table, small.columns(), rows, &mut source).await.map(drop)
}

fn filling(table: &str) -> String {
    format!("filling table {table}")
}

async fn bulk_load(
    session: &mut AdminSession<'_>,
    table: &str,
    columns: &[&str],
    rows: i64,
    source: &mut dyn RowSource,
) -> Result<BulkReport, LoadError> {
    doing(filling(table));
    let stored = session.bulk_load(table, columns, &mut noting(source)).await;
    let report = stored.map_err(failed(STEP, filling(table)))?;
    all_taken(table, report.rows, rows).map(|()| report)
}

fn all_taken(table: &str, taken: u64, rows: i64) -> Result<(), LoadError> {
    if taken == rows as u64 {
        return Ok(());
    }
    Err(LoadError::data(
        format!("{STEP}: table {table} took {taken} of {rows} rows of a load"),
        "look for triggers and rules on the table, or begin with step d",
    ))
}

async fn load_chunk(
    session: &mut AdminSession<'_>,
    dialect: Dialect,
    branch: u32,
) -> Result<BulkReport, LoadError> {
    let (first, last) = chunk(branch);
    let mut source = Accounts::new((first, last), dialect, None);
    retrying(session, async |session| {
        source.restart();
        bulk_load(session, ACCOUNTS, &ACCOUNT_COLUMNS, last - first + 1, &mut source).await
    })
    .await
}

/// Brings the tables into the state in which only whole branches of accounts are missing; returns
/// which.
async fn prepare_chunks(
    init: &Init<'_>,
    session: &mut AdminSession<'_>,
) -> Result<Vec<u32>, LoadError> {
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
