//! The nodes of a target, and how the load reaches them.

use super::*;

const ROLES: [&str; 4] = ["primary", "read_only", "shard", "endpoint"];

/// The place of nodes of a role: the primary first, endpoints last.
pub fn place_of_role(role: &str) -> usize {
    ROLES.iter().position(|known| *known == role).unwrap_or(ROLES.len())
}

/// A role in words.
pub fn node_role(role: &str) -> Message {
    match role {
        "primary" => say!(primary),
        "read_only" => say!(read_only_node),
        "shard" => say!(shard),
        "endpoint" => say!(endpoint),
        other => Message::from(other),
    }
}

/// Describes how the load reaches the nodes of a target, in a sentence.
pub(super) fn route(target: &TargetFacts) -> Option<Message> {
    let words = match target.route {
        Route::Primary => say!(all_load_goes_to_the_primary),
        Route::Endpoint => say!(all_load_goes_through_the_endpoint),
        Route::Split => say!(reads_split_from_writes),
        Route::Spread => say!(all_load_goes_to_the_read),
    };
    (!target.nodes.is_empty()).then_some(words)
}

/// The nodes of a trial by name: those that take writes first, endpoints last.
pub fn nodes_of(trial: &Trial) -> impl Iterator<Item = (&str, &NodeConditions)> {
    let nodes = trial.summary.conditions.nodes.iter();
    let mut nodes: Vec<_> = nodes.map(|(name, node)| (name.as_str(), node)).collect();
    nodes.sort_by_key(|(_, node)| match node.role.as_deref() {
        None | Some("primary") => 0,
        Some("endpoint") => 2,
        Some(_) => 1,
    });
    nodes.into_iter()
}

/// A kind of transactions without BEGIN and COMMIT.
pub fn is_autocommit(kind: &KindSummary) -> bool {
    kind.statements.others.saturating_sub(kind.statements.misses) == 0
}

/// Returns true if the load is nothing but single reads.
fn only_reads(trial: &Trial) -> bool {
    let statements = trial.summary.statements;
    statements.reads > 0 && statements.writes == 0 && trial.summary.kinds.iter().all(is_autocommit)
}

/// Statements that a node executed in this trial instead of others; of a load of single reads in autocommit, commits
/// are that to a server that counts no statements.
pub fn read_counter(trial: &Trial) -> impl Fn(&NodeConditions) -> Option<u64> {
    let commits_are_reads = only_reads(trial);
    move |node| node.reads.or_else(|| node.commits.filter(|_| commits_are_reads))
}

/// Between the first and the last start of a trial's load generators, as their clocks were known.
pub fn start_spread_ms(trial: &Trial) -> Option<f64> {
    let members = trial.summary.conditions.members.iter();
    let late: Vec<f64> = members.filter_map(|member| member.late_ms).collect();
    let first = late.iter().copied().reduce(f64::min)?;
    let last = late.iter().copied().reduce(f64::max)?;
    (late.len() > 1).then_some(last - first)
}

/// Statements of the load generators by the nodes over which their workers were spread. Those with the same nodes
/// are counted together.
pub fn by_nodes(trial: &Trial) -> BTreeMap<&[String], f64> {
    let mut groups: BTreeMap<&[String], f64> = BTreeMap::new();
    for member in trial.summary.conditions.members.iter().filter(|member| !member.nodes.is_empty())
    {
        *groups.entry(&member.nodes).or_default() += member.statements as f64;
    }
    groups
}

/// For load generators that have their own nodes: the largest difference between the share of all reads that the servers
/// of a group of nodes counted and the share that their load generators executed, and the names of these nodes.
pub fn strayed(
    trial: &Trial,
    reads: impl Fn(&NodeConditions) -> Option<u64>,
) -> Option<(f64, String)> {
    let conditions = &trial.summary.conditions;
    let groups = by_nodes(trial);
    if groups.len() < 2 || conditions.members.iter().any(|member| member.lost.is_some()) {
        return None;
    }
    let counts = groups.keys().map(|names| {
        let counts = names.iter().map(|name| conditions.nodes.get(name).and_then(&reads));
        counts.sum::<Option<u64>>().map(|count| count as f64)
    });
    let counts = counts.collect::<Option<Vec<f64>>>()?;
    let (executed, read) = (groups.values().sum::<f64>(), counts.iter().sum::<f64>());
    if executed <= 0.0 || read <= 0.0 {
        return None;
    }
    let differences = groups.iter().zip(&counts).map(|((names, group_executed), group_read)| {
        ((group_read / read - group_executed / executed).abs(), names.join(", "))
    });
    differences.reduce(|a, b| if b.0 > a.0 { b } else { a })
}

