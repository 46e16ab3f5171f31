//! Largest effect of findings on the figures: orders the caveats and selects those that could change an answer.

use super::*;
use dyno_facts::Metric;
use std::cmp::Ordering;

/// Findings that move no measured figure: they limit its use, or intervals hold them already.
const MOVING_NOTHING: [&str; 23] = [
    "clock-skew",
    "copies-unseen",
    "cut-off",
    "data-at-edge",
    "few-branches",
    "few-pairs",
    "full-size",
    "idle-server",
    "no-atomic-commit",
    "not-recovered",
    "single-statement",
    "stale-reads",
    "start-apart",
    "tpcc-mean",
    "tpcc-no-pauses",
    "tpcc-pauses",
    "tpcc-response",
    "tpcc-terminals",
    "tpcc-unlike-published",
    "tpch-power",
    "tpch-streams",
    "tpcc-unknown",
    "variation",
];

/// Findings that move high percentiles and maxima only.
const MOVING_TAILS: [&str; 6] =
    ["gaps", "hiccups", "loop-queue", "open-loop-idle", "retransmits", "slow-seconds"];

/// Findings outside of group D that favor one side of a comparison.
const ONE_SIDED: [&str; 6] = [
    "memory-class",
    "noise-floor",
    "one-sided-scans",
    "tpch-cache-mixed",
    "tpch-load-differs",
    "uneven-foreign-cpu-secondary",
];

/// Findings of group D that meet all sides alike.
const ALIKE: [&str; 4] = ["no-statistics", "nodes-rows", "query-cache", "unsafe-tables"];

/// Findings with one cause, a load generator that gets too little CPU; the first one is printed for all.
const CLIENT_CPU: [&str; 6] =
    ["shared-cpu", "generator-loop", "generator-starved", "run-delay", "hiccups", "loop-queue"];

/// Overstatement of the best of several levels that was not measured again.
const PEAK_CHANCE: f64 = 0.03;

impl Effect {
    /// Returns the widest effect of what `rule` found.
    pub(super) fn from_findings(rule: &Rule, findings: &[Finding], evidence: &Evidence) -> Effect {
        let id = rule.texts.id;
        let share: fn(&Trial) -> Option<f64> = match id {
            "shared-cpu" => client_share,
            "steal" => |trial| lost_share(trial.summary.generator.host.steal_share),
            "throttled" => |trial| lost_share(trial.summary.conditions.generator.throttled_share?),
            "errors" => |trial| Some(truth::failed_shares(trial)?[1]),
            "peak-not-rerun" => return Effect::AtMost(PEAK_CHANCE),
            _ if MOVING_NOTHING.contains(&id) => return Effect::Nothing,
            _ if MOVING_TAILS.contains(&id) => return Effect::Tail,
            _ if ONE_SIDED.contains(&id) => return Effect::OneSided,
            _ if rule.group == Group::D && !ALIKE.contains(&id) => return Effect::OneSided,
            _ => return Effect::Unbounded,
        };
        let concerned = evidence.trials.iter().filter(|trial| {
            findings.iter().any(|finding| finding.place.names.contains(&trial.label))
        });
        concerned.map(share).fold(Effect::Nothing, |widest, share| {
            let effect = share.map_or(Effect::Unbounded, Effect::AtMost);
            if effect > widest { effect } else { widest }
        })
    }

    /// Describes the effect.
    pub fn text(self) -> Message {
        match self {
            Effect::Nothing => say!(effect_nothing),
            Effect::Tail => say!(effect_tail),
            Effect::AtMost(share) => say!(effect_at_most, share = format::percent(share)),
            Effect::Unbounded => say!(effect_unbounded),
            Effect::OneSided => say!(effect_one_sided),
        }
    }
}

/// Largest share by which throughput is lower because the load generator works on the server's CPUs: its CPU time as a
/// share of the server's.
fn client_share(trial: &Trial) -> Option<f64> {
    let server_us = trial.summary.figure(Metric::ServerCpuUs)?;
    let server_s = server_us * trial.summary.counts.committed as f64 / 1e6;
    let share = trial.summary.generator.loops_cpu_s / server_s;
    share.is_finite().then_some(share)
}

/// Largest share by which throughput is lower if this share of the time was lost; `None` if all was.
fn lost_share(share: f64) -> Option<f64> {
    (share < 1.0).then(|| share / (1.0 - share))
}

/// Findings that could change the answer, grouped by cause.
pub struct Caveat<'a> {
    /// The first one is printed.
    pub checks: Vec<&'a Check>,
    /// The effect of the first one.
    pub effect: Effect,
}

impl Caveat<'_> {
    /// Describes the finding, or the difference between the sides, and its effect.
    pub fn sentence(&self) -> Message {
        let first = self.checks[0];
        let difference = first.lines.first().filter(|_| self.effect == Effect::OneSided);
        let meaning = difference.cloned().unwrap_or_else(|| first_sentence(&first.meaning));
        let [en, zh] = Lang::ALL.map(|lang| meaning.render(lang));
        let meaning = Message::both(en.trim_end_matches('.'), zh.trim_end_matches('。'));
        say!(caveat_with_effect, meaning, effect = self.effect.text())
    }

    /// The sentence with the ids of its checks.
    pub fn line(&self) -> Message {
        let ids = self.checks.iter().map(|check| Message::verbatim(check.id));
        let ids = Message::joined(&ids.collect::<Vec<_>>(), ", ", "、");
        say!(caveat_of_checks, caveat = self.sentence(), ids)
    }
}

impl Judgment {
    /// Returns the caveats that can have moved a figure, those that reach farthest first.
    pub fn caveats(&self) -> Vec<Caveat<'_>> {
        let mut caveats: Vec<Caveat<'_>> = Vec::new();
        for check in self.open_checks(Level::W).filter(|check| check.effect > Effect::Nothing) {
            let has_cause = CLIENT_CPU.contains(&check.id);
            let same_cause = caveats
                .iter_mut()
                .find(|caveat| has_cause && CLIENT_CPU.contains(&caveat.checks[0].id));
            match same_cause {
                Some(caveat) => caveat.checks.push(check),
                None => caveats.push(Caveat { checks: vec![check], effect: check.effect }),
            }
        }
        for caveat in &mut caveats {
            caveat.checks.sort_by_key(|check| CLIENT_CPU.iter().position(|id| *id == check.id));
            // Starved and waiting loops are symptoms of a shared CPU, which tells the effect of all.
            caveat.effect = caveat.checks[0].effect;
        }
        caveats.sort_by(|a, b| b.effect.partial_cmp(&a.effect).unwrap_or(Ordering::Equal));
        caveats
    }
}
