//! Settings of a server that loads and trials depend on.
//!
//! Administrators change the defaults of all sessions. Sessions that load, count and check set what they need for
//! themselves ([`adopt`]). What they may not set, or what workers depend on, is refused before anything is loaded
//! ([`ServerSettings::unmet`]).

use crate::LoadError;
use crate::query::{answer_if_any, pairs};
use dyno_core::{DbError, Dialect, Driver, Session};
use std::collections::HashMap;

/// Something that a load or a trial depends on, and that a setting can take away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerNeed {
    /// A statement outside of a transaction is stored.
    Autocommit,
    /// An answer has all its rows.
    WholeAnswers,
    Writes,
    /// Tables have transactions and foreign keys.
    Transactions,
    /// A transaction stores a piece of a load.
    LargeTransactions,
    /// A table may get its primary key after its rows.
    LateKeys,
    /// Transactions at READ COMMITTED may write.
    ReadCommittedWrites,
}

use ServerNeed::*;

/// Values that take something away.
#[derive(Clone, Copy, Debug)]
enum Unfit {
    /// One of these words is the value, or part of the list that is the value.
    Words(&'static [&'static str]),
    /// From 1 to less than this.
    Below(u64),
    NotEmpty,
}

use Unfit::{Below, NotEmpty, Words};

const ON: Unfit = Words(&["on"]);
/// Engines of MySQL and MariaDB that undo nothing.
const UNSAFE_ENGINES: Unfit =
    Words(&["memory", "myisam", "aria", "archive", "csv", "blackhole", "mrg_myisam"]);
const LARGE_BYTES: Unfit = Below(32 << 20);

/// A setting with its unfit values, and a value that suits.
type UnfitSetting = (&'static str, Unfit, &'static str);

/// The settings that take a need away, and the consequence.
const UNFIT: &[(ServerNeed, &str, &[UnfitSetting])] = &[
    (
        Autocommit,
        "what a statement outside of a transaction writes is lost",
        &[("autocommit", Words(&["off"]), "ON")],
    ),
    (
        WholeAnswers,
        "answers to queries lack rows",
        &[("sql_select_limit", Below(1 << 32), "DEFAULT")],
    ),
    (
        Writes,
        "sessions may not write",
        &[
            // PostgreSQL has the second, too, which is that of the moment.
            ("default_transaction_read_only", ON, "off"),
            ("transaction_read_only", ON, "OFF"),
            ("tx_read_only", ON, "OFF"),
        ],
    ),
    (
        Transactions,
        "the tables of the test would have neither transactions nor foreign keys",
        &[
            ("default_storage_engine", UNSAFE_ENGINES, "InnoDB"),
            ("enforce_storage_engine", UNSAFE_ENGINES, "InnoDB"),
        ],
    ),
    (
        LargeTransactions,
        "a load stores or sorts up to 100,000 rows, or 30 MiB, at once",
        &[
            ("group_replication_transaction_size_limit", LARGE_BYTES, "DEFAULT"),
            ("wsrep_max_ws_size", LARGE_BYTES, "DEFAULT"),
            ("wsrep_max_ws_rows", Below(100_001), "DEFAULT"),
            ("max_binlog_cache_size", LARGE_BYTES, "DEFAULT"),
            ("temp_file_limit", Words(&["0"]), "-1"),
        ],
    ),
    (
        LateKeys,
        "tables need a primary key from the beginning",
        &[
            ("sql_generate_invisible_primary_key", ON, "OFF"),
            ("sql_require_primary_key", ON, "OFF"),
            ("innodb_force_primary_key", ON, "OFF"),
            ("group_replication_group_name", NotEmpty, "DEFAULT"),
            ("wsrep_mode", Words(&["required_primary_key"]), "DEFAULT"),
            ("pxc_strict_mode", Words(&["enforcing", "master"]), "PERMISSIVE"),
        ],
    ),
    (
        ReadCommittedWrites,
        "the server refuses writes at READ COMMITTED (error 1665)",
        &[("binlog_format", Words(&["statement"]), "ROW")],
    ),
];

