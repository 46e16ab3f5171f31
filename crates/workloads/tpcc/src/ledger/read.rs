//! Reading a ledger.

use super::{Entry, FIRST_LINE, FIRST_WORD, LedgerOrder, LedgerWork, TORN, index, io_failure};
use crate::DISTRICTS;
use crate::load::TpccDatabase;
use dyno_runner::failure::Failure;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RecordedDistrict {
    /// The next order's number before the first run.
    pub(crate) before: u32,
    /// In the order of their numbers. Eight bytes an order.
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
    districts: Vec<RecordedDistrict>,
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

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn district(&self, warehouse: u32, district: u32) -> Option<&RecordedDistrict> {
        self.districts.get(index(warehouse, district)?)
    }

    /// Warehouse, district and books of each district.
    pub(crate) fn districts(&self) -> impl Iterator<Item = (u32, u32, &RecordedDistrict)> {
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

#[derive(Default)]
struct Parser {
    recorded: Recorded,
    /// Commits that were sent and not answered yet, and how often.
    pending: HashMap<Entry<'static>, u32>,
}

impl Parser {
    /// `None` when the line has no meaning.
    fn line(&mut self, line: &str) -> Option<()> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "s" | "S" => *self.pending.entry(Entry::read(word == "S", rest)?).or_default() += 1,
            "a" | "A" => {
                let entry = self.answered(word == "A", rest)?;
                self.keep(entry, true)?;
            }
            "r" | "R" => {
                self.answered(word == "R", rest)?;
                self.recorded.refused += u64::from(word == "r");
            }
            "run" => self.run(rest)?,
            "before" => self.before(rest)?,
            "begun" => self.recorded.runs += 1,
            "end" => self.recorded.is_ended = true,
            _ => return None,
        }
        Some(())
    }

    /// A commit that was sent and is answered now. After a power cut the line that said so may be
    /// missing, which takes nothing from the answer.
    fn answered(&mut self, is_payment: bool, rest: &str) -> Option<Entry<'static>> {
        let entry = Entry::read(is_payment, rest)?;
        if let Some(count) = self.pending.get_mut(&entry) {
            *count -= 1;
            if *count == 0 {
                self.pending.remove(&entry);
            }
        }
        Some(entry)
    }

    /// Keeps a commit that may have happened.
    fn keep(&mut self, entry: Entry<'static>, is_acknowledged: bool) -> Option<()> {
        let is_across = match &entry.work {
            LedgerWork::Order { order, away } => {
                let place = index(entry.warehouse, entry.district)?;
                let books = self.recorded.districts.get_mut(place)?;
                let orders =
                    if is_acknowledged { &mut books.acknowledged } else { &mut books.unknown };
                orders.push(*order);
                !away.is_empty()
            }
            LedgerWork::Payment(_) | LedgerWork::Delivery(_) => true,
        };
        if is_across {
            self.recorded.across.push(Across { entry, is_acknowledged });
        }
        Some(())
    }

    fn run(&mut self, rest: &str) -> Option<()> {
        let mut words = rest.splitn(5, ' ');
        let begun_ms = words.next()?.parse().ok()?;
        let (warehouses, c_last) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let _seed: u64 = words.next()?.parse().ok()?;
        let recorded = &mut self.recorded;
        if recorded.runs == 0 {
            recorded.districts =
                vec![RecordedDistrict::default(); index(warehouses, DISTRICTS)? + 1];
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
        for (entry, count) in std::mem::take(&mut self.pending) {
            // Of a district that no run has named, nothing is known.
            (0..count).try_for_each(|_| self.keep(entry.clone(), false));
        }
        for books in &mut self.recorded.districts {
            books.acknowledged.sort_unstable();
            books.unknown.sort_unstable();
        }
        self.recorded
    }
}
