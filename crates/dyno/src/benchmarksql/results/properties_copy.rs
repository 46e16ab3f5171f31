//! The copy of the properties file, without passwords.

/// What BenchmarkSQL writes instead of passwords when it echoes properties.
const HIDDEN: &str = "***********";

/// The text of a properties file with every password replaced: the value of the key `password`, also
/// where it is commented out or goes on in further lines, and passwords inside URLs. Lines end with
/// `\n` afterwards.
pub(super) fn without_passwords(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut copy = String::with_capacity(text.len());
    let mut goes_on = false;
    for line in text.split_inclusive('\n') {
        let body = line.strip_suffix('\n').unwrap_or(line);
        let is_hidden = goes_on || is_password(body);
        // An odd number of backslashes continues the line.
        let backslashes = body.len() - body.trim_end_matches('\\').len();
        let is_continued = backslashes % 2 == 1;
        if !is_hidden {
            copy.push_str(&hide_in_url(line));
        } else if !goes_on {
            let mark = &body[..body.len() - after_mark(body).len()];
            copy.push_str(&format!("{mark}password={HIDDEN}{}", &line[body.len()..]));
        }
        goes_on = is_hidden && is_continued;
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

/// Hides `...password=X` of URLs, and what stands between a user and `@`.
fn hide_in_url(line: &str) -> String {
    let mut copy = String::with_capacity(line.len());
    let mut rest = line;
    if let Some((scheme, behind)) = line.split_once("//")
        && scheme.contains("jdbc")
    {
        let authority = &behind[..behind.find(['/', '?', '\n']).unwrap_or(behind.len())];
        if let Some((user, _)) =
            authority.rsplit_once('@').and_then(|(login, _)| login.split_once(':'))
        {
            copy.push_str(&format!("{scheme}//{user}:{HIDDEN}@"));
            rest = &behind[authority.rfind('@').map_or(0, |at| at + 1)..];
        }
    }
    // ASCII letters keep their places in lower case.
    while let Some(at) = rest.to_ascii_lowercase().find("password=") {
        let value = at + "password=".len();
        copy.push_str(&rest[..value]);
        copy.push_str(HIDDEN);
        rest = &rest[value..];
        rest = &rest[rest.find(['&', '\n']).unwrap_or(rest.len())..];
    }
    copy.push_str(rest);
    copy
}
