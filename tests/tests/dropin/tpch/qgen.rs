//! `dyno tpch qgen`.

use super::support::{assert_refused, good, run_tpch};
use dyno_testkit::Scratch;

const GOLDEN: &str = include_str!("../../../../crates/workloads/tpch/golden/parameters.tsv");

/// The queries of an output by their numbers, in its order.
fn numbers(stdout: &str) -> Vec<u8> {
    let number = |line: &str| {
        let text = line.strip_prefix("-- TPC-H query ")?;
        text.split(':').next()?.parse().ok()
    };
    stdout.lines().filter_map(number).collect()
}

#[test]
fn parameters_are_those_of_qgen() {
    let folder = Scratch::new();
    let output = good(&folder, &["qgen", "-r", "101000000", "--parameters"]);
    assert_eq!(output.stdout, GOLDEN);
    assert_eq!(output.stderr, "");
    let output = good(&folder, &["qgen", "-d", "-s", "0.1", "--parameters", "11", "6"]);
    assert_eq!(output.stdout, "11\tGERMANY\t0.0010000000\n6\t1994-01-01\t.06\t24\n");
}

#[test]
fn a_stream_has_its_order() {
    let folder = Scratch::new();
    let query_numbers =
        |words: &[&str]| numbers(&good(&folder, &[&["qgen", "-d"], words].concat()).stdout);
    assert_eq!(query_numbers(&[]), (1..=22).collect::<Vec<u8>>());
    assert_eq!(query_numbers(&["-p", "0"])[..4], [14, 2, 9, 20]);
    assert_eq!(query_numbers(&["-p", "1"])[..4], [21, 3, 18, 5]);
    assert_eq!(query_numbers(&["-p", "41"]), query_numbers(&["-p", "1"]));
    assert_eq!(query_numbers(&["-p", "1", "3", "1"]), [3, 1]);
}

#[test]
fn texts_follow_the_dialect() {
    let folder = Scratch::new();
    let query_texts = |dialect| {
        good(&folder, &["qgen", "-d", "--dialect", dialect, "4", "15"]).stdout.to_lowercase()
    };
    assert!(query_texts("postgres").contains("interval '3' month"));
    assert!(!query_texts("sqlite").contains("interval"));
    assert!(!query_texts("mysql").contains("create view"));
    let view = good(&folder, &["qgen", "-d", "-p", "7", "--view", "15"]).stdout.to_lowercase();
    assert!(view.contains("create view") && view.contains("drop view"), "{view}");
    let statements = query_texts("postgres");
    assert_eq!(statements.matches(";\n").count(), 2, "{statements}");
}

#[test]
fn without_a_seed_the_time_of_day_is_one_and_told() {
    let folder = Scratch::new();
    let first = good(&folder, &["qgen", "--parameters"]);
    let seed = first.stderr.strip_prefix("seed: ").expect("the seed").trim().to_owned();
    let again = good(&folder, &["qgen", "-r", &seed, "--parameters"]);
    assert_eq!(again.stdout, first.stdout);
}

#[test]
fn wrong_words_are_refused() {
    let folder = Scratch::new();
    let stuck = "The seed 0 draws the same parameters for ever";
    assert_refused(&folder, &["qgen", "-r", "0"], 2, stuck, "Clause 2.1.3.3");
    assert_refused(&folder, &["qgen", "-d", "-s", "0"], 2, "The scale factor must be", "Use 1 for");
    for words in ["qgen 23", "qgen 0", "qgen -d -r 5", "qgen -r -1", "qgen --dialect oracle"] {
        let output = run_tpch(&folder, &words.split(' ').collect::<Vec<_>>());
        assert_eq!(output.code, 2, "{words}: {output}");
    }
}
