//! Terminals: users with pauses, many more than sessions.
//!
//! A terminal is not a task: it is the workload's state in a list, and a job in a calendar of due times that all loops
//! share. A worker that has ended a transaction puts the terminal's next job there and takes the earliest one, for
//! which it waits if it is not due yet. So as many of the earliest jobs as workers are idle have a worker that waits
//! for them, on whichever loop, and a job waits only while all workers are busy.
//!
//! Nothing waits for a lock: a bucket of the calendar is a list that is extended by one atomic exchange and taken as a
//! whole by another, and the state of a terminal belongs to the worker that has its job.

use dyno_core::{DeferredTransaction, MILLISECOND, Nanos, SECOND, TerminalPlan, TransactionId};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The terminal in this seat.
    Seat(u32),
    /// An errand with its ticket.
    DeferredTransaction(u64),
}

/// A transaction with its due time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Job {
    pub(crate) due: Nanos,
    pub(crate) owner: Owner,
    pub(crate) transaction: TransactionId,
}

/// No job, or the end of a list.
const NONE: u32 = u32::MAX;
/// The due time of a place without a job.
const VACANT: Nanos = Nanos::MAX;
/// The calendar goes round once in this many mean pauses; later jobs stay for another round.
const PAUSES: u64 = 8;
/// The bits of the cursor that are a slot; the others count the jobs that were put into the calendar.
const SLOT: u64 = (1 << 40) - 1;

/// Room for one job.
struct Place {
    /// After the release.
    due: AtomicU64,
    ticket: AtomicU64,
    transaction: AtomicU32,
    next: AtomicU32,
}

/// The terminals of a trial and their jobs.
pub(crate) struct Terminals<T> {
    /// Locked by the worker that has the terminal's job: no one else tries.
    seats: Vec<Mutex<T>>,
    /// A place for the job of each seat, then one for an errand of each.
    places: Vec<Place>,
    buckets: Vec<AtomicU32>,
    /// The time that a bucket covers.
    width: Nanos,
    /// No earlier slot (due time by width) has jobs.
    cursor: AtomicU64,
    /// Workers that hold jobs which they put back.
    holding: AtomicU32,
    released: AtomicU64,
    /// Earlier jobs are warm-up.
    opens: AtomicU64,
    /// Later jobs are not offered.
    ends: AtomicU64,
    /// All wanted transactions have begun.
    is_closed: AtomicBool,
}

impl<T> Terminals<T> {
    /// Terminals with their first plans, whose pauses begin with the release.
    pub(crate) fn new(all: Vec<(T, TerminalPlan)>) -> Self {
        let count = all.len();
        let pauses: u128 = all.iter().map(|(_, plan)| u128::from(plan.pause)).sum();
        let mean = (pauses / count.max(1) as u128) as u64;
        let round = mean.saturating_mul(PAUSES).clamp(MILLISECOND, 600 * SECOND);
        let buckets = (2 * count).next_power_of_two().clamp(64, 1 << 17);
        let places = (0..2 * count).map(|_| Place {
            due: AtomicU64::new(VACANT),
            ticket: AtomicU64::new(0),
            transaction: AtomicU32::new(0),
            next: AtomicU32::new(NONE),
        });
        let mut terminals = Terminals {
            seats: Vec::with_capacity(count),
            places: places.collect(),
            buckets: (0..buckets).map(|_| AtomicU32::new(NONE)).collect(),
            width: (round / buckets as u64).max(1),
            cursor: AtomicU64::new(0),
            holding: AtomicU32::new(0),
            released: AtomicU64::new(0),
            opens: AtomicU64::new(0),
            ends: AtomicU64::new(Nanos::MAX),
            is_closed: AtomicBool::new(false),
        };
        for (seat, (terminal, first)) in (0..).zip(all) {
            terminals.put(seat, first.pause, first.transaction, 0);
            terminals.seats.push(Mutex::new(terminal));
        }
        terminals
    }

    /// First pauses begin at `released`.
    pub(crate) fn start(&self, released: Nanos, opens: Nanos) {
        self.released.store(released, Ordering::Relaxed);
        self.opens.store(opens, Ordering::Relaxed);
    }

    /// The terminal of a seat whose job the caller has.
    #[inline]
    pub(crate) fn with_seat<R>(&self, seat: u32, use_it: impl FnOnce(&mut T) -> R) -> Option<R> {
        let mut terminal = self.seats[seat as usize].try_lock().ok()?;
        Some(use_it(&mut terminal))
    }

    /// Puts the next job of a seat into the calendar.
    #[inline]
    pub(crate) fn push(&self, seat: u32, due: Nanos, transaction: TransactionId) {
        let due = due.saturating_sub(self.released.load(Ordering::Relaxed));
        self.put(seat, due, transaction, 0);
    }

