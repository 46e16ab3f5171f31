//! PostgreSQL 10 to 18: the statistics views, the control file, the replication view.
//!
//! Views move between versions: checkpoints went from `pg_stat_bgwriter` to `pg_stat_checkpointer` in 17,
//! log records have `pg_stat_wal` since 14, input and output `pg_stat_io` since 16.

use super::follow::{count, number};
use super::{Answer, Asker, cell, checksum, column, property, setting, trigger};
use super::{NodeState, Sample, ServerFacts, Tables, round_trip_us};
use dyno_core::DbResult;
use dyno_facts::{CommitWait, ReplicaFacts, say};
use std::collections::BTreeMap;

const DATABASE: &str = "SELECT 'database.' || key, value FROM pg_stat_database d, \
jsonb_each_text(to_jsonb(d)) WHERE d.datname = current_database() AND key NOT IN ('datid', 'datname')";
const BGWRITER: &str = "SELECT 'bgwriter.' || key, value FROM pg_stat_bgwriter b, \
jsonb_each_text(to_jsonb(b))";
const CHECKPOINTER: &str = "SELECT 'checkpointer.' || key, value FROM pg_stat_checkpointer c, \
jsonb_each_text(to_jsonb(c))";
const WAL: &str = "SELECT 'wal.' || key, value FROM pg_stat_wal w, jsonb_each_text(to_jsonb(w))";
const REPLICAS: &str = "SELECT 'replica.' || coalesce(application_name, '?'), sync_state \
FROM pg_stat_replication";

/// Queries for all counters, `name, value` rows each.
pub(super) fn statistics(version: u32) -> Vec<&'static str> {
    let mut queries = vec![DATABASE, BGWRITER, REPLICAS];
    if version >= 14 {
        queries.push(WAL);
    }
    if version >= 17 {
        queries.push(CHECKPOINTER);
    }
    queries
}

/// The main version, such as 15; 0 when it isn't known.
pub(super) fn version(facts: &ServerFacts) -> u32 {
    count(&facts.settings, "server_version_num").unwrap_or(0) as u32 / 10_000
}

const GAUGES: &str = include_str!("postgres/gauges.sql");

const WRITTEN_BEFORE_17: &str = "SELECT checkpoints_timed + checkpoints_req AS checkpoints, \
buffers_checkpoint + buffers_clean + buffers_backend AS written FROM pg_stat_bgwriter";
const WRITTEN: &str = include_str!("postgres/written.sql");

const LOG: &str = "SELECT pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() \
THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END, '0/0') AS log_bytes";

const CONTROL: &str = include_str!("postgres/control.sql");

const BACKGROUND: &str = include_str!("postgres/background.sql");

const FOLLOWERS: &str = include_str!("postgres/followers.sql");

/// The class of the advisory locks that dyno holds on the tables of a run: `dyno` in ASCII.
pub const LOCK_CLASS: i32 = 0x6479_6e6f;

/// Query for other connections, and since when they do nothing. Workers of parallel queries and of autovacuum are not
/// clients; what may not be seen (`pg_read_all_stats`) is null.
fn other_sessions_sql() -> String {
    format!(
        "SELECT pid, CASE WHEN state LIKE 'idle%' THEN state_change END FROM pg_stat_activity a \
         WHERE datname = current_database() AND usesysid IS NOT NULL AND pid <> pg_backend_pid() \
         AND backend_type IS DISTINCT FROM 'parallel worker' AND NOT EXISTS (SELECT 1 \
         FROM pg_locks l WHERE l.pid = a.pid AND locktype = 'advisory' AND classid::bigint = {LOCK_CLASS})"
    )
}

/// Only sessions of clients count here, not parallel workers, whose two commits each are in `xact_commit`.
const SESSIONS: &str = "SELECT sessions FROM pg_stat_database WHERE datname = current_database()";

const OWN_LAG: &str = include_str!("postgres/own_lag.sql");

/// Returns how the server is reached, from its answer and the process that the login promised: a pooler has promised its own
/// process, and the rest is then the route from the pooler to the server.
fn transport(row: &[Option<String>], promised: Option<u32>, is_encrypted: bool) -> String {
    let process = cell(row, 1).parse::<u32>().ok();
    let is_pooled = promised.is_some() && process.is_some() && promised != process;
    let pooler = if is_pooled { "pooler, " } else { "" };
    let tls = if is_encrypted { ", tls" } else { "" };
    format!("{pooler}{}{tls}", cell(row, 0))
}

