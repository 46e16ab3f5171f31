//! Reading a ledger.

use super::{FIRST_LINE, FIRST_WORD, LedgerOrder, LedgerPayment, SupplyKey, TORN, io_failure};
use crate::DISTRICTS;
use crate::load::TpccDatabase;
use dyno_runner::failure::Failure;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct District {
    /// The next order's number before the first run.
    pub(crate) before: u32,
    /// In the order of their numbers. Eight bytes an order.
    pub(crate) acknowledged: Vec<LedgerOrder>,
    /// Sent, neither acknowledged nor refused; in the order of their numbers.
    pub(crate) unknown: Vec<LedgerOrder>,
}

/// What has rows of another warehouse than its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AcrossWork {
    Order { order: LedgerOrder, away: Vec<SupplyKey> },
    Payment(LedgerPayment),
}

/// An order with stock of other warehouses, or a payment of a customer on another shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Across {
    pub warehouse: u32,
    pub district: u32,
    pub work: AcrossWork,
    /// Else its outcome is unknown.
    pub is_acknowledged: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    path: PathBuf,
    /// How the last run named its database.
    pub target: String,
    pub runs: u32,
    /// True when the last run came to its end; else it was killed, or it is going on.
    pub is_ended: bool,
    pub refused: u64,
    /// When the first run began, in milliseconds since 1970.
    pub begun_ms: i64,
    /// Lines that a crash cut off, and that do not count.
    pub torn: u64,
    warehouses: u32,
    c_last: u64,
    districts: Vec<District>,
    /// Acknowledged or of unknown outcome, in no order.
    pub across: Vec<Across>,
}

impl Recorded {
    pub fn acknowledged(&self) -> u64 {
        self.districts.iter().map(|district| district.acknowledged.len() as u64).sum()
    }

    pub fn unknown(&self) -> u64 {
        self.districts.iter().map(|district| district.unknown.len() as u64).sum()
    }

    pub fn warehouses(&self) -> u32 {
        self.warehouses
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn district(&self, warehouse: u32, district: u32) -> Option<&District> {
        self.districts.get(index(warehouse, district)?)
    }

    /// Warehouse, district and books of each district.
    pub(crate) fn districts(&self) -> impl Iterator<Item = (u32, u32, &District)> {
        let places = (1..=self.warehouses).flat_map(|w| (1..=DISTRICTS).map(move |d| (w, d)));
        places.zip(&self.districts).map(|((w, d), books)| (w, d, books))
    }

    /// Whether this is a ledger of the database that `loaded` describes.
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
        .with_hint("A database that is built anew needs a new ledger."))
    }
}

fn index(warehouse: u32, district: u32) -> Option<usize> {
    let is_there = warehouse >= 1 && (1..=DISTRICTS).contains(&district);
    is_there.then(|| ((warehouse - 1) * DISTRICTS + district - 1) as usize)
}

/// Reads a ledger. Lines that a crash has cut off are left out: at the end, or where a later run
/// says so.
pub fn read(path: &Path) -> Result<Recorded, Failure> {
    let failed = |error| io_failure(path, "can't be read", &error);
    let file = File::open(path).map_err(failed)?;
    let mut reader = BufReader::with_capacity(1 << 18, file);
    let mut parser = Parser::default();
    parser.recorded.path = path.to_owned();
    let mut line = Vec::new();
    let mut number = 0_u64;
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line).map_err(failed)? == 0 {
            break;
        }
        number += 1;
        let whole = line.strip_suffix(b"\n");
        // What was not yet on the disk when a machine went down may have been replaced by zeros.
        let is_torn = match whole {
            None => true,
            Some(line) => line.ends_with(TORN.as_bytes()) || line.contains(&0),
        };
        let text = std::str::from_utf8(whole.unwrap_or(&line)).unwrap_or_default();
        if number == 1 {
            is_ledger(path, text)?;
        } else if is_torn {
            parser.recorded.torn += 1;
        } else if parser.line(text).is_none() {
            return Err(Failure::new(format!(
                "Line {number} of the ledger {} is damaged: {text:?}.",
                path.display()
            )));
        }
    }
    if number == 0 {
        is_ledger(path, "")?;
    }
    Ok(parser.end())
}

fn is_ledger(path: &Path, first: &str) -> Result<(), Failure> {
    let path = path.display();
    match first.strip_prefix(FIRST_WORD) {
        Some(_) if first == FIRST_LINE => Ok(()),
        Some(version) => Err(Failure::new(format!(
            "The ledger {path} has version {version}, which this dyno can't read."
        ))),
        None => Err(Failure::new(format!("{path} is no ledger: it begins with {first:?}."))
            .with_hint("`--ledger` names a file that a run with `--ledger` has written.")),
    }
}

/// A place and an order.
type Sent = (u32, u32, LedgerOrder);

/// A payment and its place.
type SentPayment = (u32, u32, LedgerPayment);

#[derive(Default)]
struct Parser {
    recorded: Recorded,
    /// Commits that were sent and not answered yet, and how often.
    pending: HashMap<Sent, u32>,
    pending_payments: HashMap<SentPayment, u32>,
    /// The stock of other warehouses that orders take.
    away: HashMap<Sent, Vec<SupplyKey>>,
}

