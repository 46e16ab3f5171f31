//! Step g: rows made here, of which nothing is random, and sent to the server.
//!
//! One connection loads as pgbench does: all tables in one transaction, nothing is stored unless all is. Several
//! connections load the accounts of one branch after another, each branch wholly or not at all; so the database
//! itself says what is missing. MySQL always loads so, because one transaction over all rows would fill its undo
//! log.

use super::options::{ACCOUNTS_PER_BRANCH, InitStep, TELLERS_PER_BRANCH};
use super::schema::{ACCOUNTS, BRANCHES, TELLERS};
use super::{Init, InitProgress, existing, run_command};
use super::{RESUME, failed};
use dyno_core::{AdminSession, BulkMethod, BulkReport, Dialect, RowSource, RowWriter};
use dyno_load::{LoadError, LoadObserver, StoredRows, all_taken, doing, noting, retrying};
use std::collections::HashSet;
use std::sync::atomic::Ordering;

const STEP: InitStep = InitStep::ClientData;

/// Fills the tables, or what of them is missing.
pub(super) async fn load(
    init: &Init<'_>,
    session: &mut AdminSession<'_>,
    progress: &mut InitProgress,
) -> Result<(), LoadError> {
    let options = init.schema.options;
    if options.connections == 1 && !options.resume && init.schema.dialect != Dialect::Mysql {
        return load_at_once(init, session, progress).await;
    }
    let missing = prepare_chunks(init, session, progress).await?;
    let complete = u64::from(options.scale) - missing.len() as u64;
    init.is_stored.store(complete > 0, Ordering::Relaxed);
    let connections = if init.driver.blocks() { 1 } else { options.connections };
    let connections = connections.min(missing.len().try_into().unwrap_or(u32::MAX));
    let unfrozen = init.can_freeze(session).await?;
    note_load_method(init, missing.len(), unfrozen);
    init.observer.rows_planned(missing.len() as u64 * chunk_rows());
    let stored = StoredRows::new(init.observer);
    let work = async |session: &mut AdminSession<'_>, branch: &u32| {
        stored.add(load_chunk(session, init.schema.dialect, *branch).await?);
        init.is_stored.store(true, Ordering::Relaxed);
        Ok(())
    };
    let load_missing = async |session: &mut AdminSession<'_>| {
        if connections > 1 {
            return init.loader.each(&missing, work);
        }
        // A database in memory belongs to its session, and one more connection gains nothing.
        for branch in &missing {
            work(session, branch).await?;
        }
        Ok(())
    };
    load_missing(session).await.map_err(|error| error.with_resume_hint(RESUME))?;
    progress.add(stored.report(complete * chunk_rows()), connections, unfrozen);
    Ok(())
}

fn chunk_rows() -> u64 {
    u64::from(super::ACCOUNTS_PER_BRANCH)
}

/// Tells the observer of loads that differ from the original's: one writer of SQLite, accounts that COPY couldn't freeze.
fn note_load_method(init: &Init<'_>, commits: usize, unfrozen: bool) {
    let options = init.schema.options;
    if init.driver.blocks() && options.connections > 1 {
        init.observer.note("SQLite has one writer at a time: one connection loads all rows");
    }
    if unfrozen && commits > 1 {
        init.observer.note(&format!(
            "Accounts are committed {} rows at a time. COPY can't freeze these: step v does",
            chunk_rows()
        ));
    }
}

/// pgbench's way.
async fn load_at_once(
    init: &Init<'_>,
    session: &mut AdminSession<'_>,
    progress: &mut InitProgress,
) -> Result<(), LoadError> {
    run_command(session, STEP, "beginning the transaction", "begin").await?;
    empty_tables(init, session).await?;
    let freeze = init.can_freeze(session).await?;
    let is_postgres = init.schema.dialect == Dialect::Postgres;
    if is_postgres {
        insert_small(init, session).await?;
    } else {
        for small in &SMALL {
            load_small(init, session, small).await?;
        }
    }
    let total = init.schema.options.accounts();
    init.observer.rows_planned(total as u64);
    let mut source = Accounts::new((1, total), init.schema.dialect, Some(init.observer));
    let stored = if is_postgres {
        let freeze = if freeze { " with (freeze on)" } else { "" };
        let sql = format!("copy {ACCOUNTS} from stdin{freeze}");
        doing(describe_filling(ACCOUNTS));
        let copied = session.copy_in(&sql, &mut noting(&mut source)).await;
        let rows = copied
            .map_err(|error| failed(STEP, describe_filling(ACCOUNTS))(error).with_sql(&sql))?;
        all_taken(ACCOUNTS, rows, total as u64)?;
        BulkReport { rows, method: BulkMethod::Copy, fallback: None }
    } else {
        bulk_load(session, ACCOUNTS, &ACCOUNT_COLUMNS, total, &mut source).await?
    };
    run_command(session, STEP, "committing the rows", "commit").await?;
    progress.add(stored.into(), 1, false);
    Ok(())
}

