//! Families as the runner holds them: without type parameters.

use super::{Assist, Family, Job, Left, LoadOrder, LostWork, TrialDone, Trials, check_settings};
use crate::databases::Database;
use crate::failure::Failure;
use crate::progress::LoadProgress;
use dyno_core::offer::WorkloadOffer;
use dyno_facts::{Catalogue, ExperimentFacts, Message};
use dyno_store::RunData;
use dyno_suite::Plan;
use std::collections::BTreeSet;
use std::path::Path;

type Read = Result<Box<dyn AnyFamily>, Failure>;

#[derive(Clone, Copy, Debug)]
pub struct FamilyEntry {
    /// What suites are read with.
    pub offer: WorkloadOffer,
    pub catalogue: Catalogue,
    /// What is printed last of all when a run has ended.
    pub last_words: fn(&RunData) -> String,
    read: fn(&Plan, &ExperimentFacts) -> Read,
}

impl FamilyEntry {
    /// The entry of a family; its code for each driver is made where this is called.
    pub const fn of<F: Trials + 'static>(catalogue: Catalogue) -> Self {
        FamilyEntry {
            offer: F::OFFER,
            catalogue,
            last_words: F::last_words,
            read: |plan, planned| F::new(plan, planned).map(|family| Box::new(family) as _),
        }
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
pub fn experiment(families: Families, plan: &Plan, planned: &ExperimentFacts) -> Read {
    let workload = planned.workload.as_str();
    match families.iter().find(|family| family.offer.name == workload) {
        Some(family) => (family.read)(plan, planned),
        None => {
            let message = format!("This dyno can't run the workload `{workload}`.");
            Err(plan.experiment_error(&planned.name, message, None).into())
        }
    }
}

/// A [`Family`] without type parameters; each call tells the driver apart.
pub trait AnyFamily {
    fn warnings(&self) -> Vec<String>;
    fn writes(&self) -> bool;
    fn commands(&self) -> Vec<String>;
    fn fits(&self, database: &Database) -> Result<(), Failure>;
    fn load(&self, database: &Database, order: &LoadOrder<'_>) -> Result<Message, Failure>;
    fn tables(&self) -> Vec<String>;
    fn keeps_existing(&self) -> bool;
    fn idle_tables(&self) -> Vec<&'static str>;
    fn existing(&self, database: &Database) -> Result<BTreeSet<String>, Failure>;
    /// Drops those of `tables` that are the family's, in the order that its foreign keys allow.
    fn remove(
        &self,
        database: &Database,
        tables: &[String],
        observer: &LoadProgress,
    ) -> Result<(), Failure>;
    fn settle(&self, database: &Database, ledger: &Path) -> Result<LostWork, Failure>;
    fn takes_fleet(&self) -> Result<bool, Failure>;
    fn assist(&self, database: &Database, part: Assist<'_>) -> Result<Option<Left>, Failure>;
    fn trial(&self, database: &Database, job: Job<'_>) -> Result<TrialDone, Failure>;
}

impl<F: Trials> AnyFamily for F {
    fn warnings(&self) -> Vec<String> {
        Family::warnings(self)
    }

    fn writes(&self) -> bool {
        Family::writes(self)
    }

    fn commands(&self) -> Vec<String> {
        Family::commands(self)
    }

    fn fits(&self, database: &Database) -> Result<(), Failure> {
        {
            check_settings(&database.primary_admin(), &Family::needs(self))?;
            Family::fits(self, database)
        }
    }

    fn load(&self, database: &Database, order: &LoadOrder<'_>) -> Result<Message, Failure> {
        Family::load(self, database, order)
    }

    fn tables(&self) -> Vec<String> {
        Family::tables(self)
    }

    fn keeps_existing(&self) -> bool {
        Family::keeps_existing(self)
    }

    fn idle_tables(&self) -> Vec<&'static str> {
        Family::idle_tables(self)
    }

    fn existing(&self, database: &Database) -> Result<BTreeSet<String>, Failure> {
        Family::existing(self, database)
    }

    fn remove(
        &self,
        database: &Database,
        tables: &[String],
        observer: &LoadProgress,
    ) -> Result<(), Failure> {
        let mut own = Family::tables(self);
        own.retain(|table| tables.contains(table));
        if own.is_empty() {
            return Ok(());
        }
        Family::remove(self, database, &own, observer)
    }

    fn settle(&self, database: &Database, ledger: &Path) -> Result<LostWork, Failure> {
        Family::settle(self, database, ledger)
    }

    fn takes_fleet(&self) -> Result<bool, Failure> {
        Trials::takes_fleet(self)
    }

    fn assist(&self, database: &Database, part: Assist<'_>) -> Result<Option<Left>, Failure> {
        Trials::assist(self, database, part)
    }

    fn trial(&self, database: &Database, job: Job<'_>) -> Result<TrialDone, Failure> {
        Trials::trial(self, database, job)
    }
}
