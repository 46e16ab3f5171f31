//! Reactions to errors.

use dyno_core::{Cause, DbError, ErrorClass, MILLISECOND, Nanos, SECOND};

/// A set of errors, by class or by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorSet {
    pub all: bool,
    pub classes: Vec<ErrorClass>,
    /// MySQL or SQLite numbers.
    pub errnos: Vec<u32>,
    /// Five letters each.
    pub sqlstates: Vec<String>,
}

impl ErrorSet {
    /// Returns true if the class, number or SQLSTATE of the error is in the set.
    pub fn contains(&self, error: &DbError) -> bool {
        self.all
            || self.classes.contains(&error.class())
            || self.errnos.contains(&error.errno())
            || self.sqlstates.iter().any(|state| state == error.sqlstate())
    }
}

/// A reaction to an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Try the transaction again, rolled back first unless the workload says no.
    Retry,
    /// Count the transaction as failed and continue.
    Fail,
    /// Count the transaction as failed and end its worker.
    Retire,
    /// End the trial.
    Abort,
}

/// Reactions to errors of attempts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorPolicy {
    pub retry: ErrorSet,
    /// Attempts beyond the first one; `None` is not a limit.
    pub max_retries: Option<u32>,
    /// Errors that are counted and survived without a retry.
    pub tolerate: ErrorSet,
    /// Connect again after a lost connection; else the policy doesn't survive that.
    pub reconnect: bool,
    /// An error that the policy doesn't survive ends its worker only, as in pgbench; else the trial.
    pub retire: bool,
    /// Errors after which a session is replaced although it is not lost: its server no longer suits the workload.
    pub replace: ErrorSet,
    /// Pause of a worker after a failed transaction, to spare a broken server.
    pub pause: Nanos,
    /// Longest pause between two attempts to connect again.
    pub reconnect_pause_max: Nanos,
    /// Time for which a worker tries to reconnect before that ends the trial; `None` is until the trial ends.
    pub outage_max: Option<Nanos>,
}

impl ErrorPolicy {
    /// For dyno's own verbs: up to ten retries after conflicts, new sessions for lost ones (for 20 s), counted
    /// constraint violations. Other errors end the trial: the load isn't the workload then.
    pub fn resilient() -> Self {
        ErrorPolicy {
            retry: ErrorSet {
                classes: vec![
                    ErrorClass::Serialization,
                    ErrorClass::Deadlock,
                    ErrorClass::LockTimeout,
                ],
                ..ErrorSet::default()
            },
            max_retries: Some(10),
            tolerate: ErrorSet {
                classes: vec![
                    ErrorClass::Serialization,
                    ErrorClass::Deadlock,
                    ErrorClass::LockTimeout,
                    ErrorClass::Constraint,
                ],
                ..ErrorSet::default()
            },
            reconnect: true,
            retire: false,
            replace: ErrorSet::default(),
            pause: 10 * MILLISECOND,
            reconnect_pause_max: 500 * MILLISECOND,
            outage_max: Some(20 * SECOND),
        }
    }

    /// For runs over a failover: as [`ErrorPolicy::resilient`], but all errors of the server are counted and survived.
    /// The caller has to check them: with others than conflicts and lost connections the run has not passed.
    pub fn enduring() -> Self {
        ErrorPolicy {
            tolerate: ErrorSet { all: true, ..ErrorSet::default() },
            outage_max: None,
            ..ErrorPolicy::resilient()
        }
    }

    /// For trials in which a node fails: as [`ErrorPolicy::enduring`], but replaces sessions to a server that has
    /// become read-only, and reconnects each 50 ms, to time the outage exactly.
    pub fn following() -> Self {
        ErrorPolicy {
            replace: ErrorSet {
                // MySQL and MariaDB: --read-only or --super-read-only, a read-only transaction, a shutdown.
                errnos: vec![1290, 1792, 1836, 1053],
                // PostgreSQL: read_only_sql_transaction.
                sqlstates: vec!["25006".to_owned()],
                ..ErrorSet::default()
            },
            reconnect_pause_max: 50 * MILLISECOND,
            ..ErrorPolicy::enduring()
        }
    }

