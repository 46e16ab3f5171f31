//! Comparisons, searches, confirmations and prices in plans.

mod common;

use common::WORKLOADS;
use std::collections::{BTreeMap, BTreeSet};

use dyno_facts::{
    Design, PlanStep, PlannedTrial, Purpose, Restore, SecretUrl, StepAction, StopRule,
};
use dyno_suite::{
    ComparisonWay, Overrides, Plan, Suite, Versus, WantedStop, bundled, pairs, seconds, share,
};

const HEAD: &str = "[suite]\nname = \"s\"\ndeny = \"few-pairs\"\nallow = [\"steal\"]\n\
    [target.old]\nurl = \"mysql://u:geheim@h/a\"\nprice = { per_hour = 1.5, currency = \"USD\" }\n\
    stated = { zone = \"a\", acknowledged_by = \"local\", round_trip_us = 90 }\n\
    [target.new]\nurl = \"mysql://h/b\"\n[target.third]\n";

/// A suite with one experiment that has further keys.
fn experiment(keys: &str) -> String {
    format!(
        "{HEAD}[[experiment]]\nname = \"e\"\nworkload = \"sysbench\"\ntest = \"oltp_insert\"\n\
         workers = [1, 8]\nduration_s = 10\n{keys}"
    )
}

/// The plan of a suite that must be right.
fn build(text: &str, overrides: &Overrides) -> Plan {
    let suite = Suite::parse("s.toml", text, WORKLOADS).unwrap_or_else(|error| panic!("{error}"));
    Plan::build(&suite, overrides).unwrap_or_else(|error| panic!("{error}"))
}

/// The trials with their steps, in order.
fn trials(plan: &Plan) -> Vec<(&PlanStep, &PlannedTrial)> {
    let pairs = plan.steps.iter().filter_map(|step| match &step.action {
        StepAction::Trial(trial) => Some((step, trial)),
        StepAction::Prepare | StepAction::Cleanup => None,
    });
    pairs.collect()
}

/// Guesses are sums of fractions.
fn near(seconds: f64, wanted: f64) {
    assert!((seconds - wanted).abs() < 1e-6, "{seconds} s");
}

/// The ids of all steps.
fn ids(plan: &Plan) -> Vec<&str> {
    plan.steps.iter().map(|step| step.id.as_str()).collect()
}

#[test]
fn with_a_fleet_a_starved_trial_is_repeated() {
    for (keys, by_fleet, shrink, retries) in [
        ("", false, None, 0),
        ("", true, None, 2),
        ("retry_starved = 0\n", true, None, 0),
        // A rehearsal.
        ("", true, Some(0.5), 0),
    ] {
        let overrides = Overrides { by_fleet, shrink, ..Overrides::default() };
        let plan = build(&experiment(keys), &overrides);
        assert_eq!(plan.experiments[0].retry_starved, retries, "{keys} {by_fleet} {shrink:?}");
    }
}

#[test]
fn pairs_that_can_decide_nothing_are_told_before_they_are_made() {
    // Two load levels are two comparisons, of which each takes seven pairs to be decided.
    for (pairs, has_note) in [("6..6", true), ("2..6", true), ("6..7", false), ("7..7", false)] {
        let compare = "compare = { baseline = \"old\", candidates = \"new\", pairs = \"PAIRS\" }\n";
        let plan = build(&experiment(&compare.replace("PAIRS", pairs)), &Overrides::default());
        let notes = serde_json::to_string(&plan.facts.notes).expect("JSON");
        assert_eq!(notes.contains("too_few_pairs"), has_note, "{pairs}");
    }
}

