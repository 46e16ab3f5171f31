//! The section of an experiment that is TPC-C: its levels, its kinds of transactions, what speaks for its trials, and
//! editions of a database: the throughput of each, its terminals and its costs.

use super::{
    TpccPoint, bound_sentence, deviations, isolation_text, kind_name, terminals_text, tpcc_facts,
    tpcc_point,
};
use crate::audit::least_mean_of_exponentials;
use crate::facts::{AuditLine, ConditionLine, ConditionState, PauseFacts, TpccFacts, TpccKind};
use dyno_facts::{
    CheckVerdict, Counts, DataCheck, KindSummary, Lang, LatencySummary, Message, Metric,
    PublishedRow, SAMPLES_BEYOND, SeriesRow, say,
};
use dyno_report::blocks::{Blocks, Cell, PaperRows, Span, Style, bad, spread, strong};
use dyno_report::charts::{self, Drawing, Rate};
use dyno_report::format::{
    self,
    NumberFormat::{Fixed, Ms, Percent, Plain, Right, Short, Whole},
    unique,
};
use dyno_report::sections::{
    CountedOutcome, Judged, count_outcomes, notes, outcomes, plain_items, shades, target_of,
    verdict_of,
};
use dyno_report::svg::{Series, Stroke};
use dyno_report::{Experiment, Paper, PaperTarget, Point, Spread, Trial};

/// The section with its charts; `None` if no trial is TPC-C.
pub(super) fn blocks(paper: &Paper, experiment: &Experiment, lang: Lang) -> Option<Blocks> {
    let trials = own_trials(paper, experiment)?;
    let mut blocks = disclosure_and_levels(paper, experiment);
    blocks.figures(charts::experiment_charts(paper, experiment, lang));
    mix_and_responses(paper, experiment, &mut blocks);
    let over_time = all_over_time(paper, experiment, lang);
    if over_time.is_empty() {
        blocks.fine(say!(tpmc_over_time_is_not_drawn));
    } else {
        blocks.fine(shades(say!(warm_up_ramp_up)));
        blocks.grid(over_time);
    }
    evidence(&trials, &mut blocks);
    blocks.heading(4, "", say!(specification_deviations), "");
    blocks.list(Style::Plain, plain_items(&deviations(&trials)));
    Some(blocks)
}

fn own_trials<'a>(paper: &'a Paper, experiment: &'a Experiment) -> Option<Vec<&'a Trial>> {
    let trials = paper.trials_in(experiment).filter(|trial| tpcc_facts(trial).is_some());
    Some(trials.collect::<Vec<_>>()).filter(|trials| !trials.is_empty())
}

fn disclosure_and_levels(paper: &Paper, experiment: &Experiment) -> Blocks {
    let mut blocks = Blocks::default();
    let disclosure =
        [strong(say!(tpc_c_like_label)), Span::plain(" "), Span::plain(say!(tpc_disclaimer))];
    blocks.styled(Style::Disclosure, disclosure.to_vec());
    if !experiment.points.is_empty() {
        blocks.table(level_table(paper, experiment));
        let points = experiment.points.iter().filter_map(|point| tpcc_point(paper, point));
        let mut words = vec![say!(tpmc_and_tpmtotal_defined)];
        words.extend(unique(points.map(|point| bound_sentence(&point)).collect()));
        blocks.fine(Message::sentences(&words));
    }
    edition_blocks(paper, experiment, &mut blocks);
    blocks
}

