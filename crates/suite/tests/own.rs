//! Targets of users: suites without a vendor's claims, and budgets.

mod common;

use common::WORKLOADS;
use dyno_facts::{SecretUrl, StepAction, TargetFacts};
use dyno_suite::{ComparisonWay, Overrides, Plan, Suite, Versus, WantedStop, bundled};

const NEUTRAL: [&str; 5] = ["mixed", "oltp", "pgbench", "tpcc", "tpch"];

/// A bundled suite.
fn suite(name: &str) -> Suite {
    Suite::open(name, WORKLOADS).unwrap_or_else(|error| panic!("{error}"))
}

fn overrides_for(names: &[&str]) -> Overrides {
    let targets =
        names.iter().map(|name| ((*name).to_owned(), SecretUrl::new(format!("mysql://{name}/d"))));
    Overrides { targets: targets.collect(), ..Overrides::default() }
}

/// The plan of a bundled suite for a budget.
fn within(name: &str, targets: &[&str], budget_s: f64) -> Plan {
    let overrides = Overrides { budget_s: Some(budget_s), ..overrides_for(targets) };
    Plan::build(&suite(name), &overrides).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn a_target_of_another_name_inherits_nothing_of_a_vendors() {
    for bundle in bundled() {
        let compare = Versus {
            baseline: "mine".to_owned(),
            candidate: "other".to_owned(),
            control: None,
            ways: vec![ComparisonWay::default()],
            equivalence: None,
        };
        let overrides = Overrides { compare: Some(compare), ..overrides_for(&["mine", "other"]) };
        let plan = Plan::build(&suite(bundle.name), &overrides).expect("a plan");
        for target in &plan.targets {
            // How it is reached is the user's, and a title claims nothing; all else would be somebody's claim.
            let expected = TargetFacts {
                name: target.name.clone(),
                title: target.title.clone(),
                title_zh: target.title_zh.clone(),
                url: target.url.clone(),
                role: target.role,
                route: target.route,
                ..TargetFacts::default()
            };
            assert_eq!(*target, expected, "{}", bundle.name);
        }
        let published = plan.experiments.iter().flat_map(|experiment| &experiment.published);
        let mut rows = published.flat_map(|table| &table.rows);
        assert!(rows.all(|row| row.targets.is_empty()), "{}", bundle.name);
    }
}

#[test]
fn neutral_suites_take_any_target_and_claim_nothing() {
    for name in NEUTRAL {
        let suite = suite(name);
        assert!(suite.targets.is_empty() && suite.facts.paper.is_none(), "{name}");
        let alone = Plan::build(&suite, &overrides_for(&["one"])).expect("a plan");
        assert!(alone.experiments.iter().all(|e| e.comparison.is_none()), "{name}");
        let pair = Plan::build(&suite, &overrides_for(&["new", "old"])).expect("a plan");
        for experiment in &pair.experiments {
            let comparison = experiment.comparison.as_ref().expect("a comparison");
            assert_eq!(comparison.baseline, "new", "the one that was given first");
            assert!(experiment.published.is_empty());
        }
        let three = Plan::build(&suite, &overrides_for(&["a", "b", "c"])).expect("a plan");
        assert!(three.experiments.iter().all(|e| e.comparison.is_none() && e.targets.len() == 3));
        let none = Plan::build(&suite, &Overrides::default()).expect_err("no target").to_string();
        assert!(none.contains("--target NAME=mysql://"), "{none}");
    }
    let message =
        Plan::build(&suite("oltp"), &overrides_for(&["a b"])).expect_err("no name").to_string();
    assert!(message.starts_with("`--target a b` does not name a target."), "{message}");
}

#[test]
fn a_budget_decides_the_size() {
    for name in NEUTRAL {
        for targets in [&["a"][..], &["a", "b"]] {
            let plan = within(name, targets, 600.0);
            assert!((400.0..=600.0).contains(&plan.estimated_s), "{name}: {} s", plan.estimated_s);
            let longer = within(name, targets, 3_600.0);
            let [rows, more_rows] = [&plan, &longer]
                .map(|plan| plan.experiments[0].data.expect("a size").rows_per_table);
            match name {
                // Its sizes are few, so that passes take what is left.
                "tpch" => assert!(more_rows >= rows, "{name}"),
                _ => assert!(more_rows > rows, "{name}"),
            }
            // What takes the server's time is measured: loads are the smaller part.
            let loads = plan.steps.iter().filter(|step| step.action == StepAction::Prepare);
            let loads_s: f64 = loads.map(|step| step.estimated_s).sum();
            assert!(loads_s < 0.5 * plan.estimated_s, "{name}: {loads_s} s of loads");
        }
    }
    let plan = within("mixed", &["a"], 600.0);
    assert_eq!(plan.hash, within("mixed", &["a"], 600.0).hash);
    assert!(
        plan.notes.iter().any(|note| note.to_string().starts_with("Sized for the budget")),
        "{:?}",
        plan.notes
    );
    assert_eq!(within("mixed", &["a"], 1e6).shrink, 1.0, "full size at most");
}

/// The scale factor of the first experiment.
fn scale(plan: &Plan) -> &str {
    &plan.experiments[0].options["scale"]
}

fn has_note(plan: &Plan, part: &str) -> bool {
    plan.notes.iter().any(|note| note.to_string().contains(part))
}

#[test]
fn a_budget_takes_scale_factors_with_answers_and_fills_itself_with_passes() {
    let two_minutes = within("tpch", &["m"], 120.0);
    assert_eq!((scale(&two_minutes), two_minutes.shrink), ("0.1", 0.01));
    let bound = two_minutes.experiments[0].time_bound();
    let (least, seconds) = bound.expect("a time");
    assert!(least == 1 && (100.0..115.0).contains(&seconds), "{bound:?}");
    assert!((119.0..=120.0).contains(&two_minutes.estimated_s), "{} s", two_minutes.estimated_s);
    assert!(!two_minutes.may_end_sooner(), "the number of passes follows the time");
    let note = format!(
        "Sized for the budget: tpch has scale factor 0.1, for which there are reference answers, and as many passes \
         or pairs as end in {seconds} s"
    );
    assert!(has_note(&two_minutes, &note), "{:?}", two_minutes.notes);

    let pairs = within("tpch", &["a", "b"], 120.0);
    let stop = pairs.experiments[0].comparison.as_ref().expect("a comparison").stop;
    assert_eq!((scale(&pairs), stop.pairs_least), ("0.1", 6));
    assert!(stop.pairs_most > 100 && stop.budget_s > Some(90.0), "{stop:?}");
    assert!(has_note(&pairs, "pairs as end in 9"), "{:?}", pairs.notes);
    assert!((119.0..=120.0).contains(&pairs.estimated_s), "{} s", pairs.estimated_s);
    let six_pairs = WantedStop { pairs: Some((6, 6)), ..WantedStop::default() };
    let compare = Versus {
        baseline: "a".to_owned(),
        candidate: "b".to_owned(),
        control: None,
        ways: vec![ComparisonWay { stop: six_pairs, ..ComparisonWay::default() }],
        equivalence: None,
    };
    let overrides =
        Overrides { budget_s: Some(120.0), compare: Some(compare), ..overrides_for(&["a", "b"]) };
    let six = Plan::build(&suite("tpch"), &overrides).expect("a plan");
    assert_eq!(
        (six.experiments[0].time_bound(), six.experiments[0].repeats),
        (None, 6),
        "as the user has said"
    );
    assert!(has_note(&six, "and 6 passes at each point."), "{:?}", six.notes);

    let longest = within("tpch", &["m"], 1_500.0);
    assert_eq!(scale(&longest), "1");
    // Four passes take longer, one does not.
    let single_pass = within("tpch", &["m"], 3.15);
    assert!(
        scale(&single_pass) == "0.01" && single_pass.estimated_s <= 3.15,
        "{} s",
        single_pass.estimated_s
    );
    assert!(!has_note(&single_pass, "the smallest one is used"), "{:?}", single_pass.notes);
    let short = within("tpch", &["m"], 2.0);
    assert_eq!((scale(&short), short.shrink), ("0.01", 0.001));
    assert!(has_note(&short, "the smallest one is used"), "{:?}", short.notes);
    assert!((2.0..3.0).contains(&short.estimated_s), "{} s", short.estimated_s);
}

#[test]
fn passes_without_time_do_not_claim_to_have_0_s() {
    for (targets, passes, n) in [(&["m"][..], "1 pass", 1), (&["a", "b"][..], "6 passes", 6)] {
        let plan = within("tpch", targets, 1.5);
        let facts = &plan.experiments[0];
        assert_eq!((facts.time_bound(), facts.repeats), (None, n), "{targets:?}");
        let notes: Vec<String> = plan.notes.iter().map(ToString::to_string).collect();
        let expected = format!("and {passes} at each point");
        assert!(notes.iter().any(|note| note.contains(&expected)), "{notes:?}");
        assert!(notes.iter().all(|note| !note.contains(" 0 s")), "{notes:?}");
    }
}

#[test]
fn passes_among_other_loads_get_what_those_leave() {
    for targets in [&["a"][..], &["a", "b"]] {
        let plan = within("mixed", targets, 600.0);
        let bounds = plan.experiments.iter().map(|facts| (&*facts.name, facts.time_bound()));
        let timed: Vec<_> = bounds.filter(|(_, bound)| bound.is_some()).collect();
        let is_tpch = matches!(timed.as_slice(), [("tpch", Some((_, seconds)))] if *seconds > 1.0);
        assert!(is_tpch, "{timed:?}");
        assert!((599.0..=600.0).contains(&plan.estimated_s), "{} s", plan.estimated_s);
    }
}

#[test]
fn the_smallest_budget_that_would_do_is_named_and_does() {
    let overrides = Overrides { budget_s: Some(30.0), ..overrides_for(&["a", "b"]) };
    let error = Plan::build(&suite("oltp"), &overrides).expect_err("too small");
    let message = format!("{error:?}");
    let budget = message.split("--budget ").nth(1).and_then(|rest| rest.split('`').next());
    let budget = budget.and_then(dyno_suite::seconds).unwrap_or_else(|| panic!("{message}"));
    let enough = Overrides { budget_s: Some(budget), ..overrides.clone() };
    assert!(budget > 30.0 && Plan::build(&suite("oltp"), &enough).is_ok(), "{message}");
    assert!(message.contains("`--plan`"), "{message}");
    let plan = Plan::smallest(&suite("oltp"), &overrides).expect("it can be looked at");
    assert!(plan.estimated_s > 30.0 && plan.estimated_s <= budget, "{}", plan.estimated_s);
    assert!(Plan::smallest(&suite("oltp"), &overrides_for(&["a", "b"])).is_none(), "no budget");
}

fn refuse_mixed(overrides: Overrides) -> String {
    Plan::build(&suite("mixed"), &overrides).expect_err("refused").to_string()
}

fn first_number(message: &str) -> Option<f64> {
    message.split(' ').find_map(|word| word.parse().ok())
}

#[test]
fn a_budget_that_is_too_small_is_refused() {
    let message = refuse_mixed(Overrides { budget_s: Some(5.0), ..overrides_for(&["a"]) });
    assert!(message.contains("at its smallest, more than the budget of 5 s"), "{message}");
    // The time that it names is enough.
    let min_budget = first_number(&message).expect("it says how long it takes");
    assert!(
        Plan::build(
            &suite("mixed"),
            &Overrides { budget_s: Some(min_budget), ..overrides_for(&["a"]) }
        )
        .is_ok()
    );
    let message =
        refuse_mixed(Overrides { budget_s: Some(min_budget - 1.0), ..overrides_for(&["a"]) });
    assert_eq!(first_number(&message), Some(min_budget), "{message}");
    let message = refuse_mixed(Overrides {
        budget_s: Some(900.0),
        shrink: Some(0.5),
        ..overrides_for(&["a"])
    });
    assert!(message.starts_with("`--budget` and `--shrink` can't be given together."), "{message}");
}
