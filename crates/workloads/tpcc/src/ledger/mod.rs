//! The one ledger: what the database has acknowledged, as the workload counts it, and as a file that outlives it.
//!
//! Counts all transactions of a workload, measured or not, because the database stores them all.
//! A commit that was sent is pending until its answer: what is pending at the end has an
//! unknown outcome, also when its worker was cut off in the middle. [`books`](crate::books) holds the counts against
//! the database.
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

use crate::DISTRICTS;
use crate::load::TpccDatabase;
use crate::settle::Books;
use crate::values::{Short, Timestamp};
use dyno_core::{DbError, ShardMap, is_command};
use dyno_runner::failure::Failure;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::ops::Add;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

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

/// A commit, with the district of its terminal.
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
    fn format_line(&self, step: Step) -> Short<LINE_BYTES> {
        let mut line = Short::default();
        let (letter, numbers): (u8, &[u32]) = match &self.work {
            LedgerWork::Order { order: LedgerOrder { number, customer, lines }, .. } => {
                (step as u8, &[*number, u32::from(*customer), u32::from(*lines)])
            }
            LedgerWork::Payment(LedgerPayment { warehouse, district, customer, cents }) => {
                ((step as u8).to_ascii_uppercase(), &[*warehouse, *district, *customer, *cents])
            }
            LedgerWork::Delivery(_) => (step as u8, &[]),
        };
        line.push(&[letter]);
        for number in [self.warehouse, self.district].iter().chain(numbers) {
            line.push(b" ");
            line.push_int(i64::from(*number));
        }
        if let LedgerWork::Order { away, .. } = &self.work {
            for (supplier, item) in away.iter() {
                line.push(b" ");
                line.push_int(i64::from(*supplier));
                line.push(b":");
                line.push_int(i64::from(*item));
            }
        }
        line.push(b"\n");
        line
    }

    /// Reads what follows the letter of a line; `None` if it has no meaning.
    fn read(is_payment: bool, rest: &str) -> Option<Entry<'static>> {
        let words = &mut rest.split(' ');
        let (warehouse, district) = (read_number(words)?, read_number(words)?);
        index(warehouse, district)?;
        let (first, second, third) =
            (read_number(words)?, read_number(words)?, read_number(words)?);
        let work = if is_payment {
            let cents = read_number(words)?;
            words.next().is_none().then_some(())?;
            let (warehouse, district, customer) = (first, second, third);
            LedgerWork::Payment(LedgerPayment { warehouse, district, customer, cents })
        } else {
            let (customer, lines) = (second.try_into().ok()?, third.try_into().ok()?);
            let away = words.map(|word| -> Option<SupplyKey> {
                let (warehouse, item) = word.split_once(':')?;
                Some((warehouse.parse().ok()?, item.parse().ok()?))
            });
            let away = away.collect::<Option<Vec<SupplyKey>>>()?.into();
            LedgerWork::Order { order: LedgerOrder { number: first, customer, lines }, away }
        };
        Some(Entry { warehouse, district, work })
    }
}

/// The next word of a line as a number; `None` if it is none or the line has ended.
fn read_number(words: &mut std::str::Split<'_, char>) -> Option<u32> {
    words.next()?.parse().ok()
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

const CANT_WRITE: &str = "can't be written";

const CANT_READ: &str = "can't be read";

/// Makes a failure of an error of the system about the file of a ledger.
fn fail_with(path: &Path, what: &str) -> impl FnOnce(io::Error) -> Failure {
    move |error| io_failure(path, what, &error)
}

/// Acknowledged, and sent without an answer.
#[derive(Debug, Default)]
struct Count {
    acknowledged: AtomicU64,
    pending: AtomicU64,
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
}

impl Add for Counted {
    type Output = Counted;

    fn add(self, more: Counted) -> Counted {
        Counted {
            acknowledged: self.acknowledged + more.acknowledged,
            unknown: self.unknown + more.unknown,
        }
    }
}

/// Acknowledged work that one district has to hold, on top of its initial rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DistrictBooks {
    pub orders: Counted,
    pub payments: Counted,
    /// Their amounts, in cents.
    pub paid_cents: Counted,
    /// Orders of the warehouse that Deliveries took out of its queues; in its first district.
    pub delivered: Counted,
}

