//! Experiments that a fleet of load generators may share.

use dyno::families::FAMILIES;
use dyno_runner::family::{experiment, offers};
use dyno_suite::{Overrides, Plan, Suite};
use std::fs;

#[test]
fn experiments_that_execute_commands_are_not_shared() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("a.sql"), "SELECT 1;\n  \\setshell n echo 1\n").expect("written");
    let reads = "workload = 'sysbench'\ntest = 'oltp_read_only'\nworkers = 1\nduration_s = 5";
    let scripts = "workload = 'pgbench'\ntest = 'script'\noptions = { scripts = 'a.sql' }\n\
                   workers = 1\nduration_s = 5";
    let queries = "workload = 'tpch'\ntest = 'queries'\n\
                   options = { cache = 'cold', cold_command = 'touch x' }";
    let set = "\\setshell n echo 1";
    let cases = [
        (scripts, None, &[set][..]),
        (queries, Some(false), &["touch x"]),
        (reads, Some(true), &[]),
    ];
    for (text, shared, commands) in cases {
        let suite = format!(
            "[suite]\nname = 's'\n[target.t]\nurl = 'mysql://u@h/d'\n[[experiment]]\nname = 'e'\n{text}\n"
        );
        let file = folder.path().join("s.toml").display().to_string();
        let suite = Suite::parse(&file, &suite, &offers(FAMILIES)).expect("a suite");
        let plan = Plan::build(&suite, &Overrides::default()).expect("a plan");
        let family = experiment(FAMILIES, &plan, &plan.experiments[0]).expect("options");
        assert_eq!(family.takes_fleet().ok(), shared, "{text}");
        assert_eq!(family.commands(), commands, "{text}");
        assert!(!family.writes(), "{text}");
    }
}
