//! Target URLs read and printed; percent-encoding; passwords hidden.

use super::jdbc::redact_url;
use super::{Secret, TargetError, TargetUrl, default_port, postgres_socket, socket_parts};
use crate::net::{Address, Hosts, TlsMode, TlsOptions};
use dyno_core::{Dialect, nearest};
use std::collections::BTreeMap;
use std::fmt::Write as _;

#[derive(Clone, Copy)]
enum Value {
    Text,
    Number(u64, u64),
    OneOf(&'static [&'static str]),
}

/// A key of the query: its names, also in other clients, and its dialects. The first name is its own in
/// [`TargetUrl::options`], from which [`UrlReader::finish`] takes those that have a field.
struct Key {
    names: &'static [&'static str],
    dialects: &'static [Dialect],
    value: Value,
}

const MYSQL: &[Dialect] = &[Dialect::Mysql];
const POSTGRES: &[Dialect] = &[Dialect::Postgres];
const NETWORK: &[Dialect] = &[Dialect::Mysql, Dialect::Postgres];
const SQLITE: &[Dialect] = &[Dialect::Sqlite];

/// Every key but `set.NAME`.
#[rustfmt::skip]
const KEYS: &[Key] = &[
    key(&["user"], NETWORK, Value::Text),
    key(&["password"], NETWORK, Value::Text),
    key(&["dbname"], POSTGRES, Value::Text),
    key(&["host"], POSTGRES, Value::Text),
    key(&["port"], POSTGRES, Value::Text),
    key(&["socket"], MYSQL, Value::Text),
    key(&["tls", "sslmode", "ssl-mode"], MYSQL, Value::OneOf(&["disable", "prefer", "require", "verify-ca", "verify-full"])),
    key(&["tls", "sslmode", "ssl-mode"], POSTGRES, Value::OneOf(&["disable", "allow", "prefer", "require", "verify-ca", "verify-full"])),
    key(&["ca", "sslrootcert", "ssl-ca"], NETWORK, Value::Text),
    key(&["cert", "sslcert", "ssl-cert"], NETWORK, Value::Text),
    key(&["key", "sslkey", "ssl-key"], NETWORK, Value::Text),
    key(&["connect_timeout_s", "connect_timeout"], NETWORK, Value::Number(1, 3600)),
    key(&["allow_cleartext"], NETWORK, Value::OneOf(SWITCH)),
    key(&["get_server_public_key", "get-server-public-key"], MYSQL, Value::OneOf(SWITCH)),
    key(&["server_public_key", "server-public-key-path"], MYSQL, Value::Text),
    key(&["compression", "compression-algorithms"], MYSQL, Value::OneOf(&["zlib", "uncompressed"])),
    key(&["require_auth"], POSTGRES, Value::Text),
    key(&["channel_binding"], POSTGRES, Value::OneOf(CHANNEL_BINDINGS)),
    key(&["options"], POSTGRES, Value::Text),
    key(&["application_name"], POSTGRES, Value::Text),
    key(&["load_balance_hosts"], POSTGRES, Value::OneOf(HOST_ORDERS)),
    key(&["target_session_attrs"], POSTGRES, Value::OneOf(SESSION_ATTRIBUTES)),
    key(&["passfile"], POSTGRES, Value::Text),
    key(&["busy_timeout_ms"], SQLITE, Value::Number(0, 3_600_000)),
    key(&["synchronous"], SQLITE, Value::OneOf(&["off", "normal", "full", "extra"])),
    key(&["journal"], SQLITE, Value::OneOf(&["wal", "delete", "truncate", "persist"])),
];

const SWITCH: &[&str] = &["true", "false"];

/// TLS modes of the mysql client, and those of libpq.
const MYSQL_MODES: [(&str, &str); 5] = [
    ("off", "disable"),
    ("disabled", "disable"),
    ("preferred", "prefer"),
    ("required", "require"),
    ("verify-identity", "verify-full"),
];

/// The host that a connection tries first: the first one, any, or (the default of URLs) one after the other.
pub(super) const HOST_ORDERS: &[&str] = &["disable", "random", "rotate"];

/// Demands that SCRAM is tied to the server's certificate.
pub(super) const CHANNEL_BINDINGS: &[&str] = &["disable", "prefer", "require"];

