//! Reading target URLs.
//!
//! Text work on URLs: percent-encoding, hiding passwords.
//!
//! Printing target URLs.

use super::jdbc::redact_url;
use super::{Secret, TargetError, TargetUrl, default_port, postgres_socket};
use crate::net::{Address, Hosts, TlsMode, TlsOptions};
use dyno_core::{Dialect, nearest};
use std::collections::BTreeMap;
use std::fmt::Write as _;

#[derive(Clone, Copy)]
enum Value {
    Text,
    Number { min: u64, max: u64 },
    OneOf(&'static [&'static str]),
}

#[derive(Clone, Copy)]
enum KeyPlace {
    User,
    Password,
    Database,
    Host,
    Port,
    Socket,
    Tls,
    Ca,
    Cert,
    Key,
    /// Into [`TargetUrl::options`] under the first of the key's names.
    Option(Value),
}

/// A key of the query: its names, also in other clients, and its dialects.
struct Key {
    names: &'static [&'static str],
    dialects: &'static [Dialect],
    place: KeyPlace,
}

const MYSQL: &[Dialect] = &[Dialect::Mysql];
const POSTGRES: &[Dialect] = &[Dialect::Postgres];
const NETWORK: &[Dialect] = &[Dialect::Mysql, Dialect::Postgres];
const SQLITE: &[Dialect] = &[Dialect::Sqlite];

/// Every key but `set.NAME`.
#[rustfmt::skip]
const KEYS: &[Key] = &[
    key(&["user"], NETWORK, KeyPlace::User),
    key(&["password"], NETWORK, KeyPlace::Password),
    key(&["dbname"], POSTGRES, KeyPlace::Database),
    key(&["host"], POSTGRES, KeyPlace::Host),
    key(&["port"], POSTGRES, KeyPlace::Port),
    key(&["socket"], MYSQL, KeyPlace::Socket),
    key(&["tls", "sslmode", "ssl-mode"], NETWORK, KeyPlace::Tls),
    key(&["ca", "sslrootcert", "ssl-ca"], NETWORK, KeyPlace::Ca),
    key(&["cert", "sslcert", "ssl-cert"], NETWORK, KeyPlace::Cert),
    key(&["key", "sslkey", "ssl-key"], NETWORK, KeyPlace::Key),
    key(&["connect_timeout_s", "connect_timeout"], NETWORK, number(1, 3600)),
    key(&["allow_cleartext"], NETWORK, KeyPlace::Option(Value::OneOf(SWITCH))),
    key(&["get_server_public_key", "get-server-public-key"], MYSQL, KeyPlace::Option(Value::OneOf(SWITCH))),
    key(&["server_public_key", "server-public-key-path"], MYSQL, KeyPlace::Option(Value::Text)),
    key(&["compression", "compression-algorithms"], MYSQL, KeyPlace::Option(Value::Text)),
    key(&["require_auth"], POSTGRES, KeyPlace::Option(Value::Text)),
    key(&["channel_binding"], POSTGRES, KeyPlace::Option(Value::OneOf(CHANNEL_BINDINGS))),
    key(&["options"], POSTGRES, KeyPlace::Option(Value::Text)),
    key(&["application_name"], POSTGRES, KeyPlace::Option(Value::Text)),
    key(&["load_balance_hosts"], POSTGRES, KeyPlace::Option(Value::OneOf(HOST_ORDERS))),
    key(&["target_session_attrs"], POSTGRES, KeyPlace::Option(Value::OneOf(SESSION_ATTRIBUTES))),
    key(&["passfile"], POSTGRES, KeyPlace::Option(Value::Text)),
    key(&["busy_timeout_ms"], SQLITE, number(0, 3_600_000)),
    key(&["synchronous"], SQLITE, KeyPlace::Option(Value::OneOf(&["off", "normal", "full", "extra"]))),
    key(&["journal"], SQLITE, KeyPlace::Option(Value::OneOf(&["wal", "delete", "truncate", "persist"]))),
];

