//! Plans of bundled and small suites: expansion, shrinking, storing, resuming.

mod common;

use common::WORKLOADS;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use dyno_facts::{PlanStep, PlannedTrial, Restore, Role, SecretUrl, StepAction};
use dyno_suite::{Overrides, Plan, Suite, SuiteError, bundled, figures};

/// Gives targets their URLs.
fn overrides(targets: &[(&str, &str)]) -> Overrides {
    let targets = targets.iter().map(|(name, url)| ((*name).into(), SecretUrl::new(*url)));
    Overrides { targets: targets.collect(), ..Overrides::default() }
}

/// Every target of the suite that has no URL gets one; a suite that names none gets one.
fn all_targets(suite: &Suite) -> Overrides {
    if suite.targets.is_empty() {
        return overrides(&[("any", "mysql://u:geheim@any/d")]);
    }
    let urls = suite
        .targets
        .iter()
        .filter(|target| target.nodes.iter().all(|node| node.url.is_none()))
        .map(|target| &target.name.value)
        .map(|name| (name.clone(), SecretUrl::new(format!("mysql://u:geheim@{name}/d"))));
    Overrides { targets: urls.collect(), ..Overrides::default() }
}

/// The trials with their steps, in order.
fn trials(plan: &Plan) -> Vec<(&PlanStep, &PlannedTrial)> {
    plan.steps
        .iter()
        .filter_map(|step| match &step.action {
            StepAction::Trial(trial) => Some((step, trial)),
            StepAction::Prepare | StepAction::Cleanup => None,
        })
        .collect()
}

/// The plan of a suite that must be right.
fn build(suite: &Suite, overrides: &Overrides) -> Plan {
    Plan::build(suite, overrides).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_bundled_suite_builds_at_any_size_and_survives_storing() {
    for bundle in bundled() {
        let suite = Suite::open(bundle.name, WORKLOADS).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(suite.facts.name, bundle.name);
        let mut overrides = all_targets(&suite);
        for shrink in [1.0, 0.001] {
            overrides.shrink = Some(shrink);
            let plan = build(&suite, &overrides);
            assert_eq!(plan.experiments.len(), suite.experiments.len());
            assert_eq!(plan.targets.len(), suite.targets.len().max(1));
            let ids: BTreeSet<&str> = plan.steps.iter().map(|step| step.id.as_str()).collect();
            assert_eq!(ids.len(), plan.steps.len(), "step ids are unique");
            for (index, (_, trial)) in trials(&plan).iter().enumerate() {
                assert_eq!(trial.number as usize, index + 1);
                assert!(trial.seed < 1 << 53);
            }
            let json = serde_json::to_string(&plan).expect("JSON");
            assert!(!json.contains("geheim"), "a password is stored");
            let back: Plan = serde_json::from_str(&json).expect("a plan");
            assert!(serde_json::to_string(&back).expect("JSON") == json, "{} changes", bundle.name);
            assert_eq!(back.remaining(&BTreeSet::new()).len(), plan.steps.len());
        }
    }
}

#[test]
fn every_suite_file_is_bundled() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../suites");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .expect("suites/")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter_map(|name| name.strip_suffix(".toml").map(str::to_string))
        .collect();
    files.sort();
    let mut names: Vec<&str> = bundled().iter().map(|suite| suite.name).collect();
    names.sort_unstable();
    assert_eq!(files, names);
}

#[test]
fn every_script_file_is_bundled() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../suites/pgbench");
    let head = "[suite]\nname = \"a\"\n[target.main]\nurl = \"sqlite:x\"\n[[experiment]]\nname = \"a\"\n\
                workload = \"pgbench\"\ntest = \"script\"\nworkers = 1\nevents = 5\n";
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("suites/pgbench/") {
        let path = entry.expect("an entry").path();
        let file = path.file_name().expect("a name").to_string_lossy().into_owned();
        let text = format!("{head}options = {{ scripts = \"pgbench/{file}@2\" }}\n");
        let suite = Suite::parse("bundled:any.toml", &text, WORKLOADS).expect("a suite");
        let scripts = &build(&suite, &Overrides::default()).experiments[0].scripts;
        assert_eq!(scripts[0].text, std::fs::read_to_string(&path).expect("a script"));
        assert_eq!((scripts[0].name.as_str(), scripts[0].weight), (&*format!("pgbench/{file}"), 2));
        count += 1;
    }
    assert_eq!(count, 2);
}