#[test]
fn a_comparison_is_planned_in_pairs() {
    let compare = "compare = { baseline = \"old\", candidates = \"new\", pairs = \"4..20\", \
                   half_width = \"2%\", budget = \"2h\" }\ngate = \"tps.ratio.low > 0.97\"\n";
    let plan = build(&experiment(compare), &Overrides::default());
    let experiment = &plan.experiments[0];
    let comparison = experiment.comparison.as_ref().expect("a comparison");
    let stop = StopRule {
        pairs_least: 4,
        pairs_most: 20,
        half_width: Some(0.02),
        is_until_decided: false,
        budget_s: Some(7200.0),
    };
    assert_eq!((comparison.stop, comparison.is_aa), (stop, false));
    assert_eq!(experiment.gates, ["tps.ratio.low > 0.97"]);
    assert_eq!(trials(&plan).len(), 20 * 2 * 2);
    let mut first: BTreeMap<(u32, &str), Vec<u32>> = BTreeMap::new();
    for pair in trials(&plan).chunks(2) {
        let [(a, trial_a), (b, trial_b)] = pair else { panic!("a pair") };
        assert_eq!(
            (trial_a.seed, trial_a.repeat, trial_a.workers),
            (trial_b.seed, trial_b.repeat, trial_b.workers)
        );
        assert_ne!(a.target, b.target);
        first.entry((trial_a.workers, a.target.as_str())).or_default().push(trial_a.repeat);
    }
    assert_eq!(first.len(), 4);
    for repeats in first.values() {
        let early = repeats.iter().filter(|repeat| **repeat <= 4).count();
        assert_eq!((repeats.len(), early), (10, 2), "each is first as often: {first:?}");
    }
    assert!(plan.may_end_sooner());
    let json = serde_json::to_string(&plan).expect("JSON");
    assert!(!json.contains("geheim"));
    let back: Plan = serde_json::from_str(&json).expect("a plan");
    assert_eq!(serde_json::to_string(&back).expect("JSON"), json);
}

#[test]
fn the_estimate_knows_the_budget() {
    for (budget, expected_s) in [
        ("", 20.0 * 4.0 * 10.4),
        (", budget = \"300s\"", 300.0),
        // The fewest pairs are made in any case.
        (", budget = 60", 4.0 * 4.0 * 10.4),
    ] {
        let keys = format!(
            "prepare = false\ncleanup = false\ncompare = {{ baseline = \"old\", candidates = \"new\", \
             pairs = \"4..20\"{budget} }}\n"
        );
        near(build(&experiment(&keys), &Overrides::default()).estimated_s, expected_s);
    }
}

#[test]
fn the_same_target_twice_has_one_data_set() {
    let keys = "compare = { baseline = \"old\", aa = true, pairs = 4 }\n";
    let plan = build(&experiment(keys), &Overrides::default());
    let names: Vec<&str> = plan.targets.iter().map(|target| target.name.as_str()).collect();
    assert_eq!(names, ["old", "old-again", "new"]);
    let twin = plan.target("old-again").expect("the twin");
    assert_eq!((twin.owner(), &*twin.url.redacted()), ("old", "mysql://u@h/a"));
    assert_eq!(twin.url_in("r".as_ref()).expose(), "mysql://u:geheim@h/a");
    let prepare_ids =
        ids(&plan).into_iter().filter(|id| id.ends_with("prepare")).collect::<Vec<_>>();
    assert_eq!(prepare_ids, ["e/old/prepare"]);
    assert_eq!(trials(&plan).len(), 4 * 2 * 2);
    // A trial that is left of the twin alone brings the data back.
    let mut completed: BTreeSet<String> =
        trials(&plan).iter().map(|(step, _)| step.id.clone()).collect();
    assert!(completed.remove("e/old-again/workers=8/repeat=4"));
    let remaining: Vec<&str> =
        plan.remaining(&completed).iter().map(|step| step.id.as_str()).collect();
    assert_eq!(remaining, ["e/old/prepare", "e/old-again/workers=8/repeat=4", "e/old/cleanup"]);
}

#[test]
fn a_second_clone_is_compared_as_the_same_system() {
    let keys = "compare = { baseline = \"old\", aa = \"new\", pairs = 4 }\n";
    let plan = build(&experiment(keys), &Overrides::default());
    let comparison = plan.experiments[0].comparison.as_ref().expect("a comparison");
    assert!(comparison.is_aa);
    assert_eq!(comparison.candidates, ["new"]);
    assert!(plan.target("old-again").is_none());
    assert!(ids(&plan).contains(&"e/new/prepare"), "it has its own data");
}

