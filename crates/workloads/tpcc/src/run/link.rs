//! Round trips of the statements of a transaction: one for each, as papers measure it. The two batches of a
//! New-Order (updates of stock, inserts of lines) take one each, as JDBC's batches do; on PostgreSQL the begin travels
//! with the first statement, as with JDBC.
//! And their texts: one each, written in the words of each dialect.

use crate::ledger::{Entry, Ledger, Step};
use dyno_core::{
    DbError, Dialect, Discard, Executed, FlightAnswers, Param, ParamType, Rows, Session, Statement,
    Tally,
};

/// Makes the enum of the statements, which are the lines of their table.
macro_rules! statements {
    ($($name:ident)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Sql {
            $($name),*
        }

        const NAMES: [&str; [$(stringify!($name)),*].len()] = [$(stringify!($name)),*];
    };
}

statements! {
    Begin BeginReadOnly Commit Rollback LockDistrict CustomerAndTax TakeOrderNumber InsertOrder
    InsertNewOrder Item LockStock UpdateStock InsertLine PayDistrict District PayWarehouse
    Warehouse CustomersByName LockCustomer CustomerData PayCustomer PayBadCustomer InsertHistory
    CustomerStatus LastOrder LinesOfOrder OldestNewOrder DeleteNewOrder SetCarrier CustomerOfOrder
    DeliverLines SumOfLines CreditCustomer LowStock
}

/// Names and texts of the statements, in the order of [`Sql`].
fn texts() -> impl Iterator<Item = (&'static str, &'static str)> {
    include_str!("statements.txt").lines().skip(1).filter_map(|line| line.split_once(": "))
}

/// A text in the words of a dialect, and the types of its parameters.
fn in_dialect((name, template): (&str, &str), dialect: Dialect) -> (String, Vec<ParamType>) {
    if name == "Begin" && dialect == Dialect::Sqlite {
        // A reader can't become a writer alongside another one.
        return ("BEGIN IMMEDIATE".to_owned(), Vec::new());
    }
    let mut text = String::with_capacity(template.len() + 64);
    let mut types = Vec::new();
    let mut parts = template.split(':');
    text.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let (kind, rest) = part.split_at(1);
        dialect.push_placeholder(&mut text, types.len() + 1);
        // PostgreSQL takes text for what it is declared as; the others convert it.
        let (declared, cast) = match (kind, dialect) {
            ("i", _) | ("m", Dialect::Sqlite) => (ParamType::Int, ""),
            ("m", Dialect::Postgres) => (ParamType::Text, "::numeric"),
            ("t", Dialect::Postgres) => (ParamType::Text, "::timestamp"),
            _ => (ParamType::Text, ""),
        };
        types.push(declared);
        text.push_str(cast);
        text.push_str(rest);
    }
    if dialect == Dialect::Sqlite {
        // Its writers exclude each other from their begin on.
        text = text.replace(" FOR UPDATE", "");
    }
    (text, types)
}

/// Returns true for what sessions of a dialect do without: those of MySQL are out of autocommit mode
/// instead, as JDBC has them.
fn is_needless(name: &str, dialect: Dialect) -> bool {
    name.starts_with("Begin") && dialect == Dialect::Mysql
}

pub fn prepared_statements(dialect: Dialect) -> u32 {
    NAMES.iter().filter(|name| !is_needless(name, dialect)).count() as u32
}

#[derive(Clone, Debug)]
pub(crate) struct Statements([Statement; NAMES.len()]);

impl Statements {
    /// Prepares the statements that this dialect needs, in their order.
    pub(crate) async fn prepare<S: Session>(session: &mut S) -> Result<Self, DbError> {
        let dialect = session.dialect();
        let mut prepared = [Statement(0); NAMES.len()];
        for (slot, statement) in prepared.iter_mut().zip(texts()) {
            if !is_needless(statement.0, dialect) {
                let (text, types) = in_dialect(statement, dialect);
                *slot = session.prepare(&text, &types).await?;
            }
        }
        Ok(Statements(prepared))
    }

    #[inline]
    pub(crate) fn get(&self, sql: Sql) -> Statement {
        self.0[sql as usize]
    }
}

/// Statements that travel together at most: a batch of a New-Order of 15 lines, with room.
pub(crate) const FLIGHT_LENGTH: usize = 64;

/// Returns true if a statement hit no row.
#[inline]
fn is_miss(done: Executed) -> bool {
    if done.has_rows { done.rows == 0 } else { done.affected == 0 }
}

/// One attempt at a transaction on its way.
pub(crate) struct Link<'a, S> {
    pub(crate) session: &'a mut S,
    pub(crate) statements: &'a Statements,
    pub(crate) dialect: Dialect,
    pub(crate) flight: &'a mut FlightAnswers,
    pub(crate) tally: &'a mut Tally,
    pub(crate) ledger: &'a Ledger,
    /// Statements since the last [`Link::mark`] that hit no row.
    misses: u64,
    /// Statements wait for [`Link::land`].
    is_queued: bool,
    /// A begin is the first of them.
    begin_is_queued: bool,
}

