//! The plans of the queries: where they are, and between which trials and degrees they changed.

use super::tables::Column;
use super::{QUERIES, facts};
use crate::facts::{PlanFacts, QueryFacts};
use dyno_report::Trial;

/// The plans of one query.
#[derive(Clone)]
pub(super) struct PlanRow {
    /// 1 to 22.
    pub(super) query: u8,
    /// In the order of the degrees.
    pub(super) cells: Vec<PlanCell>,
}

/// The plans of one query at one degree.
#[derive(Clone, Default)]
pub(super) struct PlanCell {
    /// In the order of the trials.
    pub(super) links: Vec<PlanLink>,
    /// Most workers at work at once; `None` where the plans do not tell.
    pub(super) workers: Option<u32>,
    /// True when executions with the same parameters have plans of different shapes.
    pub(super) is_changed: bool,
    /// True when all shapes are others than at the first degree.
    pub(super) differs_from_first: bool,
    /// Most pages that the server read from its files for an execution; `None` where it does not say.
    pub(super) pages_read: Option<u64>,
}

/// A plan in a run folder.
#[derive(Clone, PartialEq)]
pub(super) struct PlanLink {
    /// Label of the trial.
    pub(super) trial: String,
    /// Number of its run in the paper.
    pub(super) run: usize,
    /// File within the run's folder.
    pub(super) file: String,
    /// Names the plan's shape.
    pub(super) shape: String,
}

/// A row for each query that has a plan; none where no query has one.
pub(super) fn rows(columns: &[Column<'_>]) -> Vec<PlanRow> {
    let row = |query: u8| {
        let mut cells: Vec<PlanCell> =
            columns.iter().map(|column| cell(query, &column.trials)).collect();
        let shapes = |cell: &PlanCell| -> Vec<String> {
            cell.links.iter().map(|link| link.shape.clone()).filter(|s| !s.is_empty()).collect()
        };
        let first = cells.first().map(shapes).unwrap_or_default();
        for cell in cells.iter_mut().skip(1) {
            let own = shapes(cell);
            let is_known = !own.is_empty() && !first.is_empty();
            cell.differs_from_first = is_known && own.iter().all(|shape| !first.contains(shape));
        }
        PlanRow { query, cells }
    };
    let has_plan = |row: &PlanRow| row.cells.iter().any(|cell| !cell.links.is_empty());
    (1..=QUERIES).map(row).filter(has_plan).collect()
}

/// The executions of a query that have a plan.
fn planned<'a>(query: u8, trials: &[&'a Trial]) -> Vec<(&'a Trial, &'a QueryFacts, &'a PlanFacts)> {
    let of_trial = |trial: &&'a Trial| {
        let trial = *trial;
        let queries = facts(trial).into_iter().flat_map(|facts| &facts.queries);
        queries
            .filter(move |facts| facts.query == query)
            .filter_map(move |facts| Some((trial, facts, facts.plan.as_ref()?)))
    };
    trials.iter().flat_map(of_trial).collect()
}

/// True when executions of a query with the same parameters have plans of different shapes.
pub(super) fn is_changed(query: u8, trials: &[&Trial]) -> bool {
    let planned = planned(query, trials);
    planned.iter().enumerate().any(|(place, (_, facts, plan))| {
        planned[..place].iter().any(|(_, other, before)| {
            other.parameters == facts.parameters
                && !plan.shape.is_empty()
                && !before.shape.is_empty()
                && plan.shape != before.shape
        })
    })
}

fn cell(query: u8, trials: &[&Trial]) -> PlanCell {
    let planned = planned(query, trials);
    let mut cell = PlanCell { is_changed: is_changed(query, trials), ..PlanCell::default() };
    for (trial, facts, plan) in planned {
        let link = PlanLink {
            trial: trial.label.clone(),
            run: trial.run,
            file: plan.file.clone(),
            shape: plan.shape.clone(),
        };
        if !cell.links.contains(&link) {
            cell.links.push(link);
        }
        cell.workers = cell.workers.max(plan.workers);
        cell.pages_read = cell.pages_read.max(facts.pages_read);
    }
    cell
}
