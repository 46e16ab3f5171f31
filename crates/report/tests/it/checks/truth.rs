//! F: the truth of the workload.

use super::{AS_IT_IS, Case, candidate, trials};
use dyno_facts::{
    CheckVerdict, Counts, CrossShardLosses, DataCheck, ErrorSummary, FamilyFacts, FaultFacts,
    FaultPlan, FaultStep, KindSummary, ScriptFacts, TableScans, TrialStatus, TrialSummary,
};
use dyno_store::RunData;
use dyno_tpcc::facts::TpccFacts;

fn data_check(runs: &mut [RunData], verdict: CheckVerdict) {
    runs[0].trials[1].summary.checks = vec![DataCheck {
        name: "rows".to_owned(),
        verdict,
        evidence: "One row is missing.".into(),
    }];
}

/// The second trial has a fault.
fn fault(runs: &mut [RunData], lost: Option<u64>, recovered_after_s: Option<f64>) {
    runs[0].trials[1].summary.fault = Some(FaultFacts {
        action: "kill".to_owned(),
        node: "n1".to_owned(),
        at_s: 20.0,
        first_success_after_s: Some(1.5),
        recovered_after_s,
        acknowledged: lost.map(|_| 5_000),
        lost,
        steps: vec![FaultStep { at_s: 20.0, what: "n1 was killed.".into() }],
        ..FaultFacts::default()
    });
}

/// The second trial has a fault that tore transactions on several shards: half done, of these not acknowledged, in
/// doubt; and branches that are left.
fn torn(runs: &mut [RunData], [half_done, unknown, in_doubt, left]: [u64; 4]) {
    fault(runs, Some(0), Some(3.0));
    let losses = CrossShardLosses {
        half_done: half_done - unknown,
        unknown_half_done: unknown,
        in_doubt,
        branches_left: Some(left),
        ..CrossShardLosses::default()
    };
    trials(runs, |trial| {
        if let Some(fault) = &mut trial.fault {
            fault.across_shards = Some(losses.clone());
        }
    });
}

/// The experiments have one in each trial.
fn planned_fault(runs: &mut [RunData]) {
    for experiment in &mut runs[0].header.experiments {
        let node = "primary".to_owned();
        experiment.fault = Some(FaultPlan { node, at_s: 20.0, ..FaultPlan::default() });
    }
}

/// Transactions that were given up, and attempts that were tried again, in a hundred thousand.
fn failures(runs: &mut [RunData], given_up: u64, retried: u64) {
    trials(runs, |trial| {
        [trial.counts.failed, trial.counts.retries] =
            [given_up, retried].map(|count| trial.counts.started * count / 100_000);
        trial.errors = vec![ErrorSummary {
            class: "deadlock".to_owned(),
            errno: 1213,
            sqlstate: "40001".to_owned(),
            message: "Deadlock found".into(),
            count: trial.counts.failed + trial.counts.retries,
        }];
    });
}

/// pgbench's own script on tables of this scale, by 16 workers.
fn branches(runs: &mut [RunData], scale: u64) {
    runs[0].header.experiments[0].test = "pgbench tpcb-like".to_owned();
    trials(runs, |trial| {
        trial.kinds[0].name = "tpcb-like".to_owned();
        trial.data.as_mut().expect("data").rows = scale * 100_000;
    });
}

/// Sets an option of the first experiment.
fn option(runs: &mut [RunData], name: &str, value: &str) {
    runs[0].header.experiments[0].options.insert(name.to_owned(), value.to_owned());
}

