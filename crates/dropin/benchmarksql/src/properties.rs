//! Java's `.properties` files, as BenchmarkSQL reads them.

use std::path::Path;

/// Where a value stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In the file, at this line, from 1.
    Line(usize),
    /// On the command line.
    Override,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) value: String,
    pub(super) place: Place,
}

/// All keys of a file, in their order; of a key that is given twice, the last value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Properties {
    /// The path of the file, for messages.
    pub(super) file: String,
    pub(super) text: Vec<u8>,
    pub(super) entries: Vec<Entry>,
    /// Keys that are given more than once, with the line that does not count.
    pub(super) repeated: Vec<(String, usize)>,
}

impl Properties {
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let file = path.display().to_string();
        let bytes = std::fs::read(path)
            .map_err(|error| format!("The properties file {file} can't be read: {error}."))?;
        Self::parse(&file, &bytes)
    }

    /// Reads the text of the file called `file`.
    pub(super) fn parse(file: &str, bytes: &[u8]) -> Result<Self, String> {
        let mut properties =
            Properties { file: file.to_owned(), text: bytes.to_vec(), ..Properties::default() };
        let text = decode(bytes);
        let mut lines = natural_lines(&text).into_iter().zip(1..);
        while let Some((line, number)) = lines.next() {
            let line = line.trim_start_matches(is_blank);
            if line.is_empty() || line.starts_with(['#', '!']) {
                continue;
            }
            let mut logical = line.to_owned();
            while is_continued(&logical) {
                logical.pop();
                let Some((next, _)) = lines.next() else { break };
                logical.push_str(next.trim_start_matches(is_blank));
            }
            let entry =
                entry(&logical, number).map_err(|problem| format!("{file}:{number}: {problem}"))?;
            properties.put(entry);
        }
        Ok(properties)
    }

    fn put(&mut self, entry: Entry) {
        match self.entries.iter_mut().find(|known| known.key == entry.key) {
            None => self.entries.push(entry),
            Some(known) => {
                // Commented-out lines in the style of Java repeat the key `//`.
                if let Place::Line(line) = known.place
                    && !known.key.starts_with("//")
                {
                    self.repeated.push((known.key.clone(), line));
                }
                *known = entry;
            }
        }
    }

    /// Replaces a value; case doesn't matter, as BenchmarkSQL's loader has it. `known` are the names
    /// that a new key may have.
    pub(super) fn set(&mut self, key: &str, value: &str, known: &[&str]) {
        let name = known.iter().find(|name| name.eq_ignore_ascii_case(key)).copied();
        let known = self.entries.iter_mut().find(|entry| entry.key.eq_ignore_ascii_case(key));
        let key = known.as_ref().map_or(name.unwrap_or(key), |entry| &entry.key).to_owned();
        let entry = Entry { key, value: value.to_owned(), place: Place::Override };
        match known {
            Some(known) => *known = entry,
            None => self.entries.push(entry),
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    /// A place for people, such as `props.my:7`.
    pub(super) fn place(&self, entry: &Entry) -> String {
        match entry.place {
            Place::Line(line) => format!("{}:{line}", self.file),
            Place::Override => "command line".to_owned(),
        }
    }
}

/// Java reads Latin-1 and people write UTF-8: what is no UTF-8 is taken for Latin-1.
fn decode(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.strip_prefix('\u{feff}').unwrap_or(text).to_owned(),
        Err(_) => bytes.iter().map(|&byte| char::from(byte)).collect(),
    }
}

/// Lines end with `\n`, `\r` or both.
fn natural_lines(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    for line in text.split('\n') {
        let line = line.strip_suffix('\r').unwrap_or(line);
        lines.extend(line.split('\r'));
    }
    lines
}

fn is_blank(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\u{c}')
}

/// True when a line ends with an odd number of backslashes.
fn is_continued(line: &str) -> bool {
    let backslashes = line.bytes().rev().take_while(|&byte| byte == b'\\').count();
    backslashes % 2 == 1
}

fn entry(line: &str, number: usize) -> Result<Entry, String> {
    let mut is_escaped = false;
    let end = line.find(|letter| {
        let is_end = !is_escaped && (is_blank(letter) || matches!(letter, '=' | ':'));
        is_escaped = !is_escaped && letter == '\\';
        is_end
    });
    let (key, rest) = line.split_at(end.unwrap_or(line.len()));
    let rest = rest.trim_start_matches(is_blank);
    let value = rest.strip_prefix(['=', ':']).unwrap_or(rest).trim_start_matches(is_blank);
    Ok(Entry { key: unescape(key)?, value: unescape(value)?, place: Place::Line(number) })
}

