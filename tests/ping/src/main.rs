//! dyno with one family more.

mod family;
mod paper;
mod workload;

use dyno::families::{FAMILIES, PAPERS};
use std::process::ExitCode;

fn main() -> ExitCode {
    dyno::main(
        [FAMILIES, &[&family::PING]].concat().leak(),
        [PAPERS, &[&paper::PingPaper]].concat().leak(),
    )
}
