//! From trials to pairs.

use crate::evidence::{AaKind, Evidence, PairOrder, Trial};
use crate::families::{FamilyLevel, KnownFamily};
use crate::format;
use crate::text::Message;
use dyno_facts::{Purpose, StopRule, TrialSummary, say};
use dyno_statistics::ratio::LEAST_PAIRS;
use std::collections::BTreeSet;

/// Two targets of an experiment that are compared.
pub(super) struct Duel<'a> {
    pub(super) baseline: &'a str,
    pub(super) candidate: &'a str,
    pub(super) is_aa: bool,
    pub(super) aa: AaKind,
    /// Servers are restarted and data restored before the first of so many pairs; 0 is never.
    pub(super) restart_each: u32,
    pub(super) reload_each: u32,
    /// The suite asks for it.
    pub(super) is_planned: bool,
    pub(super) stop: StopRule,
    /// What counts as equivalent.
    pub(super) margin: f64,
}

impl Duel<'_> {
    /// Pairs that count as one.
    pub(super) fn unit(&self) -> u32 {
        self.restart_each.max(self.reload_each).max(1)
    }
}

/// The pairs of two targets at one load level.
pub(super) struct Pairs<'a> {
    pub(super) trials: Vec<(&'a Trial, &'a Trial)>,
    /// Any trial of the baseline at this level.
    pub(super) any: &'a Trial,
    /// Trials of both that were made at this level, where no pair counts.
    pub(super) spoilt: Vec<&'a Trial>,
    pub(super) order: PairOrder,
    /// Pairs of which a trial was made, but not both count.
    pub(super) lost: usize,
}

/// What has to be the same for two trials to be compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Level<'a> {
    workers: u32,
    rate_per_s: Option<f64>,
    of_family: Option<&'a FamilyLevel>,
}

impl Level<'_> {
    /// Levels are told from the smallest to the largest.
    pub(super) fn size(&self) -> f64 {
        match self.of_family {
            Some(level) => level.size,
            None => self.rate_per_s.unwrap_or(0.0) * 1e6 + f64::from(self.workers),
        }
    }
}

pub(super) fn level_of(trial: &Trial) -> Level<'_> {
    let (workers, rate_per_s) = (trial.summary.workers, trial.summary.rate_per_s);
    Level { workers, rate_per_s, of_family: trial.level.as_ref() }
}

/// Complete trials of two targets, by load level and repeat. What a sweep has chosen and run again
/// is judged by the second time alone where that has pairs enough; steps of a search are judged by nothing.
/// Where they are compared, a level at which both have ended trials but no pair counts is there without pairs.
pub(super) fn of<'a>(evidence: &'a Evidence, experiment: &str, duel: &Duel<'_>) -> Vec<Pairs<'a>> {
    let own = |target: &str| -> Vec<&'a Trial> {
        let is_own = |trial: &&Trial| {
            trial.summary.experiment == experiment
                && trial.target == target
                && trial.status != "running"
                && trial.summary.purpose != Purpose::Search
                // An outage decides there, not the speed.
                && trial.summary.fault.is_none()
        };
        evidence.trials.iter().filter(is_own).collect()
    };
    let (baseline, candidate) = (own(duel.baseline), own(duel.candidate));
    let mut levels: Vec<(Level<'_>, &Trial)> = Vec::new();
    for trial in &baseline {
        let level = level_of(trial);
        if !levels.iter().any(|(known, _)| *known == level) {
            levels.push((level, trial));
        }
    }
    levels.sort_by(|a, b| a.0.size().total_cmp(&b.0.size()));
    let pairs = |(level, any): (Level<'a>, &'a Trial)| {
        let at_level = |trial: &&&'a Trial| level_of(trial) == level;
        let is_whole = |trial: &&&'a Trial| at_level(trial) && trial.status == "complete";
        let mut found: Vec<(&Trial, &Trial)> = Vec::new();
        for first in baseline.iter().filter(is_whole) {
            let is_partner = |trial: &&&'a Trial| {
                is_whole(trial)
                    && trial.summary.repeat == first.summary.repeat
                    && trial.summary.purpose == first.summary.purpose
            };
            found.extend(candidate.iter().find(is_partner).map(|second| (*first, *second)));
        }
        let is_again = |pair: &(&Trial, &Trial)| pair.0.summary.purpose == Purpose::Confirm;
        let whole = found.iter().filter(|pair| pair.0.summary.purpose == Purpose::Measure).count();
        let lost = begun(evidence, experiment, duel, level).saturating_sub(whole);
        let again = found.iter().filter(|pair| is_again(pair)).count();
        // Too few of them would take the verdict away that the planned pairs carry.
        match again >= LEAST_PAIRS || again == found.len() {
            true => found.retain(is_again),
            false => found.retain(|pair| !is_again(pair)),
        }
        let order = order(&found);
        let is_of_both = found.is_empty() && candidate.iter().any(|trial| at_level(&trial));
        let sides = baseline.iter().chain(&candidate).filter(|_| is_of_both);
        let spoilt = sides.filter(at_level).copied().collect();
        Pairs { trials: found, any, spoilt, order, lost }
    };
    let mut all: Vec<Pairs<'_>> = levels.into_iter().map(pairs).collect();
    let is_compared = duel.is_planned || all.iter().any(|pairs| !pairs.trials.is_empty());
    all.retain(|of| !of.trials.is_empty() || (is_compared && !of.spoilt.is_empty()));
    all
}

