//! Meta commands: from a line of the script to a command.

use super::command::{Action, Amount, ScriptCommand, Word};
use super::error::{ScriptError, SourceLine};
use super::parser;
use super::program::Program;
use super::scanner::Scanner;
use super::statement::Store;
use super::{Names, value};
use dyno_core::text_from_bytes;

/// Words of a meta command, its name included.
const MOST_WORDS: usize = 256;

pub(crate) enum Meta {
    Command(ScriptCommand),
    /// `\gset` or `\aset`, which belong to the statement before them.
    Store(Store),
}

/// A word and where it begins.
type Argument = (String, usize);

/// Reads the meta command whose backslash was passed. `None` for a lone backslash.
pub(crate) fn read(
    scanner: &mut Scanner<'_>,
    place: SourceLine<'_>,
    names: &mut Names,
) -> Result<Option<Meta>, ScriptError> {
    scanner.begin_command();
    let Some((name, _)) = scanner.word() else { return Ok(None) };
    let name = String::from_utf8_lossy(name).into_owned();
    let mut reader = Reader { scanner, place, names, name: &name };
    let action = match name.to_ascii_lowercase().as_str() {
        "set" => reader.set()?,
        "if" => Action::If { program: reader.expression()?, otherwise: 0 },
        "elif" => Action::Elif { program: reader.expression()?, otherwise: 0, end: 0 },
        other => match reader.words(other)? {
            Meta::Command(command) => command.action,
            store @ Meta::Store(_) => return Ok(Some(store)),
        },
    };
    let first_line = scanner.line_from(place.start);
    Ok(Some(Meta::Command(ScriptCommand { action, name, first_line, line: place.line })))
}

struct Reader<'r, 'a> {
    scanner: &'r mut Scanner<'a>,
    place: SourceLine<'r>,
    names: &'r mut Names,
    name: &'r str,
}

impl Reader<'_, '_> {
    fn set(&mut self) -> Result<Action, ScriptError> {
        let Some((variable, _)) = self.scanner.word() else {
            return Err(self.place.of_command(self.name, "missing argument"));
        };
        let variable = self.names.number(&text_from_bytes(variable));
        Ok(Action::Set { variable, program: self.expression()? })
    }

    fn expression(&mut self) -> Result<Program, ScriptError> {
        let names = &mut *self.names;
        let mut number = |name: &[u8]| names.number(&text_from_bytes(name));
        parser::parse(self.scanner, &mut number).map_err(|error| {
            let at = error.end.saturating_sub(1);
            let more = error.more.as_deref();
            self.place.shown(self.scanner, self.name, error.message, more, Some(at))
        })
    }

    fn fail<T>(&self, message: &str, marked: Option<&Argument>) -> Result<T, ScriptError> {
        let at = marked.map(|&(_, at)| at);
        Err(self.place.shown(self.scanner, self.name, message, None, at))
    }

    fn fail_with<T>(&self, message: &str, (word, at): &Argument) -> Result<T, ScriptError> {
        Err(self.place.shown(self.scanner, self.name, message, Some(word), Some(*at)))
    }

    /// The commands without expressions.
    fn words(&mut self, name: &str) -> Result<Meta, ScriptError> {
        let mut words: Vec<Argument> = Vec::new();
        while let Some((word, at)) = self.scanner.word() {
            if words.len() + 1 >= MOST_WORDS {
                return Err(self.place.of_command(self.name, "too many arguments"));
            }
            words.push((text_from_bytes(word), at));
        }
        let action = match name {
            "sleep" => self.sleep(words)?,
            "setshell" if words.len() < 2 => return self.fail("missing argument", None),
            "setshell" => {
                let variable = self.names.number(&words[0].0);
                Action::SetShell { variable, words: self.shell_words(&words[1..]) }
            }
            "shell" if words.is_empty() => return self.fail("missing command", None),
            "shell" => Action::Shell(self.shell_words(&words)),
            "gset" | "aset" => {
                if words.len() > 1 {
                    return self.fail("too many arguments", None);
                }
                let prefix = words.pop().map_or_else(String::new, |(word, _)| word);
                return Ok(Meta::Store(Store { prefix, is_gset: name == "gset" }));
            }
            "else" | "endif" | "startpipeline" | "syncpipeline" | "endpipeline"
                if !words.is_empty() =>
            {
                return self.fail("unexpected argument", None);
            }
            "else" => Action::Else { end: 0 },
            "endif" => Action::Endif,
            "startpipeline" => Action::StartPipeline,
            "syncpipeline" => Action::SyncPipeline,
            "endpipeline" => Action::EndPipeline,
            _ => return self.fail("invalid command", None),
        };
        let (name, line) = (String::new(), self.place.line);
        Ok(Meta::Command(ScriptCommand { action, name, first_line: String::new(), line }))
    }

    fn shell_words(&mut self, words: &[Argument]) -> Vec<Word> {
        let mut word = |word: &str| match word.strip_prefix(':') {
            None => Word::Text(word.to_owned()),
            Some(rest) if rest.starts_with(':') => Word::Text(rest.to_owned()),
            Some(variable) => Word::Variable(self.names.number(variable)),
        };
        words.iter().map(|(text, _)| word(text)).collect()
    }

    fn sleep(&mut self, mut words: Vec<Argument>) -> Result<Action, ScriptError> {
        match words.len() {
            0 => return self.fail("missing argument", None),
            1 | 2 => {}
            _ => return self.fail("too many arguments", Some(&words[2])),
        }
        let (text, at) = words[0].clone();
        let amount = if let Some(variable) = text.strip_prefix(':') {
            Amount::Variable(self.names.number(variable))
        } else {
            let sign = usize::from(text.starts_with(['+', '-']));
            let digits = text[sign..].bytes().take_while(u8::is_ascii_digit).count();
            let end = sign + digits;
            if end < text.len() {
                if words.len() > 1 || digits == 0 {
                    return self.fail_with("invalid sleep time, must be an integer", &words[0]);
                }
                words.push((text[end..].to_owned(), at + end));
            }
            Amount::Units(value::leading_int(&text))
        };
        let unit_us = match words.get(1) {
            None => 1_000_000,
            Some(unit) => match unit.0.to_ascii_lowercase().as_str() {
                "us" => 1,
                "ms" => 1_000,
                "s" => 1_000_000,
                _ => return self.fail_with("unrecognized time unit, must be us, ms or s", unit),
            },
        };
        Ok(Action::Sleep { amount, unit_us })
    }
}
