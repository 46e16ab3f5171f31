//! `read_only = [1, 2, 4]`: one cluster, driven on the first one, two and four of its read-only nodes.
//!
//! A number of nodes is a target like any other: `NAME-ro2` is the same cluster with its first two
//! read-only nodes, reached by itself (`TargetFacts::reached_as`), while its data belong to NAME
//! (`TargetFacts::owner`), which loads and removes them once. So trials are interleaved, and figures and
//! verdicts need no further dimension.

use dyno_facts::{ExperimentFacts, Message, Role, Route, TargetFacts, say};

use crate::problem::{Problem, Source, SuiteError};
use crate::suite::{SuiteExperiment, WithSpan};
use crate::targets::part;

/// Replaces the experiment's targets by parts of them, one for each number of read-only nodes that the
/// target has. A target that is a single address stays as it is: what stands behind it is not known.
///
/// # Errors
/// The load does not go to the read-only nodes, so their number would change nothing.
pub(crate) fn plan(
    source: &Source,
    experiment: &SuiteExperiment,
    planned: &mut ExperimentFacts,
    targets: &mut Vec<TargetFacts>,
    notes: &mut Vec<Message>,
) -> Result<(), SuiteError> {
    let Some(first) = experiment.read_only.first() else { return Ok(()) };
    for name in std::mem::take(&mut planned.targets) {
        let Some(whole) = targets.iter().find(|target| target.name == name).cloned() else {
            continue;
        };
        if whole.nodes.is_empty() {
            notes.push(say!(one_address, target = &name, name = &planned.name));
            planned.targets.push(name);
            continue;
        }
        if !matches!(whole.route, Route::Split | Route::Spread) {
            return Err(not_spread(source, experiment, &whole, first));
        }
        for nodes in chosen(experiment, &whole, notes) {
            let part = part(&whole, nodes);
            planned.targets.push(part.name.clone());
            if !targets.iter().any(|target| target.name == part.name) {
                let own = |target: &TargetFacts| target.owner() == name;
                let at = targets.iter().rposition(own).map_or(targets.len(), |at| at + 1);
                targets.insert(at, part);
            }
        }
    }
    Ok(())
}

/// The numbers that the target has nodes for; all of its nodes where it has fewer than the least.
fn chosen(experiment: &SuiteExperiment, whole: &TargetFacts, notes: &mut Vec<Message>) -> Vec<u32> {
    let most = whole.nodes.iter().filter(|node| node.role == Role::ReadOnly).count() as u32;
    let wanted = || experiment.read_only.iter().map(|nodes| nodes.value);
    let mut kept: Vec<u32> =
        wanted().filter(|nodes| *nodes <= u64::from(most)).map(|nodes| nodes as u32).collect();
    let left_out: Vec<String> =
        wanted().filter(|nodes| *nodes > u64::from(most)).map(|nodes| nodes.to_string()).collect();
    if kept.is_empty() {
        kept.push(most);
    }
    if !left_out.is_empty() {
        notes.push(say!(
            too_few_read_only_nodes,
            target = &whole.name,
            n = most,
            name = &experiment.name.value,
            numbers = left_out.join(", "),
        ));
    }
    kept
}