const SWITCH: &[&str] = &["true", "false"];

/// Which host a connection tries first: the first one, any, or (the default of URLs) one after the other.
pub(super) const HOST_ORDERS: &[&str] = &["disable", "random", "rotate"];

/// Whether SCRAM is tied to the server's certificate.
pub(super) const CHANNEL_BINDINGS: &[&str] = &["disable", "prefer", "require"];

/// Kinds of servers, in libpq's words.
pub(super) const SESSION_ATTRIBUTES: &[&str] =
    &["any", "read-write", "read-only", "primary", "standby", "prefer-standby"];

const fn key(names: &'static [&'static str], dialects: &'static [Dialect], place: KeyPlace) -> Key {
    Key { names, dialects, place }
}

const fn number(min: u64, max: u64) -> KeyPlace {
    KeyPlace::Option(Value::Number { min, max })
}

fn known_keys(dialect: Dialect) -> impl Iterator<Item = &'static Key> {
    KEYS.iter().filter(move |key| key.dialects.contains(&dialect))
}

const FORMS: &str = "a target is written as mysql://user@host:port/database, \
                     postgres://user@host:port/database or sqlite:path";

struct UrlReader {
    redacted: String,
    /// The query has a bare @, perhaps the end of a password with a bare ?: it must not be quoted.
    may_be_password: bool,
    /// Hosts and ports as written.
    hosts: Vec<(String, Option<u16>)>,
    socket: Option<String>,
    target: TargetUrl,
}

pub(super) fn parse(text: &str) -> Result<TargetUrl, TargetError> {
    let redacted = redact_url(text);
    let Some((scheme, rest)) = text.split_once(':') else {
        return Err(
            TargetError::new(format!("The target {redacted} has no scheme.")).with_hint(FORMS)
        );
    };
    let scheme = scheme.to_ascii_lowercase();
    let dialect = match scheme.as_str() {
        "mysql" | "mariadb" => Dialect::Mysql,
        "postgres" | "postgresql" => Dialect::Postgres,
        "sqlite" => Dialect::Sqlite,
        _ => {
            let schemes = ["mysql", "mariadb", "postgres", "postgresql", "sqlite"];
            let near =
                nearest(&scheme, schemes).map(|name| format!("did you mean {name}? {FORMS}"));
            let message = format!("The target {redacted} has an unknown scheme.");
            return Err(TargetError::new(message).with_hint(near.as_deref().unwrap_or(FORMS)));
        }
    };
    let (place, query) = match rest.split_once('?') {
        Some((place, query)) => (place, Some(query)),
        None => (rest, None),
    };
    let mut reader = UrlReader {
        redacted,
        may_be_password: query.is_some_and(|query| query.contains('@')),
        hosts: Vec::new(),
        socket: None,
        target: TargetUrl {
            dialect,
            hosts: Hosts(Vec::new()),
            user: None,
            password: None,
            database: None,
            tls: TlsOptions::default(),
            options: BTreeMap::new(),
            spellings: &[],
        },
    };
    if reader.target.is_embedded() {
        reader.read_path(&scheme, place)?;
    } else {
        let Some(place) = place.strip_prefix("//") else {
            return Err(reader.wrong("lacks the // after its scheme").with_hint(FORMS));
        };
        reader.read_place(place)?;
    }
    for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        reader.read_pair(pair)?;
    }
    reader.finish()
}

impl UrlReader {
    fn wrong(&self, what: impl AsRef<str>) -> TargetError {
        TargetError::new(format!("The target {} {}.", self.redacted, what.as_ref()))
    }

