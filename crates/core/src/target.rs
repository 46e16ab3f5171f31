//! Facts of a target before a connection.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

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
    /// For example `MariaDB`, `MySQL`, `PostgreSQL`, `SQLite`.
    pub name: String,
    /// For example `10.11.19-MariaDB-0+deb12u1`.
    pub version: String,
}

/// Returns true if this is the version of ShardingSphere-Proxy, a layer of SQL over other servers that states theirs
/// too.
pub fn is_shardingsphere(version: &str) -> bool {
    version.contains("ShardingSphere")
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// IPv6 without brackets. The port is 1 to 65535.
    Tcp { host: String, port: u16 },
    /// The path of a unix socket.
    Unix(PathBuf),
}

impl Address {
    /// The name in the server's certificate: the host, or `localhost` behind a unix socket.
    pub fn tls_name(&self) -> &str {
        match self {
            Address::Tcp { host, .. } => host,
            Address::Unix(_) => "localhost",
        }
    }

    /// Returns true if it is surely on this machine; the machine's own address in a network is not recognized.
    pub fn is_local(&self) -> bool {
        match self {
            Address::Unix(_) => true,
            Address::Tcp { host, .. } => {
                host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
            }
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Address::Tcp { host, port } => write!(f, "{host}:{port}"),
            Address::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}
