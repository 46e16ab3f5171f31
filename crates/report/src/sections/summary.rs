//! The whole in a paragraph and a table.

use super::{notes, why_forbidden, with_objections};
use crate::blocks::{Blocks, Cell, PaperRows, Span, Style, link, spread};
use crate::evidence::{Experiment, KeyRow, Paper, PaperTarget, Point, node_scaling_sentences};
use crate::families::{families, family_of};
use crate::format::{
    self,
    NumberFormat::{Ms, Short, Whole},
};
use crate::text::{Lang, Message};
use dyno_facts::statistics::Metric;
use dyno_facts::{Purpose, RunStatus, say};
use std::collections::BTreeSet;

pub(super) fn blocks(paper: &Paper, lang: Lang) -> Blocks {
    let mut blocks = Blocks::default();
    blocks.section("1", say!(summary), "summary");
    let found = paper.checks.iter().filter(|check| !check.findings.is_empty()).count();
    let made = paper.checks.len().to_string();
    let mut sentences = sentences(paper);
    sentences.push(match found {
        0 => say!(none_of_checks_found_anything_to, made = made),
        _ => say!(of_checks_found_something_to_remark, found = found.to_string(), made = made),
    });
    let lead = vec![
        Span::plain(Message::sentences(&sentences)),
        Span::plain(" "),
        link(say!(all_checks), "#checks"),
    ];
    blocks.styled(Style::Lead, lead);
    blocks.extend(super::verdict::blocks(paper, lang));
    // The short edition has one table of results, in section 6.
    if paper.is_short() {
        return blocks;
    }
    blocks.table(best(paper));
    families().filter_map(|family| family.summary(paper)).for_each(|own| blocks.table(own));
    blocks
}

/// The best point of each experiment and target.
pub(super) fn best(paper: &Paper) -> PaperRows<KeyRow<'_>> {
    let title = say!(the_load_level_with_the_most);
    let rows = paper.result_rows();
    let own = format::unique(rows.iter().filter_map(|row| Some(row.point.main?.0)).collect());
    let of = |point: &Point, metric: Metric| {
        let (_, figure) = point.main.filter(|(own, _)| *own == metric)?;
        Some(spread(figure, point.repeats))
    };
    let table = PaperRows::new(title, rows)
        .text(say!(experiment), |row| {
            let to = format!("#experiment-{}", row.index + 1);
            let again = row.point.purpose == Purpose::Confirm;
            Cell::from(link(&row.experiment.title, to))
                .with_if(again, || vec![Span::plain(say!(measured_again))])
        })
        .text(say!(target_2), |row| &row.point.target);
    own.into_iter()
        .fold(table, |table, metric| {
            table.col(metric.title(), Short, |row| of(row.point, metric)).class("strong")
        })
        .col(say!(workers), Whole, |row| row.point.workers)
        .col(say!(transactions_per_s), Short, |row| spread(row.point.tps, row.point.repeats))
        .class("strong")
        .col(say!(statements_per_s), Short, |row| spread(row.point.qps, 1))
        .col(say!(mean_ms), Ms, |row| row.point.mean_us.map(|us| spread(us, 1)))
        .col(say!(p95_ms), Ms, |row| row.point.p95_us.map(|us| spread(us, row.point.repeats)))
        .col(say!(p99_ms), Ms, |row| row.point.p99_us.map(|us| spread(us, row.point.repeats)))
        .col(say!(errors), Whole, |row| row.point.errors)
        .text(say!(notes), |row| notes(paper, &row.point.checks))
}

/// So many sentences of what was reached are in the summary.
const MOST: usize = 3;

/// What was measured, what did not end well, what was reached.
fn sentences(paper: &Paper) -> Vec<Message> {
    if paper.trials.is_empty() {
        return vec![no_trial(paper)];
    }
    let mut sentences = vec![extent(paper)];
    sentences.extend(not_ended_well(paper));
    sentences.extend(paper.verdicts.sentence());
    let (told, has_more) = told(paper, MOST);
    sentences.extend(told);
    sentences.extend(has_more.then(|| match paper.is_short() {
        true => say!(section_6_has_the_others),
        false => say!(the_table_has_the_others),
    }));
    sentences.extend(paper.experiments.iter().flat_map(node_scaling_sentences));
    sentences
}

/// Why there is nothing to tell: a run may have failed before its first trial.
pub(super) fn no_trial(paper: &Paper) -> Message {
    let why = paper.runs.iter().find_map(|run| match &run.header.status {
        RunStatus::Failed(why) => Some(why),
        _ => None,
    });
    match why {
        Some(why) => say!(no_trial_was_executed, why = why),
        None => say!(no_trial_has_been_executed_yet),
    }
}

/// A sentence for each experiment and target, with what forbids its figures.
pub(crate) fn reached(paper: &Paper) -> Vec<Message> {
    let own = reached_and_checked(paper).into_iter();
    own.map(|(said, numbers)| with_objections(paper, said, &numbers)).collect()
}