    /// Puts an errand of a seat into the calendar. Returns it where the one before it still waits.
    #[inline]
    pub(crate) fn push_errand(
        &self,
        seat: u32,
        due: Nanos,
        errand: DeferredTransaction,
    ) -> Option<Job> {
        let DeferredTransaction { transaction, ticket } = errand;
        let place = seat + self.seats.len() as u32;
        if self.places[place as usize].due.load(Ordering::Acquire) != VACANT {
            return Some(Job { due, owner: Owner::DeferredTransaction(ticket), transaction });
        }
        let due = due.saturating_sub(self.released.load(Ordering::Relaxed));
        self.put(place, due, transaction, ticket);
        None
    }

    /// Puts a job into its place and into the calendar.
    fn put(&self, number: u32, due: Nanos, transaction: TransactionId, ticket: u64) {
        let place = &self.places[number as usize];
        place.due.store(due.min(VACANT - 1), Ordering::Relaxed);
        place.ticket.store(ticket, Ordering::Relaxed);
        place.transaction.store(transaction as u32, Ordering::Relaxed);
        self.link(number);
    }

    /// Slot of the calendar in which a job comes due.
    fn slot(&self, number: u32) -> u64 {
        (self.places[number as usize].due.load(Ordering::Relaxed) / self.width).min(SLOT)
    }

    /// Head of the list of jobs in this slot.
    fn bucket(&self, slot: u64) -> &AtomicU32 {
        &self.buckets[slot as usize & (self.buckets.len() - 1)]
    }

    /// Puts a job into the list of its slot.
    fn link(&self, number: u32) {
        let slot = self.slot(number);
        let (bucket, next) = (self.bucket(slot), &self.places[number as usize].next);
        let mut head = bucket.load(Ordering::Relaxed);
        loop {
            next.store(head, Ordering::Relaxed);
            match bucket.compare_exchange_weak(head, number, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => break,
                Err(other) => head = other,
            }
        }
        // The count says to those who look for a job that this one may have come behind them.
        let back =
            |cursor: u64| Some((cursor & !SLOT).wrapping_add(SLOT + 1) | slot.min(cursor & SLOT));
        let _ = self.cursor.fetch_update(Ordering::AcqRel, Ordering::Acquire, back);
    }

    /// Takes the earliest job, due or not; `None` if no terminal has one.
    #[inline]
    pub(crate) fn take_job(&self) -> Option<Job> {
        loop {
            if let Some(number) = self.take_earliest() {
                return Some(self.unpack(number));
            }
            if self.holding.load(Ordering::Acquire) == 0 {
                return None;
            }
            std::hint::spin_loop();
        }
    }

    /// The job in this place, with its due time in the trial.
    fn unpack(&self, number: u32) -> Job {
        let place = &self.places[number as usize];
        let released = self.released.load(Ordering::Relaxed);
        let owner = if (number as usize) < self.seats.len() {
            Owner::Seat(number)
        } else {
            Owner::DeferredTransaction(place.ticket.load(Ordering::Relaxed))
        };
        let transaction = place.transaction.load(Ordering::Relaxed) as TransactionId;
        let due = place.due.swap(VACANT, Ordering::AcqRel).saturating_add(released);
        Job { due, owner, transaction }
    }

    fn take_earliest(&self) -> Option<u32> {
        let mut cursor = self.cursor.load(Ordering::Acquire);
        let mut first = cursor & SLOT;
        loop {
            let mut later = None;
            for slot in first..first + self.buckets.len() as u64 {
                if self.bucket(slot).load(Ordering::Relaxed) == NONE {
                    continue;
                }
                // Nothing was put into the calendar since the cursor was read, and all slots before are empty.
                let moved = cursor & !SLOT | slot.min(SLOT);
                let exchanged = self.cursor.compare_exchange(
                    cursor,
                    moved,
                    Ordering::AcqRel,
                    Ordering::Relaxed,
                );
                if exchanged.is_ok() {
                    cursor = moved;
                }
                let (job, later_slot) = self.take_from_slot(slot);
                if job.is_some() {
                    return job;
                }
                later = later.into_iter().chain(later_slot).min();
            }
            // All jobs are due after a whole round.
            first = later?;
        }
    }

