//! Tables and rows: what `pgbench -i` makes.
//!
//! - `options`: what was asked for, and what a dialect can't do.
//! - `schema`, `series`: the statements. `rows`: the rows that are made here.
//! - `data`: step g. `existing`: what an interrupted load has left. `sessions`, `meter`,
//!   `cancel`: its tools.
//! - `info`: what a run asks of the tables before it begins.

mod cancel;
mod data;
mod error;
mod existing;
mod info;
mod meter;
mod observer;
mod options;
mod rows;
mod schema;
mod series;
mod sessions;

pub use error::InitError;
pub use existing::tables as existing_tables;
pub use info::{TableInfo, TableInfoError, table_info, vacuum_accounts, vacuum_before_run};
pub use observer::{InitObserver, InitReport, NobodyWatches, Progress};
pub use options::{
    ACCOUNTS_PER_BRANCH, BIGINT_SCALE, InitOptions, PartitionMethod, SCALE_MAX, Step, StepsError,
    TELLERS_PER_BRANCH,
};
pub use schema::TABLES;

use cancel::unless_canceled;
use dyno_core::{DbError, Dialect, Discard, Driver, ErrorClass, Session, Table};
use dyno_load::fallback_reason;
use meter::Meter;
use schema::{Key, Schema, postgres_major};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// The first server version that freezes rows while it copies them into an empty table
/// completely, visibility map included; pgbench asks for it from there on.
const FREEZE_SINCE: u32 = 14;

/// Carries out the steps of `options`. All sessions are connected with number 0: they go to the
/// first host where several were given. Must not be called within an event loop.
///
/// # Errors
/// Options that can't be carried out, before anything is touched; the first error of a session;
/// that it was canceled.
pub fn initialize<D: Driver>(
    driver: &D,
    options: &InitOptions,
    observer: &dyn InitObserver,
) -> Result<InitReport, InitError> {
    options.check(driver.dialect())?;
    dyno_reactor::block_on(async {
        let connected = unless_canceled(observer, driver.connect(0)).await;
        let connected = connected.ok_or(InitError::Canceled { is_stored: false })?;
        let mut session = connected.map_err(|error| InitError::Session {
            step: None,
            doing: "connecting to the database".to_owned(),
            sql: None,
            error,
            hint: None,
        })?;
        let dialect = session.dialect();
        let postgres_major = postgres_major(dialect, session.product());
        let schema = Schema { options, dialect, postgres_major };
        let init = Init { driver, schema, observer, is_stored: AtomicBool::new(false) };
        match unless_canceled(observer, init.run(&mut session)).await {
            None | Some(Err(InitError::Canceled { .. })) => {
                session.cancel().await;
                Err(InitError::Canceled { is_stored: init.is_stored.load(Ordering::Relaxed) })
            }
            Some(done) => {
                session.close().await;
                done
            }
        }
    })
    .map_err(InitError::Loop)?
}

/// One statement of a step.
async fn command<S: Session>(
    session: &mut S,
    step: Step,
    doing: &str,
    sql: &str,
) -> Result<(), InitError> {
    let done = session.query(sql, &mut Discard).await;
    done.map(drop).map_err(|error| InitError::session(step, doing, error).with_sql(sql))
}

/// What the steps so far have done.
#[derive(Default)]
struct Done {
    report: InitReport,
    /// True when step v has to freeze the accounts.
    unfrozen: bool,
}

impl Done {
    fn add(&mut self, loaded: data::Loaded) {
        self.unfrozen = loaded.unfrozen;
        let report = &mut self.report;
        report.loaded.rows_loaded += loaded.rows;
        report.loaded.rows_found += loaded.rows_found;
        report.connections = loaded.connections;
        if let Some(how) = loaded.how {
            report.loaded.method = Some(how.method);
            report.loaded.fallback_reason = how.fallback.as_ref().map(fallback_reason);
        }
    }
}

/// An initialization in progress.
struct Init<'a, D: Driver> {
    driver: &'a D,
    schema: Schema<'a>,
    observer: &'a dyn InitObserver,
    /// True when accounts are committed.
    is_stored: AtomicBool,
}

