//! Command lines: what is taken, refused and warned of, and that nothing random breaks a test.

use crate::support::{FakeDriver, Recorded};
use dyno_core::options::OptionError;
use dyno_core::{Dialect, Rng, Tally, Workload};
use dyno_facts::ExperimentFacts;
use dyno_reactor::block_on;
use dyno_report::Experiment;
use dyno_sysbench::{
    KeyDistribution, OPTIONS, Sysbench, SysbenchOptions, SysbenchTest, test_options,
};
use proptest::prelude::*;

fn pairs(words: &[&str]) -> Vec<(String, String)> {
    let pairs = words.iter().map(|word| word.split_once('=').unwrap_or((word, "on")));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn parse(test: SysbenchTest, words: &[&str]) -> Result<SysbenchOptions, OptionError> {
    SysbenchOptions::from_pairs(test, &pairs(words))
}

const LEGACY: SysbenchTest = SysbenchTest::V05Oltp;

#[test]
fn the_defaults_of_the_table_are_the_defaults() {
    for test in SysbenchTest::ALL {
        let defaults: Vec<(String, String)> = test_options(test)
            .filter(|(_, row)| !row.default.is_empty())
            .map(|(name, row)| (name.to_owned(), row.default.to_owned()))
            .collect();
        assert_eq!(
            SysbenchOptions::from_pairs(test, &defaults).unwrap(),
            SysbenchOptions::new(test)
        );
    }
}

#[test]
fn every_option_is_known_to_a_test_and_says_what_it_does() {
    for row in OPTIONS.iter().flat_map(|(_, rows)| *rows) {
        for name in [Some(row.name), row.old_name].into_iter().flatten() {
            let is_known_to =
                |test: &SysbenchTest| test_options(*test).any(|(known, _)| known == name);
            assert!(SysbenchTest::ALL.iter().any(is_known_to) && row.doc.len() > 10, "{name}");
        }
    }
}

#[test]
fn the_options_of_the_papers_are_read() {
    let words =
        ["range_selects=0", "skip-trx=1", "tables=250", "table_size=25000", "table-size=1e5"];
    let options = parse(SysbenchTest::ReadOnly, &words).unwrap();
    assert!(!options.range_selects && options.skip_trx && options.warnings.is_empty());
    assert_eq!((options.tables, options.table_size), (250, 100_000));
    let words = ["oltp_tables_count=64", "oltp-table-size=10000000", "oltp-read-only=on"];
    let options = parse(LEGACY, &words).unwrap();
    assert_eq!((options.tables, options.table_size), (64, 10_000_000));
    assert!(options.read_only && !options.prepared);
}

#[test]
fn wrong_values_are_refused_with_what_is_right() {
    for (name, value, expected) in [
        ("tables", "abc", "a whole number from 1 to 1000000"),
        ("tables", "0", "a whole number from 1 to 1000000"),
        ("point_selects", "2.5", "a whole number from 0 to 1000000"),
        ("table_size", "-1", "a whole number from 0 to 2147483647"),
        ("range_selects", "yes", "on or off"),
        ("rand-type", "foo", "uniform, gaussian, special, pareto or zipfian"),
        ("rand-pareto-h", "1", "a number between 0 and 1, both excluded"),
        ("db-ps-mode", "foo", "auto or disable"),
        ("rand-spec-pct", "200", "a whole number from 0 to 100"),
    ] {
        let error = parse(SysbenchTest::ReadWrite, &[&format!("{name}={value}")]).unwrap_err();
        let mismatch = Box::new((value.to_owned(), expected.to_owned()));
        assert_eq!((error.option.as_deref(), error.mismatch), (Some(name), Some(mismatch)));
    }
    let exclusive = ["oltp-read-only=on", "oltp-write-only=on"];
    assert_eq!(parse(LEGACY, &exclusive).unwrap_err().option, None);
}

#[test]
fn unknown_names_are_refused_with_the_nearest_one() {
    let error = parse(SysbenchTest::ReadWrite, &["tabel-size=5"]).unwrap_err();
    assert_eq!((error.option.as_deref(), error.is_value), (Some("tabel-size"), false));
    assert_eq!(error.hint.as_deref(), Some("Did you mean `table_size`?"));
    assert!(!parse(SysbenchTest::ReadWrite, &["random-points=5"]).unwrap_err().is_value);
    assert!(parse(SysbenchTest::SelectRandomPoints, &["random-points=5"]).is_ok());
}

#[test]
fn the_old_scripts_warn_of_names_and_values_without_effect() {
    for (word, meant) in [
        ("oltp-table-count=5", "oltp-tables-count"),
        ("oltp-tables-size=5", "oltp-table-size"),
        ("oltp-tablesize=5", "oltp-table-size"),
        ("oltp-index-update=5", "oltp-index-updates"),
        ("oltp-non-index-update=5", "oltp-non-index-updates"),
        ("oltop-read-only=on", "oltp-read-only"),
        ("mysql-table-type=innodb", "mysql-table-engine"),
    ] {
        let options = parse(LEGACY, &[word]).unwrap();
        assert_eq!(options.warnings.len(), 1, "{word}");
        let advice = format!("did you mean --{meant}?");
        assert!(options.warnings[0].contains(&advice), "{}", options.warnings[0]);
        let silent = SysbenchOptions { warnings: Vec::new(), ..options };
        assert_eq!(silent, SysbenchOptions::new(LEGACY), "{word} must change nothing");
    }
    let options = parse(LEGACY, &["oltp-read-only=1", "oltp-auto-inc=0"]).unwrap();
    assert!(!options.read_only && options.auto_inc);
    assert_eq!(options.warnings.len(), 2);
    let options = parse(LEGACY, &["oltp-secondary=off"]).unwrap();
    assert!(options.secondary && options.warnings[0].contains("ON"));
    let options = parse(SysbenchTest::BulkInsert, &["tables=5"]).unwrap();
    assert_eq!(options.warnings.len(), 1);
}

#[test]
fn scripts_are_found_by_name_and_path() {
    for test in SysbenchTest::ALL.into_iter().filter(|test| !test.is_legacy()) {
        assert_eq!(SysbenchTest::from_script(test.name()), Some(test));
        let path = format!("/usr/share/sysbench/{}.lua", test.name());
        assert_eq!(SysbenchTest::from_script(&path), Some(test));
    }
    let old = "/usr/share/sysbench/tests/include/oltp_legacy/bulk_insert.lua";
    assert_eq!(SysbenchTest::from_script(old), Some(SysbenchTest::V05BulkInsert));
    assert_eq!(SysbenchTest::from_script("sysbench/tests/db/oltp.lua"), Some(LEGACY));
    assert_eq!(SysbenchTest::from_script("oltp"), Some(LEGACY));
    assert_eq!(SysbenchTest::from_script("my.lua"), None);
}

fn run(options: &SysbenchOptions, dialect: Dialect, transactions: u32) -> (Vec<Recorded>, Tally) {
    let driver = FakeDriver::new(dialect);
    driver.database().misses = true;
    let test = Sysbench::new(options.clone(), dialect);
    let mut session = driver.session();
    let mut tally = Tally::default();
    block_on(async {
        let mut worker = test.open(&mut session, 1, 3, Rng::new(9, "worker", 1)).await.unwrap();
        for _ in 0..transactions {
            test.run(&mut worker, &mut session, 0, 0, &mut tally).await.unwrap();
        }
        test.reopen(&mut worker, &mut session).await.unwrap();
        test.finish(&mut worker, &mut session, &mut tally).await.unwrap();
    })
    .unwrap();
    (std::mem::take(&mut driver.database().log), tally)
}

#[test]
fn changes_of_no_row_are_misses_and_other_statements() {
    let (_, tally) = run(&SysbenchOptions::new(SysbenchTest::ReadWrite), Dialect::Mysql, 10);
    assert_eq!((tally.reads, tally.writes, tally.others), (140, 10, 50));
    assert_eq!(tally.misses, 30);
    let (_, tally) = run(&SysbenchOptions::new(SysbenchTest::Delete), Dialect::Mysql, 10);
    assert_eq!((tally.others, tally.misses), (10, 10));
}

/// Statements that a transaction sends with these options, and those that its trial is judged by.
fn sent_and_expected(test: SysbenchTest, pairs: &[(String, String)]) -> (f64, Option<f64>) {
    let options = SysbenchOptions::from_pairs(test, pairs).expect("good options");
    let (_, tally) = run(&options, Dialect::Mysql, 1);
    let facts = ExperimentFacts { options: pairs.iter().cloned().collect(), ..Default::default() };
    let experiment =
        Experiment { test: format!("sysbench {}", test.name()), facts, ..Experiment::default() };
    let expected = (dyno_sysbench::PAPER.statements)(&experiment, test.name(), test.name());
    ((tally.reads + tally.writes + tally.others) as f64, expected)
}

#[test]
fn each_count_per_transaction_changes_what_is_sent_and_what_is_expected() {
    for test in SysbenchTest::ALL.into_iter().filter(|test| !test.is_bulk_insert()) {
        let (usual, expected) = sent_and_expected(test, &[]);
        assert_eq!(Some(usual), expected, "{test:?}");
    }
    let test = SysbenchTest::ReadWrite;
    let (usual, _) = sent_and_expected(test, &[]);
    let counts = test_options(test).filter(|(_, row)| row.doc.contains("per transaction"));
    for (name, _) in counts {
        let (sent, expected) = sent_and_expected(test, &[(name.to_owned(), "3".to_owned())]);
        assert_eq!(Some(sent), expected, "{name}");
        assert!(sent != usual, "{name} changes nothing");
    }
}

#[test]
fn sqlite_locks_at_once_where_it_will_write() {
    for (test, expected) in [
        (SysbenchTest::ReadOnly, "BEGIN"),
        (SysbenchTest::WriteOnly, "BEGIN IMMEDIATE"),
        (SysbenchTest::ReadWrite, "BEGIN IMMEDIATE"),
    ] {
        let (log, _) = run(&SysbenchOptions::new(test), Dialect::Sqlite, 1);
        let begin = log.into_iter().find(|entry| entry.text.starts_with("BEGIN")).unwrap();
        assert_eq!(begin.text, expected);
    }
}

#[test]
fn servers_number_new_rows_each_in_its_way() {
    for (dialect, expected) in [
        (Dialect::Mysql, "(id, k, c, pad) VALUES (0, "),
        (Dialect::Postgres, "(k, c, pad) VALUES ("),
        (Dialect::Sqlite, "(k, c, pad) VALUES ("),
    ] {
        let (log, _) = run(&SysbenchOptions::new(SysbenchTest::Insert), dialect, 1);
        let insert = log.into_iter().find(|entry| entry.text.starts_with("INSERT")).unwrap();
        assert!(insert.text.contains(expected));
    }
}

#[test]
fn a_new_connection_gets_its_statements_again() {
    let (log, _) = run(&SysbenchOptions::new(SysbenchTest::ReadWrite), Dialect::Postgres, 1);
    let prepares = log.iter().filter(|entry| entry.text.contains("$1")).count();
    assert_eq!(prepares, 2 * 9);
}

#[test]
fn one_stream_gives_one_sequence_of_statements() {
    let options = SysbenchOptions { tables: 5, ..SysbenchOptions::new(SysbenchTest::ReadWrite) };
    let first = run(&options, Dialect::Mysql, 20).0;
    assert_eq!(first, run(&options, Dialect::Mysql, 20).0);
}

fn distributions() -> impl Strategy<Value = KeyDistribution> {
    prop::sample::select(KeyDistribution::ALL.to_vec())
}

prop_compose! {
    fn any_options()(
        test in prop::sample::select(SysbenchTest::ALL.to_vec()),
        counts in prop::array::uniform8(0_u32..4),
        flags in prop::array::uniform8(any::<bool>()),
        tables in 1_u32..6,
        table_size in prop_oneof![1_u32..20, 1_u32..2_147_483_647],
        range_size in 1_u32..1_000,
        distribution in distributions(),
        percents in (1_u32..30, 0_u32..=100, 0_u32..=100),
        shape in (0.01_f64..0.99, 0.0_f64..3.0),
        keys in (1_u32..30, 1_u32..30, 0_u32..100),
    ) -> SysbenchOptions {
        let mut options = SysbenchOptions::new(test);
        [
            options.point_selects, options.simple_ranges, options.sum_ranges, options.order_ranges,
            options.distinct_ranges, options.index_updates, options.non_index_updates,
            options.delete_inserts,
        ] = counts;
        [
            options.range_selects, options.skip_trx, options.auto_inc, options.secondary,
            options.create_secondary, options.read_only, options.prepared, _,
        ] = flags;
        options.prepared &= !test.is_legacy();
        (options.tables, options.table_size, options.range_size) = (tables, table_size, range_size);
        options.random.distribution = distribution;
        (options.random.iterations, options.random.hot_width_percent,
            options.random.hot_share_percent) = percents;
        (options.random.pareto_h, options.random.zipfian_exponent) = shape;
        (options.random_points, options.number_of_ranges, options.delta) = keys;
        options
    }
}

/// The number behind `words`, if the text has them.
fn number_after(text: &str, words: &str) -> Option<i64> {
    let after = text.split_once(words)?.1;
    let end = after.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(after.len());
    after[..end].parse().ok()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn no_options_break_a_test_or_leave_the_table(
        options in any_options(),
        dialect in prop::sample::select(vec![Dialect::Mysql, Dialect::Postgres, Dialect::Sqlite]),
    ) {
        let (log, tally) = run(&options, dialect, 5);
        let ids = 1..=i64::from(options.table_size);
        let mut answered = 0;
        for Recorded { command, text } in &log {
            answered += u64::from(*command != crate::support::Command::Prepare);
            for words in ["WHERE id=", "WHERE id BETWEEN "] {
                if let Some(id) = number_after(text, words) {
                    prop_assert!(ids.contains(&id), "{text}");
                }
            }
            for words in ["k IN (", "k BETWEEN "] {
                if let Some(key) = number_after(text, words) {
                    prop_assert!((0..=*ids.end()).contains(&key), "{text}");
                }
            }
        }
        // Every answered statement is counted; bulk_insert also asks where to continue.
        if !options.test.is_bulk_insert() {
            prop_assert_eq!(tally.statements(), answered);
        }
    }

    #[test]
    fn no_command_line_breaks_the_parser(
        test in prop::sample::select(SysbenchTest::ALL.to_vec()),
        names in prop::collection::vec((any::<prop::sample::Index>(), "[a-z_-]{0,12}", ".{0,8}"), 0..6),
        known in any::<bool>(),
    ) {
        let known_names: Vec<&str> = test_options(test).map(|(name, _)| name).collect();
        let pairs: Vec<_> = names
            .into_iter()
            .map(|(at, name, value)| {
                (if known { at.get(&known_names).to_string() } else { name }, value)
            })
            .collect();
        match SysbenchOptions::from_pairs(test, &pairs) {
            Ok(options) => prop_assert!(options.tables >= 1 && options.range_size >= 1),
            Err(error) => prop_assert!(!error.message.is_empty()),
        }
    }
}