    /// Takes the earliest job of a slot or of one before it; the others go back. Alongside it the earliest later slot.
    fn take_from_slot(&self, slot: u64) -> (Option<u32>, Option<u64>) {
        self.holding.fetch_add(1, Ordering::AcqRel);
        let mut list = self.bucket(slot).swap(NONE, Ordering::AcqRel);
        let (mut earliest, mut later) = (None, None);
        while list != NONE {
            let place = &self.places[list as usize];
            let next = place.next.load(Ordering::Relaxed);
            let job_slot = self.slot(list);
            let key = (place.due.load(Ordering::Relaxed), list);
            let back = match earliest {
                _ if job_slot > slot => {
                    later = later.into_iter().chain([job_slot]).min();
                    Some(list)
                }
                Some(before) if before < key => Some(list),
                _ => earliest.replace(key).map(|(_, number)| number),
            };
            if let Some(number) = back {
                self.link(number);
            }
            list = next;
        }
        self.holding.fetch_sub(1, Ordering::AcqRel);
        (earliest.map(|(_, number)| number), later)
    }

    /// Returns true for a job in the window, as far as its begin is concerned.
    #[inline]
    pub(crate) fn is_offered(&self, due: Nanos) -> bool {
        due >= self.opens.load(Ordering::Relaxed)
    }

    /// Jobs at `due` and later are not offered: all wanted transactions have begun.
    pub(crate) fn refuse(&self, due: Nanos) {
        self.ends.fetch_min(due, Ordering::Relaxed);
        self.is_closed.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    /// Jobs that no one has taken, due in the window that closes at `closes`.
    pub(crate) fn untaken(&self, closes: Nanos) -> u64 {
        let ends = closes.min(self.ends.load(Ordering::Relaxed));
        let released = self.released.load(Ordering::Relaxed);
        let due = self.places.iter().map(|place| place.due.load(Ordering::Relaxed));
        let due = due.filter(|due| *due != VACANT).map(|due| due.saturating_add(released));
        due.filter(|&due| self.is_offered(due) && due < ends).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_pauses(pauses: &[Nanos]) -> Terminals<()> {
        let plans = pauses.iter().map(|&pause| ((), TerminalPlan { transaction: 0, pause }));
        Terminals::new(plans.collect())
    }

    #[test]
    fn jobs_are_taken_in_the_order_of_their_due_times() {
        // Much later ones too, which stay for many rounds of the calendar.
        let mut pauses: Vec<Nanos> = (1..=500).map(|n| n * 7_919 % 1_009 * MILLISECOND).collect();
        pauses.push(5_000_000 * SECOND);
        let terminals = with_pauses(&pauses);
        terminals.start(9, 9);
        let dues: Vec<Nanos> =
            std::iter::from_fn(|| terminals.take_job()).map(|job| job.due - 9).collect();
        pauses.sort_unstable();
        assert_eq!(dues, pauses);
        terminals.push(3, 50, 1);
        terminals.push(7, 20, 1);
        let [first, second] = [77, 78].map(|ticket| DeferredTransaction { transaction: 2, ticket });
        assert_eq!(terminals.push_errand(3, 10, first), None);
        let waiting = Job { due: 11, owner: Owner::DeferredTransaction(78), transaction: 2 };
        assert_eq!(terminals.push_errand(3, 11, second), Some(waiting));
        assert_eq!(terminals.untaken(30), 2);
        let owners: Vec<Owner> =
            std::iter::from_fn(|| terminals.take_job()).map(|job| job.owner).collect();
        assert_eq!(owners, [Owner::DeferredTransaction(77), Owner::Seat(7), Owner::Seat(3)]);
        assert_eq!(with_pauses(&[]).take_job(), None);
    }

    #[test]
    fn threads_that_take_and_put_back_lose_nothing() {
        const ROUNDS: u64 = 5_000;
        let terminals = with_pauses(&(0..40).map(|n| n * MILLISECOND).collect::<Vec<_>>());
        let jobs_taken: u64 = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..4).map(|_| scope.spawn(|| take_and_put_back(&terminals, ROUNDS))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(jobs_taken, 4 * ROUNDS);
        let mut remaining = Vec::new();
        while let Some(Job { owner: Owner::Seat(seat), .. }) = terminals.take_job() {
            remaining.push(seat);
        }
        remaining.sort_unstable();
        assert_eq!(remaining, (0..40).collect::<Vec<_>>());
    }

    /// Takes a job and puts it back `rounds` times; returns their number.
    fn take_and_put_back(terminals: &Terminals<()>, rounds: u64) -> u64 {
        for round in 0..rounds {
            // Four threads and forty jobs: one is always there.
            let Some(Job { due, owner: Owner::Seat(seat), .. }) = terminals.take_job() else {
                panic!("a job is lost");
            };
            assert!(terminals.with_seat(seat, |()| ()).is_some(), "a seat of two workers");
            terminals.push(seat, due + (round % 97 + 1) * MILLISECOND, 0);
        }
        rounds
    }
}
