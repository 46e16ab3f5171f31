//! What the database has acknowledged, counted by the workload: the other side of the books.
//!
//! Counts all transactions of a workload, measured or not, because the database stores them all.
//! A commit that was sent stands as pending until its answer: what is pending at the end has an
//! unknown outcome, also when its worker was cut off in the middle.

use crate::ledger_file::{LedgerFile, LedgerOrder, LedgerPayment, Step, SupplyKey};
use dyno_core::{DbError, ShardMap};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry<'a> {
    /// `away`: the stock of other warehouses that it takes.
    Order {
        district: usize,
        order: LedgerOrder,
        away: &'a [SupplyKey],
    },
    Payment {
        district: usize,
        payment: LedgerPayment,
    },
    Delivery {
        orders: u64,
    },
}

/// Acknowledged, and sent without an answer.
#[derive(Debug, Default)]
struct Count<T> {
    acknowledged: T,
    pending: T,
}

impl Count<AtomicU32> {
    fn state(&self) -> Counted {
        Counted {
            acknowledged: u64::from(self.acknowledged.load(Ordering::Relaxed)),
            unknown: u64::from(self.pending.load(Ordering::Relaxed)),
        }
    }
}

impl Count<AtomicU64> {
    fn state(&self) -> Counted {
        Counted {
            acknowledged: self.acknowledged.load(Ordering::Relaxed),
            unknown: self.pending.load(Ordering::Relaxed),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// The database acknowledged the commit.
    pub acknowledged: u64,
    /// The commit was sent and never answered.
    pub unknown: u64,
}

impl Counted {
    /// True when `found` can be: at least what was acknowledged, at most that and the unknown.
    pub fn allows(&self, found: u64) -> bool {
        (self.acknowledged..=self.acknowledged + self.unknown).contains(&found)
    }

    fn add(&mut self, more: Counted) {
        self.acknowledged += more.acknowledged;
        self.unknown += more.unknown;
    }
}

#[derive(Debug, Default)]
struct District {
    orders: Count<AtomicU32>,
    payments: Count<AtomicU32>,
    paid_cents: Count<AtomicU64>,
}

/// What one district has to hold beyond what it held at first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DistrictBooks {
    pub orders: Counted,
    pub payments: Counted,
    /// Their amounts, in cents.
    pub paid_cents: Counted,
}

#[derive(Debug)]
pub(crate) struct Ledger {
    districts: Vec<District>,
    delivered: Count<AtomicU64>,
    /// Where orders are recorded durably, too; with shards, payments that lie on two of them as well.
    pub(crate) file: Option<LedgerFile>,
    /// How warehouses lie on shards, where that is known.
    pub(crate) shards: Option<ShardMap>,
}

impl Ledger {
    pub(crate) fn new(warehouses: u32) -> Self {
        let count = (warehouses * crate::DISTRICTS) as usize;
        Ledger {
            districts: (0..count).map(|_| District::default()).collect(),
            delivered: Count::default(),
            file: None,
            shards: None,
        }
    }

    #[inline]
    fn record(&self, step: Step, entry: Entry<'_>) -> Result<(), DbError> {
        match (&self.file, entry) {
            (Some(file), Entry::Order { district, order, away }) => {
                file.note(step, district, order, away)
            }
            (Some(file), Entry::Payment { district, payment })
                if self.is_across(district, &payment) =>
            {
                file.note_payment(step, district, payment)
            }
            _ => Ok(()),
        }
    }

    /// True where the customer of a payment lies on another shard than its warehouse.
    fn is_across(&self, district: usize, payment: &LedgerPayment) -> bool {
        let home = district as u32 / crate::DISTRICTS + 1;
        let apart = |map: &ShardMap| map.shard_of(home) != map.shard_of(payment.warehouse);
        self.shards.as_ref().is_some_and(apart)
    }

    /// False where several servers commit: one that refuses says nothing of the others.
    pub(crate) fn believes_refusals(&self) -> bool {
        self.shards.is_none()
    }

