//! JDBC URLs of Java's properties files. A URL is rewritten as one of dyno's own; parameters without a meaning here are
//! reported by name.

use super::url::{percent_decode, push_encoded, redact};
use super::{Spellings, TargetError, TargetUrl, url};
use crate::net::TlsMode;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Jdbc {
    pub target: TargetUrl,
    /// Sentences about ignored parameters, without passwords.
    pub warnings: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JdbcDriver {
    Mysql,
    Mariadb,
    Postgres,
}

#[derive(Clone, Copy)]
enum Meaning {
    /// A key of dyno's URLs with the same value.
    Same(&'static str),
    ConnectMs,
    ConnectS,
    Tls,
    /// `a=1,b=2`.
    SessionVariables,
    /// `primary`, `preferSecondary` ...
    ServerType,
    Balance,
    /// `true` or `false`.
    Compression,
}

use Meaning::{Balance, Compression, ConnectMs, ConnectS, Same, ServerType, SessionVariables, Tls};

/// Names in lower case, as both drivers of MySQL compare them. All others tune the Java driver.
#[rustfmt::skip]
const MYSQL: &[(&str, Meaning)] = &[
    ("user", Same("user")), ("username", Same("user")), ("password", Same("password")),
    ("password1", Same("password")), ("localsocket", Same("socket")),
    ("serversslcert", Same("ca")), ("connecttimeout", ConnectMs),
    ("usessl", Tls), ("requiressl", Tls), ("verifyservercertificate", Tls), ("sslmode", Tls),
    ("trustservercertificate", Tls), ("disablesslhostnameverification", Tls),
    ("sessionvariables", SessionVariables), ("usecompression", Compression),
    ("allowpublickeyretrieval", Same("get_server_public_key")),
    ("serverrsapublickeyfile", Same("server_public_key")), ("allowcleartext", Same("allow_cleartext")),
];

const MYSQL_SPELLINGS: Spellings = &[
    ("tls=verify-full", "sslMode=VERIFY_IDENTITY"),
    ("tls=verify-ca", "sslMode=VERIFY_CA"),
    ("tls=require", "sslMode=REQUIRED"),
    ("tls=prefer", "sslMode=PREFERRED"),
    ("tls=disable", "sslMode=DISABLED"),
    ("ca=FILE", "serverSslCert=FILE"),
    ("get-server-public-key=true", "allowPublicKeyRetrieval=true"),
    ("server_public_key=FILE", "serverRSAPublicKeyFile=FILE"),
    ("allow_cleartext=true", "allowCleartext=true"),
    ("connect_timeout_s", "connectTimeout"),
];

/// The driver of PostgreSQL compares them as written; here in lower case too.
#[rustfmt::skip]
const POSTGRES: &[(&str, Meaning)] = &[
    ("user", Same("user")), ("password", Same("password")), ("sslrootcert", Same("ca")),
    ("sslcert", Same("cert")), ("sslkey", Same("key")), ("applicationname", Same("application_name")),
    ("options", Same("options")), ("currentschema", Same("set.search_path")),
    ("connecttimeout", ConnectS), ("logintimeout", ConnectS), ("targetservertype", ServerType),
    ("allowcleartext", Same("allow_cleartext")), ("loadbalancehosts", Balance), ("ssl", Tls), ("sslmode", Tls), ("sslfactory", Tls),
    ("channelbinding", Same("channel_binding")),
];

const POSTGRES_SPELLINGS: Spellings = &[
    ("tls=", "sslmode="),
    ("ca=FILE", "sslrootcert=FILE"),
    ("cert=FILE and key=FILE", "sslcert=FILE and sslkey=FILE"),
    ("allow_cleartext=true", "allowCleartext=true"),
    ("connect_timeout_s", "connectTimeout"),
];

/// A URL, JDBC's or dyno's own, without its passwords, however broken it is.
pub fn redact_url(text: &str) -> String {
    let mut text = redact(text);
    let small = text.to_ascii_lowercase();
    // `address=(host=h)(password=p)` and `(host=h,password=p)`, complete or not; and `;` instead of `?`.
    if let Some(open) = small.find(['(', ';'])
        && small[open..].contains("pass")
    {
        let end = small[open..].rfind(')').map_or(text.len(), |close| open + close + 1);
        let end = if small[end..].contains("pass") { text.len() } else { end };
        text.replace_range(open..end, "(***)");
    }
    text
}

/// Reads a JDBC URL, with warnings about what is ignored.
pub(super) fn parse(text: &str) -> Result<Jdbc, TargetError> {
    let url_error =
        |problem: &str| TargetError::new(format!("The URL {} {problem}.", redact_url(text)));
    const FORMS: &str = "write jdbc:mysql://host:port/database, jdbc:mariadb://host:port/database, \
                         jdbc:postgresql://host:port/database, or a URL of dyno such as sqlite:path";
    let parts = text.trim().splitn(3, ':').collect::<Vec<_>>();
    let &[jdbc, name, rest] = parts.as_slice() else {
        return Err(url_error("isn't a JDBC URL").with_hint(FORMS));
    };
    if !jdbc.eq_ignore_ascii_case("jdbc") {
        return Err(url_error("does not begin with jdbc:").with_hint(FORMS));
    }
    let driver = match name.to_ascii_lowercase().as_str() {
        "mysql" => JdbcDriver::Mysql,
        "mariadb" => JdbcDriver::Mariadb,
        "postgresql" => JdbcDriver::Postgres,
        "sqlite" => {
            let target = url::parse(&format!("sqlite:{rest}"))?;
            return Ok(Jdbc { target, warnings: Vec::new() });
        }
        _ => {
            return Err(url_error("names a database that dyno doesn't speak with").with_hint(FORMS));
        }
    };
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    if place.contains(';') {
        return Err(url_error("has a `;` where `?` begins parameters").with_hint(FORMS));
    }
    if place.contains('(') {
        return Err(url_error("has hosts in parentheses").with_hint(FORMS));
    }
    let mut reader = JdbcReader {
        driver,
        pairs: Vec::new(),
        tls: Vec::new(),
        is_balanced: false,
        ignored: Vec::new(),
    };
    let place = reader.place(place).map_err(|problem| url_error(problem).with_hint(FORMS))?;
    for pair in query.split(['&', ';']).filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        reader.parameter(name, value);
    }
    let mut warnings = Vec::new();
    let url = reader.build_url(&place, &mut warnings);
    if !reader.ignored.is_empty() {
        let names = reader.ignored.join(", ");
        warnings.push(format!("JDBC parameters that mean nothing here are ignored: {names}."));
    }
    let spellings = match driver {
        JdbcDriver::Postgres => POSTGRES_SPELLINGS,
        JdbcDriver::Mysql | JdbcDriver::Mariadb => MYSQL_SPELLINGS,
    };
    Ok(Jdbc { target: TargetUrl { spellings, ..url::parse(&url)? }, warnings })
}

struct JdbcReader {
    driver: JdbcDriver,
    /// Keys of dyno's URLs with percent-encoded values.
    pairs: Vec<(String, String)>,
    /// Words on TLS: names and values in lower case.
    tls: Vec<(String, String)>,
    is_balanced: bool,
    ignored: Vec<String>,
}

impl JdbcReader {
    /// `//host:port,host:port/database` in dyno's form.
    fn place(&mut self, text: &str) -> Result<String, &'static str> {
        let Some((mode, place)) = text.split_once("//") else {
            if self.driver == JdbcDriver::Postgres {
                // `jdbc:postgresql:database`: on this machine.
                return Ok(format!("/{}", text.trim_start_matches('/')));
            }
            return Err("lacks the // before its host");
        };
        match mode.trim_end_matches(':').to_ascii_lowercase().as_str() {
            "" | "failover" | "sequential" | "aurora" | "replication" => {}
            "loadbalance" => self.is_balanced = true,
            _ => return Err("has an unknown word before its //"),
        }
        Ok(place.to_owned())
    }

    /// Takes one parameter with a percent-encoded value.
    fn parameter(&mut self, name: &str, value: &str) {
        let small = name.trim().to_ascii_lowercase();
        let table = if self.driver == JdbcDriver::Postgres { POSTGRES } else { MYSQL };
        let Some(&(_, meaning)) = table.iter().find(|(known, _)| *known == small) else {
            // It may be a piece of a password with a bare &.
            let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            return self.ignored.push(if is_name { name } else { "..." }.to_owned());
        };
        match meaning {
            Same(key) => self.push(key, value),
            ConnectMs => self.connect_timeout(value, 1_000),
            ConnectS => self.connect_timeout(value, 1),
            Tls => self.tls.push((small, value.to_ascii_lowercase())),
            SessionVariables => self.session_variables(value),
            ServerType => self.server_type(value),
            Balance => self.is_balanced = value.eq_ignore_ascii_case("true"),
            Compression if value.eq_ignore_ascii_case("true") => self.push("compression", "zlib"),
            Compression => {}
        }
    }

    /// Adds an option of the target.
    fn push(&mut self, key: &str, value: &str) {
        self.pairs.push((key.to_owned(), value.to_owned()));
    }

    /// 0 is not a limit, which dyno doesn't have.
    fn connect_timeout(&mut self, value: &str, per_second: u64) {
        match value.parse::<u64>() {
            Ok(0) => {}
            Ok(number) => {
                let seconds = number.div_ceil(per_second).min(3_600);
                self.push("connect_timeout_s", &seconds.to_string());
            }
            // Refused where the URL is read.
            Err(_) => self.push("connect_timeout_s", value),
        }
    }

    fn session_variables(&mut self, value: &str) {
        let text = percent_decode(value).unwrap_or_else(|| value.to_owned());
        for assignment in text.split([',', ';']).filter(|part| !part.trim().is_empty()) {
            let (name, value) = assignment.split_once('=').unwrap_or((assignment, ""));
            let name = name.trim().trim_start_matches("@@").trim_start_matches("session.");
            let mut encoded = String::new();
            push_encoded(&mut encoded, value.trim().trim_matches(['\'', '"']), b"");
            self.push(&format!("set.{name}"), &encoded);
        }
    }

    fn server_type(&mut self, value: &str) {
        let attribute = match value.to_ascii_lowercase().as_str() {
            "primary" | "master" => "read-write",
            "secondary" | "slave" => "standby",
            "prefersecondary" | "preferslave" => "prefer-standby",
            "any" | "preferprimary" => "any",
            // Refused where the URL is read.
            _ => value,
        };
        self.push("target_session_attrs", attribute);
    }

    /// Returns the last value of a TLS parameter as a switch: true, yes, 1 or nothing is on, anything else off. `None`
    /// if it isn't given.
    fn is_set(&self, name: &str) -> Option<bool> {
        let (_, value) = self.tls.iter().rev().find(|(known, _)| known == name)?;
        Some(matches!(value.as_str(), "true" | "yes" | "1" | ""))
    }

    /// The mode that the driver's words mean; `None` is dyno's own default, as in two of the three drivers.
    fn tls_mode(&self) -> Option<String> {
        let sslmode = self.tls.iter().rev().find(|(name, _)| name == "sslmode");
        if let Some((_, mode)) = sslmode {
            return Some(match mode.as_str() {
                "trust" => TlsMode::Require.name().to_owned(),
                "verify_ca" => TlsMode::VerifyCa.name().to_owned(),
                "verify_identity" => TlsMode::VerifyFull.name().to_owned(),
                other => other.to_owned(),
            });
        }
        let mode = match self.driver {
            JdbcDriver::Postgres => {
                let is_blind = self.tls.iter().any(|(_, value)| value.contains("nonvalidating"));
                if !self.is_set("ssl")? {
                    TlsMode::Disable
                } else if is_blind {
                    TlsMode::Require
                } else {
                    TlsMode::VerifyFull
                }
            }
            JdbcDriver::Mysql => match (self.is_set("usessl"), self.is_set("requiressl")) {
                (Some(false), _) => TlsMode::Disable,
                _ if self.is_set("verifyservercertificate") == Some(true) => TlsMode::VerifyCa,
                (_, Some(true)) => TlsMode::Require,
                _ => return None,
            },
            JdbcDriver::Mariadb => match self.is_set("usessl") {
                Some(true) if self.is_set("trustservercertificate") == Some(true) => {
                    TlsMode::Require
                }
                Some(true) if self.is_set("disablesslhostnameverification") == Some(true) => {
                    TlsMode::VerifyCa
                }
                Some(true) => TlsMode::VerifyFull,
                _ => TlsMode::Disable,
            },
        };
        Some(mode.name().to_owned())
    }

    fn build_url(&mut self, place: &str, warnings: &mut Vec<String>) -> String {
        let place = self.first_host(place, warnings);
        let scheme = if self.driver == JdbcDriver::Postgres { "postgres" } else { "mysql" };
        if let Some(mode) = self.tls_mode() {
            self.push("tls", &mode);
        }
        let pairs: Vec<String> =
            self.pairs.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let query = if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) };
        format!("{scheme}://{place}{query}")
    }

    /// A list of hosts is for failover in JDBC: all sessions go to the first that answers. With MySQL, a session on a
    /// standby could not write.
    fn first_host(&mut self, place: &str, warnings: &mut Vec<String>) -> String {
        let (login, rest) = match place.rsplit_once('@') {
            Some((login, rest)) => (format!("{login}@"), rest),
            None => (String::new(), place),
        };
        let (hosts, database) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        let first = hosts.split(',').next().unwrap_or_default();
        if self.is_balanced || first.len() == hosts.len() {
            return place.to_owned();
        }
        let remedy = match self.driver {
            JdbcDriver::Postgres => {
                // As in libpq, each session takes the first that answers and has the wanted attributes.
                self.push("load_balance_hosts", "disable");
                return place.to_owned();
            }
            JdbcDriver::Mysql => "jdbc:mysql:loadbalance://",
            JdbcDriver::Mariadb => "jdbc:mariadb:loadbalance://",
        };
        warnings.push(format!(
            "Of several hosts the first one is used, because the others are for failover; {remedy} \
             spreads the sessions over all."
        ));
        format!("{login}{first}{database}")
    }
}
