//! Trials that are cut into stages: each is driven, looked at and stored as its own trial, and the last one is
//! followed by their sum: what was measured exactly, what surrounded it as far as it adds up. A run that continues
//! makes the stages that are missing.
//!
//! A stage that was cut off or failed is repeated, and what it did counts for nothing: its trial stays in the run
//! folder and in the paper. Data are restored and servers restarted before the first stage only. Sessions are opened
//! again for each, so each has a warm-up: the whole one if the process has just begun, else a tenth of the stage at
//! most.

use crate::data::BITS_OF_SEEDS;
use crate::failure::{Failure, Result};
use crate::summary::summarize;
use crate::trial::{TrialDone, figures, trial_spec};
use crate::{Runner, output};
use dyno_core::Error;
use dyno_engine::{TrialResult, join, worsen};
use dyno_facts::format::short;
use dyno_facts::{
    CheckVerdict, Conditions, DataCheck, Freshness, GeneratorConditions, GeneratorMember,
    NodeConditions, PlanStep, PlannedTrial, Purpose, StageFacts, StageOf, StatementLatency,
    Together, TrialIdentity, TrialStatus, TrialSummary, say,
};
use std::collections::BTreeSet;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Share of a stage that its warm-up may take when the server has just served the stage before it.
const WARM_SHARE: f64 = 0.1;

impl Runner<'_> {
    /// Makes a trial, whole or in stages.
    pub(super) fn run_whole_or_staged(
        &mut self,
        step: &PlanStep,
        trial: &PlannedTrial,
        purpose: Purpose,
    ) -> Result<TrialDone> {
        let experiment = self.plan.experiment(&step.experiment);
        let cut = experiment.and_then(|experiment| experiment.stage_s).zip(trial.duration_s);
        let Some((stage_s, duration_s)) = cut else {
            return self.repeat_while_starved(step, trial, purpose, None);
        };
        let count = (duration_s / stage_s).ceil() as u32;
        let stages = self.run.data().stages(&step.id);
        let completed: BTreeSet<u32> =
            stages.iter().filter_map(|stage| Some(stage.stage?.number)).collect();
        let remaining = (1..=count).filter(|number| !completed.contains(number));
        if let (false, Some(first)) = (completed.is_empty(), remaining.clone().next()) {
            let place = format!("{} on {}", step.experiment, step.target);
            output::talk(&format!("{place}: continues with stage {first} of {count}"));
        }
        let mut follows = false;
        for number in remaining {
            if self.control.is_stopped() {
                return Ok(TrialDone::INTERRUPTED);
            }
            let stage = StageOf { number, of: count };
            let stage_trial = stage_trial(trial, stage, follows);
            match self.repeat_while_starved(step, &stage_trial, purpose, Some(stage))? {
                TrialDone::Ended { status: TrialStatus::Stage, .. } => follows = true,
                outcome => return Ok(outcome),
            }
        }
        self.join(step, trial)
    }

    /// Stores the sum of all stages.
    fn join(&mut self, step: &PlanStep, trial: &PlannedTrial) -> Result<TrialDone> {
        let place = format!("{} on {}", step.experiment, step.target);
        let stages: Vec<TrialSummary> =
            self.run.data().stages(&step.id).into_iter().cloned().collect();
        let results = stages.iter().map(|stage| self.run.stage(stage));
        let results: Vec<TrialResult> = results.collect::<Result<_, _>>()?;
        let sum = join_stages(trial, &stages, &results).map_err(|error: Error| {
            Failure::new(format!("The stages can't be added up: {error}.")).at(&place)
        })?;
        let status = sum.status.clone();
        output::talk(&format!("{place}: {} stages: {}", stages.len(), figures(&sum, None)));
        self.run.store_joined(sum)?;
        Ok(TrialDone::Ended { status, is_denied: false })
    }
}

