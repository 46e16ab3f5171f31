//! G: arithmetic.

use super::quiet::BASELINE;
use super::{AS_IT_IS, Case, candidate, candidate_nodes, nodes, trials};
use dyno_facts::{FaultFacts, GeneratorMember, Message, TrialSummary};
use dyno_store::RunData;

/// Multiplies the time that transactions took.
fn latencies(runs: &mut [RunData], factor: f64) {
    trials(runs, |trial| trial.latency.sum_us *= factor);
}

/// Two load generators that counted this many commits too many together, the second until this second.
fn members(runs: &mut [RunData], more: u64, to_s: f64) {
    trials(runs, |trial| {
        let half = trial.counts.committed / 2;
        let second_half = trial.counts.committed - half + more;
        let parts = [("g1", half, 60.0), ("g2", second_half, to_s)];
        let members = parts.map(|(name, committed, to_s)| GeneratorMember {
            name: name.to_owned(),
            committed,
            to_s,
            ..GeneratorMember::default()
        });
        trial.conditions.members = members.into();
    });
}

/// The server counts this many commits in each trial, the clients 100,000.
fn commits(runs: &mut [RunData], by_server: u64) {
    trials(runs, |trial| server_commits(trial, by_server));
}

fn server_commits(trial: &mut TrialSummary, by_server: u64) {
    trial.conditions.nodes.values_mut().for_each(|node| {
        node.client_commits = Some(100_000);
        node.commits = Some(by_server);
    });
}

/// No one but dyno executed anything on the servers.
fn alone(runs: &mut [RunData]) {
    trials(runs, |trial| {
        trial.conditions.nodes.values_mut().for_each(|node| node.was_alone = true);
    });
}

/// Other programs took these shares of the CPUs from both sides, and a little more in every other pair.
fn foreign_cpu(runs: &mut [RunData], shares: [f64; 2]) {
    trials(runs, |trial| {
        let share = shares[usize::from(trial.target != BASELINE)];
        let extra = if trial.repeat % 2 == 0 { 0.01 } else { 0.0 };
        trial.conditions.generator.foreign_cpu_share = Some(share + extra);
    });
}

pub(super) const CASES: &[Case] = &[
    Case {
        id: "rolled-back",
        evidence: "trial 2: 50,000 rolled back by the server that the client counts as committed",
        fires: |runs| runs[0].trials[1].summary.conditions.unknown_rollbacks = Some(50_000),
        silent: |runs| runs[0].trials[1].summary.conditions.unknown_rollbacks = Some(100),
    },
    Case {
        id: "adds-up",
        evidence: " accounted for",
        fires: |runs| trials(runs, |trial| trial.counts.started += 1),
        silent: |runs| {
            trials(runs, |trial| {
                trial.counts.started += 1;
                trial.in_flight += 1;
            });
        },
    },
    Case {
        id: "littles-law",
        evidence: "inside transactions",
        fires: |runs| latencies(runs, 1.1),
        // Workers may be outside of transactions with reason: a server that stalled at the end, a client that
        // connected.
        silent: |runs| latencies(runs, 0.5),
    },
    Case {
        id: "idle-workers",
        evidence: "inside transactions",
        fires: |runs| latencies(runs, 0.9),
        silent: |runs| latencies(runs, 0.97),
    },
    Case {
        id: "commits-missing",
        evidence: "98,900 by the server, 100,000 by the client",
        fires: |runs| commits(runs, 98_900),
        silent: |runs| {
            commits(runs, 99_000);
            // Started again in the trial.
            let summary = &mut runs[0].trials[0].summary;
            summary.fault = Some(FaultFacts::default());
            summary.conditions.nodes.values_mut().for_each(|node| node.commits = Some(10));
        },
    },
    Case {
        id: "foreign-load",
        evidence: "101,100 by the server, 100,000 by the client",
        fires: |runs| commits(runs, 101_100),
        silent: |runs| commits(runs, 101_000),
    },
    Case {
        id: "uneven-foreign-load",
        evidence: "commits of others per commit of the trials: old 0%, new 1.1%",
        fires: |runs| candidate(runs, |trial| server_commits(trial, 101_100)),
        silent: |runs| commits(runs, 101_100),
    },
    Case {
        id: "uneven-background",
        evidence: "pairs, maintenance on one side alone: old 0, new ",
        fires: |runs| {
            candidate_nodes(runs, |node| node.background = vec!["maintenance: vacuum t".into()])
        },
        silent: |runs| nodes(runs, |node| node.background = vec!["maintenance: vacuum t".into()]),
    },
    Case {
        id: "uneven-foreign-cpu",
        evidence: "other programs took 40% of the CPUs from old and 10% from new (30 points apart); with ",
        fires: |runs| foreign_cpu(runs, [0.4, 0.1]),
        // Held up, and faster nevertheless.
        silent: |runs| foreign_cpu(runs, [0.1, 0.4]),
    },
    Case {
        id: "uneven-foreign-cpu-secondary",
        evidence: "from old and 10% from new (2 points apart); with ",
        fires: |runs| foreign_cpu(runs, [0.12, 0.1]),
        // Less than comparisons look for.
        silent: |runs| foreign_cpu(runs, [0.103, 0.1]),
    },
    Case {
        id: "shared-target",
        evidence: "new: another",
        fires: |runs| {
            runs[0].header.shared.insert("new".to_owned(), "another".into());
        },
        silent: AS_IT_IS,
    },
    Case {
        id: "generators-sum",
        evidence: " in the trial",
        fires: |runs| members(runs, 1, 60.0),
        silent: |runs| members(runs, 0, 60.0),
    },
    Case {
        id: "windows-overlap",
        evidence: "g2: 93%",
        fires: |runs| members(runs, 0, 56.0),
        silent: |runs| members(runs, 0, 57.0),
    },
];

