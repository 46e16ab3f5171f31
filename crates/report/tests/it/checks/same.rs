//! D: same for same.

use super::quiet::{CANDIDATE, quiet};
use super::{AS_IT_IS, Case, candidate, candidate_nodes, check, nodes, trials};
use dyno_facts::{CommitWait, Event, FaultFacts, ScriptFacts, ServerFacts, TargetFacts};
use dyno_report::Paper;
use dyno_store::RunData;

/// The targets of the run, to be changed.
fn facts(runs: &mut [RunData]) -> &mut [TargetFacts] {
    &mut runs[0].header.targets
}

/// A tenth of the statements write, and commits of the candidate wait for something else than two of three copies.
fn acknowledged(runs: &mut [RunData], other: &CommitWait) {
    let baseline = CommitWait::Copies("any 2 of 3".into());
    nodes(runs, |node| node.acknowledged_by = Some(baseline.clone()));
    candidate_nodes(runs, |node| node.acknowledged_by = Some(other.clone()));
    trials(runs, |trial| trial.statements.writes = trial.statements.reads / 10);
}

/// Changes what the server of a target said before each trial.
fn servers(runs: &mut [RunData], target: &str, change: impl Fn(&mut ServerFacts)) {
    let target_trials = runs[0].trials.iter_mut().filter(|trial| trial.summary.target == target);
    target_trials.flat_map(|trial| trial.before.values_mut()).for_each(change);
}

/// Sets it on the old and the new target.
fn setting(runs: &mut [RunData], name: &str, values: [&str; 2]) {
    for (target, value) in ["old", "new"].into_iter().zip(values) {
        servers(runs, target, |facts| {
            facts.settings.insert(name.to_owned(), value.to_owned());
        });
    }
}

/// The rows of each table of the candidate, and the bytes of its database, alongside 1,000 bytes of the baseline.
fn tables(runs: &mut [RunData], rows: u64, bytes: u64) {
    nodes(runs, |node| node.data_bytes = Some(1_000));
    candidate_nodes(runs, |node| {
        node.data_bytes = Some(bytes);
        node.table_rows.values_mut().for_each(|count| *count = rows);
    });
}

/// Rows of the candidate alongside such of 190 bytes.
fn row_bytes(runs: &mut [RunData], bytes: f64) {
    nodes(runs, |node| node.row_bytes = [("sbtest1".to_owned(), 190.0)].into());
    candidate_nodes(runs, |node| node.row_bytes = [("sbtest1".to_owned(), bytes)].into());
}

/// The loads of these targets have made an index of complete tables.
fn prepared(runs: &mut [RunData], targets: &[&str]) {
    let text = r#"{"key": "runner.data_prepared", "en": "made k_1 again",
        "args": {"loaded": {"key": "load.indexes_made", "en": "made k_1 again"}}}"#;
    runs[0].events.extend(targets.iter().map(|target| Event {
        prepared: Some(format!("e/{target}/prepare")),
        text: serde_json::from_str(text).expect("a message"),
        ..Event::default()
    }));
}

/// A candidate whose setting is another from this trial on.
fn setting_from(runs: &mut [RunData], from: u32) {
    for trial in &mut runs[0].trials {
        let value = if trial.summary.trial >= from { "1MB" } else { "4MB" };
        let is_candidate = trial.summary.target == CANDIDATE;
        for facts in trial.before.values_mut().filter(|_| is_candidate) {
            facts.settings.insert("work_mem".to_owned(), value.to_owned());
        }
    }
}

