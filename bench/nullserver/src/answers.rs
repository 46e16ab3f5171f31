//! The canned answers: `answers.txt`, and how a statement finds its own.

use crate::counters::Kind;
use crate::protocol::Checked;
use rustix::time::{ClockId, clock_gettime};
use std::sync::LazyLock;

/// Longer shapes are cut; no canned one is as long.
const SHAPE_BYTES_MAX: usize = 512;
/// Items of TPC-C, which orders some that don't exist (clause 2.4.1.5).
const ITEMS: i64 = 100_000;

/// One value of a row. The same value stands in every row.
#[derive(Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    /// 32 bits on the wire.
    Int(i32),
    /// 64 bits on the wire.
    Big(i64),
    /// A DECIMAL as it is written.
    Decimal(&'static str),
    Text(Box<[u8]>),
    /// CLOCK_MONOTONIC in nanoseconds when the answer is written, in 64 bits: the clock that load generators on the
    /// same machine measure with.
    Clock,
}

impl Value {
    fn from_cell(cell: &'static str) -> Self {
        if let Some((length, byte)) = cell.split_once('*') {
            return Value::Text(byte.repeat(length.parse().unwrap_or(0)).into_bytes().into());
        }
        let big = cell.strip_suffix('L').and_then(|digits| digits.parse().ok());
        match (cell, cell.parse(), big) {
            ("null", ..) => Value::Null,
            ("clock", ..) => Value::Clock,
            (_, Ok(int), _) => Value::Int(int),
            (_, _, Some(big)) => Value::Big(big),
            _ if is_decimal(cell.as_bytes()) => Value::Decimal(cell),
            _ => Value::Text(cell.as_bytes().into()),
        }
    }
}

pub(crate) fn clock_ns() -> i64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) value: Value,
}

/// A value that a client binds.
#[derive(Clone, Copy)]
pub(crate) enum BoundParam<'a> {
    Integer(i64),
    Bytes(&'a [u8]),
    /// Numbers and times, whose bytes are only counted.
    Opaque,
}

#[derive(Debug)]
pub(crate) struct CannedAnswer {
    shape: Vec<u8>,
    rows: u64,
    is_catalog: bool,
    pub(crate) columns: Vec<Column>,
    /// A letter for each parameter, see `answers.txt`.
    params: Vec<u8>,
}

static ANSWERS: LazyLock<Vec<CannedAnswer>> = LazyLock::new(|| {
    let lines = include_str!("answers.txt").lines();
    let is_answer = |line: &&str| !line.is_empty() && !line.starts_with('#');
    let mut answers: Vec<CannedAnswer> =
        lines.filter(is_answer).map(CannedAnswer::from_line).collect();
    answers.sort_by(|one, other| one.shape.cmp(&other.shape));
    answers
});

impl CannedAnswer {
    fn from_line(line: &'static str) -> Self {
        let (text, cells) = line.split_once(" -> ").unwrap_or((line, ""));
        let mut parts = text.split(':');
        let mut sql = parts.next().unwrap_or_default().to_owned();
        let mut params = Vec::new();
        for part in parts {
            params.push(part.as_bytes()[0]);
            sql.push('?');
            sql.push_str(&part[1..]);
        }
        let mut shape = Vec::new();
        scan(sql.as_bytes(), 0, &mut shape).expect("the canned statements are complete");
        let mut answer =
            CannedAnswer { shape, rows: 1, is_catalog: false, columns: Vec::new(), params };
        for cell in cells.split(' ') {
            match cell.split_once('=') {
                Some((name, value)) => {
                    answer.columns.push(Column { name, value: Value::from_cell(value) });
                }
                None if cell == "catalog" => answer.is_catalog = true,
                None => answer.rows = cell.parse().unwrap_or(1),
            }
        }
        answer
    }

    /// Finds the answer whose shape is the longest one that `shape` begins with.
    fn find(shape: &[u8]) -> Option<&'static Self> {
        let end = ANSWERS.partition_point(|answer| answer.shape.as_slice() <= shape);
        let mut before = ANSWERS[..end].iter().rev();
        before.find(|answer| shape.starts_with(&answer.shape))
    }

    /// Checks the value of the parameter `index`; false for the key of an item that doesn't exist.
    pub(crate) fn check(&self, index: usize, value: BoundParam<'_>) -> Checked<bool> {
        // A row that follows has the parameters of the first one.
        let Some(letter) = self.params.get(index % self.params.len().max(1)) else {
            return Ok(true);
        };
        let expected = match (letter, value) {
            (b'k', BoundParam::Integer(key)) => return Ok(key <= ITEMS),
            (b'i' | b'k', BoundParam::Bytes(text)) if integer(text).is_none() => "an integer",
            (b'n', BoundParam::Bytes(text)) if !is_decimal(text) => "a number",
            (b't', BoundParam::Integer(_)) => "a text",
            _ => return Ok(true),
        };
        Err(format!("parameter {} is not {expected}", index + 1))
    }
}

