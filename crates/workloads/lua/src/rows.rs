//! The rows of an answer, as a script sees them.

use dyno_core::{AnswerRow, ColumnNames, Rows};
use mlua::{Lua, Table, UserData, UserDataFields, UserDataMethods, Value};

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

impl UserData for ResultSet {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_field_method_get("nrows", |_, this| Ok(this.rows));
        fields.add_field_method_get("nfields", |_, this| Ok(this.columns));
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_method_mut("fetch_row", |lua, this, ()| this.fetch(lua));
        methods.add_method_mut("free", |_, this, ()| {
            *this = ResultSet { columns: this.columns, ..ResultSet::default() };
            Ok(Value::Nil)
        });
    }
}
