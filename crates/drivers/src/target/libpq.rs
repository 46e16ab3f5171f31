//! Targets in the form of libpq's programs: connection strings, options, environment variables, defaults.
//!
//! Connection strings of libpq as lists of keywords and values: `host=db port=5433` and
//! `postgres://user@host/db?key=value`. Errors use libpq's words, but hide passwords.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use Use::{Ignored, IgnoredNumber, Only, Taken};
use dyno_core::{Dialect, nearest};

use super::url::{CHANNEL_BINDINGS, HOST_ORDERS, SESSION_ATTRIBUTES, percent_decode, redact};
use super::{Secret, Spellings, TargetError, TargetUrl, postgres_socket};
use crate::net::{Address, Hosts, TlsMode, TlsOptions};

/// The time limit of a connection where libpq has none: an hour comes to the same.
pub const UNLIMITED_CONNECT_S: u64 = 3_600;

/// Command-line options of a libpq program alongside the database name.
#[derive(Clone, Copy, Debug, Default)]
pub struct LibpqOptions<'a> {
    /// `-h`: hosts or socket folders, separated by commas.
    pub host: Option<&'a str>,
    /// `-p`: a port, or as many as there are hosts.
    pub port: Option<&'a str>,
    pub user: Option<&'a str>,
    /// The default `application_name`.
    pub fallback_application_name: Option<&'a str>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Taken,
    /// Tunes something that dyno lacks, or asks for the usual.
    Ignored,
    /// A whole number that does so.
    IgnoredNumber,
    /// Other values ask for something that dyno lacks.
    Only(&'static [&'static str]),
}

/// Keywords of libpq 15 to 18, with their environment variables, and dyno's own `allow_cleartext`.
#[rustfmt::skip]
const KEYWORDS: &[(&str, &str, Use)] = &[
    ("host", "PGHOST", Taken), ("hostaddr", "PGHOSTADDR", Taken), ("port", "PGPORT", Taken),
    ("dbname", "PGDATABASE", Taken), ("user", "PGUSER", Taken), ("password", "PGPASSWORD", Taken),
    ("passfile", "PGPASSFILE", Taken), ("connect_timeout", "PGCONNECT_TIMEOUT", Taken),
    ("options", "PGOPTIONS", Taken), ("application_name", "PGAPPNAME", Taken),
    ("fallback_application_name", "", Taken), ("sslmode", "PGSSLMODE", Taken),
    ("sslrootcert", "PGSSLROOTCERT", Taken), ("sslcert", "PGSSLCERT", Taken), ("sslkey", "PGSSLKEY", Taken),
    ("target_session_attrs", "PGTARGETSESSIONATTRS", Taken),
    ("client_encoding", "PGCLIENTENCODING", Taken), ("service", "PGSERVICE", Taken),
    ("allow_cleartext", "", Taken),
    ("channel_binding", "PGCHANNELBINDING", Taken), ("require_auth", "PGREQUIREAUTH", Taken),
    ("requirepeer", "PGREQUIREPEER", Only(&[])),
    ("replication", "", Only(&["false", "off", "no", "0"])),
    ("gssencmode", "PGGSSENCMODE", Only(&["disable", "prefer"])),
    ("sslnegotiation", "PGSSLNEGOTIATION", Only(&["postgres"])), ("sslpassword", "", Only(&[])),
    ("sslcrl", "PGSSLCRL", Only(&[])), ("sslcrldir", "PGSSLCRLDIR", Only(&[])),
    ("ssl_min_protocol_version", "PGSSLMINPROTOCOLVERSION", Only(&["TLSv1", "TLSv1.1", "TLSv1.2"])),
    ("ssl_max_protocol_version", "PGSSLMAXPROTOCOLVERSION", Only(&["TLSv1.3"])),
    ("min_protocol_version", "PGMINPROTOCOLVERSION", Only(&["3.0"])),
    ("max_protocol_version", "PGMAXPROTOCOLVERSION", Ignored),
    ("load_balance_hosts", "PGLOADBALANCEHOSTS", Taken), ("keepalives", "", IgnoredNumber),
    ("keepalives_idle", "", IgnoredNumber), ("keepalives_interval", "", IgnoredNumber), ("keepalives_count", "", IgnoredNumber),
    ("tcp_user_timeout", "", IgnoredNumber), ("sslcompression", "PGSSLCOMPRESSION", Ignored),
    ("sslsni", "PGSSLSNI", Ignored), ("sslcertmode", "PGSSLCERTMODE", Ignored), ("sslkeylogfile", "", Ignored),
    ("krbsrvname", "PGKRBSRVNAME", Ignored), ("gsslib", "PGGSSLIB", Ignored),
    ("gssdelegation", "PGGSSDELEGATION", Ignored),
];

