//! Settings of a server that loads and trials depend on, from the table `settings.txt`.
//!
//! Administrators change the defaults of all sessions. Sessions that load, count and check set what they need for
//! themselves ([`adopt`]). What they may not set, or what workers depend on, is refused before anything is loaded
//! ([`ServerSettings::check`]). `tests/tests/databases/settings` has a row for each.

use crate::LoadError;
use crate::query::{answer_if_any, pairs};
use dyno_core::{AdminSession, DbError, Dialect, Session};
use std::collections::HashMap;

const TABLE: &str = include_str!("settings.txt");

dyno_core::named! {
    /// Something that a load or a trial depends on, and that a setting can take away.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ServerNeed {
        /// A statement outside of a transaction is stored.
        Autocommit = "autocommit",
        /// An answer has all its rows.
        WholeAnswers = "whole-answers",
        Writes = "writes",
        /// Tables have transactions and foreign keys.
        Transactions = "transactions",
        /// A transaction stores a piece of a load.
        LargeTransactions = "large-transactions",
        /// A table may get its primary key after its rows.
        LateKeys = "late-keys",
        /// Transactions at READ COMMITTED may write.
        ReadCommittedWrites = "read-committed-writes",
    }
}

/// The needs of tables whose engine the server chooses, and of their loads.
pub const TABLE_NEEDS: &[ServerNeed] = &[ServerNeed::Transactions, ServerNeed::LargeTransactions];
pub const LOAD_NEEDS: &[ServerNeed] = &[ServerNeed::Writes, TABLE_NEEDS[0], TABLE_NEEDS[1]];

/// Names and values of the lines that begin with a word.
fn rows(word: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    TABLE
        .lines()
        .filter_map(move |line| line.strip_prefix(word)?.strip_prefix(' ')?.split_once(" = "))
}

fn own_settings(dialect: Dialect) -> impl Iterator<Item = (&'static str, &'static str)> {
    rows(if dialect == Dialect::Postgres { "postgres" } else { "mysql" })
}

fn is_unfit(value: &str, unfit: &str) -> bool {
    if let Some(limit) = unfit.strip_prefix("below ") {
        let number = |text: &str| text.parse::<u64>().unwrap_or_default();
        return (1..number(limit)).contains(&number(value));
    }
    let is_word = |part: &str| unfit.split(',').any(|word| word.eq_ignore_ascii_case(part));
    if unfit == "any" { !value.is_empty() } else { value.split(',').any(is_word) }
}

/// The settings of a session that loads and trials depend on, by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerSettings(HashMap<String, String>);

impl ServerSettings {
    /// Checks that no setting takes one of these needs away.
    ///
    /// # Errors
    /// [`LoadError::Option`], which names the setting and the remedy.
    pub fn check(&self, needs: &[ServerNeed]) -> Result<(), LoadError> {
        for need in needs.iter().map(|need| need.name()) {
            for (name, unfit) in rows(need) {
                let (unfit, fit) = unfit.split_once(" -> ").unwrap_or((unfit, "DEFAULT"));
                let Some(value) = self.0.get(name).filter(|value| is_unfit(value, unfit)) else {
                    continue;
                };
                let consequence = rows("consequence").find(|(name, _)| *name == need);
                let consequence = consequence.map_or("", |(_, text)| text);
                let problem =
                    format!("The server's setting {name} = {value} is in the way: {consequence}.");
                let hint = format!(
                    "set {name} = {fit} for all sessions (SET GLOBAL, or ALTER SYSTEM and a reload)"
                );
                return Err(LoadError::Option { problem, hint: Some(hint) });
            }
        }
        Ok(())
    }
}

/// Reads the settings of a session; `None` if the server refuses, as compatible ones may.
///
/// # Errors
/// The session is lost.
pub async fn read(session: &mut AdminSession<'_>) -> Result<Option<ServerSettings>, DbError> {
    if !session.capabilities().server_views {
        return Ok(Some(ServerSettings::default()));
    }
    let dialect = session.dialect();
    let unfit = ServerNeed::ALL.into_iter().flat_map(|need| rows(need.name()));
    let names = own_settings(dialect).chain(unfit).map(|(name, _)| name).chain(["log_bin"]);
    let names: Vec<String> = names.map(|name| format!("'{name}'")).collect();
    let names = names.join(", ");
    let mut limit = None;
    let mut sql = format!("SELECT name, setting FROM pg_settings WHERE name IN ({names})");
    if dialect == Dialect::Mysql {
        // It would cut the answer that lists it.
        let answer = answer_if_any(session, "SELECT @@sql_select_limit").await?;
        limit = answer.and_then(|answer| answer.single()?.parse::<u64>().ok());
        if limit.is_some_and(|limit| limit < u64::MAX) {
            answer_if_any(session, &format!("SET SESSION sql_select_limit = {}", u64::MAX)).await?;
        }
        sql = format!("SHOW SESSION VARIABLES WHERE Variable_name IN ({names})");
    }
    let mut settings = match pairs(session, &sql).await {
        Err(error) if !error.is_fatal() => return Ok(None),
        answered => answered?,
    };
    settings.extend(limit.map(|limit| ("sql_select_limit".to_owned(), limit.to_string())));
    // Without a log its format counts for nothing.
    if settings.get("log_bin").is_some_and(|value| value == "OFF") {
        settings
            .retain(|name, _| !matches!(name.as_str(), "binlog_format" | "max_binlog_cache_size"));
    }
    Ok(Some(ServerSettings(settings)))
}