#[test]
fn the_pgbench_paper_has_all_its_rows() {
    let suite = Suite::open("polardb-oracle-pgbench", WORKLOADS).expect("the suite");
    let plan = build(&suite, &all_targets(&suite));
    assert_eq!((plan.targets.len(), plan.experiments.len(), plan.steps.len()), (6, 32, 32 + 12));
    let figure = figures::figure("polardb-for-oracle-pgbench").expect("the figure");
    let mut rows = BTreeSet::new();
    for experiment in &plan.experiments {
        let [series] = experiment.published.as_slice() else { panic!("one figure") };
        let [row] = series.rows.as_slice() else { panic!("one row: {:?}", series.rows) };
        assert_eq!(row.targets, experiment.targets);
        let printed = |name: &str| row.number(name).expect("a number");
        assert_eq!(experiment.workers, [printed("clients") as u32]);
        assert_eq!(experiment.duration_s, Some(printed("duration_s")));
        assert_eq!(experiment.options["scale"], printed("scale").to_string());
        assert_eq!(experiment.options["define.range"], printed("hot_rows").to_string());
        assert_eq!(experiment.options["mode"], "prepared");
        let size = experiment.data.expect("a size");
        assert_eq!(size.rows_per_table as f64, printed("rows"));
        let script = row.conditions["script"].to_string();
        assert_eq!(experiment.scripts[0].name, format!("pgbench/{script}.sql"));
        assert_eq!(experiment.scripts[0].text.contains("INSERT"), script == "read-write");
        assert!(rows.insert((row.number, script)), "{} is there twice", experiment.name);
    }
    assert_eq!(rows.len(), figure.rows.len());
    // One load and one removal per class, around all of its experiments.
    for target in &plan.targets {
        let actions: Vec<&StepAction> =
            plan.steps.iter().filter(|s| s.target == target.name).map(|s| &s.action).collect();
        for action in [StepAction::Prepare, StepAction::Cleanup] {
            assert_eq!(actions.iter().filter(|other| ***other == action).count(), 1);
        }
        assert_eq!(
            (actions[0], actions[actions.len() - 1]),
            (&StepAction::Prepare, &StepAction::Cleanup)
        );
    }
}

#[test]
fn a_shrunk_hot_range_keeps_its_share() {
    let suite = Suite::open("polardb-oracle-pgbench", WORKLOADS).expect("the suite");
    let mut changes = overrides(&[("x4-large", "postgres://a/d")]);
    changes.shrink = Some(0.001);
    let plan = build(&suite, &changes);
    assert_eq!(plan.experiments.len(), 4);
    // Five classes have no URL: two notes name them and their experiments, a third one the shrinking.
    assert_eq!(plan.notes.len(), 3, "{:?}", plan.notes);
    assert!(
        plan.notes[1].to_string().starts_with("28 experiments have no target"),
        "{}",
        plan.notes[1]
    );
    for (experiment, share) in plan.experiments.iter().zip([0.2, 1.0, 0.2, 1.0]) {
        let [scale, range] = ["scale", "define.range"]
            .map(|name| experiment.options[name].parse::<f64>().expect("a number"));
        assert_eq!(scale, 5.0);
        assert_eq!(range / (scale * 100_000.0), share);
        assert_eq!(
            (experiment.workers.as_slice(), experiment.duration_s),
            ([16].as_slice(), Some(1.0))
        );
    }
}

fn build_file(file: &Path) -> Result<Plan, SuiteError> {
    let suite = Suite::open(&file.to_string_lossy(), WORKLOADS);
    Plan::build(&suite.unwrap_or_else(|error| panic!("{error}")), &Overrides::default())
}

#[test]
fn scripts_are_part_of_what_is_executed() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("s.toml");
    let script = folder.path().join("own.sql");
    let text = "[suite]\nname = \"a\"\n[target.main]\nurl = \"sqlite:x\"\n[[experiment]]\nname = \"a\"\n\
                workload = \"pgbench\"\ntest = \"script\"\nworkers = [1, 2]\nevents = 5\n\
                options = { scripts = [\"own.sql\", \"./own.sql@0\"] }\n";
    std::fs::write(&file, text).expect("a suite can be written");
    let error = build_file(&file).expect_err("the script is missing").to_string();
    assert!(error.contains("own.sql can't be read: No such file"), "{error}");
    assert!(error.contains("s.toml:11:24"), "{error}");
    std::fs::write(&script, "SELECT 1;\n").expect("a script can be written");
    let first_plan = build_file(&file).expect("a plan");
    assert_eq!(
        (first_plan.experiments[0].scripts[0].weight, first_plan.experiments[0].scripts[1].weight),
        (1, 0)
    );
    assert_eq!(first_plan.experiments[0].workers, [1, 2]);
    std::fs::write(&script, "SELECT 2;\n").expect("a script can be written");
    assert_ne!(
        first_plan.hash,
        build_file(&file).expect("a plan").hash,
        "another script is another plan"
    );
}

