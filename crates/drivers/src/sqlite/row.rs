//! Rows and parameters between dyno and SQLite.

use dyno_core::{Columns, Param, Row};
use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};

pub(super) struct Names<'a, 'c>(pub(super) &'a rusqlite::Statement<'c>);

impl Columns for Names<'_, '_> {
    fn count(&self) -> usize {
        self.0.column_count()
    }

    fn name(&self, column: usize) -> &str {
        self.0.column_name(column).unwrap_or_default()
    }
}

pub(super) struct SqliteRow<'a, 's> {
    row: &'a rusqlite::Row<'s>,
    columns: usize,
}

impl<'a, 's> SqliteRow<'a, 's> {
    pub(super) fn new(row: &'a rusqlite::Row<'s>, columns: usize) -> Self {
        SqliteRow { row, columns }
    }

    fn value(&self, column: usize) -> ValueRef<'_> {
        self.row.get_ref(column).unwrap_or(ValueRef::Null)
    }
}

impl Row for SqliteRow<'_, '_> {
    fn columns(&self) -> usize {
        self.columns
    }

    fn is_null(&self, column: usize) -> bool {
        self.value(column) == ValueRef::Null
    }

    fn int(&self, column: usize) -> Option<i64> {
        match self.value(column) {
            ValueRef::Integer(value) => Some(value),
            ValueRef::Text(text) => std::str::from_utf8(text).ok()?.trim().parse().ok(),
            _ => None,
        }
    }

    fn double(&self, column: usize) -> Option<f64> {
        match self.value(column) {
            ValueRef::Integer(value) => Some(value as f64),
            ValueRef::Real(value) => Some(value),
            ValueRef::Text(text) => std::str::from_utf8(text).ok()?.trim().parse().ok(),
            _ => None,
        }
    }

    fn bytes(&self, column: usize) -> Option<&[u8]> {
        match self.value(column) {
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(bytes),
            _ => None,
        }
    }

    fn string(&self, column: usize) -> Option<String> {
        match self.value(column) {
            ValueRef::Null => None,
            ValueRef::Integer(value) => Some(value.to_string()),
            // Debug keeps the point of whole numbers, as SQLite's own shell does: `1.0`.
            ValueRef::Real(value) => Some(format!("{value:?}")),
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
                Some(String::from_utf8_lossy(bytes).into_owned())
            }
        }
    }
}

/// A parameter as rusqlite binds it, without a copy.
pub(super) struct Bound<'a>(pub(super) Param<'a>);

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self.0 {
            Param::Null => ToSqlOutput::Owned(Value::Null),
            Param::Int(value) => ToSqlOutput::Owned(Value::Integer(value)),
            Param::Double(value) => ToSqlOutput::Owned(Value::Real(value)),
            Param::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text)),
        })
    }
}
