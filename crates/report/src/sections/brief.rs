//! What a terminal shows of a run that has ended: results, and what is wrong with them. The rest is in the paper.

use super::summary::{extent, no_trial, not_ended_well};
use super::{cover, notes, trials};
use crate::blocks::{Blocks, Cell, Look, PaperRows, Span, spread};
use crate::evidence::{Experiment, KeyRow, Paper, Point, Trial};
use crate::families::{FamilyPaper, families, family_of};
use crate::format::{
    self,
    NumberFormat::{Ms, Short, Whole},
};
use crate::text::Message;
use dyno_facts::{CheckVerdict, DataCheck, Purpose, say};

pub(super) fn blocks(paper: &Paper) -> Blocks {
    let mut blocks = Blocks::default();
    if paper.trials.is_empty() {
        blocks.paragraph(no_trial(paper));
        return blocks;
    }
    if let Some(banner) = cover::rehearsal(paper) {
        blocks.paragraph(banner);
    }
    for family in families().map(Some).chain([None]) {
        blocks.table(results(paper, family));
        let is_there = |own: &&'static dyn FamilyPaper| {
            paper.experiments.iter().any(|it| family_of(it) == Some(*own))
        };
        let own = family.filter(is_there).and_then(|family| family.summary(paper));
        blocks.extend(own.map(crate::blocks::Block::Table));
    }
    if let Some(levels) = each_level(paper) {
        blocks.table(levels);
    }
    if let Some(others) = not_ended_well(paper) {
        blocks.paragraph(Message::sentences(&[extent(paper), others]));
    }
    let lines = [of_data(paper), vec![accounting(paper)], of_errors(paper)];
    lines.into_iter().flatten().for_each(|line| blocks.paragraph(line));
    blocks
}

/// The best point of each experiment of a family.
fn results<'a>(
    paper: &'a Paper,
    family: Option<&'static dyn FamilyPaper>,
) -> PaperRows<KeyRow<'a>> {
    let own = |row: &KeyRow<'_>| family_of(row.experiment) == family;
    let rows: Vec<KeyRow<'_>> = paper.result_rows().into_iter().filter(own).collect();
    let metrics = format::unique(rows.iter().filter_map(|row| Some(row.point.main?.0)).collect());
    let has_targets = rows.iter().any(|row| row.point.target != rows[0].point.target);
    let title = family.map_or_else(|| say!(other_workloads), |family| family.title());
    let most_levels = rows.iter().map(|row| levels(*row)).max().unwrap_or(0);
    let rows = PaperRows::new(title, rows)
        .text(say!(experiment), |row| &row.experiment.title)
        .when(has_targets, |table| table.text(say!(target_2), |row| &row.point.target))
        .metrics(metrics, |row, metric| {
            let figure = row.point.main.filter(|(own, _)| *own == metric);
            figure.map(|(_, figure)| spread(figure, row.point.repeats))
        });
    let errors = if most_levels > 1 { say!(errors_at_this_level) } else { say!(errors) };
    let loads =
        rows.col(say!(workers), Whole, |row| row.point.load()).when(most_levels > 1, |table| {
            table.text(say!(level_shown), |row| say!(best_of_levels, n = levels(row)))
        });
    figures(loads, errors, paper, |row| row.point)
}

/// What each point shows.
fn figures<'a, R: Copy>(
    table: PaperRows<R>,
    errors: Message,
    paper: &Paper,
    point: impl Fn(R) -> &'a Point,
) -> PaperRows<R> {
    table
        .col(say!(transactions_per_s), Short, |row| spread(point(row).tps, point(row).repeats))
        .col(say!(statements_per_s), Short, |row| spread(point(row).qps, 1))
        .col(say!(p95_ms), Ms, |row| point(row).p95_us.map(|us| spread(us, 1)))
        .col(errors, Whole, |row| point(row).errors)
        .text(say!(not_usable), |row| forbidding(paper, point(row)))
}

/// How many load levels of its experiment a target has, of which a row is the best; one of a search, which has no levels.
fn levels(row: KeyRow<'_>) -> usize {
    let experiment = row.experiment;
    let is_level =
        |point: &&Point| point.target == row.point.target && point.purpose != Purpose::Confirm;
    let own = experiment.points.iter().filter(is_level);
    if experiment.objective.is_some() { 1 } else { own.count() }
}

