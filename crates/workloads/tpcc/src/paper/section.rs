//! The section of an experiment that is TPC-C: its levels, its kinds of transactions, and what speaks for its trials.

use super::rows::{KindRow, are_short, kinds, reach_blocks};
use super::{tpcc_of, trials_of, trials_of_points, words};
use crate::facts::{AuditLine, ConditionLine, ConditionState, PauseFacts, TpccFacts};
use dyno_facts::{CheckVerdict, DataCheck, Lang, Message, say};
use dyno_report::blocks::{Blocks, Cell, PaperRows, Span, Style, bad, spread, strong};
use dyno_report::charts;
use dyno_report::format::{
    self,
    NumberFormat::{Fixed, Ms, Right, Short, Whole},
};
use dyno_report::outcomes::{self, CountedOutcome};
use dyno_report::sections::{notes, outcomes, plain_items, shades, target_of, verdict_of};
use dyno_report::{Experiment, Paper, Point, Trial};

/// The section with its charts; `None` where no trial is TPC-C.
pub(super) fn blocks(paper: &Paper, experiment: &Experiment, lang: Lang) -> Option<Blocks> {
    let trials = own_trials(paper, experiment)?;
    let mut blocks = head(paper, experiment);
    super::editions::blocks(paper, experiment, lang, &mut blocks);
    blocks.figures(charts::of_experiment(paper, experiment, lang));
    let rows = mix_and_responses(paper, experiment, &mut blocks);
    blocks.figures(super::charts::responses(paper, experiment, &rows, lang));
    let over_time = super::charts::all_over_time(paper, experiment, lang);
    if over_time.is_empty() {
        blocks.fine(say!(tpmc_over_time_is_not_drawn));
    } else {
        blocks.fine(shades(say!(warm_up_ramp_up)));
        blocks.grid(over_time);
    }
    evidence(&trials, &mut blocks);
    blocks.heading(4, "", say!(where_these_trials_depart_from_the), "");
    blocks.list(Style::Plain, plain_items(&words::deviations(paper, &trials)));
    Some(blocks)
}

/// What a terminal shows of it.
pub(super) fn terminal(paper: &Paper, experiment: &Experiment) -> Option<Blocks> {
    let trials = own_trials(paper, experiment)?;
    let mut blocks = head(paper, experiment);
    super::editions::terminal(paper, experiment, &mut blocks);
    mix_and_responses(paper, experiment, &mut blocks);
    evidence(&trials, &mut blocks);
    Some(blocks)
}

fn own_trials<'a>(paper: &'a Paper, experiment: &'a Experiment) -> Option<Vec<&'a Trial>> {
    Some(trials_of(paper, experiment)).filter(|trials| !trials.is_empty())
}

fn head(paper: &Paper, experiment: &Experiment) -> Blocks {
    let mut blocks = Blocks::default();
    let disclosure = [
        strong(say!(tpc_c_like_2)),
        Span::plain(" "),
        Span::plain(say!(this_is_not_a_tpc_result_the)),
    ];
    blocks.styled(Style::Disclosure, disclosure.to_vec());
    if !experiment.points.is_empty() {
        blocks.table(levels(paper, experiment));
        let own = experiment.points.iter().filter_map(|point| tpcc_of(paper, point));
        let mut words = vec![say!(tpmtotal_counts_committed_transactions_of_all)];
        words.extend(format::unique(own.map(|own| words::bound(&own)).collect()));
        blocks.fine(Message::sentences(&words));
    }
    blocks
}

fn levels<'a>(paper: &'a Paper, experiment: &'a Experiment) -> PaperRows<&'a Point> {
    let title = match experiment.points.iter().any(|point| point.repeats > 1) {
        true => say!(tpmc_new_orders_per_minute_of_repeats),
        false => say!(tpmc_new_orders_per_minute),
    };
    let own = |point: &Point| tpcc_of(paper, point);
    let setup = |point: &Point| own(point).map(|own| own.facts);
    PaperRows::new(title, &experiment.points)
        .text(say!(target_2), |p| target_of(&p.target, p.status))
        .col(say!(terminals), Whole, |p| p.terminals())
        .col(say!(sessions), Whole, |p| setup(p).map(|setup| setup.sessions))
        .col(say!(warehouses_used_loaded), Right, |p| {
            let both = |setup: &TpccFacts| [setup.warehouses, setup.warehouses_loaded];
            setup(p).map(|own| both(own).map(|number| format::whole(number.into())).join(" / "))
        })
        .text(say!(profile_2), |p| setup(p).map(|setup| &setup.profile))
        .class("keep")
        .text(say!(isolation_2), |p| {
            setup(p).map(|setup| words::isolation(setup.isolation.as_deref()))
        })
        .col("tpmC", Short, |p| own(p).map(|own| spread(own.tpmc, p.repeats)))
        .class("strong")
        .col(say!(acknowledged_per_minute), Short, |p| {
            own(p).map(|own| spread(own.tpmc_committed, p.repeats))
        })
        .col("tpmTOTAL", Short, |p| own(p).map(|own| spread(own.tpm_total, p.repeats)))
        .col(say!(tpmc_per_warehouse_2), Short, |p| {
            own(p).map(|own| own.tpmc.median / f64::from(own.facts.warehouses.max(1)))
        })
        .col(say!(checkpoints_ended), Whole, |p| {
            let seen = |trial: &&Trial| {
                let nodes = trial.summary.conditions.nodes.values();
                nodes.filter_map(|node| node.checkpoints).reduce(|sum, more| sum + more)
            };
            paper.trials_of(p).iter().map(seen).collect::<Option<Vec<u64>>>()?.into_iter().min()
        })
        .text(say!(notes), |p| notes(paper, &p.checks))
}