/// Queries the state of a server with these settings and counters.
pub(super) async fn state(
    asker: &mut Asker<'_, '_>,
    facts: &ServerFacts,
    tables: &Tables<'_>,
) -> DbResult<NodeState> {
    let version = version(facts);
    let mut sample = query_sample(asker, version).await?;
    sample.dirty_share = dirty_share(asker, version).await?;
    (sample.reads, sample.writes) = by_kind(asker, version).await?;
    let dead = "SELECT sum(n_dead_tup) FROM pg_stat_user_tables";
    sample.purge_backlog = asker.count(say!(asked_dead_rows), dead).await?;
    let cache = "SELECT pg_size_bytes(current_setting('shared_buffers'))";
    let size = "SELECT pg_database_size(current_database())";
    let interval = "SELECT setting FROM pg_settings WHERE name = 'checkpoint_timeout'";
    let tls = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    let address = "SELECT CASE WHEN inet_server_addr() IS NULL THEN 'unix socket' ELSE 'tcp' END, \
                   pg_backend_pid()";
    let followers = asker.rows(say!(asked_replicas), FOLLOWERS).await?;
    let sessions = match version {
        14.. => asker.count(say!(asked_sessions), SESSIONS).await?,
        _ => None,
    };
    let other_sessions = asker.rows(say!(asked_sessions), &other_sessions_sql()).await?;
    let other_sessions =
        other_sessions.iter().map(|row| (cell(row, 0).to_owned(), row.get(1).cloned().flatten()));
    let described = Described::query_tables(asker, tables).await?;
    let promised = asker.session.proof().and_then(|proof| proof.process);
    let connection = asker.rows(say!(asked_transport), address).await?;
    let is_encrypted =
        asker.text(say!(asked_encryption), tls).await?.is_some_and(|ssl| ssl.starts_with('t'));
    let transport = connection.first().map(|row| transport(row, promised, is_encrypted));
    Ok(NodeState {
        round_trip_us: round_trip_us(asker).await?,
        isolation: setting(facts, "default_transaction_isolation").map(str::to_uppercase),
        cache_bytes: asker.count(say!(asked_memory_for_data), cache).await?,
        checkpoint_interval_s: asker.number(say!(asked_checkpoint_interval), interval).await?,
        data_bytes: asker.count(say!(asked_size_of_database), size).await?,
        tables_without_statistics: described.without_statistics,
        schema_checksum: described.checksum,
        schema: described.schema,
        table_rows: described.rows,
        row_bytes: asker.row_bytes(tables, include_str!("postgres/lengths.sql")).await?,
        replicas: followers.iter().map(|row| replica_facts(row)).collect(),
        acknowledged_by: Some(acknowledged_by(facts, &followers)),
        transport,
        sessions,
        others: other_sessions.collect(),
        sample,
        ..NodeState::default()
    })
}

/// Queries counters and gauges; the main `version` is found out with the first sample, when it is 0.
pub(super) async fn sample(asker: &mut Asker<'_, '_>, version: &mut u32) -> DbResult<Sample> {
    if *version == 0 {
        let version_number = asker.number(say!(asked_version), "SHOW server_version_num").await?;
        *version = version_number.unwrap_or(0.0) as u32 / 10_000;
    }
    let mut sample = query_sample(asker, *version).await?;
    let work = asker.rows(say!(asked_background_work), BACKGROUND).await?;
    sample.background = work.iter().map(|row| plain(cell(row, 0))).collect();
    for row in asker.rows(say!(asked_replicas), FOLLOWERS).await? {
        let lag = cell(&row, 3).parse().ok();
        sample.lag_s.extend(lag.map(|lag: f64| (cell(&row, 0).to_owned(), lag)));
    }
    let own_lag = asker.number(say!(asked_replication_lag), OWN_LAG).await?;
    sample.lag_s.extend(own_lag.map(|lag| ("itself".to_owned(), lag)));
    Ok(sample)
}

