//! Which part of the load changed most: a statement of a script, or a kind of transaction. It says where to look, and is no
//! verdict: parts of one load hold each other up.

use super::words::{self, ratio};
use crate::evidence::{Call, Judgment, PairedComparison};
use crate::text::Message;
use dyno_facts::{TrialSummary, say};
use std::collections::BTreeMap;

/// Executions of a part below which a trial says nothing of it.
const LEAST_COUNT: u64 = 20;
/// Less than this, as a ratio, is not worth a line.
const LEAST_CHANGE: f64 = 1.03;
/// Of a statement; the rest is cut off.
const MOST_CHARACTERS: usize = 70;

impl Judgment {
    /// A line for each comparison that is decided by its first metric and has parts, those of slower candidates first.
    /// `sides` is how a line calls both targets.
    pub(super) fn parts_that_changed(&self, sides: Option<[&str; 2]>) -> Vec<Message> {
        let first = |of: &PairedComparison| of.rows.first().map(|row| row.call);
        let of_call = |call: Call| {
            let own = self
                .verdicts
                .comparisons
                .iter()
                .filter(move |of| !of.is_aa && first(of) == Some(call));
            own.filter_map(|of| {
                self.changed_most(of, sides.unwrap_or([&of.baseline, &of.candidate]))
            })
        };
        of_call(Call::Slower).chain(of_call(Call::Faster)).collect()
    }

    fn changed_most(&self, of: &PairedComparison, [a, b]: [&str; 2]) -> Option<Message> {
        let summary = |label: &String| {
            self.trials.iter().find(|trial| trial.label == *label).map(|trial| &trial.summary)
        };
        let mut ratios: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        let mut pairs = 0;
        for [baseline, candidate] in &of.pairs {
            let (baseline, candidate) =
                (means_us(summary(baseline)?), means_us(summary(candidate)?));
            pairs += 1;
            for (name, before) in baseline {
                let both = candidate.get(&name).map(|after| after / before);
                ratios.entry(name).or_default().extend(both);
            }
        }
        let mut parts: Vec<(String, f64)> = ratios
            .into_iter()
            .filter(|(_, ratios)| ratios.len() == pairs)
            .filter_map(|(name, ratios)| Some((name, median(ratios)?)))
            .collect();
        parts.sort_by(|a, b| b.1.ln().abs().total_cmp(&a.1.ln().abs()));
        let ((name, most), others) = parts.split_first()?;
        let others = median(others.iter().map(|(_, ratio)| *ratio).collect())?;
        if most.ln().abs() < LEAST_CHANGE.ln() {
            return None;
        }
        Some(say!(
            part_changed_most,
            place = words::place(of),
            part = name,
            sides = format!("{b}/{a}"),
            ratio = ratio(*most),
            others = ratio(others),
        ))
    }
}

/// Mean latency of each statement of its scripts, or where it tells none of each kind of transaction, microseconds.
fn means_us(summary: &TrialSummary) -> BTreeMap<String, f64> {
    let counts = |count: u64, mean_us: f64| count >= LEAST_COUNT && mean_us > 0.0;
    let statements = summary.statement_latencies.iter().map(|one| {
        let text: String = one.text.trim().chars().take(MOST_CHARACTERS).collect();
        (format!("`{text}` ({} {})", one.script, one.number), one.count, one.mean_us)
    });
    let mut parts: Vec<(String, u64, f64)> = statements.collect();
    if parts.is_empty() {
        let kind = |kind: &dyno_facts::KindSummary| {
            (kind.name.clone(), kind.latency.count, kind.latency.mean_us)
        };
        parts = summary.kinds.iter().map(kind).collect();
    }
    let known = parts.into_iter().filter(|(_, count, mean_us)| counts(*count, *mean_us));
    known.map(|(name, _, mean_us)| (name, mean_us)).collect()
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let (low, high) = (values.get((values.len().max(1) - 1) / 2)?, values.get(values.len() / 2)?);
    Some(f64::midpoint(*low, *high))
}
