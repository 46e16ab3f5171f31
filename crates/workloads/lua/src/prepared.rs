//! The statements that a script has prepared, by the numbers that it knows them by.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;

use dyno_core::{
    AnswerRow, AnswerTable, ColumnNames, DbError, DbResult, KeptColumn, Param, ParamType,
    ReadKeptRow, Rows, Statement, StatementTable,
};
use mlua::{Lua, Table};

use crate::raw::LuaShared;

/// This number of closed statements stays prepared, for a script that prepares the same texts again and again.
const CLOSED_MAX: usize = 64;

/// A statement that a script has prepared on one of its connections.
pub(crate) struct ScriptStatement {
    pub(crate) connection: usize,
    /// With the dialect's placeholders.
    pub(crate) sql: Vec<u8>,
    pub(crate) placeholders: usize,
    pub(crate) types: Vec<ParamType>,
    /// `None` until it is prepared, and again after its connection was lost.
    pub(crate) server: Option<Statement>,
    /// The script has closed it; it waits for the same text.
    is_closed: bool,
}

impl ScriptStatement {
    pub(crate) fn new(connection: usize, sql: Vec<u8>, placeholders: usize) -> Self {
        let types = vec![ParamType::Inferred; placeholders];
        ScriptStatement { connection, sql, placeholders, types, server: None, is_closed: false }
    }
}

/// The statements of all connections of a state.
#[derive(Default)]
pub(crate) struct ScriptStatements {
    table: StatementTable<ScriptStatement>,
    /// Unused ones, the one first that was closed first.
    closed: VecDeque<Statement>,
}

/// The server's statement that is still to be closed.
pub(crate) type ToClose = (usize, Statement);

#[cold]
fn closed_statement() -> DbError {
    DbError::workload("the statement is closed")
}

/// A script's number; one that is too large is that of no statement.
fn to_statement(number: usize) -> Statement {
    Statement(u32::try_from(number).unwrap_or(u32::MAX))
}

impl ScriptStatements {
    /// The statement with this number; fails if it was closed.
    #[inline]
    pub(crate) fn get(&self, number: usize) -> DbResult<&ScriptStatement> {
        self.table.get(to_statement(number)).ok_or_else(closed_statement)
    }

    pub(crate) fn get_mut(&mut self, number: usize) -> DbResult<&mut ScriptStatement> {
        self.table.get_mut(to_statement(number)).ok_or_else(closed_statement)
    }

    /// The number of a closed statement with this text, which is open now. Open ones are not shared: each has types of
    /// its own.
    pub(crate) fn reopen(&mut self, connection: usize, sql: &[u8]) -> Option<usize> {
        let mut statements = self.table.all_mut();
        let (statement, known) = statements.find(|(_, known)| {
            known.is_closed && known.connection == connection && known.sql == sql
        })?;
        known.is_closed = false;
        self.closed.retain(|closed| *closed != statement);
        Some(statement.0 as usize)
    }

    /// Keeps a statement; returns its number.
    pub(crate) fn add(&mut self, prepared: ScriptStatement) -> usize {
        self.table.add(prepared).0 as usize
    }

    /// Keeps it for the next one of its text. Returns what is to be closed on the server: what was closed longest ago,
    /// if too many are closed.
    pub(crate) fn close(&mut self, number: usize) -> Option<ToClose> {
        let statement = to_statement(number);
        let prepared = self.table.get_mut(statement).filter(|known| !known.is_closed)?;
        prepared.is_closed = true;
        if prepared.server.is_none() {
            self.table.remove(statement);
            return None;
        }
        self.closed.push_back(statement);
        if self.closed.len() <= CLOSED_MAX {
            return None;
        }
        let oldest = self.closed.pop_front().and_then(|oldest| self.table.remove(oldest))?;
        Some((oldest.connection, oldest.server?))
    }

    /// A connection's statements are no longer on the server. Returns those that its session had.
    pub(crate) fn forget(&mut self, connection: usize) -> Vec<Statement> {
        let mut had = Vec::new();
        let mut unused = Vec::new();
        for (statement, prepared) in self.table.all_mut() {
            if prepared.connection == connection {
                had.extend(prepared.server.take());
                unused.extend(prepared.is_closed.then_some(statement));
            }
        }
        for statement in unused {
            self.table.remove(statement);
            self.closed.retain(|closed| *closed != statement);
        }
        had
    }
}

/// The values of a statement's parameters.
#[derive(Debug, Default)]
pub(crate) struct BoundValues {
    list: Vec<BoundValue>,
    texts: Vec<u8>,
}

/// A parameter that becomes part of a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Literal<'a> {
    pub(crate) param: Param<'a>,
    /// An integer that needs all 64 bits, and none for its sign.
    pub(crate) unsigned: Option<u64>,
}

