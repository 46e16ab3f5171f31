//! `dyno run` and what follows: whole suites, mistakes, faults, and what is printed.

mod calibrate;
mod chinese;
mod compare;
mod continued;
mod faults;
mod gates;
mod help;
mod loops_io;
mod mistakes;
mod neighbours;
mod ownership;
mod pgbench;
mod renewals;
mod sceptic;
mod serve;
mod starved;
mod stops;
mod surroundings;
mod tiny_disk;
mod tpcc;
mod tpcc_faults;
mod tpch;
mod tpch_faults;
mod tpch_load;
mod tpch_sqlite;
