//! `dyno compare` on run folders that were written by hand: what it says, and its exit codes.

use dyno_facts::{
    ExperimentFacts, FaultFacts, FaultPlan, RunHeader, RunPlan, RunStatus, TargetFacts,
    TrialIdentity, TrialStatus, TrialSummary,
};
use dyno_testkit::{ProcessOutput, Scratch, dyno_command};
use std::path::Path;

/// A complete trial of `read` on `main`.
fn trial(number: u32, level: [u32; 2], tps: f64) -> TrialSummary {
    trial_on("main", number, level, tps)
}

pub(crate) fn trial_on(
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
    let target_facts = |name: &String| TargetFacts { name: name.clone(), ..TargetFacts::default() };
    header.targets = targets.into_iter().map(target_facts).collect();
    let (name, title) = ("read".to_owned(), "Read".to_owned());
    header.experiments = vec![ExperimentFacts { name, title, ..experiment }];
    let write_file = |file: &Path, text: String| std::fs::write(file, text).expect("written");
    write_file(&folder.join("run.json"), serde_json::to_string(&header).expect("JSON"));
    write_file(&folder.join("events.jsonl"), String::new());
    for trial in trials {
        let text = serde_json::to_string(trial).expect("JSON");
        write_file(&folder.join(format!("trials/{}.json", trial.trial)), text);
    }
}

fn experiment_with_gates(gates: &[&str]) -> ExperimentFacts {
    let gates = gates.iter().map(|gate| (*gate).to_owned()).collect();
    ExperimentFacts { gates, ..ExperimentFacts::default() }
}

/// A run of one target: a trial for each throughput.
fn run(dir: &Path, name: &str, gates: &[&str], throughputs: &[f64]) {
    let trials = (1..).zip(throughputs).map(|(number, tps)| trial(number, [8, number], *tps));
    store(dir, name, experiment_with_gates(gates), &trials.collect::<Vec<_>>());
}

fn compare_runs(dir: &Scratch) -> ProcessOutput {
    let mut command = dyno_command(dir.path());
    ProcessOutput::capture(command.args(["compare", "a", "b", "--dir"]).arg(dir.path()))
}

/// Throughputs of two sides, of which the second does about `b` where the first does about 1,000.
fn make_throughputs(b: f64, pairs: usize) -> [Vec<f64>; 2] {
    let noise = [1.002, 0.995, 1.004, 0.998, 1.001, 0.997];
    let values_around = |level: f64, shift: usize| -> Vec<f64> {
        (0..pairs).map(|k| level * noise[(k + shift) % noise.len()]).collect()
    };
    [values_around(1000.0, 0), values_around(b, 2)]
}

/// A run of `main` and `new` in pairs, compared.
fn compare(b: f64, pairs: usize, gates: &[&str], arguments: &[&str]) -> ProcessOutput {
    compare_shrunk(1.0, b, pairs, gates, arguments)
}

/// [`compare`] with data of this share of the suite's.
fn compare_shrunk(
    shrink: f64,
    b: f64,
    pairs: usize,
    gates: &[&str],
    arguments: &[&str],
) -> ProcessOutput {
    let dir = Scratch::new();
    let [main, new] = make_throughputs(b, pairs);
    let trials = (0..2 * pairs).map(|at| {
        let (target, tps) = if at % 2 == 0 { ("main", main[at / 2]) } else { ("new", new[at / 2]) };
        trial_on(target, at as u32 + 1, [8, at as u32 / 2 + 1], tps)
    });
    store(dir.path(), "a", experiment_with_gates(gates), &trials.collect::<Vec<_>>());
    if shrink < 1.0 {
        let file = dir.path().join("a/run.json");
        let text = std::fs::read_to_string(&file).expect("a header");
        let mut header: RunHeader = serde_json::from_str(&text).expect("JSON");
        header.plan = Some(RunPlan { shrink, ..RunPlan::default() });
        std::fs::write(file, serde_json::to_string(&header).expect("JSON")).expect("written");
    }
    let mut command = dyno_command(dir.path());
    ProcessOutput::capture(command.args(["compare", "a", "--dir"]).arg(dir.path()).args(arguments))
}

