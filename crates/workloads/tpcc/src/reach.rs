//! How far New-Orders and Payments reach (their own warehouse, another one, another shard), and how long each takes.
//!
//! All workers count into the same cells, whose numbers are atomic: a transaction costs one addition more.

use crate::facts::ReachLine;
use crate::profile::{Profile, TpccTransaction};
use crate::run::{LINES_MAX, LINES_MIN};
use dyno_core::{EndedTransaction, Nanos, Outcome};
use dyno_facts::LatencySummary;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};

dyno_core::named! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Reach {
        /// Nothing but the terminal's warehouse.
        Home = "home",
        /// Another warehouse, on the same shard as far as that is known.
        Warehouse = "warehouse",
        Shard = "shard",
    }
}

/// The kinds that may leave their warehouse.
const KINDS: [TpccTransaction; 2] = [TpccTransaction::NewOrder, TpccTransaction::Payment];

/// A power of two of nanoseconds has so many cells: what is read from them is exact to 1 %.
const CELLS: u64 = 64;
/// Latencies of an hour and more share a cell.
const LONGEST: Nanos = 3_600_000_000_000;

#[inline]
fn cell_of(latency: Nanos) -> usize {
    let latency = latency.min(LONGEST);
    let shift = (u64::BITS - latency.leading_zeros()).saturating_sub(CELLS.ilog2() + 1);
    (u64::from(shift) * CELLS + (latency >> shift)) as usize
}

/// The middle of a cell.
fn latency_of(cell: usize) -> f64 {
    let cell = cell as u64;
    let shift = (cell / CELLS).saturating_sub(1);
    let low = (cell - shift * CELLS) << shift;
    low as f64 + ((1_u64 << shift) - 1) as f64 / 2.0
}

#[derive(Debug)]
struct Reached {
    failed: AtomicU64,
    sum_ns: AtomicU64,
    cells: Box<[AtomicU64]>,
}

impl Reached {
    fn new() -> Self {
        let cells = (0..=cell_of(LONGEST)).map(|_| AtomicU64::new(0)).collect();
        Reached { failed: AtomicU64::new(0), sum_ns: AtomicU64::new(0), cells }
    }
}

/// What one load generator has counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReachedCounts {
    failed: u64,
    sum_ns: u64,
    /// The cells that are not empty.
    cells: Vec<(u32, u64)>,
}

impl ReachedCounts {
    fn latency(&self) -> LatencySummary {
        let count: u64 = self.cells.iter().map(|(_, count)| count).sum();
        let at = |share: f64| {
            let rank = ((count as f64 * share).ceil() as u64).max(1);
            let mut below = 0;
            let found = self.cells.iter().find(|(_, count)| {
                below += count;
                below >= rank
            });
            found.map_or(0.0, |(cell, _)| latency_of(*cell as usize) / 1e3)
        };
        let sum_us = self.sum_ns as f64 / 1e3;
        LatencySummary {
            count,
            missing: 0,
            min_us: at(0.0),
            mean_us: sum_us / count.max(1) as f64,
            p50_us: at(0.5),
            p90_us: at(0.9),
            p95_us: at(0.95),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: at(1.0),
            sum_us,
        }
    }
}

/// Where a New-Order or a Payment has its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReachRoute {
    pub(crate) is_order: bool,
    /// Shard of its terminal's warehouse; 0 where none are known.
    pub(crate) home: usize,
    /// Rows that may lie elsewhere: the lines of an order, the customer of a payment.
    pub(crate) rows: u64,
    /// Those on other shards.
    pub(crate) crossing: u64,
    reach: Reach,
}

/// The share of transactions with some row among those that are `share` of all rows. All numbers of rows of a transaction
/// are alike.
fn any_line(share: f64, rows: RangeInclusive<usize>) -> f64 {
    let numbers = rows.clone().count() as f64;
    1.0 - rows.map(|rows| (1.0 - share).powi(rows as i32)).sum::<f64>() / numbers
}

/// The share of orders with some line among those that are `share` of all lines.
pub(crate) fn any_order_line(share: f64) -> f64 {
    any_line(share, LINES_MIN..=LINES_MAX)
}

/// Counts how far transactions reach.
#[derive(Debug)]
pub(crate) struct ReachLog {
    /// The shard of each warehouse; empty where nobody knows them.
    shard_of: Vec<usize>,
    /// By kind, then by reach.
    reached: Vec<Reached>,
}

impl ReachLog {
    pub(crate) fn new() -> Self {
        let count = KINDS.len() * Reach::ALL.len();
        ReachLog { shard_of: Vec::new(), reached: (0..count).map(|_| Reached::new()).collect() }
    }

    /// `shard_of` has the shard of each warehouse that is used.
    pub(crate) fn on_shards(self, shard_of: Vec<usize>) -> Self {
        ReachLog { shard_of, ..self }
    }

    #[inline]
    fn shard(&self, warehouse: i64) -> usize {
        self.shard_of.get(warehouse as usize - 1).copied().unwrap_or(0)
    }