fn level_table<'a>(paper: &'a Paper, experiment: &'a Experiment) -> PaperRows<&'a Point> {
    let title = if experiment.points.iter().any(|point| point.repeats > 1) {
        say!(tpmc_new_orders_per_minute_of_repeats)
    } else {
        say!(tpmc_new_orders_per_minute)
    };
    PaperRows::new(title, &experiment.points)
        .text(say!(target_column), |p| target_of(&p.target, p.status))
        .col(say!(terminals), Whole, |p| p.terminals())
        .col(say!(sessions), Whole, |p| point_setup(paper, p).map(|setup| setup.sessions))
        .col(say!(warehouses_used_loaded), Right, |p| {
            point_setup(paper, p).map(|setup| {
                let used_and_loaded = [setup.warehouses, setup.warehouses_loaded];
                used_and_loaded.map(|number| format::whole(number.into())).join(" / ")
            })
        })
        .text(say!(profile_title), |p| point_setup(paper, p).map(|setup| &setup.profile))
        .class("keep")
        .text(say!(isolation_column), |p| {
            point_setup(paper, p).map(|setup| isolation_text(setup.isolation.as_deref()))
        })
        .col("tpmC", Short, |p| tpcc_point(paper, p).map(|tpcc| spread(tpcc.tpmc, p.repeats)))
        .class("strong")
        .col(say!(acknowledged_per_minute), Short, |p| {
            tpcc_point(paper, p).map(|tpcc| spread(tpcc.tpmc_committed, p.repeats))
        })
        .col("tpmTOTAL", Short, |p| {
            tpcc_point(paper, p).map(|tpcc| spread(tpcc.tpm_total, p.repeats))
        })
        .col(say!(tpmc_per_warehouse_column), Short, |p| {
            let tpcc = tpcc_point(paper, p)?;
            Some(tpcc.tpmc.median / f64::from(tpcc.facts.warehouses.max(1)))
        })
        .col(say!(checkpoints_ended), Whole, |p| {
            paper
                .point_trials(p)
                .iter()
                .map(|trial| {
                    let nodes = trial.summary.conditions.nodes.values();
                    nodes.filter_map(|node| node.checkpoints).reduce(|sum, count| sum + count)
                })
                .collect::<Option<Vec<u64>>>()?
                .into_iter()
                .min()
        })
        .text(say!(notes), |p| notes(paper, &p.checks))
}

/// The facts of a point's first trial; `None` if one of its trials is not TPC-C.
fn point_setup<'a>(paper: &'a Paper, point: &Point) -> Option<&'a TpccFacts> {
    tpcc_point(paper, point).map(|tpcc| tpcc.facts)
}

/// The mix and the response times by point and kind.
fn mix_and_responses(paper: &Paper, experiment: &Experiment, blocks: &mut Blocks) {
    let points = experiment.points.iter().map(|point| paper.point_trials(point));
    let rows: Vec<KindRow<'_>> = points.flat_map(|trials| kinds(&trials)).collect();
    if !rows.is_empty() {
        blocks.table(mix_table(&rows));
        blocks.fine(say!(executed_are_those_that_ended_as));
        blocks.table(response_table(&rows));
        blocks.fine(say!(limit_rule));
    }
}

