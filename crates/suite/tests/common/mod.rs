//! Helpers that the tests share.

use dyno_core::offer::WorkloadOffer;

/// The workloads of the bundled suites.
pub(crate) const WORKLOADS: &[WorkloadOffer] = &[
    dyno_sysbench::OFFER,
    dyno_pgbench::options::OFFER,
    dyno_tpcc::options::OFFER,
    dyno_tpch::options::OFFER,
];