#[test]
fn targets_that_are_measured_together_are_calibrated_first_and_their_repeats_are_steps_of_one_time()
{
    let keys = "prepare = false\ncleanup = false\n\
                compare = { baseline = \"old\", candidates = \"new\", design = \"together\" }\n";
    let text = experiment(keys).replace("duration_s = 10", "duration_s = 20");
    let plan = build(&text, &Overrides::default());
    let facts = &plan.experiments[0];
    assert_eq!((facts.pairs_per_unit(), facts.repeats, facts.duration_s), (1, 60, Some(20.0)));
    let stop = facts.comparison.as_ref().expect("a comparison").stop;
    assert_eq!((stop.half_width, stop.pairs_least, stop.pairs_most), (Some(0.012), 8, 60));
    let (calibrations, repeats): (Vec<_>, Vec<_>) =
        trials(&plan).into_iter().partition(|(step, _)| step.id.contains("/calibrate/"));
    assert!(calibrations.iter().all(|(_, trial)| trial.purpose == Purpose::Search));
    assert!(calibrations.iter().all(|(_, trial)| !trial.is_together && trial.rate.is_none()));
    assert!(repeats.iter().all(|(_, trial)| trial.is_together));
    assert_eq!(repeats.len(), calibrations.len() * 60);
    let smaller = Overrides { shrink: Some(0.01), ..Overrides::default() };
    let smaller = build(&text.replace("duration_s = 20", "duration_s = 600"), &smaller);
    assert_eq!(smaller.experiments[0].duration_s, Some(6.0));
    let with_rate = text.replace("duration_s = 20", "duration_s = 20\nrate = 100");
    let rated = build(&with_rate, &Overrides::default());
    assert!(!ids(&rated).iter().any(|id| id.contains("/calibrate/")), "{:?}", ids(&rated));
    for (from, to, part) in [
        (keys, format!("restart_each = 2\n{keys}"), "restarted"),
        (keys, format!("restore = \"reload\"\n{keys}"), "restored"),
        (keys, format!("stage_s = 10\n{keys}"), "stages"),
        ("candidates = \"new\"", "aa = true".to_owned(), "clone"),
    ] {
        let suite = Suite::parse("s.toml", &text.replace(from, &to), WORKLOADS).expect("a suite");
        let error = Plan::build(&suite, &Overrides::default()).expect_err("refused").to_string();
        assert!(error.contains(part), "{part}: {error}");
    }
}

fn renewal_keys(more: &str) -> String {
    format!(
        "prepare = false\ncleanup = false\n{more}\ncompare = {{ baseline = \"old\", candidates = \"new\" }}\n"
    )
}

#[test]
fn pairs_of_a_restart_are_whole() {
    let plan = build(&experiment(&renewal_keys("restart_each = 2")), &Overrides::default());
    let facts = &plan.experiments[0];
    assert_eq!((facts.restart_each, facts.pairs_per_unit()), (2, 2));
    // Two levels: seven restarts are the fewest that can decide both.
    let stop = facts.comparison.as_ref().expect("a comparison").stop;
    assert_eq!((stop.pairs_least, stop.pairs_most), (14, 14));
    // 5 s for each of two servers before the first of two pairs.
    near(plan.estimated_s, 14.0 * 4.0 * 10.4 + 7.0 * 2.0 * 5.0);
    let few_pairs = renewal_keys("restart_each = 4\nreload_each = 2")
        .replace("\"new\" }", "\"new\", pairs = 6, half_width = \"2%\" }");
    let plan = build(&experiment(&few_pairs), &Overrides::default());
    let facts = &plan.experiments[0];
    assert_eq!((facts.pairs_per_unit(), &facts.restore), (4, &Restore::Reload));
    assert_eq!(facts.comparison.as_ref().expect("a comparison").stop.pairs_most, 8);
    let notes = serde_json::to_string(&plan.facts.notes).expect("JSON");
    assert!(notes.contains("too_few_pairs"), "{notes}");
    let each_pair =
        build(&experiment(&renewal_keys("restart_each = \"pair\"")), &Overrides::default());
    assert_eq!(each_pair.experiments[0].restart_each, 1);
    near(each_pair.estimated_s, 7.0 * 4.0 * (10.4 + 5.0));
}

#[test]
fn without_the_others_address_a_target_is_measured_alone() {
    let keys = "compare = { baseline = \"old\", candidates = [\"third\"], pairs = 4 }\n";
    let plan = build(&experiment(keys), &Overrides::default());
    assert!(plan.experiments[0].comparison.is_none());
    assert_eq!(plan.experiments[0].targets, ["old"]);
    assert_eq!(trials(&plan).len(), 2);
    assert!(
        plan.notes.iter().any(|note| note.to_string().contains("measured by itself")),
        "{:?}",
        plan.notes
    );
}

