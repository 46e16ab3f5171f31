//! URLs that hold passwords. Passwords stay in memory: everything that is shown, stored or hashed
//! has been through [`without_password`] or [`mask_line`]. Both rather hide too much than too
//! little, as a password may contain any character.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

/// A URL as it was given, password included. It is shown and stored without the password.
#[derive(Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
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
    let parameters: Vec<&str> = query
        .split('&')
        .filter(|part| {
            let name = part.split('=').next().unwrap_or("").to_lowercase();
            !PASSWORD_KEYS.iter().any(|key| name.ends_with(key))
        })
        .collect();
    if parameters.is_empty() {
        base.to_string()
    } else {
        format!("{base}?{}", parameters.join("&"))
    }
}

/// The environment variable for the password of a target.
pub fn password_variable(target: &str) -> String {
    let name = target
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' });
    format!("DYNO_PASSWORD_{}", name.collect::<String>())
}

/// The range of the password in `scheme://user:password@host`. A password may contain `/`, `@`
/// and `:` unescaped, so it ends at the last `@` of all.
fn userinfo_password(url: &str) -> Option<std::ops::Range<usize>> {
    let start = url.find("://")? + 3;
    let end = start + url[start..].rfind('@')?;
    let colon = start + url[start..end].find(':')?;
    Some(colon + 1..end)
}

/// A line of a file with everything that may be a password replaced by `*`, character for
/// character, so that columns keep their places.
pub fn mask_line(line: &str) -> String {
    let mut hidden: Vec<std::ops::Range<usize>> = userinfo_password(line).into_iter().collect();
    let lower = line.to_ascii_lowercase();
    for key in PASSWORD_KEYS {
        for (at, _) in lower.match_indices(key) {
            let after_key = &line[at + key.len()..];
            // `password = "x"`, `"password" = "x"` and `?password=x`.
            let value = after_key.trim_start_matches(['"', '\'', ' ', '\t']);
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

/// A command of the shell as it was given. It is shown, stored and hashed by [`mask_secrets`].
#[derive(Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct SecretCommand(String);

impl From<String> for SecretCommand {
    fn from(command: String) -> Self {
        SecretCommand(command)
    }
}

impl SecretCommand {
    /// The whole command: for the shell only.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl Serialize for SecretCommand {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&mask_secrets(&self.0))
    }
}

impl fmt::Debug for SecretCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretCommand({:?})", mask_secrets(&self.0))
    }
}

impl fmt::Display for SecretCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&mask_secrets(&self.0))
    }
}

/// Options whose values may be commands.
pub(crate) fn serialize_masked<S: Serializer>(
    options: &BTreeMap<String, String>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(options.iter().map(|(name, value)| (name, mask_secrets(value))))
}

/// The replacement of a secret.
const MASK: &str = "***";

/// Returns true for a text with a password that [`mask_secrets`] finds.
pub fn has_secret(text: &str) -> bool {
    !secrets(text).is_empty()
}

/// Returns true for a command that can't be executed: its password has not been stored.
pub fn is_masked(command: &str) -> bool {
    command.contains(MASK)
}

/// The text with `***` for each password: of a URL, behind `password=` and the like (`PGPASSWORD=`, `MYSQL_PWD=`), and
/// of `mysql -p...`. They are not replaced by hashes: that of a weak password would give it away.
pub fn mask_secrets(text: &str) -> String {
    let mut out = text.to_owned();
    for secret in secrets(text).into_iter().rev() {
        out.replace_range(secret, MASK);
    }
    out
}

/// A script of pgbench with masked secrets in its commands of the shell; what is SQL stays unchanged.
pub fn mask_script(text: &str) -> String {
    let mut is_shell = false;
    let masked_lines = text.split_inclusive('\n').map(|line| {
        let start = line.trim_start().to_ascii_lowercase();
        is_shell |= start.starts_with("\\shell") || start.starts_with("\\setshell");
        let masked = if is_shell { mask_secrets(line) } else { line.to_owned() };
        // A backslash at the end continues it.
        is_shell &= line.trim_end().ends_with('\\');
        masked
    });
    masked_lines.collect()
}

pub(crate) fn serialize_script<S: Serializer>(
    text: &str,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&mask_script(text))
}

