//! Settings that decide what a commit is worth, and counters that tell what the server did.

use super::*;

/// A text that says what a setting decides.
type Meaning = fn() -> Message;

/// A setting, what it decides, and the values (lower case) with which a commit may be lost or torn.
type Known = (&'static str, Meaning, &'static [&'static str]);

const OFF: &[&str] = &["off", "0"];

/// Sorted in the order in which they are shown: MySQL and MariaDB, PostgreSQL, SQLite, then what dyno itself has seen.
const SETTINGS: &[Known] = &[
    ("innodb_flush_log_at_trx_commit", || say!(commit_waits_for_redo_log), &["0", "2"]),
    ("sync_binlog", || say!(commit_waits_for_binary_log), &[]),
    ("log_bin", || say!(whether_a_binary_log_is_written), &[]),
    ("innodb_doublewrite", || say!(torn_page_protection), OFF),
    ("innodb_flush_method", || say!(how_innodbs_files_are_written), &["nosync"]),
    ("innodb_buffer_pool_size", || say!(memory_for_data_and_indexes), &[]),
    ("innodb_log_file_size", || say!(size_of_the_redo_log), &[]),
    ("innodb_redo_log_capacity", || say!(size_of_the_redo_log), &[]),
    ("rpl_semi_sync_master_enabled", || say!(commit_waits_for_replica), &[]),
    ("rpl_semi_sync_source_enabled", || say!(commit_waits_for_replica), &[]),
    ("transaction_isolation", || say!(isolation_of_sessions_by_default), &[]),
    ("tx_isolation", || say!(isolation_of_sessions_by_default), &[]),
    ("query_cache_type", || say!(query_cache_use), &[]),
    ("synchronous_commit", || say!(commit_waits_for_wal), OFF),
    ("fsync", || say!(whether_anything_waits_for_the_disk), OFF),
    ("full_page_writes", || say!(torn_page_protection), OFF),
    ("wal_sync_method", || say!(wal_sync_method), &[]),
    ("synchronous_standby_names", || say!(standbys_that_acknowledge_commits), &[]),
    ("default_transaction_isolation", || say!(isolation_of_sessions_by_default), &[]),
    ("shared_buffers", || say!(memory_for_data_and_indexes), &[]),
    ("max_wal_size", || say!(write_ahead_log_between_checkpoints), &[]),
    ("checkpoint_timeout", || say!(longest_time_between_checkpoints), &[]),
    ("journal_mode", || say!(how_a_transaction_is_made_atomic), &["off", "memory"]),
    ("synchronous", || say!(n_0_off_1_normal_2_full), OFF),
    ("cache_size", || say!(page_cache_of_a_session_pages), &[]),
    ("mmap_size", || say!(memory_mapped_bytes), &[]),
    ("locking_mode", || say!(file_locking_mode), &[]),
    ("data_file_system", || say!(what_keeps_the_data), &["ramfs", "tmpfs"]),
    ("log_file_system", || say!(what_keeps_the_log), &["ramfs", "tmpfs"]),
];

/// The isolation level of sessions, as a target's settings state it.
pub fn isolation(target: &PaperTarget) -> Option<&String> {
    let names = ["transaction_isolation", "tx_isolation", "default_transaction_isolation"];
    names.iter().find_map(|name| target.all_settings.get(*name))
}

/// Settings that decide what an acknowledged commit is worth.
pub fn affects_durability(name: &str) -> bool {
    const NAMES: &str =
        "innodb_flush_log_at_trx_commit sync_binlog innodb_doublewrite innodb_flush_method
        synchronous_commit fsync full_page_writes journal_mode synchronous
        synchronous_standby_names data_file_system log_file_system";
    name == ENGINE || lists_name(NAMES, name)
}

fn lists_name(names: &str, name: &str) -> bool {
    names.split_whitespace().any(|known| known == name)
}

fn ends_with_any(name: &str, ends: &str) -> bool {
    ends.split_whitespace().any(|end| name.ends_with(end))
}

/// Returns what a setting decides, if that is known.
pub fn meaning(name: &str) -> Option<Message> {
    let mut known_settings = SETTINGS.iter().chain(QUERY_SETTINGS);
    known_settings.find(|(known, ..)| *known == name).map(|(_, meaning, _)| meaning())
}

/// Returns true for settings that name a machine, a file or a moment: they differ between any two servers and
/// say nothing of what these do.
pub fn is_host_specific(name: &str) -> bool {
    const WHOLE: &str =
        "archive_command bind_address cluster_name event_source external_pid_file gtid_binlog_pos
        gtid_binlog_state gtid_current_pos gtid_executed gtid_purged gtid_slave_pos hostname
        identity in_hot_standby in_transaction last_insert_id listen_addresses log_bin_basename
        log_bin_index log_filename pid_file primary_conninfo primary_slot_name
        proxy_protocol_networks pseudo_thread_id rand_seed1 rand_seed2 relay_log relay_log_index
        report_host report_port restore_command server_id server_uid server_uuid socket timestamp
        wsrep_cluster_address wsrep_node_address wsrep_node_name";
    const ENDS: &str =
        "_basename _directories _directory _file _log_error _path _socket dir port ssl_ca
        ssl_capath ssl_cert ssl_crl ssl_crlpath ssl_key";
    lists_name(WHOLE, name) || ends_with_any(name, ENDS)
}

/// Settings of durability, memory, plans and logging: a difference in them is a caveat, in others a remark.
pub fn matters(name: &str) -> bool {
    /// Besides those with a meaning above.
    const GRADED: &str =
        "archive_mode commit_delay compute_query_id constraint_exclusion data_checksums
        default_statistics_target effective_io_concurrency eq_range_index_dive_limit general_log
        hash_mem_multiplier huge_pages innodb_checksum_algorithm io_method long_query_time
        maintenance_work_mem max_heap_table_size performance_schema plan_cache_mode shared_buffers
        slow_query_log table_open_cache temp_buffers temp_store thread_cache_size thread_handling
        tmp_table_size use_stat_tables userstat wal_buffers wal_compression wal_level
        wal_log_hints work_mem";
    const BEGINNINGS: &str =
        "auto_explain. autovacuum bgwriter_ binlog_ checkpoint_ enable_ geqo histogram_
        innodb_adaptive_ innodb_flush innodb_io_capacity innodb_log_ innodb_stats_ jit log_
        max_parallel_ min_parallel_ optimizer_ parallel_ pg_stat_statements. query_cache_
        rpl_semi_sync_ track_";
    const ENDS: &str = "_buffer_size _collapse_limit _cost _pool_size _preload_libraries _wal_size";
    meaning(name).is_some()
        || lists_name(GRADED, name)
        || BEGINNINGS.split_whitespace().any(|begin| name.starts_with(begin))
        || ends_with_any(name, ENDS)
}

/// The name under which tables that do not keep what is committed are listed among the settings.
pub const ENGINE: &str = "engine";

/// Tables of engines that lose rows in a crash or can't roll back, such as `MEMORY (sbtest1, sbtest2)`, and tables of
/// PostgreSQL that are empty after a crash.
fn unsafe_tables(facts: &ServerFacts) -> Option<SettingRow> {
    const UNSAFE: [&str; 8] =
        ["ARCHIVE", "Aria", "BLACKHOLE", "CSV", "MEMORY", "MRG_MyISAM", "MyISAM", "unlogged"];
    let mut engines: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, properties) in &facts.schema {
        let engine = properties.split(", ").next().filter(|engine| UNSAFE.contains(engine));
        if let Some((table, engine)) = name.strip_prefix("table ").zip(engine) {
            engines.entry(engine).or_default().push(table);
        }
    }
    let texts = engines.iter().map(|(engine, tables)| format!("{engine} ({})", tables.join(", ")));
    let value = Some(texts.collect::<Vec<_>>().join(", ")).filter(|value| !value.is_empty())?;
    let meaning = say!(engine_of_tables);
    Some(SettingRow { name: ENGINE.to_owned(), value, meaning, is_weak: true })
}

/// The settings that matter, as far as the server has them.
pub fn rows(facts: &ServerFacts) -> Vec<SettingRow> {
    let rows =
        setting_rows(SETTINGS, &facts.settings, |known, value| is_weak(*known, value, facts));
    rows.chain(unsafe_tables(facts)).collect()
}

fn setting_rows(
    known: &'static [Known],
    settings: &BTreeMap<String, String>,
    is_weak: impl Fn(&Known, &str) -> bool,
) -> impl Iterator<Item = SettingRow> {
    known.iter().filter_map(move |known| {
        let (name, value) = (known.0, settings.get(known.0)?);
        Some(SettingRow {
            name: name.to_owned(),
            value: readable(name, value),
            meaning: (known.1)(),
            is_weak: is_weak(known, value),
        })
    })
}

fn is_weak((name, _, weak): Known, value: &str, facts: &ServerFacts) -> bool {
    match name {
        // Without a binary log there is nothing to wait for.
        "sync_binlog" => {
            let log = facts.settings.get("log_bin");
            value != "1" && log.is_some_and(|log| log.eq_ignore_ascii_case("on") || log == "1")
        }
        // In WAL mode NORMAL may lose the last commits, otherwise it is safe in practice.
        "synchronous" if value == "1" => {
            let mode = facts.settings.get("journal_mode");
            mode.is_some_and(|mode| mode.eq_ignore_ascii_case("wal"))
        }
        _ => weak.contains(&value.to_ascii_lowercase().as_str()),
    }
}

/// The value of a setting, with a unit if it is a number of bytes.
pub fn readable(name: &str, value: &str) -> String {
    let is_bytes = name.starts_with("innodb_") || name == "mmap_size";
    match value.parse::<f64>() {
        Ok(size) if is_bytes && size >= 1024.0 => format::bytes(size),
        _ if value.is_empty() => "\"\"".to_owned(),
        _ => value.to_owned(),
    }
}

/// Settings that decide how queries are executed, in the order in which they are shown: PostgreSQL, MySQL and
/// its relatives, SQLite.
const QUERY_SETTINGS: &[Known] = &[
    ("max_parallel_workers_per_gather", || say!(workers_per_plan_node), &[]),
    ("max_parallel_workers", || say!(parallel_workers_of_the_whole_server), &[]),
    ("max_worker_processes", || say!(background_processes_of_the_whole_server), &[]),
    ("parallel_setup_cost", || say!(what_starting_workers_costs_a_plan), &[]),
    ("parallel_tuple_cost", || say!(what_handing_over_a_row_costs), &[]),
    ("min_parallel_table_scan_size", || say!(parallel_scan_table_size), &[]),
    ("work_mem", || say!(memory_of_a_sort_or_hash), &[]),
    ("hash_mem_multiplier", || say!(hash_tables_may_have_so_many), &[]),
    ("effective_cache_size", || say!(the_cache_that_the_optimizer_reckons), &[]),
    ("random_page_cost", || say!(random_page_cost), &[]),
    ("jit", || say!(whether_expressions_are_compiled), &[]),
    ("max_parallel_degree", || say!(the_degree), &[]),
    ("parallel_degree_policy", || say!(when_a_query_becomes_parallel), &[]),
    ("innodb_parallel_read_threads", || say!(threads_of_scans_of_the_clustered), &[]),
    ("join_buffer_size", || say!(join_buffer_memory), &[]),
    ("sort_buffer_size", || say!(sort_buffer_memory), &[]),
    ("tmp_table_size", || say!(largest_temporary_table_in_memory), &[]),
    ("max_heap_table_size", || say!(the_same_whichever_is_smaller), &[]),
    ("optimizer_switch", || say!(which_ways_of_executing_the_optimizer), &[]),
    ("innodb_buffer_pool_size", || say!(memory_for_data_and_indexes), &[]),
    ("shared_buffers", || say!(memory_for_data_and_indexes), &[]),
    ("cache_size", || say!(page_cache_of_a_session_pages), &[]),
    ("mmap_size", || say!(memory_mapped_bytes), &[]),
    ("temp_store", || say!(where_temporary_tables_are_0_default), &[]),
];

/// The settings that decide how queries are executed, as far as the server has them.
pub fn query_settings(settings: &BTreeMap<String, String>) -> Vec<SettingRow> {
    setting_rows(QUERY_SETTINGS, settings, |_, _| false).collect()
}

/// Counters worth showing, in this order; PostgreSQL's carry the view's name in front.
const COUNTERS: &str =
    "Com_commit Com_rollback Questions Innodb_buffer_pool_reads Innodb_data_fsyncs
    Innodb_os_log_fsyncs Innodb_row_lock_waits Innodb_deadlocks Aborted_clients
    database.xact_commit database.xact_rollback database.blks_read database.blks_hit
    database.deadlocks database.temp_bytes bgwriter.checkpoints_timed bgwriter.checkpoints_req
    bgwriter.buffers_backend";

/// The relevant counters that both readings have; a negative growth means the server restarted.
pub fn counters(before: &ServerFacts, after: &ServerFacts) -> Vec<Counter> {
    let counters = COUNTERS.split_whitespace().filter_map(|name| {
        Some(Counter { name: name.to_owned(), growth: after.growth(before, name)? })
    });
    counters.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list_weak(settings: &[(&str, &str)]) -> Vec<String> {
        let settings =
            settings.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let facts = ServerFacts { settings, ..ServerFacts::default() };
        rows(&facts).into_iter().filter(|row| row.is_weak).map(|row| row.name).collect()
    }

    #[test]
    fn settings_that_may_lose_a_commit_are_told() {
        assert_eq!(
            list_weak(&[("innodb_flush_log_at_trx_commit", "2")]),
            ["innodb_flush_log_at_trx_commit"]
        );
        assert!(list_weak(&[("innodb_flush_log_at_trx_commit", "1"), ("fsync", "on")]).is_empty());
        assert_eq!(list_weak(&[("sync_binlog", "0"), ("log_bin", "ON")]), ["sync_binlog"]);
        assert!(list_weak(&[("sync_binlog", "0"), ("log_bin", "OFF")]).is_empty());
        assert_eq!(list_weak(&[("synchronous", "1"), ("journal_mode", "wal")]), ["synchronous"]);
        assert!(list_weak(&[("synchronous", "2"), ("journal_mode", "wal")]).is_empty());
        assert_eq!(list_weak(&[("synchronous_commit", "OFF")]), ["synchronous_commit"]);
        assert_eq!(
            list_weak(&[("fsync", "on"), ("log_file_system", "tmpfs")]),
            ["log_file_system"]
        );
        assert!(list_weak(&[("data_file_system", "ext4"), ("log_file_system", "xfs")]).is_empty());
    }

    fn list_tables(schema: &[(&str, &str)]) -> Vec<(String, bool)> {
        let schema = schema.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let rows = rows(&ServerFacts { schema, ..ServerFacts::default() });
        rows.into_iter().map(|row| (row.value, row.is_weak)).collect::<Vec<_>>()
    }

    #[test]
    fn tables_that_a_crash_empties_are_weak_whatever_the_settings_are() {
        let safe =
            [("table a", "InnoDB, Dynamic"), ("table b", "fillfactor=100"), ("a.id", "MEMORY")];
        assert_eq!(list_tables(&safe), []);
        let unsafe_rows = list_tables(&[
            ("table a", "MEMORY, Fixed"),
            ("table b", "MEMORY"),
            ("table c", "unlogged"),
        ]);
        assert_eq!(unsafe_rows, [("MEMORY (a, b), unlogged (c)".to_owned(), true)]);
    }

    #[test]
    fn sizes_are_readable() {
        assert_eq!(readable("innodb_buffer_pool_size", "134217728"), "128 MiB");
        assert_eq!(readable("cache_size", "-2000"), "-2000");
        assert_eq!(readable("synchronous_standby_names", ""), "\"\"");
    }

    #[test]
    fn names_of_settings_tell_what_they_decide() {
        let names = ["fsync", "sync_binlog", "log_file_system", ENGINE];
        assert!(names.into_iter().all(affects_durability));
        assert!(!["work_mem", "sync", "engines"].into_iter().any(affects_durability));
        let names = ["server_id", "hostname", "datadir", "ssl_ca", "log_error_file"];
        assert!(names.into_iter().all(is_host_specific));
        let names = ["work_mem", "hostnames", "server_id_bits", "fsync"];
        assert!(!names.into_iter().any(is_host_specific));
        let names = ["fsync", "work_mem", "enable_sort", "sort_buffer_size", "jit_cost"];
        assert!(names.into_iter().all(matters));
        assert!(!["timezone", "my_enable_sort", "max_connections"].into_iter().any(matters));
        assert!(meaning("fsync").is_some() && meaning("jit").is_some());
        assert!(meaning("timezone").is_none());
    }

    #[test]
    fn sizes_begin_at_a_kibibyte() {
        assert_eq!(readable("innodb_log_file_size", "1023"), "1023");
        assert_eq!(readable("innodb_log_file_size", "1024"), "1 KiB");
        assert_eq!(readable("mmap_size", "2048"), "2 KiB");
        assert_eq!(readable("innodb_flush_method", "fsync"), "fsync");
    }

    fn with_counters(counts: &[(&str, i64)]) -> ServerFacts {
        let counters =
            counts.iter().map(|(name, count)| ((*name).into(), count.to_string())).collect();
        ServerFacts { counters, ..ServerFacts::default() }
    }

    #[test]
    fn settings_of_queries_keep_their_order_and_counters_their_growth() {
        let settings = [("jit", "off"), ("fsync", "off"), ("work_mem", "4MB")];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let rows = query_settings(&BTreeMap::from(settings));
        let rows: Vec<_> = rows.iter().map(|row| (row.name.as_str(), row.is_weak)).collect();
        assert_eq!(rows, [("work_mem", false), ("jit", false)]);
        let before =
            with_counters(&[("Questions", 10), ("Innodb_deadlocks", 4), ("Com_commit", 1)]);
        let after = with_counters(&[("Questions", 25), ("Innodb_deadlocks", 1), ("Uptime", 9)]);
        let result: Vec<_> = counters(&before, &after)
            .into_iter()
            .map(|counter| (counter.name, counter.growth))
            .collect();
        assert_eq!(result, [("Questions".to_owned(), 15.0), ("Innodb_deadlocks".to_owned(), -3.0)]);
    }
}
