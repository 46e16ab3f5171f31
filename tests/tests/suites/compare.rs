//! `dyno compare` on run folders that were written by hand: what it says, and its exit codes.

use dyno_facts::{
    ExperimentFacts, RunHeader, RunStatus, TargetFacts, TrialIdentity, TrialStatus, TrialSummary,
};
use dyno_testkit::{Ran, Scratch, dyno_command};
use std::path::Path;

/// A run of one target: a trial for each throughput.
fn run(dir: &Path, name: &str, gates: &[&str], throughputs: &[f64]) {
    let folder = dir.join(name);
    std::fs::create_dir_all(folder.join("trials")).expect("made");
    let mut header = RunHeader::new("suite", Vec::new(), 1);
    header.status = RunStatus::Complete;
    header.targets = vec![TargetFacts { name: "main".to_owned(), ..TargetFacts::default() }];
    header.experiments = vec![ExperimentFacts {
        name: "read".to_owned(),
        title: "Read".to_owned(),
        gates: gates.iter().map(|gate| (*gate).to_owned()).collect(),
        ..ExperimentFacts::default()
    }];
    let write = |file: &Path, text: String| std::fs::write(file, text).expect("written");
    write(&folder.join("run.json"), serde_json::to_string(&header).expect("JSON"));
    write(&folder.join("events.jsonl"), String::new());
    for (number, tps) in (1..).zip(throughputs) {
        let identity = TrialIdentity {
            experiment: "read".to_owned(),
            target: "main".to_owned(),
            workers: 8,
            repeat: number,
            ..TrialIdentity::default()
        };
        let summary = TrialSummary {
            trial: number,
            window_s: 60.0,
            tps: *tps,
            ..identity.summary(TrialStatus::Complete)
        };
        let text = serde_json::to_string(&summary).expect("JSON");
        write(&folder.join(format!("trials/{number}.json")), text);
    }
}

/// Runs A, which does about 1,000 per second, and B, which does about so many.
fn compare(b: f64, pairs: usize, gates: &[&str], arguments: &[&str]) -> Ran {
    let dir = Scratch::new();
    let noise = [1.002, 0.995, 1.004, 0.998, 1.001, 0.997];
    let around = |level: f64, shift: usize| -> Vec<f64> {
        (0..pairs).map(|k| level * noise[(k + shift) % noise.len()]).collect()
    };
    run(dir.path(), "a", &[], &around(1000.0, 0));
    run(dir.path(), "b", gates, &around(b, 2));
    let mut command = dyno_command(dir.path());
    Ran::of(command.args(["compare", "a", "b", "--dir"]).arg(dir.path()).args(arguments))
}

#[test]
fn a_regression_is_proven_a_gain_passes_and_few_pairs_are_inconclusive() {
    let slower = compare(900.0, 6, &[], &[]);
    assert_eq!(slower.code, 5, "{slower:?}");
    let out = slower.stdout;
    assert!(
        out.contains("main, run 2 is slower than main, run 1 (certain), by ")
            && out.contains("ratio of transactions per second 0."),
        "{out}"
    );
    let talk = slower.stderr;
    assert!(talk.contains("not interleaved") && talk.contains("hint: "), "{talk}");
    assert_eq!(compare(1100.0, 6, &[], &[]).code, 0);
    assert_eq!(compare(1000.0, 6, &[], &[]).code, 0, "no difference is no regression");
    let few = compare(900.0, 3, &[], &[]);
    assert_eq!(few.code, 3);
    assert!(few.stdout.contains("too few pairs: 6 are the least that can decide"), "{few:?}");
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
        out.contains(
            "gate `tps.ratio.low > 0.97` passed: Read, 8 workers, main, run 2 / main, run 1"
        ),
        "{out}"
    );
    let (code, _, talk) = gate(900.0, "tps.ratio.low > 0.97");
    assert_eq!((code, talk.contains("1 of 1 gates are proven broken.")), (5, true), "{talk}");
    assert_eq!(gate(970.0, "tps.ratio.low > 0.97").0, 3);
    let (code, _, talk) = gate(970.0, "tps.ration > 1");
    assert_eq!(code, 2);
    assert!(talk.contains("character 5") && talk.contains("hint: A gate is about"), "{talk}");
    // Those of the suite count as well.
    assert_eq!(compare(900.0, 6, &["tps.ratio.low > 0.97"], &[]).code, 5);
}

#[test]
fn it_speaks_chinese_and_says_when_there_is_nothing_to_compare() {
    let chinese = compare(900.0, 6, &[], &["--lang", "zh"]);
    assert!(chinese.stdout.contains("更慢（确定）"), "{chinese:?}");
    assert_eq!(compare(900.0, 6, &[], &["--lang", "fr"]).code, 2);
    let nothing = compare(900.0, 0, &[], &[]);
    assert_eq!(nothing.code, 2);
    assert!(nothing.stderr.contains("Nothing can be compared"), "{nothing:?}");
}
