//! G: arithmetic. Figures that can't all be right together.

use super::*;

/// Amount by which workers times time may differ from the sum of latencies, as a share.
const LITTLE: f64 = 0.05;
/// Amount by which the server's commits may differ from the client's, and how many a reader of its
/// counters makes in any case.
const COMMITS: f64 = 0.01;
const COMMITS_OF_OTHERS: f64 = 100.0;
/// Transactions in other databases that a server may make, by commits of the client and in a second: autovacuum begins
/// a worker for each database in every round, and agents of managed services look at all of them.
const ELSEWHERE: f64 = 0.05;
const ELSEWHERE_PER_S: f64 = 5.0;
/// The share of the window that all load generators have to cover together.
const OVERLAP: f64 = 0.95;

pub(super) const RULES: &[Rule] = &[
    Rule::trial(Group::G, Level::E, checks::adds_up, |trial| {
        let counts = trial.summary.counts;
        let ended = counts.ended() + trial.summary.in_flight;
        (!trial.adds_up).then(|| say!(transactions_unaccounted, started = counts.started, ended))
    }),
    // Workers can't be inside transactions for longer than there is time; outside of them they may be with reason.
    Rule::trial(Group::G, Level::E, checks::littles_law, |trial| {
        share_inside(trial, |share, blur| share - blur > 1.0 + LITTLE)
    }),
    Rule::trial(Group::G, Level::W, checks::idle_workers, |trial| {
        share_inside(trial, |share, blur| share + blur < 1.0 - LITTLE)
    }),
    Rule::trial_of_case(Group::G, Level::E, checks::commits_missing, |case, trial| {
        // A script of the user's may commit and roll back as it likes: its commits are not known.
        let is_known = !has_unknown_statements(case.experiment(trial)?);
        is_known.then(|| {
            server_commits(trial, |server, client, preparing| client - server - preparing)
        })?
    }),
    Rule::trial(Group::G, Level::E, checks::rolled_back, |trial| {
        // A server that went away rolls back what was open.
        let summary = (trial.summary.fault.is_none()).then_some(&trial.summary)?;
        let (n, committed) = (summary.conditions.unknown_rollbacks?, summary.counts.committed);
        let allowed = (COMMITS * committed as f64).max(COMMITS_OF_OTHERS);
        (n as f64 > allowed).then(|| say!(rolled_back_by_the_server, n, committed))
    }),
    Rule::case(Group::G, Level::W, checks::foreign_load, |case| {
        case.evidence.trials.iter().filter_map(foreign_load).collect()
    }),
    Rule::run(Group::G, Level::W, checks::shared_target, |run| {
        let shared = run.header.shared.iter();
        parts(shared.map(|(target, user)| say!(node_value, node = target, value = user)))
    }),
    Rule::trial(Group::G, Level::E, checks::generators_sum, |trial| {
        let members = &trial.summary.conditions.members;
        let sum: u64 = members.iter().map(|member| member.committed).sum();
        let committed = trial.summary.counts.committed;
        (!members.is_empty() && sum != committed)
            .then(|| say!(together_in_the_trial, sum, committed))
    }),
    Rule::trial(Group::G, Level::E, checks::windows_overlap, short_overlap),
];

/// The share of their time that workers spent inside transactions, by the sum of latencies, if it `is_unlikely`. Blur:
/// at either end of a window, or of a stage, each worker has a transaction that reaches beyond, perhaps the longest.
/// `None` if workers may have nothing to do, or left with a load generator.
fn share_inside(trial: &Trial, is_unlikely: fn(f64, f64) -> bool) -> Option<Message> {
    let summary = &trial.summary;
    let family = KnownFamily::from_summary(summary);
    let is_idle = family.is_some_and(|family| family.is_pass() || family.is_paced(summary));
    let is_lost = summary.conditions.members.iter().any(|member| member.lost.is_some());
    if is_idle
        || is_lost
        || summary.rate_per_s.is_some()
        || summary.window_s <= 0.0
        || summary.latency.count == 0
    {
        return None;
    }
    let workers_s = summary.window_s * f64::from(summary.workers.max(1));
    let share = summary.latency.sum_us / 1e6 / workers_s;
    let windows = summary.stages.len().max(1) as f64;
    let blur = windows * summary.latency.max_us / 1e6 / summary.window_s;
    is_unlikely(share, blur).then(|| say!(share_inside_transactions, share = percent(share)))
}