#[test]
fn quickstart_needs_nothing_and_is_short() {
    let suite = Suite::open("quickstart", WORKLOADS).expect("quickstart");
    let plan = build(&suite, &Overrides::default());
    // A guess for servers: SQLite is done sooner.
    assert!(plan.estimated_s <= 110.0, "{} s", plan.estimated_s);
    let tests: Vec<&str> = plan.experiments.iter().map(|e| e.test.as_str()).collect();
    let sysbench = ["oltp_point_select", "oltp_read_only", "oltp_write_only", "oltp_read_write"];
    let pgbench = ["select-only", "simple-update", "tpcb-like", "script", "script"];
    assert_eq!(tests, [sysbench.as_slice(), &pgbench, &["bmsql-5.0", "queries"]].concat());
    // Each family has one set of data: loaded first, dropped last.
    let actions: Vec<&StepAction> = plan.steps.iter().map(|step| &step.action).collect();
    assert_eq!(actions.iter().filter(|action| ***action == StepAction::Prepare).count(), 4);
    assert_eq!(*actions[0], StepAction::Prepare);
    assert_eq!(*actions[actions.len() - 1], StepAction::Cleanup);
    assert_eq!(actions.len(), 14 + 12 + 4 + 6);
    let target = plan.target("sqlite").expect("the target");
    assert_eq!(target.url.redacted(), "sqlite:{run}/quickstart.db");
    assert_eq!(target.url_in(Path::new("runs/1")).expose(), "sqlite:runs/1/quickstart.db");
    let odd = target.url_in(Path::new("/a?b/50%"));
    assert_eq!(odd.expose(), "sqlite:/a%3Fb/50%25/quickstart.db");
}

#[test]
fn polardb_mysql_has_published_times_for_both_degrees() {
    let suite = Suite::open("polardb-mysql-tpch", WORKLOADS).expect("the suite");
    let plan = build(&suite, &all_targets(&suite));
    let [experiment] = plan.experiments.as_slice() else { panic!("one experiment") };
    assert_eq!(experiment.data.expect("a size").rows_per_table, 600_000_000);
    let series = &experiment.published[0];
    for degree in &experiment.degrees {
        let seconds: Vec<f64> = series
            .rows
            .iter()
            .filter(|row| row.number("degree") == Some(f64::from(*degree)))
            .filter_map(|row| row.metrics.get("seconds").copied())
            .collect();
        assert_eq!(seconds.len(), 22, "degree {degree}");
        assert!(seconds.iter().sum::<f64>() > 600.0, "degree {degree}");
    }
    assert!(series.rows.iter().all(|row| row.targets == ["polardb"]));
    let small = Overrides { shrink: Some(0.0001), ..all_targets(&suite) };
    let plan = build(&suite, &small);
    let scale = plan.experiments[0].options.get("scale");
    assert_eq!(scale.expect("the option"), "0.01");
    assert_eq!(passes(&plan).len(), 4, "two degrees on two targets");
}

