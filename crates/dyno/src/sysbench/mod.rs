//! `dyno sysbench`: the drop-in front end for sysbench 1.0.20's database tests.
//!
//! Words become [`command_line::CommandLine`], that becomes a trial; what the trial says is
//! printed in sysbench's shape. Where dyno counts differently from sysbench, the number is the
//! honest one and the label is kept; `dyno sysbench --help` says where.

mod command_line;
mod console;
mod histogram;
mod intervals;
mod options;
mod report;
mod settings;
mod values;