/// The result of a target with this number of read-only nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeScaling {
    pub target: String,
    /// The name of the series: the label of the cluster of which the target is a part; for targets that are
    /// separate clusters, the product or the label of the series' first target, and empty if there is
    /// one such series.
    pub cluster: String,
    pub nodes: u32,
    /// Set if the suite states their number (`read_only_nodes`) and does not list them.
    pub is_stated: bool,
    /// Workers of its best load level.
    pub workers: u32,
    pub qps: Spread,
    /// Median statements per second by the number of nodes.
    pub qps_per_node: f64,
    /// Times the throughput of the fewest nodes.
    pub speedup: f64,
    /// Speed-up divided by the growth of the number of nodes; 1 is perfect.
    pub efficiency: f64,
}

/// One row per target, cluster by cluster; empty unless targets differ in their number of nodes.
pub(super) fn scaling_by_nodes(points: &[Point], targets: &[PaperTarget]) -> Vec<NodeScaling> {
    let best_rows = targets.iter().filter_map(|target| {
        let (nodes, is_stated) = read_only_nodes(target)?;
        let usable = points.iter().filter(|point| {
            point.target == target.label && point.status == "complete" && !point.has_fault
        });
        let best = usable.max_by(|a, b| a.qps.median.total_cmp(&b.qps.median))?;
        let row = NodeScaling {
            target: target.label.clone(),
            cluster: String::new(),
            nodes,
            is_stated,
            workers: best.workers,
            qps: best.qps,
            qps_per_node: best.qps.median / f64::from(nodes),
            speedup: 1.0,
            efficiency: 1.0,
        };
        Some((target, row))
    });
    let all_series = group_series(best_rows.collect());
    let mut rows = Vec::new();
    for series in all_series.iter().filter(|series| series[0].1.qps.median > 0.0) {
        let (fewest, base) = (series[0].1.nodes, series[0].1.qps.median);
        rows.extend(series.iter().map(|(_, row)| {
            let speedup = row.qps.median / base;
            let efficiency = speedup / (f64::from(row.nodes) / f64::from(fewest));
            let cluster = series_name(series, &all_series);
            NodeScaling { cluster, speedup, efficiency, ..row.clone() }
        }));
    }
    rows
}

/// Targets with the best that they reached with their number of nodes.
type Series<'a> = Vec<(&'a PaperTarget, NodeScaling)>;

/// Groups what belongs together, fewest nodes first: the parts of a cluster; of targets that are separate clusters,
/// the ones with the same product and class, those of several runs together only if none has a number of nodes that
/// another has too. If a number is present twice, nothing says which target goes with which: they are not a series.
fn group_series(mut best_rows: Series<'_>) -> Vec<Series<'_>> {
    best_rows.sort_by_key(|(_, row)| row.nodes);
    let grouped = format::grouped(best_rows.into_iter().map(|row| {
        let group = match &row.0.part_of {
            Some(whole) => [whole.clone(), String::new(), String::new()],
            None => [String::new(), row.0.product.clone(), row.0.facts.class.clone()],
        };
        (group, row)
    }));
    let mut all_series = Vec::new();
    for (_, rows) in grouped {
        if is_series(&rows) {
            all_series.push(rows);
        } else {
            let by_run = format::grouped(rows.into_iter().map(|row| (row.0.run, row)));
            all_series.extend(by_run.into_iter().map(|(_, rows)| rows));
        }
    }
    all_series.retain(|rows| rows.len() > 1 && is_series(rows));
    all_series
}

/// Returns true if each number of nodes is present once, fewest first.
fn is_series(rows: &Series<'_>) -> bool {
    rows.is_sorted_by(|a, b| a.1.nodes < b.1.nodes)
}

/// The name of a series: its cluster, else its product if there are several, else its first target.
fn series_name(series: &Series<'_>, all_series: &[Series<'_>]) -> String {
    let target = series[0].0;
    let plain = all_series.iter().filter(|series| series[0].0.part_of.is_none());
    let peers = plain.clone().filter(|series| series[0].0.product == target.product).count();
    let plain = plain.count();
    match &target.part_of {
        Some(whole) => whole.clone(),
        None if plain == 1 => String::new(),
        None if peers == 1 => target.product.clone(),
        None => target.label.clone(),
    }
}

