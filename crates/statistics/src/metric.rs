//! Metrics of a trial.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    More,
    Less,
}

dyno_core::named! {
    /// In the order of tables; names are those in gates, CSV and JSON.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Metric {
        Tps = "tps",
        Qps = "qps",
        /// New-Orders per minute of TPC-C, those that are rolled back as the specification asks among them.
        Tpmc = "tpmc",
        /// The same whose commit was acknowledged.
        TpmcCommitted = "tpmc_committed",
        /// Seconds of all queries of TPC-H.
        TotalS = "total_s",
        /// Geometric mean of the seconds of the queries of TPC-H.
        GeometricMeanS = "geometric_mean_s",
        /// Queries per hour of TPC-H, scaled by the size of the data.
        Qphh = "qphh",
        MeanMs = "mean_ms",
        P50Ms = "p50_ms",
        P95Ms = "p95_ms",
        P99Ms = "p99_ms",
        P999Ms = "p999_ms",
        MaxMs = "max_ms",
        /// CPU time of all processes of the servers for a transaction.
        ServerCpuUs = "server_cpu_us",
        /// Errors of all attempts by transactions begun, 0 to 1.
        Errors = "errors",
    }
}

impl Metric {
    pub fn of_name(name: &str) -> Option<Metric> {
        Metric::ALL.into_iter().find(|metric| metric.name() == name)
    }

    /// The unit that ends its name: `us`, `ms` or `s`.
    pub fn unit(self) -> Option<&'static str> {
        let unit = self.name().rsplit_once('_')?.1;
        matches!(unit, "us" | "ms" | "s").then_some(unit)
    }

    pub fn better(self) -> Better {
        match self {
            Metric::Tps | Metric::Qps | Metric::Tpmc | Metric::TpmcCommitted | Metric::Qphh => {
                Better::More
            }
            _ => Better::Less,
        }
    }

    /// True for an observation that estimates nothing: it has no interval, and one trial suffices.
    pub fn is_fact(self) -> bool {
        matches!(self, Metric::MaxMs | Metric::Errors)
    }

    pub fn is_percentile(self) -> bool {
        matches!(self, Metric::P50Ms | Metric::P95Ms | Metric::P99Ms | Metric::P999Ms)
    }
}
