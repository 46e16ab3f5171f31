//! What the tests share.

use dyno_core::{Driver, SECOND, Session, Table};
use dyno_drivers::Target;
use dyno_drivers::mysql::MysqlDriver;
use dyno_drivers::postgres::PostgresDriver;
use dyno_drivers::target::Secret;
use dyno_reactor::{block_on, now, timeout};
use dyno_topology::{Cluster, Health, Request, Silent, TopologyKind};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A cluster that is taken down when the test ends, however it ends.
pub(crate) struct Mine {
    /// The cluster.
    pub(crate) cluster: Cluster,
    dir: PathBuf,
    _parent: TempDir,
}

impl Drop for Mine {
    fn drop(&mut self) {
        let _ = Cluster::down(&self.dir);
    }
}

/// A folder for a cluster, which every user can reach.
pub(crate) fn folder() -> (TempDir, PathBuf) {
    let parent = tempfile::tempdir().unwrap();
    std::fs::set_permissions(parent.path(), Permissions::from_mode(0o755)).unwrap();
    let dir = parent.path().join("c");
    (parent, dir)
}

/// Starts a small cluster; `None`, with a line that says why, where its programs aren't installed.
pub(crate) fn up(
    test: &str,
    topology: TopologyKind,
    change: impl FnOnce(&mut Request),
) -> Option<Mine> {
    let (parent, dir) = folder();
    let mut request = Request::new(&dir, topology);
    let cache = match topology {
        TopologyKind::Postgres => ("shared_buffers", "64MB"),
        _ => ("innodb_buffer_pool_size", "64M"),
    };
    request.settings.push((cache.0.to_owned(), cache.1.to_owned()));
    change(&mut request);
    match Cluster::up(&request, &mut Silent) {
        Ok(cluster) => Some(Mine { cluster, dir, _parent: parent }),
        Err(error) if error.message.contains("not installed") => {
            eprintln!("skipped: {test}: {error}");
            None
        }
        Err(error) => panic!("{error}\nhint: {:?}", error.hint),
    }
}

impl Mine {
    /// Its folder.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Executes a statement on a node as the account of the load.
    pub(crate) fn try_sql(&self, node: &str, sql: &str) -> Result<Table, String> {
        asked(&self.cluster.node_url(node).unwrap().parse().unwrap(), sql)
    }

    /// The same as the account that arranges replication.
    pub(crate) fn admin(&self, node: &str, sql: &str) {
        let secrets = std::fs::read_to_string(self.dir.join("secrets.json")).unwrap();
        let password = secrets.split('"').skip_while(|word| *word != "admin").nth(2).unwrap();
        let mut target: Target = self.cluster.node_url(node).unwrap().parse().unwrap();
        target.user = Some("dyno_admin".to_owned());
        target.password = Some(Secret::new(password));
        asked(&target, sql).unwrap_or_else(|error| panic!("{node}: {sql}: {error}"));
    }

    /// The first value of an answer.
    pub(crate) fn sql(&self, node: &str, sql: &str) -> String {
        let table =
            self.try_sql(node, sql).unwrap_or_else(|error| panic!("{node}: {sql}: {error}"));
        table.single().unwrap_or_default().to_owned()
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
        for _ in 0..3_000 {
            if self.try_sql(node, sql).is_ok_and(|table| table.single() == Some(wanted)) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        panic!("{node}: {sql}: {:?}, not {wanted}", self.try_sql(node, sql));
    }
}

fn asked(target: &Target, sql: &str) -> Result<Table, String> {
    let done = block_on(async {
        let due = now() + 60 * SECOND;
        let asked = async {
            match target.dialect {
                dyno_core::Dialect::Postgres => query(&PostgresDriver::new(target)?, sql).await,
                _ => query(&MysqlDriver::new(target)?, sql).await,
            }
        };
        timeout(due, asked).await
    });
    done.unwrap().map_err(|_| "no answer".to_owned())?.map_err(|error| error.to_string())
}

async fn query<D: Driver>(driver: &D, sql: &str) -> Result<Table, dyno_core::DbError> {
    let mut session = driver.connect(0).await?;
    let mut table = Table::default();
    session.query(sql, &mut table).await?;
    session.close().await;
    Ok(table)
}

impl Mine {
    /// Whether anybody answers at the node's address.
    pub(crate) fn can_connect(&self, node: &str) -> bool {
        let node = self.cluster.node(node).unwrap();
        let address = format!("{}:{}", node.host, node.port).parse().unwrap();
        std::net::TcpStream::connect_timeout(&address, std::time::Duration::from_secs(2)).is_ok()
    }
}
