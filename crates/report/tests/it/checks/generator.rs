//! A: the load generator.

use super::{AS_IT_IS, Case, generator, nodes, trials};
use dyno_facts::{
    AwaitedArrivals, GeneratorMember, LatencySummary, Message, Purpose, Role, TargetNode,
    TrialStatus, TrialSummary,
};
use dyno_store::RunData;

/// Two load generators, the second one this much later.
fn started(late_ms: f64) -> Vec<GeneratorMember> {
    let mut members = skewed(0.0);
    for (member, late_ms) in members.iter_mut().zip([0.25, 0.25 + late_ms]) {
        member.late_ms = Some(late_ms);
        member.clock_bound_ms = Some(0.5);
    }
    members
}

/// Two load generators, the calendar of the second one this far behind.
fn skewed(skew_ms: f64) -> Vec<GeneratorMember> {
    let members = [("g1", 0.0), ("g2", -skew_ms)].map(|(name, skew_ms)| GeneratorMember {
        name: name.to_owned(),
        to_s: 60.0,
        clock_skew_ms: Some(skew_ms),
        ..GeneratorMember::default()
    });
    members.into()
}

fn stood_still() -> Message {
    Message::both("It stood still for 4 s.", "停滞了 4 秒。")
}

/// This share of a trial's arrivals began late although a worker waited for them.
fn awaited(trial: &TrialSummary, late: f64) -> AwaitedArrivals {
    let count = trial.latency.count;
    AwaitedArrivals { count, late: (count as f64 * late) as u64, latest_us: 7_000.0 }
}

/// One answer for each transaction, in a queue that is this long at most.
fn queue(trial: &mut TrialSummary, p99_us: f64) {
    trial.latency.p99_us = 4_000.0;
    let count = trial.latency.count;
    let queue = LatencySummary { count, mean_us: 20.0, p99_us, ..LatencySummary::default() };
    trial.generator.loop_queue = Some(queue);
}

/// The longest pause of the load generator's clock, and the longest latency.
fn stopped(runs: &mut [RunData], hiccup_us: f64, latency_us: f64) {
    generator(runs, |known| known.hiccup_max_us = Some(hiccup_us));
    trials(runs, |trial| trial.latency.max_us = latency_us);
}

#[test]
fn a_clock_that_is_late_while_transactions_go_on_stops_nothing() {
    let mut runs = super::quiet();
    stopped(&mut runs, 2.1e6, 0.5e6);
    let paper = dyno_report::Paper::new(&runs, &[]);
    assert!(super::check(&paper, "generator-stopped").findings.is_empty());
}

