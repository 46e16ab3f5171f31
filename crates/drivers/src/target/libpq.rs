//! Targets as libpq's programs name them: connection strings, options, environment variables,
//! defaults.

use super::conninfo::{self, is_connection_string, is_uri};
use super::url::SESSION_ATTRIBUTES;
use super::{Secret, Target, TargetError, postgres_socket};
use crate::net::{Address, Hosts, TlsMode, TlsOptions};
use dyno_core::{Dialect, nearest};
use std::collections::BTreeMap;
use std::path::Path;

/// What a program that works as libpq's do was told beside the database name.
#[derive(Clone, Copy, Debug, Default)]
pub struct LibpqOptions<'a> {
    /// `-h`: hosts or socket folders, separated by commas.
    pub host: Option<&'a str>,
    /// `-p`: a port, or as many as there are hosts.
    pub port: Option<&'a str>,
    pub user: Option<&'a str>,
    /// The `application_name` where nobody names another one.
    pub fallback_application_name: Option<&'a str>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Taken,
    /// It tunes what has no counterpart here, or asks for what is done anyway.
    Ignored,
    /// Any value but these asks for what dyno can't do.
    Only(&'static [&'static str]),
}

struct Keyword {
    name: &'static str,
    variable: &'static str,
    what: Use,
}

/// The keywords of libpq 15 to 18. Sessions always speak UTF-8, so do not change what the server
/// is told about that.
#[rustfmt::skip]
const KEYWORDS: &[Keyword] = &[
    keyword("host", "PGHOST", Use::Taken),
    keyword("hostaddr", "PGHOSTADDR", Use::Taken),
    keyword("port", "PGPORT", Use::Taken),
    keyword("dbname", "PGDATABASE", Use::Taken),
    keyword("user", "PGUSER", Use::Taken),
    keyword("password", "PGPASSWORD", Use::Taken),
    keyword("passfile", "PGPASSFILE", Use::Taken),
    keyword("connect_timeout", "PGCONNECT_TIMEOUT", Use::Taken),
    keyword("options", "PGOPTIONS", Use::Taken),
    keyword("application_name", "PGAPPNAME", Use::Taken),
    keyword("fallback_application_name", "", Use::Taken),
    keyword("sslmode", "PGSSLMODE", Use::Taken),
    keyword("sslrootcert", "PGSSLROOTCERT", Use::Taken),
    keyword("sslcert", "PGSSLCERT", Use::Taken),
    keyword("sslkey", "PGSSLKEY", Use::Taken),
    keyword("target_session_attrs", "PGTARGETSESSIONATTRS", Use::Taken),
    keyword("client_encoding", "PGCLIENTENCODING", Use::Only(&["auto", "utf8", "utf-8", "unicode", "sql_ascii"])),
    keyword("service", "PGSERVICE", Use::Only(&[])),
    keyword("channel_binding", "PGCHANNELBINDING", Use::Only(&["disable", "prefer"])),
    keyword("require_auth", "PGREQUIREAUTH", Use::Only(&[])),
    keyword("requirepeer", "PGREQUIREPEER", Use::Only(&[])),
    keyword("replication", "", Use::Only(&["false", "off", "no", "0"])),
    keyword("gssencmode", "PGGSSENCMODE", Use::Only(&["disable", "prefer"])),
    keyword("sslnegotiation", "PGSSLNEGOTIATION", Use::Only(&["postgres"])),
    keyword("sslpassword", "", Use::Only(&[])),
    keyword("sslcrl", "PGSSLCRL", Use::Only(&[])),
    keyword("sslcrldir", "PGSSLCRLDIR", Use::Only(&[])),
    keyword("ssl_min_protocol_version", "PGSSLMINPROTOCOLVERSION", Use::Only(&["TLSv1", "TLSv1.1", "TLSv1.2"])),
    keyword("ssl_max_protocol_version", "PGSSLMAXPROTOCOLVERSION", Use::Only(&["TLSv1.3"])),
    keyword("min_protocol_version", "PGMINPROTOCOLVERSION", Use::Only(&["3.0"])),
    keyword("max_protocol_version", "PGMAXPROTOCOLVERSION", Use::Ignored),
    keyword("load_balance_hosts", "PGLOADBALANCEHOSTS", Use::Ignored),
    keyword("keepalives", "", Use::Ignored),
    keyword("keepalives_idle", "", Use::Ignored),
    keyword("keepalives_interval", "", Use::Ignored),
    keyword("keepalives_count", "", Use::Ignored),
    keyword("tcp_user_timeout", "", Use::Ignored),
    keyword("sslcompression", "PGSSLCOMPRESSION", Use::Ignored),
    keyword("sslsni", "PGSSLSNI", Use::Ignored),
    keyword("sslcertmode", "PGSSLCERTMODE", Use::Ignored),
    keyword("sslkeylogfile", "", Use::Ignored),
    keyword("krbsrvname", "PGKRBSRVNAME", Use::Ignored),
    keyword("gsslib", "PGGSSLIB", Use::Ignored),
    keyword("gssdelegation", "PGGSSDELEGATION", Use::Ignored),
];