#[derive(Debug)]
enum BoundValue {
    Null,
    Number(f64),
    /// A part of `texts`.
    Text(Range<usize>),
}

const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

/// Longer texts give their memory back: a bulk insert has half a megabyte.
pub(crate) const KEPT_BYTES: usize = 1 << 16;

impl BoundValues {
    /// Removes all values, keeping a limited amount of memory.
    pub(crate) fn clear(&mut self) {
        self.list.clear();
        self.texts.clear();
        self.texts.shrink_to(KEPT_BYTES);
    }

    /// Number of values.
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn push_null(&mut self) {
        self.list.push(BoundValue::Null);
    }

    #[inline]
    pub(crate) fn push_number(&mut self, number: f64) {
        self.list.push(BoundValue::Number(number));
    }

    #[inline]
    pub(crate) fn push_text(&mut self, text: &[u8]) {
        let begin = self.texts.len();
        self.texts.extend_from_slice(text);
        self.list.push(BoundValue::Text(begin..self.texts.len()));
    }

    /// The values as parameters of these types.
    pub(crate) fn params<'a>(
        &'a self,
        types: &'a [ParamType],
    ) -> impl Iterator<Item = Param<'a>> + 'a {
        self.list.iter().zip(types).map(|(value, kind)| match (value, kind) {
            (BoundValue::Null, _) => Param::Null,
            (BoundValue::Number(number), ParamType::Int) => Param::Int(to_int(*number)),
            (BoundValue::Number(number), _) => Param::Double(*number),
            (BoundValue::Text(text), ParamType::Int) => {
                let digits = &self.texts[text.clone()];
                parse_int(digits).map_or(Param::Text(digits), Param::Int)
            }
            (BoundValue::Text(text), _) => Param::Text(&self.texts[text.clone()]),
        })
    }

    /// The bound values as literals of a text.
    pub(crate) fn literals<'a>(
        &'a self,
        types: &'a [ParamType],
    ) -> impl Iterator<Item = Literal<'a>> + 'a {
        let numbers = self.list.iter().zip(types).map(|(value, kind)| match (value, kind) {
            (BoundValue::Number(number), ParamType::Int) => beyond_63_bits(*number),
            (BoundValue::Text(text), ParamType::Int) => parse_unsigned(&self.texts[text.clone()]),
            _ => None,
        });
        self.params(types).zip(numbers).map(|(param, unsigned)| Literal { param, unsigned })
    }
}

/// The conversion of C on x86-64: without the fraction. An unsigned number keeps its bits. NaN and what 64 bits don't
/// hold become the lowest number.
#[inline]
fn to_int(number: f64) -> i64 {
    if (-TWO_TO_63..TWO_TO_63).contains(&number) {
        number as i64
    } else {
        beyond_63_bits(number).map_or(i64::MIN, |number| number as i64)
    }
}

/// The unsigned number of 64 bits that no signed one holds.
fn beyond_63_bits(number: f64) -> Option<u64> {
    (TWO_TO_63..2.0 * TWO_TO_63).contains(&number).then_some(number as u64)
}

/// A 64-bit number that has come as its digits. An unsigned one keeps its bits, as in the original.
fn parse_int(digits: &[u8]) -> Option<i64> {
    let signed = std::str::from_utf8(digits).ok()?.parse().ok();
    signed.or_else(|| parse_unsigned(digits).map(|number| number as i64))
}

/// One of these that no signed number holds.
fn parse_unsigned(digits: &[u8]) -> Option<u64> {
    let number: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    i64::try_from(number).is_err().then_some(number)
}

thread_local! {
    /// Buffers that no result of this thread holds, the most recently used one last. A script that fetches nothing
    /// gives its buffers back before another worker's answer comes, so that all of a loop use the same ones: a buffer
    /// for each would push the scripts' own tables out of the processor's caches.
    static SPARE: RefCell<Spare> = const { RefCell::new(Vec::new()) };
}

/// Boxed, since a result moves with each answer: one pointer instead of nine.
type Spare = Vec<Box<Buffers>>;

#[derive(Debug, Default)]
struct Buffers {
    bytes: Vec<u8>,
    /// The end of each value in `bytes`; `None` is NULL.
    ends: Vec<Option<usize>>,
    /// Columns of rows that were kept as they came.
    columns: Vec<KeptColumn>,
}

/// A result set: `nrows`, `nfields`, `fetch_row()`, `free()`.
#[derive(Debug, Default)]
pub(crate) struct ResultSet {
    /// `None` without columns, and when they are freed.
    kept: Option<Box<Buffers>>,
    /// Reads rows that were kept as they came, then without their ends.
    read: Option<ReadKeptRow>,
    columns: usize,
    rows: usize,
    /// The row and the byte that `fetch_row` continues with.
    next: (usize, usize),
    /// The following rows belong to a later result set.
    is_over: bool,
    /// Bytes that are kept at most.
    bytes_max: usize,
}

