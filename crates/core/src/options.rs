//! Options of workloads and front ends as tables: a row has its names, the values, the default, the meaning and the
//! setter. Reading, errors, help, documentation and shell completion all come from the rows.

use std::fmt::Write;

/// The values of an option, and the setter in the settings `S`, which may refuse with an `E`.
#[derive(Debug)]
pub enum OptionValues<S, E = String> {
    /// A whole number from the first to the second.
    Whole(u32, u32, fn(&mut S, u32)),
    /// A whole number of 64 bits.
    Long(fn(&mut S, u64)),
    /// A number of bytes, with K, M, G or T after it for powers of 1,024.
    Size(fn(&mut S, u64)),
    /// A number from the first to the second.
    Decimal(f64, f64, fn(&mut S, f64)),
    /// True or false; also `on` or `off`, 1 or 0.
    Flag(fn(&mut S, bool)),
    /// One of these words; the setter gets its index.
    Choice(&'static [&'static str], fn(&mut S, usize)),
    /// A text of this kind. The error completes a sentence after "it takes".
    Text(&'static str, fn(&mut S, &str) -> Result<(), E>),
    /// Texts, or a single one; the setter is called for each.
    List(fn(&mut S, &str)),
    /// Values by keys: these, or any if there are none here. The error is as of `Text`.
    Table(&'static [&'static str], fn(&mut S, &str, &str) -> Result<(), E>),
}

/// One option of a workload with the settings `S`.
#[derive(Debug)]
pub struct OptionRow<S: 'static, E: 'static = String> {
    /// The name; suites write it with underscores.
    pub name: &'static str,
    /// The name in an older version of what a front end imitates.
    pub old_name: Option<&'static str>,
    /// The letter of a command line with short options.
    pub letter: Option<char>,
    pub kind: OptionValues<S, E>,
    /// The name of the value in the help of a command line; empty: by its kind.
    pub metavariable: &'static str,
    /// Text as it would be written; empty if there is none.
    pub default: &'static str,
    /// The meaning, with the unit.
    pub doc: &'static str,
    /// The tests that have the option; empty: all tests.
    pub tests: &'static [&'static str],
}

/// A refusal of options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionError {
    /// The given option, with `.KEY` if a key is meant; `None` is the experiment as a whole.
    pub option: Option<String>,
    /// The invalid value and the valid values, for front ends that word the error themselves.
    pub mismatch: Option<Box<(String, String)>>,
    /// Set if the value is wrong, false when the name is.
    pub is_value: bool,
    /// A full sentence.
    pub message: String,
    pub hint: Option<String>,
}

impl OptionError {
    /// A wrong value of an option.
    pub fn value(option: &str, message: String) -> Self {
        OptionError {
            option: Some(option.to_owned()),
            mismatch: None,
            is_value: true,
            message,
            hint: None,
        }
    }

    /// A value that an option does not take; `expected` is the error of [`OptionRow::set`].
    pub fn unsuitable(option: &str, value: &str, expected: &str) -> Self {
        let message = format!("`{option}` can't be `{value}`: it takes {expected}.");
        let mismatch = Some(Box::new((value.to_owned(), expected.to_owned())));
        OptionError { mismatch, ..OptionError::value(option, message) }
    }

    /// A refusal of the experiment as a whole.
    pub fn experiment<'a>(message: impl Into<String>, hint: impl Into<Option<&'a str>>) -> Self {
        let hint = hint.into().map(str::to_owned);
        OptionError { option: None, mismatch: None, is_value: false, message: message.into(), hint }
    }
}

/// The form of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Single,
    /// A list of values, or one.
    List,
    /// Values by keys.
    Table,
}

/// An option in help and documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionDoc {
    /// With underscores.
    pub name: String,
    pub shape: Shape,
    /// For example `whole number from 1 to 10`.
    pub values: String,
    /// Text as it would be written; empty if there is none.
    pub default: &'static str,
    pub doc: &'static str,
    /// For example "in `spec`"; empty: in all tests.
    pub scope: String,
}

impl<S, E> OptionRow<S, E> {
    pub const fn new(
        name: &'static str,
        default: &'static str,
        kind: OptionValues<S, E>,
        doc: &'static str,
    ) -> Self {
        let (old_name, letter, metavariable) = (None, None, "");
        OptionRow { name, old_name, letter, kind, metavariable, default, doc, tests: &[] }
    }

