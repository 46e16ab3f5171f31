//! Was the target steady while it was measured?

use crate::evidence::{Evidence, LevelChange, StallRow, SteadyRow, Trial};
use crate::text::Message;
use dyno_facts::EventKind;
use dyno_statistics::steady::{Second, Stall, steady};

/// Events are seen when somebody looks: so many seconds around a stall belong to it.
const AROUND_S: f64 = 1.5;

/// What the intervals of a trial show; `None` where there are none, as in a pass over queries.
pub(super) fn of(evidence: &Evidence, trial: &Trial) -> Option<SteadyRow> {
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
    let found = steady(&seconds);
    let change = |change: &dyno_statistics::steady::LevelShift| LevelChange {
        at_s: change.at_s,
        before_per_s: change.before_per_s,
        after_per_s: change.after_per_s,
    };
    let stall = |stall: &Stall| StallRow {
        from_s: stall.from_s,
        to_s: stall.to_s,
        lowest_per_s: stall.lowest_per_s,
        events: events(evidence, trial, stall),
    };
    let is_disturbed = !found.changes.is_empty() || !found.stalls.is_empty();
    let is_warmed_up = found.warm_up.map(|warm_up| warm_up.is_over);
    Some(SteadyRow {
        trial: trial.label.clone(),
        target: trial.target.clone(),
        experiment: trial.summary.experiment.clone(),
        is_steady: if is_disturbed { Some(false) } else { is_warmed_up },
        median_per_s: found.median_per_s,
        drift: found.warm_up.map(|warm_up| warm_up.drift),
        slope: found.warm_up.map(|warm_up| warm_up.slope),
        p: found.warm_up.map(|warm_up| warm_up.p),
        is_warmed_up,
        changes: found.changes.iter().map(change).collect(),
        stalls: found.stalls.iter().map(stall).collect(),
    })
}

/// What the server did at that time.
fn events(evidence: &Evidence, trial: &Trial, stall: &Stall) -> Vec<Message> {
    let Some(run) = evidence.runs.get(trial.run - 1) else { return Vec::new() };
    let is_then = |at_s: f64| stall.from_s - AROUND_S <= at_s && at_s <= stall.to_s + AROUND_S;
    let mut texts: Vec<Message> = Vec::new();
    for event in &run.events {
        let is_own = event.kind == EventKind::Server && event.trial == Some(trial.summary.trial);
        let text = &event.text;
        if is_own && event.at_s.is_some_and(is_then) && !texts.contains(text) {
            texts.push(text.clone());
        }
    }
    texts
}
