//! The words of a command line as the C library's `getopt_long` takes them: bundled short options,
//! abbreviated long ones, values glued or apart, operands anywhere.

use super::options::{OPTIONS, PgbenchOption};

#[derive(Debug)]
pub(super) enum NextWords {
    /// An option; the text is empty when it takes no value.
    Option(&'static PgbenchOption, String),
    Operand(String),
}

/// Goes through the words one by one, so that what an option does can happen before the next one is
/// looked at.
pub(super) struct ArgumentWords<'a> {
    words: std::slice::Iter<'a, String>,
    /// What is left of a word of bundled short options.
    bundle: std::str::Chars<'a>,
    only_operands: bool,
}

impl<'a> ArgumentWords<'a> {
    pub(super) fn new(words: &'a [String]) -> Self {
        ArgumentWords { words: words.iter(), bundle: "".chars(), only_operands: false }
    }

    /// The next option or operand; `None` at the end.
    pub(super) fn next(&mut self) -> Option<Result<NextWords, String>> {
        if let Some(letter) = self.bundle.next() {
            return Some(self.short(letter));
        }
        let word = self.words.next()?;
        if self.only_operands || word == "-" || !word.starts_with('-') {
            return Some(Ok(NextWords::Operand(word.clone())));
        }
        if word == "--" {
            self.only_operands = true;
            return self.next();
        }
        if let Some(body) = word.strip_prefix("--") {
            return Some(self.long(body));
        }
        self.bundle = word[1..].chars();
        self.next()
    }

    fn short(&mut self, letter: char) -> Result<NextWords, String> {
        let Some(option) = OPTIONS.iter().find(|option| option.row.letter == Some(letter)) else {
            return Err(format!("invalid option -- '{letter}'"));
        };
        if !option.takes_value {
            return Ok(NextWords::Option(option, String::new()));
        }
        let no_value = || self.words.as_slice().first().is_none_or(|word| word.starts_with('-'));
        if let Some(long) = option.alone
            && self.bundle.as_str().is_empty()
            && no_value()
        {
            return self.long(long);
        }
        let glued = std::mem::replace(&mut self.bundle, "".chars()).as_str();
        let value =
            if glued.is_empty() { self.words.next().map(String::as_str) } else { Some(glued) };
        match value {
            Some(value) => Ok(NextWords::Option(option, value.to_owned())),
            None => Err(format!("option requires an argument -- '{letter}'")),
        }
    }

    fn long(&mut self, body: &str) -> Result<NextWords, String> {
        let (name, value) = match body.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (body, None),
        };
        let option = self.find(name, body)?;
        let value = match (option.takes_value, value) {
            (false, Some(_)) => {
                return Err(format!("option '--{}' doesn't allow an argument", option.row.name));
            }
            (false, None) => "",
            (true, Some(value)) => value,
            (true, None) => match self.words.next() {
                Some(value) => value,
                None => return Err(format!("option '--{}' requires an argument", option.row.name)),
            },
        };
        Ok(NextWords::Option(option, value.to_owned()))
    }

    fn find(&self, name: &str, body: &str) -> Result<&'static PgbenchOption, String> {
        if let Some(exact) = OPTIONS.iter().find(|option| option.row.name == name) {
            return Ok(exact);
        }
        for newer in [false, true] {
            let fits = |option: &&PgbenchOption| {
                option.is_newer == newer && option.row.name.starts_with(name)
            };
            let fitting: Vec<_> = OPTIONS.iter().filter(fits).collect();
            match fitting.as_slice() {
                [] => {}
                [only] => return Ok(only),
                several => {
                    let names: Vec<_> =
                        several.iter().map(|option| format!(" '--{}'", option.row.name)).collect();
                    let names = names.concat();
                    return Err(format!("option '--{body}' is ambiguous; possibilities:{names}"));
                }
            }
        }
        Err(format!("unrecognized option '--{body}'"))
    }
}

/// The number at the beginning of a text and what follows it, as `strtod` finds them; 0 and the
/// whole text where there is none.
pub(super) fn leading_double(text: &str) -> f64 {
    let text = text.trim_start();
    let digits = |from: usize| {
        let rest = &text.as_bytes()[from..];
        from + rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let is_at =
        |at: usize, bytes: &[u8]| text.as_bytes().get(at).is_some_and(|b| bytes.contains(b));
    let signed = |at: usize| if is_at(at, b"+-") { at + 1 } else { at };
    let whole = digits(signed(0));
    let mut end = if is_at(whole, b".") { digits(whole + 1) } else { whole };
    if is_at(end, b"eE") {
        let exponent = signed(end + 1);
        if digits(exponent) > exponent {
            end = digits(exponent);
        }
    }
    text[..end].parse().unwrap_or(0.0)
}

/// The integer at the beginning of a text, as `atoi` finds it; 0 where there is none.
pub(super) fn leading_int(text: &str) -> i32 {
    let (value, _) = long(text);
    // What doesn't fit is cut, as the C library's conversion from long does.
    value.unwrap_or(i64::MAX) as i32
}

/// What `strtol` finds at the beginning of a text: the number (`None` when it is out of range)
/// and the rest.
pub(super) fn long(text: &str) -> (Option<i64>, &str) {
    let body = text.trim_start_matches([' ', '\t', '\n', '\u{b}', '\u{c}', '\r']);
    let sign = usize::from(body.starts_with(['+', '-']));
    let digits = body[sign..].bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 {
        return (Some(0), text);
    }
    let (number, rest) = body.split_at(sign + digits);
    (number.parse().ok(), rest)
}

/// An unsigned number of 64 bits as `scanf` takes it: signs and overflow included.
pub(super) fn scanned_u64(text: &str) -> Option<u64> {
    let body = text.trim_start();
    let (is_negative, digits) = match body.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, body.strip_prefix('+').unwrap_or(body)),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(match digits.parse::<u64>() {
        Ok(number) if is_negative => number.wrapping_neg(),
        Ok(number) => number,
        Err(_) => u64::MAX,
    })
}

