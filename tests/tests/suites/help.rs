//! `dyno help` and `dyno completion`.

use dyno_testkit::{Scratch, dyno};

#[test]
fn help_knows_verbs_and_the_options_of_workloads() {
    let scratch = Scratch::new();
    let run_help = |topic: &[&str]| dyno(scratch.path(), &[&["help"], topic].concat());
    for (workload, option) in [
        ("sysbench", "table_size: a whole number from 0 to 2147483647, 10000 (sysbench 1.0)"),
        ("pgbench", "mode: simple, extended or prepared, simple"),
        ("tpcc", "keying_multiplier: a number from 0 to 1000, 1 (in spec)"),
        ("tpch", "streams: a whole number from 1 to 1000 (in throughput, performance)"),
    ] {
        let output = run_help(&[workload]);
        assert_eq!((output.code, output.stderr.as_str()), (0, ""));
        assert!(output.stdout.contains(option), "no `{option}`:\n{}", output.stdout);
        assert!(output.stdout.lines().all(|line| line.chars().count() <= 100), "{}", output.stdout);
    }
    assert!(run_help(&["cluster", "up"]).stdout.contains("Usage: dyno cluster up"));
    assert!(run_help(&[]).stdout.contains("quickstart"));
    for topic in ["suite", "suites"] {
        let output = run_help(&[topic]);
        assert_eq!((output.code, output.stderr.as_str()), (0, ""));
        for part in ["`[target.NAME]`", "| `statements` |", "compare = { baseline"] {
            assert!(output.stdout.contains(part), "no `{part}`:\n{}", output.stdout);
        }
    }
    assert!(run_help(&["suites"]).stdout.contains("Usage: dyno suites"));
    let output = run_help(&["tpccc"]);
    assert_eq!((output.code, output.stdout.as_str()), (2, ""));
    assert!(output.stderr.contains("hint: did you mean `dyno help tpcc`?"), "{}", output.stderr);
}

#[test]
fn shells_complete_verbs_workloads_and_options() {
    let scratch = Scratch::new();
    for shell in ["bash", "zsh", "fish"] {
        let output = dyno(scratch.path(), &["completion", shell]);
        assert_eq!(output.code, 0);
        let stdout = output.stdout;
        assert!(stdout.contains("quickstart"), "{shell} does not complete verbs");
        if shell == "fish" {
            // What is generated for fish completes verbs and flags only.
            continue;
        }
        for word in ["tpcc", "rds-mysql-5.6", "oltp_read_write", "--table-size="] {
            assert!(stdout.contains(word), "{shell} does not complete {word}");
        }
    }
}