#[test]
fn polardb_x_is_shown_with_the_published_editions() {
    let suite = Suite::open("polardb-x-tpcc", WORKLOADS).expect("the suite");
    let plan = build(&suite, &all_targets(&suite));
    let editions = plan.experiments.iter().map(|experiment| {
        let rows = &experiment.published[0].rows;
        let figures: Vec<f64> = rows
            .iter()
            .filter(|row| row.targets == experiment.targets)
            .map(|row| row.metrics["tpmc"])
            .collect();
        let warehouses = experiment.data.expect("a size").rows_per_table / 300_000;
        (experiment.name.as_str(), warehouses, experiment.workers[0], rows.len(), figures)
    });
    let expected = [
        ("standard", 1_000, 1_000, 1, vec![65_735.14]),
        ("enterprise", 1_000, 1_000, 1, vec![101_620.8]),
        ("extra-large", 10_000, 6_000, 1, vec![821_547.97]),
        ("stand-ins", 26, 16, 3, vec![]),
        ("other", 1_000, 1_000, 2, vec![]),
    ];
    assert_eq!(editions.collect::<Vec<_>>(), expected);
    // A rehearsal: as many terminals as its warehouses have.
    let small = Overrides { shrink: Some(0.002), ..all_targets(&suite) };
    let plan = build(&suite, &small);
    let sizes = plan.experiments.iter().map(|experiment| {
        let option = experiment.options.get("warehouses");
        (option.expect("the option").as_str(), experiment.workers[0])
    });
    assert_eq!(
        sizes.collect::<Vec<_>>(),
        [("2", 20), ("2", 20), ("20", 200), ("1", 10), ("2", 20)]
    );
    let note = "standard at 20 of 1,000, enterprise at 20 of 1,000";
    assert!(plan.notes.iter().any(|line| line.to_string().contains(note)), "{:?}", plan.notes);
    // Titles state what runs.
    let title = &plan.experiment("standard").expect("the experiment").title;
    assert_eq!(title, "Standard edition: 2 warehouses, 20 terminals");
    let smallest = Overrides { max_workers: Some(1), ..small };
    let suite = Suite::open("tpcc", WORKLOADS).expect("a suite");
    let smallest =
        Overrides { targets: vec![("a".into(), SecretUrl::new("mysql://a/d"))], ..smallest };
    let plan = build(&suite, &smallest);
    assert_eq!(plan.experiments[0].title, "1 warehouse, 1 terminal");
}

#[test]
fn rds_is_shown_with_the_published_rows() {
    let suite = Suite::open("rds-mysql-5.6", WORKLOADS).expect("the suite");
    let urls = overrides(&[("s3-large", "mysql://a/d"), ("main", "mysql://b/d")]);
    let plan = build(&suite, &urls);
    let experiment = plan.experiment("oltp").expect("the experiment");
    assert_eq!(experiment.test, "oltp");
    assert_eq!(experiment.workers, [32]);
    assert_eq!(experiment.duration_s, Some(3600.0));
    assert_eq!(experiment.events, Some(999_999_999));
    let size = experiment.data.expect("a size");
    assert_eq!((size.tables, size.rows_per_table), (64, 10_000_000));
    let series = &experiment.published[0];
    assert_eq!(series.rows.len(), 12);
    for row in &series.rows {
        let counterpart = row.label == "rds.mysql.s3.large";
        assert_eq!(row.targets, if counterpart { vec!["s3-large"] } else { vec![] });
        assert_eq!(row.number("threads"), Some(32.0));
    }
    let row = series.rows.iter().find(|row| !row.targets.is_empty()).expect("a counterpart");
    assert_eq!((row.metrics["tps"], row.metrics["qps"]), (560.0, 10_896.0));
    // Eleven classes have no URL: one note names them all.
    assert_eq!(plan.notes.len(), 1);
    assert!(plan.notes[0].to_string().contains("t1-small, s1-small"), "{}", plan.notes[0]);
}

#[test]
fn shrinking_keeps_shape_and_says_so() {
    let suite = Suite::open("polardb-mysql-oltp", WORKLOADS).expect("the suite");
    let mut changes = overrides(&[("polardb-8-0", "mysql://a/d")]);
    changes.shrink = Some(0.01);
    changes.max_workers = Some(50);
    let plan = build(&suite, &changes);
    let names: Vec<&str> = plan.experiments.iter().map(|e| e.name.as_str()).collect();
    assert_eq!(names, ["read-only-8-0", "write-only-8-0", "read-write-8-0"]);
    let experiment = plan.experiment("read-only-8-0").expect("the experiment");
    assert_eq!(experiment.workers, [16, 32, 50]);
    assert_eq!(experiment.duration_s, Some(6.0));
    assert_eq!(experiment.events, None);
    let size = experiment.data.expect("a size");
    // 6,250,000 rows / 100 = 62,500: rows go down to 1,000, then tables from 250 to 63.
    assert_eq!((size.tables, size.rows_per_table), (63, 1_000));
    for (name, value) in
        [("tables", "63"), ("table_size", "1000"), ("range_selects", "0"), ("skip_trx", "1")]
    {
        assert_eq!(experiment.options[name], value, "{name}");
    }
    assert!(plan.notes.iter().any(|note| note.to_string().contains("shrunk by 0.01")));
    assert!(plan.notes.iter().any(|note| note.to_string().contains("read-only-8-0 at 50 of ")));
    assert_eq!(plan.targets[0].role, Role::Endpoint);
}

