//! What a trial is judged by.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    More,
    /// Times and errors.
    Less,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Metric {
    Tps,
    Qps,
    /// New-Orders per minute of TPC-C.
    Tpmc,
    /// Seconds of all queries of TPC-H.
    TotalS,
    /// Geometric mean of the seconds of the queries of TPC-H.
    GeometricMeanS,
    /// Queries per hour of TPC-H, scaled by the size of the data.
    Qphh,
    MeanMs,
    P50Ms,
    P95Ms,
    P99Ms,
    P999Ms,
    MaxMs,
    /// Errors of all attempts by transactions begun, 0 to 1.
    Errors,
}

impl Metric {
    /// All metrics, in the order in which tables show them.
    pub const ALL: [Metric; 13] = [
        Metric::Tps,
        Metric::Qps,
        Metric::Tpmc,
        Metric::TotalS,
        Metric::GeometricMeanS,
        Metric::Qphh,
        Metric::MeanMs,
        Metric::P50Ms,
        Metric::P95Ms,
        Metric::P99Ms,
        Metric::P999Ms,
        Metric::MaxMs,
        Metric::Errors,
    ];

    /// Its name in gates, CSV and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Metric::Tps => "tps",
            Metric::Qps => "qps",
            Metric::Tpmc => "tpmc",
            Metric::TotalS => "total_s",
            Metric::GeometricMeanS => "geometric_mean_s",
            Metric::Qphh => "qphh",
            Metric::MeanMs => "mean_ms",
            Metric::P50Ms => "p50_ms",
            Metric::P95Ms => "p95_ms",
            Metric::P99Ms => "p99_ms",
            Metric::P999Ms => "p999_ms",
            Metric::MaxMs => "max_ms",
            Metric::Errors => "errors",
        }
    }

    pub fn of_name(name: &str) -> Option<Metric> {
        Metric::ALL.into_iter().find(|metric| metric.name() == name)
    }

    pub fn better(self) -> Better {
        match self {
            Metric::Tps | Metric::Qps | Metric::Tpmc | Metric::Qphh => Better::More,
            _ => Better::Less,
        }
    }

    /// True for what happened in the trials and is no estimate of anything behind them: it has no
    /// interval, and one trial suffices.
    pub fn is_fact(self) -> bool {
        matches!(self, Metric::MaxMs | Metric::Errors)
    }

    /// True for percentiles of latency.
    pub fn is_percentile(self) -> bool {
        matches!(self, Metric::P50Ms | Metric::P95Ms | Metric::P99Ms | Metric::P999Ms)
    }
}
