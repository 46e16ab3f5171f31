//! The content of a statement, as far as an answer needs it.

use super::lexer::{Dialect, Span};
use super::names;
use crate::counters::Kind;
use rustix::time::{ClockId, clock_gettime};
use std::io::Write as _;

/// Most rows a range answers, so that one hostile statement cannot ask for a gigabyte.
pub(crate) const ROWS_MAX: u64 = 1_000;
/// Most columns of a result: PostgreSQL's result formats are kept in one word.
pub(crate) const COLUMNS_MAX: usize = 64;

/// One value of a row. The same value stands in every row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    /// 32 bits on the wire.
    Int(i32),
    /// 64 bits on the wire.
    Big(i64),
    /// MySQL sums into DECIMAL, PostgreSQL into bigint.
    Sum(i64),
    /// DECIMAL with this many digits behind the point, at most 4; the integer counts its last digit.
    Decimal(i64, u8),
    /// CHAR(n).
    Char(&'static [u8]),
    /// VARCHAR or text.
    Text(&'static [u8]),
    /// A string literal of the statement.
    Literal(Span),
    /// 2024-01-01 00:00:00.
    Timestamp,
    /// CLOCK_MONOTONIC in nanoseconds when the answer is written, in 64 bits.
    Clock,
}

/// What a [`Value::Clock`] holds now: the clock that load generators on the same machine measure with.
pub(crate) fn clock_ns() -> i64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    Given(Span),
    Known(&'static [u8]),
}

impl Name {
    pub(crate) fn of(self, sql: &[u8]) -> &[u8] {
        match self {
            Name::Given(span) => span.of(sql),
            Name::Known(name) => name,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: Name,
    pub(crate) value: Value,
}

/// A bound of BETWEEN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    Literal(i64),
    Param(u16),
    /// An expression: the range counts as one row.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rows {
    Count(u64),
    Between(Operand, Operand),
    /// One row if the key is at most this, else none.
    UpTo(Operand, i64),
    /// The variables whose names match the LIKE pattern; all if it is empty.
    Variables(Span),
}

impl Default for Rows {
    fn default() -> Self {
        Rows::Count(1)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Bytes between fields, after rows, before an escaped byte and around a field (0: none).
    Text { field: u8, line: u8, escape: u8, quote: u8 },
    /// PostgreSQL's binary COPY.
    Binary,
}

/// A bulk load: LOAD DATA LOCAL INFILE or COPY FROM STDIN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Load {
    pub(crate) format: Format,
    /// Fields per row; 0 if the first row decides.
    pub(crate) columns: u32,
    pub(crate) file: Span,
    /// Lines before the first row.
    pub(crate) skip: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) kind: Kind,
    /// Empty: the answer is no result set.
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Rows,
    pub(crate) affected: u64,
    /// The value of the column beside each parameter, if it is known.
    pub(crate) params: Vec<Option<Value>>,
    pub(crate) table: Span,
    pub(crate) load: Option<Load>,
    /// The words of PostgreSQL's command tag; the second one may be empty.
    pub(crate) tag: [Span; 2],
    /// Where the next statement of the text begins.
    pub(crate) end: usize,
    /// The column list of an INSERT; kept to reuse its memory.
    pub(crate) insert_columns: Vec<Span>,
}

impl Plan {
    /// Empties the plan and keeps its memory.
    pub(crate) fn clear(&mut self) {
        let Plan { mut columns, mut params, mut insert_columns, .. } = std::mem::take(self);
        columns.clear();
        params.clear();
        insert_columns.clear();
        *self = Plan { columns, params, insert_columns, ..Plan::default() };
    }

    /// True for a query of the catalog's tables.
    pub(crate) fn lists_tables(&self) -> bool {
        let first = self.columns.first().map(|column| column.value);
        self.rows == Rows::Count(1) && first == Some(Value::Text(names::TABLE))
    }

    /// Number of rows; `bound` gives a parameter's integer.
    pub(crate) fn row_count(&self, sql: &[u8], bound: impl Fn(u16) -> Option<i64>) -> u64 {
        let operand = |operand| match operand {
            Operand::Literal(value) => Some(value),
            Operand::Param(index) => bound(index),
            Operand::Unknown => None,
        };
        match self.rows {
            Rows::Count(count) => count.min(ROWS_MAX),
            Rows::Between(low, high) => match (operand(low), operand(high)) {
                (Some(low), Some(high)) if low > high => 0,
                (Some(low), Some(high)) => low.abs_diff(high).saturating_add(1).min(ROWS_MAX),
                _ => 1,
            },
            Rows::UpTo(key, last) => operand(key).is_none_or(|key| key <= last).into(),
            Rows::Variables(pattern) => self.variables(sql, pattern).count() as u64,
        }
    }

    pub(crate) fn variables<'a>(
        &self,
        sql: &'a [u8],
        pattern: Span,
    ) -> impl Iterator<Item = (&'static str, &'static str)> + use<'a> {
        let pattern = pattern.of(sql);
        names::variables(Dialect::Mysql)
            .filter(move |(name, _)| pattern.is_empty() || like(pattern, name.as_bytes()))
    }
}

pub(crate) fn write_decimal(out: &mut Vec<u8>, scaled: i64, digits: u8) {
    let (sign, one) = (if scaled < 0 { "-" } else { "" }, 10_u64.pow(digits.into()));
    let (whole, part) = (scaled.unsigned_abs() / one, scaled.unsigned_abs() % one);
    // Writing to a Vec cannot fail.
    let _ = match digits {
        0 => write!(out, "{sign}{whole}"),
        _ => write!(out, "{sign}{whole}.{part:0width$}", width = usize::from(digits)),
    };
}

pub(crate) fn is_decimal(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let points = digits.iter().filter(|&&byte| byte == b'.').count();
    let numbers = digits.iter().filter(|byte| byte.is_ascii_digit()).count();
    points <= 1 && numbers > 0 && numbers + points == digits.len()
}

/// LIKE with `%` and `_`, without regard to case.
fn like(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern, text) {
        ([], _) => text.is_empty(),
        ([b'%'], _) => true,
        ([b'%', rest @ ..], _) => (0..=text.len()).any(|at| like(rest, &text[at..])),
        ([b'\\', literal, rest @ ..], [byte, text @ ..]) if literal == byte => like(rest, text),
        ([b'_', rest @ ..], [_, text @ ..]) => like(rest, text),
        ([letter, rest @ ..], [byte, text @ ..]) => {
            letter.eq_ignore_ascii_case(byte) && like(rest, text)
        }
        _ => false,
    }
}