/// Pairs of which at least one trial has been made, however it ended.
fn begun(evidence: &Evidence, experiment: &str, duel: &Duel<'_>, level: Level<'_>) -> usize {
    let is_own = |trial: &&Trial| {
        let summary = &trial.summary;
        summary.experiment == experiment
            && [duel.baseline, duel.candidate].contains(&trial.target.as_str())
            && summary.purpose == Purpose::Measure
            && summary.fault.is_none()
            && trial.status != "running"
            && level_of(trial) == level
    };
    let repeats = evidence.trials.iter().filter(is_own).map(|trial| trial.summary.repeat);
    repeats.collect::<BTreeSet<u32>>().len()
}

/// Interleaved when each pair has ended before the next one began.
fn order(pairs: &[(&Trial, &Trial)]) -> PairOrder {
    let is_one_run = pairs.iter().all(|(a, b)| a.run == b.run && a.run == pairs[0].0.run);
    let ends = |pair: &(&Trial, &Trial)| {
        let (a, b) = (pair.0.summary.trial, pair.1.summary.trial);
        (a.min(b), a.max(b))
    };
    let mut spans: Vec<(u32, u32)> = pairs.iter().map(ends).collect();
    spans.sort_unstable();
    match is_one_run && spans.windows(2).all(|two| two[0].1 < two[1].0) {
        true => PairOrder::Interleaved,
        false => PairOrder::Blocks,
    }
}

/// A load level in words.
pub(super) fn level_words(trial: &Trial) -> Message {
    if let Some(level) = &trial.level {
        return level.words.clone();
    }
    let workers = say!(n_workers, n = trial.summary.workers);
    match trial.summary.rate_per_s {
        Some(rate) => {
            say!(at_per_second, workers = workers, rate = format::plain(rate))
        }
        None => workers,
    }
}

/// The same for names that are the same in all languages.
pub(super) fn level_name(trial: &Trial) -> String {
    level_of_trial(&trial.summary)
}

/// The load level of a trial by its name, as sessions keep it.
pub fn level_of_trial(trial: &TrialSummary) -> String {
    if let Some(level) = KnownFamily::of(trial).and_then(|family| family.level(trial)) {
        return level.name;
    }
    let workers = trial.workers;
    match trial.rate_per_s {
        Some(rate) => format!("workers={workers} rate={}", format::plain(rate)),
        None => format!("workers={workers}"),
    }
}