    pub const fn for_tests(mut self, tests: &'static [&'static str]) -> Self {
        self.tests = tests;
        self
    }

    pub const fn with_old_name(mut self, old_name: &'static str) -> Self {
        self.old_name = Some(old_name);
        self
    }

    pub const fn with_letter(mut self, letter: char) -> Self {
        self.letter = Some(letter);
        self
    }

    pub const fn with_metavariable(mut self, metavariable: &'static str) -> Self {
        self.metavariable = metavariable;
        self
    }

    /// The name of the value in the help of a command line.
    pub fn metavariable(&self) -> &'static str {
        match &self.kind {
            _ if !self.metavariable.is_empty() => self.metavariable,
            OptionValues::Whole(..) | OptionValues::Long(_) | OptionValues::Decimal(..) => "N",
            OptionValues::Size(_) => "SIZE",
            OptionValues::Flag(_) => "on|off",
            _ => "STRING",
        }
    }

    /// Returns true if an empty value is valid; otherwise an empty value selects the default.
    pub fn takes_empty(&self) -> bool {
        matches!(self.kind, OptionValues::Text(..)) && self.metavariable() != "N"
    }

    /// Describes the option for the documentation.
    pub fn describe(&self) -> OptionDoc {
        OptionDoc {
            name: self.name.to_owned(),
            shape: self.kind.shape(),
            values: self.kind.describe_values(),
            default: self.default,
            doc: self.doc,
            scope: match self.tests {
                [] => String::new(),
                tests => format!("in `{}`", tests.join("`, `")),
            },
        }
    }
}

/// The rows as help and documentation show them.
pub fn describe<S, E>(table: &[OptionRow<S, E>]) -> Vec<OptionDoc> {
    table.iter().map(OptionRow::describe).collect()
}

impl<S, E: From<String>> OptionRow<S, E> {
    /// Sets one value; `key` is the part behind the dot of a table or list. An error names the possible values.
    pub fn set(&self, settings: &mut S, key: Option<&str>, value: &str) -> Result<(), E> {
        let kind = &self.kind;
        match (kind, key) {
            (OptionValues::Whole(low, high, set), None) => {
                let number = whole(value).filter(|number| (*low..=*high).contains(number));
                set(settings, number.ok_or_else(|| kind.describe_values())?);
            }
            (OptionValues::Long(set), None) => {
                set(settings, value.parse().map_err(|_| kind.describe_values())?)
            }
            (OptionValues::Size(set), None) => {
                set(settings, size(value).ok_or_else(|| kind.describe_values())?)
            }
            (OptionValues::Decimal(low, high, set), None) => {
                let number = value.parse().ok().filter(|number| (*low..=*high).contains(number));
                set(settings, number.ok_or_else(|| kind.describe_values())?);
            }
            (OptionValues::Flag(set), None) => match value {
                "on" | "true" | "1" => set(settings, true),
                "off" | "false" | "0" => set(settings, false),
                _ => return Err("on or off".to_owned().into()),
            },
            (OptionValues::Choice(words, set), None) => {
                let at = words.iter().position(|word| *word == value);
                set(settings, at.ok_or_else(|| kind.describe_values())?);
            }
            (OptionValues::Text(_, set), None) => set(settings, value)?,
            (OptionValues::List(set), _) => set(settings, value),
            (OptionValues::Table(_, set), Some(key)) => set(settings, key, value)?,
            (OptionValues::Table(keys, _), None) => {
                let key = keys.first().unwrap_or(&"NAME");
                return Err(format!("a table: `{} = {{ {key} = ... }}`", self.name).into());
            }
            (_, Some(_)) => return Err(kind.describe_values().into()),
        }
        Ok(())
    }
}

impl<S, E> OptionValues<S, E> {
    /// Returns if a suite writes one value, a list or a table.
    fn shape(&self) -> Shape {
        match self {
            OptionValues::List(_) => Shape::List,
            OptionValues::Table(..) => Shape::Table,
            _ => Shape::Single,
        }
    }