/// The results of all connections of a state, by their numbers.
#[derive(Debug)]
pub(crate) struct ConnectionResults {
    list: RefCell<Vec<ResultSet>>,
    bytes_max: usize,
}

impl ConnectionResults {
    /// Results that have as much memory as the state itself, `memory_max` bytes; 0 means no limit.
    pub(crate) fn new(memory_max: usize) -> Self {
        let bytes_max = match memory_max {
            0 => usize::MAX,
            limit => limit.max(AnswerTable::WORKLOAD_BYTES_MAX),
        };
        ConnectionResults { list: RefCell::default(), bytes_max }
    }

    /// Takes the buffers of a connection's result for the next one.
    pub(crate) fn take_buffers(&self, connection: usize) -> ResultSet {
        let mut results = self.list.borrow_mut();
        let mut result = results.get_mut(connection).map(std::mem::take).unwrap_or_default();
        result.clear();
        result.bytes_max = self.bytes_max;
        result
    }

    /// Keeps the result of a connection's statement.
    pub(crate) fn store(&self, connection: usize, result: ResultSet) {
        let mut results = self.list.borrow_mut();
        if results.len() <= connection {
            results.resize_with(connection + 1, ResultSet::default);
        }
        results[connection] = result;
    }

    /// Lends a connection's result, which [`ConnectionResults::give_back`] ends.
    pub(crate) fn lend_result(&self, connection: usize) -> ResultSet {
        let mut results = self.list.borrow_mut();
        results.get_mut(connection).map(std::mem::take).unwrap_or_default()
    }

    pub(crate) fn give_back(&self, connection: usize, result: ResultSet) {
        if let Some(place) = self.list.borrow_mut().get_mut(connection) {
            *place = result;
        }
    }
}

/// Gives the prelude `size` and `free`.
pub(crate) fn offer_rows(shared: &Rc<LuaShared>, lua: &Lua, host: &Table) -> mlua::Result<()> {
    let shared_data = Rc::clone(shared);
    let size = lua.create_function(move |_, connection: usize| {
        let results = shared_data.results.list.borrow();
        Ok(results.get(connection).map_or((0, 0), |result| (result.rows, result.columns)))
    })?;
    let shared_data = Rc::clone(shared);
    let free = lua.create_function(move |_, connection: usize| {
        if let Some(result) = shared_data.results.list.borrow_mut().get_mut(connection) {
            result.free();
        }
        Ok(true)
    })?;
    host.set("size", size)?;
    host.set("free", free)
}

impl Rows for ResultSet {
    const DESCRIBED: bool = true;

    /// Among several result sets the first one with columns is kept, as in the original.
    fn columns<C: ColumnNames>(&mut self, columns: &C) {
        if self.columns > 0 {
            self.is_over = true;
        } else {
            self.clear();
            self.columns = columns.count();
            self.kept = Some(SPARE.with_borrow_mut(Vec::pop).unwrap_or_default());
        }
    }

    fn row<R: AnswerRow>(&mut self, row: &R) {
        let Some(kept) = self.kept.as_deref_mut().filter(|_| !self.is_over) else { return };
        self.rows += 1;
        for column in 0..self.columns {
            if row.is_null(column) {
                kept.ends.push(None);
                continue;
            }
            match row.bytes(column) {
                Some(bytes) => kept.bytes.extend_from_slice(bytes),
                None => kept.bytes.extend(row.string(column).unwrap_or_default().into_bytes()),
            }
            kept.ends.push(Some(kept.bytes.len()));
        }
    }

    /// Most scripts never fetch what they select.
    const KEPT: bool = true;

    fn kept_columns(&mut self, columns: impl Iterator<Item = KeptColumn>, read: ReadKeptRow) {
        if let Some(kept) = self.kept.as_deref_mut().filter(|_| !self.is_over) {
            kept.columns.extend(columns);
            self.read = Some(read);
        }
    }

    #[inline]
    fn kept_rows(&mut self, rows: &[u8], count: usize) {
        if let Some(kept) = self.kept.as_deref_mut().filter(|_| !self.is_over) {
            self.rows += count;
            kept.bytes.extend_from_slice(rows);
        }
    }

    fn overflow(&self) -> Option<usize> {
        let buffers = self.kept.as_deref()?;
        let kept_bytes = buffers.bytes.len() + size_of_val(buffers.ends.as_slice());
        (kept_bytes > self.bytes_max).then_some(self.bytes_max)
    }
}

