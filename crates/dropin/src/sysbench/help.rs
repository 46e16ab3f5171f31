//! `--help` and the command `help`: the layout of sysbench, from the tables that are parsed.

use super::options::{self, DEPRECATED};
use dyno_core::options::OptionRow;
use dyno_sysbench::{OPTIONS, OptionGroup, SysbenchTest, options_of};
use std::fmt::Write as _;

/// One row: the option with its kind of value, and what it does.
type Row = (String, String);

fn row_of<S>(name: &str, option: &OptionRow<S>) -> Row {
    let option_text = match option.metavariable() {
        switch @ "on|off" => format!("--{name}[={switch}]"),
        value => format!("--{name}={value}"),
    };
    (option_text, format!("{} [{}]", option.doc, option.default))
}

/// Writes rows with their texts one below the other.
fn write_rows(out: &mut String, rows: &[Row]) {
    let width = rows.iter().map(|(option, _)| option.len()).max().unwrap_or(0);
    for (option, help) in rows {
        // Writing to a String can't fail.
        let _ = writeln!(out, "  {option:<width$} {help}");
    }
    out.push('\n');
}

fn rows_of<S>(options: &[OptionRow<S>]) -> Vec<Row> {
    options.iter().map(|option| row_of(option.name, option)).collect()
}

/// Rows of the options that all tests share but the tests' own table describes.
fn shared_rows(shared: OptionGroup) -> Vec<Row> {
    OPTIONS
        .iter()
        .filter(|(group, _)| *group == shared)
        .flat_map(|(_, rows)| rows_of(rows))
        .collect()
}

fn general_rows() -> Vec<Row> {
    let mut rows = rows_of(options::GENERAL);
    rows.push((
        "--config-file=FILENAME".to_owned(),
        "Read more options from this file: a line name=value each, # before comments".to_owned(),
    ));
    for (old, new) in DEPRECATED {
        rows.push((format!("--{old}=N"), format!("Old name of --{new}")));
    }
    rows
}

const USAGE: &str = "\
Usage:
  dyno sysbench [options]... [testname] [command]
  sysbench [options]... [testname] [command]      (when dyno is called by this name)

Commands of the tests: prepare prewarm run cleanup help

";

const NOTES: &str = "\
What is different from sysbench 1.0.20:
  Statements of failed attempts are in no count and no rate; --errors shows them.
  A transaction that has not ended when the time is over is in no count.
  Latency is exact to three digits, and no percentile lies outside of min and max.
  With --rate, latency counts from the time a transaction was due; a rate that was missed by over
  1 % ends with exit code 1, after the report. As in sysbench, all threads take arrivals from one queue.
  --rand-seed gives every worker the same transactions in each run, and prepare the same rows.
  A number that is not a number is refused; so is a misspelt option.
  A failed transaction of a built-in test is rolled back before it is tried again; a script's is not
  (on PostgreSQL after an error that is ignored, as in sysbench).
  localhost means the server's unix socket only when --mysql-port is not given.
  prepare completes tables that an interrupted prepare has left; a failed one ends with exit code 1.
  While dyno run or another prepare works on the tables, prepare and cleanup of the built-in tests
  do not begin, and run gets a warning; so does a run on tables with fewer rows than --table-size.
  The tests above are built in. An unchanged script of sysbench 1.0.20 means its test, wherever the
  file is; any other Lua script that exists is executed (its options: the command help).

Exit codes: 0 done, 1 failed, 2 forced shutdown or no connection in time, 130 stopped with Ctrl-C,
143 stopped by SIGTERM (the report of what was measured until then is printed).

See 'dyno sysbench <testname> help' for the options of a test.
";

fn test_names(legacy: bool) -> String {
    let named = SysbenchTest::ALL.iter().filter(|test| test.is_legacy() == legacy);
    let names: Vec<&str> = named.map(|test| test.name()).collect();
    names.join(", ")
}

