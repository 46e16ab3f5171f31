//! Charts of several nodes.

use super::quiet::{BASELINE, quiet};
use super::{Case, check, paper, trials};
use dyno_facts::{
    CommitWait, FaultFacts, Freshness, GeneratorMember, NodeConditions, Role, TargetNode, Together,
};
use dyno_store::RunData;
use std::collections::BTreeMap;

/// A primary and two read-only nodes that dyno splits reads over; all of the load is single reads. `change`
/// is given the nodes by name.
fn cluster(runs: &mut [RunData], change: impl Fn(&mut BTreeMap<String, NodeConditions>)) {
    for target in &mut runs[0].header.targets {
        let nodes = [("n1", Role::Primary), ("n2", Role::ReadOnly), ("n3", Role::ReadOnly)];
        let nodes = nodes.map(|(name, role)| TargetNode {
            name: name.to_owned(),
            role,
            ..TargetNode::default()
        });
        target.nodes = nodes.into();
        target.route = dyno_facts::Route::Split;
    }
    trials(runs, |trial| {
        trial.statements.others = 0;
        for kind in &mut trial.kinds {
            (kind.statements.others, kind.statements.misses) = (0, 0);
        }
        let nodes = &mut trial.conditions.nodes;
        let mut primary = nodes.remove("primary").expect("the node");
        (primary.commits, primary.client_commits) = (None, None);
        let conditions = |role: &str, reads: u64| NodeConditions {
            role: Some(role.to_owned()),
            reads: Some(reads),
            ..primary.clone()
        };
        nodes.insert("n1".to_owned(), conditions("primary", 2_000));
        for name in ["n2", "n3"] {
            let replica = NodeConditions {
                acknowledged_by: None,
                replicas: Vec::new(),
                ..conditions("read_only", 100_000)
            };
            nodes.insert(name.to_owned(), replica);
        }
        change(nodes);
    });
}

/// A cluster with one of its nodes changed.
fn node(runs: &mut [RunData], name: &str, change: impl Fn(&mut NodeConditions)) {
    cluster(runs, |nodes| change(nodes.get_mut(name).expect("a node")));
}

/// An endpoint that reaches servers by postgres_fdw, and another node of this role.
fn joined(runs: &mut [RunData], role: &str, servers: &[&str]) {
    cluster(runs, |nodes| {
        for (name, role) in [("n1", "endpoint"), ("n2", role)] {
            nodes.get_mut(name).expect("a node").role = Some(role.to_owned());
        }
        let endpoint = nodes.get_mut("n1").expect("a node");
        endpoint.foreign_servers = servers.iter().map(|&name| name.to_owned()).collect();
    });
}

/// Reads of the three nodes.
fn reads(runs: &mut [RunData], reads: [u64; 3]) {
    cluster(runs, |nodes| {
        for (name, reads) in ["n1", "n2", "n3"].into_iter().zip(reads) {
            nodes.get_mut(name).expect("a node").reads = Some(reads);
        }
    });
}

/// Two load generators that had a read-only node each: what these counted, and what those did.
fn dealt(runs: &mut [RunData], counted: [u64; 2], done: [u64; 2]) {
    reads(runs, [0, counted[0], counted[1]]);
    trials(runs, |trial| {
        let members =
            ["n2", "n3"].into_iter().zip(done).map(|(node, statements)| GeneratorMember {
                name: format!("on {node}"),
                nodes: vec![node.to_owned()],
                statements,
                to_s: trial.window_s,
                ..GeneratorMember::default()
            });
        trial.conditions.members = members.collect();
    });
}

/// A cluster with this many reads that did not show their session's write, and another session's.
fn freshness(runs: &mut [RunData], stale: u64, stale_other: u64) {
    cluster(runs, |_| {});
    trials(runs, |trial| {
        trial.conditions.freshness = Some(Freshness {
            asked: 120,
            stale,
            asked_other: 119,
            stale_other,
            stale_max_ms: Some(11.2),
            unplaced: 0,
        });
    });
}

/// The suite says that commits wait for a replica.
fn claim(runs: &mut [RunData], wait: &CommitWait) {
    node(runs, "n1", |node| node.acknowledged_by = Some(wait.clone()));
    trials(runs, |trial| trial.statements.writes = 1);
    for target in &mut runs[0].header.targets {
        target.durability = Some("a primary and a semi-synchronous replica".to_owned());
    }
}

/// A single server of which the suite says the same.
fn alone(runs: &mut [RunData]) {
    claim(runs, &CommitWait::Local("local".into()));
    trials(runs, |trial| {
        trial.conditions.nodes.values_mut().for_each(|node| node.replicas.clear())
    });
}

