//! The suites that every dyno carries with it.

/// A bundled suite.
#[derive(Clone, Copy, Debug)]
pub struct BundledSuite {
    /// The name under which it can be run from anywhere.
    pub name: &'static str,
    /// The text of its file.
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

/// All bundled suites.
pub fn bundled() -> &'static [BundledSuite] {
    suites!["quickstart", "rds-mysql-5.6", "polardb-mysql-oltp"]
}
