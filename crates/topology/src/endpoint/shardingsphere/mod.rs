//! Apache ShardingSphere-Proxy 5.1.0 for MySQL's protocol: in front of a primary and read-only nodes, whose reads it
//! spreads, also prepared ones; or as the SQL layer over shards.
//!
//! The thread that serves a connection keeps the state of its transaction: with fewer threads than connections, reads
//! of open transactions go to read-only nodes. The proxy always listens on all addresses, so a small program of dyno,
//! which needs a JDK, starts it.

use super::{CrossShardCommit, EndpointOptions, Front, software};
use crate::machine::find;
use crate::mysql::option_with_path;
use crate::process::Launch;
use crate::{Account, ClusterError, Result, StateNode};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The last version on Maven Central.
const VERSION: &str = "5.1.0";
/// The project that names the proxy and its JDBC driver to Maven; the hint for users repeats it.
const POM: &str = include_str!("pom.xml");

fn how_to_get() -> String {
    format!(
        "save this as pom.xml: {} ; then `mvn dependency:copy-dependencies -DoutputDirectory=lib` \
         fetches org.apache.shardingsphere:shardingsphere-proxy-bootstrap:{VERSION} and \
         mysql:mysql-connector-java:8.0.33 into the folder lib; name the folder with \
         --shardingsphere FOLDER or DYNO_SHARDINGSPHERE",
        POM.split_whitespace().collect::<Vec<_>>().join(" ")
    )
}

pub(super) struct ProxySoftware {
    java: PathBuf,
    jars: Vec<PathBuf>,
}

impl ProxySoftware {
    /// Searches the given folder, or that of `DYNO_SHARDINGSPHERE`.
    pub(super) fn find(options: &EndpointOptions) -> Result<Self> {
        let java = find(&["java"]).ok_or_else(|| {
            ClusterError::new("ShardingSphere-Proxy needs Java, which is not installed.")
                .with_hint("install a JDK of version 11 or newer, such as openjdk-17-jdk-headless")
        })?;
        let program = java.canonicalize().unwrap_or_else(|_| java.clone());
        if !program.with_file_name("javac").is_file() {
            return Err(ClusterError::new(
                "ShardingSphere-Proxy listens on all addresses of the machine, and this version lets strangers in \
                 (CVE-2022-45347); dyno's launcher, which has it listen on 127.0.0.1 only, needs a JDK, and this Java \
                 is a JRE.",
            )
            .with_hint("install a JDK, such as openjdk-17-jdk-headless"));
        }
        let folder = software(options, "DYNO_SHARDINGSPHERE").ok_or_else(|| {
            failed!("ShardingSphere-Proxy {VERSION} was not found here.").with_hint(how_to_get())
        })?;
        Ok(ProxySoftware { java, jars: jars_in(&folder)? })
    }
}

/// The jars of a folder: in `lib` and `ext-lib`, the layout of the distribution, or in the folder itself.
fn jars_in(root: &Path) -> Result<Vec<PathBuf>> {
    let mut jars: Vec<PathBuf> = [root.join("lib"), root.join("ext-lib"), root.to_owned()]
        .iter()
        .filter_map(|folder| std::fs::read_dir(folder).ok())
        .flat_map(|entries| entries.flatten().map(|entry| entry.path()))
        .filter(|path| path.extension() == Some(OsStr::new("jar")))
        .collect();
    jars.sort();
    let names: Vec<&str> = jars.iter().filter_map(|jar| jar.file_name()?.to_str()).collect();
    let this_version = format!("shardingsphere-proxy-bootstrap-{VERSION}");
    let known_version =
        format!("version {VERSION} of ShardingSphere-Proxy, the one that dyno knows how to start");
    let needed = [
        (
            "shardingsphere-proxy-bootstrap-",
            "ShardingSphere-Proxy (shardingsphere-proxy-bootstrap)",
        ),
        (this_version.as_str(), known_version.as_str()),
        ("mysql-connector-", "the JDBC driver of MySQL (mysql-connector-java)"),
    ];
    let missing =
        needed.into_iter().find(|(start, _)| !names.iter().any(|name| name.starts_with(*start)));
    let Some((_, missing)) = missing else { return Ok(jars) };
    let error = failed!("{} doesn't hold {missing}.", root.display());
    Err(error.with_hint(how_to_get()))
}

