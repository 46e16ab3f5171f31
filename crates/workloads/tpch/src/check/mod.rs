//! Whether an answer is right (clauses 2.1.3.5 and 2.3.1).

mod answers;
mod columns;

use crate::facts::AnswerFacts;
use crate::queries;
pub use answers::{KNOWN_SCALES, reference};
use columns::{ambiguous_order, columns, ties};
use dyno_core::AnswerTable;
use dyno_facts::{CheckVerdict, Message, say};

type Row = Vec<Option<String>>;

/// Differences that are told; the others are counted.
const TOLD: usize = 10;
/// How many rows may be missing or too many in a row before the comparison calls them different.
const LOOK_AHEAD: usize = 20;

/// An answer that others are held against.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// Its rows. Behind the limit of a query may follow rows that the order of the query does not
    /// tell from the last one within: an engine is free to pick any of them.
    pub table: AnswerTable,
    /// What it is, such as `the reference at scale factor 1`; for [`AnswerFacts::against`].
    pub source: Message,
    /// Whether rows that tie with the last one within the limit are all there. Where they are not
    /// (an engine's own answer), another engine's last rows may be others with the same sort key.
    pub has_ties: bool,
}

impl Expected {
    /// The answer of an engine, `source` in words such as `target pg14`.
    pub fn from_engine(table: AnswerTable, source: impl Into<Message>) -> Expected {
        Expected { table, source: source.into(), has_ties: false }
    }

    /// Judges an answer.
    ///
    /// # Panics
    /// When there is no such query.
    pub fn judge(&self, query: u8, found: &AnswerTable) -> AnswerFacts {
        let differences = compare(query, self, found);
        let verdict =
            if differences.is_empty() { CheckVerdict::Passed } else { CheckVerdict::Failed };
        AnswerFacts { verdict, against: self.source.clone(), differences }
    }
}

/// In what an answer differs, row by row in sentences: the first ten and how many more there are.
/// Empty where it is right.
///
/// # Panics
/// When there is no such query.
pub fn compare(query: u8, expected: &Expected, found: &AnswerTable) -> Vec<Message> {
    let wanted = arranged(query, expected, found);
    let mut told = FirstDifferences::default();
    if wanted.len() != found.rows.len() {
        told.add(|| say!(rows_expected, n = wanted.len(), found = found.rows.len()));
    }
    let (mut w, mut f) = (0, 0);
    loop {
        match (wanted.get(w), found.rows.get(f)) {
            (None, None) => break,
            (Some(want), Some(row)) if want.is_met_by(query, row) => {
                w += 1;
                f += 1;
            }
            (Some(want), row) => {
                let ahead = wanted[w + 1..].iter().take(LOOK_AHEAD);
                let skipped = row.and_then(|row| {
                    { ahead }.position(|later| later.is_met_by(query, row)).map(|at| at + 1)
                });
                let ahead = found.rows[f..].iter().skip(1).take(LOOK_AHEAD);
                let added = { ahead }.position(|later| want.is_met_by(query, later));
                match (row, skipped, added) {
                    (Some(row), None, None) => {
                        told.add(|| want.difference(query, f, row));
                        w += 1;
                        f += 1;
                    }
                    (_, None, Some(rows)) => {
                        for _ in 0..=rows {
                            told.add(|| unexpected(f, &found.rows[f]));
                            f += 1;
                        }
                    }
                    (_, skipped, _) => {
                        for _ in 0..skipped.unwrap_or(1) {
                            told.add(|| missing(w, wanted[w].row));
                            w += 1;
                        }
                    }
                }
            }
            (None, Some(row)) => {
                told.add(|| unexpected(f, row));
                f += 1;
            }
        }
    }
    told.lines()
}

/// A row that an answer must have at its place.
struct ExpectedRow<'a> {
    row: &'a Row,
    /// Any row with the same sort key will do: it is at the limit, and which others tie with it is
    /// not known.
    is_one_of_many: bool,
}

