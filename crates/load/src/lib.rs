//! What every loader shares. A family brings its schema, its rows and its own notes of what is done.
//!
//! - [`LoadSessions`]: the sessions of a load. A load is a list of pieces; each piece is done by the next session that is
//!   free, and is small enough to be one transaction. The first error ends all sessions, each at its next piece.
//! - [`retrying`], [`StoredRows`]: one piece that meets locks of other sessions, and the count of what is stored.
//! - [`LoadObserver`], [`LoadReport`], [`LoadError`]: what a load says while it works, at its end, and when it fails.
//! - [`query`], [`catalog`]: small questions to a database. All set-up statements of loaders pass through
//!   [`query::execute`] and [`query::answer`].
//!
//! # Resuming
//! The database itself says what is missing, in the way that suits the family: sysbench, pgbench and TPC-C count
//! rows by chunk, TPC-H notes each piece. A loader leaves what is done out of its list of pieces.
//! [`LoadError::with_resume_hint`] names the command that continues.
//!
//! # Loading through proxies
//! Proxies limit the length of statements, the duration of transactions and the number of rows. Each limit has one
//! place here where it can be enforced for all families:
//!
//! - A bounded statement or a short transaction: the size of a piece ([`LoadSessions::each`]) and of a bulk load.
//! - A probe of what a proxy accepts, before the first piece: the `set_up` of [`LoadSessions::each`], and the answer of the
//!   first piece, which [`StoredRows`] keeps.
//! - "No progress for 30 s": [`doing`], [`bulk_load`] and [`query::execute`] note what a session does, and that it
//!   goes on. A thread beside the sessions looks at that and, where nothing goes on, at the nodes ([`Patience`]). What is
//!   no load but waits for servers, too, is watched in the same way ([`watched`]).
//! - The end within 10 s of a request: [`LoadSessions`] asks [`LoadObserver::is_canceled`] ten times a second, whatever
//!   its sessions wait for; sessions of a canceled load end with [`dyno_core::Session::cancel`].

pub mod catalog;
mod error;
pub mod query;
mod report;
mod sessions;
pub mod settings;
mod watch;

dyno_facts::catalogue!();

pub use error::{LoadError, while_doing};
pub use report::{LoadObserver, LoadReport, Unobserved, default_sessions, fallback_reason};
pub use sessions::{LoadSessions, StoredRows, cancel, is_conflict, retrying};
pub use watch::{
    Activity, LOST_NODE_REMEDY, LostNode, Patience, await_loss, bulk_load, doing, goes_on, look_at,
    noting, watched,
};