    /// The commit is about to be sent.
    ///
    /// # Errors
    /// When that can't be recorded: the commit must not be sent.
    #[inline]
    pub(crate) fn sending(&self, entry: Entry<'_>) -> Result<(), DbError> {
        self.record(Step::Sent, entry)?;
        match entry {
            Entry::Order { district, .. } => {
                self.districts[district].orders.pending.fetch_add(1, Ordering::Relaxed);
            }
            Entry::Payment { district, payment: LedgerPayment { cents, .. } } => {
                let books = &self.districts[district];
                books.payments.pending.fetch_add(1, Ordering::Relaxed);
                books.paid_cents.pending.fetch_add(u64::from(cents), Ordering::Relaxed);
            }
            Entry::Delivery { orders } => {
                self.delivered.pending.fetch_add(orders, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// The database has said that the commit did not happen.
    #[inline]
    pub(crate) fn refused(&self, entry: Entry<'_>) -> Result<(), DbError> {
        self.answered(entry);
        self.record(Step::Refused, entry)
    }

    /// The commit isn't pending any more.
    #[inline]
    fn answered(&self, entry: Entry<'_>) {
        match entry {
            Entry::Order { district, .. } => {
                self.districts[district].orders.pending.fetch_sub(1, Ordering::Relaxed);
            }
            Entry::Payment { district, payment: LedgerPayment { cents, .. } } => {
                let books = &self.districts[district];
                books.payments.pending.fetch_sub(1, Ordering::Relaxed);
                books.paid_cents.pending.fetch_sub(u64::from(cents), Ordering::Relaxed);
            }
            Entry::Delivery { orders } => {
                self.delivered.pending.fetch_sub(orders, Ordering::Relaxed);
            }
        }
    }

    #[inline]
    pub(crate) fn acknowledged(&self, entry: Entry<'_>) -> Result<(), DbError> {
        self.answered(entry);
        match entry {
            Entry::Order { district, .. } => {
                self.districts[district].orders.acknowledged.fetch_add(1, Ordering::Relaxed);
            }
            Entry::Payment { district, payment: LedgerPayment { cents, .. } } => {
                let books = &self.districts[district];
                books.payments.acknowledged.fetch_add(1, Ordering::Relaxed);
                books.paid_cents.acknowledged.fetch_add(u64::from(cents), Ordering::Relaxed);
            }
            Entry::Delivery { orders } => {
                self.delivered.acknowledged.fetch_add(orders, Ordering::Relaxed);
            }
        }
        self.record(Step::Acknowledged, entry)
    }

    /// Adds what another load generator's ledger holds of a district.
    pub(crate) fn absorb(&self, index: usize, more: &DistrictBooks) {
        let district = &self.districts[index];
        for (count, more) in [(&district.orders, more.orders), (&district.payments, more.payments)]
        {
            count.acknowledged.fetch_add(more.acknowledged as u32, Ordering::Relaxed);
            count.pending.fetch_add(more.unknown as u32, Ordering::Relaxed);
        }
        let cents = more.paid_cents;
        district.paid_cents.acknowledged.fetch_add(cents.acknowledged, Ordering::Relaxed);
        district.paid_cents.pending.fetch_add(cents.unknown, Ordering::Relaxed);
    }

    /// Adds orders that another load generator has delivered.
    pub(crate) fn absorb_delivered(&self, more: Counted) {
        self.delivered.acknowledged.fetch_add(more.acknowledged, Ordering::Relaxed);
        self.delivered.pending.fetch_add(more.unknown, Ordering::Relaxed);
    }

    pub(crate) fn district(&self, index: usize) -> DistrictBooks {
        let books = &self.districts[index];
        DistrictBooks {
            orders: books.orders.state(),
            payments: books.payments.state(),
            paid_cents: books.paid_cents.state(),
        }
    }

    pub(crate) fn districts(&self) -> usize {
        self.districts.len()
    }

    pub(crate) fn total(&self) -> DistrictBooks {
        let mut total = DistrictBooks::default();
        for index in 0..self.districts.len() {
            let books = self.district(index);
            total.orders.add(books.orders);
            total.payments.add(books.payments);
            total.paid_cents.add(books.paid_cents);
        }
        total
    }

    pub(crate) fn delivered(&self) -> Counted {
        self.delivered.state()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_pending_until_it_is_answered() {
        let ledger = Ledger::new(1);
        let order = LedgerOrder { number: 3_001, customer: 1, lines: 5 };
        let order = Entry::Order { district: 3, order, away: &[] };
        for _ in 0..3 {
            ledger.sending(order).unwrap();
        }
        assert_eq!(ledger.district(3).orders, Counted { acknowledged: 0, unknown: 3 });
        ledger.acknowledged(order).unwrap();
        ledger.refused(order).unwrap();
        let books = ledger.total().orders;
        assert_eq!(books, Counted { acknowledged: 1, unknown: 1 });
        assert!(!books.allows(0) && books.allows(1) && books.allows(2) && !books.allows(3));
        let payment = LedgerPayment { cents: 250, ..LedgerPayment::default() };
        let payment = Entry::Payment { district: 9, payment };
        ledger.sending(payment).unwrap();
        ledger.acknowledged(payment).unwrap();
        assert_eq!(ledger.district(9).paid_cents, Counted { acknowledged: 250, unknown: 0 });
        assert_eq!(ledger.district(9).payments.acknowledged, 1);
        ledger.sending(Entry::Delivery { orders: 10 }).unwrap();
        assert_eq!(ledger.delivered(), Counted { acknowledged: 0, unknown: 10 });
    }
}
