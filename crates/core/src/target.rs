//! Facts of a target before a connection.

crate::named! {
    /// The SQL dialect of a target. [`Product`] knows differences inside it (MariaDB, MySQL) once a session exists.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Dialect {
        /// MySQL protocol: MySQL, MariaDB, PolarDB, TiDB ...
        Mysql = "mysql",
        /// PostgreSQL protocol.
        Postgres = "postgres",
        /// Embedded SQLite.
        Sqlite = "sqlite",
    }
}

impl Dialect {
    /// Writes the placeholder of parameter `number` (from 1): `?`, or `$number` on PostgreSQL.
    pub fn push_placeholder(self, sql: &mut String, number: usize) {
        match self {
            Dialect::Postgres => {
                sql.push('$');
                sql.push_str(&number.to_string());
            }
            Dialect::Mysql | Dialect::Sqlite => sql.push('?'),
        }
    }
}

/// Product and version as the server states them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Product {
    /// Such as `MariaDB`, `MySQL`, `PostgreSQL`, `SQLite`.
    pub name: String,
    /// Such as `10.11.19-MariaDB-0+deb12u1`.
    pub version: String,
}

/// True where this is the version of ShardingSphere-Proxy, a layer of SQL over other servers that states theirs too.
pub fn is_shardingsphere(version: &str) -> bool {
    version.contains("ShardingSphere")
}
