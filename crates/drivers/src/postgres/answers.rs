//! The content of a flight and the progress of its answers.
//!
//! libpq's `target_session_attrs`: the kinds of servers that a target accepts.

use dyno_core::{
    Address, AnswerTable, Cause, DbError, DbResult, ErrorClass, ErrorOrigin, Executed, Session,
    Statement, StatementTable,
};
use dyno_wire::postgres::WireError;
use dyno_wire::postgres::backend::ServerReport;
use dyno_wire::postgres::frontend::Execution;
use dyno_wire::postgres::types::PostgresColumn;
use dyno_wire::{Names, server_text as text};

use super::PostgresSession;

#[derive(Debug)]
pub(super) struct Prepared {
    /// On the server.
    pub(super) name: Box<str>,
    pub(super) execution: Execution,
    /// The columns of its answer, in the wanted formats; `None` without a result set.
    pub(super) columns: Option<Vec<PostgresColumn>>,
    pub(super) names: Names,
}

/// One part of a flight with its own answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Prepared(Statement),
    /// A statement with its execution: its columns are announced.
    Once,
    /// Ends parts that succeed or fail together.
    Sync,
}

#[derive(Clone, Copy)]
pub(super) enum Expect<'a> {
    /// Answers to text, with announced columns.
    Text,
    /// The answer to Parse and Describe, or to Close.
    Description,
    /// Answers to these steps in order; the last is a Sync, and no two Syncs are neighbors.
    Flight { statements: &'a StatementTable<Prepared>, steps: &'a [Step] },
}

#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Number of answered steps.
    at: usize,
    pub(super) rows: u64,
    /// The outcome of the last answered step. The last one before a Sync may still fail: Sync commits and checks
    /// deferred constraints.
    held: Option<DbResult<Executed>>,
    /// The first error of a text, or since the last Sync.
    pub(super) error: Option<DbError>,
    pub(super) is_copy: bool,
    /// Missing bytes of an unwanted row.
    pub(super) skip: usize,
}

impl Progress {
    /// Keeps the first error of a flight.
    #[inline]
    pub(super) fn fail(&mut self, error: DbError) {
        self.error.get_or_insert(error);
    }

    /// The prepared statement of the next answer.
    #[inline]
    pub(super) fn prepared<'a>(&self, expect: Expect<'a>) -> Option<&'a Prepared> {
        let Expect::Flight { statements, steps } = expect else { return None };
        match steps.get(self.at) {
            Some(&Step::Prepared(statement)) => statements.get(statement),
            _ => None,
        }
    }

    /// Returns true if the step of the next answer is the last before the final Sync.
    pub(super) fn is_last(&self, steps: &[Step]) -> bool {
        self.at + 2 == steps.len()
    }

    #[inline]
    pub(super) fn record_answer(
        &mut self,
        steps: &[Step],
        outcome: DbResult<Executed>,
        done: &mut impl FnMut(DbResult<Executed>),
    ) -> Result<(), WireError> {
        if matches!(steps.get(self.at), None | Some(Step::Sync)) {
            return Err(WireError("an answer came to a statement that was not sent"));
        }
        self.at += 1;
        if let Some(earlier) = self.held.replace(outcome) {
            done(earlier);
        }
        Ok(())
    }

    /// Takes the answer to a Sync and reports the held outcomes. Returns true at the end of the flight.
    #[inline]
    pub(super) fn record_sync(
        &mut self,
        steps: &[Step],
        done: &mut impl FnMut(DbResult<Executed>),
    ) -> Result<bool, WireError> {
        let remaining_steps = steps.get(self.at..).unwrap_or_default();
        let Some(unanswered) = remaining_steps.iter().position(|step| *step == Step::Sync) else {
            return Err(WireError("the server was ready once more than expected"));
        };
        self.at += unanswered + 1;
        self.rows = 0;
        self.is_copy = false;
        let held_outcomes = self.held.take();
        match self.error.take() {
            None if unanswered > 0 => return Err(WireError("a statement was not answered")),
            None => held_outcomes.into_iter().for_each(done),
            Some(error) => report_failure(held_outcomes, &error, unanswered, done),
        }
        Ok(self.at == steps.len())
    }
}

/// Reports the outcomes up to a Sync, `unanswered` of which are missing because of an error.
#[cold]
fn report_failure(
    held: Option<DbResult<Executed>>,
    error: &DbError,
    unanswered: usize,
    done: &mut impl FnMut(DbResult<Executed>),
) {
    if unanswered == 0 {
        return held.into_iter().for_each(|outcome| done(outcome.and(Err(error.clone()))));
    }
    held.into_iter().for_each(&mut *done);
    done(Err(error.clone()));
    for _ in 1..unanswered {
        done(Err(not_executed(error)));
    }
}

