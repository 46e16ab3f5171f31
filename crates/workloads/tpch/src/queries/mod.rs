//! The texts of the 22 queries (clause 2.4), for each dialect.
//!
//! `sql/` holds the functional definitions of the specification with `:1`, `:2`, ... where the
//! parameters go. What a dialect is sent differs from them by the [`rewrites`] alone: the list that
//! is shown to people is the list that is applied.

mod rewrites;

use dyno_core::Dialect;
pub use rewrites::{Rewrite, rewrites};

/// Number of the last query; the first is 1.
pub const LAST: u8 = 22;

/// How query 15, which asks twice for the same sums, gets them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Q15 {
    /// One statement with a common table expression: approved variant 15A.
    #[default]
    Cte,
    /// The specification's own text: a view is created, queried and dropped, in three statements.
    /// The view bears the number of the stream, so that streams do not meet.
    View(u32),
}

const TEXTS: [&str; LAST as usize] = [
    include_str!("sql/q01.sql"),
    include_str!("sql/q02.sql"),
    include_str!("sql/q03.sql"),
    include_str!("sql/q04.sql"),
    include_str!("sql/q05.sql"),
    include_str!("sql/q06.sql"),
    include_str!("sql/q07.sql"),
    include_str!("sql/q08.sql"),
    include_str!("sql/q09.sql"),
    include_str!("sql/q10.sql"),
    include_str!("sql/q11.sql"),
    include_str!("sql/q12.sql"),
    include_str!("sql/q13.sql"),
    include_str!("sql/q14.sql"),
    include_str!("sql/q15.sql"),
    include_str!("sql/q16.sql"),
    include_str!("sql/q17.sql"),
    include_str!("sql/q18.sql"),
    include_str!("sql/q19.sql"),
    include_str!("sql/q20.sql"),
    include_str!("sql/q21.sql"),
    include_str!("sql/q22.sql"),
];

const TEXT_15A: &str = include_str!("sql/q15a.sql");

/// The query as a session of the dialect is sent it, without a semicolon at its end. It is one
/// statement, but query 15 with a view, whose three are parted by `;`.
///
/// `values` are the parameters in the order of clause 2.4, as text without quotes.
///
/// # Panics
/// When there is no such query, or `values` are not as many as [`parameter_count`] says.
pub fn text(query: u8, values: &[String], dialect: Dialect, form: Q15) -> String {
    assert_eq!(values.len(), parameter_count(query), "parameters of query {query}");
    let mut text = definition(query, form).trim_end().to_owned();
    // From the last to the first: `:1` is the begin of `:10`.
    for (index, value) in values.iter().enumerate().rev() {
        text = text.replace(&format!(":{}", index + 1), value);
    }
    if let Q15::View(stream) = form {
        text = text.replace(":s", &stream.to_string());
    }
    for rewrite in rewrites(dialect, form) {
        if rewrite.queries.contains(&query) {
            text = rewrite.apply(&text);
        }
    }
    match limit(query) {
        Some(rows) => text + &format!("\nlimit {rows}"),
        None => text,
    }
}

/// How many parameters a query has.
///
/// # Panics
/// When there is no such query.
pub fn parameter_count(query: u8) -> usize {
    let text = definition(query, Q15::default());
    (1..).take_while(|number| text.contains(&format!(":{number}"))).count()
}

/// How many rows of its answer a query asks for at most (clause 2.1.2.9); `None` is all.
pub fn limit(query: u8) -> Option<usize> {
    match query {
        2 | 18 | 21 => Some(100),
        3 => Some(10),
        10 => Some(20),
        _ => None,
    }
}

fn definition(query: u8, form: Q15) -> &'static str {
    match (query, form) {
        (15, Q15::Cte) => TEXT_15A,
        (1..=LAST, _) => TEXTS[usize::from(query) - 1],
        _ => panic!("TPC-H has no query {query}"),
    }
}
