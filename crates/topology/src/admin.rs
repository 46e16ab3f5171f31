//! Statements that arrange a cluster: one short session each, on its own account.

use dyno_core::{AnswerRow, AnswerTable, ColumnNames, DbError, Rows, SECOND};
use dyno_drivers::target::Secret;
use dyno_drivers::{Database, TargetUrl};
use dyno_reactor::{block_on, now, timeout};

use crate::cluster::{ENDPOINT, PROBE_LIMIT_S};
use crate::endpoint::{Front, router};
use crate::folder::OrFailed;
use crate::process::Launch;
use crate::{Cluster, ClusterError, NodeProduct, Result, StateNode, endpoint, guarded, postgres};

/// The account that arranges replication.
pub(crate) const ADMIN: &str = "dyno_admin";
/// The account by which read-only nodes read.
pub(crate) const REPLICATION: &str = "dyno_repl";

#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    names: Vec<String>,
    table: AnswerTable,
}

impl Rows for Answer {
    const DESCRIBED: bool = true;

    fn columns<C: ColumnNames>(&mut self, columns: &C) {
        self.names = (0..columns.count()).map(|column| columns.name(column).to_owned()).collect();
    }

    fn row<R: AnswerRow>(&mut self, row: &R) {
        self.table.row(row);
    }

    fn overflow(&self) -> Option<usize> {
        self.table.overflow()
    }
}

impl Answer {
    /// The only value of the answer; empty for NULL and for an answer of another size.
    pub(crate) fn single(&self) -> &str {
        self.table.single().unwrap_or_default()
    }

    /// A column of the first row by the first of these names that exists; empty for NULL.
    pub(crate) fn column(&self, names: &[&str]) -> &str {
        let column = names
            .iter()
            .find_map(|name| self.names.iter().position(|found| found.eq_ignore_ascii_case(name)));
        let value = column.and_then(|column| self.table.rows.first()?.get(column)?.as_deref());
        value.unwrap_or_default()
    }

    /// All rows, NULL as empty text.
    pub(crate) fn rows(&self) -> impl Iterator<Item = Vec<&str>> {
        self.table
            .rows
            .iter()
            .map(|row| row.iter().map(|cell| cell.as_deref().unwrap_or("")).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.table.rows.is_empty()
    }
}

pub(crate) struct Admin {
    name: String,
    pub(crate) product: NodeProduct,
    target: TargetUrl,
    limit_s: u64,
}

impl Admin {
    /// Connects as the account that arranges replication.
    pub(crate) fn for_admin(node: &StateNode, password: &str, limit_s: u64) -> Result<Self> {
        let database = if node.product == NodeProduct::Postgres { "postgres" } else { "" };
        Self::with_account(node, ADMIN, password, database, limit_s)
    }

    /// Returns an administrator who connects as `user` for each query, within `limit_s` seconds. Connects to nothing
    /// yet.
    pub(crate) fn with_account(
        node: &StateNode,
        user: &str,
        password: &str,
        database: &str,
        limit_s: u64,
    ) -> Result<Self> {
        let (scheme, host, port) = (node.product.scheme(), &node.host, node.port);
        let url = format!("{scheme}://{user}@{host}:{port}/{database}?connect_timeout_s={limit_s}");
        let mut target: TargetUrl = url.parse().map_err(|error| failed!("{url}: {error}"))?;
        target.password = Some(Secret::new(password));
        Ok(Admin { name: node.name.clone(), product: node.product, target, limit_s })
    }

    /// Executes a statement in a session for it alone and returns its answer.
    pub(crate) fn query(&self, sql: &str) -> Result<Answer> {
        let mut tables = self.ask_all(&[sql])?;
        Ok(tables.pop().unwrap_or_default())
    }

    /// Executes statements in one session and returns their answers.
    pub(crate) fn ask_all(&self, statements: &[impl AsRef<str>]) -> Result<Vec<Answer>> {
        self.try_all(statements).map_err(|error| {
            let message = format!("{}: {error}", self.name);
            ClusterError::new(message.trim_end_matches('.').to_owned() + ".")
        })
    }

