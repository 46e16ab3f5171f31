//! Reading and printing target URLs.

use super::{Secret, Target, TargetError, default_port, postgres_socket};
use crate::net::{Address, Hosts, TlsMode, TlsOptions};
use dyno_core::Dialect;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What the value of a query key may be.
enum Value {
    Text,
    Number { min: u64, max: u64 },
    OneOf(&'static [&'static str]),
}

/// Where a query key ends up.
enum Place {
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
    /// Into [`Target::options`] under this name.
    Option(&'static str, Value),
}

const TIMEOUT: Place = Place::Option("connect_timeout_s", Value::Number { min: 1, max: 3600 });

/// The keys that may stand in a query, by dialect. Later names are other clients' words.
fn place_of(dialect: Dialect, key: &str) -> Option<Place> {
    if dialect == Dialect::Sqlite {
        return Some(match key {
            "busy_timeout_ms" => {
                Place::Option("busy_timeout_ms", Value::Number { min: 0, max: 3_600_000 })
            }
            "synchronous" => {
                Place::Option("synchronous", Value::OneOf(&["off", "normal", "full", "extra"]))
            }
            "journal" => Place::Option(
                "journal",
                Value::OneOf(&["wal", "delete", "truncate", "persist", "memory", "off"]),
            ),
            _ => return None,
        });
    }
    let place = match key {
        "user" => Place::User,
        "password" => Place::Password,
        "tls" | "sslmode" | "ssl-mode" => Place::Tls,
        "ca" | "sslrootcert" | "ssl-ca" => Place::Ca,
        "cert" | "sslcert" | "ssl-cert" => Place::Cert,
        "key" | "sslkey" | "ssl-key" => Place::Key,
        "connect_timeout_s" | "connect_timeout" => TIMEOUT,
        "socket" if dialect == Dialect::Mysql => Place::Socket,
        "host" if dialect == Dialect::Postgres => Place::Host,
        "port" if dialect == Dialect::Postgres => Place::Port,
        "dbname" if dialect == Dialect::Postgres => Place::Database,
        "options" if dialect == Dialect::Postgres => Place::Option("options", Value::Text),
        "application_name" if dialect == Dialect::Postgres => {
            Place::Option("application_name", Value::Text)
        }
        _ => return None,
    };
    Some(place)
}

/// The keys to suggest, in dyno's own words.
fn known_keys(dialect: Dialect) -> &'static [&'static str] {
    match dialect {
        Dialect::Mysql => &[
            "user",
            "password",
            "tls",
            "ca",
            "cert",
            "key",
            "socket",
            "connect_timeout_s",
            "set.NAME",
        ],
        Dialect::Postgres => &[
            "user",
            "password",
            "tls",
            "sslmode",
            "ca",
            "sslrootcert",
            "cert",
            "sslcert",
            "key",
            "sslkey",
            "host",
            "port",
            "dbname",
            "options",
            "application_name",
            "connect_timeout_s",
            "set.NAME",
        ],
        Dialect::Sqlite => &["busy_timeout_ms", "synchronous", "journal"],
    }
}

const FORMS: &str = "a target is written as mysql://user@host:port/database, \
                     postgres://user@host:port/database or sqlite:path";

/// What has been read so far, and the URL for error messages.
struct Reader {
    redacted: String,
    dialect: Dialect,
    user: Option<String>,
    password: Option<Secret>,
    database: Option<String>,
    /// Host and port as written; the port of the dialect is filled in at the end.
    hosts: Vec<(String, Option<u16>)>,
    socket: Option<String>,
    tls: TlsOptions,
    options: BTreeMap<String, String>,
}