/// Two scripts of three to one, of which the first has this share.
fn scripts(runs: &mut [RunData], share: f64) {
    let experiment = &mut runs[0].header.experiments[0];
    experiment.test = "pgbench script".to_owned();
    let scripts = [("reads", 3), ("pays", 1)].map(|(name, weight)| ScriptFacts {
        name: name.to_owned(),
        weight,
        text: "SELECT 1;\n".repeat(16),
        ..ScriptFacts::default()
    });
    experiment.scripts = scripts.into();
    trials(runs, |trial| {
        let committed = trial.counts.committed;
        let first = (committed as f64 * share) as u64;
        let kinds = [("reads", first), ("pays", committed - first)];
        let kinds = kinds.map(|(name, committed)| KindSummary {
            name: name.to_owned(),
            counts: Counts { started: committed, committed, ..Counts::default() },
            ..trial.kinds[0].clone()
        });
        trial.kinds = kinds.into();
    });
}

/// Trials of TPC-C on ten warehouses, with this many terminals.
fn terminals(runs: &mut [RunData], terminals: u32) {
    trials(runs, |trial| {
        let facts = TpccFacts { warehouses: 10, terminals, ..TpccFacts::default() };
        trial.own = Some(FamilyFacts::new(&facts));
    });
}

fn hot_rows(runs: &mut [RunData], hot_rows: u64) {
    trials(runs, |trial| trial.data.as_mut().expect("data").hot_rows = Some(hot_rows));
}

const SCANS: TableScans = TableScans { rows: 5_000_000, statements: 50 };

/// The first target scans tables, the other one does not.
fn scans_of_one_side(runs: &mut [RunData]) {
    let first = runs[0].trials[0].summary.identity.target.clone();
    trials(runs, |trial| trial.scans = (trial.identity.target == first).then_some(SCANS));
}

fn rows_of_candidate(runs: &mut [RunData], change: fn(u64) -> u64) {
    candidate(runs, |trial| {
        let rows = &mut trial.kinds[0].statements.rows_read;
        *rows = change(*rows);
    });
}

/// One in `divisor` queries returns no row.
fn empty_reads(trial: &mut TrialSummary, divisor: u64) {
    let statements = &mut trial.kinds[0].statements;
    statements.empty_reads = statements.reads / divisor;
}

