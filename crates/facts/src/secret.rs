//! URLs that hold passwords. Passwords stay in memory: everything that is shown, stored or hashed
//! has been through [`without_password`] or [`mask_line`]. Both rather hide too much than too
//! little, as a password may contain any character.

use serde::{Deserialize, Serialize, Serializer};
use std::fmt;

/// A URL as it was given, password included. It is shown and stored without the password.
#[derive(Clone, Default, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct SecretUrl(String);

impl Serialize for SecretUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.redacted())
    }
}

impl SecretUrl {
    pub fn new(url: impl Into<String>) -> Self {
        SecretUrl(url.into())
    }

    /// The whole URL: for the driver only, never for a message, a file or a log.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The URL without the password; it is still a URL, to be used with a password from
    /// elsewhere.
    pub fn redacted(&self) -> String {
        without_password(&self.0)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn has_password(&self) -> bool {
        self.redacted() != self.0
    }
}

impl fmt::Debug for SecretUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretUrl({:?})", self.redacted())
    }
}

impl fmt::Display for SecretUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.redacted())
    }
}

const PASSWORD_KEYS: [&str; 3] = ["password", "passwd", "pwd"];

/// The URL without its password: `mysql://u:p@h/d` becomes `mysql://u@h/d`, and parameters whose
/// names end in `password`, `passwd` or `pwd` go.
fn without_password(url: &str) -> String {
    let mut out = url.to_string();
    if let Some(range) = userinfo_password(&out) {
        out.replace_range(range.start - 1..range.end, "");
    }
    let Some((base, query)) = out.split_once('?') else { return out };
    let kept: Vec<&str> = query
        .split('&')
        .filter(|part| {
            let name = part.split('=').next().unwrap_or("").to_lowercase();
            !PASSWORD_KEYS.iter().any(|key| name.ends_with(key))
        })
        .collect();
    if kept.is_empty() { base.to_string() } else { format!("{base}?{}", kept.join("&")) }
}

/// The environment variable for the password of a target.
pub fn password_variable(target: &str) -> String {
    let upper = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    format!("DYNO_PASSWORD_{}", target.chars().map(upper).collect::<String>())
}

/// Where the password of `scheme://user:password@host` stands. A password may contain `/`, `@`
/// and `:` unescaped, so it ends at the last `@` of all.
fn userinfo_password(url: &str) -> Option<std::ops::Range<usize>> {
    let start = url.find("://")? + 3;
    let end = start + url[start..].rfind('@')?;
    let colon = start + url[start..end].find(':')?;
    Some(colon + 1..end)
}

/// A line of a file with everything that may be a password replaced by `*`, character for
/// character, so that columns stay where they are.
pub fn mask_line(line: &str) -> String {
    let mut hidden: Vec<std::ops::Range<usize>> = userinfo_password(line).into_iter().collect();
    let lower = line.to_ascii_lowercase();
    for key in PASSWORD_KEYS {
        for (at, _) in lower.match_indices(key) {
            let rest = &line[at + key.len()..];
            // `password = "x"`, `"password" = "x"` and `?password=x`.
            let value = rest.trim_start_matches(['"', '\'', ' ', '\t']);
            if let Some(value) = value.strip_prefix('=') {
                let value = value.trim_start();
                hidden.push(line.len() - value.len()..line.len());
            }
        }
    }
    line.char_indices()
        .map(|(at, c)| if hidden.iter().any(|range| range.contains(&at)) { '*' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_cut_out() {
        for (url, redacted) in [
            ("mysql://u:p@h:3306/d", "mysql://u@h:3306/d"),
            ("mysql://u@h:3306/d", "mysql://u@h:3306/d"),
            ("mysql://h:3306/d", "mysql://h:3306/d"),
            ("mysql://u:p/w:x@y@h/d?ssl=on", "mysql://u@h/d?ssl=on"),
            ("postgres://u:p?q@h/d", "postgres://u@h/d"),
            ("postgres://h/d?user=u&password=p&x=1", "postgres://h/d?user=u&x=1"),
            ("postgres://h/d?sslpassword=p", "postgres://h/d"),
            ("sqlite:a@b:c.db", "sqlite:a@b:c.db"),
            ("sqlite:{run}/quickstart.db", "sqlite:{run}/quickstart.db"),
            ("", ""),
        ] {
            assert_eq!(without_password(url), redacted, "{url}");
            assert_eq!(format!("{:?}", SecretUrl::new(url)), format!("SecretUrl({redacted:?})"));
        }
    }

    #[test]
    fn lines_keep_their_length() {
        for (line, masked) in [
            ("url = \"mysql://u:pä@h/d\"", "url = \"mysql://u:**@h/d\""),
            ("password = \"geheim\" # x", "password = ************"),
            ("\"mysql-password\"=\"x\"", "\"mysql-password\"=***"),
            ("url = 'postgres://h/d?password=x'", "url = 'postgres://h/d?password=**"),
            ("workers = [1, 2]", "workers = [1, 2]"),
        ] {
            assert_eq!(mask_line(line), masked);
            assert_eq!(line.chars().count(), masked.chars().count());
        }
    }
}
