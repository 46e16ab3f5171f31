//! Parts that every loader shares. A family brings its schema, its rows and its notes of finished pieces.
//!
//! - [`LoadSessions`]: the sessions of a load. A load is a list of pieces; each piece is done by the next session that is
//!   free, and is small enough to be one transaction. The first error ends all sessions, each at its next piece.
//! - [`store`], [`retrying`], [`StoredRows`]: one piece that meets locks of other sessions, and the count of what is stored.
//! - [`LoadObserver`], [`LoadReport`], [`LoadError`]: what a load says while it works, at its end, and when it fails.
//! - [`query`], also named [`catalog`]: small questions to a database, and what its catalog says about tables. All set-up statements of loaders pass through
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
//! - A probe of what a proxy accepts, before the first piece: the `set_up` of [`LoadSessions::each_at`], and the answer of the
//!   first piece, which [`StoredRows`] keeps.
//! - "No progress for 30 s": [`doing`], [`bulk_load`] and [`query::execute`] note what a session does, and that it
//!   continues. A thread alongside the sessions looks at that and, if nothing continues, at the nodes ([`StallTimeouts`]). What is
//!   no load but waits for servers, too, is watched in the same way ([`watched`]).
//! - The end within 10 s of a request: [`LoadSessions`] asks [`LoadObserver::is_canceled`] ten times a second, whatever
//!   its sessions wait for; sessions of a canceled load end with [`dyno_core::Session::cancel`].

pub mod query;
mod sessions;
pub mod settings;
mod watch;

dyno_facts::catalog!();

pub use query as catalog;
pub use sessions::{LoadSessions, StoredRows, all_taken, cancel, is_conflict, retrying, store};
pub use watch::{
    Activity, LOST_NODE_REMEDY, LostNode, StallTimeouts, await_loss, bulk_load, doing, goes_on,
    look_at, noting, opened, watched,
};

use dyno_core::{BulkFallback, BulkMethod, BulkReport, DbError, ErrorClass, NodeSight};
use dyno_facts::{Message, say};
use std::num::NonZero;
use std::{fmt, io, thread};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadReport {
    pub rows_loaded: u64,
    /// Rows that an earlier load had stored.
    pub rows_found: u64,
    /// Method by which the rows were loaded; `None` when none had to be.
    pub method: Option<BulkMethod>,
    /// Reason why a faster method was not used.
    pub fallback_reason: Option<Message>,
    /// Set if the data set was complete before.
    pub was_complete: bool,
    /// Keys and indexes that tables lacked whose rows were all there.
    pub indexes_made: Vec<String>,
}

impl From<BulkReport> for LoadReport {
    fn from(stored: BulkReport) -> Self {
        LoadReport {
            rows_loaded: stored.rows,
            method: Some(stored.method),
            fallback_reason: stored.fallback.as_ref().map(fallback_reason),
            ..LoadReport::default()
        }
    }
}

impl LoadReport {
    /// Adds what another part of the same load did.
    pub fn add(&mut self, part: LoadReport) {
        self.rows_loaded += part.rows_loaded;
        self.rows_found += part.rows_found;
        self.method = part.method.or(self.method);
        self.fallback_reason = part.fallback_reason.or(self.fallback_reason.take());
        self.was_complete &= part.was_complete;
        self.indexes_made.extend(part.indexes_made);
    }

    /// `500 rows by COPY, 80 rows were there before; no faster way: why`.
    pub fn sentence(&self) -> Message {
        let mut text = match self.method {
            Some(method) => {
                say!(rows_loaded, rows = self.rows_loaded.to_string(), method = method.name())
            }
            None => say!(rows_none_loaded),
        };
        if self.rows_found > 0 {
            text = say!(rows_found, loaded = text, rows = self.rows_found.to_string());
        }
        if !self.indexes_made.is_empty() {
            text = say!(indexes_made, loaded = text, names = self.indexes_made.join(", "));
        }
        match &self.fallback_reason {
            Some(why) => say!(no_faster_way, loaded = text, why),
            None => text,
        }
    }
}

/// Explains why a faster bulk-load method was not used, for reports and notes.
pub fn fallback_reason(fallback: &BulkFallback) -> Message {
    let reason = match &fallback.refusal {
        Some(refusal) => refusal.into(),
        None => say!(bulk_not_offered, way = fallback.way),
    };
    match fallback.remedy {
        Some(statement) => say!(bulk_needs_statement, why = reason, statement),
        None => reason,
    }
}

/// Sessions of a load where the user does not say how many: two per core.
pub fn default_sessions() -> u32 {
    let cores = thread::available_parallelism().map_or(2, NonZero::get);
    (2 * cores).clamp(2, 16) as u32
}

