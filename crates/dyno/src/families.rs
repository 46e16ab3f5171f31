//! The registry of workloads: a line per family in each list.

use dyno_report::FamilyPapers;
use dyno_runner::family::FamilyEntry;

/// The families that dyno knows.
pub static FAMILIES: &[&FamilyEntry] = &[
    &dyno_sysbench::FAMILY,
    &dyno_pgbench::FAMILY,
    &dyno_tpcc::FAMILY,
    &dyno_tpch::FAMILY,
    &dyno_lua::FAMILY,
];

/// Their parts of papers.
pub const PAPERS: FamilyPapers = &[
    &dyno_sysbench::PAPER,
    &dyno_pgbench::PAPER,
    &dyno_tpcc::PAPER,
    &dyno_tpch::PAPER,
    &dyno_lua::PAPER,
];
