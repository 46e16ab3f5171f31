//! Writing a ledger while a run goes on.

use super::read::{Recorded, read};
use super::{Entry, FIRST_LINE, Step, TORN, io_failure};
use crate::books::Books;
use crate::load::TpccDatabase;
use crate::text::Timestamp;
use dyno_core::{DbError, is_command};
use dyno_runner::failure::Failure;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long an order may be written and not yet be on the disk.
const SYNC_EVERY: Duration = Duration::from_millis(100);

const NO_MORE: &str = "can't be written any more";
const WRITE_HINT: &str = "Free some space there, or give the ledger another place. What was written \
                          until then can be checked with `dyno check`.";

/// A ledger that is open for a run. Shared by all loops; each line is one write of the system.
#[derive(Debug)]
pub struct LedgerFile {
    inner: Arc<Inner>,
    /// The thread that syncs, and how it is told to end.
    syncer: Mutex<Option<(Sender<()>, JoinHandle<()>)>>,
}

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    file: File,
    is_dirty: AtomicBool,
    /// The first thing that went wrong: from then on no order is committed any more.
    failure: OnceLock<Failure>,
}

impl LedgerFile {
    /// Creates a ledger, or goes on with the one that is there, for a run on the database that
    /// `loaded` and `before` describe. `target` names the database for people, without a password.
    /// Everything up to the first order is on the disk when this returns.
    ///
    /// # Errors
    /// When the file can't be written; when it is no ledger, or that of another database; when the
    /// database does not hold what the ledger says, or more: such a ledger must be checked, not
    /// gone on with.
    pub fn open(
        path: &Path,
        target: &str,
        loaded: &TpccDatabase,
        seed: u64,
        before: &Books,
    ) -> Result<Self, Failure> {
        let failed = |error| io_failure(path, "can't be written", &error);
        let mut options = File::options();
        options.read(true).append(true);
        let (mut file, is_new) = match options.clone().create_new(true).open(path) {
            Ok(file) => (file, true),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                (options.open(path).map_err(failed)?, false)
            }
            Err(error) => return Err(failed(error)),
        };
        if file.try_lock().is_err() {
            let problem = format!("The ledger {} is in use by another run.", path.display());
            return Err(Failure::new(problem).with_hint("Give each run a ledger of its own."));
        }
        let mut text = String::new();
        if is_new || file.metadata().map_err(failed)?.len() == 0 {
            text.push_str(FIRST_LINE);
        } else {
            fits(path, &read(path)?, loaded, before)?;
            text.push_str(if is_cut_off(&mut file).map_err(failed)? { TORN } else { "" });
        }
        if !text.is_empty() {
            text.push('\n');
        }
        begin_run(&mut text, target, loaded, seed, before);
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
        if is_new {
            sync_folder(path).map_err(failed)?;
        }
        Self::with(path, file).map_err(failed)
    }

    /// The part of one of several load generators: steps of commits only, which are handed over when its trial has ended.
    ///
    /// # Errors
    /// The file can't be written.
    pub(crate) fn part(path: &Path) -> Result<Self, Failure> {
        let mut options = File::options();
        let file = options.append(true).create(true).open(path);
        let begun = file.and_then(|file| {
            file.set_len(0)?;
            Self::with(path, file)
        });
        begun.map_err(|error| io_failure(path, "can't be written", &error))
    }

    /// What a part has noted, once its load is over.
    ///
    /// # Errors
    /// It can't be read, or could not be written as a whole.
    pub(crate) fn steps(&self) -> Result<String, Failure> {
        self.close()?;
        let text = std::fs::read_to_string(self.path());
        let text = text.map_err(|error| io_failure(self.path(), "can't be read", &error))?;
        Ok(text.lines().filter(|line| is_step(line)).map(|line| format!("{line}\n")).collect())
    }

    /// Adds what the part of another load generator has noted.
    ///
    /// # Errors
    /// It is something else, or can't be written.
    pub(crate) fn absorb(&self, steps: &str) -> Result<(), Failure> {
        if !steps.lines().all(is_step) || !(steps.is_empty() || steps.ends_with('\n')) {
            return Err(Failure::new(
                "The ledger of a load generator holds something else than steps.",
            ));
        }
        let appended = self.inner.append(steps.as_bytes());
        appended.map_err(|error| Failure::from(&error))
    }

    fn with(path: &Path, file: File) -> std::io::Result<Self> {
        let inner = Arc::new(Inner {
            path: path.to_owned(),
            file,
            is_dirty: AtomicBool::new(false),
            failure: OnceLock::new(),
        });
        let syncer = Mutex::new(Some(start_syncing(&inner)?));
        Ok(LedgerFile { inner, syncer })
    }

    /// Without a header.
    #[cfg(test)]
    pub(super) fn on(path: &Path) -> std::io::Result<Self> {
        Self::with(path, File::options().append(true).open(path)?)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// Notes a step of a commit.
    ///
    /// # Errors
    /// When this line, an earlier one or a sync failed: nothing may be committed any more.
    #[inline]
    pub(crate) fn note(&self, step: Step, entry: &Entry<'_>) -> Result<(), DbError> {
        self.inner.append(entry.line(step).get())
    }

    /// Notes the end of the run and brings everything to the disk. Repeatable.
    ///
    /// # Errors
    /// The first thing that went wrong with the file since it was opened.
    pub fn close(&self) -> Result<(), Failure> {
        let syncer = self.syncer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((stop, thread)) = syncer {
            // An error would be the ledger's own, which is returned below.
            let _ = self.inner.append(format!("end {}\n", Timestamp::now().0).as_bytes());
            drop(stop);
            if thread.join().is_err() {
                self.inner.fail("can't be synced", &std::io::Error::other("its thread broke down"));
            }
        }
        self.inner.failure.get().cloned().map_or(Ok(()), Err)
    }
}

