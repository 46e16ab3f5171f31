//! Printing target URLs.

use super::TargetUrl;
use super::text::push_encoded;
use crate::net::{Address, TlsMode};
use dyno_core::Dialect;
use std::fmt::Write as _;

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
