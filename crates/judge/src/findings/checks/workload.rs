//! What workloads should have executed, from their names and options: statements per transaction, and
//! how unevenly keys are drawn.

use crate::evidence::Experiment;
use crate::text::Message;
use dyno_facts::{TrialSummary, say};

/// An option by its name of sysbench 1.0, whatever its spelling: `oltp-simple-ranges` of 0.5 is
/// `simple_ranges`.
fn option<'a>(experiment: &'a Experiment, name: &str) -> Option<&'a str> {
    let plain = |given: &str| given.replace('-', "_").trim_start_matches("oltp_").to_owned();
    let found = experiment.options.iter().find(|(given, _)| plain(given) == name);
    found.map(|(_, value)| value.as_str())
}

fn number(experiment: &Experiment, name: &str, default: f64) -> f64 {
    option(experiment, name).and_then(|value| value.parse().ok()).unwrap_or(default)
}

fn is_on(experiment: &Experiment, name: &str, default: bool) -> bool {
    match option(experiment, name) {
        Some(value) => matches!(value, "on" | "1" | "true"),
        None => default,
    }
}

/// Statements of a transaction of a sysbench test with these options; `None` of other tests, and of
/// those whose transactions are rows of one statement.
pub(super) fn sysbench_statements(experiment: &Experiment, test: &str) -> Option<f64> {
    if !experiment.test.starts_with("sysbench ") {
        return None;
    }
    let count = |name: &str| number(experiment, name, 1.0);
    let ranges: f64 =
        ["simple_ranges", "sum_ranges", "order_ranges", "distinct_ranges"].map(count).iter().sum();
    let ranges = if is_on(experiment, "range_selects", true) { ranges } else { 0.0 };
    let reads = number(experiment, "point_selects", 10.0) + ranges;
    let writes =
        count("index_updates") + count("non_index_updates") + 2.0 * count("delete_inserts");
    let frame = if is_on(experiment, "skip_trx", false) { 0.0 } else { 2.0 };
    Some(match test {
        "oltp_read_only" => reads + frame,
        "oltp_write_only" => writes + frame,
        "oltp_read_write" => reads + writes + frame,
        "oltp" => {
            let reads = if is_on(experiment, "write_only", false) { 0.0 } else { reads };
            let writes = if is_on(experiment, "read_only", false) { 0.0 } else { writes };
            reads + writes + frame
        }
        "oltp_update_index" => count("index_updates"),
        "oltp_update_non_index" => count("non_index_updates"),
        "oltp_point_select"
        | "oltp_insert"
        | "oltp_delete"
        | "oltp_simple"
        | "select"
        | "insert"
        | "delete"
        | "update_index"
        | "update_non_index"
        | "select_random_points"
        | "select_random_ranges" => 1.0,
        _ => return None,
    })
}

/// Statements of a transaction of one of pgbench's scripts: its own ones by name, others by their
/// text. `None` of scripts with branches.
pub(super) fn pgbench_statements(experiment: &Experiment, kind: &str) -> Option<f64> {
    if !experiment.test.starts_with("pgbench ") {
        return None;
    }
    let own = experiment.scripts.iter().find(|script| script.name == kind);
    match own {
        Some(script) => script_statements(&script.text),
        None => match kind {
            "tpcb-like" => Some(7.0),
            "simple-update" => Some(5.0),
            "select-only" => Some(1.0),
            _ => None,
        },
    }
}

/// Statements by their semicolons; commands with a backslash end with their line.
fn script_statements(text: &str) -> Option<f64> {
    // A comment may hold a semicolon.
    let lines = || text.lines().filter_map(|line| line.split("--").next().map(str::trim));
    let ends_otherwise = |line: &str| {
        ["\\if", "\\gset", "\\aset", "\\;"].iter().any(|word| line.contains(word))
            || line.contains(['\'', '$'])
            || line.contains("/*")
    };
    if lines().any(ends_otherwise) {
        return None;
    }
    let sql: Vec<&str> = lines().filter(|line| !line.starts_with('\\')).collect();
    let sql = sql.join("\n");
    let statements = sql.split(';').filter(|statement| !statement.trim().is_empty()).count();
    Some(statements as f64)
}

/// Statements of a trial by what they should be, of each kind of which that is known.
pub(super) fn expected(experiment: &Experiment, summary: &TrialSummary) -> Vec<(String, f64, f64)> {
    let of_kind = |kind: &dyno_facts::KindSummary| {
        let wanted = sysbench_statements(experiment, &summary.test)
            .or_else(|| pgbench_statements(experiment, &kind.name))?;
        let done = (kind.counts.committed + kind.counts.rolled_back) as f64;
        (done > 0.0).then(|| (kind.name.clone(), kind.statements.total() as f64 / done, wanted))
    };
    summary.kinds.iter().filter_map(of_kind).collect()
}