pub(super) const CASES: &[Case] = &[
    // The white paper's fourth rule: a quorum is compared with a semi-synchronous replica.
    Case {
        id: "durability",
        evidence: "targets old and new: old: any 2 of 3, new: async",
        fires: |runs| acknowledged(runs, &CommitWait::Local("async".into())),
        silent: |runs| acknowledged(runs, &CommitWait::Copies("1 semi-sync replica".into())),
    },
    // The first: the same node class.
    Case {
        id: "node-class",
        evidence: "vCPU: 16 (stated) against 8 (stated)",
        fires: |runs| {
            facts(runs)[0].vcpu = Some(16.0);
            facts(runs)[1].vcpu = Some(8.0);
        },
        silent: |runs| facts(runs).iter_mut().for_each(|facts| facts.vcpu = Some(8.0)),
    },
    // The second: the same major version.
    Case {
        id: "major-version",
        evidence: "MariaDB: 10.11 against 11.4",
        fires: |runs| facts(runs)[1].version = "11.4.2-MariaDB".to_owned(),
        silent: |runs| facts(runs)[1].version = "10.11.19-MariaDB".to_owned(),
    },
    // The third: no single statement.
    Case {
        id: "single-statement",
        evidence: "1.0 statements per transaction",
        fires: |runs| trials(runs, |trial| trial.qps = trial.tps),
        silent: |runs| trials(runs, |trial| trial.qps = 3.0 * trial.tps),
    },
    Case {
        id: "isolation",
        evidence: "isolation level: REPEATABLE-READ against READ-COMMITTED",
        fires: |runs| {
            candidate_nodes(runs, |node| node.isolation = Some("READ-COMMITTED".to_owned()));
        },
        silent: |runs| {
            candidate_nodes(runs, |node| node.isolation = Some("repeatable read".to_owned()));
        },
    },
    Case {
        id: "binary-log",
        evidence: "binary log: OFF against ON",
        fires: |runs| {
            setting(runs, "log_bin", ["OFF", "ON"]);
            trials(runs, |trial| trial.statements.writes = 1);
        },
        // It only reads.
        silent: |runs| setting(runs, "log_bin", ["OFF", "ON"]),
    },
    Case {
        id: "transport",
        evidence: "connection: tcp against unix socket",
        fires: |runs| candidate_nodes(runs, |node| node.transport = Some("unix socket".to_owned())),
        silent: |runs| candidate_nodes(runs, |node| node.transport = None),
    },
    Case {
        id: "round-trip",
        evidence: "180 µs against 240 µs",
        fires: |runs| candidate_nodes(runs, |node| node.round_trip_us = Some(240.0)),
        silent: |runs| candidate_nodes(runs, |node| node.round_trip_us = Some(225.0)),
    },
    Case {
        id: "schema",
        evidence: "index sbtest1.k_1: on k against missing",
        fires: |runs| {
            candidate_nodes(runs, |node| node.schema_checksum = Some("77".to_owned()));
            servers(runs, "old", |facts| {
                facts.schema.insert("index sbtest1.k_1".to_owned(), "on k".to_owned());
            });
        },
        silent: |runs| {
            // Another version may say the same in other words.
            candidate_nodes(runs, |node| node.schema_checksum = Some("77".to_owned()));
            facts(runs)[1].version = "11.4.2-MariaDB".to_owned();
        },
    },
    Case {
        id: "rows",
        evidence: "64 tables with 6,400,000 rows against 64 tables with 5,440,000 rows",
        fires: |runs| tables(runs, 85_000, 850),
        silent: |runs| tables(runs, 92_000, 850),
    },
    Case {
        id: "data-repaired",
        evidence: "target new: made k_1 again",
        fires: |runs| prepared(runs, &[CANDIDATE]),
        silent: |runs| prepared(runs, &["old", CANDIDATE]),
    },
    Case {
        id: "durability-changed",
        evidence: "fsync = off; fsync = on",
        fires: |runs| {
            nodes(runs, |node| {
                node.commit_settings = vec!["fsync = off".into(), "fsync = on".into()]
            });
            trials(runs, |trial| trial.statements.writes = 1);
        },
        // It only reads.
        silent: |runs| {
            nodes(runs, |node| {
                node.commit_settings = vec!["fsync = off".into(), "fsync = on".into()]
            });
        },
    },
    Case {
        id: "settings-reloaded",
        evidence: "pg_conf_load_time() has moved",
        fires: |runs| nodes(runs, |node| node.was_reloaded = true),
        silent: |runs| {
            nodes(runs, |node| node.was_reloaded = true);
            trials(runs, |trial| trial.fault = Some(FaultFacts::default()));
        },
    },
    Case {
        id: "no-statistics",
        evidence: "sbtest7",
        fires: |runs| {
            nodes(runs, |node| node.tables_without_statistics = vec!["sbtest7".to_owned()]);
        },
        silent: AS_IT_IS,
    },
    Case {
        id: "query-cache",
        evidence: "query cache on",
        fires: |runs| candidate_nodes(runs, |node| node.query_cache = Some(true)),
        silent: |runs| candidate_nodes(runs, |node| node.query_cache = None),
    },
    Case {
        id: "settings-differ",
        evidence: "jit is on against off",
        fires: |runs| setting(runs, "jit", ["on", "off"]),
        silent: |runs| setting(runs, "lc_time_names", ["en_US", "de_DE"]),
    },
    Case {
        id: "other-settings",
        evidence: "lc_time_names is en_US against de_DE",
        fires: |runs| setting(runs, "lc_time_names", ["en_US", "de_DE"]),
        silent: |runs| setting(runs, "report_host", ["a", "b"]),
    },
    Case {
        id: "generators-differ",
        evidence: "kernel version: Linux 6.1.0-18-amd64 x86_64 against Linux 6.12",
        fires: |runs| {
            runs.extend(quiet());
            runs[1].path = "dyno-runs/another".into();
            runs[1].header.environment.kernel = "Linux 6.12".to_owned();
        },
        silent: |runs| {
            runs.extend(quiet());
            runs[1].path = "dyno-runs/another".into();
        },
    },
    Case {
        id: "target-changed",
        evidence: "new by trial 8: work_mem was 4MB, is 1MB",
        fires: |runs| setting_from(runs, 8),
        // It was so from the beginning.
        silent: |runs| setting_from(runs, 1),
    },
    Case {
        id: "weak-durability",
        evidence: "target new: innodb_flush_log_at_trx_commit = 2",
        fires: |runs| setting(runs, "innodb_flush_log_at_trx_commit", ["1", "2"]),
        silent: |runs| candidate(runs, |trial| trial.in_flight += 0),
    },
    Case {
        id: "unsafe-tables",
        evidence: "target new: MEMORY (sbtest1)",
        fires: |runs| {
            engine(runs, "MEMORY");
            trials(runs, |trial| trial.statements.writes = 1);
        },
        // Nothing is written.
        silent: |runs| engine(runs, "MEMORY"),
    },
];

