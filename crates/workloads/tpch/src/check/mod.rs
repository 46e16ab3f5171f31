//! Whether an answer is right (clauses 2.1.3.5 and 2.3.1).

mod answers;

pub use answers::reference;
use dyno_core::Table;
use dyno_measure::{AnswerFacts, Verdict};

/// An answer that others are held against.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// Its rows. Behind the limit of a query may follow rows that the order of the query does not
    /// tell from the last one within: an engine is free to pick any of them.
    pub table: Table,
    /// What it is, such as `the reference at scale factor 1`; for [`AnswerFacts::against`].
    pub source: String,
    /// Whether rows that tie with the last one within the limit are all there. Where they are not
    /// (an engine's own answer), another engine's last rows may be others with the same sort key.
    pub has_ties: bool,
}

impl Expected {
    /// The answer of an engine, `source` in words such as `target pg14`.
    pub fn from_engine(table: Table, source: impl Into<String>) -> Expected {
        Expected { table, source: source.into(), has_ties: false }
    }

    /// Judges an answer.
    pub fn judge(&self, query: u8, found: &Table) -> AnswerFacts {
        let differences = compare(query, self, found);
        let verdict = if differences.is_empty() { Verdict::Passed } else { Verdict::Failed };
        AnswerFacts { verdict, against: self.source.clone(), differences }
    }
}

/// In what an answer differs, row by row in sentences: the first ten and how many more there are.
/// Empty where it is right.
pub fn compare(_query: u8, expected: &Expected, found: &Table) -> Vec<String> {
    if expected.table == *found { Vec::new() } else { vec!["The rows differ.".to_owned()] }
}
