//! Measurements of one loop in one interval, and sums of them.

use super::Latencies;
use dyno_core::{Cause, DbError, ErrorClass, MILLISECOND, Nanos, Tally};
use dyno_facts::Counts;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorCount {
    #[serde(with = "crate::record::collector::error_class")]
    pub class: ErrorClass,
    /// MySQL's or SQLite's number, 0 if there is none.
    pub errno: u32,
    pub sqlstate: String,
    pub message: String,
    /// Number of attempts, connects included, that met it.
    pub count: u64,
}

/// Errors by class, errno and SQLSTATE, in the order of their first appearance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorTable(pub Vec<ErrorCount>);

impl ErrorTable {
    /// Counts an error, unless it is [`Cause::Again`].
    pub fn count(&mut self, error: &DbError) {
        if error.cause() == Cause::Again {
            return;
        }
        self.add_one(ErrorCount {
            class: error.class(),
            errno: error.errno(),
            sqlstate: error.sqlstate().to_owned(),
            message: error.sentence().into_owned(),
            count: 1,
        });
    }

    /// Counts errors that a workload has dealt with itself, of which only the number is known.
    #[cold]
    pub(crate) fn count_handled(&mut self, count: u64) {
        self.add_one(ErrorCount {
            class: ErrorClass::Other,
            errno: 0,
            sqlstate: String::new(),
            message: "handled by the script itself: pcall(), sb_counter_inc()".to_owned(),
            count,
        });
    }

    fn add_one(&mut self, more: ErrorCount) {
        let entry = self.0.iter_mut().find(|entry| {
            (entry.class, entry.errno) == (more.class, more.errno)
                && entry.sqlstate == more.sqlstate
        });
        match entry {
            Some(entry) => entry.count = entry.count.saturating_add(more.count),
            None => self.0.push(more),
        }
    }

    /// Adds the counts of another table, error by error.
    pub fn add(&mut self, more: &ErrorTable) {
        for error in &more.0 {
            self.add_one(error.clone());
        }
    }

    /// Number of errors of all kinds.
    pub fn total(&self) -> u64 {
        self.0.iter().map(|error| error.count).sum()
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KindFrame {
    pub counts: Counts,
    /// Statements of attempts that ended as the workload wants (committed, or rolled back by profile).
    #[serde(with = "crate::record::collector::TallyForm")]
    pub work: Tally,
    /// Statements of attempts that failed: done by the server, worth nothing.
    #[serde(with = "crate::record::collector::TallyForm")]
    pub wasted: Tally,
    /// Latency of transactions that did not fail: from the due time if there is a schedule, else from the begin.
    pub latency: Latencies,
}

impl KindFrame {
    /// Adds the counts and latencies of another frame.
    pub fn add(&mut self, more: &KindFrame) {
        self.counts.add(&more.counts);
        self.work.add(&more.work);
        self.wasted.add(&more.wasted);
        self.latency.add(&more.latency);
    }

    /// Makes the frame empty, keeping its memory.
    fn clear(&mut self) {
        self.counts = Counts::default();
        self.work = Tally::default();
        self.wasted = Tally::default();
        self.latency.clear();
    }
}

/// Arrivals that a free worker waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Awaited {
    pub arrivals: u64,
    /// Begun over [`Awaited::LATE`] late.
    pub late: u64,
    pub latest: Nanos,
}

impl Awaited {
    /// More than the timer of a loop that gets a CPU at once needs.
    pub const LATE: Nanos = MILLISECOND;

    /// Counts an arrival that began this late, in nanoseconds.
    #[inline]
    fn count(&mut self, lateness: Nanos) {
        self.arrivals += 1;
        self.late += u64::from(lateness > Self::LATE);
        self.latest = self.latest.max(lateness);
    }

    /// Adds the counts of another interval.
    fn add(&mut self, more: Awaited) {
        self.arrivals = self.arrivals.saturating_add(more.arrivals);
        self.late = self.late.saturating_add(more.late);
        self.latest = self.latest.max(more.latest);
    }
}

/// Measurements of one interval (by one loop) or of one trial (by all loops).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Frame {
    /// When it began, on the loops' clock; `Nanos::MAX` while empty.
    pub began: Nanos,
    /// When it ended; 0 while empty.
    pub ended: Nanos,
    pub kinds: Vec<KindFrame>,
    /// Time from begin to end; only where a schedule makes it differ from the latency.
    pub service: Option<Latencies>,
    /// Time from due to begin; only if there is a schedule.
    pub lateness: Option<Latencies>,
    /// Time from the return of a loop's wait to the handling of each answer; only where loops wait for answers.
    pub loop_queue: Option<Latencies>,
    pub awaited: Awaited,
    pub errors: ErrorTable,
    pub cpu_ns: u64,
}

