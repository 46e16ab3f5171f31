//! Sessions that go on with each other: what a later run keeps of an earlier one, and what its paper says of all.

use super::pairs::level_name;
use crate::evidence::{
    Evidence, Judgment, Naming, PairOrder, PairedComparison, RunFacts, SessionRow, Trial, bound_of,
    figure_of,
};
use crate::format;
use dyno_facts::{
    EarlierSession, Environment, NodeFacts, RunHeader, ServerFacts, SessionPairs, TargetFacts,
    earlier_pairs,
};
use dyno_statistics::{Metric, mean};
use dyno_store::RunData;
use std::collections::BTreeMap;

/// What a run that goes on with this one has to know of it, and of those before it: the oldest first.
///
/// # Errors
/// In a sentence, why its pairs can't count in another run.
pub fn sessions_of(run: &RunData) -> Result<Vec<EarlierSession>, String> {
    let paper = Judgment::of(std::slice::from_ref(run), &[], &[], &Naming::default());
    let folder = run.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut comparisons = Vec::new();
    for of in &paper.verdicts.comparisons {
        if of.order == PairOrder::Blocks && of.pairs.len() > 1 {
            return Err(format!("{folder} did not interleave the trials of {}.", of.name));
        }
        comparisons.extend(pairs_of(&paper.trials, of).map_err(|why| format!("{folder}: {why}"))?);
    }
    let own = EarlierSession { looks: looks(run), ..session(&run.header, &folder, comparisons) };
    Ok(run.header.continues.iter().cloned().chain([own]).collect())
}

/// What the servers of a run said before the first trial of each target: settings and tables, by which a later session
/// sees whether they are still the same.
fn looks(run: &RunData) -> BTreeMap<String, NodeFacts> {
    let mut looks = BTreeMap::new();
    for trial in run.trials.iter().filter(|trial| !trial.before.is_empty()) {
        let kept = |(node, facts): (&String, &ServerFacts)| {
            let (settings, schema) = (facts.settings.clone(), facts.schema.clone());
            (node.clone(), ServerFacts { settings, schema, ..ServerFacts::default() })
        };
        let own = || trial.before.iter().map(kept).collect();
        looks.entry(trial.summary.target.clone()).or_insert_with(own);
    }
    looks
}

/// `None` where no pair counts.
fn pairs_of(trials: &[Trial], of: &PairedComparison) -> Result<Option<SessionPairs>, String> {
    let find = |label: &str| trials.iter().find(|trial| trial.label == label);
    let pairs: Vec<(&Trial, &Trial)> =
        of.pairs.iter().filter_map(|[a, b]| Some((find(a)?, find(b)?))).collect();
    let Some((first, second)) = pairs.first() else { return Ok(None) };
    let mut metrics = BTreeMap::new();
    for metric in Metric::ALL.into_iter().filter(|metric| !metric.is_fact()) {
        let is_bound = |trial: &Trial| bound_of(&trial.summary, metric).is_some();
        if pairs.iter().any(|(a, b)| is_bound(a) || is_bound(b)) {
            return Err(format!(
                "a figure of {} is only a bound, which no session can add to.",
                of.name
            ));
        }
        let both = |(a, b): &(&Trial, &Trial)| {
            Some((figure_of(&a.summary, metric)?, figure_of(&b.summary, metric)?))
        };
        let values: Vec<(f64, f64)> = pairs.iter().filter_map(both).collect();
        if !values.is_empty() {
            metrics.insert(metric.name().to_owned(), values);
        }
    }
    Ok(Some(SessionPairs {
        experiment: of.experiment.clone(),
        level: level_name(first),
        baseline: first.summary.target.clone(),
        candidate: second.summary.target.clone(),
        metrics,
    }))
}

fn session(header: &RunHeader, folder: &str, comparisons: Vec<SessionPairs>) -> EarlierSession {
    let version = |target: &TargetFacts| {
        let text = format!("{} {}", target.product, target.version);
        (target.name.clone(), text.trim().to_owned())
    };
    EarlierSession {
        folder: folder.to_owned(),
        started_at: header.started_at.clone(),
        environment: header.environment.clone(),
        versions: header.targets.iter().map(version).collect(),
        comparisons,
        looks: BTreeMap::new(),
    }
}

/// The pairs of sessions that the run of these two trials goes on with.
pub(super) fn earlier(
    evidence: &Evidence,
    (a, b): (&Trial, &Trial),
    metric: Metric,
) -> Vec<Vec<(f64, f64)>> {
    let own = run_of(evidence, (a, b)).map_or(&[][..], |run| &run.header.continues);
    let key = [&a.summary.experiment, &level_name(a), &a.summary.target, &b.summary.target];
    earlier_pairs(own, key.map(String::as_str), metric.name())
}

fn run_of<'a>(evidence: &'a Evidence, (a, b): (&Trial, &Trial)) -> Option<&'a RunFacts> {
    let run = evidence.runs.iter().find(|run| run.number == a.run)?;
    (a.run == b.run).then_some(run)
}

/// All sessions of a comparison by its first metric, its own the last; none where it is one session alone.
pub(super) fn rows(
    evidence: &Evidence,
    both: (&Trial, &Trial),
    metric: Metric,
    own: &[(f64, f64)],
) -> Vec<SessionRow> {
    let Some(run) = run_of(evidence, both).filter(|run| !run.header.continues.is_empty()) else {
        return Vec::new();
    };
    let names = [&both.0.summary.target, &both.1.summary.target];
    let row = |session: &EarlierSession, pairs: &[(f64, f64)]| {
        let of_targets = names.iter().filter_map(|name| session.versions.get(*name).cloned());
        let logs: Vec<f64> = pairs.iter().map(|(a, b)| (b / a).ln()).collect();
        let Environment { host, cpu_model, kernel, dyno_version, .. } = &session.environment;
        SessionRow {
            folder: session.folder.clone(),
            started_at: session.started_at.clone(),
            machine: format!("{host}: {cpu_model}, {kernel}"),
            versions: format::unique(of_targets.collect()).join(", "),
            dyno: dyno_version.clone(),
            pairs: pairs.len(),
            ratio: mean(&logs).map(f64::exp),
        }
    };
    let level = level_name(both.0);
    let key = [&both.0.summary.experiment, &level, names[0], names[1]].map(String::as_str);
    let earlier = run.header.continues.iter().map(|session| {
        row(session, &earlier_pairs(std::slice::from_ref(session), key, metric.name()).concat())
    });
    earlier.chain([row(&session(&run.header, &run.folder, Vec::new()), own)]).collect()
}
