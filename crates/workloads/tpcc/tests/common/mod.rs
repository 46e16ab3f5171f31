//! A database that isn't there: it answers each statement of the transactions with fixed rows, and
//! keeps what it was sent if told to.

use dyno_core::{
    AnswerRow, BulkReport, DbError, Dialect, Driver, Executed, Nanos, Param, ParamType, Product,
    RowSource, Rows, Session, Statement,
};
use dyno_reactor::{now, sleep_until};
use std::sync::Arc;

/// A value of an answer.
#[derive(Clone, Copy)]
pub(crate) enum Cell {
    Int(i64),
    Text(&'static [u8]),
    /// The text, and the integer that SQLite keeps instead.
    Decimal(&'static [u8], i64),
    Null,
}

use Cell::{Decimal, Int, Null, Text};

const ADDRESS: &[Cell] = &[
    Text(b"NAME"),
    Text(b"street"),
    Text(b"street"),
    Text(b"city"),
    Text(b"ST"),
    Text(b"123411111"),
];
const DIST: Cell = Text(b"abcdefghijklmnopqrstuvwx");
const STOCK: &[Cell] = &[
    Int(42),
    Text(b"some ORIGINAL data"),
    DIST,
    DIST,
    DIST,
    DIST,
    DIST,
    DIST,
    DIST,
    DIST,
    DIST,
    DIST,
];
const CUSTOMER: [Cell; 14] = [
    Text(b"First"),
    Text(b"OE"),
    Text(b"BARBARBAR"),
    Text(b"street"),
    Text(b"street"),
    Text(b"city"),
    Text(b"ST"),
    Text(b"123411111"),
    Text(b"0123456789012345"),
    Null,
    Text(b"GC"),
    Decimal(b"50000.00", 5_000_000),
    Decimal(b"0.1000", 1_000),
    Decimal(b"-10.00", -1_000),
];
const BAD_CUSTOMER: [Cell; 14] = {
    let mut row = CUSTOMER;
    row[10] = Text(b"BC");
    row
};
const TAX: Cell = Decimal(b"0.1000", 1_000);

/// Answers to the statements, by how they begin.
const ANSWERS: &[(&str, &[&[Cell]])] = &[
    ("SELECT d_tax", &[&[TAX, Int(3_001)]]),
    ("SELECT c_discount", &[&[TAX, Text(b"BARBARBAR"), Text(b"GC"), TAX]]),
    ("SELECT i_price", &[&[Decimal(b"12.50", 1_250), Text(b"item"), Text(b"an ORIGINAL one")]]),
    ("SELECT s_quantity", &[STOCK]),
    ("SELECT d_name", &[ADDRESS]),
    ("SELECT w_name", &[ADDRESS]),
    ("SELECT c_id", &[&[Int(11)], &[Int(12)], &[Int(13)], &[Int(14)]]),
    ("SELECT c_data", &[&[Text(b"what was there")]]),
    (
        "SELECT c_first, c_middle, c_last, c_balance",
        &[&[Text(b"First"), Text(b"OE"), Text(b"BARBARBAR"), Decimal(b"-10.00", -1_000)]],
    ),
    ("SELECT c_first", &[&CUSTOMER]),
    ("SELECT o_id", &[&[Int(77), Null, Null]]),
    (
        "SELECT ol_i_id",
        &[&[Int(1), Int(1), Int(5), TAX, Null], &[Int(2), Int(1), Int(5), TAX, Null]],
    ),
    ("SELECT no_o_id", &[&[Int(2_101)]]),
    ("SELECT o_c_id", &[&[Int(99)]]),
    ("SELECT sum(ol_amount)", &[&[Decimal(b"123.45", 12_345)]]),
    ("SELECT count(*)", &[&[Int(3)]]),
];

struct FixedRow(&'static [Cell], Dialect);

impl AnswerRow for FixedRow {
    fn columns(&self) -> usize {
        self.0.len()
    }
    fn is_null(&self, column: usize) -> bool {
        matches!(self.0[column], Null)
    }
    fn int(&self, column: usize) -> Option<i64> {
        match self.0[column] {
            Int(value) => Some(value),
            Decimal(_, value) if self.1 == Dialect::Sqlite => Some(value),
            _ => None,
        }
    }
    fn double(&self, _column: usize) -> Option<f64> {
        None
    }
    fn bytes(&self, column: usize) -> Option<&[u8]> {
        match self.0[column] {
            Text(text) => Some(text),
            Decimal(text, _) if self.1 != Dialect::Sqlite => Some(text),
            _ => None,
        }
    }
    fn string(&self, _column: usize) -> Option<String> {
        None
    }
}

/// A prepared statement and its answer.
struct Prepared {
    sql: String,
    types: Vec<ParamType>,
    answer: Option<&'static [&'static [Cell]]>,
}

/// The session. One flight of the log is a list of statements.
pub(crate) struct Fake {
    dialect: Dialect,
    prepared: Vec<Prepared>,
    queued: Vec<(usize, bool)>,
    queued_texts: Vec<String>,
    pub(crate) is_recording: bool,
    pub(crate) has_bad_credit: bool,
    /// The next COMMIT is never answered.
    pub(crate) loses_commit: bool,
    /// The next statement that begins so is answered with a deadlock.
    pub(crate) deadlocks_at: Option<&'static str>,
    pub(crate) flights: Vec<Vec<String>>,
    pub(crate) round_trips: usize,
    round_trip: Nanos,
    on_round_trip: Option<Arc<dyn Fn() + Send + Sync>>,
}

/// Connects to the database that isn't there.
pub(crate) struct FakeDriver {
    pub(crate) dialect: Dialect,
    /// Duration of a round trip.
    pub(crate) round_trip: Nanos,
    /// Is called in each round trip.
    pub(crate) on_round_trip: Option<Arc<dyn Fn() + Send + Sync>>,
}

impl Driver for FakeDriver {
    type Session = Fake;

    async fn connect(&self, _number: u32) -> Result<Fake, DbError> {
        let mut session = Fake::new(self.dialect);
        session.round_trip = self.round_trip;
        session.on_round_trip = self.on_round_trip.clone();
        Ok(session)
    }

    fn dialect(&self) -> Dialect {
        self.dialect
    }
}

impl Fake {
    pub(crate) fn new(dialect: Dialect) -> Self {
        Fake {
            dialect,
            prepared: Vec::new(),
            queued: Vec::with_capacity(64),
            queued_texts: Vec::new(),
            is_recording: false,
            has_bad_credit: false,
            loses_commit: false,
            deadlocks_at: None,
            flights: Vec::new(),
            round_trips: 0,
            round_trip: 0,
            on_round_trip: None,
        }
    }

    async fn make_round_trip(&mut self) {
        self.round_trips += 1;
        if let Some(tell) = &self.on_round_trip {
            tell();
        }
        if self.round_trip > 0 {
            sleep_until(now() + self.round_trip).await;
        }
    }

    /// Finds an unused item, whose query has no answer; checks the parameters.
    fn is_unused(&self, at: usize, params: &[Param<'_>]) -> bool {
        let prepared = &self.prepared[at];
        assert_eq!(prepared.types.len(), params.len(), "{}", prepared.sql);
        for (kind, param) in prepared.types.iter().zip(params) {
            let fits = match kind {
                ParamType::Int => matches!(param, Param::Int(_)),
                _ => matches!(param, Param::Text(_)),
            };
            assert!(fits, "{} was given {param:?}", prepared.sql);
        }
        prepared.sql.starts_with("SELECT i_price")
            && matches!(params, [Param::Int(item)] if *item > 100_000)
    }

    fn statement_text(&self, at: usize, params: &[Param<'_>]) -> String {
        let mut text = self.prepared[at].sql.clone();
        for param in params {
            text.push_str(match param {
                Param::Text(value) if value.len() == 23 && value[10] == b' ' => " <time>",
                _ => " ",
            });
            match param {
                Param::Int(value) => text.push_str(&value.to_string()),
                Param::Text(value) if !(value.len() == 23 && value[10] == b' ') => {
                    text.push_str(&format!("'{}'", String::from_utf8_lossy(value)));
                }
                _ => {}
            }
        }
        text
    }

    fn answer_statement<R: Rows>(
        &mut self,
        at: usize,
        is_unused: bool,
        rows: &mut R,
    ) -> Result<Executed, DbError> {
        let prepared = &self.prepared[at];
        if self.deadlocks_at.is_some_and(|text| prepared.sql.starts_with(text)) {
            self.deadlocks_at = None;
            let class = dyno_core::ErrorClass::Deadlock;
            return Err(DbError::server(class, 1213, *b"40001", "Deadlock"));
        }
        if prepared.sql == "COMMIT" && std::mem::take(&mut self.loses_commit) {
            return Err(DbError::lost("gone"));
        }
        let Some(answer) = prepared.answer else {
            let changes = ["INSERT", "UPDATE", "DELETE"];
            let affected = u64::from(changes.iter().any(|verb| prepared.sql.starts_with(verb)));
            return Ok(Executed { has_rows: false, rows: 0, affected });
        };
        let mut count = 0;
        if !is_unused {
            for &row in answer {
                let is_customer = row.len() == CUSTOMER.len();
                let row: &[Cell] =
                    if is_customer && self.has_bad_credit { &BAD_CUSTOMER } else { row };
                rows.row(&FixedRow(row, self.dialect));
                count += 1;
            }
        }
        Ok(Executed { has_rows: true, rows: count, affected: 0 })
    }
}

impl Session for Fake {
    fn dialect(&self) -> Dialect {
        self.dialect
    }

    fn product(&self) -> &Product {
        unreachable!("the transactions do not ask for the product")
    }

    async fn prepare(&mut self, sql: &str, params: &[ParamType]) -> Result<Statement, DbError> {
        let answer = ANSWERS.iter().find(|(begin, _)| sql.starts_with(begin));
        assert_eq!(answer.is_some(), sql.starts_with("SELECT"), "{sql}");
        self.prepared.push(Prepared {
            sql: sql.to_owned(),
            types: params.to_vec(),
            answer: answer.map(|(_, answer)| *answer),
        });
        Ok(Statement(self.prepared.len() as u32 - 1))
    }

    async fn execute<R: Rows>(
        &mut self,
        statement: Statement,
        params: &[Param<'_>],
        rows: &mut R,
    ) -> Result<Executed, DbError> {
        assert!(self.queued.is_empty(), "queued statements must be flushed first");
        let at = statement.0 as usize;
        let is_unused = self.is_unused(at, params);
        self.make_round_trip().await;
        if self.is_recording {
            let text = self.statement_text(at, params);
            self.flights.push(vec![text]);
        }
        self.answer_statement(at, is_unused, rows)
    }

    async fn query<R: Rows>(&mut self, _sql: &str, _rows: &mut R) -> Result<Executed, DbError> {
        Ok(Executed::default())
    }

    fn queue(&mut self, statement: Statement, params: &[Param<'_>]) -> Result<(), DbError> {
        let at = statement.0 as usize;
        let is_unused = self.is_unused(at, params);
        if self.is_recording {
            let text = self.statement_text(at, params);
            self.queued_texts.push(text);
        }
        self.queued.push((at, is_unused));
        Ok(())
    }

    async fn flush<R: Rows>(
        &mut self,
        rows: &mut R,
        results: &mut Vec<Result<Executed, DbError>>,
    ) -> Result<(), DbError> {
        assert!(!self.queued.is_empty(), "an empty flight");
        self.make_round_trip().await;
        if self.is_recording {
            self.flights.push(std::mem::take(&mut self.queued_texts));
        }
        for number in 0..self.queued.len() {
            let (at, is_unused) = self.queued[number];
            match self.answer_statement(at, is_unused, rows) {
                Err(error) if error.is_fatal() => {
                    self.queued.clear();
                    return Err(error);
                }
                answer => results.push(answer),
            }
        }
        self.queued.clear();
        Ok(())
    }

    async fn rollback(&mut self) -> Result<(), DbError> {
        self.queued.clear();
        self.queued_texts.clear();
        Ok(())
    }

    async fn bulk_load(
        &mut self,
        _table: &str,
        _columns: &[&str],
        _rows: &mut dyn RowSource,
    ) -> Result<BulkReport, DbError> {
        unreachable!("nothing is loaded")
    }

    async fn close(self) {}
}