const SPELLINGS: Spellings = &[
    ("tls=", "sslmode="),
    ("with ca=FILE", "with sslrootcert=FILE or in ~/.postgresql/root.crt"),
    ("ca=FILE", "sslrootcert=FILE"),
    ("cert=FILE and key=FILE", "sslcert=FILE and sslkey=FILE"),
    ("connect_timeout_s", "connect_timeout or PGCONNECT_TIMEOUT"),
    ("the host in the URL", "the host (-h, PGHOST, or in the connection string)"),
    ("in the URL", "in the connection string"),
];

/// Environment variables that libpq sends to the server as settings of the session.
const SETTINGS: [(&str, &str); 3] =
    [("PGDATESTYLE", "set.datestyle"), ("PGTZ", "set.timezone"), ("PGGEQO", "set.geqo")];

impl TargetUrl {
    /// The PostgreSQL target of a libpq program, such as pgbench. `dbname` is a database name or a connection string:
    /// `host=db port=5433 dbname=x` or a `postgres://` URI. As in libpq, its words come before `given`; then come the
    /// environment variables and the defaults: a unix socket, port 5432, the operating system's user, and a database of
    /// the user's name.
    ///
    /// From several hosts each connection takes the first that answers, unless `load_balance_hosts` is `random`, or
    /// dyno's own `rotate`; `target_session_attrs` excludes some. [`super::find_password`] reads the password file.
    pub fn from_libpq(
        dbname: Option<&str>,
        given: &LibpqOptions<'_>,
    ) -> Result<TargetUrl, TargetError> {
        from_libpq_with(dbname, given, &|name: &str| std::env::var(name).ok(), system_user())
    }
}

pub(super) fn from_libpq_with(
    dbname: Option<&str>,
    given: &LibpqOptions<'_>,
    variable: &dyn Fn(&str) -> Option<String>,
    system_user: Option<String>,
) -> Result<TargetUrl, TargetError> {
    let mut words = ConnectionWords(BTreeMap::new());
    for (name, value) in [("host", given.host), ("port", given.port), ("user", given.user)] {
        words.set_if_any(name, value)?;
    }
    match dbname {
        Some(text) if is_connection_string(text) => {
            let kind = if is_uri(text) { "URI query parameter:" } else { "connection option" };
            for (name, value) in read_conninfo(text)? {
                check_known(&name, || format!("invalid {kind} \"{name}\""))?;
                words.set(&name, value)?;
            }
        }
        name => words.set_if_any("dbname", name)?,
    }
    let service = words.0.remove("service").or_else(|| variable("PGSERVICE"));
    if let Some(service) = service.filter(|name| !name.is_empty()) {
        for (name, value) in read_service(&service, variable)? {
            check_known(&name, || {
                format!("invalid connection option \"{name}\" of service \"{service}\"")
            })?;
            if !words.0.contains_key(name.as_str()) {
                words.set(&name, value)?;
            }
        }
    }
    let variables = KEYWORDS.iter().filter(|(name, ..)| *name != "service");
    for &(name, from, _) in variables.filter(|(_, from, _)| !from.is_empty()) {
        if !words.0.contains_key(name)
            && let Some(value) = variable(from)
        {
            words.set(name, value).map_err(|error| {
                let message = format!("{from}: {}", error.message);
                TargetError { message, ..error }
            })?;
        }
    }
    if !words.0.contains_key("fallback_application_name") {
        words.set_if_any("fallback_application_name", given.fallback_application_name)?;
    }
    if words.0.get("client_encoding").is_some_and(|name| name == "auto") {
        words.set("client_encoding", locale_encoding(variable))?;
    }
    let mut target = words.build_target(system_user)?;
    for (name, option) in SETTINGS {
        if let Some(value) = variable(name).filter(|value| !value.is_empty()) {
            // libpq sends nothing for this word.
            if !value.eq_ignore_ascii_case("default") {
                target.options.insert(option.to_owned(), value);
            }
        }
    }
    Ok(target)
}

