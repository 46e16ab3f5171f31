//! Connection strings of libpq as lists of keywords and values: `host=db port=5433` and
//! `postgres://user@host/db?key=value`. Errors use libpq's words, but hide passwords.

use super::TargetError;
use super::text::{percent_decode, redact};

pub(super) type Pairs = Vec<(String, String)>;

/// True when libpq takes a database name for a connection string.
pub(super) fn is_connection_string(text: &str) -> bool {
    is_uri(text) || text.contains('=')
}

pub(super) fn read(text: &str) -> Result<Pairs, TargetError> {
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
    let mut rest = text.trim_start_matches(is_space);
    while !rest.is_empty() {
        let end = rest.find(|c| c == '=' || is_space(c)).unwrap_or(rest.len());
        let (keyword, after) = rest.split_at(end);
        let Some(after) = after.trim_start_matches(is_space).strip_prefix('=') else {
            return Err(TargetError::new(format!(
                "missing \"=\" after \"{keyword}\" in connection info string"
            ))
            .with_hint("values with blanks are put into single quotes: options='-c geqo=off'"));
        };
        let (value, after) = read_value(after.trim_start_matches(is_space))?;
        pairs.push((keyword.to_owned(), value));
        rest = after.trim_start_matches(is_space);
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
    let mut add = |keyword: &str, value: &str| {
        decode(value, keyword == "password").map(|value| pairs.push((keyword.to_owned(), value)))
    };
    let before_path = &text[..text.find('/').unwrap_or(text.len())];
    let rest = match before_path.split_once('@') {
        None => text,
        Some((login, _)) => {
            let (user, password) = login.split_once(':').unwrap_or((login, ""));
            if !user.is_empty() {
                add("user", user)?;
            }
            if !password.is_empty() {
                add("password", password)?;
            }
            &text[login.len() + 1..]
        }
    };
    let place_end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (place, rest) = rest.split_at(place_end);
    let (hosts, ports) = read_hosts(uri, place)?;
    if !hosts.trim_matches(',').is_empty() {
        add("host", &hosts)?;
    }
    if !ports.trim_matches(',').is_empty() {
        add("port", &ports)?;
    }
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    if let Some(database) = path.strip_prefix('/').filter(|name| !name.is_empty()) {
        add("dbname", database)?;
    }
    for pair in query.split('&').filter(|_| !query.is_empty()) {
        pairs.push(read_parameter(pair)?);
    }
    Ok(pairs)
}

/// The hosts and ports of a URI, each joined by commas.
fn read_hosts(uri: &str, place: &str) -> Result<(String, String), TargetError> {
    let mut hosts = Vec::new();
    let mut ports = Vec::new();
    for part in place.split(',') {
        let (host, port) = match part.strip_prefix('[') {
            None => part.split_once(':').unwrap_or((part, "")),
            Some(inside) => {
                let wrong = |what: &str| {
                    TargetError::new(format!("{what}: \"{}\"", redact(uri))).with_hint(
                        "an IPv6 address stands in brackets, a port after it: [::1]:5432",
                    )
                };
                let (host, after) = inside.split_once(']').ok_or_else(|| {
                    wrong("end of string reached when looking for matching \"]\" in IPv6 host address in URI")
                })?;
                if host.is_empty() {
                    return Err(wrong("IPv6 host address may not be empty in URI"));
                }
                match after.strip_prefix(':') {
                    Some(port) => (host, port),
                    None if after.is_empty() => (host, ""),
                    None => {
                        return Err(wrong("unexpected character in URI (expected \":\" or \"/\")"));
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

fn decode(text: &str, is_secret: bool) -> Result<String, TargetError> {
    let shown = if is_secret { "***" } else { text };
    let decoded = percent_decode(text).ok_or_else(|| {
        TargetError::new(format!("invalid percent-encoded token: \"{shown}\""))
            .with_hint("write % itself as %25, and other bytes as % and two hex digits")
    })?;
    if decoded.contains('\0') {
        let message = format!("forbidden value %00 in percent-encoded value: \"{shown}\"");
        return Err(TargetError::new(message));
    }
    Ok(decoded)
}