/// The session variables of sessions that load, count and check, on MySQL and MariaDB.
const MYSQL: &[(&str, &str)] = &[
    ("autocommit", "ON"),
    ("completion_type", "NO_CHAIN"),
    ("transaction_isolation", "REPEATABLE-READ"),
    ("tx_isolation", "REPEATABLE-READ"),
    ("sql_mode", "STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION"),
    ("sql_safe_updates", "OFF"),
    ("sql_big_selects", "ON"),
    ("sql_quote_show_create", "ON"),
    ("max_execution_time", "0"),
    ("max_statement_time", "0"),
    ("wait_timeout", "86400"),
    // A reader of one answer may wait this long for those of others.
    ("net_write_timeout", "86400"),
    ("idle_transaction_timeout", "0"),
    ("idle_write_transaction_timeout", "0"),
    ("innodb_lock_wait_timeout", "50"),
    ("foreign_key_checks", "ON"),
    ("unique_checks", "ON"),
    ("alter_algorithm", "DEFAULT"),
    ("div_precision_increment", "4"),
    // MySQL 8 answers with what it knew a day ago otherwise.
    ("information_schema_stats_expiry", "0"),
    // Some points in time do not exist in other zones.
    ("time_zone", "+00:00"),
];

/// The same on PostgreSQL.
const POSTGRES: &[(&str, &str)] = &[
    ("statement_timeout", "0"),
    ("lock_timeout", "0"),
    ("idle_in_transaction_session_timeout", "0"),
    ("idle_session_timeout", "0"),
    ("transaction_timeout", "0"),
    ("default_transaction_isolation", "read committed"),
    ("exit_on_error", "off"),
    ("standard_conforming_strings", "on"),
    ("transform_null_equals", "off"),
    ("DateStyle", "ISO, MDY"),
    ("extra_float_digits", "1"),
];

/// The settings of a session that loads and trials depend on, by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerSettings(HashMap<String, String>);

impl ServerSettings {
    /// Checks that no setting takes one of these needs away.
    ///
    /// # Errors
    /// [`LoadError::Option`], which names the setting and the remedy.
    pub fn check(&self, needs: &[ServerNeed]) -> Result<(), LoadError> {
        for (_, consequence, unfit) in UNFIT.iter().filter(|(need, ..)| needs.contains(need)) {
            for &(name, values, fit) in *unfit {
                if self.is(name, values) {
                    let value = &self.0[name];
                    let problem = format!(
                        "The server's setting {name} = {value} is in the way: {consequence}."
                    );
                    let hint = format!(
                        "set {name} = {fit} for all sessions (SET GLOBAL, or ALTER SYSTEM and a reload)"
                    );
                    return Err(LoadError::Option { problem, hint: Some(hint) });
                }
            }
        }
        Ok(())
    }

    /// True if a table must be created with its primary key.
    pub fn wants_keys_first(&self) -> bool {
        self.check(&[LateKeys]).is_err()
    }

    fn is(&self, name: &str, unfit: Unfit) -> bool {
        let Some(value) = self.0.get(name) else { return false };
        match unfit {
            Words(words) => {
                let is_word = |part: &str| words.iter().any(|word| part.eq_ignore_ascii_case(word));
                value.split(',').any(is_word)
            }
            Below(limit) => value.parse().is_ok_and(|number: u64| (1..limit).contains(&number)),
            NotEmpty => !value.is_empty(),
        }
    }
}

fn own_settings(dialect: Dialect) -> &'static [(&'static str, &'static str)] {
    match dialect {
        Dialect::Mysql => MYSQL,
        Dialect::Postgres => POSTGRES,
        Dialect::Sqlite => &[],
    }
}