async fn query_sample(asker: &mut Asker<'_, '_>, version: u32) -> DbResult<Sample> {
    let mut texts = asker.record(say!(asked_activity), GAUGES).await?;
    let written = if version >= 17 { WRITTEN } else { WRITTEN_BEFORE_17 };
    texts.extend(asker.record(say!(asked_pages_written), written).await?);
    texts.extend(asker.record(say!(asked_log_position), LOG).await?);
    texts.extend(asker.record(say!(asked_last_checkpoint), CONTROL).await?);
    Ok(parse_sample(&texts))
}

fn parse_sample(texts: &BTreeMap<String, String>) -> Sample {
    let reads = count(texts, "reads");
    let age = number(texts, "log_bytes").zip(number(texts, "redo"));
    let max_age = number(texts, "most").filter(|&max_age| max_age > 0.0);
    Sample {
        active_sessions: number(texts, "active"),
        waiting_sessions: number(texts, "waiting"),
        page_requests: count(texts, "hits").zip(reads).map(|(hits, reads)| hits + reads),
        page_misses: reads,
        pages_read: reads,
        pages_written: count(texts, "written"),
        log_bytes: count(texts, "log_bytes"),
        checkpoint_age_share: age
            .zip(max_age)
            .map(|((log, redo), max_age)| ((log - redo) / max_age).max(0.0)),
        checkpoints: count(texts, "checkpoints"),
        last_checkpoint: texts.get("last").cloned(),
        commits: count(texts, "commits"),
        rollbacks: count(texts, "rollbacks"),
        transactions_elsewhere: count(texts, "elsewhere"),
        elsewhere_at_s: number(texts, "elsewhere_at"),
        rows_fetched: count(texts, "fetched"),
        rows_written: count(texts, "changed"),
        counts_own_commits: true,
        started_s: number(texts, "started").map(|at_s| (at_s, at_s)),
        configured_s: count(texts, "configured"),
        commit_settings: texts.get("commit_settings").cloned(),
        ..Sample::default()
    }
}

/// The servers that this one reaches by postgres_fdw.
pub(super) async fn foreign_servers(asker: &mut Asker<'_, '_>) -> DbResult<Vec<String>> {
    let names = "SELECT srvname FROM pg_foreign_server s JOIN pg_foreign_data_wrapper w \
                 ON w.oid = s.srvfdw WHERE fdwname = 'postgres_fdw' ORDER BY 1";
    let rows = asker.rows(say!(asked_foreign_servers), names).await?;
    Ok(rows.iter().map(|row| cell(row, 0).to_owned()).collect())
}

/// Statements that read and that write, ever since; only the extension `pg_stat_statements` counts them, if
/// it is installed.
async fn by_kind(asker: &mut Asker<'_, '_>, version: u32) -> DbResult<(Option<u64>, Option<u64>)> {
    let installed = "SELECT count(*) FROM pg_extension WHERE extname = 'pg_stat_statements'";
    if asker.number(say!(asked_extensions), installed).await? != Some(1.0) {
        return Ok((None, None));
    }
    // Statements inside of functions are not client's, if they are distinguished.
    let top_level = if version >= 14 { " AND toplevel" } else { "" };
    let calls = format!(
        "SELECT coalesce(sum(calls) FILTER (WHERE query ~* '^\\s*(select|with|values|table)\\M'), 0) \
         AS reads, coalesce(sum(calls) FILTER \
         (WHERE query ~* '^\\s*(insert|update|delete|merge|copy)\\M'), 0) AS writes \
         FROM pg_stat_statements WHERE dbid = \
         (SELECT oid FROM pg_database WHERE datname = current_database()){top_level}"
    );
    let texts = asker.record(say!(asked_statements_by_kind), &calls).await?;
    Ok((count(&texts, "reads"), count(&texts, "writes")))
}

/// The share of dirty pages; only the extension `pg_buffercache` knows it, if it is installed.
async fn dirty_share(asker: &mut Asker<'_, '_>, version: u32) -> DbResult<Option<f64>> {
    let installed = "SELECT count(*) FROM pg_extension WHERE extname = 'pg_buffercache'";
    if asker.number(say!(asked_extensions), installed).await? != Some(1.0) {
        return Ok(None);
    }
    let share = if version >= 16 {
        "SELECT buffers_dirty::float8 / nullif(buffers_used + buffers_unused, 0) \
         FROM pg_buffercache_summary()"
    } else {
        "SELECT avg(CASE WHEN isdirty THEN 1.0 ELSE 0.0 END)::float8 FROM pg_buffercache"
    };
    asker.number(say!(asked_dirty_pages), share).await
}

