//! The output of a run on a terminal: the tables of the paper as plain text.

use crate::support::golden;
use crate::synthetic::pairs::{judged, paired};
use crate::synthetic::{cluster::cluster, run, tpcc::tpcc, tpch::tpch, two_targets};
use dyno_facts::TrialIdentity;
use dyno_report::{Lang, Paper};

#[test]
fn tables_of_each_family_are_as_recorded() {
    for (name, run) in [("tpcc", tpcc()), ("tpch", tpch()), ("cluster", cluster())] {
        let paper = Paper::new(&[run], &[]);
        golden(&format!("{name}.txt"), &paper.terminal(Lang::En));
        assert!(!paper.terminal(Lang::Zh).contains("<"), "no markup");
    }
}

#[test]
fn a_run_without_trials_says_so() {
    let text = Paper::new(&[run(&["maria"], Vec::new())], &[]).terminal(Lang::En);
    assert!(text.contains("No trial has been executed yet."), "{text}");
}

#[test]
fn the_short_table_says_of_how_many_levels_a_row_is_the_best() {
    let brief = |workers: &[u32]| {
        let paper = Paper::new(&[two_targets(workers, 2, 30)], &[]);
        (paper.brief(Lang::En), paper)
    };
    let (text, paper) = brief(&[1, 8, 64]);
    assert!(text.contains("best of 3 levels") && text.contains("Errors at this level"), "{text}");
    let has_errors = paper.experiments.iter().map(|own| own.points.iter().any(|it| it.errors > 0));
    let with_errors = has_errors.filter(|has| *has).count();
    let said = text.matches("all targets and load levels counted.").count();
    assert_eq!((said, said > 0), (with_errors, true), "{text}");
    let (text, _) = brief(&[8]);
    assert!(!text.contains("best of") && !text.contains("at this level"), "{text}");
}

#[test]
fn the_short_tables_of_a_sweep_show_each_level() {
    let sweep = |workers: &[u32]| {
        let mut run = two_targets(workers, 1, 30);
        run.header.experiments.truncate(1);
        let is_own = |of: &TrialIdentity| of.target == "maria" && of.experiment == "read_only";
        run.trials.retain(|trial| is_own(&trial.summary.identity));
        Paper::new(&[run], &[]).brief(Lang::En)
    };
    let text = sweep(&[1, 8, 64]);
    let (_, levels) = text.split_once("Read only: load levels\n").expect(&text);
    for load in ["1 worker ", "8 workers ", "64 workers "] {
        assert_eq!(levels.lines().filter(|line| line.starts_with(load)).count(), 1, "{text}");
    }
    assert!(!sweep(&[8]).contains("load levels\n"), "one level is in the table above");
}

#[test]
fn a_comparison_fits_into_a_mail() {
    let paper = Paper::new(&[judged()], &[]);
    let papers = ["dyno-runs/x/paper.html".to_owned()];
    golden("compare.txt", &paper.digest(Lang::En, 5, &papers));
    golden("compare.zh.txt", &paper.digest(Lang::Zh, 5, &papers));
    golden("compare-long.txt", &paper.verdict_tables(Lang::En));
    for (code, words) in [(0, "no regression"), (3, "undecided"), (4, "acknowledged")] {
        let text = Paper::new(&[paired(&[(1.0, 2.0)])], &[]).digest(Lang::En, code, &[]);
        assert!(text.contains(&format!("Exit code {code}: ")) && text.contains(words), "{text}");
        assert!(text.lines().count() <= 17, "{text}");
    }
}
