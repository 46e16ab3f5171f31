//! What a dialect is sent instead of the specification's text, and why.

use super::Q15;
use crate::messages;
use dyno_core::Dialect;
use dyno_facts::{Message, MessageTexts};

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
    pub(super) fn apply(&self, text: &str) -> String {
        (self.change)(text)
    }

    pub fn message(&self) -> Message {
        let queries: Vec<String> = self.queries.iter().map(|query| format!("Q{query}")).collect();
        Message::of(self.entry, [("queries", queries.join(", ").into())])
    }
}

/// Row limits are appended by [`super::text`], 15A is chosen by it.
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