fn mix_table<'a>(rows: &'a [KindRow<'a>]) -> PaperRows<&'a KindRow<'a>> {
    PaperRows::new(say!(the_mix_over_all_repeats), rows)
        .text(say!(target_column), |row| row.target)
        .col(say!(terminals), Whole, |row| row.terminals)
        .text(say!(transaction_column), |row| &row.kind)
        .col(say!(executed), Whole, |row| row.counts.completed())
        .group(say!(share_of_the_mix_percent), |table| {
            table
                .col(say!(observed), Fixed(3), |row| match row.share_percent {
                    Some(share) => Cell::from(share)
                        .with_if(row.is_below_least(), || vec![bad(say!(below))])
                        .class("strong"),
                    None => Cell::from(say!(not_in_the_mix)).over(3),
                })
                .col(say!(wanted), Fixed(2), |row| {
                    cover_outside_mix(row, row.held.map_or(0.0, |held| held.share_percent).into())
                })
                .col(say!(at_least), Fixed(2), |row| {
                    cover_outside_mix(row, row.least_percent().into())
                })
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

/// The cell of a share; a covered one for a kind outside of the mix, which has no shares.
fn cover_outside_mix(row: &KindRow<'_>, cell: Cell) -> Cell {
    if row.share_percent.is_some() { cell } else { Cell::covered() }
}

fn response_table<'a>(rows: &'a [KindRow<'a>]) -> PaperRows<&'a KindRow<'a>> {
    let title = if rows.iter().any(|row| row.latencies.len() > 1) {
        say!(response_times_of_repeats)
    } else {
        say!(response_times_in_ms)
    };
    PaperRows::new(title, rows)
        .text(say!(target_column), |row| row.target)
        .col(say!(terminals), Whole, |row| row.terminals)
        .text(say!(transaction_column), |row| &row.kind)
        .col(say!(count), Whole, |row| row.sample_count())
        .col(say!(mean_column), Ms, |row| {
            row.spread(SAMPLES_BEYOND, |latency| latency.mean_us).map(|us| spread(us, 1))
        })
        .col(say!(n_90th), Ms, |row| {
            row.spread(0.1, |latency| latency.p90_us).map(|us| spread(us, row.latencies.len()))
        })
        .class("strong")
        .col(say!(n_95th), Ms, |row| {
            row.spread(0.05, |latency| latency.p95_us).map(|us| spread(us, 1))
        })
        .col(say!(n_99th), Ms, |row| {
            row.spread(0.01, |latency| latency.p99_us).map(|us| spread(us, 1))
        })
        .col(say!(maximum), Ms, |row| row.max_us())
        .col(say!(limit_of_the_90th_s), Whole, |row| row.held.map(|held| held.limit_p90_s))
        .text(say!(limit), |row| match row.is_within_limit() {
            None => Span::plain(say!(not_judged)),
            Some(true) => Span::plain(say!(met)),
            Some(false) => bad(say!(exceeded)),
        })
}

/// Conditions, books and audits.
fn evidence(trials: &[&Trial], blocks: &mut Blocks) {
    conditions(trials, blocks);
    blocks.table(
        PaperRows::new(say!(acknowledged_work_title), &proofs(trials))
            .look("text")
            .text(say!(comparison), |(title, _): &Proof| title)
            .text(say!(outcome), |(_, ended)| outcomes(ended, false)),
    );
    for trial in trials {
        let lines = tpcc_facts(trial).map_or(&[][..], |facts| facts.audit.as_slice());
        if lines.is_empty() {
            let (trial, target) = (&trial.label, &trial.target);
            blocks.fine(say!(audit_of_trial_on_not_made, trial, target));
            continue;
        }
        let mut inner = Blocks::default();
        inner.table(audit_lines(trial, lines));
        let is_open = trials.len() == 1 || count_verdicts(lines, CheckVerdict::Failed) > 0;
        blocks.details(audit_summary(trial, lines), is_open, inner);
    }
}

/// A condition before the trials, or after them.
type Side = fn(&ConditionLine) -> Option<&ConditionState>;

/// Every condition that some trial has recorded; a reason that all of a side have is printed once.
fn conditions(trials: &[&Trial], blocks: &mut Blocks) {
    const SIDES: [Side; 2] = [|line| line.before.as_ref(), |line| line.after.as_ref()];
    let condition_lines =
        || trials.iter().filter_map(|trial| tpcc_facts(trial)).flat_map(|facts| &facts.conditions);
    let reasons = SIDES.map(|side| {
        let first = condition_lines().find_map(side)?;
        let is_common = condition_lines().filter_map(side).all(|state| state == first);
        (is_common && first.verdict == CheckVerdict::NotMade).then_some(&first.evidence)
    });
    let mut rows: Vec<(&ConditionLine, [Vec<CountedOutcome>; 2])> = Vec::new();
    for line in condition_lines() {
        if !rows.iter().any(|(other, _)| other.id == line.id) {
            let ended = [0, 1].map(|side: usize| {
                condition_outcomes(trials, &line.id, SIDES[side], reasons[side])
            });
            rows.push((line, ended));
        }
    }
    if rows.is_empty() {
        blocks.fine(say!(consistency_conditions_not_made_no_trial));
        return;
    }
    blocks.table(
        PaperRows::new(say!(consistency_conditions_title), &rows)
            .look("text")
            .text(say!(condition), |(line, _)| &line.id)
            .text(say!(what_has_to_hold), |(line, _)| &line.rule)
            .text(say!(before), |(_, ended)| outcomes(&ended[0], true))
            .text(say!(after), |(_, ended)| outcomes(&ended[1], true)),
    );
    let [before, after] = reasons;
    let before = before.map(|reason| say!(before_not_made, reason));
    let after = after.map(|reason| say!(after_not_made, reason));
    blocks.fine(Message::sentences(&before.into_iter().chain(after).collect::<Vec<_>>()));
}

/// Counts how a condition ended on a side; evidence that is `common_reason` is left out.
fn condition_outcomes(
    trials: &[&Trial],
    id: &str,
    side: Side,
    common_reason: Option<&Message>,
) -> Vec<CountedOutcome> {
    count_outcomes(trials, |trial| {
        let line =
            tpcc_facts(trial).and_then(|facts| facts.conditions.iter().find(|line| line.id == id));
        match line.map(side) {
            Some(Some(state)) if common_reason == Some(&state.evidence) => {
                (Some(state.verdict), None)
            }
            Some(Some(state)) => with_evidence(state.verdict, &state.evidence),
            Some(None) => (None, Some(say!(need_not_hold_then))),
            None => (Some(CheckVerdict::NotMade), Some(say!(condition_unrecorded))),
        }
    })
}

fn with_evidence(verdict: CheckVerdict, evidence: &Message) -> Judged {
    (Some(verdict), Some(evidence.clone()).filter(|text| !text.is_empty()))
}

/// A comparison of what was acknowledged with what the database holds, and how that ended.
type Proof = (Message, Vec<CountedOutcome>);

/// The books and the ledger.
fn proofs(trials: &[&Trial]) -> [Proof; 2] {
    let books = say!(books_what_was_acknowledged_by_district);
    let ledger = say!(ledger_every_acknowledged_order_is_found);
    [
        (books, DataCheck::BOOKS, say!(books_unrecorded)),
        (ledger, DataCheck::LEDGER, say!(no_durable_ledger_was_kept_option)),
    ]
    .map(|(title, name, absent)| {
        let ended = count_outcomes(trials, |trial| {
            match trial.summary.checks.iter().find(|check| check.name == name) {
                // The figures differ from trial to trial; they are listed with the checks of each.
                Some(check) if check.verdict == CheckVerdict::Passed && trials.len() > 1 => {
                    (Some(CheckVerdict::Passed), None)
                }
                Some(check) => with_evidence(check.verdict, &check.evidence),
                None => (Some(CheckVerdict::NotMade), Some(absent.clone())),
            }
        });
        (title, ended)
    })
}

fn count_verdicts(lines: &[AuditLine], verdict: CheckVerdict) -> usize {
    lines.iter().filter(|line| line.verdict == verdict).count()
}

fn audit_summary(trial: &Trial, lines: &[AuditLine]) -> Vec<Span> {
    let title = say!(audit_title, trial = &trial.label, target = &trial.target);
    let (failed, unjudged) =
        (count_verdicts(lines, CheckVerdict::Failed), count_verdicts(lines, CheckVerdict::NotMade));
    let text = say!(
        figures_within_their_bounds,
        n = (lines.len() - failed - unjudged).to_string(),
        all = lines.len().to_string(),
        failed = failed.to_string(),
        unjudged = unjudged.to_string()
    );
    let result = if failed > 0 { bad(text) } else { Span::plain(text) };
    vec![Span::plain(title), Span::plain(say!(text_word)), result]
}

fn audit_lines<'a>(trial: &Trial, lines: &'a [AuditLine]) -> PaperRows<&'a AuditLine> {
    PaperRows::new(say!(audit_table_title, trial = &trial.label), lines)
        .text(say!(figure), |line| &line.name)
        .col(say!(observed_column), Right, |line| &line.observed)
        .class("strong")
        .col(say!(expected), Right, |line| &line.expected)
        .col(say!(bound), Right, |line| &line.bound)
        .col(say!(observations), Whole, |line| line.of)
        .text(say!(verdict), |line| verdict_of(line.verdict))
}

/// tpmC over time, a chart per trial.
fn all_over_time(paper: &Paper, experiment: &Experiment, lang: Lang) -> Vec<Drawing> {
    let trials: Vec<&Trial> = paper.trials_in(experiment).collect();
    let width = if trials.len() == 1 { charts::WIDE.0 } else { charts::SMALL.0 };
    trials.iter().filter_map(|trial| over_time(paper, trial, width, lang)).collect()
}

/// New-Orders per minute of a trial; `None` if its intervals do not tell kinds apart.
fn over_time(paper: &Paper, trial: &Trial, width: f64, lang: Lang) -> Option<Drawing> {
    let facts = tpcc_facts(trial)?;
    let (kinds, series) = (&trial.summary.kinds, &trial.series);
    let new_order = kinds.iter().position(|kind| kind.name == TpccFacts::NEW_ORDER)?;
    let deferred = kinds.iter().position(|kind| kind.name == TpccFacts::DEFERRED);
    if series.len() < 2 || !series.iter().all(|row| row.committed_by_kind.len() == kinds.len()) {
        return None;
    }
    let stretches = charts::stretches(series);
    let class = charts::color(paper, &trial.target);
    let tpmc = Rate {
        name: "tpmC",
        of: &|row: &SeriesRow| row.committed_by_kind[new_order] as f64,
        per_s: 60.0,
    };
    let tpm_total = Rate {
        name: "tpmTOTAL",
        of: &|row: &SeriesRow| {
            let deferred = deferred.map_or(0, |at| row.committed_by_kind[at]);
            (row.committed_by_kind.iter().sum::<u64>() + row.rolled_back - deferred) as f64
        },
        per_s: 60.0,
    };
    let line = charts::rate_over_time(&stretches, &tpmc, &class);
    let total = charts::rate_over_time(&stretches, &tpm_total, &class);
    let total = Series { band: Vec::new(), stroke: Stroke::Dotted, ..total };
    let totals = total.points.iter().filter_map(|(_, value)| *value);
    let highest = totals.chain(line.band.iter().map(|(_, _, high)| *high)).fold(0.0, f64::max);
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
    let mut caption = vec![say!(
        trial_tpmc_over_time_repeat,
        trial = &trial.label,
        target = &trial.target,
        terminals = terminals_text(facts.terminals),
        repeat = trial.summary.repeat.to_string()
    )];
    let n = stretches[0].len();
    caption.extend((n > 1).then(|| say!(drawn_in_stretches_of_intervals, n = n.to_string())));
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
        ..Series::default()
    }
}