/// Kinds of servers, in libpq's words.
pub(super) const SESSION_ATTRIBUTES: &[&str] =
    &["any", "read-write", "read-only", "primary", "standby", "prefer-standby"];

/// A key of the query with all its spellings.
const fn key(names: &'static [&'static str], dialects: &'static [Dialect], value: Value) -> Key {
    Key { names, dialects, value }
}

/// Returns the keys that the query of a target's URL may have in a dialect.
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
    target: TargetUrl,
}

/// Reads a URL of dyno's own form.
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
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut reader = UrlReader {
        redacted,
        may_be_password: query.contains('@'),
        hosts: Vec::new(),
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
            return Err(reader.url_error("lacks the // after its scheme").with_hint(FORMS));
        };
        reader.read_place(place)?;
    }
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        reader.read_pair(pair)?;
    }
    reader.finish()
}

impl UrlReader {
    fn url_error(&self, what: impl AsRef<str>) -> TargetError {
        TargetError::new(format!("The target {} {}.", self.redacted, what.as_ref()))
    }

    /// A piece of the query for an error message.
    fn quote<'a>(&self, text: &'a str) -> &'a str {
        if self.may_be_password { "..." } else { text }
    }

    /// Decodes percent-encoding; `part` names the part in the error.
    fn decode(&self, text: &str, part: &str) -> Result<String, TargetError> {
        percent_decode(text).ok_or_else(|| {
            self.url_error(format!("has a bad percent-encoding in its {part}"))
                .with_hint("write % itself as %25, and other bytes as % and two hex digits")
        })
    }

    fn read_path(&mut self, scheme: &str, path: &str) -> Result<(), TargetError> {
        let path = self.decode(path.strip_prefix("//").unwrap_or(path), "path")?;
        if path.is_empty() {
            let form = format!("write {scheme}:path/to/file.db");
            return Err(self.url_error("names no file").with_hint(form));
        }
        if path.contains(":memory:") {
            return Err(self
                .url_error("is in memory, and other sessions and commands would not find it")
                .with_hint("a file in /dev/shm is as fast and is shared by all sessions"));
        }
        self.target.database = Some(path);
        Ok(())
    }

    /// `user:password@host:port,host:port/database`
    fn read_place(&mut self, place: &str) -> Result<(), TargetError> {
        // The last @, so that a password with a bare @ is understood.
        let hosts_and_database = match place.rsplit_once('@') {
            None => place,
            Some((login, hosts_and_database)) => {
                let (user, password) = login.split_once(':').unzip();
                let user = self.decode(user.unwrap_or(login), "user")?;
                self.target.user = Some(user).filter(|user| !user.is_empty());
                if let Some(password) = password {
                    self.target.password = Some(Secret::new(self.decode(password, "password")?));
                }
                hosts_and_database
            }
        };
        let (hosts, database) =
            hosts_and_database.split_once('/').unwrap_or((hosts_and_database, ""));
        let database = self.decode(database, "database name")?;
        self.target.database = Some(database).filter(|name| !name.is_empty());
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
                .url_error("has a host that is neither a name nor an address")
                .with_hint("write mysql://user@host:port/database, without address=(...)"));
        }
        let (host, port) = match text.strip_prefix('[') {
            None => text.split_once(':').unwrap_or((text, "")),
            Some(rest) => {
                let (host, after) = rest.split_once(']').unwrap_or((rest, "]"));
                match after.strip_prefix(':') {
                    Some(port) => (host, port),
                    None if after.is_empty() => (host, ""),
                    None => return Err(self.url_error("has a host with a bracket out of place")),
                }
            }
        };
        let port = if port.is_empty() { None } else { Some(self.read_port(port)?) };
        Ok((self.decode(host, "host")?, port))
    }

    fn read_port(&self, text: &str) -> Result<u16, TargetError> {
        text.parse().ok().filter(|&port| port > 0).ok_or_else(|| {
            self.url_error("has a port that isn't a number from 1 to 65535").with_hint(
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
                return Err(self.url_error(format!(
                    "sets {}, which isn't the name of a variable",
                    self.quote(&key)
                )));
            }
            self.target.options.insert(key, value);
            return Ok(());
        }
        let url_key =
            known_keys(self.target.dialect).find(|url_key| url_key.names.contains(&key.as_str()));
        let Some(url_key) = url_key else {
            return Err(self.unknown_key(&key));
        };
        let value = self.check(&key, value, url_key.value)?;
        self.target.options.insert(url_key.names[0].to_owned(), value);
        Ok(())
    }

    /// Checks a value of an option; returns it in its usual spelling.
    fn check(&self, key: &str, value: String, allowed: Value) -> Result<String, TargetError> {
        let needed = match allowed {
            Value::Text => return Ok(value),
            Value::Number(min, max) => match value.parse::<u64>() {
                Ok(number) if (min..=max).contains(&number) => return Ok(number.to_string()),
                _ => format!("a whole number from {min} to {max}"),
            },
            Value::OneOf(words) => {
                let word = value.to_ascii_lowercase().replace('_', "-");
                let mode = MYSQL_MODES.into_iter().find(|(theirs, _)| *theirs == word);
                let word = mode.map_or(word.as_str(), |(_, ours)| ours);
                if words.contains(&word) {
                    return Ok(word.to_owned());
                }
                format!("one of {}", words.join(", "))
            }
        };
        Err(self.url_error(format!("has {key}={}, but {needed} is needed", self.quote(&value))))
    }

    fn unknown_key(&self, key: &str) -> TargetError {
        let mut names: Vec<&str> =
            known_keys(self.target.dialect).flat_map(|key| key.names.iter().copied()).collect();
        if self.target.dialect != Dialect::Sqlite {
            names.push("set.NAME");
        }
        if self.may_be_password {
            return self
                .url_error("has an unknown key in its query")
                .with_hint("a ? in a password is written %3F, and an @ in the query %40");
        }
        let error = self.url_error(format!("has the unknown key `{key}` in its query"));
        match nearest(key, names.iter().copied()) {
            Some(name) => error.with_hint(format!("did you mean `{name}`?")),
            None => error.with_hint(format!("known keys are {}", names.join(", "))),
        }
    }

    /// Moves the options that are fields of the target into them.
    fn finish(mut self) -> Result<TargetUrl, TargetError> {
        let target = &mut self.target;
        if let Some(user) = target.options.remove("user") {
            target.user = Some(user).filter(|user| !user.is_empty());
        }
        if let Some(database) = target.options.remove("dbname") {
            target.database = Some(database).filter(|name| !name.is_empty());
        }
        let password = target.options.remove("password").map(Secret::new);
        target.password = password.or(target.password.take());
        let mode = target.options.remove("tls");
        let mode = TlsMode::ALL.into_iter().find(|known| mode.as_deref() == Some(known.name()));
        target.tls.mode = mode.unwrap_or_default();
        target.tls.ca = target.options.remove("ca").map(Into::into);
        target.tls.cert = target.options.remove("cert").map(Into::into);
        target.tls.key = target.options.remove("key").map(Into::into);
        let [hosts, port, socket] =
            ["host", "port", "socket"].map(|name| target.options.remove(name));
        let TlsOptions { cert, key, .. } = &self.target.tls;
        for (given, missing, name) in [(cert, key, "key="), (key, cert, "cert=")] {
            if given.is_some() && missing.is_none() {
                return Err(self
                    .url_error(format!("lacks {name}"))
                    .with_hint("a client certificate and its private key are given together"));
            }
        }
        if let Some(hosts) = hosts {
            let port = self.hosts.first().and_then(|&(_, port)| port);
            self.hosts = hosts.split(',').map(|host| (host.to_owned(), port)).collect();
        }
        if self.hosts.is_empty() {
            self.hosts.push((String::new(), None));
        }
        if let Some(port) = port {
            let port = self.read_port(&port)?;
            self.hosts.iter_mut().for_each(|(_, written)| *written = Some(port));
        }
        let hosts = Hosts(self.addresses(socket)?);
        Ok(TargetUrl { hosts, ..self.target })
    }

    /// The addresses of the hosts, or of the socket.
    fn addresses(&self, socket: Option<String>) -> Result<Vec<Address>, TargetError> {
        let dialect = self.target.dialect;
        if self.target.is_embedded() {
            return Ok(Vec::new());
        }
        if let Some(socket) = socket {
            let mut hosts = self.hosts.iter().map(|(host, _)| host.as_str());
            if hosts.any(|host| !matches!(host, "" | "localhost" | "127.0.0.1")) {
                return Err(self
                    .url_error("has both a socket and a host of another machine")
                    .with_hint("write mysql://user@localhost/database?socket=/path"));
            }
            if !socket.starts_with('/') {
                return Err(self.url_error("has a socket whose path does not begin with /"));
            }
            return Ok(vec![Address::Unix(socket.into())]);
        }
        let addresses = self.hosts.iter().map(|(host, port)| {
            let port = port.unwrap_or_else(|| default_port(dialect));
            match host.as_str() {
                "" => Address::Tcp { host: "localhost".to_owned(), port },
                folder if folder.starts_with('/') && dialect == Dialect::Postgres => {
                    postgres_socket(folder, port)
                }
                path if path.starts_with('/') => Address::Unix(path.into()),
                _ => Address::Tcp { host: host.clone(), port },
            }
        });
        Ok(addresses.collect())
    }
}