    /// A piece of the query for an error message.
    fn quote<'a>(&self, text: &'a str) -> &'a str {
        if self.may_be_password { "..." } else { text }
    }

    fn decode(&self, text: &str, part: &str) -> Result<String, TargetError> {
        percent_decode(text).ok_or_else(|| {
            self.wrong(format!("has a bad percent-encoding in its {part}"))
                .with_hint("write % itself as %25, and other bytes as % and two hex digits")
        })
    }

    fn read_path(&mut self, scheme: &str, path: &str) -> Result<(), TargetError> {
        let path = self.decode(path.strip_prefix("//").unwrap_or(path), "path")?;
        if path.is_empty() {
            let form = format!("write {scheme}:path/to/file.db");
            return Err(self.wrong("names no file").with_hint(form));
        }
        if path.contains(":memory:") {
            return Err(self
                .wrong("is in memory, where no other session or command would find it")
                .with_hint("a file in /dev/shm is as fast and is shared by all sessions"));
        }
        self.target.database = Some(path);
        Ok(())
    }

    /// `user:password@host:port,host:port/database`
    fn read_place(&mut self, place: &str) -> Result<(), TargetError> {
        // The last @, so that a password with a bare @ is understood.
        let (login, rest) = match place.rsplit_once('@') {
            Some((login, rest)) => (Some(login), rest),
            None => (None, place),
        };
        if let Some(login) = login {
            let (user, password) = match login.split_once(':') {
                Some((user, password)) => (user, Some(password)),
                None => (login, None),
            };
            let user = self.decode(user, "user")?;
            self.target.user = Some(user).filter(|user| !user.is_empty());
            if let Some(password) = password {
                self.target.password = Some(Secret::new(self.decode(password, "password")?));
            }
        }
        let (hosts, database) = match rest.split_once('/') {
            Some((hosts, database)) => (hosts, Some(database)),
            None => (rest, None),
        };
        if let Some(database) = database {
            let database = self.decode(database, "database name")?;
            self.target.database = Some(database).filter(|name| !name.is_empty());
        }
        for host in hosts.split(',').filter(|_| !hosts.is_empty()) {
            let host = self.read_host(host)?;
            self.hosts.push(host);
        }
        Ok(())
    }

    fn read_host(&self, text: &str) -> Result<(String, Option<u16>), TargetError> {
        // JDBC's form, which may hold a password; nothing of it may be shown as a host's name.
        if text.contains(['(', ')', '=']) {
            return Err(self
                .wrong("has a host that is no name and no address")
                .with_hint("write mysql://user@host:port/database, without address=(...)"));
        }
        let (host, port) = if let Some(rest) = text.strip_prefix('[') {
            let Some((host, after)) = rest.split_once(']') else {
                return Err(self.wrong("has a [ without ] in its host"));
            };
            match after.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None if after.is_empty() => (host, None),
                None => return Err(self.wrong("has text after the ] of its host")),
            }
        } else {
            match text.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (text, None),
            }
        };
        let host = self.decode(host, "host")?;
        let port = match port {
            Some("") | None => None,
            Some(port) => Some(self.read_port(port)?),
        };
        Ok((host, port))
    }

    fn read_port(&self, text: &str) -> Result<u16, TargetError> {
        text.parse().ok().filter(|&port| port > 0).ok_or_else(|| {
            self.wrong("has a port that is no number from 1 to 65535").with_hint(
                "an IPv6 address needs brackets, as in [::1]:3306; a password is followed by @",
            )
        })
    }

    fn read_pair(&mut self, pair: &str) -> Result<(), TargetError> {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (key, value) = (self.decode(key, "query")?, self.decode(value, "query")?);
        if self.target.dialect != Dialect::Sqlite
            && let Some(name) = key.strip_prefix("set.")
        {
            if !is_variable(name) {
                return Err(self
                    .wrong(format!("sets {}, which is no name of a variable", self.quote(&key))));
            }
            self.target.options.insert(key, value);
            return Ok(());
        }
        let url_key =
            known_keys(self.target.dialect).find(|url_key| url_key.names.contains(&key.as_str()));
        let Some(url_key) = url_key else {
            return Err(self.unknown_key(&key));
        };
        match url_key.place {
            KeyPlace::User => self.target.user = Some(value).filter(|user| !user.is_empty()),
            KeyPlace::Password => self.target.password = Some(Secret::new(value)),
            KeyPlace::Database => {
                self.target.database = Some(value).filter(|name| !name.is_empty())
            }
            KeyPlace::Socket => self.socket = Some(value),
            KeyPlace::Host => {
                let ports = self.hosts.first().and_then(|&(_, port)| port);
                self.hosts = value.split(',').map(|host| (host.to_owned(), ports)).collect();
            }
            KeyPlace::Port => {
                let port = self.read_port(&value)?;
                if self.hosts.is_empty() {
                    self.hosts.push((String::new(), None));
                }
                self.hosts.iter_mut().for_each(|(_, written)| *written = Some(port));
            }
            KeyPlace::Tls => self.target.tls.mode = self.read_tls_mode(&key, &value)?,
            KeyPlace::Ca => self.target.tls.ca = Some(value.into()),
            KeyPlace::Cert => self.target.tls.cert = Some(value.into()),
            KeyPlace::Key => self.target.tls.key = Some(value.into()),
            KeyPlace::Option(allowed) => {
                let value = self.check(&key, value, allowed)?;
                self.target.options.insert(url_key.names[0].to_owned(), value);
            }
        }
        Ok(())
    }

    fn read_tls_mode(&self, key: &str, value: &str) -> Result<TlsMode, TargetError> {
        let lower = value.to_ascii_lowercase().replace('_', "-");
        // The words of the mysql client beside those of libpq.
        let name = match lower.as_str() {
            "disabled" => "disable",
            "preferred" => "prefer",
            "required" => "require",
            "verify-identity" => "verify-full",
            other => other,
        };
        let mode = TlsMode::ALL.into_iter().find(|mode| mode.name() == name);
        match mode {
            Some(TlsMode::Allow) if self.target.dialect == Dialect::Mysql => Err(self
                .wrong(format!("has {key}=allow, which only PostgreSQL knows"))
                .with_hint("write tls=prefer")),
            Some(mode) => Ok(mode),
            None => Err(self
                .wrong(format!("has {key}={}, which is no TLS mode", self.quote(value)))
                .with_hint("modes are disable, prefer, require, verify-ca and verify-full")),
        }
    }

    fn check(&self, key: &str, value: String, allowed: Value) -> Result<String, TargetError> {
        match allowed {
            Value::Text => Ok(value),
            Value::Number { min, max } => match value.parse::<u64>() {
                Ok(number) if (min..=max).contains(&number) => Ok(number.to_string()),
                _ => Err(self.wrong(format!(
                    "has {key}={}, but a whole number from {min} to {max} is needed",
                    self.quote(&value)
                ))),
            },
            Value::OneOf(words) => {
                let lower = value.to_ascii_lowercase();
                if words.contains(&lower.as_str()) {
                    return Ok(lower);
                }
                Err(self
                    .wrong(format!("has {key}={value}, but one of {} is needed", words.join(", "))))
            }
        }
    }

    fn unknown_key(&self, key: &str) -> TargetError {
        let mut names: Vec<&str> =
            known_keys(self.target.dialect).flat_map(|key| key.names.iter().copied()).collect();
        if self.target.dialect != Dialect::Sqlite {
            names.push("set.NAME");
        }
        if self.may_be_password {
            return self
                .wrong("has an unknown key in its query")
                .with_hint("a ? in a password is written %3F, and an @ in the query %40");
        }
        let error = self.wrong(format!("has the unknown key `{key}` in its query"));
        match nearest(key, names.iter().copied()) {
            Some(name) => error.with_hint(format!("did you mean `{name}`?")),
            None => error.with_hint(format!("known keys are {}", names.join(", "))),
        }
    }

    fn finish(mut self) -> Result<TargetUrl, TargetError> {
        let hosts = Hosts(self.addresses()?);
        let TlsOptions { cert, key, .. } = &self.target.tls;
        for (given, missing, name) in [(cert, key, "key="), (key, cert, "cert=")] {
            if given.is_some() && missing.is_none() {
                return Err(self
                    .wrong(format!("lacks {name}"))
                    .with_hint("a client certificate and its private key are given together"));
            }
        }
        Ok(TargetUrl { hosts, ..self.target })
    }

    fn addresses(&mut self) -> Result<Vec<Address>, TargetError> {
        if self.target.is_embedded() {
            return Ok(Vec::new());
        }
        if let Some(socket) = self.socket.take() {
            let is_elsewhere = |(host, _): &(String, Option<u16>)| {
                !matches!(host.as_str(), "" | "localhost" | "127.0.0.1")
            };
            if self.hosts.iter().any(is_elsewhere) {
                return Err(self
                    .wrong("has both a socket and a host of another machine")
                    .with_hint("write mysql://user@localhost/database?socket=/path"));
            }
            if !socket.starts_with('/') {
                return Err(self.wrong("has a socket whose path does not begin with /"));
            }
            return Ok(vec![Address::Unix(socket.into())]);
        }
        if self.hosts.is_empty() {
            self.hosts.push((String::new(), None));
        }
        let dialect = self.target.dialect;
        let address = |(host, port): (String, Option<u16>)| {
            let port = port.unwrap_or_else(|| default_port(dialect));
            match host.as_str() {
                "" => Address::Tcp { host: "localhost".to_owned(), port },
                folder if folder.starts_with('/') && dialect == Dialect::Postgres => {
                    postgres_socket(folder, port)
                }
                path if path.starts_with('/') => Address::Unix(path.into()),
                _ => Address::Tcp { host, port },
            }
        };
        Ok(std::mem::take(&mut self.hosts).into_iter().map(address).collect())
    }
}