/// A stage as it is driven. Each has its own seed, so that none repeats the work of another.
fn stage_trial(trial: &PlannedTrial, stage: StageOf, follows: bool) -> PlannedTrial {
    let length_s = trial.duration_s.map(|duration_s| duration_s / f64::from(stage.of));
    let warm_most_s =
        length_s.filter(|_| follows).map_or(f64::INFINITY, |length_s| length_s * WARM_SHARE);
    let stride = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(u64::from(stage.number - 1));
    PlannedTrial {
        duration_s: length_s,
        warmup_s: trial.warmup_s.min(warm_most_s),
        seed: trial.seed.wrapping_add(stride) & BITS_OF_SEEDS,
        ..trial.clone()
    }
}

/// Adds up stages, in their order, with what each has measured. The servers' states before the first stage count.
pub(crate) fn join_stages(
    trial: &PlannedTrial,
    stages: &[TrialSummary],
    results: &[TrialResult],
) -> Result<TrialSummary, Error> {
    let first = stages.first().ok_or_else(|| Error::new("there are no stages"))?;
    let result = join(results)?;
    let spec = trial_spec(trial);
    let identity = TrialIdentity {
        stage: None,
        seed: trial.seed,
        warmup_s: trial.warmup_s,
        ..first.identity.clone()
    };
    let kinds: Vec<String> = first.kinds.iter().map(|kind| kind.name.clone()).collect();
    let mut sum = summarize(identity, &kinds, &spec, &result, false);
    sum.started_at.clone_from(&first.started_at);
    sum.stages = stage_facts(stages);
    sum.conditions = join_conditions(stages, sum.conditions);
    sum.checks = worst_checks(stages);
    sum.statement_latencies = join_statements(stages);
    let gaps = sum.stages.iter().filter_map(|stage| stage.gap_s);
    let longest_s = short(gaps.fold(0.0, f64::max));
    sum.notes.push(say!(
        measured_in_stages,
        stages = stages.len().to_string(),
        seconds = longest_s
    ));
    Ok(sum)
}

fn stage_facts(stages: &[TrialSummary]) -> Vec<StageFacts> {
    let mut from_s = 0.0;
    let mut ended = None;
    let facts = stages.iter().map(|stage| {
        let opened = OffsetDateTime::parse(&stage.started_at, &Rfc3339).ok();
        let gap_s = opened.zip(ended).map(|(opened, ended): (OffsetDateTime, OffsetDateTime)| {
            (opened - ended).as_seconds_f64().max(0.0)
        });
        let facts = StageFacts { trial: stage.trial, from_s, gap_s };
        from_s += stage.window_s;
        ended = opened.map(|opened| opened + time::Duration::seconds_f64(stage.window_s));
        facts
    });
    facts.collect()
}

/// `generator` is what the results say; what was found later is in the summaries.
fn join_conditions(stages: &[TrialSummary], measured: Conditions) -> Conditions {
    let generators: Vec<&GeneratorConditions> =
        stages.iter().map(|stage| &stage.conditions.generator).collect();
    let mut joined = Conditions {
        generator: measured.generator,
        ..stages.first().map(|first| first.conditions.clone()).unwrap_or_default()
    };
    let headrooms: Option<Vec<f64>> = generators.iter().map(|known| known.headroom).collect();
    joined.generator.headroom =
        headrooms.map(|headrooms| headrooms.into_iter().fold(f64::INFINITY, f64::min));
    joined.generator.foreign_cpu_share =
        generators.iter().filter_map(|known| known.foreign_cpu_share).reduce(f64::max);
    let starved = generators.into_iter().filter(|known| known.starved.is_some());
    let starved = starved.map(|known| (known, known.starved_share.unwrap_or_default()));
    if let Some((worst, _)) = starved.max_by(|(_, a), (_, b)| a.total_cmp(b)) {
        joined.generator.starved.clone_from(&worst.starved);
        joined.generator.starved_share = worst.starved_share;
    }
    let mut before_s = stages.first().map_or(0.0, |first| first.window_s);
    for stage in stages.iter().skip(1) {
        let added = &stage.conditions;
        for (name, node) in &mut joined.nodes {
            match added.nodes.get(name) {
                Some(more) => add_node(node, more, (before_s, stage.window_s)),
                None => {
                    *node = NodeConditions { role: node.role.clone(), ..NodeConditions::default() }
                }
            }
        }
        for member in &added.members {
            match joined.members.iter_mut().find(|known| known.name == member.name) {
                Some(known) => add_member(known, member, before_s),
                None => joined.members.push(member.clone()),
            }
        }
        joined.unknown_rollbacks =
            combine(joined.unknown_rollbacks, added.unknown_rollbacks, |a, b| a + b);
        add_together(&mut joined.together, added.together.as_ref());
        add_freshness(&mut joined.freshness, added.freshness.as_ref());
        before_s += stage.window_s;
    }
    joined
}