/// The encoding of the locale: servers know the names of the C library.
fn locale_encoding(variable: &dyn Fn(&str) -> Option<String>) -> String {
    let mut locales = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(variable);
    let locale = locales.find(|locale| !locale.is_empty()).unwrap_or_default();
    let (_, encoding) = locale.split_once('.').unwrap_or(("", "SQL_ASCII"));
    encoding.split('@').next().unwrap_or_default().to_owned()
}

struct ConnectionWords(BTreeMap<&'static str, String>);

impl ConnectionWords {
    /// Sets a known keyword, or replaces its value. An empty value is kept: as in libpq it means the default, and hides
    /// what services and variables say.
    fn set(&mut self, name: &str, value: String) -> Result<(), TargetError> {
        let keyword = KEYWORDS.iter().find(|&&(known, ..)| known == name);
        let Some(&(name, _, kind)) = keyword else { return Ok(()) };
        if let Only(allowed) = kind
            && !value.is_empty()
            && !allowed.iter().any(|word| word.eq_ignore_ascii_case(&value))
        {
            let text = if name == "sslpassword" { "***" } else { &value };
            let message = format!("The connection option {name}={text} is not supported.");
            return Err(TargetError::new(message).with_hint(match allowed {
                [] => format!("leave {name} out"),
                words => format!("{name} may be {}", words.join(", ")),
            }));
        }
        if kind == IgnoredNumber && !value.is_empty() {
            read_whole(name, &value)?;
        }
        self.0.insert(name, value);
        Ok(())
    }

    /// For the program's own options, where an empty value is none.
    fn set_if_any(&mut self, name: &str, value: Option<&str>) -> Result<(), TargetError> {
        value.filter(|value| !value.is_empty()).map_or(Ok(()), |value| self.set(name, value.into()))
    }

    fn take_value(&mut self, name: &str) -> Option<String> {
        self.0.remove(name).filter(|value| !value.is_empty())
    }

    fn take_choice(&mut self, name: &str, known: &[&str]) -> Result<Option<String>, TargetError> {
        let value = self.take_value(name);
        if value.as_deref().is_none_or(|value| known.contains(&value)) {
            Ok(value)
        } else {
            Err(TargetError::new(format!(
                "invalid {name} value: \"{}\"",
                value.unwrap_or_default()
            ))
            .with_hint(format!("it is {}", known.join(", "))))
        }
    }

    fn build_target(mut self, system_user: Option<String>) -> Result<TargetUrl, TargetError> {
        let tls = self.tls_options()?;
        let is_renamed = ["host", "hostaddr"]
            .into_iter()
            .all(|name| self.0.get(name).is_some_and(|value| !value.is_empty()));
        if is_renamed && tls.mode == TlsMode::VerifyFull {
            return Err(TargetError::new(
                "The connection option sslmode=verify-full can't be used with both host and hostaddr.",
            )
            .with_hint("leave hostaddr out, so that the host's name is looked up and verified"));
        }
        let hosts = self.addresses()?;
        let user = self.take_value("user").or(system_user).ok_or_else(|| {
            TargetError::new("No user is named, and this system's name for the user is not known.")
                .with_hint("name one with -U or PGUSER")
        })?;
        let database = self.take_value("dbname").unwrap_or_else(|| user.clone());
        let mut options = BTreeMap::new();
        options.insert("connect_timeout_s".to_owned(), self.connect_timeout_s()?.to_string());
        let is_named = self.0.contains_key("application_name");
        let fallback_name = self.take_value("fallback_application_name").filter(|_| !is_named);
        if let Some(name) = self.take_value("application_name").or(fallback_name) {
            options.insert("application_name".to_owned(), name);
        }
        for (name, known) in [
            ("channel_binding", CHANNEL_BINDINGS),
            ("target_session_attrs", SESSION_ATTRIBUTES),
            ("load_balance_hosts", HOST_ORDERS),
        ] {
            options.extend(self.take_choice(name, known)?.map(|value| (name.to_owned(), value)));
        }
        // Several hosts are tried in their order, unless an option says otherwise.
        if hosts.len() == 1 {
            options.remove("load_balance_hosts");
        } else {
            options.entry("load_balance_hosts".to_owned()).or_insert_with(|| "disable".to_owned());
        }
        for name in ["options", "passfile", "allow_cleartext", "require_auth"] {
            options.extend(self.take_value(name).map(|value| (name.to_owned(), value)));
        }
        let encoding = self.take_value("client_encoding");
        options.extend(encoding.map(|value| ("set.client_encoding".to_owned(), value)));
        Ok(TargetUrl {
            dialect: Dialect::Postgres,
            hosts: Hosts(hosts),
            user: Some(user),
            password: self.take_value("password").map(Secret::new),
            database: Some(database),
            tls,
            options,
            spellings: SPELLINGS,
        })
    }

    /// Hosts with their ports: one port for all hosts, or as many.
    fn addresses(&mut self) -> Result<Vec<Address>, TargetError> {
        let (names, addresses) = (self.take_value("host"), self.take_value("hostaddr"));
        if let (Some(names), Some(addresses)) = (&names, &addresses) {
            let (names, addresses) = (names.split(',').count(), addresses.split(',').count());
            if names != addresses {
                return Err(TargetError::new(format!(
                    "could not match {names} host names to {addresses} hostaddr values"
                )));
            }
        }
        // The address is the way; only the certificate needs the name then.
        let hosts = addresses.or(names).unwrap_or_default();
        let hosts: Vec<&str> = hosts.split(',').collect();
        let ports = self.take_value("port").unwrap_or_default();
        let ports: Vec<u16> = ports.split(',').map(read_port).collect::<Result<_, _>>()?;
        if ports.len() != 1 && ports.len() != hosts.len() {
            return Err(TargetError::new(format!(
                "could not match {} port numbers to {} hosts",
                ports.len(),
                hosts.len()
            )));
        }
        let ports = ports.iter().cycle();
        hosts.iter().zip(ports).map(|(host, port)| read_host(host, *port)).collect()
    }

    fn tls_options(&mut self) -> Result<TlsOptions, TargetError> {
        let mode = self.take_choice("sslmode", &TlsMode::ALL.map(TlsMode::name))?;
        let ca = self.take_value("sslrootcert");
        let is_system = ca.as_deref() == Some("system");
        let mode = TlsMode::ALL.into_iter().find(|known| mode.as_deref() == Some(known.name()));
        let default = if is_system { TlsMode::VerifyFull } else { TlsMode::default() };
        let mode = mode.unwrap_or(default);
        let ca = ca.filter(|_| !is_system).map(PathBuf::from);
        // As in libpq, a missing file is an error only if it is needed.
        let ca = ca.filter(|path| mode >= TlsMode::VerifyCa || path.exists());
        Ok(TlsOptions {
            mode,
            ca,
            cert: self.take_value("sslcert").map(Into::into),
            key: self.take_value("sslkey").map(Into::into),
            ..TlsOptions::default()
        })
    }

    /// libpq waits without a limit by default.
    fn connect_timeout_s(&mut self) -> Result<u64, TargetError> {
        let Some(text) = self.take_value("connect_timeout") else { return Ok(UNLIMITED_CONNECT_S) };
        let seconds = read_whole("connect_timeout", &text)?;
        let limited = u64::try_from(seconds).ok().filter(|&seconds| seconds > 0);
        Ok(limited.map_or(UNLIMITED_CONNECT_S, |seconds| seconds.min(UNLIMITED_CONNECT_S)))
    }
}

fn read_whole(name: &str, text: &str) -> Result<i32, TargetError> {
    text.trim().parse().map_err(|_| {
        TargetError::new(format!(
            "invalid integer value \"{text}\" for connection option \"{name}\""
        ))
    })
}

fn check_known(name: &str, message: impl Fn() -> String) -> Result<(), TargetError> {
    let mut keywords = KEYWORDS.iter().map(|&(keyword, ..)| keyword);
    if keywords.clone().any(|keyword| keyword == name) {
        return Ok(());
    }
    Err(TargetError::new(message()).with_hint(match nearest(name, &mut keywords) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "a connection string is written as `host=db port=5432 dbname=x user=y`".to_owned(),
    }))
}

