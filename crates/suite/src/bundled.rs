//! The suites that every dyno carries with it.

/// What an author of suites needs: the format, key by key.
pub const HANDBOOK: &str = include_str!("../../../suites/README.md");

#[derive(Clone, Copy, Debug)]
pub struct BundledSuite {
    pub name: &'static str,
    pub text: &'static str,
}

macro_rules! suites {
    ($($name:literal),* $(,)?) => {
        &[$(BundledSuite {
            name: $name,
            text: include_str!(concat!("../../../suites/", $name, ".toml")),
        }),*]
    };
}

/// What stands before the names of bundled suites where others have a path.
pub(crate) const BUNDLED_PREFIX: &str = "bundled:";

#[derive(Clone, Copy, Debug)]
pub(crate) struct BundledScript {
    /// Its file, relative to the suites.
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
}

macro_rules! scripts {
    ($($name:literal),* $(,)?) => {
        &[$(BundledScript {
            name: $name,
            text: include_str!(concat!("../../../suites/", $name)),
        }),*]
    };
}

pub(crate) fn scripts() -> &'static [BundledScript] {
    scripts!["pgbench/read-only.sql", "pgbench/read-write.sql"]
}

pub(crate) fn script(name: &str) -> Option<&'static str> {
    scripts().iter().find(|script| script.name == name).map(|script| script.text)
}

pub fn bundled() -> &'static [BundledSuite] {
    suites![
        "quickstart",
        "mixed",
        "oltp",
        "pgbench",
        "tpcc",
        "tpch",
        "rds-mysql-5.6",
        "polardb-2018",
        "polardb-mysql-oltp",
        "polardb-mysql-scaleout",
        "polardb-mysql-tpch",
        "polardb-oracle-pgbench",
        "polardb-x-tpcc",
        "failover",
    ]
}
