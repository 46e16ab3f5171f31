//! All that a small family of workloads is written with; `tests/ping` is one.

pub use crate::databases::Database;
pub use crate::failure::{Failure, Result};
pub use crate::family::{
    After, Driven, EndedTrial, Family, FamilyEntry, LoadOrder, Ready, ask, read_family,
};
pub use dyno_core::offer::{TestOffer, WorkloadOffer};
pub use dyno_core::options::{OptionRow, OptionValues, describe};
pub use dyno_core::{
    AnswerRow, DbResult, Discard, Outcome, Param, ParamType, Rng, Rows, Session, Statement, Tally,
    TransactionId, TransactionKind, WorkerId, Workload,
};
pub use dyno_engine::TrialSpec;
pub use dyno_facts::{CheckVerdict, DataCheck, FamilyFacts, FamilyRecord, Message};
pub use dyno_load::query::{answer, execute};