/// Joins the values of both parts.
fn combine<T>(a: Option<T>, b: Option<T>, add: impl Fn(T, T) -> T) -> Option<T> {
    a.zip(b).map(|(a, b)| add(a, b))
}

fn add_node(node: &mut NodeConditions, more: &NodeConditions, (before_s, own_s): (f64, f64)) {
    let sum =
        |count: &mut Option<u64>, more: Option<u64>| *count = combine(*count, more, |a, b| a + b);
    sum(&mut node.reads, more.reads);
    sum(&mut node.writes, more.writes);
    sum(&mut node.rows_fetched, more.rows_fetched);
    sum(&mut node.rows_written, more.rows_written);
    sum(&mut node.replicated, more.replicated);
    sum(&mut node.unacknowledged, more.unacknowledged);
    sum(&mut node.pages_read, more.pages_read);
    sum(&mut node.checkpoints, more.checkpoints);
    sum(&mut node.commits, more.commits);
    sum(&mut node.rollbacks, more.rollbacks);
    sum(&mut node.client_commits, more.client_commits);
    sum(&mut node.transactions_elsewhere, more.transactions_elsewhere);
    sum(&mut node.statements, more.statements);
    node.preparing_commits += more.preparing_commits;
    node.measures.append(&more.measures);
    node.elsewhere_s = combine(node.elsewhere_s, more.elsewhere_s, |a, b| a + b);
    node.growth_share =
        combine(node.growth_share, more.growth_share, |a, b| (1.0 + a) * (1.0 + b) - 1.0);
    for (longest, more) in
        [(&mut node.lag_max_s, more.lag_max_s), (&mut node.lag_p95_s, more.lag_p95_s)]
    {
        *longest = [*longest, more].into_iter().flatten().reduce(f64::max);
    }
    let mean =
        |a: f64, b: f64| (a * before_s + b * own_s) / (before_s + own_s).max(f64::MIN_POSITIVE);
    node.cpu_share = combine(node.cpu_share, more.cpu_share, mean);
    node.hit_share = combine(node.hit_share, more.hit_share, mean);
    node.down = node.down.take().or_else(|| more.down.clone());
    node.was_alone &= more.was_alone;
    for work in &more.background {
        if !node.background.contains(work) {
            node.background.push(work.clone());
        }
    }
}

/// Percentiles of one load generator don't add up: those of all do.
fn add_member(member: &mut GeneratorMember, more: &GeneratorMember, before_s: f64) {
    member.statements += more.statements;
    member.committed += more.committed;
    member.cpu_s = combine(member.cpu_s, more.cpu_s, |a, b| a + b);
    member.late_ms = [member.late_ms, more.late_ms].into_iter().flatten().reduce(f64::max);
    member.latency = None;
    member.to_s = before_s + more.to_s;
    member.lost = member.lost.take().or_else(|| more.lost.clone());
    worsen(&mut member.conditions, &more.conditions);
}