/// Follows the preparation of a data set: progress bars, drop-in messages, log lines. Called from
/// all loading threads, a few times per second at most. Every method does nothing unless it is
/// written.
pub trait LoadObserver: Sync {
    /// The load will insert this many rows in all; called once, before the first row. Rows that an
    /// interrupted load has left behind are not among them.
    fn rows_planned(&self, _rows: u64) {}
    fn creating_table(&self, _table: &str) {}
    /// The comment that marks created tables, so that they differ from others with the same names.
    fn table_mark(&self) -> Option<&str> {
        None
    }
    /// The first of `rows` rows is about to be inserted into `table`.
    fn inserting(&self, _rows: u64, _table: &str) {}
    /// This many more rows are stored; sent, if all rows are one transaction.
    fn rows_done(&self, _rows: u64) {}
    /// A secondary index of `table` is about to be created.
    fn creating_index(&self, _table: &str) {}
    /// A table is about to be read into the server's memory.
    fn prewarming_table(&self, _table: &str) {}
    fn dropping_table(&self, _table: &str) {}
    /// A line that the original tool prints here, or a remark of the server as its own client prints it.
    fn line(&self, _text: &str) {}
    /// Something the user should know, in one sentence.
    fn note(&self, _text: &str) {}
    /// The work that is done, in its sentences.
    fn work(&self) -> &'static str {
        "the load"
    }
    /// Returns true if the user wants the end of the load now. Asked about ten times a second.
    fn is_canceled(&self) -> bool {
        false
    }
    /// Time limits of its waits.
    fn patience(&self) -> StallTimeouts {
        StallTimeouts::default()
    }
    /// A node whose process is known, and that is dead. Asked some times a second.
    fn lost_node(&self) -> Option<NodeSight> {
        None
    }
    /// Returns true if nodes are watched, so that [`Self::lost_node`] may tell of one a moment after its sessions are
    /// lost.
    fn watches_nodes(&self) -> bool {
        false
    }
    /// Work is given up because of a node: those who wait for it end.
    fn give_up(&self, _node: &LostNode) {}
    /// Looks at all nodes, if they are known; else only the way to the target is looked at. Takes a while.
    fn nodes(&self) -> Vec<NodeSight> {
        Vec::new()
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl LoadObserver for Unobserved {}

/// The kind of a [`LoadError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadErrorKind {
    /// The database refused something or went away.
    Session,
    /// The data in the database are not those that were requested, or not those that were sent.
    Data,
    /// An option that can't be had, or a setting of the server that is in the way; nothing was touched.
    Option,
    /// A node of the target is dead or makes no progress; nothing of the pieces at work is stored.
    Node,
    /// [`LoadObserver::is_canceled`] was true: nothing of the pieces at work is stored.
    Canceled,
    /// The kernel refused an event loop.
    Loop,
}

/// The failure of a load, of a look at its state or of a removal.
#[derive(Debug)]
pub struct LoadError {
    pub kind: LoadErrorKind,
    /// The problem in a sentence (of a node without its full stop, perhaps with lines of a log); of a session the work
    /// that failed, such as `creating table region`.
    pub problem: String,
    /// A remedy of the loader's own, or how to continue where rows are stored.
    pub remedy: Option<String>,
    /// The error of a session.
    pub error: Option<DbError>,
    /// The statement, where its text matters to the user.
    pub sql: Option<String>,
    /// Rows may be stored, and the same load continues with the rest.
    pub is_resumable: bool,
}

impl LoadError {
    pub fn new(kind: LoadErrorKind, problem: impl Into<String>, remedy: Option<String>) -> Self {
        let problem = problem.into();
        LoadError { kind, problem, remedy, error: None, sql: None, is_resumable: false }
    }

    /// An error of [`LoadErrorKind::Data`].
    pub fn data(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        LoadError::new(LoadErrorKind::Data, problem, Some(remedy.into()))
    }

    /// An error of [`LoadErrorKind::Option`] without a remedy.
    pub fn option(problem: impl Into<String>) -> Self {
        LoadError::new(LoadErrorKind::Option, problem, None)
    }

    /// A remedy, for a separate line after `hint:`.
    pub fn hint(&self) -> Option<&str> {
        self.remedy.as_deref().or_else(|| self.error.as_ref()?.hint())
    }

    /// Returns true if locks of other sessions were in the way: the same work may succeed.
    pub fn is_conflict(&self) -> bool {
        self.error.as_ref().is_some_and(is_conflict)
    }

    /// Returns true if the same load would fail again: a full disk or a limit is in the way.
    pub fn recurs(&self) -> bool {
        self.error.as_ref().is_some_and(|error| error.class() == ErrorClass::Other)
    }

    /// Adds the statement that failed.
    #[must_use]
    pub fn with_sql(self, text: &str) -> Self {
        LoadError { sql: Some(text.to_owned()), ..self }
    }

    /// Adds to the failure of a session how to continue, because what is stored is not lost. What the database advises
    /// is enough by itself.
    #[must_use]
    pub fn with_resume_hint(mut self, resume: &str) -> Self {
        let recurs = self.recurs();
        if let Some(error) = &self.error {
            self.is_resumable = true;
            self.remedy = match self.remedy {
                Some(remedy) => Some(format!("{remedy}; then {resume}")),
                None if error.hint().is_some() => None,
                None if recurs => Some(format!("remove the cause, then {resume}")),
                None => Some(resume.to_owned()),
            };
        }
        self
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.error {
            Some(error) => write!(f, "{} failed: {error}", self.problem),
            None => f.write_str(&self.problem),
        }
    }
}

impl std::error::Error for LoadError {}

impl From<io::Error> for LoadError {
    fn from(error: io::Error) -> Self {
        let problem = format!("no event loop could be made: {error}");
        LoadError::new(LoadErrorKind::Loop, problem, None)
    }
}

/// Names what was being done when a session failed.
pub fn while_doing(doing: impl Into<String>) -> impl FnOnce(DbError) -> LoadError {
    move |error| LoadError {
        error: Some(error),
        ..LoadError::new(LoadErrorKind::Session, doing, None)
    }
}
