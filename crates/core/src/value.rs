//! Parameters of statements.

/// One parameter of an execution, borrowed from the worker: no copy, no allocation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Param<'a> {
    /// SQL NULL.
    Null,
    /// A 64-bit integer (MySQL BIGINT, PostgreSQL int8).
    Int(i64),
    /// A double-precision number.
    Double(f64),
    /// Text in UTF-8 (MySQL VARCHAR, PostgreSQL varchar).
    Text(&'a [u8]),
}

/// The declared type of a parameter, given when a statement is prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamType {
    /// MySQL BIGINT, PostgreSQL int8 (OID 20).
    Int,
    /// MySQL DOUBLE, PostgreSQL float8 (OID 701).
    Double,
    /// MySQL VARCHAR, PostgreSQL varchar (OID 1043).
    Text,
    /// Left to the server: PostgreSQL OID 0 with values sent as text, as pgbench and psql do. MySQL
    /// and SQLite take the type of each value.
    Inferred,
}
