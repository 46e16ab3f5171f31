//! Throughput that falls with more workers, and steadiness of the target during the measurement.

use super::*;

/// Fewer load levels say nothing of how throughput continues.
const MIN_LEVELS: usize = 4;

/// Every experiment and target with enough load levels in a closed loop without pauses: with these throughput follows
/// the number of terminals, whatever the system does.
pub(super) fn scaling(evidence: &Evidence) -> Vec<Scaling> {
    let mut rows = Vec::new();
    for experiment in &evidence.experiments {
        let targets = evidence.targets.iter();
        rows.extend(targets.filter_map(|target| target_scaling(evidence, experiment, target)));
    }
    rows
}

/// Scaling of one target; `None` if it has too few load levels.
fn target_scaling(
    evidence: &Evidence,
    experiment: &Experiment,
    target: &PaperTarget,
) -> Option<Scaling> {
    let points = experiment.points.iter().filter(|point| {
        point.target == target.label
            && point.status == "complete"
            && !point.has_fault
            && point.rate_per_s.is_none()
            && !experiment.is_pass()
            && !point.is_paced
    });
    let points: Vec<&Point> = points.collect();
    let mut levels: Vec<f64> = points.iter().map(|point| point.load()).collect();
    levels.sort_by(f64::total_cmp);
    levels.dedup();
    let workers = [*levels.first()?, *levels.last()?];
    let trials = points.iter().flat_map(|point| {
        let metric = point.main.map_or(Metric::Tps, |(metric, _)| metric);
        let figures = evidence.point_trials(point).into_iter();
        figures.filter_map(move |trial| Some((point.load(), trial.summary.figure(metric)?)))
    });
    let peak = scaling_peak(&trials.collect::<Vec<_>>());
    let max_workers = format::whole(workers[1]);
    let words = match peak {
        Some(peak) => say!(
            throughput_peaks_at_workers_measured,
            n = format::whole(peak.workers),
            most = max_workers,
            lost = format::percent(1.0 - peak.left)
        ),
        None => say!(no_throughput_peak, most = max_workers),
    };
    let (title, target) = (experiment.title.clone(), target.label.clone());
    let peak = peak.map(|peak| peak.workers);
    (levels.len() >= MIN_LEVELS).then_some(Scaling { title, target, workers, peak, words })
}

/// Seconds around a stall in which events belong to it: they are seen only when somebody looks.
const AROUND_S: f64 = 1.5;

/// Steadiness by the intervals of a trial; `None` if there are none, as in a pass over queries.
pub(super) fn steadiness(evidence: &Evidence, trial: &Trial) -> Option<SteadyRow> {
    if trial.summary.is_pass() {
        return None;
    }
    let measured = trial.series.iter().filter(|row| row.phase == "measured");
    let seconds: Vec<Second> = measured
        .map(|row| Second {
            begins_s: row.begins_s,
            length_s: row.length_s,
            count: row.committed as f64,
        })
        .collect();
    if seconds.is_empty() {
        return None;
    }
    let steadiness = steady(&seconds);
    let is_disturbed = !steadiness.changes.is_empty() || !steadiness.stalls.is_empty();
    let is_warmed_up = steadiness.warm_up.map(|warm_up| warm_up.is_over);
    let stalls =
        steadiness.stalls.into_iter().map(|stall| (stall, stall_events(evidence, trial, &stall)));
    Some(SteadyRow {
        trial: trial.label.clone(),
        target: trial.target.clone(),
        experiment: trial.summary.experiment.clone(),
        is_steady: if is_disturbed { Some(false) } else { is_warmed_up },
        median_per_s: steadiness.median_per_s,
        warm_up: steadiness.warm_up,
        changes: steadiness.changes,
        stalls: stalls.collect(),
    })
}

fn stall_events(evidence: &Evidence, trial: &Trial, stall: &Stall) -> Vec<Message> {
    let Some(run) = evidence.runs.get(trial.run - 1) else { return Vec::new() };
    let around_s = stall.from_s - AROUND_S..=stall.to_s + AROUND_S;
    let mut texts: Vec<Message> = Vec::new();
    for event in &run.events {
        let is_server_event =
            event.kind == EventKind::Server && event.trial == Some(trial.summary.trial);
        let text = &event.text;
        let is_near = event.at_s.is_some_and(|at_s| around_s.contains(&at_s));
        if is_server_event && is_near && !texts.contains(text) {
            texts.push(text.clone());
        }
    }
    texts
}
