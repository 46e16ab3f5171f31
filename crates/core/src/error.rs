//! Errors of a database or of the way to it.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use crate::Address;

crate::named! {
    /// Classes of errors that a report counts apart.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum ErrorClass {
        /// SQLSTATE 40001 that is not a deadlock: the transaction must be run again.
        Serialization = "serialization",
        /// The server chose this transaction as a deadlock victim.
        Deadlock = "deadlock",
        /// A lock was not granted in time (MySQL 1205, PostgreSQL 55P03, SQLite BUSY).
        LockTimeout = "lock_timeout",
        /// The connection is gone; the result of an unanswered commit is unknown.
        ConnectionLost = "connection_lost",
        /// SQLSTATE class 23: duplicate key, foreign key, check, not null.
        Constraint = "constraint",
        Other = "other",
    }
}

/// Decides the remedy and the drop-in front ends' wording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The server could not be reached: refused, no route, no such host or socket.
    Unreachable,
    /// The two sides could not agree on TLS, or a certificate is not trusted.
    Tls,
    /// The log-in was refused (password, database, too many connections).
    Rejected,
    /// The server answered a statement with an error.
    Server,
    /// The connection broke, or the server ended it.
    Lost,
    /// The peer broke the protocol, or a limit of dyno was passed.
    Protocol,
    Unsupported,
    /// A statement was a COPY that takes rows from the client or gives it rows.
    ClientCopy,
    /// The workload itself failed, such as an expression of a script. No server took part.
    Workload,
    /// Nothing failed: the workload begins its transaction again by itself. No error is counted.
    Again,
}

/// The author of an error's message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorOrigin {
    Server,
    /// The operating system, with its error number.
    System(i32),
    /// dyno: the message is a whole sentence.
    Dyno,
}

/// An error of a session: boxed, allocated only when something went wrong.
#[derive(Clone, PartialEq, Eq)]
pub struct DbError(Box<ErrorParts>);

pub type DbResult<T> = Result<T, DbError>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorParts {
    pub class: ErrorClass,
    pub cause: Cause,
    pub origin: ErrorOrigin,
    /// The server of the connection; `None` for embedded databases and after the log-in.
    pub address: Option<Address>,
    /// MySQL's or SQLite's error number, 0 if there is none.
    pub errno: u32,
    /// `*b"00000"` if there is none.
    pub sqlstate: [u8; 5],
    /// The words of the origin, without any password.
    pub message: String,
    pub detail: Option<String>,
    /// A remedy, shown after `hint:`.
    pub hint: Option<String>,
    /// The text of the statement that failed, where the workload names it.
    pub statement: Option<String>,
    /// Context of the server, such as a function: lines that begin with `QUERY:` or `CONTEXT:`.
    pub context: Option<String>,
    /// Errors of the hosts that were tried before this one.
    pub earlier: Vec<DbError>,
}

const POOLER_HINT: &str = "is a pooler in between that gives the server's sessions to other clients (PgBouncer's \
                           pool_mode = transaction or statement)? Name the server itself, or a pool by sessions";

impl From<ErrorParts> for DbError {
    fn from(parts: ErrorParts) -> Self {
        DbError(Box::new(parts))
    }
}

impl Deref for DbError {
    type Target = ErrorParts;

    fn deref(&self) -> &ErrorParts {
        &self.0
    }
}

impl DbError {
    /// An error that a server sent. `errno` and `sqlstate` as in [`ErrorParts`].
    pub fn server(
        class: ErrorClass,
        errno: u32,
        sqlstate: [u8; 5],
        message: impl Into<String>,
    ) -> Self {
        let error = Self::new(Cause::Server, class, sqlstate, message);
        error.with(|parts| (parts.origin, parts.errno) = (ErrorOrigin::Server, errno))
    }

    /// The server's refusal of the log-in.
    pub fn login(errno: u32, sqlstate: [u8; 5], message: impl Into<String>) -> Self {
        let error = Self::server(ErrorClass::Other, errno, sqlstate, message);
        error.with(|parts| parts.cause = Cause::Rejected)
    }

    /// The connection broke after it had been established.
    pub fn lost(message: impl Into<String>) -> Self {
        Self::new(Cause::Lost, ErrorClass::ConnectionLost, *b"08006", message)
    }

