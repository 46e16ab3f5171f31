//! Answers held against each other, without a database.

use dyno_core::AnswerTable;
use dyno_facts::CheckVerdict;
use dyno_tpch::check::{Expected, compare, reference};
use dyno_tpch::queries::{LAST, limit};

fn parse_rows(text: &[&str]) -> AnswerTable {
    let rows = text
        .iter()
        .map(|row| row.split('|').map(|cell| (cell != "NULL").then(|| cell.to_owned())).collect());
    AnswerTable::from(rows.collect::<Vec<_>>())
}

fn expected_answer(text: &[&str]) -> Expected {
    Expected { table: parse_rows(text), source: "the reference".into(), has_ties: true }
}

/// Differences of this answer.
fn differences(query: u8, expected: &[&str], found: &[&str]) -> Vec<String> {
    let differences = compare(query, &expected_answer(expected), &parse_rows(found));
    differences.iter().map(ToString::to_string).collect()
}

/// The answer as an engine would give it: without the rows behind the limit.
fn received(query: u8, expected: &Expected) -> AnswerTable {
    let limit = limit(query).unwrap_or(usize::MAX);
    AnswerTable::from(expected.table.rows.iter().take(limit).cloned().collect::<Vec<_>>())
}

#[test]
fn references_are_whole() {
    let counts = [
        (
            1.0,
            [4, 100, 10, 5, 5, 1, 4, 2, 175, 20, 1048, 2, 42, 1, 1, 18314, 1, 57, 1, 186, 100, 7],
        ),
        (0.1, [4, 44, 10, 5, 5, 1, 4, 2, 175, 20, 22, 2, 37, 1, 1, 2762, 1, 5, 1, 9, 47, 7]),
        (0.01, [4, 4, 10, 5, 5, 1, 4, 2, 173, 20, 1, 2, 33, 1, 1, 296, 1, 2, 1, 1, 1, 7]),
    ];
    for (scale, counts) in counts {
        for (query, count) in (1..=LAST).zip(counts) {
            let expected = reference(query, scale).unwrap();
            assert_eq!(expected.table.rows.len(), count, "query {query} at {scale}");
            let facts = expected.judge(query, &received(query, &expected));
            assert_eq!(facts.verdict, CheckVerdict::Passed, "query {query} at {scale}");
            assert_eq!(facts.against, expected.source);
            assert_eq!(facts.differences, Vec::<String>::new());
        }
    }
    assert_eq!(reference(1, 10.0), None);
    assert_eq!(reference(1, 0.05), None);
}

/// Whatever value is changed by more than its class allows, it is found, and its row and column
/// are named.
#[test]
fn every_changed_value_is_found() {
    for query in 1..=LAST {
        let expected = reference(query, 0.1).unwrap();
        let right = received(query, &expected);
        let columns = right.rows[0].len();
        for column in 0..columns {
            let index = right.rows.len() / 2;
            let mut changed = right.clone();
            let cell = &mut changed.rows[index][column];
            let wrong = match cell.as_deref().map(str::parse::<f64>) {
                Some(Ok(number)) => (number + number.abs() * 0.02 + 101.0).to_string(),
                _ => "something else".to_owned(),
            };
            *cell = Some(wrong.clone());
            let lines = compare(query, &expected, &changed);
            assert_eq!(lines.len(), 1, "query {query}, column {column}: {lines:?}");
            let begin = format!("Row {}: ", index + 1);
            assert!(lines[0].to_string().starts_with(&begin), "query {query}: {lines:?}");
            assert!(lines[0].to_string().contains(&format!("is {wrong} instead of ")), "{lines:?}");
        }
    }
}

#[test]
fn classes_allow_what_the_specification_allows() {
    let agree =
        |query, expected: &str, found: &str| differences(query, &[expected], &[found]).is_empty();
    // A sum: 100.00.
    assert!(agree(6, "123141078.23", "123141178.23"));
    assert!(agree(6, "123141078.23", "1.2314107823E8"));
    assert!(!agree(6, "123141078.23", "123141178.24"));
    assert!(!agree(6, "123141078.23", "75207768.19"));
    // A ratio: one percent of the rounded value.
    assert!(agree(14, "16.38", "16.5449"));
    assert!(!agree(14, "16.38", "16.555"));
    assert!(agree(14, "16.38", "16.216"));
    assert!(!agree(14, "16.38", "16.20"));
    assert!(agree(14, "0", "0.004"));
    assert!(!agree(14, "0", "0.005"));
    // Sums of quantities and values of columns: two decimals.
    let row = |price: &str, quantity: &str| format!("Customer#1|1|2|1995-01-01|{price}|{quantity}");
    assert!(agree(18, &row("544089.09", "323.00"), &row("544089.09", "323")));
    assert!(!agree(18, &row("544089.09", "323.00"), &row("544089.10", "323")));
    assert!(!agree(18, &row("544089.09", "323.00"), &row("544089.09", "324")));
    // Counts, and blanks at the end of text only.
    assert!(agree(4, "1-URGENT|10594", "1-URGENT       |10594"));
    assert!(!agree(4, "1-URGENT|10594", " 1-URGENT|10594"));
    assert!(!agree(4, "1-URGENT|10594", "1-URGENT|10595"));
    // NULL is not a zero, and nothing is near what is not a number.
    assert!(agree(17, "NULL", "NULL"));
    assert!(!agree(17, "NULL", "0"));
    assert!(!agree(17, "0", "NULL"));
    assert!(!agree(6, "1.00", "NaN"));
    assert!(!agree(6, "1.00", "inf"));
}

