//! What one stream is executing, shared with the thread that watches over all of them.

use dyno_core::{Interrupter, Nanos, SECOND};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Between two attempts to stop the same statement.
const RETRY: Nanos = 2 * SECOND;
/// The same within this process, where an attempt costs nothing, and one that comes before the first
/// step of the statement is lost.
const RETRY_EMBEDDED: Nanos = SECOND / 20;
/// Attempts after which the whole connection is to go.
const GENTLE_ATTEMPTS: u32 = 2;
/// How long the server gets to stop a statement before nobody waits for it any more.
const PATIENCE: Nanos = 12 * SECOND;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StopReason {
    /// It has passed its bound.
    Bound,
    /// The user has ended the trial.
    User,
}

/// How the statements of a session are stopped.
pub(super) enum StopMethod {
    /// From another thread of this process.
    Embedded(Interrupter),
    /// By a second session to the same host.
    Server {
        /// With which the session was connected; picks the host.
        number: u32,
        /// The server's own number of the session.
        id: String,
    },
}

/// One attempt to stop a statement, to be made without holding the slot.
pub(super) struct Attempt {
    pub(super) way: Arc<StopMethod>,
    /// Whether the connection is to go with the statement: it was asked politely before.
    pub(super) is_hard: bool,
}

#[derive(Default)]
pub(super) struct Slot {
    state: Mutex<State>,
    calm: Condvar,
}

#[derive(Default)]
struct State {
    way: Option<Arc<StopMethod>>,
    running: Option<Running>,
    /// An attempt is being made: what follows must not begin, or it would be hit.
    is_attempted: bool,
}

struct Running {
    due: Option<Nanos>,
    why: Option<StopReason>,
    attempts: u32,
    next_attempt: Nanos,
    /// When nobody waits for it any more.
    given_up_at: Option<Nanos>,
}

impl Slot {
    /// Says how the statements of the stream's session are stopped; `None` while there is no
    /// session.
    pub(super) fn arm(&self, way: Option<StopMethod>) {
        self.state().way = way.map(Arc::new);
    }

    /// A statement is about to be sent that is to be stopped at `due`.
    pub(super) fn begin(&self, due: Option<Nanos>) {
        let (why, attempts, next_attempt, given_up_at) = (None, 0, 0, None);
        self.state().running = Some(Running { due, why, attempts, next_attempt, given_up_at });
    }

    /// The statement has ended. Waits until nobody is about to stop it any more, so that the next
    /// one is not hit, and returns why it was to be stopped.
    pub(super) fn end(&self) -> Option<StopReason> {
        let state = self.calm.wait_while(self.state(), |state| state.is_attempted);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        state.running.take().and_then(|running| running.why)
    }

    /// True when the server has not answered in spite of all attempts.
    pub(super) fn is_given_up(&self, now: Nanos) -> bool {
        let state = self.state();
        state.running.as_ref().and_then(|r| r.given_up_at).is_some_and(|at| now >= at)
    }

    /// When the statement has to be stopped; `None` without a bound or when that has begun.
    pub(super) fn due(&self) -> Option<Nanos> {
        self.state().running.as_ref().filter(|running| running.why.is_none())?.due
    }

    /// The attempt to make now, if any; [`Slot::attempted`] must follow it.
    pub(super) fn demand(&self, now: Nanos, user_stops: bool) -> Option<Attempt> {
        let mut state = self.state();
        let State { way, running, is_attempted } = &mut *state;
        let running = running.as_mut()?;
        if running.why.is_none() {
            running.why = if user_stops {
                Some(StopReason::User)
            } else {
                running.due.filter(|due| now >= *due).map(|_| StopReason::Bound)
            };
        }
        running.why?;
        running.given_up_at.get_or_insert(now + PATIENCE);
        let is_time = !*is_attempted && now >= running.next_attempt;
        let way = way.as_ref().filter(|_| is_time)?;
        let is_hard = running.attempts >= GENTLE_ATTEMPTS;
        running.attempts += 1;
        let retry = if matches!(**way, StopMethod::Embedded(_)) { RETRY_EMBEDDED } else { RETRY };
        running.next_attempt = now + retry;
        *is_attempted = true;
        Some(Attempt { way: Arc::clone(way), is_hard })
    }

    pub(super) fn attempted(&self) {
        self.state().is_attempted = false;
        self.calm.notify_all();
    }

    /// What a panicking holder leaves is whole: every change is one assignment.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn armed() -> Slot {
        let slot = Slot::default();
        slot.arm(Some(StopMethod::Server { number: 0, id: "7".to_owned() }));
        slot
    }

    #[test]
    fn a_statement_is_stopped_at_its_bound_and_not_before() {
        let slot = armed();
        assert!(slot.demand(9, true).is_none(), "nothing is executed");
        slot.begin(Some(100));
        assert_eq!(slot.due(), Some(100));
        assert!(slot.demand(99, false).is_none());
        assert!(!slot.demand(100, false).unwrap().is_hard);
        assert_eq!(slot.due(), None);
        slot.attempted();
        assert_eq!(slot.end(), Some(StopReason::Bound));
        slot.begin(None);
        assert!(slot.demand(Nanos::MAX / 2, false).is_none(), "it has no bound");
        assert_eq!(slot.end(), None);
    }

    #[test]
    fn attempts_become_harder_and_nobody_waits_for_ever() {
        let slot = armed();
        slot.begin(None);
        let mut hard = Vec::new();
        for round in 0..4 {
            let attempt = slot.demand(round * RETRY, true).unwrap();
            assert!(slot.demand(round * RETRY, true).is_none(), "one at a time");
            hard.push(attempt.is_hard);
            slot.attempted();
            assert!(slot.demand(round * RETRY + 1, true).is_none(), "not at once");
        }
        assert_eq!(hard, [false, false, true, true]);
        assert!(!slot.is_given_up(PATIENCE - 1) && slot.is_given_up(PATIENCE));
        assert_eq!(slot.end(), Some(StopReason::User));
        assert!(!slot.is_given_up(PATIENCE));
    }
}
