//! The copy of the properties file, without passwords.

/// What BenchmarkSQL writes instead of passwords when it echoes properties.
const HIDDEN: &str = "***********";

/// The text of a properties file with every password replaced: the value of the key `password`, also
/// where it is commented out or goes on in further lines, and passwords inside URLs. Lines end with
/// `\n` afterwards; bytes are kept, whatever their encoding. Behind them stand `overrides`, keys and
/// values in turn: of a key that is there twice the last value counts.
pub(super) fn without_passwords(text: &[u8], overrides: &[String]) -> Vec<u8> {
    let mut text = text.to_vec();
    if !overrides.is_empty() {
        text.extend_from_slice(b"\n# In place of values above:\n");
        for pair in overrides.chunks(2) {
            // Backslashes and line ends would mean something else in a file.
            let pair = pair.join("=").replace('\\', "\\\\").replace(['\n', '\r'], " ");
            text.extend_from_slice(pair.as_bytes());
            text.push(b'\n');
        }
    }
    // As Java reads such a file: each byte is a character, and nothing gets lost on the way back.
    let text: String = text.iter().map(|&byte| char::from(byte)).collect();
    hide(&text).chars().map(|letter| letter as u8).collect()
}

fn hide(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut copy = String::with_capacity(text.len());
    let mut goes_on = false;
    for line in text.split_inclusive('\n') {
        let body = line.strip_suffix('\n').unwrap_or(line);
        let is_hidden = goes_on || is_password(body);
        let mut is_cut = is_hidden;
        // An odd number of backslashes continues the line.
        let backslashes = body.len() - body.trim_end_matches('\\').len();
        let is_continued = backslashes % 2 == 1;
        if !is_hidden {
            let (hidden, is_to_end) = hide_in_url(line);
            copy.push_str(&hidden);
            is_cut = is_to_end;
        } else if !goes_on {
            let mark = &body[..body.len() - after_mark(body).len()];
            copy.push_str(&format!("{mark}password={HIDDEN}{}", &line[body.len()..]));
        }
        goes_on = is_cut && is_continued;
    }
    copy
}

/// The line without blanks and marks of comments before it.
fn after_mark(line: &str) -> &str {
    line.trim_start_matches(|c: char| c.is_whitespace() || "#!/".contains(c))
}

/// True for `password` and keys that end so, in any case and written with escapes too.
fn is_password(line: &str) -> bool {
    let line = unescaped(after_mark(line));
    let key =
        line.split(|c: char| "=:".contains(c) || c.is_whitespace()).next().unwrap_or_default();
    key.to_ascii_lowercase().ends_with("password")
}

/// The line as Java understands its escapes.
fn unescaped(line: &str) -> String {
    let mut plain = String::new();
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            plain.push(letter);
            continue;
        }
        match letters.next() {
            Some('u') => {
                let digits: String = letters.by_ref().take(4).collect();
                plain.extend(u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32));
            }
            other => plain.extend(other),
        }
    }
    plain
}

/// Hides `...password=X` of URLs, and what stands between a user and `@`. True when the last thing
/// that is hidden reaches the end of the line.
fn hide_in_url(line: &str) -> (String, bool) {
    let mut copy = String::with_capacity(line.len());
    let mut rest = line;
    // Not the slashes of a comment.
    if let Some((scheme, behind)) = line.split_once("://") {
        let place = &behind[..behind.find(['?', '\n']).unwrap_or(behind.len())];
        // A password may hold any letter, also a slash.
        if let Some((login, _)) = place.rsplit_once('@')
            && let Some((user, _)) = login.split_once(':')
        {
            copy.push_str(&format!("{scheme}://{user}:{HIDDEN}"));
            rest = &behind[login.len()..];
        }
    }
    let mut is_to_end = false;
    while let Some(value) = password_value(rest) {
        copy.push_str(&rest[..value]);
        copy.push_str(HIDDEN);
        rest = &rest[value..];
        rest = &rest[rest.find(['&', '\n']).unwrap_or(rest.len())..];
        is_to_end = rest.trim_end_matches('\n').is_empty();
    }
    copy.push_str(rest);
    (copy, is_to_end)
}

