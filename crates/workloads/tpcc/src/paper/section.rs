//! The section of an experiment that is TPC-C.

use super::evidence::{self, ConditionRow, Proof};
use super::rows::{self, MixRow, PauseRow, ResponseRow};
use super::{tpcc_of, trials_of, trials_of_points, words};
use crate::facts::{AuditLine, TpccFacts};
use dyno_facts::{CheckVerdict, Lang, Message, say};
use dyno_report::blocks::{Blocks, Cell, PaperRows, Span, Style, bad, spread, strong};
use dyno_report::charts;
use dyno_report::format::{
    self,
    NumberFormat::{Fixed, Ms, Right, Short, Whole},
};
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
    let disclosure =
        [strong(say!(tpc_c_like_2)), Span::plain(" "), Span::plain(words::disclosure())];
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
        .text(say!(flight), |p| setup(p).map(|setup| &setup.flight))
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
fn mix_and_responses(
    paper: &Paper,
    experiment: &Experiment,
    blocks: &mut Blocks,
) -> Vec<ResponseRow> {
    let points = trials_of_points(paper, experiment);
    let rows: Vec<MixRow> = points.iter().flat_map(|point| rows::mix(point)).collect();
    if !rows.is_empty() {
        blocks.table(mix(&rows));
        blocks.fine(say!(executed_are_those_that_ended_as));
    }
    let rows: Vec<ResponseRow> = points.iter().flat_map(|point| rows::responses(point)).collect();
    if !rows.is_empty() {
        blocks.table(responses(&rows));
        blocks.fine(say!(a_limit_is_met_when_the));
    }
    let pauses: Vec<PauseRow> = points.iter().flat_map(|point| rows::pauses(point)).collect();
    if !pauses.is_empty() {
        blocks.table(pauses_table(&pauses));
        blocks.fine(say!(pauses_are_means_of_the_window));
    }
    super::reach::blocks(&points, blocks);
    rows
}

fn pauses_table(rows: &[PauseRow]) -> PaperRows<&PauseRow> {
    let judged = |mean_s: f64, is_short: bool| {
        Cell::from(mean_s).with_if(is_short, || vec![bad(say!(below))])
    };
    PaperRows::new(say!(keying_and_think_times_of_terminals), rows)
        .text(say!(target_2), |row| &row.target)
        .col(say!(terminals), Whole, |row| row.terminals)
        .text(say!(transaction_2), |row| &row.kind)
        .group(say!(keying_s), |table| {
            table
                .col(say!(mean_2), Fixed(3), |row| judged(row.pauses.keying_s, row.is_keying_short))
                .col(say!(at_least), Fixed(0), |row| row.pauses.keying_clause_s)
                .col(say!(count), Whole, |row| row.pauses.keyings)
        })
        .group(say!(think_time_s), |table| {
            table
                .col(say!(mean_2), Fixed(3), |row| judged(row.pauses.think_s, row.is_think_short))
                .col(say!(at_least), Fixed(0), |row| row.pauses.think_clause_s)
                .col(say!(count), Whole, |row| row.pauses.thinks)
        })
}

fn mix(rows: &[MixRow]) -> PaperRows<&MixRow> {
    // What is no part of the mix has no shares.
    let in_mix = |row: &MixRow, cell: Cell| match row.share_percent {
        Some(_) => cell,
        None => Cell::covered(),
    };
    PaperRows::new(say!(the_mix_over_all_repeats), rows)
        .text(say!(target_2), |row| &row.target)
        .col(say!(terminals), Whole, |row| row.terminals)
        .text(say!(transaction_2), |row| &row.kind)
        .col(say!(executed), Whole, |row| row.executed)
        .group(say!(share_of_the_mix_percent), |table| {
            table
                .col(say!(observed), Fixed(3), |row| match row.share_percent {
                    Some(share) => {
                        let below = || vec![bad(say!(below))];
                        Cell::from(share).with_if(row.is_below_least, below).class("strong")
                    }
                    None => Cell::from(say!(not_in_the_mix)).over(3),
                })
                .col(say!(wanted), Fixed(2), |row| in_mix(row, row.wanted_percent.into()))
                .col(say!(at_least), Fixed(2), |row| in_mix(row, row.least_percent.into()))
        })
        .group(say!(how_they_ended), |table| {
            table
                .col(say!(committed), Whole, |row| row.committed)
                .col(say!(rolled_back), Whole, |row| row.rolled_back)
                .col(say!(failed), Whole, |row| row.failed)
        })
        .col(say!(retries), Whole, |row| row.retries)
        .col(say!(unknown_outcome), Whole, |row| row.unknown)
}

fn responses(rows: &[ResponseRow]) -> PaperRows<&ResponseRow> {
    let title = match rows.iter().any(|row| row.repeats > 1) {
        true => say!(response_times_in_ms_medians_of),
        false => say!(response_times_in_ms),
    };
    let judged = |is_so: Option<bool>, good: Message, wrong: Message| match is_so {
        None => Span::plain(say!(not_judged)),
        Some(true) => Span::plain(good),
        Some(false) => bad(wrong),
    };
    PaperRows::new(title, rows)
        .text(say!(target_2), |row| &row.target)
        .col(say!(terminals), Whole, |row| row.terminals)
        .text(say!(transaction_2), |row| &row.kind)
        .col(say!(count), Whole, |row| row.count)
        .col(say!(mean_2), Ms, |row| row.mean_us.map(|us| spread(us, 1)))
        .col(say!(n_90th), Ms, |row| row.p90_us.map(|us| spread(us, row.repeats)))
        .class("strong")
        .col(say!(n_95th), Ms, |row| row.p95_us.map(|us| spread(us, 1)))
        .col(say!(n_99th), Ms, |row| row.p99_us.map(|us| spread(us, 1)))
        .col(say!(maximum), Ms, |row| row.max_us)
        .col(say!(limit_of_the_90th_s), Whole, |row| row.limit_s)
        .text(say!(limit), |row| judged(row.is_within_limit, say!(met), say!(exceeded)))
        .text(say!(mean_at_most_the_90th), |row| {
            judged(row.is_mean_below_p90, say!(yes), say!(no_3))
        })
}

/// Conditions, books and audits.
fn evidence(trials: &[&Trial], blocks: &mut Blocks) {
    let mut rows = evidence::conditions(trials);
    let left_out = evidence::common_reasons(&mut rows);
    if rows.is_empty() {
        blocks.fine(say!(consistency_conditions_not_made_no_trial));
    } else {
        blocks.table(conditions(&rows));
        blocks.fine(left_out.unwrap_or_default());
    }
    blocks.table(
        PaperRows::new(say!(what_was_acknowledged_against_what_the), &evidence::proofs(trials))
            .look("text")
            .text(say!(comparison), |proof: &Proof| &proof.what)
            .text(say!(outcome), |proof| outcomes(&proof.outcomes, false)),
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