/// One kind of transaction at a point, over all repeats.
struct KindRow<'a> {
    target: &'a str,
    terminals: u32,
    kind: Message,
    /// Limits of this kind, if the trials have them.
    held: Option<&'a TpccKind>,
    counts: Counts,
    /// Share of the mix, percent; `None` for kinds outside of the mix.
    share_percent: Option<f64>,
    /// Commits sent and never answered, of the whole trials; `None` if that is not counted.
    unknown: Option<u64>,
    latencies: Vec<LatencySummary>,
}

impl KindRow<'_> {
    /// The least share that the specification allows, percent; `None` without a bound.
    fn least_percent(&self) -> Option<f64> {
        self.held.map(|held| held.least_share_percent).filter(|percent| *percent > 0.0)
    }

    fn is_below_least(&self) -> bool {
        self.share_percent.zip(self.least_percent()).is_some_and(|(share, least)| share < least)
    }

    fn sample_count(&self) -> u64 {
        self.latencies.iter().map(|latency| latency.count).sum()
    }

    /// A figure over the repeats, for the share of transactions beyond it; `None` if one has too few.
    fn spread(&self, beyond: f64, value: fn(&LatencySummary) -> f64) -> Option<Spread> {
        let values = self.latencies.iter().map(|latency| {
            (latency.count as f64 * beyond >= SAMPLES_BEYOND).then(|| value(latency))
        });
        Spread::from_values(values.collect::<Option<Vec<f64>>>()?)
    }

    /// Largest of all repeats; `None` if there was none of its kind.
    fn max_us(&self) -> Option<f64> {
        let latencies = self.latencies.iter().filter(|latency| latency.count > 0);
        latencies.map(|latency| latency.max_us).reduce(f64::max)
    }

    /// Returns true if the 90th percentile is within its limit in every repeat; `None` with too few transactions to
    /// say.
    fn is_within_limit(&self) -> Option<bool> {
        let limit_us = self.held?.limit_p90_s * 1e6;
        let verdicts = self.latencies.iter().map(|latency| Some(p90_us(latency)? <= limit_us));
        Some(verdicts.collect::<Option<Vec<bool>>>()?.into_iter().all(|is_within| is_within))
    }
}

