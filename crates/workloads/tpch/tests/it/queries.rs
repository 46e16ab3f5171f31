//! The texts: what the specification says is there, and each dialect's differences are those that
//! are listed.

use dyno_core::Dialect;
use dyno_tpch::parameters::{ParameterChoice, parameters};
use dyno_tpch::queries::{LAST, Q15, limit, parameter_count, rewrites, text};

const DIALECTS: [Dialect; 3] = [Dialect::Mysql, Dialect::Postgres, Dialect::Sqlite];

/// With the validation parameters at scale factor 1.
fn plain(query: u8, dialect: Dialect, form: Q15) -> String {
    text(query, &parameters(query, 1.0, ParameterChoice::Default), dialect, form)
}

/// The words of a text, whatever its lines and blanks.
fn words(text: &str) -> String {
    let mut spaced = String::new();
    for c in text.chars() {
        let is_word = c.is_alphanumeric() || "_'.%#".contains(c);
        if is_word {
            spaced.push(c);
        } else {
            spaced.extend([' ', c, ' ']);
        }
    }
    spaced.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The text of the crate tpchgen, which is qgen's, word by word, but for what is listed.
#[test]
fn texts_are_the_specifications() {
    for query in 1..=LAST {
        let mut expected = tpchgen::q_and_a::queries::query(query.into()).unwrap().to_owned();
        for (index, value) in
            parameters(query, 1.0, ParameterChoice::Default).iter().enumerate().rev()
        {
            expected = expected.replace(&format!(":{}", index + 1), value);
        }
        let mut expected = expected.replace(":s", "7").replace(" day (3)", " day");
        expected = expected.trim_end_matches(';').to_owned();
        if let Some(rows) = limit(query) {
            expected += &format!(" limit {rows}");
        }
        let actual = plain(query, Dialect::Postgres, Q15::View(7));
        assert_eq!(words(&actual), words(&expected), "query {query}");
    }
}

#[test]
fn nothing_is_left_to_fill_in() {
    for dialect in DIALECTS {
        for form in [Q15::Cte, Q15::View(3)] {
            for query in 1..=LAST {
                let text = plain(query, dialect, form);
                assert!(!text.contains(':'), "{dialect:?} {query}: {text}");
                assert!(!text.ends_with(';'), "{dialect:?} {query}: {text}");
                let statements = if query == 15 && form != Q15::Cte { 3 } else { 1 };
                assert_eq!(text.split(';').count(), statements, "{dialect:?} {query}: {text}");
            }
        }
    }
}

#[test]
fn parameters_are_as_many_as_places() {
    for query in 1..=LAST {
        assert_eq!(parameters(query, 1.0, ParameterChoice::Default).len(), parameter_count(query));
    }
}

/// A dialect's text differs from PostgreSQL's for exactly the queries of the list.
#[test]
fn the_lists_of_rewrites_are_true() {
    let everywhere = rewrites(Dialect::Postgres, Q15::Cte).len();
    for dialect in [Dialect::Mysql, Dialect::Sqlite] {
        let listed = &rewrites(dialect, Q15::Cte)[everywhere..];
        for query in 1..=LAST {
            let differs =
                plain(query, dialect, Q15::Cte) != plain(query, Dialect::Postgres, Q15::Cte);
            let is_listed = listed.iter().any(|rewrite| rewrite.queries.contains(&query));
            assert_eq!(differs, is_listed, "{dialect:?}, query {query}");
        }
    }
    let limited: Vec<u8> = (1..=LAST).filter(|&query| limit(query).is_some()).collect();
    assert!(rewrites(Dialect::Mysql, Q15::Cte).iter().any(|rewrite| rewrite.queries == limited));
}

#[test]
fn sqlite_is_sent_what_it_understands() {
    for query in 1..=LAST {
        let text = plain(query, Dialect::Sqlite, Q15::Cte);
        for word in ["interval", "extract", "substring", "date '"] {
            assert!(!text.contains(word), "query {query} contains {word}: {text}");
        }
    }
    let text = plain(1, Dialect::Sqlite, Q15::Cte);
    assert!(text.contains("l_shipdate <= date('1998-12-01', '-90 day')"), "{text}");
    let text = plain(14, Dialect::Sqlite, Q15::Cte);
    assert!(text.contains(">= '1995-09-01'\n"), "{text}");
    assert!(text.contains("< date('1995-09-01', '+1 month')"), "{text}");
    let text = plain(7, Dialect::Sqlite, Q15::Cte);
    assert!(text.contains("between '1995-01-01' and '1996-12-31'"), "{text}");
}

#[test]
fn the_bounds_of_query_6_are_whole_hundredths() {
    let values = ["1994-01-01", ".06", "24"].map(str::to_owned);
    let query = text(6, &values, Dialect::Sqlite, Q15::Cte);
    let bounds = "l_discount between round(.06 - 0.01, 2) and round(.06 + 0.01, 2)\n";
    assert!(query.contains(bounds), "{query}");
    let query = text(6, &values, Dialect::Postgres, Q15::Cte);
    assert!(query.contains("between .06 - 0.01 and .06 + 0.01"), "{query}");
}

#[test]
fn rewrites_are_sentences() {
    let with_cte = rewrites(Dialect::Sqlite, Q15::Cte);
    let with_view = rewrites(Dialect::Sqlite, Q15::View(0));
    assert_eq!(with_view.len() + 1, with_cte.len());
    let first = with_cte[0].message().to_string();
    assert_eq!(
        first,
        "Q1: `interval '90' day` without the precision `(3)`, because no engine here knows a \
         precision of days."
    );
}

/// The README lists each rewrite as the code has it.
#[test]
fn the_readme_lists_the_rewrites() {
    let readme = include_str!("../../README.md");
    let rows = readme.lines().filter(|line| line.starts_with("| ") && line.contains("| Q"));
    let listed = rewrites(Dialect::Sqlite, Q15::Cte);
    assert_eq!(rows.count(), listed.len());
    for rewrite in listed {
        let queries: Vec<String> =
            rewrite.queries.iter().map(|query| format!("Q{query}")).collect();
        let sentence = rewrite.message().to_string();
        let sentence =
            sentence.split_once(": ").map_or("", |(_, sentence)| sentence).trim_end_matches('.');
        let row =
            format!("| {} | {} |", queries.join(", "), sentence.replacen(", because ", " | ", 1));
        assert!(readme.contains(&row), "{row}");
    }
}
