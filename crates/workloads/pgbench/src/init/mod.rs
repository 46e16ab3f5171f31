//! Tables and rows: what `pgbench -i` makes.
//!
//! - `options`: the requested steps, and the limits of a dialect.
//! - `schema`: the statements. `data`: the rows, made here or by the server.
//! - `existing`: the remains of an interrupted load, and the state of the tables before a run.

use dyno_core::{AdminDriver, AdminSession, Cause, DbError, Dialect, ErrorClass};
use dyno_load::query::{analyze_error, answer};
use dyno_load::settings::{ServerNeed, load_needs, wants_keys_first};
use dyno_load::{
    LoadError, LoadErrorKind, LoadObserver, LoadReport, LoadSessions, catalog, while_doing,
};
pub use existing::existing_tables;
pub use existing::{TableInfo, table_info, vacuum_accounts, vacuum_before_run};
pub use options::{
    ACCOUNTS_PER_BRANCH, BIGINT_SCALE, InitOptions, InitStep, PartitionMethod, SCALE_MAX,
    TELLERS_PER_BRANCH,
};
pub(crate) use schema::CHILDREN_FIRST;
use schema::{Key, Schema, postgres_major};
use std::collections::HashSet;
use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

mod data;
mod existing;
mod options;
mod schema;

/// The first server version that freezes rows while it copies them into an empty table
/// completely, visibility map included; pgbench asks for it from there on.
const FREEZE_SINCE: u32 = 14;

/// Accounts of one branch, of up to 128 bytes in the logs of transactions, are stored at once if that is limited.
pub(crate) const LOAD_NEEDS: [ServerNeed; 3] =
    load_needs(ACCOUNTS_PER_BRANCH as u64, ACCOUNTS_PER_BRANCH as u64 * 128);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InitReport {
    /// The steps in the order in which they ran, and how long each took.
    pub steps: Vec<(InitStep, Duration)>,
    pub loaded: LoadReport,
    /// Sessions that loaded accounts.
    pub connections: u32,
}

/// Carries out the steps of `options`. All sessions are connected with number 0: they go to the
/// first host if several were given. Must not be called within an event loop.
///
/// # Errors
/// Options that can't be carried out, before anything is touched; the first error of a session;
/// that it was canceled.
pub fn initialize(
    driver: &AdminDriver<'_>,
    options: &InitOptions,
    observer: &dyn LoadObserver,
) -> Result<InitReport, LoadError> {
    options.check(driver.dialect())?;
    let loader = LoadSessions::new(driver, observer, options.connections)
        .at_first_node()
        .needing(&LOAD_NEEDS);
    let is_stored = AtomicBool::new(false);
    let report = loader.one(async |session: &mut AdminSession<'_>| {
        let dialect = session.dialect();
        let postgres_major = postgres_major(dialect, session.product());
        let keys_first = wants_keys_first(session).await.map_err(while_doing("setting up"))?;
        let schema = Schema { options, dialect, postgres_major, keys_first };
        let (loader, is_stored) = (&loader, &is_stored);
        Init { driver, loader, schema, observer, is_stored }.run(session).await
    });
    report.map_err(|error| match error.kind {
        LoadErrorKind::Canceled => canceled(is_stored.load(Ordering::Relaxed)),
        _ => error,
    })
}

async fn run_command(
    session: &mut AdminSession<'_>,
    step: InitStep,
    doing: &str,
    sql: &str,
) -> Result<(), LoadError> {
    dyno_load::doing(doing);
    let result = answer(session, sql).await;
    result.map(drop).map_err(|error| failed(step, doing)(error).with_sql(sql))
}

#[derive(Default)]
struct InitProgress {
    report: InitReport,
    /// Set if step v has to freeze the accounts.
    unfrozen: bool,
    /// Tables that were there and that dyno has not made.
    foreign: HashSet<String>,
}

impl InitProgress {
    /// Adds the result of a load.
    fn add(&mut self, loaded: LoadReport, connections: u32, unfrozen: bool) {
        let rows_loaded = self.report.loaded.rows_loaded + loaded.rows_loaded;
        self.report.loaded = LoadReport { rows_loaded, ..loaded };
        (self.report.connections, self.unfrozen) = (connections, unfrozen);
    }

