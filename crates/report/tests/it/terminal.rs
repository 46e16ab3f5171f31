//! What a terminal shows of a run: the tables of the paper as plain text.

use crate::support::golden;
use crate::synthetic::{cluster::cluster, run, tpcc::tpcc, tpch::tpch};
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
