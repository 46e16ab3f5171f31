//! Java's `.properties` files, as BenchmarkSQL reads them, and every key that they have.

use dyno_core::nearest;
use std::path::Path;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) value: String,
    /// The line of the file, from 1; `None` if the command line gave it.
    line: Option<usize>,
}

/// All keys of a file, in their order; of a key that is given twice, the last value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Properties {
    /// The path of the file, for messages.
    pub(super) file: String,
    pub(super) entries: Vec<Entry>,
}

impl Properties {
    /// Reads the properties of a file; the error is a sentence.
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let file = path.display().to_string();
        let bytes = std::fs::read(path)
            .map_err(|error| format!("The properties file {file} can't be read: {error}."))?;
        Self::parse(&file, &bytes)
    }

    /// Parses the text of a properties file, UTF-8 or else Latin-1; `file` is named in messages.
    ///
    /// # Errors
    /// An entry that can't be parsed, with the file and the line.
    pub(super) fn parse(file: &str, bytes: &[u8]) -> Result<Self, String> {
        let mut properties = Properties { file: file.to_owned(), ..Properties::default() };
        let text = decode(bytes);
        // Lines end with `\n`, `\r` or both.
        let lines = text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
        let mut lines = lines.flat_map(|line| line.split('\r')).zip(1..);
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
            let entry = parse_entry(&logical, number)
                .map_err(|problem| format!("{file}:{number}: {problem}"))?;
            properties.insert(entry);
        }
        Ok(properties)
    }

    /// Adds an entry; a later one of the same key replaces the earlier one.
    fn insert(&mut self, entry: Entry) {
        match self.entries.iter_mut().find(|known| known.key == entry.key) {
            None => self.entries.push(entry),
            Some(known) => *known = entry,
        }
    }

    /// Replaces a value; case doesn't matter, as BenchmarkSQL's loader has it.
    pub(super) fn set(&mut self, key: &str, value: &str) {
        let existing = self.entries.iter_mut().find(|entry| entry.key.eq_ignore_ascii_case(key));
        let spelling = key_names().into_iter().find(|name| name.eq_ignore_ascii_case(key));
        let name = spelling.unwrap_or(key);
        let key = existing.as_ref().map_or(name, |entry| &entry.key).to_owned();
        let entry = Entry { key, value: value.to_owned(), line: None };
        match existing {
            Some(existing) => *existing = entry,
            None => self.entries.push(entry),
        }
    }

    /// Returns the entry with exactly this key, if any.
    pub(super) fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    /// All entries as a file, without passwords.
    pub(super) fn text(&self) -> String {
        let entries = self.entries.iter().filter(|entry| !entry.key.starts_with("//"));
        let lines = entries.map(|Entry { key, value, .. }| {
            // Backslashes and line ends would mean something else in a file.
            let value = redacted(key, value).replace('\\', "\\\\").replace(['\n', '\r'], " ");
            format!("{key}={value}\n")
        });
        lines.collect()
    }

    /// A place for people, such as `props.my:7`.
    pub(super) fn place(&self, entry: &Entry) -> String {
        entry.line.map_or("command line".to_owned(), |line| format!("{}:{line}", self.file))
    }
}

/// Java reads Latin-1 and people write UTF-8: what is not UTF-8 is taken for Latin-1.
fn decode(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.strip_prefix('\u{feff}').unwrap_or(text).to_owned(),
        Err(_) => bytes.iter().map(|&byte| char::from(byte)).collect(),
    }
}

fn is_blank(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\u{c}')
}

/// Returns true if a line ends with an odd number of backslashes.
fn is_continued(line: &str) -> bool {
    let backslashes = line.bytes().rev().take_while(|&byte| byte == b'\\').count();
    backslashes % 2 == 1
}

fn parse_entry(line: &str, number: usize) -> Result<Entry, String> {
    let mut is_escaped = false;
    let end = line.find(|letter| {
        let is_end = !is_escaped && (is_blank(letter) || matches!(letter, '=' | ':'));
        is_escaped = !is_escaped && letter == '\\';
        is_end
    });
    let (key, after_key) = line.split_at(end.unwrap_or(line.len()));
    let after_key = after_key.trim_start_matches(is_blank);
    let value =
        after_key.strip_prefix(['=', ':']).unwrap_or(after_key).trim_start_matches(is_blank);
    Ok(Entry { key: unescape(key)?, value: unescape(value)?, line: Some(number) })
}

/// Resolves Java's escapes in a key or a value; the error names the one that is malformed.
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
                    units.push(parse_unicode_escape(&mut letters)?);
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

fn parse_unicode_escape(letters: &mut std::str::Chars<'_>) -> Result<u16, String> {
    let mut code = 0;
    for _ in 0..4 {
        let digit = letters.next().and_then(|letter| letter.to_digit(16));
        let digit = digit.ok_or("\\u has to be followed by four hexadecimal digits.")?;
        code = code * 16 + digit as u16;
    }
    Ok(code)
}

/// A value as it may be shown: without passwords.
pub(super) fn redacted(key: &str, value: &str) -> String {
    // Whatever a fork calls it.
    if key.to_ascii_lowercase().contains("pass") || dyno_core::is_like_password(key) {
        "***********".to_owned()
    } else if key == "conn" || value.contains("://") {
        dyno_drivers::target::redact_url(value)
    } else {
        value.to_owned()
    }
}