/// Each load level, where these are all that was measured: one experiment on one target.
fn each_level(paper: &Paper) -> Option<PaperRows<&Point>> {
    let [only] = &paper.experiments[..] else { return None };
    let is_result = |point: &&Point| point.purpose == Purpose::Measure && point.status != "failed";
    let points: Vec<&Point> = only.points.iter().filter(is_result).collect();
    let first = *points.first()?;
    let is_sweep = points.len() > 1 && points.iter().all(|point| point.target == first.target);
    if !is_sweep || only.objective.is_some() || only.is_pass() {
        return None;
    }
    let title = say!(test_load_levels, test = &only.title);
    let loads = PaperRows::new(title, points).text(say!(load), Point::load_words);
    Some(figures(loads, say!(errors), paper, |point| point))
}

/// The checks that forbid a figure.
fn forbidding(paper: &Paper, point: &Point) -> Cell {
    let numbers: Vec<usize> = paper.forbidding(&point.checks).map(|check| check.number).collect();
    notes(paper, &numbers)
}

/// A line for each check of the data: how often it passed; in full what did not.
fn of_data(paper: &Paper) -> Vec<Vec<Span>> {
    let all = || {
        paper.trials.iter().flat_map(|trial| trial.summary.checks.iter().map(move |c| (trial, c)))
    };
    let names = format::unique(all().map(|(_, check)| check.name.as_str()).collect());
    let mut lines = Vec::new();
    let counts: Vec<Message> = names
        .iter()
        .map(|name| {
            let of = |verdict: CheckVerdict| {
                let is_own = |check: &DataCheck| check.name == *name && check.verdict == verdict;
                all().filter(|(_, check)| is_own(check)).count()
            };
            let (good, bad) = (of(CheckVerdict::Passed), of(CheckVerdict::Failed));
            let (made, open) = ((good + bad).to_string(), of(CheckVerdict::NotMade));
            match open {
                0 => say!(check_passed_n_of, name = *name, n = good, all = made),
                _ => say!(
                    check_passed_n_of_not_made,
                    name = *name,
                    n = good,
                    all = made,
                    open = open.to_string()
                ),
            }
        })
        .collect();
    if !counts.is_empty() {
        lines.push(vec![Span::plain(say!(checks_of_the_data, counts = super::clauses(&counts)))]);
    }
    let failed = all().filter(|(_, check)| check.verdict == CheckVerdict::Failed);
    lines.extend(failed.map(|(trial, check)| {
        let place = Message::verbatim(trials::place(trial));
        let said = say!(check_failed_in, name = &check.name, place = place, why = &check.evidence);
        vec![Span::of(said, Look::Bad)]
    }));
    lines
}

/// Whether started = committed + rolled back + failed + skipped + in flight in every trial.
fn accounting(paper: &Paper) -> Vec<Span> {
    let counted = |trial: &&Trial| trial.summary.counts.started > 0;
    let wrong: Vec<Message> = paper
        .trials
        .iter()
        .filter(counted)
        .filter(|trial| !trial.adds_up)
        .map(|trial| Message::verbatim(&trial.label))
        .collect();
    match (wrong.is_empty(), paper.trials.iter().filter(counted).count()) {
        (_, 0) => Vec::new(),
        (true, n) => vec![Span::plain(say!(accounting_adds_up, n = n))],
        (false, _) => {
            vec![Span::of(say!(accounting_is_wrong, trials = Message::list(&wrong)), Look::Bad)]
        }
    }
}

fn of_errors(paper: &Paper) -> Vec<Vec<Span>> {
    let of = |experiment: &Experiment| experiment.points.iter().map(|p| p.errors).sum::<u64>();
    let wrong = paper.experiments.iter().filter(|own| of(own) > 0);
    let line = |own: &Experiment| {
        vec![Span::of(say!(errors_in, n = of(own), experiment = &own.title), Look::Bad)]
    };
    wrong.map(line).collect()
}