fn add_together(sum: &mut Option<Together>, more: Option<&Together>) {
    *sum = combine(sum.take(), more.cloned(), |one, more| Together {
        commits: combine(one.commits, more.commits, |a, b| a + b),
        client_commits: combine(one.client_commits, more.client_commits, |a, b| a + b),
        preparing_commits: one.preparing_commits + more.preparing_commits,
        through_endpoint: one.through_endpoint || more.through_endpoint,
    });
}

fn add_freshness(sum: &mut Option<Freshness>, more: Option<&Freshness>) {
    *sum = combine(sum.take(), more.cloned(), |one, more| Freshness {
        asked: one.asked + more.asked,
        stale: one.stale + more.stale,
        asked_other: one.asked_other + more.asked_other,
        stale_other: one.stale_other + more.stale_other,
        stale_max_ms: [one.stale_max_ms, more.stale_max_ms].into_iter().flatten().reduce(f64::max),
        unplaced: one.unplaced + more.unplaced,
    });
}

/// A check of the trial is the worst of its stages.
fn worst_checks(stages: &[TrialSummary]) -> Vec<DataCheck> {
    let Some(last) = stages.last() else { return Vec::new() };
    let checks = last.checks.iter().filter_map(|DataCheck { name, .. }| {
        let checks = stages.iter().flat_map(|stage| &stage.checks);
        let checks = checks.filter(|check| check.name == *name);
        let worst = checks.max_by_key(|check| match check.verdict {
            CheckVerdict::Passed => 0,
            CheckVerdict::NotMade => 1,
            CheckVerdict::Failed => 2,
        })?;
        let (stages, evidence) = (stages.len().to_string(), &worst.evidence);
        let evidence = say!(check_after_each_stage, stages, evidence);
        Some(DataCheck { name: name.clone(), verdict: worst.verdict, evidence })
    });
    checks.collect()
}

