//! Tables and rows: what `pgbench -i` makes.
//!
//! - `options`: what was asked for, and what a dialect can't do.
//! - `schema`, `series`: the statements. `rows`: the rows that are made here.
//! - `data`: step g. `existing`: what an interrupted load has left.
//! - `info`: what a run asks of the tables before it begins.

mod data;
mod error;
mod existing;
mod info;
mod options;
mod rows;
mod schema;
mod series;

pub use error::canceled;
pub(crate) use error::circumstance;
pub(crate) use existing::NOT_OURS;
pub use existing::tables as existing_tables;
pub use info::{TableInfo, TableInfoError, table_info, vacuum_accounts, vacuum_before_run};
pub use options::{
    ACCOUNTS_PER_BRANCH, BIGINT_SCALE, InitOptions, InitStep, PartitionMethod, SCALE_MAX,
    StepsError, TELLERS_PER_BRANCH,
};
pub(crate) use schema::CHILDREN_FIRST;

use dyno_core::{AdminDriver, AdminSession, DbError, Dialect, Driver, ErrorClass, Session};
use dyno_load::catalog;
use dyno_load::query::{analyze_error, answer};
use dyno_load::settings::{ServerNeed, load_needs, wants_keys_first};
use dyno_load::{LoadError, LoadObserver, LoadReport, LoadSessions, while_doing};
use error::{RESUME, failed};
use schema::{Key, Schema, postgres_major};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The first server version that freezes rows while it copies them into an empty table
/// completely, visibility map included; pgbench asks for it from there on.
const FREEZE_SINCE: u32 = 14;

/// Accounts of one branch, of up to 128 bytes in the logs of transactions, are stored at once where that is limited.
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
/// first host where several were given. Must not be called within an event loop.
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
    report.map_err(|error| match error {
        LoadError::Canceled { .. } => canceled(is_stored.load(Ordering::Relaxed)),
        other => other,
    })
}

async fn command(
    session: &mut AdminSession<'_>,
    step: InitStep,
    doing: &str,
    sql: &str,
) -> Result<(), LoadError> {
    dyno_load::doing(doing);
    let done = answer(session, sql).await;
    done.map(drop).map_err(|error| failed(step, doing)(error).with_sql(sql))
}

#[derive(Default)]
struct Done {
    report: InitReport,
    /// True when step v has to freeze the accounts.
    unfrozen: bool,
}

struct Init<'a> {
    driver: &'a AdminDriver<'a>,
    loader: &'a LoadSessions<'a>,
    schema: Schema<'a>,
    observer: &'a dyn LoadObserver,
    is_stored: &'a AtomicBool,
}