/// How keys are drawn where that is not evenly: the law and its share of draws that meet the hottest
/// 1 % of the rows.
pub(super) fn skew(experiment: &Experiment) -> Option<Message> {
    let test = experiment.test.strip_prefix("sysbench ")?;
    if matches!(test, "oltp_insert" | "insert" | "bulk_insert") {
        return None;
    }
    // 1.0.20 and 0.5 draw so when nothing is said.
    let law = option(experiment, "rand_type").unwrap_or("special");
    let share = hottest_share(experiment, law)?;
    Some(say!(percent_of_the_draws_on_1, law = law, share = format!("{:.0}", 100.0 * share)))
}

/// The share of draws that meet the hottest 1 % of the rows; `None` of even draws.
fn hottest_share(experiment: &Experiment, law: &str) -> Option<f64> {
    const HOTTEST: f64 = 0.01;
    /// Of the mean of 12 even numbers, the peak of the bell by its mean height.
    const BELL: f64 = 12.0 * 0.398_942_28;
    let of_bell = HOTTEST * BELL;
    match law {
        "gaussian" => Some(of_bell),
        "special" => {
            let width = number(experiment, "rand_spec_pct", 1.0) / 100.0;
            let hot = number(experiment, "rand_spec_res", 75.0) / 100.0;
            let of_window = hot * (HOTTEST / width.max(1e-9)).min(1.0);
            Some(of_window + (1.0 - hot) * of_bell)
        }
        "pareto" => {
            let h = number(experiment, "rand_pareto_h", 0.2);
            // Of the first x of the values: x to the power of ln(1 - h) / ln(h).
            Some(HOTTEST.powf((1.0 - h).ln() / h.ln()))
        }
        "zipfian" => {
            let rows = number(experiment, "table_size", 10_000.0).max(100.0);
            let exponent = number(experiment, "rand_zipfian_exp", 0.8);
            Some(harmonic(rows * HOTTEST, exponent) / harmonic(rows, exponent))
        }
        _ => None,
    }
}

/// The sum of k to the power of minus `exponent` for k from 1 to `n`; beyond a thousand by integral.
fn harmonic(n: f64, exponent: f64) -> f64 {
    const EXACT: f64 = 1000.0;
    let exact = n.min(EXACT) as u64;
    let sum: f64 = (1..=exact).map(|k| (k as f64).powf(-exponent)).sum();
    let primitive = |x: f64| match (exponent - 1.0).abs() < 1e-9 {
        true => x.ln(),
        false => x.powf(1.0 - exponent) / (1.0 - exponent),
    };
    match n > EXACT {
        true => sum + primitive(n + 0.5) - primitive(EXACT + 0.5),
        false => sum,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn experiment(test: &str, options: &[(&str, &str)]) -> Experiment {
        let options =
            options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Experiment { test: test.to_owned(), options, ..Experiment::default() }
    }

    #[test]
    fn statements_of_sysbench_follow_from_its_options() {
        let of = |test: &str, options: &[(&str, &str)]| {
            sysbench_statements(&experiment(&format!("sysbench {test}"), options), test)
        };
        assert_eq!(of("oltp_read_only", &[]), Some(16.0));
        assert_eq!(of("oltp_read_only", &[("range_selects", "0"), ("skip-trx", "1")]), Some(10.0));
        assert_eq!(of("oltp_write_only", &[]), Some(6.0));
        assert_eq!(of("oltp_read_write", &[]), Some(20.0));
        assert_eq!(of("oltp", &[("oltp-read-only", "on"), ("oltp-sum-ranges", "0")]), Some(15.0));
        assert_eq!(of("bulk_insert", &[]), None);
        assert_eq!(sysbench_statements(&experiment("pgbench x", &[]), "oltp_read_only"), None);
    }

    #[test]
    fn statements_of_scripts_are_counted_unless_they_branch() {
        assert_eq!(script_statements("\\set a 1\n-- b;\nBEGIN;\nSELECT\n1;\nEND;\n"), Some(3.0));
        assert_eq!(script_statements("SELECT 1; -- one; two\n"), Some(1.0));
        assert_eq!(script_statements("\\if :a\nSELECT 1;\n\\endif\n"), None);
        assert_eq!(script_statements("SELECT ';';"), None);
    }

    #[test]
    fn hottest_rows_follow_from_the_law() {
        let of = |options: &[(&str, &str)]| {
            let experiment = experiment("sysbench oltp_read_only", options);
            let law = option(&experiment, "rand_type").unwrap_or("special");
            hottest_share(&experiment, law)
        };
        let near = |found: Option<f64>, wanted: f64| {
            assert!(
                found.is_some_and(|found| (found - wanted).abs() < 0.005),
                "{found:?} {wanted}"
            );
        };
        near(of(&[]), 0.762);
        near(of(&[("rand-type", "gaussian")]), 0.048);
        // 80 % of the draws on 20 % of the values, 53 % on 1 %.
        near(of(&[("rand-type", "pareto")]), 0.528);
        assert_eq!(of(&[("rand-type", "uniform")]), None);
        let exact = |n: u64| (1..=n).map(|k| (k as f64).powf(-0.8)).sum::<f64>();
        let zipf = of(&[("rand-type", "zipfian"), ("table_size", "100000")]);
        near(zipf, exact(1_000) / exact(100_000));
    }
}
