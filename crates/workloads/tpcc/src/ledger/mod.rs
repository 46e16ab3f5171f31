//! The one ledger: what the database has acknowledged, as the workload counts it, and as a file that outlives it.
//!
//! Counts all transactions of a workload, measured or not, because the database stores them all.
//! A commit that was sent stands as pending until its answer: what is pending at the end has an
//! unknown outcome, also when its worker was cut off in the middle. [`books`](crate::books) holds the counts against the
//! database.
//!
//! The file knows every order whose commit was sent, and which of them the database has acknowledged. After a crash or
//! a failover [`settle`](crate::settle) holds it against the database. Lines of text, only ever appended, each by one
//! write:
//! - `dyno-tpcc-ledger 3`: what this is.
//! - `run MS WAREHOUSES C_LAST SEED TARGET`: a run begins. Number of warehouses and constant of C_LAST
//!   identify its database. MS is the time since 1970.
//! - `before W D O`: the district's next order number before the run.
//! - `begun`: orders follow.
//! - `s W D O C L`: the commit of order O of district D of warehouse W, of customer C with L lines,
//!   is about to be sent. Behind it the stock that it takes of other warehouses, `W:I` each.
//! - `a` and the same: it was acknowledged. `r`: it was refused, so it did not happen.
//! - `S W D W D C CENTS`: the commit of a payment is about to be sent: warehouse and district, those of
//!   its customer, who lies on another shard, and the amount. `A` and `R` as above.
//! - `end MS`: the run has ended.
//!
//! A commit that was sent, and neither acknowledged nor refused, has an unknown outcome. Customer
//! and lines distinguish an order from a later one with the same number.

mod file;
mod read;

pub use file::LedgerFile;
pub(crate) use read::RecordedDistrict;
pub use read::{Across, Recorded, read};

use crate::DISTRICTS;
use crate::text::Short;
use dyno_core::{DbError, ShardMap};
use dyno_runner::failure::Failure;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

const FIRST_LINE: &str = "dyno-tpcc-ledger 3";
/// The begin of the first line in all versions.
const FIRST_WORD: &str = "dyno-tpcc-ledger ";
/// Appended to a line that a crash has cut off, when a ledger is continued.
const TORN: &str = " torn";
/// Longest line of an order, with the stock of 15 other warehouses.
const LINE_BYTES: usize = 320;

/// An order as its commit was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LedgerOrder {
    /// O_ID.
    pub number: u32,
    /// O_C_ID.
    pub customer: u16,
    /// O_OL_CNT.
    pub lines: u8,
}

/// A row of stock: S_W_ID and S_I_ID.
pub type SupplyKey = (u32, u32);

/// A payment as its commit was sent: customer and amount tell it from others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LedgerPayment {
    /// Warehouse of the customer.
    pub warehouse: u32,
    pub district: u32,
    pub customer: u32,
    pub cents: u32,
}

/// The changes of a commit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LedgerWork<'a> {
    /// `away`: the stock of other warehouses that it takes.
    Order {
        order: LedgerOrder,
        away: Cow<'a, [SupplyKey]>,
    },
    Payment(LedgerPayment),
    /// A number of orders, of any district.
    Delivery(u64),
}

/// A commit, with the district where it was entered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Entry<'a> {
    pub warehouse: u32,
    pub district: u32,
    pub work: LedgerWork<'a>,
}

/// The state of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Step {
    Sent = b's',
    Acknowledged = b'a',
    Refused = b'r',
}

impl Entry<'_> {
    /// The line of a step of its commit.
    fn line(&self, step: Step) -> Short<LINE_BYTES> {
        let mut line = Short::default();
        let mut begin = |letter: u8, numbers: &[u32]| {
            line.push(&[letter]);
            for number in [self.warehouse, self.district].iter().chain(numbers) {
                line.push(b" ");
                line.push_int(i64::from(*number));
            }
        };
        let letter = step as u8;
        match &self.work {
            LedgerWork::Order { order: LedgerOrder { number, customer, lines }, away } => {
                begin(letter, &[*number, u32::from(*customer), u32::from(*lines)]);
                for (supplier, item) in away.iter() {
                    line.push(b" ");
                    line.push_int(i64::from(*supplier));
                    line.push(b":");
                    line.push_int(i64::from(*item));
                }
            }
            LedgerWork::Payment(LedgerPayment { warehouse, district, customer, cents }) => {
                begin(letter.to_ascii_uppercase(), &[*warehouse, *district, *customer, *cents]);
            }
            LedgerWork::Delivery(_) => {}
        }
        line.push(b"\n");
        line
    }

    /// Reads what follows the letter of a line; `None` if it has no meaning.
    fn read(is_payment: bool, rest: &str) -> Option<Entry<'static>> {
        let mut words = rest.split(' ');
        let mut number = || words.next()?.parse::<u32>().ok();
        let (warehouse, district) = (number()?, number()?);
        index(warehouse, district)?;
        if is_payment {
            let [warehouse_paid, district_paid] = [number()?, number()?];
            let payment = LedgerPayment {
                warehouse: warehouse_paid,
                district: district_paid,
                customer: number()?,
                cents: number()?,
            };
            let work = LedgerWork::Payment(payment);
            return words.next().is_none().then_some(Entry { warehouse, district, work });
        }
        let order = LedgerOrder {
            number: number()?,
            customer: number()?.try_into().ok()?,
            lines: number()?.try_into().ok()?,
        };
        let key = |word: &str| {
            let (warehouse, item) = word.split_once(':')?;
            Some((warehouse.parse().ok()?, item.parse().ok()?))
        };
        let away = words.map(key).collect::<Option<Vec<SupplyKey>>>()?.into();
        Some(Entry { warehouse, district, work: LedgerWork::Order { order, away } })
    }
}