    /// The server ended an established connection and sent a reason.
    pub fn closed(errno: u32, sqlstate: [u8; 5], message: impl Into<String>) -> Self {
        let error = Self::server(ErrorClass::ConnectionLost, errno, sqlstate, message);
        error.with(|parts| parts.cause = Cause::Lost)
    }

    /// An error of a server that can't be reached.
    pub fn unreachable(message: impl Into<String>) -> Self {
        Self::new(Cause::Unreachable, ErrorClass::ConnectionLost, *b"08001", message)
    }

    /// The system could not connect to the server at `address`; `errno` is the system's.
    pub fn not_connected(address: Address, errno: i32) -> Self {
        let text = std::io::Error::from_raw_os_error(errno).to_string();
        // The standard library appends the number, which is kept apart here.
        let words = text.split(" (os error").next().unwrap_or_default();
        let error = Self::unreachable(words).at(&address);
        error.with(|parts| parts.origin = ErrorOrigin::System(errno))
    }

    /// An error of TLS, with the codes to count it by.
    pub fn tls(errno: u32, sqlstate: [u8; 5], message: impl Into<String>) -> Self {
        let error = Self::new(Cause::Tls, ErrorClass::Other, sqlstate, message);
        error.with(|parts| parts.errno = errno)
    }

    /// The log-in is not possible, in dyno's words.
    pub fn rejected(errno: u32, sqlstate: [u8; 5], message: impl Into<String>) -> Self {
        let error = Self::new(Cause::Rejected, ErrorClass::Other, sqlstate, message);
        error.with(|parts| parts.errno = errno)
    }

    /// The peer broke the protocol, or a limit of dyno was passed.
    pub fn protocol(message: impl Into<String>) -> Self {
        Self::new(Cause::Protocol, ErrorClass::ConnectionLost, *b"08P01", message)
    }

    /// The workload itself can't continue with this worker; its session is still usable.
    pub fn workload(message: impl Into<String>) -> Self {
        Self::new(Cause::Workload, ErrorClass::Other, *b"00000", message)
    }

    /// The workload wants to repeat its attempt, although nothing failed.
    pub fn again(message: impl Into<String>) -> Self {
        Self::new(Cause::Again, ErrorClass::Other, *b"00000", message)
    }

