//! One simulated connection.

use super::{Shared, SimulatedStatement};
use dyno_core::{
    AnswerRow, BulkMethod, BulkReport, Capabilities, ColumnNames, DbError, DbResult, Dialect,
    Discard, ErrorClass, Executed, Nanos, Param, ParamType, Product, Rng, RowSource, RowWriter,
    Rows, Session, Statement, StatementTable,
};
use dyno_drivers::calls_of_queue;
use dyno_drivers::queue::{Queue, Queued, check_parameters, no_statement};
use dyno_reactor::{now, sleep_until};
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

#[derive(Debug)]
pub struct SimSession {
    shared: Arc<Shared>,
    number: u32,
    rng: Rng,
    product: Product,
    statements: StatementTable<Rc<Prepared>>,
    queue: Queue,
    lost_at: Option<Nanos>,
    is_lost: bool,
    is_in_transaction: bool,
}

#[derive(Debug)]
struct Prepared {
    sql: String,
    params: usize,
}

/// The kind of a statement, by its first word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verb {
    Read,
    Write,
    Begin,
    End,
    Other,
}

impl Verb {
    fn parse(sql: &str) -> Self {
        let word = sql.split(|c: char| !c.is_ascii_alphabetic()).find(|word| !word.is_empty());
        let matches_any = |words: &[&str]| {
            words.iter().any(|known| word.is_some_and(|word| word.eq_ignore_ascii_case(known)))
        };
        if matches_any(&["select", "show", "with", "values", "explain"]) {
            Verb::Read
        } else if matches_any(&["insert", "update", "delete", "replace"]) {
            Verb::Write
        } else if matches_any(&["begin", "start"]) {
            Verb::Begin
        } else if matches_any(&["commit", "rollback", "end"]) {
            Verb::End
        } else {
            Verb::Other
        }
    }
}

struct Number(i64);

impl AnswerRow for Number {
    fn columns(&self) -> usize {
        1
    }

    fn is_null(&self, _column: usize) -> bool {
        false
    }

    fn int(&self, _column: usize) -> Option<i64> {
        Some(self.0)
    }

    fn double(&self, _column: usize) -> Option<f64> {
        Some(self.0 as f64)
    }

    fn bytes(&self, _column: usize) -> Option<&[u8]> {
        None
    }

    fn string(&self, _column: usize) -> Option<String> {
        Some(self.0.to_string())
    }
}

/// A line of `SHOW STATUS`.
struct Counter(u64);

impl AnswerRow for Counter {
    fn columns(&self) -> usize {
        2
    }

    fn is_null(&self, _column: usize) -> bool {
        false
    }

    fn int(&self, column: usize) -> Option<i64> {
        (column == 1).then_some(self.0 as i64)
    }

    fn double(&self, column: usize) -> Option<f64> {
        (column == 1).then_some(self.0 as f64)
    }

    fn bytes(&self, _column: usize) -> Option<&[u8]> {
        None
    }

    fn string(&self, column: usize) -> Option<String> {
        Some(if column == 1 { self.0.to_string() } else { "Counter".to_owned() })
    }
}

struct Name;

impl ColumnNames for Name {
    fn count(&self) -> usize {
        1
    }

    fn name(&self, column: usize) -> &str {
        if column == 0 { "number" } else { "" }
    }
}

/// Drops the rows of a bulk load.
struct Sink;

impl RowWriter for Sink {
    fn int(&mut self, _value: i64) {}
    fn double(&mut self, _value: f64) {}
    fn text(&mut self, _value: &[u8]) {}
    fn null(&mut self) {}
}

impl SimSession {
    pub(super) fn new(shared: Arc<Shared>, number: u32) -> Self {
        let script = &shared.script;
        SimSession {
            rng: Rng::new(script.seed, "sim service", u64::from(number)),
            product: Product { name: "Simulated".to_owned(), version: "1".to_owned() },
            statements: StatementTable::default(),
            queue: Queue::default(),
            lost_at: script.lost_at(number, now()),
            is_lost: false,
            is_in_transaction: false,
            number,
            shared,
        }
    }

