//! `suites/README.md` against the code.

mod common;

use common::WORKLOADS;
use dyno_core::options::markdown;
use dyno_facts::Metric;
use dyno_suite::{Overrides, Plan, Suite, bundled, figures};

#[test]
fn its_tables_are_those_of_the_code() {
    let mut text = README.to_owned();
    let rows = Metric::trial_metrics()
        .map(|metric| format!("| `{}` | {} |\n", metric.name(), metric.title()));
    let metrics = format!("| metric | |\n|---|---|\n{}", rows.collect::<String>());
    let options = WORKLOADS
        .iter()
        .map(|workload| (format!("options of {}", workload.name), markdown(&(workload.options)())));
    for (mark, table) in [("metrics".to_owned(), metrics)].into_iter().chain(options) {
        let begin = format!("<!-- {mark} -->\n");
        let at = text.find(&begin).expect("the mark before the table") + begin.len();
        let length = text[at..].find("<!-- end -->").expect("the mark after the table");
        text.replace_range(at..at + length, &table);
    }
    if std::env::var_os("DYNO_BLESS").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../suites/README.md");
        std::fs::write(path, &text).expect("the README can be written");
    } else {
        assert!(
            text == README,
            "`DYNO_BLESS=1 cargo test -p dyno-suite --test readme` writes it again"
        );
    }
}

const README: &str = include_str!("../../../suites/README.md");

fn toml_blocks() -> Vec<&'static str> {
    let parts = README.split("```toml\n").skip(1);
    parts.map(|part| part.split("```").next().unwrap_or("")).collect()
}

const HEAD: &str = "[suite]\nname = \"a\"\n[target.main]\nurl = \"mysql://h/d\"\n";
const EXPERIMENT: &str = "[[experiment]]\nname = \"a\"\nworkload = \"sysbench\"\n\
                          test = \"oltp_insert\"\nworkers = 1\nevents = 5\n";

const PASSES: &str = "[[experiment]]\nname = \"a\"\nworkload = \"tpch\"\ntest = \"queries\"\n";

