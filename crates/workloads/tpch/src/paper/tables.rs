//! The 22 queries at every degree, with speed-ups, and the published times of the same queries.

use super::plans::{self, PlanRow};
use super::{QUERIES, TpchSetup, facts, words};
use crate::check::KNOWN_SCALES;
use crate::facts::{QueryFacts, QueryOutcome, TpchFacts, TpchMetrics};
use dyno_facts::Message;
use dyno_facts::{CheckVerdict, PublishedRow, PublishedTable};
use dyno_report::format::unique;
use dyno_report::{Experiment, Point, Spread, Trial};

/// One test on one target: a column for each degree, a row for each query.
#[derive(Clone)]
pub(super) struct TpchTable {
    /// Label of the target.
    pub(super) target: String,
    /// What all columns share; the degree is that of the first.
    pub(super) setup: TpchSetup,
    /// The same in words.
    pub(super) described: Message,
    /// What the parameters of the queries are; several where trials differ in them; `None` where no
    /// trial says.
    pub(super) parameters: Option<Message>,
    /// Bounds after which a query was given up, seconds; empty where there was none.
    pub(super) timeouts_s: Vec<f64>,
    /// The degrees in ascending order; speed-ups are those over the first.
    pub(super) degrees: Vec<DegreeColumn>,
    /// Q1 to Q22.
    pub(super) queries: Vec<QueryRow>,
    /// True when some trial has no metrics, as a query is missing or failed.
    pub(super) has_gaps: bool,
    /// Their plans; empty where none was taken.
    pub(super) plans: Vec<PlanRow>,
    /// Queries whose plan changed between repeats, in words; `None` where none did.
    pub(super) changed_plans: Option<Message>,
}

/// One parallel degree.
#[derive(Clone)]
pub(super) struct DegreeColumn {
    /// The degree asked for; 0 is off.
    pub(super) degree: u32,
    /// The most workers that a plan had at work; `None` where plans do not tell.
    pub(super) got: Option<u32>,
    /// The rule by which it was set; empty where the product has none.
    pub(super) rule: String,
    /// The statements that set it.
    pub(super) statements: Vec<String>,
    /// What is to be said of it.
    pub(super) remarks: Vec<Message>,
    /// Place of its point among those of the experiment.
    pub(super) point: usize,
    /// Trials that the figures rest on.
    pub(super) repeats: usize,
    /// Of these, trials that have metrics: no query is missing or failed.
    pub(super) totals: usize,
    /// Sum of the times of the queries; of a throughput test its length. Seconds.
    pub(super) total_s: Option<Spread>,
    /// Geometric mean of the times of the queries, seconds.
    pub(super) geometric_mean_s: Option<Spread>,
    /// Power, derived from the specification's formula.
    pub(super) power: Option<Spread>,
    /// Throughput, likewise.
    pub(super) throughput: Option<Spread>,
    /// The composite of both, likewise.
    pub(super) qphh: Option<Spread>,
    /// Queries that count with a penalty in some trial because they were given up.
    pub(super) penalised: Vec<u8>,
    /// How much shorter the total is than that of the first column.
    pub(super) total_speedup: Option<Speedup>,
    /// The same of the geometric mean.
    pub(super) mean_speedup: Option<Speedup>,
    pub(super) answers: AnswerCount,
}

/// How the answers of one column compare.
#[derive(Clone, Default)]
pub(super) struct AnswerCount {
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
    /// The same in words.
    pub(super) words: Message,
}

/// One query.
#[derive(Clone)]
pub(super) struct QueryRow {
    /// 1 to 22.
    pub(super) query: u8,
    /// Fewest and most rows received; `None` where no execution was answered.
    pub(super) rows: Option<(u64, u64)>,
    /// How its answers compare, over all degrees; `None` where it was not answered.
    pub(super) answer: Option<CheckVerdict>,
    /// In the order of the degrees.
    pub(super) cells: Vec<QueryCell>,
}

