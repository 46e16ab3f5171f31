//! Settings of a server that loads and trials depend on, from the table `settings.txt`.
//!
//! Administrators change the defaults of all sessions. Sessions that load, count and check set what they need for
//! themselves ([`adopt`]). What they may not set, or what workers depend on, is refused before anything is loaded
//! ([`ServerSettings::check`]). `tests/tests/databases/settings` has a row for each.

use crate::query::{answer_if_any, pairs};
use crate::{LoadError, LoadErrorKind};
use dyno_core::{AdminSession, DbError, Dialect};
use std::collections::HashMap;

const TABLE: &str = include_str!("settings.txt");

/// Something that a load or a trial depends on, and that a setting can take away: its first word in the table, and the
/// rows and bytes of a load's largest transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerNeed(&'static str, u64, u64);

impl ServerNeed {
    /// A statement outside of a transaction is stored.
    pub const AUTOCOMMIT: Self = ServerNeed("autocommit", 0, 0);
    /// An answer has all its rows, and a COMMIT commits and does nothing else.
    pub const WHOLE_ANSWERS: Self = ServerNeed("whole-answers", 0, 0);
    pub const WRITES: Self = ServerNeed("writes", 0, 0);
    /// Tables have transactions and foreign keys.
    pub const TRANSACTIONS: Self = ServerNeed("transactions", 0, 0);
    /// A table may get its primary key after its rows.
    const LATE_KEYS: Self = ServerNeed("late-keys", 0, 0);
    /// Transactions at READ COMMITTED may write.
    pub const READ_COMMITTED_WRITES: Self = ServerNeed("read-committed-writes", 0, 0);

    fn is_unfit(self, value: &str, unfit: &str) -> bool {
        let limit = match unfit.strip_prefix("below ") {
            Some("rows") => self.1,
            Some("bytes") => self.2,
            Some(limit) => limit.parse::<u64>().unwrap_or_default(),
            None if unfit == "any" => return !value.is_empty(),
            None => {
                let mut words = unfit.split(',');
                return words
                    .any(|word| value.split(',').any(|part| word.eq_ignore_ascii_case(part)));
            }
        };
        (1..limit).contains(&value.parse::<u64>().unwrap_or_default())
    }
}

/// The needs of a load that stores up to this much in a transaction: writes, an engine that has transactions where the
/// server chooses it, and the size.
pub const fn load_needs(rows: u64, bytes: u64) -> [ServerNeed; 3] {
    [ServerNeed::WRITES, ServerNeed::TRANSACTIONS, ServerNeed("large-transactions", rows, bytes)]
}

/// Names and values of the lines that begin with a word.
fn rows(word: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    TABLE
        .lines()
        .filter_map(move |line| line.strip_prefix(word)?.strip_prefix(' ')?.split_once(" = "))
}

fn own_settings(dialect: Dialect) -> impl Iterator<Item = (&'static str, &'static str)> {
    rows(if dialect == Dialect::Postgres { "postgres" } else { "mysql" })
}

/// The settings of a session that loads and trials depend on, by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerSettings {
    values: HashMap<String, String>,
    is_postgres: bool,
}

impl ServerSettings {
    /// Checks that no setting takes one of these needs away.
    ///
    /// # Errors
    /// [`LoadErrorKind::Option`], which names the setting and the remedy.
    pub fn check(&self, needs: &[ServerNeed]) -> Result<(), LoadError> {
        for need in needs {
            for (name, unfit) in rows(need.0) {
                let (unfit, fit) = unfit.split_once(" -> ").unwrap_or((unfit, "DEFAULT"));
                let Some(value) = self.values.get(name).filter(|it| need.is_unfit(it, unfit))
                else {
                    continue;
                };
                let consequence = rows("consequence").find(|(name, _)| *name == need.0);
                let consequence = consequence.map_or("", |(_, text)| text);
                let problem =
                    format!("The server's setting {name} = {value} is in the way: {consequence}.");
                let sessions_begin_with = self
                    .values
                    .get("init_connect")
                    .is_some_and(|sql| sql.to_lowercase().contains(name));
                let hint = match (self.is_postgres, name) {
                    (false, _) if sessions_begin_with => {
                        format!(
                            "take {name} out of init_connect (SET GLOBAL): sessions begin with it"
                        )
                    }
                    (false, _) => format!("set {name} = {fit} for all sessions (SET GLOBAL)"),
                    // Only a standby has it alone.
                    (true, "transaction_read_only") => {
                        "the server is a standby: connect to its primary".to_owned()
                    }
                    (true, _) => format!(
                        "set {name} = {fit} where it is set: ALTER ROLE and ALTER DATABASE override ALTER SYSTEM and a \
                         reload"
                    ),
                };
                return Err(LoadError::new(LoadErrorKind::Option, problem, Some(hint)));
            }
        }
        Ok(())
    }
}

