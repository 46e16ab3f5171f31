//! MySQL and MariaDB: `SHOW GLOBAL STATUS`, `information_schema`, the process list.
//!
//! Names of counters are those of the reference manuals of MySQL 5.6 to 9 and MariaDB 10 and 11; where
//! the two differ, both are looked for.

use super::follow::{count, number, replica_status};
use super::{Answer, Asker, cell, checksum, column, property, setting, trigger};
use super::{NodeState, Sample, ServerFacts, Tables, round_trip_us};
use dyno_core::{DbResult, SECOND};
use dyno_facts::{CommitWait, ReplicaFacts, say};
use dyno_reactor::now;
use std::collections::BTreeMap;

const STATUS: &str = include_str!("mysql/status.sql");

/// `Com_...` of statements that write rows; servers count prepared ones among them.
const WRITES: &str =
    "insert update delete replace insert_select replace_select update_multi delete_multi load";

/// Statements that work on whole tables, and copies of the server's data.
const BACKGROUND: &str = include_str!("mysql/background.sql");

const COMMIT_SETTINGS: &str = include_str!("mysql/commit_settings.sql");

const DUMPS: &str = "SELECT host, state FROM information_schema.processlist \
WHERE command LIKE 'Binlog Dump%' ORDER BY host";

/// Queries the state of a server with these settings and counters.
pub(super) async fn state(
    asker: &mut Asker<'_, '_>,
    facts: &ServerFacts,
    tables: &Tables<'_>,
) -> DbResult<NodeState> {
    if setting(facts, "information_schema_stats_expiry").is_some() {
        // Else MySQL 8 answers with figures up to a day old.
        asker
            .rows(say!(asked_fresh_sizes), "SET SESSION information_schema_stats_expiry = 0")
            .await?;
    }
    let mut sample = sample_from(&facts.counters);
    sample.started_s = started_s(&sample, asker.began_s);
    sample.commit_settings = asker.text(say!(asked_commit_settings), COMMIT_SETTINGS).await?;
    // FLUSH STATUS makes counters begin again as a restart does.
    let flushed_s = number(&facts.counters, "Uptime_since_flush_status");
    sample.uptime_s = flushed_s.or(sample.uptime_s);
    sample.replicated = replicated(facts);
    sample.refuses_writes = setting(facts, "read_only").is_some_and(|on| on == "ON" || on == "1");
    sample.blurs_commits = sample.refuses_writes && sample.replicated.is_none();
    sample.checkpoint_age_share = sample.checkpoint_age_share.or_else(|| redo_share(facts));
    if sample.purge_backlog.is_none() {
        let purge = "SELECT count FROM information_schema.innodb_metrics \
                     WHERE name = 'trx_rseg_history_len'";
        sample.purge_backlog = asker.count(say!(asked_purge_backlog), purge).await?;
    }
    let sizes = include_str!("mysql/sizes.sql");
    let sizes = asker.rows(say!(asked_sizes_of_tables), sizes).await?;
    let host = "SELECT host FROM information_schema.processlist WHERE id = connection_id()";
    let host = asker.text(say!(asked_transport), host).await?;
    let cipher =
        asker.rows(say!(asked_encryption), "SHOW SESSION STATUS LIKE 'Ssl_cipher'").await?;
    let dumps = asker.rows(say!(asked_replicas), DUMPS).await?;
    let members = group_members(asker, facts).await?;
    let (schema_checksum, schema) = query_schema(asker, tables).await?;
    let total_bytes: u64 = sizes.iter().filter_map(|row| cell(row, 2).parse::<u64>().ok()).sum();
    let isolation =
        setting(facts, "transaction_isolation").or_else(|| setting(facts, "tx_isolation"));
    let table_rows: BTreeMap<String, u64> = sizes
        .iter()
        .filter(|row| tables.has(cell(row, 0)))
        .filter_map(|row| Some((cell(row, 0).to_owned(), cell(row, 1).parse().ok()?)))
        .collect();
    Ok(NodeState {
        sample,
        round_trip_us: round_trip_us(asker).await?,
        isolation: isolation.map(str::to_owned),
        cache_bytes: setting(facts, "innodb_buffer_pool_size").and_then(|bytes| bytes.parse().ok()),
        data_bytes: (!sizes.is_empty()).then_some(total_bytes),
        query_cache: query_cache(facts),
        tables_without_statistics: without_statistics(asker, &sizes, tables).await?,
        schema_checksum,
        schema,
        table_rows,
        row_bytes: asker.row_bytes(tables, include_str!("mysql/lengths.sql")).await?,
        replicas: replicas(&dumps, &facts.counters),
        acknowledged_by: Some(acknowledged_by(facts, members)),
        transport: host.map(|host| transport(&host, &cipher)),
        ..NodeState::default()
    })
}

