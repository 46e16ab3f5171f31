//! Due times.
//!
//! The clocks of a loop.

use crate::event_loop::with_state;
use crate::stream::Io;
use dyno_core::{Nanos, SECOND};
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeSet;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

/// The time on the clock of this thread's loop (CLOCK_MONOTONIC outside a loop).
#[inline]
pub fn now() -> Nanos {
    crate::event_loop::current_time()
}

/// Waits until `due`. Returns at once when that has passed.
pub async fn sleep_until(due: Nanos) {
    let mut armed = false;
    poll_fn(|_| {
        if now() >= due {
            return Poll::Ready(());
        }
        if !armed {
            armed = true;
            with_state(|state| state.arm(due));
        }
        Poll::Pending
    })
    .await;
}

/// Lets all other ready tasks of the loop run once.
pub async fn yield_now() {
    let mut yielded = false;
    poll_fn(|_| {
        if yielded {
            return Poll::Ready(());
        }
        yielded = true;
        with_state(|state| state.wake_current());
        Poll::Pending
    })
    .await;
}

/// Makes a task of this thread's loop run in the next round; tasks are numbered from 0 in the order
/// in which the loop was given them. For the loop's owner and for tasks that wait for each other.
///
/// # Panics
/// When the loop has no task of this number.
pub fn wake(task: u32) {
    with_state(|state| state.wake(task));
}

/// Interval at which [`unless`] polls.
const CANCEL_POLL_INTERVAL: Nanos = SECOND / 10;

/// The result of `future`; `None` once `is_over`, which is polled ten times a second: the future is dropped then.
/// `future` gets that long even if it is over from the begin.
pub async fn unless<F: Future>(is_over: impl Fn() -> bool, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    loop {
        match timeout(now() + CANCEL_POLL_INTERVAL, future.as_mut()).await {
            Ok(output) => return Some(output),
            Err(Elapsed) if is_over() => return None,
            Err(Elapsed) => {}
        }
    }
}

/// The time given to [`timeout`] ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elapsed;

/// Drops `future` if it isn't done at `due`. For set-up, not for the hot path: the due time stays
/// in the loop's heap until it has passed.
pub async fn timeout<F: Future>(due: Nanos, future: F) -> Result<F::Output, Elapsed> {
    let mut future = pin!(future);
    let mut deadline = pin!(sleep_until(due));
    poll_fn(|context| {
        if let Poll::Ready(output) = future.as_mut().poll(context) {
            return Poll::Ready(Ok(output));
        }
        deadline.as_mut().poll(context).map(|()| Err(Elapsed))
    })
    .await
}

/// The time of a loop.
#[derive(Clone, Debug)]
pub enum Clock {
    /// CLOCK_MONOTONIC, the same on all loops of the machine, and how the loop speaks with its sockets.
    Monotonic(Io),
    /// Starts at 0 and jumps to the next due time when no task can run, without file descriptors.
    Virtual,
    /// A virtual clock of several loops; the number is this loop's.
    Shared(Arc<SharedTime>, usize),
}

/// CLOCK_MONOTONIC in nanoseconds. Inside tasks use [`crate::now`], which follows the loop's clock.
#[inline]
pub fn monotonic_now() -> Nanos {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// One virtual time for several loops, each on its own thread. Only the loop whose due time is the earliest runs,
/// of equal ones the one that has waited longest: the same tasks give the same run, to the nanosecond.
#[derive(Debug)]
pub struct SharedTime {
    turns: Mutex<Turns>,
    /// Indexed by the number of the loop.
    granted: Vec<Condvar>,
}

#[derive(Debug)]
struct Turns {
    /// Due time, place in the queue, number of the loop.
    waiting: BTreeSet<(Nanos, u64, usize)>,
    /// Loops that have not ended.
    live: usize,
    tickets: u64,
    running: Option<usize>,
}

impl SharedTime {
    pub fn new(loops: usize) -> Self {
        let turns =
            Turns { waiting: BTreeSet::new(), live: loops, tickets: loops as u64, running: None };
        SharedTime {
            turns: Mutex::new(turns),
            granted: (0..loops).map(|_| Condvar::new()).collect(),
        }
    }

    /// Waits for the first turn of a loop.
    pub(crate) fn enter(&self, number: usize) {
        self.queue(self.lock(), (0, number as u64, number));
    }

    /// Ends the turn of a loop; waits for its next one, at `due`.
    pub(crate) fn wait(&self, number: usize, due: Nanos) {
        let mut turns = self.lock();
        let ticket = turns.tickets;
        turns.tickets += 1;
        self.queue(turns, (due, ticket, number));
    }

    /// Ends the last turn of a loop.
    pub(crate) fn leave(&self) {
        let mut turns = self.lock();
        turns.live -= 1;
        self.grant(&mut turns);
    }

    /// Locks the turns, also after a panic.
    fn lock(&self) -> MutexGuard<'_, Turns> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until it is the loop's turn at this time.
    fn queue(&self, mut turns: MutexGuard<'_, Turns>, place: (Nanos, u64, usize)) {
        let number = place.2;
        turns.waiting.insert(place);
        self.grant(&mut turns);
        let granted = self.granted[number].wait_while(turns, |turns| turns.running != Some(number));
        drop(granted.unwrap_or_else(PoisonError::into_inner));
    }

    /// Gives the turn to the next loop once all of them wait.
    fn grant(&self, turns: &mut Turns) {
        turns.running = None;
        if turns.waiting.len() == turns.live
            && let Some((.., number)) = turns.waiting.pop_first()
        {
            turns.running = Some(number);
            self.granted[number].notify_one();
        }
    }
}