/// The number of read-only nodes that a target's load can reach, and whether it is only stated.
fn read_only_nodes(target: &PaperTarget) -> Option<(u32, bool)> {
    if target.facts.nodes.is_empty() {
        let text = target.facts.stated.get("read_only_nodes")?;
        return text.trim().parse::<u32>().ok().filter(|nodes| *nodes > 0).map(|n| (n, true));
    }
    let count = target.facts.nodes.iter().filter(|node| node.role == Role::ReadOnly).count() as u32;
    (count > 0 && target.facts.route != Route::Primary).then_some((count, false))
}

/// Compares the most nodes of each cluster with the fewest, in sentences.
pub fn node_scaling_sentences(experiment: &Experiment) -> Vec<Message> {
    let rows = &experiment.node_scaling;
    let is_single_cluster = rows.iter().all(|row| row.cluster == rows[0].cluster);
    let clusters = rows.chunk_by(|a, b| a.cluster == b.cluster);
    let sentences = clusters.filter_map(|part| {
        let (first, last) = (part.first()?, part.last()?);
        let (title, cluster) = (&experiment.title, &last.cluster);
        let title = if is_single_cluster {
            title.clone()
        } else {
            say!(experiment_cluster, experiment = title, cluster)
        };
        Some(say!(
            executed_times_the_statements_per_second,
            experiment = title,
            most = say!(read_only_node_or_more, n = last.nodes),
            factor = format::plain(last.speedup),
            fewest = first.nodes.to_string(),
            efficiency = format::percent(last.efficiency),
        ))
    });
    sentences.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::tests::trial;
    use dyno_facts::{GeneratorMember, TrialSummary};

    /// Load generators with their nodes and statements; nodes with their reads.
    fn make_trial(members: &[(&str, u64)], nodes: &[(&str, u64)]) -> Trial {
        let mut summary = TrialSummary::default();
        let members = members.iter().map(|(names, statements)| GeneratorMember {
            nodes: names.split_whitespace().map(str::to_owned).collect(),
            statements: *statements,
            ..GeneratorMember::default()
        });
        summary.conditions.members = members.collect();
        let nodes = nodes.iter().map(|(name, reads)| {
            let conditions = NodeConditions { reads: Some(*reads), ..NodeConditions::default() };
            ((*name).to_owned(), conditions)
        });
        summary.conditions.nodes = nodes.collect();
        trial(summary)
    }

    fn find_strayed(members: &[(&str, u64)], nodes: &[(&str, u64)]) -> Option<(f64, String)> {
        strayed(&make_trial(members, nodes), |node| node.reads)
    }

    #[test]
    fn reads_stray_by_their_share_of_all() {
        let members = [("a", 60), ("a", 20), ("b c", 20), ("", 99)];
        let even =
            find_strayed(&members, &[("a", 800), ("b", 150), ("c", 50)]).expect("two groups");
        assert!(even.0.abs() < 1e-12, "{even:?}");
        let (share, names) =
            find_strayed(&members, &[("a", 500), ("b", 100), ("c", 400)]).expect("two groups");
        assert!((share - 0.3).abs() < 1e-12 && names == "a", "{share} {names}");
        let three = [("a", 50), ("b", 25), ("c", 25)];
        let (share, names) =
            find_strayed(&three, &[("a", 50), ("b", 0), ("c", 50)]).expect("three groups");
        assert!((share - 0.25).abs() < 1e-12 && names == "b", "{share} {names}");
        assert_eq!(find_strayed(&[("a", 60)], &[("a", 1)]), None, "one group");
        assert_eq!(find_strayed(&members, &[("a", 1), ("b", 1)]), None, "a node says nothing");
        assert_eq!(find_strayed(&members, &[("a", 0), ("b", 0), ("c", 0)]), None);
        assert_eq!(find_strayed(&[("a", 0), ("b", 0)], &[("a", 1), ("b", 1)]), None);
        let mut trial = make_trial(&members, &[("a", 1), ("b", 1), ("c", 1)]);
        trial.summary.conditions.members[0].lost = Some("gone".into());
        assert_eq!(strayed(&trial, |node| node.reads), None);
    }

    #[test]
    fn statements_of_the_same_nodes_are_counted_together() {
        let trial = make_trial(&[("a", 60), ("b c", 20), ("a", 5), ("", 99)], &[]);
        let groups = by_nodes(&trial);
        let result: Vec<(usize, f64)> = groups.iter().map(|(names, n)| (names.len(), *n)).collect();
        assert_eq!(result, [(1, 65.0), (2, 20.0)]);
    }

    fn make_target(label: &str, run: usize, product: &str, part_of: Option<&str>) -> PaperTarget {
        PaperTarget {
            label: label.to_owned(),
            run,
            facts: TargetFacts::default(),
            product: product.to_owned(),
            route_words: None,
            part_of: part_of.map(str::to_owned),
            settings: Vec::new(),
            all_settings: BTreeMap::new(),
            schema: BTreeMap::new(),
            not_readable: Vec::new(),
        }
    }

    fn make_row(target: &PaperTarget, nodes: u32) -> (&PaperTarget, NodeScaling) {
        let row = NodeScaling {
            target: target.label.clone(),
            cluster: String::new(),
            nodes,
            is_stated: false,
            workers: 8,
            qps: Spread::default(),
            qps_per_node: 1.0,
            speedup: 1.0,
            efficiency: 1.0,
        };
        (target, row)
    }

    fn expected_series(name: &str, nodes: &[u32]) -> (String, Vec<u32>) {
        (name.to_owned(), nodes.to_vec())
    }

    #[test]
    fn targets_of_a_series_have_each_number_of_nodes_once() {
        let targets = [
            make_target("a", 1, "M", None),
            make_target("b", 1, "M", None),
            make_target("c", 1, "P", None),
            make_target("d", 2, "M", None),
            make_target("e", 1, "M", Some("whole")),
            make_target("f", 1, "M", Some("whole")),
        ];
        let find_series = |numbers: [u32; 6]| -> Vec<(String, Vec<u32>)> {
            let rows = targets.iter().zip(numbers).filter(|(_, nodes)| *nodes > 0);
            let all_series =
                group_series(rows.map(|(target, nodes)| make_row(target, nodes)).collect());
            let named_series = all_series.iter().map(|series| {
                let nodes = series.iter().map(|(_, row)| row.nodes).collect();
                (series_name(series, &all_series), nodes)
            });
            named_series.collect()
        };
        assert_eq!(find_series([4, 2, 0, 0, 0, 0]), [expected_series("", &[2, 4])]);
        assert_eq!(find_series([2, 0, 4, 0, 0, 0]), [], "another product");
        assert_eq!(find_series([1, 2, 0, 3, 0, 0]), [expected_series("", &[1, 2, 3])], "two runs");
        assert_eq!(
            find_series([1, 2, 0, 2, 0, 0]),
            [expected_series("", &[1, 2])],
            "each run by itself"
        );
        assert_eq!(find_series([2, 2, 0, 0, 0, 0]), [], "which goes with which?");
        assert_eq!(find_series([0, 0, 0, 0, 1, 3]), [expected_series("whole", &[1, 3])]);
        let two_series = [expected_series("", &[1, 2]), expected_series("whole", &[1, 3])];
        assert_eq!(find_series([1, 2, 0, 0, 1, 3]), two_series);
    }

    #[test]
    fn series_are_named_by_what_tells_them_apart() {
        let targets = [
            make_target("a", 1, "M", None),
            make_target("b", 1, "M", None),
            make_target("c", 1, "P", None),
            make_target("d", 1, "P", None),
        ];
        let make_series =
            |first: usize| vec![make_row(&targets[first], 1), make_row(&targets[first + 1], 2)];
        let products = [make_series(0), make_series(2)];
        assert_eq!(products.each_ref().map(|series| series_name(series, &products)), ["M", "P"]);
        let alike = [make_series(0), make_series(0)];
        assert_eq!(series_name(&alike[0], &alike), "a");
    }
}