#[derive(Debug)]
pub(crate) struct Ledger {
    /// Sorted in the order of [`DistrictBooks`].
    districts: Vec<[Count; 4]>,
    /// The file that orders are recorded in; with shards, also payments that lie on two of them.
    pub(crate) file: Option<LedgerFile>,
    /// The shards of the warehouses, if known.
    pub(crate) shards: Option<ShardMap>,
}

impl Ledger {
    pub(crate) fn new(warehouses: u32) -> Self {
        let count = (warehouses * DISTRICTS) as usize;
        Ledger {
            districts: (0..count).map(|_| <[Count; 4]>::default()).collect(),
            file: None,
            shards: None,
        }
    }

    /// Returns true for an order, and for a payment whose customer lies on another shard than its warehouse.
    fn is_recorded(&self, entry: &Entry<'_>) -> bool {
        match (&entry.work, &self.shards) {
            (LedgerWork::Order { .. }, _) => true,
            (LedgerWork::Payment(payment), Some(map)) => {
                map.shard_of(entry.warehouse) != map.shard_of(payment.warehouse)
            }
            _ => false,
        }
    }

    /// False if several servers commit: the refusal of one says nothing about the others.
    pub(crate) fn believes_refusals(&self) -> bool {
        self.shards.is_none()
    }

    /// Changes the counts of an entry, by what it adds to each.
    #[inline]
    fn change(&self, entry: &Entry<'_>, change: impl Fn(&Count, u64)) {
        let books = index(entry.warehouse, entry.district).and_then(|at| self.districts.get(at));
        let Some([orders, payments, paid_cents, delivered]) = books else { return };
        match &entry.work {
            LedgerWork::Order { .. } => change(orders, 1),
            LedgerWork::Payment(payment) => {
                change(payments, 1);
                change(paid_cents, u64::from(payment.cents));
            }
            LedgerWork::Delivery(orders) => change(delivered, *orders),
        }
    }

    /// Notes a step of a commit: before it is sent, or when it is answered.
    ///
    /// # Errors
    /// When that can't be recorded: a commit that is about to be sent must not be.
    #[inline]
    pub(crate) fn record(&self, step: Step, entry: &Entry<'_>) -> Result<(), DbError> {
        // What can't be recorded is not sent, and so not counted.
        let recorded = match &self.file {
            Some(file) if self.is_recorded(entry) => file.record(step, entry),
            _ => Ok(()),
        };
        if step == Step::Sent {
            recorded?;
            self.change(entry, |count, by| {
                count.pending.fetch_add(by, Ordering::Relaxed);
            });
            return Ok(());
        }
        self.change(entry, |count, by| {
            count.pending.fetch_sub(by, Ordering::Relaxed);
            if step == Step::Acknowledged {
                count.acknowledged.fetch_add(by, Ordering::Relaxed);
            }
        });
        recorded
    }

    /// Adds what another load generator's ledger holds of a district.
    pub(crate) fn absorb(&self, index: usize, books: &DistrictBooks) {
        let DistrictBooks { orders, payments, paid_cents, delivered } = books;
        let added = [orders, payments, paid_cents, delivered];
        for (count, added) in self.districts[index].iter().zip(added) {
            count.acknowledged.fetch_add(added.acknowledged, Ordering::Relaxed);
            count.pending.fetch_add(added.unknown, Ordering::Relaxed);
        }
    }

    /// Counts of each district, in the order of warehouses and districts.
    pub(crate) fn districts(&self) -> impl Iterator<Item = DistrictBooks> {
        self.districts.iter().map(|counts| {
            let [orders, payments, paid_cents, delivered] =
                counts.each_ref().map(|count| Counted {
                    acknowledged: count.acknowledged.load(Ordering::Relaxed),
                    unknown: count.pending.load(Ordering::Relaxed),
                });
            DistrictBooks { orders, payments, paid_cents, delivered }
        })
    }

