//! `dyno compare` on run folders that were written by hand: what it says, and its exit codes.

use dyno_facts::{
    ExperimentFacts, FaultFacts, FaultPlan, RunHeader, RunPlan, RunStatus, TargetFacts,
    TrialIdentity, TrialStatus, TrialSummary,
};
use dyno_testkit::{Ran, Scratch, dyno_command};
use std::path::Path;

/// A complete trial of `read` on `main`.
fn trial(number: u32, level: [u32; 2], tps: f64) -> TrialSummary {
    trial_of("main", number, level, tps)
}

pub(crate) fn trial_of(
    target: &str,
    number: u32,
    [workers, repeat]: [u32; 2],
    tps: f64,
) -> TrialSummary {
    let identity = TrialIdentity {
        experiment: "read".to_owned(),
        target: target.to_owned(),
        workers,
        repeat,
        ..TrialIdentity::default()
    };
    TrialSummary { trial: number, window_s: 60.0, tps, ..identity.summary(TrialStatus::Complete) }
}

pub(crate) fn store(dir: &Path, name: &str, experiment: ExperimentFacts, trials: &[TrialSummary]) {
    let folder = dir.join(name);
    std::fs::create_dir_all(folder.join("trials")).expect("made");
    let mut header = RunHeader::new("suite", Vec::new(), 1);
    header.status = RunStatus::Complete;
    let mut targets: Vec<&String> = trials.iter().map(|trial| &trial.target).collect();
    targets.sort_unstable();
    targets.dedup();
    let target = |name: &String| TargetFacts { name: name.clone(), ..TargetFacts::default() };
    header.targets = targets.into_iter().map(target).collect();
    let (name, title) = ("read".to_owned(), "Read".to_owned());
    header.experiments = vec![ExperimentFacts { name, title, ..experiment }];
    let write = |file: &Path, text: String| std::fs::write(file, text).expect("written");
    write(&folder.join("run.json"), serde_json::to_string(&header).expect("JSON"));
    write(&folder.join("events.jsonl"), String::new());
    for trial in trials {
        let text = serde_json::to_string(trial).expect("JSON");
        write(&folder.join(format!("trials/{}.json", trial.trial)), text);
    }
}

fn gated(gates: &[&str]) -> ExperimentFacts {
    let gates = gates.iter().map(|gate| (*gate).to_owned()).collect();
    ExperimentFacts { gates, ..ExperimentFacts::default() }
}

/// A run of one target: a trial for each throughput.
fn run(dir: &Path, name: &str, gates: &[&str], throughputs: &[f64]) {
    let trials = (1..).zip(throughputs).map(|(number, tps)| trial(number, [8, number], *tps));
    store(dir, name, gated(gates), &trials.collect::<Vec<_>>());
}

fn compared(dir: &Scratch) -> Ran {
    let mut command = dyno_command(dir.path());
    Ran::of(command.args(["compare", "a", "b", "--dir"]).arg(dir.path()))
}

/// Throughputs of two sides, of which the second does about `b` where the first does about 1,000.
fn sides(b: f64, pairs: usize) -> [Vec<f64>; 2] {
    let noise = [1.002, 0.995, 1.004, 0.998, 1.001, 0.997];
    let around = |level: f64, shift: usize| -> Vec<f64> {
        (0..pairs).map(|k| level * noise[(k + shift) % noise.len()]).collect()
    };
    [around(1000.0, 0), around(b, 2)]
}

/// A run of `main` and `new` in pairs, compared.
fn compare(b: f64, pairs: usize, gates: &[&str], arguments: &[&str]) -> Ran {
    compare_shrunk(1.0, b, pairs, gates, arguments)
}

/// [`compare`] with data of this share of the suite's.
fn compare_shrunk(shrink: f64, b: f64, pairs: usize, gates: &[&str], arguments: &[&str]) -> Ran {
    let dir = Scratch::new();
    let [main, new] = sides(b, pairs);
    let trials = (0..2 * pairs).map(|at| {
        let (target, tps) = if at % 2 == 0 { ("main", main[at / 2]) } else { ("new", new[at / 2]) };
        trial_of(target, at as u32 + 1, [8, at as u32 / 2 + 1], tps)
    });
    store(dir.path(), "a", gated(gates), &trials.collect::<Vec<_>>());
    if shrink < 1.0 {
        let file = dir.path().join("a/run.json");
        let text = std::fs::read_to_string(&file).expect("a header");
        let mut header: RunHeader = serde_json::from_str(&text).expect("JSON");
        header.plan = Some(RunPlan { shrink, ..RunPlan::default() });
        std::fs::write(file, serde_json::to_string(&header).expect("JSON")).expect("written");
    }
    let mut command = dyno_command(dir.path());
    Ran::of(command.args(["compare", "a", "--dir"]).arg(dir.path()).args(arguments))
}

