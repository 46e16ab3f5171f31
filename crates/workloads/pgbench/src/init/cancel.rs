//! Giving up work whose result nobody waits for any more.

use super::observer::InitObserver;
use dyno_core::{MILLISECOND, Nanos};
use dyno_reactor::{now, timeout};
use std::pin::pin;

/// How often the observer is asked.
const LOOK: Nanos = 100 * MILLISECOND;

/// The output of `work`; `None` when the observer wanted the end first: `work` is dropped where it
/// waited, so that a COPY in progress never gets its end and nothing of it is stored.
pub(crate) async fn unless_canceled<F: Future>(
    observer: &dyn InitObserver,
    work: F,
) -> Option<F::Output> {
    let mut work = pin!(work);
    loop {
        if let Ok(output) = timeout(now().saturating_add(LOOK), work.as_mut()).await {
            return Some(output);
        }
        if observer.is_canceled() {
            return None;
        }
    }
}