fn is_variable(name: &str) -> bool {
    // The name goes into a SET statement as it is.
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    !name.is_empty() && name.chars().all(is_part)
}

/// The URL without its password, however broken it is: hides all text between the first colon after the slashes and the
/// last @, ports that are no numbers, and `password=`.
pub(super) fn redact(text: &str) -> String {
    let (head, rest) = match text.find("://") {
        Some(at) => text.split_at(at + 3),
        None => ("", text),
    };
    let mut url = head.to_owned();
    let rest = match (rest.find(':'), rest.rfind('@')) {
        (Some(colon), Some(at)) if colon < at => {
            url.push_str(&rest[..=colon]);
            url.push_str("***");
            &rest[at..]
        }
        _ => rest,
    };
    let (place, query) = match rest.split_once('?') {
        Some((place, query)) => (place, Some(query)),
        None => (rest, None),
    };
    url.push_str(&redact_ports(place, !head.is_empty()));
    for (index, pair) in query.into_iter().flat_map(|query| query.split('&')).enumerate() {
        url.push(if index == 0 { '?' } else { '&' });
        match pair.split_once('=') {
            Some((key, _)) if key.to_ascii_lowercase().contains("pass") || key.contains('%') => {
                let _ = write!(url, "{key}=***");
            }
            _ => url.push_str(pair),
        }
    }
    url
}