/// The first sentences of what was reached, and whether there are more. What forbids all of them is said once, behind.
pub(super) fn told(paper: &Paper, most: usize) -> (Vec<Message>, bool) {
    let all = reached_and_checked(paper);
    let forbidding = |numbers: &[usize]| -> Vec<usize> {
        paper.forbidding(numbers).map(|check| check.number).collect()
    };
    let told = &all[..all.len().min(most)];
    let shared = told.first().map(|(_, numbers)| forbidding(numbers)).unwrap_or_default();
    let is_shared = told.iter().all(|(_, numbers)| forbidding(numbers) == shared);
    let sentence = |(said, numbers): &(Message, Vec<usize>)| match is_shared {
        true => said.clone(),
        false => with_objections(paper, said.clone(), numbers),
    };
    let mut sentences: Vec<Message> = told.iter().map(sentence).collect();
    if is_shared && !shared.is_empty() {
        sentences.push(say!(not_usable_because, why = why_forbidden(paper, &shared)));
    }
    (sentences, all.len() > told.len())
}

/// A sentence for each experiment and target, and the numbers of the checks that found something there.
fn reached_and_checked(paper: &Paper) -> Vec<(Message, Vec<usize>)> {
    let of_families = paper.experiments.iter().filter_map(|own| {
        let sentences = family_of(own)?.reached(paper, own);
        let numbers: Vec<usize> =
            own.points.iter().flat_map(|point| point.checks.iter().copied()).collect();
        Some(sentences.into_iter().map(move |said| (said, numbers.clone())))
    });
    let faults = paper.faults();
    let of_faults = faults.iter().map(|fault| (fault.sentence(), Vec::new()));
    let rows = paper.result_rows().into_iter();
    let of_transactions = rows.map(|row| (best_sentence(paper, row), row.point.checks.clone()));
    let reached: Vec<_> = of_faults.chain(of_transactions).chain(of_families.flatten()).collect();
    let is_failed = paper.trials.iter().all(|trial| trial.status == "failed");
    match reached.is_empty() && is_failed {
        true => vec![(say!(no_valid_result), Vec::new())],
        false => reached,
    }
}

pub(super) fn extent(paper: &Paper) -> Message {
    let describe = |target: &PaperTarget| match target.product.as_str() {
        "" => Message::from(&target.label),
        product => {
            let product = super::cover::facts::shown_product(product);
            say!(target_product, target = &target.label, product = product)
        }
    };
    let is_measured =
        |target: &&PaperTarget| paper.trials.iter().any(|trial| trial.target == target.label);
    let targets: Vec<Message> = paper.targets.iter().filter(is_measured).map(describe).collect();
    let points = match paper.experiments.iter().any(Experiment::is_pass) {
        true => {
            let points = paper.experiments.iter().map(|experiment| experiment.points.len());
            say!(n_points, n = points.sum::<usize>())
        }
        false => {
            let levels = paper.experiments.iter().enumerate().flat_map(|(place, experiment)| {
                experiment
                    .points
                    .iter()
                    .map(move |point| (place, point.workers, point.rate_per_s.map(f64::to_bits)))
            });
            say!(n_load_levels, n = levels.collect::<BTreeSet<_>>().len())
        }
    };
    say!(
        dyno_measured_at_on,
        trials = say!(n_complete_trials, n = ended(paper, "complete")),
        points = points,
        targets = Message::list(&targets),
    )
}

fn ended(paper: &Paper, status: &str) -> u64 {
    paper.trials.iter().filter(|trial| trial.status == status).count() as u64
}

pub(super) fn not_ended_well(paper: &Paper) -> Option<Message> {
    let cut = ended(paper, "interrupted") + ended(paper, "running");
    let failed = ended(paper, "failed");
    let again = paper.set_aside.len() as u64;
    let others: Vec<Message> = [
        (cut, say!(trials_were_cut_off, n = cut)),
        (failed, say!(n_trials_failed, n = failed)),
        (again, say!(n_trials_made_again, n = again)),
    ]
    .into_iter()
    .filter(|(number, _)| *number > 0)
    .map(|(_, words)| words)
    .collect();
    (!others.is_empty()).then(|| say!(beside_these_others, others = Message::list(&others)))
}

fn best_sentence(paper: &Paper, row: KeyRow<'_>) -> Message {
    let own = family_of(row.experiment);
    if let Some(own) = own.and_then(|family| family.best(paper, row.experiment, row.point)) {
        return own;
    }
    let (experiment, point) = (&row.experiment.title, row.point);
    let workers = say!(n_workers, n = point.workers);
    let (tps, qps) = (format::short(point.tps.median), format::short(point.qps.median));
    match point.p95_us {
        Some(p95) => say!(
            reached_transactions_s_statements_s_with,
            experiment = experiment,
            target = &point.target,
            tps = tps,
            qps = qps,
            workers = workers,
            p95 = format::ms(p95.median),
        ),
        None => say!(
            reached_transactions_s_statements_s_with_2,
            experiment = experiment,
            target = &point.target,
            tps = tps,
            qps = qps,
            workers = workers,
        ),
    }
}