/// Properties that decide plans and costs besides columns, indexes and triggers: storage of tables, extended
/// statistics, for, rules and functions, as far as somebody has set them. Those of extensions come with their version.
const PROPERTIES: &str = include_str!("postgres/properties.sql");

struct Described {
    without_statistics: Vec<String>,
    rows: BTreeMap<String, u64>,
    checksum: Option<String>,
    schema: BTreeMap<String, String>,
}

impl Described {
    async fn query_tables(asker: &mut Asker<'_, '_>, tables: &Tables<'_>) -> DbResult<Self> {
        // Empty tables have no statistics, and partitioned ones hold nothing themselves. Negative
        // rows: never counted. Rows since the last count are known to the server's statistics alone.
        let statistics = include_str!("postgres/tables.sql");
        let columns = include_str!("postgres/columns.sql");
        let indexes = "SELECT tablename, indexname, indexdef FROM pg_indexes \
                       WHERE schemaname = ANY (current_schemas(false)) ORDER BY 1, 2";
        // Without what it is called and where: `BEFORE UPDATE ... FOR EACH ROW EXECUTE FUNCTION f()`.
        let triggers = include_str!("postgres/triggers.sql");
        let mut statistics = asker.rows(say!(asked_statistics_of_optimizer), statistics).await?;
        statistics.retain(|row| tables.has(cell(row, 0)));
        let columns = asker.rows_for(tables, say!(asked_columns), columns).await?;
        let indexes = asker.rows_for(tables, say!(asked_indexes), indexes).await?;
        let triggers = asker.rows_for(tables, say!(asked_triggers), triggers).await?;
        let properties = asker.rows_for(tables, say!(asked_properties), PROPERTIES).await?;
        let index_lines = indexes.iter().map(|row| {
            let definition = cell(row, 2);
            let unique = if definition.contains(" UNIQUE ") { "unique, " } else { "" };
            let method = definition.split_once(" USING ").map_or(definition, |(_, method)| method);
            (format!("index {}.{}", cell(row, 0), cell(row, 1)), format!("{unique}{method}"))
        });
        let column_lines = columns.iter().map(|row| match cell(row, 3) {
            "true" => (column(&row[..3]).0, format!("{} NOT NULL", cell(row, 2))),
            _ => column(&row[..3]),
        });
        let trigger_lines = triggers.iter().map(|row| trigger(row, cell(row, 4)));
        let schema = column_lines.chain(index_lines).chain(trigger_lines);
        let schema = schema.chain(properties.iter().map(|row| property(row))).collect();
        let rows = statistics.iter().filter_map(|row| {
            let count = cell(row, 1).parse::<f64>().ok().filter(|&count| count >= 0.0)?;
            Some((cell(row, 0).to_owned(), count as u64))
        });
        Ok(Described {
            without_statistics: statistics
                .iter()
                .filter(|row| cell(row, 2).starts_with('f'))
                .map(|row| cell(row, 0).to_owned())
                .collect(),
            rows: rows.collect(),
            checksum: checksum(columns.iter().chain(&indexes).chain(&triggers).chain(&properties)),
            schema,
        })
    }
}

fn replica_facts(row: &[Option<String>]) -> ReplicaFacts {
    ReplicaFacts {
        name: cell(row, 0).to_owned(),
        mode: cell(row, 1).to_owned(),
        state: cell(row, 2).to_owned(),
        lag_s: cell(row, 3).parse().ok(),
    }
}

/// The event that a commit waits for, from `synchronous_commit` and `synchronous_standby_names`.
fn acknowledged_by(facts: &ServerFacts, followers: &Answer) -> CommitWait {
    let commit = setting(facts, "synchronous_commit").unwrap_or_default();
    let names = setting(facts, "synchronous_standby_names").unwrap_or_default().trim();
    if commit == "off" {
        return CommitWait::Local(say!(acknowledged_by_nothing));
    }
    if commit == "local" || names.is_empty() {
        return CommitWait::Local(say!(acknowledged_locally));
    }
    let (is_any, count, listed) = parse_standby_names(names);
    // `*` means whoever is there.
    let total = if listed == ["*"] { followers.len() } else { listed.len() };
    let copies = if is_any {
        say!(acknowledged_by_any, count = count, all = total)
    } else {
        say!(acknowledged_by_first, count = count, all = total)
    };
    CommitWait::Copies(match commit {
        "on" => copies,
        level => say!(acknowledged_at_level, copies = copies, level = level),
    })
}