/// Queries counters and gauges; `is_replica` is found out with the first sample.
pub(super) async fn sample(
    asker: &mut Asker<'_, '_>,
    is_replica: &mut Option<bool>,
) -> DbResult<Sample> {
    let status = asker.rows(say!(asked_counters), STATUS).await?;
    let status: BTreeMap<_, _> =
        status.iter().map(|row| (cell(row, 0).to_owned(), cell(row, 1).to_owned())).collect();
    let mut sample = sample_from(&status);
    sample.started_s = started_s(&sample, asker.began_s);
    sample.commit_settings = asker.text(say!(asked_commit_settings), COMMIT_SETTINGS).await?;
    let work = asker.rows(say!(asked_background_work), BACKGROUND).await?;
    sample.background = work.iter().map(|row| shortened(cell(row, 0))).collect();
    if *is_replica != Some(false) {
        let replica = replica_status(asker).await?;
        *is_replica = Some(!replica.is_empty());
        let lag = number(&replica, "Seconds_Behind_Source")
            .or_else(|| number(&replica, "Seconds_Behind_Master"));
        sample.lag_s.extend(lag.map(|lag| ("itself".to_owned(), lag)));
    }
    Ok(sample)
}

/// Returns the earliest and the latest moment of a server's start: it says whole seconds, and its answer may have
/// waited.
fn started_s(sample: &Sample, began_s: f64) -> Option<(f64, f64)> {
    sample.uptime_s.map(|uptime_s| (began_s - uptime_s - 1.0, clock_s() - uptime_s))
}

pub(super) fn clock_s() -> f64 {
    now() as f64 / SECOND as f64
}

fn sample_from(status: &BTreeMap<String, String>) -> Sample {
    let dirty = number(status, "Innodb_buffer_pool_pages_dirty");
    let total = number(status, "Innodb_buffer_pool_pages_total").filter(|&total| total > 0.0);
    let age = number(status, "Innodb_checkpoint_age");
    let oldest = number(status, "Innodb_checkpoint_max_age").filter(|&oldest| oldest > 0.0);
    let commits = count(status, "Com_commit");
    Sample {
        active_sessions: number(status, "Threads_running").map(|running| (running - 1.0).max(0.0)),
        waiting_sessions: number(status, "Innodb_row_lock_current_waits"),
        page_requests: count(status, "Innodb_buffer_pool_read_requests"),
        page_misses: count(status, "Innodb_buffer_pool_reads"),
        pages_read: count(status, "Innodb_pages_read"),
        pages_written: first_count(
            status,
            &["Innodb_pages_written", "Innodb_buffer_pool_pages_flushed"],
        ),
        log_bytes: first_count(
            status,
            &["Innodb_lsn_current", "Innodb_redo_log_current_lsn", "Innodb_os_log_written"],
        ),
        dirty_share: dirty.zip(total).map(|(dirty, total)| dirty / total),
        checkpoint_age_share: age.zip(oldest).map(|(age, oldest)| age / oldest),
        commits: commits.map(|commits| commits + count(status, "Com_xa_commit").unwrap_or(0)),
        // A ROLLBACK outside of a transaction does nothing in the engine, and engines roll statements back by
        // themselves.
        rollbacks: count(status, "Com_rollback").min(count(status, "Handler_rollback")),
        statements: count(status, "Questions"),
        reads: count(status, "Com_select"),
        writes: count(status, "Com_insert").map(|_| {
            WRITES.split(' ').filter_map(|name| count(status, &format!("Com_{name}"))).sum()
        }),
        unacknowledged: first_count(
            status,
            &["Rpl_semi_sync_source_no_tx", "Rpl_semi_sync_master_no_tx"],
        ),
        purge_backlog: count(status, "Innodb_history_list_length"),
        uptime_s: number(status, "Uptime"),
        ..Sample::default()
    }
}

/// The first of these numbers that the server has: versions differ in their names.
fn first_count(texts: &BTreeMap<String, String>, names: &[&str]) -> Option<u64> {
    names.iter().find_map(|name| count(texts, name))
}

