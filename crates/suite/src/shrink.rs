//! `--shrink F`: the same plan, smaller. `suites/README.md` states these rules for users.

use crate::catalogue::{Scale, TestNames};
use crate::plan::{DataSize, PlannedOption};

/// A table is not shrunk below this many rows: ranges of 100 rows must still fit.
const ROWS_MIN: u64 = 1_000;
/// A window is not shrunk below this: it must hold some transactions.
const SECONDS_MIN: f64 = 1.0;
/// A counted window is not shrunk below this.
const EVENTS_MIN: u64 = 100;

/// A length of time, shrunk to whole milliseconds; not below one second unless it was.
pub(crate) fn seconds(seconds: f64, shrink: f64) -> f64 {
    let shrunk = (seconds * shrink * 1_000.0).round() / 1_000.0;
    shrunk.max(SECONDS_MIN).min(seconds)
}

/// A number of transactions.
pub(crate) fn events(events: u64, shrink: f64) -> u64 {
    ((events as f64 * shrink).round() as u64).max(EVENTS_MIN).min(events)
}

/// The size of the data as the options state it; `None` if the test has no size of its own.
/// Values that are no numbers are left to the workload, which refuses them.
pub(crate) fn data_size(test: &TestNames, options: &[PlannedOption]) -> Option<DataSize> {
    let value = |scale: &Scale| {
        let given = options.iter().find(|option| option.name == scale.option);
        given.map_or(Some(scale.default), |option| whole(&option.value))
    };
    let size = test.size.as_ref()?;
    Some(DataSize { tables: value(&size.tables)?, rows_per_table: value(&size.rows)? })
}

/// sysbench takes `1e6` for a whole number, too.
fn whole(value: &str) -> Option<u64> {
    let number: f64 = value.parse().ok()?;
    (number.fract() == 0.0 && (0.0..=1e15).contains(&number)).then_some(number as u64)
}

/// Shrinks the data to the share `shrink` of all rows: first the rows of each table, down to
/// 1,000, then the number of tables, down to one. Rewrites the options that say so.
pub(crate) fn data(test: &TestNames, options: &mut Vec<PlannedOption>, shrink: f64) {
    let Some((names, size)) = test.size.as_ref().zip(data_size(test, options)) else { return };
    let wanted = size.tables as f64 * size.rows_per_table as f64 * shrink;
    let floor = ROWS_MIN.min(size.rows_per_table);
    let rows_per_table = ((size.rows_per_table as f64 * shrink).round() as u64).max(floor);
    let tables = (wanted / rows_per_table as f64).round() as u64;
    set(options, &names.rows, rows_per_table);
    set(options, &names.tables, tables.clamp(1, size.tables.max(1)));
}

fn set(options: &mut Vec<PlannedOption>, scale: &Scale, value: u64) {
    match options.iter_mut().find(|option| option.name == scale.option) {
        Some(option) => option.value = value.to_string(),
        None if value == scale.default => {}
        None => options.push(PlannedOption::new(scale.option, value.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;

    fn shrunk(test: &str, tables: u64, rows: u64, shrink: f64) -> (u64, u64) {
        let test = catalogue::test("sysbench", test).expect("a test of the catalogue");
        let names = test.size.as_ref().expect("a test with a size");
        let mut options = vec![
            PlannedOption::new(names.tables.option, tables.to_string()),
            PlannedOption::new(names.rows.option, rows.to_string()),
        ];
        data(test, &mut options, shrink);
        let size = data_size(test, &options).expect("a size");
        (size.tables, size.rows_per_table)
    }

    #[test]
    fn rows_first_then_tables() {
        assert_eq!(shrunk("oltp", 64, 10_000_000, 1.0), (64, 10_000_000));
        assert_eq!(shrunk("oltp", 64, 10_000_000, 0.01), (64, 100_000));
        assert_eq!(shrunk("oltp", 64, 10_000_000, 0.000_05), (32, 1_000));
        assert_eq!(shrunk("oltp_read_only", 250, 25_000, 0.1), (250, 2_500));
        assert_eq!(shrunk("oltp_read_only", 250, 25_000, 0.001), (6, 1_000));
        assert_eq!(shrunk("oltp_read_only", 4, 100, 0.5), (2, 100));
        assert_eq!(shrunk("oltp_read_only", 1, 0, 0.5), (1, 0));
    }

    #[test]
    fn lengths_have_a_floor_but_never_grow() {
        assert_eq!(seconds(600.0, 0.1), 60.0);
        assert_eq!(seconds(600.0, 0.001), 1.0);
        assert_eq!(seconds(0.5, 0.001), 0.5);
        assert_eq!(seconds(0.0, 0.5), 0.0);
        assert_eq!(events(1_000_000, 0.01), 10_000);
        assert_eq!(events(1_000, 0.01), 100);
        assert_eq!(events(7, 0.01), 7);
    }

    #[test]
    fn defaults_are_shrunk_too() {
        let test = catalogue::test("sysbench", "oltp_read_only").expect("a test");
        let mut options = Vec::new();
        data(test, &mut options, 0.2);
        assert_eq!(options, [PlannedOption::new("table_size", "2000".to_string())]);
        let mut options = vec![PlannedOption::new("table_size", "1e6".to_string())];
        data(test, &mut options, 0.5);
        assert_eq!(options, [PlannedOption::new("table_size", "500000".to_string())]);
        let mut options = vec![PlannedOption::new("table_size", "many".to_string())];
        data(test, &mut options, 0.5);
        assert_eq!(options, [PlannedOption::new("table_size", "many".to_string())]);
    }
}
