//! Apache ShardingSphere-Proxy 5.1.0 for MySQL's protocol: in front of a primary and read-only nodes, whose reads it
//! spreads, also prepared ones; or as the SQL layer over shards.
//!
//! The thread that serves a connection keeps the state of its transaction: with fewer threads than connections, reads
//! of open transactions go to read-only nodes. The proxy always listens on all addresses, so a small program of dyno,
//! which needs a JDK, starts it.
//!
//! Rules of the proxy: spread reads over read-only nodes, or rows over shards.

use super::{CrossShardCommit, EndpointOptions, Front, software};
use crate::folder::{OrFailed, give};
use crate::machine::find;
use crate::mysql::joined;
use crate::process::Launch;
use crate::{Account, ClusterError, Result, StateNode};
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

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
    jars: Jars,
}

enum Jars {
    Found(Vec<PathBuf>),
    /// In the local repository of Maven, which this program copies them from.
    Repository(PathBuf),
}

impl ProxySoftware {
    /// Searches the given folder, that of `DYNO_SHARDINGSPHERE`, or Maven's local repository.
    pub(super) fn find(options: &EndpointOptions) -> Result<Self> {
        let java = find(&["java"]).ok_or_else(|| {
            ClusterError::new("ShardingSphere-Proxy needs Java, which is not installed.")
                .with_hint("install a JDK of version 11 or newer, such as openjdk-17-jdk-headless")
        })?;
        let beside = java.canonicalize().unwrap_or_else(|_| java.clone());
        if !beside.with_file_name("javac").is_file() {
            return Err(ClusterError::new(
                "ShardingSphere-Proxy listens on all addresses of the machine, and this version lets strangers in \
                 (CVE-2022-45347); dyno's launcher, which has it listen on 127.0.0.1 only, needs a JDK, and this Java \
                 is a JRE.",
            )
            .with_hint("install a JDK, such as openjdk-17-jdk-headless"));
        }
        let jars = match software(options, "DYNO_SHARDINGSPHERE") {
            Some(folder) => Jars::Found(jars_in(&folder)?),
            None => Jars::Repository(in_repository()?),
        };
        Ok(ProxySoftware { java, jars })
    }
}

/// The jars of a folder: in `lib` and `ext-lib`, the layout of the distribution, or in the folder itself.
fn jars_in(root: &Path) -> Result<Vec<PathBuf>> {
    let is_jar = |path: &PathBuf| path.extension() == Some(OsStr::new("jar"));
    let mut jars: Vec<PathBuf> = [root.join("lib"), root.join("ext-lib"), root.to_owned()]
        .iter()
        .filter_map(|folder| std::fs::read_dir(folder).ok())
        .flat_map(|entries| entries.flatten().map(|entry| entry.path()))
        .filter(is_jar)
        .collect();
    jars.sort();
    let has = |start: &str| {
        jars.iter().filter_map(|jar| jar.file_name()?.to_str()).any(|name| name.starts_with(start))
    };
    let missing = if !has("shardingsphere-proxy-bootstrap-") {
        "ShardingSphere-Proxy (shardingsphere-proxy-bootstrap)".to_owned()
    } else if !has(&format!("shardingsphere-proxy-bootstrap-{VERSION}")) {
        format!("version {VERSION} of ShardingSphere-Proxy, the one that dyno knows how to start")
    } else if !has("mysql-connector-") {
        "the JDBC driver of MySQL (mysql-connector-java)".to_owned()
    } else {
        return Ok(jars);
    };
    let error = failed!("{} doesn't hold {missing}.", root.display());
    Err(error.with_hint(how_to_get()))
}

/// Maven, if its local repository has the proxy.
fn in_repository() -> Result<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let artifact = "repository/org/apache/shardingsphere/shardingsphere-proxy-bootstrap";
    let jar = format!("{VERSION}/shardingsphere-proxy-bootstrap-{VERSION}.jar");
    let is_there = home.join(".m2").join(artifact).join(jar).is_file();
    find(&["mvn"]).filter(|_| is_there).ok_or_else(|| {
        failed!("ShardingSphere-Proxy {VERSION} was not found here.").with_hint(how_to_get())
    })
}

