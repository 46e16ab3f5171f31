//! What the names in a statement stand for: columns, functions, variables, keywords.

use super::lexer::Dialect;
use super::plan::Value;
use super::tpc;

/// The version both the greeting and `SELECT VERSION()` tell, so that clients choose MariaDB's
/// dialect and its metadata caching.
pub(crate) const MYSQL_VERSION: &str = "5.5.5-10.11.6-MariaDB";
const MYSQL_VERSION_PLAIN: &str = "10.11.6-MariaDB";
/// What a PostgreSQL client is told in `server_version`.
pub(crate) const POSTGRES_VERSION: &str = "15.0";
const POSTGRES_VERSION_LONG: &str = "PostgreSQL 15.0 (dyno null server)";

/// 10 groups of 11 digits, as sysbench fills its column c.
pub(crate) const C: &[u8] = b"31451373586-15688153734-79729593694-96509299839-83724898275-\
86711833539-78981337422-35049690573-51724173961-87474696253";
/// 5 groups of 11 digits, as sysbench fills its column pad.
pub(crate) const PAD: &[u8] = b"98996621624-36689827414-04092488557-09587706818-65008859162";

/// The one table of the catalog; every id exists in it.
pub(crate) const TABLE: &[u8] = b"sbtest1";

/// Words are compared in lower case; longer ones are no keywords.
const WORD_MAX: usize = 32;

/// Calls `f` with the word in lower case, or with an empty one if it is too long to be known.
pub(crate) fn lowered<R>(word: &[u8], f: impl FnOnce(&[u8]) -> R) -> R {
    let mut buffer = [0u8; WORD_MAX];
    let Some(lower) = buffer.get_mut(..word.len()) else { return f(b"") };
    lower.copy_from_slice(word);
    lower.make_ascii_lowercase();
    f(lower)
}

/// Keywords that steer the parser. Everything else is `Other`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keyword {
    Select,
    Insert,
    Replace,
    Update,
    Delete,
    Begin,
    Start,
    Commit,
    End,
    Rollback,
    Set,
    Show,
    Use,
    Load,
    Copy,
    Create,
    Drop,
    Alter,
    Truncate,
    With,
    Explain,
    From,
    Between,
    And,
    In,
    Values,
    Distinct,
    As,
    Returning,
    GroupBy,
    Like,
    /// Ends a select list without FROM.
    Clause,
    Order,
    Limit,
    Into,
    /// Stands between a column and its parameter: NOT, OR, WHERE.
    Connective,
    Other,
}

pub(crate) fn keyword(word: &[u8]) -> Keyword {
    use Keyword as K;
    lowered(word, |lower| match lower {
        b"select" => K::Select,
        b"insert" => K::Insert,
        b"replace" => K::Replace,
        b"update" => K::Update,
        b"delete" => K::Delete,
        b"begin" => K::Begin,
        b"start" => K::Start,
        b"commit" => K::Commit,
        b"end" => K::End,
        b"rollback" => K::Rollback,
        b"set" => K::Set,
        b"show" => K::Show,
        b"use" => K::Use,
        b"load" => K::Load,
        b"copy" => K::Copy,
        b"create" => K::Create,
        b"drop" => K::Drop,
        b"alter" => K::Alter,
        b"truncate" => K::Truncate,
        b"with" => K::With,
        b"explain" => K::Explain,
        b"from" => K::From,
        b"between" => K::Between,
        b"and" => K::And,
        b"in" => K::In,
        b"values" | b"value" => K::Values,
        b"distinct" | b"all" => K::Distinct,
        b"as" => K::As,
        b"returning" => K::Returning,
        b"group" => K::GroupBy,
        b"like" => K::Like,
        b"order" => K::Order,
        b"limit" => K::Limit,
        b"where" | b"for" | b"union" | b"having" | b"offset" => K::Clause,
        b"into" => K::Into,
        b"not" | b"or" | b"is" | b"by" => K::Connective,
        _ => K::Other,
    })
}

/// What a column of this name holds. Columns that nobody declared hold the number 1.
pub(crate) fn column_value(name: &[u8]) -> Value {
    lowered(name, known_column).unwrap_or(Value::Int(1))
}

fn known_column(lower: &[u8]) -> Option<Value> {
    match lower {
        b"id" | b"k" | b"aid" | b"bid" | b"tid" => Some(Value::Int(1)),
        b"abalance" | b"bbalance" | b"tbalance" | b"delta" => Some(Value::Int(0)),
        b"c" => Some(Value::Char(C)),
        b"pad" => Some(Value::Char(PAD)),
        b"filler" => Some(Value::Char(b"")),
        b"mtime" => Some(Value::Timestamp),
        b"table_name" | b"tablename" => Some(Value::Text(TABLE)),
        // pgbench looks whether pgbench_accounts is partitioned and what kind of table it is.
        b"partstrat" => Some(Value::Null),
        b"relkind" => Some(Value::Text(b"r")),
        b"current_user" | b"session_user" => Some(Value::Text(b"null")),
        b"current_timestamp" => Some(Value::Timestamp),
        _ => tpc::column_value(lower),
    }
}

/// What a parameter beside this column must be, if the column is one of the known ones.
pub(crate) fn column_parameter(name: &[u8]) -> Option<Value> {
    lowered(name, known_column).filter(|value| *value != Value::Null)
}

const SBTEST: &[&[u8]] = &[b"id", b"k", b"c", b"pad"];
const ACCOUNTS: &[&[u8]] = &[b"aid", b"bid", b"abalance", b"filler"];
const BRANCHES: &[&[u8]] = &[b"bid", b"bbalance", b"filler"];
const TELLERS: &[&[u8]] = &[b"tid", b"bid", b"tbalance", b"filler"];
const HISTORY: &[&[u8]] = &[b"tid", b"bid", b"aid", b"delta", b"mtime", b"filler"];

