//! What a load did.
//!
//! What a loader reports while it works.

use crate::{LostNode, Patience};
use dyno_core::{BulkFallback, BulkMethod, BulkReport, NodeSight};
use dyno_facts::{Message, say};
use std::num::NonZero;
use std::thread;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadReport {
    pub rows_loaded: u64,
    /// Rows that an earlier load had stored.
    pub rows_found: u64,
    /// How the rows got there; `None` when none had to.
    pub method: Option<BulkMethod>,
    /// Why a faster method was not used.
    pub fallback_reason: Option<Message>,
    /// True when the data set was complete before.
    pub was_complete: bool,
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
    }

    /// `500 rows by COPY, 80 rows were there before; no faster way: why`.
    pub fn sentence(&self) -> Message {
        let rows = |count: u64| count.to_string();
        let mut text = match self.method {
            Some(method) => {
                say!(rows_loaded, rows = rows(self.rows_loaded), method = method.name())
            }
            None => say!(rows_none_loaded),
        };
        if self.rows_found > 0 {
            text = say!(rows_found, loaded = text, rows = rows(self.rows_found));
        }
        match &self.fallback_reason {
            Some(why) => say!(no_faster_way, loaded = text, why = why),
            None => text,
        }
    }
}

/// Why a faster way was not gone, for reports and notes.
pub fn fallback_reason(fallback: &BulkFallback) -> Message {
    let why = match &fallback.refusal {
        Some(refusal) => refusal.into(),
        None => say!(bulk_not_offered, way = fallback.way),
    };
    match fallback.remedy {
        Some(statement) => say!(bulk_allowed_by, why = why, statement = statement),
        None => why,
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
    /// The comment by which tables that are created can be told from others of their names.
    fn table_mark(&self) -> Option<&str> {
        None
    }
    /// The first of `rows` rows is about to be inserted into `table`.
    fn inserting(&self, _rows: u64, _table: &str) {}
    /// This many more rows are stored; sent, where all rows are one transaction.
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
    /// What is done, in its sentences.
    fn work(&self) -> &'static str {
        "the load"
    }
    /// True when the user wants the end of the load now. Asked about ten times a second.
    fn is_canceled(&self) -> bool {
        false
    }
    fn patience(&self) -> Patience {
        Patience::default()
    }
    /// A node whose process is known, and that is dead. Asked some times a second.
    fn lost_node(&self) -> Option<NodeSight> {
        None
    }
    /// Whether nodes are watched, so that [`Self::lost_node`] may tell of one a moment after its sessions are lost.
    fn watches_nodes(&self) -> bool {
        false
    }
    /// Work is given up because of a node: those who wait for it end.
    fn give_up(&self, _node: &LostNode) {}
    /// Looks at all nodes, where they are known; else only the way to the target is looked at. Takes a while.
    fn nodes(&self) -> Vec<NodeSight> {
        Vec::new()
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl LoadObserver for Unobserved {}
