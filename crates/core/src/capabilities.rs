//! What a kind of database can do, so that generic code compares no product names.

use crate::Dialect;

/// What a database can do beside its dialect's SQL, and the statements in which products differ; stated by
/// its driver.
#[derive(Debug)]
pub struct Capabilities {
    /// It is made for many small transactions, not only for analysis.
    pub small_transactions: bool,
    /// It has the system views and functions of its dialect's server, such as `pg_stat_database`.
    pub server_views: bool,
    /// Foreign keys can be added to a table that exists.
    pub adds_foreign_keys: bool,
    /// Its transaction identifiers are MariaDB's, with domains: `gtid_binlog_pos`, `gtid_slave_pos`.
    pub domain_gtids: bool,
    /// Executed in a session, has joins with derived tables executed once instead of once per row.
    pub materialize_derived: Option<&'static str>,
    /// Answers with the names and values of all settings.
    pub settings: Option<&'static str>,
    /// Writes all that is in memory to the database's file.
    pub checkpoint: Option<&'static str>,
    /// Answers with the bytes of the database's file.
    pub file_bytes: Option<&'static str>,
    /// What stands before a query to get its estimated plan, the most telling first.
    pub explain: &'static [&'static str],
    /// The same for a plan with an execution of the query.
    pub explain_executed: &'static [&'static str],
    /// How the answer to them is read.
    pub plan_form: PlanForm,
}

/// How the rows of a plan make one text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanForm {
    /// A line per row, of all its columns.
    Lines,
    /// The last column of each row.
    LastColumn,
    /// Number, parent's number ... and text of a node per row.
    Parents,
}

impl Capabilities {
    /// Those of MySQL and of most that speak its protocol.
    pub const MYSQL: Self = Capabilities {
        small_transactions: true,
        server_views: true,
        adds_foreign_keys: true,
        domain_gtids: false,
        materialize_derived: None,
        settings: Some("SHOW GLOBAL VARIABLES"),
        checkpoint: None,
        file_bytes: None,
        explain: &["explain format=tree", "explain"],
        // The first is MariaDB's, the second MySQL's; neither knows the other's.
        explain_executed: &["analyze format=json", "explain analyze", "explain"],
        plan_form: PlanForm::Lines,
    };

    /// Those of PostgreSQL and of most that speak its protocol.
    pub const POSTGRES: Self = Capabilities {
        // `setting` counts in `unit`, which may be 8kB; this gives 128MB.
        settings: Some("SELECT name, current_setting(name) FROM pg_settings"),
        explain: &["explain (format json)", "explain"],
        explain_executed: &[
            "explain (analyze, buffers, settings, format json)",
            "explain (analyze, buffers, format json)",
            "explain analyze",
        ],
        ..Self::MYSQL
    };

    /// Those of embedded SQLite.
    pub const SQLITE: Self = Capabilities {
        server_views: false,
        adds_foreign_keys: false,
        settings: None,
        checkpoint: Some("PRAGMA wal_checkpoint(TRUNCATE)"),
        file_bytes: Some(
            "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
        ),
        explain: &["explain query plan"],
        explain_executed: &["explain query plan"],
        plan_form: PlanForm::Parents,
        ..Self::MYSQL
    };
}

impl Dialect {
    /// What most databases of this dialect can do.
    pub fn capabilities(self) -> &'static Capabilities {
        match self {
            Dialect::Mysql => &Capabilities::MYSQL,
            Dialect::Postgres => &Capabilities::POSTGRES,
            Dialect::Sqlite => &Capabilities::SQLITE,
        }
    }
}
