//! How the statements of a transaction travel: a round trip for each, as papers measure it. The two batches of a
//! New-Order (updates of stock, inserts of lines) take one each, as JDBC's batches do; on PostgreSQL the begin travels
//! with the first statement, as with JDBC.
//! And their texts: one each, written in the words of each dialect.

use crate::ledger::{Entry, Ledger, Step};
use dyno_core::{
    DbError, Dialect, Discard, Executed, Param, ParamType, Rows, Session, Statement, Tally,
};

/// Makes the enum of the statements and the table of their texts.
macro_rules! statements {
    ($($name:ident $text:literal)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Sql {
            $($name),*
        }

        const TEXTS: &[(Sql, &str)] = &[$((Sql::$name, $text)),*];
    };
}

// A parameter is `:i` an integer, `:s` text, `:m` an amount of money, `:t` a point in time.
statements! {
    Begin "BEGIN"
    BeginReadOnly "BEGIN"
    Commit "COMMIT"
    Rollback "ROLLBACK"
    LockDistrict
        "SELECT d_tax, d_next_o_id FROM bmsql_district WHERE d_w_id = :i AND d_id = :i FOR UPDATE"
    CustomerAndTax
        "SELECT c_discount, c_last, c_credit, w_tax FROM bmsql_customer JOIN bmsql_warehouse ON \
         w_id = c_w_id WHERE c_w_id = :i AND c_d_id = :i AND c_id = :i"
    TakeOrderNumber
        "UPDATE bmsql_district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = :i AND d_id = :i"
    InsertOrder
        "INSERT INTO bmsql_oorder (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, \
         o_all_local) VALUES (:i, :i, :i, :i, :t, :i, :i)"
    InsertNewOrder "INSERT INTO bmsql_new_order (no_o_id, no_d_id, no_w_id) VALUES (:i, :i, :i)"
    Item "SELECT i_price, i_name, i_data FROM bmsql_item WHERE i_id = :i"
    LockStock
        "SELECT s_quantity, s_data, s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05, \
         s_dist_06, s_dist_07, s_dist_08, s_dist_09, s_dist_10 FROM bmsql_stock WHERE s_w_id = :i \
         AND s_i_id = :i FOR UPDATE"
    UpdateStock
        "UPDATE bmsql_stock SET s_quantity = :i, s_ytd = s_ytd + :i, s_order_cnt = s_order_cnt + \
         1, s_remote_cnt = s_remote_cnt + :i WHERE s_w_id = :i AND s_i_id = :i"
    InsertLine
        "INSERT INTO bmsql_order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, \
         ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info) VALUES (:i, :i, :i, :i, :i, :i, \
         :i, :m, :s)"
    PayDistrict "UPDATE bmsql_district SET d_ytd = d_ytd + :m WHERE d_w_id = :i AND d_id = :i"
    District
        "SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM bmsql_district WHERE \
         d_w_id = :i AND d_id = :i"
    PayWarehouse "UPDATE bmsql_warehouse SET w_ytd = w_ytd + :m WHERE w_id = :i"
    Warehouse
        "SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM bmsql_warehouse WHERE \
         w_id = :i"
    CustomersByName
        "SELECT c_id FROM bmsql_customer WHERE c_w_id = :i AND c_d_id = :i AND c_last = :s ORDER \
         BY c_first"
    LockCustomer
        "SELECT c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, \
         c_phone, c_since, c_credit, c_credit_lim, c_discount, c_balance FROM bmsql_customer \
         WHERE c_w_id = :i AND c_d_id = :i AND c_id = :i FOR UPDATE"
    CustomerData "SELECT c_data FROM bmsql_customer WHERE c_w_id = :i AND c_d_id = :i AND c_id = :i"
    PayCustomer
        "UPDATE bmsql_customer SET c_balance = c_balance - :m, c_ytd_payment = c_ytd_payment + \
         :m, c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = :i AND c_d_id = :i AND c_id = :i"
    PayBadCustomer
        "UPDATE bmsql_customer SET c_balance = c_balance - :m, c_ytd_payment = c_ytd_payment + \
         :m, c_payment_cnt = c_payment_cnt + 1, c_data = :s WHERE c_w_id = :i AND c_d_id = :i AND \
         c_id = :i"
    InsertHistory
        "INSERT INTO bmsql_history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, \
         h_data) VALUES (:i, :i, :i, :i, :i, :t, :m, :s)"
    CustomerStatus
        "SELECT c_first, c_middle, c_last, c_balance FROM bmsql_customer WHERE c_w_id = :i AND \
         c_d_id = :i AND c_id = :i"
    LastOrder
        "SELECT o_id, o_entry_d, o_carrier_id FROM bmsql_oorder WHERE o_w_id = :i AND o_d_id = :i \
         AND o_c_id = :i AND o_id = (SELECT max(o_id) FROM bmsql_oorder WHERE o_w_id = :i AND \
         o_d_id = :i AND o_c_id = :i)"
    LinesOfOrder
        "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM \
         bmsql_order_line WHERE ol_w_id = :i AND ol_d_id = :i AND ol_o_id = :i ORDER BY ol_w_id, \
         ol_d_id, ol_o_id, ol_number"
    OldestNewOrder
        "SELECT no_o_id FROM bmsql_new_order WHERE no_w_id = :i AND no_d_id = :i ORDER BY no_o_id \
         LIMIT 1"
    DeleteNewOrder
        "DELETE FROM bmsql_new_order WHERE no_w_id = :i AND no_d_id = :i AND no_o_id = :i"
    SetCarrier
        "UPDATE bmsql_oorder SET o_carrier_id = :i WHERE o_w_id = :i AND o_d_id = :i AND o_id = \
         :i"
    CustomerOfOrder
        "SELECT o_c_id FROM bmsql_oorder WHERE o_w_id = :i AND o_d_id = :i AND o_id = :i"
    DeliverLines
        "UPDATE bmsql_order_line SET ol_delivery_d = :t WHERE ol_w_id = :i AND ol_d_id = :i AND \
         ol_o_id = :i"
    SumOfLines
        "SELECT sum(ol_amount) FROM bmsql_order_line WHERE ol_w_id = :i AND ol_d_id = :i AND \
         ol_o_id = :i"
    CreditCustomer
        "UPDATE bmsql_customer SET c_balance = c_balance + :m, c_delivery_cnt = c_delivery_cnt + \
         1 WHERE c_w_id = :i AND c_d_id = :i AND c_id = :i"
    LowStock
        "SELECT count(*) FROM bmsql_stock WHERE s_w_id = :i AND s_quantity < :i AND s_i_id IN \
         (SELECT ol_i_id FROM bmsql_district JOIN bmsql_order_line ON ol_w_id = d_w_id AND \
         ol_d_id = d_id AND ol_o_id >= d_next_o_id - 20 AND ol_o_id < d_next_o_id WHERE d_w_id = \
         :i AND d_id = :i)"
}