#[test]
fn its_examples_are_valid() {
    let (faults, blocks): (Vec<&str>, Vec<&str>) =
        toml_blocks().into_iter().partition(|block| block.starts_with("[experiment.fault]"));
    let (mixes, blocks): (Vec<&str>, Vec<&str>) =
        blocks.into_iter().partition(|block| block.starts_with("statements = "));
    let (scripts, blocks): (Vec<&str>, Vec<&str>) =
        blocks.into_iter().partition(|block| block.starts_with("workload = \"lua\""));
    let fault = faults.first().expect("an example of a fault");
    let text = format!("{HEAD}{EXPERIMENT}duration_s = 60\n{fault}");
    let suite =
        Suite::parse("README.md", &text, WORKLOADS).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(suite.experiments[0].facts.fault.as_ref().map(|fault| fault.at_s), Some(20.0));
    let mix = mixes.first().expect("an example of statements");
    let load = "workers = 8\nduration_s = 10\n";
    let text = format!("{HEAD}[[experiment]]\nname = \"mine\"\n{load}{mix}");
    let suite =
        Suite::parse("README.md", &text, WORKLOADS).unwrap_or_else(|error| panic!("{error}"));
    let mine = &suite.experiments[0].facts;
    assert_eq!((mine.workload.as_str(), mine.test.as_str()), ("pgbench", "statements"));
    assert!(!mine.prepare && !mine.cleanup);
    assert_eq!(mine.options["statements.1"], "SELECT c FROM t WHERE id = :id @9");
    assert_eq!(mine.options["parameters.id"], "uniform(1, rows)");
    assert!(!scripts.is_empty(), "an example of a script");
    assert_eq!(blocks.len(), 7);
    let suite =
        Suite::parse("README.md", blocks[0], WORKLOADS).unwrap_or_else(|error| panic!("{error}"));
    let plan = Plan::build(&suite, &Overrides::default()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(plan.steps.len(), 3 * 6 + 2);
    let options = blocks[1].trim_end();
    let text = format!("{HEAD}{EXPERIMENT}{options}\n")
        .replace("\"sysbench\"", "\"pgbench\"")
        .replace("oltp_insert", "script");
    let suite =
        Suite::parse("README.md", &text, WORKLOADS).unwrap_or_else(|error| panic!("{error}"));
    let names: Vec<&str> = suite.experiments[0].options.iter().map(|o| o.name.as_str()).collect();
    assert_eq!(names, ["scripts.1", "scripts.2", "scale", "define.range", "mode"]);
    let text = format!("{HEAD}{EXPERIMENT}{}\n", blocks[2].trim_end())
        .replace("\"sysbench\"", "\"tpcc\"")
        .replace("oltp_insert", "spec");
    let suite =
        Suite::parse("README.md", &text, WORKLOADS).unwrap_or_else(|error| panic!("{error}"));
    let names: Vec<&str> = suite.experiments[0].options.iter().map(|o| o.name.as_str()).collect();
    let weights = ["weights.payment", "weights.stock_level"];
    assert_eq!(names, [["warehouses", "isolation"].as_slice(), &weights].concat());
    let text = format!("{HEAD}{PASSES}{}\n", blocks[3].trim_end());
    let suite =
        Suite::parse("README.md", &text, WORKLOADS).unwrap_or_else(|error| panic!("{error}"));
    let names: Vec<&str> = suite.experiments[0].options.iter().map(|o| o.name.as_str()).collect();
    assert_eq!(names, ["scale", "timeout_s", "cache", "parameters", "plans"]);
    let two = "[target.old]\nurl = \"mysql://h/a\"\n[target.new]\nurl = \"mysql://h/b\"\n";
    let [in_turn, together] = [4, 5].map(|at| {
        let text = format!("{HEAD}{two}{EXPERIMENT}{}\n", blocks[at].trim_end())
            .replace("events = 5", "duration_s = 20");
        let suite =
            Suite::parse("README.md", &text, WORKLOADS).unwrap_or_else(|error| panic!("{error}"));
        Plan::build(&suite, &Overrides::default()).unwrap_or_else(|error| panic!("{error}"))
    });
    assert!(together.experiments[0].is_together());
    let experiment = &in_turn.experiments[0];
    assert_eq!((experiment.gates.len(), experiment.repeats), (3, 20));
    assert!(experiment.comparison.is_some());
    for (line, rows) in blocks[6].lines().zip([12, 6]) {
        let text = format!("{HEAD}{EXPERIMENT}{line}\n");
        let suite =
            Suite::parse("README.md", &text, WORKLOADS).unwrap_or_else(|error| panic!("{error}"));
        let plan = Plan::build(&suite, &Overrides::default()).expect("a plan");
        assert_eq!(plan.experiments[0].published[0].rows.len(), rows, "{line}");
    }
}

#[test]
fn it_names_every_key_suite_and_test() {
    let unknown = "zzzzzzzzzzzz = 1\n";
    let link = "published = { figure = \"polardb-x-tpcc\", zzzzzzzzzzzz = 1 }\n";
    for text in [
        format!("[suite]\n{unknown}"),
        format!("[target.main]\n{unknown}"),
        format!("{HEAD}{EXPERIMENT}{unknown}"),
        format!("{HEAD}{EXPERIMENT}{link}"),
        format!(
            "{HEAD}{EXPERIMENT}compare = {{ baseline = \"main\", aa = true, zzzzzzzzzzzz = 1 }}\n"
        ),
    ] {
        let message =
            Suite::parse("a.toml", &text, WORKLOADS).expect_err("an unknown key").to_string();
        let keys = message.split("Known keys: ").nth(1).expect("the known keys");
        for key in keys.split('.').next().unwrap_or("").split(", ") {
            assert!(README.contains(&format!("| `{key}` |")), "`{key}` is not described");
        }
    }
    for suite in bundled() {
        assert!(README.contains(&format!("| `{}` |", suite.name)), "{}", suite.name);
    }
    for workload in ["sysbench", "pgbench", "tpcc", "tpch"] {
        let text = EXPERIMENT.replace("sysbench", workload).replace("oltp_insert", "zzzzzzzzzzzz");
        let message =
            Suite::parse("a.toml", &text, WORKLOADS).expect_err("an unknown test").to_string();
        let tests = message.split("Tests: ").nth(1).and_then(|rest| rest.lines().next());
        for test in tests.expect("the known tests").trim_end_matches('.').split(", ") {
            assert!(README.contains(&format!("`{test}`")), "`{test}` is not described");
        }
    }
    let readme = include_str!("../../../figures/README.md");
    for figure in figures::all() {
        assert!(readme.contains(&format!("| `{}` |", figure.name)), "{}", figure.name);
    }
}
