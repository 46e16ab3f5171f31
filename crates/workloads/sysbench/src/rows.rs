//! The contents of the columns `c` and `pad`, and the rows of a loaded table.

use std::sync::atomic::{AtomicU32, Ordering};

use dyno_core::{Rng, RowSource, RowWriter};

use crate::distribution::Sampler;
use crate::options::{SysbenchOptions, SysbenchTest};

/// Letters of `c`: ten groups of eleven digits joined by `-`.
pub(crate) const C_LENGTH: usize = 119;
/// Letters of `pad`: five groups.
pub(crate) const PAD_LENGTH: usize = 59;

const GROUP_DIGITS: usize = 11;
const GROUP_LENGTH: usize = GROUP_DIGITS + 1;

/// The digits of 00, 01 ... 99.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// The pad of every row of 0.5's table `sbtest`.
const LEGACY_PAD: &[u8] = b"qqqqqqqqqqwwwwwwwwwweeeeeeeeeerrrrrrrrrrtttttttttt";

/// Fills `text`, whose length is that of whole groups less one dash, with random digits.
#[inline]
pub(crate) fn fill_groups(text: &mut [u8], rng: &mut Rng) {
    for group in text.chunks_mut(GROUP_LENGTH) {
        // A random word is a fraction of 64 bits; each multiplication by 100 moves two of its
        // decimal digits in front of the point. Eleven digits use up 37 of the bits.
        let mut fraction = rng.next_u64();
        // Arrays, because copying a slice of two bytes calls memmove.
        for pair in group[..GROUP_DIGITS - 1].as_chunks_mut::<2>().0 {
            let product = u128::from(fraction) * 100;
            *pair = PAIRS[(product >> 64) as usize];
            fraction = product as u64;
        }
        group[GROUP_DIGITS - 1] = b'0' + ((u128::from(fraction) * 10) >> 64) as u8;
        if let Some(dash) = group.get_mut(GROUP_DIGITS) {
            *dash = b'-';
        }
    }
}

/// The rows `first..=last` of one table, always the same for the same seed.
pub(crate) struct ChunkRows {
    seed: u64,
    stream: u64,
    first: u32,
    last: u32,
    next: u32,
    rng: Rng,
    keys: Sampler,
    style: Style,
    c: [u8; C_LENGTH],
    pad: [u8; PAD_LENGTH],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Random,
    /// 0.5's table `sbtest`: k is the id, c a blank, pad fixed.
    Counting,
}

/// The columns of a row, in the order in which [`ChunkRows`] writes them.
pub(crate) const COLUMNS: [&str; 4] = ["id", "k", "c", "pad"];

impl ChunkRows {
    /// Rows `first..=last` of table number `table` as `options` want them.
    pub(crate) fn new(
        options: &SysbenchOptions,
        seed: u64,
        table: u32,
        first: u32,
        last: u32,
    ) -> Self {
        let stream = u64::from(table) << 32 | u64::from(first);
        let legacy_random = matches!(
            options.test,
            SysbenchTest::V05SelectRandomPoints | SysbenchTest::V05SelectRandomRanges
        );
        ChunkRows {
            seed,
            stream,
            first,
            last,
            next: first,
            rng: load_stream(seed, stream),
            keys: Sampler::new(&options.random, options.test.era(), 1, options.table_size),
            style: if legacy_random { Style::Counting } else { Style::Random },
            c: [0; C_LENGTH],
            pad: [0; PAD_LENGTH],
        }
    }
}

fn load_stream(seed: u64, stream: u64) -> Rng {
    Rng::new(seed, "sysbench load", stream)
}

impl RowSource for ChunkRows {
    #[inline]
    fn next_row(&mut self, out: &mut dyn RowWriter) -> bool {
        if self.next > self.last {
            return false;
        }
        let id = i64::from(self.next);
        self.next += 1;
        out.int(id);
        if self.style == Style::Counting {
            out.int(id);
            out.text(b" ");
            out.text(LEGACY_PAD);
            return true;
        }
        fill_groups(&mut self.c, &mut self.rng);
        fill_groups(&mut self.pad, &mut self.rng);
        out.int(self.keys.sample(&mut self.rng));
        out.text(&self.c);
        out.text(&self.pad);
        true
    }

