//! `events.jsonl`: what happened beside the numbers.

use crate::Message;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// Attempts or connects that met an error: one event per interval, class and code.
    Error,
    /// Sessions that were connected again: one event per interval.
    Reconnect,
    /// Something the server did or had done to it (checkpoint, restart, failover).
    Server,
    /// A remark of dyno.
    Note,
    /// Written by a newer dyno.
    #[serde(other)]
    Other,
}

/// One line of `events.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct Event {
    /// RFC 3339, UTC: when it was written; filled by the store when empty.
    #[serde(default)]
    pub at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<u32>,
    /// Seconds from the opening of the trial's window; negative in warm-up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_s: Option<f64>,
    pub kind: EventKind,
    /// In words; of an error the server's message.
    pub text: Message,
    /// The id of the step of the plan that has loaded its data by now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prepared: Option<String>,
    /// Of an error its class, such as `deadlock`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub class: String,
    /// Of an error MySQL's or SQLite's number; 0 where there is none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub errno: u32,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sqlstate: String,
    /// How often it happened in the interval.
    #[serde(default = "one")]
    pub count: u64,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn one() -> u64 {
    1
}

impl Event {
    /// An event of that kind that happened once, outside of any trial.
    pub fn new(kind: EventKind, text: impl Into<Message>) -> Self {
        Event {
            at: String::new(),
            trial: None,
            at_s: None,
            kind,
            text: text.into(),
            prepared: None,
            class: String::new(),
            errno: 0,
            sqlstate: String::new(),
            count: 1,
        }
    }
}
