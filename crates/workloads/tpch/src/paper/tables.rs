//! The 22 queries at every degree, with speed-ups, plans and answers, and the published times of the same queries.
//!
//! A table borrows the facts of its trials, and computes what it is requested.

use super::{QUERIES, TpchTrial, executions};
use crate::facts::{PlanFacts, QueryFacts, QueryOutcome, TpchFacts, TpchMetrics};
use dyno_facts::{CheckVerdict, PublishedRow, PublishedTable};
use dyno_report::{Experiment, Point, Spread, Trial};
use std::collections::BTreeSet;

/// One test on one target: a column for each degree, a row for each query.
pub(super) struct TpchTable<'a> {
    /// Label of the target.
    pub(super) target: &'a str,
    /// The facts of its first trial: all columns share test, scale factor and state of the caches.
    pub(super) setup: &'a TpchFacts,
    /// Sessions that execute queries side by side.
    pub(super) streams: u32,
    /// The columns in ascending order of their degrees; speed-ups are relative to the first.
    pub(super) columns: Vec<Column<'a>>,
}

/// The trials at one degree.
pub(super) struct Column<'a> {
    /// The degree asked for; 0 is off.
    pub(super) degree: u32,
    pub(super) point: &'a Point,
    pub(super) trials: Vec<TpchTrial<'a>>,
}

/// The times of one query at one degree.
#[derive(Default)]
pub(super) struct QueryTimes {
    /// Seconds of all executions that were answered or given up, over repeats and streams.
    pub(super) seconds: Option<Spread>,
    /// Executions that this rests on.
    pub(super) executions: usize,
    /// The ones among these that were given up at the bound: their time counts as the bound.
    pub(super) timed_out: usize,
    /// Executions that ended with an error; they have no time.
    pub(super) failed: usize,
    /// Executions that the user has interrupted; they have no time.
    pub(super) interrupted: usize,
}

/// The plans of one query at one degree.
#[derive(Default)]
pub(super) struct QueryPlans<'a> {
    /// Each plan once, in the order of the trials.
    pub(super) links: Vec<(&'a Trial, &'a PlanFacts)>,
    /// Most workers at work at once; `None` if the plans do not tell.
    pub(super) workers: Option<u32>,
    /// Set if executions with the same parameters have plans of different shapes.
    pub(super) is_changed: bool,
}

/// Factor by which a time is shorter than that at the first degree: of the medians, and of the longest time there by
/// the shortest here and the other way round.
#[derive(Clone, Copy)]
pub(super) struct Speedup {
    pub(super) factor: Spread,
    /// `≥` or `≤` if one of the two times is only a bound, else empty.
    pub(super) bound: &'static str,
}

/// The points of an experiment with their trials.
pub(super) fn columns<'a>(experiment: &'a Experiment, trials: &[TpchTrial<'a>]) -> Vec<Column<'a>> {
    let columns = experiment.points.iter().filter_map(|point| {
        let point_trials = trials.iter().filter(|(trial, _)| point.trials.contains(&trial.label));
        let trials: Vec<TpchTrial<'a>> = point_trials.copied().collect();
        Some(Column { degree: trials.first()?.1.degree.asked, point, trials })
    });
    columns.collect()
}

/// A table for each test on each target, in the order of the points.
pub(super) fn tables<'a>(
    experiment: &'a Experiment,
    trials: &[TpchTrial<'a>],
) -> Vec<TpchTable<'a>> {
    let mut tables: Vec<TpchTable<'a>> = Vec::new();
    // A test of refresh functions alone has no queries.
    let mut columns = columns(experiment, trials);
    columns.retain(|column| column.facts().any(|facts| !facts.queries.is_empty()));
    for column in columns {
        let (first, setup) = column.trials[0];
        let (target, streams) = (column.point.target.as_str(), first.summary.workers.max(1));
        let same_table = tables.iter_mut().find(|table| {
            let other_setup = table.setup;
            (table.target, table.streams) == (target, streams)
                && (&other_setup.test, &other_setup.cache.state, other_setup.scale)
                    == (&setup.test, &setup.cache.state, setup.scale)
        });
        match same_table {
            Some(table) => table.columns.push(column),
            None => tables.push(TpchTable { target, setup, streams, columns: vec![column] }),
        }
    }
    tables
}