    fn describe_values(&self) -> String {
        match self {
            OptionValues::Whole(low, high, _) => format!("a whole number from {low} to {high}"),
            OptionValues::Long(_) => format!("a whole number from 0 to {}", u64::MAX),
            OptionValues::Size(_) => {
                "a whole number, with K, M, G or T after it if need be".to_owned()
            }
            OptionValues::Decimal(low, high, _) => format!("a number from {low} to {high}"),
            OptionValues::Flag(_) => "true or false".to_owned(),
            OptionValues::Choice(words, _) => match words {
                [others @ .., last] if !others.is_empty() => {
                    format!("{} or {last}", others.join(", "))
                }
                words => words.join(", "),
            },
            OptionValues::Text(words, _) => (*words).to_owned(),
            OptionValues::List(_) => "a text or a list of texts".to_owned(),
            OptionValues::Table(..) => "a table".to_owned(),
        }
    }
}

/// A number of bytes, with K, M, G or T after it for powers of 1,024.
pub fn size(value: &str) -> Option<u64> {
    let digits = value.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    let shift = match value[digits.len()..].to_ascii_uppercase().as_str() {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// A whole number; `1e6` and `10000.0` are whole numbers, too.
fn whole(value: &str) -> Option<u32> {
    let number: f64 = value.parse().ok()?;
    let fits = number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&number);
    fits.then_some(number as u32)
}

/// Reads the options of one test up to the first unknown name or wrong value. Tables and lists have a key behind a dot.
pub fn read<'a, S>(
    table: &[OptionRow<S>],
    (workload, test): (&str, &str),
    given: impl IntoIterator<Item = (&'a str, &'a str)>,
    settings: &mut S,
) -> Result<(), OptionError> {
    for (name, value) in given {
        let (stem, key) = match name.split_once('.') {
            Some((stem, key)) => (stem, Some(key)),
            None => (name, None),
        };
        let Some(row) = table.iter().find(|row| row.name == stem) else {
            let names: Vec<&str> = table.iter().map(|row| row.name).collect();
            let hint = did_you_mean(nearest(name, names.iter().copied()), "");
            let hint = hint.unwrap_or_else(|| format!("Its options: {}.", names.join(", ")));
            return Err(unknown_option(workload, name, hint));
        };
        if !row.tests.is_empty() && !row.tests.contains(&test) {
            let tests = row.tests.join("`, `");
            let message = format!("The test `{test}` has no option `{stem}`.");
            return Err(name_error(name, message, format!("It is an option of `{tests}`.")));
        }
        if let (OptionValues::Table(keys @ [_, ..], _), Some(key)) = (&row.kind, key)
            && !keys.contains(&key)
        {
            let near = nearest(key, keys.iter().copied());
            let hint = did_you_mean(near, &format!("{stem}."))
                .unwrap_or_else(|| format!("Its keys: {}. {}.", keys.join(", "), row.doc));
            return Err(unknown_option(workload, name, hint));
        }
        let set = row.set(settings, key, value);
        set.map_err(|expected| OptionError::unsuitable(name, value, &expected))?;
    }
    Ok(())
}

fn unknown_option(workload: &str, name: &str, hint: String) -> OptionError {
    name_error(name, format!("{workload} has no option `{name}` in suites."), hint)
}

fn name_error(name: &str, message: String, hint: String) -> OptionError {
    let option = Some(name.to_owned());
    OptionError { option, mismatch: None, is_value: false, message, hint: Some(hint) }
}

/// The question whether the `nearest` name was meant, with the text before it.
pub fn did_you_mean(name: Option<&str>, before: &str) -> Option<String> {
    name.map(|name| format!("Did you mean `{before}{name}`?"))
}

/// A Markdown table of options, with its head.
pub fn markdown(options: &[OptionDoc]) -> String {
    let mut text = "| option | values, default | meaning |\n|---|---|---|\n".to_owned();
    for option in options {
        let default = match option.default {
            "" => String::new(),
            default => format!(", `{default}`"),
        };
        let scope = match option.scope.as_str() {
            "" => String::new(),
            scope => format!("{scope}: "),
        };
        let OptionDoc { name, values, doc, .. } = option;
        let _ = writeln!(text, "| `{name}` | {values}{default} | {scope}{doc} |");
    }
    text
}