fn integer(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn is_decimal(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let points = digits.iter().filter(|&&byte| byte == b'.').count();
    let numbers = digits.iter().filter(|byte| byte.is_ascii_digit()).count();
    points <= 1 && numbers > 0 && numbers + points == digits.len()
}

/// The first word of a statement, its kind, and PostgreSQL's command tag.
const VERBS: [(&[u8], Kind, &str); 19] = [
    (b"select", Kind::Select, "SELECT "),
    (b"update", Kind::Update, "UPDATE "),
    (b"insert", Kind::Insert, "INSERT 0 "),
    (b"delete", Kind::Delete, "DELETE "),
    (b"begin", Kind::Begin, "BEGIN"),
    (b"commit", Kind::Commit, "COMMIT"),
    (b"rollback", Kind::Rollback, "ROLLBACK"),
    (b"start", Kind::Begin, "BEGIN"),
    (b"end", Kind::Commit, "COMMIT"),
    (b"set", Kind::Set, "SET"),
    (b"show", Kind::Show, "SHOW"),
    (b"use", Kind::Use, "USE"),
    (b"load", Kind::Load, "LOAD"),
    (b"copy", Kind::Load, "COPY "),
    (b"create", Kind::Ddl, "CREATE TABLE"),
    (b"drop", Kind::Ddl, "DROP TABLE"),
    (b"alter", Kind::Ddl, "ALTER TABLE"),
    (b"truncate", Kind::Ddl, "TRUNCATE TABLE"),
    (b"replace", Kind::Insert, "INSERT 0 "),
];

/// One statement, as far as its answer depends on it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Statement {
    pub(crate) kind: Kind,
    pub(crate) tag: &'static str,
    pub(crate) answer: Option<&'static CannedAnswer>,
    /// Number of parameters.
    pub(crate) params: u16,
    /// Rows that it writes.
    pub(crate) affected: u64,
    /// The offset at which the next statement of the text begins.
    pub(crate) end: usize,
    /// The first text in quotes, from its first byte to the closing quote: the file of LOAD DATA.
    pub(crate) quoted: (usize, usize),
}

impl Statement {
    /// Reads the statement of `sql` that begins at `start`. `shape` is overwritten.
    pub(crate) fn read(sql: &[u8], start: usize, shape: &mut Vec<u8>) -> Checked<Self> {
        let (mut statement, tuples) = scan(sql, start, shape)?;
        if shape.is_empty() {
            return Ok(statement);
        }
        let length = shape.iter().position(|byte| !byte.is_ascii_alphabetic());
        let verb = &shape[..length.unwrap_or(shape.len())];
        let entry = VERBS.iter().find(|(word, ..)| *word == verb);
        (statement.kind, statement.tag) =
            entry.map_or((Kind::Other, "OK"), |&(_, kind, tag)| (kind, tag));
        statement.affected = match statement.kind {
            Kind::Insert => tuples,
            Kind::Update | Kind::Delete => 1,
            _ => 0,
        };
        statement.answer = CannedAnswer::find(shape);
        Ok(statement)
    }

    /// Reads a text that must hold one statement or none.
    pub(crate) fn read_only_one(sql: &[u8], shape: &mut Vec<u8>) -> Checked<Self> {
        let statement = Self::read(sql, 0, shape)?;
        if statement.is_followed(sql) {
            return Err("a prepared text holds more than one statement".into());
        }
        Ok(statement)
    }

    /// True if another statement follows in the text.
    pub(crate) fn is_followed(&self, sql: &[u8]) -> bool {
        sql[self.end..].iter().any(|byte| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b';'))
    }

    pub(crate) fn columns(&self) -> &'static [Column] {
        self.answer.map_or(&[], |answer| &answer.columns)
    }

    /// Returns true for a query that no canned answer fits.
    pub(crate) fn is_unknown(&self) -> bool {
        self.columns().is_empty() && matches!(self.kind, Kind::Select | Kind::Show)
    }

    /// Rows of the answer; `is_empty` leaves those of the catalog out.
    pub(crate) fn rows(&self, is_empty: bool) -> u64 {
        self.answer
            .filter(|answer| !(answer.is_catalog && is_empty))
            .map_or(0, |answer| answer.rows)
    }
}