    /// The route of an order or a payment of a terminal of warehouse `home`, whose rows lie in `others`, too.
    #[inline]
    pub(crate) fn route(
        &self,
        is_order: bool,
        home: i64,
        others: impl Iterator<Item = i64>,
    ) -> ReachRoute {
        let shard = self.shard(home);
        let mut route =
            ReachRoute { is_order, home: shard, rows: 0, crossing: 0, reach: Reach::Home };
        for other in others {
            let reach = match other == home {
                true => Reach::Home,
                false if self.shard(other) == shard => Reach::Warehouse,
                false => Reach::Shard,
            };
            route.rows += 1;
            route.crossing += u64::from(reach == Reach::Shard);
            route.reach = route.reach.max(reach);
        }
        route
    }

    /// By shard: the share of the warehouses other than one's own that lie on other shards.
    pub(crate) fn elsewhere(&self) -> Vec<f64> {
        let warehouses = self.shard_of.len();
        let mut here = vec![0; self.shard_of.iter().max().map_or(0, |last| last + 1)];
        self.shard_of.iter().for_each(|&shard| here[shard] += 1);
        let others = warehouses.max(2) - 1;
        here.iter().map(|here| (warehouses - here) as f64 / others as f64).collect()
    }

    /// A New-Order or a Payment has ended in the measured window.
    #[inline]
    pub(crate) fn note(&self, route: &ReachRoute, ended: &EndedTransaction) {
        let kind = usize::from(!route.is_order);
        let reached = &self.reached[kind * Reach::ALL.len() + route.reach as usize];
        match ended.outcome {
            Outcome::Committed => {
                let latency = ended.ended.saturating_sub(ended.due);
                reached.sum_ns.fetch_add(latency, Ordering::Relaxed);
                reached.cells[cell_of(latency)].fetch_add(1, Ordering::Relaxed);
            }
            Outcome::Failed(_) => {
                reached.failed.fetch_add(1, Ordering::Relaxed);
            }
            Outcome::RolledBack | Outcome::Skipped => {}
        }
    }

    pub(crate) fn leave(&self) -> Vec<ReachedCounts> {
        let counts = |reached: &Reached| {
            let cells = reached.cells.iter().map(|cell| cell.load(Ordering::Relaxed));
            ReachedCounts {
                failed: reached.failed.load(Ordering::Relaxed),
                sum_ns: reached.sum_ns.load(Ordering::Relaxed),
                cells: (0..).zip(cells).filter(|(_, count)| *count > 0).collect(),
            }
        };
        self.reached.iter().map(counts).collect()
    }

    /// Adds what another load generator has counted: exact, cell by cell.
    pub(crate) fn absorb(&self, left: &[ReachedCounts]) {
        for (reached, left) in self.reached.iter().zip(left) {
            reached.failed.fetch_add(left.failed, Ordering::Relaxed);
            reached.sum_ns.fetch_add(left.sum_ns, Ordering::Relaxed);
            for &(cell, count) in &left.cells {
                if let Some(cell) = reached.cells.get(cell as usize) {
                    cell.fetch_add(count, Ordering::Relaxed);
                }
            }
        }
    }

    /// The number of shards that warehouses lie on; `None` where nobody knows.
    pub(crate) fn shards(&self) -> Option<u32> {
        let mut shards = self.shard_of.clone();
        shards.sort_unstable();
        shards.dedup();
        (!shards.is_empty()).then_some(shards.len() as u32)
    }

    /// A line for each kind and reach that a transaction can have.
    pub(crate) fn lines(&self, profile: &Profile, warehouses: u32) -> Vec<ReachLine> {
        let counts = self.leave();
        let mut lines = Vec::new();
        for (kind, of_kind) in KINDS.into_iter().zip(counts.chunks(Reach::ALL.len())) {
            let expected = self.expected(profile, warehouses, kind);
            for ((reach, counts), expected_share) in
                Reach::ALL.into_iter().zip(of_kind).zip(expected)
            {
                if expected_share > 0.0 || *counts != ReachedCounts::default() {
                    lines.push(ReachLine {
                        kind: kind.name().to_owned(),
                        reach,
                        expected_share,
                        failed: counts.failed,
                        latency: counts.latency(),
                    });
                }
            }
        }
        lines
    }

