//! What only one family of workloads records of a trial.

use crate::TrialSummary;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::any::Any;
use std::sync::{Arc, OnceLock};

/// A record that a family keeps of each of its trials.
pub trait FamilyRecord: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Name of the workload in suites.
    const FAMILY: &'static str;

    /// True where a trial is a pass over statements that are timed one by one: it has no transactions.
    const IS_PASS: bool = false;
}

/// The record of one family; only that family reads it.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema, Deserialize)]
pub struct FamilyFacts {
    /// Name of the workload in suites.
    pub family: String,
    /// As [`FamilyRecord::IS_PASS`] says.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_pass: bool,
    facts: Value,
    /// The facts as the type of the family, once they were asked for.
    #[serde(skip)]
    read: OnceLock<Option<Arc<dyn Any + Send + Sync>>>,
}

impl FamilyFacts {
    pub fn new<T: FamilyRecord>(record: &T) -> Self {
        // Records are numbers, texts and lists of them: they can always be written as JSON.
        let facts = serde_json::to_value(record).unwrap_or_default();
        let family = T::FAMILY.to_owned();
        FamilyFacts { family, is_pass: T::IS_PASS, facts, read: OnceLock::new() }
    }

    /// The record; `None` where it is another family's, or damaged.
    pub fn read<T: FamilyRecord>(&self) -> Option<&T> {
        let read = || {
            let record: T = serde_json::from_value(self.facts.clone()).ok()?;
            Some(Arc::new(record) as Arc<dyn Any + Send + Sync>)
        };
        if self.family != T::FAMILY {
            return None;
        }
        self.read.get_or_init(read).as_ref()?.downcast_ref()
    }

    /// The number at a JSON pointer.
    pub fn number(&self, pointer: &str) -> Option<f64> {
        self.facts.pointer(pointer)?.as_f64()
    }

    /// Adds to the record's lists: each field of `line` is an element of the list of that name. False
    /// where there is no such list.
    pub fn append(&mut self, line: Value) -> bool {
        self.read = OnceLock::new();
        let Value::Object(elements) = line else { return false };
        elements.into_iter().all(|(list, element)| match self.facts.get_mut(list) {
            Some(Value::Array(list)) => {
                list.push(element);
                true
            }
            _ => false,
        })
    }
}

impl PartialEq for FamilyFacts {
    fn eq(&self, other: &Self) -> bool {
        (&self.family, &self.facts) == (&other.family, &other.facts)
    }
}

impl TrialSummary {
    /// What this family has recorded; `None` where the trial is another family's.
    pub fn own<T: FamilyRecord>(&self) -> Option<&T> {
        self.own.as_ref()?.read()
    }

    /// True of a pass over statements that are timed one by one: it has no transactions.
    pub fn is_pass(&self) -> bool {
        self.own.as_ref().is_some_and(|own| own.is_pass)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Pings {
        answered: Vec<u32>,
        longest_s: f64,
    }

    impl FamilyRecord for Pings {
        const FAMILY: &'static str = "ping";
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Other;

    impl FamilyRecord for Other {
        const FAMILY: &'static str = "other";
    }

    #[test]
    fn a_record_is_read_by_its_family_and_grows_by_lines() {
        let mut facts = FamilyFacts::new(&Pings { answered: vec![1], longest_s: 0.5 });
        assert_eq!(facts.read::<Other>(), None);
        assert_eq!(facts.read::<Pings>().expect("pings").answered, [1]);
        assert!(facts.append(serde_json::json!({ "answered": 2 })));
        assert!(!facts.append(serde_json::json!({ "longest_s": 2 })), "no list");
        assert_eq!(facts.read::<Pings>().expect("pings").answered, [1, 2]);
        assert_eq!(facts.number("/longest_s"), Some(0.5));
    }
}