/// The candidate has a table of this engine.
fn engine(runs: &mut [RunData], engine: &str) {
    servers(runs, CANDIDATE, |facts| {
        facts.schema.insert("table sbtest1".to_owned(), format!("{engine}, Fixed"));
    });
}

#[test]
fn tables_that_a_crash_empties_stand_in_the_line_on_durability() {
    let mut runs = quiet();
    engine(&mut runs, "MEMORY");
    let markdown = Paper::new(&runs, &[]).markdown(dyno_report::Lang::En);
    assert!(markdown.contains("engine = MEMORY (sbtest1)"), "{markdown}");
    assert!(!Paper::new(&quiet(), &[]).markdown(dyno_report::Lang::En).contains("engine = "));
}

#[test]
fn what_takes_far_longer_than_a_round_trip_is_no_single_statement() {
    let counts = [1_000.0, 60_000.0].map(|p50_us| {
        let mut runs = quiet();
        trials(&mut runs, |trial| {
            trial.qps = trial.tps;
            trial.latency.p50_us = p50_us;
        });
        check(&Paper::new(&runs, &[]), "single-statement").lines.len()
    });
    assert_eq!(counts, [1, 0]);
}

#[test]
fn what_a_commit_promises_matters_only_where_something_is_written() {
    let mut runs = quiet();
    acknowledged(&mut runs, &CommitWait::Local("async".into()));
    trials(&mut runs, |trial| trial.statements.writes = 0);
    assert_eq!(count_durability_lines(&runs), 0);
    // Other clients write, or the server counts the rows of a load late.
    nodes(&mut runs, |node| node.rows_written = Some(1_000_000_000));
    assert_eq!(count_durability_lines(&runs), 0);
    // A function of a user's script answers with rows as a query does, and the server counts what it writes.
    runs[0].header.experiments[0].test = "pgbench script".to_owned();
    runs[0].header.experiments[0].scripts = vec![ScriptFacts::default()];
    assert_eq!(count_durability_lines(&runs), 1);
}

/// The number of lines that the check of durability has.
fn count_durability_lines(runs: &[RunData]) -> usize {
    check(&Paper::new(runs, &[]), "durability").lines.len()
}

#[test]
fn a_side_that_keeps_less_is_named_with_the_setting_that_says_so() {
    let mut runs = quiet();
    setting(&mut runs, "innodb_flush_log_at_trx_commit", ["0", "1"]);
    trials(&mut runs, |trial| trial.statements.writes = 1);
    let line = check(&Paper::new(&runs, &[]), "durability").lines[0].to_string();
    let sides = "old: not on disk at commit (innodb_flush_log_at_trx_commit = 0), new: on disk";
    assert!(line.ends_with(sides), "{line}");
}

#[test]
fn estimates_of_rows_accuse_no_one_whose_data_are_as_large() {
    let cases = [
        // PostgreSQL has counted a load twice.
        (200_000, 1_000),
        (200_000, 1_800),
        (50_000, 1_000),
        (50_000, 600),
        // No estimate errs so far.
        (300_000, 1_000),
    ];
    let counts = cases.map(|(rows, bytes)| {
        let mut runs = quiet();
        tables(&mut runs, rows, bytes);
        check(&Paper::new(&runs, &[]), "rows").lines.len()
    });
    assert_eq!(counts, [0, 1, 0, 1, 1]);
}

#[test]
fn checksums_of_pages_are_no_other_setting() {
    let mut runs = quiet();
    setting(&mut runs, "data_checksums", ["off", "on"]);
    let paper = Paper::new(&runs, &[]);
    let findings =
        ["settings-differ", "other-settings"].map(|id| !check(&paper, id).lines.is_empty());
    assert_eq!(findings, [true, false]);
}

#[test]
fn rows_are_compared_only_where_the_tables_of_a_workload_are_known() {
    let mut runs = quiet();
    candidate_nodes(&mut runs, |node| node.table_rows.values_mut().for_each(|rows| *rows = 5));
    let tests = ["pgbench tpcb-like", "pgbench statements", "lua script"];
    let findings = tests.map(|test| {
        runs[0].header.experiments[0].test = test.to_owned();
        !check(&Paper::new(&runs, &[]), "rows").lines.is_empty()
    });
    assert_eq!(findings, [true, false, false]);
}

/// An equal number of rows, with one byte instead of a text.
#[test]
fn rows_of_another_length_are_other_data() {
    let [different, similar] = [71.0, 160.0].map(|bytes| {
        let mut runs = quiet();
        row_bytes(&mut runs, bytes);
        check(&Paper::new(&runs, &[]), "rows").lines.first().map(ToString::to_string)
    });
    assert!(different.is_some_and(|line| line.contains("sbtest1: 190 bytes a row against 71")));
    assert_eq!(similar, None);
}