pub(super) const CASES: &[Case] = &[
    Case {
        id: "reads-on-primary",
        evidence: "135,000 reads by the primary, 65,000 by the read-only nodes",
        fires: |runs| reads(runs, [135_000, 33_000, 32_000]),
        silent: |runs| reads(runs, [133_000, 33_500, 33_500]),
    },
    Case {
        id: "uneven-nodes",
        evidence: "reads: n2: 110,100 and n3: 89,900",
        fires: |runs| reads(runs, [0, 110_100, 89_900]),
        silent: |runs| reads(runs, [0, 110_000, 90_000]),
    },
    Case {
        id: "strayed-load",
        evidence: ": 6.0% of all reads more or less than its load generators made",
        fires: |runs| dealt(runs, [108_000, 92_000], [600, 400]),
        silent: |runs| dealt(runs, [110_200, 89_800], [600, 400]),
    },
    Case {
        id: "replica-lag",
        evidence: "n2: 1.5 s behind at the 95th percentile, 4.0 s at most",
        fires: |runs| {
            node(runs, "n2", |node| (node.lag_p95_s, node.lag_max_s) = (Some(1.5), Some(4.0)));
        },
        silent: |runs| {
            node(runs, "n2", |node| (node.lag_p95_s, node.lag_max_s) = (Some(1.0), Some(4.0)));
        },
    },
    Case {
        id: "stale-reads",
        evidence: "3 of 120 reads did not show the write; the longest for 12 ms",
        fires: |runs| freshness(runs, 3, 0),
        silent: |runs| freshness(runs, 0, 3),
    },
    Case {
        id: "stale-reads-of-others",
        evidence: "3 of 119 reads did not show the write; the longest for 12 ms",
        fires: |runs| freshness(runs, 0, 3),
        silent: |runs| freshness(runs, 3, 0),
    },
    Case {
        id: "node-down",
        evidence: "n2: The server was restarted.",
        fires: |runs| {
            node(runs, "n2", |node| node.down = Some("The server was restarted.".into()));
        },
        silent: |runs| {
            node(runs, "n2", |node| node.down = Some("The server was restarted.".into()));
            trials(runs, |trial| trial.fault = Some(FaultFacts::default()));
        },
    },
    Case {
        id: "semi-sync-fallback",
        evidence: "n1: 5 commits without a replica's answer",
        fires: |runs| node(runs, "n1", |node| node.unacknowledged = Some(5)),
        silent: |runs| node(runs, "n1", |node| node.unacknowledged = Some(0)),
    },
    Case {
        id: "no-atomic-commit",
        evidence: "n1 commits on a, b apart, by postgres_fdw",
        fires: |runs| joined(runs, "shard", &["a", "b"]),
        silent: |runs| joined(runs, "read_only", &["a", "b"]),
    },
    Case {
        id: "durability-claimed",
        evidence: "a primary and a semi-synchronous replica (stated), but a commit waits for: local",
        fires: |runs| claim(runs, &CommitWait::Local("local".into())),
        silent: |runs| claim(runs, &CommitWait::Copies("1 semi-sync replica".into())),
    },
    Case {
        id: "copies-unseen",
        evidence: "a primary and a semi-synchronous replica (stated), but a commit waits for: local",
        fires: |runs| alone(runs),
        silent: |runs| claim(runs, &CommitWait::Local("local".into())),
    },
    Case {
        id: "nodes-differ",
        evidence: "n3: other tables or indexes",
        fires: |runs| node(runs, "n3", |node| node.schema_checksum = Some("else".to_owned())),
        // What servers estimate differs between equal nodes.
        silent: |runs| rows(runs, 50_000),
    },
    Case {
        id: "nodes-rows",
        evidence: "n3: 39% of the primary's rows",
        fires: |runs| rows(runs, 39_000),
        silent: |runs| rows(runs, 40_000),
    },
];

#[test]
fn conflicts_on_joined_shards_are_a_price_and_no_errors() {
    let mut runs = quiet();
    joined(&mut runs, "shard", &["a", "b"]);
    add_conflicts(&mut runs);
    let paper = dyno_report::Paper::new(&runs, &[]);
    assert!(check(&paper, "errors-1").findings.is_empty());
    let price = check(&paper, "no-atomic-commit").findings[0].value.to_string();
    assert!(price.contains("attempts refused with 40001 (50% of the transactions)"), "{price}");
    let markdown = paper.markdown(dyno_report::Lang::En);
    assert!(markdown.contains("REPEATABLE READ on the shards"), "{markdown}");
    // Elsewhere they are errors.
    let mut runs = quiet();
    joined(&mut runs, "read_only", &["a", "b"]);
    add_conflicts(&mut runs);
    let paper = dyno_report::Paper::new(&runs, &[]);
    assert!(!check(&paper, "errors-1").findings.is_empty());
}

/// Half of the transactions of each trial could not be serialized.
fn add_conflicts(runs: &mut [RunData]) {
    trials(runs, |trial| {
        trial.counts.failed = trial.counts.started / 2;
        trial.errors = vec![dyno_facts::ErrorSummary {
            class: "serialization".to_owned(),
            sqlstate: "40001".to_owned(),
            count: trial.counts.failed,
            errno: 0,
            message: "could not serialize access".into(),
        }];
    });
}

/// Rows of each table on the last node; the others have 100,000.
fn rows(runs: &mut [RunData], rows: u64) {
    node(runs, "n3", |node| node.table_rows.values_mut().for_each(|count| *count = rows));
}

