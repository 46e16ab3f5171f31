//! Ids for inserts that the client numbers itself.

use std::sync::atomic::{AtomicU32, Ordering};

/// A sequence that visits every 32-bit integer once, in an order that looks random, shared by all
/// workers.
///
/// sysbench's own sequence starts at the same point in every process, so that a second run on the
/// same tables fails with duplicate keys. This one is told where to go on.
#[derive(Debug)]
pub(crate) struct UniqueIds {
    next: AtomicU32,
    step: u32,
}

impl UniqueIds {
    /// The sequence after its first `used` numbers, of which this is part `part` of `parts`: every
    /// `parts`th number.
    pub(crate) fn starting_at(used: u32, (part, parts): (u32, u32)) -> Self {
        UniqueIds { next: AtomicU32::new(used.wrapping_add(part)), step: parts.max(1) }
    }

    #[inline]
    pub(crate) fn next_id(&self) -> i64 {
        id_at(self.next.fetch_add(self.step, Ordering::Relaxed))
    }
}

/// Number `position` of the sequence, from -2,147,483,648 to 2,147,483,647.
///
/// Each step of this mixing function (that of MurmurHash3's end) can be undone, so different
/// positions have different ids.
pub(crate) fn id_at(position: u32) -> i64 {
    // The function maps 0 to 0; an offset moves that fixed point out of sight.
    let mut x = position ^ 0x5bd1_e995;
    x = (x ^ (x >> 16)).wrapping_mul(0x85eb_ca6b);
    x = (x ^ (x >> 13)).wrapping_mul(0xc2b2_ae35);
    x ^= x >> 16;
    i64::from(x) + i64::from(i32::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn ids_differ_are_spread_and_continue_where_told() {
        let ids = UniqueIds::starting_at(1_000, (0, 1));
        let first: Vec<i64> = (0..100_000).map(|_| ids.next_id()).collect();
        assert_eq!(first.iter().collect::<HashSet<_>>().len(), first.len());
        let range = i64::from(i32::MIN)..=i64::from(i32::MAX);
        assert!(first.iter().all(|id| range.contains(id)));
        let negative = first.iter().filter(|id| **id < 0).count();
        assert!((49_000..=51_000).contains(&negative), "{negative}");
        let later = UniqueIds::starting_at(101_000, (0, 1));
        let first: HashSet<_> = first.into_iter().collect();
        assert!((0..100_000).all(|_| !first.contains(&later.next_id())));
    }

    #[test]
    fn the_ids_of_all_parts_are_those_of_one() {
        let whole = UniqueIds::starting_at(u32::MAX - 5, (0, 1));
        let whole: HashSet<i64> = (0..30).map(|_| whole.next_id()).collect();
        let part = |number| UniqueIds::starting_at(u32::MAX - 5, (number, 3));
        let parts: Vec<UniqueIds> = (0..3).map(part).collect();
        let ids: Vec<i64> = parts.iter().flat_map(|part| (0..10).map(|_| part.next_id())).collect();
        assert_eq!(ids.len(), 30);
        assert_eq!(ids.into_iter().collect::<HashSet<_>>(), whole);
    }
}
