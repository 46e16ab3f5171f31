//! CSV: one row per trial, all fields.

use crate::evidence::Paper;
use dyno_core::harmless;
use serde_json::Value;
use std::collections::BTreeMap;

/// What identifies a trial stands in front; the other columns follow in alphabetical order.
const FIRST: [&str; 14] = [
    "label",
    "run",
    "trial",
    "experiment",
    "target",
    "test",
    "workers",
    "rate_per_s",
    "repeat",
    "status",
    "adds_up",
    "tps",
    "qps",
    "window_s",
];

impl Paper {
    /// One row per trial, all fields of its summary; lists are JSON inside their cell.
    pub fn csv(&self) -> String {
        let rows: Vec<BTreeMap<String, String>> = self
            .trials
            .iter()
            .chain(&self.set_aside)
            .chain(&self.stages)
            .map(|trial| {
                let mut row = BTreeMap::new();
                let summary = serde_json::to_value(&trial.summary).unwrap_or_default();
                flatten("", &summary, &mut row);
                row.remove("status.failed");
                row.insert("run".to_owned(), self.runs[trial.run - 1].folder.clone());
                row.insert("label".to_owned(), trial.label.clone());
                row.insert("status".to_owned(), trial.status.to_owned());
                row.insert("adds_up".to_owned(), trial.adds_up.to_string());
                row
            })
            .collect();
        let mut columns: Vec<&str> = FIRST.to_vec();
        for column in rows.iter().flat_map(BTreeMap::keys) {
            if !columns.contains(&column.as_str()) {
                columns.push(column);
            }
        }
        columns[FIRST.len()..].sort_unstable();
        let heads: Vec<String> = columns.iter().map(|column| quote(column)).collect();
        let mut text = heads.join(",") + "\n";
        for row in &rows {
            let cells = columns
                .iter()
                .map(|column| row.get(*column).map_or(String::new(), |cell| quote(cell)));
            text += &cells.collect::<Vec<_>>().join(",");
            text.push('\n');
        }
        text
    }
}

fn flatten(name: &str, value: &Value, row: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                let name = if name.is_empty() { field.clone() } else { format!("{name}.{field}") };
                flatten(&name, value, row);
            }
        }
        Value::Null => {}
        Value::String(text) => {
            row.insert(name.to_owned(), text.clone());
        }
        other => {
            row.insert(name.to_owned(), other.to_string());
        }
    }
}

/// RFC 4180. A cell that a spreadsheet would take for a formula gets an apostrophe in front; of what a terminal would
/// obey it shows that it was there.
pub(super) fn quote(cell: &str) -> String {
    let cell = harmless(cell);
    let is_number = cell.parse::<f64>().is_ok();
    let is_formula = !is_number && cell.starts_with(['=', '+', '-', '@']);
    let cell = if is_formula { format!("'{cell}") } else { cell.into_owned() };
    if cell.contains([',', '"', '\n']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_where_needed() {
        assert_eq!(quote("plain"), "plain");
        assert_eq!(quote("-1.5"), "-1.5");
        assert_eq!(quote("a,\"b\""), "\"a,\"\"b\"\"\"");
        assert_eq!(quote("=HYPERLINK(1)"), "'=HYPERLINK(1)");
        assert_eq!(quote("\u{1b}[2J\u{202e}a\r\nb"), "\"\u{fffd}[2J\u{fffd}a\u{fffd}\nb\"");
    }
}
