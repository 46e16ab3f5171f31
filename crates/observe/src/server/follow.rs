//! Progress of replicas: a position of the node that takes writes, and whether another node has reached
//! it.
//!
//! Counters and gauges of a node at one moment, and what two of them say of the time between.

use super::Asker;
use dyno_core::{AdminSession, DbResult, Dialect};
use dyno_facts::{Measures, Message, Metric, NodeRow, say};
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogPosition {
    /// MariaDB: `@@gtid_binlog_pos`.
    MariadbGtid(String),
    /// MySQL: `@@gtid_executed`.
    MysqlGtids(String),
    /// PostgreSQL: a position in the write-ahead log.
    Lsn(String),
}

/// Position of the node that takes writes; `None` if it keeps no position that another node could reach:
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

/// Returns true if the node applies what another one sends.
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

/// The state of a MySQL or MariaDB as a replica; empty if it isn't one.
pub(super) async fn replica_status(
    asker: &mut Asker<'_, '_>,
) -> DbResult<std::collections::BTreeMap<String, String>> {
    // MySQL 8.4 has only the new words, older servers only the old ones; MariaDB has both.
    let status = asker.record("SHOW REPLICA STATUS", "SHOW REPLICA STATUS").await?;
    if status.is_empty() {
        asker.record("SHOW SLAVE STATUS", "SHOW SLAVE STATUS").await
    } else {
        Ok(status)
    }
}

/// The reason why a replica applies nothing, and the remedy; `None` if it works, or can't tell.
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
            let thread = ["SQL", "IO"].into_iter().find(|thread| {
                let names = ["Replica", "Slave"].map(|word| format!("{word}_{thread}_Running"));
                names.iter().any(|name| status.get(name).is_some_and(|state| state == "No"))
            });
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

/// Returns true if this node has applied everything up to a position. MySQL and MariaDB wait for it up to a second;
/// PostgreSQL answers at once. `None` if the server can't tell.
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
    position.chars().filter(|c| c.is_ascii_alphanumeric() || "-:,/_".contains(*c)).collect()
}

/// Amount by which two clocks part at most: more than any machine's crystal allows.
const CLOCK_DRIFT: f64 = 5e-4;

/// Counters and gauges of a node at one moment. Counters count from some moment in the past.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// Sessions that execute something, without the one that asks.
    pub active_sessions: Option<f64>,
    pub waiting_sessions: Option<f64>,
    pub page_requests: Option<u64>,
    /// The ones among these that were not in the server's memory.
    pub page_misses: Option<u64>,
    pub pages_read: Option<u64>,
    pub pages_written: Option<u64>,
    pub log_bytes: Option<u64>,
    /// CPU time of statements.
    pub statement_cpu_s: Option<f64>,
    /// Dirty share of the memory for data, 0 to 1.
    pub dirty_share: Option<f64>,
    /// Log since the last checkpoint, as a share of what forces one.
    pub checkpoint_age_share: Option<f64>,
    pub checkpoints: Option<u64>,
    /// Says that a checkpoint has ended when it changes.
    pub last_checkpoint: Option<String>,
    pub commits: Option<u64>,
    /// Transactions rolled back, of clients' own accord or by the server.
    pub rollbacks: Option<u64>,
    /// Transactions in other databases of the server, where `commits` are those of one database.
    pub transactions_elsewhere: Option<u64>,
    /// When these were read, on the server's clock.
    pub elsewhere_at_s: Option<f64>,
    /// Set if each statement that dyno itself sends here counts as a commit.
    pub counts_own_commits: bool,
    pub statements: Option<u64>,
    /// The ones among these that only read.
    pub reads: Option<u64>,
    /// The ones among these that write. What a replica applies may be among them.
    pub writes: Option<u64>,
    pub rows_fetched: Option<u64>,
    pub rows_written: Option<u64>,
    /// Transactions applied from another node, if they are among the commits.
    pub replicated: Option<u64>,
    /// Set if transactions of another node are among the commits, and no one knows how many.
    pub blurs_commits: bool,
    /// Set if clients can't write: all that is written is applied from another node.
    pub refuses_writes: bool,
    /// Commits that did not wait for a semi-synchronous replica, though they should have.
    pub unacknowledged: Option<u64>,
    pub purge_backlog: Option<u64>,
    /// Replicas and how far they are behind, seconds; of a replica itself, under its own name.
    pub lag_s: BTreeMap<String, f64>,
    pub background: Vec<String>,
    /// The server was started between these two moments, in seconds on a clock that is the same for all
    /// samples of a node; `None` when only `uptime_s` is known.
    pub started_s: Option<(f64, f64)>,
    pub uptime_s: Option<f64>,
    /// When a PostgreSQL last read its configuration, whole seconds on its own clock.
    pub configured_s: Option<u64>,
    /// The settings that decide what a commit promises, as `name = value, ...`.
    pub commit_settings: Option<String>,
}

/// Replication that is further behind than this is an event.
const LAG_S: f64 = 1.0;

/// A log so full since the last checkpoint makes InnoDB flush pages ahead of everything else: its
/// asynchronous flush point is at 7/8 of the largest age.
const CROWDED: f64 = 0.875;