#[test]
fn only_data_that_a_suite_loads_are_shrunk() {
    // One experiment loads for both.
    for (prepared, rows) in [("true", 10_000), ("false", 100_000)] {
        let text = format!(
            "[suite]\nname = 's'\n[target.a]\nurl = 'mysql://u@a/d'\n[[experiment]]\nname = 'x'\n\
             workload = 'sysbench'\ntest = 'oltp_read_only'\nworkers = 1\nduration_s = 60\n\
             prepare = {prepared}\noptions = {{ table_size = 100_000 }}\n[[experiment]]\nname = 'y'\n\
             workload = 'sysbench'\ntest = 'oltp_read_write'\nworkers = 1\nduration_s = 60\n\
             prepare = false\noptions = {{ table_size = 100_000 }}\n"
        );
        let suite = Suite::parse("s.toml", &text, WORKLOADS).expect("a suite");
        let shrunk = Overrides { shrink: Some(0.1), ..Overrides::default() };
        let plan = build(&suite, &shrunk);
        let sizes = plan
            .experiments
            .iter()
            .map(|experiment| experiment.data.expect("a size").rows_per_table);
        assert_eq!(sizes.collect::<Vec<_>>(), [rows; 2]);
    }
}

const TWO: &str = "
[suite]
name = \"two\"
seed = 9
[target.a]
url = \"mysql://u:eins@a/d\"
[target.b]
url = \"mysql://u@b/d\"
[[experiment]]
name = \"x\"
workload = \"sysbench\"
test = \"oltp_insert\"
options = { auto-inc = false, tables = 2 }
workers = [1, 8]
rate = [100, 2.5]
events = 10
repeats = 3
[[experiment]]
name = \"y\"
workload = \"sysbench\"
test = \"bulk_insert\"
workers = 1
duration_s = 2
";

#[test]
fn repeats_are_outermost_and_targets_are_interleaved() {
    let plan =
        build(&Suite::parse("two.toml", TWO, WORKLOADS).expect("a suite"), &Overrides::default());
    let trials_of_x: Vec<(&PlanStep, &PlannedTrial)> =
        trials(&plan).into_iter().filter(|(step, _)| step.experiment == "x").collect();
    assert_eq!(trials_of_x.len(), 2 * 2 * 2 * 3);
    assert_eq!(plan.steps[0].id, "x/a/prepare");
    assert_eq!(plan.steps[1].id, "x/b/prepare");
    let mut first = BTreeSet::new();
    for (index, pair) in trials_of_x.chunks(2).enumerate() {
        let [(step, trial), (twin_step, twin_trial)] = pair else { panic!("a pair") };
        assert_ne!(step.target, twin_step.target);
        assert_eq!((trial.workers, trial.rate), (twin_trial.workers, twin_trial.rate));
        assert_eq!(trial.seed, twin_trial.seed, "both targets get the same work");
        assert_eq!(trial.repeat as usize, index / 4 + 1);
        first.insert(step.target.as_str());
    }
    assert_eq!(first.len(), 2, "each target comes first");
    let seeds: BTreeSet<u64> = trials_of_x.iter().map(|(_, trial)| trial.seed).collect();
    assert_eq!(seeds.len(), 12, "repeats and points differ in their seeds");
    let ids: BTreeSet<&str> = trials_of_x.iter().map(|(step, _)| step.id.as_str()).collect();
    assert!(ids.contains("x/b/workers=8/rate=2.5/repeat=3"), "{ids:?}");
    let options = &plan.experiments[0].options;
    assert_eq!(options["auto_inc"], "off");
    assert_eq!(plan.experiments[1].data, None);
}

fn plan_hash(text: &str, overrides: &Overrides) -> String {
    build(&Suite::parse("two.toml", text, WORKLOADS).expect("a suite"), overrides).facts.hash
}

