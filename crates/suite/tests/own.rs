//! Targets of people's own: suites without a vendor's claims, and budgets.

mod common;

use common::WORKLOADS;
use dyno_facts::{SecretUrl, StepAction, TargetFacts};
use dyno_suite::{Overrides, Plan, Suite, Versus, WantedStop, bundled};

const NEUTRAL: [&str; 5] = ["mixed", "oltp", "pgbench", "tpcc", "tpch"];

fn suite(name: &str) -> Suite {
    Suite::open(name, WORKLOADS).unwrap_or_else(|error| panic!("{error}"))
}

fn given(names: &[&str]) -> Overrides {
    let url = |name: &&str| ((*name).to_owned(), SecretUrl::new(format!("mysql://{name}/d")));
    Overrides { targets: names.iter().map(url).collect(), ..Overrides::default() }
}

fn within(name: &str, targets: &[&str], budget_s: f64) -> Plan {
    let overrides = Overrides { budget_s: Some(budget_s), ..given(targets) };
    Plan::build(&suite(name), &overrides).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn a_target_of_another_name_inherits_nothing_of_a_vendors() {
    for bundle in bundled() {
        let compare = Versus {
            baseline: "mine".to_owned(),
            candidate: "other".to_owned(),
            stop: WantedStop::default(),
            equivalence: None,
        };
        let overrides = Overrides { compare: Some(compare), ..given(&["mine", "other"]) };
        let plan = Plan::build(&suite(bundle.name), &overrides).expect("a plan");
        for target in &plan.targets {
            // How it is reached is the user's, and a title claims nothing; all else would be somebody's claim.
            let known = TargetFacts {
                name: target.name.clone(),
                title: target.title.clone(),
                title_zh: target.title_zh.clone(),
                url: target.url.clone(),
                role: target.role,
                route: target.route,
                ..TargetFacts::default()
            };
            assert_eq!(*target, known, "{}", bundle.name);
        }
        let is_beside = |e: &&dyno_facts::ExperimentFacts| !e.published.is_empty();
        for experiment in plan.experiments.iter().filter(is_beside) {
            let rows = experiment.published.iter().flat_map(|table| &table.rows);
            assert!(rows.clone().all(|row| row.targets.is_empty()), "{}", bundle.name);
        }
    }
}

#[test]
fn neutral_suites_take_any_target_and_claim_nothing() {
    for name in NEUTRAL {
        let suite = suite(name);
        assert!(suite.targets.is_empty() && suite.facts.paper.is_none(), "{name}");
        let alone = Plan::build(&suite, &given(&["one"])).expect("a plan");
        assert!(alone.experiments.iter().all(|e| e.comparison.is_none()), "{name}");
        let both = Plan::build(&suite, &given(&["new", "old"])).expect("a plan");
        for experiment in &both.experiments {
            let comparison = experiment.comparison.as_ref().expect("a comparison");
            assert_eq!(comparison.baseline, "new", "the one that was given first");
            assert!(experiment.published.is_empty());
        }
        let three = Plan::build(&suite, &given(&["a", "b", "c"])).expect("a plan");
        assert!(three.experiments.iter().all(|e| e.comparison.is_none() && e.targets.len() == 3));
        let none = Plan::build(&suite, &Overrides::default()).expect_err("no target").to_string();
        assert!(none.contains("--target NAME=mysql://"), "{none}");
    }
    let said = Plan::build(&suite("oltp"), &given(&["a b"])).expect_err("no name").to_string();
    assert!(said.starts_with("`--target a b=...` does not name a target."), "{said}");
}

#[test]
fn a_budget_decides_the_size() {
    for name in NEUTRAL {
        for targets in [&["a"][..], &["a", "b"]] {
            let plan = within(name, targets, 600.0);
            assert!((400.0..=600.0).contains(&plan.estimated_s), "{name}: {} s", plan.estimated_s);
            let longer = within(name, targets, 3_600.0);
            let rows = |plan: &Plan| plan.experiments[0].data.expect("a size").rows_per_table;
            assert!(rows(&longer) > rows(&plan), "{name}");
            // What takes the server's time is measured: loads are the smaller part.
            let is_load = |step: &&dyno_facts::PlanStep| step.action == StepAction::Prepare;
            let loads_s: f64 = plan.steps.iter().filter(is_load).map(|step| step.estimated_s).sum();
            assert!(loads_s < 0.5 * plan.estimated_s, "{name}: {loads_s} s of loads");
        }
    }
    let same = |plan: &Plan| plan.hash.clone();
    assert_eq!(same(&within("mixed", &["a"], 600.0)), same(&within("mixed", &["a"], 600.0)));
    let plan = within("mixed", &["a"], 600.0);
    assert!(
        plan.notes.iter().any(|note| note.to_string().starts_with("Sized for the budget")),
        "{:?}",
        plan.notes
    );
    assert_eq!(within("mixed", &["a"], 1e6).shrink, 1.0, "full size at most");
}

#[test]
fn a_budget_that_is_too_small_is_refused() {
    let of = |overrides: Overrides| {
        Plan::build(&suite("mixed"), &overrides).expect_err("too small").to_string()
    };
    let said = of(Overrides { budget_s: Some(5.0), ..given(&["a"]) });
    assert!(said.contains("at its smallest, more than the budget of 5 s"), "{said}");
    let said = of(Overrides { budget_s: Some(900.0), shrink: Some(0.5), ..given(&["a"]) });
    assert!(said.starts_with("`--budget` and `--shrink` can't be given together."), "{said}");
}
