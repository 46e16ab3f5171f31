//! Text work on URLs: percent-encoding, hiding passwords.

use std::fmt::Write as _;

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