fn read_port(text: &str) -> Result<u16, TargetError> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(super::default_port(Dialect::Postgres));
    }
    let number: i64 = text.parse().map_err(|_| {
        TargetError::new(format!("invalid integer value \"{text}\" for connection option \"port\""))
    })?;
    u16::try_from(number)
        .ok()
        .filter(|&port| port > 0)
        .ok_or_else(|| TargetError::new(format!("invalid port number: \"{text}\"")))
}

fn read_host(host: &str, port: u16) -> Result<Address, TargetError> {
    match host {
        "" => Ok(default_socket(port)),
        folder if folder.starts_with('/') => Ok(postgres_socket(folder, port)),
        name if name.starts_with('@') => {
            Err(TargetError::new(format!("The abstract socket {name} can't be connected to."))
                .with_hint("name the folder of a unix socket, or a host"))
        }
        name => Ok(Address::Tcp { host: name.to_owned(), port }),
    }
}

/// The socket in the folder of Debian's and Red Hat's packages, or in PostgreSQL's own folder if only this one exists.
fn default_socket(port: u16) -> Address {
    let sockets = ["/var/run/postgresql", "/tmp"].map(|folder| postgres_socket(folder, port));
    let existing =
        sockets.iter().find(|address| matches!(address, Address::Unix(path) if path.exists()));
    existing.unwrap_or(&sockets[0]).clone()
}

