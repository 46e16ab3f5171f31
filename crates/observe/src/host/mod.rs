//! The load generator's own machine: what it is, how busy it was, and whether it held the load back.
//!
//! Everything is read from `/proc` and `/sys`; what is not there is `None`.
//!
//! [`GeneratorWatch`] counts from the opening of the window to its end; a thread that asks to be woken each
//! millisecond records how late it was. The engine's collecting thread owns it: loops only read their own
//! run delay, in warm-up and at their end.

mod machine;
mod metronome;
mod processes;
mod sample;
mod watch;

pub use machine::machine;
pub use processes::{ServerCpu, ServerProcess};
pub use sample::HostSampler;
pub use watch::{GeneratorWatch, run_delay_of_process, run_delay_of_thread};

use machine::governor;
use metronome::Metronome;
use std::fs;

/// A small file of the kernel, without its line end; `None` where it is missing or empty.
fn line_of(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