/// The text of `--help`.
pub(super) fn general() -> String {
    let mut out = String::from(USAGE);
    let mut random = shared_rows(OptionGroup::Random);
    random.extend(rows_of(options::RANDOM));
    let mut database = rows_of(options::DATABASE);
    database.extend(shared_rows(OptionGroup::Database));
    let sections = [
        ("General options:", general_rows()),
        ("Pseudo-Random Numbers Generator options:", random),
        ("Log options:", rows_of(options::LOG)),
        ("Statistics options:", rows_of(options::STATISTICS)),
        ("General database options:", database),
    ];
    for (heading, rows) in sections {
        let _ = writeln!(out, "{heading}");
        write_rows(&mut out, &rows);
    }
    out.push_str(
        "Compiled-in database drivers:\n  mysql - MySQL and MariaDB\n  pgsql - PostgreSQL\n  \
         sqlite - SQLite, embedded\n\n",
    );
    let sections = [
        ("mysql options:", rows_of(options::MYSQL)),
        ("pgsql options:", rows_of(options::PGSQL)),
        ("Options that sysbench 1.0.20 does not have:", rows_of(options::DYNO)),
    ];
    for (heading, rows) in sections {
        let _ = writeln!(out, "{heading}");
        write_rows(&mut out, &rows);
    }
    let _ = writeln!(out, "Compiled-in tests:\n  {}", test_names(false));
    let _ = writeln!(out, "Tests of sysbench 0.5:\n  {}\n", test_names(true));
    out.push_str(NOTES);
    out
}

/// The text of the command `help` of a test; `None` when it has no options, as the original's
/// bulk_insert.
pub(super) fn of_test(test: SysbenchTest) -> Option<String> {
    let shared = [OptionGroup::Random, OptionGroup::Database];
    let is_shared = |name: &str| {
        let mut rows =
            OPTIONS.iter().filter(|(group, _)| shared.contains(group)).flat_map(|(_, rows)| *rows);
        rows.any(|row| row.name == name)
    };
    let own = options_of(test).filter(|(name, _)| !is_shared(name));
    let mut rows: Vec<Row> = own.map(|(name, option)| row_of(name, option)).collect();
    if rows.is_empty() {
        return None;
    }
    rows.sort();
    let mut out = format!("{} options:\n", test.name());
    write_rows(&mut out, &rows);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What stands before the first blank of each line that describes an option.
    fn options_in(text: &str) -> Vec<&str> {
        let lines = text.lines().filter(|line| line.starts_with("  --"));
        lines.filter_map(|line| line.split_whitespace().next()).collect()
    }

    /// Option names and kinds of `sysbench --help`, 1.0.20, one a line.
    const ORIGINAL_GENERAL: &str = include_str!("../../golden/sysbench/general_options.txt");
    /// The same of `sysbench oltp_read_write help`.
    const ORIGINAL_READ_WRITE: &str =
        include_str!("../../golden/sysbench/oltp_read_write_options.txt");

    #[test]
    fn every_option_of_the_original_is_listed_with_its_kind() {
        let text = general();
        let ours = options_in(&text);
        // Three options take more than in 1.0.20.
        let wider = [
            ("--mysql-ssl[=on|off]", "--mysql-ssl=STRING"),
            ("--pgsql-host=STRING", "--pgsql-host=[LIST,...]"),
            ("--pgsql-port=N", "--pgsql-port=[LIST,...]"),
        ];
        for original in ORIGINAL_GENERAL.lines() {
            let wider = wider.iter().find(|(narrow, _)| *narrow == original);
            let expected = wider.map_or(original, |(_, wide)| wide);
            assert!(ours.contains(&expected), "{expected} is missing:\n{text}");
        }
        let text = of_test(SysbenchTest::ReadWrite).expect("it has options");
        let ours = options_in(&text);
        for original in ORIGINAL_READ_WRITE.lines() {
            assert!(ours.contains(&original), "{original} is missing:\n{text}");
        }
    }

    #[test]
    fn the_help_of_a_test_has_the_originals_shape() {
        let text = of_test(SysbenchTest::ReadWrite).expect("it has options");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "oltp_read_write options:");
        assert!(lines[1].starts_with("  --auto_inc[=on|off]  "), "{}", lines[1]);
        assert!(lines[1].ends_with(" [on]"), "{}", lines[1]);
        assert!(lines[1..lines.len() - 1].is_sorted());
        assert_eq!(lines[lines.len() - 1], "");
        assert!(of_test(SysbenchTest::BulkInsert).is_none());
    }
}
