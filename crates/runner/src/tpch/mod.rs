//! What runs of TPC-H say of the answers.

mod answers;

pub use answers::{answers_check, answers_lines};
