//! Which streams a test has, and which jobs they execute.

use super::Before;
use super::options::{Plans, RunOptions, TpchTest};
use super::stream::{Job, Query, Stream};
use crate::parameters::{ParameterChoice, order, parameters};
use crate::queries::{LAST, Q15, text};
use dyno_core::{Dialect, Nanos, SECOND};

/// Queries that run while the refresh functions do are told apart by their streams, from 1; where
/// there is one, it is 0.
pub(super) fn streams(options: &RunOptions, dialect: Dialect, before: &Before) -> Vec<Stream> {
    let queries = |stream: u32, order: &[u8]| -> Vec<Job> {
        order.iter().map(|query| Job::Query(one(options, dialect, stream, *query))).collect()
    };
    let of_single = |jobs| vec![stream(options, before, 0, jobs)];
    match options.test {
        TpchTest::Queries => {
            let in_order: Vec<u8> = (1..=LAST).collect();
            of_single(queries(0, &in_order))
        }
        TpchTest::Power { refresh: false } => of_single(queries(0, &order(0))),
        TpchTest::Power { refresh: true } => {
            let mut jobs = vec![Job::Refresh];
            jobs.extend(queries(0, &order(0)));
            jobs.push(Job::Refresh);
            of_single(jobs)
        }
        TpchTest::Throughput { streams, refresh } => {
            let numbers = 1..=streams;
            let mut all: Vec<Stream> = numbers
                .map(|number| stream(options, before, number, queries(number, &order(number))))
                .collect();
            if refresh {
                all.push(stream(options, before, 0, refreshes(streams)));
            }
            all
        }
        TpchTest::Refresh { pairs } => of_single(refreshes(pairs)),
        // Its parts are executed one after the other, each with streams of its own.
        TpchTest::Performance { .. } => Vec::new(),
    }
}

/// One pass that takes the plan of each query, with the parameters of the first stream.
pub(super) fn plans(options: &RunOptions, dialect: Dialect, before: &Before) -> Stream {
    let first = u32::from(matches!(options.test, TpchTest::Throughput { .. }));
    let is_executed = options.plans == Plans::Executed;
    let plan = |query| {
        let values = parameters(query, options.scale, choice(options, first));
        let text = text(query, &values, dialect, Q15::Cte);
        Job::Plan { query, text, is_executed }
    };
    stream(options, before, first, (1..=LAST).map(plan).collect())
}

/// What is left of a pair that was interrupted.
pub(super) fn rest_of_pair(options: &RunOptions, before: &Before) -> Stream {
    let left = if before.position.function == 1 { 2 } else { 1 };
    stream(options, before, 0, (0..left).map(|_| Job::Refresh).collect())
}

fn stream(options: &RunOptions, before: &Before, number: u32, jobs: Vec<Job>) -> Stream {
    Stream {
        number,
        jobs,
        scale: options.scale,
        timeout: options.timeout_s.map(|seconds| (seconds * SECOND as f64) as Nanos),
        position: before.position,
        is_unsure: false,
        counts_pages: options.test == TpchTest::Queries,
    }
}

fn refreshes(pairs: u32) -> Vec<Job> {
    (0..2 * pairs).map(|_| Job::Refresh).collect()
}

fn one(options: &RunOptions, dialect: Dialect, stream: u32, query: u8) -> Query {
    let parameters = parameters(query, options.scale, choice(options, stream));
    let text = text(query, &parameters, dialect, Q15::Cte);
    Query { query, parameters, text }
}

/// Seeds of streams follow that of the power test (clause 2.1.3.3).
fn choice(options: &RunOptions, stream: u32) -> ParameterChoice {
    match options.parameters {
        ParameterChoice::Default => ParameterChoice::Default,
        ParameterChoice::Seed(seed) => ParameterChoice::Seed(seed + u64::from(stream)),
    }
}
