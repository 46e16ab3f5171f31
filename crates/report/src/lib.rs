//! Run folders to tables, charts and papers. Pure functions: the same runs give the same bytes.
//!
//! [`Paper::new`] turns runs into a paper; [`Paper::html`], [`Paper::markdown`], [`Paper::csv`] and
//! [`Paper::json`] render it. Every remark on the numbers is computed from them; a
//! remark that can't change is not a remark.

pub mod blocks;
pub mod charts;
mod evidence;
mod families;
mod forms;
pub mod prelude;
pub mod sections;
pub mod svg;
mod write;

dyno_facts::catalog!();

pub use dyno_facts::{Lang, Message};
pub use dyno_judge::format;
pub use families::{FamilyPaper, FamilyPapers, Method, NamedPaper, register};

pub use dyno_core::Error as ReportError;
pub use dyno_judge::evidence::*;
pub use dyno_judge::findings::checks::{check_ids, differing_values, parts};
pub use dyno_judge::findings::fault::fault_sentence;
pub use dyno_judge::{
    FamilyLevel, FamilyScale, JudgedFamily, Judgment, KnownFamily, Rule, completed,
};
pub use evidence::{
    BesidePublished, Comparison, ComparisonRow, CostRow, Edition, LatencyDistribution, Pair, Paper,
};
pub use write::SCHEMA;
pub use write::pipeline::{PipelineSummary, junit_of_failure};
