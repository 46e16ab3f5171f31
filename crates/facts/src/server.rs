//! Settings and counters as a server states them, before and after a trial.

use crate::Message;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What one node said of itself at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct ServerFacts {
    pub product: String,
    /// Such as `10.11.19-MariaDB`.
    pub version: String,
    /// All settings (`SHOW GLOBAL VARIABLES`, `pg_settings`, pragmas), secrets left out.
    pub settings: BTreeMap<String, String>,
    /// All counters (`SHOW GLOBAL STATUS`, `pg_stat_database` ...). Numbers as text, as sent.
    pub counters: BTreeMap<String, String>,
    /// Columns (`sbtest1.k`) and indexes (`index sbtest1.k_1`) of the workload's tables, and how they are defined.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub schema: BTreeMap<String, String>,
    /// How the session that has asked was opened; `None` for embedded databases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_in: Option<LogInFacts>,
    /// What could not be read, and why.
    pub not_readable: Vec<Message>,
}

/// What server and user have proven to each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize)]
#[serde(default)]
pub struct LogInFacts {
    /// Such as `TLS 1.3`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<String>,
    /// A certificate has proven who the server is.
    pub is_verified: bool,
    /// Such as `scram-sha-256`; `none` where nothing was asked.
    pub method: String,
}

impl ServerFacts {
    /// By how much a numeric counter grew from `before` to `self`.
    pub fn growth(&self, before: &ServerFacts, counter: &str) -> Option<f64> {
        let number = |facts: &ServerFacts| facts.counters.get(counter)?.parse::<f64>().ok();
        Some(number(self)? - number(before)?)
    }
}

/// What the nodes of a target said of themselves, by the node's name.
pub type NodeFacts = BTreeMap<String, ServerFacts>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_needs_numbers_on_both_sides() {
        let facts = |value: &str| ServerFacts {
            counters: BTreeMap::from([("Com_select".to_owned(), value.to_owned())]),
            ..ServerFacts::default()
        };
        assert_eq!(facts("15").growth(&facts("5"), "Com_select"), Some(10.0));
        assert_eq!(facts("15").growth(&facts("ON"), "Com_select"), None);
        assert_eq!(facts("15").growth(&facts("5"), "Com_insert"), None);
    }
}
