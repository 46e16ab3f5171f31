//! The bundled figures: every value is there, of the right kind, and adds up.

use dyno_facts::PublishedRow;
use dyno_suite::figures::{self, PublishedColumn, PublishedFigure};

/// The rows that have this value of a condition.
fn rows<'a>(figure: &'a PublishedFigure, condition: &str, value: &str) -> Vec<&'a PublishedRow> {
    figure.rows.iter().filter(|row| row.conditions[condition] == value).collect()
}

#[test]
fn all_four_are_read_in_full() {
    let counts: Vec<(&str, usize, usize)> = figures::all()
        .iter()
        .map(|figure| {
            let published = figure.rows.iter().map(|row| row.number).max().unwrap_or(0);
            (figure.name.as_str(), published, figure.rows.len())
        })
        .collect();
    let expected = [
        ("polardb-for-oracle-pgbench", 16, 32),
        ("polardb-mysql-8.0-tpch-sf100", 22, 44),
        ("polardb-x-tpcc", 3, 3),
        ("rds-mysql-5.6-sysbench", 12, 12),
    ];
    assert_eq!(counts, expected);
    for figure in figures::all() {
        assert!(!figure.source.is_empty() && !figure.method.is_empty(), "{}", figure.name);
        let is_condition =
            |column: &PublishedColumn| matches!(column, PublishedColumn::Condition { .. });
        for (column, _) in figure.columns.iter().filter(|(_, column)| is_condition(column)) {
            for row in &figure.rows {
                let number = row.number(column);
                assert!(number.is_some_and(|n| n > 0.0), "{} {column}", figure.name);
            }
        }
        for row in &figure.rows {
            assert!(!row.label.is_empty() && !row.metrics.is_empty(), "{}", figure.name);
            assert!(row.metrics.values().all(|value| *value > 0.0), "{}", figure.name);
        }
    }
}

#[test]
fn rds_rows_add_up() {
    let figure = figures::figure("rds-mysql-5.6-sysbench").expect("the figure");
    for (metric, sum) in [("tps", 15_659.0), ("qps", 291_523.0)] {
        assert_eq!(figure.rows.iter().map(|row| row.metrics[metric]).sum::<f64>(), sum);
    }
    let ratios: Vec<f64> =
        figure.rows.iter().map(|row| row.metrics["qps"] / row.metrics["tps"]).collect();
    // The note of the figure names this range.
    assert!(ratios.iter().all(|ratio| (11.6..=21.3).contains(ratio)), "{ratios:?}");
    let last = figure.rows.last().expect("a row");
    assert_eq!((last.label.as_str(), last.metrics["tps"]), ("rds.mysql.st.d13", 4_176.0));
    assert_eq!(last.conditions["tables"], "64");
}

#[test]
fn tpch_speedups_are_the_ratio_of_the_times() {
    let figure = figures::figure("polardb-mysql-8.0-tpch-sf100").expect("the figure");
    let parallel = rows(figure, "degree", "16");
    let serial = rows(figure, "degree", "0");
    assert_eq!((parallel.len(), serial.len()), (22, 22));
    for (fast, slow) in parallel.iter().zip(&serial) {
        assert_eq!(fast.label, slow.label);
        let ratio = slow.metrics["seconds"] / fast.metrics["seconds"];
        assert_eq!(ratio.round(), fast.metrics["speedup_as_printed"], "{}", fast.label);
    }
}

#[test]
fn pgbench_columns_become_scripts() {
    let figure = figures::figure("polardb-for-oracle-pgbench").expect("the figure");
    let read_only = rows(figure, "script", "read-only");
    let read_write = rows(figure, "script", "read-write");
    assert_eq!((read_only.len(), read_write.len()), (16, 16));
    for (read, write) in read_only.iter().zip(&read_write) {
        assert!(read.metrics["data_qps"] > write.metrics["data_qps"], "{}", read.label);
        let rows = read.number("scale").map(|scale| scale * 100_000.0);
        assert_eq!(read.number("rows"), rows);
    }
    let printed: Vec<Option<f64>> = rows(figure, "class", "polar.o.x8.4xlarge")
        .iter()
        .map(|row| row.number("memory_gib"))
        .collect();
    assert!(printed.contains(&Some(256.0)) && printed.contains(&Some(128.0)));
}

#[test]
fn tpcc_scales_as_published() {
    let figure = figures::figure("polardb-x-tpcc").expect("the figure");
    let tpmc: Vec<f64> = figure.rows.iter().map(|row| row.metrics["tpmc"]).collect();
    assert_eq!(tpmc, [65_735.14, 101_620.8, 821_547.97]);
}

#[test]
fn broken_figures_are_refused_with_their_place() {
    let sidecar = "title = { en = 'T', zh = 'T' }\nsource = { en = 'S', zh = 'S' }\nmethod = { en = 'M', zh = 'M' }\n[columns]\n\
                   class = { role = 'label', meaning = 'c' }\n\
                   tps = { role = 'metric', metric = 'tps', meaning = 't' }\n";
    assert!(PublishedFigure::parse("f", "class,tps\na,1\n", sidecar).is_ok());
    for (csv, message) in [
        ("class,tps\na,1\nb,x\n", "f.csv:3: `x` in the column `tps` is not a number."),
        ("class,qps\na,1\n", "f.csv:1: The column `qps` is not described."),
        ("class\na\n", "f.csv:1: There is no column `tps`."),
        (
            "class,tps\na,1,2\n",
            "f.csv:2: A row must have a plain value without quotes for every column.",
        ),
    ] {
        assert_eq!(PublishedFigure::parse("f", csv, sidecar).expect_err("broken"), message);
    }
    let misspelt = PublishedFigure::parse("f", "class,tps\n", &sidecar.replace("source", "sauce"));
    let message = misspelt.expect_err("broken");
    assert!(message.starts_with("f.toml: unknown field `sauce`"), "{message}");
}
