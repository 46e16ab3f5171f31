//! The 22 queries at every degree, with speed-ups, plans and answers, and the published times of the same queries.
//!
//! A table borrows the facts of its trials, and computes what it is asked for.

use super::{QUERIES, facts};
use crate::check::KNOWN_SCALES;
use crate::facts::{PlanFacts, QueryFacts, QueryOutcome, TpchFacts, TpchMetrics};
use dyno_facts::{CheckVerdict, Message, PublishedRow, PublishedTable};
use dyno_report::format::unique;
use dyno_report::{Experiment, Point, Spread, Trial};
use std::collections::BTreeSet;

/// One test on one target: a column for each degree, a row for each query.
pub(super) struct TpchTable<'a> {
    /// Label of the target.
    pub(super) target: &'a str,
    /// Those of its first trial: all columns share test, scale factor and state of the caches.
    pub(super) setup: &'a TpchFacts,
    /// Sessions that execute queries side by side.
    pub(super) streams: u32,
    /// In ascending order of the degrees; speed-ups are those over the first.
    pub(super) columns: Vec<Column<'a>>,
}

/// The trials at one degree.
pub(super) struct Column<'a> {
    /// The degree asked for; 0 is off.
    pub(super) degree: u32,
    /// Place of its point among those of the experiment.
    pub(super) point: usize,
    pub(super) trials: Vec<(&'a Trial, &'a TpchFacts)>,
}

/// How the answers of trials compare.
#[derive(Clone, Default)]
pub(crate) struct AnswerCount {
    /// Queries all of whose answers are right.
    pub(super) right: u8,
    /// Queries with a wrong answer.
    pub(super) wrong: Vec<u8>,
    /// Queries with answers that were not compared, and none that is wrong.
    pub(super) not_compared: Vec<u8>,
    /// Queries without an answer.
    pub(super) unanswered: Vec<u8>,
    /// Whether the answers at the scale factor are known beforehand.
    pub(super) has_reference: bool,
}

/// The times of one query at one degree.
#[derive(Default)]
pub(super) struct QueryTimes {
    /// Of all executions that were answered or given up, over repeats and streams.
    pub(super) seconds: Option<Spread>,
    /// Executions that this rests on.
    pub(super) executions: usize,
    /// Of these, given up at the bound: their time counts as the bound.
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
    /// Most workers at work at once; `None` where the plans do not tell.
    pub(super) workers: Option<u32>,
    /// True when executions with the same parameters have plans of different shapes.
    pub(super) is_changed: bool,
}

impl QueryPlans<'_> {
    fn shapes(&self) -> impl Iterator<Item = &str> {
        self.links.iter().map(|(_, plan)| plan.shape.as_str()).filter(|shape| !shape.is_empty())
    }
}

/// By what factor a time is shorter than that at the first degree.
#[derive(Clone, Copy)]
pub(super) struct Speedup {
    pub(super) median: f64,
    /// Of the shortest time there and the longest here.
    pub(super) min: f64,
    /// Of the longest time there and the shortest here.
    pub(super) max: f64,
    /// Whether there is more than one time on both sides or on one.
    pub(super) is_spread: bool,
    /// `≥` or `≤` where one of both times is only a bound, else empty.
    pub(super) bound: &'static str,
}

impl Speedup {
    fn of(base: Spread, own: Spread, is_base_bound: bool, is_own_bound: bool) -> Option<Self> {
        let bound = match (is_base_bound, is_own_bound) {
            (true, true) => return None,
            (true, false) => "≥",
            (false, true) => "≤",
            (false, false) => "",
        };
        (own.min > 0.0 && base.min > 0.0).then(|| Speedup {
            median: base.median / own.median,
            min: base.min / own.max,
            max: base.max / own.min,
            is_spread: base.min < base.max || own.min < own.max,
            bound,
        })
    }
}

/// A table for each test on each target, in the order of the points.
pub(super) fn tables<'a>(trials: &[&'a Trial], points: &'a [Point]) -> Vec<TpchTable<'a>> {
    let mut tables: Vec<TpchTable<'a>> = Vec::new();
    for (place, point) in points.iter().enumerate() {
        let column = Column::new(place, point, trials);
        let Some(&(first, setup)) = column.trials.first() else { continue };
        // A test of refresh functions alone has no queries.
        if column.facts().all(|facts| facts.queries.is_empty()) {
            continue;
        }
        let (target, streams) = (point.target.as_str(), first.summary.workers.max(1));
        let key = |facts: &'a TpchFacts| (&facts.test, &facts.cache.state, facts.scale);
        let is_alike = |table: &&mut TpchTable<'a>| {
            (table.target, table.streams) == (target, streams) && key(table.setup) == key(setup)
        };
        match tables.iter_mut().find(is_alike) {
            Some(table) => table.columns.push(column),
            None => tables.push(TpchTable { target, setup, streams, columns: vec![column] }),
        }
    }
    tables
}