/// The operating system's name of the user, from the passwd file, or from a variable of the log-in.
pub fn system_user() -> Option<String> {
    let uid = rustix::process::geteuid().as_raw().to_string();
    let passwd = std::fs::read_to_string(Path::new("/etc/passwd")).unwrap_or_default();
    let listed = passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == uid).then(|| name.to_owned())
    });
    listed
        .or_else(|| std::env::var("LOGNAME").or_else(|_| std::env::var("USER")).ok())
        .filter(|name| !name.is_empty())
}

pub(super) type Pairs = Vec<(String, String)>;

/// Returns true for a database name that libpq interprets as a connection string.
pub(super) fn is_connection_string(text: &str) -> bool {
    is_uri(text) || text.contains('=')
}

pub(super) fn read_conninfo(text: &str) -> Result<Pairs, TargetError> {
    match uri_rest(text) {
        Some(rest) => read_uri(text, rest),
        None => read_keywords(text),
    }
}

pub(super) fn is_uri(text: &str) -> bool {
    uri_rest(text).is_some()
}

fn uri_rest(text: &str) -> Option<&str> {
    text.strip_prefix("postgresql://").or_else(|| text.strip_prefix("postgres://"))
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}

/// `keyword = value` pairs: values in single quotes may have blanks, `\` escapes the next character.
fn read_keywords(text: &str) -> Result<Pairs, TargetError> {
    let mut pairs = Pairs::new();
    let mut remaining = text.trim_start_matches(is_space);
    while !remaining.is_empty() {
        let end = remaining.find(|c| c == '=' || is_space(c)).unwrap_or(remaining.len());
        let (keyword, after) = remaining.split_at(end);
        let Some(after) = after.trim_start_matches(is_space).strip_prefix('=') else {
            return Err(TargetError::new(format!(
                "missing \"=\" after \"{keyword}\" in connection info string"
            ))
            .with_hint("values with blanks are put into single quotes: options='-c geqo=off'"));
        };
        let (value, after) = read_value(after.trim_start_matches(is_space))?;
        pairs.push((keyword.to_owned(), value));
        remaining = after.trim_start_matches(is_space);
    }
    Ok(pairs)
}

