//! The result file of deferred Deliveries (clause 2.7.2.2): what was queued when, executed when, and
//! which orders it delivered.

use crate::text::Timestamp;
use dyno_core::{DbError, EndedTransaction, MILLISECOND, Nanos, Outcome};
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The columns. Times are UTC; `o_id_n` is the order delivered in district n, empty where there was
/// none or the Delivery failed.
const HEADER: &str = "queued,began,ended,w_id,o_carrier_id,outcome,o_id_1,o_id_2,o_id_3,o_id_4,\
                      o_id_5,o_id_6,o_id_7,o_id_8,o_id_9,o_id_10\n";

/// What one worker holds back at most, and the longest line.
const BUFFER_BYTES: usize = 4_096;
const LINE_BYTES: usize = 256;

#[derive(Debug)]
pub(crate) struct DeliveryLog {
    path: PathBuf,
    file: Mutex<File>,
    error: OnceLock<String>,
}

impl DeliveryLog {
    pub(crate) fn create(path: &Path) -> Result<Arc<Self>, String> {
        let created = File::create(path).and_then(|mut file| {
            file.write_all(HEADER.as_bytes())?;
            Ok(file)
        });
        let file = created.map_err(|error| sentence(path, &error))?;
        let (path, file) = (path.to_owned(), Mutex::new(file));
        Ok(Arc::new(DeliveryLog { path, file, error: OnceLock::new() }))
    }

    /// What is written so far, without the header.
    pub(crate) fn lines(&self) -> Result<String, String> {
        let text = std::fs::read_to_string(&self.path).map_err(|error| {
            let path = self.path.display();
            format!("The log of deliveries {path} cannot be read: {error}.")
        })?;
        Ok(text.strip_prefix(HEADER).unwrap_or_default().to_owned())
    }

    /// Adds the lines of another load generator, and what its log has met.
    pub(crate) fn absorb(&self, mut lines: String, error: Option<String>) {
        if !lines.is_empty() {
            self.write(&mut lines);
        }
        if let Some(error) = error {
            self.error.get_or_init(|| error);
        }
    }

    /// What the first write that failed has met.
    pub(crate) fn error(&self) -> Option<String> {
        self.error.get().cloned()
    }

    /// # Errors
    /// When a write has failed: a run without its log ends.
    #[inline]
    pub(crate) fn check(&self) -> Result<(), DbError> {
        self.error.get().map_or(Ok(()), |error| Err(DbError::workload(error.clone())))
    }

    fn write(&self, text: &mut String) {
        let written = self
            .file
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .write_all(text.as_bytes())
            .map_err(|error| sentence(&self.path, &error));
        if let Err(error) = written {
            self.error.get_or_init(|| error);
        }
        text.clear();
    }
}

fn sentence(path: &Path, error: &std::io::Error) -> String {
    format!("The log of deliveries {} cannot be written: {error}.", path.display())
}

/// What one worker has noted and not yet written. Writes it when it is dropped.
#[derive(Debug)]
pub(crate) struct DeliveryNotes {
    log: Arc<DeliveryLog>,
    text: String,
    /// What the loop's clock showed in the year 1970, in milliseconds.
    origin_ms: i64,
}

impl DeliveryNotes {
    /// To be called on the worker's loop.
    pub(crate) fn new(log: &Arc<DeliveryLog>) -> Self {
        let origin_ms = Timestamp::now().0 - (dyno_reactor::now() / MILLISECOND) as i64;
        let text = String::with_capacity(BUFFER_BYTES);
        DeliveryNotes { log: Arc::clone(log), text, origin_ms }
    }

    pub(crate) fn note(
        &mut self,
        ended: &EndedTransaction,
        warehouse: i64,
        carrier: i64,
        orders: &[i64],
    ) {
        for time in [ended.due, ended.began, ended.ended] {
            let text = self.utc(time).text();
            text.iter().for_each(|&byte| self.text.push(char::from(byte)));
            self.text.push(',');
        }
        let is_done = ended.outcome == Outcome::Committed;
        let outcome = if is_done { "delivered" } else { "failed" };
        // Writing to a String can't fail.
        let _ = write!(self.text, "{warehouse},{carrier},{outcome}");
        for &order in orders {
            self.text.push(',');
            if is_done && order > 0 {
                let _ = write!(self.text, "{order}");
            }
        }
        self.text.push('\n');
        if self.text.len() > BUFFER_BYTES - LINE_BYTES {
            self.log.write(&mut self.text);
        }
    }

