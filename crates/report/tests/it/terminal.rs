//! The output of a run on a terminal: the tables of the paper as plain text.

use crate::support::golden;
use crate::synthetic::pairs::{gated_run, paired};
use crate::synthetic::{cluster::cluster, run, tpcc::tpcc, tpch::tpch, two_targets};
use dyno_report::{Lang, Paper};
use unicode_width::UnicodeWidthStr;

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
fn a_run_ends_with_its_answer_on_a_screen() {
    let runs = [
        ("comparison", gated_run()),
        ("two-targets", two_targets(&[1, 8, 64], 2, 30)),
        ("tpcc", tpcc()),
        ("tpch", tpch()),
        ("cluster", cluster()),
    ];
    for (name, run) in runs {
        let paper = Paper::new(&[run], &[]);
        for lang in Lang::ALL {
            let text = paper.ending(lang, 25);
            assert!(text.lines().count() <= 25, "{name}: {text}");
            assert!(text.lines().all(|line| line.width() <= 80), "{name}: {text}");
        }
        golden(&format!("ending-{name}.txt"), &paper.ending(Lang::En, 25));
    }
}

#[test]
fn the_end_of_a_sweep_shows_each_level() {
    let text = sweep_ending(&[1, 8, 64]);
    for load in ["1", "8", "64"] {
        let levels = text.lines().filter(|line| {
            let figures = line.strip_prefix("Read only").unwrap_or_default();
            figures.split_whitespace().next() == Some(load)
        });
        assert_eq!(levels.count(), 1, "{text}");
    }
    assert!(!sweep_ending(&[8]).contains("Workers"), "a single result is a sentence");
}

/// The end of a run with these load levels.
fn sweep_ending(workers: &[u32]) -> String {
    let mut run = two_targets(workers, 1, 30);
    run.header.experiments.truncate(1);
    run.trials
        .retain(|trial| trial.summary.target == "maria" && trial.summary.experiment == "read_only");
    Paper::new(&[run], &[]).ending(Lang::En, 25)
}

#[test]
fn a_comparison_fits_into_a_mail() {
    let paper = Paper::new(&[gated_run()], &[]);
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