/// Environment variables that libpq hands to the server as settings of the session.
const SETTINGS: [(&str, &str); 3] =
    [("PGDATESTYLE", "set.datestyle"), ("PGTZ", "set.timezone"), ("PGGEQO", "set.geqo")];

const fn keyword(name: &'static str, variable: &'static str, what: Use) -> Keyword {
    Keyword { name, variable, what }
}

impl Target {
    /// The PostgreSQL target that a program of PostgreSQL, such as pgbench, would connect to when
    /// told this. `dbname` is a database name, or a connection string as libpq takes it there:
    /// `host=db port=5433 dbname=x` or a `postgres://` URI. What it says comes before `given`, as
    /// in libpq; then come libpq's environment variables, and its defaults: a unix socket, port
    /// 5432, the operating system's user, and a database of the user's name.
    ///
    /// With several hosts, connections rotate over them, where libpq would take the first that
    /// answers; `target_session_attrs` leaves out those that do not fit. The password file is left to [`super::find_password`].
    pub fn from_libpq(
        dbname: Option<&str>,
        given: &LibpqOptions<'_>,
    ) -> Result<Target, TargetError> {
        let variable = |name: &str| std::env::var(name).ok();
        from_libpq_with(dbname, given, &variable, system_user())
    }
}

pub(super) fn from_libpq_with(
    dbname: Option<&str>,
    given: &LibpqOptions<'_>,
    variable: &dyn Fn(&str) -> Option<String>,
    system_user: Option<String>,
) -> Result<Target, TargetError> {
    let mut words = Words(BTreeMap::new());
    for (name, value) in [("host", given.host), ("port", given.port), ("user", given.user)] {
        words.set(name, value.unwrap_or_default().to_owned())?;
    }
    match dbname {
        Some(text) if is_connection_string(text) => {
            let what = if is_uri(text) { "URI query parameter:" } else { "connection option" };
            for (name, value) in conninfo::read(text)? {
                if !KEYWORDS.iter().any(|known| known.name == name) {
                    let message = format!("invalid {what} \"{name}\"");
                    return Err(TargetError::new(message).with_hint(nearest_hint(&name)));
                }
                words.set(&name, value)?;
            }
        }
        name => words.set("dbname", name.unwrap_or_default().to_owned())?,
    }
    for keyword in KEYWORDS.iter().filter(|keyword| !keyword.variable.is_empty()) {
        if !words.0.contains_key(keyword.name)
            && let Some(value) = variable(keyword.variable)
        {
            words.set(keyword.name, value)?;
        }
    }
    let application = given.fallback_application_name.unwrap_or_default();
    if !words.0.contains_key("fallback_application_name") {
        words.set("fallback_application_name", application.to_owned())?;
    }
    let mut target = words.target(system_user)?;
    for (name, option) in SETTINGS {
        if let Some(value) = variable(name).filter(|value| !value.is_empty()) {
            // libpq sends nothing for this word, and the server keeps its own default.
            if !value.eq_ignore_ascii_case("default") {
                target.options.insert(option.to_owned(), value);
            }
        }
    }
    Ok(target)
}