    /// # Errors
    /// The table is not dyno's to be changed.
    fn check_own(&self, table: &str, lack: &str) -> Result<(), LoadError> {
        if !self.foreign.contains(table) {
            return Ok(());
        }
        let problem =
            format!("Table {table} has {lack}, and dyno changes no table that it has not made");
        Err(LoadError::data(problem, existing::NOT_OURS))
    }
}

struct Init<'a> {
    driver: &'a AdminDriver<'a>,
    loader: &'a LoadSessions<'a>,
    schema: Schema<'a>,
    observer: &'a dyn LoadObserver,
    is_stored: &'a AtomicBool,
}

impl Init<'_> {
    /// Executes the steps one after the other.
    async fn run(&self, session: &mut AdminSession<'_>) -> Result<InitReport, LoadError> {
        let mut progress = InitProgress::default();
        for step in self.schema.options.effective_steps() {
            self.observer.line(step.announcement());
            let begin = Instant::now();
            let result = self.run_step(session, step, &mut progress).await;
            for line in session.take_notice_lines() {
                self.observer.line(&line);
            }
            result?;
            self.is_stored.fetch_or(progress.report.loaded.rows_loaded > 0, Ordering::Relaxed);
            progress.report.steps.push((step, begin.elapsed()));
        }
        Ok(progress.report)
    }

    async fn run_step(
        &self,
        session: &mut AdminSession<'_>,
        step: InitStep,
        progress: &mut InitProgress,
    ) -> Result<(), LoadError> {
        let result = match step {
            InitStep::DropTables => return self.drop_tables(session).await,
            InitStep::CreateTables => return self.create_tables(session, progress).await,
            InitStep::ClientData => return data::load(self, session, progress).await,
            InitStep::ServerData => {
                progress.report.loaded.rows_loaded += self.server_data(session).await?;
                progress.unfrozen = false;
                return Ok(());
            }
            InitStep::Vacuum => self.vacuum_tables(session, progress.unfrozen).await,
            InitStep::PrimaryKeys => {
                self.create_keys(session, step, self.schema.primary_keys(), progress).await
            }
            InitStep::ForeignKeys => {
                self.create_keys(session, step, self.schema.foreign_keys(), progress).await
            }
        };
        // A load of hours is not lost because what follows it fails.
        let is_worth_it = progress.report.loaded.rows_loaded > 0;
        result.map_err(|error| if is_worth_it { error.with_resume_hint(RESUME) } else { error })
    }

    async fn drop_tables(&self, session: &mut AdminSession<'_>) -> Result<(), LoadError> {
        for sql in self.schema.drop_tables() {
            run_command(session, InitStep::DropTables, "dropping the old tables", &sql).await?;
        }
        Ok(())
    }

    async fn create_tables(
        &self,
        session: &mut AdminSession<'_>,
        progress: &mut InitProgress,
    ) -> Result<(), LoadError> {
        let step = InitStep::CreateTables;
        let mut existing = HashSet::new();
        if self.schema.options.resume {
            let tables = existing_tables(session).await;
            existing = tables.map_err(failed(step, "listing the tables"))?;
            existing::check_columns(session, &existing).await?;
            progress.foreign = catalog::foreign(session, self.observer).await?;
            progress.foreign.retain(|table| existing.contains(table));
            existing::check_partitions(session, self.schema.options).await?;
            if !existing.is_empty() {
                self.observer.note("Tables that exist are kept: only what they lack is loaded");
            }
        }
        for table in CHILDREN_FIRST.into_iter().filter(|table| !existing.contains(*table)) {
            let doing = format!("creating table {table}");
            let sql = self.schema.create_table(table);
            dyno_load::doing(&doing);
            let created = catalog::create_table(session, table, &sql, self.observer).await;
            created.map_err(|error| failed(step, &doing)(error).with_sql(&sql))?;
        }
        if existing.contains(schema::ACCOUNTS) {
            return Ok(());
        }
        let partitions = self.schema.options.partitions;
        if partitions > 0 {
            self.observer.line(&format!("creating {partitions} partitions..."));
        }
        for number in 1..=partitions {
            let doing = format!("creating table {}_{number}", schema::ACCOUNTS);
            run_command(session, step, &doing, &self.schema.create_partition(number)).await?;
        }
        Ok(())
    }

    /// Step G.
    async fn server_data(&self, session: &mut AdminSession<'_>) -> Result<u64, LoadError> {
        let step = InitStep::ServerData;
        run_command(session, step, "beginning the transaction", "begin").await?;
        for sql in self.schema.empty_tables() {
            run_command(session, step, "emptying the tables", &sql).await?;
        }
        let accounts = self.schema.options.accounts() as u64;
        self.observer.rows_planned(accounts);
        for (table, sql) in self.schema.fill() {
            run_command(session, step, &format!("filling table {table}"), &sql).await?;
        }
        run_command(session, step, "committing the rows", "commit").await?;
        Ok(accounts)
    }

    async fn vacuum_tables(
        &self,
        session: &mut AdminSession<'_>,
        unfrozen: bool,
    ) -> Result<(), LoadError> {
        for table in schema::VACUUMED {
            let (doing, sql) =
                (format!("analyzing table {table}"), self.schema.vacuum(table, unfrozen));
            dyno_load::doing(&*doing);
            let result = answer(session, &sql).await;
            let result = result.and_then(|answer| match analyze_error(&answer) {
                Some(text) if self.schema.dialect == Dialect::Mysql => Err(unnumbered(text)),
                _ => Ok(()),
            });
            result.map_err(|error| failed(InitStep::Vacuum, doing)(error).with_sql(&sql))?;
        }
        Ok(())
    }

    async fn create_keys(
        &self,
        session: &mut AdminSession<'_>,
        step: InitStep,
        keys: Vec<Key>,
        progress: &mut InitProgress,
    ) -> Result<(), LoadError> {
        let mut existing = HashSet::new();
        if self.schema.options.resume || self.schema.keys_first {
            let existing_keys = existing::keys(session).await;
            existing = existing_keys.map_err(failed(step, "listing the keys"))?;
        }
        for key in keys {
            let existing_name = if step == InitStep::PrimaryKeys { key.table } else { &key.name };
            if !existing.contains(existing_name) {
                let lack = format!("no key {} (`{}` makes it)", key.name, key.sql);
                progress.check_own(key.table, &lack)?;
                self.observer.creating_index(key.table);
                let doing = format!("creating key {} of table {}", key.name, key.table);
                run_command(session, step, &doing, &key.sql).await?;
                if progress.report.loaded.rows_loaded == 0 {
                    progress.report.loaded.indexes_made.push(key.name);
                }
            }
        }
        Ok(())
    }

    /// Returns true if pgbench would copy the accounts with FREEZE. Tables that other options than these
    /// may have made are looked at: an ordinary one freezes, a partitioned one can't.
    async fn can_freeze(&self, session: &mut AdminSession<'_>) -> Result<bool, LoadError> {
        let options = self.schema.options;
        if self.schema.postgres_major < FREEZE_SINCE || options.partitions > 0 {
            return Ok(false);
        }
        if !options.resume && options.steps.contains(&InitStep::CreateTables) {
            return Ok(true);
        }
        let doing = "reading how the accounts are partitioned";
        let accounts =
            existing::partitioning(session).await.map_err(failed(InitStep::ClientData, doing))?;
        Ok(accounts.is_none_or(|(_, method)| method.is_none()))
    }
}