async fn empty_tables(init: &Init<'_>, session: &mut AdminSession<'_>) -> Result<(), LoadError> {
    for sql in init.schema.empty_tables() {
        run_command(session, STEP, "emptying the tables", &sql).await?;
    }
    Ok(())
}

/// Single rows, as pgbench 15 sends them.
async fn insert_small(init: &Init<'_>, session: &mut AdminSession<'_>) -> Result<(), LoadError> {
    let options = init.schema.options;
    for bid in 1..=options.scale {
        let sql = format!("insert into {BRANCHES}(bid,bbalance) values({bid},0)");
        run_command(session, STEP, "filling table pgbench_branches", &sql).await?;
    }
    for tid in 1..=options.tellers() {
        let bid = branch_of_teller(tid);
        let sql = format!("insert into {TELLERS}(tid,bid,tbalance) values ({tid},{bid},0)");
        run_command(session, STEP, "filling table pgbench_tellers", &sql).await?;
    }
    Ok(())
}

async fn load_small(
    init: &Init<'_>,
    session: &mut AdminSession<'_>,
    small: &'static SmallTable,
) -> Result<(), LoadError> {
    let rows = small.rows(init.schema.options.scale);
    let mut source = SmallRows::new(small, rows);
    bulk_load(session, small.name, small.columns, rows, &mut source).await.map(drop)
}

fn describe_filling(table: &str) -> String {
    format!("filling table {table}")
}

async fn bulk_load(
    session: &mut AdminSession<'_>,
    table: &str,
    columns: &[&str],
    rows: i64,
    source: &mut dyn RowSource,
) -> Result<BulkReport, LoadError> {
    doing(describe_filling(table));
    let stored = session.bulk_load(table, columns, &mut noting(source)).await;
    let report = stored.map_err(failed(STEP, describe_filling(table)))?;
    all_taken(table, report.rows, rows as u64).map(|()| report)
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
    progress: &InitProgress,
) -> Result<Vec<u32>, LoadError> {
    let options = init.schema.options;
    let mut missing_small: Vec<&SmallTable> = SMALL.iter().collect();
    let mut complete = HashSet::new();
    if options.resume {
        missing_small.clear();
        for small in &SMALL {
            if !existing::is_small_complete(session, small, small.rows(options.scale)).await? {
                progress.check_own(small.name, "no rows")?;
                missing_small.push(small);
            }
        }
        existing::wait_for_writers(session).await?;
        complete = existing::complete_chunks(session, options).await?;
        if complete.len() < options.scale as usize {
            progress.check_own(ACCOUNTS, "too few rows")?;
        }
    }
    // MySQL commits at each TRUNCATE and loads in separate transactions.
    let in_transaction = init.schema.dialect != Dialect::Mysql;
    if in_transaction {
        run_command(session, STEP, "beginning the transaction", "begin").await?;
    }
    if !options.resume {
        empty_tables(init, session).await?;
    }
    for small in missing_small {
        load_small(init, session, small).await?;
    }
    if in_transaction {
        run_command(session, STEP, "committing branches and tellers", "commit").await?;
    }
    Ok((1..=options.scale).filter(|branch| !complete.contains(branch)).collect())
}

/// Rows between two calls of the observer: pgbench's lines, one per 100,000 rows, fall on a call.
const TOLD_ROWS: u32 = 10_000;

/// The columns that [`Accounts`] writes.
pub(crate) const ACCOUNT_COLUMNS: [&str; 4] = ["aid", "bid", "abalance", "filler"];

/// The content of `char(84)` for an empty text.
const BLANKS: [u8; 84] = [b' '; 84];

/// The filler of an account as it has to be sent: servers pad it, SQLite does not.
pub(crate) fn filler(dialect: Dialect) -> &'static [u8] {
    if dialect == Dialect::Sqlite { &BLANKS } else { b"" }
}

/// First and last account of a branch: the rows that are committed at once.
pub(crate) fn chunk(branch: u32) -> (i64, i64) {
    let rows = i64::from(ACCOUNTS_PER_BRANCH);
    let last = i64::from(branch) * rows;
    (last - rows + 1, last)
}

/// The accounts `first..=last`.
pub(crate) struct Accounts<'a> {
    first: i64,
    last: i64,
    next: i64,
    filler: &'static [u8],
    /// Follows rows that are sent; none where whole branches are committed.
    observer: Option<&'a dyn LoadObserver>,
}

impl<'a> Accounts<'a> {
    /// `first..=last` is one or more whole branches.
    pub(crate) fn new(
        (first, last): (i64, i64),
        dialect: Dialect,
        observer: Option<&'a dyn LoadObserver>,
    ) -> Self {
        Accounts { first, last, next: first, filler: filler(dialect), observer }
    }
}

