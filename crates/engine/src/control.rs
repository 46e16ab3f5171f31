//! Stopping and following a trial from outside.
//!
//! The meeting of loops between connecting and running.

use std::fs;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};

use dyno_core::{DbError, DbResult, Nanos};
use rustix::mm::{Advice, madvise};

use crate::record::Window;
use crate::trial::TrialSpec;

/// Shared with a signal handler: stops a running trial and keeps its measurements.
#[derive(Default)]
pub struct Control {
    stop: AtomicBool,
    start: Option<Start>,
    refused: Option<Refused>,
}

/// Gets the time at which all connected workers could start; returns the time at which they start, on this machine's
/// monotonic clock, or `None` for a trial that must not start. May wait.
pub type Start = Box<dyn Fn(Nanos) -> Option<Nanos> + Send + Sync>;

/// Gets the number and the error of a worker whose connection failed, on the thread of its loop.
pub type Refused = Box<dyn Fn(u32, &DbError) + Send + Sync>;

impl std::fmt::Debug for Control {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Control").field("stop", &self.stop).finish_non_exhaustive()
    }
}

impl Control {
    pub fn new() -> Self {
        Self::default()
    }

    /// A control whose `start` decides when the trial starts.
    pub fn starting(start: Start) -> Self {
        Control { start: Some(start), ..Control::default() }
    }

    /// A control that passes refused sessions to `refused`.
    pub fn following(refused: Refused) -> Self {
        Control { refused: Some(refused), ..Control::default() }
    }

    /// Reports the failed session of worker `number`.
    pub(crate) fn opened<S>(&self, number: u32, session: DbResult<S>) -> DbResult<S> {
        if let (Err(error), Some(refused)) = (&session, &self.refused) {
            refused(number, error);
        }
        session
    }

    /// The start of workers that could start at `now`.
    pub(crate) fn start_at(&self, now: Nanos) -> Option<Nanos> {
        match &self.start {
            Some(start) => start(now),
            None => Some(now),
        }
    }

    /// Loops check at least every tenth of a second.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// After a stop that was meant for one trial: the next one may begin.
    pub fn resume(&self) {
        self.stop.store(false, Ordering::Relaxed);
    }

    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

pub(crate) struct StartGate {
    /// Loops that have arrived, and all loops.
    meeting: Mutex<(usize, usize)>,
    complete: Condvar,
    /// Set by the first loop after the meeting; `None` when the trial can't begin.
    release: OnceLock<Option<Release>>,
    pub(crate) begin: Nanos,
}

/// The start of the workers.
#[derive(Clone, Copy)]
pub(crate) struct Release {
    /// The time at which all could start.
    pub(crate) ready: Nanos,
    pub(crate) window: Window,
}

impl StartGate {
    pub(crate) fn new(loops: usize, begin: Nanos) -> Self {
        StartGate {
            meeting: Mutex::new((0, loops)),
            complete: Condvar::new(),
            release: OnceLock::new(),
            begin,
        }
    }

    /// Expects `loops` loops only.
    pub(crate) fn expect_only(&self, loops: usize) {
        self.meeting.lock().unwrap_or_else(PoisonError::into_inner).1 = loops;
        self.complete.notify_all();
    }

    /// Counts a loop as ready and wakes those that wait for it.
    pub(crate) fn arrive(&self) {
        self.meeting.lock().unwrap_or_else(PoisonError::into_inner).0 += 1;
        self.complete.notify_all();
    }

    pub(crate) fn is_complete(&self) -> bool {
        let meeting = self.meeting.lock().unwrap_or_else(PoisonError::into_inner);
        meeting.0 >= meeting.1
    }

    /// Number of loops that the gate waits for.
    pub(crate) fn loops(&self) -> usize {
        self.meeting.lock().unwrap_or_else(PoisonError::into_inner).1
    }

    /// Waits for all loops.
    pub(crate) fn wait(&self) {
        let meeting = self.meeting.lock().unwrap_or_else(PoisonError::into_inner);
        drop(
            self.complete
                .wait_while(meeting, |(arrived, expected)| *arrived < *expected)
                .unwrap_or_else(PoisonError::into_inner),
        );
    }