/// The answer to ANALYZE TABLE has no numbers.
fn unnumbered(message: &str) -> DbError {
    let (errno, state) =
        if message.contains("doesn't exist") { (1146, *b"42S02") } else { (0, *b"HY000") };
    DbError::server(ErrorClass::Other, errno, state, message.to_owned())
}

pub(super) const RESUME: &str =
    "run it again with --resume: what is stored is kept and only the rest is made";

/// Names the step and what it was doing when a session failed, with the remedy if one is known.
pub(super) fn failed(step: InitStep, doing: impl Display) -> impl FnOnce(DbError) -> LoadError {
    move |error| {
        let remedy = remedy(step, &error).map(str::to_owned);
        LoadError { remedy, ..while_doing(format!("{step}: {doing}"))(error) }
    }
}

/// The end that the user wanted. `is_stored`: rows have been committed before, which `--resume` continues with.
pub fn canceled(is_stored: bool) -> LoadError {
    LoadError::new(LoadErrorKind::Canceled, "canceled", is_stored.then(|| RESUME.to_owned()))
}

/// The question was for a table that does not exist.
pub fn is_missing_table(error: &DbError) -> bool {
    error.sqlstate() == "42P01"
        || error.errno() == 1146
        || error.message().contains("no such table")
}

/// Remedies for errors: by SQLSTATE (PostgreSQL) and by number (MySQL), or by words of SQLite, whose numbers tell
/// little.
#[rustfmt::skip]
const REMEDIES: [(&str, &str, &str); 9] = [
    ("42P07 42809 1050 1347", "already exists", "drop it, perhaps a view, or begin with step d, or use another database or schema"),
    ("2BP01", "", "drop what depends on the tables first, such as views"),
    ("42P16 1068", "", "the tables have primary keys already: leave out step p, or begin with step d"),
    ("42710 1826", "", "the tables have foreign keys already: leave out step f, or begin with step d"),
    ("42501 1044 1142 1227", "", "use a user that may create, fill and drop tables in this database and schema"),
    ("53100 1021 1114", "disk is full", "free space on the server's disk"),
    ("25006 1290 1836", "", "connect to the primary: this server is read-only"),
    ("", "readonly database", "use a file that may be written"),
    ("", "database is locked", "end the other program that writes to this database"),
];