impl Parser {
    /// `None` when the line has no meaning.
    fn line(&mut self, line: &str) -> Option<()> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "s" => self.sent(rest)?,
            "S" => *self.pending_payments.entry(sent_payment(rest)?).or_default() += 1,
            "A" => {
                let (warehouse, district, payment) = self.answered_payment(rest)?;
                let work = AcrossWork::Payment(payment);
                let across = Across { warehouse, district, work, is_acknowledged: true };
                self.recorded.across.push(across);
            }
            "R" => drop(self.answered_payment(rest)?),
            "a" => {
                let (warehouse, district, order) = self.answered(rest)?;
                self.across((warehouse, district, order), true);
                let books = self.recorded.districts.get_mut(index(warehouse, district)?)?;
                books.acknowledged.push(order);
            }
            "r" => {
                self.answered(rest)?;
                self.recorded.refused += 1;
            }
            "run" => self.run(rest)?,
            "before" => self.before(rest)?,
            "begun" => self.recorded.runs += 1,
            "end" => self.recorded.is_ended = true,
            _ => return None,
        }
        Some(())
    }

    fn sent(&mut self, rest: &str) -> Option<()> {
        let mut words = rest.splitn(6, ' ');
        let length = words.by_ref().take(5).map(|word| word.len() + 1).sum::<usize>() - 1;
        let order = sent(rest.get(..length)?)?;
        if let Some(away) = words.next() {
            let key = |word: &str| {
                let (warehouse, item) = word.split_once(':')?;
                Some((warehouse.parse().ok()?, item.parse().ok()?))
            };
            self.away.insert(order, away.split(' ').map(key).collect::<Option<_>>()?);
        }
        *self.pending.entry(order).or_default() += 1;
        Some(())
    }

    fn across(&mut self, sent: Sent, is_acknowledged: bool) {
        let Some(away) = self.away.get(&sent).cloned() else { return };
        let (warehouse, district, order) = sent;
        let work = AcrossWork::Order { order, away };
        self.recorded.across.push(Across { warehouse, district, work, is_acknowledged });
    }

    fn answered_payment(&mut self, rest: &str) -> Option<SentPayment> {
        let sent = sent_payment(rest)?;
        take_one(&mut self.pending_payments, &sent);
        Some(sent)
    }

    /// An order that was sent and is answered now. After a power cut the line that said so may be
    /// missing, which takes nothing from the answer.
    fn answered(&mut self, rest: &str) -> Option<Sent> {
        let sent = sent(rest)?;
        take_one(&mut self.pending, &sent);
        Some(sent)
    }

    fn run(&mut self, rest: &str) -> Option<()> {
        let mut words = rest.splitn(5, ' ');
        let begun_ms = words.next()?.parse().ok()?;
        let (warehouses, c_last) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let _seed: u64 = words.next()?.parse().ok()?;
        let recorded = &mut self.recorded;
        if recorded.runs == 0 {
            recorded.districts = vec![District::default(); index(warehouses, DISTRICTS)? + 1];
            (recorded.warehouses, recorded.c_last) = (warehouses, c_last);
            recorded.begun_ms = begun_ms;
        }
        // Only the ledger's own database is gone on with.
        let is_same = (recorded.warehouses, recorded.c_last) == (warehouses, c_last);
        recorded.is_ended = false;
        recorded.target = words.next()?.to_owned();
        is_same.then_some(())
    }

    fn before(&mut self, rest: &str) -> Option<()> {
        let mut words = rest.split(' ').map(str::parse);
        let mut number = || -> Option<u32> { words.next()?.ok() };
        let (warehouse, district, next) = (number()?, number()?, number()?);
        let books = self.recorded.districts.get_mut(index(warehouse, district)?)?;
        if self.recorded.runs == 0 {
            books.before = next;
        }
        Some(())
    }

    fn end(mut self) -> Recorded {
        for ((warehouse, district, payment), count) in std::mem::take(&mut self.pending_payments) {
            let work = AcrossWork::Payment(payment);
            let across = Across { warehouse, district, work, is_acknowledged: false };
            self.recorded.across.extend(std::iter::repeat_n(across, count as usize));
        }
        for ((warehouse, district, order), count) in std::mem::take(&mut self.pending) {
            (0..count).for_each(|_| self.across((warehouse, district, order), false));
            let place = index(warehouse, district);
            let books = place.and_then(|place| self.recorded.districts.get_mut(place));
            if let Some(books) = books {
                books.unknown.extend(std::iter::repeat_n(order, count as usize));
            }
        }
        for books in &mut self.recorded.districts {
            books.acknowledged.sort_unstable();
            books.unknown.sort_unstable();
        }
        self.recorded
    }
}

/// `W D O C L`.
fn sent(rest: &str) -> Option<Sent> {
    let mut words = rest.split(' ');
    let (warehouse, district) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    index(warehouse, district)?;
    let order = LedgerOrder {
        number: words.next()?.parse().ok()?,
        customer: words.next()?.parse().ok()?,
        lines: words.next()?.parse().ok()?,
    };
    words.next().is_none().then_some((warehouse, district, order))
}

/// `W D W D C CENTS`.
fn sent_payment(rest: &str) -> Option<SentPayment> {
    let numbers: Vec<u32> = rest.split(' ').map(str::parse).collect::<Result<_, _>>().ok()?;
    let [home, home_district, warehouse, district, customer, cents] = numbers[..] else {
        return None;
    };
    index(home, home_district)?;
    Some((home, home_district, LedgerPayment { warehouse, district, customer, cents }))
}

fn take_one<K: Eq + std::hash::Hash>(pending: &mut HashMap<K, u32>, sent: &K) {
    if let Some(count) = pending.get_mut(sent) {
        *count -= 1;
        if *count == 0 {
            pending.remove(sent);
        }
    }
}