/// The whole number an option takes. `name` is as pgbench calls it in its complaints.
pub(super) fn option_int(text: &str, name: &str, min: i32, max: i32) -> Result<i32, String> {
    let (value, rest) = long(text);
    if !rest.trim_ascii_start().is_empty() {
        return Err(format!("invalid value \"{text}\" for option {name}"));
    }
    value
        .and_then(|value| i32::try_from(value).ok())
        .filter(|value| (min..=max).contains(value))
        .ok_or_else(|| format!("{name} must be in range {min}..{max}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of options with their values, and operands.
    fn read(line: &[&str]) -> Result<Vec<(&'static str, String)>, String> {
        let line: Vec<String> = line.iter().map(|&word| word.to_owned()).collect();
        let mut words = ArgumentWords::new(&line);
        let pair = |next| match next {
            NextWords::Option(option, value) => (option.row.name, value),
            NextWords::Operand(word) => ("", word),
        };
        std::iter::from_fn(|| words.next()).map(|next| next.map(pair)).collect()
    }

    fn option(name: &'static str, value: &str) -> (&'static str, String) {
        (name, value.to_owned())
    }

    #[test]
    fn values_may_be_glued_or_apart_and_operands_anywhere() {
        let operand = |word| option("", word);
        assert_eq!(
            read(&["db", "-nCc8", "-c", "9", "--client=", "--client", "-1", "-", "--", "-n"]),
            Ok(vec![
                operand("db"),
                option("no-vacuum", ""),
                option("connect", ""),
                option("client", "8"),
                option("client", "9"),
                option("client", ""),
                option("client", "-1"),
                operand("-"),
                operand("-n"),
            ])
        );
    }

    #[test]
    fn abbreviations_mean_what_they_meant_before_newer_options_came() {
        assert_eq!(read(&["--j=1", "--js=x", "--no"]), {
            Ok(vec![option("jobs", "1"), option("json", "x"), option("no-vacuum", "")])
        });
        assert_eq!(
            read(&["--c=3"]),
            Err("option '--c=3' is ambiguous; possibilities: '--client' '--connect'".to_owned())
        );
    }

    #[test]
    fn complaints_are_the_c_librarys() {
        for (line, complaint) in [
            (&["--foo=1"][..], "unrecognized option '--foo=1'"),
            (&["-nx"], "invalid option -- 'x'"),
            (&["-c"], "option requires an argument -- 'c'"),
            (&["--cl"], "option '--client' requires an argument"),
            (&["--conn=3"], "option '--connect' doesn't allow an argument"),
        ] {
            assert_eq!(read(line), Err(complaint.to_owned()), "{line:?}");
        }
    }

    #[test]
    fn doubles_end_where_strtod_ends() {
        for (text, value) in [
            ("12.5ms", 12.5),
            (" +.5", 0.5),
            ("-1e3x", -1000.0),
            ("1e", 1.0),
            ("1e+", 1.0),
            ("7.", 7.0),
            ("", 0.0),
            (".", 0.0),
            ("abc", 0.0),
        ] {
            assert!((leading_double(text) - value).abs() < f64::EPSILON, "{text}");
        }
    }

    #[test]
    fn whole_numbers_are_checked_as_pgbench_checks_them() {
        let int = |text| option_int(text, "-F/--fillfactor", 10, 100);
        assert_eq!(int(" 50 "), Ok(50));
        assert_eq!(int("+10"), Ok(10));
        let range = Err("-F/--fillfactor must be in range 10..100".to_owned());
        for text in ["9", "101", "", " ", "99999999999999999999", "-50"] {
            assert_eq!(int(text), range, "{text:?}");
        }
        for text in ["x", "5x", "1 2", "-", "0x10"] {
            let invalid = format!("invalid value \"{text}\" for option -F/--fillfactor");
            assert_eq!(int(text), Err(invalid));
        }
    }

    #[test]
    fn seeds_are_read_as_scanf_reads_them() {
        assert_eq!(scanned_u64(" 12"), Some(12));
        assert_eq!(scanned_u64("-1"), Some(u64::MAX));
        assert_eq!(scanned_u64("99999999999999999999999"), Some(u64::MAX));
        for text in ["", "x", "1x", "1 ", "--1"] {
            assert_eq!(scanned_u64(text), None, "{text:?}");
        }
        assert_eq!((leading_int("12abc"), leading_int("-3"), leading_int("x")), (12, -3, 0));
    }
}