#[test]
fn the_hash_ignores_passwords_and_titles_only() {
    let none = Overrides::default();
    let base = plan_hash(TWO, &none);
    assert_eq!(base.len(), 16);
    assert_eq!(base, plan_hash(TWO, &none));
    assert_eq!(base, plan_hash(&TWO.replace("u:eins@", "u@"), &none));
    assert_eq!(base, plan_hash(&TWO.replace("seed = 9", "seed = 9\ntitle = \"Zwei\""), &none));
    for (from, to) in [
        ("seed = 9", "seed = 8"),
        ("mysql://u@b/d", "mysql://u@c/d"),
        ("tables = 2", "tables = 3"),
        ("duration_s = 2", "duration_s = 3"),
        ("repeats = 3", "repeats = 2"),
        ("oltp_insert", "oltp_delete"),
    ] {
        assert_ne!(base, plan_hash(&TWO.replace(from, to), &none), "{from}");
    }
    assert_ne!(base, plan_hash(TWO, &Overrides { seed: Some(1), ..Overrides::default() }));
    assert_ne!(base, plan_hash(TWO, &Overrides { shrink: Some(0.5), ..Overrides::default() }));
}

#[test]
fn resuming_loads_again_only_what_was_removed() {
    let text = TWO.replace("repeats = 3", "repeats = 1").replace("rate = [100, 2.5]", "");
    let plan =
        build(&Suite::parse("two.toml", &text, WORKLOADS).expect("a suite"), &Overrides::default());
    let all_ids: BTreeSet<String> = plan.steps.iter().map(|step| step.id.clone()).collect();
    let id = "x/a/workers=8/repeat=1";
    for (missing, expected) in [
        (&[] as &[&str], &[] as &[&str]),
        // Interrupted before the second trial of a: its data are there.
        (&[id, "x/a/cleanup"][..], &[id, "x/a/cleanup"][..]),
        // A trial failed, and the data were removed after it.
        (&[id][..], &["x/a/prepare", id, "x/a/cleanup"][..]),
        // Only the removal was interrupted.
        (&["x/a/cleanup"][..], &["x/a/cleanup"][..]),
        // Interrupted while loading.
        (&["x/a/prepare", id, "x/a/cleanup"][..], &["x/a/prepare", id, "x/a/cleanup"][..]),
    ] {
        let mut completed = all_ids.clone();
        for id in missing {
            assert!(completed.remove(*id), "{id}");
        }
        let remaining = plan.remaining(&completed);
        let ids: Vec<&str> = remaining.iter().map(|step| step.id.as_str()).collect();
        assert_eq!(ids, expected);
    }
    // A plan without trials is there to load.
    let mut loading = plan.clone();
    loading.facts.steps.retain(|step| step.action == StepAction::Prepare);
    assert_eq!(loading.remaining(&BTreeSet::new()).len(), loading.steps.len());
    assert!(loading.remaining(&all_ids).is_empty());
}

#[test]
fn shared_data_live_through_several_experiments() {
    let suite = Suite::open("quickstart", WORKLOADS).expect("quickstart");
    let plan = build(&suite, &Overrides::default());
    let mut completed: BTreeSet<String> = plan.steps.iter().map(|step| step.id.clone()).collect();
    let id = "read-only/sqlite/workers=2/repeat=1";
    completed.remove(id);
    let remaining: Vec<&str> =
        plan.remaining(&completed).iter().map(|step| step.id.as_str()).collect();
    assert_eq!(remaining, ["point-select/sqlite/prepare", id, "read-write/sqlite/cleanup"]);
}

#[test]
fn passwords_come_from_variables_named_after_targets() {
    let suite = Suite::open("rds-mysql-5.6", WORKLOADS).expect("the suite");
    let plan = build(&suite, &overrides(&[("c2-2xlarge", "mysql://u:geheim@h/d")]));
    let target = plan.target("c2-2xlarge").expect("the target");
    assert_eq!(target.password_variable(), "DYNO_PASSWORD_C2_2XLARGE");
    assert_eq!(target.url.redacted(), "mysql://u@h/d");
    assert_eq!(target.url_in(Path::new("")).expose(), "mysql://u:geheim@h/d");
    assert!(!format!("{plan:?}").contains("geheim"));
    assert!(!format!("{suite:?}").contains("geheim"));
}

/// Repeat and degree of each trial on one target, in the order of execution.
fn passes(plan: &Plan) -> Vec<(u32, Option<u32>)> {
    trials(plan).iter().map(|(_, trial)| (trial.repeat, trial.degree)).collect()
}

