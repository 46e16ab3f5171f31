//! The drop-in front ends: the command lines and the output of other programs, a folder each. They have their options in
//! tables ([`dyno_core::options`]) and drive through what the crates of their workloads have compiled.

pub mod benchmarksql;
pub mod pgbench;
pub mod sysbench;
