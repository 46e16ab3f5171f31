//! What the client counted, to be compared with what servers count.

use dyno_core::Dialect;
use dyno_engine::record::MeasuredInterval;
use dyno_facts::StatementCounts;

/// What the client did in all intervals, warm-up among them, by kind of transaction.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Client {
    pub(super) kinds: Vec<(u64, StatementCounts)>,
    rolls_back_reads: bool,
}

impl Client {
    /// `rolls_back_reads` is true where transactions that only read end with ROLLBACK: no server counts
    /// them as commits.
    pub(crate) fn new(rolls_back_reads: bool) -> Self {
        Client { kinds: Vec::new(), rolls_back_reads }
    }

    pub(crate) fn add(&mut self, interval: &MeasuredInterval) {
        self.kinds.resize(interval.frame.kinds.len(), Default::default());
        for ((committed, statements), kind) in self.kinds.iter_mut().zip(&interval.frame.kinds) {
            *committed += kind.counts.committed;
            statements.reads += kind.work.reads;
            statements.writes += kind.work.writes;
            statements.others += kind.work.others;
            statements.misses += kind.work.misses;
        }
    }

    /// Commits of each kind.
    pub(crate) fn committed(&self) -> impl Iterator<Item = u64> {
        self.kinds.iter().map(|(committed, _)| *committed)
    }

    /// Commits as a server counts them. Those in flight when the window closed are ended before the
    /// second look.
    pub(super) fn commits(&self, dialect: Dialect, in_flight: u64) -> u64 {
        let of_kind = |&(committed, statements): &(u64, StatementCounts)| {
            let controls = statements.others.saturating_sub(statements.misses);
            let is_explicit = controls as f64 >= 0.9 * committed as f64;
            let only_reads = statements.writes + statements.misses == 0;
            match (is_explicit, dialect) {
                (true, _) if self.rolls_back_reads && only_reads => 0,
                (true, _) => committed,
                // Without COMMIT, each statement is a commit to PostgreSQL, and none to MySQL.
                (false, Dialect::Postgres) => statements.total(),
                (false, Dialect::Mysql | Dialect::Sqlite) => 0,
            }
        };
        self.kinds.iter().map(of_kind).sum::<u64>() + in_flight
    }
}

/// Commits that PostgreSQL may count for sessions that connect and prepare: workloads prepare up to nine
/// statements per table, and a few more.
pub(super) fn preparing(dialect: Dialect, workers: u32, tables: usize) -> u64 {
    match dialect {
        Dialect::Postgres => u64::from(workers) * (9 * tables as u64 + 20),
        Dialect::Mysql | Dialect::Sqlite => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(committed: u64, reads: u64, others: u64, misses: u64) -> Client {
        let statements = StatementCounts { reads, others, misses, ..StatementCounts::default() };
        Client { kinds: vec![(committed, statements)], rolls_back_reads: false }
    }

    #[test]
    fn statements_outside_of_transactions_are_commits_to_postgres_only() {
        let both = |client: Client| {
            [Dialect::Postgres, Dialect::Mysql].map(|dialect| client.commits(dialect, 3))
        };
        // BEGIN, ten reads, COMMIT.
        assert_eq!(both(client(100, 1000, 200, 0)), [103, 103]);
        // One read each.
        assert_eq!(both(client(100, 100, 0, 0)), [103, 3]);
        // Ten reads each, without BEGIN and COMMIT.
        assert_eq!(both(client(100, 1000, 0, 0)), [1003, 3]);
        // Updates that met no row are no controls.
        assert_eq!(both(client(100, 1000, 90, 90)), [1093, 3]);
    }

    #[test]
    fn transactions_that_are_rolled_back_by_profile_are_no_commits() {
        let writes = StatementCounts { writes: 500, others: 100, ..StatementCounts::default() };
        let mut client = client(40, 40, 40, 0);
        client.kinds.push((100, writes));
        assert_eq!(client.commits(Dialect::Mysql, 0), 140);
        client.rolls_back_reads = true;
        assert_eq!(client.commits(Dialect::Mysql, 0), 100);
    }

    #[test]
    fn preparing_counts_where_each_statement_is_a_commit() {
        assert_eq!(preparing(Dialect::Postgres, 4, 2), 152);
        assert_eq!(preparing(Dialect::Mysql, 4, 2), 0);
    }
}
