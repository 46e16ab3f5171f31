//! The meaning of names in a statement: columns, functions, variables, keywords.

use super::lexer::Dialect;
use super::plan::Value;
use super::tpc;

/// With this version clients choose MariaDB's dialect and its metadata caching.
pub(crate) const MYSQL_VERSION: &str = "5.5.5-10.11.6-MariaDB";
const MYSQL_VERSION_PLAIN: &str = "10.11.6-MariaDB";
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

/// Words that mean something, and the function that finds one; every other word is `Other`.
macro_rules! words {
    ($vis:vis enum $name:ident, $find:ident: $($word:ident = $($text:literal)|+,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $name { $($word,)* Other }

        pub(crate) fn $find(word: &[u8]) -> $name {
            $crate::sql::names::lowered(word, |lower| match lower {
                $($($text)|+ => $name::$word,)*
                _ => $name::Other,
            })
        }
    };
}
pub(super) use words;

// A `Clause` ends a select list without FROM; a `Connective` stands between a column and its parameter.
words! { pub(crate) enum Keyword, keyword:
    Select = b"select", Insert = b"insert", Replace = b"replace", Update = b"update", Delete = b"delete",
    Begin = b"begin", Start = b"start", Commit = b"commit", End = b"end", Rollback = b"rollback",
    Set = b"set", Show = b"show", Use = b"use", Load = b"load", Copy = b"copy", Create = b"create",
    Drop = b"drop", Alter = b"alter", Truncate = b"truncate", With = b"with", Explain = b"explain",
    From = b"from", Between = b"between", And = b"and", In = b"in", Values = b"values" | b"value",
    Distinct = b"distinct" | b"all", As = b"as", Returning = b"returning", GroupBy = b"group",
    Like = b"like", Order = b"order", Limit = b"limit", Into = b"into",
    Clause = b"where" | b"for" | b"union" | b"having" | b"offset",
    Connective = b"not" | b"or" | b"is" | b"by",
}

/// The value of a column; unknown columns hold the number 1.
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
        // pgbench asks whether pgbench_accounts is partitioned and for its kind of table.
        b"partstrat" => Some(Value::Null),
        b"relkind" => Some(Value::Text(b"r")),
        b"current_user" | b"session_user" => Some(Value::Text(b"null")),
        b"current_timestamp" => Some(Value::Timestamp),
        _ => tpc::column_value(lower),
    }
}

/// The value that a parameter beside this column must fit, if the column is known.
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

/// The value of a function; `argument` is its first literal.
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
        b"clock_ns" => Value::Clock,
        b"pg_is_in_recovery" => Value::Bool(false),
        b"current_setting" => Value::Text(variable(argument, dialect).unwrap_or("").as_bytes()),
        _ => Value::Int(1),
    })
}

/// The value of `@@name` or `SHOW name`.
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
        variables(dialect).find(|(name, _)| name.as_bytes() == lower).map(|(_, value)| value)
    })
}

/// All variables of a dialect and their values, sorted by name.
pub(crate) fn variables(dialect: Dialect) -> impl Iterator<Item = (&'static str, &'static str)> {
    let text = match dialect {
        Dialect::Mysql => include_str!("mysql_variables.txt"),
        Dialect::Postgres => include_str!("postgres_variables.txt"),
    };
    text.lines().filter_map(|line| line.split_once('='))
}