    fn restart(&mut self) {
        self.next = self.first;
        self.rng = load_stream(self.seed, self.stream);
    }
}

/// A sequence that visits every 32-bit integer once, in an order that looks random, shared by all
/// workers.
///
/// sysbench's own sequence starts at the same point in every process, so that a second run on the
/// same tables fails with duplicate keys. This one learns where to continue.
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
    use dyno_testkit::RecordedRow;
    use std::collections::HashSet;

    fn all_rows(source: &mut ChunkRows) -> Vec<Vec<String>> {
        let mut recorded = RecordedRow::default();
        while source.next_row(&mut recorded) {}
        recorded.0.chunks(COLUMNS.len()).map(<[String]>::to_vec).collect()
    }

    /// Returns true if `text` has the format that [`fill_groups`] writes with this many letters.
    fn is_grouped(text: &str, length: usize) -> bool {
        text.len() == length
            && text.bytes().enumerate().all(|(at, letter)| {
                if at % GROUP_LENGTH == GROUP_DIGITS {
                    letter == b'-'
                } else {
                    letter.is_ascii_digit()
                }
            })
    }

    #[test]
    fn rows_have_the_format_and_do_not_depend_on_how_often_they_are_asked_for() {
        let options = SysbenchOptions::new(SysbenchTest::ReadWrite);
        let mut source = ChunkRows::new(&options, 5, 2, 101, 350);
        let rows = all_rows(&mut source);
        assert_eq!(rows.len(), 250);
        for (row, id) in rows.iter().zip(101..) {
            assert_eq!(row[0], id.to_string());
            let k: u32 = row[1].parse().unwrap();
            assert!((1..=10_000).contains(&k));
            assert!(is_grouped(&row[2], C_LENGTH), "{}", row[2]);
            assert!(is_grouped(&row[3], PAD_LENGTH), "{}", row[3]);
        }
        source.restart();
        assert_eq!(all_rows(&mut source), rows);
        assert_ne!(all_rows(&mut ChunkRows::new(&options, 6, 2, 101, 350)), rows);
        assert_ne!(all_rows(&mut ChunkRows::new(&options, 5, 3, 101, 350))[0][2], rows[0][2]);
    }

    #[test]
    fn every_place_of_a_group_takes_every_digit_alike() {
        let mut rng = Rng::new(1, "digits", 0);
        let mut text = [0; C_LENGTH];
        let mut counts = [[0_u32; 10]; C_LENGTH];
        for _ in 0..10_000 {
            fill_groups(&mut text, &mut rng);
            for (at, letter) in text.iter().enumerate().filter(|(_, letter)| **letter != b'-') {
                counts[at][usize::from(letter - b'0')] += 1;
            }
        }
        for (at, cells) in counts.iter().enumerate().filter(|(at, _)| at % 12 != 11) {
            // 1,000 expected, standard deviation 30; 1,100 cells: five deviations either way.
            assert!(cells.iter().all(|n| (850..=1_150).contains(n)), "{at}: {cells:?}");
        }
    }

    #[test]
    fn the_table_of_the_old_select_random_tests_counts() {
        let options = SysbenchOptions::new(SysbenchTest::V05SelectRandomPoints);
        let rows = all_rows(&mut ChunkRows::new(&options, 5, 0, 1, 3));
        assert_eq!(rows[2], ["3", "3", " ", std::str::from_utf8(LEGACY_PAD).unwrap()]);
        assert_eq!(LEGACY_PAD.len(), 50);
    }

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
        let ids = UniqueIds::starting_at(u32::MAX - 5, (0, 1));
        let expected: HashSet<i64> = (0..30).map(|_| ids.next_id()).collect();
        let parts = [0, 1, 2].map(|number| UniqueIds::starting_at(u32::MAX - 5, (number, 3)));
        let numbered: Vec<i64> =
            parts.iter().flat_map(|part| (0..10).map(|_| part.next_id())).collect();
        assert_eq!(numbered.len(), 30);
        assert_eq!(numbered.into_iter().collect::<HashSet<_>>(), expected);
    }
}
