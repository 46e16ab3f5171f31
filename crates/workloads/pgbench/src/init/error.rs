//! What a step failed at, and the remedy.

use super::options::InitStep;
use dyno_core::{Cause, DbError};
use dyno_load::{LoadError, while_doing};
use std::fmt::Display;

pub(super) const RESUME: &str =
    "run it again with --resume: what is stored is kept and only the rest is made";

/// Names the step and what it was doing when a session failed, with the remedy where one is known.
pub(super) fn failed(step: InitStep, doing: impl Display) -> impl FnOnce(DbError) -> LoadError {
    move |error| {
        let remedy = remedy(step, &error).map(str::to_owned);
        let mut failed = while_doing(format!("{step}: {doing}"))(error);
        if let LoadError::Session { hint, .. } = &mut failed {
            *hint = remedy;
        }
        failed
    }
}

/// The end that the user wanted. `is_stored`: rows have been committed before, which `--resume` goes on with.
pub fn canceled(is_stored: bool) -> LoadError {
    LoadError::Canceled { hint: is_stored.then(|| RESUME.to_owned()) }
}

pub(super) fn is_missing_table(error: &DbError) -> bool {
    error.sqlstate() == "42P01"
        || error.errno() == 1146
        || error.message().contains("no such table")
}

/// What to do about errors that an initialization can meet, by SQLSTATE (PostgreSQL), by number
/// (MySQL), or by the words of SQLite, whose numbers tell little.
fn remedy(step: InitStep, error: &DbError) -> Option<&'static str> {
    if let Some(hint) = error.pooler_hint() {
        return Some(hint);
    }
    if is_missing_table(error) {
        return Some("create the tables first: step t");
    }
    if error.cause() == Cause::Protocol {
        return None;
    }
    if error.is_fatal() {
        return Some("look into the server's log why it left");
    }
    let remedy = match (error.sqlstate(), error.errno()) {
        ("42P07", _) | (_, 1050) => {
            "something of this name exists: drop it or begin with step d, or use another database \
             or schema"
        }
        ("42809", _) | (_, 1347) => {
            "something else has this name, such as a view: drop or rename it, or use another \
             database or schema"
        }
        ("2BP01", _) => "drop what depends on the tables first, such as views",
        ("42P16", _) | (_, 1068) => {
            "the tables have primary keys already: leave out step p, or begin with step d"
        }
        ("42710", _) | (_, 1826) => {
            "the tables have foreign keys already: leave out step f, or begin with step d"
        }
        ("42704" | "42830", _) | (_, 1005 | 1822) if step == InitStep::ForeignKeys => {
            "foreign keys need the primary keys: put step p before step f"
        }
        _ if error.message().contains("already exists") => {
            "drop it or begin with step d, or use another database"
        }
        _ => return circumstance(error),
    };
    Some(remedy)
}

/// What to do about errors that any load may meet, whatever its steps are.
pub(crate) fn circumstance(error: &DbError) -> Option<&'static str> {
    match (error.sqlstate(), error.errno()) {
        ("42501", _) | (_, 1044 | 1142 | 1227) => {
            Some("use a user that may create, fill and drop tables in this database and schema")
        }
        ("53100", _) | (_, 1021 | 1114) => Some("free space on the server's disk"),
        ("25006", _) | (_, 1290 | 1836) => Some("connect to the primary: this server is read-only"),
        _ => sqlite_circumstance(error.message()),
    }
}

fn sqlite_circumstance(message: &str) -> Option<&'static str> {
    let remedies = [
        ("disk is full", "free space on the disk"),
        ("readonly database", "use a file that may be written"),
        ("database is locked", "end the other program that writes to this database"),
    ];
    remedies.into_iter().find(|(words, _)| message.contains(words)).map(|(_, remedy)| remedy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_core::ErrorClass;

    #[test]
    fn every_known_error_has_a_remedy() {
        let server = |errno, state: &[u8; 5], message: &str| {
            DbError::server(ErrorClass::Other, errno, *state, message)
        };
        let cases = [
            (InitStep::ClientData, server(0, b"53100", "could not extend file"), "free space"),
            (InitStep::ClientData, server(1114, b"HY000", "The table is full"), "free space"),
            (InitStep::ClientData, server(13, b"00000", "database or disk is full"), "free space"),
            (InitStep::CreateTables, server(0, b"25006", "read-only transaction"), "primary"),
            (InitStep::CreateTables, server(1290, b"HY000", "--read-only"), "primary"),
            (InitStep::CreateTables, server(8, b"00000", "readonly database"), "may be written"),
            (InitStep::CreateTables, server(1, b"00000", "table x already exists"), "step d"),
            (InitStep::PrimaryKeys, server(1, b"00000", "no such table: x"), "step t"),
            (InitStep::Vacuum, DbError::lost("The server went away."), "log"),
            (InitStep::ClientData, DbError::protocol("No COPY.").with_hint("a proxy"), "a proxy"),
        ];
        for (step, error, words) in cases {
            let error = failed(step, "working")(error);
            assert!(error.hint().is_some_and(|hint| hint.contains(words)), "{error}");
        }
        let unknown = failed(InitStep::Vacuum, "working")(server(0, b"XX000", "oops"));
        assert_eq!(unknown.hint(), None);
        assert_eq!(unknown.to_string(), "step v (vacuum): working failed: oops (SQLSTATE XX000)");
        let hint = unknown.with_resume_hint(RESUME);
        assert!(hint.hint().is_some_and(|hint| hint.starts_with("run it again with --resume")));
        // Only step f speaks of foreign keys.
        let undefined = || server(0, b"42704", "there is no primary key");
        assert!(failed(InitStep::ForeignKeys, "x")(undefined()).hint().is_some());
        assert!(failed(InitStep::CreateTables, "x")(undefined()).hint().is_none());
    }
}