    /// The shares of the reaches among the committed transactions of a kind, over all warehouses.
    fn expected(&self, profile: &Profile, warehouses: u32, kind: TpccTransaction) -> [f64; 3] {
        let is_any = f64::from(u8::from(warehouses > 1));
        let (percent, lines) = match kind {
            TpccTransaction::NewOrder => (profile.remote_line_percent, LINES_MIN..=LINES_MAX),
            _ => (profile.remote_payment_percent, 1..=1),
        };
        let remote = f64::from(percent) / 100.0 * is_any;
        let elsewhere = self.elsewhere();
        let crossing = |&shard: &usize| any_line(remote * elsewhere[shard], lines.clone());
        let away = any_line(remote, lines.clone());
        let across: f64 = self.shard_of.iter().map(crossing).sum();
        let across = across / f64::from(warehouses.max(1));
        [1.0 - away, away - across, across]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::BMSQL_5_0;
    use dyno_core::ErrorClass;

    fn ended(outcome: Outcome, latency: Nanos) -> EndedTransaction {
        EndedTransaction {
            transaction: 0,
            outcome,
            due: 100,
            began: 150,
            ended: 100 + latency,
            attempts: 1,
            is_measured: true,
        }
    }

    fn route(is_order: bool, reach: Reach) -> ReachRoute {
        ReachRoute { is_order, home: 0, rows: 1, crossing: 0, reach }
    }

    #[test]
    fn cells_are_exact_to_one_percent() {
        for exponent in 0..42 {
            for latency in [1_u64 << exponent, (1 << exponent) + (1 << exponent) / 3] {
                let found = latency_of(cell_of(latency));
                assert!((found / latency as f64 - 1.0).abs() <= 0.008, "{latency}: {found}");
            }
        }
        let cells: Vec<usize> = (0..100_000).map(cell_of).collect();
        assert!(cells.is_sorted() && cells.windows(2).all(|two| two[1] - two[0] <= 1));
        assert_eq!(cell_of(u64::MAX), cell_of(LONGEST));
    }

    #[test]
    fn reaches_are_told_apart_as_far_as_shards_are_known() {
        let alone = ReachLog::new();
        let reach = |log: &ReachLog, other| log.route(false, 1, [other].into_iter()).reach;
        assert_eq!([reach(&alone, 1), reach(&alone, 2)], [Reach::Home, Reach::Warehouse]);
        assert_eq!((alone.shards(), alone.elsewhere()), (None, vec![]));
        let log = ReachLog::new().on_shards(vec![0, 1, 0, 1]);
        let reaches = [1, 2, 3, 4].map(|other| reach(&log, other));
        assert_eq!(reaches, [Reach::Home, Reach::Shard, Reach::Warehouse, Reach::Shard]);
        assert_eq!(log.shards(), Some(2));
        let order = log.route(true, 2, [2, 1, 4, 3].into_iter());
        let expected =
            ReachRoute { is_order: true, home: 1, rows: 4, crossing: 2, reach: Reach::Shard };
        assert_eq!(order, expected);
    }

    #[test]
    fn shares_follow_from_the_profile() {
        // 20 warehouses on four shards: 15 of the 19 others lie elsewhere.
        let shard_of = (1..=20).map(|warehouse| warehouse % 4).collect();
        let log = ReachLog::new().on_shards(shard_of);
        let [home, warehouse, shard] = log.expected(&BMSQL_5_0, 20, TpccTransaction::Payment);
        assert!((home - 0.85).abs() < 1e-9);
        assert!((shard - 0.15 * 15.0 / 19.0).abs() < 1e-9);
        assert!((warehouse - 0.15 * 4.0 / 19.0).abs() < 1e-9);
        let orders = log.expected(&BMSQL_5_0, 20, TpccTransaction::NewOrder);
        // Ten lines of 1 % each.
        assert!((orders[0] - 0.99_f64.powi(10)).abs() < 1e-3, "{orders:?}");
        assert!((orders.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        let alone = ReachLog::new().expected(&BMSQL_5_0, 1, TpccTransaction::Payment);
        assert_eq!(alone, [1.0, 0.0, 0.0]);
    }

    #[test]
    fn what_several_load_generators_counted_is_merged_exactly() {
        let shards = || ReachLog::new().on_shards(vec![0, 1]);
        let (one, other, whole) = (shards(), shards(), shards());
        for (number, latency) in (1..=1_000).map(|number| (number, number * 1_000)) {
            let part = if number % 3 == 0 { &one } else { &other };
            let reach = if number % 10 == 0 { Reach::Shard } else { Reach::Home };
            for log in [part, &whole] {
                log.note(&route(true, reach), &ended(Outcome::Committed, latency));
            }
        }
        for log in [&other, &whole] {
            let payment = route(false, Reach::Shard);
            log.note(&payment, &ended(Outcome::Failed(ErrorClass::Deadlock), 5));
            log.note(&payment, &ended(Outcome::RolledBack, 5));
        }
        one.absorb(&other.leave());
        assert_eq!(one.leave(), whole.leave());
        let lines = one.lines(&BMSQL_5_0, 2);
        let shard = lines.iter().find(|line| line.reach == Reach::Shard).expect("a line");
        assert_eq!((shard.kind.as_str(), shard.latency.count, shard.failed), ("new_order", 100, 0));
        assert!((shard.latency.mean_us - 505.0).abs() < 1e-6);
        assert!((shard.latency.p50_us / 500.0 - 1.0).abs() < 0.01, "{:?}", shard.latency);
        assert_eq!(lines.last().map(|line| line.failed), Some(1));
        assert!(lines.iter().all(|line| line.reach != Reach::Warehouse));
    }
}