fn read_value(text: &str) -> Result<(String, &str), TargetError> {
    let quoted = text.strip_prefix('\'');
    let text = quoted.unwrap_or(text);
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => value.extend(letters.next().map(|(_, letter)| letter)),
            '\'' if quoted.is_some() => return Ok((value, &text[at + 1..])),
            blank if quoted.is_none() && is_space(blank) => return Ok((value, &text[at..])),
            letter => value.push(letter),
        }
    }
    if quoted.is_some() {
        return Err(TargetError::new("unterminated quoted string in connection info string")
            .with_hint("inside quotes, a quote is written \\' and a backslash \\\\"));
    }
    Ok((value, ""))
}

/// The part of `uri` behind its scheme: `user:password@host:port,host:port/database?keyword=value&...`
fn read_uri(uri: &str, text: &str) -> Result<Pairs, TargetError> {
    let mut pairs = Pairs::new();
    let before_path = &text[..text.find('/').unwrap_or(text.len())];
    let after_login = match before_path.split_once('@') {
        None => text,
        Some((login, _)) => {
            let (user, password) = login.split_once(':').unwrap_or((login, ""));
            if !user.is_empty() {
                push_decoded(&mut pairs, "user", user)?;
            }
            if !password.is_empty() {
                push_decoded(&mut pairs, "password", password)?;
            }
            &text[login.len() + 1..]
        }
    };
    let place_end = after_login.find(['/', '?']).unwrap_or(after_login.len());
    let (place, path_and_query) = after_login.split_at(place_end);
    let (hosts, ports) = read_hosts(uri, place)?;
    if !hosts.trim_matches(',').is_empty() {
        push_decoded(&mut pairs, "host", &hosts)?;
    }
    if !ports.trim_matches(',').is_empty() {
        push_decoded(&mut pairs, "port", &ports)?;
    }
    let (path, query) = path_and_query.split_once('?').unwrap_or((path_and_query, ""));
    if let Some(database) = path.strip_prefix('/').filter(|name| !name.is_empty()) {
        push_decoded(&mut pairs, "dbname", database)?;
    }
    for pair in query.split('&').filter(|_| !query.is_empty()) {
        pairs.push(read_parameter(pair)?);
    }
    Ok(pairs)
}

fn push_decoded(pairs: &mut Pairs, keyword: &str, value: &str) -> Result<(), TargetError> {
    pairs.push((keyword.to_owned(), decode(value, keyword == "password")?));
    Ok(())
}

/// The hosts and ports of a URI, each joined by commas.
fn read_hosts(uri: &str, place: &str) -> Result<(String, String), TargetError> {
    let mut hosts = Vec::new();
    let mut ports = Vec::new();
    for part in place.split(',') {
        let (host, port) = match part.strip_prefix('[') {
            None => part.split_once(':').unwrap_or((part, "")),
            Some(inside) => {
                let (host, after) = inside.split_once(']').ok_or_else(|| {
                    bracket_error(uri, "end of string reached when looking for matching \"]\" in IPv6 host address in URI")
                })?;
                if host.is_empty() {
                    return Err(bracket_error(uri, "IPv6 host address may not be empty in URI"));
                }
                match after.strip_prefix(':') {
                    Some(port) => (host, port),
                    None if after.is_empty() => (host, ""),
                    None => {
                        return Err(bracket_error(
                            uri,
                            "unexpected character in URI (expected \":\" or \"/\")",
                        ));
                    }
                }
            }
        };
        hosts.push(host);
        ports.push(port);
    }
    // Empty lists mean the default for all.
    Ok((hosts.join(","), ports.join(",")))
}

fn bracket_error(uri: &str, problem: &str) -> TargetError {
    TargetError::new(format!("{problem}: \"{}\"", redact(uri)))
        .with_hint("an IPv6 address is written in brackets, a port after it: [::1]:5432")
}

