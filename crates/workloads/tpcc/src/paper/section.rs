//! The section of an experiment that is TPC-C: its levels, its kinds of transactions, and what speaks for its trials.

use super::rows::{KindRow, are_short, edition_blocks, executed, kinds};
use super::{bound_sentence, deviations, facts, isolation_text, terminals_text, tpcc_of};
use crate::facts::{AuditLine, ConditionLine, ConditionState, PauseFacts, TpccFacts};
use dyno_facts::{CheckVerdict, DataCheck, Lang, Message, SAMPLES_BEYOND, SeriesRow, say};
use dyno_report::blocks::{Blocks, Cell, PaperRows, Span, Style, bad, spread, strong};
use dyno_report::charts::{self, Drawing, Rate};
use dyno_report::format::{
    self,
    NumberFormat::{Fixed, Ms, Right, Short, Whole},
};
use dyno_report::sections::{
    CountedOutcome, count_outcomes, notes, outcomes, plain_items, shades, target_of, verdict_of,
};
use dyno_report::svg::{Series, Stroke};
use dyno_report::{Experiment, Paper, Point, Trial};

/// The section with its charts; `None` where no trial is TPC-C.
pub(super) fn blocks(paper: &Paper, experiment: &Experiment, lang: Lang) -> Option<Blocks> {
    let trials = own_trials(paper, experiment)?;
    let mut blocks = head(paper, experiment);
    edition_blocks(paper, experiment, &mut blocks);
    blocks.figures(charts::of_experiment(paper, experiment, lang));
    mix_and_responses(paper, experiment, &mut blocks);
    let over_time = all_over_time(paper, experiment, lang);
    if over_time.is_empty() {
        blocks.fine(say!(tpmc_over_time_is_not_drawn));
    } else {
        blocks.fine(shades(say!(warm_up_ramp_up)));
        blocks.grid(over_time);
    }
    evidence(&trials, &mut blocks);
    blocks.heading(4, "", say!(where_these_trials_depart_from_the), "");
    blocks.list(Style::Plain, plain_items(&deviations(paper, &trials)));
    Some(blocks)
}

/// What a terminal shows of it.
pub(super) fn terminal(paper: &Paper, experiment: &Experiment) -> Option<Blocks> {
    let trials = own_trials(paper, experiment)?;
    let mut blocks = head(paper, experiment);
    edition_blocks(paper, experiment, &mut blocks);
    mix_and_responses(paper, experiment, &mut blocks);
    evidence(&trials, &mut blocks);
    Some(blocks)
}