/// Findings for each node that was compared by itself, or for all together.
fn server_commits(trial: &Trial, difference: fn(f64, f64, f64) -> f64) -> Option<Message> {
    // A server that was restarted counts from 0; `lost-acknowledged` reports what is lost.
    if trial.summary.fault.is_some() {
        return None;
    }
    // Transactions in flight may have committed, or failed.
    let open = trial.summary.in_flight;
    match &trial.summary.conditions.together {
        Some(nodes) => {
            let preparing = nodes.preparing_commits + open;
            compare_commits([nodes.commits?, nodes.client_commits?, preparing], difference)
        }
        None => each_node(trial, |node| {
            let preparing = node.preparing_commits + open;
            compare_commits([node.commits?, node.client_commits?, preparing], difference)
        }),
    }
}

/// Commits by the server, by its clients, and by these while they prepared, if the `difference` is above what is
/// allowed.
fn compare_commits(counts: [u64; 3], difference: fn(f64, f64, f64) -> f64) -> Option<Message> {
    let [server, client, preparing] = counts;
    let allowed = (COMMITS * client as f64).max(COMMITS_OF_OTHERS);
    (difference(server as f64, client as f64, preparing as f64) > allowed)
        .then(|| say!(by_the_server_by_the_client, server, client))
}

/// An endpoint may end transactions on more nodes than one. If dyno was alone, commits are the server's own, and so are
/// those of autovacuum, several for each table.
fn may_be_foreign(trial: &Trial) -> bool {
    let conditions = &trial.summary.conditions;
    let mut work = conditions.nodes.values().flat_map(|node| &node.background);
    let may_be_own = work.any(|work| work.starts_with("autovacuum"));
    match &conditions.together {
        Some(together) => !together.through_endpoint && !may_be_own,
        None => conditions.nodes.values().any(|node| !node.was_alone && !may_be_own),
    }
}

fn foreign_commits(server: f64, client: f64, preparing: f64) -> f64 {
    server - client - preparing
}

/// Found with how far it reaches: the processes of a server work for all its clients.
fn foreign_load(trial: &Trial) -> Option<Finding> {
    let in_database =
        may_be_foreign(trial).then(|| server_commits(trial, foreign_commits)).flatten();
    let elsewhere = count_elsewhere(trial).filter(|count| *count > 0);
    // Only PostgreSQL counts by database, and has parallel workers that commit.
    let mut nodes = trial.summary.conditions.nodes.values();
    let may_be_own = nodes.any(|node| node.transactions_elsewhere.is_some());
    let is_certain = elsewhere.is_some() || !may_be_own;
    let elsewhere = elsewhere.map(|count| say!(in_other_databases, n = count));
    let value = parts(in_database.into_iter().chain(elsewhere))?;
    let reach = if is_certain { VetoReach::Costs } else { VetoReach::default() };
    Some(Finding { reach, ..Finding::new(SpotKind::Trial.at(&trial.label), value) })
}

/// Transactions in other databases of the servers: 0 if they are as few as may be, `None` if no server tells.
fn count_elsewhere(trial: &Trial) -> Option<u64> {
    let nodes = trial.summary.conditions.nodes.values();
    let counts = nodes.filter_map(|node| {
        let seconds = node.elsewhere_s.unwrap_or(trial.summary.window_s);
        Some((node.transactions_elsewhere?, seconds))
    });
    let (count, seconds) = counts.reduce(|a, b| (a.0 + b.0, a.1 + b.1))?;
    let allowed = (ELSEWHERE * client_commits(trial) as f64).max(COMMITS_OF_OTHERS);
    let allowed = allowed.max(ELSEWHERE_PER_S * seconds);
    Some(if count as f64 > allowed { count } else { 0 })
}

/// Transactions in other databases by commits of the client, likewise.
pub(super) fn share_elsewhere(trial: &Trial) -> Option<f64> {
    Some(count_elsewhere(trial)? as f64 / client_commits(trial).max(1) as f64)
}

/// The client's commits from look to look, as transactions elsewhere are counted; those of the window if these are
/// unknown.
fn client_commits(trial: &Trial) -> u64 {
    let conditions = &trial.summary.conditions;
    let commits = match &conditions.together {
        Some(nodes) => nodes.client_commits,
        None => conditions.nodes.values().find_map(|node| node.client_commits),
    };
    commits.unwrap_or(trial.summary.counts.committed)
}