/// A paragraph per option, for a terminal.
pub fn help(options: &[OptionDoc]) -> String {
    let mut text = String::new();
    for option in options {
        let default = match option.default {
            "" => String::new(),
            default => format!(", {default}"),
        };
        let scope = match option.scope.as_str() {
            "" => String::new(),
            scope => format!(" ({})", scope.replace('`', "")),
        };
        text.push_str(&fill(&format!("{}: {}{default}{scope}", option.name, option.values), 2));
        text.push_str(&fill(&option.doc.replace('`', ""), 6));
    }
    text
}

/// Words in lines of at most 100 characters.
pub fn fill(words: &str, indent: usize) -> String {
    let mut text = String::new();
    let mut column = 0;
    for word in words.split_whitespace() {
        let length = word.chars().count() + 1;
        if column == 0 || column + length > 100 {
            let line_end = if column == 0 { "" } else { "\n" };
            let _ = write!(text, "{line_end}{:indent$}{word}", "");
            column = indent + length - 1;
        } else {
            let _ = write!(text, " {word}");
            column += length;
        }
    }
    text + "\n"
}

/// Tries every default and every word of a table: for a test of each table. Panics if a name appears twice or a row
/// refuses its own value.
pub fn check_table<S>(table: &[OptionRow<S>], mut new: impl FnMut() -> S) {
    for (at, row) in table.iter().enumerate() {
        let is_twice = table[at + 1..].iter().any(|other| other.name == row.name);
        assert!(!is_twice, "the option {} appears twice", row.name);
        let words: &[&str] =
            if let OptionValues::Choice(words, _) = row.kind { words } else { &[] };
        let default = Some(row.default).filter(|default| !default.is_empty());
        for value in words.iter().copied().chain(default) {
            let set = row.set(&mut new(), None, value);
            assert_eq!(set, Ok(()), "{} = {value}", row.name);
        }
    }
}

/// Longer words cost time to compare; no name of dyno is as long.
const LONGEST_BYTES: usize = 64;

/// The known name with the fewest edits (insert, delete, replace, swap neighbors), if those are at most a third of the
/// longer one's letters. Case does not count, and `-` is `_`.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > LONGEST_BYTES {
        return None;
    }
    let word = letters(word);
    known
        .into_iter()
        .map(|name| {
            let name_letters = letters(name);
            (edits(&word, &name_letters), word.len().max(name_letters.len()), name)
        })
        .filter(|&(edits, length, _)| edits * 3 <= length)
        .min_by_key(|&(edits, ..)| edits)
        .map(|(.., name)| name)
}

/// Returns true for a name whose value may be a password, also if it is misspelt: `mysql-pasword`.
pub fn is_like_password(name: &str) -> bool {
    let mut parts = name.split(['-', '_', '.']);
    parts.any(|part| part.eq_ignore_ascii_case("pwd") || nearest(part, ["password"]).is_some())
}

/// Letters in lower case, with `_` for `-`, as `nearest` compares them.
fn letters(text: &str) -> Vec<char> {
    text.chars().flat_map(char::to_lowercase).map(|c| if c == '-' { '_' } else { c }).collect()
}

