//! Recorders, histograms, intervals, host and server samplers, and what they add up to.
//!
//! A [`Recorder`] lives on each loop and knows nothing of others. It hands a [`Frame`] per interval
//! to the [`Collector`], which merges the frames of all loops into [`Interval`]s and totals.

mod collector;
mod conditions;
mod evidence;
mod fault;
mod frame;
mod histogram;
mod host;
pub mod proc;
mod recorder;
mod server;
mod summary;
mod tpch;
pub mod wire;

pub use collector::{Collector, Interval};
pub use conditions::{
    Conditions, Freshness, GeneratorConditions, GeneratorMember, NodeConditions, NodeRow, Purpose,
    ReplicaFacts, Together,
};
pub use evidence::{
    AuditLine, ConditionLine, ConditionState, DataCheck, DataFacts, StatementLatency, TpccFacts,
    TpccKind, Verdict,
};
pub use fault::{FaultFacts, FaultWatch, RECOVERED_SHARE};
pub use frame::{Counts, ErrorCount, ErrorTable, Frame, KindFrame};
pub use histogram::Latencies;
pub use host::{
    GeneratorWatch, HostSample, HostSampler, Machine, process_cpu, run_delay_of_process,
    run_delay_of_thread, thread_cpu,
};
pub use recorder::{Phase, Recorder, Times, Window};
pub use server::{
    Asked, NodeLook, NodeState, Position, Questions, Sample, Seen, ServerFacts, commits_grown,
    follows, glance, has_reached, look, node_conditions, position, read_facts,
};
pub use summary::{
    ErrorSummary, GeneratorSummary, KindSummary, LatencySummary, SCHEMA_VERSION, SeriesRow,
    StatementCounts, TrialStatus, TrialSummary,
};
pub use tpch::{
    AnswerFacts, CacheFacts, DegreeFacts, LoadStep, PlanFacts, QueryFacts, QueryOutcome,
    RefreshFacts, TpchFacts, TpchLoad, TpchMetrics,
};