/// From MySQL 8.0.30 on: the log since the checkpoint by the capacity.
fn redo_share(facts: &ServerFacts) -> Option<f64> {
    let current = number(&facts.counters, "Innodb_redo_log_current_lsn")?;
    let checkpoint = number(&facts.counters, "Innodb_redo_log_checkpoint_lsn")?;
    let capacity =
        number(&facts.settings, "innodb_redo_log_capacity").filter(|&size| size > 0.0)?;
    Some((current - checkpoint) / capacity)
}

/// Transactions that came from other nodes, by the positions that the server keeps of them; both products
/// count them among `Com_commit`. `None` if it keeps none.
fn replicated(facts: &ServerFacts) -> Option<u64> {
    if let Some(position) = setting(facts, "gtid_slave_pos").filter(|set| !set.is_empty()) {
        // MariaDB: the last one of each domain, `1-3401-7000,2-1-5`.
        let gtids = position.split(',');
        return gtids.map(|gtid| gtid.rsplit('-').next()?.trim().parse::<u64>().ok()).sum();
    }
    // MySQL: all that were ever executed, by the server that did so first, `uuid:1-7:9-12,uuid:1`.
    let server_uuid = setting(facts, "server_uuid").unwrap_or_default();
    let executed = setting(facts, "gtid_executed").filter(|set| !set.is_empty())?;
    let foreign = executed.split(',').map(str::trim);
    let foreign = foreign.filter(|set| server_uuid.is_empty() || !set.starts_with(server_uuid));
    let lengths = foreign.flat_map(|set| set.split(':').skip(1)).map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        last.parse::<u64>().ok().zip(first.parse::<u64>().ok()).map_or(0, |(l, f)| l - f.min(l) + 1)
    });
    Some(lengths.sum())
}

/// The query cache answers when it has memory and is requested.
fn query_cache(facts: &ServerFacts) -> Option<bool> {
    let kind = facts.settings.get("query_cache_type")?;
    let size = number(&facts.settings, "query_cache_size").unwrap_or(0.0);
    Some(size > 0.0 && !kind.eq_ignore_ascii_case("OFF") && kind != "0")
}

async fn without_statistics(
    asker: &mut Asker<'_, '_>,
    sizes: &Answer,
    tables: &Tables<'_>,
) -> DbResult<Vec<String>> {
    // Partitions have separate lines: `orders#P#p0`.
    let query = "SELECT DISTINCT SUBSTRING_INDEX(LOWER(table_name), '#p#', 1) \
                 FROM mysql.innodb_table_stats WHERE database_name = DATABASE()";
    let with_statistics = asker.rows(say!(asked_statistics_of_optimizer), query).await?;
    if with_statistics.is_empty() {
        // Refused, or kept in memory only (`innodb_stats_persistent = OFF`).
        return Ok(Vec::new());
    }
    let innodb_tables =
        sizes.iter().filter(|row| cell(row, 3) == "InnoDB" && tables.has(cell(row, 0)));
    let unknown = innodb_tables
        .map(|row| cell(row, 0))
        .filter(|name| !with_statistics.iter().any(|row| cell(row, 0).eq_ignore_ascii_case(name)));
    Ok(unknown.map(str::to_owned).collect())
}

/// Properties that decide plans and costs besides columns, indexes and triggers: storage of tables, and routines.
const PROPERTIES: &str = include_str!("mysql/properties.sql");

/// The checksum of the schema and its parts by their names.
async fn query_schema(
    asker: &mut Asker<'_, '_>,
    tables: &Tables<'_>,
) -> DbResult<(Option<String>, BTreeMap<String, String>)> {
    let columns = include_str!("mysql/columns.sql");
    let indexes = include_str!("mysql/indexes.sql");
    let triggers = include_str!("mysql/triggers.sql");
    let columns = asker.rows_for(tables, say!(asked_columns), columns).await?;
    let indexes = asker.rows_for(tables, say!(asked_indexes), indexes).await?;
    let triggers = asker.rows_for(tables, say!(asked_triggers), triggers).await?;
    let properties = asker.rows_for(tables, say!(asked_properties), PROPERTIES).await?;
    let mut schema: BTreeMap<String, String> = columns.iter().map(|row| column(row)).collect();
    for row in &indexes {
        let name = format!("index {}.{}", cell(row, 0), cell(row, 1));
        let kind = if cell(row, 4) == "0" { "unique on" } else { "on" };
        let definition = schema.entry(name).or_insert_with(|| kind.to_owned());
        *definition = format!("{definition} {}", cell(row, 3));
    }
    schema.extend(triggers.iter().map(|row| trigger(row, "")));
    schema.extend(properties.iter().map(|row| property(row)));
    let parts = columns.iter().chain(&indexes).chain(&triggers).chain(&properties);
    Ok((checksum(parts), schema))
}

