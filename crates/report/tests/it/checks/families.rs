//! The checks that only TPC-C and TPC-H have.

use super::Case;
use crate::synthetic::own_mut;
use crate::synthetic::tpcc::tpcc;
use crate::synthetic::tpch::tpch;
use dyno_facts::{CheckVerdict, PublishedTable, TrialSummary};
use dyno_report::Paper;
use dyno_store::RunData;
use dyno_tpcc::facts::TpccFacts;
use dyno_tpch::facts::TpchFacts;

/// The run of TPC-C with these trials only, changed.
fn orders(runs: &mut Vec<RunData>, trials: &[u32], change: impl Fn(&mut TrialSummary)) {
    let mut run = tpcc();
    keep_trials(&mut run, trials);
    run.trials.iter_mut().for_each(|trial| change(&mut trial.summary));
    *runs = vec![run];
}

/// The run of TPC-C with these trials only, with changed facts of the workload.
fn tpcc_facts(runs: &mut Vec<RunData>, trials: &[u32], change: impl Fn(&mut TpccFacts)) {
    orders(runs, trials, |trial| change(&mut own_mut(trial)));
}

/// The trial with pauses, where keying and think times are these shares of those of the clause.
fn pauses(runs: &mut Vec<RunData>, keying: f64, think: f64) {
    tpcc_facts(runs, &[5], |facts| {
        for pauses in facts.kinds.iter_mut().filter_map(|kind| kind.pauses.as_mut()) {
            pauses.keying_s = pauses.keying_clause_s * keying;
            pauses.think_s = pauses.think_clause_s * think;
        }
    });
}

/// The number of checkpoints that ended in the window of a trial.
fn checkpoints(runs: &mut Vec<RunData>, seen: Option<u64>) {
    orders(runs, &[1], |trial| {
        trial.conditions.nodes.entry("main".to_owned()).or_default().checkpoints = seen;
    });
}

/// The run of TPC-H with these trials only, the first of them changed.
fn queries(runs: &mut Vec<RunData>, trials: &[u32], change: impl Fn(&mut TpchFacts)) {
    let mut run = tpch();
    keep_trials(&mut run, trials);
    change(&mut own_mut(&mut run.trials[0].summary));
    *runs = vec![run];
}

fn keep_trials(run: &mut RunData, trials: &[u32]) {
    run.trials.retain(|trial| trials.contains(&trial.summary.trial));
}

/// Trials 2 and 1 on two targets, the second run by this profile.
fn side_by_side(runs: &mut Vec<RunData>, profile: &str) {
    orders(runs, &[1, 2], |trial| {
        if trial.trial == 2 {
            trial.target = "other".to_owned();
            own_mut::<TpccFacts>(trial).profile = profile.to_owned();
        }
    });
}

const ALL: [u32; 10] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];