/// Keys that [`super::settings`] reads: those of 5.0 and 5.1, then those that only 6 has.
const USED: &str = "\
     db conn user password warehouses loadWorkers fileLocation csvNullValue terminals \
     runTxnsPerTerminal runMins limitTxnsPerMin terminalWarehouseFixed newOrderWeight \
     paymentWeight orderStatusWeight deliveryWeight stockLevelWeight resultDirectory \
     useStoredProcedures application sutThreads rampupMins rampupSUTMins rampupTerminalMins \
     reportIntervalSecs keyingTimeMultiplier thinkTimeMultiplier terminalMultiplier \
     rollbackPercent useWarehouseFrom useWarehouseTo maxDeliveryBGThreads \
     maxDeliveryBGPerWarehouse restartSUTThreadProbability traceTerminalIO";

/// Keys that only BenchmarkSQL 6 has and that say how its terminals work: a file with one of them
/// is one of BenchmarkSQL 6.
pub(super) const VERSION_6: &[&str] = &[
    "sutThreads",
    "rampupMins",
    "rampupSUTMins",
    "rampupTerminalMins",
    "keyingTimeMultiplier",
    "thinkTimeMultiplier",
    "terminalMultiplier",
    "maxDeliveryBGThreads",
    "maxDeliveryBGPerWarehouse",
    "monkeys",
    "useWarehouseFrom",
    "useWarehouseTo",
];

/// Keys that do nothing here and are not worth a warning: the class of a Java driver, threads of terminals, which are
/// tasks here, and the intervals of files that dyno doesn't write.
const SILENT: &str = "driver monkeys resultIntervalSecs";

/// Keys of a collector, instead of which dyno samples the machines itself.
const COLLECTOR: &str =
    "osCollectorScript osCollectorInterval osCollectorSSHAddr osCollectorDevices";

/// All known names, for overrides of any case.
pub(super) fn key_names() -> Vec<&'static str> {
    USED.split(' ').chain(SILENT.split(' ')).chain(COLLECTOR.split(' ')).collect()
}

/// A sentence for each key that does nothing here, with its place. Values are not quoted: one may be
/// a password.
pub(super) fn key_warnings(properties: &Properties) -> Vec<String> {
    let mut warnings = Vec::new();
    let names = key_names();
    for entry in &properties.entries {
        let (place, key) = (properties.place(entry), entry.key.as_str());
        // Comments in the style of Java.
        let is_comment = entry.line.is_some() && key.starts_with("//");
        if is_comment || names.contains(&key) {
            continue;
        }
        let meant = nearest(key, names.iter().copied());
        let advice = meant.map_or(".".to_owned(), |name| format!("; was {name} meant?"));
        warnings.push(format!("{place}: {key} is unknown and ignored{advice}"));
    }
    if COLLECTOR.split(' ').any(|key| properties.get(key).is_some()) {
        let file = &properties.file;
        let note = "the osCollector keys are not needed: dyno samples the machines itself.";
        warnings.push(format!("{file}: {note}"));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse_pairs(text: &[u8]) -> Vec<(String, String)> {
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
            assert_eq!(
                parse_pairs(text.as_bytes()),
                [(key.to_owned(), value.to_owned())],
                "{text:?}"
            );
        }
        assert_eq!(parse_pairs(b"name=M\xfcller"), [("name".to_owned(), "Müller".to_owned())]);
        assert_eq!(
            parse_pairs("name=Müller".as_bytes()),
            [("name".to_owned(), "Müller".to_owned())]
        );
        assert!(parse_pairs(b"\n   \n# a=b \\\n! c=d\n").is_empty());
    }

    #[test]
    fn the_last_of_several_values_counts() {
        let text = b"//a=1\n// comment\nterminals=1\n//b=2\n//b=3\nterminals=2\n";
        let properties = Properties::parse("p", text).expect("readable");
        assert_eq!(properties.get("terminals").map(|entry| entry.value.as_str()), Some("2"));
        let entry = properties.get("terminals").expect("there");
        assert_eq!(properties.place(entry), "p:6");
    }

    #[test]
    fn overrides_replace_whatever_their_case() {
        let mut properties = Properties::parse("p", b"loadWorkers=4\n").expect("readable");
        properties.set("LOADWORKERS", "7");
        properties.set("filelocation", "/tmp/x");
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

    #[test]
    fn the_copy_of_a_run_has_no_passwords() {
        let text = b"db=mysql\n# no\n//runMins=5\nconn=jdbc:mysql://h/d?user=me&password=a1\npassword=a2\niPassword=a3\n\
            resultDirectory=a\\\\b\n";
        let mut properties = Properties::parse("p", text).expect("readable");
        properties.set("terminals", "2");
        let copy = properties.text();
        assert!(copy.starts_with("db=mysql\nconn=jdbc:mysql://h/d?"), "{copy}");
        assert!(copy.ends_with("\nresultDirectory=a\\\\b\nterminals=2\n"), "{copy}");
        assert!(!["a1", "a2", "a3", "runMins"].iter().any(|word| copy.contains(word)), "{copy}");
    }

    #[test]
    fn what_does_nothing_is_told_with_its_place() {
        let text = b"db=mysql\n// comment\nterminal=3\niConn=jdbc:x\nmonkeys=8\nfoo=geheim\ndb=x\n\
            osCollectorScript=x\nosCollectorInterval=1\n";
        let mut properties = Properties::parse("props.my", text).expect("readable");
        properties.set("//x", "1");
        assert_eq!(
            key_warnings(&properties),
            [
                "props.my:3: terminal is unknown and ignored; was terminals meant?",
                "props.my:4: iConn is unknown and ignored; was conn meant?",
                "props.my:6: foo is unknown and ignored.",
                "command line: //x is unknown and ignored.",
                "props.my: the osCollector keys are not needed: dyno samples the machines itself.",
            ]
        );
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
            prop_assert_eq!(parse_pairs(text.as_bytes()), [(key, value)]);
        }
    }
}
