//! Drivers and workloads on real servers, mostly without the binary.

mod mysql;
mod pgbench;
mod postgres;
mod servers;
mod settings;
mod sysbench;
mod tpcc;
mod tpch;

/// Counts per thread, for the tests of sessions that allocate nothing.
#[global_allocator]
static ALLOCATOR: dyno_testkit::Counting = dyno_testkit::Counting;