impl Drop for LedgerFile {
    fn drop(&mut self) {
        // Who wants to know has called it before.
        let _ = self.close();
    }
}

impl Inner {
    #[inline]
    fn append(&self, line: &[u8]) -> Result<(), DbError> {
        if self.failure.get().is_none() {
            loop {
                match (&self.file).write(line) {
                    Ok(written) if written == line.len() => {
                        // Often set already: a store would take the line from the other loops.
                        if !self.is_dirty.load(Ordering::Relaxed) {
                            self.is_dirty.store(true, Ordering::Release);
                        }
                        return Ok(());
                    }
                    // The rest is refused, and that says why.
                    Ok(written) => match (&self.file).write_all(&line[written..]) {
                        Ok(()) => self.fail("was cut off", &ErrorKind::StorageFull.into()),
                        Err(error) => self.fail(NO_MORE, &error),
                    },
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    Err(error) => self.fail(NO_MORE, &error),
                }
                break;
            }
        }
        Err(self.refusal())
    }

    #[cold]
    fn fail(&self, what: &str, error: &std::io::Error) {
        let failure = io_failure(&self.path, what, error).with_hint(WRITE_HINT);
        // A later failure is the consequence of the first one.
        let _ = self.failure.set(failure);
    }

    /// What ends the run: an error that no policy survives.
    #[cold]
    fn refusal(&self) -> DbError {
        match self.failure.get() {
            Some(failure) => DbError::workload(failure.message.to_string()).with_hint(WRITE_HINT),
            None => DbError::workload("The ledger can't be written any more."),
        }
    }

    fn sync(&self) {
        if self.is_dirty.swap(false, Ordering::Acquire)
            && let Err(error) = self.file.sync_data()
        {
            self.fail("can't be synced to its disk", &error);
        }
    }
}

/// A line of an order's or a payment's commit.
fn is_step(line: &str) -> bool {
    matches!(line.as_bytes(), [b's' | b'a' | b'r' | b'S' | b'A' | b'R', b' ', ..])
}

fn start_syncing(inner: &Arc<Inner>) -> std::io::Result<(Sender<()>, JoinHandle<()>)> {
    let (stop, stopped) = channel::<()>();
    let inner = Arc::clone(inner);
    let sync = move || {
        while stopped.recv_timeout(SYNC_EVERY) == Err(RecvTimeoutError::Timeout) {
            inner.sync();
        }
        inner.sync();
    };
    let thread = std::thread::Builder::new().name("dyno-ledger".to_owned()).spawn(sync)?;
    Ok((stop, thread))
}

/// A new file is only there for good when its folder is on the disk, too.
fn sync_folder(path: &Path) -> std::io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    File::open(folder)?.sync_all()
}

fn begin_run(text: &mut String, target: &str, loaded: &TpccDatabase, seed: u64, before: &Books) {
    let target: String = target.chars().filter(|letter| !is_command(*letter)).collect();
    let (now, TpccDatabase { warehouses, c_last }) = (Timestamp::now().0, *loaded);
    // Writing into a String can't fail.
    let _ = writeln!(text, "run {now} {warehouses} {c_last} {seed} {target}");
    for (warehouse, district, next) in before.next_orders() {
        let _ = writeln!(text, "before {warehouse} {district} {next}");
    }
    text.push_str("begun\n");
}

/// True when the last line has no end.
fn is_cut_off(file: &mut File) -> std::io::Result<bool> {
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

/// Whether the database is the ledger's, and holds what it says and no more.
fn fits(
    path: &Path,
    recorded: &Recorded,
    loaded: &TpccDatabase,
    before: &Books,
) -> Result<(), Failure> {
    if recorded.runs == 0 {
        return Ok(());
    }
    recorded.is_of(loaded)?;
    for (warehouse, district, next) in before.next_orders() {
        let Some(books) = recorded.district(warehouse, district) else { continue };
        let grown = next - i64::from(books.before);
        let acknowledged = books.acknowledged.len() as i64;
        let most = acknowledged + books.unknown.len() as i64;
        if (acknowledged..=most).contains(&grown) {
            continue;
        }
        let found = format!(
            "The ledger {} has {acknowledged} acknowledged orders of district {district} of \
             warehouse {warehouse}, {} of unknown outcome, but the district grew by {grown}",
            path.display(),
            books.unknown.len()
        );
        return Err(match grown < acknowledged {
            true => Failure::new(format!("{found}: orders were lost, or it was built anew."))
                .with_hint("Check it with `dyno check`, and give the next run another ledger."),
            false => Failure::new(format!("{found}: others have entered orders since."))
                .with_hint("Give this run another ledger."),
        });
    }
    Ok(())
}
