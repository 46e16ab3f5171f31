//! Rules of the proxy: spread reads over read-only nodes, or rows over shards.

use super::EndpointOptions;
use crate::{Account, StateNode};
use std::fmt::Write as _;

/// TPC-C's tables and their columns of the warehouse. Rows of one warehouse are on one shard.
const BY_WAREHOUSE: [(&str, &str); 8] = [
    ("bmsql_warehouse", "w_id"),
    ("bmsql_district", "d_w_id"),
    ("bmsql_customer", "c_w_id"),
    ("bmsql_history", "h_w_id"),
    ("bmsql_new_order", "no_w_id"),
    ("bmsql_oorder", "o_w_id"),
    ("bmsql_order_line", "ol_w_id"),
    ("bmsql_stock", "s_w_id"),
];

/// Prepared statements are prepared on the servers, too.
const CONNECTION: &str = "useSSL=false&allowPublicKeyRetrieval=true&serverTimezone=UTC&\
    useServerPrepStmts=true&cachePrepStmts=true&prepStmtCacheSize=500&prepStmtCacheSqlLimit=4096";

fn sources<'a>(
    text: &mut String,
    sources: impl IntoIterator<Item = (String, &'a StateNode)>,
    account: &Account,
    options: &EndpointOptions,
) {
    let Account { user, password, database } = account;
    let _ = write!(text, "schemaName: {database}\ndataSources:\n");
    // Observers have connections beside those of the load.
    let pool = options.clients_max.max(16) + 16;
    for (name, backend) in sources {
        let _ = write!(
            text,
            "  {name}:\n    url: \"jdbc:mysql://127.0.0.1:{}/{database}?{CONNECTION}\"\n    \
             username: {user}\n    password: \"{password}\"\n    maxPoolSize: {pool}\n    \
             minPoolSize: 1\n",
            backend.port
        );
    }
}

/// One primary and read-only nodes that take turns statement by statement.
pub(super) fn splitting(
    primary: &StateNode,
    readers: &[&StateNode],
    account: &Account,
    options: &EndpointOptions,
) -> String {
    let mut text = String::new();
    let named = readers.iter().enumerate().map(|(number, node)| (format!("r{number}"), *node));
    sources(&mut text, std::iter::once(("w".to_owned(), primary)).chain(named), account, options);
    if readers.is_empty() {
        text.push_str("rules: []\n");
        return text;
    }
    let names: Vec<String> = (0..readers.len()).map(|number| format!("r{number}")).collect();
    let _ = write!(
        text,
        "rules:\n- !READWRITE_SPLITTING\n  dataSources:\n    rw:\n      type: Static\n      props: \
         {{write-data-source-name: w, read-data-source-names: \"{}\"}}\n      loadBalancerName: \
         turns\n  loadBalancers:\n    turns: {{type: ROUND_ROBIN}}\n",
        names.join(",")
    );
    text
}

/// Rows by the number of their warehouse (TPC-C) or their own (sysbench), modulo the number of shards; TPC-C's items
/// and configuration on each shard; every other table whole on the first one.
pub(super) fn sharding(
    shards: &[&StateNode],
    account: &Account,
    options: &EndpointOptions,
) -> String {
    let mut text = String::new();
    let named = shards.iter().enumerate().map(|(number, node)| (format!("ds_{number}"), *node));
    sources(&mut text, named, account, options);
    let last = shards.len() - 1;
    text.push_str("rules:\n- !SINGLE\n  defaultDataSource: ds_0\n- !SHARDING\n  tables:\n");
    let sysbench: Vec<String> =
        (1..=options.sysbench_tables).map(|number| format!("sbtest{number}")).collect();
    let tables = BY_WAREHOUSE.into_iter().chain(sysbench.iter().map(|name| (name.as_str(), "id")));
    for (table, column) in tables {
        let _ = writeln!(
            text,
            "    {table}: {{actualDataNodes: \"ds_${{0..{last}}}.{table}\", databaseStrategy: {{standard: \
             {{shardingColumn: {column}, shardingAlgorithmName: by_number}}}}}}"
        );
    }
    let bound: Vec<&str> = BY_WAREHOUSE
        .map(|(table, _)| table)
        .into_iter()
        .filter(|&it| it != "bmsql_history")
        .collect();
    let _ = writeln!(text, "  bindingTables:\n  - {}", bound.join(","));
    if sysbench.len() > 1 {
        let _ = writeln!(text, "  - {}", sysbench.join(","));
    }
    let _ = write!(
        text,
        "  broadcastTables: [bmsql_item, bmsql_config]\n  defaultDatabaseStrategy: {{none: }}\n  \
         defaultTableStrategy: {{none: }}\n  shardingAlgorithms:\n    by_number: {{type: MOD, props: \
         {{sharding-count: {}}}}}\n",
        shards.len()
    );
    text
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::{account, nodes};
    use super::*;

    #[test]
    fn reads_take_turns_over_all_read_only_nodes() {
        let nodes = nodes("".as_ref(), &["primary", "read_only", "read_only"]);
        let text =
            splitting(&nodes[0], &[&nodes[1], &nodes[2]], &account(), &EndpointOptions::default());
        assert!(text.contains("write-data-source-name: w, read-data-source-names: \"r0,r1\""));
        for (name, port) in [("w", 5401), ("r0", 5402), ("r1", 5403)] {
            let source = format!("  {name}:\n    url: \"jdbc:mysql://127.0.0.1:{port}/dyno?");
            assert!(text.contains(&source), "{source} in {text}");
        }
        let alone = splitting(&nodes[0], &[], &account(), &EndpointOptions::default());
        assert!(alone.ends_with("rules: []\n"), "{alone}");
    }

    #[test]
    fn every_table_of_both_loads_is_spread_over_all_shards() {
        let nodes = nodes("".as_ref(), &["shard"; 4]);
        let shards: Vec<&StateNode> = nodes[..4].iter().collect();
        let options = EndpointOptions { sysbench_tables: 3, ..EndpointOptions::default() };
        let text = sharding(&shards, &account(), &options);
        assert_eq!(text.matches("ds_${0..3}.").count(), 8 + 3);
        assert!(
            text.contains("bmsql_order_line: {actualDataNodes: \"ds_${0..3}.bmsql_order_line\"")
        );
        assert!(text.contains("{standard: {shardingColumn: ol_w_id, "), "{text}");
        assert!(text.contains("  - sbtest1,sbtest2,sbtest3\n"), "{text}");
        assert!(text.contains("broadcastTables: [bmsql_item, bmsql_config]"), "{text}");
        assert!(text.contains("{sharding-count: 4}"), "{text}");
    }
}
