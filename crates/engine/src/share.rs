//! One load generator's part of a trial.

use crate::TrialSpec;
use serde::{Deserialize, Serialize};

/// One load generator's part of a trial. [`TrialSpec::workers`], `terminals`, `rate_per_s` and `events` are those of
/// the part; random streams, keys and numbers of workers follow the whole, so that the parts never overlap and N
/// generators do the work of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialShare {
    /// From 0.
    pub generator: u32,
    /// 0 counts as 1.
    pub generators: u32,
    /// Workers of the load generators before this one.
    pub workers_before: u32,
    /// Workers of all load generators; 0 if this is the only one.
    pub workers_total: u32,
    /// Terminals of the load generators before this one.
    pub terminals_before: u32,
    /// Terminals of all load generators; 0 if this is the only one.
    pub terminals_total: u32,
}

impl TrialShare {
    /// True when others drive the rest.
    pub fn is_part(&self) -> bool {
        self.generators > 1
    }
}

impl TrialSpec {
    /// The part of load generator `generator` (from 0) of `generators`: an even share of the workers, rounded up for the
    /// first ones; terminals, rate and transactions in proportion. `None` with fewer workers than generators before it.
    pub fn part(&self, generator: u32, generators: u32) -> Option<TrialSpec> {
        let workers = self.workers.max(1);
        let before = |number: u32| first_of(number, workers, generators);
        if generator >= generators.min(workers) {
            return None;
        }
        let (first, next) = (before(generator), before(generator + 1));
        let portion = |all: u64, worker: u32| share_before(all, worker, workers);
        let cut = |all: u64| portion(all, next) - portion(all, first);
        let terminals = self.terminals.map(u64::from);
        Some(TrialSpec {
            workers: next - first,
            terminals: terminals.map(|all| cut(all) as u32),
            rate_per_s: self
                .rate_per_s
                .map(|rate| rate * f64::from(next - first) / f64::from(workers)),
            events: self.events.map(cut),
            share: TrialShare {
                generator,
                generators,
                workers_before: first,
                workers_total: workers,
                terminals_before: terminals.map_or(0, |all| portion(all, first) as u32),
                terminals_total: self.terminals.unwrap_or(0),
            },
            ..self.clone()
        })
    }

    pub fn all_workers(&self) -> u32 {
        self.share.workers_total.max(self.workers)
    }

    /// Terminals of all load generators, where the trial has terminals.
    pub fn all_terminals(&self) -> Option<u32> {
        self.terminals.map(|terminals| self.share.terminals_total.max(terminals))
    }
}

/// The first worker of part `number` of `parts`. As in pgbench the first parts get one more if the numbers don't
/// divide.
pub(crate) fn first_of(number: u32, workers: u32, parts: u32) -> u32 {
    let parts = parts.max(1);
    number * (workers / parts) + number.min(workers % parts)
}

/// The share of `all` that belongs to the workers before number `worker` of `workers`.
pub(crate) fn share_before(all: u64, worker: u32, workers: u32) -> u64 {
    (u128::from(all) * u128::from(worker) / u128::from(workers.max(1))) as u64
}