fn is_variable(name: &str) -> bool {
    // The name goes into a SET statement unchanged.
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'))
}

/// The URL without its password, however broken it is: hides all text between the first colon after the slashes and the
/// last @, ports that are not numbers, and `password=`.
pub(super) fn redact(text: &str) -> String {
    let (head, rest) = match text.find("://") {
        Some(at) => text.split_at(at + 3),
        None => ("", text),
    };
    let mut url = head.to_owned();
    let redacted_tail = match (rest.find(':'), rest.rfind('@')) {
        (Some(colon), Some(at)) if colon < at => {
            url.push_str(&rest[..=colon]);
            url.push_str("***");
            &rest[at..]
        }
        _ => rest,
    };
    let (place, query) = match redacted_tail.split_once('?') {
        Some((place, query)) => (place, Some(query)),
        None => (redacted_tail, None),
    };
    url.push_str(&if head.is_empty() { place.to_owned() } else { redact_ports(place) });
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

fn redact_ports(place: &str) -> String {
    let hosts = place.split('/').next().unwrap_or(place);
    let has_plain_ports = hosts.split(',').all(|part| {
        part.split_once(':').is_none_or(|(_, port)| {
            port.bytes().all(|byte| byte.is_ascii_digit()) && port.len() <= 5
        })
    });
    // Brackets hold IPv6 addresses, whose colons do not begin a port.
    match hosts.split_once(':') {
        Some((first, _)) if !hosts.contains('[') && !has_plain_ports => format!("{first}:***"),
        _ => place.to_owned(),
    }
}

/// `None` for malformed text or text that is not UTF-8.
pub(super) fn percent_decode(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut decoded = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let digits = part.get(..2).filter(|it| it.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        decoded.push(u8::from_str_radix(digits, 16).ok()?);
        decoded.extend_from_slice(&part.as_bytes()[2..]);
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

/// The URL of a target, with `password` (encoded) in place of the one it has.
pub(super) fn print(target: &TargetUrl, password: &str) -> String {
    let mut query: Vec<(&str, String)> = Vec::new();
    let mut url = format!("{}:", target.scheme());
    if target.is_embedded() {
        push_encoded(&mut url, target.database.as_deref().unwrap_or_default(), b"/:");
    } else {
        url.push_str("//");
        push_encoded(&mut url, target.user.as_deref().unwrap_or_default(), b"");
        if target.password.is_some() {
            url.push(':');
            url.push_str(password);
        }
        if target.user.is_some() || target.password.is_some() {
            url.push('@');
        }
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
        let (host, port) = match address {
            Address::Tcp { host, port } => (host.clone(), Some(port.to_string())),
            Address::Unix(path) => match socket_parts(path) {
                Some((folder, port)) if target.dialect == Dialect::Postgres => (folder, Some(port)),
                _ => (path.display().to_string(), None),
            },
        };
        if matches!(address, Address::Tcp { .. }) && host.contains(':') {
            url.push('[');
            push_encoded(url, &host, b":");
            url.push(']');
        } else {
            push_encoded(url, &host, b"");
        }
        url.extend(port.into_iter().flat_map(|port| [":".to_owned(), port]));
    }
}