/// Reads the settings of a session; `None` if the server refuses, as compatible ones may.
pub async fn read(session: &mut AdminSession<'_>) -> Result<Option<ServerSettings>, DbError> {
    if !session.capabilities().server_views {
        return Ok(Some(ServerSettings::default()));
    }
    let settings = TABLE.lines().filter_map(|line| line.split_once(" = ")?.0.split_once(' '));
    let names = settings.map(|(_, name)| name).chain(["log_bin", "init_connect"]);
    let names: Vec<String> = names.map(|name| format!("'{name}'")).collect();
    let names = names.join(", ");
    let (mut limit, mut encoding) = (None, None);
    let is_postgres = session.dialect() == Dialect::Postgres;
    let mut sql = format!("SELECT name, setting FROM pg_settings WHERE name IN ({names})");
    if session.dialect() == Dialect::Mysql {
        // `init_connect` may have chosen an encoding in which no answer can be read: letters have two or four bytes.
        let answer = answer_if_any(session, "SELECT @@character_set_results").await?;
        encoding = answer.and_then(|answer| answer.single().map(|name| name.replace('\0', "")));
        answer_if_any(session, "SET SESSION character_set_results = utf8mb4").await?;
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
    settings.extend(encoding.map(|name| ("character_set_results".to_owned(), name)));
    settings.extend(limit.map(|limit| ("sql_select_limit".to_owned(), limit.to_string())));
    // Without a log its format counts for nothing.
    if settings.get("log_bin").is_some_and(|value| value == "OFF") {
        settings
            .retain(|name, _| !matches!(name.as_str(), "binlog_format" | "max_binlog_cache_size"));
    }
    Ok(Some(ServerSettings { values: settings, is_postgres }))
}

/// True if a table must be created with its primary key.
pub async fn wants_keys_first(session: &mut AdminSession<'_>) -> Result<bool, DbError> {
    Ok(session.dialect() == Dialect::Mysql
        && read(session).await?.unwrap_or_default().check(&[ServerNeed::LATE_KEYS]).is_err())
}

/// Gives a session that loads, counts or checks the settings that it needs, and returns those that it had. Settings of
/// its target's own, and refused ones, stay as they are.
pub async fn adopt(session: &mut AdminSession<'_>) -> Result<ServerSettings, DbError> {
    let before = read(session).await?;
    let is_mysql = session.dialect() == Dialect::Mysql;
    let mut assignments = Vec::new();
    for (name, wanted) in own_settings(session.dialect()) {
        let differs = match &before {
            // But these two: without them a load stores nothing.
            _ if !matches!(name, "autocommit" | "completion_type")
                && session.is_set_by_target(name) =>
            {
                false
            }
            Some(before) => {
                before.values.get(name).is_some_and(|value| !value.eq_ignore_ascii_case(wanted))
            }
            None => true,
        };
        if differs {
            assignments.push(match (is_mysql, wanted.parse::<u32>()) {
                (false, _) => format!("set_config('{name}', '{wanted}', false)"),
                (true, Ok(_)) if !wanted.starts_with('+') => format!("{name} = {wanted}"),
                (true, _) => format!("{name} = '{wanted}'"),
            });
        }
    }
    let verb = if is_mysql { "SET SESSION" } else { "SELECT" };
    let at_once = format!("{verb} {}", assignments.join(", "));
    if !assignments.is_empty() && answer_if_any(session, &at_once).await?.is_none() {
        for one in &assignments {
            answer_if_any(session, &format!("{verb} {one}")).await?;
        }
    }
    Ok(before.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find_refusal(
        is_postgres: bool,
        name: &str,
        value: &str,
        need: ServerNeed,
    ) -> Option<LoadError> {
        let settings = HashMap::from([(name.to_owned(), value.to_owned())]);
        ServerSettings { values: settings, is_postgres }.check(&[need]).err()
    }

    #[test]
    fn unfit_settings_are_refused_with_the_remedy() {
        let refusal = find_refusal(false, "autocommit", "OFF", ServerNeed::AUTOCOMMIT).unwrap();
        let words = "autocommit = OFF is in the way: what a statement outside of a transaction";
        assert!(refusal.to_string().contains(words), "{refusal}");
        assert!(refusal.hint().is_some_and(|hint| hint.contains("autocommit = ON")));
        let settings = [("autocommit", "OFF"), ("init_connect", "SET AUTOCOMMIT = 0")];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let settings = ServerSettings { values: settings.into(), is_postgres: false };
        let refusal = settings.check(&[ServerNeed::AUTOCOMMIT]).expect_err("a session's setting");
        assert!(refusal.hint().is_some_and(|hint| hint.contains("out of init_connect")));
        for (name, word) in
            [("transaction_read_only", "primary"), ("default_transaction_read_only", "ALTER ROLE")]
        {
            let refusal = find_refusal(true, name, "on", ServerNeed::WRITES).unwrap();
            let hint = refusal.hint().unwrap_or_default();
            assert!(hint.contains(word) && !hint.contains("SET GLOBAL"), "{hint}");
        }
        assert!(find_refusal(false, "autocommit", "ON", ServerNeed::AUTOCOMMIT).is_none());
        assert!(find_refusal(false, "autocommit", "OFF", ServerNeed::WRITES).is_none());
        for (name, value, is_too_small) in [
            ("wsrep_max_ws_size", "1048575", true),
            ("wsrep_max_ws_size", "1048576", false),
            ("wsrep_max_ws_rows", "999", true),
            ("wsrep_max_ws_rows", "1000", false),
            ("group_replication_transaction_size_limit", "0", false),
            ("temp_file_limit", "0", true),
        ] {
            let refusal = find_refusal(false, name, value, load_needs(1_000, 1 << 20)[2]);
            assert_eq!(refusal.is_some(), is_too_small, "{name} = {value}");
        }
        assert!(find_refusal(false, "sql_select_limit", "1", ServerNeed::WHOLE_ANSWERS).is_some());
        assert!(
            find_refusal(
                false,
                "sql_select_limit",
                "18446744073709551615",
                ServerNeed::WHOLE_ANSWERS
            )
            .is_none()
        );
        assert!(
            find_refusal(false, "wsrep_mode", "A,REQUIRED_PRIMARY_KEY", ServerNeed::LATE_KEYS)
                .is_some()
        );
        assert!(
            find_refusal(false, "group_replication_group_name", "", ServerNeed::LATE_KEYS)
                .is_none()
        );
        assert!(
            find_refusal(false, "group_replication_group_name", "8a94", ServerNeed::LATE_KEYS)
                .is_some()
        );
    }

    #[test]
    fn each_line_of_the_table_is_understood() {
        let lines = TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let needs = [
            ServerNeed::AUTOCOMMIT,
            ServerNeed::WHOLE_ANSWERS,
            ServerNeed::WRITES,
            ServerNeed::TRANSACTIONS,
            load_needs(0, 0)[2],
            ServerNeed::LATE_KEYS,
            ServerNeed::READ_COMMITTED_WRITES,
        ];
        let needs = needs.map(|need| need.0);
        let words = ["mysql", "postgres", "consequence"].into_iter().chain(needs);
        assert_eq!(words.map(|word| rows(word).count()).sum::<usize>(), lines.count());
        for need in needs {
            assert!(rows("consequence").any(|(name, _)| name == need), "{need}");
            assert!(rows(need).all(|(_, unfit)| unfit.contains(" -> ")), "{need}");
        }
    }
}
