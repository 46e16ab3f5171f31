//! The thread that watches over the streams: starts them together, stops them when the user wants it, and collects what
//! they tell.

use super::stream::{News, Opening, Stream, Worker};
use crate::degree::Applied;
use dyno_core::{DbError, Interrupter, MILLISECOND, Nanos};
use dyno_load::{LoadError, while_doing};
use dyno_reactor::{block_on, monotonic_now};
use dyno_runner::watch::noted;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How often `stop` is asked, and streams look whether they are to stop.
pub(super) const LOOK: Nanos = 50 * MILLISECOND;

/// Executes streams at the same time and calls `hear` with what they tell. Times are counted from `origin`, or from the
/// start. Returns the degree as it was set in the first session, and whether the user has stopped the trial.
///
/// # Errors
/// When a session can't be opened: then nothing was executed.
pub(super) fn execute(
    opening: &Opening<'_>,
    streams: Vec<Stream>,
    origin: Option<Nanos>,
    stop: &(dyn Fn() -> bool + Sync),
    hear: &mut dyn FnMut(News),
) -> Result<(Applied, bool), LoadError> {
    let slots: Vec<Slot> = streams.iter().map(|_| Slot::default()).collect();
    let is_stopped = AtomicBool::new(false);
    let (news, heard) = channel();
    thread::scope(|scope| {
        let mut starts = Vec::new();
        let mut threads = Vec::new();
        for (stream, (number, slot)) in streams.into_iter().zip((0..).zip(&slots)) {
            let (start, started) = sync_channel(1);
            starts.push(start);
            let is_stopped = &is_stopped;
            let news = news.clone();
            threads.push(scope.spawn(move || {
                let link = None;
                let worker = Worker { opening, slot, is_stopped, news, number, link, began: 0 };
                block_on(noted("opening a session", worker.run(stream, started)))
            }));
        }
        drop(news);
        // The streams start when all sessions are open, and none when one is not.
        let mut opened = Vec::new();
        loop {
            let now = monotonic_now();
            match heard.recv_timeout(Duration::from_nanos(next_look(&slots, now) - now)) {
                Ok(News::Ready(session)) => {
                    opened.push(session);
                    if opened.len() == starts.len() {
                        let began = origin.unwrap_or_else(monotonic_now);
                        let began = opened.iter().all(Result::is_ok).then_some(began);
                        began.map(News::Started).into_iter().for_each(&mut *hear);
                        for start in &starts {
                            start.send(began).ok();
                        }
                    }
                }
                Ok(news) => hear(news),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if !is_stopped.load(Ordering::Relaxed) && stop() {
                is_stopped.store(true, Ordering::Relaxed);
            }
            let user_stops = is_stopped.load(Ordering::Relaxed);
            slots.iter().for_each(|slot| slot.look(monotonic_now(), user_stops));
        }
        let ended: io::Result<()> = threads.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        ended.map_err(LoadError::Loop)?;
        let opened: Result<Vec<Applied>, DbError> = opened.into_iter().collect();
        let opened = opened.map_err(while_doing("opening a session"))?;
        let first = opened.into_iter().next().unwrap_or_default();
        Ok((first, is_stopped.load(Ordering::Relaxed)))
    })
}

/// When somebody has to look again.
fn next_look(slots: &[Slot], now: Nanos) -> Nanos {
    let due = slots.iter().filter_map(Slot::due).min();
    due.map_or(now + LOOK, |due| due.clamp(now, now + LOOK))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StopReason {
    /// It has passed its bound.
    Bound,
    /// The user has ended the trial.
    User,
}

/// The statement of an embedded database that a stream is executing. It blocks the stream's thread: another one has to
/// stop it.
#[derive(Default)]
pub(super) struct Slot(Mutex<Option<EmbeddedStatement>>);

struct EmbeddedStatement {
    interrupter: Interrupter,
    due: Option<Nanos>,
    why: Option<StopReason>,
}

impl Slot {
    /// A statement is about to be executed that is to be stopped at `due`; there is no interrupter of a server's.
    pub(super) fn begin(&self, interrupter: Option<Interrupter>, due: Option<Nanos>) {
        let running = |interrupter| EmbeddedStatement { interrupter, due, why: None };
        *self.lock() = interrupter.map(running);
    }

    /// The statement has ended, and is not stopped any more. Returns why it was to be stopped.
    pub(super) fn end(&self) -> Option<StopReason> {
        self.lock().take().and_then(|running| running.why)
    }

    /// When the statement has to be stopped; `None` without a bound or when that has begun.
    fn due(&self) -> Option<Nanos> {
        self.lock().as_ref().filter(|running| running.why.is_none())?.due
    }

    /// Stops a statement that is to be stopped, again and again: an attempt before its first step is lost.
    fn look(&self, now: Nanos, user_stops: bool) {
        let mut running = self.lock();
        let Some(EmbeddedStatement { interrupter, due, why }) = &mut *running else { return };
        let is_due = due.is_some_and(|due| now >= due);
        let reason = if user_stops { Some(StopReason::User) } else { None };
        *why = why.or(reason).or(is_due.then_some(StopReason::Bound));
        if why.is_some() {
            interrupter();
        }
    }

    /// What a panicking holder leaves is whole: every change is one assignment.
    fn lock(&self) -> MutexGuard<'_, Option<EmbeddedStatement>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU32;

    #[test]
    fn an_embedded_statement_is_stopped_at_its_bound_and_not_before() {
        let attempts = Arc::new(AtomicU32::new(0));
        let interrupter = || -> Option<Interrupter> {
            let attempts = Arc::clone(&attempts);
            Some(Box::new(move || {
                attempts.fetch_add(1, Ordering::Relaxed);
            }))
        };
        let made = || attempts.load(Ordering::Relaxed);
        let slot = Slot::default();
        slot.look(9, true);
        slot.begin(interrupter(), Some(100));
        assert_eq!((slot.due(), made()), (Some(100), 0), "nothing is executed");
        slot.look(99, false);
        assert_eq!(made(), 0);
        slot.look(100, false);
        slot.look(101, true);
        assert_eq!((slot.due(), made()), (None, 2));
        assert_eq!(slot.end(), Some(StopReason::Bound));
        slot.look(102, true);
        assert_eq!(made(), 2, "the next one is not hit");
        slot.begin(interrupter(), None);
        slot.look(Nanos::MAX, false);
        assert_eq!((slot.end(), made()), (None, 2), "it has no bound");
    }
}
