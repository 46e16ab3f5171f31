//! How the statements of a transaction travel: a round trip for each, as papers measure it. The two batches of a
//! New-Order (updates of stock, inserts of lines) take one each, as JDBC's batches do; on PostgreSQL the begin travels
//! with the first statement, as with JDBC.

use super::statements::{Sql, Statements};
use crate::ledger::{Entry, Ledger};
use dyno_core::{DbError, Dialect, Discard, Executed, Param, Rows, Session, Tally};

#[derive(Debug, Default)]
pub(crate) struct Flight {
    results: Vec<Result<Executed, DbError>>,
    /// What the statements since the last [`Link::mark`] have done, in their order.
    pub(crate) done: Vec<Executed>,
}

/// Statements of the longest transaction, a New-Order of 15 lines, up to a mark.
const FLIGHT_LENGTH: usize = 64;

impl Flight {
    pub(crate) fn new() -> Self {
        Flight {
            results: Vec::with_capacity(FLIGHT_LENGTH),
            done: Vec::with_capacity(FLIGHT_LENGTH),
        }
    }
}

/// One attempt at a transaction on its way.
pub(crate) struct Link<'a, S> {
    pub(crate) session: &'a mut S,
    pub(crate) statements: &'a Statements,
    pub(crate) dialect: Dialect,
    pub(crate) flight: &'a mut Flight,
    pub(crate) tally: &'a mut Tally,
    pub(crate) ledger: &'a Ledger,
    /// Statements wait for [`Link::land`].
    is_queued: bool,
    /// A begin is the first of them.
    begin_is_queued: bool,
}

impl<'a, S: Session> Link<'a, S> {
    pub(crate) fn new(
        session: &'a mut S,
        (statements, flight): (&'a Statements, &'a mut Flight),
        tally: &'a mut Tally,
        ledger: &'a Ledger,
    ) -> Self {
        let dialect = session.dialect();
        flight.done.clear();
        flight.results.clear();
        Link {
            session,
            statements,
            dialect,
            flight,
            tally,
            ledger,
            is_queued: false,
            begin_is_queued: false,
        }
    }

    /// Opens the transaction: at once on SQLite, with the first statement on PostgreSQL; MySQL's
    /// sessions are always in one.
    pub(crate) async fn begin(&mut self, begin: Sql) -> Result<(), DbError> {
        match self.dialect {
            Dialect::Mysql => Ok(()),
            Dialect::Postgres => {
                self.begin_is_queued = true;
                self.queue(begin, &[])
            }
            Dialect::Sqlite => {
                let statement = self.statements.get(begin);
                let done = self.session.execute_short(statement, &[], &mut Discard).await?;
                self.tally.count(done);
                Ok(())
            }
        }
    }

    /// Executes a statement.
    #[inline]
    pub(crate) async fn send<R: Rows>(
        &mut self,
        sql: Sql,
        params: &[Param<'_>],
        rows: &mut R,
    ) -> Result<Executed, DbError> {
        if self.is_queued {
            self.queue(sql, params)?;
            self.land(rows).await?;
            return Ok(self.flight.done.last().copied().unwrap_or_default());
        }
        let statement = self.statements.get(sql);
        let done = match R::WANTED || R::DESCRIBED {
            true => self.session.execute(statement, params, rows).await?,
            false => self.session.execute_short(statement, params, &mut Discard).await?,
        };
        self.tally.count(done);
        self.flight.done.push(done);
        Ok(done)
    }

    /// Adds a statement to the next flight: part of a batch.
    #[inline]
    pub(crate) fn queue(&mut self, sql: Sql, params: &[Param<'_>]) -> Result<(), DbError> {
        self.is_queued = true;
        self.session.queue(self.statements.get(sql), params)
    }

    /// Sends what is queued and awaits all answers.
    ///
    /// # Errors
    /// The first error of a statement. MySQL executes the statements behind it all the same: the
    /// engine rolls them back, and no commit is ever among them there.
    pub(crate) async fn land<R: Rows>(&mut self, rows: &mut R) -> Result<(), DbError> {
        if !std::mem::take(&mut self.is_queued) {
            return Ok(());
        }
        let has_begin = std::mem::take(&mut self.begin_is_queued);
        let Flight { results, done } = &mut *self.flight;
        results.clear();
        self.session.flush(rows, results).await?;
        let mut first_error = None;
        for (at, result) in results.drain(..).enumerate() {
            match result {
                Ok(executed) => {
                    self.tally.count(executed);
                    if !(at == 0 && has_begin) {
                        done.push(executed);
                    }
                }
                Err(error) => {
                    first_error.get_or_insert(error);
                }
            }
        }
        first_error.map_or(Ok(()), Err)
    }

    /// Forgets what earlier statements have done.
    pub(crate) fn mark(&mut self) {
        self.flight.done.clear();
    }

    /// Commits what `entry` stands for.
    ///
    /// # Errors
    /// Those of the session; that the commit can't be recorded, which ends the run.
    pub(crate) async fn commit(&mut self, entry: &Entry<'_>) -> Result<(), DbError> {
        self.ledger.note_sending(entry)?;
        let ended = self.end(Sql::Commit).await;
        match &ended {
            Ok(()) => self.ledger.note_acknowledgement(entry)?,
            // Whether it happened is unknown: it stays pending.
            Err(error) if error.is_fatal() || is_undecided(error) => {}
            Err(_) if !self.ledger.believes_refusals() => {}
            Err(_) => self.ledger.note_refusal(entry)?,
        }
        ended
    }

    /// Ends the transaction.
    pub(crate) async fn end(&mut self, end: Sql) -> Result<(), DbError> {
        self.send(end, &[], &mut Discard).await?;
        // It hits no row.
        self.flight.done.pop();
        Ok(())
    }

    /// Checks that the statements since the last mark that had to hit one row or more did so.
    ///
    /// # Errors
    /// Names what was missed: the database isn't the one that was loaded.
    pub(crate) fn check_hits(&mut self, what: &str) -> Result<(), DbError> {
        let missed =
            |done: &&Executed| if done.has_rows { done.rows == 0 } else { done.affected == 0 };
        let misses = self.flight.done.iter().filter(missed).count();
        self.flight.done.clear();
        if misses == 0 {
            return Ok(());
        }
        self.tally.misses += misses as u64;
        Err(not_loaded(what))
    }
}

/// The database itself does not know whether the commit happened: statement completion unknown,
/// transaction resolution unknown.
#[cold]
fn is_undecided(error: &DbError) -> bool {
    matches!(error.sqlstate(), "40003" | "08007")
}

/// A row that the load has stored isn't there.
#[cold]
pub(crate) fn not_loaded(what: &str) -> DbError {
    DbError::workload(format!("{what} is not in the database as it was loaded."))
        .with_hint("check the database, or destroy and build it again")
}