    /// Sums of all districts.
    pub(crate) fn total(&self) -> DistrictBooks {
        self.districts()
            .reduce(|sum, more| DistrictBooks {
                orders: sum.orders + more.orders,
                payments: sum.payments + more.payments,
                paid_cents: sum.paid_cents + more.paid_cents,
                delivered: sum.delivered + more.delivered,
            })
            .unwrap_or_default()
    }
}

const NO_MORE: &str = "can't be written any more";
const WRITE_HINT: &str = "Free some space there, or give the ledger another place. What was written \
                          until then can be checked with `dyno check`.";

/// A ledger that is open for a run. Shared by all loops; each line is one write of the system.
#[derive(Debug)]
pub struct LedgerFile {
    path: PathBuf,
    file: File,
    is_closed: AtomicBool,
    /// The first thing that went wrong: from then on no order is committed any more.
    failure: OnceLock<Failure>,
}

impl LedgerFile {
    /// Creates a ledger, or continues with the one that is there, for a run on the database that
    /// `loaded` and `before` describe. `target` names the database for people, without a password.
    /// Everything up to the first order is on the disk when this returns.
    ///
    /// # Errors
    /// When the file can't be written; when it is not a ledger, or that of another database; when the
    /// database does not hold what the ledger says, or more: such a ledger must be checked, not
    /// gone on with.
    pub fn open(
        path: &Path,
        target: &str,
        loaded: &TpccDatabase,
        seed: u64,
        before: &Books,
    ) -> Result<Self, Failure> {
        let file = File::options().read(true).append(true).create(true).open(path);
        let mut file = file.map_err(fail_with(path, CANT_WRITE))?;
        if file.try_lock().is_err() {
            let problem = format!("The ledger {} is in use by another run.", path.display());
            return Err(Failure::new(problem).with_hint("Give each run its own ledger."));
        }
        let mut text = match file.metadata().map_err(fail_with(path, CANT_WRITE))?.len() {
            0 => format!("{FIRST_LINE}\n"),
            _ => {
                let recorded = read(path)?;
                check_fit(&recorded, loaded, before)?;
                if recorded.is_cut_off { format!("{TORN}\n") } else { String::new() }
            }
        };
        begin_run(&mut text, target, loaded, seed, before);
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
        written.map_err(fail_with(path, CANT_WRITE))?;
        Ok(Self::from_file(path, file))
    }

    /// The part of one of several load generators: steps of commits only, which are handed over when its trial has
    /// ended.
    ///
    /// # Errors
    /// The file can't be written.
    pub(crate) fn create_part(path: &Path) -> Result<Self, Failure> {
        let mut options = File::options();
        let file = options.append(true).create(true).open(path);
        let part = file.and_then(|file| file.set_len(0).map(|()| Self::from_file(path, file)));
        part.map_err(|error| io_failure(path, "can't be written", &error))
    }

    /// The finished steps that a part has noted, once its load is over.
    ///
    /// # Errors
    /// The file can't be read, or could not be written as a whole.
    pub(crate) fn steps(&self) -> Result<String, Failure> {
        self.close()?;
        let text = std::fs::read_to_string(&self.path);
        let text = text.map_err(|error| io_failure(&self.path, "can't be read", &error))?;
        Ok(text.lines().filter(|line| is_step(line)).map(|line| format!("{line}\n")).collect())
    }

    /// Adds what the part of another load generator has noted.
    ///
    /// # Errors
    /// `steps` has other lines, or the file can't be written.
    pub(crate) fn absorb(&self, steps: &str) -> Result<(), Failure> {
        if !steps.lines().all(is_step) || !(steps.is_empty() || steps.ends_with('\n')) {
            return Err(Failure::new(
                "The ledger of a load generator holds something else than steps.",
            ));
        }
        Ok(self.append_line(steps.as_bytes())?)
    }

    fn from_file(path: &Path, file: File) -> Self {
        let (is_closed, failure) = Default::default();
        LedgerFile { path: path.to_owned(), file, is_closed, failure }
    }

