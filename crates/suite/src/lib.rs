//! Suites: TOML to a validated plan, and the published figures that a suite stands beside.
//!
//! - [`Suite`]: a suite file as it is written, with the place of everything that can be wrong.
//! - [`Plan`]: what will be executed, expanded into [`PlanStep`]s in order, with stable ids. It is
//!   stored with the run, without passwords, so that an interrupted run can be resumed.
//! - [`figures`]: published figures as typed rows.
//!
//! The format is described in `suites/README.md`. Nothing here connects to a database or knows
//! the options of a workload: those are passed on as text, and [`Plan::option_error`] gives a
//! complaint about one of them its place in the file.

mod budget;
mod bundled;
mod compare;
mod fault;
pub mod figures;
mod load;
mod logo;
mod nodes;
mod options;
mod parse;
mod plan;
mod problem;
mod publication;
mod reader;
mod resume;
mod scale_out;
mod scripts;
mod shrink;
mod steps;
mod suite;
mod targets;
mod versus;

dyno_facts::catalogue!();

pub use budget::least_budget;
pub use bundled::{BundledSuite, HANDBOOK, bundled};
pub use compare::{Compare, WantedStop, pairs, seconds, share};
pub use plan::{Overrides, Plan};
pub use problem::{Problem, SuiteError, SuitePlace};
pub use publication::publication;
pub use resume::fnv1a;
pub use steps::estimate;
pub use suite::{
    Link, Node, OptionEntry, OptionPart, Suite, SuiteExperiment, SuiteTarget, WithSpan,
};
pub use versus::Versus;
