//! The words of a command line as the C library's `getopt_long` takes them: bundled short options,
//! abbreviated long ones, values glued or apart, operands anywhere.

#[derive(Clone, Copy, Debug)]
pub(super) struct OptionWord<I> {
    pub(super) id: I,
    pub(super) long: &'static str,
    pub(super) short: Option<char>,
    pub(super) takes_value: bool,
    /// Not in pgbench 15: never makes an abbreviation ambiguous that 15 understands.
    pub(super) is_newer: bool,
    /// The long name of the option that the letter means where no value follows it.
    pub(super) alone: Option<&'static str>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NextWords<I> {
    /// An option; the text is empty when it takes no value.
    Option(I, String),
    Operand(String),
}

/// Goes through the words one by one, so that what an option does can happen before the next one is
/// looked at.
pub(super) struct ArgumentWords<'a, I: 'static> {
    table: &'static [OptionWord<I>],
    words: std::slice::Iter<'a, String>,
    /// What is left of a word of bundled short options.
    bundle: std::str::Chars<'a>,
    only_operands: bool,
}

impl<'a, I: Copy> ArgumentWords<'a, I> {
    pub(super) fn new(table: &'static [OptionWord<I>], words: &'a [String]) -> Self {
        ArgumentWords { table, words: words.iter(), bundle: "".chars(), only_operands: false }
    }

    /// The next option or operand; `None` at the end.
    pub(super) fn next(&mut self) -> Option<Result<NextWords<I>, String>> {
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

    fn short(&mut self, letter: char) -> Result<NextWords<I>, String> {
        let Some(option) = self.table.iter().find(|option| option.short == Some(letter)) else {
            return Err(format!("invalid option -- '{letter}'"));
        };
        if !option.takes_value {
            return Ok(NextWords::Option(option.id, String::new()));
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
            Some(value) => Ok(NextWords::Option(option.id, value.to_owned())),
            None => Err(format!("option requires an argument -- '{letter}'")),
        }
    }

    fn long(&mut self, body: &str) -> Result<NextWords<I>, String> {
        let (name, value) = match body.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (body, None),
        };
        let option = self.find(name, body)?;
        let value = match (option.takes_value, value) {
            (false, Some(_)) => {
                return Err(format!("option '--{}' doesn't allow an argument", option.long));
            }
            (false, None) => "",
            (true, Some(value)) => value,
            (true, None) => match self.words.next() {
                Some(value) => value,
                None => return Err(format!("option '--{}' requires an argument", option.long)),
            },
        };
        Ok(NextWords::Option(option.id, value.to_owned()))
    }

    fn find(&self, name: &str, body: &str) -> Result<&'static OptionWord<I>, String> {
        if let Some(exact) = self.table.iter().find(|option| option.long == name) {
            return Ok(exact);
        }
        for newer in [false, true] {
            let fits =
                |option: &&OptionWord<I>| option.is_newer == newer && option.long.starts_with(name);
            let fitting: Vec<_> = self.table.iter().filter(fits).collect();
            match fitting.as_slice() {
                [] => {}
                [only] => return Ok(only),
                several => {
                    let names: Vec<_> =
                        several.iter().map(|option| format!(" '--{}'", option.long)).collect();
                    let names = names.concat();
                    return Err(format!("option '--{body}' is ambiguous; possibilities:{names}"));
                }
            }
        }
        Err(format!("unrecognized option '--{body}'"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn word(
        id: char,
        long: &'static str,
        takes_value: bool,
        is_newer: bool,
    ) -> OptionWord<char> {
        OptionWord { id, long, short: Some(id), takes_value, is_newer, alone: None }
    }

    static TABLE: [OptionWord<char>; 5] = [
        word('c', "client", true, false),
        word('C', "connect", false, false),
        word('n', "no-vacuum", false, false),
        word('j', "jobs", true, false),
        word('J', "json", true, true),
    ];

    fn read(line: &[&str]) -> Result<Vec<NextWords<char>>, String> {
        let line: Vec<String> = line.iter().map(|&word| word.to_owned()).collect();
        let mut words = ArgumentWords::new(&TABLE, &line);
        std::iter::from_fn(|| words.next()).collect()
    }

    fn option(id: char, value: &str) -> NextWords<char> {
        NextWords::Option(id, value.to_owned())
    }

    #[test]
    fn values_may_be_glued_or_apart_and_operands_anywhere() {
        let operand = |word: &str| NextWords::Operand(word.to_owned());
        assert_eq!(
            read(&["db", "-nCc8", "-c", "9", "--client=", "--client", "-1", "-", "--", "-n"]),
            Ok(vec![
                operand("db"),
                option('n', ""),
                option('C', ""),
                option('c', "8"),
                option('c', "9"),
                option('c', ""),
                option('c', "-1"),
                operand("-"),
                operand("-n"),
            ])
        );
    }

    #[test]
    fn abbreviations_mean_what_they_meant_before_newer_options_came() {
        assert_eq!(read(&["--j=1", "--js=x", "--no"]), {
            Ok(vec![option('j', "1"), option('J', "x"), option('n', "")])
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
}
