//! Apache ShardingSphere-Proxy 5.1.0 for MySQL's protocol: in front of a primary and read-only nodes, whose reads it
//! spreads, also prepared ones; or as the SQL layer over shards.
//!
//! What has to be known of it is in its configuration here: the state of a transaction is kept by the thread that
//! serves a connection, so there must be as many threads as connections, or reads of open transactions go to
//! read-only nodes. It listens on all addresses and has no option for that, so a small program of our own starts it,
//! which needs a JDK.

mod rules;

use super::{Options, primary_and_readers, software, within_reach, write_private};
use crate::folder::failed;
use crate::programs::find;
use crate::{Account, Backend, ClusterError, Launch, Place, Result};
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

const LAUNCHER: &str = include_str!("Loopback.java");
/// The version that Maven Central has last, and whose behaviour is known here.
const VERSION: &str = "5.1.0";
/// The project that names the proxy and its JDBC driver to Maven; also what a user is told to save.
const POM: &str = include_str!("pom.xml");
/// The log goes to the output of the process.
const LOGBACK: &str = "<configuration>\n  <appender name=\"console\" \
    class=\"ch.qos.logback.core.ConsoleAppender\">\n    <encoder><pattern>%d{HH:mm:ss.SSS} \
    %-5level %logger{20}: %msg%n</pattern></encoder>\n  </appender>\n  <root level=\"warn\"><appender-ref \
    ref=\"console\"/></root>\n</configuration>\n";

/// What the distributed transactions of shards need; takes the place of the proxy's own file, whose five minutes a
/// transaction of a loader may need and more.
const TRANSACTIONS: &str = "com.atomikos.icatch.serial_jta_transactions=false\n\
    com.atomikos.icatch.automatic_resource_registration=false\n\
    com.atomikos.icatch.default_jta_timeout=3600000\ncom.atomikos.icatch.max_timeout=3600000\n\
    com.atomikos.icatch.max_actives=10000\ncom.atomikos.icatch.checkpoint_interval=50000\n\
    com.atomikos.icatch.enable_logging=true\ncom.atomikos.icatch.log_base_name=xa_tx\n\
    com.atomikos.icatch.log_base_dir=./logs\n";

/// Where the proxy can be had.
fn how_to_get() -> String {
    format!(
        "save this as pom.xml: {} ; then `mvn dependency:copy-dependencies -DoutputDirectory=lib` \
         fetches org.apache.shardingsphere:shardingsphere-proxy-bootstrap:{VERSION} and \
         mysql:mysql-connector-java:8.0.33 into the folder lib; name the folder with \
         --shardingsphere FOLDER or DYNO_SHARDINGSPHERE",
        POM.split_whitespace().collect::<Vec<_>>().join(" ")
    )
}

/// A proxy on this machine, and the Java that executes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Software {
    java: PathBuf,
    /// Whether this Java can compile the launcher.
    has_compiler: bool,
    jars: Jars,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Jars {
    /// All of them, found in a folder.
    Found(Vec<PathBuf>),
    /// In the local repository of Maven, which this program copies them from.
    Repository(PathBuf),
}

impl Software {
    /// Finds the proxy in the given folder, in that of `DYNO_SHARDINGSPHERE` or in Maven's local repository.
    pub fn find(options: &Options) -> Result<Self> {
        let java = find(&["java"]).ok_or_else(|| {
            ClusterError::new("ShardingSphere-Proxy needs Java, which is not installed.")
                .with_hint("install a JDK of version 11 or newer, such as openjdk-17-jdk-headless")
        })?;
        let beside = java.canonicalize().unwrap_or_else(|_| java.clone());
        let has_compiler = beside.with_file_name("javac").is_file();
        if !has_compiler && !options.allow_any_address {
            return Err(ClusterError::new(
                "ShardingSphere-Proxy listens on all addresses of the machine; dyno's launcher, \
                 which has it listen on 127.0.0.1 only, needs a JDK, and this Java is a JRE.",
            )
            .with_hint(
                "install a JDK, such as openjdk-17-jdk-headless, or allow all addresses with \
                 --allow-any-address",
            ));
        }
        let jars = match software(options, "DYNO_SHARDINGSPHERE") {
            Some(folder) => Jars::Found(jars_in(&folder)?),
            None => Jars::Repository(in_repository()?),
        };
        Ok(Software { java, has_compiler, jars })
    }
}

