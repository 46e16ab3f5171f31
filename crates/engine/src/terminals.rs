//! Terminals: users with pauses, many more than sessions.
//!
//! A terminal is no task: it is the workload's state in a list, and one entry in a heap of due times. A worker that has
//! ended a transaction takes the earliest due job; without one it is idle until the loop's owner, who sleeps until the
//! earliest job at the latest, hands it one. So no timer is armed and no worker is woken for nothing.

use dyno_core::{Nanos, TerminalPlan, TransactionId};
use dyno_reactor::wake;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owner {
    /// The terminal in this seat of the loop.
    Seat(u32),
    /// An errand with its ticket.
    Errand(u64),
}

/// A transaction with its due time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Job {
    pub(crate) due: Nanos,
    pub(crate) owner: Owner,
    pub(crate) transaction: TransactionId,
}

/// The terminals of one loop, their schedule, and the idle workers.
pub(crate) struct Terminals<T> {
    seats: Vec<T>,
    jobs: BinaryHeap<Reverse<Job>>,
    /// Tasks of idle workers; the last busy one is the first to be busy again.
    idle: Vec<u32>,
    /// The jobs of idle workers, by their tasks.
    handed: Vec<Option<Job>>,
    /// Earlier jobs are warm-up.
    opens: Nanos,
    /// Later jobs are not offered.
    ends: Nanos,
    taken: u64,
    /// All wanted transactions have begun.
    is_closed: bool,
}

impl<T> Terminals<T> {
    /// Room for `terminals` terminals and their errands.
    pub(crate) fn new(terminals: usize, workers: u32) -> Self {
        Terminals {
            seats: Vec::with_capacity(terminals),
            jobs: BinaryHeap::with_capacity(terminals + terminals / 8 + workers as usize),
            idle: Vec::with_capacity(workers as usize),
            handed: vec![None; workers as usize],
            opens: 0,
            ends: Nanos::MAX,
            taken: 0,
            is_closed: false,
        }
    }

    /// Adds a terminal and its first plan.
    pub(crate) fn add(&mut self, terminal: T, first: TerminalPlan) {
        let owner = Owner::Seat(self.seats.len() as u32);
        self.push(Job { due: first.pause, owner, transaction: first.transaction });
        self.seats.push(terminal);
    }

    /// First pauses begin at `released`.
    pub(crate) fn start(&mut self, released: Nanos, opens: Nanos) {
        let mut jobs = std::mem::take(&mut self.jobs).into_vec();
        jobs.iter_mut().for_each(|Reverse(job)| job.due = job.due.saturating_add(released));
        self.jobs = BinaryHeap::from(jobs);
        self.opens = opens;
    }

    #[inline]
    pub(crate) fn seat(&mut self, seat: u32) -> &mut T {
        &mut self.seats[seat as usize]
    }

    #[inline]
    pub(crate) fn push(&mut self, job: Job) {
        self.jobs.push(Reverse(job));
    }

    /// Takes the earliest job that is due at `now`.
    #[inline]
    pub(crate) fn take_due(&mut self, now: Nanos) -> Option<Job> {
        if self.jobs.peek().is_none_or(|Reverse(job)| job.due > now) {
            return None;
        }
        let Reverse(job) = self.jobs.pop()?;
        self.taken += u64::from(job.due >= self.opens);
        Some(job)
    }

    /// Takes back the job for `due` and all later ones: all wanted transactions have begun.
    pub(crate) fn refuse(&mut self, due: Nanos) {
        self.ends = self.ends.min(due);
        self.taken -= u64::from(due >= self.opens && self.taken > 0);
        self.is_closed = true;
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Makes the worker of this task idle.
    #[inline]
    pub(crate) fn park(&mut self, task: u32) {
        self.idle.push(task);
    }

    /// Takes the job of an idle worker.
    #[inline]
    pub(crate) fn take_handed(&mut self, task: u32) -> Option<Job> {
        self.handed[task as usize].take()
    }

    /// Gives due jobs to idle workers. Returns the latest time of the next call. From `ends` on all idle workers are
    /// woken to leave.
    #[inline]
    pub(crate) fn hand_out(&mut self, now: Nanos, ends: Nanos) -> Nanos {
        if now >= ends || self.is_closed {
            self.idle.drain(..).for_each(wake);
            return Nanos::MAX;
        }
        while let Some(&task) = self.idle.last() {
            let Some(job) = self.take_due(now) else {
                return self.jobs.peek().map_or(ends, |Reverse(job)| job.due.min(ends));
            };
            self.idle.pop();
            self.handed[task as usize] = Some(job);
            wake(task);
        }
        Nanos::MAX
    }

    /// Jobs, taken or not, that became due in the window that closes at `closes`.
    pub(crate) fn offered(&self, closes: Nanos) -> u64 {
        let window = self.opens..closes.min(self.ends);
        let waiting = self.jobs.iter().filter(|Reverse(job)| window.contains(&job.due)).count();
        self.taken + waiting as u64
    }
}