/// One query at one degree.
#[derive(Clone, Default)]
pub(super) struct QueryCell {
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
    /// Over the first degree; `None` of that itself, and where one of both failed or both were given
    /// up.
    pub(super) speedup: Option<Speedup>,
    /// Most workers of its plans.
    pub(super) workers: Option<u32>,
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
    /// `at least` or `at most` where one of both times is only a bound.
    pub(super) bound: Option<&'static str>,
}

impl Speedup {
    fn of(base: Spread, own: Spread, is_base_bound: bool, is_own_bound: bool) -> Option<Self> {
        let bound = match (is_base_bound, is_own_bound) {
            (true, true) => return None,
            (true, false) => Some("at least"),
            (false, true) => Some("at most"),
            (false, false) => None,
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
pub(super) fn tables(trials: &[&Trial], points: &[Point]) -> Vec<TpchTable> {
    let mut groups: Vec<(&str, TpchSetup, Vec<usize>)> = Vec::new();
    let has_queries = |point: &Point| {
        let mut own = trials.iter().filter(|trial| point.trials.contains(&trial.label));
        own.any(|trial| super::is_measured(trial))
    };
    for (place, point) in points.iter().enumerate() {
        // A test of refresh functions alone has none.
        let Some(setup) = super::setup_of(trials, point).filter(|_| has_queries(point)) else {
            continue;
        };
        let like = |degree: u32| TpchSetup { degree, ..setup.clone() };
        let same = |group: &&mut (&str, TpchSetup, Vec<usize>)| {
            group.0 == point.target && group.1 == like(group.1.degree)
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.2.push(place),
            None => groups.push((&point.target, setup.clone(), vec![place])),
        }
    }
    let table = |(target, setup, places): (&str, TpchSetup, Vec<usize>)| {
        let columns: Vec<Column<'_>> = places
            .iter()
            .map(|place| Column {
                point: *place,
                trials: trials
                    .iter()
                    .copied()
                    .filter(|trial| points[*place].trials.contains(&trial.label))
                    .collect(),
            })
            .collect();
        let all = || columns.iter().flat_map(Column::facts);
        let queries: Vec<QueryRow> =
            (1..=QUERIES).map(|query| query_row(query, &columns)).collect();
        let plans = plans::rows(&columns);
        let is_changed = |row: &&PlanRow| row.cells.iter().any(|cell| cell.is_changed);
        let changed: Vec<u8> = plans.iter().filter(is_changed).map(|row| row.query).collect();
        TpchTable {
            target: target.to_owned(),
            parameters: parameters(all()),
            timeouts_s: timeouts(all()),
            degrees: degrees(&columns),
            plans,
            changed_plans: (!changed.is_empty()).then(|| words::queries(&changed)),
            described: words::setup(&setup),
            has_gaps: all().any(|facts| facts.metrics.is_none()),
            setup,
            queries,
        }
    };
    groups.into_iter().map(table).collect()
}

fn parameters<'a>(facts: impl Iterator<Item = &'a TpchFacts>) -> Option<Message> {
    let known = facts.map(|facts| &facts.parameters).filter(|parameters| !parameters.is_empty());
    let known = unique(known.cloned().collect());
    (!known.is_empty()).then(|| Message::joined(&known, ", ", "、"))
}

fn timeouts<'a>(facts: impl Iterator<Item = &'a TpchFacts>) -> Vec<f64> {
    let mut bounds: Vec<f64> = facts.filter_map(|facts| facts.timeout_s).collect();
    bounds.sort_by(f64::total_cmp);
    bounds.dedup();
    bounds
}

/// The trials of one degree.
pub(super) struct Column<'a> {
    pub(super) point: usize,
    pub(super) trials: Vec<&'a Trial>,
}

impl<'a> Column<'a> {
    pub(super) fn facts(&self) -> impl Iterator<Item = &'a TpchFacts> {
        self.trials.iter().copied().filter_map(facts)
    }

    fn executions(&self, query: u8) -> impl Iterator<Item = &'a QueryFacts> {
        self.facts().flat_map(|facts| &facts.queries).filter(move |facts| facts.query == query)
    }
}

