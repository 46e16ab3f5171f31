//! The same scripts on other databases.

use super::options::PgbenchOptions;
use crate::script::{Action, QueryMode, Script, Statement, shown_text};
use dyno_core::Dialect;

/// Refuses what the dialect can't do.
///
/// # Errors
/// A sentence with the script and what is wrong with it.
pub(super) fn check(options: &PgbenchOptions, dialect: Dialect) -> Result<(), String> {
    let has_pipelines = |script: &Script| {
        script.commands().iter().any(|command| matches!(command.action, Action::StartPipeline))
    };
    if dialect != Dialect::Mysql || options.mode != QueryMode::Extended {
        return Ok(());
    }
    match options.scripts.iter().find(|(script, _)| has_pipelines(script)) {
        None => Ok(()),
        Some((script, _)) => {
            let script = script.description();
            Err(format!(
                "script \"{script}\" uses a pipeline, but the MySQL protocol can send only prepared \
                 statements ahead: use the query mode \"prepared\""
            ))
        }
    }
}

/// Puts the statements of a script into the dialect's words.
pub(super) fn adapt(script: &mut Script, mode: QueryMode, dialect: Dialect) {
    let writes = script.commands().iter().any(|command| match &command.action {
        Action::Sql(statement) => is_write(&shown_text(&statement.text)),
        _ => false,
    });
    for command in script.commands_mut() {
        if let Action::Sql(statement) = &mut command.action {
            if let Some(other) = other_words(statement, dialect, writes) {
                statement.text = other.into();
            }
            if mode != QueryMode::Simple {
                statement.parameterize(dialect);
            }
        }
    }
}

/// PostgreSQL's END is a COMMIT elsewhere. SQLite can't turn a reader into a writer beside another
/// one: a transaction of a script that writes says so at its beginning.
fn other_words(statement: &Statement, dialect: Dialect, writes: bool) -> Option<&'static str> {
    let text = shown_text(&statement.text);
    let mut words = text.trim_end().trim_end_matches(';').split_ascii_whitespace();
    let (first, second) = (words.next()?, words.next());
    let is = |word: &str, other: &str| word.eq_ignore_ascii_case(other);
    let is_plain = words.next().is_none()
        && second.is_none_or(|word| is(word, "work") || is(word, "transaction"));
    match dialect {
        Dialect::Postgres => None,
        _ if !is_plain => None,
        _ if is(first, "end") => Some("COMMIT;"),
        Dialect::Sqlite if is(first, "begin") && writes => Some("BEGIN IMMEDIATE;"),
        Dialect::Sqlite if is(first, "begin") => Some("BEGIN;"),
        Dialect::Mysql if is(first, "begin") => Some("BEGIN;"),
        _ => None,
    }
}

fn is_write(text: &str) -> bool {
    let word = text.trim_start().split(|letter: char| !letter.is_ascii_alphabetic()).next();
    ["insert", "update", "delete", "replace", "merge", "with"]
        .iter()
        .any(|known| word.is_some_and(|word| word.eq_ignore_ascii_case(known)))
}