impl<'a> Column<'a> {
    /// The facts of each trial.
    pub(super) fn facts(&self) -> impl Iterator<Item = &'a TpchFacts> + Clone {
        self.trials.iter().map(|(_, facts)| *facts)
    }

    /// The executions of a query, each with its trial.
    fn executions(&self, query: u8) -> impl Iterator<Item = (&'a Trial, &'a QueryFacts)> {
        let query_executions =
            executions(&self.trials).filter(move |(_, facts)| facts.query == query);
        query_executions.map(|((trial, _), facts)| (trial, facts))
    }

    /// A metric over the trials; `None` if none has it.
    pub(super) fn figure(&self, figure: fn(&TpchMetrics) -> Option<f64>) -> Option<Spread> {
        let metrics = self.facts().filter_map(|facts| facts.metrics.as_ref());
        Spread::from_values(metrics.filter_map(figure).collect())
    }

    /// Sum of the times of the queries; of a throughput test its length. Seconds.
    pub(super) fn total_s(&self) -> Option<Spread> {
        self.figure(|metrics| Some(metrics.total_s))
    }

    /// Geometric mean of the times of the queries, seconds.
    pub(super) fn geometric_mean_s(&self) -> Option<Spread> {
        self.figure(|metrics| Some(metrics.geometric_mean_s))
    }

    /// Queries that count with a penalty in some trial because they were given up.
    pub(super) fn penalized(&self) -> BTreeSet<u8> {
        let given_up =
            executions(&self.trials).filter(|(_, facts)| facts.outcome == QueryOutcome::TimedOut);
        given_up.map(|(_, facts)| facts.query).collect()
    }

    pub(super) fn is_penalized(&self) -> bool {
        !self.penalized().is_empty()
    }

    /// The times of a query over all its executions.
    pub(super) fn times(&self, query: u8) -> QueryTimes {
        let mut times = QueryTimes::default();
        let mut seconds = Vec::new();
        for (_, facts) in self.executions(query) {
            match facts.outcome {
                QueryOutcome::Answered => seconds.push(facts.seconds),
                QueryOutcome::TimedOut => {
                    seconds.push(facts.seconds);
                    times.timed_out += 1;
                }
                QueryOutcome::Failed(_) => times.failed += 1,
                QueryOutcome::Interrupted => times.interrupted += 1,
            }
        }
        times.executions = seconds.len();
        times.seconds = Spread::from_values(seconds);
        times
    }

    /// The plans of a query over all its executions.
    pub(super) fn plans(&self, query: u8) -> QueryPlans<'a> {
        let mut plans = QueryPlans::default();
        let mut before: Vec<(&QueryFacts, &PlanFacts)> = Vec::new();
        for (trial, facts) in self.executions(query) {
            let Some(plan) = &facts.plan else { continue };
            plans.is_changed |= before.iter().any(|(other, known)| {
                other.parameters == facts.parameters
                    && !plan.shape.is_empty()
                    && !known.shape.is_empty()
                    && plan.shape != known.shape
            });
            before.push((facts, plan));
            let mut links = plans.links.iter();
            if !links.any(|link| link.0.label == trial.label && link.1 == plan) {
                plans.links.push((trial, plan));
            }
            plans.workers = plans.workers.max(plan.workers);
        }
        plans
    }

    /// Queries whose plan changed between repeats.
    pub(super) fn changed_plans(&self) -> BTreeSet<u8> {
        (1..=QUERIES).filter(|query| self.plans(*query).is_changed).collect()
    }
}