/// Where the value of the first parameter begins whose name ends with `password`, and a digit where
/// MySQL's driver has several. Its `=` may have a backslash, as Java writes it.
fn password_value(text: &str) -> Option<usize> {
    const NAME: &str = "password";
    // ASCII letters keep their places in lower case.
    let small = text.to_ascii_lowercase();
    small.match_indices(NAME).find_map(|(at, _)| {
        let behind = &text[at + NAME.len()..];
        let mark = behind.trim_start_matches(|c: char| c.is_ascii_digit() || c == '\\');
        let value = mark.strip_prefix('=').or_else(|| mark.strip_prefix("u003d"))?;
        Some(text.len() - value.len())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn everything_but_passwords_is_copied() {
        let text = "\
db=mysql
# a comment
//runMins=5
conn=jdbc:mysql://127.0.0.1:3306/tpcc?useSSL=false&rewriteBatchedStatements=true
user=benchmarksql
newOrderWeight=45
resultDirectory=my_result_%tY-%tm-%td_%tH%tM%tS
path=C:\\\\data";
        assert_eq!(hide(text), text);
    }

    #[test]
    fn bytes_of_any_encoding_are_kept() {
        let text = b"user=J\xf6rg \xc3\xb6\npassword=\xf6\n";
        let copy = b"user=J\xf6rg \xc3\xb6\npassword=***********\n";
        assert_eq!(without_passwords(text, &[]), copy);
    }

    #[test]
    fn values_of_the_command_line_stand_behind_those_of_the_file() {
        let words = ["terminals", "64", "password", "secret", "fileLocation", "c:\\x\ny"];
        let copy = without_passwords(b"terminals=2", &words.map(str::to_owned));
        assert_eq!(
            String::from_utf8(copy).unwrap(),
            "terminals=2\n# In place of values above:\nterminals=64\npassword=***********\n\
             fileLocation=c:\\\\x y\n"
        );
    }

    #[test]
    fn passwords_are_hidden_however_they_are_written() {
        for (line, copy) in [
            ("password=secret", "password=***********"),
            ("  password : secret", "  password=***********"),
            ("password secret", "password=***********"),
            ("password", "password=***********"),
            ("PASSWORD=secret", "password=***********"),
            ("pass\\u0077ord=secret", "password=***********"),
            ("#password=secret", "#password=***********"),
            ("// password=secret", "// password=***********"),
            ("password=sec\\\n  ret\nuser=x", "password=***********\nuser=x"),
            ("password=\\\\\nuser=x", "password=***********\nuser=x"),
            ("password=secret\r\nuser=x", "password=***********\nuser=x"),
            ("user=x\rpassword=secret\rdb=y", "user=x\npassword=***********\ndb=y"),
            (
                "conn=jdbc:postgresql://h/db?user=x&password=secret&ssl=true",
                "conn=jdbc:postgresql://h/db?user=x&password=***********&ssl=true",
            ),
            (
                "conn=jdbc:mysql://h/db?trustStorePassword=secret",
                "conn=jdbc:mysql://h/db?trustStorePassword=***********",
            ),
            (
                "conn=jdbc\\:mysql\\://h/db?user\\=x&password\\=secret&ssl\\=true",
                "conn=jdbc\\:mysql\\://h/db?user\\=x&password\\=***********&ssl\\=true",
            ),
            (
                "conn=jdbc:mysql://h/db?password1=secret&password2\\u003dsecret",
                "conn=jdbc:mysql://h/db?password1=***********&password2\\u003d***********",
            ),
            (
                "conn=jdbc:mysql://address=(host=h)(password=secret)/db",
                "conn=jdbc:mysql://address=(host=h)(password=***********",
            ),
            (
                "conn=jdbc:mysql://h/db?password=\\\n  secret\nuser=x",
                "conn=jdbc:mysql://h/db?password=***********\nuser=x",
            ),
            ("conn=jdbc:mysql://me:a/secret@h/db", "conn=jdbc:mysql://me:***********@h/db"),
            ("conn=jdbc:mysql://me:secret@h:1/db", "conn=jdbc:mysql://me:***********@h:1/db"),
            ("conn=mysql\\://me:secret@h:1/db", "conn=mysql\\://me:***********@h:1/db"),
            ("conn=jdbc:mysql://h:1/db?mail=a:b@c", "conn=jdbc:mysql://h:1/db?mail=a:b@c"),
        ] {
            assert_eq!(hide(line), copy, "{line}");
        }
    }

    proptest! {
        #[test]
        fn no_password_is_ever_copied(
            before in "[ \t]{0,2}([a-z]{1,5}=[a-z]{0,5}\r?\n){0,3}[ \t]{0,2}",
            between in "[ \t]{0,2}[=: ][ \t]{0,2}(\\\\\r?\n[ \t]{0,3}){0,2}",
            password in "[A-Z0-9@&;/?#!%]{3,12}",
            after in "(\r?\n[a-z]{1,5}=[a-z]{0,5}){0,3}",
        ) {
            let copy = hide(&format!("{before}password{between}{password}{after}"));
            prop_assert!(!copy.contains(&password), "{}", copy);
            prop_assert!(copy.ends_with(&after.replace("\r\n", "\n")), "{}", copy);
        }
    }
}