#[test]
fn a_search_has_steps_for_its_trials() {
    let keys = "targets = [\"old\", \"new\"]\nobjective = \"p99 < 20ms\"\nstart_rate = 100\n\
                most_rate = 1e4\nrestore = \"reload\"\n";
    let plan = build(&experiment(keys), &Overrides::default());
    let experiment = &plan.experiments[0];
    let search = experiment.search.as_ref().expect("a search");
    assert_eq!((search.start_rate, search.most_rate), (Some(100.0), Some(1e4)));
    assert_eq!((experiment.confirm, &experiment.restore), (3, &Restore::Reload));
    assert_eq!(experiment.restore, Restore::Reload);
    let trials = trials(&plan);
    assert!(
        trials.iter().all(|(_, trial)| trial.purpose == Purpose::Search && trial.rate.is_none())
    );
    assert_eq!(trials[0].0.id.split('/').next_back(), Some("repeat=1"));
    // 10 trials and 3 confirmations of 10 s for two numbers of workers on two targets, 10,000 rows
    // reloaded before each.
    let trials_s: f64 = trials.iter().map(|(step, _)| step.estimated_s).sum();
    assert!((trials_s - 13.0 * 4.0 * 10.5).abs() < 1e-6, "{trials_s}");
    // Where a search has ended, the rest of its steps is settled, and no other search's.
    let ended: BTreeSet<String> = ["e/old/workers=1/search/repeat=9".to_string()].into();
    let settled = plan.settled(&BTreeSet::new(), &ended);
    assert!(settled.contains("e/old/workers=1/search/repeat=30"));
    assert!(settled.iter().all(|id| id.starts_with("e/old/workers=1/search/")));
    assert!(!settled.contains("e/old/workers=1/search/repeat=8"));
}

#[test]
fn a_sweep_is_confirmed_after_all_repeats() {
    let plan =
        build(&experiment("targets = \"old\"\nrepeats = 2\nconfirm = 2\n"), &Overrides::default());
    let tail = &ids(&plan)[5..];
    assert_eq!(tail, ["e/old/confirm/repeat=1", "e/old/confirm/repeat=2", "e/old/cleanup"]);
    let capped = Overrides { max_workers: Some(1), ..Overrides::default() };
    let plan = build(&experiment("targets = \"old\"\nconfirm = true\n"), &capped);
    assert!(
        trials(&plan).iter().all(|(_, trial)| trial.purpose == Purpose::Measure),
        "one point is not chosen"
    );
}

/// Compares two targets of the command line, in pairs.
fn versus(a: &str, b: &str) -> Overrides {
    let names = if a == b { vec![a] } else { vec![a, b] };
    let targets = names
        .iter()
        .map(|name| ((*name).to_owned(), SecretUrl::new(format!("mysql://u:geheim@{name}/d"))))
        .collect();
    let compare = Versus {
        baseline: a.into(),
        candidate: b.into(),
        control: None,
        ways: vec![ComparisonWay::default()],
        equivalence: None,
    };
    Overrides { targets, compare: Some(compare), ..Overrides::default() }
}

#[test]
fn every_bundled_suite_can_compare_any_two_targets() {
    for bundle in bundled() {
        let suite = Suite::open(bundle.name, WORKLOADS).unwrap_or_else(|error| panic!("{error}"));
        for (a, b) in [("red", "blue"), ("red", "red")] {
            let mut overrides = versus(a, b);
            overrides.shrink = Some(0.001);
            overrides.gates = vec!["tps.ratio.low > 0.9".to_string()];
            let plan = Plan::build(&suite, &overrides).unwrap_or_else(|error| panic!("{error}"));
            assert!(!plan.experiments.is_empty() && plan.targets.len() == 2, "{}", bundle.name);
            for experiment in &plan.experiments {
                let comparison = experiment.comparison.as_ref().expect("a comparison");
                assert_eq!((comparison.baseline.as_str(), comparison.is_aa), ("red", a == b));
                assert!((6..=9).contains(&experiment.repeats), "{}", bundle.name);
                assert_eq!(experiment.gates.len(), 1);
            }
            let first = &plan.steps[0].action;
            assert_eq!(first, &StepAction::Prepare, "{}: the data are loaded", bundle.name);
        }
    }
}