    /// The workload takes its attempt for one that met another session's work, although the server refused nothing: it
    /// is tried again, and counted, as a conflict that the server finds.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(Cause::Server, ErrorClass::Serialization, *b"00000", message)
    }

    /// The driver lacks an operation; its session is still usable.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(Cause::Unsupported, ErrorClass::Other, *b"0A000", message)
    }

    /// Refusal of COPY as a statement; `class` tells whether the session can continue.
    pub fn client_copy(class: ErrorClass, message: impl Into<String>) -> Self {
        Self::new(Cause::ClientCopy, class, *b"0A000", message)
    }

    #[cold]
    fn new(cause: Cause, class: ErrorClass, sqlstate: [u8; 5], message: impl Into<String>) -> Self {
        DbError::from(ErrorParts {
            class,
            cause,
            origin: ErrorOrigin::Dyno,
            address: None,
            errno: 0,
            sqlstate,
            message: message.into(),
            detail: None,
            hint: None,
            statement: None,
            context: None,
            earlier: Vec::new(),
        })
    }

    /// Changes the parts of the error.
    fn with(mut self, change: impl FnOnce(&mut ErrorParts)) -> Self {
        change(&mut self.0);
        self
    }

    /// Counts the error under another class: refused log-ins of a starting server are lost connections.
    #[must_use]
    pub fn with_class(self, class: ErrorClass) -> Self {
        self.with(|parts| parts.class = class)
    }

    #[must_use]
    pub fn with_detail(self, detail: impl Into<String>) -> Self {
        self.with(|parts| parts.detail = Some(detail.into()))
    }

    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        self.with(|parts| parts.hint = Some(hint.into()))
    }

    #[must_use]
    pub fn with_context(self, context: impl Into<String>) -> Self {
        self.with(|parts| parts.context = Some(context.into()))
    }

    #[must_use]
    pub fn with_statement(self, statement: impl Into<String>) -> Self {
        self.with(|parts| parts.statement = Some(statement.into()))
    }

    /// Keeps how the hosts failed that were tried before.
    #[must_use]
    pub fn after(self, earlier: Vec<DbError>) -> Self {
        self.with(|parts| parts.earlier = earlier)
    }

    /// Names the server of the connection, unless the error names one already.
    #[must_use]
    pub fn at(self, address: &Address) -> Self {
        self.with(|parts| {
            parts.address.get_or_insert_with(|| address.clone());
        })
    }

    /// The class under which the error is counted.
    pub fn class(&self) -> ErrorClass {
        self.0.class
    }

    /// The origin of the error.
    pub fn cause(&self) -> Cause {
        self.0.cause
    }

    /// The server's number of the error; 0 without one.
    pub fn errno(&self) -> u32 {
        self.0.errno
    }

    /// The five letters of the standard; `00000` without any.
    pub fn sqlstate(&self) -> &str {
        std::str::from_utf8(&self.0.sqlstate).unwrap_or("?????")
    }

    /// The sentence of the server or the driver.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The remedy, if one is known.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    pub fn is_from_server(&self) -> bool {
        self.0.origin == ErrorOrigin::Server
    }

    /// A hint if a connection pooler, which gives the server's sessions to other clients, probably caused this error.
    pub fn pooler_hint(&self) -> Option<&'static str> {
        if !self.is_from_server() {
            return None;
        }
        match self.sqlstate() {
            // A prepared statement is another session's, or is there already.
            "26000" | "42P05" => Some(POOLER_HINT),
            "08P01" if self.message().contains("pooling mode") => Some(POOLER_HINT),
            "08P01" if self.message() == "query_wait_timeout" => Some(
                "the pooler had no session of its server for this client (PgBouncer's query_wait_timeout): raise its \
                 pool size, or use fewer clients",
            ),
            _ => None,
        }
    }

    /// Returns true if the session is lost and must be connected again.
    pub fn is_fatal(&self) -> bool {
        self.0.class == ErrorClass::ConnectionLost
    }

    /// Returns true if no session could be opened.
    pub fn is_connect(&self) -> bool {
        matches!(self.0.cause, Cause::Unreachable | Cause::Tls | Cause::Rejected)
    }

    /// The error in dyno's words, without codes. What a server has written is one line of it.
    pub fn sentence(&self) -> Cow<'_, str> {
        let ErrorParts { cause, origin, address, message, .. } = &*self.0;
        let message = match origin {
            ErrorOrigin::Server => in_one_line(message),
            ErrorOrigin::System(_) | ErrorOrigin::Dyno => Cow::Borrowed(message.as_str()),
        };
        let Some(address) = address else { return message };
        match (cause, origin) {
            (_, ErrorOrigin::System(errno)) => {
                format!("The server at {address} can't be reached: {message} (os error {errno}).")
                    .into()
            }
            (Cause::Rejected, ErrorOrigin::Server) => {
                format!("The server at {address} refused the log-in: {message}.").into()
            }
            _ => message,
        }
    }
}

impl fmt::Debug for DbError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DbError({:?}, {:?}, {self})", self.0.cause, self.0.class)
    }
}

impl fmt::Display for DbError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sentence = self.sentence();
        // The codes belong inside the sentence.
        let open = sentence.strip_suffix('.').unwrap_or(&sentence);
        let is_counted_only =
            !self.is_from_server() && !matches!(self.0.cause, Cause::Tls | Cause::Rejected);
        match (self.0.errno, self.sqlstate()) {
            // Its message has the codes of a database's error that it hands on.
            _ if self.0.cause == Cause::Workload => f.write_str(&sentence),
            // dyno's own codes are for counting.
            (0, _) if is_counted_only => f.write_str(&sentence),
            (0, "00000") => f.write_str(&sentence),
            (0, state) => write!(f, "{open} (SQLSTATE {state})"),
            (errno, "00000") => write!(f, "{open} (error {errno})"),
            (errno, state) => write!(f, "{open} (error {errno}, SQLSTATE {state})"),
        }
    }
}

impl std::error::Error for DbError {}

/// The kind of an error, which determines the exit code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ErrorKind {
    #[default]
    Failed,
    /// An argument or an option is invalid.
    Usage,
    /// The user interrupted the work.
    Stopped,
}

/// A sentence that names the place and the cause, and a remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub kind: ErrorKind,
    pub message: String,
    pub hint: Option<String>,
}

