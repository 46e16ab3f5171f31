//! A run on clusters: one that grows, one whose reads dyno splits from its writes, one of shards.

use super::{Shape, experiment, header, trial};
use dyno_facts::{
    Environment, FleetMember, Freshness, GeneratorMember, HostSample, NodeConditions, Role, Route,
    SecretUrl, TargetFacts, TargetNode, TrialSummary,
};
use dyno_store::{RunData, TrialData};
use std::path::PathBuf;

/// A node of a target, at this place.
fn node(name: &str, role: Role, place: usize) -> TargetNode {
    TargetNode {
        name: name.to_owned(),
        role,
        url: SecretUrl::new(format!("mysql://dyno@10.0.1.{place}:3306/dyno")),
        product: "MariaDB".to_owned(),
        version: "10.11.6-MariaDB".to_owned(),
        ..TargetNode::default()
    }
}

/// A target with nodes of these roles.
fn target(name: &str, route: Route, roles: &[(&str, Role)]) -> TargetFacts {
    let nodes: Vec<TargetNode> = roles
        .iter()
        .enumerate()
        .map(|(place, (name, role))| node(name, *role, place + 1))
        .collect();
    TargetFacts {
        name: name.to_owned(),
        url: nodes[0].url.clone(),
        nodes,
        route,
        product: "MariaDB".to_owned(),
        version: "10.11.6-MariaDB".to_owned(),
        ..TargetFacts::default()
    }
}

const GROWING: [(&str, Role); 5] = [
    ("n1", Role::Primary),
    ("n2", Role::ReadOnly),
    ("n3", Role::ReadOnly),
    ("n4", Role::ReadOnly),
    ("n5", Role::ReadOnly),
];

/// All targets of the run.
fn targets() -> Vec<TargetFacts> {
    let [one, two, four] = [1, 2, 4].map(|read_only: usize| TargetFacts {
        part_of: Some("cluster".to_owned()),
        ..target(&format!("cluster-ro{read_only}"), Route::Spread, &GROWING[..=read_only])
    });
    vec![
        target("cluster", Route::Spread, &GROWING),
        one,
        two,
        four,
        target("pair", Route::Split, &GROWING[..3]),
        target(
            "sharded",
            Route::Endpoint,
            &[
                ("front", Role::Endpoint),
                ("s1", Role::Shard),
                ("s2", Role::Shard),
                ("s3", Role::Shard),
            ],
        ),
    ]
}

/// The counts of a node for a trial's statements.
fn conditions(role: &str, data: &TrialData, reads: f64, writes: f64) -> NodeConditions {
    let total = data.summary.statements.reads as f64;
    let is_copy = role == "read_only";
    let (reads, writes) = ((total * reads) as u64, (total * writes) as u64);
    let is_counted = role != "endpoint";
    NodeConditions {
        role: Some(role.to_owned()),
        reads: is_counted.then_some(reads),
        writes: is_counted.then_some(writes),
        statements: is_counted.then_some(reads + writes + 100),
        commits: is_counted.then_some(writes / 4),
        cpu_share: Some(0.4 + writes as f64 / total / 2.0),
        lag_p95_s: is_copy.then_some(0.02),
        lag_max_s: is_copy.then_some(0.75),
        ..NodeConditions::default()
    }
}

/// Adds to a trial what its nodes counted.
fn nodes(target: &TargetFacts, data: &mut TrialData) {
    let reading = target
        .nodes
        .iter()
        .filter(|node| node.role != Role::Primary && node.role != Role::Endpoint);
    let reading = reading.count() as f64;
    for node in &target.nodes {
        let (reads, writes) = match (node.role.name(), target.route.name()) {
            ("primary", "split") => (0.1, 0.3),
            ("read_only", "split") => (0.9 / reading, 0.0),
            ("primary" | "endpoint", _) => (0.0, 0.0),
            ("shard", _) => (1.0 / reading, 0.25 / reading),
            _ => (1.0 / reading, 0.0),
        };
        let conditions = conditions(node.role.name(), data, reads, writes);
        data.summary.conditions.nodes.insert(node.name.clone(), conditions);
    }
}

/// Two load generators that did a quarter and the rest.
fn members(summary: &TrialSummary) -> Vec<GeneratorMember> {
    let [committed, statements] = [summary.counts.committed, summary.statements.total()]
        .map(|count| [count / 4, count - count / 4]);
    let members = [0, 1].map(|at: usize| GeneratorMember {
        name: format!("load-{}", at + 1),
        host: format!("load-{} (10.0.0.{})", at + 1, at + 11),
        workers: [16, 48][at],
        committed: committed[at],
        statements: statements[at],
        latency: Some(summary.latency),
        late_ms: Some([0.25, 1.75][at]),
        clock_bound_ms: Some(0.125),
        clock_skew_ms: Some([0.0, -3.5][at]),
        cpu_s: Some([2.0, 6.5][at]),
        host_load: Some(HostSample { cpu_share: [0.125, 0.375][at], ..HostSample::default() }),
        conditions: summary.conditions.generator.clone(),
        to_s: summary.window_s,
        ..GeneratorMember::default()
    });
    members.into()
}

/// The run, with two load generators in one of its experiments.
pub(crate) fn cluster() -> RunData {
    let targets = targets();
    let mut trials = Vec::new();
    let mut add =
        |experiment: &str, target: &TargetFacts, workers: u32, repeat: u32, speed: f64| {
            let number = trials.len() as u32 + 1;
            let shape = Shape {
                experiment,
                target: &target.name,
                workers,
                repeat,
                rate_per_s: None,
                speed,
                seconds: 20,
                away_at: None,
            };
            let mut data = trial(number, &shape);
            nodes(target, &mut data);
            if experiment == "both" {
                data.summary.conditions.freshness = Some(Freshness {
                    asked: 40,
                    stale: 1,
                    asked_other: 40,
                    stale_other: 3,
                    stale_max_ms: Some(12.5),
                    unplaced: 0,
                });
            }
            if experiment == "both" {
                data.summary.conditions.members = members(&data.summary);
            }
            trials.push(data);
        };
    for repeat in 1..=2 {
        for (place, speed) in [(1, 1.0), (2, 1.94), (3, 3.6)] {
            add("read_only", &targets[place], 64, repeat, speed);
        }
        add("both", &targets[4], 64, repeat, 0.8);
        add("both", &targets[5], 64, repeat, 0.5);
    }
    add("both", &targets[4], 8, 1, 0.8);
    let fleet = ["load-1", "load-2"].map(|name| FleetMember {
        name: name.to_owned(),
        environment: Environment {
            host: name.to_owned(),
            cores: 32,
            memory_mib: 65_536.0,
            ..Environment::default()
        },
    });
    let mut header = header(&[]);
    header.targets = targets;
    header.fleet = fleet.into();
    header.title = "Clusters that were made up".to_owned();
    header.experiments = vec![
        experiment("read_only", "Read only", "sysbench oltp_read_only"),
        experiment("both", "Read and write", "sysbench oltp_read_write"),
    ];
    RunData {
        path: PathBuf::from("dyno-runs/2026-11-22T131030Z-clusters"),
        header,
        trials,
        events: Vec::new(),
        is_growing: false,
        warnings: Vec::new(),
    }
}
