//! dyno with one family more.

mod family;
mod workload;

use dyno_families::FAMILIES;
use std::process::ExitCode;

fn main() -> ExitCode {
    dyno::main([FAMILIES, &[family::PING]].concat().leak())
}