#[test]
fn degrees_take_turns_and_share_their_queries() {
    let text = "[suite]\nname = \"a\"\n[target.main]\nurl = \"postgres://h/d\"\n[[experiment]]\n\
                name = \"q\"\nworkload = \"tpch\"\ntest = \"queries\"\ndegrees = [0, 4, 16]\n\
                repeats = 6\noptions = { scale = 100 }\n";
    let suite = Suite::parse("a.toml", text, WORKLOADS).unwrap_or_else(|error| panic!("{error}"));
    let capped = Overrides { shrink: Some(0.0001), max_workers: Some(2), ..Overrides::default() };
    let plan = build(&suite, &capped);
    assert_eq!(plan.experiments[0].degrees, [0, 4, 16], "no thread is a degree");
    assert_eq!(plan.experiments[0].options["scale"], "0.01");
    let order = passes(&plan);
    assert_eq!(order.len(), 18);
    let mut places: BTreeMap<(usize, u32), u32> = BTreeMap::new();
    for repeat in 1..=6 {
        let degrees: Vec<u32> = order
            .iter()
            .filter(|(other, _)| *other == repeat)
            .filter_map(|(_, degree)| *degree)
            .collect();
        let mut sorted = degrees.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 4, 16], "repeat {repeat} has every degree");
        for (place, degree) in degrees.into_iter().enumerate() {
            *places.entry((place, degree)).or_default() += 1;
        }
    }
    assert!(places.len() == 9 && places.values().all(|times| *times == 2), "{places:?}");
    let trials = trials(&plan);
    let seeds: BTreeSet<(u32, u64)> =
        trials.iter().map(|(_, trial)| (trial.repeat, trial.seed)).collect();
    assert_eq!(seeds.len(), 6, "the degrees of a repeat share a seed, repeats don't");
    let first = trials[0].0.id.strip_prefix("q/main/degree=").expect("a name of a degree");
    assert!(first.ends_with("/repeat=1"), "{first}");
    assert!(trials.iter().all(|(step, trial)| trial.workers == 1 && step.estimated_s > 0.1));
    let rebuilt = build(&suite, &capped);
    assert_eq!(rebuilt.hash, plan.hash);
    let changed = Suite::parse("a.toml", &text.replace("16]", "8]"), WORKLOADS).expect("a suite");
    assert_ne!(build(&changed, &capped).hash, plan.hash, "other degrees are another plan");
}

#[test]
fn without_degrees_there_is_one_point_at_degree_0() {
    let text = "[suite]\nname = \"a\"\n[target.main]\nurl = \"sqlite:a.db\"\n[[experiment]]\n\
                name = \"q\"\nworkload = \"tpch\"\ntest = \"power\"\n";
    let suite = Suite::parse("a.toml", text, WORKLOADS).unwrap_or_else(|error| panic!("{error}"));
    let plan = build(&suite, &Overrides::default());
    assert_eq!(passes(&plan), [(1, Some(0))]);
    let ids: Vec<&str> = plan.steps.iter().map(|step| step.id.as_str()).collect();
    assert_eq!(ids, ["q/main/prepare", "q/main/degree=0/repeat=1", "q/main/cleanup"]);
}

#[test]
fn the_pace_of_a_target_follows_from_its_product() {
    let suite = "[suite]\nname = \"s\"\n\n[target.m]\nurl = \"mysql://u@h/d\"\n\n[target.p]\nurl = \"postgres://u@h/d\"\n\n\
                 [[experiment]]\nname = \"e\"\nworkload = \"tpch\"\ntest = \"queries\"\noptions = { scale = 1 }\n\
                 repeats = 1\n";
    let suite = Suite::parse("s.toml", suite, WORKLOADS).unwrap_or_else(|error| panic!("{error}"));
    let plan = build(&suite, &Overrides::default());
    // About what MariaDB and PostgreSQL need at this scale factor if their memory holds some of it.
    for (target, expected_s) in [("m", 150.0..250.0), ("p", 40.0..70.0)] {
        let steps = plan.steps.iter().filter(|step| step.target == target);
        let seconds: f64 = steps.map(|step| step.estimated_s).sum();
        assert!(expected_s.contains(&seconds), "{target}: {seconds} s");
    }
}