    /// Notes a step of a commit.
    ///
    /// # Errors
    /// When this line, an earlier one or a sync failed: nothing may be committed any more.
    #[inline]
    pub(crate) fn record(&self, step: Step, entry: &Entry<'_>) -> Result<(), DbError> {
        self.append_line(entry.format_line(step).get())
    }

    /// Notes the end of the run and brings everything to the disk. Repeatable.
    ///
    /// # Errors
    /// The first thing that went wrong with the file since it was opened.
    pub fn close(&self) -> Result<(), Failure> {
        if !self.is_closed.swap(true, Ordering::Relaxed) {
            // An error would be the ledger's own, which is returned below.
            let _ = self.append_line(format!("end {}\n", Timestamp::now().0).as_bytes());
            if let Err(error) = self.file.sync_data() {
                self.note_failure("can't be synced to its disk", &error);
            }
        }
        self.failure.get().cloned().map_or(Ok(()), Err)
    }

    #[inline]
    fn append_line(&self, line: &[u8]) -> Result<(), DbError> {
        if self.failure.get().is_none() {
            loop {
                match (&self.file).write(line) {
                    Ok(written) if written == line.len() => return Ok(()),
                    // The rest is refused, and that says why.
                    Ok(written) => match (&self.file).write_all(&line[written..]) {
                        Ok(()) => self.note_failure("was cut off", &ErrorKind::StorageFull.into()),
                        Err(error) => self.note_failure(NO_MORE, &error),
                    },
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    Err(error) => self.note_failure(NO_MORE, &error),
                }
                break;
            }
        }
        Err(self.refusal())
    }

    #[cold]
    fn note_failure(&self, what: &str, error: &io::Error) {
        let failure = io_failure(&self.path, what, error).with_hint(WRITE_HINT);
        // A later failure is the consequence of the first one.
        let _ = self.failure.set(failure);
    }

    /// The error that ends the run, which no policy survives.
    #[cold]
    fn refusal(&self) -> DbError {
        match self.failure.get() {
            Some(failure) => DbError::workload(failure.message.to_string()).with_hint(WRITE_HINT),
            None => DbError::workload("The ledger can't be written any more."),
        }
    }
}

impl Drop for LedgerFile {
    fn drop(&mut self) {
        // Who wants to know has called it before.
        let _ = self.close();
    }
}

/// A line of an order's or a payment's commit.
fn is_step(line: &str) -> bool {
    matches!(line.as_bytes(), [b's' | b'a' | b'r' | b'S' | b'A' | b'R', b' ', ..])
}

fn begin_run(text: &mut String, target: &str, loaded: &TpccDatabase, seed: u64, before: &Books) {
    let target: String = target.chars().filter(|letter| !is_command(*letter)).collect();
    let (begun_ms, TpccDatabase { warehouses, c_last }) = (Timestamp::now().0, *loaded);
    // Writing into a String can't fail.
    let _ = writeln!(text, "run {begun_ms} {warehouses} {c_last} {seed} {target}");
    for (warehouse, district, next) in before.next_orders() {
        let _ = writeln!(text, "before {warehouse} {district} {next}");
    }
    text.push_str("begun\n");
}