/// Writes the configuration: rules for shards if there are any, else for a primary and read-only nodes.
pub(super) fn prepare(front: &Front<'_>) -> Result<Launch> {
    let Front { node, account, options, .. } = front;
    let software = ProxySoftware::find(options)?;
    let is_sharded = front.with_role("shard").next().is_some();
    let rules = if is_sharded { sharding(front) } else { splitting(front)? };
    front.write_private("conf/server.yaml", &server_text(account, options, is_sharded))?;
    front.write_private(&format!("conf/config-{}.yaml", account.database), &rules)?;
    front.write_private("conf/logback.xml", include_str!("logback.xml"))?;
    let transactions = include_str!("transactions.properties");
    front.write_private("conf/transactions.properties", transactions)?;
    let launcher = front.write_private("Loopback.java", include_str!("Loopback.java"))?;
    let mut class_path = OsString::from(&node.folder);
    let jars = software.jars.iter().map(|jar| front.within_reach(jar));
    for entry in std::iter::once(Ok(node.folder.join("conf"))).chain(jars) {
        class_path.push(":");
        class_path.push(entry?);
    }
    let mut arguments: Vec<OsString> =
        vec![format!("-Xmx{}m", heap_mib(options.clients_max)).into()];
    let fixed = "-XX:+UseParallelGC -XX:+ExitOnOutOfMemoryError -Djava.net.preferIPv4Stack=true";
    arguments.extend(fixed.split(' ').map(Into::into));
    arguments.extend([
        option_with_path("-Djava.io.tmpdir=", &node.folder),
        "-cp".into(),
        class_path,
    ]);
    arguments.extend([launcher.into(), node.port.to_string().into()]);
    // Bootstrap takes it for the name of a resource, the loader for that of a file below the class path.
    arguments.push("/conf".into());
    // In the node's own folder: two proxies in one folder would share the log of their distributed transactions.
    Ok(node.launch(software.java, arguments))
}

/// Memory that the proxy needs by itself, and for each client a connection to each shard with its prepared statements.
fn heap_mib(clients_max: u32) -> u32 {
    512 + 4 * clients_max.max(128)
}

fn server_text(account: &Account, options: &EndpointOptions, is_sharded: bool) -> String {
    format!(
        include_str!("server.yaml"),
        user = account.user,
        password = account.password,
        transactions = match (is_sharded, options.transactions) {
            (true, CrossShardCommit::Xa) => "XA\n  providerType: Atomikos",
            _ => "LOCAL",
        },
        // Each connection needs its own thread, or the states of transactions get mixed up.
        threads = options.clients_max.max(16),
    )
}

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

/// The part of the rules that names the servers. Prepared statements are prepared on the servers, too.
fn sources<'a>(
    front: &Front<'_>,
    sources: impl Iterator<Item = (String, &'a StateNode)>,
) -> String {
    let Account { user, password, database } = &front.account;
    let sources = sources.map(|(name, backend)| {
        format!(
            include_str!("source.yaml"),
            name = name,
            port = backend.port,
            database = database,
            user = user,
            password = password,
            // Observers need connections in addition to those of the load.
            pool = front.options.clients_max.max(16) + 16,
        )
    });
    format!("schemaName: {database}\ndataSources:\n") + &sources.collect::<String>()
}

/// One primary and read-only nodes that take turns statement by statement.
fn splitting(front: &Front<'_>) -> Result<String> {
    let numbered = (0..).zip(front.with_role("read_only"));
    let readers: Vec<(String, &StateNode)> =
        numbered.map(|(number, node)| (format!("r{number}"), node)).collect();
    let names: Vec<String> = readers.iter().map(|(name, _)| name.clone()).collect();
    let primary = ("w".to_owned(), front.need_primary()?);
    let rules = if names.is_empty() {
        "rules: []\n".to_owned()
    } else {
        format!(include_str!("splitting.yaml"), readers = names.join(","))
    };
    Ok(sources(front, std::iter::once(primary).chain(readers)) + &rules)
}