impl Error {
    pub fn new(message: impl Into<String>) -> Self {
        Error { kind: ErrorKind::Failed, message: message.into(), hint: None }
    }

    /// An error of a run that was interrupted.
    pub fn stopped(message: impl Into<String>) -> Self {
        Error { kind: ErrorKind::Stopped, ..Error::new(message) }
    }

    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Error { hint: Some(hint.into()), ..self }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// Makes an [`Error`] of any cause.
pub trait Context<T> {
    /// `{problem}: {cause}.`
    ///
    /// # Errors
    /// Adds that sentence.
    fn context(self, problem: impl fmt::Display) -> Result<T, Error>;
}

impl<T, E: fmt::Display> Context<T> for Result<T, E> {
    fn context(self, problem: impl fmt::Display) -> Result<T, Error> {
        self.map_err(|cause| Error::new(format!("{problem}: {cause}.")))
    }
}

/// Returns true for what a terminal or a page obeys instead of showing it: controls, line separators, and what turns
/// the direction of letters or is not seen at all. Joiners (U+200C, U+200D) are none: emoji and whole scripts need
/// them.
pub fn is_command(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}'
                | '\u{200b}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2066}'..='\u{2069}'
                | '\u{feff}'
        )
}

/// The text with U+FFFD instead of each command; ends of lines and tabs stay.
pub fn harmless(text: &str) -> Cow<'_, str> {
    if text.contains(is_obeyed) { text.replace(is_obeyed, "\u{fffd}").into() } else { text.into() }
}

fn is_obeyed(c: char) -> bool {
    is_command(c) && !matches!(c, '\n' | '\t')
}

/// The text in one line, of which no part can be taken for a line of dyno's own.
pub fn in_one_line(text: &str) -> Cow<'_, str> {
    if !text.contains(ends_line) {
        return text.into();
    }
    let lines = text.split(ends_line).map(str::trim).filter(|line| !line.is_empty());
    let (blanks, _) = text.split_at(text.len() - text.trim_start_matches(' ').len());
    (blanks.to_owned() + &lines.collect::<Vec<_>>().join(" ")).into()
}

