//! Settings and results of a trial.

use crate::ErrorPolicy;
use crate::record::{Frame, Window};
use crate::shared::TrialShare;
use dyno_core::{DbError, Nanos, SECOND};
use dyno_facts::{GeneratorConditions, HostSample, TableScans};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq)]
pub struct TrialSpec {
    /// At least 1.
    pub workers: u32,
    /// Loops (threads), at most one per worker; `None`: one per core ([`crate::default_loops`]). Sessions that block
    /// get a loop each.
    pub loops: Option<u32>,
    /// Time before the measured window opens.
    pub warmup: Nanos,
    /// Length of the window; `None` when only `events` ends the trial.
    pub duration: Option<Nanos>,
    /// Transactions to execute in the window, with those in flight when it opens; errands of terminals come on top.
    pub events: Option<u64>,
    /// Transactions of each worker in the window, with failed and skipped ones.
    pub events_per_worker: Option<u64>,
    /// Nothing begins after `duration`, but the window stays open until all begun transactions have ended and count, as
    /// in sysbench, pgbench and BenchmarkSQL. Else the window is exactly `duration` long.
    pub finish_begun: bool,
    /// The observer hears of each worker's sums with each interval.
    pub watch_workers: bool,
    /// Every transaction gets its own session, connected before it begins and closed after it. Only the latency of
    /// scheduled transactions includes that.
    pub connect_each: bool,
    /// A worker's session is closed and opened again after this number of transactions; 0 never. The latency of the
    /// transaction that follows includes it.
    pub reconnect_every: u64,
    /// Transactions that could begin only this late are skipped, if they have a schedule. This long after the due time
    /// no attempt begins.
    pub late_limit: Option<Nanos>,
    /// Arrivals per second over all workers, a Poisson process; `None` is a closed loop.
    pub rate_per_s: Option<f64>,
    /// Arrivals come at even gaps instead.
    pub even_rate: bool,
    /// Each loop has an equal share of the rate and its own queue (pgbench's threads), so that arrivals may wait
    /// while workers of other loops are free. Else all workers take from one queue.
    pub rate_each_loop: bool,
    /// Users with their own pauses, whose transactions the workers execute when they are due; `None`: each worker is
    /// its own user. `rate_per_s` then counts for nothing. The workload must have terminals
    /// ([`dyno_core::Workload::seat`]).
    pub terminals: Option<u32>,
    /// The part of a trial over several load generators.
    pub share: TrialShare,
    pub interval: Nanos,
    pub seed: u64,
    pub errors: ErrorPolicy,
    /// Time limit of transactions in flight after the window has closed; then their connections are cut. At most 2 s
    /// after a request to stop.
    pub drain: Nanos,
    /// Time limit for connecting and preparing all workers.
    pub connect_limit: Nanos,
    /// Time limit of an attempt of a transaction, or of a new connection instead of a lost one: then the session
    /// counts as lost. `None` waits as long as the server and the system. Checked each 100 ms.
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
            watch_workers: false,
            connect_each: false,
            reconnect_every: 0,
            late_limit: None,
            rate_per_s: None,
            even_rate: false,
            rate_each_loop: false,
            terminals: None,
            share: TrialShare::default(),
            interval: SECOND,
            seed: 1,
            errors: ErrorPolicy::resilient(),
            drain: 60 * SECOND,
            connect_limit: 60 * SECOND,
            answer_limit: None,
        }
    }

    /// A session that can't be opened ends its worker only, the first one included: as in pgbench, connecting is a part
    /// of the transactions then.
    pub fn survives_refusals(&self) -> bool {
        self.connect_each && self.errors.retire
    }

    /// The time after which nothing begins in a window that opens at `opens`.
    pub(crate) fn ends(&self, opens: Nanos) -> Nanos {
        self.duration.map_or(Nanos::MAX, |duration| opens.saturating_add(duration))
    }

    /// Returns true if transactions have due times, from which latency counts.
    pub(crate) fn is_scheduled(&self) -> bool {
        self.rate_per_s.is_some() || self.terminals.is_some()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TrialEnd {
    Time,
    Events,
    /// [`crate::Control::stop`].
    Interrupted,
    /// An error that the policy doesn't survive.
    Aborted(#[serde(with = "crate::wire::DbErrorForm")] DbError),
    /// A mistake of the load generator: not all transactions that were started have ended or are in flight.
    Miscounted {
        started: u64,
        ended: u64,
        in_flight: u64,
    },
    /// The server never committed what these transactions wrote: their sessions ended within an open transaction.
    Uncommitted(u64),
}

impl TrialEnd {
    /// The failure of the trial, in a sentence, with the remedy where a pooler is the likely cause.
    pub fn failure(&self) -> Option<String> {
        match self {
            TrialEnd::Time | TrialEnd::Events | TrialEnd::Interrupted => None,
            TrialEnd::Aborted(error) => Some(match error.pooler_hint() {
                Some(hint) => format!("{error}; {hint}"),
                None => error.to_string(),
            }),
            TrialEnd::Miscounted { started, ended, in_flight } => Some(format!(
                "{started} transactions were started, but {ended} ended and {in_flight} were in flight: the load \
                 generator has miscounted."
            )),
            TrialEnd::Uncommitted(transactions) => Some(format!(
                "The server has discarded the writes of {transactions} transactions: their sessions ended within a \
                 transaction that nothing had committed, as they do with autocommit = 0."
            )),
        }
    }
}

/// The work of one worker in the measured window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerStats {
    /// Transactions that ended without an error; skipped ones are none.
    pub transactions: u64,
    /// Time inside transactions.
    pub busy: Nanos,
    /// Sessions opened for single transactions ([`TrialSpec::connect_each`]).
    pub connects: u64,
    /// Time for opening them.
    pub connecting: Nanos,
    /// Transactions, warm-up among them, whose writes were discarded when their session ended within a transaction.
    pub uncommitted: u64,
    /// Set if its last session read far more rows than the workload has to.
    pub scans: Option<TableScans>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialResult {
    pub total: Frame,
    /// `closes` is its actual end.
    pub window: Window,
    /// From the first connect until all workers were ready.
    pub connect: Nanos,
    /// Delay of the last loop's start after `window.released`.
    pub late: Nanos,
    pub ended: TrialEnd,
    /// Sorted in the order of workers.
    pub workers: Vec<WorkerStats>,
    /// Transactions that became due in the window; `None` in a closed loop.
    pub offered: Option<u64>,
    /// Unfinished transactions when the window closed.
    pub in_flight: u64,
    /// Latency of the longest of them that succeeded or was cut; 0 without one.
    pub longest_in_flight: Nanos,
    /// Transactions whose connections were cut after the drain.
    pub unfinished: u32,
    /// Workers that an error ended early ([`ErrorPolicy::retire`]).
    pub retired: u32,
    /// Measured transactions, counted as failed, that ended their workers.
    pub retired_transactions: u64,
    /// CPU time of each loop's thread in the window.
    pub loops_cpu: Vec<Nanos>,
    /// The generator's machine over the window.
    pub host: HostSample,
    /// Limits of the generator in the window, except the head-room.
    pub conditions: GeneratorConditions,
}

/// Share of the transactions that may be left uncommitted: a script may commit a batch of events at once.
const UNCOMMITTED_MAX: f64 = 0.01;

impl TrialResult {
    /// The trial has failed unless `started = committed + rolled back + failed + skipped + in flight`, and if the
    /// server has discarded what it counts.
    pub(crate) fn balanced(mut self) -> Self {
        let (counts, in_flight) = (self.total.counts(), self.in_flight);
        let (started, ended) = (counts.started, counts.ended());
        if started != ended.saturating_add(in_flight) {
            self.ended = TrialEnd::Miscounted { started, ended, in_flight };
        }
        let uncommitted = self.workers.iter().map(|worker| worker.uncommitted);
        let transactions = uncommitted.fold(0, u64::saturating_add);
        let is_judged = matches!(self.ended, TrialEnd::Time | TrialEnd::Events);
        if is_judged && transactions as f64 > UNCOMMITTED_MAX * counts.committed as f64 {
            self.ended = TrialEnd::Uncommitted(transactions);
        }
        self
    }

    /// Scans of tables by sessions whose statements should not need any.
    pub fn scans(&self) -> Option<TableScans> {
        self.workers.iter().filter_map(|worker| worker.scans).max_by_key(|scans| scans.rows_each())
    }

    /// A warning about [`TrialResult::scans`], in a sentence.
    pub fn scan_note(&self) -> Option<String> {
        let rows = self.scans()?.rows_each();
        let cause = "the tables lack keys of the test, or the server does not use them";
        Some(format!("The server scanned whole tables, {rows} rows per statement: {cause}."))
    }

    /// Length of the measured window, in nanoseconds.
    pub fn length(&self) -> Nanos {
        self.window.closes.saturating_sub(self.window.opens)
    }

    /// The delivered share, when the offered rate was missed by over 1%. Transactions in flight at the close count as
    /// delivered: of 20 arrivals, one in the last millisecond is not a miss.
    pub fn missed_rate(&self) -> Option<f64> {
        let offered = self.offered.filter(|&offered| offered > 0)?;
        let share =
            self.total.counts().ended().saturating_add(self.in_flight) as f64 / offered as f64;
        (share < 0.99).then_some(share)
    }
}