/// Returns the YAML of a ShardingSphere database with shards: its data sources, and the rules that place rows by
/// warehouse (TPC-C) or by number (sysbench).
fn sharding(front: &Front<'_>) -> String {
    let shards: Vec<&StateNode> = front.with_role("shard").collect();
    let backends = shards.iter().enumerate().map(|(number, node)| (format!("ds_{number}"), *node));
    let last = shards.len() - 1;
    let sysbench: Vec<String> =
        (1..=front.options.sysbench_tables).map(|number| format!("sbtest{number}")).collect();
    let tables = BY_WAREHOUSE.into_iter().chain(sysbench.iter().map(|name| (name.as_str(), "id")));
    let tables = tables.map(|(table, column)| {
        format!(
            "    {table}: {{actualDataNodes: \"ds_${{0..{last}}}.{table}\", databaseStrategy: {{standard: \
             {{shardingColumn: {column}, shardingAlgorithmName: by_number}}}}}}\n"
        )
    });
    let bound = BY_WAREHOUSE.map(|(table, _)| table).into_iter();
    let rules = format!(
        include_str!("sharding.yaml"),
        tables = tables.collect::<String>(),
        bound = bound.filter(|it| *it != "bmsql_history").collect::<Vec<_>>().join(","),
        sysbench = match sysbench.len() {
            0 | 1 => String::new(),
            _ => format!("  - {}\n", sysbench.join(",")),
        },
        count = shards.len(),
    );
    sources(front, backends) + &rules
}

#[cfg(test)]
mod tests {
    use super::super::tests::{account, front, nodes};
    use super::*;

    #[test]
    fn jars_are_found_in_the_layouts_there_are() {
        let folder = tempfile::tempdir().unwrap();
        let error = jars_in(folder.path()).unwrap_err();
        assert!(error.hint.unwrap().contains("shardingsphere-proxy-bootstrap:5.1.0"));
        let proxy = "shardingsphere-proxy-bootstrap-5.1.0.jar";
        std::fs::create_dir(folder.path().join("lib")).unwrap();
        std::fs::write(folder.path().join("lib").join(proxy), "").unwrap();
        let error = jars_in(folder.path()).unwrap_err();
        assert!(error.message.contains("JDBC driver"), "{error}");
        std::fs::write(folder.path().join("mysql-connector-j-8.0.33.jar"), "").unwrap();
        assert_eq!(jars_in(folder.path()).unwrap().len(), 2);
    }

    #[test]
    fn another_version_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for jar in ["shardingsphere-proxy-bootstrap-5.0.0.jar", "mysql-connector-j-8.0.33.jar"] {
            std::fs::write(folder.path().join(jar), "").unwrap();
        }
        let error = jars_in(folder.path()).unwrap_err();
        assert!(error.message.contains("version 5.1.0"), "{error}");
    }

    #[test]
    fn each_connection_has_a_thread_and_shards_have_distributed_transactions() {
        let options = EndpointOptions { clients_max: 200, ..EndpointOptions::default() };
        let split = server_text(&account(), &options, false);
        assert!(split.contains("proxy-frontend-executor-size: 200"), "{split}");
        assert!(split.contains("defaultType: LOCAL"), "{split}");
        assert!(split.contains("\"dyno@%:s3cret\""), "{split}");
        assert!(server_text(&account(), &options, true).contains("defaultType: XA"));
        let local = EndpointOptions { transactions: CrossShardCommit::Local, ..options };
        assert!(server_text(&account(), &local, true).contains("defaultType: LOCAL"));
    }

    #[test]
    fn the_heap_grows_with_the_clients() {
        assert_eq!(heap_mib(1), 1024);
        assert_eq!(heap_mib(300), 1712);
    }

    #[test]
    fn reads_take_turns_over_all_read_only_nodes() {
        let nodes = nodes("".as_ref(), &["primary", "read_only", "read_only"]);
        let text = splitting(&front(&nodes)).unwrap();
        assert!(text.contains("write-data-source-name: w, read-data-source-names: \"r0,r1\""));
        for (name, port) in [("w", 5401), ("r0", 5402), ("r1", 5403)] {
            let source = format!("  {name}:\n    url: \"jdbc:mysql://127.0.0.1:{port}/dyno?");
            assert!(text.contains(&source), "{source} in {text}");
        }
        let nodes = super::super::tests::nodes("".as_ref(), &["primary"]);
        let alone = splitting(&front(&nodes)).unwrap();
        assert!(alone.ends_with("rules: []\n"), "{alone}");
    }

    #[test]
    fn every_table_of_both_loads_is_spread_over_all_shards() {
        let nodes = nodes("".as_ref(), &["shard"; 4]);
        let options = EndpointOptions { sysbench_tables: 3, ..EndpointOptions::default() };
        let text = sharding(&Front { options, ..front(&nodes) });
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