/// The kinds at a point, in the order of its first trial; without the deferred part of Delivery if nothing was
/// deferred.
fn kinds<'a>(trials: &[&'a Trial]) -> Vec<KindRow<'a>> {
    let facts: Vec<&TpccFacts> = trials.iter().filter_map(|trial| tpcc_facts(trial)).collect();
    let Some(first) = facts.first() else { return Vec::new() };
    let mut sums = trials[0].summary.kinds.clone();
    for other in trials[1..].iter().flat_map(|trial| &trial.summary.kinds) {
        if let Some(kind) = sums.iter_mut().find(|kind| kind.name == other.name) {
            kind.counts.add(&other.counts);
        }
    }
    sums.retain(|kind| kind.name != TpccFacts::DEFERRED || kind.counts.started > 0);
    let unknown = facts.iter().map(|facts| facts.orders_unknown).sum();
    let rows = sums.iter().map(|sum| {
        let trial_kinds = trials.iter().flat_map(|trial| &trial.summary.kinds);
        KindRow {
            target: &trials[0].target,
            terminals: first.terminals,
            kind: kind_name(&sum.name),
            held: kind_facts(first, &sum.name),
            counts: sum.counts,
            share_percent: share_percent(&sums, &sum.name),
            unknown: (sum.name == TpccFacts::NEW_ORDER).then_some(unknown),
            latencies: trial_kinds
                .filter(|kind| kind.name == sum.name)
                .map(|kind| kind.latency)
                .collect(),
        }
    });
    rows.collect()
}

