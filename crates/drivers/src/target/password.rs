//! Passwords that are not in the URL.

use super::url::push_encoded;
use super::{Secret, TargetUrl, socket_parts, url};
use crate::net::{Address, TlsMode, TlsOptions};
use dyno_core::Dialect;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundPassword {
    pub password: Option<Secret>,
    /// From `~/.my.cnf`, when the URL has no user.
    pub user: Option<String>,
    /// From `~/.my.cnf`, for a URL without TLS options.
    pub tls: TlsOptions,
    /// A sentence about an ignored file.
    pub warning: Option<String>,
}

impl FoundPassword {
    /// Adds to a target what it lacks.
    pub fn complete(self, target: &mut TargetUrl) {
        target.password = self.password;
        target.user = target.user.take().or(self.user);
        if target.tls == TlsOptions::default() {
            target.tls = self.tls;
        }
    }
}

/// Searches the password of a target: in its URL, in the environment variable `DYNO_PASSWORD_NAME` (`name` in capitals,
/// `_` for all but letters and digits), in `PGPASSWORD` (PostgreSQL), and in `~/.pgpass` or the file of `passfile=` or
/// `PGPASSFILE` (PostgreSQL), or in `~/.my.cnf` (MySQL).
pub fn find_password(target: &TargetUrl, name: Option<&str>) -> FoundPassword {
    find_with(target, name, &|variable| std::env::var(variable).ok())
}

pub(super) fn find_with(
    target: &TargetUrl,
    name: Option<&str>,
    variable: &dyn Fn(&str) -> Option<String>,
) -> FoundPassword {
    let mut credentials = FoundPassword::default();
    if target.is_embedded() {
        return credentials;
    }
    // Also with a known password: the file may have the user and TLS options.
    if target.dialect == Dialect::Mysql
        && let Some(path) = home_file(".my.cnf", variable)
    {
        credentials = read_my_cnf(&path);
        credentials.user = credentials.user.filter(|_| target.user.is_none());
    }
    // PGPASSWORD is libpq's own variable, as its programs take it.
    let libpq_variable = (target.dialect == Dialect::Postgres).then(|| "PGPASSWORD".to_owned());
    let variables = name.map(password_variable).into_iter().chain(libpq_variable);
    let mut values = variables.filter_map(|name| variable(&name).filter(|text| !text.is_empty()));
    let password = target.password.clone();
    if let Some(password) = password.or_else(|| values.next().map(Secret::new)) {
        return FoundPassword { password: Some(password), ..credentials };
    }
    if target.dialect == Dialect::Postgres {
        let passfile = target.options.get("passfile").cloned().or_else(|| variable("PGPASSFILE"));
        let passfile = passfile.map(PathBuf::from).or_else(|| home_file(".pgpass", variable));
        if let Some(path) = passfile {
            credentials = read_pgpass(&path, target, variable("USER"));
        }
    }
    credentials
}

fn home_file(name: &str, variable: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    Some(PathBuf::from(variable("HOME")?).join(name))
}

fn password_variable(name: &str) -> String {
    let name = name.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    format!("DYNO_PASSWORD_{}", name.to_ascii_uppercase())
}