#[test]
fn a_cluster_with_nothing_to_remark_has_no_findings() {
    let mut runs = quiet();
    cluster(&mut runs, |_| {});
    let paper = dyno_report::Paper::new(&runs, &[]);
    for case in CASES {
        assert_eq!(check(&paper, case.id).lines, Vec::<dyno_report::Message>::new(), "{}", case.id);
    }
}

#[test]
fn reads_inside_of_transactions_may_stay_on_the_primary() {
    let judged_paper = paper(|runs| {
        reads(runs, [200_000, 5, 5]);
        trials(runs, |trial| {
            for kind in &mut trial.kinds {
                kind.statements.others = 2 * kind.counts.committed;
            }
        });
    });
    assert!(check(&judged_paper, "reads-on-primary").lines.is_empty());
    // Nothing is split if all of the load is meant for the primary.
    let judged_paper = paper(|runs| {
        reads(runs, [200_000, 5, 5]);
        runs[0]
            .header
            .targets
            .iter_mut()
            .for_each(|target| target.route = dyno_facts::Route::Primary);
    });
    assert!(check(&judged_paper, "reads-on-primary").lines.is_empty());
}

#[test]
fn few_reads_of_replicas_beside_many_of_the_primary_are_not_shared_ones() {
    // A load that reads in transactions, and dyno's own looks at how fresh reads are.
    let judged_paper = paper(|runs| reads(runs, [200_000, 3_600, 900]));
    assert!(check(&judged_paper, "uneven-nodes").lines.is_empty());
    let judged_paper = paper(|runs| reads(runs, [20_000, 3_600, 900]));
    assert!(!check(&judged_paper, "uneven-nodes").lines.is_empty());
}

#[test]
fn commits_stand_for_reads_where_a_server_counts_no_statements() {
    let judged_paper = paper(|runs| {
        cluster(runs, |nodes| {
            for (name, commits) in [("n1", 135_000), ("n2", 33_000), ("n3", 32_000)] {
                let node = nodes.get_mut(name).expect("a node");
                (node.reads, node.commits) = (None, Some(commits));
            }
        });
        trials(runs, |trial| {
            trial.statements.writes = 0;
            trial.kinds.iter_mut().for_each(|kind| kind.statements.writes = 0);
        });
    });
    assert!(!check(&judged_paper, "reads-on-primary").lines.is_empty());
}

#[test]
fn a_copy_is_not_missed_where_nothing_is_written_and_where_storage_keeps_it() {
    assert_eq!(copies_missed(|_| {}), [false, true]);
    assert_eq!(
        copies_missed(|runs| trials(runs, |trial| trial.statements.writes = 0)),
        [false, false]
    );
    let missed = copies_missed(|runs| {
        for target in &mut runs[0].header.targets {
            let words = "shared storage, written to a quorum of three copies";
            target.durability = Some(words.to_owned());
        }
    });
    assert_eq!(missed, [false, false]);
}

/// Returns which of the two checks of durability miss a copy of a single server, after a change.
fn copies_missed(change: fn(&mut Vec<RunData>)) -> [bool; 2] {
    let mut runs = quiet();
    alone(&mut runs);
    change(&mut runs);
    let paper = dyno_report::Paper::new(&runs, &[]);
    ["durability-claimed", "copies-unseen"].map(|id| !check(&paper, id).findings.is_empty())
}

#[test]
fn commits_of_several_nodes_are_compared_together() {
    for (commits, through_endpoint, wanted) in [
        (98_900, false, [true, false]),
        (100_500, false, [false, false]),
        (101_100, false, [false, true]),
        // An endpoint commits on several nodes.
        (101_100, true, [false, false]),
        (98_900, true, [true, false]),
    ] {
        let mut runs = quiet();
        cluster(&mut runs, |_| {});
        trials(&mut runs, |trial| {
            let (commits, client_commits) = (Some(commits), Some(100_000));
            trial.conditions.together =
                Some(Together { commits, client_commits, through_endpoint, ..Together::default() });
        });
        let paper = dyno_report::Paper::new(&runs, &[]);
        let findings =
            ["commits-missing", "foreign-load"].map(|id| !check(&paper, id).lines.is_empty());
        assert_eq!(findings, wanted, "{commits}, {through_endpoint}");
    }
}

#[test]
fn rows_of_shards_add_up() {
    let findings = [25_000, 100_000].map(|rows| {
        let mut runs = quiet();
        trials(&mut runs, |trial| {
            if trial.target != BASELINE {
                return;
            }
            let nodes = &mut trial.conditions.nodes;
            let mut shard = nodes.remove("primary").expect("the node");
            shard.role = Some("shard".to_owned());
            shard.table_rows.values_mut().for_each(|count| *count = rows);
            for name in ["s1", "s2", "s3", "s4"] {
                nodes.insert(name.to_owned(), shard.clone());
            }
        });
        let paper = dyno_report::Paper::new(&runs, &[]);
        !check(&paper, "rows").lines.is_empty()
    });
    assert_eq!(findings, [false, true], "four times 25,000 are 100,000");
}
