//! dyno through what stands in front of clusters: a proxy that spreads reads, a SQL layer over shards.
//!
//! ShardingSphere-Proxy is used if `DYNO_SHARDINGSPHERE` names its folder or Maven's local repository holds it, pgpool if
//! `DYNO_PGPOOL` names the folder that its package was unpacked to or it is installed.

use dyno_core::{Driver, Session, Table};
use dyno_drivers::mysql::MysqlDriver;
use dyno_drivers::postgres::PostgresDriver;
use dyno_testkit::{skipped, wait_until};
use dyno_topology::{Cluster, EndpointKind, Request, TopologyKind, Watch, endpoint};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

struct Silent;

impl Watch for Silent {
    fn step(&mut self, _text: &str) {}
}

/// A cluster that is taken down when its test ends.
struct Up {
    cluster: Cluster,
    folder: tempfile::TempDir,
}

impl Up {
    /// `None` where the endpoint's program isn't here.
    fn start(test: &str, topology: TopologyKind, replicas: u32, kind: EndpointKind) -> Option<Up> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(folder.path(), open).expect("one's own folder");
        let mut request = Request::new(folder.path().join("c"), topology);
        request.replicas = replicas;
        request.endpoint = Some(kind);
        request.endpoint_options.clients_max = 32;
        request.endpoint_options.sysbench_tables = 4;
        if let Err(missing) = endpoint::check(kind, &request.endpoint_options) {
            skipped(test, &missing.message);
            return None;
        }
        let server = match topology {
            TopologyKind::Postgres => "pg_ctl",
            _ => "mariadbd",
        };
        if !is_installed(server) {
            skipped(test, &format!("{server} is not installed"));
            return None;
        }
        let up = Cluster::up(&request, &mut Silent);
        let cluster = up.unwrap_or_else(|error| panic!("{error} {:?}", error.hint));
        Some(Up { cluster, folder })
    }

    fn url(&self, node: &str) -> String {
        self.cluster.node_url(node).expect("the node")
    }

    /// The host, the port and the password in the URL of the endpoint.
    fn endpoint(&self) -> (String, String) {
        let node = self.cluster.node("endpoint").expect("the endpoint");
        let password = self.cluster.account().expect("the account").password;
        (node.port.to_string(), password)
    }

    fn dyno(&self, arguments: &[&str]) -> String {
        let ran = Command::new(env!("CARGO_BIN_EXE_dyno"))
            .args(arguments)
            .current_dir(self.folder.path())
            .output()
            .expect("dyno runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (stdout, stderr) = (text(&ran.stdout), text(&ran.stderr));
        assert!(ran.status.success(), "{arguments:?}: {}\n{stdout}\n{stderr}", ran.status);
        stdout
    }

    /// The first number in the answer's last column.
    fn ask(&self, node: &str, sql: &str) -> u64 {
        let target = self.url(node).parse().expect("a URL");
        let answer = dyno_reactor::block_on(async {
            if self.url(node).starts_with("postgres") {
                first(&PostgresDriver::new(&target).expect("a driver"), sql).await
            } else {
                first(&MysqlDriver::new(&target).expect("a driver"), sql).await
            }
        });
        answer.expect("an event loop")
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        let down = Cluster::down(self.cluster.folder());
        if !std::thread::panicking() {
            down.unwrap_or_else(|error| panic!("{error}"));
        }
    }
}

async fn first<D: Driver>(driver: &D, sql: &str) -> u64 {
    let mut session = driver.connect(0).await.expect("a session");
    let mut answer = Table::default();
    session.query(sql, &mut answer).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    session.close().await;
    let cell = answer.rows.first().and_then(|row| row.last().cloned().flatten());
    cell.and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("no number: {sql}"))
}

fn is_installed(program: &str) -> bool {
    let mut folders: Vec<PathBuf> =
        std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect();
    folders.push("/usr/sbin".into());
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    folders.extend(versions.map(|version| version.path().join("bin")));
    folders.iter().any(|folder| folder.join(program).is_file())
}

fn only_trial(folder: &Path) -> Value {
    let runs = std::fs::read_dir(folder.join("dyno-runs")).expect("runs");
    let runs: Vec<PathBuf> =
        runs.flatten().map(|entry| entry.path()).filter(|p| p.is_dir()).collect();
    assert_eq!(runs.len(), 1, "{runs:?}");
    let text = std::fs::read(runs[0].join("trials/1.json")).expect("a trial");
    serde_json::from_slice(&text).expect("JSON")
}

const SELECTS: &str = "SHOW GLOBAL STATUS LIKE 'Com_select'";

