//! One file that several threads write, each its chunk, in order.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What a chunk may hold back while it waits for its turn.
const HELD_MAX_BYTES: usize = 16 << 20;
/// Complete chunks that wait for an earlier one.
const WAITING_MAX: usize = 32;
/// How often a thread that waits looks whether all is over.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A file that is being written. It has its name only once it is complete.
pub(super) struct Sink {
    path: PathBuf,
    unfinished: PathBuf,
    chunks: u32,
    state: Mutex<State>,
    turned: Condvar,
}

#[derive(Default)]
struct State {
    file: Option<File>,
    /// The chunk whose turn it is.
    next: u32,
    waiting: BTreeMap<u32, Vec<u8>>,
    spare: Vec<Vec<u8>>,
    bytes: u64,
}

/// Why a chunk was not written.
pub(super) enum Unwritten {
    Failed(io::Error),
    /// All is over, because of something else.
    Over,
}

impl From<io::Error> for Unwritten {
    fn from(error: io::Error) -> Self {
        Unwritten::Failed(error)
    }
}

impl Sink {
    pub(super) fn new(path: PathBuf, chunks: u32) -> Sink {
        let mut unfinished = path.clone().into_os_string();
        unfinished.push(".part");
        let unfinished = PathBuf::from(unfinished);
        Sink { path, unfinished, chunks, state: Mutex::default(), turned: Condvar::new() }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn bytes(&self) -> u64 {
        self.lock().bytes
    }

    /// Takes a piece of a chunk if it is its turn, and waits for that when too much is held back.
    pub(super) fn piece(
        &self,
        chunk: u32,
        bytes: &mut Vec<u8>,
        over: &dyn Fn() -> bool,
    ) -> Result<(), Unwritten> {
        let mut state = self.lock();
        if state.next != chunk {
            if bytes.len() < HELD_MAX_BYTES {
                return Ok(());
            }
            state = self.wait(state, over, |state| state.next == chunk)?;
        }
        self.append(&mut state, bytes)?;
        bytes.clear();
        Ok(())
    }

    /// Takes the end of a chunk; leaves an empty buffer in its place.
    pub(super) fn end(
        &self,
        chunk: u32,
        bytes: &mut Vec<u8>,
        over: &dyn Fn() -> bool,
    ) -> Result<(), Unwritten> {
        let mut state = self.lock();
        if state.next != chunk && state.waiting.len() >= WAITING_MAX {
            let has_room = |state: &State| state.next == chunk || state.waiting.len() < WAITING_MAX;
            state = self.wait(state, over, has_room)?;
        }
        if state.next != chunk {
            let spare = state.spare.pop().unwrap_or_default();
            state.waiting.insert(chunk, std::mem::replace(bytes, spare));
            return Ok(());
        }
        self.append(&mut state, bytes)?;
        bytes.clear();
        state.next += 1;
        loop {
            let next = state.next;
            let Some(mut waiting) = state.waiting.remove(&next) else { break };
            self.append(&mut state, &waiting)?;
            waiting.clear();
            state.spare.push(waiting);
            state.next += 1;
        }
        self.turned.notify_all();
        if state.next == self.chunks {
            state.file = None;
            state.spare.clear();
            fs::rename(&self.unfinished, &self.path)?;
        }
        Ok(())
    }

    /// Removes what is unfinished: on a full disk it would be in the way of what comes next.
    pub(super) fn discard(&self) {
        let mut state = self.lock();
        if state.file.take().is_some() {
            // There is an earlier error to tell of.
            let _ = fs::remove_file(&self.unfinished);
        }
    }

    fn append(&self, state: &mut State, bytes: &[u8]) -> io::Result<()> {
        let file = match &mut state.file {
            Some(file) => file,
            none => none.insert(File::create(&self.unfinished)?),
        };
        file.write_all(bytes)?;
        state.bytes += bytes.len() as u64;
        Ok(())
    }

    fn wait<'a>(
        &self,
        mut state: MutexGuard<'a, State>,
        over: &dyn Fn() -> bool,
        ready: impl Fn(&State) -> bool,
    ) -> Result<MutexGuard<'a, State>, Unwritten> {
        while !ready(&state) {
            if over() {
                return Err(Unwritten::Over);
            }
            let woken = self.turned.wait_timeout(state, LOOK_EVERY);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(state)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