#[test]
fn a_load_generator_that_was_lost_blames_no_other() {
    let mut runs = super::quiet();
    latencies(&mut runs, 0.5);
    members(&mut runs, 0, 60.0);
    trials(&mut runs, |trial| {
        trial.conditions.members[1].lost = Some("It stopped answering.".into())
    });
    let paper = dyno_report::Paper::new(&runs, &[]);
    let findings = ["generator-lost", "littles-law", "idle-workers"]
        .map(|id| !super::check(&paper, id).lines.is_empty());
    assert_eq!(findings, [true, false, false]);
}

#[test]
fn stages_are_blurred_at_each_of_their_ends() {
    let findings = [2, 4].map(|stages| {
        let mut runs = super::quiet();
        latencies(&mut runs, 1.1);
        trials(&mut runs, |trial| {
            trial.latency.max_us = 0.02 * trial.window_s * 1e6;
            trial.stages = vec![dyno_facts::StageFacts::default(); stages];
        });
        !super::check(&dyno_report::Paper::new(&runs, &[]), "littles-law").lines.is_empty()
    });
    assert_eq!(findings, [true, false]);
}

#[test]
fn commits_of_scripts_of_the_user_are_not_known() {
    let findings = [false, true].map(|is_own| {
        let mut runs = super::quiet();
        commits(&mut runs, 10);
        if is_own {
            // Each transaction ends with ROLLBACK, say.
            let script = dyno_facts::ScriptFacts { name: "a".to_owned(), ..Default::default() };
            runs[0].header.experiments[0].scripts = vec![script];
        }
        let paper = dyno_report::Paper::new(&runs, &[]);
        !super::check(&paper, "commits-missing").lines.is_empty()
    });
    assert_eq!(findings, [true, false]);
}

#[test]
fn transactions_in_flight_may_have_failed() {
    let findings = [100, 256].map(|in_flight| {
        let mut runs = super::quiet();
        trials(&mut runs, |trial| {
            trial.counts.started = trial.counts.ended() + in_flight;
            trial.in_flight = in_flight;
            trial.conditions.nodes.values_mut().for_each(|node| {
                (node.client_commits, node.commits) = (Some(711), Some(471));
            });
        });
        let paper = dyno_report::Paper::new(&runs, &[]);
        !super::check(&paper, "commits-missing").lines.is_empty()
    });
    assert_eq!(findings, [true, false]);
}

#[test]
fn commits_of_autovacuum_are_not_foreign() {
    let findings = ["maintenance: vacuum t", "autovacuum: VACUUM public.t"].map(|work| {
        let mut runs = super::quiet();
        commits(&mut runs, 101_100);
        nodes(&mut runs, |node| node.background = vec![work.into()]);
        let paper = dyno_report::Paper::new(&runs, &[]);
        !super::check(&paper, "foreign-load").lines.is_empty()
    });
    assert_eq!(findings, [true, false]);
}

#[test]
fn commits_of_parallel_workers_are_not_foreign() {
    let paper = super::paper(|runs| commits(runs, 300_000));
    assert!(!super::check(&paper, "foreign-load").lines.is_empty());
    let paper = super::paper(|runs| {
        commits(runs, 300_000);
        alone(runs);
    });
    assert!(super::check(&paper, "foreign-load").lines.is_empty());
}

#[test]
fn transactions_in_other_databases_are_foreign_though_dyno_was_alone_in_its_own() {
    for (count, pairs, seconds, wanted) in [
        // Autovacuum and agents make some in a minute.
        (290, 6, None, [false, false]),
        (390, 6, None, [true, true]),
        // They were counted longer.
        (390, 6, Some(80.0), [false, false]),
        // One pair alone.
        (390, 1, None, [true, false]),
        (390, 2, None, [true, true]),
    ] {
        let mut runs = super::quiet();
        alone(&mut runs);
        nodes(&mut runs, |node| {
            (node.commits, node.client_commits) = (Some(1_000), Some(1_000));
            (node.transactions_elsewhere, node.elsewhere_s) = (Some(0), seconds);
        });
        candidate(&mut runs, |trial| {
            let count = if trial.repeat <= pairs { count } else { 0 };
            let nodes = trial.conditions.nodes.values_mut();
            nodes.for_each(|node| node.transactions_elsewhere = Some(count));
        });
        let paper = dyno_report::Paper::new(&runs, &[]);
        let lines =
            ["foreign-load", "uneven-foreign-load"].map(|id| &super::check(&paper, id).lines);
        let are_named =
            |line: &Message| line.to_string().contains("in other databases of the server");
        assert!(lines.iter().all(|lines| lines.iter().all(are_named)), "{lines:?}");
        let has_lines = lines.map(|lines| !lines.is_empty());
        assert_eq!(has_lines, wanted, "{count}, {pairs}, {seconds:?}");
    }
}