/// Keying times are waited for to the nanosecond; a mean that is shorter by this was not rounded.
const KEYING_EXACT_S: f64 = 0.001;

/// Keying and think times are shorter than those of clause 5.2.5.7, the latter by more than chance explains.
pub(super) fn are_short(pauses: &PauseFacts) -> (bool, bool) {
    let least_think_s = pauses.think_clause_s * least_mean_of_exponentials(pauses.thinks);
    (
        pauses.keyings > 0 && pauses.keying_s < pauses.keying_clause_s - KEYING_EXACT_S,
        pauses.thinks > 0 && pauses.think_s < least_think_s,
    )
}

/// The facts of a kind; of one that the trial does not list, what is known of none.
pub(super) fn kind_facts<'a>(facts: &'a TpccFacts, name: &str) -> Option<&'a TpccKind> {
    facts.kinds.iter().find(|kind| kind.name == name)
}

/// The share of a trial's kind in its mix, percent; `None` of a kind outside of it.
pub(super) fn share_percent(kinds: &[KindSummary], name: &str) -> Option<f64> {
    let in_mix = kinds.iter().filter(|kind| kind.name != TpccFacts::DEFERRED);
    let kind = in_mix.clone().find(|kind| kind.name == name)?;
    let total: u64 = in_mix.map(|kind| kind.counts.completed()).sum();
    (total > 0).then(|| 100.0 * kind.counts.completed() as f64 / total as f64)
}

/// The 90th percentile of a kind, if it rests on enough transactions.
pub(super) fn p90_us(latency: &LatencySummary) -> Option<f64> {
    (latency.count as f64 * 0.1 >= SAMPLES_BEYOND).then_some(latency.p90_us)
}

/// An edition at a number of terminals: measured, published, or both.
struct EditionRow<'a> {
    name: Message,
    vcpu: Option<f64>,
    measured: Option<Measured<'a>>,
    terminals: f64,
    warehouses: Option<f64>,
    published: Option<f64>,
    /// The checks that forbid what was measured.
    marks: String,
}

type Measured<'a> = (&'a Point, TpccPoint<'a>);

/// The table, in the section of the first experiment that has some of them; nothing if there is one edition only.
fn edition_blocks(paper: &Paper, experiment: &Experiment, blocks: &mut Blocks) {
    let rows = edition_rows(paper, experiment);
    if !rows.is_empty() {
        blocks.table(edition_table(&rows));
        blocks.fine(say!(an_edition_is_a_target));
    }
}

