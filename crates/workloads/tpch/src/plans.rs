//! Plans of servers, and their comparable parts.

use dyno_core::{AnswerTable, PlanForm};
use serde_json::Value;

/// Keys of a plan in JSON whose text belongs to its shape.
#[rustfmt::skip]
const NAMING: [&str; 9] = [
    // PostgreSQL
    "Node Type", "Relation Name", "Index Name", "Join Type", "Strategy", "Parent Relationship",
    // MariaDB and MySQL
    "table_name", "access_type", "key",
];

/// Parts of a plan in JSON that are not part of its shape: what differs from one execution to the
/// next, or from one number of workers to another.
const SHAPELESS: [&str; 5] = ["Workers", "Settings", "Planning", "JIT", "query_optimization"];

/// The text of a plan from its answer, with a newline at its end.
pub(crate) fn render(form: PlanForm, answer: &AnswerTable) -> String {
    let mut depths: Vec<(String, usize)> = Vec::new();
    let lines = answer.rows.iter().map(|row| match (form, row.as_slice()) {
        (PlanForm::Parents, [id, parent, .., detail]) => {
            let parent_depth = depths.iter().find(|(known, _)| *known == cell_text(parent));
            let depth = parent_depth.map_or(0, |(_, depth)| depth + 1);
            depths.push((cell_text(id), depth));
            format!("{}{}", "  ".repeat(depth), cell_text(detail))
        }
        (_, cells) => cells.iter().map(cell_text).collect::<Vec<_>>().join("\t"),
    });
    let mut text = lines.collect::<Vec<_>>().join("\n");
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// The text of a cell; empty for NULL.
fn cell_text(cell: &Option<String>) -> String {
    cell.clone().unwrap_or_default()
}

/// `json` or `txt`.
pub(crate) fn extension(text: &str) -> &'static str {
    if parse_json(text).is_some() { "json" } else { "txt" }
}

fn parse_json(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().filter(|value: &Value| value.is_object() || value.is_array())
}

/// A name for what the plan does, whatever it costs, however long it takes and whichever values
/// it looks for: 16 hexadecimal digits.
pub(crate) fn shape(text: &str) -> String {
    let mut shape = String::new();
    match parse_json(text) {
        Some(value) => add_json(&value, &mut shape),
        None => text.lines().for_each(|line| add_line(line, &mut shape)),
    }
    digest(&shape)
}

/// The hash of a text in 16 hexadecimal digits, the same in all versions: FNV-1a.
pub(crate) fn digest(text: &str) -> String {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte: u8| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{hash:016x}")
}

fn add_json(value: &Value, shape: &mut String) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| add_json(item, shape)),
        Value::Object(fields) => {
            shape.push('{');
            for (name, field) in fields {
                let is_measured = name.starts_with("r_") || SHAPELESS.contains(&name.as_str());
                match field.as_str() {
                    Some(text) if NAMING.contains(&name.as_str()) => {
                        shape.extend([name, ":", text, ";"]);
                    }
                    None if !is_measured => add_json(field, shape),
                    _ => {}
                }
            }
            shape.push('}');
        }
        _ => {}
    }
}

/// Adds a line without costs and measurements, which are in parentheses, and without numbers.
fn add_line(line: &str, shape: &mut String) {
    let mut text = line.trim_end().to_owned();
    for measured in ["(cost=", "(actual ", "(rows=", "(never "] {
        while let Some(at) = text.find(measured) {
            let end = text[at..].find(')').map_or(text.len(), |end| at + end + 1);
            text.replace_range(at..end, "");
        }
    }
    let mut was_digit = false;
    for c in text.trim_end().chars() {
        let is_digit = c.is_ascii_digit() || (was_digit && c == '.');
        if !is_digit || !was_digit {
            shape.push(if is_digit { '#' } else { c });
        }
        was_digit = is_digit;
    }
    shape.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    const POSTGRES: &str = r#"[{"Plan": {"Node Type": "Gather", "Workers Planned": 2,
        "Workers Launched": 2, "Total Cost": 12.5, "Plans": [{"Node Type": "Seq Scan",
        "Relation Name": "lineitem", "Actual Rows": 7, "Workers": [{"Worker Number": 0}]}]},
        "Planning": {"Shared Hit Blocks": 5}, "Triggers": []}]"#;

    #[test]
    fn digests_are_fnv_1a() {
        assert_eq!(digest(""), "cbf29ce484222325");
        assert_eq!(digest("foobar"), "85944171f73967e8");
    }

    #[test]
    fn the_shape_is_what_is_done_and_not_what_it_costs() {
        let first = shape(POSTGRES);
        assert_eq!(first.len(), 16);
        let other_costs = POSTGRES.replace("12.5", "99").replace(r#"{"Worker Number": 0}"#, "");
        assert_eq!(shape(&other_costs), first);
        assert_ne!(shape(&POSTGRES.replace("Seq Scan", "Index Scan")), first);
        assert_ne!(shape(&POSTGRES.replace("lineitem", "orders")), first);
        assert_eq!((extension(POSTGRES), extension("-> Sort\n")), ("json", "txt"));
    }

    #[test]
    fn the_shape_of_a_text_has_no_measurements_and_no_values() {
        let [first, same, other] = [
            ("1.5", "1998-09-02", "lineitem"),
            ("7712.25", "1998-08-17", "lineitem"),
            ("1.5", "1998-09-02", "orders"),
        ]
        .map(|(cost, day, table)| {
            shape(&format!(
                "-> Filter: ({table}.l_shipdate <= DATE'{day}')  (cost={cost} rows=5)\n    -> Table \
                 scan on {table}  (cost={cost} rows=59) (actual time=0.1..2.5 rows=60175 loops=1)\n"
            ))
        });
        assert_eq!(same, first);
        assert_ne!(other, first);
    }

    #[test]
    fn sqlite_indents_by_parent() {
        let rows = [
            ["3", "0", "0", "CO-ROUTINE r"],
            ["7", "3", "0", "SCAN lineitem"],
            ["9", "0", "0", "SCAN s"],
        ]
        .map(|cells| cells.map(|cell| Some(cell.to_owned())).to_vec());
        let text = render(PlanForm::Parents, &AnswerTable::from(rows.to_vec()));
        assert_eq!(text, "CO-ROUTINE r\n  SCAN lineitem\nSCAN s\n");
    }
}
