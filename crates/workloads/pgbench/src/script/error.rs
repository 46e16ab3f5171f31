//! What is said of a bad script.

use super::scanner::Scanner;
use std::fmt;

/// Why a script can't be used. Displayed as pgbench says it, without its `pgbench: error: `; the
/// line concerned and a mark below it are lines of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    text: String,
    line: Option<u32>,
    column: Option<u32>,
}

impl ScriptError {
    pub(crate) fn new(text: String) -> Self {
        ScriptError { text, line: None, column: None }
    }

    pub(crate) fn at_line(mut self, line: u32) -> Self {
        self.line = Some(line);
        self
    }

    /// The line of the script on which the command begins, from 1.
    pub fn line(&self) -> Option<u32> {
        self.line
    }

    /// Bytes from the beginning of the command, its backslash being 1, to where the error was
    /// found.
    pub fn column(&self) -> Option<u32> {
        self.column
    }
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for ScriptError {}

/// Where a meta command begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SourceLine<'a> {
    pub(crate) description: &'a str,
    pub(crate) line: u32,
    /// Bytes of the script before the backslash.
    pub(crate) start: usize,
}

impl SourceLine<'_> {
    /// An error that names no command.
    pub(crate) fn error(&self, message: &str, more: Option<&str>) -> ScriptError {
        ScriptError::new(self.sentence(message, more)).at_line(self.line)
    }

    /// An error of a command whose text can't be shown.
    pub(crate) fn of_command(&self, command: &str, message: &str) -> ScriptError {
        let text = format!("{} in command \"{command}\"", self.sentence(message, None));
        ScriptError::new(text).at_line(self.line)
    }

    /// An error of a command, with its text up to the scanner's place. `at` is the byte of the
    /// script to be marked.
    pub(crate) fn shown(
        &self,
        scanner: &Scanner<'_>,
        command: &str,
        message: &str,
        more: Option<&str>,
        at: Option<usize>,
    ) -> ScriptError {
        let mut text = format!("{} in command \"{command}\"", self.sentence(message, more));
        text.push('\n');
        text.push_str(&scanner.line_from(self.start));
        let column = at.map(|at| (at + 1).saturating_sub(self.start).max(1));
        if let Some(column) = column {
            text.push('\n');
            text.extend(std::iter::repeat_n(' ', column - 1));
            text.push_str("^ error found here");
        }
        ScriptError { text, line: Some(self.line), column: column.map(|column| column as u32) }
    }

    fn sentence(&self, message: &str, more: Option<&str>) -> String {
        let mut text = format!("{}:{}: {message}", self.description, self.line);
        if let Some(more) = more {
            text.push_str(&format!(" ({more})"));
        }
        text
    }
}