fn not_spread(
    source: &Source,
    experiment: &SuiteExperiment,
    target: &TargetFacts,
    first: &WithSpan<u64>,
) -> SuiteError {
    let message = format!(
        "`read_only` of the experiment `{}` chooses among the read-only nodes of `{}`, but the load \
         goes to its {}.",
        experiment.name.value,
        target.name,
        target.route.name()
    );
    let hint = "Write `route = \"spread\"` or `route = \"split\"` in the target's table, or leave \
                `read_only` out.";
    Problem::new(message).hint(hint).at(source, &first.span).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Overrides, Plan};
    use crate::steps::expand;
    use crate::suite::Suite;
    use crate::targets::{redirect, redirect_to_nodes};
    use dyno_core::offer::{UsualPace, WorkloadOffer};

    use dyno_facts::{SecretUrl, StepAction, TargetNode};

    const OFFERS: &[WorkloadOffer] = &[dyno_sysbench::OFFER];
    const SUITE: &str = "
        [suite]
        name = 'growing'
        [target.cluster]
        url = 'mysql://u@h/d'
        [[experiment]]
        name = 'read'
        workload = 'sysbench'
        test = 'oltp_read_only'
        workers = 4
        duration_s = 1
        read_only = [1, 2, 4]
    ";

    fn node(name: &str, role: Role) -> TargetNode {
        TargetNode::new(name, role, SecretUrl::new(format!("mysql://u@{name}/d")))
    }

    struct Planned {
        targets: Vec<TargetFacts>,
        experiment: ExperimentFacts,
        notes: Vec<Message>,
    }

    fn planned(route: Route, read_only: usize) -> Result<Planned, SuiteError> {
        let suite = Suite::parse("growing.toml", SUITE, OFFERS).expect("a suite");
        let plan = Plan::build(&suite, &Overrides::default()).expect("a plan");
        let (mut targets, mut experiment) = (plan.targets, plan.experiments[0].clone());
        let mut notes = Vec::new();
        targets[0].route = route;
        targets[0].nodes = vec![node("endpoint", Role::Endpoint), node("n1", Role::Primary)];
        let names: Vec<String> = (2..2 + read_only).map(|number| format!("n{number}")).collect();
        targets[0].nodes.extend(names.iter().map(|name| node(name, Role::ReadOnly)));
        let written = &suite.experiments[0];
        super::plan(&suite.text, written, &mut experiment, &mut targets, &mut notes)?;
        Ok(Planned { targets, experiment, notes })
    }

    #[test]
    fn parts_have_the_first_nodes_and_share_the_data() {
        let planned = planned(Route::Spread, 4).expect("planned");
        assert_eq!(planned.experiment.targets, ["cluster-ro1", "cluster-ro2", "cluster-ro4"]);
        assert_eq!(planned.notes, Vec::<Message>::new());
        let names: Vec<&str> = planned.targets.iter().map(|target| target.name.as_str()).collect();
        assert_eq!(names, ["cluster", "cluster-ro1", "cluster-ro2", "cluster-ro4"]);
        let two = &planned.targets[2];
        let nodes: Vec<&str> = two.nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(nodes, ["n1", "n2", "n3"], "the endpoint would reach the others");
        assert_eq!((two.owner(), two.reached_as()), ("cluster", "cluster-ro2"));
        assert_eq!(two.password_variable(), "DYNO_PASSWORD_CLUSTER");

        let owner = |name: &str| {
            let target = planned.targets.iter().find(|target| target.name == name);
            target.expect("a target").owner().to_owned()
        };
        let steps = expand(&planned.experiment, |_| UsualPace::loading(1e5), 1, owner);
        let of = |wanted: &StepAction| -> Vec<&str> {
            let own = steps.iter().filter(|step| step.action == *wanted);
            own.map(|step| step.target.as_str()).collect()
        };
        assert_eq!(
            (of(&StepAction::Prepare), of(&StepAction::Cleanup)),
            (vec!["cluster"], vec!["cluster"])
        );
        let trials = steps.iter().filter_map(|step| match &step.action {
            StepAction::Trial(trial) => Some((step.target.as_str(), trial.seed)),
            _ => None,
        });
        let trials: Vec<(&str, u64)> = trials.collect();
        assert_eq!(trials.len(), 3);
        assert!(trials.iter().all(|(_, seed)| *seed == trials[0].1), "all get the same work");
    }

    #[test]
    fn a_part_has_as_many_nodes_as_its_name_says_wherever_it_goes() {
        let planned = planned(Route::Spread, 4).expect("planned");
        let mut two = planned.targets[2].clone();
        let url = SecretUrl::new("mysql://u@h/d");
        let error = redirect(&mut two, &url).expect_err("refused").to_string();
        assert!(error.contains("drives 2 read-only nodes of `cluster`"), "{error}");
        let others = |count| -> Vec<TargetNode> {
            (0..count).map(|number| node(&format!("m{number}"), Role::ReadOnly)).collect()
        };
        let error = redirect_to_nodes(&mut two, &others(1)).expect_err("refused").to_string();
        assert!(error.contains("a cluster with 1"), "{error}");
        redirect_to_nodes(&mut two, &others(3)).expect("there are enough");
        assert_eq!(two.nodes, others(2));
    }

    #[test]
    fn what_a_cluster_has_not_is_left_out_and_told() {
        let few = planned(Route::Split, 2).expect("planned");
        assert_eq!(few.experiment.targets, ["cluster-ro1", "cluster-ro2"]);
        assert_eq!(
            few.notes,
            ["The target `cluster` has 2 read-only nodes: the experiment `read` leaves out 4."]
        );
    }

    #[test]
    fn the_load_must_reach_the_read_only_nodes() {
        for route in [Route::Primary, Route::Endpoint] {
            let error = planned(route, 4).map(|_| ()).expect_err("refused").to_string();
            let goes = format!("but the load goes to its {}.", route.name());
            assert!(error.contains(&goes), "{error}");
            assert!(error.contains("growing.toml:12:22"), "{error}");
            assert!(error.contains("route = \"spread\""), "{error}");
        }
    }

    #[test]
    fn a_single_address_is_measured_as_it_stands() {
        let suite = Suite::parse("growing.toml", SUITE, OFFERS).expect("a suite");
        let plan = Plan::build(&suite, &Overrides::default()).expect("a plan");
        assert_eq!(plan.experiments[0].targets, ["cluster"]);
        assert!(plan.notes[0].to_string().contains("is one address"), "{:?}", plan.notes);
    }

    #[test]
    fn a_comparison_names_its_targets() {
        let suite = format!("{SUITE}compare = {{ baseline = 'cluster', aa = true }}");
        let error = Suite::parse("growing.toml", &suite, OFFERS).expect_err("refused").to_string();
        assert!(error.contains("has both `compare` and `read_only`"), "{error}");
    }
}
