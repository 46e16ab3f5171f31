//! Gates of made-up runs.

use crate::support::elements;
use crate::synthetic::pairs::{paired, paired_at};
use crate::verdict::{around, call, paper};
use dyno_facts::TrialStatus;
use dyno_report::{Call, GateResult, Lang, Naming, Paper};

#[test]
fn gates_pass_break_or_stay_open() {
    let gate = "tps.ratio.low > 0.97";
    let (result, passed) = judge_gate(&around(1.0, 8), gate);
    assert_eq!((result, result.exit_code()), (GateResult::Pass, 0));
    assert_eq!(passed.verdicts.gates.len(), 1, "one comparison: {:?}", passed.verdicts.gates);
    let (result, broken) = judge_gate(&around(0.9, 8), gate);
    assert_eq!((result, result.exit_code()), (GateResult::Broken, 5));
    let line = broken.verdicts.gates_text(Lang::En);
    assert!(
        line.starts_with(
            "gate `tps.ratio.low > 0.97` BROKEN: Read only, 8 workers, postgres / maria: 0.898, "
        ),
        "{line}"
    );
    assert!(broken.verdicts.gates_text(Lang::Zh).contains("未达标"));
    let (result, open) = judge_gate(&around(0.975, 6), gate);
    assert_eq!((result, result.exit_code()), (GateResult::Inconclusive, 3));
    assert!(open.verdicts.gates_text(Lang::En).contains("The bound lies inside the interval"));
    // A gate about trials is judged for each target.
    let (result, values) = judge_gate(&around(1.0, 4), "p99_ms < 1000");
    assert_eq!((result, values.verdicts.gates.len()), (GateResult::Pass, 2));
    assert_eq!(judge_gate(&around(1.0, 4), "errors < 0.1%").0, GateResult::Pass);
    assert_eq!(judge_gate(&around(1.0, 1), "tps > 1").0, GateResult::Inconclusive);
    // One that can't be read proves nothing.
    let (result, unread) = judge_gate(&around(1.0, 8), "speed > 3");
    assert_eq!(result, GateResult::Inconclusive);
    assert!(unread.verdicts.gates[0].why.to_string().contains("can't be read"));
    elements(&unread.html(Lang::Zh));
}

/// The result of a gate on these pairs, and their paper.
fn judge_gate(pairs: &[(f64, f64)], gate: &str) -> (GateResult, Paper) {
    let mut run = paired(pairs);
    run.header.experiments[0].gates = vec![gate.to_owned()];
    let paper = paper(run);
    assert!(!paper.verdicts.gates.is_empty(), "{gate}");
    (paper.verdicts.gate_result().expect("gates"), paper)
}

/// One comparison of six pairs proves a difference, one of two doesn't: no gate rests on it then, and only those gates
/// that a ratio of 1 keeps too are kept.
#[test]
fn gates_agree_with_verdicts_that_are_corrected_for_several_comparisons() {
    let strict = "tps.ratio.high > 0.99";
    let one_level = judge_levels(&[8], strict);
    assert_eq!(call(&one_level), Call::Slower);
    assert_eq!(one_level.verdicts.gate_result(), Some(GateResult::Broken));
    let two_levels = judge_levels(&[8, 16], strict);
    assert_eq!(two_levels.verdicts.comparisons.len(), 2);
    assert_eq!(
        call(&two_levels),
        Call::Unproven,
        "{:?}",
        two_levels.verdicts.comparisons[0].rows[0]
    );
    for gate in &two_levels.verdicts.gates {
        assert_eq!(gate.result, GateResult::Inconclusive, "{gate:?}");
        assert_eq!(gate.needed, Some(7), "p of seven pairs is small enough for two: {gate:?}");
    }
    let lax = judge_levels(&[8, 16], "tps.ratio.low > 0.9");
    assert_eq!(lax.verdicts.gate_result(), Some(GateResult::Pass));
}

/// The paper of a gate on six pairs at each of these load levels.
fn judge_levels(levels: &[u32], gate: &str) -> Paper {
    let mut run = paired(&[]);
    for workers in levels {
        let level = paired_at(*workers, 40, &around(0.96, 6)).trials;
        let first = run.trials.len() as u32;
        run.trials.extend(level.into_iter().map(|mut trial| {
            trial.summary.trial += first;
            trial
        }));
    }
    run.header.experiments[0].workers = levels.to_vec();
    run.header.experiments[0].gates = vec![gate.to_owned()];
    paper(run)
}

#[test]
fn gates_beside_those_of_the_suite_are_judged_everywhere() {
    let runs = [paired(&around(1.0, 8))];
    let paper = Paper::named(&runs, &[], &["tps > 1".to_owned()], &Naming::default());
    let with_trials: Vec<_> = paper.verdicts.gates.iter().filter(|gate| gate.count > 0).collect();
    assert_eq!(with_trials.len(), 2, "both targets");
    assert!(with_trials.iter().all(|gate| gate.result == GateResult::Pass));
    assert_eq!(Paper::new(&runs, &[]).verdicts.gate_result(), None);
}

#[test]
fn a_gate_does_not_pass_by_leaving_out_what_failed() {
    let [open, passed] = [false, true].map(|is_repeated| {
        let mut run = paired(&around(1.0, 6));
        run.header.experiments[0].gates = vec!["p99_ms < 1000".to_owned()];
        let mut again = run.trials[0].clone();
        run.trials[0].summary.status = TrialStatus::Failed("The rate was missed.".into());
        if is_repeated {
            again.summary.trial = 13;
            run.trials.push(again);
        }
        paper(run)
    });
    assert_eq!(open.verdicts.gate_result(), Some(GateResult::Inconclusive));
    assert!(open.verdicts.gates_text(Lang::En).contains("A trial failed here"));
    assert_eq!(passed.verdicts.gate_result(), Some(GateResult::Pass));
}

#[test]
fn targets_that_the_header_does_not_know_are_those_of_the_trials() {
    let mut run = paired(&around(1.1, 8));
    run.header.targets.clear();
    let paper = paper(run);
    let mut labels: Vec<&str> = paper.targets.iter().map(|target| target.label.as_str()).collect();
    labels.sort_unstable();
    assert_eq!(labels, ["maria", "postgres"]);
    let mut names: Vec<&str> =
        paper.targets.iter().map(|target| target.facts.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, labels);
}