fn own_trials<'a>(paper: &'a Paper, experiment: &'a Experiment) -> Option<Vec<&'a Trial>> {
    let trials = paper.trials_in(experiment).filter(|trial| facts(trial).is_some());
    Some(trials.collect::<Vec<_>>()).filter(|trials| !trials.is_empty())
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
        words.extend(format::unique(own.map(|own| bound_sentence(&own)).collect()));
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
            setup(p).map(|setup| isolation_text(setup.isolation.as_deref()))
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

/// The mix and the response times by point and kind.
fn mix_and_responses(paper: &Paper, experiment: &Experiment, blocks: &mut Blocks) {
    let points = experiment.points.iter().map(|point| paper.trials_of(point));
    let rows: Vec<KindRow<'_>> = points.flat_map(|trials| kinds(&trials)).collect();
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
        .col(say!(executed), Whole, |row| executed(&row.counts))
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
    let title = match rows.iter().any(|row| row.latencies.len() > 1) {
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
        .col(say!(mean_2), Ms, |row| {
            row.spread(SAMPLES_BEYOND, |it| it.mean_us).map(|us| spread(us, 1))
        })
        .col(say!(n_90th), Ms, |row| row.p90_us().map(|us| spread(us, row.latencies.len())))
        .class("strong")
        .col(say!(n_95th), Ms, |row| row.spread(0.05, |it| it.p95_us).map(|us| spread(us, 1)))
        .col(say!(n_99th), Ms, |row| row.spread(0.01, |it| it.p99_us).map(|us| spread(us, 1)))
        .col(say!(maximum), Ms, |row| row.max_us())
        .col(say!(limit_of_the_90th_s), Whole, |row| row.limit_s())
        .text(say!(limit), |row| judged(row.is_within_limit(), say!(met), say!(exceeded)))
        .text(say!(mean_at_most_the_90th), |row| {
            judged(row.is_mean_below_p90(), say!(yes), say!(no_3))
        })
}

/// Conditions, books and audits.
fn evidence(trials: &[&Trial], blocks: &mut Blocks) {
    conditions(trials, blocks);
    blocks.table(
        PaperRows::new(say!(what_was_acknowledged_against_what_the), &proofs(trials))
            .look("text")
            .text(say!(comparison), |(title, _): &Proof| title)
            .text(say!(outcome), |(_, ended)| outcomes(ended, false)),
    );
    for trial in trials {
        let lines = facts(trial).map_or(&[][..], |facts| facts.audit.as_slice());
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

/// A condition before the trials, or after them.
type Side = fn(&ConditionLine) -> Option<&ConditionState>;

/// Every condition that some trial has recorded; a reason that all of a side have is told once.
fn conditions(trials: &[&Trial], blocks: &mut Blocks) {
    const SIDES: [Side; 2] = [|line| line.before.as_ref(), |line| line.after.as_ref()];
    let all = || trials.iter().filter_map(|trial| facts(trial)).flat_map(|own| &own.conditions);
    let reasons = SIDES.map(|side| {
        let first = all().find_map(side)?;
        let is_common = all().filter_map(side).all(|state| state == first);
        (is_common && first.verdict == CheckVerdict::NotMade).then_some(&first.evidence)
    });
    let ended = |id: &str, side: usize| {
        count_outcomes(trials, |trial| {
            let line = facts(trial).and_then(|own| own.conditions.iter().find(|it| it.id == id));
            match line.map(SIDES[side]) {
                Some(Some(state)) if reasons[side] == Some(&state.evidence) => {
                    (Some(state.verdict), None)
                }
                Some(Some(state)) => (Some(state.verdict), non_empty(&state.evidence)),
                Some(None) => (None, Some(say!(need_not_hold_then))),
                None => (Some(CheckVerdict::NotMade), Some(say!(the_trial_has_no_record_of_it))),
            }
        })
    };
    let mut rows: Vec<(&ConditionLine, [Vec<CountedOutcome>; 2])> = Vec::new();
    for line in all() {
        if !rows.iter().any(|(other, _)| other.id == line.id) {
            rows.push((line, [ended(&line.id, 0), ended(&line.id, 1)]));
        }
    }
    if rows.is_empty() {
        blocks.fine(say!(consistency_conditions_not_made_no_trial));
        return;
    }
    blocks.table(
        PaperRows::new(say!(consistency_conditions_of_clause_3_3), &rows)
            .look("text")
            .text(say!(condition), |(line, _)| &line.id)
            .text(say!(what_has_to_hold), |(line, _)| &line.rule)
            .text(say!(before), |(_, ended)| outcomes(&ended[0], true))
            .text(say!(after), |(_, ended)| outcomes(&ended[1], true)),
    );
    let [before, after] = reasons;
    let before = before.map(|reason| say!(before_not_made, reason = reason));
    let after = after.map(|reason| say!(after_not_made, reason = reason));
    blocks.fine(Message::sentences(&before.into_iter().chain(after).collect::<Vec<_>>()));
}

/// Evidence as it was stored.
fn non_empty(evidence: &Message) -> Option<Message> {
    (!evidence.is_empty()).then(|| evidence.clone())
}

/// A comparison of what was acknowledged with what the database holds, and how that ended.
type Proof = (Message, Vec<CountedOutcome>);

/// The books and the ledger.
fn proofs(trials: &[&Trial]) -> [Proof; 2] {
    let proof = |title, name: &str, absent: Message| -> Proof {
        let ended = count_outcomes(trials, |trial| {
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
    let books = say!(books_what_was_acknowledged_by_district);
    let ledger = say!(ledger_every_acknowledged_order_is_found);
    [
        proof(books, DataCheck::BOOKS, say!(the_trial_has_no_record_of)),
        proof(ledger, DataCheck::LEDGER, say!(no_durable_ledger_was_kept_option)),
    ]
}

fn with(lines: &[AuditLine], verdict: CheckVerdict) -> usize {
    lines.iter().filter(|line| line.verdict == verdict).count()
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

/// tpmC over time, a chart per trial.
fn all_over_time(paper: &Paper, experiment: &Experiment, lang: Lang) -> Vec<Drawing> {
    let own: Vec<&Trial> = paper.trials_in(experiment).collect();
    let width = if own.len() == 1 { charts::WIDE.0 } else { charts::SMALL.0 };
    own.iter().filter_map(|trial| over_time(paper, trial, width, lang)).collect()
}

/// How many of so many intervals make a stretch that has some twenty orders; at least ten stretches.
fn sparse(intervals: usize, orders: f64) -> usize {
    const ORDERS: f64 = 20.0;
    let wanted = (ORDERS * intervals as f64 / orders.max(1.0)).ceil() as usize;
    wanted.clamp(1, (intervals / 10).max(1))
}

/// New-Orders per minute of a trial; `None` where its intervals do not tell kinds apart.
fn over_time(paper: &Paper, trial: &Trial, width: f64, lang: Lang) -> Option<Drawing> {
    let facts = trial.summary.own::<TpccFacts>()?;
    let kinds = &trial.summary.kinds;
    let place = kinds.iter().position(|kind| kind.name == TpccFacts::NEW_ORDER)?;
    let is_told = |row: &SeriesRow| row.committed_by_kind.len() == kinds.len();
    if trial.series.len() < 2 || !trial.series.iter().all(is_told) {
        return None;
    }
    let series = &trial.series;
    let orders = |row: &SeriesRow| row.committed_by_kind[place] as f64;
    let usual = charts::stretches(series);
    let sparse = sparse(series.len(), series.iter().map(orders).sum());
    let is_sparse = sparse > usual[0].len();
    let stretches = if is_sparse { series.chunks(sparse).collect() } else { usual };
    let longest = stretches[0].len();
    let tpmc = Rate { name: "tpmC", of: &orders, per_s: 60.0 };
    let class = charts::colour(paper, &trial.target);
    let mut line = charts::rate_over_time(&stretches, &tpmc, &class);
    if is_sparse {
        // Of a few orders the range of single intervals shows chance alone.
        line.band.clear();
    }
    let deferred = kinds.iter().position(|kind| kind.name == TpccFacts::DEFERRED);
    let transactions = |row: &SeriesRow| {
        let of_all = row.committed_by_kind.iter().enumerate();
        of_all.filter(|(kind, _)| Some(*kind) != deferred).map(|(_, count)| *count as f64).sum()
    };
    let total = Rate { name: "tpmTOTAL", of: &transactions, per_s: 60.0 };
    let mut total = charts::rate_over_time(&stretches, &total, &class);
    total.band.clear();
    total.stroke = Stroke::Dotted;
    let drawn = total.points.iter().filter_map(|(_, value)| *value);
    let highest = drawn.chain(line.band.iter().map(|(_, _, high)| *high)).fold(0.0, f64::max);
    let mut lines = vec![line, total];
    let last = &series[series.len() - 1];
    let span = (series[0].begins_s, last.begins_s + last.length_s);
    lines.extend(facts.tpmc_limit.map(|limit| limit_line(limit, span, lang)));
    let y = charts::linear_axis(
        say!(per_minute_tpmc_and_tpmtotal).render(lang).as_str(),
        [highest, facts.tpmc_limit.unwrap_or(0.0)].into_iter(),
        4,
    );
    let mut chart = charts::panel(trial, &"tpmC".into(), y, lines, lang);
    chart.width = width;
    chart.height += 40.0;
    let thinned = match (longest, is_sparse) {
        (1, _) => None,
        (n, true) => Some(say!(drawn_in_stretches_of_intervals_means, n = n.to_string())),
        (n, false) => Some(say!(drawn_in_stretches_of_intervals_mean_with, n = n.to_string())),
    };
    let caption = say!(
        trial_tpmc_over_time_repeat,
        trial = &trial.label,
        target = &trial.target,
        terminals = terminals_text(facts.terminals),
        repeat = trial.summary.repeat.to_string()
    );
    let caption: Vec<Message> = [caption].into_iter().chain(thinned).collect();
    Some(Drawing {
        caption: Message::sentences(&caption).render(lang),
        legend: charts::legend(&chart),
        svgs: vec![chart.svg()],
        halves: vec![charts::halved(chart).svg()],
        ..Drawing::default()
    })
}

/// The most tpmC that keying and think times allow.
fn limit_line(limit: f64, (begin_s, end_s): (f64, f64), lang: Lang) -> Series {
    Series {
        name: say!(most_that_keying_and_think_times).render(lang),
        class: "published".to_owned(),
        stroke: Stroke::Dashed,
        points: vec![(begin_s, Some(limit)), (end_s, Some(limit))],
        band: Vec::new(),
        has_dots: false,
        has_line: true,
        end_label: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_orders_are_drawn_in_long_stretches() {
        assert_eq!(sparse(200, 100_000.0), 1, "500 in each interval");
        assert_eq!(sparse(200, 400.0), 10, "2 in each interval");
        assert_eq!(sparse(200, 0.0), 20, "ten stretches, whatever is in them");
        assert_eq!(sparse(5, 1.0), 1);
    }
}
