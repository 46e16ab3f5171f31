//! Evidence of runs, checks and verdicts: who decides on one more pair of trials, how a run ends and what a paper says
//! builds on the same judgment. Pure functions on values in memory.
//!
//! [`Judgment::from_runs`] reads [`Evidence`] from runs, compares targets, makes the checks and takes away the verdicts that
//! they forbid.

pub mod evidence;
mod families;
pub mod findings;
pub mod format;

dyno_facts::catalog!();

pub use evidence::Judgment;
pub use families::{
    FamilyLevel, FamilyScale, JudgedFamily, KnownFamily, completed, families, register,
};
pub use findings::checks::Rule;
pub use format::first_sentence;