struct Words(BTreeMap<&'static str, String>);

impl Words {
    /// Takes the value of a known keyword, in place of an earlier one. An empty one counts as none.
    fn set(&mut self, name: &str, value: String) -> Result<(), TargetError> {
        let known = KEYWORDS.iter().find(|known| known.name == name && !value.is_empty());
        let Some(known) = known else { return Ok(()) };
        if let Use::Only(allowed) = known.what
            && !allowed.iter().any(|word| word.eq_ignore_ascii_case(&value))
        {
            let message =
                format!("The connection option {name} has a value that dyno can't honour.");
            return Err(TargetError::new(message).with_hint(match allowed {
                [] => format!("leave {name} out; its variable, if it has one, must be unset too"),
                words => format!("{name} may be {}", words.join(", ")),
            }));
        }
        if known.what == Use::Taken {
            self.0.insert(known.name, value);
        }
        Ok(())
    }

    fn take(&mut self, name: &str) -> Option<String> {
        self.0.remove(name)
    }

    fn target(mut self, system_user: Option<String>) -> Result<Target, TargetError> {
        let tls = self.tls()?;
        let is_renamed = self.0.contains_key("host") && self.0.contains_key("hostaddr");
        if is_renamed && tls.mode == TlsMode::VerifyFull {
            return Err(TargetError::new(
                "The connection option sslmode=verify-full can't be used with both host and hostaddr.",
            )
            .with_hint("leave hostaddr out, so that the host's name is looked up and verified"));
        }
        let hosts = self.addresses()?;
        let user = self.take("user").or(system_user).ok_or_else(|| {
            TargetError::new("No user is named, and this system's name for the user is not known.")
                .with_hint("name one with -U or PGUSER")
        })?;
        let database = self.take("dbname").unwrap_or_else(|| user.clone());
        let mut options = BTreeMap::new();
        options.insert("connect_timeout_s".to_owned(), self.connect_timeout_s()?.to_string());
        let fallback = self.take("fallback_application_name");
        if let Some(name) = self.take("application_name").or(fallback) {
            options.insert("application_name".to_owned(), name);
        }
        for name in ["options", "passfile"] {
            options.extend(self.take(name).map(|value| (name.to_owned(), value)));
        }
        if let Some(wanted) = self.take("target_session_attrs") {
            if !SESSION_ATTRIBUTES.contains(&wanted.as_str()) {
                let message = format!("invalid target_session_attrs value: \"{wanted}\"");
                return Err(TargetError::new(message)
                    .with_hint(format!("it is {}", SESSION_ATTRIBUTES.join(", "))));
            }
            options.insert("target_session_attrs".to_owned(), wanted);
        }
        Ok(Target {
            dialect: Dialect::Postgres,
            embedded: false,
            hosts: Hosts(hosts),
            user: Some(user),
            password: self.take("password").map(Secret::new),
            database: Some(database),
            tls,
            options,
        })
    }

    /// Hosts with their ports: one port serves all hosts, else there are as many.
    fn addresses(&mut self) -> Result<Vec<Address>, TargetError> {
        let (names, addresses) = (self.take("host"), self.take("hostaddr"));
        if let (Some(names), Some(addresses)) = (&names, &addresses) {
            let (names, addresses) = (names.split(',').count(), addresses.split(',').count());
            if names != addresses {
                return Err(TargetError::new(format!(
                    "could not match {names} host names to {addresses} hostaddr values"
                )));
            }
        }
        // An address says where to go; only the name on a certificate needs the name then.
        let hosts = addresses.or(names).unwrap_or_default();
        let hosts: Vec<&str> = hosts.split(',').collect();
        let ports = self.take("port").unwrap_or_default();
        let ports: Vec<u16> = ports.split(',').map(read_port).collect::<Result<_, _>>()?;
        if ports.len() != 1 && ports.len() != hosts.len() {
            return Err(TargetError::new(format!(
                "could not match {} port numbers to {} hosts",
                ports.len(),
                hosts.len()
            )));
        }
        let port_of = |index: usize| ports[if ports.len() == 1 { 0 } else { index }];
        let address = |(index, host): (usize, &&str)| read_host(host, port_of(index));
        hosts.iter().enumerate().map(address).collect()
    }

    fn tls(&mut self) -> Result<TlsOptions, TargetError> {
        let mode = self.take("sslmode");
        let ca = self.take("sslrootcert");
        let is_system = ca.as_deref() == Some("system");
        let mode = match mode.as_deref() {
            None if is_system => TlsMode::VerifyFull,
            None => TlsMode::default(),
            Some(name) => {
                let known = TlsMode::NAMES.iter().find(|(known, _)| *known == name);
                known.map(|&(_, mode)| mode).ok_or_else(|| {
                    TargetError::new(format!("invalid sslmode value: \"{name}\"")).with_hint(
                        "sslmode is disable, allow, prefer, require, verify-ca or verify-full",
                    )
                })?
            }
        };
        Ok(TlsOptions {
            mode,
            ca: ca.filter(|_| !is_system).map(Into::into),
            cert: self.take("sslcert").map(Into::into),
            key: self.take("sslkey").map(Into::into),
        })
    }

    /// libpq waits without a limit unless told otherwise; an hour comes to the same.
    fn connect_timeout_s(&mut self) -> Result<u64, TargetError> {
        const LONGEST_S: u64 = 3_600;
        let Some(text) = self.take("connect_timeout") else { return Ok(LONGEST_S) };
        let seconds: i32 = text.trim().parse().map_err(|_| {
            TargetError::new(format!(
                "invalid integer value \"{text}\" for connection option \"connect_timeout\""
            ))
        })?;
        Ok(u64::try_from(seconds).ok().filter(|&s| s > 0).map_or(LONGEST_S, |s| s.min(LONGEST_S)))
    }
}

fn nearest_hint(name: &str) -> String {
    match nearest(name, KEYWORDS.iter().map(|known| known.name)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "a connection string is written as `host=db port=5432 dbname=x user=y`".to_owned(),
    }
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

/// The socket in the folder of Debian's and Red Hat's packages, or in that of PostgreSQL itself
/// when only this one is there.
fn default_socket(port: u16) -> Address {
    let sockets = ["/var/run/postgresql", "/tmp"].map(|folder| postgres_socket(folder, port));
    let exists = |address: &&Address| matches!(address, Address::Unix(path) if path.exists());
    sockets.iter().find(exists).unwrap_or(&sockets[0]).clone()
}

/// The operating system's name of the user, from the passwd file as libpq asks for it; other
/// directories of users are not asked, but the log-in has set a variable.
fn system_user() -> Option<String> {
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