/// This many old row versions slow down every read that meets them; the manual of MySQL begins to throttle
/// by `innodb_max_purge_lag` at figures of this size.
const PURGE: u64 = 1_000_000;

impl Sample {
    /// The line of the series that ends at `at_s`; counters are growth since `before`.
    pub fn row(&self, before: Option<&Sample>, at_s: f64, node: &str) -> NodeRow {
        let grown =
            |get: fn(&Sample) -> Option<u64>| Some(get(self)?.checked_sub(get(before?)?)? as f64);
        NodeRow {
            at_s,
            node: node.to_owned(),
            active_sessions: self.active_sessions,
            waiting_sessions: self.waiting_sessions,
            cpu_share: None,
            pages_read: grown(|sample| sample.pages_read),
            pages_written: grown(|sample| sample.pages_written),
            log_bytes: grown(|sample| sample.log_bytes),
            dirty_share: self.dirty_share,
            lag_s: self.lag_s.values().copied().reduce(f64::max),
        }
    }

    /// Resource use since `before`, of which transactions have their share.
    pub fn used_since(&self, before: &Sample) -> Measures {
        let cpu_s = self.statement_cpu_s.zip(before.statement_cpu_s).map(|(new, old)| new - old);
        let log_bytes = self.log_bytes.zip(before.log_bytes);
        let log_bytes = log_bytes.and_then(|(new, old)| new.checked_sub(old));
        let measures = [
            (Metric::StatementCpuS, cpu_s.filter(|used_s| *used_s > 0.0)),
            (Metric::LogBytes, log_bytes.map(|bytes| bytes as f64)),
        ];
        measures.into()
    }

    /// Returns true if a checkpoint has ended since `before`; `None` when the server doesn't say.
    pub fn has_checkpointed(&self, before: &Sample) -> Option<bool> {
        match (&self.last_checkpoint, &before.last_checkpoint) {
            (Some(new), Some(old)) => Some(new != old),
            _ => None,
        }
    }

    /// Returns what has happened at the node since `before`; a restart is reported alone.
    pub fn events(&self, before: &Sample) -> Vec<Message> {
        let mut events = Vec::new();
        if self.was_restarted(before) {
            events.push(server_restarted());
            // Its counters begin again: nothing else can be compared.
            return events;
        }
        if self.checkpoints.zip(before.checkpoints).is_some_and(|(new, old)| new > old) {
            events.push(say!(checkpoint_began));
        }
        if self.has_checkpointed(before) == Some(true) {
            events.push(say!(checkpoint_ended));
        }
        if has_crossed(self.checkpoint_age_share, before.checkpoint_age_share, CROWDED) {
            events.push(say!(redo_log_nearly_full));
        }
        let [backlog, old_backlog] =
            [self, before].map(|sample| sample.purge_backlog.map(|count| count as f64));
        if has_crossed(backlog, old_backlog, PURGE as f64) {
            events.push(say!(purge_backlog));
        }
        for work in self.background.iter().filter(|work| !before.background.contains(work)) {
            events.push(say!(background_began, work = work));
        }
        for work in before.background.iter().filter(|work| !self.background.contains(work)) {
            events.push(say!(background_ended, work = work));
        }
        for (replica, &lag_s) in &self.lag_s {
            let old = before.lag_s.get(replica).copied().unwrap_or(0.0);
            if lag_s > LAG_S && old <= LAG_S {
                events.push(say!(
                    replica_behind,
                    name = replica_name(replica),
                    lag = format!("{lag_s:.1}")
                ));
            } else if lag_s <= LAG_S && old > LAG_S {
                events.push(say!(replica_caught_up, name = replica_name(replica)));
            }
        }
        for replica in before.lag_s.keys().filter(|name| !self.lag_s.contains_key(*name)) {
            events.push(say!(replica_gone, name = replica_name(replica)));
        }
        events
    }

    pub fn was_restarted(&self, before: &Sample) -> bool {
        self.was_started_after(before)
            || self.uptime_s.zip(before.uptime_s).is_some_and(|(new, old)| new < old)
    }

    /// Returns true if the times of the starts prove a restart: unlike an uptime, administrators can't reset them.
    pub fn was_started_after(&self, before: &Sample) -> bool {
        // The server's clock and this one part in the course of a long life.
        let drift_s = CLOCK_DRIFT * before.uptime_s.unwrap_or(0.0);
        let starts = self.started_s.zip(before.started_s);
        starts.is_some_and(|(new, old)| new.0 > old.1 + 1.0 + drift_s)
    }

    /// Not restarted since `before`, as far as is known: what that knew of the start is still true, and may be less
    /// vague than an answer that came late.
    pub fn stays_started(&mut self, before: &Sample) {
        if let (Some((_, to_s)), Some((_, known_s))) = (&mut self.started_s, before.started_s) {
            *to_s = to_s.min(known_s);
        }
    }
}

/// Returns true if a gauge has come above a limit that it was not above before.
fn has_crossed(new: Option<f64>, old: Option<f64>, limit: f64) -> bool {
    new.is_some_and(|new| new > limit) && old.is_some_and(|old| old <= limit)
}

