//! Abilities of a kind of database, so that generic code compares no product names.

use crate::Dialect;

/// Abilities of a database alongside its dialect's SQL, and the statements in which products differ. Its driver states
/// them.
#[derive(Debug)]
pub struct Capabilities {
    /// Has the system views and functions of its dialect's server, such as `pg_stat_database`.
    pub server_views: bool,
    /// Transaction identifiers are MariaDB's, with domains: `gtid_binlog_pos`, `gtid_slave_pos`.
    pub domain_gtids: bool,
    /// Statement after which a session executes derived tables in joins once instead of once per row.
    pub materialize_derived: Option<&'static str>,
    /// Query for the names and values of all settings.
    pub settings: Option<&'static str>,
    /// Writes the memory to the database's file.
    pub checkpoint: Option<&'static str>,
    /// Query for the bytes of the database's file.
    pub file_bytes: Option<&'static str>,
    /// Prefixes of a query for its estimated plan, the most exact first.
    pub explain: &'static [&'static str],
    /// Prefixes of a query for its plan with an execution, the most exact first.
    pub explain_executed: &'static [&'static str],
    pub plan_form: PlanForm,
}

/// The rows of a plan as one text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanForm {
    /// A line per row, of all its columns.
    Lines,
    /// Number, parent's number ... and text of a node per row.
    Parents,
}

impl Capabilities {
    /// MySQL and most others of its protocol.
    pub const MYSQL: Self = Capabilities {
        server_views: true,
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

    /// PostgreSQL and most others of its protocol.
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

    pub const SQLITE: Self = Capabilities {
        server_views: false,
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
    /// Abilities of most databases of this dialect.
    pub fn capabilities(self) -> &'static Capabilities {
        match self {
            Dialect::Mysql => &Capabilities::MYSQL,
            Dialect::Postgres => &Capabilities::POSTGRES,
            Dialect::Sqlite => &Capabilities::SQLITE,
        }
    }
}

crate::named! {
    /// From good to bad.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum NodeHealth {
        /// Answers, or uses the CPU.
        Works = "works",
        /// Does not answer, is frozen, or has no memory left.
        Stuck = "stuck",
        /// Its log says so.
        OutOfMemory = "out of memory",
        /// Its process is gone.
        Dead = "dead",
    }
}

/// The health of a node, with evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSight {
    pub name: String,
    pub health: NodeHealth,
    /// The predicate of a sentence whose subject is the name: `answers a new connection`.
    pub evidence: String,
}