    /// Agrees on the window at `now`, after the meeting.
    pub(crate) fn pass(
        &self,
        now: impl Fn() -> Nanos,
        spec: &TrialSpec,
        start: impl Fn(Nanos) -> Option<Nanos>,
    ) -> Option<Window> {
        let release = self.release.get_or_init(|| {
            let ready = now();
            let released = start(ready)?;
            let opens = released + spec.warmup;
            let closes = if spec.finish_begun { Nanos::MAX } else { spec.ends(opens) };
            Some(Release {
                ready,
                window: Window { released, opens, closes, interval: spec.interval },
            })
        });
        release.map(|release| release.window)
    }

    /// The start, if there was one.
    pub(crate) fn release(&self) -> Option<Release> {
        self.release.get().copied().flatten()
    }
}

/// Gives back pages of code and constants, which only the start of the program has needed: the kernel maps 64 kB around
/// each that is touched. What is needed later comes back from the page cache, by a fault each.
#[expect(unsafe_code, reason = "only the kernel can unmap pages")]
pub fn give_back_pages() {
    let text = fs::read_to_string("/proc/self/smaps").unwrap_or_default();
    for range in unchanged_files(&text) {
        let start = std::ptr::with_exposed_provenance_mut(range.start);
        // SAFETY: these pages hold what their file holds, and the process can't write to them: the next read of one
        // finds the same bytes. A refusal leaves them where they are.
        let _ = unsafe { madvise(start, range.len(), Advice::LinuxDontNeed) };
    }
}

/// Addresses of what is mapped from files for reading alone, without a page that differs from its file (relocations, a
/// debugger's breakpoints).
fn unchanged_files(smaps: &str) -> impl Iterator<Item = Range<usize>> {
    let mut mapping = None;
    smaps.lines().filter_map(move |line| {
        if let Some(found) = mapped_file(line) {
            mapping = found;
        }
        let is_unchanged =
            line.strip_prefix("Anonymous:").is_some_and(|size| size.trim() == "0 kB");
        mapping.take_if(|_| is_unchanged)
    })
}

/// The range of the first line of a mapping: its addresses, if it is a file that can only be read. `None` for other lines.
fn mapped_file(line: &str) -> Option<Option<Range<usize>>> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let range = usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?;
    let is_for_reading = words.next().is_some_and(|rights| matches!(rights, "r-xp" | "r--p"));
    // Behind offset, device and inode. `[vdso]` is not a file.
    let is_file = words.nth(3).is_some_and(|path| path.starts_with('/'));
    Some((is_for_reading && is_file).then_some(range))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMAPS: &str = "\
1000-3000 r--p 00000000 fe:00 7 /usr/bin/dyno
Rss: 8 kB
Anonymous: 0 kB
VmFlags: rd mr mw me sd
3000-5000 r-xp 00002000 fe:00 7 /usr/bin/a program
Anonymous:             0 kB
5000-6000 r--p 00004000 fe:00 7 /usr/bin/dyno
Anonymous:             4 kB
6000-7000 rw-p 00005000 fe:00 7 /usr/bin/dyno
Anonymous:             0 kB
7000-8000 r--s 00000000 fe:00 9 /tmp/shared
Anonymous:             0 kB
8000-9000 r--p 00000000 00:00 0 
Anonymous:             0 kB
9000-a000 r-xp 00000000 00:00 0 [vdso]
Anonymous:             0 kB
";

    #[test]
    fn only_unchanged_files_are_given_back() {
        let ranges: Vec<_> = unchanged_files(SMAPS).collect();
        assert_eq!(ranges, [0x1000..0x3000, 0x3000..0x5000]);
        assert_eq!(unchanged_files("").count(), 0);
    }

    #[test]
    fn the_program_goes_on_with_fewer_pages() {
        let before_kb = read_files_kb();
        give_back_pages();
        let after_kb = read_files_kb();
        assert!(after_kb < before_kb, "{before_kb} and then {after_kb} kB");
    }

    /// Memory of this process that holds pages of files, in kB.
    fn read_files_kb() -> u64 {
        let status = fs::read_to_string("/proc/self/status").expect("its own");
        let line = status.lines().find(|line| line.starts_with("RssFile:")).expect("Linux has it");
        line.split_ascii_whitespace().nth(1).and_then(|kb| kb.parse().ok()).expect("a number")
    }
}