fn unescape(text: &str) -> Result<String, String> {
    if !text.contains('\\') {
        return Ok(text.to_owned());
    }
    // Java's characters are UTF-16: a letter beyond the first 65,536 is two escapes.
    let mut units: Vec<u16> = Vec::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        let letter = match letter {
            '\\' => match letters.next() {
                Some('u') => {
                    units.push(code(&mut letters)?);
                    continue;
                }
                Some('t') => '\t',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('f') => '\u{c}',
                Some(other) => other,
                None => break,
            },
            other => other,
        };
        units.extend_from_slice(letter.encode_utf16(&mut [0; 2]));
    }
    Ok(String::from_utf16_lossy(&units))
}

fn code(letters: &mut std::str::Chars<'_>) -> Result<u16, String> {
    let mut code = 0;
    for _ in 0..4 {
        let digit = letters.next().and_then(|letter| letter.to_digit(16));
        let digit = digit.ok_or("\\u has to be followed by four hexadecimal digits.")?;
        code = code * 16 + digit as u16;
    }
    Ok(code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pairs(text: &[u8]) -> Vec<(String, String)> {
        let properties = Properties::parse("p", text).expect("readable");
        properties.entries.into_iter().map(|entry| (entry.key, entry.value)).collect()
    }

    #[test]
    fn every_way_of_writing_a_pair_is_understood() {
        for (text, key, value) in [
            ("db=mysql", "db", "mysql"),
            ("  db = mysql ", "db", "mysql "),
            ("db:mysql", "db", "mysql"),
            ("db mysql", "db", "mysql"),
            ("db\t:\x0c mysql", "db", "mysql"),
            ("db", "db", ""),
            ("db=", "db", ""),
            ("=x", "", "x"),
            ("db==x", "db", "=x"),
            ("a\\ b\\=c=d", "a b=c", "d"),
            ("conn=jdbc:mysql://h:3306/d?a=b", "conn", "jdbc:mysql://h:3306/d?a=b"),
            ("devices=net_eth0 \\\n    blk_sda", "devices", "net_eth0 blk_sda"),
            ("path=c\\\\", "path", "c\\"),
            ("k=\\u00e4\\ud83d\\ude00\\t\\q", "k", "ä😀\tq"),
            ("k=v\\", "k", "v"),
            ("# no\r! no\r\nk=v\r", "k", "v"),
        ] {
            assert_eq!(pairs(text.as_bytes()), [(key.to_owned(), value.to_owned())], "{text:?}");
        }
        assert_eq!(pairs(b"name=M\xfcller"), [("name".to_owned(), "Müller".to_owned())]);
        assert_eq!(pairs("name=Müller".as_bytes()), [("name".to_owned(), "Müller".to_owned())]);
        assert!(pairs(b"\n   \n# a=b \\\n! c=d\n").is_empty());
    }

    #[test]
    fn the_last_of_several_values_counts_and_the_others_are_told() {
        let text = b"//a=1\n// comment\nterminals=1\n//b=2\n//b=3\nterminals=2\n";
        let properties = Properties::parse("p", text).expect("readable");
        assert_eq!(properties.get("terminals").map(|entry| entry.value.as_str()), Some("2"));
        assert_eq!(properties.repeated, [("terminals".to_owned(), 3)]);
        let entry = properties.get("terminals").expect("there");
        assert_eq!(properties.place(entry), "p:6");
    }

    #[test]
    fn overrides_replace_whatever_their_case() {
        let mut properties = Properties::parse("p", b"loadWorkers=4\n").expect("readable");
        properties.set("LOADWORKERS", "7", &["loadWorkers", "fileLocation"]);
        properties.set("filelocation", "/tmp/x", &["loadWorkers", "fileLocation"]);
        let values: Vec<_> =
            properties.entries.iter().map(|entry| (&*entry.key, &*entry.value)).collect();
        assert_eq!(values, [("loadWorkers", "7"), ("fileLocation", "/tmp/x")]);
        assert_eq!(properties.place(&properties.entries[0]), "command line");
    }

    #[test]
    fn bad_escapes_have_a_place() {
        let error = Properties::parse("props.pg", b"a=1\nb=\\u12g4\n").expect_err("no digit");
        assert_eq!(error, "props.pg:2: \\u has to be followed by four hexadecimal digits.");
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = Properties::parse("p", &bytes);
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "[a-c=: \\\\ud0-9#!\\n\\r\\t]{0,40}") {
            let _ = Properties::parse("p", text.as_bytes());
        }

        #[test]
        fn what_is_escaped_comes_back(key in "[a-zA-Z]{1,8}", value in "[ -~äé😀]{0,20}") {
            let mut escaped = String::new();
            for unit in value.encode_utf16() {
                escaped.push_str(&format!("\\u{unit:04x}"));
            }
            let text = format!("{key} : {escaped}\n");
            prop_assert_eq!(pairs(text.as_bytes()), [(key, value)]);
        }
    }
}