#[test]
fn tpcc_over_four_shards_is_consistent() {
    let test = "tpcc_over_four_shards_is_consistent";
    let kind = EndpointKind::Shardingsphere;
    let Some(up) = Up::start(test, TopologyKind::Sharded, 0, kind) else { return };
    let suite = format!(
        "[suite]\nname = \"sharded\"\n\n[target.main]\nurl = \"{}\"\n\n[[experiment]]\nname = \"orders\"\n\
         workload = \"tpcc\"\ntest = \"bmsql-5.0\"\nterminals = 4\nwarmup_s = 1\nduration_s = 8\ncleanup = false\n\n\
         [experiment.options]\nwarehouses = 2\nload_workers = 2\n",
        up.url("endpoint")
    );
    std::fs::write(up.folder.path().join("sharded.toml"), suite).expect("a file");
    up.dyno(&["run", "sharded.toml"]);
    let trial = only_trial(up.folder.path());
    assert_eq!(trial["status"], "complete", "{trial}");
    assert!(trial["counts"]["committed"].as_u64() > Some(0), "{}", trial["counts"]);
    let checks = trial["checks"].as_array().expect("a list");
    for name in ["books", "conditions"] {
        let check = checks.iter().find(|check| check["name"] == name).expect("the check");
        assert_eq!(check["verdict"], "passed", "{check}");
    }
    let conditions = trial["tpcc"]["conditions"].as_array().expect("a list");
    for line in conditions.iter().filter(|line| line["id"] != "C11") {
        assert_eq!(line["after"]["verdict"], "passed", "{line}");
    }
    let shards: Vec<String> = up
        .cluster
        .nodes()
        .iter()
        .filter(|node| node.role == "shard")
        .map(|node| node.name.clone())
        .collect();
    assert_eq!(shards.len(), 4);
    let rows = |table: &str| -> Vec<u64> {
        shards.iter().map(|shard| up.ask(shard, &format!("SELECT count(*) FROM {table}"))).collect()
    };
    // By the number of the warehouse, modulo four; the catalogue is everywhere.
    assert_eq!(rows("bmsql_warehouse"), [0, 1, 1, 0]);
    assert_eq!(rows("bmsql_item"), [100_000; 4]);
    // Remote lines and payments are transactions of two shards, which only XA makes whole.
    let prepared = up.ask(&shards[1], "SHOW GLOBAL STATUS LIKE 'Com_xa_prepare'");
    assert!(prepared > 0, "no transaction was distributed");
    let printed = up.dyno(&["check", &up.url("endpoint")]);
    assert!(printed.contains("C12"), "{printed}");
}

#[test]
fn sysbench_over_four_shards_has_all_its_rows() {
    let test = "sysbench_over_four_shards_has_all_its_rows";
    let kind = EndpointKind::Shardingsphere;
    let Some(up) = Up::start(test, TopologyKind::Sharded, 0, kind) else { return };
    sysbench(&up, &["--auto_inc=off", "oltp_read_write", "prepare"]);
    let rows: Vec<u64> =
        (1..=4).map(|n| up.ask(&format!("n{n}"), "SELECT count(*) FROM sbtest2")).collect();
    assert_eq!(rows, [250; 4]);
    let printed = sysbench(&up, &["--auto_inc=off", "oltp_read_write", "run"]);
    assert!(printed.contains("transactions:"), "{printed}");
    assert_eq!(up.ask("endpoint", "SELECT count(*) FROM sbtest2"), 1_000);
    sysbench(&up, &["--auto_inc=off", "oltp_read_write", "cleanup"]);
}

fn sysbench(up: &Up, more: &[&str]) -> String {
    let (port, password) = up.endpoint();
    let mut arguments = vec!["sysbench".to_owned()];
    arguments.extend(
        ["--mysql-host=127.0.0.1", "--mysql-user=dyno", "--mysql-db=dyno", "--tables=2"]
            .map(str::to_owned),
    );
    arguments.extend(["--table-size=1000", "--threads=4", "--time=4"].map(str::to_owned));
    arguments.extend([format!("--mysql-port={port}"), format!("--mysql-password={password}")]);
    arguments.extend(more.iter().map(|&word| word.to_owned()));
    up.dyno(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn prepared_reads_are_spread_over_the_read_only_nodes() {
    let test = "prepared_reads_are_spread_over_the_read_only_nodes";
    let kind = EndpointKind::Shardingsphere;
    let Some(up) = Up::start(test, TopologyKind::Mariadb, 2, kind) else { return };
    sysbench(&up, &["oltp_read_only", "prepare"]);
    let selects = || ["n1", "n2", "n3"].map(|node| up.ask(node, SELECTS));
    let before = selects();
    sysbench(&up, &["--skip-trx=on", "oltp_read_only", "run"]);
    let middle = selects();
    let [primary, first, second] = [0, 1, 2].map(|node| middle[node] - before[node]);
    assert!(first > 100 && second > 100, "{primary} : {first} : {second}");
    assert!(primary * 20 < first + second, "{primary} : {first} : {second}");
    // A transaction reads what it has written: all of it is the primary's.
    sysbench(&up, &["oltp_read_write", "run"]);
    let after = selects();
    let [primary, first, second] = [0, 1, 2].map(|node| after[node] - middle[node]);
    assert!(primary > 100 && first + second < primary / 10, "{primary} : {first} : {second}");
}

#[test]
fn pgpool_spreads_reads_and_leaves_writes_to_the_primary() {
    let test = "pgpool_spreads_reads_and_leaves_writes_to_the_primary";
    let Some(up) = Up::start(test, TopologyKind::Postgres, 2, EndpointKind::Pgpool) else { return };
    let url = up.url("endpoint");
    let fetched = || {
        ["n1", "n2", "n3"].map(|node| {
            up.ask(
                node,
                "SELECT idx_tup_fetch FROM pg_stat_user_tables WHERE relname = 'pgbench_accounts'",
            )
        })
    };
    up.dyno(&["pgbench", "-i", "-s", "1", &url]);
    let before = fetched();
    up.dyno(&["pgbench", "-S", "-M", "simple", "-n", "-c", "4", "-T", "3", &url]);
    // pgpool keeps its sessions, and an idle one counts what it did a while later.
    let grown = || {
        let after = fetched();
        [0, 1, 2].map(|node| after[node].saturating_sub(before[node]))
    };
    wait_until("reads of both read-only nodes", || grown()[1..].iter().all(|reads| *reads > 100));
    let [primary, first, second] = grown();
    assert!(primary * 10 < first + second, "{primary} : {first} : {second}");
    up.dyno(&["pgbench", "-n", "-c", "4", "-T", "3", &url]);
    up.dyno(&["check", &url]);
}
