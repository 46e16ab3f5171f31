//! Command lines of the original tools, each beside dyno's: exit code, standard output and standard
//! error.

mod mask;
mod pgbench;
mod sysbench;
mod table;