impl Buffers {
    /// Buffers stay, for the next rows, unless they are large.
    fn clear(&mut self) {
        const KEPT_BYTES: usize = 1 << 20;
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES);
        self.ends.clear();
        self.ends.shrink_to(KEPT_BYTES / 16);
        self.columns.clear();
    }
}

impl ResultSet {
    /// Frees the rows and makes the result empty.
    fn clear(&mut self) {
        self.free();
        (self.columns, self.rows, self.next, self.is_over) = (0, 0, (0, 0), false);
    }

    /// Gives its buffers back; its size is still known.
    fn free(&mut self) {
        if let Some(mut kept) = self.kept.take() {
            kept.clear();
            SPARE.with_borrow_mut(|spare| spare.push(kept));
        }
        self.read = None;
        self.next.0 = self.rows;
    }

    /// The columns of the row that is next; `None` after the last one.
    pub(crate) fn columns_of_next(&self) -> Option<usize> {
        (self.next.0 < self.rows).then_some(self.columns)
    }

    /// Continues to the next row, which there is, and hands on its values: numbers of columns, and `None` for NULL.
    /// False where the server has sent something else.
    pub(crate) fn next_row(&mut self, mut hand_on: impl FnMut(usize, Option<&[u8]>)) -> bool {
        let (row, mut begin) = self.next;
        let Some(kept) = self.kept.as_deref() else { return false };
        if let Some(read) = self.read {
            let remaining = kept.bytes.get(begin..).unwrap_or_default();
            let consumed = read(remaining, &kept.columns, &mut hand_on);
            self.next = (row + 1, begin + consumed.unwrap_or(0));
            return consumed.is_some();
        }
        let ends = kept.ends.iter().skip(row * self.columns).take(self.columns);
        for (column, end) in ends.enumerate() {
            hand_on(column, end.and_then(|end| kept.bytes.get(begin..end)));
            begin = end.unwrap_or(begin);
        }
        self.next = (row + 1, begin);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Prepares a text on connection 0, also on the server.
    fn prepare(statements: &mut ScriptStatements, text: usize) -> usize {
        let sql = format!("SELECT {text}").into_bytes();
        if let Some(number) = statements.reopen(0, &sql) {
            return number;
        }
        let number = statements.add(ScriptStatement::new(0, sql, 0));
        statements.get_mut(number).expect("added").server = Some(Statement(text as u32));
        number
    }

    #[test]
    fn closed_statements_stay_for_the_same_text_until_there_are_too_many() {
        let mut statements = ScriptStatements::default();
        let numbers: Vec<usize> = (0..CLOSED_MAX).map(|n| prepare(&mut statements, n)).collect();
        assert!(numbers.iter().all(|number| statements.close(*number).is_none()));
        // Used again, it is the one that was closed last.
        assert_eq!(prepare(&mut statements, 0), numbers[0]);
        assert_eq!(statements.close(numbers[0]), None);
        let extra = prepare(&mut statements, 100);
        assert_eq!(statements.close(extra), Some((0, Statement(1))));
        for text in 101..1_000 {
            let number = prepare(&mut statements, text);
            assert!(number <= CLOSED_MAX, "{number}");
            assert!(statements.close(number).is_some());
        }
        assert_eq!(statements.closed.len(), CLOSED_MAX);
        assert_eq!(statements.close(usize::MAX), None);
    }

    #[test]
    fn open_statements_of_one_text_are_two() {
        let mut statements = ScriptStatements::default();
        let (one, other) = (prepare(&mut statements, 1), prepare(&mut statements, 1));
        assert_ne!(one, other);
        assert_eq!((statements.close(one), statements.closed.len()), (None, 1));
        // Closed once too often.
        assert_eq!((statements.close(one), statements.closed.len()), (None, 1));
        assert_eq!((statements.close(other), statements.closed.len()), (None, 2));
        assert_eq!((prepare(&mut statements, 1), statements.closed.len()), (one, 1));
    }

    #[test]
    fn a_lost_connection_keeps_what_the_script_still_uses() {
        let mut statements = ScriptStatements::default();
        let (used, closed) = (prepare(&mut statements, 1), prepare(&mut statements, 2));
        let elsewhere = statements.add(ScriptStatement::new(1, b"SELECT 1".to_vec(), 0));
        assert_eq!(statements.close(closed), None);
        assert_eq!(statements.forget(0), [Statement(1), Statement(2)]);
        assert!(statements.get(used).is_ok_and(|kept| kept.server.is_none()));
        assert!(statements.get(closed).is_err() && statements.get(elsewhere).is_ok());
        assert_eq!((statements.close(used), statements.closed.len()), (None, 0));
        assert!(statements.get(used).is_err(), "it was not on the server");
    }
}
