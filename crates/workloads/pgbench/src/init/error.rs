//! Why an initialization failed.

use super::options::Step;
use dyno_core::DbError;
use std::fmt;
use std::io;

const RESUME: &str = "run it again with --resume: what is stored is kept and only the rest is made";

/// Why an initialization failed. [`fmt::Display`] is one sentence without a full stop; the remedy
/// is in [`InitError::hint`].
#[derive(Debug)]
pub enum InitError {
    /// The options can't be carried out; nothing was touched.
    Options {
        /// What is wrong.
        problem: String,
        /// The remedy.
        hint: String,
    },
    /// The database refused something or went away.
    Session {
        /// The step; `None` while connecting.
        step: Option<Step>,
        /// What was being done, such as `creating table pgbench_history`.
        doing: String,
        /// The statement, if it was one.
        sql: Option<String>,
        /// What the database or the way to it answered.
        error: DbError,
        /// A remedy, where one is known.
        hint: Option<String>,
    },
    /// A table exists and is not what the options describe.
    Table {
        /// The step that met it.
        step: Step,
        table: &'static str,
        /// What is wrong with it, in words that follow the table's name.
        problem: String,
        /// The remedy.
        hint: String,
    },
    /// [`super::InitObserver::is_canceled`] was true: what was being done is given up, and nothing
    /// of it stored.
    Canceled {
        /// True when rows have been committed before, which `--resume` goes on with.
        is_stored: bool,
    },
    /// The kernel refused an event loop.
    Loop(io::Error),
}

impl InitError {
    pub(crate) fn options(problem: impl Into<String>, hint: impl Into<String>) -> Self {
        InitError::Options { problem: problem.into(), hint: hint.into() }
    }

    /// A session's error while a step was doing something.
    pub(crate) fn session(step: Step, doing: impl Into<String>, error: DbError) -> Self {
        let hint = remedy(step, &error).map(str::to_owned);
        InitError::Session { step: Some(step), doing: doing.into(), sql: None, error, hint }
    }

    /// Adds the statement that failed.
    pub(crate) fn with_sql(mut self, text: &str) -> Self {
        if let InitError::Session { sql, .. } = &mut self {
            *sql = Some(text.to_owned());
        }
        self
    }

    /// Adds that what is committed is not lost.
    pub(crate) fn with_resume_hint(mut self) -> Self {
        if let InitError::Session { hint, .. } = &mut self {
            *hint = Some(match hint.take() {
                Some(remedy) => format!("{remedy}; then {RESUME}"),
                None => RESUME.to_owned(),
            });
        }
        self
    }

    /// A remedy, for a line of its own after `hint:`.
    pub fn hint(&self) -> Option<&str> {
        match self {
            InitError::Options { hint, .. } | InitError::Table { hint, .. } => Some(hint),
            InitError::Session { error, hint, .. } => hint.as_deref().or(error.hint()),
            InitError::Canceled { is_stored } => is_stored.then_some(RESUME),
            InitError::Loop(_) => None,
        }
    }

    /// The database's own error, if it was one.
    pub fn db_error(&self) -> Option<&DbError> {
        match self {
            InitError::Session { error, .. } => Some(error),
            _ => None,
        }
    }

    /// The statement that failed (pgbench prints it as `Query was: ...`).
    pub fn sql(&self) -> Option<&str> {
        match self {
            InitError::Session { sql, .. } => sql.as_deref(),
            _ => None,
        }
    }
}

impl fmt::Display for InitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InitError::Options { problem, .. } => f.write_str(problem),
            InitError::Session { step, doing, error, .. } => {
                if let Some(step) = step {
                    write!(f, "step {} ({}): ", step.letter(), step.name())?;
                }
                write!(f, "{doing} failed: {error}")
            }
            InitError::Table { step, table, problem, .. } => {
                write!(f, "step {} ({}): table {table} {problem}", step.letter(), step.name())
            }
            InitError::Canceled { .. } => f.write_str("canceled"),
            InitError::Loop(error) => write!(f, "no event loop could be made: {error}"),
        }
    }
}

impl std::error::Error for InitError {}

/// True when the error says that a table is not there.
pub(crate) fn is_missing_table(error: &DbError) -> bool {
    error.sqlstate() == "42P01"
        || error.errno() == 1146
        || error.message().contains("no such table")
}

/// What to do about errors that an initialization can meet, by SQLSTATE (PostgreSQL), by number
/// (MySQL), or by the words of SQLite, whose numbers tell little.
fn remedy(step: Step, error: &DbError) -> Option<&'static str> {
    if is_missing_table(error) {
        return Some("create the tables first: step t");
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
        ("42501", _) | (_, 1044 | 1142 | 1227) => {
            "use a user that may create, fill and drop tables in this database and schema"
        }
        ("53100", _) | (_, 1021 | 1114) => "free space on the server's disk",
        ("42P16", _) | (_, 1068) => {
            "the tables have primary keys already: leave out step p, or begin with step d"
        }
        ("42710", _) | (_, 1826) => {
            "the tables have foreign keys already: leave out step f, or begin with step d"
        }
        ("42704" | "42830", _) | (_, 1005 | 1822) if step == Step::ForeignKeys => {
            "foreign keys need the primary keys: put step p before step f"
        }
        ("25006", _) | (_, 1290 | 1836) => "connect to the primary: this server is read-only",
        (_, 3750) => "SET GLOBAL sql_require_primary_key=OFF: primary keys come last, in step p",
        _ => return sqlite_remedy(error.message()),
    };
    Some(remedy)
}

fn sqlite_remedy(message: &str) -> Option<&'static str> {
    let remedies = [
        ("already exists", "drop it or begin with step d, or use another database"),
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
            (Step::ClientData, server(0, b"53100", "could not extend file"), "free space"),
            (Step::ClientData, server(1114, b"HY000", "The table is full"), "free space"),
            (Step::ClientData, server(13, b"00000", "database or disk is full"), "free space"),
            (Step::CreateTables, server(0, b"25006", "read-only transaction"), "primary"),
            (Step::CreateTables, server(1290, b"HY000", "--read-only"), "primary"),
            (Step::CreateTables, server(8, b"00000", "readonly database"), "may be written"),
            (Step::CreateTables, server(3750, b"HY000", "primary key"), "sql_require_primary_key"),
            (Step::CreateTables, server(1, b"00000", "table x already exists"), "step d"),
            (Step::PrimaryKeys, server(1, b"00000", "no such table: x"), "step t"),
            (Step::Vacuum, DbError::lost("The server went away."), "log"),
        ];
        for (step, error, words) in cases {
            let error = InitError::session(step, "working", error);
            assert!(error.hint().is_some_and(|hint| hint.contains(words)), "{error}");
        }
        let unknown = InitError::session(Step::Vacuum, "working", server(0, b"XX000", "oops"));
        assert_eq!(unknown.hint(), None);
        assert_eq!(unknown.to_string(), "step v (vacuum): working failed: oops (SQLSTATE XX000)");
        let hint = unknown.with_resume_hint();
        assert!(hint.hint().is_some_and(|hint| hint.starts_with("run it again with --resume")));
        // Only step f speaks of foreign keys.
        let undefined = || server(0, b"42704", "there is no primary key");
        assert!(InitError::session(Step::ForeignKeys, "x", undefined()).hint().is_some());
        assert!(InitError::session(Step::CreateTables, "x", undefined()).hint().is_none());
    }
}