pub(super) const CASES: &[Case] = &[
    Case {
        id: "trial-failed",
        evidence: "trial 2: the server went away",
        fires: |runs| {
            let reason = "the server went away".to_owned();
            runs[0].trials[1].summary.status = TrialStatus::Failed(reason.into());
        },
        silent: |runs| runs[0].trials[1].summary.status = TrialStatus::Interrupted,
    },
    Case {
        id: "data",
        evidence: "trial 2: rows: One row is missing.",
        fires: |runs| data_check(runs, CheckVerdict::Failed),
        silent: |runs| data_check(runs, CheckVerdict::Passed),
    },
    Case {
        id: "data-not-checked",
        evidence: "trial 2: rows: One row is missing.",
        fires: |runs| data_check(runs, CheckVerdict::NotMade),
        silent: |runs| data_check(runs, CheckVerdict::Failed),
    },
    Case {
        id: "few-branches",
        evidence: "trials 1–12: 16 workers on 15 branches",
        fires: |runs| branches(runs, 15),
        silent: |runs| branches(runs, 16),
    },
    Case {
        id: "table-scans",
        evidence: "trials 1–12: 100,000 rows per statement",
        fires: |runs| {
            trials(runs, |trial| trial.scans = Some(SCANS));
        },
        silent: |runs| scans_of_one_side(runs),
    },
    Case {
        id: "one-sided-scans",
        evidence: "100,000 rows per statement",
        fires: |runs| scans_of_one_side(runs),
        silent: |runs| trials(runs, |trial| trial.scans = Some(SCANS)),
    },
    Case {
        id: "unlike-rows",
        evidence: "oltp_read_only: old returned 414.00 rows per transaction, new 207.00",
        fires: |runs| rows_of_candidate(runs, |all| all / 2),
        silent: |runs| rows_of_candidate(runs, |all| all * 5 / 6),
    },
    Case {
        id: "no-rows",
        evidence: "trials 1–12: oltp_read_only: 50% of the queries returned no row",
        fires: |runs| trials(runs, |trial| empty_reads(trial, 2)),
        silent: |runs| trials(runs, |trial| empty_reads(trial, 3)),
    },
    Case {
        id: "errors-1",
        evidence: "1.2%; deadlock 1213/40001 × ",
        fires: |runs| failures(runs, 1_200, 0),
        // Deadlocks that were tried again are in no figure.
        silent: |runs| failures(runs, 1_000, 9_000),
    },
    Case {
        id: "errors",
        evidence: "0.2%; deadlock 1213/40001 × ",
        fires: |runs| failures(runs, 50, 150),
        silent: |runs| failures(runs, 40, 50),
    },
    Case {
        id: "reconnects",
        evidence: "trial 2: 3 reconnects",
        fires: |runs| runs[0].trials[1].summary.counts.reconnects = 3,
        silent: AS_IT_IS,
    },
    Case {
        id: "lost-acknowledged",
        evidence: "trial 2: 7 of 5,000 acknowledged transactions lost",
        fires: |runs| fault(runs, Some(7), Some(3.0)),
        silent: |runs| fault(runs, Some(0), Some(3.0)),
    },
    Case {
        id: "half-done",
        evidence: "trial 2: 3 transactions half done, 1 of them not acknowledged; 2 in doubt; 4 prepared branches left",
        fires: |runs| torn(runs, [3, 1, 2, 4]),
        silent: |runs| torn(runs, [0, 0, 0, 4]),
    },
    Case {
        id: "not-recovered",
        evidence: "trial 2: not back at 90% of the throughput",
        fires: |runs| fault(runs, None, None),
        silent: |runs| fault(runs, None, Some(0.0)),
    },
    Case {
        id: "no-fault",
        evidence: "no fault happened to primary",
        fires: |runs| planned_fault(runs),
        silent: |runs| {
            planned_fault(runs);
            fault(runs, Some(0), Some(3.0));
            let facts = runs[0].trials[1].summary.fault.clone();
            trials(runs, |trial| trial.fault.clone_from(&facts));
        },
    },
    Case {
        id: "statements-per-transaction",
        evidence: "oltp_read_only: 16.00 instead of 17",
        fires: |runs| option(runs, "point_selects", "11"),
        silent: |runs| {
            option(runs, "point_selects", "11");
            option(runs, "sum-ranges", "0");
        },
    },
    Case {
        id: "mix",
        evidence: "reads: 70.00% instead of 75.00%; pays: 30.00% instead of 25.00%",
        fires: |runs| scripts(runs, 0.7),
        silent: |runs| scripts(runs, 0.75),
    },
    Case {
        id: "tpcc-terminals",
        evidence: "101 terminals on 10 warehouses",
        fires: |runs| terminals(runs, 101),
        silent: |runs| terminals(runs, 100),
    },
    Case {
        id: "lighter-workload",
        evidence: "skip_trx=on",
        fires: |runs| option(runs, "skip_trx", "on"),
        silent: |runs| option(runs, "skip_trx", "off"),
    },
    Case {
        id: "hot-range",
        evidence: "50% of the rows",
        fires: |runs| hot_rows(runs, 3_200_000),
        silent: |runs| hot_rows(runs, 6_400_000),
    },
    Case {
        id: "not-a-tpc-result",
        evidence: "experiment read_only: derived from TPC-B",
        fires: |runs| runs[0].header.experiments[0].test = "pgbench tpcb-like".to_owned(),
        silent: |runs| scripts(runs, 0.75),
    },
];

#[test]
fn a_conflict_that_the_workload_finds_itself_is_no_error_of_the_server() {
    let mut runs = super::quiet();
    failures(&mut runs, 1_200, 0);
    trials(&mut runs, |trial| {
        for error in &mut trial.errors {
            (error.class, error.errno) = ("serialization".to_owned(), 0);
            error.sqlstate = "00000".to_owned();
        }
    });
    let paper = dyno_report::Paper::new(&runs, &[]);
    let value = super::check(&paper, "errors-1").findings[0].value.to_string();
    assert!(value.contains(" conflicts that dyno found itself, not the server"), "{value}");
    let markdown = paper.markdown(dyno_report::Lang::En);
    assert!(markdown.contains("conflict found by dyno itself"), "{markdown}");
    assert!(!value.contains("serialization") && !markdown.contains("`00000`"), "{markdown}");
}

