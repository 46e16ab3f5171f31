//! The load generator's own machine: what it is and how busy it was.
//!
//! Everything is read from `/proc` and `/sys`; what is not there is `None`.

mod machine;
mod processes;
mod sample;

pub use machine::{environment, governor, machine};
pub use processes::{ServerProcess, ServerUsage};
pub use sample::HostSampler;

use std::fs;

/// A small file of the kernel, without its line end; `None` where it is missing or empty.
fn line_of(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
