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
        (before, after): (&NodeLook, &NodeLook),
        seen: &Seen,
        client: Option<&Client>,
        summary: &mut TrialSummary,
    ) {
        let mut found = node_conditions(&before.state, &after.state, seen);
        found.cpu_share = self.same_host.then_some(summary.generator.host.cpu_share);
        found.client_commits = client
            .filter(|_| found.commits.is_some())
            .map(|client| client.commits(summary.in_flight));
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

/// What the client did in all intervals, warm-up among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Client {
    committed: u64,
    statements: StatementCounts,
}

impl Client {
    /// Counts an interval.
    pub(super) fn add(&mut self, interval: &Interval) {
        let work = StatementCounts::from(interval.frame.work());
        self.committed += interval.frame.counts().committed;
        self.statements.reads += work.reads;
        self.statements.writes += work.writes;
        self.statements.others += work.others;
        self.statements.misses += work.misses;
    }

    /// Commits as a server counts them. Where a transaction has no COMMIT of its own, each of its
    /// statements is one. Those in flight when the window closed are ended before the second look.
    fn commits(&self, in_flight: u64) -> u64 {
        let controls = self.statements.others.saturating_sub(self.statements.misses);
        let is_explicit = controls as f64 >= 0.9 * self.committed as f64;
        let is_single = self.statements.total() <= self.committed;
        if is_explicit || is_single { self.committed + in_flight } else { self.statements.total() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(committed: u64, reads: u64, others: u64, misses: u64) -> Client {
        let statements = StatementCounts { reads, others, misses, ..StatementCounts::default() };
        Client { committed, statements }
    }

    #[test]
    fn statements_outside_of_transactions_are_commits() {
        // BEGIN, ten reads, COMMIT.
        assert_eq!(client(100, 1000, 200, 0).commits(3), 103);
        // One read each.
        assert_eq!(client(100, 100, 0, 0).commits(3), 103);
        // Ten reads each, without BEGIN and COMMIT.
        assert_eq!(client(100, 1000, 0, 0).commits(3), 1000);
        // Updates that met no row are no controls.
        assert_eq!(client(100, 1000, 90, 90).commits(3), 1090);
    }

    #[test]
    fn books_of_dyno_are_no_tables_of_the_workload() {
        let tables = ["lineitem", "dyno_tpch_load"].map(str::to_owned).to_vec();
        assert_eq!(Node::new("main", tables, false, true).tables, ["lineitem"]);
    }
}