const COUNT: usize = TEXTS.len();

/// A text in the words of a dialect, and the types of its parameters.
fn in_dialect(sql: Sql, dialect: Dialect) -> (String, Vec<ParamType>) {
    let template = TEXTS[sql as usize].1;
    if sql == Sql::Begin && dialect == Dialect::Sqlite {
        // A reader can't become a writer beside another one.
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

/// True for what sessions of a dialect do without: those of MySQL are out of autocommit mode
/// instead, as JDBC has them.
fn is_needless(sql: Sql, dialect: Dialect) -> bool {
    matches!(sql, Sql::Begin | Sql::BeginReadOnly) && dialect == Dialect::Mysql
}

pub fn prepared_statements(dialect: Dialect) -> u32 {
    TEXTS.iter().filter(|&&(sql, _)| !is_needless(sql, dialect)).count() as u32
}

/// MySQL's ER_MAX_PREPARED_STMT_COUNT_REACHED.
const TOO_MANY_PREPARED: u32 = 1461;

#[derive(Clone, Debug)]
pub(crate) struct Statements([Statement; COUNT]);

impl Statements {
    pub(crate) async fn prepare<S: Session>(session: &mut S) -> Result<Self, DbError> {
        let dialect = session.dialect();
        let mut prepared = [Statement(0); COUNT];
        for (slot, &(sql, _)) in prepared.iter_mut().zip(TEXTS) {
            if is_needless(sql, dialect) {
                continue;
            }
            let (text, types) = in_dialect(sql, dialect);
            *slot = session.prepare(&text, &types).await.map_err(with_remedy)?;
        }
        Ok(Statements(prepared))
    }

    #[inline]
    pub(crate) fn get(&self, sql: Sql) -> Statement {
        self.0[sql as usize]
    }
}

fn with_remedy(error: DbError) -> DbError {
    if error.errno() != TOO_MANY_PREPARED {
        return error;
    }
    let count = prepared_statements(Dialect::Mysql);
    error.with_hint(format!(
        "each session prepares {count} statements: SET GLOBAL max_prepared_stmt_count = 1048576 on \
         the server, or use fewer sessions"
    ))
}

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
        self.ledger.note(Step::Sent, entry)?;
        let ended = self.end(Sql::Commit).await;
        match &ended {
            Ok(()) => self.ledger.note(Step::Acknowledged, entry)?,
            // Whether it happened is unknown: it stays pending.
            Err(error) if error.is_fatal() || is_undecided(error) => {}
            Err(_) if !self.ledger.believes_refusals() => {}
            Err(_) => self.ledger.note(Step::Refused, entry)?,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_of_mysql_prepare_no_begin() {
        assert_eq!(prepared_statements(Dialect::Mysql) as usize, COUNT - 2);
        assert_eq!(prepared_statements(Dialect::Postgres) as usize, COUNT);
    }

    #[test]
    fn parameters_are_in_the_words_of_the_dialect() {
        let (postgres, types) = in_dialect(Sql::InsertHistory, Dialect::Postgres);
        assert!(postgres.ends_with("($1, $2, $3, $4, $5, $6::timestamp, $7::numeric, $8)"));
        assert_eq!(types[4..], [ParamType::Int, ParamType::Text, ParamType::Text, ParamType::Text]);
        let (sqlite, types) = in_dialect(Sql::InsertHistory, Dialect::Sqlite);
        assert!(sqlite.ends_with("(?, ?, ?, ?, ?, ?, ?, ?)"));
        assert_eq!(types[6], ParamType::Int);
        assert!(!in_dialect(Sql::LockStock, Dialect::Sqlite).0.contains("FOR UPDATE"));
        assert!(in_dialect(Sql::LockStock, Dialect::Mysql).0.ends_with(" = ? FOR UPDATE"));
    }
}