#[test]
fn a_regression_is_proven_a_gain_passes_and_few_pairs_are_inconclusive() {
    let slower = compare(900.0, 6, &[], &[]);
    assert_eq!(slower.code, 5, "{slower:?}");
    let out = &slower.stdout;
    for words in [
        "Read, 8 workers: new / main, 95% interval, 6 pairs\n  tps ",
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
    let three_pairs = compare(900.0, 3, &[], &[]);
    assert_eq!(three_pairs.code, 3);
    assert!(three_pairs.stdout.contains("undecided"), "{three_pairs:?}");
    assert!(
        three_pairs.stderr.contains("hint: A verdict needs at least 6 pairs: `--pairs 6`."),
        "{three_pairs:?}"
    );
}

#[test]
fn a_rehearsal_proves_nothing() {
    for b in [900.0, 1000.0, 1100.0] {
        let output = compare_shrunk(0.1, b, 6, &[], &[]);
        assert_eq!(output.code, 3, "{output:?}");
        assert!(output.stdout.starts_with("REHEARSAL"), "{output:?}");
        assert!(!output.stdout.contains("No check forbids"), "{output:?}");
    }
    assert_eq!(compare_shrunk(0.1, 900.0, 6, &["tps.ratio.low > 0.97"], &[]).code, 5);
}

#[test]
fn gates_decide_where_there_are_some() {
    let run_with_gate = |b: f64, gate: &str| {
        let output = compare(b, 6, &[], &["--gate", gate]);
        (output.code, output.stdout, output.stderr)
    };
    let (code, out, _) = run_with_gate(985.0, "tps.ratio.low > 0.97");
    assert_eq!(code, 0, "slower, but not by more than the gate allows: {out}");
    assert!(
        out.contains("gate `tps.ratio.low > 0.97` passed: Read, 8 workers, new / main"),
        "{out}"
    );
    let (code, _, talk) = run_with_gate(900.0, "tps.ratio.low > 0.97");
    assert_eq!((code, talk.contains("1 of 1 gates are proven broken.")), (5, true), "{talk}");
    assert_eq!(run_with_gate(970.0, "tps.ratio.low > 0.97").0, 3);
    let (code, _, talk) = run_with_gate(970.0, "tps.ration > 1");
    assert_eq!(code, 2);
    assert!(talk.contains("hint: A gate is about"), "{talk}");
    // Those of the suite count as well.
    assert_eq!(compare(900.0, 6, &["tps.ratio.low > 0.97"], &[]).code, 5);
}

/// The text without its line breaks.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn two_runs_prove_nothing_because_they_are_not_interleaved() {
    for (b, gates) in [(900.0, &[][..]), (1100.0, &[]), (1000.0, &["tps.ratio.low > 0.97"])] {
        let dir = Scratch::new();
        let [first, second] = make_throughputs(b, 6);
        run(dir.path(), "a", &[], &first);
        run(dir.path(), "b", gates, &second);
        let output = compare_runs(&dir);
        assert_eq!(output.code, 3, "{output}");
        for words in [
            "Read, 8 workers: main, run 2 / main, run 1, 95% interval, 6 pairs\n",
            "  undecided\n",
            "Not to be claimed: block-order (comparison",
            "hint: Trials that did not take turns, such as those of two separate runs, give no verdict: ",
        ] {
            assert!(output.to_string().contains(words), "no `{words}` in: {output}");
        }
        let is_gate = gates.is_empty()
            || one_line(&output.stdout).contains("Another cause can explain it: check block-order");
        assert!(is_gate && !output.stdout.contains("certain"), "{output}");
    }
}

#[test]
fn it_speaks_chinese_and_says_when_there_is_nothing_to_compare() {
    let chinese = compare(900.0, 6, &[], &["--lang", "zh"]);
    assert!(chinese.stdout.contains("  更慢\n"), "{chinese:?}");
    assert_eq!(compare(900.0, 6, &[], &["--lang", "fr"]).code, 2);
    let nothing = compare(900.0, 0, &[], &["--gate", "tps.ratio.low > 0.97"]);
    assert_eq!((nothing.code, nothing.stdout.as_str()), (2, ""), "{nothing:?}");
    let message = "error: Nothing can be compared: it compares no two targets, or has no complete trial of both.\nhint: ";
    assert!(nothing.stderr.starts_with(message), "{nothing:?}");
}

#[test]
fn however_much_is_compared_20_lines_of_80_columns_say_it() {
    let dir = Scratch::new();
    for (name, speed) in [("a", 1000.0), ("b", 800.0)] {
        let numbered_trial = |number: u32| {
            trial(number + 1, [1 + number / 6, 1 + number % 6], speed + f64::from(number % 6))
        };
        let gates = ["tps > 1", "tps > 2", "tps > 3000", "qps > 4", "qps > 5"];
        store(
            dir.path(),
            name,
            experiment_with_gates(&gates),
            &(0..90).map(numbered_trial).collect::<Vec<_>>(),
        );
    }
    let output = compare_runs(&dir);
    let lines = output.stdout.lines().count() + output.stderr.lines().count();
    assert!(lines <= 20, "{lines} lines: {output}");
    assert!(output.stdout.lines().all(|line| line.chars().count() <= 80), "{output}");
    assert!(output.stdout.contains(" more lines: `--long` prints them."), "{output}");
    assert!(output.stdout.contains("Exit code 5: a gate is proven broken."), "{output}");
    assert_eq!(output.code, 5, "{output}");
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
        let output = ProcessOutput::capture(command.args(verb).arg("--dir").arg(dir.path()));
        assert!(output.stderr.contains("warning: trials/3.json is missing."), "{output}");
    }
    assert!(compare_runs(&dir).stdout.contains("damaged-folder"), "{}", compare_runs(&dir).stdout);
}

#[test]
fn lost_work_comes_before_any_verdict() {
    let compare_with_loss = |allow_lost: &[&str]| {
        let dir = Scratch::new();
        let mut trials: Vec<TrialSummary> =
            (1..=6).map(|number| trial(number, [8, number], 1000.0 + f64::from(number))).collect();
        store(dir.path(), "a", experiment_with_gates(&[]), &trials);
        let fault = FaultFacts { acknowledged: Some(10), lost: Some(3), ..FaultFacts::default() };
        trials.push(TrialSummary { fault: Some(fault), ..trial(7, [8, 7], 10.0) });
        let allow_lost = allow_lost.iter().map(|name| (*name).to_owned()).collect();
        let fault = Some(FaultPlan { allow_lost, ..FaultPlan::default() });
        store(dir.path(), "b", ExperimentFacts { fault, ..ExperimentFacts::default() }, &trials);
        compare_runs(&dir)
    };
    let output = compare_with_loss(&["other"]);
    assert_eq!(output.code, 4, "{output}");
    let words =
        "error: Acknowledged work was lost: trial 2/7: 3 of 10 acknowledged transactions lost.";
    assert!(output.stderr.contains(words), "{output}");
    assert!(output.stdout.contains("lost-acknowledged (trial 2/7: 3 of 10"), "{output}");
    assert!(output.stdout.contains("Exit code 4: "), "{output}");
    // Two runs prove nothing else.
    assert_eq!(compare_with_loss(&["main"]).code, 3);
    assert_eq!(compare_with_loss(&["*"]).code, 3);
}
