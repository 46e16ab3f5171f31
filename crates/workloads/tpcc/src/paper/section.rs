//! The section of an experiment that is TPC-C.

use super::TpccSection;
use super::{AuditRow, AuditTable, ConditionRow, MixRow, Proof, ResponseRow};
use dyno_facts::{Lang, Message, say};
use dyno_report::blocks::{Blocks, Cell, Rows, Span, Style, bad, spread, strong};
use dyno_report::charts;
use dyno_report::format::{
    self,
    Format::{Fixed, Ms, Right, Short, Whole},
};
use dyno_report::sections::{notes, outcomes, plain_items, shades, target_of, verdict_of};
use dyno_report::{Experiment, Paper, Point};

/// The section with its charts.
pub(super) fn blocks(
    paper: &Paper,
    experiment: &Experiment,
    section: &TpccSection,
    lang: Lang,
) -> Blocks {
    let mut blocks = head(paper, experiment, section);
    blocks.figures(charts::of_experiment(paper, experiment, lang));
    mix_and_responses(section, &mut blocks);
    let figures = super::drawings(paper, experiment, section, lang);
    blocks.figures(figures.responses);
    if figures.over_time.is_empty() {
        blocks.fine(say!(tpmc_over_time_is_not_drawn));
    } else {
        blocks.fine(shades(say!(warm_up_ramp_up)));
        blocks.grid(figures.over_time);
    }
    evidence(section, &mut blocks);
    if !section.deviations.is_empty() {
        blocks.heading(4, "", say!(where_these_trials_depart_from_the), "");
        blocks.list(Style::Plain, plain_items(&section.deviations));
    }
    blocks
}

/// What a terminal shows of it.
pub(super) fn terminal(paper: &Paper, experiment: &Experiment, section: &TpccSection) -> Blocks {
    let mut blocks = head(paper, experiment, section);
    mix_and_responses(section, &mut blocks);
    evidence(section, &mut blocks);
    blocks
}

fn head(paper: &Paper, experiment: &Experiment, section: &TpccSection) -> Blocks {
    let mut blocks = Blocks::default();
    let disclosure =
        [strong(say!(tpc_c_like_2)), Span::plain(" "), Span::plain(&section.disclosure)];
    blocks.styled(Style::Disclosure, disclosure.to_vec());
    if !experiment.points.is_empty() {
        blocks.table(levels(paper, experiment));
        let counts = say!(tpmtotal_counts_committed_transactions_of_all);
        let words: Vec<Message> = [counts].into_iter().chain(section.bounds.clone()).collect();
        blocks.fine(Message::sentences(&words));
    }
    blocks
}

fn levels<'a>(paper: &'a Paper, experiment: &'a Experiment) -> Rows<&'a Point> {
    let title = match experiment.points.iter().any(|point| point.repeats > 1) {
        true => say!(tpmc_new_orders_per_minute_whose),
        false => say!(tpmc_new_orders_per_minute_whose_commit),
    };
    let own = |point: &Point| super::point(&paper.trials_of(point));
    let setup = |point: &Point| own(point).map(|own| own.setup).unwrap_or_default();
    Rows::new(title, &experiment.points)
        .text(say!(target_2), |p| target_of(&p.target, p.status))
        .col(say!(terminals), Whole, |p| setup(p).terminals)
        .col(say!(sessions), Whole, |p| setup(p).sessions)
        .col(say!(warehouses_used_loaded), Right, |p| {
            let both = [setup(p).warehouses, setup(p).warehouses_loaded];
            both.map(|number| format::whole(number.into())).join(" / ")
        })
        .text(say!(profile_2), |p| setup(p).profile)
        .class("keep")
        .text(say!(flight), |p| setup(p).flight)
        .text(say!(isolation_2), |p| setup(p).isolation)
        .col("tpmC", Short, |p| own(p).map(|own| spread(own.tpmc, p.repeats)))
        .class("strong")
        .col("tpmTOTAL", Short, |p| own(p).map(|own| spread(own.tpm_total, p.repeats)))
        .col(say!(tpmc_per_warehouse_2), Short, |p| own(p).map(|own| own.per_warehouse))
        .text(say!(notes), |p| notes(paper, &p.checks))
}

