//! Settings of servers that `--set` names.

use crate::cluster::product_of;
use crate::{NodeProduct, Result, TopologyKind};

/// Where a server listens, what it is to its cluster, and where its files are, as MySQL and MariaDB name it.
const OF_MYSQL: &[&str] = &[
    "admin-address",
    "admin-port",
    "basedir",
    "bind-address",
    "datadir",
    "defaults-file",
    "enforce-gtid-consistency",
    "extra-port",
    "gtid-domain-id",
    "gtid-mode",
    "init-file",
    "log-bin",
    "log-error",
    "mysqlx",
    "mysqlx-bind-address",
    "mysqlx-port",
    "mysqlx-socket",
    "pid-file",
    "port",
    "read-only",
    "relay-log",
    "report-host",
    "report-port",
    "secure-file-priv",
    "server-id",
    "skip-grant-tables",
    "skip-networking",
    "socket",
    "super-read-only",
    "tmpdir",
    "user",
];

/// The same of PostgreSQL.
const OF_POSTGRES: &[&str] = &[
    "config-file",
    "data-directory",
    "external-pid-file",
    "hba-file",
    "hot-standby",
    "ident-file",
    "include",
    "include-dir",
    "include-if-exists",
    "listen-addresses",
    "log-destination",
    "logging-collector",
    "port",
    "primary-conninfo",
    "primary-slot-name",
    "synchronous-standby-names",
    "unix-socket-directories",
];

/// A value must not add lines of its own to a configuration, nor change what dyno itself arranges.
pub(crate) fn check(topology: TopologyKind, settings: &[(String, String)]) -> Result<()> {
    for (name, value) in settings {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let is_name = !name.is_empty() && name.chars().all(fits);
        if !is_name || value.contains(|c: char| c.is_control()) {
            return Err(failed!("`{name}={value}` is no setting of a server.")
                .with_hint("write --set NAME=VALUE, such as --set max_connections=1000"));
        }
        if let Some(owned) = owned(topology, name) {
            let owned = if owned == *name { String::new() } else { format!(" ({owned})") };
            return Err(failed!(
                "`{name}`{owned} is dyno's own setting: it says where servers listen, where their files are \
                 and whom they follow."
            )
            .with_hint(format!("leave --set {name} out: servers of a cluster listen on loopback only, on free ports")));
        }
    }
    Ok(())
}

/// dyno's setting that a name means. MySQL takes every beginning of a name that fits only one, and words before it.
fn owned(topology: TopologyKind, name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase().replace('_', "-");
    if product_of(topology) == NodeProduct::Postgres {
        return OF_POSTGRES.iter().copied().find(|owned| *owned == name);
    }
    let words = ["loose-", "enable-", "disable-", "skip-", "maximum-"];
    let mut bare = name.as_str();
    while let Some(rest) = words.iter().find_map(|word| bare.strip_prefix(word)) {
        bare = rest;
    }
    OF_MYSQL.iter().copied().find(|owned| owned.starts_with(bare) || owned.starts_with(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_dyno_owns_are_refused() {
        let check = |topology, name: &str| {
            super::check(topology, &[(name.to_owned(), "x".to_owned())]).err()
        };
        for name in [
            "bind-address",
            "bind_address",
            "BIND_ADDRESS",
            "loose-bind-address",
            "bind-addr",
            "port",
            "loose_loose_port",
            "skip-grant-tables",
            "skip_networking",
            "skip-log-bin",
            "datadir",
        ] {
            let error = check(TopologyKind::Mariadb, name).unwrap_or_else(|| panic!("{name}"));
            assert!(error.message.contains("is dyno's own setting"), "{error}");
            assert!(error.hint.expect("a hint").contains(name));
        }
        for name in ["listen_addresses", "Port", "hba_file", "include", "primary_conninfo"] {
            assert!(check(TopologyKind::ShardedPostgres, name).is_some(), "{name}");
        }
        for name in ["innodb_buffer_pool_size", "max_connections", "sync_binlog", "slow-query-log"]
        {
            assert!(check(TopologyKind::Mysql, name).is_none(), "{name}");
        }
        for name in ["shared_buffers", "port_x", "wal_level", "fsync"] {
            assert!(check(TopologyKind::Postgres, name).is_none(), "{name}");
        }
    }
}