/// A statement behind one that failed before the same Sync.
fn not_executed(error: &DbError) -> DbError {
    let sqlstate = error.sqlstate().as_bytes().try_into().unwrap_or(*b"00000");
    let message = "The statement was not executed: an earlier one of the same flight failed.";
    DbError::server(error.class(), 0, sqlstate, message).with_detail(error.message())
}

dyno_core::named! {
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub(super) enum SessionAttributes {
        #[default]
        Any = "any",
        ReadWrite = "read-write",
        ReadOnly = "read-only",
        Primary = "primary",
        Standby = "standby",
        /// A standby, or any server if there is none.
        PreferStandby = "prefer-standby",
    }
}

impl SessionAttributes {
    /// The objection to this server, in libpq's words.
    pub(super) async fn objection(
        self,
        session: &mut PostgresSession,
    ) -> DbResult<Option<&'static str>> {
        let (is_wanted, objection) = match self {
            SessionAttributes::Any | SessionAttributes::PreferStandby => return Ok(None),
            SessionAttributes::ReadWrite => (!is_read_only(session).await?, "session is read-only"),
            SessionAttributes::ReadOnly => {
                (is_read_only(session).await?, "session is not read-only")
            }
            SessionAttributes::Primary => {
                (!is_standby(session).await?, "server is in hot standby mode")
            }
            SessionAttributes::Standby => {
                (is_standby(session).await?, "server is not in hot standby mode")
            }
        };
        Ok((!is_wanted).then_some(objection))
    }
}

/// Servers report it since PostgreSQL 14.
async fn is_standby(session: &mut PostgresSession) -> DbResult<bool> {
    match session.parameter("in_hot_standby") {
        Some(value) => Ok(value == "on"),
        None => is_true(session, "SELECT pg_catalog.pg_is_in_recovery()").await,
    }
}

async fn is_read_only(session: &mut PostgresSession) -> DbResult<bool> {
    let by_default = session.parameter("default_transaction_read_only");
    match (session.parameter("in_hot_standby"), by_default) {
        (Some(standby), Some(by_default)) => Ok(standby == "on" || by_default == "on"),
        _ => is_true(session, "SHOW transaction_read_only").await,
    }
}

async fn is_true(session: &mut PostgresSession, sql: &str) -> DbResult<bool> {
    let mut answer = AnswerTable::default();
    session.query(sql, &mut answer).await?;
    Ok(matches!(answer.single(), Some("on" | "t")))
}

/// A notice as libpq prints it.
pub(super) fn notice_line(report: &ServerReport<'_>) -> String {
    let mut lines = format!("{}:  {}", text(report.severity), text(report.message));
    for (name, field) in [("DETAIL", report.detail), ("HINT", report.hint)] {
        if let Some(field) = field {
            lines.push_str(&format!("\n{name}:  {}", text(field)));
        }
    }
    lines
}

/// The class of a server's error, by its SQLSTATE.
fn class(report: &ServerReport<'_>) -> ErrorClass {
    match &report.sqlstate {
        _ if report.is_fatal() => ErrorClass::ConnectionLost,
        b"40P01" => ErrorClass::Deadlock,
        b"40001" => ErrorClass::Serialization,
        b"55P03" => ErrorClass::LockTimeout,
        [b'2', b'3', ..] => ErrorClass::Constraint,
        // Such as a Bind that doesn't fit its statement: unless it is FATAL the session stays usable.
        b"08P01" => ErrorClass::Other,
        [b'0', b'8', ..] | [b'5', b'7', b'P', b'0', _] => ErrorClass::ConnectionLost,
        _ => ErrorClass::Other,
    }
}

#[cold]
pub(super) fn server_error(report: &ServerReport<'_>) -> DbError {
    let message = text(report.message);
    let error = match class(report) {
        ErrorClass::ConnectionLost => DbError::closed(0, report.sqlstate, message),
        class => DbError::server(class, 0, report.sqlstate, message),
    };
    with_fields(error, report)
}

pub(super) fn login_error(report: &ServerReport<'_>) -> DbError {
    let error = with_fields(DbError::login(0, report.sqlstate, text(report.message)), report);
    let error = match &report.sqlstate {
        // The server is starting, stopping or recovering.
        [b'5', b'7', b'P', b'0', _] | [b'0', b'8', ..] => {
            error.with_class(ErrorClass::ConnectionLost)
        }
        _ => error,
    };
    match (login_hint(&report.sqlstate, error.message()), error.hint()) {
        (Some(hint), None) => error.with_hint(hint),
        _ => error,
    }
}

