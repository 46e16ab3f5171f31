//! How far replicas are: a position of the node that takes writes, and whether another node has reached
//! it.

use super::ask::Asker;
use dyno_core::{AdminSession, DbResult, Dialect, Session};
use dyno_facts::{Message, say};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogPosition {
    /// MariaDB: `@@gtid_binlog_pos`.
    MariadbGtid(String),
    /// MySQL: `@@gtid_executed`.
    MysqlGtids(String),
    /// PostgreSQL: a position in the write-ahead log.
    Lsn(String),
}

/// Where the node that takes writes is; `None` where it keeps no position that another node could reach:
/// replicas without GTIDs, nodes that share their storage, no log at all.
pub async fn position(session: &mut AdminSession<'_>) -> DbResult<Option<LogPosition>> {
    let (dialect, capabilities) = (session.dialect(), session.capabilities());
    let mut asker = Asker::new(session);
    let (sql, kind): (_, fn(String) -> LogPosition) = match dialect {
        Dialect::Mysql if capabilities.domain_gtids => {
            ("SELECT @@global.gtid_binlog_pos", LogPosition::MariadbGtid)
        }
        Dialect::Mysql => ("SELECT @@global.gtid_executed", LogPosition::MysqlGtids),
        Dialect::Postgres if capabilities.server_views => (
            "SELECT CASE WHEN NOT pg_is_in_recovery() THEN pg_current_wal_lsn() END",
            LogPosition::Lsn,
        ),
        Dialect::Postgres | Dialect::Sqlite => return Ok(None),
    };
    let text = asker.text(say!(asked_position), sql).await?.filter(|text| !text.is_empty());
    Ok(text.map(kind))
}

/// True where the node applies what another one sends.
pub async fn follows(session: &mut AdminSession<'_>) -> DbResult<bool> {
    let (dialect, capabilities) = (session.dialect(), session.capabilities());
    let mut asker = Asker::new(session);
    Ok(match dialect {
        Dialect::Mysql if !replica_status(&mut asker).await?.is_empty() => true,
        // An account that may not see the status may see this.
        Dialect::Mysql if capabilities.domain_gtids => {
            let sql = "SELECT @@global.gtid_slave_pos";
            asker.text(say!(asked_position), sql).await?.is_some_and(|text| !text.is_empty())
        }
        Dialect::Mysql => false,
        Dialect::Postgres => {
            let sql = "SELECT pg_is_in_recovery()";
            asker.text(say!(asked_recovery), sql).await?.is_some_and(|text| text.starts_with('t'))
        }
        Dialect::Sqlite => false,
    })
}

/// What a MySQL or MariaDB says of itself as a replica; empty where it is none.
pub(super) async fn replica_status(
    asker: &mut Asker<'_, '_>,
) -> DbResult<std::collections::BTreeMap<String, String>> {
    // MySQL 8.4 has only the new words, older servers only the old ones; MariaDB has both.
    let status = asker.record("SHOW REPLICA STATUS", "SHOW REPLICA STATUS").await?;
    match status.is_empty() {
        true => asker.record("SHOW SLAVE STATUS", "SHOW SLAVE STATUS").await,
        false => Ok(status),
    }
}

/// Why a replica applies nothing, and what lets it go on; `None` where it works, or can't tell.
pub async fn standstill(session: &mut AdminSession<'_>) -> DbResult<Option<Message>> {
    let dialect = session.dialect();
    let mut asker = Asker::new(session);
    match dialect {
        Dialect::Postgres => {
            let sql = "SELECT CASE WHEN pg_is_in_recovery() THEN pg_is_wal_replay_paused() END";
            let paused = asker.text(say!(asked_recovery), sql).await?;
            Ok(paused.filter(|text| text.starts_with('t')).map(|_| say!(replay_paused)))
        }
        Dialect::Mysql => {
            let status = replica_status(&mut asker).await?;
            let is_stopped = |thread: &&str| {
                let names = ["Replica", "Slave"].map(|word| format!("{word}_{thread}_Running"));
                names.iter().any(|name| status.get(name).is_some_and(|state| state == "No"))
            };
            let thread = ["SQL", "IO"].into_iter().find(is_stopped);
            Ok(thread.map(|thread| {
                let error = status.get(&format!("Last_{thread}_Error"));
                match error.filter(|error| !error.is_empty()) {
                    Some(error) => say!(replication_failed, thread = thread, error = error),
                    None => say!(replication_stopped, thread = thread),
                }
            }))
        }
        Dialect::Sqlite => Ok(None),
    }
}

/// Whether this node has applied all up to a position. MySQL and MariaDB wait for it up to a second;
/// PostgreSQL answers at once. `None` where the server can't tell.
pub async fn has_reached(
    session: &mut AdminSession<'_>,
    position: &LogPosition,
) -> DbResult<Option<bool>> {
    let sql = match position {
        LogPosition::MariadbGtid(gtid) => format!("SELECT MASTER_GTID_WAIT('{}', 1)", plain(gtid)),
        LogPosition::MysqlGtids(set) => {
            format!("SELECT WAIT_FOR_EXECUTED_GTID_SET('{}', 1)", plain(set))
        }
        LogPosition::Lsn(lsn) => format!(
            "SELECT CASE WHEN pg_last_wal_replay_lsn() >= '{}'::pg_lsn THEN 0 ELSE 1 END",
            plain(lsn)
        ),
    };
    let answer = Asker::new(session).text("position", &sql).await?;
    Ok(answer.map(|text| text == "0"))
}

/// Positions are digits, letters and signs between them: nothing else gets into a statement.
fn plain(position: &str) -> String {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || "-:,/_".contains(*c);
    position.chars().filter(is_plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_can_hold_nothing_but_positions() {
        assert_eq!(plain("1-3401-7000,2-1-5"), "1-3401-7000,2-1-5");
        assert_eq!(plain("a:1-7,\nb:9"), "a:1-7,b:9");
        assert_eq!(plain("0/16B3748'; DROP"), "0/16B3748DROP");
    }
}