#[test]
fn the_same_load_is_compared_once() {
    let suite = Suite::open("polardb-mysql-oltp", WORKLOADS).expect("the suite");
    for (baseline, expected) in [
        ("red", ["read-only-8-0", "write-only-8-0", "read-write-8-0"]),
        ("rds-5-7", ["read-only-5-7", "write-only-5-7", "read-write-5-7"]),
    ] {
        let plan = Plan::build(&suite, &versus(baseline, "blue"));
        let plan = plan.unwrap_or_else(|error| panic!("{error}"));
        let names = plan.experiments.iter().map(|experiment| experiment.name.as_str());
        assert_eq!(names.collect::<Vec<_>>(), expected);
    }
}

#[test]
fn both_targets_of_the_command_line_need_an_address() {
    let suite = Suite::open("quickstart", WORKLOADS).expect("the suite");
    let mut overrides = versus("red", "blue");
    overrides.targets.pop();
    let message = Plan::build(&suite, &overrides).expect_err("no URL of blue").to_string();
    assert!(
        message.starts_with("`--compare` names the target `blue`, which has no URL."),
        "{message}"
    );
    // The misspelt name may be that of the comparison.
    let mut overrides = versus("red", "bleu");
    overrides.targets[1].0 = "blue".to_owned();
    let message = Plan::build(&suite, &overrides).expect_err("no target blue").to_string();
    assert!(
        message.starts_with("`--compare` names `red` and `bleu`, `--target` names `blue`."),
        "{message}"
    );
}

#[test]
fn a_stored_plan_goes_to_other_addresses() {
    let keys = "compare = { baseline = \"old\", aa = true, pairs = 4 }\n";
    let plan = build(&experiment(keys), &Overrides::default());
    let json = serde_json::to_string(&plan).expect("JSON");
    let stored: Plan = serde_json::from_str(&json).expect("a plan");
    let unchanged = stored.clone().redirected(&Overrides::default()).expect("a plan");
    assert_eq!(unchanged.hash, plan.hash);
    let [to_other, misspelt] = ["old", "odl"].map(|name| Overrides {
        targets: vec![(name.to_owned(), SecretUrl::new("mysql://u:geheim@other/x"))],
        ..Overrides::default()
    });
    let redirected = stored.clone().redirected(&to_other).expect("a plan");
    assert_ne!(redirected.hash, plan.hash);
    for name in ["old", "old-again"] {
        let target = redirected.target(name).expect("the target");
        assert_eq!(target.url_in("r".as_ref()).expose(), "mysql://u:geheim@other/x");
        assert_eq!(target.url.redacted(), "mysql://u@other/x");
    }
    let message = stored.redirected(&misspelt).expect_err("no such target").to_string();
    assert_eq!(message, "The plan has no target `odl`.\nhint: Did you mean `old`?");
}

#[test]
fn what_is_given_alongside_the_suite_wins() {
    let overrides = Overrides {
        deny: vec!["steal".to_string()],
        allow: vec!["few-pairs".to_string(), "same-host".to_string()],
        ..Overrides::default()
    };
    let plan = build(&experiment(""), &overrides);
    assert_eq!(plan.denied, ["steal"]);
    assert_eq!(plan.allowed, ["few-pairs", "same-host"]);
    let old = plan.target("old").expect("the target");
    assert_eq!(old.stated["round_trip_us"], "90");
    assert_eq!(old.price.as_ref().map(|price| price.per_hour), Some(1.5));
    assert_eq!(
        plan.hash,
        build(&experiment(""), &Overrides::default()).hash,
        "a verdict isn't a load"
    );
}

#[test]
fn shares_and_lengths_are_read_as_people_write_them() {
    assert_eq!(share("2%"), Some(0.02));
    assert_eq!(share(" 0.5% "), Some(0.005));
    assert_eq!(share("0.02"), Some(0.02));
    for wrong in ["", "2", "0", "%", "-1%", "80%", "nan"] {
        assert_eq!(share(wrong), None, "{wrong}");
    }
    for (text, length_s) in
        [("90", 90.0), ("90s", 90.0), ("1.5m", 90.0), ("2 h", 7_200.0), ("1d", 86_400.0)]
    {
        assert_eq!(seconds(text), Some(length_s), "{text}");
    }
    for wrong in ["", "h", "-5s", "0", "5 weeks", "inf"] {
        assert_eq!(seconds(wrong), None, "{wrong}");
    }
}