#[test]
fn no_share_is_reported_if_nothing_succeeded() {
    let mut runs = super::quiet();
    failures(&mut runs, 100_000, 0);
    let trial = &mut runs[0].trials[0].summary;
    trial.counts = Counts { started: 2, failed: 1, ..Counts::default() };
    (trial.in_flight, trial.errors[0].count) = (1, 1);
    let paper = dyno_report::Paper::new(&runs, &[]);
    let value = super::check(&paper, "errors-1").findings[0].value.to_string();
    assert!(value.starts_with("no transaction succeeded, 1 attempt failed; deadlock"), "{value}");
}

#[test]
fn a_share_has_the_digits_that_show_that_it_is_above_its_bound() {
    let mut runs = super::quiet();
    trials(&mut runs, |trial| {
        trial.counts = Counts { failed: 1_004, ..trial.counts };
        trial.counts.started = 1_000_000;
    });
    let paper = dyno_report::Paper::new(&runs, &[]);
    let value = super::check(&paper, "errors").findings[0].value.to_string();
    assert_eq!(value, "0.1004%");
}

#[test]
fn only_what_must_be_alike_is_compared_by_rows() {
    fn changes_on_one_side(runs: &mut [RunData]) {
        trials(runs, |trial| trial.kinds[0].statements.rows_written = trial.counts.committed);
        candidate(runs, |trial| trial.kinds[0].statements.rows_written = 0);
    }
    fn other_product(runs: &mut [RunData]) {
        let target = &mut runs[0].header.targets[1];
        (target.product, target.version) = ("PostgreSQL".to_owned(), "15.4".to_owned());
    }
    fn own_statements(runs: &mut [RunData]) {
        runs[0].header.experiments[0].test = "pgbench script".to_owned();
        runs[0].header.experiments[0].scripts = vec![ScriptFacts::default()];
    }
    fn more_statements(runs: &mut [RunData]) {
        candidate(runs, |trial| trial.kinds[0].statements.others *= 3);
    }
    assert!(is_void_by_rows(|runs| changes_on_one_side(runs)));
    // One trial that is alike proves that chance may be behind it.
    assert!(!is_void_by_rows(|runs| {
        changes_on_one_side(runs);
        let trial = &mut runs[0].trials[1].summary;
        trial.kinds[0].statements.rows_written = trial.counts.committed;
    }));
    // A family has other statements for other products; of the same ones the rows are the same.
    assert!(is_void_by_rows(|runs| {
        changes_on_one_side(runs);
        other_product(runs);
    }));
    assert!(!is_void_by_rows(|runs| {
        changes_on_one_side(runs);
        other_product(runs);
        more_statements(runs);
    }));
    // Statements of the user's depend on what was read; products count their changes unlike.
    assert!(is_void_by_rows(|runs| {
        changes_on_one_side(runs);
        own_statements(runs);
        more_statements(runs);
    }));
    assert!(!is_void_by_rows(|runs| {
        changes_on_one_side(runs);
        own_statements(runs);
        other_product(runs);
    }));
}

/// Returns true if rows that differ take the verdict away, after a change.
fn is_void_by_rows(change: fn(&mut Vec<RunData>)) -> bool {
    let mut runs = super::quiet();
    change(&mut runs);
    let paper = dyno_report::Paper::new(&runs, &[]);
    let is_void =
        paper.verdicts.comparisons[0].vetoes.iter().any(|veto| veto.check == "unlike-rows");
    assert_eq!(is_void, super::ids_with_findings(&paper).contains(&"unlike-rows"));
    is_void
}