    /// Serves one statement: takes its time, applies faults, logs it.
    async fn serve<'a, R: Rows>(
        &mut self,
        sql: &str,
        params: impl Iterator<Item = Param<'a>>,
        rows: &mut R,
    ) -> DbResult<Executed> {
        if self.is_lost {
            return Err(connection_lost());
        }
        let shared = Arc::clone(&self.shared);
        let began = now();
        let number = shared.statements.fetch_add(1, Ordering::Relaxed);
        let time = shared.script.service.sample(sql, &mut self.rng);
        let ended = shared.finish_time(began, time);
        let result = match self.lost_at {
            Some(at) if at <= ended => {
                sleep_until(at.max(began)).await;
                Err(ErrorClass::ConnectionLost)
            }
            _ => {
                sleep_until(ended).await;
                shared.script.planned_error(number).map_or(Ok(()), Err)
            }
        };
        if shared.script.keep_log {
            let logged = SimulatedStatement {
                session: self.number,
                began,
                ended: now(),
                sql: sql.to_owned(),
                params: params.map(|param| print(&param)).collect(),
                error: result.err(),
            };
            shared.log.lock().unwrap_or_else(PoisonError::into_inner).push(logged);
        }
        match result {
            Ok(()) if sql.starts_with("SHOW SESSION STATUS") => {
                let counters = shared.script.scans.map(Counter);
                counters.iter().for_each(|counter| rows.row(counter));
                Ok(Executed { has_rows: true, rows: 2, affected: 0 })
            }
            Ok(()) => Ok(self.answer(Verb::parse(sql), rows)),
            Err(ErrorClass::ConnectionLost) => {
                self.is_lost = true;
                Err(connection_lost())
            }
            Err(class) => Err(failure(class)),
        }
    }

    fn answer<R: Rows>(&mut self, verb: Verb, rows: &mut R) -> Executed {
        match verb {
            Verb::Begin => self.is_in_transaction = true,
            Verb::End => self.is_in_transaction = false,
            Verb::Read | Verb::Write | Verb::Other => {}
        }
        let mut executed = Executed::default();
        match verb {
            Verb::Read => {
                executed.has_rows = true;
                executed.rows = self.shared.script.rows;
                if R::DESCRIBED {
                    rows.columns(&Name);
                }
                if R::WANTED {
                    (1..=executed.rows).for_each(|row| rows.row(&Number(row as i64)));
                }
            }
            Verb::Write => executed.affected = 1,
            Verb::Begin | Verb::End | Verb::Other => {}
        }
        if R::DESCRIBED {
            rows.finish_statement(executed);
        }
        executed
    }

    async fn run<'a, R: Rows>(
        &mut self,
        what: Queued<'_>,
        params: impl ExactSizeIterator<Item = Param<'a>>,
        rows: &mut R,
    ) -> DbResult<Executed> {
        match what {
            Queued::Prepared(statement) => {
                let prepared = self.prepared(statement, params.len())?;
                self.serve(&prepared.sql, params, rows).await
            }
            Queued::Once(sql) => self.serve(sql, params, rows).await,
        }
    }

    fn prepared(&self, statement: Statement, params: usize) -> DbResult<Rc<Prepared>> {
        let prepared = self.statements.get(statement);
        let prepared = prepared.ok_or_else(|| no_statement(statement))?;
        check_parameters(prepared.params, params)?;
        Ok(Rc::clone(prepared))
    }
}

fn print(param: &Param<'_>) -> String {
    match param {
        Param::Null => "NULL".to_owned(),
        Param::Int(value) => value.to_string(),
        Param::Double(value) => value.to_string(),
        Param::Text(text) => String::from_utf8_lossy(text).into_owned(),
    }
}

fn connection_lost() -> DbError {
    DbError::lost("The simulated connection was lost.")
}

fn failure(class: ErrorClass) -> DbError {
    // As a MySQL server would send them.
    let (errno, sqlstate) = match class {
        ErrorClass::Deadlock => (1213, *b"40001"),
        ErrorClass::LockTimeout => (1205, *b"HY000"),
        ErrorClass::Serialization => (0, *b"40001"),
        ErrorClass::Constraint => (1062, *b"23000"),
        ErrorClass::ConnectionLost | ErrorClass::Other => (1105, *b"HY000"),
    };
    let message = format!("The script asks for an error of class {}.", class.name());
    DbError::server(class, errno, sqlstate, message)
}

impl Session for SimSession {
    fn dialect(&self) -> Dialect {
        self.shared.script.dialect
    }

    fn product(&self) -> &Product {
        &self.product
    }

    /// A simulated server has no tables that describe it.
    fn capabilities(&self) -> &'static Capabilities {
        const MYSQL: Capabilities = Capabilities { server_views: false, ..Capabilities::MYSQL };
        const POSTGRES: Capabilities =
            Capabilities { server_views: false, ..Capabilities::POSTGRES };
        match self.dialect() {
            Dialect::Mysql => &MYSQL,
            Dialect::Postgres => &POSTGRES,
            Dialect::Sqlite => &Capabilities::SQLITE,
        }
    }

    /// Takes no time and is not counted.
    async fn prepare(&mut self, sql: &str, params: &[ParamType]) -> DbResult<Statement> {
        if self.is_lost {
            return Err(connection_lost());
        }
        let prepared = Prepared { sql: sql.to_owned(), params: params.len() };
        Ok(self.statements.add(Rc::new(prepared)))
    }

    async fn forget(&mut self, statement: Statement) -> DbResult<()> {
        self.statements.remove(statement).map(drop).ok_or_else(|| no_statement(statement))
    }

    async fn query<R: Rows>(&mut self, sql: &str, rows: &mut R) -> DbResult<Executed> {
        self.serve(sql, std::iter::empty(), rows).await
    }

    fn is_in_transaction(&self) -> bool {
        self.is_in_transaction
    }

    fn queue(&mut self, statement: Statement, params: &[Param<'_>]) -> DbResult<()> {
        self.prepared(statement, params.len())?;
        self.queue.push(statement, params);
        Ok(())
    }

    async fn rollback(&mut self) -> DbResult<()> {
        self.queue.clear();
        if !self.is_in_transaction {
            return Ok(());
        }
        self.serve("ROLLBACK", std::iter::empty(), &mut Discard).await.map(|_| ())
    }

    async fn bulk_load(
        &mut self,
        table: &str,
        _columns: &[&str],
        rows: &mut dyn RowSource,
    ) -> DbResult<BulkReport> {
        let mut count = 0;
        while rows.next_row(&mut Sink) {
            count += 1;
        }
        let sql = format!("INSERT INTO {table}");
        self.serve(&sql, std::iter::empty(), &mut Discard).await?;
        let method = BulkMethod::MultiRowInsert;
        Ok(BulkReport { rows: count, method, fallback: None })
    }

    calls_of_queue!(.await);
}