pub fn server_restarted() -> Message {
    say!(server_restarted)
}

/// A replica's name; its own lag is listed as that of `itself`.
fn replica_name(replica: &str) -> Message {
    if replica == "itself" { say!(itself) } else { replica.into() }
}

/// A number among texts, whole or not.
pub(super) fn number(texts: &BTreeMap<String, String>, name: &str) -> Option<f64> {
    texts.get(name)?.parse().ok()
}

/// A whole number among texts; PostgreSQL's differences of log positions come as `1234` or `1234.0`.
pub(super) fn count(texts: &BTreeMap<String, String>, name: &str) -> Option<u64> {
    let text = texts.get(name)?;
    text.parse().ok().or_else(|| text.parse::<f64>().ok().map(|number| number as u64))
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

    fn sample_used(cpu_s: f64, log_bytes: u64) -> Sample {
        let (statement_cpu_s, log_bytes) = (Some(cpu_s), Some(log_bytes));
        Sample { statement_cpu_s, log_bytes, ..Sample::default() }
    }

    #[test]
    fn use_is_the_growth_of_counters_that_both_samples_have() {
        let used = sample_used(2.5, 700).used_since(&sample_used(2.0, 200));
        assert_eq!(
            used,
            [(Metric::StatementCpuS, Some(0.5)), (Metric::LogBytes, Some(500.0))].into()
        );
        let restarted = sample_used(0.5, 700).used_since(&sample_used(2.0, 900));
        assert_eq!(restarted, Measures::default());
        assert_eq!(sample_used(2.5, 700).used_since(&Sample::default()), Measures::default());
    }

    #[test]
    fn lines_hold_growth_and_what_was_not_said_stays_unknown() {
        let before = Sample { pages_read: Some(10), ..Sample::default() };
        let lag_s = BTreeMap::from([("a".to_owned(), 0.5), ("b".to_owned(), 2.0)]);
        let sample =
            Sample { pages_read: Some(25), log_bytes: Some(7), lag_s, ..Sample::default() };
        let row = sample.row(Some(&before), 1.0, "main");
        assert_eq!((row.pages_read, row.log_bytes, row.lag_s), (Some(15.0), None, Some(2.0)));
        assert_eq!(sample.row(None, 0.0, "main").pages_read, None);
    }

    #[test]
    fn events_are_told_once() {
        let calm = Sample {
            checkpoints: Some(1),
            last_checkpoint: Some("10".to_owned()),
            checkpoint_age_share: Some(0.5),
            lag_s: BTreeMap::from([("s1".to_owned(), 0.1)]),
            started_s: Some((100.0, 100.0)),
            ..Sample::default()
        };
        assert_eq!(calm.events(&calm), Vec::<Message>::new());
        let busy = Sample {
            checkpoints: Some(2),
            last_checkpoint: Some("20".to_owned()),
            checkpoint_age_share: Some(0.9),
            background: vec!["autovacuum: VACUUM public.sbtest3".to_owned()],
            lag_s: BTreeMap::from([("s1".to_owned(), 3.25)]),
            ..calm.clone()
        };
        let events = busy.events(&calm);
        assert_eq!(events.len(), 5, "{events:?}");
        assert!(
            events.iter().any(|event| *event == "The replica s1 is 3.2 s behind."),
            "{events:?}"
        );
        assert_eq!(busy.events(&busy), Vec::<Message>::new());
        let back = calm.events(&busy);
        assert!(back.iter().any(|event| *event == "The replica s1 has caught up."), "{back:?}");
        let gone = Sample { lag_s: BTreeMap::new(), ..calm.clone() }.events(&calm);
        assert_eq!(gone, ["The replica s1 is gone."]);
    }

    fn sample_started(from_s: f64, to_s: f64, uptime_s: f64) -> Sample {
        let (started_s, uptime_s) = (Some((from_s, to_s)), Some(uptime_s));
        Sample { started_s, uptime_s, ..Sample::default() }
    }

    #[test]
    fn a_restart_is_told_alone() {
        let before = Sample { uptime_s: Some(50.0), checkpoints: Some(1), ..Sample::default() };
        let after = Sample { uptime_s: Some(2.0), checkpoints: Some(9), ..Sample::default() };
        assert_eq!(after.events(&before), ["The server was restarted."]);
        // Back so late that it is up for longer than it was before.
        let earlier = sample_started(99.0, 100.5, 5.0);
        assert_eq!(
            sample_started(110.0, 111.0, 8.0).events(&earlier),
            ["The server was restarted."]
        );
        // An answer that came late says only that the start was not later.
        let mut late = sample_started(99.2, 120.0, 6.0);
        assert_eq!(late.events(&earlier), Vec::<Message>::new());
        // The next one in time says what it was, and is not measured by the late one.
        late.stays_started(&earlier);
        assert_eq!(sample_started(110.0, 111.0, 9.0).events(&late), ["The server was restarted."]);
        let old = sample_started(99.0, 100.5, 36_000.0);
        assert_eq!(sample_started(110.0, 111.0, 36_001.0).events(&old), Vec::<Message>::new());
    }
}