impl Frame {
    pub fn new(kinds: usize, scheduled: bool) -> Self {
        Frame {
            began: Nanos::MAX,
            ended: 0,
            kinds: vec![KindFrame::default(); kinds],
            service: scheduled.then(Latencies::new),
            lateness: scheduled.then(Latencies::new),
            loop_queue: None,
            awaited: Awaited::default(),
            errors: ErrorTable::default(),
            cpu_ns: 0,
        }
    }

    /// A frame for a loop that waits for answers.
    pub fn with_loop_queue(self) -> Self {
        Frame { loop_queue: Some(Latencies::new()), ..self }
    }

    /// An answer of `answers` that were ready together is handled after its share of the time since the wait: reading
    /// the clock for each would cost more than it tells.
    #[inline]
    pub(crate) fn handled(&mut self, since: Nanos, answers: u32) {
        let Some(queue) = &mut self.loop_queue else { return };
        let per_answer = since / u64::from(answers.max(1));
        (1..=u64::from(answers)).for_each(|place| queue.record(per_answer * place));
    }

    /// Counts an arrival for which a worker had waited.
    #[inline]
    pub(crate) fn awaited(&mut self, lateness: Nanos) {
        self.awaited.count(lateness);
    }

    /// Length in seconds; 0 while empty.
    pub fn length_s(&self) -> f64 {
        self.ended.saturating_sub(self.began) as f64 / 1e9
    }

    /// Adds an interval with the same kinds of transactions.
    pub fn add(&mut self, more: &Frame) {
        self.began = self.began.min(more.began);
        self.ended = self.ended.max(more.ended);
        for (kind, other) in self.kinds.iter_mut().zip(&more.kinds) {
            kind.add(other);
        }
        for (sum, other) in
            [(&mut self.service, &more.service), (&mut self.lateness, &more.lateness)]
        {
            if let (Some(sum), Some(other)) = (sum, other) {
                sum.add(other);
            }
        }
        match (&mut self.loop_queue, &more.loop_queue) {
            (Some(sum), Some(other)) => sum.add(other),
            (sum, other) => *sum = sum.take().or_else(|| other.clone()),
        }
        self.awaited.add(more.awaited);
        self.errors.add(&more.errors);
        self.cpu_ns = self.cpu_ns.saturating_add(more.cpu_ns);
    }

    /// Moves its times to a clock that shows `by_ns` more. An empty one stays empty.
    pub fn shift(&mut self, by_ns: i64) {
        if self.began != Nanos::MAX {
            self.began = self.began.saturating_add_signed(by_ns);
            self.ended = self.ended.saturating_add_signed(by_ns);
        }
    }

    /// Forgets everything, keeps the memory.
    pub fn clear(&mut self) {
        self.began = Nanos::MAX;
        self.ended = 0;
        self.kinds.iter_mut().for_each(KindFrame::clear);
        let histograms = [&mut self.service, &mut self.lateness, &mut self.loop_queue];
        histograms.into_iter().flatten().for_each(Latencies::clear);
        self.awaited = Awaited::default();
        self.errors.0.clear();
        self.cpu_ns = 0;
    }

    /// Counts of all kinds of transactions together.
    pub fn counts(&self) -> Counts {
        self.sum(|sum: &mut Counts, kind| sum.add(&kind.counts))
    }

    /// Statements of attempts that ended as wanted, for all kinds of transactions.
    pub fn work(&self) -> Tally {
        self.sum(|sum: &mut Tally, kind| sum.add(&kind.work))
    }

    /// Statements of attempts that failed, for all kinds of transactions.
    pub fn wasted(&self) -> Tally {
        self.sum(|sum: &mut Tally, kind| sum.add(&kind.wasted))
    }

    /// Latencies of all kinds of transactions together.
    pub fn latency(&self) -> Latencies {
        self.sum(|sum: &mut Latencies, kind| sum.add(&kind.latency))
    }

    /// Adds up one part of each kind of transaction.
    fn sum<T: Default>(&self, add: impl Fn(&mut T, &KindFrame)) -> T {
        let mut sum = T::default();
        self.kinds.iter().for_each(|kind| add(&mut sum, kind));
        sum
    }
}