/// A failed connection in libpq's words, if it has any: those of each host that was tried.
pub fn libpq_connection_failure(error: &DbError) -> Option<String> {
    if error.earlier.is_empty() {
        return failure_of_host(error);
    }
    let errors = error.earlier.iter().chain([error]);
    let failures = errors.map(|error| failure_of_host(error).unwrap_or_else(|| error.to_string()));
    Some(failures.collect::<Vec<_>>().join("\n"))
}

fn failure_of_host(error: &DbError) -> Option<String> {
    let (place, question) = match error.address.as_ref()? {
        Address::Tcp { host, port } => (
            format!("at \"{host}\", port {port}"),
            "on that host and accepting TCP/IP connections?",
        ),
        Address::Unix(path) => (
            format!("on socket \"{}\"", path.display()),
            "locally and accepting connections on that socket?",
        ),
    };
    let message = error.message();
    let reason = match (error.cause(), error.origin) {
        (_, ErrorOrigin::System(_)) => format!("{message}\n\tIs the server running {question}"),
        (Cause::Rejected, ErrorOrigin::Server) => format!("FATAL:  {message}"),
        _ => return None,
    };
    Some(format!("connection to server {place} failed: {reason}"))
}

fn login_hint(sqlstate: &[u8; 5], message: &str) -> Option<&'static str> {
    match sqlstate {
        b"28P01" => Some("check the user's name and password; the server may have another one"),
        // Servers before 14 say `SSL off`.
        b"28000" if message.ends_with(", no encryption") || message.ends_with(", SSL off") => Some(
            "the server's pg_hba.conf must let this user in from this host without TLS; for its hostssl lines connect with \
             tls=require, which needs `ssl = on` on the server",
        ),
        b"28000" => Some(
            "the server's pg_hba.conf must let this user in from this host, and the role must exist",
        ),
        b"3D000" => Some("create the database with `createdb`, or correct its name in the URL"),
        b"42704" | b"22023" => Some("check options= and set.NAME= in the URL"),
        b"53300" => Some("use fewer workers, or raise max_connections on the server"),
        b"57P03" => Some("the server is starting, stopping or recovering: try again shortly"),
        _ => None,
    }
}

fn with_fields(mut error: DbError, report: &ServerReport<'_>) -> DbError {
    let position = report.position.map(|position| format!("At character {position}."));
    let detail = [report.detail.map(text), position].into_iter().flatten().collect::<Vec<_>>();
    if !detail.is_empty() {
        error = error.with_detail(detail.join(" "));
    }
    if let Some(hint) = report.hint {
        error = error.with_hint(text(hint));
    }
    let query = report.internal_query.map(|query| format!("QUERY:  {}", text(query)));
    let context = report.context.map(|context| format!("CONTEXT:  {}", text(context)));
    let lines = [query, context].into_iter().flatten().collect::<Vec<_>>();
    if lines.is_empty() { error } else { error.with_context(lines.join("\n")) }
}

/// A violation of the protocol by the server.
#[cold]
pub(super) fn broken(error: WireError) -> DbError {
    DbError::protocol(format!("The server broke the PostgreSQL protocol: {error}.")).with_hint(
        "check that the scheme and the port in the URL belong to the same kind of server",
    )
}