pub(super) fn parse(text: &str) -> Result<Target, TargetError> {
    let redacted = redact(text);
    let Some((scheme, rest)) = text.split_once(':') else {
        return Err(
            TargetError::new(format!("The target {redacted} has no scheme.")).with_hint(FORMS)
        );
    };
    let dialect = match scheme.to_ascii_lowercase().as_str() {
        "mysql" | "mariadb" => Dialect::Mysql,
        "postgres" | "postgresql" => Dialect::Postgres,
        "sqlite" => Dialect::Sqlite,
        _ => {
            let message = format!("The target {redacted} has an unknown scheme.");
            return Err(TargetError::new(message).with_hint(FORMS));
        }
    };
    let mut reader = Reader {
        redacted,
        dialect,
        user: None,
        password: None,
        database: None,
        hosts: Vec::new(),
        socket: None,
        tls: TlsOptions::default(),
        options: BTreeMap::new(),
    };
    let (place, query) = match rest.split_once('?') {
        Some((place, query)) => (place, Some(query)),
        None => (rest, None),
    };
    if dialect == Dialect::Sqlite {
        reader.read_path(place)?;
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

impl Reader {
    fn wrong(&self, what: impl AsRef<str>) -> TargetError {
        TargetError::new(format!("The target {} {}.", self.redacted, what.as_ref()))
    }

    fn decode(&self, text: &str, part: &str) -> Result<String, TargetError> {
        percent_decode(text).ok_or_else(|| {
            self.wrong(format!("has a bad percent-encoding in its {part}"))
                .with_hint("write % itself as %25, and other bytes as % and two hex digits")
        })
    }

    fn read_path(&mut self, path: &str) -> Result<(), TargetError> {
        let path = self.decode(path.strip_prefix("//").unwrap_or(path), "path")?;
        if path.is_empty() {
            return Err(self.wrong("names no file").with_hint("write sqlite:path/to/file.db"));
        }
        if path.contains(":memory:") {
            return Err(self
                .wrong("is in memory, where every session would have its own database")
                .with_hint("a file in /dev/shm is as fast and is shared by all sessions"));
        }
        self.database = Some(path);
        Ok(())
    }

    /// `user:password@host:port,host:port/database`
    fn read_place(&mut self, place: &str) -> Result<(), TargetError> {
        // The last @, so that a password with a bare @ is still understood.
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
            self.user = Some(user).filter(|user| !user.is_empty());
            if let Some(password) = password {
                self.password = Some(Secret::new(self.decode(password, "password")?));
            }
        }
        let (hosts, database) = match rest.split_once('/') {
            Some((hosts, database)) => (hosts, Some(database)),
            None => (rest, None),
        };
        if let Some(database) = database {
            let database = self.decode(database, "database name")?;
            self.database = Some(database).filter(|name| !name.is_empty());
        }
        for host in hosts.split(',').filter(|_| !hosts.is_empty()) {
            let host = self.read_host(host)?;
            self.hosts.push(host);
        }
        Ok(())
    }

    fn read_host(&self, text: &str) -> Result<(String, Option<u16>), TargetError> {
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
        if self.dialect != Dialect::Sqlite
            && let Some(name) = key.strip_prefix("set.")
        {
            if !is_variable(name) {
                return Err(self.wrong(format!("sets {key}, which is no name of a variable")));
            }
            self.options.insert(key, value);
            return Ok(());
        }
        let Some(place) = place_of(self.dialect, &key) else {
            return Err(self.unknown_key(&key));
        };
        match place {
            Place::User => self.user = Some(value).filter(|user| !user.is_empty()),
            Place::Password => self.password = Some(Secret::new(value)),
            Place::Database => self.database = Some(value).filter(|name| !name.is_empty()),
            Place::Socket => self.socket = Some(value),
            Place::Host => {
                let ports = self.hosts.first().and_then(|&(_, port)| port);
                self.hosts = value.split(',').map(|host| (host.to_owned(), ports)).collect();
            }
            Place::Port => {
                let port = self.read_port(&value)?;
                if self.hosts.is_empty() {
                    self.hosts.push((String::new(), None));
                }
                self.hosts.iter_mut().for_each(|(_, written)| *written = Some(port));
            }
            Place::Tls => self.tls.mode = self.read_tls_mode(&key, &value)?,
            Place::Ca => self.tls.ca = Some(value.into()),
            Place::Cert => self.tls.cert = Some(value.into()),
            Place::Key => self.tls.key = Some(value.into()),
            Place::Option(name, allowed) => {
                let value = self.check(&key, value, &allowed)?;
                self.options.insert(name.to_owned(), value);
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
        let mode = TlsMode::NAMES.iter().find(|(known, _)| *known == name).map(|&(_, mode)| mode);
        match mode {
            Some(TlsMode::Allow) if self.dialect == Dialect::Mysql => Err(self
                .wrong(format!("has {key}=allow, which only PostgreSQL knows"))
                .with_hint("write tls=prefer")),
            Some(mode) => Ok(mode),
            None => Err(self
                .wrong(format!("has {key}={value}, which is no TLS mode"))
                .with_hint("modes are disable, prefer, require, verify-ca and verify-full")),
        }
    }

    fn check(&self, key: &str, value: String, allowed: &Value) -> Result<String, TargetError> {
        match allowed {
            Value::Text => Ok(value),
            Value::Number { min, max } => match value.parse::<u64>() {
                Ok(number) if (*min..=*max).contains(&number) => Ok(number.to_string()),
                _ => Err(self.wrong(format!(
                    "has {key}={value}, but a whole number from {min} to {max} is needed"
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
        let known = known_keys(self.dialect);
        let error = self.wrong(format!("has the unknown key `{key}` in its query"));
        let nearest = known.iter().min_by_key(|name| distance(name, key));
        match nearest {
            Some(name) if distance(name, key) <= 1 + key.len() / 3 => {
                error.with_hint(format!("did you mean `{name}`?"))
            }
            _ => error.with_hint(format!("known keys are {}", known.join(", "))),
        }
    }

    fn finish(mut self) -> Result<Target, TargetError> {
        let hosts = self.addresses()?;
        for (given, missing, name) in
            [(&self.tls.cert, &self.tls.key, "key="), (&self.tls.key, &self.tls.cert, "cert=")]
        {
            if given.is_some() && missing.is_none() {
                return Err(self
                    .wrong(format!("lacks {name}"))
                    .with_hint("a client certificate and its private key are given together"));
            }
        }
        Ok(Target {
            dialect: self.dialect,
            hosts: Hosts(hosts),
            user: self.user.take(),
            password: self.password.take(),
            database: self.database.take(),
            tls: self.tls,
            options: self.options,
        })
    }

    fn addresses(&mut self) -> Result<Vec<Address>, TargetError> {
        if self.dialect == Dialect::Sqlite {
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
        let dialect = self.dialect;
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

/// Whether [`print`] shows the password.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Password {
    Hidden,
    /// For the round trip of the tests.
    #[cfg(test)]
    Shown,
}

pub(super) fn print(target: &Target, show: Password) -> String {
    let mut query: Vec<(&str, String)> = Vec::new();
    let mut url = format!("{}:", target.dialect.name());
    if target.dialect == Dialect::Sqlite {
        push_encoded(&mut url, target.database.as_deref().unwrap_or_default(), b"/:");
    } else {
        url.push_str("//");
        push_login(&mut url, target, show);
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

fn push_login(url: &mut String, target: &Target, show: Password) {
    if let Some(user) = &target.user {
        push_encoded(url, user, b"");
    }
    if let Some(password) = &target.password {
        url.push(':');
        match show {
            Password::Hidden => url.push_str("***"),
            #[cfg(test)]
            Password::Shown => push_encoded(url, password.reveal(), b""),
        }
        // Only the tests look into it.
        let _ = password;
    }
    if target.user.is_some() || target.password.is_some() {
        url.push('@');
    }
}

fn push_hosts(url: &mut String, query: &mut Vec<(&str, String)>, target: &Target) {
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

/// The URL without its password, however broken it is: hides everything between the first colon
/// after the slashes and the last @, what stands for a port but is no number, and `password=`.
fn redact(text: &str) -> String {
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

fn percent_decode(text: &str) -> Option<String> {
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

fn push_encoded(url: &mut String, text: &str, also_plain: &[u8]) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || also_plain.contains(&byte) {
            url.push(char::from(byte));
        } else {
            let _ = write!(url, "%{byte:02X}");
        }
    }
}

/// Levenshtein distance: how many letters must be changed to make one word of the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, &to) in b.iter().enumerate() {
            let changed = corner + usize::from(from != to);
            corner = row[j + 1];
            row[j + 1] = changed.min(corner + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