/// Writes the shape of a statement: in lower case, without blanks that separate no words and without casts; `?` in
/// place of each literal and parameter, `#` instead of the digits of a name. Counts the rows of VALUES.
fn scan(sql: &[u8], start: usize, shape: &mut Vec<u8>) -> Checked<(Statement, u64)> {
    shape.clear();
    let mut statement = Statement::default();
    let (mut at, mut is_spaced, mut last, mut tuples) = (start, false, b' ', 1);
    while let Some(&first) = sql.get(at) {
        at += 1;
        let byte = match first {
            b' ' | b'\t' | b'\r' | b'\n' => {
                is_spaced = true;
                continue;
            }
            b';' if shape.is_empty() => continue,
            b';' => break,
            b'\'' => {
                let end = end_of_quote(sql, at).ok_or("a quote is not closed")?;
                if statement.quoted == (0, 0) {
                    statement.quoted = (at, end);
                }
                at = end + 1;
                b'?'
            }
            b'?' => {
                statement.params = statement.params.checked_add(1).ok_or(TOO_MANY)?;
                b'?'
            }
            b'$' if sql.get(at).is_some_and(u8::is_ascii_digit) => {
                let end = token_end(sql, at, u8::is_ascii_digit);
                let number = integer(&sql[at..end]).and_then(|number| u16::try_from(number).ok());
                statement.params = statement.params.max(number.ok_or(TOO_MANY)?);
                at = end;
                b'?'
            }
            b'0'..=b'9' if is_word(last) && !is_spaced => {
                at = token_end(sql, at, u8::is_ascii_digit);
                b'#'
            }
            b'0'..=b'9' => {
                at = token_end(sql, at, |byte| byte.is_ascii_alphanumeric() || *byte == b'.');
                b'?'
            }
            b':' if sql.get(at) == Some(&b':') => {
                at = token_end(sql, at + 1, u8::is_ascii_alphanumeric);
                continue;
            }
            other => other.to_ascii_lowercase(),
        };
        tuples += u64::from(byte == b'(' && last == b',');
        if shape.len() < SHAPE_BYTES_MAX {
            if is_spaced && is_word(last) && is_word(byte) {
                shape.push(b' ');
            }
            shape.push(byte);
        }
        (is_spaced, last) = (false, byte);
    }
    statement.end = at;
    Ok((statement, tuples))
}

const TOO_MANY: &str = "a parameter number must lie between 1 and 65535";

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'?' | b'#')
}

fn token_end(sql: &[u8], start: usize, is_part: impl Fn(&u8) -> bool) -> usize {
    let length = sql[start..].iter().position(|byte| !is_part(byte));
    length.map_or(sql.len(), |length| start + length)
}

/// The offset of the quote that closes; a doubled one opens the text again.
fn end_of_quote(sql: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match sql.get(at)? {
            b'\\' => at += 2,
            b'\'' if sql.get(at + 1) == Some(&b'\'') => at += 2,
            b'\'' => return Some(at),
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(sql: &str) -> (Statement, String) {
        let mut shape = Vec::new();
        let statement = Statement::read(sql.as_bytes(), 0, &mut shape).expect(sql);
        (statement, String::from_utf8(shape).expect("UTF-8"))
    }

    #[test]
    fn a_shape_is_independent_of_values_blanks_and_case() {
        for (sql, shape) in [
            ("SELECT c FROM sbtest12 WHERE id=?", "select c from sbtest# where id=?"),
            ("select  c\nFROM sbtest1 WHERE id = 501;", "select c from sbtest# where id=?"),
            ("SELECT 'it''s', 'a\\'b', 1.5e3, $1::numeric", "select ?,?,?,?"),
            ("SELECT s_dist_01 FROM t LIMIT 1", "select s_dist_# from t limit ?"),
        ] {
            assert_eq!(read(sql).1, shape);
        }
    }

    #[test]
    fn a_statement_knows_its_parameters_and_its_rows() {
        let (insert, _) = read("INSERT INTO t (a, b) VALUES (?, ?), (?, '),(') ,(1, 2)");
        assert_eq!((insert.kind, insert.params, insert.affected), (Kind::Insert, 3, 3));
        let (select, _) = read("SELECT c FROM sbtest1 WHERE id BETWEEN $2 AND $1 ORDER BY c");
        assert_eq!((select.params, select.rows(false), select.columns().len()), (2, 100, 1));
        let (tables, _) = read("SHOW TABLES");
        assert_eq!((tables.rows(false), tables.rows(true)), (1, 0));
        assert!(read("SELECT nothing FROM nowhere").0.is_unknown());
        assert!(!read("ANALYZE t").0.is_unknown());
    }

    #[test]
    fn statements_of_one_text_are_taken_one_by_one() {
        let sql = b"BEGIN; UPDATE t SET a = ';'; COMMIT ; ";
        let (mut shape, mut start, mut kinds) = (Vec::new(), 0, Vec::new());
        while start < sql.len() {
            let statement = Statement::read(sql, start, &mut shape).expect("valid");
            kinds.push(statement.kind);
            start = statement.end;
        }
        assert_eq!(kinds, [Kind::Begin, Kind::Update, Kind::Commit, Kind::Empty]);
        assert!(Statement::read_only_one(b"SELECT 1; ", &mut shape).is_ok());
        assert!(Statement::read_only_one(b"SELECT 1; SELECT 2", &mut shape).is_err());
    }

    #[test]
    fn broken_texts_are_faults_not_panics() {
        for sql in ["SELECT 'x", "SELECT 'a\\", "SELECT $99999"] {
            Statement::read(sql.as_bytes(), 0, &mut Vec::new()).expect_err(sql);
        }
    }

    #[test]
    fn every_parameter_of_a_canned_statement_has_a_known_letter() {
        for answer in ANSWERS.iter() {
            assert!(answer.params.iter().all(|letter| b"iknt".contains(letter)), "{answer:?}");
            assert!(answer.shape.len() < SHAPE_BYTES_MAX && answer.columns.len() <= 64);
        }
    }
}
