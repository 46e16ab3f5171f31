//! The rows of answers, as a script sees them: each connection has one result, which its next statement replaces, as in
//! the original.

use crate::raw::LuaShared;
use dyno_core::{AnswerRow, AnswerTable, ColumnNames, KeptColumn, ReadKeptRow, Rows};
use mlua::{Lua, Table};
use std::cell::RefCell;
use std::rc::Rc;

thread_local! {
    /// What no result of this thread holds, the one last that was used last. A script that fetches nothing gives its
    /// buffers back before another worker's answer comes, so that all of a loop use the same ones: a buffer for each
    /// would push the scripts' own tables out of the processor's caches.
    static SPARE: RefCell<Spare> = const { RefCell::new(Vec::new()) };
}

/// In boxes, since a result moves with each answer: one pointer instead of nine.
type Spare = Vec<Box<Buffers>>;

#[derive(Debug, Default)]
struct Buffers {
    bytes: Vec<u8>,
    /// The end of each value in `bytes`; `None` is NULL.
    ends: Vec<Option<usize>>,
    /// Of rows that were kept as they came.
    columns: Vec<KeptColumn>,
}

/// A result set: `nrows`, `nfields`, `fetch_row()`, `free()`.
#[derive(Debug, Default)]
pub(crate) struct ResultSet {
    /// `None` without columns, and when they are freed.
    kept: Option<Box<Buffers>>,
    /// Reads rows that were kept as they came, and then there are no ends.
    read: Option<ReadKeptRow>,
    columns: usize,
    rows: usize,
    /// The row and the byte that `fetch_row` goes on with.
    next: (usize, usize),
    /// What comes belongs to a later result set.
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
    /// Results that have as much memory as the state itself, `memory_max` bytes.
    pub(crate) fn new(memory_max: usize) -> Self {
        let bytes_max = memory_max.max(AnswerTable::WORKLOAD_BYTES_MAX);
        ConnectionResults { list: RefCell::default(), bytes_max }
    }

    /// Takes the buffers of a connection's result for the next one.
    pub(crate) fn take(&self, connection: usize) -> ResultSet {
        let mut results = self.list.borrow_mut();
        let mut taken = results.get_mut(connection).map(std::mem::take).unwrap_or_default();
        taken.clear();
        taken.bytes_max = self.bytes_max;
        taken
    }

    /// Keeps the result of a connection's statement.
    pub(crate) fn keep(&self, connection: usize, result: ResultSet) {
        let mut results = self.list.borrow_mut();
        if results.len() <= connection {
            results.resize_with(connection + 1, ResultSet::default);
        }
        results[connection] = result;
    }

    /// Lends a connection's result, which [`ConnectionResults::give_back`] ends.
    pub(crate) fn lend(&self, connection: usize) -> ResultSet {
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
pub(crate) fn offer(shared: &Rc<LuaShared>, lua: &Lua, host: &Table) -> mlua::Result<()> {
    let of = Rc::clone(shared);
    let size = lua.create_function(move |_, connection: usize| {
        let results = of.results.list.borrow();
        Ok(results.get(connection).map_or((0, 0), |result| (result.rows, result.columns)))
    })?;
    let of = Rc::clone(shared);
    let free = lua.create_function(move |_, connection: usize| {
        if let Some(result) = of.results.list.borrow_mut().get_mut(connection) {
            result.free();
        }
        Ok(true)
    })?;
    host.set("size", size)?;
    host.set("free", free)
}

impl Rows for ResultSet {
    const DESCRIBED: bool = true;

    /// Of several result sets the first one with columns is kept, as in the original.
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
        let kept = self.kept.as_deref()?;
        let kept_bytes = kept.bytes.len() + size_of_val(kept.ends.as_slice());
        (kept_bytes > self.bytes_max).then_some(self.bytes_max)
    }
}

impl Buffers {
    /// They stay, for the next rows, unless they are large.
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

    /// Goes on to the next row, which there is, and hands on its values: numbers of columns, and `None` for NULL. False
    /// where the server has sent something else.
    pub(crate) fn next_row(&mut self, mut hand_on: impl FnMut(usize, Option<&[u8]>)) -> bool {
        let (row, mut begin) = self.next;
        let Some(kept) = self.kept.as_deref() else { return false };
        if let Some(read) = self.read {
            let rest = kept.bytes.get(begin..).unwrap_or_default();
            let taken = read(rest, &kept.columns, &mut hand_on);
            self.next = (row + 1, begin + taken.unwrap_or(0));
            return taken.is_some();
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
