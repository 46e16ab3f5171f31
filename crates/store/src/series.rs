//! `trials/<n>.csv`: a line per interval; `trials/<n>.nodes.csv`: a line per moment and node.

use dyno_core::is_command;
use dyno_facts::{NodeRow, SeriesRow};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// The columns in their order; a reader goes by the header line, not by this order.
const SERIES_COLUMNS: &str = "begins_s,length_s,phase,started,committed,rolled_back,failed,skipped,retries,reconnects,\
                              errors,reads,writes,others,wasted,tps,qps,mean_us,p50_us,p95_us,p99_us,max_us,\
                              loops_cpu_s,host_cpu_share,host_steal_share,committed_by_kind";

/// A cell with one number per kind of transaction, apart by semicolons.
const LIST: &str = "committed_by_kind";

/// The columns of `trials/<n>.nodes.csv`. The name comes last: it may hold commas.
const NODE_COLUMNS: &str = "at_s,active_sessions,waiting_sessions,cpu_share,pages_read,pages_written,log_bytes,\
                            dirty_share,lag_s,node";

const NODE: &str = "node";

pub(crate) fn header_line() -> String {
    format!("{SERIES_COLUMNS}\n")
}

/// A row of `trials/<n>.csv` with its line end.
pub(crate) fn line(row: &SeriesRow) -> String {
    serialize_cells(SERIES_COLUMNS, row)
}

pub(crate) fn node_header_line() -> String {
    format!("{NODE_COLUMNS}\n")
}

pub(crate) fn node_line(row: &NodeRow) -> String {
    let node = row.node.replace(is_command, " ");
    serialize_cells(NODE_COLUMNS, &NodeRow { node, ..row.clone() })
}

fn serialize_cells(columns: &str, row: &impl Serialize) -> String {
    let value = serde_json::to_value(row).unwrap_or_default();
    let cells = columns.split(',').map(|column| match value.get(column) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(numbers)) => {
            numbers.iter().map(Value::to_string).collect::<Vec<_>>().join(";")
        }
        None | Some(Value::Null) => String::new(),
        Some(number) => number.to_string(),
    });
    cells.collect::<Vec<_>>().join(",") + "\n"
}

/// Reads the whole lines of a series; unknown columns are passed over, missing ones are 0.
/// The second list has the numbers of lines that were left out because they are damaged.
pub fn read_series(text: &str) -> (Vec<SeriesRow>, Vec<usize>) {
    parse_rows(SERIES_COLUMNS, text)
}

/// Reads the rows of nodes; missing columns are not known.
pub fn read_nodes(text: &str) -> (Vec<NodeRow>, Vec<usize>) {
    parse_rows(NODE_COLUMNS, text)
}

fn parse_rows<T: DeserializeOwned>(known: &str, text: &str) -> (Vec<T>, Vec<usize>) {
    let mut lines = text.lines();
    let columns: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let mut rows = Vec::new();
    let mut damaged = Vec::new();
    for (index, line) in lines.enumerate() {
        match parse_row(known, &columns, line) {
            Some(row) => rows.push(row),
            None => damaged.push(index + 2),
        }
    }
    (rows, damaged)
}

fn parse_row<T: DeserializeOwned>(known: &str, columns: &[&str], line: &str) -> Option<T> {
    let max_cells = if columns.last() == Some(&NODE) { columns.len() } else { usize::MAX };
    let cells: Vec<&str> = line.splitn(max_cells, ',').collect();
    if cells.len() != columns.len() {
        return None;
    }
    let mut object = Map::new();
    for (column, cell) in columns.iter().zip(cells).filter(|(_, cell)| !cell.is_empty()) {
        let value = match *column {
            column if known.split(',').all(|known| known != column) => continue,
            "phase" | NODE => Value::String(cell.to_owned()),
            LIST => {
                let numbers = cell.split(';').map(|number| serde_json::from_str(number).ok());
                Value::Array(numbers.collect::<Option<_>>()?)
            }
            _ => serde_json::from_str(cell).ok()?,
        };
        object.insert((*column).to_owned(), value);
    }
    serde_json::from_value(Value::Object(object)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_field_has_its_column() {
        let row = SeriesRow { committed_by_kind: vec![1], ..SeriesRow::default() };
        let value = serde_json::to_value(row).expect("JSON");
        let mut fields: Vec<&str> =
            value.as_object().expect("object").keys().map(String::as_str).collect();
        let mut columns: Vec<&str> = SERIES_COLUMNS.split(',').collect();
        fields.sort_unstable();
        columns.sort_unstable();
        assert_eq!(fields, columns);
    }

    #[test]
    fn every_field_of_a_node_has_its_column() {
        let value = serde_json::to_value(NodeRow::default()).expect("JSON");
        let mut fields: Vec<&str> =
            value.as_object().expect("object").keys().map(String::as_str).collect();
        let mut columns: Vec<&str> = NODE_COLUMNS.split(',').collect();
        fields.sort_unstable();
        columns.sort_unstable();
        assert_eq!(fields, columns);
    }

    #[test]
    fn what_a_node_did_not_say_is_not_zero() {
        let row = NodeRow {
            at_s: -1.5,
            node: "rds, \"zone a\"".to_owned(),
            active_sessions: Some(0.0),
            ..NodeRow::default()
        };
        let text = node_header_line() + &node_line(&row);
        assert_eq!(read_nodes(&text), (vec![row], Vec::new()));
        let torn = node_header_line() + "1.0,2\n";
        assert_eq!(read_nodes(&torn).1.len(), 1);
    }

    #[test]
    fn columns_of_other_versions_do_not_matter() {
        let (rows, warnings) =
            read_series("committed,moon,phase\n7,full,measured\nx,full,measured\n");
        assert_eq!((rows[0].committed, rows[0].phase.as_str()), (7, "measured"));
        assert_eq!((rows.len(), warnings.len()), (1, 1));
    }

    #[test]
    fn commits_by_kind_are_one_cell() {
        let row = SeriesRow { committed_by_kind: vec![45, 0, 4], ..SeriesRow::default() };
        assert!(line(&row).ends_with(",45;0;4\n"), "{}", line(&row));
        assert!(line(&SeriesRow::default()).ends_with(",\n"), "one kind only: nothing to add");
        let (rows, warnings) = read_series("committed_by_kind\n45;0;4\n45;x\n");
        assert_eq!((rows, warnings.len()), (vec![row], 1));
    }

    proptest! {
        #[test]
        fn series_round_trip(begins_s in -1e4..1e6_f64, committed: u64, tps in 0.0..1e9_f64, max_us in 0.0..1e12_f64, committed_by_kind: Vec<u64>) {
            let row = SeriesRow { begins_s, length_s: 1.0, phase: "measured".to_owned(), committed, tps, max_us, committed_by_kind, ..SeriesRow::default() };
            let (rows, warnings) = read_series(&(header_line() + &line(&row)));
            prop_assert!(warnings.is_empty());
            prop_assert_eq!(rows, vec![row]);
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "([0-9a-z,;.\"-]|\n)*") {
            let (rows, warnings) = read_series(&text);
            prop_assert_eq!(rows.len() + warnings.len(), text.lines().count().saturating_sub(1));
        }
    }
}
