//! The thread that watches over the streams: starts them together, stops what passes its bound or
//! what the user does not want any more, and collects what they tell.

use super::link::{Opening, interrupt};
use super::slot::Slot;
use super::stream::{News, Stream, Worker};
use crate::degree::Applied;
use dyno_core::{MILLISECOND, Nanos};
use dyno_load::{LoadError, while_doing};
use dyno_reactor::{block_on, monotonic_now};
use dyno_runner::watch::noted;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, channel, sync_channel};
use std::thread;
use std::time::Duration;

/// How often `stop` is asked.
const LOOK: Nanos = 50 * MILLISECOND;

/// Executes streams at the same time and calls `hear` with what they tell. Returns the degree as it
/// was set in the first session, and whether the user has stopped the trial.
///
/// # Errors
/// When a session can't be opened: then nothing was executed.
pub(super) fn execute(
    opening: &Opening<'_>,
    streams: Vec<Stream>,
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
        let mut gate = Gate { starts, opened: Vec::new(), first: None };
        loop {
            let now = monotonic_now();
            match heard.recv_timeout(Duration::from_nanos(next_look(&slots, now) - now)) {
                Ok(News::Ready(opened)) => gate.add(opened),
                Ok(news) => hear(news),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if !is_stopped.load(Ordering::Relaxed) && stop() {
                is_stopped.store(true, Ordering::Relaxed);
            }
            let user_stops = is_stopped.load(Ordering::Relaxed);
            for slot in &slots {
                if let Some(attempt) = slot.demand(monotonic_now(), user_stops) {
                    scope.spawn(move || {
                        // A failed attempt is followed by others.
                        let interruption =
                            interrupt(&opening.driver, &attempt.way, attempt.is_hard);
                        block_on(interruption).ok();
                        slot.attempted();
                    });
                }
            }
        }
        let ended: io::Result<()> = threads.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        ended.map_err(LoadError::Loop)?;
        let applied = gate.result().map_err(while_doing("opening a session"))?;
        Ok((applied, is_stopped.load(Ordering::Relaxed)))
    })
}

/// When somebody has to look again.
fn next_look(slots: &[Slot], now: Nanos) -> Nanos {
    let due = slots.iter().filter_map(Slot::due).min();
    due.map_or(now + LOOK, |due| due.clamp(now, now + LOOK))
}

/// Lets the streams start when all sessions are open, and none when one is not.
struct Gate {
    starts: Vec<SyncSender<Option<Nanos>>>,
    opened: Vec<Result<(), dyno_core::DbError>>,
    first: Option<Applied>,
}

impl Gate {
    fn add(&mut self, opened: Result<Applied, dyno_core::DbError>) {
        self.opened.push(opened.map(|applied| {
            self.first.get_or_insert(applied);
        }));
        if self.opened.len() == self.starts.len() {
            let are_open = self.opened.iter().all(Result::is_ok);
            let began = are_open.then(monotonic_now);
            for start in &self.starts {
                start.send(began).ok();
            }
        }
    }

    fn result(self) -> Result<Applied, dyno_core::DbError> {
        self.opened.into_iter().collect::<Result<Vec<()>, _>>()?;
        Ok(self.first.unwrap_or_default())
    }
}