pub(super) const CASES: &[Case] = &[
    Case {
        id: "rate-missed",
        evidence: "of the offered transactions",
        fires: |runs| trials(runs, |trial| trial.offered = Some(trial.counts.ended() * 102 / 100)),
        silent: |runs| {
            trials(runs, |trial| trial.offered = Some(trial.counts.ended() * 1009 / 1000));
            // A step of a search may miss what it tries.
            runs[0].trials[0].summary.offered = Some(u64::MAX);
            runs[0].trials[0].summary.purpose = Purpose::Search;
        },
    },
    Case {
        id: "generator-cpu-95",
        evidence: "96%",
        fires: |runs| trials(runs, |trial| trial.generator.host.cpu_share = 0.96),
        silent: |runs| trials(runs, |trial| trial.generator.host.cpu_share = 0.95),
    },
    Case {
        id: "generator-cpu",
        evidence: "81%",
        fires: |runs| trials(runs, |trial| trial.generator.host.cpu_share = 0.81),
        silent: |runs| trials(runs, |trial| trial.generator.host.cpu_share = 0.8),
    },
    Case {
        id: "shared-cpu",
        evidence: "96%",
        fires: |runs| {
            runs[0].header.targets[0].same_host = true;
            trials(runs, |trial| trial.generator.host.cpu_share = 0.96);
        },
        silent: |runs| trials(runs, |trial| trial.generator.host.cpu_share = 0.96),
    },
    Case {
        id: "generator-starved",
        evidence: "stood still for 4 s",
        fires: |runs| generator(runs, |known| known.starved = Some(stood_still())),
        silent: AS_IT_IS,
    },
    Case {
        id: "generator-stopped",
        evidence: "dyno was stopped for 2.10 s",
        fires: |runs| stopped(runs, 2.1e6, 2.1e6),
        silent: |runs| stopped(runs, 1.9e6, 1.9e6),
    },
    Case {
        id: "made-again",
        evidence: "stood still for 4 s",
        fires: |runs| {
            let first = &mut runs[0].trials[0].summary;
            first.status = TrialStatus::Starved;
            first.conditions.generator.starved = Some(stood_still());
        },
        silent: AS_IT_IS,
    },
    Case {
        id: "generator-loop",
        evidence: "91%",
        fires: |runs| trials(runs, |trial| trial.generator.busiest_loop_share = 0.91),
        silent: |runs| trials(runs, |trial| trial.generator.busiest_loop_share = 0.9),
    },
    Case {
        id: "run-delay",
        evidence: "5.8%",
        // Two loops for 60 s.
        fires: |runs| generator(runs, |known| known.run_delay_s = Some(7.0)),
        silent: |runs| {
            generator(runs, |known| {
                known.run_delay_s = Some(5.0);
                known.cpu_pressure_share = Some(0.5);
            });
        },
    },
    Case {
        id: "hiccups",
        evidence: "1.10 ms",
        fires: |runs| generator(runs, |known| known.hiccup_p999_us = Some(1_100.0)),
        silent: |runs| {
            generator(runs, |known| known.hiccup_p999_us = Some(900.0));
            trials(runs, |trial| trial.latency.p999_us = 10_000.0);
        },
    },
    Case {
        id: "suspended",
        evidence: "2,500 ms",
        fires: |runs| generator(runs, |known| known.suspended_ms = Some(2_500.0)),
        silent: |runs| generator(runs, |known| known.suspended_ms = Some(0.9)),
    },
    Case {
        id: "open-loop-idle",
        evidence: "2.0% of the transactions, by up to 7.00 ms",
        fires: |runs| trials(runs, |trial| trial.generator.awaited = Some(awaited(trial, 0.02))),
        silent: |runs| trials(runs, |trial| trial.generator.awaited = Some(awaited(trial, 0.01))),
    },
    Case {
        id: "loop-queue",
        evidence: "up to 0.600 ms of p99 (4.00 ms) are dyno's own queue",
        fires: |runs| trials(runs, |trial| queue(trial, 600.0)),
        silent: |runs| trials(runs, |trial| queue(trial, 400.0)),
    },
    Case {
        id: "network",
        evidence: "75%",
        fires: |runs| generator(runs, |known| known.network_share = Some(0.75)),
        silent: |runs| generator(runs, |known| known.network_share = Some(0.7)),
    },
    Case {
        id: "retransmits",
        evidence: "0.2%",
        fires: |runs| generator(runs, |known| known.retransmitted_share = Some(0.002)),
        silent: |runs| {
            generator(runs, |known| known.retransmitted_share = Some(0.002));
            nodes(runs, |node| node.transport = Some("unix socket, tls".to_owned()));
        },
    },
    Case {
        id: "headroom",
        evidence: "2.5 times the measured rate",
        fires: |runs| generator(runs, |known| known.headroom = Some(2.5)),
        silent: |runs| generator(runs, |known| known.headroom = Some(3.0)),
    },
    Case {
        id: "headroom-unproven",
        evidence: "no calibration",
        fires: |runs| generator(runs, |known| known.headroom = None),
        silent: AS_IT_IS,
    },
    Case {
        id: "clock-skew",
        evidence: "12 ms",
        fires: |runs| trials(runs, |trial| trial.conditions.members = skewed(12.0)),
        silent: |runs| trials(runs, |trial| trial.conditions.members = skewed(9.0)),
    },
    Case {
        id: "start-apart",
        evidence: "4.75 ms, with clocks accurate to ± 0.5 ms",
        fires: |runs| trials(runs, |trial| trial.conditions.members = started(4.75)),
        silent: |runs| trials(runs, |trial| trial.conditions.members = started(4.5)),
    },
    Case {
        id: "generator-lost",
        evidence: "g2: It answers no more.",
        fires: |runs| {
            trials(runs, |trial| {
                trial.conditions.members = skewed(0.0);
                trial.conditions.members[1].lost = Some("It answers no more.".into());
            });
        },
        silent: |runs| trials(runs, |trial| trial.conditions.members = skewed(0.0)),
    },
    Case {
        id: "same-host",
        evidence: "target new: shares the load generator's machine",
        fires: |runs| runs[0].header.targets[1].same_host = true,
        silent: AS_IT_IS,
    },
];

#[test]
fn what_a_machine_sends_to_itself_is_lost_by_no_network() {
    for (nodes, wanted) in [
        (vec![false], true),
        (vec![true], false),
        (vec![true, false], true),
        (vec![true, true], false),
    ] {
        let mut runs = super::quiet();
        generator(&mut runs, |known| known.retransmitted_share = Some(0.05));
        for target in runs.iter_mut().flat_map(|run| &mut run.header.targets) {
            target.same_host = nodes.contains(&true);
            if nodes.len() > 1 {
                let roles = [Role::Primary, Role::ReadOnly].into_iter().zip(&nodes);
                let target_nodes = roles.map(|(role, same_host)| TargetNode {
                    same_host: *same_host,
                    ..TargetNode::new(role.name(), role, target.url.clone())
                });
                target.nodes = target_nodes.collect();
            }
        }
        let paper = dyno_report::Paper::new(&runs, &[]);
        let is_found = !super::check(&paper, "retransmits").lines.is_empty();
        assert_eq!(is_found, wanted, "{nodes:?}");
    }
}

#[test]
fn the_network_of_one_target_is_not_that_of_the_other() {
    let mut runs = super::quiet();
    generator(&mut runs, |known| known.retransmitted_share = Some(0.05));
    runs[0].header.targets[1].same_host = true;
    let candidate = runs[0].header.targets[1].name.clone();
    let paper = dyno_report::Paper::new(&runs, &[]);
    let findings = &super::check(&paper, "retransmits").findings;
    let mut names: Vec<&String> =
        findings.iter().flat_map(|finding| &finding.place.names).collect();
    let other_labels = paper.trials.iter().filter(|trial| trial.summary.target != candidate);
    let mut other_labels: Vec<&String> = other_labels.map(|trial| &trial.label).collect();
    names.sort_unstable();
    other_labels.sort_unstable();
    assert!(!other_labels.is_empty());
    assert_eq!(names, other_labels);
}
