//! `--shrink F`: the same plan, smaller. `suites/README.md` states these rules for users.

use crate::catalogue::{Scale, Size, TestNames};
use crate::plan::{DataSize, PlannedOption};

/// A table is not shrunk below this many rows: ranges of 100 rows must still fit.
const ROWS_MIN: u64 = 1_000;
/// A factor that may be a fraction is shrunk to a multiple of this: of most smaller ones TPC-H can't make
/// tables that fit together.
const FRACTION_STEP: f64 = 0.01;
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
    match test.size.as_ref()? {
        Size::Tables { rows, tables } => Some(DataSize {
            tables: value(options, tables)?,
            rows_per_table: value(options, rows)?,
        }),
        Size::Factor { factor, rows_per_unit, .. } => Some(DataSize {
            tables: 1,
            rows_per_table: value(options, factor)?.checked_mul(*rows_per_unit)?,
        }),
        Size::Fraction { option, rows_per_unit } => Some(DataSize {
            tables: 1,
            rows_per_table: (fraction(options, option)? * *rows_per_unit as f64).round() as u64,
        }),
    }
}

fn value(options: &[PlannedOption], scale: &Scale) -> Option<u64> {
    let given = options.iter().find(|option| option.name == scale.option);
    given.map_or(Some(scale.default), |option| whole(&option.value))
}

/// sysbench takes `1e6` for a whole number, too.
fn whole(value: &str) -> Option<u64> {
    let number: f64 = value.parse().ok()?;
    (number.fract() == 0.0 && (0.0..=1e15).contains(&number)).then_some(number as u64)
}

/// Shrinks the data to the share `shrink` of all rows and rewrites the options that say so.
pub(crate) fn data(test: &TestNames, options: &mut Vec<PlannedOption>, shrink: f64) {
    match &test.size {
        Some(Size::Tables { rows, tables }) => shrink_tables(rows, tables, options, shrink),
        Some(Size::Factor { factor, rows, .. }) => shrink_factor(factor, rows, options, shrink),
        Some(Size::Fraction { option, .. }) => shrink_fraction(option, options, shrink),
        None => {}
    }
}

/// The most workers that data of this size can have, if there is such a bound.
pub(crate) fn workers_max(test: &TestNames, options: &[PlannedOption]) -> Option<u32> {
    let Some(Size::Factor { factor, workers_per_unit, .. }) = &test.size else { return None };
    let most = value(options, factor)?.saturating_mul(u64::from((*workers_per_unit)?));
    Some(u32::try_from(most).unwrap_or(u32::MAX).max(1))
}

/// First the rows of each table, down to 1,000, then the number of tables, down to one.
fn shrink_tables(rows: &Scale, tables: &Scale, options: &mut Vec<PlannedOption>, shrink: f64) {
    let sizes = value(options, rows).zip(value(options, tables));
    let Some((rows_per_table, count)) = sizes else { return };
    let wanted = count as f64 * rows_per_table as f64 * shrink;
    let floor = ROWS_MIN.min(rows_per_table);
    let fewer_rows = ((rows_per_table as f64 * shrink).round() as u64).max(floor);
    let fewer_tables = (wanted / fewer_rows as f64).round() as u64;
    set(options, rows, fewer_rows);
    set(options, tables, fewer_tables.clamp(1, count.max(1)));
}

/// The factor, down to one; what counts rows shrinks as much as the factor really does.
fn shrink_factor(factor: &Scale, rows: &[&str], options: &mut Vec<PlannedOption>, shrink: f64) {
    let Some(full) = value(options, factor).filter(|&full| full > 0) else { return };
    let shrunk = ((full as f64 * shrink).round() as u64).max(1);
    set(options, factor, shrunk);
    for option in options.iter_mut().filter(|option| rows.contains(&option.name.as_str())) {
        if let Some(count) = whole(&option.value) {
            let fewer = (count as f64 * (shrunk as f64 / full as f64)).round() as u64;
            option.value = fewer.max(count.min(1)).to_string();
        }
    }
}

/// To whole hundredths, down to one.
fn shrink_fraction(name: &str, options: &mut Vec<PlannedOption>, shrink: f64) {
    let Some(full) = fraction(options, name) else { return };
    let hundredths = (full * shrink / FRACTION_STEP).round().max(1.0);
    put(options, name, (hundredths / 100.0).min(full).to_string());
}