fn degrees(columns: &[Column<'_>]) -> Vec<DegreeColumn> {
    let mut degrees: Vec<DegreeColumn> = Vec::new();
    for column in columns {
        let mut own = degree(column);
        if let Some(base) = degrees.first() {
            let speedup = |of: fn(&DegreeColumn) -> Option<Spread>| {
                let penalised = |degree: &DegreeColumn| !degree.penalised.is_empty();
                Speedup::of(of(base)?, of(&own)?, penalised(base), penalised(&own))
            };
            let (total, mean) =
                (speedup(|degree| degree.total_s), speedup(|degree| degree.geometric_mean_s));
            (own.total_speedup, own.mean_speedup) = (total, mean);
        }
        degrees.push(own);
    }
    degrees
}

fn degree(column: &Column<'_>) -> DegreeColumn {
    let metrics: Vec<&TpchMetrics> =
        column.facts().filter_map(|facts| facts.metrics.as_ref()).collect();
    let spread = |of: fn(&TpchMetrics) -> Option<f64>| {
        Spread::of(metrics.iter().filter_map(|metrics| of(metrics)).collect())
    };
    let mut penalised: Vec<u8> =
        metrics.iter().flat_map(|metrics| metrics.penalised.iter().copied()).collect();
    let given_up =
        |query: &u8| column.executions(*query).any(|facts| facts.outcome == QueryOutcome::TimedOut);
    penalised.extend((1..=QUERIES).filter(given_up));
    penalised.sort_unstable();
    penalised.dedup();
    let first = column.facts().next();
    let asked = || column.facts().map(|facts| &facts.degree);
    DegreeColumn {
        degree: first.map_or(0, |facts| facts.degree.asked),
        got: asked().filter_map(|degree| degree.got).max(),
        rule: first.map_or(String::new(), |facts| facts.degree.rule.clone()),
        statements: first.map_or(Vec::new(), |facts| facts.degree.statements.clone()),
        remarks: unique(asked().filter_map(|degree| degree.remark.clone()).collect()),
        point: column.point,
        repeats: column.trials.len(),
        totals: metrics.len(),
        total_s: spread(|metrics| Some(metrics.total_s)),
        geometric_mean_s: spread(|metrics| Some(metrics.geometric_mean_s)),
        power: spread(|metrics| metrics.power),
        throughput: spread(|metrics| metrics.throughput),
        qphh: spread(|metrics| metrics.qphh),
        penalised,
        total_speedup: None,
        mean_speedup: None,
        answers: answers(column),
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

fn answers(column: &Column<'_>) -> AnswerCount {
    let with = |wanted: Option<CheckVerdict>| -> Vec<u8> {
        (1..=QUERIES).filter(|query| verdict(column.executions(*query)) == wanted).collect()
    };
    let mut count = AnswerCount {
        right: with(Some(CheckVerdict::Passed)).len() as u8,
        wrong: with(Some(CheckVerdict::Failed)),
        not_compared: with(Some(CheckVerdict::NotMade)),
        unanswered: with(None),
        has_reference: column.facts().any(|facts| KNOWN_SCALES.contains(&facts.scale)),
        words: Message::default(),
    };
    count.words = words::answers(&count);
    count
}

fn query_row(query: u8, columns: &[Column<'_>]) -> QueryRow {
    let all = || columns.iter().flat_map(|column| column.executions(query));
    let answered = all().filter(|facts| facts.outcome == QueryOutcome::Answered);
    let rows = answered
        .map(|facts| (facts.rows, facts.rows))
        .reduce(|range, one| (range.0.min(one.0), range.1.max(one.1)));
    let mut cells: Vec<QueryCell> = columns.iter().map(|column| cell(query, column)).collect();
    if let Some((base, others)) = cells.split_first_mut() {
        for cell in others {
            let is_whole = base.failed + base.interrupted + cell.failed + cell.interrupted == 0;
            let both = base.seconds.zip(cell.seconds).filter(|_| is_whole);
            cell.speedup = both.and_then(|(there, here)| {
                Speedup::of(there, here, base.timed_out > 0, cell.timed_out > 0)
            });
        }
    }
    QueryRow { query, rows, answer: verdict(all()), cells }
}

fn cell(query: u8, column: &Column<'_>) -> QueryCell {
    let mut cell = QueryCell::default();
    let mut seconds = Vec::new();
    for facts in column.executions(query) {
        match facts.outcome {
            QueryOutcome::Answered => seconds.push(facts.seconds),
            QueryOutcome::TimedOut => {
                seconds.push(facts.seconds);
                cell.timed_out += 1;
            }
            QueryOutcome::Failed(_) => cell.failed += 1,
            QueryOutcome::Interrupted => cell.interrupted += 1,
        }
        let workers = facts.plan.as_ref().and_then(|plan| plan.workers);
        cell.workers = cell.workers.max(workers);
    }
    cell.executions = seconds.len();
    cell.seconds = Spread::of(seconds);
    cell
}

/// Published times of the queries.
#[derive(Clone)]
pub(super) struct PublishedSeconds {
    /// What the table shows.
    pub(super) title: Message,
    /// The document that published it.
    pub(super) source: Message,
    /// How its figures were measured.
    pub(super) method: Message,
    /// What a reader must know before comparing.
    pub(super) note: Option<Message>,
    /// The scale factor, where it is stated.
    pub(super) scale: Option<f64>,
    /// Its degrees in ascending order.
    pub(super) degrees: Vec<u32>,
    /// Q1 to Q22: seconds in the order of the degrees.
    pub(super) seconds: Vec<Vec<Option<f64>>>,
    /// Q1 to Q22: the time at the first degree by that at the last, computed from those that were
    /// published.
    pub(super) speedups: Vec<Option<f64>>,
    /// The sums in the order of the degrees, where all queries have a time.
    pub(super) totals: Vec<Option<f64>>,
    /// Those of the sums.
    pub(super) total_speedup: Option<f64>,
}

impl PublishedSeconds {
    /// The time of a query at a degree.
    pub(super) fn at(&self, query: u8, degree: u32) -> Option<f64> {
        let place = self.degrees.iter().position(|known| *known == degree)?;
        *self.seconds.get(usize::from(query).checked_sub(1)?)?.get(place)?
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
pub(super) fn published(experiment: &Experiment) -> Vec<PublishedSeconds> {
    let one = |table: &PublishedTable| {
        let found: Vec<(u8, u32, f64)> = table.rows.iter().filter_map(published_query).collect();
        let mut degrees: Vec<u32> = found.iter().map(|(_, degree, _)| *degree).collect();
        degrees.sort_unstable();
        degrees.dedup();
        let at = |query: u8, degree: u32| {
            found.iter().find(|row| (row.0, row.1) == (query, degree)).map(|row| row.2)
        };
        let ratio = |row: &Vec<Option<f64>>| {
            let (first, last) = ((*row.first()?)?, (*row.last()?)?);
            (row.len() > 1).then(|| first / last)
        };
        let of = |query| degrees.iter().map(|degree| at(query, *degree)).collect();
        let seconds: Vec<Vec<Option<f64>>> = (1..=QUERIES).map(of).collect();
        let total = |place: usize| seconds.iter().map(|row| row[place]).sum::<Option<f64>>();
        let totals: Vec<Option<f64>> = (0..degrees.len()).map(total).collect();
        let scale = |row: &PublishedRow| row.conditions.get("scale")?.parse().ok();
        (!found.is_empty()).then(|| PublishedSeconds {
            title: table.title.clone(),
            source: table.source.clone(),
            method: table.method.clone(),
            note: table.note.clone(),
            scale: table.rows.iter().find_map(scale),
            speedups: seconds.iter().map(ratio).collect(),
            total_speedup: ratio(&totals),
            degrees,
            seconds,
            totals,
        })
    };
    experiment.published.iter().filter_map(|shown| one(&shown.table)).collect()
}
