//! `dyno run SUITE --compare A B`: a suite's experiments on two targets, in pairs.

use dyno_facts::{ExperimentFacts, Message, Role, TargetFacts, say};

use crate::bundled::BUNDLED_PREFIX;
use crate::compare::{Compare, WantedStop};
use crate::parse::is_name;
use crate::plan::Overrides;
use crate::problem::{Problem, SuiteError};
use crate::suite::{Node, Suite, SuiteExperiment, SuiteTarget, WithSpan};

#[derive(Clone, Debug, PartialEq)]
pub struct Versus {
    pub baseline: String,
    /// The other; the same name measures the noise.
    pub candidate: String,
    pub stop: WantedStop,
    /// Ratios that differ from 1 by less are equivalent.
    pub equivalence: Option<f64>,
}

/// A suite that names no target, with those of the command line: nothing is known of them but how to reach them.
pub(crate) fn take_targets(suite: &Suite, overrides: &Overrides) -> Result<Suite, SuiteError> {
    let mut taken = suite.clone();
    let with_url = overrides.targets.iter().map(|(name, _)| name);
    let with_nodes = overrides.nodes.iter().map(|(name, _)| name);
    for name in with_url.chain(with_nodes) {
        if !is_name(name) {
            let hint = "Write `--target NAME=URL`; NAME has letters, digits, `.`, `_` and `-`.";
            let message = format!("`--target {name}=...` does not name a target.");
            return Err(Problem::new(message).hint(hint).into());
        }
        if taken.target(name).is_none() {
            taken.targets.push(plain_target(name));
        }
    }
    Ok(taken)
}

/// Two targets of the command line are compared, in the order in which they were given, unless experiments say what
/// they do with theirs.
pub(crate) fn pair(suite: &Suite) -> Option<Versus> {
    let [baseline, candidate] = &suite.targets[..] else { return None };
    let is_open = |experiment: &SuiteExperiment| {
        let facts = &experiment.facts;
        experiment.targets.is_none() && experiment.compare.is_none() && facts.search.is_none()
    };
    suite.experiments.iter().all(is_open).then(|| Versus {
        baseline: baseline.name.value.clone(),
        candidate: candidate.name.value.clone(),
        stop: WantedStop::default(),
        equivalence: None,
    })
}

/// The suite as if each of its experiments compared the two. Names that it does not know become
/// targets without further facts.
pub(crate) fn apply(
    suite: &Suite,
    versus: &Versus,
    notes: &mut Vec<Message>,
) -> Result<Suite, SuiteError> {
    let mut names = vec![versus.baseline.clone()];
    if versus.candidate != versus.baseline {
        names.push(versus.candidate.clone());
    }
    let mut changed = suite.clone();
    for name in &names {
        if !is_name(name) {
            let message = format!("`--compare {name}` does not name a target.");
            let hint =
                "Give two names, and a URL of each: `--compare A B --target A=URL --target B=URL`.";
            return Err(Problem::new(message).hint(hint).into());
        }
        if suite.target(name).is_none() {
            changed.targets.push(plain_target(name));
        }
    }
    changed.targets.retain(|target| names.contains(&target.name.value));
    let (kept, left_out) = chosen(suite, &names);
    if !left_out.is_empty() {
        notes.push(say!(repeated_loads_left_out, names = left_out.join(", ")));
    }
    let searches = kept.iter().filter(|experiment| experiment.facts.search.is_some());
    let searches: Vec<&str> = searches.map(|experiment| experiment.name.value.as_str()).collect();
    if !searches.is_empty() {
        notes.push(say!(searches_are_no_pairs, names = searches.join(", ")));
    }
    // Who takes a bundled suite has written no repeats.
    let is_own = !suite.text.file.starts_with(BUNDLED_PREFIX) && versus.stop.pairs.is_none();
    let repeated = kept.iter().filter(|experiment| is_own && experiment.facts.repeats > 1);
    let repeated: Vec<&str> = repeated.map(|experiment| experiment.name.value.as_str()).collect();
    if !repeated.is_empty() {
        let (names, baseline) = (repeated.join(", "), &versus.baseline);
        notes.push(say!(
            pairs_instead_of_repeats,
            names = names,
            baseline = baseline,
            candidate = &versus.candidate
        ));
    }
    let written = |value: &String| WithSpan { value: value.clone(), span: 0..0 };
    changed.experiments = kept
        .into_iter()
        .map(|experiment| SuiteExperiment {
            targets: None,
            read_only: Vec::new(),
            compare: Some(Compare {
                baseline: written(&versus.baseline),
                candidates: names[1..].iter().map(written).collect(),
                stop: versus.stop,
                equivalence: versus.equivalence,
                is_aa: names.len() == 1,
            }),
            ..experiment.clone()
        })
        .collect();
    Ok(changed)
}

fn plain_target(name: &str) -> SuiteTarget {
    SuiteTarget {
        name: WithSpan { value: name.to_owned(), span: 0..0 },
        product: None,
        facts: TargetFacts { name: name.to_owned(), ..TargetFacts::default() },
        nodes: vec![Node { name: None, role: Role::Primary, url: None }],
        route: None,
        nodes_span: 0..0,
    }
}

/// The experiments that are meant for one of the two targets; if none is, all of them, but each load
/// once: suites repeat loads for targets of their own. Experiments that share data stay together.
fn chosen<'a>(suite: &'a Suite, names: &[String]) -> (Vec<&'a SuiteExperiment>, Vec<String>) {
    let is_meant = |experiment: &&SuiteExperiment| {
        let targets = experiment.targets.iter().flatten();
        experiment.targets.is_none() || targets.clone().any(|target| names.contains(&target.value))
    };
    let mut groups = sharing_data(suite.experiments.iter().filter(is_meant));
    if groups.is_empty() {
        groups = sharing_data(suite.experiments.iter());
    }
    let (mut kept, mut left_out): (Vec<&SuiteExperiment>, Vec<String>) = (Vec::new(), Vec::new());
    for group in groups {
        let is_known = |new: &&SuiteExperiment| kept.iter().any(|old| is_same_load(old, new));
        match group.iter().all(is_known) {
            true => left_out.extend(group.iter().map(|experiment| experiment.name.value.clone())),
            false => kept.extend(group),
        }
    }
    (kept, left_out)
}

/// Cuts experiments where data are dropped and others loaded.
fn sharing_data<'a>(
    experiments: impl Iterator<Item = &'a SuiteExperiment>,
) -> Vec<Vec<&'a SuiteExperiment>> {
    let mut groups: Vec<Vec<&SuiteExperiment>> = Vec::new();
    for experiment in experiments {
        match groups.last_mut().filter(|_| !experiment.facts.prepare) {
            Some(group) => group.push(experiment),
            None => groups.push(vec![experiment]),
        }
    }
    groups
}

fn is_same_load(a: &SuiteExperiment, b: &SuiteExperiment) -> bool {
    let load = |experiment: &SuiteExperiment| {
        let facts = &experiment.facts;
        ExperimentFacts {
            workload: facts.workload.clone(),
            test: facts.test.clone(),
            options: facts.options.clone(),
            workers: facts.workers.clone(),
            degrees: facts.degrees.clone(),
            rates: facts.rates.clone(),
            warmup_s: facts.warmup_s,
            duration_s: facts.duration_s,
            events: facts.events,
            search: facts.search.clone(),
            ..ExperimentFacts::default()
        }
    };
    load(a) == load(b)
}