pub(super) const TPCC: &[Case] = &[
    Case {
        id: "tpcc-audit",
        evidence: "trial 5: remote lines: 0.00%",
        fires: |runs| orders(runs, &[5], |_| {}),
        silent: |runs| orders(runs, &[1], |_| {}),
    },
    Case {
        id: "tpcc-audit-not-made",
        evidence: "trial 3: no audit",
        fires: |runs| orders(runs, &[3], |_| {}),
        silent: |runs| {
            tpcc_facts(runs, &[1], |facts| {
                facts.audit.retain(|line| line.verdict != CheckVerdict::NotMade);
            });
        },
    },
    Case {
        id: "tpcc-conditions",
        evidence: "trial 4: after: C2",
        fires: |runs| orders(runs, &[4], |_| {}),
        silent: |runs| orders(runs, &[1], |_| {}),
    },
    Case {
        id: "tpcc-conditions-not-made",
        evidence: "trial 3: after: X5",
        fires: |runs| orders(runs, &[3], |_| {}),
        silent: |runs| orders(runs, &[1], |_| {}),
    },
    Case {
        id: "tpcc-unlike",
        evidence: "profile: standard bmsql-5.0, other spec",
        fires: |runs| side_by_side(runs, "spec"),
        silent: |runs| side_by_side(runs, "bmsql-5.0"),
    },
    Case {
        id: "tpcc-mix",
        evidence: "Payment 43.00%, at least 60%",
        fires: |runs| tpcc_facts(runs, &[1], |facts| facts.kinds[1].least_share_percent = 60.0),
        silent: |runs| orders(runs, &[1], |_| {}),
    },
    Case {
        id: "tpcc-response",
        evidence: "New-Order 6.90 s, limit 5 s",
        fires: |runs| orders(runs, &[3], |_| {}),
        silent: |runs| orders(runs, &[1], |_| {}),
    },
    Case {
        id: "tpcc-mean",
        evidence: "New-Order 1,000 ms on average",
        fires: |runs| orders(runs, &[1], |trial| trial.kinds[0].latency.mean_us = 1e6),
        silent: |runs| orders(runs, &[1], |_| {}),
    },
    Case {
        id: "tpcc-unknown",
        evidence: "3 New-Orders of unknown outcome",
        fires: |runs| orders(runs, &[2], |_| {}),
        silent: |runs| orders(runs, &[1], |_| {}),
    },
    Case {
        id: "tpcc-skips",
        evidence: "5.0% of 240",
        fires: |runs| orders(runs, &[5], |_| {}),
        silent: |runs| tpcc_facts(runs, &[5], |facts| facts.deliveries_with_skips = 2),
    },
    Case {
        id: "tpcc-above-bound",
        evidence: "tpmC, at most 26",
        fires: |runs| tpcc_facts(runs, &[1], |facts| facts.tpmc_limit = Some(25.72)),
        silent: |runs| orders(runs, &[5], |_| {}),
    },
    Case {
        id: "tpcc-pauses",
        evidence: "Payment keying for 1.50 s, at least 3 s and thinking for 9.00 s, at least 12 s",
        fires: |runs| pauses(runs, 0.5, 0.75),
        silent: |runs| pauses(runs, 1.0, 0.97),
    },
    Case {
        id: "tpcc-checkpoint",
        evidence: "none ended on",
        fires: |runs| checkpoints(runs, Some(0)),
        silent: |runs| checkpoints(runs, Some(1)),
    },
    Case {
        id: "tpcc-no-pauses",
        evidence: "tpmC per warehouse",
        fires: |runs| orders(runs, &[1], |_| {}),
        silent: |runs| tpcc_facts(runs, &[1], |facts| facts.tpmc = 25.0),
    },
    Case {
        id: "tpcc-below-floor",
        evidence: "6.00 tpmC per warehouse",
        fires: |runs| tpcc_facts(runs, &[5], |facts| facts.tpmc = 12.0),
        silent: |runs| tpcc_facts(runs, &[5], |facts| facts.tpmc = 19.0),
    },
    Case {
        id: "tpcc-cached",
        evidence: "innodb_buffer_pool_size = 8 GiB",
        fires: |runs| orders(runs, &[1], |_| {}),
        silent: |runs| {
            orders(runs, &[1], |trial| {
                trial.data.as_mut().expect("data").memory_bytes = Some(100 << 20);
            });
        },
    },
];