/// The passwords of a text, in order.
fn secrets(text: &str) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    for (at, _) in text.match_indices("://") {
        let start = at + 3;
        let after_scheme = &text[start..];
        let authority = after_scheme.split(['/', '?', '#', ' ']).next().unwrap_or_default();
        let user = authority.rsplit_once('@').and_then(|(user, _)| user.split_once(':'));
        ranges.extend(user.map(|(name, word)| {
            let first = start + name.len() + 1;
            first..first + word.len()
        }));
    }
    let lower = text.to_ascii_lowercase();
    for key in PASSWORD_KEYS {
        for (at, _) in lower.match_indices(key) {
            let after_key = text[at + key.len()..].trim_start();
            let value = after_key.strip_prefix('=').map(str::trim_start);
            ranges.extend(value.map(|value| word_range(text, text.len() - value.len())));
        }
    }
    if ["mysql", "mariadb", "sshpass"].iter().any(|name| lower.contains(name)) {
        let options = text
            .match_indices("-p")
            .filter(|(at, _)| text[..*at].ends_with(|c: char| c.is_whitespace()));
        ranges.extend(options.map(|(at, _)| word_range(text, at + 2)));
    }
    // A variable or a command of the shell gives a password, but isn't one.
    ranges.retain(|secret| {
        let word = &text[secret.clone()];
        !word.starts_with(['$', '`']) && word.chars().any(|c| c != '*')
    });
    ranges.sort_by_key(|secret| (secret.start, std::cmp::Reverse(secret.end)));
    ranges.dedup_by(|next, kept| next.start < kept.end);
    ranges
}

/// The word that begins at `start`, without its quotes.
fn word_range(text: &str, start: usize) -> Range<usize> {
    let remaining = &text[start..];
    let quote = remaining.chars().next().filter(|c| matches!(c, '"' | '\''));
    let start = start + usize::from(quote.is_some());
    let length = text[start..].find(|c: char| match quote {
        Some(quote) => c == quote,
        None => c.is_whitespace() || "&\"',;|)".contains(c),
    });
    start..length.map_or(text.len(), |length| start + length)
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
    #[test]
    fn secrets_in_scripts_are_masked_in_their_commands_of_the_shell() {
        let script = "\\setshell x mysql -pgeheim \\\n  --password=geheim\nSELECT 'password=x';\n \\shell PGPASSWORD=geheim psql";
        let masked = "\\setshell x mysql -p*** \\\n  --password=***\nSELECT 'password=x';\n \\shell PGPASSWORD=*** psql";
        assert_eq!(mask_script(script), masked);
        assert_eq!(mask_script(masked), masked);
        let facts = crate::ScriptFacts { text: script.to_owned(), ..Default::default() };
        assert!(!serde_json::to_string(&facts).expect("JSON").contains("geheim"));
    }

    #[test]
    fn secrets_of_commands_are_masked() {
        for (text, masked) in [
            ("mysql://root:geheim@db/test", "mysql://root:***@db/test"),
            ("--mysql-password=x", "--mysql-password=***"),
            ("host=a password=b user=c", "host=a password=*** user=c"),
            ("password = \"x y\" #", "password = \"***\" #"),
            ("mysql -uroot -pgeheim test < dump.sql", "mysql -uroot -p*** test < dump.sql"),
            ("sh -c \"mysqldump -p'g h'|wc\"", "sh -c \"mysqldump -p'***'|wc\""),
            ("MYSQL_PWD=geheim mariadb test", "MYSQL_PWD=*** mariadb test"),
            (
                "PGPASSWORD='a b' psql postgres://u:p@h/d?password=q",
                "PGPASSWORD='***' psql postgres://u:***@h/d?password=***",
            ),
        ] {
            assert!(has_secret(text), "{text}");
            assert_eq!(mask_secrets(text), masked);
            assert_eq!((has_secret(masked), is_masked(masked)), (false, true), "{masked}");
            assert_eq!(mask_secrets(masked), masked);
            let stored =
                serde_json::to_string(&SecretCommand::from(text.to_owned())).expect("a string");
            assert_eq!(stored, serde_json::to_string(masked).expect("a string"));
        }
        for text in [
            "mysql://root@db:3306/test",
            "password_encryption",
            "sqlite:/tmp/a.db",
            "mysql -uroot -p test < dump.sql",
            "pg_restore -p5432 -d test dump",
            "mysql -p$SECRET test",
            "PGPASSWORD=\"$(cat secret)\" psql",
        ] {
            assert!(!has_secret(text), "{text}");
            assert_eq!(mask_secrets(text), text);
        }
    }
}