#[test]
fn the_number_of_pairs_may_be_given() {
    let text = experiment("repeats = 2\n");
    let compared = versus("old", "new");
    let mut two = compared.clone();
    if let Some(compare) = &mut two.compare {
        compare.ways[0].stop.pairs = Some((2, 2));
    }
    let suite = Suite::parse("s.toml", &text, WORKLOADS).expect("a suite");
    let plan = Plan::build(&suite, &two).expect("a plan");
    assert_eq!(trials(&plan).len(), 2 * 2 * 2, "two pairs at two levels");
}

#[test]
fn searches_do_not_form_pairs() {
    let keys = "objective = \"p99 < 20ms\"\n";
    let suite = Suite::parse("s.toml", &experiment(keys), WORKLOADS).expect("a suite");
    let plan = Plan::build(&suite, &versus("old", "new")).expect("a plan");
    assert!(
        plan.notes.iter().any(|note| note.to_string().contains("form pairs: e.")),
        "{:?}",
        plan.notes
    );
    let keys = format!("{keys}compare = {{ baseline = \"old\", candidates = [] }}\n");
    let message =
        Suite::parse("s.toml", &experiment(&keys), WORKLOADS).expect_err("both").to_string();
    assert!(message.contains("has both `compare` and `objective`"), "{message}");
    assert!(message.contains("candidates"), "{message}");
}

#[test]
fn names_of_the_command_line_are_those_of_suites() {
    let suite = Suite::open("quickstart", WORKLOADS).expect("the suite");
    for name in ["a;b", "$(id)", "a b", "mysql://h/d", "", "-a"] {
        let message = Plan::build(&suite, &versus(name, "b")).expect_err(name).to_string();
        assert!(message.contains("does not name a target"), "{message}");
    }
}

#[test]
fn without_a_number_pairs_are_those_that_can_decide() {
    for (workers, keys, expected) in [
        ("workers = 8", "", (6, 6, None)),
        // Holm's correction asks more of each of two.
        ("workers = [1, 8]", ", equivalence = \"2%\"", (7, 7, Some(0.02))),
        ("workers = 8", ", half_width = \"2%\"", (6, 30, None)),
        ("workers = 8", ", until_decided = true", (6, 200, None)),
    ] {
        let keys = format!("compare = {{ baseline = \"old\", candidates = \"new\"{keys} }}\n");
        let text = experiment(&keys).replace("workers = [1, 8]", workers);
        let plan = build(&text, &Overrides::default());
        let comparison = plan.experiments[0].comparison.as_ref().expect("a comparison");
        let stop = comparison.stop;
        assert_eq!((stop.pairs_least, stop.pairs_most, comparison.equivalence), expected, "{keys}");
    }
    assert_eq!(pairs("6..20"), Some((6, 20)));
    for wrong in ["", "0", "8..4", "6...9", "[6, 20]"] {
        assert_eq!(pairs(wrong), None, "{wrong}");
    }
}

/// The suite, or what is wrong with it in words.
fn parse(text: &str) -> Result<Suite, String> {
    Suite::parse("s.toml", text, WORKLOADS).map_err(|error| error.to_string())
}

#[test]
fn a_search_begins_at_most_at_its_highest_rate() {
    let [at_highest, above] = [100, 101].map(|rate| {
        parse(&experiment(&format!(
            "targets = [\"old\"]\nobjective = \"p99 < 20ms\"\nstart_rate = {rate}\nmost_rate = 100\n"
        )))
    });
    at_highest.expect("a search at one rate");
    assert!(above.is_err_and(|error| error.contains("higher than `most_rate`")));
}

#[test]
fn percentiles_are_those_that_are_requested() {
    for (keys, expected) in
        [("percentiles = [90, 99.9]\n", &[90.0, 99.9][..]), ("", &[50.0, 95.0, 99.0][..])]
    {
        let suite = parse(&experiment(keys)).expect("it is right");
        assert_eq!(suite.experiments[0].facts.percentiles, expected);
    }
}