/// Members of a replication group that are there, where the server belongs to one.
async fn group_members(asker: &mut Asker<'_, '_>, facts: &ServerFacts) -> DbResult<u64> {
    let name = facts.settings.get("group_replication_group_name");
    if name.is_none_or(String::is_empty) {
        return Ok(0);
    }
    let members = "SELECT count(*) FROM performance_schema.replication_group_members \
                   WHERE member_state = 'ONLINE'";
    Ok(asker.count(say!(asked_group_members), members).await?.unwrap_or(0))
}

/// Replicas that wait for acknowledgement, where semi-synchronous replication is at work.
fn semi_sync_replicas(counters: &BTreeMap<String, String>) -> u64 {
    let [status, clients] = ["status", "clients"].map(|name| {
        let names = ["source", "master"].map(|word| format!("Rpl_semi_sync_{word}_{name}"));
        names.iter().find_map(|name| counters.get(name))
    });
    if status.is_none_or(|status| status != "ON") {
        return 0;
    }
    clients.and_then(|clients| clients.parse().ok()).unwrap_or(0)
}

/// The replicas that receive the binary log, in the order of their names.
fn replicas(dumps: &Answer, counters: &BTreeMap<String, String>) -> Vec<ReplicaFacts> {
    let semi_sync = semi_sync_replicas(counters);
    // The server says how many acknowledge, not which.
    let mode = match semi_sync {
        0 => "async",
        some if some >= dumps.len() as u64 => "semi-sync",
        _ => "",
    };
    let replicas = dumps.iter().map(|row| ReplicaFacts {
        name: cell(row, 0).to_owned(),
        mode: mode.to_owned(),
        state: cell(row, 1).to_owned(),
        lag_s: None,
    });
    replicas.collect()
}

fn acknowledged_by(facts: &ServerFacts, group_members: u64) -> CommitWait {
    let cluster = count(&facts.counters, "wsrep_cluster_size").unwrap_or(0);
    let is_galera = facts.settings.get("wsrep_on").is_some_and(|on| on == "ON");
    if is_galera && cluster > 1 {
        return CommitWait::Copies(say!(acknowledged_by_galera, n = cluster));
    }
    if group_members > 1 {
        return CommitWait::Copies(say!(acknowledged_by_group, n = group_members));
    }
    if semi_sync_replicas(&facts.counters) == 0 {
        return CommitWait::Local(say!(acknowledged_locally));
    }
    let count_settings = [
        "rpl_semi_sync_source_wait_for_replica_count",
        "rpl_semi_sync_master_wait_for_slave_count",
    ];
    // MariaDB has no such setting: one answer is enough.
    let replicas = first_count(&facts.settings, &count_settings).unwrap_or(1);
    CommitWait::Copies(say!(acknowledged_by_semi_sync, n = replicas))
}

/// The process list shows a port for TCP, also from the same machine.
fn transport(host: &str, cipher: &Answer) -> String {
    let protocol = if host.contains(':') { "tcp" } else { "unix socket" };
    let is_encrypted = cipher.first().is_some_and(|row| !cell(row, 1).is_empty());
    format!("{protocol}{}", if is_encrypted { ", tls" } else { "" })
}