/// The points without pauses, which are about the same thing: what a database can carry.
fn measured<'a>(
    paper: &'a Paper,
    experiment: &'a Experiment,
) -> impl Iterator<Item = Measured<'a>> {
    let points = experiment.points.iter().filter(|point| !point.has_fault);
    let points = points.filter_map(|point| Some((point, tpcc_point(paper, point)?)));
    points.filter(|(_, tpcc)| tpcc.facts.tpmc_limit.is_none())
}

fn edition_rows<'a>(paper: &'a Paper, experiment: &Experiment) -> Vec<EditionRow<'a>> {
    let experiments = paper.experiments.iter();
    let experiments: Vec<&Experiment> =
        experiments.filter(|experiment| measured(paper, experiment).next().is_some()).collect();
    let is_first = experiments.first().is_some_and(|first| first.name == experiment.name);
    let mut points: Vec<Measured<'_>> =
        experiments.iter().flat_map(|experiment| measured(paper, experiment)).collect();
    let names = points.iter().map(|(point, _)| point.target.as_str()).collect();
    if !is_first || unique(names).len() < 2 {
        return Vec::new();
    }
    let rows = experiments
        .iter()
        .flat_map(|experiment| &experiment.published)
        .flat_map(|shown| &shown.table.rows);
    let published: Vec<&PublishedRow> =
        unique(rows.filter(|row| row.metrics.contains_key("tpmc")).collect());
    points.sort_by_key(|(point, _)| {
        paper.targets.iter().position(|target| target.label == point.target)
    });
    let is_about =
        |row: &PublishedRow, target: &PaperTarget| row.targets.contains(&target.facts.name);
    let mut rows: Vec<EditionRow<'_>> = points
        .into_iter()
        .map(|(point, tpcc)| {
            let target = paper.targets.iter().find(|target| target.label == point.target);
            let counterpart =
                target.and_then(|target| published.iter().find(|row| is_about(row, target)));
            EditionRow {
                name: Message::from(&point.target),
                vcpu: target.and_then(|target| target.facts.vcpu),
                terminals: tpcc.facts.terminals.into(),
                warehouses: Some(tpcc.facts.warehouses.into()),
                published: counterpart.map(|row| row.metrics["tpmc"]),
                marks: charts::forbidding(paper, &point.checks),
                measured: Some((point, tpcc)),
            }
        })
        .collect();
    let unmeasured =
        published.iter().filter(|row| !paper.targets.iter().any(|target| is_about(row, target)));
    rows.extend(unmeasured.map(|row| EditionRow {
        name: say!(published_edition, edition = &row.label),
        vcpu: row.vcpu(),
        measured: None,
        terminals: row.workers().unwrap_or_default(),
        warehouses: row.number("warehouses"),
        published: Some(row.metrics["tpmc"]),
        marks: String::new(),
    }));
    rows
}

fn edition_table<'a>(rows: &'a [EditionRow<'a>]) -> PaperRows<&'a EditionRow<'a>> {
    let spread_cell =
        |row: &'a EditionRow<'a>, get: fn(&TpccPoint<'_>) -> Spread| -> Option<Cell> {
            row.measured.as_ref().map(|(point, tpcc)| spread(get(tpcc), point.repeats))
        };
    PaperRows::new(say!(editions_beside_each_other), rows)
        .text(say!(edition), |row| &row.name)
        .col(say!(shards), Whole, |row| row.measured.as_ref()?.1.facts.shards)
        .col(say!(vcpu_stated), Plain, |row| row.vcpu)
        .col(say!(warehouses_used), Whole, |row| row.warehouses)
        .col(say!(terminals), Whole, |row| row.terminals)
        .col("tpmC", Short, move |row| {
            let marks = Message::verbatim(row.marks.trim());
            spread_cell(row, |tpcc| tpcc.tpmc).map(|cell| cell.with(marks))
        })
        .class("strong")
        .col("tpmTOTAL", Short, move |row| spread_cell(row, |tpcc| tpcc.tpm_total))
        .col(say!(published_tpmc), Short, |row| row.published)
        .class("theirs")
        .col(say!(across_shards_percent), Percent, |row| {
            row.measured.as_ref()?.1.facts.crossing_share
        })
        .col(say!(server_cpu_column), Short, |row| {
            let (point, _) = row.measured.as_ref()?;
            point.costs.get(&Metric::ServerCpuUs).map(|us| us.median)
        })
}