impl RowSource for Accounts<'_> {
    #[inline]
    fn next_row(&mut self, out: &mut dyn RowWriter) -> bool {
        let aid = self.next;
        if aid > self.last {
            return false;
        }
        self.next += 1;
        out.int(aid);
        out.int((aid - 1) / i64::from(ACCOUNTS_PER_BRANCH) + 1);
        out.int(0);
        out.text(self.filler);
        if aid % i64::from(TOLD_ROWS) == 0
            && let Some(observer) = self.observer
        {
            observer.rows_done(u64::from(TOLD_ROWS));
        }
        true
    }

    fn restart(&mut self) {
        self.next = self.first;
    }
}

/// A small table. Its filler is NULL and not in the column list.
pub(crate) struct SmallTable {
    pub(crate) name: &'static str,
    /// The first one numbers the rows.
    pub(crate) columns: &'static [&'static str],
    rows_per_branch: u32,
}

pub(crate) static SMALL: [SmallTable; 2] = [
    SmallTable { name: BRANCHES, columns: &["bid", "bbalance"], rows_per_branch: 1 },
    SmallTable {
        name: TELLERS,
        columns: &["tid", "bid", "tbalance"],
        rows_per_branch: TELLERS_PER_BRANCH,
    },
];

impl SmallTable {
    /// Number of rows at this scale.
    fn rows(&self, scale: u32) -> i64 {
        i64::from(scale) * i64::from(self.rows_per_branch)
    }
}

fn branch_of_teller(teller: i64) -> i64 {
    (teller - 1) / i64::from(TELLERS_PER_BRANCH) + 1
}

/// The rows `1..=last` of a small table.
pub(crate) struct SmallRows {
    table: &'static SmallTable,
    last: i64,
    next: i64,
}

impl SmallRows {
    pub(crate) fn new(table: &'static SmallTable, last: i64) -> Self {
        SmallRows { table, last, next: 1 }
    }
}

impl RowSource for SmallRows {
    fn next_row(&mut self, out: &mut dyn RowWriter) -> bool {
        let number = self.next;
        if number > self.last {
            return false;
        }
        self.next += 1;
        out.int(number);
        if self.table.columns.len() > 2 {
            out.int(branch_of_teller(number));
        }
        out.int(0);
        true
    }

    fn restart(&mut self) {
        self.next = 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_testkit::RecordedRow;
    use proptest::prelude::*;

    /// All rows of a source as texts.
    fn rows(source: &mut dyn RowSource, columns: usize) -> Vec<Vec<String>> {
        let mut recorded = RecordedRow::default();
        while source.next_row(&mut recorded) {}
        recorded.0.chunks(columns).map(<[String]>::to_vec).collect()
    }

    #[test]
    fn accounts_are_those_of_their_branches_also_after_a_restart() {
        let mut source = Accounts::new((100_001, 300_000), Dialect::Postgres, None);
        let accounts = rows(&mut source, 4);
        assert_eq!(accounts.len(), 200_000);
        assert_eq!(accounts[0], ["100001", "2", "0", ""]);
        assert_eq!(accounts[99_999], ["200000", "2", "0", ""]);
        assert_eq!(accounts[100_000], ["200001", "3", "0", ""]);
        source.restart();
        assert!(rows(&mut source, 4) == accounts);
        let mut blank = Accounts::new((1, 1), Dialect::Sqlite, None);
        assert_eq!(rows(&mut blank, 4)[0][3], " ".repeat(84));
    }

    #[test]
    fn small_tables_count() {
        let mut source = SmallRows::new(&SMALL[1], 11);
        let tellers = rows(&mut source, 3);
        assert_eq!(
            (tellers.len(), &tellers[9][..], &tellers[10][..]),
            (
                11,
                &["10".to_owned(), "1".to_owned(), "0".to_owned()][..],
                &["11".to_owned(), "2".to_owned(), "0".to_owned()][..]
            )
        );
        source.restart();
        assert_eq!(rows(&mut source, 3), tellers);
        assert_eq!(rows(&mut SmallRows::new(&SMALL[0], 2), 2), [["1", "0"], ["2", "0"]]);
    }

    proptest! {
        /// Chunks follow each other without gap, and each holds the accounts of its own branch.
        #[test]
        fn chunks_cut_the_accounts_by_branch(branch in 1..=super::super::SCALE_MAX) {
            let (first, last) = chunk(branch);
            prop_assert_eq!(last - first + 1, i64::from(ACCOUNTS_PER_BRANCH));
            prop_assert_eq!(first, if branch == 1 { 1 } else { chunk(branch - 1).1 + 1 });
            for aid in [first, last] {
                let expected_branch = i64::from(branch);
                prop_assert_eq!((aid - 1) / i64::from(ACCOUNTS_PER_BRANCH) + 1, expected_branch);
            }
        }
    }
}