impl<'a> Column<'a> {
    pub(super) fn new(place: usize, point: &Point, trials: &[&'a Trial]) -> Self {
        let own = trials.iter().filter(|trial| point.trials.contains(&trial.label));
        let trials: Vec<_> = own.filter_map(|trial| Some((*trial, facts(trial)?))).collect();
        let degree = trials.first().map_or(0, |(_, facts)| facts.degree.asked);
        Column { degree, point: place, trials }
    }

    pub(super) fn facts(&self) -> impl Iterator<Item = &'a TpchFacts> + Clone {
        self.trials.iter().map(|(_, facts)| *facts)
    }

    fn executions(&self, query: u8) -> impl Iterator<Item = (&'a Trial, &'a QueryFacts)> {
        self.trials.iter().flat_map(move |&(trial, facts)| {
            let own = facts.queries.iter().filter(move |facts| facts.query == query);
            own.map(move |facts| (trial, facts))
        })
    }

    /// The most workers that a plan had at work; `None` where plans do not tell.
    pub(super) fn got(&self) -> Option<u32> {
        self.facts().filter_map(|facts| facts.degree.got).max()
    }

    /// What is to be said of the degree.
    pub(super) fn remarks(&self) -> Vec<Message> {
        unique(self.facts().filter_map(|facts| facts.degree.remark.clone()).collect())
    }

    /// Metrics of the trials of which no query is missing or failed.
    pub(super) fn metrics(&self) -> impl Iterator<Item = &'a TpchMetrics> {
        self.facts().filter_map(|facts| facts.metrics.as_ref())
    }

    pub(super) fn figure(&self, of: fn(&TpchMetrics) -> Option<f64>) -> Option<Spread> {
        Spread::of(self.metrics().filter_map(of).collect())
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
    pub(super) fn penalised(&self) -> Vec<u8> {
        let is_given_up = |query: &u8| {
            self.executions(*query).any(|(_, facts)| facts.outcome == QueryOutcome::TimedOut)
        };
        (1..=QUERIES).filter(is_given_up).collect()
    }

    pub(super) fn is_penalised(&self) -> bool {
        !self.penalised().is_empty()
    }

    pub(super) fn answers(&self) -> AnswerCount {
        AnswerCount::of(self.facts())
    }

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
        times.seconds = Spread::of(seconds);
        times
    }

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
            let is_same =
                |link: &(&Trial, &PlanFacts)| link.0.label == trial.label && link.1 == plan;
            if !plans.links.iter().any(is_same) {
                plans.links.push((trial, plan));
            }
            plans.workers = plans.workers.max(plan.workers);
        }
        plans
    }

    /// Queries whose plan changed between repeats.
    pub(super) fn changed_plans(&self) -> Vec<u8> {
        (1..=QUERIES).filter(|query| self.plans(*query).is_changed).collect()
    }
}

impl<'a> TpchTable<'a> {
    pub(super) fn facts(&self) -> impl Iterator<Item = &'a TpchFacts> + Clone {
        self.columns.iter().flat_map(Column::facts)
    }

    /// What the parameters of the queries are; several where trials differ in them; `None` where no trial says.
    pub(super) fn parameters(&self) -> Option<Message> {
        let known = self.facts().map(|facts| &facts.parameters);
        let known = unique(known.filter(|known| !known.is_empty()).cloned().collect());
        (!known.is_empty()).then(|| Message::joined(&known, ", ", "、"))
    }

    /// Bounds after which a query was given up, seconds; empty where there was none.
    pub(super) fn timeouts_s(&self) -> Vec<f64> {
        let mut bounds: Vec<f64> = self.facts().filter_map(|facts| facts.timeout_s).collect();
        bounds.sort_by(f64::total_cmp);
        bounds.dedup();
        bounds
    }

    fn executions(&self, query: u8) -> impl Iterator<Item = &'a QueryFacts> {
        let columns = self.columns.iter();
        columns.flat_map(move |column| column.executions(query)).map(|(_, facts)| facts)
    }

    /// Fewest and most rows received of a query; `None` where no execution was answered.
    pub(super) fn rows(&self, query: u8) -> Option<(u64, u64)> {
        let answered = self.executions(query).filter(|own| own.outcome == QueryOutcome::Answered);
        let rows: Vec<u64> = answered.map(|facts| facts.rows).collect();
        Some((*rows.iter().min()?, *rows.iter().max()?))
    }

    /// How the answers of a query compare, over all degrees; `None` where it was not answered.
    pub(super) fn answer(&self, query: u8) -> Option<CheckVerdict> {
        verdict(self.executions(query))
    }

    /// By what factor a figure of a column is smaller than that of the first; `None` of the first itself.
    pub(super) fn speedup(
        &self,
        place: usize,
        of: fn(&Column<'a>) -> Option<Spread>,
    ) -> Option<Speedup> {
        let (base, own) = (self.columns.first()?, self.columns.get(place).filter(|_| place > 0)?);
        Speedup::of(of(base)?, of(own)?, base.is_penalised(), own.is_penalised())
    }

    pub(super) fn total_speedup(&self, place: usize) -> Option<Speedup> {
        self.speedup(place, Column::total_s)
    }

    /// That of one query; `None` where one of both failed or both were given up, too.
    pub(super) fn query_speedup(&self, place: usize, query: u8) -> Option<Speedup> {
        let (base, own) = (self.columns.first()?, self.columns.get(place).filter(|_| place > 0)?);
        let (base, own) = (base.times(query), own.times(query));
        let is_whole = base.failed + base.interrupted + own.failed + own.interrupted == 0;
        let (there, here) = base.seconds.zip(own.seconds).filter(|_| is_whole)?;
        Speedup::of(there, here, base.timed_out > 0, own.timed_out > 0)
    }

    /// Queries that have a plan; empty where none was taken.
    pub(super) fn planned(&self) -> Vec<u8> {
        let has_plan = |query: &u8| self.executions(*query).any(|facts| facts.plan.is_some());
        (1..=QUERIES).filter(has_plan).collect()
    }

    /// True when all plans of a query in a column have shapes that none has in the first.
    pub(super) fn differs_from_first(&self, place: usize, query: u8) -> bool {
        let (first, own) = (self.columns[0].plans(query), self.columns[place].plans(query));
        let is_known = first.shapes().next().is_some() && own.shapes().next().is_some();
        is_known && own.shapes().all(|shape| first.shapes().all(|other| other != shape))
    }
}