/// The edits between two words: the distance of Damerau and Levenshtein, restricted to one edit per pair of letters.
fn edits(a: &[char], b: &[char]) -> usize {
    let mut before_last = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before_last[j - 2] + 1);
            }
            row.push(best);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq)]
    struct Settings {
        size: u32,
        share: f64,
        is_fast: bool,
        mode: usize,
        names: Vec<String>,
        weights: Vec<(String, u32)>,
    }

    type Row = OptionRow<Settings>;

    const TABLE: &[Row] = &[
        Row::new("size", "1", OptionValues::Whole(1, 100, |s, n| s.size = n), "rows"),
        Row::new("share", "0.5", OptionValues::Decimal(0.0, 1.0, |s, n| s.share = n), "a share"),
        Row::new("fast", "false", OptionValues::Flag(|s, on| s.is_fast = on), "no checks")
            .for_tests(&["quick"]),
        Row::new("mode", "a", OptionValues::Choice(&["a", "b", "c"], |s, at| s.mode = at), "how"),
        Row::new("names", "", OptionValues::List(|s, name| s.names.push(name.to_owned())), "who"),
        Row::new("weights", "", OptionValues::Table(&["left", "right"], weight), "percent"),
    ];

    fn weight(settings: &mut Settings, key: &str, value: &str) -> Result<(), String> {
        let percent = value.parse().map_err(|_| "a whole number of percent".to_owned())?;
        settings.weights.push((key.to_owned(), percent));
        Ok(())
    }

    fn read_test(test: &str, given: &[(&str, &str)]) -> Result<Settings, String> {
        let mut settings = Settings::default();
        match read(TABLE, ("ping", test), given.iter().copied(), &mut settings) {
            Ok(()) => Ok(settings),
            Err(error) => Err(format!("{} {}", error.message, error.hint.unwrap_or_default())),
        }
    }

    #[test]
    fn every_kind_of_value_reaches_its_field() {
        check_table(TABLE, Settings::default);
        let basic = [("size", "1e2"), ("share", "0.25"), ("fast", "on"), ("mode", "c")];
        let tables_and_lists = [("names.1", "x"), ("names.2", "y"), ("weights.right", "7")];
        let settings =
            read_test("quick", &[&basic[..], &tables_and_lists].concat()).expect("good options");
        let names = vec!["x".to_owned(), "y".to_owned()];
        let weights = vec![("right".to_owned(), 7)];
        let expected = Settings { size: 100, share: 0.25, is_fast: true, mode: 2, names, weights };
        assert_eq!(settings, expected);
    }

    #[test]
    fn what_is_wrong_is_said_with_a_remedy() {
        for (option, value, expected) in [
            ("sise", "1", "ping has no option `sise` in suites. Did you mean `size`?"),
            ("zzzzzzzz", "1", "Its options: size, share, fast, mode, names, weights."),
            ("size", "101", "`size` can't be `101`: it takes a whole number from 1 to 100."),
            ("size", "1.5", "it takes a whole number from 1 to 100."),
            ("size.x", "1", "it takes a whole number from 1 to 100."),
            ("share", "2", "it takes a number from 0 to 1."),
            ("fast", "on", "The test `slow` has no option `fast`. It is an option of `quick`."),
            ("mode", "d", "it takes a, b or c."),
            ("weights", "5", "it takes a table: `weights = { left = ... }`."),
            ("weights.lef", "5", "no option `weights.lef` in suites. Did you mean `weights.left`?"),
            ("weights.top", "5", "Its keys: left, right. percent."),
            ("weights.left", "x", "it takes a whole number of percent."),
        ] {
            let message = read_test("slow", &[(option, value)]).expect_err(option);
            assert!(message.contains(expected), "{message}");
        }
    }

    #[test]
    fn documentation_has_a_line_for_each_option() {
        let docs: Vec<OptionDoc> = TABLE.iter().map(OptionRow::describe).collect();
        let table = markdown(&docs);
        assert!(table.contains("| `size` | a whole number from 1 to 100, `1` | rows |"), "{table}");
        assert!(table.contains("| `fast` | true or false, `false` | in `quick`: no checks |"));
        assert!(help(&docs).starts_with("  size: a whole number from 1 to 100, 1\n      rows\n"));
    }

    #[test]
    fn finds_the_intended_name_or_none() {
        let names = ["table_size", "tables", "range_size", "point_selects", "threads", "sslmode"];
        for (word, name) in [
            ("tabel-size", Some("table_size")),
            ("table", Some("tables")),
            ("pointselects", Some("point_selects")),
            ("Thraeds", Some("threads")),
            ("SSLMODE", Some("sslmode")),
            ("warehouse", None),
            ("", None),
            ("x", None),
            (&"threads".repeat(10), None),
        ] {
            assert_eq!(nearest(word, names), name, "{word}");
        }
        assert_eq!(nearest("threads", []), None);
    }

    #[test]
    fn misspelt_passwords_are_known() {
        for name in
            ["password", "mysql-pasword", "pgsql_passwrod", "iPassword", "passwd", "MYSQL_PWD"]
        {
            assert!(is_like_password(name), "{name}");
        }
        for name in ["passes", "user", "mysql-host", "", "port", "warehouses"] {
            assert!(!is_like_password(name), "{name}");
        }
    }

    #[test]
    fn counts_swapped_neighbors_as_one_edit() {
        for (a, b, count) in
            [("oltop", "oltpo", 1), ("kitten", "sitting", 3), ("", "abc", 3), ("ü-", "Ü_", 0)]
        {
            assert_eq!(edits(&letters(a), &letters(b)), count, "{a} {b}");
            assert_eq!(edits(&letters(b), &letters(a)), count, "{b} {a}");
        }
    }
}
