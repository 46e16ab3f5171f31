//! C: the history of a session, as its trials tell it in the order in which they were made.

use super::{Case, Rule};
use crate::evidence::{
    Experiment, Finding, Group, Level, Spot, Trial, Verdicts, figure_of, judged_metrics,
};
use crate::messages::checks;
use crate::text::Message;
use dyno_facts::{Purpose, say};
use dyno_statistics::history::{self, FAMILY_ALPHA, HistoryMark, PlacedFigure};

/// A smaller change of throughput is less than what comparisons look for.
const LEAST_CHANGE: f64 = 0.01;
/// What may be found in a session.
const MARKS: f64 = 3.0;

pub(super) const RULES: &[Rule] = &[
    Rule::case(Group::C, Level::W, checks::trials_depend, |case| {
        each_session(case, |session| {
            let mark = history::lag1(&session.figures(), session.seed())?;
            let size = Message::verbatim(format!("{:.2}", mark.size));
            session.told(mark, |n, p| say!(successive_trials_correlate, r = size, n = n, p = p))
        })
    }),
    Rule::case(Group::C, Level::W, checks::session_drifts, |case| {
        each_session(case, |session| {
            let mark = changed(history::drift(&session.figures(), session.seed()))?;
            let change = signed_percent(mark.size);
            session.told(mark, |n, p| say!(first_to_last_trial, change = change, n = n, p = p))
        })
    }),
    Rule::case(Group::C, Level::W, checks::second_of_pair, |case| {
        each_session(case, |session| {
            let pairs = session.pairs(case.verdicts);
            let mark = changed(history::second_of_pair(&pairs, session.seed()))?;
            let change = signed_percent(mark.size);
            session.told(mark, |n, p| say!(second_beside_first, change = change, n = n, p = p))
        })
    }),
];

fn changed(mark: Option<HistoryMark>) -> Option<HistoryMark> {
    mark.filter(|mark| mark.size.abs() >= LEAST_CHANGE)
}

fn signed_percent(share: f64) -> Message {
    Message::verbatim(format!("{:+.1} %", share * 100.0))
}

/// The trials of an experiment in one run, in the order in which they were made.
struct Session<'a> {
    experiment: &'a Experiment,
    trials: Vec<&'a Trial>,
    /// The level of each test: all tests of a run have one chance of a false alarm together.
    alpha: f64,
}

fn each_session(case: &Case<'_>, find: impl Fn(&Session<'_>) -> Option<Message>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for run in &case.evidence.runs {
        let of_run = |experiment| {
            let mut trials = case.trials(experiment);
            trials.retain(|trial| trial.run == run.number && is_placed(trial));
            trials.sort_by_key(|trial| trial.summary.trial);
            (trials.len() >= history::LEAST_PLACED).then_some((experiment, trials))
        };
        let sessions: Vec<_> = case.measured().filter_map(of_run).collect();
        let alpha = FAMILY_ALPHA / (MARKS * sessions.len() as f64);
        for (experiment, trials) in sessions {
            let place = Spot::experiment(&experiment.name);
            let found = find(&Session { experiment, trials, alpha });
            findings.extend(found.map(|value| Finding::new(place, value)));
        }
    }
    findings
}

fn is_placed(trial: &Trial) -> bool {
    let is_usual = trial.summary.purpose == Purpose::Measure && trial.summary.fault.is_none();
    trial.status == "complete" && is_usual && log_of(trial).is_some()
}

/// Of the figure that decides comparisons.
fn log_of(trial: &Trial) -> Option<f64> {
    let first = *judged_metrics(&trial.summary).first()?;
    figure_of(&trial.summary, first).map(f64::ln).filter(|log| log.is_finite())
}

impl Session<'_> {
    fn seed(&self) -> u64 {
        self.trials.first().map_or(0, |trial| trial.summary.seed)
    }

    fn told(
        &self,
        mark: HistoryMark,
        say: impl FnOnce(usize, Message) -> Message,
    ) -> Option<Message> {
        let p = Message::verbatim(format!("{:.4}", mark.p));
        (mark.p <= self.alpha).then(|| say(mark.figures, p))
    }

    fn figures(&self) -> Vec<PlacedFigure> {
        let rate = |trial: &Trial| trial.summary.rate_per_s.map(f64::to_bits);
        let key = |trial: &'_ Trial| {
            (trial.target.clone(), trial.summary.workers, rate(trial), trial.level.clone())
        };
        let mut keys = Vec::new();
        let placed = |trial: &&Trial| {
            let key = key(trial);
            let known = keys.iter().position(|known| *known == key);
            let group = known.unwrap_or(keys.len());
            if known.is_none() {
                keys.push(key);
            }
            Some(PlacedFigure { group, log: log_of(trial)? })
        };
        self.trials.iter().filter_map(placed).collect()
    }

    /// Ratios of its pairs, and whether the candidate came second.
    fn pairs(&self, verdicts: &Verdicts) -> Vec<(PlacedFigure, bool)> {
        let of = |label: &String| self.trials.iter().find(|trial| trial.label == *label);
        let own = verdicts.comparisons.iter().filter(|of| of.experiment == self.experiment.name);
        let pairs = own.enumerate().flat_map(|(group, comparison)| {
            comparison.pairs.iter().filter_map(move |[baseline, candidate]| {
                let (baseline, candidate) = (of(baseline)?, of(candidate)?);
                let log = log_of(candidate)? - log_of(baseline)?;
                let is_second = candidate.summary.trial > baseline.summary.trial;
                Some((PlacedFigure { group, log }, is_second))
            })
        });
        pairs.collect()
    }
}