/// The mix and the response times by point and kind; the latter are charted, too.
fn mix_and_responses<'a>(
    paper: &'a Paper,
    experiment: &Experiment,
    blocks: &mut Blocks,
) -> Vec<KindRow<'a>> {
    let points = trials_of_points(paper, experiment);
    let rows: Vec<KindRow<'_>> = points.iter().flat_map(|point| kinds(point)).collect();
    if !rows.is_empty() {
        blocks.table(mix(&rows));
        blocks.fine(say!(executed_are_those_that_ended_as));
        blocks.table(responses(&rows));
        blocks.fine(say!(a_limit_is_met_when_the));
    }
    let paced: Vec<(&KindRow<'_>, PauseFacts)> =
        rows.iter().filter_map(|row| Some((row, row.pauses?))).collect();
    if !paced.is_empty() {
        blocks.table(pauses_table(&paced));
        blocks.fine(say!(pauses_are_means_of_the_window));
    }
    reach_blocks(&points, blocks);
    rows
}

fn pauses_table<'a>(
    rows: &'a [(&KindRow<'a>, PauseFacts)],
) -> PaperRows<&'a (&'a KindRow<'a>, PauseFacts)> {
    let judged = |mean_s: f64, is_short: bool| {
        Cell::from(mean_s).with_if(is_short, || vec![bad(say!(below))])
    };
    PaperRows::new(say!(keying_and_think_times_of_terminals), rows)
        .text(say!(target_2), |(row, _)| row.target)
        .col(say!(terminals), Whole, |(row, _)| row.terminals)
        .text(say!(transaction_2), |(row, _)| &row.kind)
        .group(say!(keying_s), |table| {
            table
                .col(say!(mean_2), Fixed(3), |(_, pauses)| {
                    judged(pauses.keying_s, are_short(pauses).0)
                })
                .col(say!(at_least), Fixed(0), |(_, pauses)| pauses.keying_clause_s)
                .col(say!(count), Whole, |(_, pauses)| pauses.keyings)
        })
        .group(say!(think_time_s), |table| {
            table
                .col(say!(mean_2), Fixed(3), |(_, pauses)| {
                    judged(pauses.think_s, are_short(pauses).1)
                })
                .col(say!(at_least), Fixed(0), |(_, pauses)| pauses.think_clause_s)
                .col(say!(count), Whole, |(_, pauses)| pauses.thinks)
        })
}

fn mix<'a>(rows: &'a [KindRow<'a>]) -> PaperRows<&'a KindRow<'a>> {
    // What is no part of the mix has no shares.
    let in_mix = |row: &KindRow<'_>, cell: Cell| match row.share_percent {
        Some(_) => cell,
        None => Cell::covered(),
    };
    PaperRows::new(say!(the_mix_over_all_repeats), rows)
        .text(say!(target_2), |row| row.target)
        .col(say!(terminals), Whole, |row| row.terminals)
        .text(say!(transaction_2), |row| &row.kind)
        .col(say!(executed), Whole, |row| row.executed())
        .group(say!(share_of_the_mix_percent), |table| {
            table
                .col(say!(observed), Fixed(3), |row| match row.share_percent {
                    Some(share) => {
                        let below = || vec![bad(say!(below))];
                        Cell::from(share).with_if(row.is_below_least(), below).class("strong")
                    }
                    None => Cell::from(say!(not_in_the_mix)).over(3),
                })
                .col(say!(wanted), Fixed(2), |row| {
                    in_mix(row, row.held.map_or(0.0, |held| held.share_percent).into())
                })
                .col(say!(at_least), Fixed(2), |row| in_mix(row, row.least_percent().into()))
        })
        .group(say!(how_they_ended), |table| {
            table
                .col(say!(committed), Whole, |row| row.counts.committed)
                .col(say!(rolled_back), Whole, |row| row.counts.rolled_back)
                .col(say!(failed), Whole, |row| row.counts.failed)
        })
        .col(say!(retries), Whole, |row| row.counts.retries)
        .col(say!(unknown_outcome), Whole, |row| row.unknown)
}

