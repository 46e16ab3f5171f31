//! The texts of the 22 queries (clause 2.4), for each dialect.
//!
//! `sql/` holds the functional definitions of the specification with `:1`, `:2`, ... where the
//! parameters go. What a dialect is sent differs from them by the [`rewrites`] alone: the list that
//! is shown to people is the list that is applied.

use crate::messages;
use dyno_core::Dialect;
use dyno_facts::{Message, MessageTexts};

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

/// A difference between the texts that are sent and the specification's (minor modifications,
/// clause 2.2.3.3).
#[derive(Clone, Copy, Debug)]
pub struct Rewrite {
    pub queries: &'static [u8],
    /// What is written instead of what, and why.
    entry: &'static MessageTexts,
    change: fn(&str) -> String,
}

impl Rewrite {
    fn apply(&self, text: &str) -> String {
        (self.change)(text)
    }

    pub fn message(&self) -> Message {
        let queries: Vec<String> = self.queries.iter().map(|query| format!("Q{query}")).collect();
        Message::of(self.entry, [("queries", queries.join(", ").into())])
    }
}

/// Row limits are appended by [`text`], 15A is chosen by it.
const LIMITS: Rewrite = Rewrite {
    queries: &[2, 3, 10, 18, 21],
    entry: messages::limit_at_the_end,
    change: str::to_owned,
};

const VARIANT_15A: Rewrite =
    Rewrite { queries: &[15], entry: messages::variant_15a, change: str::to_owned };

const PRECISION: Rewrite = Rewrite {
    queries: &[1],
    entry: messages::no_precision,
    change: |text| text.replace(" day (3)", " day"),
};

const COLUMN_LIST: Rewrite = Rewrite {
    queries: &[13],
    entry: messages::no_column_list,
    change: |text| {
        text.replace("count(o_orderkey)", "count(o_orderkey) as c_count")
            .replace("as c_orders (c_custkey, c_count)", "as c_orders")
    },
};

const DATES: Rewrite = Rewrite {
    queries: &[1, 3, 4, 5, 6, 7, 8, 10, 12, 14, 15, 20],
    entry: messages::days_as_text,
    change: dates,
};

const YEARS: Rewrite = Rewrite {
    queries: &[7, 8, 9],
    entry: messages::years_by_strftime,
    change: |text| {
        text.replace("extract(year from l_shipdate)", "cast(strftime('%Y', l_shipdate) as integer)")
            .replace(
                "extract(year from o_orderdate)",
                "cast(strftime('%Y', o_orderdate) as integer)",
            )
    },
};

const SUBSTRINGS: Rewrite = Rewrite {
    queries: &[22],
    entry: messages::substr,
    change: |text| text.replace("substring(c_phone from 1 for 2)", "substr(c_phone, 1, 2)"),
};

const BOUNDS: Rewrite =
    Rewrite { queries: &[6], entry: messages::bounds_written_out, change: bounds };

/// All differences of a dialect's texts.
pub fn rewrites(dialect: Dialect, form: Q15) -> Vec<Rewrite> {
    let mut found = vec![PRECISION, LIMITS];
    if form == Q15::Cte {
        found.push(VARIANT_15A);
    }
    match dialect {
        Dialect::Postgres => {}
        Dialect::Mysql => found.push(COLUMN_LIST),
        Dialect::Sqlite => found.extend([COLUMN_LIST, DATES, YEARS, SUBSTRINGS, BOUNDS]),
    }
    found
}

/// SQLite's words for days and sums with them.
fn dates(text: &str) -> String {
    let mut written = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("date '") {
        let Some((day, after)) = after.split_once('\'') else { break };
        written.push_str(before);
        match moved(after) {
            Some((by, after)) => {
                written.push_str(&format!("date('{day}', '{by}')"));
                rest = after;
            }
            None => {
                written.push_str(&format!("'{day}'"));
                rest = after;
            }
        }
    }
    written + rest
}

/// What follows a day: ` + interval '3' month` as `+3 month`, and the text behind it.
fn moved(text: &str) -> Option<(String, &str)> {
    let (sign, after) = text
        .strip_prefix(" + interval '")
        .map(|after| ('+', after))
        .or_else(|| Some(('-', text.strip_prefix(" - interval '")?)))?;
    let (count, after) = after.split_once("' ")?;
    let end = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
    let (unit, after) = after.split_at(end);
    Some((format!("{sign}{count} {unit}"), after))
}

/// Computes `0.06 - 0.01 and 0.06 + 0.01` in hundredths. A discount that is no number is left to
/// the database to complain of.
fn bounds(text: &str) -> String {
    let computed = || {
        let (before, after) = text.split_once("between ")?;
        let (discount, after) = after.split_once(" - 0.01 and ")?;
        let (_, after) = after.split_once(" + 0.01")?;
        let hundredths = (discount.parse::<f64>().ok()? * 100.0).round() as i64;
        let (low, high) = (hundredths - 1, hundredths + 1);
        Some(format!(
            "{before}between {}.{:02} and {}.{:02}{after}",
            low / 100,
            low % 100,
            high / 100,
            high % 100
        ))
    };
    computed().unwrap_or_else(|| text.to_owned())
}