#[test]
fn a_regression_is_proven_a_gain_passes_and_few_pairs_are_inconclusive() {
    let slower = compare(900.0, 6, &[], &[]);
    assert_eq!(slower.code, 5, "{slower:?}");
    let out = &slower.stdout;
    for words in [
        "A: main\nB: new\n",
        "Read, 8 workers: B / A, 95% interval, 6 pairs\n  tps ",
        " -10.0%  ",
        "  slower\n",
        "No check forbids ",
        "Exit code 5: a regression is proven.\n",
        "Paper: none yet; ",
    ] {
        assert!(out.contains(words), "no `{words}` in: {out}");
    }
    assert_eq!(slower.stderr, "error: A regression is proven in 1 of 1 comparisons.\n");
    let long = compare(900.0, 6, &[], &["--long"]).stdout;
    assert!(
        long.contains("new is slower than main (certain), by ")
            && long.contains("ratio of transactions per second 0.")
            && long.contains("Verdicts"),
        "{long}"
    );
    assert_eq!(compare(1100.0, 6, &[], &[]).code, 0);
    assert_eq!(compare(1000.0, 6, &[], &[]).code, 0, "no difference is no regression");
    let few = compare(900.0, 3, &[], &[]);
    assert_eq!(few.code, 3);
    assert!(few.stdout.contains("undecided"), "{few:?}");
    assert!(few.stderr.contains("hint: A verdict needs at least 6 pairs: `--pairs 6`."), "{few:?}");
}

#[test]
fn a_rehearsal_proves_nothing() {
    for b in [900.0, 1000.0, 1100.0] {
        let ran = compare_shrunk(0.1, b, 6, &[], &[]);
        assert_eq!(ran.code, 3, "{ran:?}");
        assert!(ran.stdout.starts_with("REHEARSAL"), "{ran:?}");
        assert!(!ran.stdout.contains("No check forbids"), "{ran:?}");
    }
    assert_eq!(compare_shrunk(0.1, 900.0, 6, &["tps.ratio.low > 0.97"], &[]).code, 5);
}

#[test]
fn gates_decide_where_there_are_some() {
    let gate = |b: f64, gate: &str| {
        let output = compare(b, 6, &[], &["--gate", gate]);
        (output.code, output.stdout, output.stderr)
    };
    let (code, out, _) = gate(985.0, "tps.ratio.low > 0.97");
    assert_eq!(code, 0, "slower, but not by more than the gate allows: {out}");
    assert!(
        out.contains("gate `tps.ratio.low > 0.97` passed: Read, 8 workers, new / main"),
        "{out}"
    );
    let (code, _, talk) = gate(900.0, "tps.ratio.low > 0.97");
    assert_eq!((code, talk.contains("1 of 1 gates are proven broken.")), (5, true), "{talk}");
    assert_eq!(gate(970.0, "tps.ratio.low > 0.97").0, 3);
    let (code, _, talk) = gate(970.0, "tps.ration > 1");
    assert_eq!(code, 2);
    assert!(talk.contains("hint: A gate is about"), "{talk}");
    // Those of the suite count as well.
    assert_eq!(compare(900.0, 6, &["tps.ratio.low > 0.97"], &[]).code, 5);
}