impl<'a> TpchTable<'a> {
    /// The facts of the trials of all columns.
    pub(super) fn facts(&self) -> impl Iterator<Item = &'a TpchFacts> + Clone {
        self.columns.iter().flat_map(Column::facts)
    }

    /// Fewest and most rows received of a query; `None` if no execution was answered.
    pub(super) fn rows(&self, query: u8) -> Option<[f64; 2]> {
        let executions =
            self.facts().flat_map(|facts| &facts.queries).filter(|facts| facts.query == query);
        let answered = executions.filter(|facts| facts.outcome == QueryOutcome::Answered);
        let rows = Spread::from_values(answered.map(|facts| facts.rows as f64).collect())?;
        Some([rows.min, rows.max])
    }

    /// Factor by which a time of a column is smaller than that of the first, where both are known, each with whether it
    /// is only a bound. `None` of the first itself, and where both are bounds.
    fn speedup_over_first(
        &self,
        place: usize,
        time: impl Fn(&Column<'a>) -> Option<(Spread, bool)>,
    ) -> Option<Speedup> {
        let columns = (self.columns.first()?, self.columns.get(place).filter(|_| place > 0)?);
        let ((base, is_base_bound), (current, is_current_bound)) =
            (time(columns.0)?, time(columns.1)?);
        let bound = match (is_base_bound, is_current_bound) {
            (true, true) => return None,
            (true, false) => "≥",
            (false, true) => "≤",
            (false, false) => "",
        };
        let (min, max) = (base.min / current.max, base.max / current.min);
        let factor = Spread { min, median: base.median / current.median, max };
        (current.min > 0.0 && base.min > 0.0).then_some(Speedup { factor, bound })
    }

    /// Speed-up of a total or a mean.
    pub(super) fn speedup(
        &self,
        place: usize,
        time: fn(&Column<'a>) -> Option<Spread>,
    ) -> Option<Speedup> {
        self.speedup_over_first(place, |column| Some((time(column)?, column.is_penalized())))
    }

    /// Speed-up of one query; `None` if some execution failed, too.
    pub(super) fn query_speedup(&self, place: usize, query: u8) -> Option<Speedup> {
        self.speedup_over_first(place, |column| {
            let times = column.times(query);
            let is_whole = times.failed + times.interrupted == 0;
            Some((times.seconds.filter(|_| is_whole)?, times.timed_out > 0))
        })
    }
}

/// The verdict on all answers to a query: wrong ones come first, then those that were not compared; `None` if it was
/// not answered.
pub(super) fn verdict<'a>(
    trials: impl Iterator<Item = &'a TpchFacts>,
    query: u8,
) -> Option<CheckVerdict> {
    let executions = trials.flat_map(|facts| &facts.queries).filter(|facts| facts.query == query);
    let verdicts: Vec<CheckVerdict> = executions.filter_map(QueryFacts::verdict).collect();
    let order = [CheckVerdict::Failed, CheckVerdict::NotMade, CheckVerdict::Passed];
    order.into_iter().find(|verdict| verdicts.contains(verdict))
}

/// Published times of the queries.
pub(super) struct PublishedSeconds<'a> {
    pub(super) table: &'a PublishedTable,
    /// The scale factor, if it is stated.
    pub(super) scale: Option<f64>,
    /// Its degrees in ascending order.
    pub(super) degrees: Vec<u32>,
    /// Query, degree and seconds.
    times: Vec<(u8, u32, f64)>,
}

impl<'a> PublishedSeconds<'a> {
    /// `None` for a table without times of queries.
    fn new(table: &'a PublishedTable) -> Option<Self> {
        let times: Vec<(u8, u32, f64)> = table.rows.iter().filter_map(published_query).collect();
        let degrees: BTreeSet<u32> = times.iter().map(|(_, degree, _)| *degree).collect();
        let degrees: Vec<u32> = degrees.into_iter().collect();
        let scale = table.rows.iter().find_map(|row| row.conditions.get("scale")?.parse().ok());
        (!times.is_empty()).then_some(PublishedSeconds { table, scale, degrees, times })
    }

    /// The time of a query at a degree; the sum of all if none is named and all have a time.
    pub(super) fn at(&self, query: Option<u8>, degree: u32) -> Option<f64> {
        let Some(query) = query else {
            return (1..=QUERIES).map(|query| self.at(Some(query), degree)).sum();
        };
        self.times.iter().find(|row| (row.0, row.1) == (query, degree)).map(|row| row.2)
    }

    /// The time at the first degree by that at the last, computed from those that were published.
    pub(super) fn speedup(&self, query: Option<u8>) -> Option<f64> {
        let [first, .., last] = self.degrees[..] else { return None };
        Some(self.at(query, first)? / self.at(query, last)?)
    }
}

/// The query, degree and seconds of a published row.
pub(super) fn published_query(row: &PublishedRow) -> Option<(u8, u32, f64)> {
    let query = row.label.strip_prefix('Q')?.parse().ok()?;
    let degree = row.conditions.get("degree").map_or(Some(0), |text| text.parse().ok())?;
    let seconds = *row.metrics.get("seconds")?;
    ((1..=QUERIES).contains(&query) && seconds > 0.0).then_some((query, degree, seconds))
}

/// The published tables that tell times of queries.
pub(super) fn published(experiment: &Experiment) -> Vec<PublishedSeconds<'_>> {
    experiment.published.iter().filter_map(|shown| PublishedSeconds::new(&shown.table)).collect()
}
