//! Whatever a file holds, it is read or refused, never more.

mod common;

use common::WORKLOADS;
use dyno_facts::SecretUrl;
use dyno_suite::{Overrides, Plan, Suite, bundled};
use proptest::prelude::*;

/// Reads and builds; a refusal must be printable and have something to say.
fn survive(text: &str) {
    let mut overrides = Overrides { shrink: Some(0.001), ..Overrides::default() };
    let built = Suite::parse("any.toml", text, WORKLOADS).and_then(|suite| {
        overrides.targets = suite
            .targets
            .iter()
            .map(|target| (target.name.value.clone(), SecretUrl::new("mysql://h/d")))
            .collect();
        Plan::build(&suite, &overrides)
    });
    match built {
        Ok(plan) => assert!(!plan.steps.is_empty()),
        Err(error) => {
            assert!(!error.problems.is_empty());
            assert!(!error.to_string().is_empty());
        }
    }
}

/// Mostly keys of suites.
fn key() -> impl Strategy<Value = String> {
    let words = vec![
        "suite",
        "target",
        "experiment",
        "name",
        "url",
        "nodes",
        "role",
        "workload",
        "test",
        "targets",
        "options",
        "workers",
        "rate",
        "duration_s",
        "events",
        "repeats",
        "published",
        "figure",
        "where",
        "match",
        "percentiles",
        "tables",
        "table_size",
        "vcpu",
        "main",
    ];
    prop_oneof![8 => prop::sample::select(words).prop_map(str::to_string), 1 => "[a-z\\-]{1,9}"]
}

/// Values of all types, nested.
fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        any::<i64>().prop_map(|n| n.to_string()),
        any::<f64>().prop_map(|n| format!("{n:e}").replace("NaN", "nan")),
        any::<bool>().prop_map(|b| b.to_string()),
        "\"[a-zä数 :/@{}]{0,12}\"",
        "0x[0-9a-f]{1,20}",
        Just("1979-05-27".to_string()),
        Just("\"rds-mysql-5.6-sysbench\"".to_string()),
        Just("\"oltp_read_only\"".to_string()),
        Just("\"sysbench\"".to_string()),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let pairs = prop::collection::vec((key(), inner.clone()), 0..4);
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(|list| format!("[{}]", list.join(", "))),
            pairs.prop_map(|pairs| {
                let pairs: Vec<String> = pairs.iter().map(|(k, v)| format!("{k} = {v}")).collect();
                format!("{{ {} }}", pairs.join(", "))
            }),
        ]
    })
}

/// The head of a table, or a key with a value.
fn line() -> impl Strategy<Value = String> {
    let heads = vec!["[suite]", "[target.main]", "[[experiment]]", "[experiment.options]", "[x]"];
    prop_oneof![
        1 => prop::sample::select(heads).prop_map(str::to_string),
        4 => (key(), value()).prop_map(|(key, value)| format!("{key} = {value}")),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_text(text in "\\PC{0,200}") {
        survive(&text);
    }

    #[test]
    fn random_toml(lines in prop::collection::vec(line(), 0..30)) {
        survive(&lines.join("\n"));
    }

    /// A good suite with one value, line or stretch of text replaced.
    #[test]
    fn damaged_suites(
        which in 0..bundled().len(),
        at in any::<prop::sample::Index>(),
        line in line(),
        value in value(),
        kind in 0..3,
    ) {
        let text = bundled()[which].text;
        let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
        let index = at.index(lines.len());
        match (kind, lines[index].split_once(" = ")) {
            (0, _) => lines.insert(index, line),
            (1, _) => { lines.remove(index); }
            (_, Some((key, _))) => lines[index] = format!("{key} = {value}"),
            (_, None) => lines[index] = line,
        }
        survive(&lines.join("\n"));
    }

    /// No password is ever shown, wherever it is in a URL and whatever it is made of.
    #[test]
    fn passwords_stay_hidden(password in "[#-~&&[^\\\\{}]]{6,20}") {
        let secret = format!("<<{password}>>");
        let url = format!("mysql://bench:{secret}@db.example:3306/bench");
        prop_assert!(!SecretUrl::new(url.as_str()).to_string().contains(&secret));
        let text = format!("[suite]\nname = \"a\"\n[target.main]\nurl = \"{url}\" \nx\n");
        let error = Suite::parse("a.toml", &text, WORKLOADS).expect_err("not TOML").to_string();
        prop_assert!(!error.contains(&secret), "{}", error);
        let wrong = format!("[suite]\nname = \"a\"\n[target.main]\nuri = \"{url}\"\n");
        let error = Suite::parse("a.toml", &wrong, WORKLOADS).expect_err("an unknown key").to_string();
        prop_assert!(!error.contains(&secret), "{}", error);
    }
}

#[test]
fn deep_nesting_is_refused() {
    survive(&format!("a = {}{}", "[".repeat(100_000), "]".repeat(100_000)));
    survive(&format!("{}a = 1", "a.".repeat(100_000)));
}
