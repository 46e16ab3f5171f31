//! What servers say of themselves: settings and counters, their state before and after a trial, and
//! what they do while it runs.
//!
//! Every question may be refused: accounts differ in what they may see, and managed services differ
//! from the products that they are made of. What can't be read is listed and stays unknown.

mod ask;
mod follow;
mod mysql;
mod postgres;
mod sqlite;
mod state;

pub use ask::Asked;
pub use follow::{
    LogPosition, Sample, follows, has_reached, position, server_restarted, standstill,
};
pub use postgres::LOCK_CLASS;
pub use state::{NodeState, ServerWindow, commits_grown, node_conditions, read_facts, was_alone};

use ask::Asker;
use dyno_core::{AdminSession, DbResult, Dialect, Discard, Session};
use dyno_facts::{Message, ServerFacts};
use state::ask_facts;
use std::time::Instant;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeLook {
    pub facts: ServerFacts,
    pub state: NodeState,
}

/// Looks at a node. `tables` are those of the workload, as the server names them; without any, all of
/// the database count.
pub async fn look(session: &mut AdminSession<'_>, tables: &[String]) -> DbResult<NodeLook> {
    let mut asker = Asker::new(session);
    let mut facts = ask_facts(&mut asker).await?;
    let tables = Tables(tables);
    let mut state = match asker.session().dialect() {
        Dialect::Mysql => mysql::state(&mut asker, &facts, &tables).await?,
        Dialect::Postgres if asker.session().capabilities().server_views => {
            postgres::state(&mut asker, &facts, &tables).await?
        }
        Dialect::Postgres => sqlite::silent_state(),
        Dialect::Sqlite => sqlite::state(&mut asker, &facts, &tables).await?,
    };
    let (not_readable, asked) = asker.end();
    facts.not_readable = not_readable;
    state.asked = asked;
    facts.schema = std::mem::take(&mut state.schema);
    Ok(NodeLook { facts, state })
}

/// Looks at an endpoint, whose counters are those of whatever stands behind it: only at the way to it.
pub async fn glance(session: &mut AdminSession<'_>) -> DbResult<NodeLook> {
    let mut asker = Asker::new(session);
    let product = asker.session().product().clone();
    let mut state =
        NodeState { round_trip_us: round_trip_us(&mut asker).await?, ..NodeState::default() };
    if asker.session().dialect() == Dialect::Postgres {
        state.foreign_servers = postgres::foreign_servers(&mut asker).await?;
    }
    let (not_readable, _) = asker.end();
    let facts = ServerFacts {
        product: product.name,
        version: product.version,
        not_readable,
        ..ServerFacts::default()
    };
    Ok(NodeLook { facts, state })
}

/// Asks a node again and again what it does. Made once per session.
#[derive(Clone, Debug, Default)]
pub struct Questions {
    /// For each question whether it was refused: it is not asked again.
    refused: Vec<Message>,
    postgres_version: u32,
    is_mysql_replica: Option<bool>,
    pub asked: Asked,
}

impl Questions {
    /// Asks for a sample. What was refused is told once, in the second list.
    pub async fn sample(
        &mut self,
        session: &mut AdminSession<'_>,
    ) -> DbResult<(Sample, Vec<Message>)> {
        let mut asker = Asker::leaving_out(session, &self.refused);
        let sample = match asker.session().dialect() {
            Dialect::Mysql => mysql::sample(&mut asker, &mut self.is_mysql_replica).await,
            Dialect::Postgres => postgres::sample(&mut asker, &mut self.postgres_version).await,
            Dialect::Sqlite => Ok(Sample::default()),
        };
        let refused = asker.refused();
        let (not_readable, asked) = asker.end();
        self.refused.extend(refused);
        // What was asked before the connection was lost has been counted by the server.
        self.asked += asked;
        Ok((sample?, not_readable))
    }
}

struct Tables<'a>(&'a [String]);

impl Tables<'_> {
    /// Whether a table is one of them. Servers differ in what they make of capitals.
    fn has(&self, name: &str) -> bool {
        self.0.is_empty() || self.0.iter().any(|table| table.eq_ignore_ascii_case(name))
    }
}

/// Median of the round trips of the smallest statement.
async fn round_trip_us(asker: &mut Asker<'_, '_>) -> DbResult<Option<f64>> {
    /// The first ones make the path warm; the median of the rest is not moved by a few bad ones.
    const TRIPS: usize = 31;
    let mut trips = Vec::with_capacity(TRIPS);
    for _ in 0..TRIPS {
        let sent = Instant::now();
        match asker.session().query("SELECT 1", &mut Discard).await {
            Ok(_) => trips.push(sent.elapsed().as_secs_f64() * 1e6),
            Err(error) if error.is_fatal() => return Err(error),
            Err(_) => return Ok(None),
        }
    }
    asker.sent(TRIPS as u64);
    trips.sort_unstable_by(f64::total_cmp);
    Ok(Some(trips[TRIPS / 2]))
}