impl<'a, S: Session> Link<'a, S> {
    pub(crate) fn new(
        session: &'a mut S,
        (statements, flight): (&'a Statements, &'a mut FlightAnswers),
        tally: &'a mut Tally,
        ledger: &'a Ledger,
    ) -> Self {
        let dialect = session.dialect();
        let (misses, is_queued, begin_is_queued) = Default::default();
        Link {
            session,
            statements,
            dialect,
            flight,
            tally,
            ledger,
            misses,
            is_queued,
            begin_is_queued,
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
                let executed = self.session.execute_short(statement, &[], &mut Discard).await?;
                self.tally.count(executed);
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
            return self.land(rows).await;
        }
        let statement = self.statements.get(sql);
        let executed = if R::WANTED || R::DESCRIBED {
            self.session.execute(statement, params, rows).await?
        } else {
            self.session.execute_short(statement, params, &mut Discard).await?
        };
        self.tally.count(executed);
        self.misses += u64::from(is_miss(executed));
        Ok(executed)
    }

    /// Adds a statement to the next flight: part of a batch.
    #[inline]
    pub(crate) fn queue(&mut self, sql: Sql, params: &[Param<'_>]) -> Result<(), DbError> {
        self.is_queued = true;
        self.session.queue(self.statements.get(sql), params)
    }

    /// Sends what is queued and awaits all answers. Returns what the last statement has done.
    ///
    /// # Errors
    /// The first error of a statement. MySQL executes the statements behind it all the same: the
    /// engine rolls them back, and no commit is ever among them there.
    pub(crate) async fn land<R: Rows>(&mut self, rows: &mut R) -> Result<Executed, DbError> {
        if !std::mem::take(&mut self.is_queued) {
            return Ok(Executed::default());
        }
        let has_begin = std::mem::take(&mut self.begin_is_queued);
        self.flight.clear();
        self.session.flush(rows, self.flight).await?;
        let (mut last, mut first_error) = (Executed::default(), None);
        for (at, result) in self.flight.drain(..).enumerate() {
            match result {
                Ok(done) => {
                    self.tally.count(done);
                    if !(at == 0 && has_begin) {
                        self.misses += u64::from(is_miss(done));
                        last = done;
                    }
                }
                Err(error) => {
                    first_error.get_or_insert(error);
                }
            }
        }
        first_error.map_or(Ok(last), Err)
    }

    /// Forgets what earlier statements have done.
    pub(crate) fn mark(&mut self) {
        self.misses = 0;
    }

    /// Commits the work of `entry`.
    ///
    /// # Errors
    /// Errors of the session; the commit can't be recorded, which ends the run.
    pub(crate) async fn commit(&mut self, entry: &Entry<'_>) -> Result<(), DbError> {
        self.ledger.record(Step::Sent, entry)?;
        let ended = self.end(Sql::Commit).await;
        match &ended {
            Ok(()) => self.ledger.record(Step::Acknowledged, entry)?,
            // Whether it happened is unknown: it stays pending.
            Err(error) if error.is_fatal() || is_undecided(error) => {}
            Err(_) if !self.ledger.believes_refusals() => {}
            Err(_) => self.ledger.record(Step::Refused, entry)?,
        }
        ended
    }

    /// Ends the transaction.
    pub(crate) async fn end(&mut self, end: Sql) -> Result<(), DbError> {
        let misses = self.misses;
        self.send(end, &[], &mut Discard).await?;
        // It hits no row.
        self.misses = misses;
        Ok(())
    }

    /// Checks that the statements since the last mark that had to hit one row or more did so.
    ///
    /// # Errors
    /// Names what was missed: the database isn't the one that was loaded.
    pub(crate) fn check_hits(&mut self, what: &str) -> Result<(), DbError> {
        match self.take_misses() {
            0 => Ok(()),
            _ => Err(not_loaded(what)),
        }
    }

    /// Checks that the statements since the last mark stored a row each.
    ///
    /// # Errors
    /// Names what was not stored: the server left it out without an error.
    pub(crate) fn check_stored(&mut self, what: &str) -> Result<(), DbError> {
        match self.take_misses() {
            0 => Ok(()),
            _ => Err(DbError::workload(format!("{what} was not stored."))
                .with_hint("look for triggers and rules of the table that leave rows out")),
        }
    }

    fn take_misses(&mut self) -> u64 {
        let misses = std::mem::take(&mut self.misses);
        self.tally.misses += misses;
        misses
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_of_mysql_prepare_no_begin() {
        assert_eq!(prepared_statements(Dialect::Mysql) as usize, NAMES.len() - 2);
        assert_eq!(prepared_statements(Dialect::Postgres) as usize, NAMES.len());
        assert!(texts().map(|(name, _)| name).eq(NAMES));
    }

    #[test]
    fn parameters_are_in_the_words_of_the_dialect() {
        let in_dialect =
            |name, dialect| in_dialect(texts().find(|text| text.0 == name).unwrap(), dialect);
        let (postgres, types) = in_dialect("InsertHistory", Dialect::Postgres);
        assert!(postgres.ends_with("($1, $2, $3, $4, $5, $6::timestamp, $7::numeric, $8)"));
        assert_eq!(types[4..], [ParamType::Int, ParamType::Text, ParamType::Text, ParamType::Text]);
        let (sqlite, types) = in_dialect("InsertHistory", Dialect::Sqlite);
        assert!(sqlite.ends_with("(?, ?, ?, ?, ?, ?, ?, ?)"));
        assert_eq!(types[6], ParamType::Int);
        assert!(!in_dialect("LockStock", Dialect::Sqlite).0.contains("FOR UPDATE"));
        assert!(in_dialect("LockStock", Dialect::Mysql).0.ends_with(" = ? FOR UPDATE"));
    }
}