    fn try_all(&self, statements: &[impl AsRef<str>]) -> Result<Vec<Answer>, DbError> {
        let database = Database::open(&self.target)?;
        let talk = async {
            let mut session = database.admin().connect(0).await?;
            let mut tables = Vec::new();
            for sql in statements {
                let mut table = Answer::default();
                session.query(sql.as_ref(), &mut table).await?;
                tables.push(table);
            }
            session.close().await;
            Ok(tables)
        };
        block_on(timeout(now() + self.limit_s * SECOND, talk))
            .map_err(|error| DbError::lost(error.to_string()))?
            .unwrap_or_else(|_| {
                Err(DbError::lost(format!("There was no answer within {} s.", self.limit_s)))
            })
    }
}

impl Cluster {
    /// Starts the endpoint, if the cluster has one; one that is a server runs already and is given the shards.
    pub(crate) fn make_endpoint(&mut self, step: &mut dyn FnMut(&str)) -> Result<()> {
        let Some(node) = self.state.nodes.iter().find(|node| node.role == "endpoint") else {
            return Ok(());
        };
        if node.product.is_server() {
            step("Joining the shards behind the coordinator.");
            postgres::join(self, node)?;
        } else {
            step(&format!("Starting {}.", node.product.name()));
            self.launch(ENDPOINT)?;
        }
        self.wait_for_endpoint()
    }

    /// Writes the endpoint's configuration for the present roles; returns how it is started.
    pub(crate) fn endpoint_launch(&self, node: &StateNode) -> Result<Launch> {
        remove_leftovers(node);
        let mut front = Front {
            node,
            run_as: self.state.run_as,
            // A shard that is away keeps its rows: they lie by the number of all shards.
            backends: self.servers().filter(|node| node.pid != 0 || node.role == "shard").collect(),
            account: self.account()?,
            options: self.state.endpoint_options.clone(),
        };
        if node.product == NodeProduct::Router {
            front.options.metadata_password.clone_from(&self.secrets.metadata);
            self.make_metadata(&front.backends)?;
            self.lend_certificate(node)?;
        }
        endpoint::prepare(&front)
    }

    /// Makes the tables on the primary that Router reads.
    fn make_metadata(&self, backends: &[&StateNode]) -> Result<()> {
        let mut identities = Vec::new();
        for node in backends {
            identities.push(self.admin(node)?.query("SELECT @@server_uuid")?.single().to_owned());
        }
        let backends = backends.iter().copied().zip(identities);
        let statements = router::metadata(backends, &self.secrets.metadata);
        self.admin(self.need_primary()?)?.ask_all(&statements).map(drop)
    }

    /// Gives Router the certificate of the primary.
    fn lend_certificate(&self, node: &StateNode) -> Result<()> {
        let Some(primary) = self.primary() else { return Ok(()) };
        for (from, to) in
            [("server-cert.pem", "client-cert.pem"), ("server-key.pem", "client-key.pem")]
        {
            let (from, to) = (primary.data().join(from), node.folder.join(to));
            guarded::read(&from)
                .and_then(|mut file| guarded::copy(&mut file, &to, 0o600, self.state.run_as))
                .or_failed("copied", &from)?;
        }
        Ok(())
    }

    /// Waits until the endpoint takes log-ins and passes a question on.
    pub(crate) fn wait_for_endpoint(&self) -> Result<()> {
        let node = self.node(ENDPOINT)?;
        self.wait_for(node, || {
            self.check_alive(node)?;
            let answer = self.ask_endpoint(node);
            Ok(answer.err().map(|error| format!("doesn't take log-ins: {}", error.message)))
        })
    }

    pub(crate) fn ask_endpoint(&self, node: &StateNode) -> Result<()> {
        let account = self.account()?;
        let admin = Admin::with_account(
            node,
            &account.user,
            &account.password,
            &account.database,
            PROBE_LIMIT_S,
        )?;
        admin.query("SELECT 1").map(drop)
    }

    /// Starts the endpoint again for new roles, which ends its connections.
    pub(crate) fn renew_endpoint(&mut self) -> Result<()> {
        if self.state.nodes.iter().all(|node| node.role != "endpoint" || node.pid == 0) {
            return Ok(());
        }
        self.processes(self.node(ENDPOINT)?).kill()?;
        self.launch(ENDPOINT)?;
        self.wait_for_endpoint()
    }
}

/// Removes files of a killed pgpool, which refuses to start alongside them.
fn remove_leftovers(node: &StateNode) {
    for entry in std::fs::read_dir(&node.folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if name == "pgpool.pid" || name.to_string_lossy().starts_with(".s.PGSQL.") {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}