/// The jars of a folder: in `lib` and `ext-lib`, as the distribution has them, or in the folder itself.
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
fn copy_from_repository(maven: &Path, place: &Place) -> Result<Vec<PathBuf>> {
    let project = write_private(place, "pom.xml", POM)?;
    let lib = place.folder.join("software");
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
        super::hand_over(place, path).map_err(|error| failed("written", path, &error))?;
    }
    Ok(jars)
}

/// Writes the configuration: rules for shards if there are any, else for a primary and read-only nodes.
pub fn prepare(
    place: &Place,
    backends: &[Backend],
    account: &Account,
    options: &Options,
) -> Result<Launch> {
    let software = Software::find(options)?;
    let shards: Vec<&Backend> = backends.iter().filter(|node| node.role == "shard").collect();
    let rules = if shards.is_empty() {
        let (primary, readers) = primary_and_readers(backends)?;
        let readers: Vec<&Backend> = readers.collect();
        rules::splitting(primary, &readers, account, options)
    } else {
        rules::sharding(&shards, account, options)
    };
    let is_sharded = !shards.is_empty();
    write_private(place, "conf/server.yaml", &server(account, options, is_sharded))?;
    write_private(place, &format!("conf/config-{}.yaml", account.database), &rules)?;
    write_private(place, "conf/logback.xml", LOGBACK)?;
    write_private(place, "conf/transactions.properties", TRANSACTIONS)?;
    let launcher = write_private(place, "Loopback.java", LAUNCHER)?;
    let jars = match &software.jars {
        Jars::Found(jars) => {
            jars.iter().map(|jar| within_reach(place, jar)).collect::<Result<Vec<_>, _>>()?
        }
        Jars::Repository(maven) => copy_from_repository(maven, place)?,
    };
    let conf = place.folder.join("conf");
    let mut class_path = OsString::from(&place.folder);
    for entry in std::iter::once(&conf).chain(&jars) {
        class_path.push(":");
        class_path.push(entry);
    }
    let mut arguments: Vec<OsString> =
        ["-Xmx1g", "-XX:+UseParallelGC", "-Djava.net.preferIPv4Stack=true"].map(Into::into).into();
    arguments.extend([temporary(place), "-cp".into(), class_path]);
    if software.has_compiler {
        arguments.push(launcher.into());
    } else {
        arguments.push("org.apache.shardingsphere.proxy.Bootstrap".into());
    }
    arguments.push(place.port.to_string().into());
    // Bootstrap takes it for the name of a resource, the loader for that of a file below the class path.
    arguments.push("/conf".into());
    Ok(Launch {
        program: software.java,
        arguments,
        environment: Vec::new(),
        // Two proxies in one folder would share the log of their distributed transactions.
        folder: place.folder.clone(),
        log: place.folder.join("shardingsphere.log"),
    })
}

fn temporary(place: &Place) -> OsString {
    let mut option = OsString::from("-Djava.io.tmpdir=");
    option.push(&place.folder);
    option
}

fn server(account: &Account, options: &Options, is_sharded: bool) -> String {
    let mut text = format!(
        "rules:\n\
         - !AUTHORITY\n  users: [\"{}@%:{}\"]\n  provider: {{type: ALL_PRIVILEGES_PERMITTED}}\n\
         - !TRANSACTION\n",
        account.user, account.password
    );
    text.push_str(if is_sharded {
        "  defaultType: XA\n  providerType: Atomikos\n"
    } else {
        "  defaultType: LOCAL\n"
    });
    // Each connection has to have a thread of its own, or the state of transactions gets mixed up.
    let threads = options.clients_max.max(16);
    let _ = write!(
        text,
        "props:\n  max-connections-size-per-query: 1\n  kernel-executor-size: 16\n  sql-show: false\n  \
         check-table-metadata-enabled: false\n  proxy-backend-executor-suitable: OLTP\n  \
         proxy-frontend-executor-size: {threads}\n"
    );
    text
}

#[cfg(test)]
mod tests {
    use super::super::tests::account;
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
        let options = Options { clients_max: 200, ..Options::default() };
        let split = server(&account(), &options, false);
        assert!(split.contains("proxy-frontend-executor-size: 200"), "{split}");
        assert!(split.contains("defaultType: LOCAL"), "{split}");
        assert!(split.contains("\"dyno@%:s3cret\""), "{split}");
        assert!(server(&account(), &options, true).contains("defaultType: XA"));
    }
}
