//! Statistics of scripts and commands: exact, whatever the number of threads.

use dyno_core::{EndedTransaction, ErrorClass, Nanos, Outcome};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    pub count: u64,
    pub sum_ns: u128,
    pub sum_squares: f64,
    /// The smallest, ns; 0 when there is none.
    pub min_ns: Nanos,
    pub max_ns: Nanos,
}

impl Latency {
    /// Adds a latency in nanoseconds.
    #[inline]
    pub fn add(&mut self, latency: Nanos) {
        self.min_ns = if self.count == 0 { latency } else { self.min_ns.min(latency) };
        self.max_ns = self.max_ns.max(latency);
        self.count += 1;
        self.sum_ns += u128::from(latency);
        let value = latency as f64;
        self.sum_squares += value * value;
    }

    /// Adds the latencies of another load generator.
    pub fn merge(&mut self, other: &Latency) {
        if other.count == 0 {
            return;
        }
        self.min_ns = if self.count == 0 { other.min_ns } else { self.min_ns.min(other.min_ns) };
        self.max_ns = self.max_ns.max(other.max_ns);
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.sum_squares += other.sum_squares;
    }

    /// The average, ns; 0 when there is none.
    pub fn mean_ns(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum_ns as f64 / self.count as f64 }
    }

    /// The standard deviation, ns; 0 when there is none.
    pub fn stddev_ns(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        let mean = self.mean_ns();
        (self.sum_squares / self.count as f64 - mean * mean).max(0.0).sqrt()
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CommandStatistics {
    /// Its durations, for each execution to its end. Within a pipeline a statement takes
    /// no time; the end of the pipeline takes all.
    pub latency: Latency,
    /// Transactions that failed with an error of this command.
    pub failures: u64,
    pub retries: u64,
}

/// Statistics of one script, of transactions that ended within the measured window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScriptStatistics {
    /// Transactions that succeeded, from when they were due, all tries included.
    pub latency: Latency,
    /// Lateness of these.
    pub lag: Latency,
    /// Transactions that failed because of conflicts with others.
    pub serialization_failures: u64,
    /// Transactions that failed because of a deadlock.
    pub deadlock_failures: u64,
    /// Transactions that failed with any other error.
    pub other_failures: u64,
    /// Transactions that were not begun because they were late already.
    pub skipped: u64,
    /// Transactions that were tried more than once, failed ones included.
    pub retried: u64,
    /// Tries after the first one.
    pub retries: u64,
    /// Sorted in the order of the script's commands.
    pub commands: Vec<CommandStatistics>,
}

impl ScriptStatistics {
    pub(crate) fn new(commands: usize) -> Self {
        ScriptStatistics {
            commands: vec![CommandStatistics::default(); commands],
            ..ScriptStatistics::default()
        }
    }

    /// Transactions that succeeded.
    pub fn processed(&self) -> u64 {
        self.latency.count
    }

    /// Number of transactions that failed, for any reason.
    pub fn failed(&self) -> u64 {
        self.serialization_failures + self.deadlock_failures + self.other_failures
    }

    /// All transactions: processed, skipped and failed.
    pub fn total(&self) -> u64 {
        self.processed() + self.skipped + self.failed()
    }

    /// Counts an ended transaction.
    #[inline]
    pub(crate) fn add(&mut self, ended: &EndedTransaction) {
        if ended.attempts > 1 {
            self.retried += 1;
            self.retries += u64::from(ended.attempts - 1);
        }
        match ended.outcome {
            Outcome::Committed | Outcome::RolledBack => {
                self.latency.add(ended.ended.saturating_sub(ended.due));
                self.lag.add(ended.began.saturating_sub(ended.due));
            }
            Outcome::Skipped => self.skipped += 1,
            Outcome::Failed(ErrorClass::Serialization) => self.serialization_failures += 1,
            Outcome::Failed(ErrorClass::Deadlock) => self.deadlock_failures += 1,
            Outcome::Failed(_) => self.other_failures += 1,
        }
    }

    /// Adds the counts of another load generator.
    pub fn merge(&mut self, other: &ScriptStatistics) {
        self.latency.merge(&other.latency);
        self.lag.merge(&other.lag);
        self.serialization_failures += other.serialization_failures;
        self.deadlock_failures += other.deadlock_failures;
        self.other_failures += other.other_failures;
        self.skipped += other.skipped;
        self.retried += other.retried;
        self.retries += other.retries;
        for (command, more) in self.commands.iter_mut().zip(&other.commands) {
            command.latency.merge(&more.latency);
            command.failures += more.failures;
            command.retries += more.retries;
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Statistics {
    /// Sorted in the order of the options.
    pub scripts: Vec<ScriptStatistics>,
}

impl Statistics {
    /// All scripts together; the list of commands is empty.
    pub fn total(&self) -> ScriptStatistics {
        let mut total = ScriptStatistics::default();
        for script in &self.scripts {
            total.merge(script);
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_merge_as_if_they_had_been_added() {
        let values = [5, 1, 9, 1_000_000_007, 3];
        let mut combined = Latency::default();
        let (mut first, mut second) = (Latency::default(), Latency::default());
        for (number, &value) in values.iter().enumerate() {
            combined.add(value);
            if number < 2 { &mut first } else { &mut second }.add(value);
        }
        first.merge(&second);
        first.merge(&Latency::default());
        assert_eq!(first, combined);
        assert_eq!((combined.min_ns, combined.max_ns, combined.count), (1, 1_000_000_007, 5));
        assert_eq!(Latency::default().mean_ns(), 0.0);
        let mut two = Latency::default();
        two.add(1);
        two.add(3);
        assert_eq!((two.mean_ns(), two.stddev_ns()), (2.0, 1.0));
    }

    #[test]
    fn transactions_are_counted_by_how_they_ended() {
        let mut statistics = ScriptStatistics::new(0);
        statistics.add(&end_transaction(Outcome::Committed, 3));
        statistics.add(&end_transaction(Outcome::Committed, 1));
        statistics.add(&end_transaction(Outcome::Skipped, 0));
        statistics.add(&end_transaction(Outcome::Failed(ErrorClass::Deadlock), 2));
        statistics.add(&end_transaction(Outcome::Failed(ErrorClass::Serialization), 1));
        statistics.add(&end_transaction(Outcome::Failed(ErrorClass::Constraint), 1));
        assert_eq!(statistics.processed(), 2);
        assert_eq!((statistics.failed(), statistics.other_failures), (3, 1));
        assert_eq!((statistics.skipped, statistics.total()), (1, 6));
        assert_eq!((statistics.retried, statistics.retries), (2, 3));
        assert_eq!((statistics.latency.mean_ns(), statistics.lag.mean_ns()), (100.0, 10.0));
    }

    fn end_transaction(outcome: Outcome, attempts: u32) -> EndedTransaction {
        let (due, began, ended) = (100, 110, 200);
        EndedTransaction { transaction: 0, outcome, due, began, ended, attempts, is_measured: true }
    }
}
