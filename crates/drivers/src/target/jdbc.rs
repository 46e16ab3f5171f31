//! JDBC URLs of Java's properties files. A URL is rewritten as one of dyno's own; parameters without a meaning here are
//! reported by name.

use super::url::{percent_decode, push_encoded, redact};
use super::{Spellings, TargetError, TargetUrl, url};
use crate::net::TlsMode;
use dyno_core::nearest;

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
    /// For this reason.
    Ignored(&'static str),
}

use Meaning::{
    Balance, Compression, ConnectMs, ConnectS, Ignored, Same, ServerType, SessionVariables, Tls,
};

const KEY_STORE: &str = "a Java key store can't be read; give PEM files to dyno's own URL (ca=, \
                         cert=, key=)";
const TIMEOUT: &str = "dyno waits for answers as long as the server takes";
const BATCHES: &str = "a batch takes one flight in any case";
const RECONNECT: &str = "dyno replaces a lost connection by itself";

/// In lower case, as both drivers of MySQL compare them.
#[rustfmt::skip]
const MYSQL: &[(&str, Meaning)] = &[
    ("user", Same("user")), ("username", Same("user")), ("password", Same("password")),
    ("password1", Same("password")), ("localsocket", Same("socket")),
    ("serversslcert", Same("ca")), ("connecttimeout", ConnectMs),
    ("usessl", Tls), ("requiressl", Tls), ("verifyservercertificate", Tls), ("sslmode", Tls),
    ("trustservercertificate", Tls), ("disablesslhostnameverification", Tls),
    ("sessionvariables", SessionVariables),
    ("allowpublickeyretrieval", Same("get_server_public_key")),
    ("serverrsapublickeyfile", Same("server_public_key")), ("allowcleartext", Same("allow_cleartext")),
    ("trustcertificatekeystoreurl", Ignored(KEY_STORE)),
    ("clientcertificatekeystoreurl", Ignored(KEY_STORE)),
    ("truststore", Ignored(KEY_STORE)), ("keystore", Ignored(KEY_STORE)),
    ("sockettimeout", Ignored(TIMEOUT)), ("querytimeout", Ignored(TIMEOUT)),
    ("rewritebatchedstatements", Ignored(BATCHES)), ("usebulkstmts", Ignored(BATCHES)),
    ("allowmultiqueries", Ignored("no statement of TPC-C is several")),
    ("usecompression", Compression),
    ("autoreconnect", Ignored(RECONNECT)), ("autoreconnectforpools", Ignored(RECONNECT)),
    ("useserverprepstmts", Ignored("statements are prepared in any case")),
    ("characterencoding", Ignored("texts are sent in UTF-8")),
    ("useunicode", Ignored("texts are sent in UTF-8")),
    ("servertimezone", Ignored("points in time are written in UTC")),
    ("connectiontimezone", Ignored("points in time are written in UTC")),
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

/// Settings of the Java driver itself, without a meaning here.
const MYSQL_TUNING: &str = "truststorepassword keystorepassword trustcertificatekeystorepassword \
    clientcertificatekeystorepassword allowloadlocalinfile allowlocalinfile cacheprepstmts \
    prepstmtcachesize prepstmtcachesqllimit cachecallablestmts cacheresultsetmetadata metadatacachesize \
    cacheserverconfiguration elidesetautocommits uselocalsessionstate uselocaltransactionstate alwayssendsetisolation \
    maintaintimestats useconfigs zerodatetimebehavior tinyint1isbit nullcatalogmeanscurrent connectioncollation \
    tcpkeepalive tcpnodelay defaultfetchsize usecursorfetch useaffectedrows failoverreadonly maxreconnects \
    initialtimeout readonlypropagatestoserver useinformationschema usereadaheadinput useunbufferedinput \
    dumpqueriesonexception logger usepipelineauth permitmysqlscheme uselegacydatetimecode \
    usejdbccomplianttimezoneshift loadbalanceautocommitstatementthreshold loadbalanceblacklisttimeout";

/// The driver of PostgreSQL compares them as written; here in lower case too.
#[rustfmt::skip]
const POSTGRES: &[(&str, Meaning)] = &[
    ("user", Same("user")), ("password", Same("password")), ("sslrootcert", Same("ca")),
    ("sslcert", Same("cert")), ("sslkey", Same("key")), ("applicationname", Same("application_name")),
    ("options", Same("options")), ("currentschema", Same("set.search_path")),
    ("connecttimeout", ConnectS), ("logintimeout", ConnectS), ("targetservertype", ServerType),
    ("allowcleartext", Same("allow_cleartext")), ("loadbalancehosts", Balance), ("ssl", Tls), ("sslmode", Tls), ("sslfactory", Tls),
    ("sslpassword", Ignored("give a private key without a password")),
    ("sockettimeout", Ignored(TIMEOUT)), ("rewritebatchedinserts", Ignored(BATCHES)),
    ("preparethreshold", Ignored("statements are prepared in any case")),
    ("autosave", Ignored("no savepoints are made")),
];

const POSTGRES_SPELLINGS: Spellings = &[
    ("tls=", "sslmode="),
    ("ca=FILE", "sslrootcert=FILE"),
    ("cert=FILE and key=FILE", "sslcert=FILE and sslkey=FILE"),
    ("allow_cleartext=true", "allowCleartext=true"),
    ("connect_timeout_s", "connectTimeout"),
];

const POSTGRES_TUNING: &str = "gssencmode assumeminserverversion preparedstatementcachequeries \
    preparedstatementcachesizemib binarytransfer binarytransferenable binarytransferdisable defaultrowfetchsize \
    tcpkeepalive tcpnodelay stringtype loglevel loggerlevel loggerfile logunclosedconnections protocolversion \
    prefersimple prefersimplequery prefer_query_mode preferquerymode sendbuffersize receivebuffersize readonly \
    hostrecheckseconds sslhostnameverifier charset compatible disablecolumnsanitiser allowencodingchanges";

/// A URL, JDBC's or dyno's own, without its passwords, however broken it is.
pub fn redact_url(text: &str) -> String {
    let mut text = redact(text);
    let small = text.to_ascii_lowercase();
    // `address=(host=h)(password=p)` and `(host=h,password=p)`, complete or not; and `;` in place of `?`.
    if let Some(open) = small.find(['(', ';'])
        && small[open..].contains("pass")
    {
        let end = small[open..].rfind(')').map_or(text.len(), |close| open + close + 1);
        let end = if small[end..].contains("pass") { text.len() } else { end };
        text.replace_range(open..end, "(***)");
    }
    text
}

pub(super) fn parse(text: &str) -> Result<Jdbc, TargetError> {
    let wrong = |what: &str| TargetError::new(format!("The URL {} {what}.", redact_url(text)));
    const FORMS: &str = "write jdbc:mysql://host:port/database, jdbc:mariadb://host:port/database, \
                         jdbc:postgresql://host:port/database, or a URL of dyno such as sqlite:path";
    let parts = text.trim().splitn(3, ':').collect::<Vec<_>>();
    let &[jdbc, name, rest] = parts.as_slice() else {
        return Err(wrong("is no JDBC URL").with_hint(FORMS));
    };
    if !jdbc.eq_ignore_ascii_case("jdbc") {
        return Err(wrong("does not begin with jdbc:").with_hint(FORMS));
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
            return Err(wrong("names a database that dyno doesn't speak with").with_hint(FORMS));
        }
    };
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    if place.contains(';') {
        return Err(wrong("has a `;` where `?` begins parameters").with_hint(FORMS));
    }
    let mut reader = JdbcReader::new(driver);
    let place = reader.place(place).map_err(|what| wrong(&what).with_hint(FORMS))?;
    for pair in query.split(['&', ';']).filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        reader.parameter(name, value);
    }
    let url = reader.url(&place);
    let spellings = match driver {
        JdbcDriver::Postgres => POSTGRES_SPELLINGS,
        JdbcDriver::Mysql | JdbcDriver::Mariadb => MYSQL_SPELLINGS,
    };
    let target = TargetUrl { spellings, ..url::parse(&url)? };
    Ok(Jdbc { target, warnings: reader.warnings() })
}