pub(super) const TPCH: &[Case] = &[
    Case {
        id: "tpch-answers",
        evidence: "trial 3: Q11 wrong",
        fires: |runs| queries(runs, &[3], |_| {}),
        silent: |runs| queries(runs, &[1], |_| {}),
    },
    Case {
        id: "tpch-failed",
        evidence: "trial 6: Q17",
        fires: |runs| queries(runs, &[6], |_| {}),
        silent: |runs| queries(runs, &[3], |_| {}),
    },
    Case {
        id: "tpch-not-compared",
        evidence: "trial 1: Q4",
        fires: |runs| queries(runs, &ALL, |facts| facts.queries[3].answer = None),
        silent: |runs| queries(runs, &ALL, |_| {}),
    },
    Case {
        id: "tpch-timeouts",
        evidence: "trial 3: Q18 and Q21 after 60 s",
        fires: |runs| queries(runs, &[3], |_| {}),
        silent: |runs| queries(runs, &[1], |_| {}),
    },
    Case {
        id: "tpch-degree",
        evidence: "trial 1: asked 16, got 2",
        fires: |runs| {
            queries(runs, &ALL, |facts| (facts.degree.asked, facts.degree.got) = (16, Some(2)));
        },
        // Some products count the session itself.
        silent: |runs| queries(runs, &ALL, |facts| facts.degree.got = Some(1)),
    },
    Case {
        id: "tpch-cache-failed",
        evidence: "trial 1: ",
        fires: |runs| queries(runs, &ALL, |facts| facts.cache.verdict = Some(CheckVerdict::Failed)),
        silent: |runs| queries(runs, &ALL, |_| {}),
    },
    Case {
        id: "tpch-cache-mixed",
        evidence: "experiment queries: ",
        fires: |runs| queries(runs, &ALL, |facts| facts.cache.state = "cold".to_owned()),
        silent: |runs| queries(runs, &ALL, |_| {}),
    },
    Case {
        id: "tpch-cache-unknown",
        evidence: "trial 3: warm, not proven",
        fires: |runs| queries(runs, &[3], |_| {}),
        silent: |runs| queries(runs, &[1], |_| {}),
    },
    Case {
        id: "tpch-unlike",
        evidence: "scale factor: maria 1, postgres 0.1, 1",
        fires: |runs| queries(runs, &ALL, |facts| facts.scale = 0.1),
        silent: |runs| queries(runs, &ALL, |_| {}),
    },
    Case {
        id: "tpch-load-differs",
        evidence: "experiment queries: maria with primary keys, secondary indexes",
        fires: |runs| queries(runs, &ALL, |_| {}),
        silent: |runs| queries(runs, &[1, 2], |_| {}),
    },
    Case {
        id: "tpch-plans",
        evidence: "Q5 on postgres at degree 2",
        fires: |runs| queries(runs, &ALL, |_| {}),
        silent: |runs| queries(runs, &[1], |_| {}),
    },
    Case {
        id: "tpch-refreshed",
        evidence: "trial 10: 1 pair applied since the load",
        fires: |runs| queries(runs, &[10], |_| {}),
        silent: |runs| queries(runs, &[9], |_| {}),
    },
    Case {
        id: "tpch-power",
        evidence: "trial 9: ",
        fires: |runs| {
            queries(runs, &[9], |facts| {
                facts.refreshes.pop();
            });
        },
        silent: |runs| queries(runs, &[9], |_| {}),
    },
    Case {
        id: "tpch-streams",
        evidence: "1 pair of refresh functions for 2 streams",
        fires: |runs| queries(runs, &[10], |_| {}),
        silent: |runs| queries(runs, &[9], |_| {}),
    },
];

/// Checks that need a published table; the test below has their pairs.
pub(super) const BESIDE_PUBLISHED: [&str; 1] = ["tpcc-unlike-published"];

/// The number of lines that a check has alongside published tables.
fn lines(id: &str, run: RunData, published: &[PublishedTable]) -> usize {
    let paper = Paper::new(&[run], published);
    super::check(&paper, id).lines.len()
}

#[test]
fn loads_unlike_the_published_ones_are_told() {
    let mut tables = crate::synthetic::tpcc::published();
    assert_eq!(lines("tpcc-unlike-published", tpcc(), &tables), 1);
    for row in &mut tables[0].rows {
        row.conditions.insert("warehouses".to_owned(), "2".to_owned());
    }
    assert_eq!(lines("tpcc-unlike-published", tpcc(), &tables), 0);
}
