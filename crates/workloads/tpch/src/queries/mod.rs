//! The texts of the 22 queries (clause 2.4), for each dialect.
//!
//! `queries.sql` holds the functional definitions of the specification with `:1`, `:2`, ... where the
//! parameters go. What a dialect is sent differs from them by the [`rewrites`] alone: the list that
//! is shown to people is the list that is applied.

use crate::messages;
use dyno_core::Dialect::{self, Mysql, Postgres, Sqlite};
use dyno_facts::{Message, MessageTexts};

/// Number of the last query; the first is 1.
pub const LAST: u8 = 22;

/// Source of the sums that query 15 needs twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Q15 {
    /// One statement with a common table expression: approved variant 15A.
    #[default]
    Cte,
    /// The specification's own text: a view is created, queried and dropped, in three statements.
    /// The view bears the number of the stream, so that streams do not meet.
    View(u32),
}

/// The functional definitions, each behind a line with its number.
const TEXTS: &str = include_str!("queries.sql");

/// The query as a session of the dialect is sent it, without a semicolon at its end. It is one
/// statement, but query 15 with a view, whose three are parted by `;`.
///
/// `values` are the parameters in the order of clause 2.4, as text without quotes.
///
/// # Panics
/// If the query does not exist, or the number of `values` is not that of [`parameter_count`].
pub fn text(query: u8, values: &[String], dialect: Dialect, form: Q15) -> String {
    assert_eq!(values.len(), parameter_count(query), "parameters of query {query}");
    let mut text = find_definition(query, form).trim_end().to_owned();
    for rewrite in rewrites(dialect, form).iter().filter(|rewrite| rewrite.queries.contains(&query))
    {
        text = (rewrite.change)(&text);
    }
    // From the last to the first: `:1` is the begin of `:10`.
    for (index, value) in values.iter().enumerate().rev() {
        text = text.replace(&format!(":{}", index + 1), value);
    }
    if let Q15::View(stream) = form {
        text = text.replace(":s", &stream.to_string());
    }
    match limit(query) {
        Some(rows) => text + &format!("\nlimit {rows}"),
        None => text,
    }
}

/// Number of parameters of a query.
///
/// # Panics
/// If the query does not exist.
pub fn parameter_count(query: u8) -> usize {
    let text = find_definition(query, Q15::default());
    (1..).take_while(|number| text.contains(&format!(":{number}"))).count()
}

/// Most rows of its answer that a query asks for (clause 2.1.2.9); `None` is all.
pub fn limit(query: u8) -> Option<usize> {
    match query {
        2 | 18 | 21 => Some(100),
        3 => Some(10),
        10 => Some(20),
        _ => None,
    }
}

fn find_definition(query: u8, form: Q15) -> &'static str {
    let variant = if (query, form) == (15, Q15::Cte) { "a" } else { "" };
    let title = format!("{query}{variant}\n");
    let text = TEXTS.split("-- Q").find_map(|part| part.strip_prefix(&title));
    text.unwrap_or_else(|| panic!("TPC-H has no query {query}"))
}

/// A difference between the texts that are sent and the specification's (minor modifications,
/// clause 2.2.3.3).
#[derive(Clone, Copy, Debug)]
pub struct Rewrite {
    dialects: &'static [Dialect],
    pub queries: &'static [u8],
    /// The text that is written instead of another, and why.
    entry: &'static MessageTexts,
    change: fn(&str) -> String,
}

impl Rewrite {
    /// The queries and the change, in a sentence.
    pub fn message(&self) -> Message {
        let queries: Vec<String> = self.queries.iter().map(|query| format!("Q{query}")).collect();
        Message::of(self.entry, [("queries", queries.join(", ").into())])
    }
}

const REWRITES: [Rewrite; 8] = [
    Rewrite {
        dialects: &[Mysql, Postgres, Sqlite],
        queries: &[1],
        entry: messages::no_precision,
        change: |text| text.replace(" day (3)", " day"),
    },
    // Row limits are appended, and variant 15A is chosen, by `text`.
    Rewrite {
        dialects: &[Mysql, Postgres, Sqlite],
        queries: &[2, 3, 10, 18, 21],
        entry: messages::limit_at_the_end,
        change: str::to_owned,
    },
    Rewrite {
        dialects: &[Mysql, Postgres, Sqlite],
        queries: &[15],
        entry: messages::variant_15a,
        change: str::to_owned,
    },
    Rewrite {
        dialects: &[Mysql, Sqlite],
        queries: &[13],
        entry: messages::no_column_list,
        change: |text| {
            text.replace("count(o_orderkey)", "count(o_orderkey) as c_count")
                .replace("as c_orders (c_custkey, c_count)", "as c_orders")
        },
    },
    Rewrite {
        dialects: &[Sqlite],
        queries: &[1, 3, 4, 5, 6, 7, 8, 10, 12, 14, 15, 20],
        entry: messages::days_as_text,
        change: dates,
    },
    Rewrite {
        dialects: &[Sqlite],
        queries: &[7, 8, 9],
        entry: messages::years_by_strftime,
        change: |text| {
            ["l_shipdate", "o_orderdate"].iter().fold(text.to_owned(), |text, day| {
                let year = format!("cast(strftime('%Y', {day}) as integer)");
                text.replace(&format!("extract(year from {day})"), &year)
            })
        },
    },
    Rewrite {
        dialects: &[Sqlite],
        queries: &[22],
        entry: messages::substr,
        change: |text| text.replace("substring(c_phone from 1 for 2)", "substr(c_phone, 1, 2)"),
    },
    Rewrite {
        dialects: &[Sqlite],
        queries: &[6],
        entry: messages::bounds_rounded,
        change: |text| {
            text.replace(":2 - 0.01 and :2 + 0.01", "round(:2 - 0.01, 2) and round(:2 + 0.01, 2)")
        },
    },
];

/// All differences of a dialect's texts.
pub fn rewrites(dialect: Dialect, form: Q15) -> Vec<Rewrite> {
    let mut rewrites = REWRITES.to_vec();
    rewrites.retain(|rewrite| {
        rewrite.dialects.contains(&dialect) && (form == Q15::Cte || rewrite.queries != [15])
    });
    rewrites
}

/// SQLite's words for days and sums with them: `date ':1' + interval '3' month` is `date(':1', '+3 month')`.
fn dates(text: &str) -> String {
    let mut parts = text.split("date '");
    let mut written = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (day, rest) = part.split_once('\'').unwrap_or((part, ""));
        let moved = ["+", "-"].iter().find_map(|sign| {
            let after = rest.strip_prefix(&format!(" {sign} interval '"))?;
            let (count, after) = after.split_once("' ")?;
            let end = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
            let (unit, after) = after.split_at(end);
            Some(format!("date('{day}', '{sign}{count} {unit}'){after}"))
        });
        written += &moved.unwrap_or_else(|| format!("'{day}'{rest}"));
    }
    written
}