/// The columns of a table, for `*` and for loads without a column list.
pub(crate) fn table_columns(table: &[u8]) -> Option<&'static [&'static [u8]]> {
    lowered(table, |lower| match lower {
        b"pgbench_accounts" => Some(ACCOUNTS),
        b"pgbench_branches" => Some(BRANCHES),
        b"pgbench_tellers" => Some(TELLERS),
        b"pgbench_history" => Some(HISTORY),
        _ if lower.starts_with(b"sbtest") => Some(SBTEST),
        _ => None,
    })
}

pub(crate) fn is_aggregate(name: &[u8]) -> bool {
    lowered(name, |lower| matches!(lower, b"sum" | b"count" | b"avg" | b"min" | b"max"))
}

/// What a function returns; `argument` is its first literal.
pub(crate) fn function_value(name: &[u8], argument: &[u8], dialect: Dialect) -> Value {
    lowered(name, |lower| match lower {
        b"sum" | b"avg" => Value::Sum(501_250),
        b"count" => Value::Big(1),
        // Of an id: a table is never too small for a client's options.
        b"max" => Value::Int(i32::MAX),
        b"version" if dialect == Dialect::Mysql => Value::Text(MYSQL_VERSION_PLAIN.as_bytes()),
        b"version" => Value::Text(POSTGRES_VERSION_LONG.as_bytes()),
        b"database" | b"schema" | b"current_database" | b"current_schema" => Value::Text(b"sbtest"),
        b"user" | b"current_user" | b"session_user" => Value::Text(b"null"),
        b"now" => Value::Timestamp,
        b"pg_is_in_recovery" => Value::Bool(false),
        b"current_setting" => Value::Text(variable(argument, dialect).unwrap_or("").as_bytes()),
        _ => Value::Int(1),
    })
}

/// What `@@name` or `SHOW name` tells.
pub(crate) fn variable_value(name: &[u8], dialect: Dialect) -> Value {
    let text = variable(name, dialect).unwrap_or("0");
    match text.parse() {
        Ok(number) if dialect == Dialect::Mysql => Value::Big(number),
        _ => Value::Text(text.as_bytes()),
    }
}

/// The value of a server variable; the scope (`@@global.`) is ignored.
pub(crate) fn variable(name: &[u8], dialect: Dialect) -> Option<&'static str> {
    let start = name.iter().rposition(|byte| matches!(byte, b'@' | b'.')).map_or(0, |at| at + 1);
    lowered(&name[start..], |lower| {
        let known = variables(dialect).iter().find(|(name, _)| name.as_bytes() == lower);
        known.map(|(_, value)| *value)
    })
}

/// All variables of a dialect, sorted by name.
pub(crate) fn variables(dialect: Dialect) -> &'static [(&'static str, &'static str)] {
    match dialect {
        Dialect::Mysql => MYSQL_VARIABLES,
        Dialect::Postgres => POSTGRES_VARIABLES,
    }
}

const MYSQL_VARIABLES: &[(&str, &str)] = &[
    ("auto_increment_increment", "1"),
    ("autocommit", "1"),
    ("character_set_client", "utf8mb4"),
    ("character_set_connection", "utf8mb4"),
    ("character_set_database", "utf8mb4"),
    ("character_set_results", "utf8mb4"),
    ("character_set_server", "utf8mb4"),
    ("collation_connection", "utf8mb4_general_ci"),
    ("collation_database", "utf8mb4_general_ci"),
    ("collation_server", "utf8mb4_general_ci"),
    ("com_select", "0"),
    ("hostname", "null"),
    ("init_connect", ""),
    ("innodb_buffer_pool_size", "134217728"),
    ("innodb_flush_log_at_trx_commit", "1"),
    ("innodb_version", "10.11.6"),
    ("interactive_timeout", "28800"),
    ("local_infile", "1"),
    ("lower_case_table_names", "0"),
    ("max_allowed_packet", "16777216"),
    ("max_connections", "100000"),
    ("max_prepared_stmt_count", "1048576"),
    ("net_write_timeout", "60"),
    ("read_only", "0"),
    ("socket", ""),
    ("sql_mode", "STRICT_TRANS_TABLES"),
    ("sync_binlog", "0"),
    ("system_time_zone", "UTC"),
    ("threads_connected", "1"),
    ("time_zone", "SYSTEM"),
    ("transaction_isolation", "REPEATABLE-READ"),
    ("tx_isolation", "REPEATABLE-READ"),
    ("uptime", "1"),
    ("version", MYSQL_VERSION_PLAIN),
    ("version_comment", "dyno null server"),
    ("version_compile_machine", "x86_64"),
    ("wait_timeout", "28800"),
];

const POSTGRES_VARIABLES: &[(&str, &str)] = &[
    ("client_encoding", "UTF8"),
    ("datestyle", "ISO, MDY"),
    ("fsync", "on"),
    ("full_page_writes", "on"),
    ("integer_datetimes", "on"),
    ("max_connections", "100000"),
    ("search_path", "\"$user\", public"),
    ("server_encoding", "UTF8"),
    ("server_version", POSTGRES_VERSION),
    ("server_version_num", "150000"),
    ("shared_buffers", "128MB"),
    ("standard_conforming_strings", "on"),
    ("synchronous_commit", "on"),
    ("timezone", "UTC"),
    ("transaction_isolation", "read committed"),
    ("wal_level", "replica"),
];
