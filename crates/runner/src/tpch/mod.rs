//! What runs of TPC-H say: of the answers, and of loads that failed.

mod answers;

pub use answers::{answers_check, answers_lines};

use crate::failure::{Failure, sentence};
use dyno_tpch::load::LoadError;

/// A loader's error with its remedy.
pub fn load_failure(error: &LoadError) -> Failure {
    let text = sentence(&error.to_string());
    let failure = match error {
        LoadError::Option { .. } => Failure::usage(text),
        _ => Failure::new(text),
    };
    match error.hint() {
        Some(hint) => failure.with_hint(hint),
        None => failure,
    }
}
