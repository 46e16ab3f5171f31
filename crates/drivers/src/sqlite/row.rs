//! Rows and parameters between dyno and SQLite.

use crate::queue::{binding_types, calls_of_row};
use dyno_core::{AnswerRow, ColumnNames, Param};
use rusqlite::types::{ToSqlOutput, Value, ValueRef};

binding_types!(rusqlite, pub(super) struct SqliteRow, Integer, Real);

impl AnswerRow for SqliteRow<'_, '_> {
    calls_of_row!();

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
