//! Due times.

use crate::event_loop::with_state;
use dyno_core::{Nanos, SECOND};
use std::future::{Future, poll_fn};
use std::pin::pin;
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

/// How often [`unless`] asks.
const ASK_EVERY: Nanos = SECOND / 10;

/// What `future` gives; `None` once `is_over`, which is asked ten times a second: the future is dropped then.
/// It is given that long also where it is over from the begin.
pub async fn unless<F: Future>(is_over: impl Fn() -> bool, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    loop {
        match timeout(now() + ASK_EVERY, future.as_mut()).await {
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
