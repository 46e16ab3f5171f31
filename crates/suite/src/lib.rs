//! Suites: TOML to a validated plan, and the published figures that results are shown next to.
//!
//! - [`Suite`]: a suite file as it is written, with the place of everything that can be wrong.
//! - [`Plan`]: what will be executed, expanded into [`PlanStep`]s in order, with stable ids. It is
//!   stored with the run, without passwords, so that an interrupted run can be resumed.
//! - [`figures`]: published figures as typed rows.
//!
//! The format is described in `suites/README.md`. Nothing here connects to a database or knows
//! the options of a workload: those are passed on as text, and [`Plan::option_error`] gives a
//! complaint about one of them its place in the file.

mod compare;
pub mod figures;
mod load;
mod parse;
mod plan;
mod publication;
mod reader;
mod size;
mod steps;
mod suite;
mod targets;

dyno_facts::catalog!();

pub use compare::{Compare, ComparisonWay, Versus, WantedStop, pairs, seconds, share};
pub use plan::{Overrides, Plan, fnv1a};
pub use publication::publication;
pub use reader::{Problem, SuiteError, SuitePlace};
pub use size::least_budget;
pub use steps::estimate;
pub use suite::{
    BundledSuite, HANDBOOK, Link, Node, OptionEntry, OptionPart, Suite, SuiteExperiment,
    SuiteTarget, WithSpan, bundled,
};