fn redact_ports(place: &str, has_hosts: bool) -> String {
    let end = place.find('/').unwrap_or(place.len());
    let (hosts, database) = place.split_at(end);
    // Brackets hold IPv6 addresses, whose colons do not begin a port.
    match hosts.rfind(':') {
        Some(colon) if has_hosts && !hosts.contains('[') => {
            let is_port = |part: &str| {
                part.split_once(':').is_none_or(|(_, port)| {
                    port.bytes().all(|byte| byte.is_ascii_digit()) && port.len() <= 5
                })
            };
            if hosts.split(',').all(is_port) {
                return place.to_owned();
            }
            let first = hosts.find(':').unwrap_or(colon);
            format!("{}:***", &hosts[..first])
        }
        _ => format!("{hosts}{database}"),
    }
}

/// `None` for malformed text or text that is not UTF-8.
pub(super) fn percent_decode(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b'%' {
            let digit = |index: usize| char::from(*bytes.get(index)?).to_digit(16);
            decoded.push((digit(at + 1)? * 16 + digit(at + 2)?) as u8);
            at += 3;
        } else {
            decoded.push(bytes[at]);
            at += 1;
        }
    }
    String::from_utf8(decoded).ok()
}

/// Appends `text` percent-encoded, except letters, digits, `-._~` and `also_plain`.
pub(super) fn push_encoded(url: &mut String, text: &str, also_plain: &[u8]) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || also_plain.contains(&byte) {
            url.push(char::from(byte));
        } else {
            let _ = write!(url, "%{byte:02X}");
        }
    }
}