#[test]
fn rows_that_are_missing_or_too_many_are_counted() {
    let right = ["1-URGENT|93", "2-HIGH|103", "3-MEDIUM|109", "4-NOT SPECIFIED|102", "5-LOW|128"];
    let mut actual = right.to_vec();
    actual.remove(1);
    let with_gap = differences(4, &right, &actual);
    assert_eq!((with_gap[0].as_str(), with_gap.len()), ("5 rows expected, 4 received.", 1 + 3));
    let mut actual = right.to_vec();
    actual.insert(3, "3-MEDIUM|1");
    let with_surplus = differences(4, &right, &actual);
    assert_eq!(
        (with_surplus[0].as_str(), with_surplus.len()),
        ("5 rows expected, 6 received.", 1 + 2)
    );
    assert_eq!(differences(4, &right[..2], &[]), ["2 rows expected, 0 received."]);
    assert_eq!(differences(4, &[], &["1-URGENT|93"]), ["0 rows expected, 1 received."]);
    // The order counts.
    assert_eq!(
        differences(4, &["1-URGENT|93", "2-HIGH|103"], &["2-HIGH|103", "1-URGENT|93"]).len(),
        2
    );
    assert_eq!(
        differences(4, &["1-URGENT|93"], &["1-URGENT"]),
        ["Row 1: 2 columns expected, 1 received."]
    );
    assert_eq!(
        differences(9, &["CHINA|1998|1000.00"], &["CHINA|1998|2000.00"]),
        ["Row 1: sum_profit is 2000.00 instead of 1000.00."]
    );
}

#[test]
fn the_first_ten_differences_are_told() {
    let expected = reference(16, 0.1).unwrap();
    let mut actual = received(16, &expected);
    for row in actual.rows.iter_mut().take(13) {
        row[3] = Some("0".to_owned());
    }
    let lines = compare(16, &expected, &actual);
    assert_eq!(lines.len(), 11);
    assert_eq!(lines[10], "And 3 more differences.");
    actual.rows.truncate(11);
    let lines = compare(16, &expected, &actual);
    assert_eq!(lines[0], "2,762 rows expected, 11 received.");
    assert_eq!(*lines.last().unwrap(), "And 2 more differences.");
}

/// Query 11 orders by the value alone.
#[test]
fn rows_that_tie_may_come_in_any_order() {
    let right = ["1|9.00", "2|8.00", "3|8.00", "4|8.00", "5|7.00"];
    assert!(
        differences(11, &right, &["1|9.00", "4|8.00", "2|8.00", "3|8.00", "5|7.00"]).is_empty()
    );
    assert_eq!(
        differences(11, &right, &["1|9.00", "4|8.00", "6|8.00", "3|8.00", "5|7.00"]),
        ["Row 3: ps_partkey is 6 instead of 2."]
    );
    // Not what the order tells apart.
    assert!(
        !differences(11, &right, &["2|8.00", "1|9.00", "3|8.00", "4|8.00", "5|7.00"]).is_empty()
    );
}

/// Ten rows of query 3, the last of which ties with `more`.
fn tied_at_the_limit(more: &[&str]) -> Vec<String> {
    let mut rows: Vec<String> =
        (1..=9).map(|key| format!("{key}|{}|1995-01-01|0", 1_000_000 - key * 1_000)).collect();
    rows.extend(more.iter().map(|key| format!("{key}|5000.0000|1995-02-02|0")));
    rows
}

fn as_strs(rows: &[String]) -> Vec<&str> {
    rows.iter().map(String::as_str).collect()
}

#[test]
fn what_an_answer_is_held_against_has_all_columns() {
    let short = Expected::from_engine(parse_rows(&["1-URGENT"]), "target a");
    let actual = parse_rows(&["1-URGENT|999"]);
    assert_eq!(compare(4, &short, &actual), ["Row 1: the reference has 1 column only."]);
}

#[test]
fn at_the_limit_any_row_that_ties_will_do_and_no_other() {
    let known_ties = tied_at_the_limit(&["10", "11", "12"]);
    for last in ["10", "11", "12"] {
        assert!(
            differences(3, &as_strs(&known_ties), &as_strs(&tied_at_the_limit(&[last]))).is_empty()
        );
    }
    assert_eq!(
        differences(3, &as_strs(&known_ties), &as_strs(&tied_at_the_limit(&["13"]))),
        ["Row 10: l_orderkey is 13 instead of 10."]
    );
    assert_eq!(
        differences(3, &as_strs(&known_ties), &as_strs(&tied_at_the_limit(&["10", "11"]))).len(),
        1
    );

    // The ties of an engine's answer are not known: the sort key has to agree.
    let engine =
        Expected::from_engine(parse_rows(&as_strs(&tied_at_the_limit(&["10"]))), "target a");
    let actual = parse_rows(&as_strs(&tied_at_the_limit(&["13"])));
    assert!(compare(3, &engine, &actual).is_empty());
    let mut actual = actual;
    actual.rows[9][2] = Some("1995-02-03".to_owned());
    assert_eq!(compare(3, &engine, &actual).len(), 1);
    // Within the limit it has to be the same row.
    let mut actual = parse_rows(&as_strs(&tied_at_the_limit(&["10"])));
    actual.rows[8][0] = Some("99".to_owned());
    assert_eq!(compare(3, &engine, &actual), ["Row 9: l_orderkey is 99 instead of 9."]);
}
