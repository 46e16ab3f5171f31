//! Read-only nodes must show the data that were loaded: those of a primary that they copy.

use crate::databases::{self, ReachedDatabase, ReachedNode};
use crate::failure::Failure;
use dyno_core::{AdminSession, DbError, Dialect, Discard, MILLISECOND, Nanos, SECOND, Session};
use dyno_facts::Role;
use dyno_load::query::answer_if_any;
use dyno_observe::follows;
use dyno_reactor::{now, sleep_until, timeout};
use std::process;

/// How long a table may take to appear.
const ARRIVES_WITHIN: Nanos = 10 * SECOND;
/// How long all questions to a node may take.
const PATIENCE: Nanos = 30 * SECOND;
const STEP: Nanos = 20 * MILLISECOND;

enum Kinship {
    Copy,
    SameServer,
    Stranger,
}

/// # Errors
/// A read-only node is the primary itself, or does not show a table that was made there.
pub(crate) fn check(reached: &ReachedDatabase) -> Result<(), Failure> {
    let Some(primary) = reached.nodes.iter().find(|node| node.role == Role::Primary) else {
        return Ok(());
    };
    for node in reached.nodes.iter().filter(|node| node.role == Role::ReadOnly) {
        let (name, origin) = (&node.name, &primary.name);
        let question =
            async { timeout(now() + PATIENCE, kinship(primary, node)).await.ok().transpose() };
        // What can't be found out now is seen in the trials.
        let message = match databases::run(question) {
            Ok(Some(Kinship::SameServer)) => {
                format!("The read-only node {name} is the same server as the primary {origin}.")
            }
            Ok(Some(Kinship::Stranger)) => format!(
                "The read-only node {name} is no replica of the primary {origin}: a table that was made there has not appeared \
                 within {} s.",
                ARRIVES_WITHIN / SECOND
            ),
            Ok(_) | Err(_) => continue,
        };
        return Err(Failure::new(message)
            .with_hint(format!("Name a replica of {origin} instead, or leave the node out.")));
    }
    Ok(())
}

async fn kinship(primary: &ReachedNode, node: &ReachedNode) -> Result<Kinship, DbError> {
    let (primary, node) = (primary.database.admin(), node.database.admin());
    databases::in_session(&node, async |reader| {
        if follows(reader).await? {
            return Ok(Kinship::Copy);
        }
        databases::in_session(&primary, async |writer| match is_same(writer, reader).await? {
            true => Ok(Kinship::SameServer),
            false => sees_writes(writer, reader).await,
        })
        .await
    })
    .await
}

/// True if a lock of one session, which no server replicates, stands in the other's way.
async fn is_same(
    writer: &mut AdminSession<'_>,
    reader: &mut AdminSession<'_>,
) -> Result<bool, DbError> {
    if !["PostgreSQL", "MySQL", "MariaDB"].contains(&writer.product().name.as_str()) {
        return Ok(false);
    }
    let number = process::id();
    let (begin, lock, look, end) = match writer.dialect() {
        Dialect::Postgres => (
            "BEGIN".to_owned(),
            format!("SELECT pg_advisory_xact_lock({number}, {number})"),
            format!(
                "SELECT CASE WHEN pg_try_advisory_xact_lock({number}, {number}) THEN 1 ELSE 0 END"
            ),
            "ROLLBACK".to_owned(),
        ),
        _ => (
            "DO 0".to_owned(),
            format!("SELECT GET_LOCK('dyno_{number}', 0)"),
            format!("SELECT IS_FREE_LOCK('dyno_{number}')"),
            format!("DO RELEASE_LOCK('dyno_{number}')"),
        ),
    };
    writer.query(&begin, &mut Discard).await?;
    let is_locked = answer_if_any(writer, &lock).await?.is_some();
    let answer = answer_if_any(reader, &look).await?;
    answer_if_any(writer, &end).await?;
    Ok(is_locked && answer.is_some_and(|free| free.single() == Some("0")))
}

async fn sees_writes(
    writer: &mut AdminSession<'_>,
    reader: &mut AdminSession<'_>,
) -> Result<Kinship, DbError> {
    let table = format!("dyno_copy_{}", process::id());
    // Who may make no table loads none.
    let create = format!("CREATE TABLE {table} (id INTEGER NOT NULL PRIMARY KEY)");
    if answer_if_any(writer, &create).await?.is_none() {
        return Ok(Kinship::Copy);
    }
    let look = format!("SELECT count(*) FROM {table}");
    let arrival = async {
        while answer_if_any(reader, &look).await?.is_none() {
            sleep_until(now() + STEP).await;
        }
        Ok::<(), DbError>(())
    };
    // The table goes whatever becomes of the reader, which may hang.
    let arrived = timeout(now() + ARRIVES_WITHIN, arrival).await;
    answer_if_any(writer, &format!("DROP TABLE {table}")).await?;
    let is_seen = arrived.ok().transpose()?.is_some();
    Ok(if is_seen { Kinship::Copy } else { Kinship::Stranger })
}