/// Copies the jars out of Maven's local repository; nothing is downloaded.
fn copy_from_repository(maven: &Path, front: &Front<'_>) -> Result<Vec<PathBuf>> {
    let project = front.write_private("pom.xml", POM)?;
    let lib = front.node.folder.join("software");
    let mut output = OsString::from("-DoutputDirectory=");
    output.push(&lib);
    let ran = Command::new(maven)
        .args(["-o", "-q", "-B", "dependency:copy-dependencies", "-f"])
        .arg(project)
        .arg(output)
        .output();
    let is_done = ran.as_ref().is_ok_and(|ran| ran.status.success());
    if !is_done {
        let error = ClusterError::new(
            "Maven's local repository doesn't hold all of ShardingSphere-Proxy, or Maven failed.",
        );
        return Err(error.with_hint(how_to_get()));
    }
    let jars = jars_in(&lib)?;
    for path in jars.iter().chain([&lib]) {
        give(path, front.run_as).or_failed("written", path)?;
    }
    Ok(jars)
}

/// Writes the configuration: rules for shards if there are any, else for a primary and read-only nodes.
pub(super) fn prepare(front: &Front<'_>) -> Result<Launch> {
    let Front { node, account, options, .. } = front;
    let software = ProxySoftware::find(options)?;
    let shards: Vec<&StateNode> = front.with_role("shard").collect();
    let rules = if shards.is_empty() {
        let readers: Vec<&StateNode> = front.with_role("read_only").collect();
        splitting(front.primary()?, &readers, account, options)
    } else {
        sharding(&shards, account, options)
    };
    let is_sharded = !shards.is_empty();
    front.write_private("conf/server.yaml", &server(account, options, is_sharded))?;
    front.write_private(&format!("conf/config-{}.yaml", account.database), &rules)?;
    front.write_private("conf/logback.xml", include_str!("logback.xml"))?;
    let transactions = include_str!("transactions.properties");
    front.write_private("conf/transactions.properties", transactions)?;
    let launcher = front.write_private("Loopback.java", include_str!("Loopback.java"))?;
    let jars = match &software.jars {
        Jars::Found(jars) => {
            jars.iter().map(|jar| front.within_reach(jar)).collect::<Result<_>>()?
        }
        Jars::Repository(maven) => copy_from_repository(maven, front)?,
    };
    let mut class_path = OsString::from(&node.folder);
    for entry in std::iter::once(&node.folder.join("conf")).chain(&jars) {
        class_path.push(":");
        class_path.push(entry);
    }
    let heap = format!("-Xmx{}m", heap_mib(options));
    let mut arguments: Vec<OsString> = [
        &heap,
        "-XX:+UseParallelGC",
        "-XX:+ExitOnOutOfMemoryError",
        "-Djava.net.preferIPv4Stack=true",
    ]
    .map(Into::into)
    .into();
    arguments.extend([joined("-Djava.io.tmpdir=", &node.folder), "-cp".into(), class_path]);
    arguments.push(launcher.into());
    arguments.push(node.port.to_string().into());
    // Bootstrap takes it for the name of a resource, the loader for that of a file below the class path.
    arguments.push("/conf".into());
    // In the node's own folder: two proxies in one folder would share the log of their distributed transactions.
    Ok(node.launch(software.java, arguments))
}

/// What the proxy needs by itself, and for each client a connection to each shard with its prepared statements.
fn heap_mib(options: &EndpointOptions) -> u32 {
    options.heap_mib.unwrap_or(512 + 4 * options.clients_max.max(128))
}

fn server(account: &Account, options: &EndpointOptions, is_sharded: bool) -> String {
    format!(
        include_str!("server.yaml"),
        user = account.user,
        password = account.password,
        transactions = match (is_sharded, options.transactions) {
            (true, CrossShardCommit::Xa) => "XA\n  providerType: Atomikos",
            _ => "LOCAL",
        },
        // Each connection needs a thread of its own, or the states of transactions get mixed up.
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
fn splitting(
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
fn sharding(shards: &[&StateNode], account: &Account, options: &EndpointOptions) -> String {
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
    use super::super::tests::{account, nodes};
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
        let split = server(&account(), &options, false);
        assert!(split.contains("proxy-frontend-executor-size: 200"), "{split}");
        assert!(split.contains("defaultType: LOCAL"), "{split}");
        assert!(split.contains("\"dyno@%:s3cret\""), "{split}");
        assert!(server(&account(), &options, true).contains("defaultType: XA"));
        let local = EndpointOptions { transactions: CrossShardCommit::Local, ..options };
        assert!(server(&account(), &local, true).contains("defaultType: LOCAL"));
    }

    #[test]
    fn the_heap_grows_with_the_clients_unless_it_is_given() {
        let heap = |clients_max, given| {
            heap_mib(&EndpointOptions {
                clients_max,
                heap_mib: given,
                ..EndpointOptions::default()
            })
        };
        assert_eq!(heap(1, None), 1024);
        assert_eq!(heap(300, None), 1712);
        assert_eq!(heap(300, Some(256)), 256);
    }

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
