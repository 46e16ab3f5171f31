//! Writes down the answers of a session.

use dyno_core::{AnswerRow, ColumnNames, Executed, Rows};

/// A line per call: `columns a, b`, `row 1, NULL`, `done 2 rows`, `done 3 changed`, `done`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transcript(pub Vec<String>);

impl Transcript {
    /// The lines so far; the next ones start again.
    pub fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.0)
    }
}

impl Rows for Transcript {
    const DESCRIBED: bool = true;

    fn columns<C: ColumnNames>(&mut self, columns: &C) {
        let names: Vec<_> = (0..columns.count()).map(|column| columns.name(column)).collect();
        self.0.push(format!("columns {}", names.join(", ")));
    }

    fn finish_statement(&mut self, executed: Executed) {
        self.0.push(match executed {
            Executed { has_rows: true, rows, .. } => format!("done {rows} rows"),
            Executed { affected: 0, .. } => "done".to_owned(),
            Executed { affected, .. } => format!("done {affected} changed"),
        });
    }

    fn row<R: AnswerRow>(&mut self, row: &R) {
        let value = |column| row.string(column).unwrap_or_else(|| "NULL".to_owned());
        let values: Vec<_> = (0..row.columns()).map(value).collect();
        self.0.push(format!("row {}", values.join(", ")));
    }
}

/// Like [`Transcript`], without the rows, which are only counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headings(pub Transcript);

impl Rows for Headings {
    const WANTED: bool = false;
    const DESCRIBED: bool = true;

    fn columns<C: ColumnNames>(&mut self, columns: &C) {
        self.0.columns(columns);
    }

    fn finish_statement(&mut self, executed: Executed) {
        self.0.finish_statement(executed);
    }

    fn row<R: AnswerRow>(&mut self, _row: &R) {}
}
