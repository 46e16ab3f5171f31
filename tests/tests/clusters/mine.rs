//! A cluster of real servers that a test has to itself.

use dyno_core::{AnswerTable, DbError};
use dyno_testkit::{ProcessOutput, Scratch, dyno, query_url, skipped, wait_until};
use dyno_topology::{Cluster, Health, Request, TopologyKind, endpoint};
use std::path::PathBuf;
use std::time::Duration;

/// A cluster that is taken down when the test ends, however it ends.
pub(crate) struct Mine {
    pub(crate) cluster: Cluster,
    /// The cluster's folder is `c` in it.
    pub(crate) scratch: Scratch,
}

impl Drop for Mine {
    fn drop(&mut self) {
        let _ = Cluster::down(&self.dir());
    }
}

/// Starts a small cluster; `None`, with a line that says why, where its programs aren't installed.
pub(crate) fn up(
    test: &str,
    topology: TopologyKind,
    change: impl FnOnce(&mut Request),
) -> Option<Mine> {
    let scratch = Scratch::new();
    let mut request = Request::new(scratch.file("c"), topology);
    let cache = match topology {
        TopologyKind::Postgres | TopologyKind::ShardedPostgres => ("shared_buffers", "64MB"),
        _ => ("innodb_buffer_pool_size", "64M"),
    };
    request.settings.push((cache.0.to_owned(), cache.1.to_owned()));
    change(&mut request);
    let missing = request.endpoint.map(|kind| endpoint::check(kind, &request.endpoint_options));
    if let Some(Err(missing)) = missing {
        skipped(test, &missing.message);
        return None;
    }
    match Cluster::up(&request, &mut |_| ()) {
        Ok(cluster) => Some(Mine { cluster, scratch }),
        Err(error) if error.message.contains("not installed") => {
            skipped(test, &error.to_string());
            None
        }
        Err(error) => panic!("{error}\nhint: {:?}", error.hint),
    }
}

/// A primary, which is `n1`, and two read-only nodes that follow it asynchronously.
pub(crate) fn up_three(test: &str, topology: TopologyKind) -> Option<Mine> {
    up(test, topology, |request| request.replicas = 2)
}

/// Executes a statement as the account that arranges replication.
pub(crate) fn ask_as_admin(cluster: &Cluster, node: &str, sql: &str) {
    let secrets = std::fs::read_to_string(cluster.folder().join("secrets.json")).unwrap();
    let password = secrets.split('"').skip_while(|word| *word != "admin").nth(2).unwrap();
    let url = cluster.node_url(node).expect("a node");
    let (scheme, rest) = url.split_once("://").expect("a scheme");
    let (_, address) = rest.split_once('@').expect("an account");
    let url = format!("{scheme}://dyno_admin:{password}@{address}");
    query_url(&url, sql).unwrap_or_else(|error| panic!("{node}: {sql}: {error}"));
}

impl Mine {
    pub(crate) fn dir(&self) -> PathBuf {
        self.scratch.file("c")
    }

    /// The URL of the whole of it.
    pub(crate) fn url(&self) -> String {
        format!("cluster:{}", self.dir().display())
    }

    /// The URL of a node, with the password of the load's account.
    pub(crate) fn node_url(&self, node: &str) -> String {
        self.cluster.node_url(node).expect("a node")
    }

    /// The password of the load's account.
    pub(crate) fn password(&self) -> String {
        self.cluster.account().expect("an account").password
    }

    /// dyno, which has to end well, in the folder that holds the cluster's.
    pub(crate) fn dyno(&self, arguments: &[&str]) -> ProcessOutput {
        dyno(self.scratch.path(), arguments).good()
    }

    /// Executes a statement on a node as the account of the load.
    pub(crate) fn try_sql(&self, node: &str, sql: &str) -> Result<AnswerTable, DbError> {
        query_url(&self.node_url(node), sql)
    }

    /// Executes a statement on a node as the account that arranges replication.
    pub(crate) fn admin(&self, node: &str, sql: &str) {
        ask_as_admin(&self.cluster, node, sql);
    }

    /// The first value of an answer.
    pub(crate) fn sql(&self, node: &str, sql: &str) -> String {
        let table =
            self.try_sql(node, sql).unwrap_or_else(|error| panic!("{node}: {sql}: {error}"));
        table.single().unwrap_or_default().to_owned()
    }

    /// The number in the last column of an answer's first row.
    pub(crate) fn number(&self, node: &str, sql: &str) -> u64 {
        let table =
            self.try_sql(node, sql).unwrap_or_else(|error| panic!("{node}: {sql}: {error}"));
        let cell = table.rows.first().and_then(|row| row.last().cloned().flatten());
        cell.and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("no number: {sql}"))
    }

    /// Rows of a table on each of these nodes.
    pub(crate) fn count_rows(&self, nodes: &[String], table: &str) -> Vec<u64> {
        let sql = format!("SELECT count(*) FROM {table}");
        nodes.iter().map(|node| self.number(node, &sql)).collect()
    }

    /// Name and role of each node.
    pub(crate) fn roles(&self) -> Vec<(String, String)> {
        let nodes = self.cluster.nodes().iter();
        nodes.map(|node| (node.name.clone(), node.role.clone())).collect()
    }

    /// Fails unless all nodes do their work.
    pub(crate) fn assert_up(&self) {
        for status in self.cluster.status() {
            assert_eq!(status.health, Health::Up, "{status:?}");
        }
    }

    /// Waits until an answer is what it should be: replication takes its time.
    pub(crate) fn wait_for(&self, node: &str, sql: &str, wanted: &str) {
        wait_until(&format!("{wanted} as the answer of {node} to {sql}"), || {
            self.try_sql(node, sql).is_ok_and(|table| table.single() == Some(wanted))
        });
    }

    /// Returns true if anybody answers at the node's address.
    pub(crate) fn can_connect(&self, node: &str) -> bool {
        let node = self.cluster.node(node).unwrap();
        let address = format!("{}:{}", node.host, node.port).parse().unwrap();
        std::net::TcpStream::connect_timeout(&address, Duration::from_secs(2)).is_ok()
    }
}
