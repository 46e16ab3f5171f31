//! Parameters of statements.

/// One parameter of an execution, borrowed from the worker.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Param<'a> {
    Null,
    /// MySQL BIGINT, PostgreSQL int8.
    Int(i64),
    Double(f64),
    /// In the encoding of the session (MySQL VARCHAR, PostgreSQL varchar).
    Text(&'a [u8]),
}

/// The declared type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamType {
    /// MySQL BIGINT, PostgreSQL int8 (OID 20).
    Int,
    /// MySQL DOUBLE, PostgreSQL float8 (OID 701).
    Double,
    /// MySQL VARCHAR, PostgreSQL varchar (OID 1043).
    Text,
    /// Left to the server: PostgreSQL OID 0 with values as text, as pgbench and psql do. MySQL and SQLite take the type
    /// of each value.
    Inferred,
}