/// Advice for a step that failed; `None` if there is none.
fn remedy(step: InitStep, error: &DbError) -> Option<&'static str> {
    if let Some(hint) = error.pooler_hint() {
        return Some(hint);
    }
    if is_missing_table(error) {
        return Some("create the tables first: step t");
    }
    if error.cause() == Cause::Protocol {
        return None;
    }
    if error.is_fatal() {
        return Some("look into the server's log why it left");
    }
    if step == InitStep::ForeignKeys && has_code(error, "42704 42830 1005 1822") {
        return Some("foreign keys need the primary keys: put step p before step f");
    }
    let by_code = REMEDIES.into_iter().find(|(codes, ..)| has_code(error, codes));
    let mut with_words = REMEDIES.into_iter().filter(|(_, words, _)| !words.is_empty());
    let row = by_code.or_else(|| with_words.find(|(_, words, _)| error.message().contains(*words)));
    row.map(|(.., remedy)| remedy)
}

/// Returns true if the error has one of these SQLSTATEs and numbers, which blanks separate.
fn has_code(error: &DbError, codes: &str) -> bool {
    let (sqlstate, errno) = (error.sqlstate(), error.errno().to_string());
    codes.split(' ').any(|code| code == sqlstate || code == errno)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_core::ErrorClass;

    #[test]
    fn every_known_error_has_a_remedy() {
        let cases = [
            (
                InitStep::ClientData,
                server_error(0, b"53100", "could not extend file"),
                "free space",
            ),
            (InitStep::ClientData, server_error(1114, b"HY000", "The table is full"), "free space"),
            (
                InitStep::ClientData,
                server_error(13, b"00000", "database or disk is full"),
                "free space",
            ),
            (InitStep::CreateTables, server_error(0, b"25006", "read-only transaction"), "primary"),
            (InitStep::CreateTables, server_error(1290, b"HY000", "--read-only"), "primary"),
            (
                InitStep::CreateTables,
                server_error(8, b"00000", "readonly database"),
                "may be written",
            ),
            (InitStep::CreateTables, server_error(1, b"00000", "table x already exists"), "step d"),
            (InitStep::PrimaryKeys, server_error(1, b"00000", "no such table: x"), "step t"),
            (InitStep::Vacuum, DbError::lost("The server went away."), "log"),
            (InitStep::ClientData, DbError::protocol("No COPY.").with_hint("a proxy"), "a proxy"),
        ];
        for (step, error, words) in cases {
            let error = failed(step, "working")(error);
            assert!(error.hint().is_some_and(|hint| hint.contains(words)), "{error}");
        }
        let unknown = failed(InitStep::Vacuum, "working")(server_error(0, b"XX000", "oops"));
        assert_eq!(unknown.hint(), None);
        assert_eq!(unknown.to_string(), "step v (vacuum): working failed: oops (SQLSTATE XX000)");
        let hint = unknown.with_resume_hint(RESUME);
        let words = "remove the cause, then run it again with --resume";
        assert!(hint.hint().is_some_and(|hint| hint.starts_with(words)));
        // Only step f speaks of foreign keys.
        for (step, has_hint) in [(InitStep::ForeignKeys, true), (InitStep::CreateTables, false)] {
            let undefined = server_error(0, b"42704", "there is no primary key");
            assert_eq!(failed(step, "x")(undefined).hint().is_some(), has_hint);
        }
    }

    fn server_error(errno: u32, state: &[u8; 5], message: &str) -> DbError {
        DbError::server(ErrorClass::Other, errno, *state, message)
    }
}