#[test]
fn a_stage_takes_a_second_at_least() {
    for (written, expected) in
        [("0.5", None), ("0", Some(0.0)), ("1", Some(1.0)), ("600", Some(600.0))]
    {
        let text = experiment(&format!("stage_s = {written}\n"))
            .replace("duration_s = 10", "duration_s = 7200");
        match (parse(&text), expected) {
            (Ok(suite), Some(_)) => assert_eq!(suite.experiments[0].facts.stage_s, expected),
            (Err(error), None) => assert!(error.contains("too short"), "{error}"),
            (result, _) => panic!("{written}: {result:?}"),
        }
    }
}

#[test]
fn a_paper_speaks_of_targets_that_exist() {
    let text = experiment("targets = [\"old\"]\n");
    let [correct, misspelt] =
        ["old", "odl"].map(|name| parse(&format!("{text}[paper.target.{name}]\nname = \"N\"\n")));
    correct.expect("a target of the file");
    assert!(misspelt.is_err_and(|error| error.contains("odl") && error.contains("old")));
}

/// Without a rule for pairs, two servers on this machine are compared by cost, then by capacity.
#[test]
fn readable_costs_are_compared_before_capacity() {
    let text = experiment("");
    let cost_and_capacity = [("e-cost", true, true), ("e-capacity", false, false)];
    let capacity = [("e", false, true)];
    for (costs_are_readable, more, candidate, expected) in [
        (true, "", "new", &cost_and_capacity[..]),
        (false, "", "new", &capacity[..]),
        // Not at once.
        (true, "stage_s = 10\n", "new", &capacity[..]),
        // One server.
        (true, "", "old", &capacity[..]),
    ] {
        let suite = Suite::parse("s.toml", &format!("{text}{more}"), WORKLOADS).expect("a suite");
        let compare = Some(Versus {
            baseline: "old".to_owned(),
            candidate: candidate.to_owned(),
            control: None,
            ways: Vec::new(),
            equivalence: None,
        });
        let overrides = Overrides { compare, costs_are_readable, ..Overrides::default() };
        let plan = Plan::build(&suite, &overrides).expect("a plan");
        let experiments = plan.experiments.iter();
        let summary: Vec<(&str, bool, bool)> = experiments
            .map(|facts| (facts.name.as_str(), facts.is_together(), facts.prepare))
            .collect();
        assert_eq!(summary, expected);
    }
}

/// The control has separate data and no gates.
#[test]
fn a_control_is_compared_with_the_baseline_by_cost_alone() {
    let suite = Suite::parse("s.toml", &experiment("gate = \"tps > 1\"\n"), WORKLOADS);
    let stop = WantedStop { budget_s: Some(60.0), ..WantedStop::default() };
    let ways = [Design::Together, Design::InTurn].map(|design| ComparisonWay {
        design,
        stop,
        gates: Vec::new(),
    });
    let versus = Versus {
        baseline: "old".to_owned(),
        candidate: "new".to_owned(),
        control: Some("third".to_owned()),
        ways: ways.to_vec(),
        equivalence: None,
    };
    let overrides = Overrides {
        compare: Some(versus),
        targets: vec![("third".to_owned(), SecretUrl::new("mysql://h/c"))],
        ..Overrides::default()
    };
    let plan = Plan::build(&suite.expect("a suite"), &overrides).expect("a plan");
    // Capacity has what cost leaves of the budget.
    let expected = [
        ("e-cost", "new", None, [false, true, false, false]),
        ("e-capacity", "new", Some("e-cost"), [false, false, true, false]),
        ("e-third", "third", None, [true, true, true, true]),
    ];
    assert_eq!(plan.experiments.len(), expected.len());
    for (facts, (name, other, shares_budget_with, flags)) in plan.experiments.iter().zip(expected) {
        let comparison = facts.comparison.as_ref().expect("a comparison");
        assert_eq!(
            (facts.name.as_str(), &comparison.candidates[..]),
            (name, &[other.to_owned()][..])
        );
        assert_eq!(comparison.shares_budget_with.as_deref(), shares_budget_with);
        let properties = [comparison.is_aa, facts.prepare, facts.cleanup, facts.gates.is_empty()];
        assert_eq!(properties, flags, "{name}");
    }
}
