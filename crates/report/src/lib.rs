//! Run folders to tables, charts and papers. Pure functions: the same runs give the same bytes.
//!
//! [`Paper::new`] turns runs into a paper; [`Paper::html`], [`Paper::markdown`], [`Paper::csv`] and
//! [`Paper::json`] render it. Everything that is said about the numbers is computed from them; a
//! remark that can't change is not a remark.

pub mod blocks;
mod charts;
mod error;
mod evidence;
mod families;
mod findings;
mod format;
mod forms;
mod levels;
mod outcomes;
mod sections;
mod svg;
mod templates;
mod text;
mod tpcc;
mod tpch;
mod write;

dyno_facts::catalogue!();

pub use dyno_facts::{Lang, Message};
pub use families::{
    Family, FamilyLevel, FamilyPaper, FamilyPapers, FamilyScale, Method, NamedPaper, completed,
    register,
};

pub use error::ReportError;
pub use evidence::{
    Beside, Bounds, Call, Comparison, ComparisonRow, Cost, CostRow, GateResult, GateRow,
    LevelChange, Pair, PairOrder, PairedComparison, PerVcpu, Published, Scaling, StallRow,
    SteadyRow, VerdictRow, figure_of, judged_metrics,
};
pub use evidence::{
    Check, Counter, Distribution, Experiment, Finding, Gap, Group, KeyRow, Level, NodeScaling,
    Paper, Place, Point, PointData, Quantile, RunFacts, SettingRow, Spot, SpotKind, Spread, Target,
    Trial,
};
pub use findings::checks::{Rule, check_ids};
pub use findings::fault::fault_sentence;
pub use outcomes::Outcome;
pub use templates::Templates;
pub use tpcc::{
    AuditRow, AuditTable, ConditionRow, MixRow, Proof, ResponseRow, TpccPoint, TpccSection,
    TpccSetup,
};
pub use tpch::{
    AnswerCount, CacheRow, DegreeColumn, FailureRow, FormulaRow, LoadRow, LoadTable, PlanCell,
    PlanLink, PlanRow, PublishedSeconds, QueryCell, QueryRow, QuerySettings, RefreshRow, Shown,
    Speedup, Told, TpchSection, TpchSetup, TpchTable, WrongAnswer,
};
pub use write::schema;