/// The text without its line breaks.
fn words_of(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn two_runs_prove_nothing_because_they_are_not_interleaved() {
    for (b, gates) in [(900.0, &[][..]), (1100.0, &[]), (1000.0, &["tps.ratio.low > 0.97"])] {
        let dir = Scratch::new();
        let [first, second] = sides(b, 6);
        run(dir.path(), "a", &[], &first);
        run(dir.path(), "b", gates, &second);
        let ran = compared(&dir);
        assert_eq!(ran.code, 3, "{}", ran.all());
        for words in [
            "A: main, run 1\nB: main, run 2\n",
            "Read, 8 workers: B / A, 95% interval, 6 pairs\n",
            "  undecided\n",
            "Not to be claimed: block-order (comparison",
            "hint: Trials that did not take turns, such as those of two separate runs, give no verdict: ",
        ] {
            assert!(ran.all().contains(words), "no `{words}` in: {}", ran.all());
        }
        let is_gate = gates.is_empty()
            || words_of(&ran.stdout).contains("Another cause can explain it: check block-order");
        assert!(is_gate && !ran.stdout.contains("certain"), "{}", ran.all());
    }
}

#[test]
fn it_speaks_chinese_and_says_when_there_is_nothing_to_compare() {
    let chinese = compare(900.0, 6, &[], &["--lang", "zh"]);
    assert!(chinese.stdout.contains("  更慢\n"), "{chinese:?}");
    assert_eq!(compare(900.0, 6, &[], &["--lang", "fr"]).code, 2);
    let nothing = compare(900.0, 0, &[], &["--gate", "tps.ratio.low > 0.97"]);
    assert_eq!((nothing.code, nothing.stdout.as_str()), (2, ""), "{nothing:?}");
    let said = "error: Nothing can be compared: it compares no two targets, or has no complete trial of both.\nhint: ";
    assert!(nothing.stderr.starts_with(said), "{nothing:?}");
}

#[test]
fn however_much_is_compared_20_lines_of_80_columns_say_it() {
    let dir = Scratch::new();
    for (name, speed) in [("a", 1000.0), ("b", 800.0)] {
        let of = |number: u32| {
            trial(number + 1, [1 + number / 6, 1 + number % 6], speed + f64::from(number % 6))
        };
        let gates = ["tps > 1", "tps > 2", "tps > 3000", "qps > 4", "qps > 5"];
        store(dir.path(), name, gated(&gates), &(0..90).map(of).collect::<Vec<_>>());
    }
    let ran = compared(&dir);
    let lines = ran.stdout.lines().count() + ran.stderr.lines().count();
    assert!(lines <= 20, "{lines} lines: {}", ran.all());
    assert!(ran.stdout.lines().all(|line| line.chars().count() <= 80), "{}", ran.all());
    assert!(ran.stdout.contains(" more lines: `--long` prints them."), "{}", ran.all());
    assert!(ran.stdout.contains("Exit code 5: a gate is proven broken."), "{}", ran.all());
    assert_eq!(ran.code, 5, "{}", ran.all());
}

#[test]
fn missing_files_are_named_by_every_verb_that_reads_a_run() {
    let dir = Scratch::new();
    for name in ["a", "b"] {
        run(dir.path(), name, &[], &[1000.0, 1001.0, 1002.0, 999.0, 998.0, 1003.0, 1000.0]);
    }
    std::fs::remove_file(dir.path().join("a/trials/3.json")).expect("removed");
    for verb in [&["compare", "a", "b"][..], &["show", "a"], &["paper", "a"]] {
        let mut command = dyno_command(dir.path());
        let ran = Ran::of(command.args(verb).arg("--dir").arg(dir.path()));
        assert!(ran.stderr.contains("warning: trials/3.json is missing."), "{}", ran.all());
    }
    assert!(compared(&dir).stdout.contains("damaged-folder"), "{}", compared(&dir).stdout);
}

#[test]
fn lost_work_comes_before_any_verdict() {
    let lost = |allow_lost: &[&str]| {
        let dir = Scratch::new();
        let mut trials: Vec<TrialSummary> =
            (1..=6).map(|number| trial(number, [8, number], 1000.0 + f64::from(number))).collect();
        store(dir.path(), "a", gated(&[]), &trials);
        let fault = FaultFacts { acknowledged: Some(10), lost: Some(3), ..FaultFacts::default() };
        trials.push(TrialSummary { fault: Some(fault), ..trial(7, [8, 7], 10.0) });
        let allow_lost = allow_lost.iter().map(|name| (*name).to_owned()).collect();
        let fault = Some(FaultPlan { allow_lost, ..FaultPlan::default() });
        store(dir.path(), "b", ExperimentFacts { fault, ..ExperimentFacts::default() }, &trials);
        compared(&dir)
    };
    let ran = lost(&["other"]);
    assert_eq!(ran.code, 4, "{}", ran.all());
    let words =
        "error: Acknowledged work was lost: trial 2/7: 3 of 10 acknowledged transactions lost.";
    assert!(ran.stderr.contains(words), "{}", ran.all());
    assert!(ran.stdout.contains("lost-acknowledged (trial 2/7: 3 of 10"), "{}", ran.all());
    assert!(ran.stdout.contains("Exit code 4: "), "{}", ran.all());
    // Two runs prove nothing else.
    assert_eq!(lost(&["main"]).code, 3);
    assert_eq!(lost(&["*"]).code, 3);
}
