//! What a trial is asked to do and what it gives back.

use crate::ErrorPolicy;
use crate::share::Share;
use dyno_core::{DbError, Nanos, SECOND};
use dyno_facts::{GeneratorConditions, HostSample};
use dyno_record::{Frame, Window};
use serde::{Deserialize, Serialize};

/// One trial: how many workers do what for how long.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialSpec {
    /// Workers, at least 1.
    pub workers: u32,
    /// Loops (threads); `None` takes one per core. Never more than one per worker; sessions that
    /// block get a loop each.
    pub loops: Option<u32>,
    /// Runs before the measured window opens.
    pub warmup: Nanos,
    /// Length of the window; `None` when only `events` ends the trial.
    pub duration: Option<Nanos>,
    /// Transactions to execute in the window, those in flight when it opens among them; `None` is
    /// no limit.
    pub events: Option<u64>,
    /// The same for each worker on its own, failed and skipped transactions among them.
    pub events_per_worker: Option<u64>,
    /// Nothing begins after `duration`, but the window stays open until what had begun has ended
    /// (pgbench). Without it the window is exactly `duration` long.
    pub finish_begun: bool,
    /// Every transaction gets a session of its own, connected before it begins and closed after
    /// it. Only transactions with a schedule have that in their latency.
    pub connect_each: bool,
    /// With a schedule: transactions that could begin only this late are skipped. In any case
    /// there is no further attempt once this long has passed since the due time.
    pub late_limit: Option<Nanos>,
    /// Arrivals per second over all workers, a Poisson process; `None` is a closed loop.
    pub rate_per_s: Option<f64>,
    /// Arrivals come at even gaps instead.
    pub even_rate: bool,
    /// Users with pauses of their own, whose transactions the workers execute, each when it is due
    /// and a worker is free; `None`: each worker is its own user. Not together with `rate_per_s`,
    /// which counts for nothing then. The workload must have terminals
    /// ([`dyno_core::Workload::seat`]).
    pub terminals: Option<u32>,
    /// Which part of a trial over several load generators this is.
    pub share: Share,
    /// Length of an interval.
    pub interval: Nanos,
    /// Seed of all random streams.
    pub seed: u64,
    /// What follows an error.
    pub errors: ErrorPolicy,
    /// How long transactions in flight may take to end after the window has closed, before their
    /// connections are cut. At most 2 s after a request to stop.
    pub drain: Nanos,
    /// Time limit for connecting and preparing all workers.
    pub connect_limit: Nanos,
    /// An attempt of a transaction, or a new connection in the place of a lost one, that takes longer is
    /// given up: the session counts as lost. `None` waits as long as the server and the system do. It is
    /// looked at each 100 ms.
    pub answer_limit: Option<Nanos>,
}

impl TrialSpec {
    /// A closed loop of `workers` workers for ten seconds, with dyno's own error policy.
    pub fn closed(workers: u32) -> Self {
        TrialSpec {
            workers,
            loops: None,
            warmup: 0,
            duration: Some(10 * SECOND),
            events: None,
            events_per_worker: None,
            finish_begun: false,
            connect_each: false,
            late_limit: None,
            rate_per_s: None,
            even_rate: false,
            terminals: None,
            share: Share::default(),
            interval: SECOND,
            seed: 1,
            errors: ErrorPolicy::resilient(),
            drain: 60 * SECOND,
            connect_limit: 60 * SECOND,
            answer_limit: None,
        }
    }

    /// True when transactions have due times: latency counts from these.
    pub(crate) fn is_scheduled(&self) -> bool {
        self.rate_per_s.is_some() || self.terminals.is_some()
    }
}

/// Why a trial came to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ended {
    /// The window closed as planned.
    Time,
    /// The count of transactions was reached.
    Events,
    /// [`crate::Control::stop`].
    Interrupted,
    /// An error that the policy doesn't survive.
    Aborted(#[serde(with = "crate::wire::DbErrorForm")] DbError),
    /// The load generator has miscounted: not all transactions that were started have ended or are in flight.
    Miscounted {
        /// Transactions that were started in the window.
        started: u64,
        /// Those of them that ended in it.
        ended: u64,
        /// Those that had not ended when it closed.
        in_flight: u64,
    },
}

impl Ended {
    /// Why the trial failed, in a sentence.
    pub fn failure(&self) -> Option<String> {
        match self {
            Ended::Time | Ended::Events | Ended::Interrupted => None,
            Ended::Aborted(error) => Some(error.to_string()),
            Ended::Miscounted { started, ended, in_flight } => Some(format!(
                "{started} transactions were started, but {ended} ended and {in_flight} were in flight: the load \
                 generator has miscounted."
            )),
        }
    }
}

/// What one worker did in the measured window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerStats {
    /// Transactions that ended without an error.
    pub transactions: u64,
    /// Time inside transactions.
    pub busy: Nanos,
    /// Sessions opened for single transactions ([`TrialSpec::connect_each`]).
    pub connects: u64,
    /// Time for opening them.
    pub connecting: Nanos,
}

/// What a trial gives back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialResult {
    /// Everything measured in the window.
    pub total: Frame,
    /// The window as it was; `closes` is its actual end.
    pub window: Window,
    /// From the first connect until all workers were ready.
    pub connect: Nanos,
    /// How long after `window.released` the last loop let its workers go.
    pub late: Nanos,
    /// Why it ended.
    pub ended: Ended,
    /// Per worker, in their order.
    pub workers: Vec<WorkerStats>,
    /// Arrivals that fell into the window: transactions that became due in it. `None` where each
    /// worker begins one when the last one has ended.
    pub offered: Option<u64>,
    /// Transactions begun and not ended when the window closed.
    pub in_flight: u64,
    /// Transactions whose connections were cut after the drain.
    pub unfinished: u32,
    /// Workers that an error ended before the others ([`ErrorPolicy::retire`]).
    pub retired: u32,
    /// Transactions of the window, counted as failed, that ended their workers.
    pub retired_transactions: u64,
    /// CPU time of each loop's thread in the window.
    pub loops_cpu: Vec<Nanos>,
    /// The generator's machine over the window.
    pub host: HostSample,
    /// What held the generator back in the window; the head-room is left to the caller.
    pub conditions: GeneratorConditions,
}

impl TrialResult {
    /// The trial has failed unless `started = committed + rolled back + failed + skipped + in flight`.
    pub(crate) fn balanced(mut self) -> Self {
        let (counts, in_flight) = (self.total.counts(), self.in_flight);
        let (started, ended) = (counts.started, counts.ended());
        if started != ended + in_flight {
            self.ended = Ended::Miscounted { started, ended, in_flight };
        }
        self
    }

    /// Length of the measured window.
    pub fn length(&self) -> Nanos {
        self.window.closes.saturating_sub(self.window.opens)
    }

    /// `Some(share)` when the offered rate was missed by over 1 %: the share that was done. What was
    /// in flight when the window closed counts as done: of 20 arrivals, one that came in the last
    /// millisecond is no miss.
    pub fn missed_rate(&self) -> Option<f64> {
        let offered = self.offered.filter(|&offered| offered > 0)?;
        let share = (self.total.counts().ended() + self.in_flight) as f64 / offered as f64;
        (share < 0.99).then_some(share)
    }
}
