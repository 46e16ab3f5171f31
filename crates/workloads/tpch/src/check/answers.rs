//! The answers that are known beforehand.

use super::Expected;
use dyno_core::Table;
use tpchgen::q_and_a::answers_sf1;

/// The right answer with the validation parameters (Q11's fraction divided by the scale factor), on
/// data to which no refresh function was applied; `None` at scale factors without one.
pub fn reference(query: u8, scale: f64) -> Option<Expected> {
    if scale != 1.0 {
        return None;
    }
    let text = answers_sf1::answer(i32::from(query))?;
    let rows = text.lines().filter(|line| !line.trim().is_empty()).skip(1);
    let row = |line: &str| line.split('|').map(|value| Some(value.trim().to_owned())).collect();
    Some(Expected {
        table: Table { rows: rows.map(row).collect() },
        source: "the reference at scale factor 1".to_owned(),
        has_ties: true,
    })
}