/// Reads the settings of a session; `None` if the server refuses, as compatible ones may.
///
/// # Errors
/// The session is lost.
pub async fn read<S: Session>(session: &mut S) -> Result<Option<ServerSettings>, DbError> {
    let own = own_settings(session.dialect()).iter().map(|(name, _)| *name);
    let unfit = UNFIT.iter().flat_map(|(.., settings)| settings.iter().map(|row| row.0));
    let names: Vec<String> =
        own.chain(unfit).chain(["log_bin"]).map(|name| format!("'{name}'")).collect();
    let names = names.join(", ");
    let sql = match session.dialect() {
        _ if !session.capabilities().server_views => return Ok(None),
        Dialect::Mysql => format!("SHOW SESSION VARIABLES WHERE Variable_name IN ({names})"),
        _ => format!("SELECT name, setting FROM pg_settings WHERE name IN ({names})"),
    };
    // It cuts the answer that lists it.
    let limit = match session.dialect() {
        Dialect::Mysql => answer_if_any(session, "SELECT @@sql_select_limit").await?,
        _ => None,
    };
    let limit = limit.and_then(|answer| answer.single().map(str::to_owned));
    if limit.as_deref().is_some_and(|limit| limit != u64::MAX.to_string()) {
        let sql = format!("SET SESSION sql_select_limit = {}", u64::MAX);
        answer_if_any(session, &sql).await?;
    }
    match pairs(session, &sql).await {
        Err(error) if error.is_fatal() => Err(error),
        Err(_) => Ok(None),
        Ok(mut found) => {
            // Without a log its format counts for nothing.
            if found.get("log_bin").is_some_and(|value| value == "OFF") {
                found.remove("binlog_format");
                found.remove("max_binlog_cache_size");
            }
            found.extend(limit.map(|limit| ("sql_select_limit".to_owned(), limit)));
            Ok(Some(ServerSettings(found)))
        }
    }
}

/// Gives a session that loads, counts or checks the settings that it needs, and returns those that it had. Refused ones
/// stay as they are.
///
/// # Errors
/// The session is lost.
pub async fn adopt<S: Session>(session: &mut S) -> Result<ServerSettings, DbError> {
    if !session.capabilities().server_views {
        return Ok(ServerSettings::default());
    }
    let found = read(session).await?;
    let differs = |(name, wanted): &&(&str, &str)| match &found {
        Some(found) => found.0.get(*name).is_some_and(|value| !value.eq_ignore_ascii_case(wanted)),
        None => true,
    };
    let is_mysql = session.dialect() == Dialect::Mysql;
    let assignment = |&(name, wanted): &(&str, &str)| match (is_mysql, wanted.parse::<u32>()) {
        (false, _) => format!("set_config('{name}', '{wanted}', false)"),
        (true, Ok(_)) => format!("{name} = {wanted}"),
        (true, Err(_)) => format!("{name} = '{wanted}'"),
    };
    let own = own_settings(session.dialect()).iter();
    let all: Vec<String> = own.filter(differs).map(assignment).collect();
    let verb = if is_mysql { "SET SESSION" } else { "SELECT" };
    let at_once = format!("{verb} {}", all.join(", "));
    if !all.is_empty() && answer_if_any(session, &at_once).await?.is_none() {
        for one in &all {
            answer_if_any(session, &format!("{verb} {one}")).await?;
        }
    }
    Ok(found.unwrap_or_default())
}

/// Opens a session that looks, counts or checks: none of a worker's.
///
/// # Errors
/// It can't be opened, or is lost at once.
pub async fn connect_own<D: Driver>(driver: &D, number: u32) -> Result<D::Session, DbError> {
    let mut session = driver.connect(number).await?;
    adopt(&mut session).await?;
    Ok(session)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unfit_settings_are_refused_with_the_remedy() {
        let settings = |name: &str, value: &str| {
            ServerSettings(HashMap::from([(name.to_owned(), value.to_owned())]))
        };
        let error = |name, value, need| settings(name, value).check(&[need]).err();
        let refused = error("autocommit", "OFF", Autocommit).unwrap();
        assert!(refused.to_string().contains("autocommit = OFF"), "{refused}");
        assert!(refused.hint().is_some_and(|hint| hint.contains("autocommit = ON")));
        assert!(error("autocommit", "ON", Autocommit).is_none());
        assert!(error("autocommit", "OFF", Writes).is_none());
        assert!(error("wsrep_max_ws_size", "1048576", LargeTransactions).is_some());
        assert!(
            error("group_replication_transaction_size_limit", "0", LargeTransactions).is_none()
        );
        assert!(error("sql_select_limit", "18446744073709551615", WholeAnswers).is_none());
        assert!(settings("wsrep_mode", "A,REQUIRED_PRIMARY_KEY").wants_keys_first());
        assert!(!settings("group_replication_group_name", "").wants_keys_first());
        assert!(!settings("log_bin", "ON").wants_keys_first());
    }
}
