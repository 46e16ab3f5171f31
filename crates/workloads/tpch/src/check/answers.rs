//! The answers that are known beforehand.

use super::{Expected, Row};
use dyno_core::AnswerTable;
use dyno_facts::say;
use tpchgen::q_and_a::answers_sf1;

/// Made by `golden/answers.py` with another engine, other texts and another program's rows.
const STORED: [(f64, &str); 2] = [
    (0.01, include_str!("../../golden/answers-sf0.01.txt")),
    (0.1, include_str!("../../golden/answers-sf0.1.txt")),
];

/// Scale factors whose answers are known.
pub const KNOWN_SCALES: &[f64] = &[0.01, 0.1, 1.0];

/// Query 11's at scale factor 1: in the crate's, all keys are cut to their first digits.
const MENDED_Q11: &str = include_str!("../../golden/answers-sf1-q11.txt");

/// The right answer with the validation parameters (Q11's fraction divided by the scale factor), on
/// data to which no refresh function was applied; `None` at scale factors without one.
pub fn reference(query: u8, scale: f64) -> Option<Expected> {
    let (rows, source) = if scale == 1.0 {
        (specified(query)?, say!(reference_at_scale, scale = "1"))
    } else {
        let (_, text) = STORED.iter().find(|(stored, _)| *stored == scale)?;
        (stored(query, text)?, say!(stored_answers_at_scale, scale = scale.to_string()))
    };
    Some(Expected { table: AnswerTable::from(rows), source, has_ties: true })
}

fn specified(query: u8) -> Option<Vec<Row>> {
    if query == 11 {
        return stored(query, MENDED_Q11);
    }
    let text = answers_sf1::answer(i32::from(query))?;
    let rows = text.lines().filter(|line| !line.trim().is_empty()).skip(1);
    Some(rows.map(row).collect())
}

fn stored(query: u8, text: &str) -> Option<Vec<Row>> {
    let title = format!("Q{query}: ");
    let mut lines = text.lines().skip_while(|line| !line.starts_with(&title));
    let count = lines.next()?.strip_prefix(&title)?.parse().ok()?;
    Some(lines.take(count).map(row).collect())
}

fn row(line: &str) -> Row {
    let value = |text: &str| (text.trim() != "\\N").then(|| text.trim_end().to_owned());
    line.split('|').map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_scales_have_all_answers() {
        let is_known = |scale: f64| (1..=22).all(|query| reference(query, scale).is_some());
        assert!(KNOWN_SCALES.iter().all(|&scale| is_known(scale)));
        assert!(STORED.iter().all(|(scale, _)| KNOWN_SCALES.contains(scale)));
        assert!(!is_known(0.18));
    }
}
