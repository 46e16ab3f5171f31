//! Every record of a run folder, declared once: who writes, reads, merges or prints it borrows it from here.
//!
//! Only data and what follows from them: nothing is read, written or asked.

mod colour;
mod conditions;
mod continued;
mod counts;
mod event;
mod evidence;
mod experiment;
mod family;
mod fault;
pub mod format;
mod header;
mod host;
mod message;
mod metric;
mod plan;
mod secret;
mod series;
mod server;
mod summary;
mod table;
mod target;
mod texts;
mod trial;

pub use colour::{CONTRAST_MIN, Colour, DARK, WHITE};
pub use conditions::{
    CommitWait, Conditions, Freshness, GeneratorConditions, GeneratorMember, NodeConditions,
    Purpose, ReplicaFacts, Together,
};
pub use continued::{EarlierSession, SessionPairs, earlier_pairs};
pub use counts::{Counts, StatementCounts};
pub use event::{Event, EventKind};
pub use evidence::{CheckVerdict, DataCheck, DataFacts, StatementLatency};
pub use experiment::{
    ComparisonFacts, DataSize, ExperimentFacts, FaultAction, FaultPlan, PublishedRow,
    PublishedTable, RateSearch, Restore, ScriptFacts, StopRule,
};
pub use family::{FamilyFacts, FamilyRecord};
pub use fault::{CrossShardLosses, FaultFacts, FaultStep, RECOVERED_SHARE, ShardOutage};
pub use header::{
    EffectFacts, FleetMember, RenewalFacts, Renewed, RunHeader, RunStatus, TableOrigin,
};
pub use host::{Environment, HostSample, Machine};
pub use message::{Arg, Bilingual, Catalogue, CheckTexts, Lang, Message, MessageTexts, register};
pub use metric::{AddUp, Better, LatencyUs, Measures, Metric};
pub use plan::{PlanStep, PlannedTrial, RunPlan, StepAction, SuiteFacts};
pub use secret::{
    SecretCommand, SecretUrl, has_secret, is_masked, mask_line, mask_script, mask_secrets,
    password_variable,
};
pub use series::{NodeRow, SeriesRow};
pub use server::{LogInFacts, NodeFacts, ServerFacts};
pub use summary::{
    AwaitedArrivals, ErrorSummary, FileSeal, GeneratorSummary, KindSummary, LatencySummary,
    SAMPLES_BEYOND, SCHEMA_VERSION, StageFacts, TableScans, TrialStatus, TrialSummary,
};
pub use table::text_table;
pub use target::{Price, Role, Route, TargetFacts, TargetNode};
pub use texts::{BothTexts, PaperTexts, TargetTexts};
pub use trial::{StageOf, TrialIdentity, TrialStart};
