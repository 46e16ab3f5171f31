//! A row as texts.

use dyno_core::RowWriter;

/// Records the values of a row as texts.
///
/// # Panics
/// On a text that is not UTF-8.
#[derive(Debug, Default)]
pub struct RecordedRow(pub Vec<String>);

impl RowWriter for RecordedRow {
    fn int(&mut self, value: i64) {
        self.0.push(value.to_string());
    }
    fn double(&mut self, value: f64) {
        self.0.push(value.to_string());
    }
    fn text(&mut self, value: &[u8]) {
        self.0.push(String::from_utf8(value.to_vec()).expect("UTF-8"));
    }
    fn null(&mut self) {
        self.0.push("NULL".to_owned());
    }
}