    /// Decides about `error` of attempt `attempt` (from 0).
    pub fn action(&self, error: &DbError, attempt: u32) -> Action {
        let end = if self.retire { Action::Retire } else { Action::Abort };
        let is_lost = error.is_fatal() && !self.reconnect;
        if is_lost || error.cause() == Cause::Workload {
            return end;
        }
        let may_retry = self.max_retries.is_none_or(|limit| attempt < limit);
        if self.retry.contains(error) && may_retry {
            return Action::Retry;
        }
        let survives = error.is_fatal()
            || self.tolerate.contains(error)
            || (self.retry.contains(error) && self.max_retries.is_some());
        if survives { Action::Fail } else { end }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(class: ErrorClass, errno: u32) -> DbError {
        DbError::server(class, errno, *b"HY000", "words")
    }

    #[test]
    fn the_resilient_policy_retries_conflicts_and_stops_at_surprises() {
        let policy = ErrorPolicy::resilient();
        let deadlock = error(ErrorClass::Deadlock, 1213);
        assert_eq!(policy.action(&deadlock, 0), Action::Retry);
        assert_eq!(policy.action(&deadlock, 10), Action::Fail);
        assert_eq!(policy.action(&error(ErrorClass::Constraint, 1062), 0), Action::Fail);
        assert_eq!(policy.action(&DbError::lost("gone"), 0), Action::Fail);
        assert_eq!(policy.action(&error(ErrorClass::Other, 1146), 0), Action::Abort);
    }

    #[test]
    fn the_enduring_policy_survives_a_server_that_takes_no_writes() {
        let policy = ErrorPolicy::enduring();
        assert_eq!(policy.action(&error(ErrorClass::Other, 1290), 0), Action::Fail);
        assert_eq!(policy.action(&error(ErrorClass::Deadlock, 1213), 0), Action::Retry);
        assert_eq!(policy.action(&DbError::workload("the ledger is full"), 0), Action::Abort);
    }

    #[test]
    fn a_lost_connection_ends_the_trial_without_reconnect() {
        let policy = ErrorPolicy { reconnect: false, ..ErrorPolicy::resilient() };
        assert_eq!(policy.action(&DbError::lost("gone"), 0), Action::Abort);
    }

    #[test]
    fn what_is_not_survived_ends_the_worker_or_the_trial() {
        let policy = ErrorPolicy { retire: true, reconnect: false, ..ErrorPolicy::resilient() };
        assert_eq!(policy.action(&DbError::lost("gone"), 0), Action::Retire);
        assert_eq!(policy.action(&error(ErrorClass::Other, 1146), 0), Action::Retire);
        assert_eq!(policy.action(&error(ErrorClass::Constraint, 1062), 0), Action::Fail);
    }

    #[test]
    fn no_policy_survives_a_workload_that_can_not_go_on() {
        let tolerate = ErrorSet { all: true, ..ErrorSet::default() };
        let policy = ErrorPolicy { tolerate, ..ErrorPolicy::resilient() };
        assert_eq!(policy.action(&DbError::workload("division by zero"), 0), Action::Abort);
        let policy = ErrorPolicy { retire: true, ..policy };
        assert_eq!(policy.action(&DbError::workload("division by zero"), 0), Action::Retire);
    }

    #[test]
    fn sets_match_numbers_states_and_everything() {
        let set = ErrorSet { errnos: vec![1205], ..ErrorSet::default() };
        assert!(set.contains(&error(ErrorClass::Other, 1205)));
        assert!(!set.contains(&error(ErrorClass::Other, 1206)));
        let set = ErrorSet { sqlstates: vec!["HY000".into()], ..ErrorSet::default() };
        assert!(set.contains(&error(ErrorClass::Other, 0)));
        assert!(ErrorSet { all: true, ..ErrorSet::default() }.contains(&DbError::lost("x")));
    }
}