fn mix_and_responses(section: &TpccSection, blocks: &mut Blocks) {
    if !section.mix.is_empty() {
        blocks.table(mix(&section.mix));
        blocks.fine(say!(executed_are_those_that_ended_as));
    }
    if !section.responses.is_empty() {
        blocks.table(responses(&section.responses));
        blocks.fine(say!(a_limit_is_met_when_the));
    }
}

fn mix(rows: &[MixRow]) -> Rows<&MixRow> {
    // What is no part of the mix has no shares.
    let in_mix = |row: &MixRow, cell: Cell| match row.share_percent {
        Some(_) => cell,
        None => Cell::covered(),
    };
    Rows::new(say!(the_mix_over_all_repeats), rows)
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

fn responses(rows: &[ResponseRow]) -> Rows<&ResponseRow> {
    let title = match rows.iter().any(|row| row.repeats > 1) {
        true => say!(response_times_in_ms_medians_of),
        false => say!(response_times_in_ms),
    };
    let judged = |is_so: Option<bool>, good: Message, wrong: Message| match is_so {
        None => Span::plain(say!(not_judged)),
        Some(true) => Span::plain(good),
        Some(false) => bad(wrong),
    };
    Rows::new(title, rows)
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
fn evidence(section: &TpccSection, blocks: &mut Blocks) {
    if section.conditions.is_empty() {
        blocks.fine(say!(consistency_conditions_not_made_no_trial));
    } else {
        blocks.table(conditions(&section.conditions));
        blocks.fine(section.conditions_left_out.clone().unwrap_or_default());
    }
    blocks.table(
        Rows::new(say!(what_was_acknowledged_against_what_the), &section.proofs)
            .look("text")
            .text(say!(comparison), |proof: &Proof| &proof.what)
            .text(say!(outcome), |proof| outcomes(&proof.outcomes, false)),
    );
    for audit in &section.audits {
        if audit.lines.is_empty() {
            blocks.fine(say!(
                audit_of_trial_on_not_made,
                trial = &audit.trial,
                target = &audit.target
            ));
            continue;
        }
        let mut inner = Blocks::default();
        inner.table(audit_lines(audit));
        let is_open = audit.failed > 0 || section.audits.len() == 1;
        blocks.details(audit_summary(audit), is_open, inner);
    }
}

fn conditions(rows: &[ConditionRow]) -> Rows<&ConditionRow> {
    let title = say!(consistency_conditions_of_clause_3_3);
    Rows::new(title, rows)
        .look("text")
        .text(say!(condition), |row| &row.id)
        .text(say!(what_has_to_hold), |row| &row.rule)
        .text(say!(before), |row| outcomes(&row.before, true))
        .text(say!(after), |row| outcomes(&row.after, true))
}

fn audit_summary(audit: &AuditTable) -> Vec<Span> {
    let title = say!(audit_of_trial_on, trial = &audit.trial, target = &audit.target);
    let (all, passed) = (audit.lines.len().to_string(), audit.passed.to_string());
    let result = match (audit.failed, audit.not_made) {
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

fn audit_lines(audit: &AuditTable) -> Rows<&AuditRow> {
    let trial = &audit.trial;
    let title = say!(what_trial_executed_against_what_it, trial = trial);
    Rows::new(title, &audit.lines)
        .text(say!(figure), |line| &line.name)
        .col(say!(observed_2), Right, |line| &line.observed)
        .class("strong")
        .col(say!(expected), Right, |line| &line.expected)
        .col(say!(bound), Right, |line| &line.bound)
        .col(say!(observations), Whole, |line| line.of)
        .text(say!(verdict), |line| verdict_of(line.verdict))
}