    fn utc(&self, time: Nanos) -> Timestamp {
        Timestamp(self.origin_ms + (time / MILLISECOND) as i64)
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// When this or an earlier write has failed.
    pub(crate) fn hand_over(&mut self) -> Result<(), DbError> {
        self.log.write(&mut self.text);
        self.log.check()
    }
}

impl Drop for DeliveryNotes {
    fn drop(&mut self) {
        if !self.text.is_empty() {
            self.log.write(&mut self.text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_core::ErrorClass;

    fn ended(outcome: Outcome) -> EndedTransaction {
        let [due, began, ended] = [1, 2, 3_000].map(|ms| ms * MILLISECOND);
        EndedTransaction {
            transaction: 5,
            outcome,
            due,
            began,
            ended,
            attempts: 1,
            is_measured: true,
        }
    }

    #[test]
    fn a_delivery_is_a_line_with_its_times_and_orders() {
        let scratch = dyno_testkit::Scratch::new();
        let path = scratch.file("deliveries.csv");
        let log = DeliveryLog::create(&path).unwrap();
        let mut notes = DeliveryNotes::new(&log);
        notes.origin_ms = 1_795_287_049_000;
        let orders = [2_101, 2_102, 0, 2_104, 2_105, 2_106, 2_107, 2_108, 2_109, 2_110];
        notes.note(&ended(Outcome::Committed), 17, 3, &orders);
        notes.note(&ended(Outcome::Failed(ErrorClass::Deadlock)), 18, 10, &orders);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), HEADER, "held back");
        drop(notes);
        let text = std::fs::read_to_string(&path).unwrap();
        let times = "2026-11-21 18:50:49.001,2026-11-21 18:50:49.002,2026-11-21 18:50:52.000";
        let lines: Vec<&str> = text.lines().skip(1).collect();
        let delivered = "17,3,delivered,2101,2102,,2104,2105,2106,2107,2108,2109,2110";
        assert_eq!(
            lines,
            [format!("{times},{delivered}"), format!("{times},18,10,failed,,,,,,,,,,")]
        );
    }

    #[test]
    fn the_buffer_never_grows() {
        let scratch = dyno_testkit::Scratch::new();
        let log = DeliveryLog::create(&scratch.file("deliveries.csv")).unwrap();
        let mut notes = DeliveryNotes::new(&log);
        for _ in 0..1_000 {
            notes.note(&ended(Outcome::Committed), 60_000, 10, &[i64::from(u32::MAX); 10]);
        }
        assert_eq!(notes.text.capacity(), BUFFER_BYTES);
        assert_eq!(notes.hand_over(), Ok(()));
        let text = std::fs::read_to_string(scratch.file("deliveries.csv")).unwrap();
        assert_eq!(text.lines().count(), 1_001);
        assert!(text.lines().all(|line| line.len() < LINE_BYTES));
    }

    #[test]
    fn a_full_disk_is_an_error_of_the_run() {
        let path = Path::new("/dev/full");
        let error = DeliveryLog::create(path).unwrap_err();
        assert!(
            error.starts_with("The log of deliveries /dev/full cannot be written: "),
            "{error}"
        );
        let file = Mutex::new(File::options().write(true).open(path).unwrap());
        let log = Arc::new(DeliveryLog { path: path.to_owned(), file, error: OnceLock::new() });
        let mut notes = DeliveryNotes::new(&log);
        assert_eq!(log.check(), Ok(()));
        notes.note(&ended(Outcome::Committed), 1, 1, &[1; 10]);
        let error = notes.hand_over().unwrap_err();
        assert_eq!(error.cause(), dyno_core::Cause::Workload);
        assert_eq!(log.error().as_deref(), Some(error.message()));
    }
}