/// Commits of others in the measured database by those of the client: 0 if they are as few as may be, `None` where
/// they aren't known.
pub(super) fn share_in_database(trial: &Trial) -> Option<f64> {
    let conditions = &trial.summary.conditions;
    let counts: Vec<[u64; 3]> = match &conditions.together {
        Some(nodes) => vec![[nodes.commits?, nodes.client_commits?, nodes.preparing_commits]],
        None => {
            let counts = conditions.nodes.values().filter_map(|node| {
                Some([node.commits?, node.client_commits?, node.preparing_commits])
            });
            counts.collect()
        }
    };
    let [server, client, preparing] =
        counts.into_iter().reduce(|a, b| [a[0] + b[0], a[1] + b[1], a[2] + b[2]])?;
    let is_found = may_be_foreign(trial) && server_commits(trial, foreign_commits).is_some();
    let foreign = foreign_commits(server as f64, client as f64, preparing as f64);
    Some(if is_found { foreign.max(1.0) / client.max(1) as f64 } else { 0.0 })
}

fn short_overlap(trial: &Trial) -> Option<Message> {
    let members = &trial.summary.conditions.members;
    let window_s = Some(trial.summary.window_s).filter(|window_s| *window_s > 0.0)?;
    parts(members.iter().filter_map(|member| {
        let covered_s = member.to_s.min(window_s) - member.from_s.max(0.0);
        let share = covered_s.max(0.0) / window_s;
        (share < OVERLAP).then(|| say!(node_value, node = &member.name, value = percent(share)))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::tests::trial;
    use dyno_facts::{Counts, LatencySummary, StageFacts, Together, TrialSummary};

    fn make_node(commits: u64, client: u64, preparing_commits: u64) -> NodeConditions {
        let (commits, client_commits) = (Some(commits), Some(client));
        NodeConditions { commits, client_commits, preparing_commits, ..NodeConditions::default() }
    }

    /// A trial on these nodes.
    fn trial_on(nodes: &[NodeConditions]) -> Trial {
        let mut summary = TrialSummary { window_s: 10.0, ..TrialSummary::default() };
        let names = ["a", "b", "c"].map(str::to_owned);
        summary.conditions.nodes = names.into_iter().zip(nodes.iter().cloned()).collect();
        trial(summary)
    }

    fn foreign_share(nodes: &[NodeConditions]) -> Option<f64> {
        share_in_database(&trial_on(nodes))
    }

    #[test]
    fn commits_of_others_are_those_beyond_the_clients_and_what_is_allowed() {
        assert_eq!(foreign_share(&[make_node(2_000, 1_000, 500)]), Some(0.5));
        assert_eq!(foreign_share(&[make_node(1_600, 1_000, 500)]), Some(0.0), "a hundred may be");
        assert_eq!(
            foreign_share(&[make_node(101_000, 100_000, 0)]),
            Some(0.0),
            "one of a hundred may be"
        );
        assert_eq!(foreign_share(&[make_node(900, 1_000, 0)]), Some(0.0));
        assert_eq!(
            foreign_share(&[make_node(2_000, 1_000, 300), make_node(3_000, 1_000, 200)]),
            Some(1.25)
        );
        assert_eq!(
            foreign_share(&[make_node(2_000, 1_000, 2), make_node(3_000, 1_000, 3)]),
            Some(2_995.0 / 2_000.0)
        );
        assert_eq!(foreign_share(&[NodeConditions::default()]), None);
        let alone = NodeConditions { was_alone: true, ..make_node(2_000, 1_000, 500) };
        assert_eq!(foreign_share(&[alone]), Some(0.0));
        let background = vec!["autovacuum worker".to_owned()];
        let busy = NodeConditions { background, ..make_node(2_000, 1_000, 500) };
        assert_eq!(foreign_share(&[busy]), Some(0.0), "they may be its own");
    }

    #[test]
    fn what_nodes_counted_together_counts() {
        let mut trial = trial_on(&[make_node(1, 1, 0)]);
        trial.summary.conditions.together = Some(Together {
            commits: Some(2_000),
            client_commits: Some(1_000),
            preparing_commits: 500,
            through_endpoint: false,
        });
        assert_eq!(share_in_database(&trial), Some(0.5));
        trial.summary.in_flight = 450;
        assert_eq!(share_in_database(&trial), Some(0.0), "what is in flight may have committed");
        trial.summary.in_flight = 0;
        let together = trial.summary.conditions.together.as_mut().expect("set above");
        together.through_endpoint = true;
        assert_eq!(share_in_database(&trial), Some(0.0), "an endpoint may make its own commits");
    }

    fn elsewhere_share(elsewhere: &[u64], committed: u64, elsewhere_s: Option<f64>) -> Option<f64> {
        let nodes = elsewhere.iter().map(|count| NodeConditions {
            transactions_elsewhere: Some(*count),
            elsewhere_s,
            ..NodeConditions::default()
        });
        let mut trial = trial_on(&nodes.collect::<Vec<_>>());
        trial.summary.counts = Counts { committed, ..Counts::default() };
        share_elsewhere(&trial)
    }

    #[test]
    fn transactions_elsewhere_are_allowed_by_share_and_by_time() {
        assert_eq!(elsewhere_share(&[100], 1_000, None), Some(0.0), "a hundred may be");
        assert_eq!(elsewhere_share(&[101], 1_000, None), Some(0.101));
        assert_eq!(elsewhere_share(&[60, 61], 1_000, None), Some(0.121));
        assert_eq!(elsewhere_share(&[499], 10_000, None), Some(0.0), "five of a hundred may be");
        assert_eq!(elsewhere_share(&[501], 10_000, None), Some(0.0501));
        assert_eq!(elsewhere_share(&[200], 1_000, Some(40.0)), Some(0.0), "five a second may be");
        assert_eq!(elsewhere_share(&[150, 150], 1_000, Some(40.0)), Some(0.0));
        assert_eq!(elsewhere_share(&[401], 1_000, Some(80.0)), Some(0.401));
        assert_eq!(elsewhere_share(&[], 1_000, None), None);
    }

    fn is_inside(latency_s: f64, longest_s: f64, change: fn(&mut TrialSummary)) -> bool {
        let latency = LatencySummary {
            count: 7,
            sum_us: latency_s * 1e6,
            max_us: longest_s * 1e6,
            ..LatencySummary::default()
        };
        let mut summary = TrialSummary { latency, window_s: 10.0, ..TrialSummary::default() };
        summary.identity.workers = 4;
        change(&mut summary);
        let is_wanted: fn(f64, f64) -> bool =
            |share, blur| (share - 0.5).abs() < 1e-9 && (blur - 0.2).abs() < 1e-9;
        share_inside(&trial(summary), is_wanted).is_some()
    }

    #[test]
    fn workers_are_inside_transactions_for_as_long_as_there_is_time() {
        assert!(is_inside(20.0, 2.0, |_| {}));
        assert!(!is_inside(10.0, 2.0, |_| {}) && !is_inside(20.0, 1.0, |_| {}));
        assert!(is_inside(20.0, 1.0, |summary| summary.stages = vec![StageFacts::default(); 2]));
        assert!(!is_inside(20.0, 2.0, |summary| summary.identity.rate_per_s = Some(5.0)));
        assert!(!is_inside(20.0, 2.0, |summary| summary.latency.count = 0));
        assert!(!is_inside(20.0, 2.0, |summary| summary.window_s = 0.0));
        assert!(!is_inside(20.0, 2.0, |summary| summary
            .conditions
            .members
            .push(GeneratorMember { lost: Some("gone".into()), ..GeneratorMember::default() })));
    }

    fn is_short(from_s: f64, to_s: f64) -> bool {
        let mut trial = trial_on(&[]);
        let member = GeneratorMember { from_s, to_s, ..GeneratorMember::default() };
        trial.summary.conditions.members = vec![member];
        short_overlap(&trial).is_some()
    }

    #[test]
    fn load_generators_cover_the_window() {
        assert!(!is_short(0.0, 10.0) && !is_short(-1.0, 12.0) && !is_short(0.25, 9.75));
        assert!(is_short(0.0, 9.4) && is_short(0.6, 10.0) && is_short(0.3, 9.7));
        assert!(is_short(11.0, 12.0), "it came too late");
    }
}