impl Init<'_> {
    async fn run(&self, session: &mut AdminSession<'_>) -> Result<InitReport, LoadError> {
        let mut done = Done::default();
        for step in self.schema.options.effective_steps() {
            self.observer.line(step.announcement());
            let begin = Instant::now();
            let result = self.step(session, step, &mut done).await;
            for line in session.take_notice_lines() {
                self.observer.line(&line);
            }
            result?;
            self.is_stored.fetch_or(done.report.loaded.rows_loaded > 0, Ordering::Relaxed);
            done.report.steps.push((step, begin.elapsed()));
        }
        Ok(done.report)
    }

    async fn step(
        &self,
        session: &mut AdminSession<'_>,
        step: InitStep,
        done: &mut Done,
    ) -> Result<(), LoadError> {
        let result = match step {
            InitStep::DropTables => return self.drop_tables(session).await,
            InitStep::CreateTables => return self.create_tables(session).await,
            InitStep::ClientData => {
                let loaded = data::load(self, session).await?;
                let rows_before = done.report.loaded.rows_loaded;
                done.unfrozen = loaded.unfrozen;
                done.report.connections = loaded.connections;
                done.report.loaded = loaded.report;
                done.report.loaded.rows_loaded += rows_before;
                return Ok(());
            }
            InitStep::ServerData => {
                done.report.loaded.rows_loaded += self.server_data(session).await?;
                done.unfrozen = false;
                return Ok(());
            }
            InitStep::Vacuum => self.vacuum(session, done.unfrozen).await,
            InitStep::PrimaryKeys => self.keys(session, step, self.schema.primary_keys()).await,
            InitStep::ForeignKeys => self.keys(session, step, self.schema.foreign_keys()).await,
        };
        // A load of hours is not lost because what follows it fails.
        let is_worth_it = done.report.loaded.rows_loaded > 0;
        result.map_err(|error| if is_worth_it { error.with_resume_hint(RESUME) } else { error })
    }

    async fn drop_tables(&self, session: &mut AdminSession<'_>) -> Result<(), LoadError> {
        for sql in self.schema.drop_tables() {
            command(session, InitStep::DropTables, "dropping the old tables", &sql).await?;
        }
        Ok(())
    }

    async fn create_tables(&self, session: &mut AdminSession<'_>) -> Result<(), LoadError> {
        let step = InitStep::CreateTables;
        let mut existing = HashSet::new();
        if self.schema.options.resume {
            let found = existing::tables(session).await;
            existing = found.map_err(failed(step, "listing the tables"))?;
            existing::check_columns(session, &existing).await?;
            if !existing.is_empty() {
                self.observer.note("Tables that exist are kept: only what they lack is loaded");
            }
            existing::check_partitions(session, self.schema.options).await?;
        }
        for about in self.schema.create_tables() {
            if !existing.contains(about.table) {
                let doing = format!("creating table {}", about.table);
                command(session, step, &doing, &about.sql).await?;
                catalog::mark(session, about.table, self.observer).await?;
            }
        }
        if existing.contains(schema::ACCOUNTS) {
            return Ok(());
        }
        let partitions = self.schema.options.partitions;
        if partitions > 0 {
            self.observer.line(&format!("creating {partitions} partitions..."));
        }
        for number in 1..=self.schema.partition_tables() {
            let doing = format!("creating table {}_{number}", schema::ACCOUNTS);
            command(session, step, &doing, &self.schema.create_partition(number)).await?;
        }
        Ok(())
    }

    /// Step G. On MySQL each statement is committed for itself.
    async fn server_data(&self, session: &mut AdminSession<'_>) -> Result<u64, LoadError> {
        let step = InitStep::ServerData;
        let in_transaction = self.schema.dialect != Dialect::Mysql;
        if in_transaction {
            command(session, step, "beginning the transaction", "begin").await?;
        }
        for sql in self.schema.empty_tables() {
            command(session, step, "emptying the tables", &sql).await?;
        }
        let accounts = self.schema.options.accounts() as u64;
        self.observer.rows_planned(accounts);
        for fill in series::fill(self.schema.options, self.schema.dialect) {
            let doing = format!("filling table {}", fill.table);
            command(session, step, &doing, &fill.sql).await?;
            if fill.accounts > 0 && self.schema.dialect == Dialect::Mysql {
                self.observer.rows_done(fill.accounts);
            }
        }
        if in_transaction {
            command(session, step, "committing the rows", "commit").await?;
        }
        Ok(accounts)
    }

    async fn vacuum(
        &self,
        session: &mut AdminSession<'_>,
        unfrozen: bool,
    ) -> Result<(), LoadError> {
        for about in self.schema.vacuum(unfrozen) {
            let doing = format!("analyzing table {}", about.table);
            dyno_load::doing(&*doing);
            let done = answer(session, &about.sql).await;
            let done = done.and_then(|answer| match analyze_error(&answer) {
                Some(text) if self.schema.dialect == Dialect::Mysql => Err(unnumbered(text)),
                _ => Ok(()),
            });
            done.map_err(|error| failed(InitStep::Vacuum, doing)(error).with_sql(&about.sql))?;
        }
        Ok(())
    }

    async fn keys(
        &self,
        session: &mut AdminSession<'_>,
        step: InitStep,
        keys: Vec<Key>,
    ) -> Result<(), LoadError> {
        let mut existing = HashSet::new();
        if self.schema.options.resume || self.schema.keys_first {
            let found = existing::keys(session).await;
            existing = found.map_err(failed(step, "listing the keys"))?;
        }
        for key in keys {
            let found = if step == InitStep::PrimaryKeys { key.table } else { &key.name };
            if !existing.contains(found) {
                self.observer.creating_index(key.table);
                let doing = format!("creating key {} of table {}", key.name, key.table);
                command(session, step, &doing, &key.sql).await?;
            }
        }
        Ok(())
    }

    /// True when pgbench would copy the accounts with FREEZE. Tables that other options than these
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
        let found =
            info::partitioning(session).await.map_err(failed(InitStep::ClientData, doing))?;
        Ok(found.is_none_or(|(_, method)| method.is_none()))
    }
}

/// The answer to ANALYZE TABLE has no numbers.
fn unnumbered(message: &str) -> DbError {
    let (errno, state) =
        if message.contains("doesn't exist") { (1146, *b"42S02") } else { (0, *b"HY000") };
    DbError::server(ErrorClass::Other, errno, state, message.to_owned())
}