/// True if a table must be created with its primary key.
///
/// # Errors
/// The session is lost.
pub async fn wants_keys_first(session: &mut AdminSession<'_>) -> Result<bool, DbError> {
    Ok(session.dialect() == Dialect::Mysql
        && read(session).await?.unwrap_or_default().check(&[ServerNeed::LateKeys]).is_err())
}

/// Gives a session that loads, counts or checks the settings that it needs, and returns those that it had. Refused ones
/// stay as they are.
///
/// # Errors
/// The session is lost.
pub async fn adopt(session: &mut AdminSession<'_>) -> Result<ServerSettings, DbError> {
    let before = read(session).await?;
    let differs = |(name, wanted): &(&str, &str)| match &before {
        Some(before) => {
            before.0.get(*name).is_some_and(|value| !value.eq_ignore_ascii_case(wanted))
        }
        None => true,
    };
    let is_mysql = session.dialect() == Dialect::Mysql;
    let assignment = |(name, wanted): (&str, &str)| match (is_mysql, wanted.parse::<u32>()) {
        (false, _) => format!("set_config('{name}', '{wanted}', false)"),
        (true, Ok(_)) if !wanted.starts_with('+') => format!("{name} = {wanted}"),
        (true, _) => format!("{name} = '{wanted}'"),
    };
    let all: Vec<_> = own_settings(session.dialect()).filter(differs).map(assignment).collect();
    let verb = if is_mysql { "SET SESSION" } else { "SELECT" };
    let at_once = format!("{verb} {}", all.join(", "));
    if !all.is_empty() && answer_if_any(session, &at_once).await?.is_none() {
        for one in &all {
            answer_if_any(session, &format!("{verb} {one}")).await?;
        }
    }
    Ok(before.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ServerNeed::{Autocommit, LargeTransactions, LateKeys, WholeAnswers, Writes};

    #[test]
    fn unfit_settings_are_refused_with_the_remedy() {
        let error = |name: &str, value: &str, need| {
            let settings = HashMap::from([(name.to_owned(), value.to_owned())]);
            ServerSettings(settings).check(&[need]).err()
        };
        let refusal = error("autocommit", "OFF", Autocommit).unwrap();
        let words = "autocommit = OFF is in the way: what a statement outside of a transaction";
        assert!(refusal.to_string().contains(words), "{refusal}");
        assert!(refusal.hint().is_some_and(|hint| hint.contains("autocommit = ON")));
        assert!(error("autocommit", "ON", Autocommit).is_none());
        assert!(error("autocommit", "OFF", Writes).is_none());
        assert!(error("wsrep_max_ws_size", "1048576", LargeTransactions).is_some());
        let no_limit = error("group_replication_transaction_size_limit", "0", LargeTransactions);
        assert!(no_limit.is_none());
        assert!(error("temp_file_limit", "0", LargeTransactions).is_some());
        assert!(error("sql_select_limit", "1", WholeAnswers).is_some());
        assert!(error("sql_select_limit", "18446744073709551615", WholeAnswers).is_none());
        assert!(error("wsrep_mode", "A,REQUIRED_PRIMARY_KEY", LateKeys).is_some());
        assert!(error("group_replication_group_name", "", LateKeys).is_none());
        assert!(error("group_replication_group_name", "8a94", LateKeys).is_some());
    }

    #[test]
    fn each_line_of_the_table_is_understood() {
        let lines = TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let needs = ServerNeed::ALL.map(ServerNeed::name);
        let words = ["mysql", "postgres", "consequence"].into_iter().chain(needs);
        assert_eq!(words.map(|word| rows(word).count()).sum::<usize>(), lines.count());
        for need in needs {
            assert!(rows("consequence").any(|(name, _)| name == need), "{need}");
            assert!(rows(need).all(|(_, unfit)| unfit.contains(" -> ")), "{need}");
        }
    }
}
