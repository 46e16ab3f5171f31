//! What a load did.

use dyno_core::{BulkFallback, BulkMethod, BulkReport};
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