fn join_statements(stages: &[TrialSummary]) -> Vec<StatementLatency> {
    let mut statements: Vec<StatementLatency> = Vec::new();
    for statement in stages.iter().flat_map(|stage| &stage.statement_latencies) {
        let sum = statements
            .iter_mut()
            .find(|sum| (&sum.script, sum.number) == (&statement.script, statement.number));
        let Some(sum) = sum else {
            statements.push(statement.clone());
            continue;
        };
        let count = sum.count + statement.count;
        let sum_us = sum.mean_us * sum.count as f64 + statement.mean_us * statement.count as f64;
        sum.mean_us = if count > 0 { sum_us / count as f64 } else { 0.0 };
        if statement.count > 0 {
            let min_us = if sum.count > 0 { sum.min_us } else { f64::INFINITY };
            sum.min_us = min_us.min(statement.min_us);
            sum.max_us = sum.max_us.max(statement.max_us);
        }
        sum.count = count;
        sum.failures += statement.failures;
        sum.retries += statement.retries;
    }
    statements
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_core::DbError;
    use dyno_engine::record::Window;
    use dyno_engine::{Joined, TrialEnd};
    use dyno_facts::{Counts, KindSummary, StatementCounts};

    #[test]
    fn stages_are_equal_parts_with_different_seeds() {
        let trial = PlannedTrial {
            duration_s: Some(1_000.0),
            warmup_s: 60.0,
            seed: 7,
            ..PlannedTrial::default()
        };
        let [first, second, begun] = [(1, false), (2, true), (2, false)]
            .map(|(number, follows)| stage_trial(&trial, StageOf { number, of: 4 }, follows));
        assert_eq!((first.duration_s, first.warmup_s, first.seed), (Some(250.0), 60.0, 7));
        assert_eq!((second.duration_s, second.warmup_s), (Some(250.0), 25.0));
        assert_ne!(second.seed, first.seed);
        assert_eq!(begun.warmup_s, 60.0, "a process that has just begun");
        assert!(second.seed < 1 << 53);
    }

    const SECOND: u64 = 1_000_000_000;

    fn new_result(committed: u64, in_flight: u64, latency_ns: u64) -> TrialResult {
        let window = Window { released: 0, opens: 0, closes: 10 * SECOND, interval: SECOND };
        let part = Joined::new(window, 1, 1, false).lose(0, DbError::lost("gone"));
        let mut result = part.expect("a result");
        result.window.closes = 10 * SECOND;
        let started = committed + in_flight;
        result.total.kinds[0].counts = Counts { started, committed, ..Counts::default() };
        (0..committed).for_each(|_| result.total.kinds[0].latency.record(latency_ns));
        result.in_flight = in_flight;
        result.ended = TrialEnd::Time;
        result
    }

    fn new_stage(trial: u32, started_at: &str, commits: Option<u64>) -> TrialSummary {
        let mut stage = TrialIdentity::default().summary(dyno_facts::TrialStatus::Stage);
        (stage.trial, stage.window_s) = (trial, 10.0);
        stage.started_at = started_at.to_owned();
        stage.kinds = vec![KindSummary {
            name: "one".to_owned(),
            counts: Counts::default(),
            statements: StatementCounts::default(),
            latency: dyno_facts::LatencySummary::default(),
        }];
        let node = NodeConditions {
            commits,
            cpu_share: Some(0.1 * f64::from(trial)),
            data_bytes: Some(u64::from(trial)),
            ..NodeConditions::default()
        };
        stage.conditions.nodes.insert("n1".to_owned(), node);
        let verdict = if trial == 1 { CheckVerdict::NotMade } else { CheckVerdict::Passed };
        let evidence = format!("of {trial}").into();
        stage.checks = vec![DataCheck { name: "books".to_owned(), verdict, evidence }];
        stage
    }

    #[test]
    fn stages_add_up_and_say_what_lay_between_them() {
        let stages = [
            new_stage(1, "2026-01-01T00:00:00Z", Some(7)),
            new_stage(3, "2026-01-01T00:00:12Z", Some(5)),
        ];
        let results = [new_result(40, 1, 1_000_000), new_result(60, 2, 3_000_000)];
        let sum = join_stages(&PlannedTrial::default(), &stages, &results).expect("a sum");
        assert_eq!((sum.counts.committed, sum.in_flight, sum.window_s), (100, 3, 20.0));
        assert_eq!((sum.tps, sum.latency.count), (5.0, 100));
        assert!((sum.latency.p50_us - 3_000.0).abs() < 3.0, "{:?}", sum.latency);
        let facts: Vec<_> =
            sum.stages.iter().map(|stage| (stage.trial, stage.from_s, stage.gap_s)).collect();
        assert_eq!(facts, [(1, 0.0, None), (3, 10.0, Some(2.0))]);
        let node = &sum.conditions.nodes["n1"];
        assert_eq!((node.commits, node.data_bytes), (Some(12), Some(1)));
        assert!((node.cpu_share.expect("a mean") - 0.2).abs() < 1e-9);
        assert_eq!(sum.checks[0].verdict, CheckVerdict::NotMade);
        assert!(sum.checks[0].evidence.to_string().contains("of 1"), "{}", sum.checks[0].evidence);
        assert!(sum.notes.iter().any(|note| note.to_string().contains("at most 2.00 s")));
    }

    #[test]
    fn what_one_stage_does_not_know_the_trial_does_not_know() {
        let stages = [
            new_stage(1, "2026-01-01T00:00:00Z", Some(7)),
            new_stage(2, "2026-01-01T00:00:12Z", None),
        ];
        let results = [new_result(1, 0, 1), new_result(1, 0, 1)];
        let sum = join_stages(&PlannedTrial::default(), &stages, &results).expect("a sum");
        assert_eq!(sum.conditions.nodes["n1"].commits, None);
        assert!(join_stages(&PlannedTrial::default(), &[], &[]).is_err());
    }
}