/// Whether these answers are right: wrong ones first, then those that were not compared.
fn verdict<'a>(executions: impl Iterator<Item = &'a QueryFacts>) -> Option<CheckVerdict> {
    let answered = executions.filter(|facts| facts.outcome == QueryOutcome::Answered);
    let verdicts: Vec<CheckVerdict> = answered
        .map(|facts| facts.answer.as_ref().map_or(CheckVerdict::NotMade, |answer| answer.verdict))
        .collect();
    let order = [CheckVerdict::Failed, CheckVerdict::NotMade, CheckVerdict::Passed];
    order.into_iter().find(|verdict| verdicts.contains(verdict))
}

impl AnswerCount {
    pub(crate) fn of<'a>(trials: impl Iterator<Item = &'a TpchFacts> + Clone) -> Self {
        let of_query = |query: u8| {
            let queries = trials.clone().flat_map(|facts| &facts.queries);
            verdict(queries.filter(move |facts| facts.query == query))
        };
        let with = |wanted: Option<CheckVerdict>| -> Vec<u8> {
            (1..=QUERIES).filter(|query| of_query(*query) == wanted).collect()
        };
        AnswerCount {
            right: with(Some(CheckVerdict::Passed)).len() as u8,
            wrong: with(Some(CheckVerdict::Failed)),
            not_compared: with(Some(CheckVerdict::NotMade)),
            unanswered: with(None),
            has_reference: trials.clone().any(|facts| KNOWN_SCALES.contains(&facts.scale)),
        }
    }
}

/// Published times of the queries.
pub(super) struct PublishedSeconds<'a> {
    pub(super) table: &'a PublishedTable,
    /// The scale factor, where it is stated.
    pub(super) scale: Option<f64>,
    /// Its degrees in ascending order.
    pub(super) degrees: Vec<u32>,
    /// Seconds of Q1 to Q22 in the order of the degrees, and last their sums where all have a time.
    rows: Vec<Vec<Option<f64>>>,
}

impl<'a> PublishedSeconds<'a> {
    /// `None` for a table without times of queries.
    fn new(table: &'a PublishedTable) -> Option<Self> {
        let found: Vec<(u8, u32, f64)> = table.rows.iter().filter_map(published_query).collect();
        let degrees: BTreeSet<u32> = found.iter().map(|(_, degree, _)| *degree).collect();
        let at = |query: u8, degree: u32| {
            found.iter().find(|row| (row.0, row.1) == (query, degree)).map(|row| row.2)
        };
        let row = |query| degrees.iter().map(|degree| at(query, *degree)).collect();
        let sum = |degree: &u32| (1..=QUERIES).map(|query| at(query, *degree)).sum();
        let sums = degrees.iter().map(sum).collect();
        let rows = (1..=QUERIES).map(row).chain([sums]).collect();
        let scale = table.rows.iter().find_map(|row| row.conditions.get("scale")?.parse().ok());
        let degrees: Vec<u32> = degrees.iter().copied().collect();
        (!found.is_empty()).then_some(PublishedSeconds { table, scale, degrees, rows })
    }

    /// The time of a query at the degree in this place; the sum of all where none is named.
    pub(super) fn at(&self, query: Option<u8>, place: usize) -> Option<f64> {
        self.rows[usize::from(query.map_or(QUERIES, |query| query - 1))][place]
    }

    /// The time at the first degree by that at the last, computed from those that were published.
    pub(super) fn speedup(&self, query: Option<u8>) -> Option<f64> {
        let last = self.degrees.len().checked_sub(1).filter(|last| *last > 0)?;
        Some(self.at(query, 0)? / self.at(query, last)?)
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
