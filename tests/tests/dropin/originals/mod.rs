//! Command lines of the original tools, each alongside dyno's: exit code, standard output and standard
//! error.

mod mask;
mod pgbench;
mod sysbench;
mod table;