fn read_parameter(pair: &str) -> Result<(String, String), TargetError> {
    let Some((keyword, value)) = pair.split_once('=') else {
        return Err(TargetError::new(format!(
            "missing key/value separator \"=\" in URI query parameter: \"{pair}\""
        )));
    };
    let keyword = decode(keyword, false)?;
    if value.contains('=') {
        return Err(TargetError::new(format!(
            "extra key/value separator \"=\" in URI query parameter: \"{keyword}\""
        ))
        .with_hint("inside a value, = is written %3D"));
    }
    let is_secret = keyword.contains("password");
    let value = decode(value, is_secret)?;
    // JDBC's form.
    if keyword == "ssl" && value == "true" {
        return Ok(("sslmode".to_owned(), "require".to_owned()));
    }
    Ok((keyword, value))
}

/// Decodes percent-encoding; the errors mask secret texts.
fn decode(text: &str, is_secret: bool) -> Result<String, TargetError> {
    let masked = if is_secret { "***" } else { text };
    let decoded = percent_decode(text).ok_or_else(|| {
        TargetError::new(format!("invalid percent-encoded token: \"{masked}\""))
            .with_hint("write % itself as %25, and other bytes as % and two hex digits")
    })?;
    if decoded.contains('\0') {
        let message = format!("forbidden value %00 in percent-encoded value: \"{masked}\"");
        return Err(TargetError::new(message));
    }
    Ok(decoded)
}

/// Folders in which the packages of Debian and of PostgreSQL keep the file of the whole system.
const SYSTEM_FOLDERS: [&str; 2] = ["/etc/postgresql-common", "/etc"];

/// The options of a service, from `PGSERVICEFILE` or `~/.pg_service.conf`, else from the system's file.
///
/// # Errors
/// The file can't be read, has a line that is none, or no file has the service.
fn read_service(
    service: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<(String, String)>, TargetError> {
    let explicit_file = variable("PGSERVICEFILE").map(PathBuf::from);
    if let Some(path) = explicit_file.as_ref().filter(|path| !path.exists()) {
        return Err(TargetError::new(format!("service file \"{}\" not found", path.display())));
    }
    let folders = match variable("PGSYSCONFDIR") {
        Some(folder) => vec![folder],
        None => SYSTEM_FOLDERS.map(str::to_owned).to_vec(),
    };
    let system_files = folders.iter().map(|folder| Path::new(folder).join("pg_service.conf"));
    let file = explicit_file
        .or_else(|| variable("HOME").map(|home| Path::new(&home).join(".pg_service.conf")));
    for path in file.into_iter().chain(system_files).filter(|path| path.exists()) {
        let bytes = std::fs::read(&path).map_err(|error| {
            TargetError::new(format!("The service file {} can't be read: {error}.", path.display()))
        })?;
        if let Some(options) = find_service(service, &String::from_utf8_lossy(&bytes), &path)? {
            return Ok(options);
        }
    }
    Err(TargetError::new(format!("definition of service \"{service}\" not found")))
}

fn find_service(
    service: &str,
    text: &str,
    path: &Path,
) -> Result<Option<Vec<(String, String)>>, TargetError> {
    let mut options = None;
    for (number, line) in (1..).zip(text.lines().map(str::trim)) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix('[') {
            if options.is_some() {
                break;
            }
            let is_wanted = name.trim_end().strip_suffix(']') == Some(service);
            options = is_wanted.then(Vec::new);
            continue;
        }
        let Some(found) = &mut options else { continue };
        let problem = match line.split_once('=') {
            None => "syntax error",
            Some(("service", _)) => "nested service specifications not supported",
            Some((name, value)) => {
                found.push((name.to_owned(), value.to_owned()));
                continue;
            }
        };
        let file = path.display();
        let message = format!("{problem} in service file \"{file}\", line {number}");
        return Err(TargetError::new(message));
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_its_section() {
        let text = "# all\n[a]\nhost=x\n\n[b]\nhost=y\nport=7\n[c]\nnonsense\n";
        let find_in_text =
            |service| find_service(service, text, Path::new("f")).map_err(|error| error.message);
        let pairs = [("host", "y"), ("port", "7")];
        let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(find_in_text("b"), Ok(Some(pairs.to_vec())));
        assert_eq!(find_in_text("d"), Ok(None));
        assert_eq!(find_in_text("c"), Err("syntax error in service file \"f\", line 9".to_owned()));
    }
}
