//! `events.jsonl`: what happened beside the numbers.

use serde::{Deserialize, Serialize};

/// What an event is about.
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
    /// Trial during which it happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<u32>,
    /// Seconds from the opening of the trial's window; negative in warm-up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_s: Option<f64>,
    /// What it is about.
    pub kind: EventKind,
    /// In words; of an error the server's message.
    pub text: String,
    /// Of an error its class, such as `deadlock`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub class: String,
    /// Of an error MySQL's or SQLite's number; 0 where there is none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub errno: u32,
    /// Of an error its SQLSTATE.
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
    pub fn new(kind: EventKind, text: impl Into<String>) -> Self {
        Event {
            at: String::new(),
            trial: None,
            at_s: None,
            kind,
            text: text.into(),
            class: String::new(),
            errno: 0,
            sqlstate: String::new(),
            count: 1,
        }
    }

    pub(crate) fn line(&self) -> Vec<u8> {
        // Strings and finite numbers: serialising them can't fail, and JSON escapes line ends.
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }
}

/// Reads whole lines; what is not an event is described in the second list.
pub(crate) fn parse(text: &str) -> (Vec<Event>, Vec<String>) {
    let mut events = Vec::new();
    let mut warnings = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        match serde_json::from_str(line) {
            Ok(event) => events.push(event),
            Err(error) => warnings.push(format!(
                "Line {} of events.jsonl is damaged and was left out: {error}.",
                index + 1
            )),
        }
    }
    (events, warnings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn events_round_trip(text in ".*", class in "[a-z_]*", errno: u32, count: u64, at_s in proptest::option::of(-1e6..1e6_f64)) {
            let event = Event { class, errno, count, at_s, ..Event::new(EventKind::Error, text) };
            let line = String::from_utf8(event.line()).expect("UTF-8");
            prop_assert_eq!(line.matches('\n').count(), 1);
            let (events, warnings) = parse(&line);
            prop_assert!(warnings.is_empty());
            prop_assert_eq!(events, vec![event]);
        }

        #[test]
        fn no_line_makes_the_reader_panic(text in "(\\PC|\n)*") {
            let (events, warnings) = parse(&text);
            let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
            prop_assert_eq!(events.len() + warnings.len(), lines);
        }
    }

    #[test]
    fn kinds_of_a_newer_dyno_are_kept() {
        let (events, warnings) = parse("{\"kind\":\"eclipse\",\"text\":\"dark\"}\n");
        assert!(warnings.is_empty());
        assert_eq!((events[0].kind, events[0].count), (EventKind::Other, 1));
    }
}