#[test]
fn the_load_of_a_target_behind_a_proxy_is_not_guessed() {
    let suite = "[suite]\nname = \"s\"\n\n[target.direct]\nurl = \"mysql://u@h/d\"\n\n[target.proxy]\n\
                 nodes = [{ role = \"endpoint\", url = \"mysql://u@p/d\" }]\n\n[[experiment]]\nname = \"e\"\nworkload = \"sysbench\"\n\
                 test = \"oltp_read_only\"\noptions = { tables = 10, table_size = 1000000 }\nworkers = 4\nduration_s = 1\n";
    let suite = Suite::parse("s.toml", suite, WORKLOADS).unwrap_or_else(|error| panic!("{error}"));
    let plan = build(&suite, &Overrides::default());
    assert_eq!(plan.measured_loads(), ["proxy"]);
    let [proxy_s, direct_s] = ["proxy", "direct"].map(|target| {
        let mut steps = plan.steps.iter().filter(|step| step.action == StepAction::Prepare);
        steps.find(|step| step.target == target).map(|step| step.estimated_s)
    });
    assert_eq!(proxy_s, Some(1.0));
    assert!(direct_s > Some(50.0), "{direct_s:?}");
}

#[test]
fn what_a_suite_says_of_a_target_is_in_the_plan() {
    let text = "[suite]\nname = 's'\n[target.a]\nurl = 'mysql://u@a/d'\ntitle = 'A'\ntitle_zh = 'B'\n\
                description = 'C'\ndescription_zh = 'D'\nclass = 'E'\nvcpu = 4\nmemory_gib = 16.5\n\
                durability = 'F'\nrestart = 'true'\nstated = { zone = 'G' }\nshards = 3\n\
                price = { per_hour = 1.5, currency = 'USD' }\n[[experiment]]\nname = 'x'\n\
                workload = 'sysbench'\ntest = 'oltp_insert'\nworkers = 1\nevents = 1\n";
    let plan =
        build(&Suite::parse("s.toml", text, WORKLOADS).expect("a suite"), &Overrides::default());
    let target = &plan.targets[0];
    let texts = [&target.title, &target.title_zh, &target.description, &target.description_zh];
    assert_eq!(texts.map(String::as_str), ["A", "B", "C", "D"]);
    assert_eq!((target.class.as_str(), target.durability.as_deref()), ("E", Some("F")));
    assert_eq!((target.vcpu, target.memory_gib, target.shards), (Some(4.0), Some(16.5), Some(3)));
    assert_eq!((&target.stated["zone"], target.restart.is_some()), (&"G".to_owned(), true));
    let price = target.price.as_ref().expect("a price");
    assert_eq!((price.per_hour, price.currency.as_str()), (1.5, "USD"));
}

#[test]
fn given_scripts_are_found_by_their_names() {
    let text = "[suite]\nname = 's'\n[target.a]\nurl = 'mysql://u@a/d'\n[[experiment]]\nname = 'x'\n\
                workload = 'pgbench'\ntest = 'script'\nworkers = 1\nevents = 5\n\
                options = { scripts = ['two@3', 'one'] }\n";
    let suite = Suite::parse("s.toml", text, WORKLOADS).expect("a suite");
    let suite = suite.with_scripts(&[
        ("one".to_owned(), "SELECT 1;".to_owned()),
        ("two".to_owned(), "SELECT 2;".to_owned()),
    ]);
    let plan = build(&suite, &Overrides::default());
    let scripts = plan.experiments[0].scripts.iter();
    let scripts: Vec<_> =
        scripts.map(|script| (script.name.as_str(), script.weight, script.text.as_str())).collect();
    assert_eq!(scripts, [("two", 3, "SELECT 2;"), ("one", 1, "SELECT 1;")]);
}

#[test]
fn a_command_restores_data_unless_it_is_none_or_reload() {
    for (written, restore) in [
        ("", Restore::None),
        ("restore = 'none'", Restore::None),
        ("restore = 'reload'", Restore::Reload),
        ("restore = 'true'", Restore::Command("true".to_owned().into())),
    ] {
        let text = format!(
            "[suite]\nname = 's'\n[target.a]\nurl = 'mysql://u@a/d'\n[[experiment]]\nname = 'x'\n\
             workload = 'sysbench'\ntest = 'oltp_insert'\nworkers = 1\nevents = 1\n{written}\n"
        );
        let suite = Suite::parse("s.toml", &text, WORKLOADS).expect("a suite");
        let plan = build(&suite, &Overrides::default());
        assert_eq!(plan.experiments[0].restore, restore, "{written}");
    }
}
