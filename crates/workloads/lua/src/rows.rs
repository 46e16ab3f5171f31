//! The rows of answers, as a script sees them: each connection has one result, which its next statement replaces, as in
//! the original.

use dyno_core::{AnswerRow, ColumnNames, Rows};
use mlua::{Lua, Table};
use std::cell::RefCell;
use std::rc::Rc;

/// A result set: `nrows`, `nfields`, `fetch_row()`, `free()`.
#[derive(Debug, Default)]
pub(crate) struct ResultSet {
    bytes: Vec<u8>,
    /// The end of each value in `bytes`; `None` is NULL.
    ends: Vec<Option<usize>>,
    columns: usize,
    rows: usize,
    /// The row and the byte that `fetch_row` goes on with.
    next: (usize, usize),
}

/// The results of all connections of a state, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct ConnectionResults(RefCell<Vec<ResultSet>>);

impl ConnectionResults {
    /// Takes the buffers of a connection's result for the next one.
    pub(crate) fn take(&self, connection: usize) -> ResultSet {
        let mut results = self.0.borrow_mut();
        let mut taken = results.get_mut(connection).map(std::mem::take).unwrap_or_default();
        taken.clear();
        taken
    }

    /// Keeps a connection's result; returns the numbers of its rows and columns.
    pub(crate) fn keep(&self, connection: usize, result: ResultSet) -> (usize, usize) {
        let size = (result.rows, result.columns);
        let mut results = self.0.borrow_mut();
        if results.len() <= connection {
            results.resize_with(connection + 1, ResultSet::default);
        }
        results[connection] = result;
        size
    }

    /// Gives the prelude `fetch` and `free`.
    pub(crate) fn offer(self: &Rc<Self>, lua: &Lua, host: &Table) -> mlua::Result<()> {
        let results = Rc::clone(self);
        let fetch = lua.create_function(move |lua, connection: usize| {
            let mut results = results.0.borrow_mut();
            results.get_mut(connection).map_or(Ok(None), |result| result.fetch(lua))
        })?;
        let results = Rc::clone(self);
        let free = lua.create_function(move |_, connection: usize| {
            if let Some(result) = results.0.borrow_mut().get_mut(connection) {
                *result = ResultSet::default();
            }
            Ok(())
        })?;
        host.set("fetch", fetch)?;
        host.set("free", free)
    }
}

impl Rows for ResultSet {
    const DESCRIBED: bool = true;

    fn columns<C: ColumnNames>(&mut self, columns: &C) {
        self.columns = columns.count();
    }

    fn row<R: AnswerRow>(&mut self, row: &R) {
        self.columns = row.columns();
        self.rows += 1;
        for column in 0..self.columns {
            if row.is_null(column) {
                self.ends.push(None);
                continue;
            }
            match row.bytes(column) {
                Some(bytes) => self.bytes.extend_from_slice(bytes),
                None => self.bytes.extend(row.string(column).unwrap_or_default().into_bytes()),
            }
            self.ends.push(Some(self.bytes.len()));
        }
    }
}

impl ResultSet {
    /// Buffers stay, for the next rows, unless they are large.
    fn clear(&mut self) {
        const KEPT_BYTES: usize = 1 << 20;
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES);
        self.ends.clear();
        self.ends.shrink_to(KEPT_BYTES / 16);
        (self.columns, self.rows, self.next) = (0, 0, (0, 0));
    }

    /// The next row as a list of texts, in which NULL is missing.
    fn fetch(&mut self, lua: &Lua) -> mlua::Result<Option<Table>> {
        let (row, mut begin) = self.next;
        if row >= self.rows {
            return Ok(None);
        }
        let table = lua.create_table_with_capacity(self.columns, 0)?;
        for column in 0..self.columns {
            if let Some(end) = self.ends[row * self.columns + column] {
                table.raw_set(column + 1, lua.create_string(&self.bytes[begin..end])?)?;
                begin = end;
            }
        }
        self.next = (row + 1, begin);
        Ok(Some(table))
    }
}