/// The URL of a target, with `password` (encoded) in place of its own.
pub(super) fn print(target: &TargetUrl, password: &str) -> String {
    let mut query: Vec<(&str, String)> = Vec::new();
    let mut url = format!("{}:", target.scheme());
    if target.is_embedded() {
        push_encoded(&mut url, target.database.as_deref().unwrap_or_default(), b"/:");
    } else {
        url.push_str("//");
        push_login(&mut url, target, password);
        push_hosts(&mut url, &mut query, target);
        if let Some(database) = &target.database {
            url.push('/');
            push_encoded(&mut url, database, b"");
        }
    }
    if target.tls.mode != TlsMode::default() {
        query.push(("tls", target.tls.mode.name().to_owned()));
    }
    let files = [("ca", &target.tls.ca), ("cert", &target.tls.cert), ("key", &target.tls.key)];
    for (key, file) in files {
        query.extend(file.as_ref().map(|path| (key, path.display().to_string())));
    }
    query.extend(target.options.iter().map(|(key, value)| (key.as_str(), value.clone())));
    for (index, (key, value)) in query.iter().enumerate() {
        url.push(if index == 0 { '?' } else { '&' });
        push_encoded(&mut url, key, b"");
        url.push('=');
        push_encoded(&mut url, value, b"/:,");
    }
    url
}

fn push_login(url: &mut String, target: &TargetUrl, password: &str) {
    if let Some(user) = &target.user {
        push_encoded(url, user, b"");
    }
    if target.password.is_some() {
        url.push(':');
        url.push_str(password);
    }
    if target.user.is_some() || target.password.is_some() {
        url.push('@');
    }
}

fn push_hosts(url: &mut String, query: &mut Vec<(&str, String)>, target: &TargetUrl) {
    if let ([Address::Unix(path)], Dialect::Mysql) = (target.hosts.0.as_slice(), target.dialect) {
        url.push_str("localhost");
        query.push(("socket", path.display().to_string()));
        return;
    }
    for (index, address) in target.hosts.0.iter().enumerate() {
        if index > 0 {
            url.push(',');
        }
        match address {
            Address::Tcp { host, port } if host.contains(':') => {
                url.push('[');
                push_encoded(url, host, b":");
                let _ = write!(url, "]:{port}");
            }
            Address::Tcp { host, port } => {
                push_encoded(url, host, b"");
                let _ = write!(url, ":{port}");
            }
            Address::Unix(path) => {
                let path = path.display().to_string();
                match path.rsplit_once("/.s.PGSQL.") {
                    Some((folder, port)) if target.dialect == Dialect::Postgres => {
                        push_encoded(url, folder, b"");
                        let _ = write!(url, ":{port}");
                    }
                    _ => push_encoded(url, &path, b""),
                }
            }
        }
    }
}
