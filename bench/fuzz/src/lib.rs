//! Hostile inputs: seeds that are kept in `seeds/` are damaged at random, and each target must read or refuse what
//! comes of that. A panic is a finding, and so is an input that takes over [`SLOW`].
//!
//! `tests/seconds.rs` runs each target for some seconds; the program runs them for as many inputs as it is requested:
//! `cargo run --release -p dyno-fuzz -- --inputs 100000000`.

mod mutate;
mod targets;

use dyno_core::{Nanos, SECOND};
use dyno_engine::record::thread_cpu;
use mutate::Mutator;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Instant;

pub use targets::TARGETS;

/// No input may take more of a CPU; time on the wall also passes while others have it.
const SLOW: Nanos = 2 * SECOND;

#[derive(Clone, Copy)]
pub struct Target {
    /// Also the folder of its seeds.
    pub name: &'static str,
    /// Reads or refuses an input; a broken promise is a panic.
    pub read: fn(&[u8]),
}

/// The outcome of a target's run.
#[derive(Debug, Default)]
pub struct Outcome {
    pub inputs: u64,
    pub seconds: f64,
    /// The faults with their inputs.
    pub findings: Vec<(String, Vec<u8>)>,
}

impl Target {
    /// Reads each seed, then damaged ones until `is_enough` of the inputs. A finding ends it.
    pub fn run(&self, stream: u64, is_enough: impl Fn(u64) -> bool) -> Outcome {
        let seeds = seeds(self.name);
        let start = Instant::now();
        let mut outcome = Outcome::default();
        let mut mutator = Mutator::new(stream);
        let mut input = Vec::new();
        while outcome.findings.is_empty() && !is_enough(outcome.inputs) {
            match seeds.get(outcome.inputs as usize) {
                Some(seed) => input.clone_from(seed),
                None => mutator.damage(&seeds, &mut input),
            }
            outcome.inputs += 1;
            outcome.findings.extend(self.finding(&input).map(|why| (why, input.clone())));
        }
        outcome.seconds = start.elapsed().as_secs_f64();
        outcome
    }

    fn finding(&self, input: &[u8]) -> Option<String> {
        let start_ns = thread_cpu();
        let read = catch_unwind(AssertUnwindSafe(|| (self.read)(input)));
        let elapsed_ns = thread_cpu() - start_ns;
        match read {
            Err(_) => Some("it panicked".to_owned()),
            Ok(()) if elapsed_ns > SLOW => {
                Some(format!("it took {:.1} s of a CPU", elapsed_ns as f64 / 1e9))
            }
            Ok(()) => None,
        }
    }
}

/// Folder of the seeds of a target.
pub fn folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target)
}

/// The seeds of a target, in the order of their names.
fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = folder(target);
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    files.sort();
    files.iter().filter_map(|file| std::fs::read(file).ok()).collect()
}