impl<D: Driver> Init<'_, D> {
    async fn run(&self, session: &mut D::Session) -> Result<InitReport, InitError> {
        let mut done = Done::default();
        for step in self.schema.options.effective_steps() {
            self.observer.step_began(step);
            let begin = Instant::now();
            let result = self.step(session, step, &mut done).await;
            for line in session.take_notice_lines() {
                self.observer.server_notice(&line);
            }
            result?;
            let elapsed = begin.elapsed();
            self.observer.step_ended(step, elapsed);
            self.is_stored.fetch_or(done.report.loaded.rows_loaded > 0, Ordering::Relaxed);
            done.report.steps.push((step, elapsed));
        }
        Ok(done.report)
    }

    async fn step(
        &self,
        session: &mut D::Session,
        step: Step,
        done: &mut Done,
    ) -> Result<(), InitError> {
        let result = match step {
            Step::DropTables => return self.drop_tables(session).await,
            Step::CreateTables => return self.create_tables(session).await,
            Step::ClientData => {
                done.add(data::load(self, session).await?);
                return Ok(());
            }
            Step::ServerData => {
                done.report.loaded.rows_loaded += self.server_data(session).await?;
                done.unfrozen = false;
                return Ok(());
            }
            Step::Vacuum => self.vacuum(session, done.unfrozen).await,
            Step::PrimaryKeys => self.keys(session, step, self.schema.primary_keys()).await,
            Step::ForeignKeys => self.keys(session, step, self.schema.foreign_keys()).await,
        };
        // A load of hours is not lost because what follows it fails.
        let is_worth_it = done.report.loaded.rows_loaded > 0;
        result.map_err(|error| if is_worth_it { error.with_resume_hint() } else { error })
    }

    async fn drop_tables(&self, session: &mut D::Session) -> Result<(), InitError> {
        if self.schema.options.resume {
            self.observer.note("Resuming: the tables that exist are kept");
            return Ok(());
        }
        for sql in self.schema.drop_tables() {
            command(session, Step::DropTables, "dropping the old tables", &sql).await?;
        }
        Ok(())
    }

    async fn create_tables(&self, session: &mut D::Session) -> Result<(), InitError> {
        let step = Step::CreateTables;
        let mut existing = HashSet::new();
        if self.schema.options.resume {
            let failed = |error| InitError::session(step, "listing the tables", error);
            existing = existing::tables(session).await.map_err(failed)?;
            existing::check_partitions(session, self.schema.options).await?;
        }
        for about in self.schema.create_tables() {
            if !existing.contains(about.table) {
                let doing = format!("creating table {}", about.table);
                command(session, step, &doing, &about.sql).await?;
            }
        }
        if existing.contains(schema::ACCOUNTS) {
            return Ok(());
        }
        if self.schema.options.partitions > 0 {
            self.observer.creating_partitions(self.schema.options.partitions);
        }
        for number in 1..=self.schema.partition_tables() {
            let doing = format!("creating table {}_{number}", schema::ACCOUNTS);
            command(session, step, &doing, &self.schema.create_partition(number)).await?;
        }
        Ok(())
    }

    /// Step G. On MySQL each statement is committed for itself.
    async fn server_data(&self, session: &mut D::Session) -> Result<u64, InitError> {
        let step = Step::ServerData;
        let in_transaction = self.schema.dialect != Dialect::Mysql;
        if in_transaction {
            command(session, step, "beginning the transaction", "begin").await?;
        }
        for sql in self.schema.empty_tables() {
            command(session, step, "emptying the tables", &sql).await?;
        }
        let accounts = self.schema.options.accounts() as u64;
        let meter = Meter::new(self.observer, accounts, 0);
        for fill in series::fill(self.schema.options, self.schema.dialect) {
            let doing = format!("filling table {}", fill.table);
            command(session, step, &doing, &fill.sql).await?;
            if fill.accounts > 0 && self.schema.dialect == Dialect::Mysql {
                meter.add(fill.accounts);
            }
        }
        if in_transaction {
            command(session, step, "committing the rows", "commit").await?;
        }
        Ok(accounts)
    }

    async fn vacuum(&self, session: &mut D::Session, unfrozen: bool) -> Result<(), InitError> {
        for about in self.schema.vacuum(unfrozen) {
            let doing = format!("analyzing table {}", about.table);
            let mut answer = Table::default();
            let mut done = session.query(&about.sql, &mut answer).await.map(drop);
            if self.schema.dialect == Dialect::Mysql && done.is_ok() {
                done = analyze_error(&answer).map_or(Ok(()), Err);
            }
            done.map_err(|error| {
                InitError::session(Step::Vacuum, doing, error).with_sql(&about.sql)
            })?;
        }
        Ok(())
    }

    async fn keys(
        &self,
        session: &mut D::Session,
        step: Step,
        keys: Vec<Key>,
    ) -> Result<(), InitError> {
        let mut existing = HashSet::new();
        if self.schema.options.resume {
            let failed = |error| InitError::session(step, "listing the keys", error);
            existing = existing::keys(session).await.map_err(failed)?;
        }
        for key in keys {
            let found = if step == Step::PrimaryKeys { key.table } else { &key.name };
            if !existing.contains(found) {
                let doing = format!("creating key {} of table {}", key.name, key.table);
                command(session, step, &doing, &key.sql).await?;
            }
        }
        Ok(())
    }

    /// True when pgbench would copy the accounts with FREEZE. Tables that other options than these
    /// may have made are looked at: an ordinary one freezes, a partitioned one can't.
    async fn can_freeze(&self, session: &mut D::Session) -> Result<bool, InitError> {
        let options = self.schema.options;
        if self.schema.postgres_major < FREEZE_SINCE || options.partitions > 0 {
            return Ok(false);
        }
        if !options.resume && options.steps.contains(&Step::CreateTables) {
            return Ok(true);
        }
        let doing = "reading how the accounts are partitioned";
        let found = info::partitioning(session)
            .await
            .map_err(|error| InitError::session(Step::ClientData, doing, error))?;
        Ok(found.is_none_or(|(_, method)| method.is_none()))
    }
}

/// ANALYZE TABLE never fails: what went wrong is in its answer.
fn analyze_error(answer: &Table) -> Option<DbError> {
    let text = |row: &[Option<String>], at: usize| row.get(at).cloned().flatten();
    let is_error = |row: &&Vec<Option<String>>| {
        text(row, 2).is_some_and(|kind| kind.eq_ignore_ascii_case("error"))
    };
    let row = answer.rows.iter().find(is_error)?;
    let message = text(row, 3).unwrap_or_else(|| "ANALYZE TABLE failed".to_owned());
    // The answer has no numbers.
    let (errno, state) =
        if message.contains("doesn't exist") { (1146, *b"42S02") } else { (0, *b"HY000") };
    Some(DbError::server(ErrorClass::Other, errno, state, message))
}
