//! Run folders to tables, charts and papers. Pure functions: the same runs give the same bytes.
//!
//! [`Paper::new`] turns runs into a paper; [`Paper::html`], [`Paper::markdown`], [`Paper::csv`] and
//! [`Paper::json`] render it. Everything that is said about the numbers is computed from them; a
//! remark that can't change is not a remark.

pub mod blocks;
pub mod charts;
mod evidence;
mod families;
mod findings;
pub mod format;
mod forms;
mod levels;
pub mod outcomes;
pub mod sections;
pub mod svg;
mod templates;
mod text;
mod write;

dyno_facts::catalogue!();

pub use dyno_facts::{Lang, Message};
pub use families::{
    FamilyLevel, FamilyPaper, FamilyPapers, FamilyScale, KnownFamily, Method, NamedPaper,
    completed, register,
};

pub use dyno_core::HintedError as ReportError;
pub use evidence::{
    AaKind, BesidePublished, Bounds, Call, Comparison, ComparisonRow, Cost, CostRow, GateResult,
    GateRow, LevelChange, LevelNumbers, Pair, PairOrder, PairedComparison, PerVcpu, Published,
    RepetitionLevel, RepetitionLevels, Scaling, SessionRow, StallRow, SteadyRow, VerdictRow, Veto,
    VetoReach, bound_of, figure_of, judged_metrics,
};
pub use evidence::{
    Check, Counter, Edition, Evidence, Experiment, Finding, Gap, Group, KeyRow,
    LatencyDistribution, Level, NodeScaling, Paper, PaperTarget, Point, PointData, Quantile,
    RunFacts, SettingRow, Spot, SpotKind, Spread, TargetPlace, Trial, Verdicts,
};
pub use evidence::{GlossaryRow, Naming, glossary_row, settings_of_queries};
pub use findings::checks::same::server_changed;
pub use findings::checks::{Rule, check_ids, parts, unlike};
pub use findings::comparison::counterpart;
pub use findings::fault::fault_sentence;
pub use findings::verdict::{level_of_trial, sessions_of, veto_of_level};
pub use templates::Templates;
pub use write::{ChartFile, schema};