/// `ANY 2 (a, b, c)`, `FIRST 1 (a, b)`, `2 (a, b)` or `a, b`.
fn parse_standby_names(names: &str) -> (bool, u64, Vec<&str>) {
    let (head, list) = match names.split_once('(') {
        Some((head, rest)) => (Some(head), rest.trim_end().trim_end_matches(')')),
        None => (None, names),
    };
    let listed: Vec<&str> = list.split(',').map(str::trim).collect();
    let Some(head) = head else { return (false, 1, listed) };
    let mut words = head.split_whitespace();
    let first = words.next().unwrap_or("1");
    if first.eq_ignore_ascii_case("any") {
        return (true, words.next().and_then(|count| count.parse().ok()).unwrap_or(1), listed);
    }
    let count = if first.eq_ignore_ascii_case("first") { words.next() } else { Some(first) };
    (false, count.and_then(|count| count.parse().ok()).unwrap_or(1), listed)
}

/// One line, not too long.
fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit_facts(commit: &str, names: &str) -> ServerFacts {
        let settings = [("synchronous_commit", commit), ("synchronous_standby_names", names)];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
        ServerFacts { settings: BTreeMap::from(settings), ..ServerFacts::default() }
    }

    #[test]
    fn a_commit_waits_for_what_both_settings_say() {
        for (commit, names, has_copy, words) in [
            ("on", "", false, "local"),
            ("local", "s1", false, "local"),
            ("off", "ANY 1 (s1)", false, "nothing (synchronous_commit = off)"),
            ("on", "ANY 2 (s1, s2, s3)", true, "any 2 of 3"),
            ("on", "FIRST 1 (s1, s2)", true, "first 1 of 2"),
            ("on", "2 (s1, s2)", true, "first 2 of 2"),
            ("on", "s1", true, "first 1 of 1"),
            ("remote_apply", "ANY 1 (*)", true, "any 1 of 3 (remote_apply)"),
        ] {
            let wait = acknowledged_by(&commit_facts(commit, names), &vec![vec![]; 3]);
            assert_eq!(wait.words(), &words);
            assert_eq!(wait.has_copy(), has_copy, "{words}");
        }
    }

    fn connection_row(process: &str) -> [Option<String>; 2] {
        ["tcp", process].map(|text| Some(text.to_owned()))
    }

    #[test]
    fn a_pooler_promises_a_process_that_is_not_the_servers() {
        assert_eq!(transport(&connection_row("42"), Some(42), false), "tcp");
        assert_eq!(transport(&connection_row("42"), Some(42), true), "tcp, tls");
        assert_eq!(transport(&connection_row("42"), Some(7), false), "pooler, tcp");
        assert_eq!(transport(&connection_row("42"), None, false), "tcp", "no key at all");
        assert_eq!(transport(&connection_row("x"), Some(7), false), "tcp", "no answer");
    }

    #[test]
    fn counters_move_with_the_version() {
        assert!(!statistics(13).contains(&WAL) && statistics(14).contains(&WAL));
        assert!(!statistics(16).contains(&CHECKPOINTER) && statistics(17).contains(&CHECKPOINTER));
        let mut facts = ServerFacts::default();
        assert_eq!(version(&facts), 0);
        facts.settings.insert("server_version_num".to_owned(), "150017".to_owned());
        assert_eq!(version(&facts), 15);
    }

    #[test]
    fn log_since_the_checkpoint_is_a_share_of_what_forces_one() {
        let pairs = [
            ("log_bytes", "3000"),
            ("redo", "1000"),
            ("most", "10000"),
            ("hits", "90"),
            ("reads", "10"),
            ("elsewhere", "42"),
        ];
        let texts = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let sample = parse_sample(&BTreeMap::from(texts));
        assert_eq!(sample.checkpoint_age_share, Some(0.2));
        assert_eq!((sample.page_requests, sample.page_misses), (Some(100), Some(10)));
        assert_eq!((sample.checkpoints, sample.transactions_elsewhere), (None, Some(42)));
    }
}