/// A statement as a name of work: its first words.
fn shortened(statement: &str) -> String {
    let words: Vec<&str> = statement.split_whitespace().take(4).collect();
    words.join(" ").chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    fn text_row(values: &[&str]) -> Vec<Option<String>> {
        values.iter().map(|&value| Some(value.to_owned())).collect()
    }

    #[test]
    fn mariadb_tells_the_age_of_its_checkpoint() {
        let status = text_map(&[
            ("Threads_running", "9"),
            ("Innodb_checkpoint_age", "25"),
            ("Innodb_checkpoint_max_age", "100"),
            ("Innodb_buffer_pool_pages_dirty", "30"),
            ("Innodb_buffer_pool_pages_total", "120"),
            ("Innodb_lsn_current", "777"),
            ("Com_commit", "5"),
            ("Com_xa_commit", "2"),
        ]);
        let sample = sample_from(&status);
        assert_eq!((sample.checkpoint_age_share, sample.dirty_share), (Some(0.25), Some(0.25)));
        assert_eq!((sample.active_sessions, sample.log_bytes), (Some(8.0), Some(777)));
        assert_eq!((sample.commits, sample.page_requests), (Some(7), None));
    }

    #[test]
    fn mysql_tells_positions_of_its_log() {
        let facts = ServerFacts {
            counters: text_map(&[
                ("Innodb_redo_log_current_lsn", "350"),
                ("Innodb_redo_log_checkpoint_lsn", "150"),
            ]),
            settings: text_map(&[("innodb_redo_log_capacity", "1000")]),
            ..ServerFacts::default()
        };
        assert_eq!(redo_share(&facts), Some(0.2));
        assert_eq!(redo_share(&ServerFacts::default()), None);
    }

    fn semi_sync_facts(status: &str, clients: &str) -> ServerFacts {
        let counters =
            [("Rpl_semi_sync_master_status", status), ("Rpl_semi_sync_master_clients", clients)];
        ServerFacts { counters: text_map(&counters), ..ServerFacts::default() }
    }

    #[test]
    fn semi_sync_counts_only_while_it_is_at_work() {
        assert_eq!(acknowledged_by(&semi_sync_facts("ON", "1"), 0).words(), &"1 semi-sync replica");
        assert_eq!(
            acknowledged_by(&semi_sync_facts("OFF", "1"), 0).words(),
            &"local",
            "it has fallen back"
        );
        assert_eq!(acknowledged_by(&semi_sync_facts("ON", "0"), 0).words(), &"local");
        assert_eq!(
            acknowledged_by(&ServerFacts::default(), 3).words(),
            &"majority of 3 group members"
        );
        let mut two = semi_sync_facts("ON", "2");
        let name = "rpl_semi_sync_master_wait_for_slave_count";
        two.settings = text_map(&[(name, "2")]);
        assert_eq!(acknowledged_by(&two, 0).words(), &"2 semi-sync replicas");
    }

    #[test]
    fn which_of_several_replicas_acknowledge_is_not_guessed() {
        let counters = text_map(&[
            ("Rpl_semi_sync_source_status", "ON"),
            ("Rpl_semi_sync_source_clients", "1"),
        ]);
        let single = vec![text_row(&["10.0.0.2:4000", "Source has sent all binlog to replica"])];
        assert_eq!(replicas(&single, &counters)[0].mode, "semi-sync");
        let two = vec![text_row(&["a:1", ""]), text_row(&["b:1", ""])];
        assert_eq!(replicas(&two, &counters)[1].mode, "");
        assert_eq!(replicas(&two, &text_map(&[]))[1].mode, "async");
    }

    fn with_settings(pairs: &[(&str, &str)]) -> ServerFacts {
        ServerFacts { settings: text_map(pairs), ..ServerFacts::default() }
    }

    #[test]
    fn a_query_cache_without_memory_is_off() {
        for (kind, size, is_on) in
            [("ON", "1048576", true), ("ON", "0", false), ("OFF", "1048576", false)]
        {
            let facts = with_settings(&[("query_cache_type", kind), ("query_cache_size", size)]);
            assert_eq!(query_cache(&facts), Some(is_on), "{kind} {size}");
        }
        assert_eq!(query_cache(&ServerFacts::default()), None);
    }

    #[test]
    fn ways_to_the_server() {
        let cipher = vec![text_row(&["Ssl_cipher", "TLS_AES_256_GCM_SHA384"])];
        let none = vec![text_row(&["Ssl_cipher", ""])];
        assert_eq!(transport("localhost", &none), "unix socket");
        assert_eq!(transport("127.0.0.1:40000", &cipher), "tcp, tls");
    }

    #[test]
    fn what_was_replicated_is_counted_by_its_positions() {
        assert_eq!(
            replicated(&with_settings(&[("gtid_slave_pos", "1-3401-7000,2-1-5")])),
            Some(7005)
        );
        assert_eq!(replicated(&with_settings(&[("gtid_slave_pos", "")])), None);
        let sets = [("server_uuid", "b-2"), ("gtid_executed", "a-1:1-7:9,\nb-2:1-500")];
        assert_eq!(replicated(&with_settings(&sets)), Some(8));
        assert_eq!(replicated(&with_settings(&[("gtid_executed", "")])), None);
    }

    #[test]
    fn reads_and_writes_are_told_apart() {
        let status = text_map(&[("Com_select", "7"), ("Com_insert", "2"), ("Com_update", "3")]);
        let sample = sample_from(&status);
        assert_eq!((sample.reads, sample.writes), (Some(7), Some(5)));
        assert_eq!(sample_from(&text_map(&[])).writes, None);
    }

    #[test]
    fn work_has_a_short_name() {
        assert_eq!(shortened("ALTER TABLE  sbtest1 ADD\nINDEX k (k)"), "ALTER TABLE sbtest1 ADD");
    }
}
