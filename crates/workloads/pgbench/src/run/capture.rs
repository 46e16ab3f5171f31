//! What `\gset` and `\aset` take from the answers to a statement.

use super::variables::Variables;
use crate::script::{Names, Store, is_variable_name};
use dyno_core::{AnswerRow, ColumnNames, Executed, Rows};
use std::io::Write;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Variable(u32),
    /// A variable that no script mentions.
    Nobody,
    /// Its name can't be one of a variable.
    Invalid,
}

/// The memory of one storing statement of one client: what was stored, and for which columns.
#[derive(Clone, Debug, Default)]
pub(super) struct Captured {
    /// The names of the columns, one after the other, and what becomes of them.
    names: String,
    columns: Vec<(usize, Target)>,
    /// Where the name of a variable is put together.
    name: String,
    /// Variables and the ends of their values in `text`.
    values: Vec<(u32, usize)>,
    text: Vec<u8>,
    /// Values of results that are complete, and the end of their text.
    kept: (usize, usize),
    /// Rows of the last result that is complete.
    rows: u64,
    results: u32,
    /// The first column that can't be stored: number of its result and its name.
    invalid: Option<(u32, String)>,
}

impl Captured {
    /// Begins anew, for the next execution.
    pub(super) fn clear(&mut self) {
        self.kept = (0, 0);
        self.forget_row();
        (self.rows, self.results) = (0, 0);
        self.invalid = None;
    }

    fn forget_row(&mut self) {
        self.values.truncate(self.kept.0);
        self.text.truncate(self.kept.1);
    }

    /// Rows of the last result, and its number from 0.
    pub(super) fn last_result(&self) -> (u64, u32) {
        (self.rows, self.results.saturating_sub(1))
    }

    /// Number of the result that was not completed.
    pub(super) fn results(&self) -> u32 {
        self.results
    }

    /// The number of the result with the first column that can't be stored, and its name.
    pub(super) fn invalid(&self) -> Option<(u32, &str)> {
        self.invalid.as_ref().map(|(result, name)| (*result, name.as_str()))
    }

    pub(super) fn assign(&self, variables: &mut Variables) {
        let mut start = 0;
        for &(variable, end) in &self.values {
            variables.set_text(variable, &self.text[start..end]);
            start = end;
        }
    }
}

pub(super) struct Capture<'a> {
    pub(super) store: &'a Store,
    pub(super) names: &'a Names,
    pub(super) captured: &'a mut Captured,
}

impl Capture<'_> {
    fn has_changed<C: ColumnNames>(&self, columns: &C) -> bool {
        let known = &self.captured;
        if known.columns.len() != columns.count() {
            return true;
        }
        let mut start = 0;
        known.columns.iter().enumerate().any(|(number, &(end, _))| {
            let name = &known.names[start..end];
            start = end;
            name != columns.name(number)
        })
    }

    fn target(&mut self, column: &str) -> Target {
        let name = &mut self.captured.name;
        name.clear();
        name.push_str(&self.store.prefix);
        name.push_str(column);
        match self.names.find(name) {
            _ if !is_variable_name(name) => Target::Invalid,
            Some(number) => Target::Variable(number),
            None => Target::Nobody,
        }
    }
}

impl Rows for Capture<'_> {
    const DESCRIBED: bool = true;

    fn columns<C: ColumnNames>(&mut self, columns: &C) {
        if self.store.is_gset {
            // Only the last result counts; what is wrong with the columns of others doesn't matter.
            self.captured.kept = (0, 0);
            self.captured.invalid = None;
        }
        self.captured.forget_row();
        if !self.has_changed(columns) {
            return;
        }
        self.captured.names.clear();
        self.captured.columns.clear();
        for number in 0..columns.count() {
            let name = columns.name(number);
            let target = self.target(name);
            self.captured.names.push_str(name);
            let end = self.captured.names.len();
            self.captured.columns.push((end, target));
        }
    }

    fn row<R: AnswerRow>(&mut self, row: &R) {
        let captured = &mut *self.captured;
        captured.forget_row();
        for column in 0..captured.columns.len().min(row.columns()) {
            match captured.columns[column].1 {
                Target::Nobody => {}
                Target::Variable(variable) => {
                    push_cell(row, column, &mut captured.text);
                    captured.values.push((variable, captured.text.len()));
                }
                Target::Invalid => {
                    let start = column.checked_sub(1).map_or(0, |last| captured.columns[last].0);
                    let name = &captured.names[start..captured.columns[column].0];
                    let name = format!("{}{name}", self.store.prefix);
                    captured.invalid.get_or_insert((captured.results, name));
                }
            }
        }
    }

    fn finish_statement(&mut self, executed: Executed) {
        let captured = &mut *self.captured;
        captured.rows = executed.rows;
        captured.results += 1;
        captured.kept = (captured.values.len(), captured.text.len());
    }
}

/// Appends the text of a column; nothing for NULL.
fn push_cell<R: AnswerRow>(row: &R, column: usize, text: &mut Vec<u8>) {
    if row.is_null(column) {
        return;
    }
    if let Some(bytes) = row.bytes(column) {
        text.extend_from_slice(bytes);
    } else if let Some(value) = row.int(column) {
        let _ = write!(text, "{value}");
    } else if let Some(value) = row.string(column) {
        text.extend_from_slice(value.as_bytes());
    }
}

#[derive(Debug, Default)]
pub(super) struct CountResults(pub(super) u32);

impl Rows for CountResults {
    const WANTED: bool = false;
    const DESCRIBED: bool = true;

    fn row<R: AnswerRow>(&mut self, _row: &R) {}

    fn finish_statement(&mut self, _executed: Executed) {
        self.0 += 1;
    }
}