/// Checks that the database is the ledger's, and holds what it says and no more.
fn check_fit(recorded: &Recorded, loaded: &TpccDatabase, before: &Books) -> Result<(), Failure> {
    if recorded.runs == 0 {
        return Ok(());
    }
    recorded.is_of(loaded)?;
    for (warehouse, district, next) in before.next_orders() {
        let Some(books) = recorded.district(warehouse, district) else { continue };
        let grown = next - i64::from(books.before);
        let [acknowledged, unknown] =
            [&books.acknowledged, &books.unknown].map(|orders| orders.len() as i64);
        if (acknowledged..=acknowledged + unknown).contains(&grown) {
            continue;
        }
        let reason = if grown < acknowledged {
            "orders were lost, or it was built again"
        } else {
            "others have entered orders since"
        };
        return Err(Failure::new(format!(
            "The ledger {} has {acknowledged} acknowledged orders of district {district} of warehouse {warehouse}, \
             {unknown} of unknown outcome, but the district grew by {grown}: {reason}.",
            recorded.path.display()
        ))
        .with_hint("Check it with `dyno check`, and give the next run another ledger."));
    }
    Ok(())
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RecordedDistrict {
    /// The next order's number before the first run.
    pub(crate) before: u32,
    /// Sorted in the order of their numbers. Eight bytes an order.
    pub(crate) acknowledged: Vec<LedgerOrder>,
    /// Sent, neither acknowledged nor refused; in the order of their numbers.
    pub(crate) unknown: Vec<LedgerOrder>,
}

/// An order with stock of other warehouses, or a payment of a customer on another shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Across {
    pub entry: Entry<'static>,
    /// Else its outcome is unknown.
    pub is_acknowledged: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    path: PathBuf,
    /// Name of its database in the last run.
    pub target: String,
    pub runs: u32,
    /// Set if the last run came to its end; else it was killed, or it is continuing.
    pub is_ended: bool,
    pub refused: u64,
    /// When the first run began, in milliseconds since 1970.
    pub begun_ms: i64,
    /// Lines that a crash cut off, and that do not count.
    pub torn: u64,
    /// The last line has no end.
    is_cut_off: bool,
    warehouses: u32,
    c_last: u64,
    districts: Vec<RecordedDistrict>,
    /// Acknowledged or of unknown outcome, in no order.
    pub across: Vec<Across>,
    /// Commits that were sent and not answered yet, and how often; while the ledger is read.
    pending: HashMap<Entry<'static>, u32>,
}

impl Recorded {
    /// Number of acknowledged orders.
    pub fn acknowledged(&self) -> u64 {
        self.districts.iter().map(|district| district.acknowledged.len() as u64).sum()
    }

    /// Number of orders of unknown outcome.
    pub fn unknown(&self) -> u64 {
        self.districts.iter().map(|district| district.unknown.len() as u64).sum()
    }

    /// The file that the ledger was read from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The orders of a district; `None` if its warehouse is not in the ledger.
    pub(crate) fn district(&self, warehouse: u32, district: u32) -> Option<&RecordedDistrict> {
        self.districts.get(index(warehouse, district)?)
    }

    /// Warehouse, district and books of each district.
    pub(crate) fn districts(&self) -> impl Iterator<Item = (u32, u32, &RecordedDistrict)> {
        let places = (1..=self.warehouses).flat_map(|w| (1..=DISTRICTS).map(move |d| (w, d)));
        places.zip(&self.districts).map(|((w, d), books)| (w, d, books))
    }

    /// Checks that this is a ledger of the database that `loaded` describes.
    pub fn is_of(&self, loaded: &TpccDatabase) -> Result<(), Failure> {
        if (self.warehouses, self.c_last) == (loaded.warehouses, loaded.c_last) {
            return Ok(());
        }
        Err(Failure::new(format!(
            "The ledger {} is that of another database: it had {} warehouses, and C = {} for \
             C_LAST when it was loaded; this one has {} and {}.",
            self.path.display(),
            self.warehouses,
            self.c_last,
            loaded.warehouses,
            loaded.c_last
        ))
        .with_hint("A database that is built again needs a new ledger."))
    }
}

/// Reads a ledger. Lines that a crash has cut off are left out: at the end, or where a later run
/// says so.
pub fn read(path: &Path) -> Result<Recorded, Failure> {
    let file = File::open(path).map_err(fail_with(path, CANT_READ))?;
    let mut reader = BufReader::with_capacity(1 << 18, file);
    let mut recorded = Recorded { path: path.to_owned(), ..Recorded::default() };
    let mut line = Vec::new();
    let mut number = 0_u64;
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line).map_err(fail_with(path, CANT_READ))? == 0 {
            break;
        }
        number += 1;
        let complete_line = line.strip_suffix(b"\n");
        recorded.is_cut_off = complete_line.is_none();
        // What was not yet on the disk when a machine went down may have been replaced by zeros.
        let is_torn = match complete_line {
            None => true,
            Some(line) => line.ends_with(TORN.as_bytes()) || line.contains(&0),
        };
        let text = std::str::from_utf8(complete_line.unwrap_or(&line)).unwrap_or_default();
        if number == 1 {
            is_ledger(path, text)?;
        } else if is_torn {
            recorded.torn += 1;
        } else if recorded.read_line(text).is_none() {
            return Err(Failure::new(format!(
                "Line {number} of the ledger {} is damaged: {text:?}.",
                path.display()
            )));
        }
    }
    if number == 0 {
        is_ledger(path, "")?;
    }
    recorded.end_run();
    Ok(recorded)
}

