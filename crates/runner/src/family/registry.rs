//! Families as the runner holds them.

use super::Trials;
use crate::databases::Database;
use crate::failure::Failure;
use crate::progress::LoadProgress;
use dyno_core::offer::WorkloadOffer;
use dyno_facts::{Catalogue, ExperimentFacts};
use dyno_store::RunData;
use dyno_suite::Plan;

/// An experiment of a family, or why its options are wrong.
pub type ReadFamily = Result<Box<dyn Trials>, Failure>;

#[derive(Clone, Copy, Debug)]
pub struct FamilyEntry {
    /// What suites are read with.
    pub offer: WorkloadOffer,
    pub catalogue: Catalogue,
    /// What is printed last of all when a run has ended.
    pub last_words: fn(&RunData) -> String,
    /// Examines the options of an experiment; nothing is connected yet.
    pub read: fn(&Plan, &ExperimentFacts) -> ReadFamily,
}

impl FamilyEntry {
    /// An entry without last words.
    pub const fn new(
        offer: WorkloadOffer,
        catalogue: Catalogue,
        read: fn(&Plan, &ExperimentFacts) -> ReadFamily,
    ) -> Self {
        FamilyEntry { offer, catalogue, last_words: |_| String::new(), read }
    }
}

/// Statics of the families' crates: what is generic in an entry is then compiled there, once.
pub type Families = &'static [&'static FamilyEntry];

/// What suites are read with.
pub fn offers(families: Families) -> Vec<WorkloadOffer> {
    families.iter().map(|family| family.offer).collect()
}

/// An experiment of a plan, with valid options.
///
/// # Errors
/// A wrong option. A stored plan may also name a workload that this process doesn't know.
pub fn experiment(families: Families, plan: &Plan, planned: &ExperimentFacts) -> ReadFamily {
    let workload = planned.workload.as_str();
    match families.iter().find(|family| family.offer.name == workload) {
        Some(family) => (family.read)(plan, planned),
        None => {
            let message = format!("This dyno can't run the workload `{workload}`.");
            Err(plan.experiment_error(&planned.name, message, None).into())
        }
    }
}

/// Drops those of `tables` that are the family's, in the order that its foreign keys allow.
///
/// # Errors
/// As [`Family::remove`](super::Family::remove).
pub fn remove_tables(
    family: &dyn Trials,
    database: &Database,
    tables: &[String],
    observer: &LoadProgress,
) -> Result<(), Failure> {
    let mut dropped = family.tables();
    dropped.retain(|table| tables.contains(table));
    if dropped.is_empty() {
        return Ok(());
    }
    family.remove(database, &dropped, observer)
}
