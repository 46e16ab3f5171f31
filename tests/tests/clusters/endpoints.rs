//! dyno through what stands in front of clusters: a proxy that spreads reads, a SQL layer over shards.
//!
//! ShardingSphere-Proxy is used if `DYNO_SHARDINGSPHERE` names its folder, pgpool if `DYNO_PGPOOL` names the folder
//! that its package was unpacked to or it is installed.

use crate::mine::{Mine, up};
use dyno_testkit::wait_until;
use dyno_topology::{NodeProduct, TopologyKind};
use std::fs;

/// `None` if a program isn't here.
fn start(test: &str, topology: TopologyKind, replicas: u32, kind: NodeProduct) -> Option<Mine> {
    up(test, topology, |request| {
        request.replicas = replicas;
        request.endpoint = Some(kind);
        request.endpoint_options.clients_max = 32;
        request.endpoint_options.sysbench_tables = 4;
    })
}

const SELECTS: &str = "SHOW GLOBAL STATUS LIKE 'Com_select'";

#[test]
fn tpcc_over_four_shards_is_consistent_and_its_ledger_exact_after_a_kill() {
    let test = "tpcc_over_four_shards_is_consistent_and_its_ledger_exact_after_a_kill";
    let kind = NodeProduct::Shardingsphere;
    let Some(mine) = start(test, TopologyKind::Sharded, 0, kind) else { return };
    let shards = crate::shards::tpcc_is_consistent(&mine);
    let count_rows = |table: &str| mine.count_rows(&shards, table);
    // By the number of the warehouse, modulo four; the catalog is everywhere.
    assert_eq!(count_rows("bmsql_warehouse"), [0, 1, 1, 0]);
    assert_eq!(count_rows("bmsql_item"), [100_000; 4]);
    // Remote lines and payments are transactions of two shards, which only XA makes whole.
    let prepared = mine.number(&shards[1], "SHOW GLOBAL STATUS LIKE 'Com_xa_prepare'");
    assert!(prepared > 0, "no transaction was distributed");
    let printed = mine.dyno(&["check", &mine.node_url("endpoint")]).stdout;
    assert!(printed.contains("C12"), "{printed}");
    crate::shards::the_ledger_is_exact_after_a_shard_was_killed(&mine);
}

#[test]
fn sysbench_over_four_shards_has_all_its_rows() {
    let test = "sysbench_over_four_shards_has_all_its_rows";
    let kind = NodeProduct::Shardingsphere;
    let Some(mine) = start(test, TopologyKind::Sharded, 0, kind) else { return };
    sysbench(&mine, &["--auto_inc=off", "oltp_read_write", "prepare"]);
    let rows: Vec<u64> =
        (1..=4).map(|n| mine.number(&format!("n{n}"), "SELECT count(*) FROM sbtest2")).collect();
    assert_eq!(rows, [250; 4]);
    let printed = sysbench(&mine, &["--auto_inc=off", "oltp_read_write", "run"]);
    assert!(printed.contains("transactions:"), "{printed}");
    assert_eq!(mine.number("endpoint", "SELECT count(*) FROM sbtest2"), 1_000);
    sysbench(&mine, &["--auto_inc=off", "oltp_read_write", "cleanup"]);
}

fn sysbench(mine: &Mine, more: &[&str]) -> String {
    let port = mine.cluster.node("endpoint").expect("the endpoint").port;
    let password = mine.password();
    let mut arguments = vec!["sysbench".to_owned()];
    arguments.extend(
        ["--mysql-host=127.0.0.1", "--mysql-user=dyno", "--mysql-db=dyno", "--tables=2"]
            .map(str::to_owned),
    );
    arguments
        .extend(["--table-size=1000", "--threads=4", "--time=0", "--events=40"].map(str::to_owned));
    arguments.extend([format!("--mysql-port={port}"), format!("--mysql-password={password}")]);
    arguments.extend(more.iter().map(|&word| word.to_owned()));
    mine.dyno(&arguments.iter().map(String::as_str).collect::<Vec<_>>()).stdout
}

/// Its front end for MySQL lets strangers in (CVE-2022-45347).
fn the_proxy_listens_on_loopback_only(port: u16) {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|file| fs::read_to_string(file).unwrap());
    let listening = |line: &&str| line.split_whitespace().nth(3) == Some("0A");
    let addresses = tables.iter().flat_map(|table| table.lines().filter(listening));
    let addresses = addresses.filter_map(|line| line.split_whitespace().nth(1)?.split_once(':'));
    let listen_addresses: Vec<&str> = addresses
        .filter(|(_, hex_port)| u16::from_str_radix(hex_port, 16) == Ok(port))
        .map(|(address, _)| address)
        .collect();
    // 127.0.0.1, as this machine keeps it.
    let loopback = format!("{:08X}", u32::from_ne_bytes([127, 0, 0, 1]));
    assert_eq!(listen_addresses, [loopback]);
}

#[test]
fn prepared_reads_are_spread_over_the_read_only_nodes() {
    let test = "prepared_reads_are_spread_over_the_read_only_nodes";
    let kind = NodeProduct::Shardingsphere;
    let Some(mine) = start(test, TopologyKind::Mariadb, 2, kind) else { return };
    the_proxy_listens_on_loopback_only(mine.cluster.node("endpoint").unwrap().port);
    sysbench(&mine, &["oltp_read_only", "prepare"]);
    let count_selects = || ["n1", "n2", "n3"].map(|node| mine.number(node, SELECTS));
    let before = count_selects();
    sysbench(&mine, &["--skip-trx=on", "oltp_read_only", "run"]);
    let middle = count_selects();
    let [primary, first, second] = [0, 1, 2].map(|node| middle[node] - before[node]);
    assert!(first > 100 && second > 100, "{primary} : {first} : {second}");
    assert!(primary * 20 < first + second, "{primary} : {first} : {second}");
    // A transaction reads what it has written: all of it is the primary's.
    sysbench(&mine, &["oltp_read_write", "run"]);
    let after = count_selects();
    let [primary, first, second] = [0, 1, 2].map(|node| after[node] - middle[node]);
    assert!(primary > 100 && first + second < primary / 10, "{primary} : {first} : {second}");
}

#[test]
fn pgpool_spreads_reads_and_leaves_writes_to_the_primary() {
    let test = "pgpool_spreads_reads_and_leaves_writes_to_the_primary";
    let Some(mine) = start(test, TopologyKind::Postgres, 2, NodeProduct::Pgpool) else { return };
    let url = mine.node_url("endpoint");
    let count_fetched = || {
        ["n1", "n2", "n3"].map(|node| {
            mine.number(
                node,
                "SELECT coalesce(max(idx_tup_fetch), 0) FROM pg_stat_user_tables \
                 WHERE relname = 'pgbench_accounts'",
            )
        })
    };
    mine.dyno(&["pgbench", "-i", "-s", "1", &url]);
    let before = count_fetched();
    mine.dyno(&["pgbench", "-S", "-M", "simple", "-n", "-c", "4", "-T", "3", &url]);
    // pgpool keeps its sessions, and an idle one counts what it did a while later.
    let fetched_since = || {
        let after = count_fetched();
        [0, 1, 2].map(|node| after[node].saturating_sub(before[node]))
    };
    wait_until("reads of both read-only nodes", || {
        fetched_since()[1..].iter().all(|reads| *reads > 100)
    });
    let [primary, first, second] = fetched_since();
    assert!(primary * 10 < first + second, "{primary} : {first} : {second}");
    mine.dyno(&["pgbench", "-n", "-c", "4", "-T", "3", &url]);
    mine.dyno(&["check", &url]);
}
