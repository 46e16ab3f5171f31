//! The registry of workloads: a line per family.

use dyno_runner::family::FamilyEntry;

/// The families that dyno knows.
pub const FAMILIES: &[FamilyEntry] =
    &[dyno_sysbench::FAMILY, dyno_pgbench::FAMILY, dyno_tpcc::FAMILY, dyno_tpch::FAMILY];
