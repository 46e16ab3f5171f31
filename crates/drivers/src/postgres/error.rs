//! Errors and notices of the server.

use dyno_core::{Address, Cause, DbError, ErrorClass, ErrorOrigin};
use dyno_wire::postgres::WireError;
use dyno_wire::postgres::backend::ServerReport;

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

fn class(report: &ServerReport<'_>) -> ErrorClass {
    match &report.sqlstate {
        _ if report.is_fatal() => ErrorClass::ConnectionLost,
        b"40P01" => ErrorClass::Deadlock,
        b"40001" => ErrorClass::Serialization,
        b"55P03" => ErrorClass::LockTimeout,
        [b'2', b'3', ..] => ErrorClass::Constraint,
        // Such as a Bind that doesn't fit its statement: unless it is FATAL the session goes on.
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
    match (login_hint(&report.sqlstate), error.hint()) {
        (Some(hint), None) => error.with_hint(hint),
        _ => error,
    }
}

/// A failed connection in libpq's words, if it has any: those of each host that was tried.
pub fn libpq_connection_failure(error: &DbError) -> Option<String> {
    if error.earlier().is_empty() {
        return failure_of_host(error);
    }
    let words = |error: &DbError| failure_of_host(error).unwrap_or_else(|| error.to_string());
    let hosts: Vec<String> = error.earlier().iter().chain([error]).map(words).collect();
    Some(hosts.join("\n"))
}

fn failure_of_host(error: &DbError) -> Option<String> {
    let (place, question) = match error.address()? {
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
    let why = match (error.cause(), error.origin()) {
        (_, ErrorOrigin::System(_)) => format!("{message}\n\tIs the server running {question}"),
        (Cause::Rejected, ErrorOrigin::Server) => format!("FATAL:  {message}"),
        _ => return None,
    };
    Some(format!("connection to server {place} failed: {why}"))
}

fn login_hint(sqlstate: &[u8; 5]) -> Option<&'static str> {
    match sqlstate {
        b"28P01" => Some("check the user's name and password; the server may have another one"),
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

/// A request of the caller that can't be sent; the session goes on.
#[cold]
pub(super) fn unsendable(error: WireError) -> DbError {
    DbError::protocol(format!("The statement can't be sent: {error}."))
        .with_class(ErrorClass::Other)
}

/// Servers may use another encoding than UTF-8 until the session is open.
fn text(bytes: &[u8]) -> String {
    dyno_wire::server_text(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_follow_sqlstate_and_severity() {
        let error_of = |severity: &str, sqlstate: &[u8; 5]| {
            let severity = severity.as_bytes();
            server_error(&ServerReport { severity, sqlstate: *sqlstate, ..ServerReport::default() })
        };
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
            let error = error_of("ERROR", sqlstate);
            let cause = match class {
                ErrorClass::ConnectionLost => Cause::Lost,
                _ => Cause::Server,
            };
            assert_eq!((error.class(), error.cause()), (class, cause), "{error}");
        }
        let idle = error_of("FATAL", b"25P03");
        assert_eq!((idle.class(), idle.cause()), (ErrorClass::ConnectionLost, Cause::Lost));
        assert_eq!(idle.sqlstate(), "25P03", "what the server sent is kept");
    }

    #[test]
    fn connections_fail_in_libpqs_words() {
        let tcp = Address::Tcp { host: "db".to_owned(), port: 5433 };
        let words = |error| libpq_connection_failure(&error);
        assert_eq!(
            words(DbError::not_connected(tcp.clone(), 111)).unwrap(),
            "connection to server at \"db\", port 5433 failed: Connection refused\n\
             \tIs the server running on that host and accepting TCP/IP connections?"
        );
        assert_eq!(
            words(DbError::not_connected(Address::Unix("/s".into()), 2)).unwrap(),
            "connection to server on socket \"/s\" failed: No such file or directory\n\
             \tIs the server running locally and accepting connections on that socket?"
        );
        assert_eq!(
            words(DbError::login(0, *b"28000", "role \"x\" does not exist").at(&tcp)).unwrap(),
            "connection to server at \"db\", port 5433 failed: FATAL:  role \"x\" does not exist"
        );
        assert_eq!(words(DbError::unreachable("It is gone.").at(&tcp)), None);
        let first = DbError::not_connected(Address::Tcp { host: "a".to_owned(), port: 1 }, 111);
        let both = words(DbError::login(0, *b"28000", "no role").at(&tcp).after(vec![first]));
        assert_eq!(
            both.unwrap(),
            "connection to server at \"a\", port 1 failed: Connection refused\n\
             \tIs the server running on that host and accepting TCP/IP connections?\n\
             connection to server at \"db\", port 5433 failed: FATAL:  no role"
        );
    }
}