/// The index of a district among all.
fn index(warehouse: u32, district: u32) -> Option<usize> {
    let exists = warehouse >= 1 && (1..=DISTRICTS).contains(&district);
    exists.then(|| ((warehouse - 1) * DISTRICTS + district - 1) as usize)
}

/// An error of the system about the file of a ledger.
fn io_failure(path: &Path, what: &str, error: &io::Error) -> Failure {
    Failure::new(format!("The ledger {} {what}: {error}.", path.display()))
}

/// Acknowledged, and sent without an answer.
#[derive(Debug, Default)]
struct Count {
    acknowledged: AtomicU64,
    pending: AtomicU64,
}

impl Count {
    fn state(&self) -> Counted {
        Counted {
            acknowledged: self.acknowledged.load(Ordering::Relaxed),
            unknown: self.pending.load(Ordering::Relaxed),
        }
    }

    fn absorb(&self, more: Counted) {
        self.acknowledged.fetch_add(more.acknowledged, Ordering::Relaxed);
        self.pending.fetch_add(more.unknown, Ordering::Relaxed);
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
    /// Returns true if `found` is possible: at least the acknowledged ones, at most those and the unknown ones.
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
    orders: Count,
    payments: Count,
    paid_cents: Count,
}

/// Acknowledged work that one district has to hold, on top of its initial rows.
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
    delivered: Count,
    /// The file that orders are recorded in; with shards, also payments that lie on two of them.
    pub(crate) file: Option<LedgerFile>,
    /// The shards of the warehouses, if known.
    pub(crate) shards: Option<ShardMap>,
}

impl Ledger {
    pub(crate) fn new(warehouses: u32) -> Self {
        let count = (warehouses * DISTRICTS) as usize;
        Ledger {
            districts: (0..count).map(|_| District::default()).collect(),
            delivered: Count::default(),
            file: None,
            shards: None,
        }
    }

    #[inline]
    fn record(&self, step: Step, entry: &Entry<'_>) -> Result<(), DbError> {
        match &self.file {
            Some(file) if self.is_recorded(entry) => file.note(step, entry),
            _ => Ok(()),
        }
    }

    /// True for an order, and for a payment whose customer lies on another shard than its warehouse.
    fn is_recorded(&self, entry: &Entry<'_>) -> bool {
        let apart = |map: &ShardMap, customer_warehouse| {
            map.shard_of(entry.warehouse) != map.shard_of(customer_warehouse)
        };
        match &entry.work {
            LedgerWork::Order { .. } => true,
            LedgerWork::Payment(payment) => {
                self.shards.as_ref().is_some_and(|map| apart(map, payment.warehouse))
            }
            LedgerWork::Delivery(_) => false,
        }
    }

    /// False where several servers commit: one that refuses says nothing of the others.
    pub(crate) fn believes_refusals(&self) -> bool {
        self.shards.is_none()
    }

    /// Changes the counts that an entry stands in, by what it counts there.
    #[inline]
    fn change(&self, entry: &Entry<'_>, change: impl Fn(&Count, u64)) {
        let books = index(entry.warehouse, entry.district).and_then(|at| self.districts.get(at));
        match (&entry.work, books) {
            (LedgerWork::Order { .. }, Some(books)) => change(&books.orders, 1),
            (LedgerWork::Payment(LedgerPayment { cents, .. }), Some(books)) => {
                change(&books.payments, 1);
                change(&books.paid_cents, u64::from(*cents));
            }
            (LedgerWork::Delivery(orders), _) => change(&self.delivered, *orders),
            (_, None) => {}
        }
    }

    /// The commit is about to be sent.
    ///
    /// # Errors
    /// When that can't be recorded: the commit must not be sent.
    #[inline]
    pub(crate) fn note_sending(&self, entry: &Entry<'_>) -> Result<(), DbError> {
        self.record(Step::Sent, entry)?;
        self.change(entry, |count, by| {
            count.pending.fetch_add(by, Ordering::Relaxed);
        });
        Ok(())
    }

    /// The database has said that the commit did not happen.
    #[inline]
    pub(crate) fn note_refusal(&self, entry: &Entry<'_>) -> Result<(), DbError> {
        self.change(entry, |count, by| {
            count.pending.fetch_sub(by, Ordering::Relaxed);
        });
        self.record(Step::Refused, entry)
    }

    #[inline]
    pub(crate) fn note_acknowledgement(&self, entry: &Entry<'_>) -> Result<(), DbError> {
        self.change(entry, |count, by| {
            count.pending.fetch_sub(by, Ordering::Relaxed);
            count.acknowledged.fetch_add(by, Ordering::Relaxed);
        });
        self.record(Step::Acknowledged, entry)
    }

    /// Adds what another load generator's ledger holds of a district.
    pub(crate) fn absorb(&self, index: usize, more: &DistrictBooks) {
        let district = &self.districts[index];
        district.orders.absorb(more.orders);
        district.payments.absorb(more.payments);
        district.paid_cents.absorb(more.paid_cents);
    }

    /// Adds orders that another load generator has delivered.
    pub(crate) fn absorb_delivered(&self, more: Counted) {
        self.delivered.absorb(more);
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
mod tests;