fn ends_line(c: char) -> bool {
    matches!(c, '\n'..='\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// A document of JSON with each command as its escape: a terminal obeys none, and a reader gets the same data.
pub fn harmless_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        // Outside of strings JSON has no others than these.
        if is_command(c) && !matches!(c, '\n' | '\r' | '\t') {
            out.push_str(&format!("\\u{:04x}", u32::from(c)))
        } else {
            out.push(c)
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_stand_inside_the_sentence_and_only_where_a_server_sent_them() {
        let server_error =
            |errno, state| DbError::server(ErrorClass::Other, errno, state, "It failed.");
        let script = DbError::workload("a.lua:1: errno = 1146");
        let script_parts = ErrorParts { errno: 1146, ..(*script).clone() };
        let cases = [
            (server_error(1146, *b"42S02"), "It failed (error 1146, SQLSTATE 42S02)"),
            (server_error(5, *b"00000"), "It failed (error 5)"),
            (server_error(0, *b"00000"), "It failed."),
            (DbError::rejected(0, *b"28P01", "No"), "No (SQLSTATE 28P01)"),
            (DbError::unreachable("It can't be reached."), "It can't be reached."),
            (DbError::lost("gone"), "gone"),
            (DbError::closed(0, *b"57P01", "bye"), "bye (SQLSTATE 57P01)"),
            (script_parts.into(), "a.lua:1: errno = 1146"),
            (DbError::closed(1927, *b"70100", "killed"), "killed (error 1927, SQLSTATE 70100)"),
        ];
        for (error, text) in cases {
            assert_eq!(error.to_string(), text);
        }
    }

    #[test]
    fn what_a_server_writes_forges_no_line() {
        let text = "It failed.\r\nOK: everything passed\n";
        let server = DbError::server(ErrorClass::Other, 5, *b"00000", text);
        assert_eq!(server.to_string(), "It failed. OK: everything passed (error 5)");
        assert_eq!(server.message(), text, "the drop-ins say it as their originals do");
        let script_error = DbError::workload("script.lua: it failed\ntraceback");
        assert_eq!(script_error.to_string(), "script.lua: it failed\ntraceback");
    }

    #[test]
    fn a_pooler_is_named_where_it_is_the_likely_cause() {
        for error in [
            other_error(*b"26000", "prepared statement \"d2\" does not exist"),
            other_error(*b"42P05", "prepared statement \"d1\" already exists"),
            DbError::closed(0, *b"08P01", "not allowed in statement pooling mode"),
        ] {
            let hint = error.pooler_hint().unwrap_or_default();
            assert!(hint.contains("Name the server itself"), "{error}: {hint}");
        }
        let waited = DbError::closed(0, *b"08P01", "query_wait_timeout");
        assert!(waited.pooler_hint().is_some_and(|hint| hint.contains("raise its pool size")));
        assert_eq!(other_error(*b"08P01", "invalid message format").pooler_hint(), None);
        assert_eq!(DbError::protocol("in no pooling mode").pooler_hint(), None, "dyno's own");
    }

    fn other_error(state: [u8; 5], text: &str) -> DbError {
        DbError::server(ErrorClass::Other, 0, state, text)
    }

    #[test]
    fn a_server_that_was_connected_to_is_named() {
        let address = Address::Tcp { host: "db".to_owned(), port: 3306 };
        let unreachable = DbError::not_connected(address.clone(), 111);
        assert_eq!(unreachable.message(), "Connection refused");
        assert_eq!(
            unreachable.to_string(),
            "The server at db:3306 can't be reached: Connection refused (os error 111)."
        );
        let denied = DbError::login(1045, *b"28000", "Access denied").at(&address);
        assert_eq!(denied.message(), "Access denied");
        assert_eq!(
            denied.to_string(),
            "The server at db:3306 refused the log-in: Access denied (error 1045, SQLSTATE 28000)"
        );
    }

    /// Letters, and whether they are obeyed.
    const LETTERS: [(&str, bool); 8] = [
        ("\0\u{7}\u{8}\u{b}\u{c}\r\u{1b}\u{1f}\u{7f}", true),
        ("\u{80}\u{85}\u{90}\u{9b}\u{9d}\u{9f}", true),
        ("\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}", true),
        ("\u{2066}\u{2067}\u{2068}\u{2069}\u{200e}\u{200f}\u{61c}", true),
        ("\u{2028}\u{2029}\u{200b}\u{feff}", true),
        ("a ~\u{a0}\u{e9}\u{4e2d}\u{5d0}\u{627}\u{fffd}", false),
        ("\u{200c}\u{200d}\u{1f468}\u{200d}\u{1f469}\u{fe0f}", false),
        ("\u{2010}\u{2013}\u{2026}\u{202f}\u{2027}\u{2065}", false),
    ];

    #[test]
    fn what_is_obeyed_is_replaced_and_nothing_else() {
        for (letters, is_obeyed) in LETTERS {
            for c in letters.chars() {
                assert_eq!(is_command(c), is_obeyed, "{c:?}");
            }
            let replaced = harmless(letters);
            if is_obeyed {
                assert!(replaced.chars().all(|c| c == '\u{fffd}'), "{letters:?}: {replaced:?}")
            } else {
                assert_eq!(replaced, letters)
            }
        }
        assert_eq!(harmless("a\tb\n"), "a\tb\n");
        assert_eq!(harmless("\u{1b}[2Jx\u{202e}y\r\n"), "\u{fffd}[2Jx\u{fffd}y\u{fffd}\n");
    }

    #[test]
    fn a_text_of_several_lines_is_one_line() {
        for (text, line) in [
            ("plain  text ", "plain  text "),
            ("it failed\nOK: everything passed\n", "it failed OK: everything passed"),
            ("a\r\n\r\n  b\u{85}c\u{2028}d\u{2029}e\u{b}f\u{c}g", "a b c d e f g"),
            ("  - a\n  b\n", "  - a b"),
            ("\n", ""),
        ] {
            assert_eq!(in_one_line(text), line, "{text:?}");
        }
    }

    #[test]
    fn json_keeps_its_data_without_commands() {
        let json = "{\n  \"a\": \"\u{202e}x\u{9b}\u{7f}\u{feff}\u{4e2d}\"\n}\n";
        let replaced = harmless_json(json);
        assert_eq!(replaced, "{\n  \"a\": \"\\u202ex\\u009b\\u007f\\ufeff\u{4e2d}\"\n}\n");
        assert_eq!(harmless_json(&replaced), replaced);
    }
}