/// A number above 0; 1 when the option is not given.
fn fraction(options: &[PlannedOption], name: &str) -> Option<f64> {
    let Some(given) = options.iter().find(|option| option.name == name) else { return Some(1.0) };
    given.value.parse().ok().filter(|number| (0.0..=1e9).contains(number) && *number > 0.0)
}

fn set(options: &mut Vec<PlannedOption>, scale: &Scale, value: u64) {
    let is_given = options.iter().any(|option| option.name == scale.option);
    if is_given || value != scale.default {
        put(options, scale.option, value.to_string());
    }
}

fn put(options: &mut Vec<PlannedOption>, name: &str, value: String) {
    match options.iter_mut().find(|option| option.name == name) {
        Some(option) => option.value = value,
        None => options.push(PlannedOption::new(name, value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;

    fn shrunk(test: &str, tables: u64, rows: u64, shrink: f64) -> (u64, u64) {
        let test = catalogue::test("sysbench", test).expect("a test of the catalogue");
        let Some(Size::Tables { rows: row_names, tables: table_names }) = &test.size else {
            panic!("a test with tables")
        };
        let mut options = vec![
            PlannedOption::new(table_names.option, tables.to_string()),
            PlannedOption::new(row_names.option, rows.to_string()),
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
    fn the_share_of_hot_rows_stays() {
        let test = catalogue::test("pgbench", "script").expect("a test of the catalogue");
        let shrunk = |scale: &str, range: &str, shrink: f64| {
            let mut options = vec![
                PlannedOption::new("scale", scale.to_string()),
                PlannedOption::new("define.range", range.to_string()),
                PlannedOption::new("define.other", "7".to_string()),
            ];
            data(test, &mut options, shrink);
            assert_eq!(options[2].value, "7");
            let rows = data_size(test, &options).expect("a size").rows_per_table;
            (rows, options[1].value.clone())
        };
        assert_eq!(shrunk("1000", "50000000", 0.01), (1_000_000, "500000".to_string()));
        assert_eq!(shrunk("10000", "100000000", 0.000_01), (100_000, "10000".to_string()));
        assert_eq!(shrunk("1000", "half", 0.01), (1_000_000, "half".to_string()));
        let mut options = vec![PlannedOption::new("scale", "many".to_string())];
        data(test, &mut options, 0.5);
        assert_eq!(options, [PlannedOption::new("scale", "many".to_string())]);
    }

    #[test]
    fn a_warehouse_has_ten_terminals() {
        let test = catalogue::test("tpcc", "bmsql-5.0").expect("a test of the catalogue");
        let mut options = vec![PlannedOption::new("warehouses", "1000".to_string())];
        assert_eq!(workers_max(test, &options), Some(10_000));
        data(test, &mut options, 0.002);
        assert_eq!(data_size(test, &options).expect("a size").rows_per_table, 600_000);
        assert_eq!(workers_max(test, &options), Some(20));
        data(test, &mut options, 0.000_1);
        assert_eq!(workers_max(test, &options), Some(10));
        let test = catalogue::test("pgbench", "tpcb-like").expect("a test of the catalogue");
        assert_eq!(workers_max(test, &[]), None);
    }

    #[test]
    fn a_scale_factor_may_be_a_fraction() {
        let test = catalogue::test("tpch", "queries").expect("a test of the catalogue");
        let shrunk = |scale: &str, shrink: f64| {
            let mut options = vec![PlannedOption::new("scale", scale.to_string())];
            data(test, &mut options, shrink);
            (options[0].value.clone(), data_size(test, &options).map(|size| size.rows_per_table))
        };
        assert_eq!(shrunk("100", 0.0001), ("0.01".to_string(), Some(60_000)));
        assert_eq!(shrunk("100", 0.01), ("1".to_string(), Some(6_000_000)));
        assert_eq!(shrunk("0.1", 0.1), ("0.01".to_string(), Some(60_000)));
        assert_eq!(shrunk("1", 0.123), ("0.12".to_string(), Some(720_000)));
        assert_eq!(shrunk("1", 0.000_1), ("0.01".to_string(), Some(60_000)));
        assert_eq!(shrunk("0.0005", 0.5), ("0.0005".to_string(), Some(3_000)));
        assert_eq!(shrunk("tiny", 0.5), ("tiny".to_string(), None));
        assert_eq!(shrunk("0", 0.5), ("0".to_string(), None));
        let mut options = Vec::new();
        data(test, &mut options, 0.5);
        assert_eq!(options, [PlannedOption::new("scale", "0.5".to_string())]);
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
