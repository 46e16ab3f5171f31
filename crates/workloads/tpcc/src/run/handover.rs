//! What a workload has kept itself, for the load generator that shared out the trial.

use super::Tpcc;
use crate::audit::Counters;
use crate::ledger::{Counted, DistrictBooks};
use crate::reach::ReachedCounts;
use serde::{Deserialize, Serialize};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

/// What one of several load generators leaves of its workload, besides what the engine has measured: its
/// side of the books, and what it has executed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handover {
    /// The districts in which something was acknowledged or is unknown, by index.
    districts: Vec<(u32, DistrictBooks)>,
    delivered: Counted,
    counters: Counters,
    reached: Vec<ReachedCounts>,
    /// Workers that were cut off, and terminals that have played cards.
    workers: u32,
    terminals: u32,
    queued: u64,
    executed: u64,
    /// What its ledger has noted of commits, where there is one.
    ledger: String,
}

impl Tpcc {
    /// What this workload has kept itself, after its trial.
    pub fn leave(&self) -> Result<Handover, String> {
        let districts = (0..self.ledger.districts()).map(|index| self.ledger.district(index));
        let is_used = |(_, books): &(u32, DistrictBooks)| *books != DistrictBooks::default();
        let counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(Handover {
            districts: (0..).zip(districts).filter(is_used).collect(),
            delivered: self.ledger.delivered(),
            counters,
            reached: self.reaches.leave(),
            workers: self.workers.load(Ordering::Relaxed),
            terminals: self.terminals.load(Ordering::Relaxed),
            queued: self.queued.load(Ordering::Relaxed),
            executed: self.executed.load(Ordering::Relaxed),
            ledger: match self.ledger_file() {
                Some(file) => file.steps().map_err(|failure| failure.message.to_string())?,
                None => String::new(),
            },
        })
    }

    /// Adds what the workload of another load generator has left, as if its workers had been this
    /// one's.
    ///
    /// # Errors
    /// When it used more warehouses than this one, or its ledger can't be added to this one's; nothing is added then.
    pub fn absorb(&self, left: Handover) -> Result<(), String> {
        let districts = self.ledger.districts() as u64;
        if left.districts.iter().any(|(index, _)| u64::from(*index) >= districts) {
            return Err("Another load generator has used more warehouses than this run.".to_owned());
        }
        if let Some(file) = self.ledger_file() {
            file.absorb(&left.ledger).map_err(|failure| failure.message.to_string())?;
        }
        for (index, books) in &left.districts {
            self.ledger.absorb(*index as usize, books);
        }
        self.ledger.absorb_delivered(left.delivered);
        self.counters.lock().unwrap_or_else(PoisonError::into_inner).add(left.counters);
        self.reaches.absorb(&left.reached);
        self.workers.fetch_add(left.workers, Ordering::Relaxed);
        self.terminals.fetch_add(left.terminals, Ordering::Relaxed);
        self.queued.fetch_add(left.queued, Ordering::Relaxed);
        self.executed.fetch_add(left.executed, Ordering::Relaxed);
        Ok(())
    }
}