fn responses<'a>(rows: &'a [KindRow<'a>]) -> PaperRows<&'a KindRow<'a>> {
    let title = match rows.iter().any(|row| row.repeats() > 1) {
        true => say!(response_times_in_ms_medians_of),
        false => say!(response_times_in_ms),
    };
    let judged = |is_so: Option<bool>, good: Message, wrong: Message| match is_so {
        None => Span::plain(say!(not_judged)),
        Some(true) => Span::plain(good),
        Some(false) => bad(wrong),
    };
    PaperRows::new(title, rows)
        .text(say!(target_2), |row| row.target)
        .col(say!(terminals), Whole, |row| row.terminals)
        .text(say!(transaction_2), |row| &row.kind)
        .col(say!(count), Whole, |row| row.count())
        .col(say!(mean_2), Ms, |row| row.mean_us().map(|us| spread(us, 1)))
        .col(say!(n_90th), Ms, |row| row.p90_us().map(|us| spread(us, row.repeats())))
        .class("strong")
        .col(say!(n_95th), Ms, |row| row.p95_us().map(|us| spread(us, 1)))
        .col(say!(n_99th), Ms, |row| row.p99_us().map(|us| spread(us, 1)))
        .col(say!(maximum), Ms, |row| row.max_us())
        .col(say!(limit_of_the_90th_s), Whole, |row| row.limit_s())
        .text(say!(limit), |row| judged(row.is_within_limit(), say!(met), say!(exceeded)))
        .text(say!(mean_at_most_the_90th), |row| {
            judged(row.is_mean_below_p90(), say!(yes), say!(no_3))
        })
}

/// Conditions, books and audits.
fn evidence(trials: &[&Trial], blocks: &mut Blocks) {
    let mut rows = condition_rows(trials);
    let left_out = common_reasons(&mut rows);
    if rows.is_empty() {
        blocks.fine(say!(consistency_conditions_not_made_no_trial));
    } else {
        blocks.table(conditions(&rows));
        blocks.fine(left_out.unwrap_or_default());
    }
    blocks.table(
        PaperRows::new(say!(what_was_acknowledged_against_what_the), &proofs(trials))
            .look("text")
            .text(say!(comparison), |(title, _): &Proof| title)
            .text(say!(outcome), |(_, ended)| outcomes(ended, false)),
    );
    for trial in trials {
        let lines = super::facts(trial).map_or(&[][..], |facts| facts.audit.as_slice());
        if lines.is_empty() {
            let (trial, target) = (&trial.label, &trial.target);
            blocks.fine(say!(audit_of_trial_on_not_made, trial = trial, target = target));
            continue;
        }
        let mut inner = Blocks::default();
        inner.table(audit_lines(trial, lines));
        let is_open = trials.len() == 1 || with(lines, CheckVerdict::Failed) > 0;
        blocks.details(audit_summary(trial, lines), is_open, inner);
    }
}

/// One condition over the trials of an experiment.
struct ConditionRow {
    /// `C1` to `C12` of clause 3.3.2, `X1` and on for further ones.
    id: String,
    rule: Message,
    /// Before the trials.
    before: Vec<CountedOutcome>,
    /// After them.
    after: Vec<CountedOutcome>,
}

/// Every condition that some trial has recorded.
fn condition_rows(trials: &[&Trial]) -> Vec<ConditionRow> {
    let lines = |trial: &Trial| -> Vec<ConditionLine> {
        trial.summary.own::<TpccFacts>().map(|facts| facts.conditions.clone()).unwrap_or_default()
    };
    let mut conditions: Vec<ConditionLine> = Vec::new();
    for line in trials.iter().flat_map(|trial| lines(trial)) {
        if !conditions.iter().any(|other| other.id == line.id) {
            conditions.push(line);
        }
    }
    let state =
        |trial: &Trial, id: &str, of: fn(ConditionLine) -> Option<ConditionState>| match lines(
            trial,
        )
        .into_iter()
        .find(|line| line.id == id)
        .map(of)
        {
            Some(Some(state)) => (Some(state.verdict), non_empty(&state.evidence)),
            Some(None) => (None, Some(say!(need_not_hold_then))),
            None => (Some(CheckVerdict::NotMade), Some(say!(the_trial_has_no_record_of_it))),
        };
    let row = |line: ConditionLine| ConditionRow {
        before: outcomes::outcomes(trials, |trial| state(trial, &line.id, |line| line.before)),
        after: outcomes::outcomes(trials, |trial| state(trial, &line.id, |line| line.after)),
        id: line.id,
        rule: line.rule.clone(),
    };
    conditions.into_iter().map(row).collect()
}