/// A request of the caller that can't be sent; the session stays usable.
#[cold]
pub(super) fn unsendable(error: WireError) -> DbError {
    DbError::protocol(format!("The statement can't be sent: {error}."))
        .with_class(ErrorClass::Other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_core::ErrorClass;
    use proptest::prelude::*;

    const SYNC_ONLY: [Step; 1] = [Step::Sync];

    fn error(number: usize) -> DbError {
        DbError::server(ErrorClass::Other, 0, *b"XX000", format!("error {number}"))
    }

    fn executed(number: usize) -> Executed {
        Executed { has_rows: false, rows: 0, affected: number as u64 }
    }

    /// `3` for an execution that changed 3 rows, else the words of the error.
    fn words(outcome: DbResult<Executed>) -> String {
        match outcome {
            Ok(executed) => executed.affected.to_string(),
            Err(error) => error.message().to_owned(),
        }
    }

    #[test]
    fn answers_out_of_turn_are_errors() {
        let mut progress = Progress::default();
        assert!(progress.record_answer(&SYNC_ONLY, Ok(executed(1)), &mut ignore_outcome).is_err());
        assert_eq!(progress.record_sync(&SYNC_ONLY, &mut ignore_outcome), Ok(true));
        assert!(progress.record_sync(&SYNC_ONLY, &mut ignore_outcome).is_err());
        let mut progress = Progress::default();
        assert!(progress.record_sync(&[Step::Once, Step::Sync], &mut ignore_outcome).is_err());
    }

    fn ignore_outcome(_: DbResult<Executed>) {}

    proptest! {
        /// Each execution has one outcome, in order, whichever of each part fails: none, one of
        /// its executions, or (behind all of them) its commit.
        #[test]
        fn each_execution_has_one_outcome(
            parts in prop::collection::vec((1..5_usize, prop::option::of(0..6_usize)), 1..5),
        ) {
            let mut steps = Vec::new();
            for (count, _) in &parts {
                steps.extend(std::iter::repeat_n(Step::Once, *count));
                steps.push(Step::Sync);
            }
            let (mut progress, mut outcomes, mut expected) = (Progress::default(), Vec::new(), Vec::new());
            let mut record_outcome = |outcome| outcomes.push(words(outcome));
            let mut number = 0;
            for (part, (count, fails)) in parts.iter().enumerate() {
                let fails = fails.filter(|at| at <= count);
                for at in 0..*count {
                    number += 1;
                    match fails {
                        Some(failed) if at == failed || (failed == *count && at + 1 == failed) => {
                            expected.push(format!("error {number}"));
                        }
                        Some(failed) if at > failed => {
                            expected.push(words(Err(not_executed(&error(0)))));
                        }
                        _ => expected.push(number.to_string()),
                    }
                    if fails == Some(at) {
                        progress.fail(error(number));
                    } else if fails.is_none_or(|failed| at < failed) {
                        progress.record_answer(&steps, Ok(executed(number)), &mut record_outcome).unwrap();
                    }
                }
                if fails == Some(*count) {
                    progress.fail(error(number));
                }
                let is_over = progress.record_sync(&steps, &mut record_outcome).unwrap();
                prop_assert_eq!(is_over, part + 1 == parts.len());
            }
            prop_assert_eq!(outcomes, expected);
        }
    }

    #[test]
    fn classes_follow_sqlstate_and_severity() {
        for (sqlstate, class) in [
            (b"40P01", ErrorClass::Deadlock),
            (b"40001", ErrorClass::Serialization),
            (b"55P03", ErrorClass::LockTimeout),
            (b"23505", ErrorClass::Constraint),
            (b"57P01", ErrorClass::ConnectionLost),
            (b"57P02", ErrorClass::ConnectionLost),
            (b"57P03", ErrorClass::ConnectionLost),
            (b"08006", ErrorClass::ConnectionLost),
            (b"08P01", ErrorClass::Other),
            (b"57014", ErrorClass::Other),
            (b"42601", ErrorClass::Other),
        ] {
            let error = make_error("ERROR", sqlstate);
            let cause = match class {
                ErrorClass::ConnectionLost => Cause::Lost,
                _ => Cause::Server,
            };
            assert_eq!((error.class(), error.cause()), (class, cause), "{error}");
        }
        let idle = make_error("FATAL", b"25P03");
        assert_eq!((idle.class(), idle.cause()), (ErrorClass::ConnectionLost, Cause::Lost));
        assert_eq!(idle.sqlstate(), "25P03", "what the server sent is kept");
    }

    fn make_error(severity: &str, sqlstate: &[u8; 5]) -> DbError {
        let severity = severity.as_bytes();
        server_error(&ServerReport { severity, sqlstate: *sqlstate, ..ServerReport::default() })
    }

    #[test]
    fn connections_fail_in_libpqs_words() {
        let tcp = Address::Tcp { host: "db".to_owned(), port: 5433 };
        assert_eq!(
            libpq_connection_failure(&DbError::not_connected(tcp.clone(), 111)).unwrap(),
            "connection to server at \"db\", port 5433 failed: Connection refused\n\
             \tIs the server running on that host and accepting TCP/IP connections?"
        );
        assert_eq!(
            libpq_connection_failure(&DbError::not_connected(Address::Unix("/s".into()), 2))
                .unwrap(),
            "connection to server on socket \"/s\" failed: No such file or directory\n\
             \tIs the server running locally and accepting connections on that socket?"
        );
        assert_eq!(
            libpq_connection_failure(
                &DbError::login(0, *b"28000", "role \"x\" does not exist").at(&tcp)
            )
            .unwrap(),
            "connection to server at \"db\", port 5433 failed: FATAL:  role \"x\" does not exist"
        );
        assert_eq!(libpq_connection_failure(&DbError::unreachable("It is gone.").at(&tcp)), None);
        let first = DbError::not_connected(Address::Tcp { host: "a".to_owned(), port: 1 }, 111);
        let both_hosts = libpq_connection_failure(
            &DbError::login(0, *b"28000", "no role").at(&tcp).after(vec![first]),
        );
        assert_eq!(
            both_hosts.unwrap(),
            "connection to server at \"a\", port 1 failed: Connection refused\n\
             \tIs the server running on that host and accepting TCP/IP connections?\n\
             connection to server at \"db\", port 5433 failed: FATAL:  no role"
        );
    }
}
