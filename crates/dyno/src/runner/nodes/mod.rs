//! What surrounds a trial: its nodes before, meanwhile and after.
//!
//! Nothing here can fail a run: what can't be read is listed and stays unknown.

mod sampling;

pub(super) use sampling::{Sampling, sampled};

use crate::databases;
use dyno_core::{DbError, Dialect, Driver, Nanos, SECOND, Session, Table};
use dyno_measure::{
    Interval, NodeLook, Seen, ServerFacts, StatementCounts, TrialSummary, look, node_conditions,
};
use dyno_reactor::{monotonic_now, now, sleep_until, timeout};
use dyno_store::NodeFacts;
use std::collections::BTreeMap;

/// Time limit for all questions before or after a trial.
const PATIENCE: Nanos = 60 * SECOND;

/// A node of a target, for one trial.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    /// Its name in the paper.
    pub(crate) name: String,
    /// The tables of the workload.
    pub(crate) tables: Vec<String>,
    /// True when it runs on this machine.
    pub(crate) same_host: bool,
    /// Whether it is asked while the trial runs.
    pub(crate) is_sampled: bool,
}

impl Node {
    /// `tables` are all that the workload makes; dyno's own books among them, and settings that no
    /// transaction reads, don't count.
    pub(super) fn new(name: &str, tables: Vec<String>, same_host: bool, is_sampled: bool) -> Self {
        let is_book = |table: &String| {
            table.starts_with("dyno_") || ["bmsql_config", "bmsql_load_state"].contains(&&table[..])
        };
        let tables = tables.into_iter().filter(|table| !is_book(table)).collect();
        Node { name: name.to_owned(), tables, same_host, is_sampled }
    }

    /// What it says before a trial.
    pub(super) fn look<D: Driver>(&self, driver: &D) -> NodeLook {
        self.looked(driver, async |session| look(session, &self.tables).await)
    }

    /// What it says after a trial, once the sessions of the trial have left it; what it refused to say
    /// meanwhile is listed with the rest.
    pub(super) fn look_again<D: Driver>(&self, driver: &D, seen: &Seen) -> NodeLook {
        let mut looked = self.looked(driver, async |session| {
            settle(session).await?;
            look(session, &self.tables).await
        });
        looked.facts.not_readable.extend(seen.not_readable.iter().cloned());
        looked
    }

    /// A server that can't be asked (it may have been killed) is noted as such.
    fn looked<D: Driver>(
        &self,
        driver: &D,
        questions: impl AsyncFnOnce(&mut D::Session) -> Result<NodeLook, DbError>,
    ) -> NodeLook {
        let asked = async {
            let mut session = driver.connect(0).await?;
            let looked = questions(&mut session).await;
            session.close().await;
            looked
        };
        // An embedded database answers on this thread: no clock could interrupt it.
        let looked = match driver.blocks() {
            true => databases::run(asked),
            false => databases::run(async {
                timeout(monotonic_now() + PATIENCE, asked)
                    .await
                    .unwrap_or_else(|_| Err(DbError::unreachable("it did not answer in time")))
            }),
        };
        looked.unwrap_or_else(|error| NodeLook {
            facts: ServerFacts { not_readable: vec![error.to_string()], ..ServerFacts::default() },
            ..NodeLook::default()
        })
    }

    /// What is stored of a look.
    pub(super) fn facts(&self, looked: &NodeLook) -> NodeFacts {
        BTreeMap::from([(self.name.clone(), looked.facts.clone())])
    }

    /// Writes into the summary what surrounded the trial. `client` is what the client did from the
    /// first look to the second, where that is known.
    pub(super) fn surround(
        &self,
        dialect: Dialect,
        (before, after): (&NodeLook, &NodeLook),
        seen: &Seen,
        client: Option<&Client>,
        summary: &mut TrialSummary,
    ) {
        let mut found = node_conditions(&before.state, &after.state, seen);
        found.cpu_share = self.same_host.then_some(summary.generator.host.cpu_share);
        let preparing = preparing(dialect, summary.workers, self.tables.len());
        // Where preparing weighs as much as what is looked for, nothing can be compared.
        let is_comparable = |commits: &u64| found.commits.is_some() && preparing * 200 <= *commits;
        found.client_commits =
            client.map(|client| client.commits(dialect, summary.in_flight)).filter(is_comparable);
        summary.conditions.nodes.insert(self.name.clone(), found);
    }
}

/// Waits, a second at most, until the sessions that have just been closed are in the statistics:
/// PostgreSQL counts the last transactions of a session when its process ends.
async fn settle<S: Session>(session: &mut S) -> Result<(), DbError> {
    const STEP: Nanos = SECOND / 10;
    if session.dialect() != Dialect::Postgres || session.product().name == "DuckDB" {
        return Ok(());
    }
    let counted = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()";
    let mut last = None;
    for _ in 0..8 {
        let mut table = Table::default();
        if let Err(error) = session.query(counted, &mut table).await {
            return if error.is_fatal() { Err(error) } else { Ok(()) };
        }
        let count = table.single().map(str::to_owned);
        if count == last {
            return Ok(());
        }
        last = count;
        sleep_until(now() + STEP).await;
    }
    Ok(())
}

/// What the client did in all intervals, warm-up among them, by kind of transaction.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Client {
    kinds: Vec<(u64, StatementCounts)>,
    rolls_back_reads: bool,
}

impl Client {
    /// `rolls_back_reads` is true where transactions that only read end with ROLLBACK: no server counts
    /// them as commits.
    pub(super) fn new(rolls_back_reads: bool) -> Self {
        Client { kinds: Vec::new(), rolls_back_reads }
    }

    /// Counts an interval.
    pub(super) fn add(&mut self, interval: &Interval) {
        self.kinds.resize(interval.frame.kinds.len(), Default::default());
        for ((committed, statements), kind) in self.kinds.iter_mut().zip(&interval.frame.kinds) {
            *committed += kind.counts.committed;
            statements.reads += kind.work.reads;
            statements.writes += kind.work.writes;
            statements.others += kind.work.others;
            statements.misses += kind.work.misses;
        }
    }

    /// Commits as a server counts them. Those in flight when the window closed are ended before the
    /// second look.
    fn commits(&self, dialect: Dialect, in_flight: u64) -> u64 {
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
fn preparing(dialect: Dialect, workers: u32, tables: usize) -> u64 {
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

    #[test]
    fn books_of_dyno_are_no_tables_of_the_workload() {
        let tables = ["lineitem", "dyno_tpch_load"].map(str::to_owned).to_vec();
        assert_eq!(Node::new("main", tables, false, true).tables, ["lineitem"]);
    }
}