/// Evidence as it was stored.
fn non_empty(evidence: &Message) -> Option<Message> {
    (!evidence.is_empty()).then(|| evidence.clone())
}

/// Takes a reason out of the rows that is the same for all of them, and returns it in a sentence.
fn common_reasons(rows: &mut [ConditionRow]) -> Option<Message> {
    let before = common_reason(rows.iter_mut().flat_map(|row| &mut row.before));
    let after = common_reason(rows.iter_mut().flat_map(|row| &mut row.after));
    let sentences: Vec<Message> = [
        before.map(|reason| say!(before_not_made, reason = reason)),
        after.map(|reason| say!(after_not_made, reason = reason)),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!sentences.is_empty()).then(|| Message::sentences(&sentences))
}

fn common_reason<'a>(outcomes: impl Iterator<Item = &'a mut CountedOutcome>) -> Option<Message> {
    let mut outcomes: Vec<&mut CountedOutcome> =
        outcomes.filter(|outcome| outcome.verdict.is_some()).collect();
    let reason = outcomes.first()?.evidence.clone()?;
    let has_reason = |outcome: &&mut CountedOutcome| {
        outcome.verdict == Some(CheckVerdict::NotMade) && outcome.evidence.as_ref() == Some(&reason)
    };
    let is_common = outcomes.len() > 1 && outcomes.iter().all(has_reason);
    if is_common {
        outcomes.iter_mut().for_each(|outcome| outcome.evidence = None);
    }
    is_common.then_some(reason)
}

/// A comparison of what was acknowledged with what the database holds, and how that ended.
type Proof = (Message, Vec<CountedOutcome>);

/// The books and the ledger.
fn proofs(trials: &[&Trial]) -> Vec<Proof> {
    let proof = |title, name: &str, absent: Message| -> Proof {
        let ended = outcomes::outcomes(trials, |trial| {
            match trial.summary.checks.iter().find(|check| check.name == name) {
                // The figures differ from trial to trial; they stand with the checks of each.
                Some(check) if check.verdict == CheckVerdict::Passed && trials.len() > 1 => {
                    (Some(CheckVerdict::Passed), None)
                }
                Some(check) => (Some(check.verdict), non_empty(&check.evidence)),
                None => (Some(CheckVerdict::NotMade), Some(absent.clone())),
            }
        });
        (title, ended)
    };
    let (books, ledger) = (
        say!(books_what_was_acknowledged_by_district),
        say!(ledger_every_acknowledged_order_is_found),
    );
    vec![
        proof(books, DataCheck::BOOKS, say!(the_trial_has_no_record_of)),
        proof(ledger, DataCheck::LEDGER, say!(no_durable_ledger_was_kept_option)),
    ]
}

fn with(lines: &[AuditLine], verdict: CheckVerdict) -> usize {
    lines.iter().filter(|line| line.verdict == verdict).count()
}

fn conditions(rows: &[ConditionRow]) -> PaperRows<&ConditionRow> {
    let title = say!(consistency_conditions_of_clause_3_3);
    PaperRows::new(title, rows)
        .look("text")
        .text(say!(condition), |row| &row.id)
        .text(say!(what_has_to_hold), |row| &row.rule)
        .text(say!(before), |row| outcomes(&row.before, true))
        .text(say!(after), |row| outcomes(&row.after, true))
}

fn audit_summary(trial: &Trial, lines: &[AuditLine]) -> Vec<Span> {
    let title = say!(audit_of_trial_on, trial = &trial.label, target = &trial.target);
    let (all, passed) = (lines.len().to_string(), with(lines, CheckVerdict::Passed).to_string());
    let result = match (with(lines, CheckVerdict::Failed), with(lines, CheckVerdict::NotMade)) {
        (0, 0) => Span::plain(say!(of_figures_within_their_bounds, n = passed, all = all)),
        (0, others) => Span::plain(say!(
            of_figures_within_their_bounds_not,
            n = passed,
            all = all,
            others = others.to_string()
        )),
        (failed, _) => bad(say!(of_figures_out_of_their_bound, n = failed.to_string(), all = all)),
    };
    vec![Span::plain(title), Span::plain(say!(text_word)), result]
}

fn audit_lines<'a>(trial: &Trial, lines: &'a [AuditLine]) -> PaperRows<&'a AuditLine> {
    PaperRows::new(say!(what_trial_executed_against_what_it, trial = &trial.label), lines)
        .text(say!(figure), |line| &line.name)
        .col(say!(observed_2), Right, |line| &line.observed)
        .class("strong")
        .col(say!(expected), Right, |line| &line.expected)
        .col(say!(bound), Right, |line| &line.bound)
        .col(say!(observations), Whole, |line| line.of)
        .text(say!(verdict), |line| verdict_of(line.verdict))
}
