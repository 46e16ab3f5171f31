//! Balanced orders: who comes first must not look like a difference.
//!
//! The rows of a Williams square hold every item once at every place, and every item equally often right after every
//! other (E. J. Williams, Australian Journal of Scientific Research 2, 1949). For two items it is AB and BA. Rows are
//! drawn in blocks: within a block each comes equally often.

use dyno_core::Rng;

/// The rows of a Williams square of `items`: as many, or twice as many of an odd number above one.
pub fn williams(items: usize) -> Vec<Vec<usize>> {
    // 0, 1, n-1, 2, n-2, ...: neighbors differ by everything once.
    let zigzag = (0..items).map(|place| match place {
        0 => 0,
        place if place % 2 == 1 => place.div_ceil(2),
        place => items - place / 2,
    });
    let zigzag: Vec<usize> = zigzag.collect();
    let shifted =
        (0..items).map(|shift| zigzag.iter().map(|item| (item + shift) % items).collect());
    let mut rows: Vec<Vec<usize>> = shifted.collect();
    if items % 2 == 1 && items > 1 {
        let backwards: Vec<Vec<usize>> =
            rows.iter().map(|row| row.iter().rev().copied().collect()).collect();
        rows.extend(backwards);
    }
    rows
}

/// The order of `items` in a repeat (from 0). Repeats come in blocks: the first of `planned` repeats, rounded up to a
/// whole square, later ones of one square; in each block every row comes equally often, in a drawn order. Equal
/// arguments give equal orders.
///
/// Balance alone makes a repeat likely to have another row than the one before, so that neighboring repeats depend on
/// each other where trials do. Two orders are drawn and the one with fewer changes taken, which outweighs that.
pub fn balanced(items: usize, planned: usize, repeat: usize, seed: u64) -> Vec<usize> {
    let mut rows = williams(items);
    let square = rows.len().max(1);
    let first = planned.max(1).div_ceil(square) * square;
    let (block, place, length) = match repeat.checked_sub(first) {
        None => (0, repeat, first),
        Some(after) => (1 + after / square, after % square, square),
    };
    let mut rng = Rng::new(seed, "order", block as u64);
    let orders = [(); 2].map(|()| {
        let mut order: Vec<usize> = (0..length).map(|row| row % square).collect();
        for last in (1..order.len()).rev() {
            order.swap(last, rng.uniform(0, last as u64) as usize);
        }
        order
    });
    let order = orders
        .into_iter()
        .min_by_key(|order| order.windows(2).filter(|two| two[0] != two[1]).count())
        .unwrap_or_default();
    order.get(place).map(|row| rows.swap_remove(*row)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_comes_equally_often_at_every_place_and_after_every_other() {
        for items in 1..=9 {
            let rows = williams(items);
            let mut places = vec![vec![0; items]; items];
            let mut after = vec![vec![0; items]; items];
            for row in &rows {
                for (place, item) in row.iter().enumerate() {
                    places[place][*item] += 1;
                }
                for two in row.windows(2) {
                    after[two[0]][two[1]] += 1;
                }
            }
            let times = rows.len() / items;
            assert!(places.iter().flatten().all(|count| *count == times), "{items}: {rows:?}");
            for (at, counts) in after.iter().enumerate() {
                for (to, count) in counts.iter().enumerate() {
                    assert_eq!(*count, if at == to { 0 } else { times }, "{items}: {rows:?}");
                }
            }
        }
    }

    #[test]
    fn each_of_two_is_first_equally_often_in_every_block() {
        for seed in 0..50 {
            let firsts = [0..6, 6..8, 8..10].map(|repeats| {
                repeats.filter(|repeat| balanced(2, 6, *repeat, seed) == [0, 1]).count()
            });
            assert_eq!(firsts, [3, 1, 1], "{seed}");
        }
        assert_eq!(balanced(1, 6, 3, 9), [0]);
    }
}
