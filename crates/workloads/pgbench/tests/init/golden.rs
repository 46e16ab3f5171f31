//! The statements, compared with what the real pgbench sends (`golden/capture-init.sh`).

use crate::recorder::Recorder;
use crate::support::{LoadLog, init, steps};
use dyno_core::Driver;
use dyno_pgbench::init::{InitOptions, PartitionMethod, initialize};
use std::path::Path;

/// Statements of a golden file: what follows its first line, a comment with the options.
fn golden(name: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("golden/init-{name}.txt"));
    let text = std::fs::read_to_string(&path).unwrap();
    text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
}

/// Line breaks inside a statement as the golden files write them.
fn on_one_line(sql: &str) -> String {
    sql.split('\n').map(str::trim_start).collect::<Vec<_>>().join(" ")
}

fn sent_statements(version: &'static str, options: &InitOptions) -> Vec<String> {
    let recorder = Recorder::new(version);
    init(&recorder, options);
    let log = recorder.log.lock().unwrap();
    log.iter().map(|sql| on_one_line(sql)).collect()
}

fn assert_golden(name: &str, options: &InitOptions) {
    let (sent, expected) =
        (sent_statements("15.20 (Debian 15.20-0+deb12u1)", options), golden(name));
    assert!(!expected.is_empty());
    for (at, (sent, expected)) in sent.iter().zip(&expected).enumerate() {
        assert_eq!(sent, expected, "statement {at} of {name}");
    }
    assert_eq!(sent.len(), expected.len(), "{name}");
}

#[test]
fn every_statement_is_pgbenchs() {
    let spaces = InitOptions {
        scale: 2,
        fillfactor: 90,
        unlogged: true,
        tablespace: Some("a space".to_owned()),
        index_tablespace: Some("a space".to_owned()),
        ..steps("dtgvpf")
    };
    assert_golden("default", &InitOptions::default());
    assert_golden("all-options", &spaces);
    assert_golden("server-side", &InitOptions { scale: 3, ..steps("dtGvpf") });
    assert_golden("bigint", &InitOptions { scale: 20_000, ..steps("dt") });
    assert_golden("repeats", &steps("dtg Gdtvv"));
}

#[test]
fn every_partition_is_pgbenchs() {
    let foreign_keys = true;
    assert_golden("range-partitions", &InitOptions { foreign_keys, ..with_partitions(3) });
    let hash = PartitionMethod::Hash;
    let options =
        InitOptions { partition_method: hash, vacuum: false, scale: 2, ..with_partitions(2) };
    assert_golden("hash-partitions", &options);
    let steps = steps("dt").steps;
    assert_golden("one-partition", &InitOptions { steps: steps.clone(), ..with_partitions(1) });
    let bigint =
        InitOptions { steps, scale: 30_000, fillfactor: 80, unlogged: true, ..with_partitions(7) };
    assert_golden("range-bigint", &bigint);
}

fn with_partitions(partitions: u32) -> InitOptions {
    InitOptions { partitions, ..InitOptions::default() }
}

#[test]
fn servers_before_14_do_not_freeze_and_servers_from_18_have_no_unlogged_parents() {
    let old = sent_statements("13.11", &steps("tg"));
    assert!(old.contains(&"copy pgbench_accounts from stdin".to_owned()), "{old:?}");
    let options = InitOptions { unlogged: true, partitions: 2, ..steps("t") };
    let (before, since) = (sent_statements("17.2", &options), sent_statements("18beta1", &options));
    for (log, start, unlogged) in [
        (before, "create unlogged table pgbench_accounts(", 6),
        (since, "create table pgbench_accounts(", 5),
    ] {
        let parent = log.iter().find(|sql| sql.contains("partition by")).expect("a parent");
        assert!(parent.starts_with(start), "{parent}");
        assert_eq!(log.iter().filter(|sql| sql.contains("unlogged")).count(), unlogged);
    }
}

#[test]
fn several_connections_copy_whole_branches_and_vacuum_freezes_them() {
    let options = InitOptions { connections: 3, scale: 7, ..InitOptions::default() };
    let recorder = Recorder::new("15.20");
    let load_log = LoadLog::default();
    let report = initialize(&recorder.admin(), &options, &load_log).unwrap();
    assert_eq!(
        (report.loaded.rows_loaded, report.loaded.rows_found, report.connections),
        (700_000, 0, 3)
    );
    let log = recorder.log.lock().unwrap();
    let copies = log.iter().filter(|sql| sql.starts_with("COPY pgbench_accounts (")).count();
    assert_eq!(copies, 7);
    assert!(log.contains(&"vacuum freeze analyze pgbench_accounts".to_owned()));
    assert!(log.contains(&"vacuum analyze pgbench_tellers".to_owned()));
    let notes = load_log.notes.lock().unwrap();
    assert!(notes.iter().any(|note| note.contains("step v")), "{notes:?}");
    assert_eq!(*load_log.rows_planned.lock().unwrap(), [700_000]);
    assert_eq!(*load_log.rows_done.lock().unwrap(), [100_000; 7]);
}

#[test]
fn freezing_is_spoken_of_where_copy_would_have_frozen_what_is_committed_in_parts() {
    let notes = load_notes("15.20", 2, steps("dtg"));
    assert!(notes.concat().contains("step v"), "{notes:?}");
    let partitioned = InitOptions { partitions: 2, ..InitOptions::default() };
    for (version, scale, options) in [
        ("15.20", 1, InitOptions::default()),
        ("13.11", 2, InitOptions::default()),
        ("15.20", 2, partitioned),
    ] {
        assert_eq!(load_notes(version, scale, options), [""; 0], "{version} {scale}");
    }
}

fn load_notes(version: &'static str, scale: u32, options: InitOptions) -> Vec<String> {
    let options = InitOptions { scale, connections: 2, ..options };
    init(&Recorder::new(version), &options).notes.into_inner().unwrap()
}

#[test]
fn lines_are_pgbenchs_and_rows_are_counted_as_they_are_sent() {
    let load_log = init(&Recorder::new("15.20"), &InitOptions { scale: 3, ..steps("g") });
    assert_eq!(*load_log.rows_done.lock().unwrap(), [10_000; 30]);
    let options = InitOptions { partitions: 2, ..steps("dt") };
    assert_eq!(
        *init(&Recorder::new("15.20"), &options).lines.lock().unwrap(),
        ["dropping old tables...", "creating tables...", "creating 2 partitions..."]
    );
}
