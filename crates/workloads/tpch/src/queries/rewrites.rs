//! What a dialect is sent instead of the specification's text, and why.

use super::Q15;
use dyno_core::Dialect;
use std::fmt;

/// A difference between the texts that are sent and the specification's (minor modifications,
/// clause 2.2.3.3).
#[derive(Clone, Copy, Debug)]
pub struct Rewrite {
    /// The queries that it changes.
    pub queries: &'static [u8],
    /// What is written instead of what.
    pub what: &'static str,
    /// Why, in words that follow `because`.
    pub reason: &'static str,
    change: fn(&str) -> String,
}

impl Rewrite {
    /// The text with this difference.
    pub(super) fn apply(&self, text: &str) -> String {
        (self.change)(text)
    }
}

impl fmt::Display for Rewrite {
    /// One sentence for people.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, query) in self.queries.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(out, "{comma}Q{query}")?;
        }
        write!(out, ": {}, because {}.", self.what, self.reason)
    }
}

/// Row limits are appended by [`super::text`], 15A is chosen by it.
const LIMITS: Rewrite = Rewrite {
    queries: &[2, 3, 10, 18, 21],
    what: "`limit` at the end of the statement",
    reason: "the specification asks for the first rows only and leaves the syntax open (2.1.2.9)",
    change: str::to_owned,
};

const VARIANT_15A: Rewrite = Rewrite {
    queries: &[15],
    what: "a common table expression instead of a view, which is approved variant 15A",
    reason: "one statement can be timed, prepared, cancelled and explained as a whole, and needs no \
             right to create views",
    change: str::to_owned,
};

const PRECISION: Rewrite = Rewrite {
    queries: &[1],
    what: "`interval '90' day` without the precision `(3)`",
    reason: "no engine here knows a precision of days",
    change: |text| text.replace(" day (3)", " day"),
};

const COLUMN_LIST: Rewrite = Rewrite {
    queries: &[13],
    what: "the count is named inside the derived table instead of in a column list behind it",
    reason: "MariaDB and SQLite know no column list there",
    change: |text| {
        text.replace("count(o_orderkey)", "count(o_orderkey) as c_count")
            .replace("as c_orders (c_custkey, c_count)", "as c_orders")
    },
};

const DATES: Rewrite = Rewrite {
    queries: &[1, 3, 4, 5, 6, 7, 8, 10, 12, 14, 15, 20],
    what: "days as text and `date('1994-01-01', '+3 month')` instead of `date '1994-01-01' + \
           interval '3' month`",
    reason: "SQLite has no type for days and no intervals; ISO dates compare as text",
    change: dates,
};

const YEARS: Rewrite = Rewrite {
    queries: &[7, 8, 9],
    what: "`cast(strftime('%Y', x) as integer)` instead of `extract(year from x)`",
    reason: "SQLite has no `extract`",
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
    what: "`substr(x, 1, 2)` instead of `substring(x from 1 for 2)`",
    reason: "SQLite knows no `from` and `for` there",
    change: |text| text.replace("substring(c_phone from 1 for 2)", "substr(c_phone, 1, 2)"),
};

const BOUNDS: Rewrite = Rewrite {
    queries: &[6],
    what: "the bounds of the discount are written out (`between 0.05 and 0.07`) instead of computed \
           (`between 0.06 - 0.01 and 0.06 + 0.01`)",
    reason: "SQLite computes with binary floating point, where 0.06 + 0.01 is less than 0.07 and a \
             third of the revenue gets lost",
    change: bounds,
};

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