/// The text of a password file, or a warning that it is ignored. Like libpq, without a warning if no file is found: in
/// the home folder of another user it can't be.
fn read_private(path: &Path, forbidden: u32) -> Result<String, Option<String>> {
    let Ok(meta) = fs::metadata(path) else { return Err(None) };
    let ignored_warning =
        |why: &str| Some(format!("{} was ignored because {why}.", path.display()));
    if !meta.is_file() {
        return Err(ignored_warning("it is not a plain file"));
    }
    if meta.permissions().mode() & forbidden != 0 {
        return Err(ignored_warning(&format!(
            "others may use it; run `chmod 600 {}`",
            path.display()
        )));
    }
    // Lines in another encoding must not hide the others.
    let bytes =
        fs::read(path).map_err(|error| ignored_warning(&format!("it can't be read: {error}")))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Like libpq: a file that group or others can use is ignored, and the first line that fits wins.
fn read_pgpass(path: &Path, target: &TargetUrl, system_user: Option<String>) -> FoundPassword {
    let text = match read_private(path, 0o077) {
        Ok(text) => text,
        Err(warning) => return FoundPassword { warning, ..FoundPassword::default() },
    };
    let user = target.user.clone().or(system_user).unwrap_or_default();
    let database = target.database.as_ref().unwrap_or(&user);
    let password = target.hosts.0.iter().find_map(|address| {
        let (host, port) = libpq_words(address);
        let connection_fields = [host.as_str(), port.as_str(), database.as_str(), user.as_str()];
        text.lines().find_map(|line| matching_password(line, &connection_fields))
    });
    FoundPassword { password: password.map(Secret::new), ..FoundPassword::default() }
}

/// Host and port in the form of `.pgpass`.
fn libpq_words(address: &Address) -> (String, String) {
    match address {
        Address::Tcp { host, port } => (host.clone(), port.to_string()),
        Address::Unix(path) => {
            let (folder, port) = socket_parts(path).unwrap_or_default();
            let is_default = matches!(&*folder, "/var/run/postgresql" | "/run/postgresql" | "/tmp");
            (if is_default { "localhost".to_owned() } else { folder }, port)
        }
    }
}

/// The password of `host:port:database:user:password` if the line fits. `*` fits everything; `\` escapes.
fn matching_password(line: &str, connection_fields: &[&str; 4]) -> Option<String> {
    if line.starts_with('#') {
        return None;
    }
    let mut remaining = line;
    for expected in connection_fields {
        let (field, is_star, after) = field(remaining)?;
        if !is_star && field != *expected {
            return None;
        }
        remaining = after;
    }
    let mut password = String::new();
    let mut letters = remaining.chars();
    while let Some(letter) = letters.next() {
        password.push(if letter == '\\' { letters.next().unwrap_or('\\') } else { letter });
    }
    Some(password)
}

/// The text up to the next bare colon, whether it is a bare `*`, and the text behind the colon.
fn field(text: &str) -> Option<(String, bool, &str)> {
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            ':' => return Some((value, &text[..at] == "*", &text[at + 1..])),
            '\\' => value.push(letters.next()?.1),
            _ => value.push(letter),
        }
    }
    None
}

/// `user`, `password` and the `ssl-` options of the groups of clients. As in MySQL's own clients, a file that all can
/// write is ignored, and the last of repeated lines counts.
fn read_my_cnf(path: &Path) -> FoundPassword {
    let text = match read_private(path, 0o002) {
        Ok(text) => text,
        Err(warning) => return FoundPassword { warning, ..FoundPassword::default() },
    };
    let mut credentials = FoundPassword::default();
    let mut in_client = false;
    let mut tls = "mysql://?".to_owned();
    for line in text.lines().map(str::trim) {
        if let Some(group) = line.strip_prefix('[') {
            let group = group.split(']').next().unwrap_or_default();
            in_client = ["client", "client-server", "client-mariadb"].contains(&group);
        } else if in_client && let Some((key, value)) = line.split_once('=') {
            match key.trim().replace('_', "-").as_str() {
                "user" => credentials.user = Some(my_cnf_value(value)),
                "password" => credentials.password = Some(Secret::new(my_cnf_value(value))),
                key @ ("ssl-mode" | "ssl-ca" | "ssl-cert" | "ssl-key") => {
                    tls.push_str(&format!("{key}="));
                    push_encoded(&mut tls, &my_cnf_value(value), b"");
                    tls.push('&');
                }
                _ => {}
            }
        }
    }
    match url::parse(&tls) {
        Ok(target) => credentials.tls = target.tls,
        Err(error) => {
            let (file, why) = (path.display(), error.message);
            credentials.warning = Some(format!("The ssl options in {file} were ignored. {why}"));
        }
    }
    if credentials.tls.ca.is_some() && credentials.tls.mode == TlsMode::Prefer {
        credentials.tls.mode = TlsMode::VerifyCa;
    }
    credentials
}

/// A value of an option file, without quotes, escapes and the comment at its end.
fn my_cnf_value(text: &str) -> String {
    let text = text.trim();
    let quote = text.chars().next().filter(|first| matches!(first, '\'' | '"'));
    let mut value = String::new();
    let mut letters = text.chars().skip(usize::from(quote.is_some()));
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some('n') => value.push('\n'),
                Some('t') => value.push('\t'),
                Some('r') => value.push('\r'),
                Some('b') => value.push('\u{8}'),
                Some('s') => value.push(' '),
                Some(other @ ('\\' | '"' | '\'')) => value.push(other),
                other => value.extend(['\\'].into_iter().chain(other)),
            },
            '#' if quote.is_none() => return value.trim_end().to_owned(),
            letter if Some(letter) == quote => break,
            letter => value.push(letter),
        }
    }
    value
}
