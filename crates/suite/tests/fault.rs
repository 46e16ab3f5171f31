//! Faults in plans.

mod common;

use common::WORKLOADS;
use dyno_facts::{FaultAction, FaultPlan};
use dyno_suite::{Overrides, Plan, Suite};

const HEAD: &str = "[suite]\nname = \"s\"\n[target.main]\nurl = \"mysql://h/a\"\n[[experiment]]\n\
    name = \"e\"\nworkload = \"tpcc\"\ntest = \"bmsql-5.0\"\nworkers = 4\nduration_s = 60\n";

/// The plan of an experiment with further keys.
fn build(keys: &str, overrides: &Overrides) -> Plan {
    let text = format!("{HEAD}{keys}");
    let suite = Suite::parse("s.toml", &text, WORKLOADS).unwrap_or_else(|error| panic!("{error}"));
    Plan::build(&suite, overrides).unwrap_or_else(|error| panic!("{error}"))
}

/// The fault of its experiment.
fn fault(plan: &Plan) -> &FaultPlan {
    plan.experiments[0].fault.as_ref().expect("a fault")
}

#[test]
fn a_fault_is_planned_and_stored() {
    let keys =
        "[experiment.fault]\naction = \"kill\"\nat_s = 20\npromote = true\nheal_after_s = 15\n";
    let plan = build(keys, &Overrides::default());
    let expected = FaultPlan {
        action: FaultAction::Kill,
        node: "primary".to_owned(),
        at_s: 20.0,
        heal_after_s: Some(15.0),
        promote: Some(String::new()),
        answer_limit_s: 5.0,
        command: None,
        heal_command: None,
        promote_command: None,
        allow_lost: Vec::new(),
    };
    assert_eq!(*fault(&plan), expected);
    assert_eq!(expected.commands().count(), 0);
    assert_eq!(plan.experiments[0].interval_s, 0.1, "times are wanted to a tenth of a second");
    let json = serde_json::to_string(&plan).expect("JSON");
    let back: Plan = serde_json::from_str(&json).expect("a plan");
    assert_eq!(*fault(&back), expected);
}

#[test]
fn what_the_suite_says_of_intervals_counts() {
    let keys = "interval_s = 0.5\nfault = { action = \"freeze\", node = \"n2\", at_s = 5 }\n";
    let plan = build(keys, &Overrides::default());
    assert_eq!(plan.experiments[0].interval_s, 0.5);
    assert_eq!(build("", &Overrides::default()).experiments[0].interval_s, 1.0);
    assert_eq!((fault(&plan).node.as_str(), fault(&plan).promote.as_deref()), ("n2", None));
}

#[test]
fn a_command_comes_from_the_suite() {
    let keys = "fault = { action = \"command\", at_s = 5, command = \"a\", heal_command = \"b\", \
                promote = \"n3\", promote_command = \"c\", answer_limit_s = 2 }\n";
    let plan = build(keys, &Overrides::default());
    let fault = fault(&plan);
    assert_eq!(fault.commands().collect::<Vec<_>>(), ["a", "b", "c"]);
    assert_eq!(fault.promote.as_deref(), Some("n3"));
    assert_eq!(fault.answer_limit_s, 2.0);
}

#[test]
fn the_moment_shrinks_with_the_window_and_the_patience_does_not() {
    let keys = "fault = { action = \"stop\", at_s = 20, heal_after_s = 10 }\n";
    let plan = build(keys, &Overrides { shrink: Some(0.1), ..Overrides::default() });
    assert_eq!(plan.experiments[0].duration_s, Some(6.0));
    assert_eq!((fault(&plan).at_s, fault(&plan).heal_after_s), (2.0, Some(1.0)));
    assert_eq!(fault(&plan).answer_limit_s, 5.0);
}

fn plan_hash(keys: &str) -> String {
    build(keys, &Overrides::default()).facts.hash
}

#[test]
fn another_fault_is_another_plan() {
    let kill = plan_hash("fault = { action = \"kill\", at_s = 20 }\n");
    assert_ne!(plan_hash(""), kill);
    assert_ne!(plan_hash("fault = { action = \"kill\", at_s = 21 }\n"), kill);
    assert_ne!(plan_hash("fault = { action = \"stop\", at_s = 20 }\n"), kill);
    assert_eq!(plan_hash("fault = { action = \"kill\", node = \"primary\", at_s = 20 }\n"), kill);
    assert_eq!(plan_hash("fault = { action = \"kill\", at_s = 20, allow_lost = true }\n"), kill);
}

#[test]
fn a_loss_is_allowed_to_all_targets_or_to_some() {
    for (value, target, is_allowed) in [
        ("true", "main", true),
        ("\"main\"", "main", true),
        ("[\"main\"]", "main", true),
        ("false", "main", false),
        ("[\"main\"]", "other", false),
    ] {
        let keys = format!("fault = {{ action = \"kill\", at_s = 20, allow_lost = {value} }}\n");
        let plan = build(&keys, &Overrides::default());
        assert_eq!(fault(&plan).allows_lost(target), is_allowed, "{value} {target}");
    }
}
