//! Seeds of trials that write. None is used twice on the same data: rows would be given the values that they have, which
//! costs a server nearly nothing.

use dyno_facts::PlannedTrial;
use dyno_store::RunData;
use dyno_suite::{Plan, fnv1a};
use std::collections::{BTreeMap, BTreeSet};

/// Readers of JSON in other languages keep so many bits of a number.
pub(crate) const BITS_OF_SEEDS: u64 = (1 << 53) - 1;

/// What the data have seen that this run has loaded, by the target that owns them.
#[derive(Debug, Default)]
pub(crate) struct UsedSeeds(BTreeMap<String, BTreeSet<u64>>);

impl UsedSeeds {
    /// Those of the trials that the run's folder has, also of such that were cut off.
    pub(crate) fn of(plan: &Plan, run: &RunData) -> Self {
        let mut used = UsedSeeds::default();
        for trial in &run.trials {
            let owner = plan.owner(&trial.summary.target).to_owned();
            used.0.entry(owner).or_default().insert(trial.summary.seed);
        }
        used
    }

    /// The data of a target are as a load leaves them.
    pub(crate) fn made_anew(&mut self, owner: &str) {
        self.0.insert(owner.to_owned(), BTreeSet::new());
    }

    /// The trial with the seed that it gets; one that only reads has the planned one, as others that it is compared with.
    pub(crate) fn sow(
        &mut self,
        planned: &PlannedTrial,
        writes: bool,
        owner: &str,
        trial: &str,
    ) -> PlannedTrial {
        let seed = if writes { self.next(owner, planned.seed, trial) } else { planned.seed };
        PlannedTrial { seed, ..planned.clone() }
    }

    /// The seed of the next trial on these data: as planned, unless it was used there, or data were found that another
    /// run may have used. `trial` is its place: the folder of the run and its number there.
    fn next(&mut self, owner: &str, planned: u64, trial: &str) -> u64 {
        match self.0.get_mut(owner).is_some_and(|used| used.insert(planned)) {
            true => planned,
            false => (planned ^ fnv1a(trial.as_bytes())) & BITS_OF_SEEDS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_used_once_on_the_same_data() {
        let mut used = UsedSeeds::default();
        used.made_anew("a");
        assert_eq!(used.next("a", 7, "run/1"), 7);
        // The second side of a comparison of a target with itself, an attempt that is made again.
        let others = [used.next("a", 7, "run/2"), used.next("a", 7, "run/3")];
        assert!(others[0] != 7 && others[1] != 7 && others[0] != others[1], "{others:?}");
        assert!(others.iter().all(|seed| *seed <= BITS_OF_SEEDS));
        assert_eq!(used.next("a", 8, "run/4"), 8);
        used.made_anew("a");
        assert_eq!(used.next("a", 7, "run/5"), 7);
    }

    #[test]
    fn data_that_were_found_may_have_seen_the_seed() {
        let mut used = UsedSeeds::default();
        assert_ne!(used.next("a", 7, "run/1"), 7);
    }
}
