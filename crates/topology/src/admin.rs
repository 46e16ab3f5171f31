//! Statements that arrange a cluster: one short session each, on an account of its own.

use crate::{ClusterError, NodeProduct, Result, StateNode};
use dyno_core::{
    AdminDriver, AnswerRow, AnswerTable, ColumnNames, DbError, Driver, Rows, SECOND, Session,
};
use dyno_drivers::target::Secret;
use dyno_drivers::{Database, TargetUrl};
use dyno_reactor::{block_on, now, timeout};

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
    pub(crate) fn single(&self) -> &str {
        self.table.single().unwrap_or_default()
    }

    /// A column of the first row by the first of these names that exists; empty for NULL.
    pub(crate) fn named(&self, names: &[&str]) -> &str {
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
    target: TargetUrl,
    limit_s: u64,
}

impl Admin {
    /// As the account that arranges replication.
    pub(crate) fn for_admin(node: &StateNode, password: &str, limit_s: u64) -> Result<Self> {
        let database = if node.product == NodeProduct::Postgres { "postgres" } else { "" };
        Self::of(node, ADMIN, password, database, limit_s)
    }
    pub(crate) fn of(
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
        Ok(Admin { name: node.name.clone(), target, limit_s })
    }

    pub(crate) fn ask(&self, sql: &str) -> Result<Answer> {
        let mut tables = self.ask_all(&[sql])?;
        Ok(tables.pop().unwrap_or_default())
    }

    /// Executes statements in one session and returns their answers.
    pub(crate) fn ask_all(&self, statements: &[&str]) -> Result<Vec<Answer>> {
        self.try_all(statements).map_err(|error| {
            let message = format!("{}: {error}", self.name);
            ClusterError::new(message.trim_end_matches('.').to_owned() + ".")
        })
    }

    fn try_all(&self, statements: &[&str]) -> Result<Vec<Answer>, DbError> {
        let database = Database::open(&self.target)?;
        let talk = async { talk(&database.admin(), statements).await };
        block_on(timeout(now() + self.limit_s * SECOND, talk))
            .map_err(|error| DbError::lost(error.to_string()))?
            .unwrap_or_else(|_| {
                Err(DbError::lost(format!("There was no answer within {} s.", self.limit_s)))
            })
    }
}

async fn talk(driver: &AdminDriver<'_>, statements: &[&str]) -> Result<Vec<Answer>, DbError> {
    let mut session = driver.connect(0).await?;
    let mut tables = Vec::new();
    for sql in statements {
        let mut table = Answer::default();
        session.query(sql, &mut table).await?;
        tables.push(table);
    }
    session.close().await;
    Ok(tables)
}
