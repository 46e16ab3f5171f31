//! Rows and parameters between dyno and SQLite.

use dyno_core::{AnswerRow, ColumnNames, Param};
use rusqlite::types::{ToSqlOutput, Value, ValueRef};

pub(super) struct Names<'a, 'c>(pub(super) &'a rusqlite::Statement<'c>);

impl ColumnNames for Names<'_, '_> {
    fn count(&self) -> usize {
        self.0.column_count()
    }

    fn name(&self, column: usize) -> &str {
        self.0.column_name(column).unwrap_or("")
    }
}

pub(super) struct SqliteRow<'a, 's> {
    pub(super) row: &'a rusqlite::Row<'s>,
    pub(super) columns: usize,
}

impl SqliteRow<'_, '_> {
    fn value(&self, column: usize) -> ValueRef<'_> {
        self.row.get_ref(column).unwrap_or(ValueRef::Null)
    }

    fn parsed<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
        std::str::from_utf8(text).ok()?.trim().parse().ok()
    }
}

/// A parameter that is bound without a copy.
pub(super) struct Bound<'a>(pub(super) Param<'a>);

impl rusqlite::ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self.0 {
            Param::Null => ToSqlOutput::Owned(Value::Null),
            Param::Int(value) => ToSqlOutput::Owned(Value::Integer(value)),
            Param::Double(value) => ToSqlOutput::Owned(Value::Real(value)),
            Param::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text)),
        })
    }
}

impl AnswerRow for SqliteRow<'_, '_> {
    fn columns(&self) -> usize {
        self.columns
    }

    fn is_null(&self, column: usize) -> bool {
        self.value(column) == ValueRef::Null
    }

    fn bytes(&self, column: usize) -> Option<&[u8]> {
        match self.value(column) {
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(bytes),
            _ => None,
        }
    }

    fn int(&self, column: usize) -> Option<i64> {
        match self.value(column) {
            ValueRef::Integer(value) => Some(value),
            ValueRef::Text(text) => Self::parsed(text),
            _ => None,
        }
    }

    fn double(&self, column: usize) -> Option<f64> {
        match self.value(column) {
            ValueRef::Integer(value) => Some(value as f64),
            ValueRef::Real(value) => Some(value),
            ValueRef::Text(text) => Self::parsed(text),
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