struct JdbcReader {
    driver: JdbcDriver,
    /// Keys of dyno's URLs with percent-encoded values.
    pairs: Vec<(String, String)>,
    /// Words on TLS: names and values in lower case.
    tls: Vec<(String, String)>,
    is_balanced: bool,
    tuning: Vec<String>,
    notes: Vec<String>,
}

impl JdbcReader {
    fn new(driver: JdbcDriver) -> Self {
        JdbcReader {
            driver,
            pairs: Vec::new(),
            tls: Vec::new(),
            is_balanced: false,
            tuning: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// `//host:port,host:port/database` in dyno's form.
    fn place(&mut self, text: &str) -> Result<String, String> {
        let Some(at) = text.find("//") else {
            if self.driver == JdbcDriver::Postgres {
                // `jdbc:postgresql:database`: on this machine.
                return Ok(format!("/{}", text.trim_start_matches('/')));
            }
            return Err("lacks the // before its host".to_owned());
        };
        let mode = text[..at].trim_end_matches(':').to_ascii_lowercase();
        match mode.as_str() {
            "" | "failover" | "sequential" | "aurora" => {}
            "loadbalance" => self.is_balanced = true,
            "replication" => {
                self.notes.push(
                    "Of a replication URL the first host is used: all transactions may write."
                        .to_owned(),
                );
            }
            _ => return Err("has an unknown word before its //".to_owned()),
        }
        let text = &text[at + 2..];
        if !text.contains('(') {
            return Ok(text.to_owned());
        }
        let end = text.rfind(')').map_or(text.len(), |at| at + 1);
        if text[end..].contains('(') {
            return Err("has a ( without )".to_owned());
        }
        let hosts = self.key_value_hosts(&text[..end])?;
        Ok(format!("{hosts}{}", &text[end..]))
    }

    /// `address=(host=h)(port=p),(host=h,port=p)` as `h:p,h:p`.
    fn key_value_hosts(&mut self, text: &str) -> Result<String, String> {
        let mut hosts: Vec<(String, String)> = Vec::new();
        let mut rest = text;
        while let Some(open) = rest.find('(') {
            let is_new = hosts.is_empty() || rest[..open].contains(',');
            let Some((inside, after)) = rest[open + 1..].split_once(')') else {
                return Err("has a ( without )".to_owned());
            };
            if is_new {
                hosts.push(Default::default());
            }
            for pair in inside.split(',') {
                let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
                let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
                match (key.as_str(), hosts.last_mut()) {
                    ("host", Some(host)) => host.0 = value.to_owned(),
                    ("port", Some(host)) => host.1 = value.to_owned(),
                    ("type" | "protocol" | "priority", _) => {}
                    _ => self.parameter(&key, value),
                }
            }
            rest = after;
        }
        let text = |(host, port): (String, String)| {
            let host = if host.contains(':') { format!("[{host}]") } else { host };
            if port.is_empty() { host } else { format!("{host}:{port}") }
        };
        Ok(hosts.into_iter().map(text).collect::<Vec<_>>().join(","))
    }

    /// Takes one parameter with a percent-encoded value.
    fn parameter(&mut self, name: &str, value: &str) {
        let small = name.trim().to_ascii_lowercase();
        let (table, tuning) = match self.driver {
            JdbcDriver::Postgres => (POSTGRES, POSTGRES_TUNING),
            _ => (MYSQL, MYSQL_TUNING),
        };
        let tuning = tuning.split_whitespace();
        if tuning.clone().any(|known| known == small) {
            return self.tuning.push(name.to_owned());
        }
        let Some(&(_, meaning)) = table.iter().find(|(known, _)| *known == small) else {
            return self.unknown(name, table.iter().map(|&(known, _)| known).chain(tuning));
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
            Ignored(why) => {
                self.notes.push(format!("The JDBC parameter {name} is ignored: {why}."));
            }
        }
    }

    fn push(&mut self, key: &str, value: &str) {
        self.pairs.push((key.to_owned(), value.to_owned()));
    }

    fn unknown(&mut self, name: &str, known: impl Iterator<Item = &'static str>) {
        // The name may be a piece of a password with a bare &.
        let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let known = nearest(name, known);
        self.notes.push(match (is_name, known) {
            (false, _) => "A JDBC parameter whose name is none is ignored.".to_owned(),
            (true, None) => format!("The JDBC parameter {name} is unknown and ignored."),
            (true, Some(known)) => {
                format!("The JDBC parameter {name} is unknown and ignored; was {known} meant?")
            }
        });
    }

    /// 0 is no limit, which dyno doesn't have.
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

    fn is_set(&self, name: &str) -> Option<bool> {
        let (_, value) = self.tls.iter().rev().find(|(known, _)| known == name)?;
        Some(matches!(value.as_str(), "true" | "yes" | "1" | ""))
    }

    /// The mode that the driver's words mean; `None` is dyno's own default, as in two of the three drivers.
    fn tls_mode(&self) -> Option<String> {
        let named = self.tls.iter().rev().find(|(name, _)| name == "sslmode");
        if let Some((_, mode)) = named {
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
                match self.is_set("ssl")? {
                    true if is_blind => TlsMode::Require,
                    true => TlsMode::VerifyFull,
                    false => TlsMode::Disable,
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

    fn url(&mut self, place: &str) -> String {
        let place = self.first_host(place);
        let scheme = if self.driver == JdbcDriver::Postgres { "postgres" } else { "mysql" };
        if let Some(mode) = self.tls_mode() {
            self.push("tls", &mode);
        }
        let pairs: Vec<String> =
            self.pairs.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let query = if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) };
        format!("{scheme}://{place}{query}")
    }

    /// In JDBC a list of hosts is for failover: all sessions go to the first that answers. A session on a standby could
    /// not write.
    fn first_host(&mut self, place: &str) -> String {
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
            JdbcDriver::Postgres => "loadBalanceHosts=true",
            JdbcDriver::Mysql => "jdbc:mysql:loadbalance://",
            JdbcDriver::Mariadb => "jdbc:mariadb:loadbalance://",
        };
        self.notes.push(format!(
            "Of several hosts the first one is used, because the others are for failover; {remedy} \
             spreads the sessions over all."
        ));
        format!("{login}{first}{database}")
    }

    fn warnings(mut self) -> Vec<String> {
        if !self.tuning.is_empty() {
            let names = self.tuning.join(", ");
            self.notes
                .push(format!("JDBC parameters that mean nothing here are ignored: {names}."));
        }
        self.notes
    }
}