impl ExpectedRow<'_> {
    fn is_met_by(&self, query: u8, found: &Row) -> bool {
        if self.is_one_of_many {
            return found.len() == self.row.len() && has_same_key(query, self.row, found);
        }
        is_same(query, self.row, found)
    }

    /// In what a row differs, as a sentence.
    fn difference(&self, query: u8, index: usize, found: &Row) -> Message {
        let number = index + 1;
        let columns = columns(query);
        if found.len() != columns.len() {
            return say!(
                columns_expected,
                row = number.to_string(),
                n = columns.len(),
                found = found.len()
            );
        }
        if self.row.len() != columns.len() {
            return say!(columns_known, row = number.to_string(), n = self.row.len());
        }
        let mut parts = Vec::new();
        for (((name, class), expected), found) in columns.iter().zip(self.row).zip(found) {
            if !class.agrees(expected.as_deref(), found.as_deref()) {
                parts.push(class.difference(name, shown(expected), shown(found)));
            }
        }
        say!(row_differs, row = number.to_string(), values = Message::joined(&parts, "; ", "；"))
    }
}

/// The expected rows in the order in which this answer may have them: rows with the same sort key
/// may come in any order, and at the limit any of them.
fn arranged<'a>(query: u8, expected: &'a Expected, found: &'a AnswerTable) -> Vec<ExpectedRow<'a>> {
    let rows = &expected.table.rows;
    let limit = queries::limit(query).unwrap_or(usize::MAX);
    let within = rows.len().min(limit);
    let is_cut = !expected.has_ties && rows.len() >= limit && !ambiguous_order(query).is_empty();
    let mut wanted = Vec::with_capacity(within);
    let mut begin = 0;
    while begin < within {
        let tied = |row: &&Row| has_same_key(query, &rows[begin], row);
        let end = begin + 1 + rows[begin + 1..].iter().take_while(tied).count();
        let received = found.rows.iter().skip(begin);
        let group = permuted(query, &rows[begin..end], received);
        let is_one_of_many = is_cut && end == rows.len();
        wanted.extend(group.into_iter().map(|row| ExpectedRow { row, is_one_of_many }));
        begin = end;
    }
    wanted.truncate(within);
    wanted
}

/// Rows that tie, those that were received first and at the places where they were.
fn permuted<'a>(
    query: u8,
    tied: &'a [Row],
    received: impl Iterator<Item = &'a Row>,
) -> Vec<&'a Row> {
    if tied.len() == 1 {
        return vec![&tied[0]];
    }
    let mut left: Vec<&Row> = tied.iter().collect();
    let mut places: Vec<Option<&Row>> = vec![None; tied.len()];
    for (place, row) in places.iter_mut().zip(received) {
        let met = left.iter().position(|candidate| is_same(query, candidate, row));
        *place = met.map(|at| left.remove(at));
    }
    let mut left = left.into_iter();
    places.into_iter().filter_map(|place| place.or_else(|| left.next())).collect()
}

fn is_same(query: u8, expected: &Row, found: &Row) -> bool {
    let columns = columns(query);
    // A shorter row would hide its missing columns from the comparison.
    found.len() == columns.len()
        && expected.len() == columns.len()
        && columns.iter().zip(expected).zip(found).all(|(((_, class), expected), found)| {
            class.agrees(expected.as_deref(), found.as_deref())
        })
}

fn has_same_key(query: u8, a: &Row, b: &Row) -> bool {
    let key = ambiguous_order(query);
    let value = |row: &Row, column: usize| row.get(column).cloned().flatten();
    !key.is_empty()
        && key.iter().all(|&column| ties(value(a, column).as_deref(), value(b, column).as_deref()))
}

fn missing(index: usize, row: &Row) -> Message {
    say!(right_row_missing, row = (index + 1).to_string(), values = whole(row))
}

fn unexpected(index: usize, row: &Row) -> Message {
    say!(row_not_right, row = (index + 1).to_string(), values = whole(row))
}

fn whole(row: &Row) -> String {
    row.iter().map(shown).collect::<Vec<_>>().join(" | ")
}

fn shown(value: &Option<String>) -> &str {
    value.as_deref().map_or("NULL", str::trim)
}

/// The first differences, and how many there are besides: `And 1 more difference.`
#[derive(Default)]
struct FirstDifferences {
    lines: Vec<Message>,
    more: usize,
}

impl FirstDifferences {
    fn add(&mut self, line: impl FnOnce() -> Message) {
        if self.lines.len() < TOLD {
            self.lines.push(line());
        } else {
            self.more += 1;
        }
    }

    fn lines(mut self) -> Vec<Message> {
        if self.more > 0 {
            self.lines.push(say!(more_differences, n = self.more));
        }
        self.lines
    }
}
