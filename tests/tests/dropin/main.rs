//! Front ends that stand in for the original tools, as scripts see them.

mod benchmarksql;
mod ends;
mod originals;
mod pgbench;
mod remote;
mod sysbench;
mod tpch;
