//! Targets: URLs, and the forms of libpq's programs and of JDBC.

mod jdbc;
mod libpq;
mod password;
mod url;

#[cfg(test)]
mod tests;

pub use jdbc::{Jdbc, redact_url};
pub use libpq::{LibpqOptions, UNLIMITED_CONNECT_S, system_user};
pub use password::{FoundPassword, find_password};

use crate::net::{Address, Hosts, TlsOptions};
use dyno_core::{DbError, Dialect, ErrorKind};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// Text that must not reach a log, a file or a result.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Secret(text.into())
    }

    /// For authentication only.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Words of dyno's URLs in hints, and those of another front end in their place, replaced in this order.
pub type Spellings = &'static [(&'static str, &'static str)];

/// The error with its hint in the words of a front end.
pub(crate) fn spell_hint(error: DbError, spellings: Spellings) -> DbError {
    let Some(hint) = error.hint() else { return error };
    let hint = spellings.iter().fold(hint.to_owned(), |text, (from, to)| text.replace(from, to));
    error.with_hint(hint)
}

/// A URL of a database. All parts but the scheme are optional; text is percent-decoded:
/// ```text
/// mysql://user:password@host:port,[::1]:3307/database?tls=require&ca=/x.pem&cert=..&key=..
///     &socket=/path&connect_timeout_s=5&set.NAME=VALUE          (mariadb:// is the same)
///     &allow_cleartext=true&get-server-public-key=true&server_public_key=/x.pem&compression=zlib
/// postgres://user:password@host:port/database?sslmode=require&sslrootcert=/x.pem&sslcert=..&sslkey=..
///     &host=/socket/folder&options=..&connect_timeout_s=5&target_session_attrs=read-write
///     &application_name=..&passfile=/path&require_auth=scram-sha-256&channel_binding=require
///                                                               (postgresql:// is the same)
/// sqlite:path?busy_timeout_ms=5000&synchronous=normal&journal=wal
/// ```
/// The default host is `localhost` over TCP, the default port 3306 or 5432. Display prints `***` for the password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetUrl {
    /// Chooses the driver.
    pub dialect: Dialect,
    /// Connections rotate over them. Empty for a file.
    pub hosts: Hosts,
    /// Without it drivers take the operating system's user name, as the servers' own clients do.
    pub user: Option<String>,
    /// From the URL, or found elsewhere by the caller.
    pub password: Option<Secret>,
    /// The name of a database, or the path of a file.
    pub database: Option<String>,
    pub tls: TlsOptions,
    /// The other keys of the query, checked: `connect_timeout_s`, `options`, `busy_timeout_ms` ..., and `set.NAME` for
    /// session variables.
    pub options: BTreeMap<String, String>,
    /// Words for hints, of the front end that described the target; empty for a URL.
    pub spellings: Spellings,
}

impl TargetUrl {
    /// Reads a JDBC URL of MySQL, MariaDB, PostgreSQL or SQLite. Without load balancing it takes the
    /// first: JDBC keeps the others for failover.
    pub fn from_jdbc(url: &str) -> Result<Jdbc, TargetError> {
        jdbc::parse(url)
    }

    /// The URL with its password, for whoever opens it; Display hides that.
    pub fn reveal(&self) -> Secret {
        let mut password = String::new();
        if let Some(secret) = &self.password {
            url::push_encoded(&mut password, secret.reveal(), b"");
        }
        Secret(url::print(self, &password))
    }

    /// The scheme of the URL, such as `mysql`.
    pub fn scheme(&self) -> &'static str {
        self.dialect.name()
    }

    /// Returns true for a file that dyno opens itself.
    pub fn is_embedded(&self) -> bool {
        self.dialect == Dialect::Sqlite
    }

    /// Time limit of connect and log-in; 10 by default.
    pub fn connect_timeout_s(&self) -> u64 {
        self.number("connect_timeout_s").unwrap_or(10)
    }

    /// The value of an option; `None` if it is not set.
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.get(name).map(String::as_str)
    }

    /// The value of an option as a number; `None` if it is not set or isn't a whole number.
    pub fn number(&self, option: &str) -> Option<u64> {
        self.options.get(option)?.parse().ok()
    }

    /// The session variables, sorted: the `set.NAME` keys of the query as (NAME, value).
    pub fn session_variables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.options
            .iter()
            .filter_map(|(key, value)| Some((key.strip_prefix("set.")?, value.as_str())))
    }

    /// The user of the URL, or the operating system's name of this user.
    pub fn user_or_default(&self) -> Result<String, TargetError> {
        let user = self.user.clone().or_else(|| std::env::var("USER").ok());
        user.filter(|name| !name.is_empty()).ok_or_else(|| {
            TargetError::new(format!("The target {self} names no user, and USER is not set."))
                .with_hint("write the user into the URL: scheme://user@host/database")
        })
    }
}

impl FromStr for TargetUrl {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        url::parse(text).map_err(|error| TargetError { kind: ErrorKind::Usage, ..error })
    }
}

impl fmt::Display for TargetUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&url::print(self, "***"))
    }
}

/// A URL, a password file or an option that can't be used, without a password.
pub use dyno_core::Error as TargetError;

fn default_port(dialect: Dialect) -> u16 {
    if dialect == Dialect::Postgres { 5432 } else { 3306 }
}

/// libpq's socket of a folder and a port.
fn postgres_socket(folder: &str, port: u16) -> Address {
    let folder = folder.trim_end_matches('/');
    Address::Unix(format!("{folder}/.s.PGSQL.{port}").into())
}

/// The folder and the port of [`postgres_socket`].
fn socket_parts(path: &Path) -> Option<(String, String)> {
    let path = path.display().to_string();
    let (folder, port) = path.rsplit_once("/.s.PGSQL.")?;
    Some((folder.to_owned(), port.to_owned()))
}