fn is_ledger(path: &Path, first: &str) -> Result<(), Failure> {
    let path = path.display();
    match first.strip_prefix(FIRST_WORD) {
        Some(_) if first == FIRST_LINE => Ok(()),
        Some(version) => Err(Failure::new(format!(
            "The ledger {path} has version {version}, which this dyno can't read."
        ))),
        None => Err(Failure::new(format!("{path} isn't a ledger: it begins with {first:?}."))
            .with_hint("`--ledger` names a file that a run with `--ledger` has written.")),
    }
}

/// Reading line by line.
impl Recorded {
    /// `None` when the line has no meaning.
    fn read_line(&mut self, line: &str) -> Option<()> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "s" | "S" => *self.pending.entry(Entry::read(word == "S", rest)?).or_default() += 1,
            "a" | "A" | "r" | "R" => {
                let entry = Entry::read(matches!(word, "A" | "R"), rest)?;
                // After a power cut the line that said that it was sent may be missing, which takes nothing from the
                // answer.
                if let Some(count) = self.pending.get_mut(&entry) {
                    *count -= 1;
                    if *count == 0 {
                        self.pending.remove(&entry);
                    }
                }
                match word {
                    "a" | "A" => self.keep_commit(entry, true)?,
                    _ => self.refused += u64::from(word == "r"),
                }
            }
            "run" => self.begin_run(rest)?,
            "before" => {
                let words = &mut rest.split(' ');
                let (warehouse, district, next) =
                    (read_number(words)?, read_number(words)?, read_number(words)?);
                let books = self.districts.get_mut(index(warehouse, district)?)?;
                if self.runs == 0 {
                    books.before = next;
                }
            }
            "begun" => self.runs += 1,
            "end" => self.is_ended = true,
            _ => return None,
        }
        Some(())
    }

    /// Keeps a commit that may have happened.
    fn keep_commit(&mut self, entry: Entry<'static>, is_acknowledged: bool) -> Option<()> {
        let mut is_across = true;
        if let LedgerWork::Order { order, away } = &entry.work {
            let books = self.districts.get_mut(index(entry.warehouse, entry.district)?)?;
            let orders = if is_acknowledged { &mut books.acknowledged } else { &mut books.unknown };
            orders.push(*order);
            is_across = !away.is_empty();
        }
        if is_across {
            self.across.push(Across { entry, is_acknowledged });
        }
        Some(())
    }

    fn begin_run(&mut self, rest: &str) -> Option<()> {
        let mut words = rest.splitn(5, ' ');
        let begun_ms = words.next()?.parse().ok()?;
        let (warehouses, c_last) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let _seed: u64 = words.next()?.parse().ok()?;
        if self.runs == 0 {
            self.districts = vec![RecordedDistrict::default(); index(warehouses, DISTRICTS)? + 1];
            (self.warehouses, self.c_last, self.begun_ms) = (warehouses, c_last, begun_ms);
        }
        self.is_ended = false;
        self.target = words.next()?.to_owned();
        // Only the ledger's own database is gone on with.
        ((self.warehouses, self.c_last) == (warehouses, c_last)).then_some(())
    }

    fn end_run(&mut self) {
        for (entry, count) in std::mem::take(&mut self.pending) {
            // Nothing is known of a district that no run has named.
            (0..count).try_for_each(|_| self.keep_commit(entry.clone(), false));
        }
        for books in &mut self.districts {
            books.acknowledged.sort_unstable();
            books.unknown.sort_unstable();
        }
    }
}

#[cfg(test)]
mod tests;
