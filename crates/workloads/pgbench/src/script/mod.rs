//! The script language of pgbench: SQL statements and meta commands, and expressions within these.
//!
//! ```
//! use dyno_pgbench::script::{QueryMode, Script};
//!
//! let text = b"\\set aid random(1, 100000 * :scale)\nSELECT 1 WHERE :aid > 0;\n";
//! let script = Script::parse(text, "read.sql", QueryMode::Simple).unwrap();
//! assert_eq!(script.commands()[1].first_line(), "SELECT 1 WHERE :aid > 0;");
//! let error = Script::parse(b"\\set x 1 +", "bad.sql", QueryMode::Simple).unwrap_err();
//! let text = "bad.sql:1: syntax error in command \"set\"\n\\set x 1 +\n         ^ error found here";
//! assert_eq!(error.to_string(), text);
//! ```

mod builtin;
mod command;
mod conditions;
mod error;
mod function;
mod meta;
mod parser;
mod program;
mod scanner;
mod sql;
mod statement;
mod value;

pub use builtin::{Builtin, builtins, find_builtin};
pub use command::ScriptCommand;
pub(crate) use command::{Action, Amount, Word};
pub use error::ScriptError;
pub(crate) use function::{function_names, is_function_name};
pub(crate) use program::{Op, Program, Scope, is_true};
pub(crate) use scanner::is_variable_name;
pub(crate) use statement::{Reference, Statement, Store, shown_text};
pub use value::ScriptValue;
pub(crate) use value::{NoValue, leading_int, parse_value};

use error::SourceLine;
use scanner::Scanner;
use sql::{End, SqlLexer};
use std::collections::HashMap;

dyno_core::named! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
    pub enum QueryMode {
        /// As text, with variables put in.
        #[default]
        Simple = "simple",
        /// Parsed each time, variables as parameters.
        Extended = "extended",
        /// Prepared once per session, variables as parameters.
        Prepared = "prepared",
    }
}

#[derive(Clone, Debug)]
pub struct Script {
    description: String,
    mode: QueryMode,
    commands: Vec<ScriptCommand>,
    names: Vec<String>,
}

/// Numbers names in the order in which they are first seen.
#[derive(Debug, Default)]
pub(crate) struct Names {
    numbers: HashMap<String, u32>,
    names: Vec<String>,
}

impl Names {
    /// The number of a name, a new one if it is new.
    pub(crate) fn number(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let number = self.names.len() as u32;
        self.numbers.insert(name.to_owned(), number);
        self.names.push(name.to_owned());
        number
    }

    /// The number of a name that is known.
    pub(crate) fn find(&self, name: &str) -> Option<u32> {
        self.numbers.get(name).copied()
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }
}

impl Script {
    /// Reads a script. `description` is the file's name in messages, or what reports call it.
    pub fn parse(text: &[u8], description: &str, mode: QueryMode) -> Result<Script, ScriptError> {
        let mut reader = Reader {
            scanner: Scanner::new(text),
            description,
            mode,
            commands: Vec::new(),
            names: Names::default(),
        };
        reader.read()?;
        let Reader { commands, names, .. } = reader;
        if commands.is_empty() {
            let text = format!("empty command list for script \"{description}\"");
            return Err(ScriptError::new(text));
        }
        let mut script =
            Script { description: description.to_owned(), mode, commands, names: names.names };
        conditions::resolve(&mut script.commands, description)?;
        Ok(script)
    }

    /// What reports call the script: a file name, or `<builtin: select only>`.
    pub fn description(&self) -> &str {
        &self.description
    }

    pub fn mode(&self) -> QueryMode {
        self.mode
    }

    /// The commands in order; statistics of commands are in the same order. Never empty.
    pub fn commands(&self) -> &[ScriptCommand] {
        &self.commands
    }

    /// The names of all variables that the script mentions, in no particular order.
    pub fn variables(&self) -> &[String] {
        &self.names
    }

    /// The commands, to be adapted to a dialect and to the variables of a run.
    pub(crate) fn commands_mut(&mut self) -> &mut [ScriptCommand] {
        &mut self.commands
    }
}

struct Reader<'a> {
    scanner: Scanner<'a>,
    description: &'a str,
    mode: QueryMode,
    commands: Vec<ScriptCommand>,
    names: Names,
}

impl Reader<'_> {
    fn read(&mut self) -> Result<(), ScriptError> {
        let mut lexer = SqlLexer::default();
        loop {
            // The statement begins at the first character that is not left out.
            let (piece, end) = lexer.piece(&mut self.scanner);
            if let Some(skipped) = sql::skip_comments(&piece.text) {
                let line = self.scanner.line_number();
                let statement =
                    Statement::new(&piece, skipped, self.mode, &mut self.names, |text| {
                        ScriptError::new(text).at_line(line)
                    })?;
                self.commands.push(ScriptCommand::sql(statement, line));
            }
            match end {
                End::Text => return Ok(()),
                End::Semicolon => {}
                End::Backslash => self.meta()?,
            }
        }
    }

    fn meta(&mut self) -> Result<(), ScriptError> {
        let start = self.scanner.offset() - 1;
        let line = self.scanner.line_number();
        let place = SourceLine { description: self.description, line, start };
        let Some(read) = meta::read(&mut self.scanner, place, &mut self.names)? else {
            return Ok(());
        };
        match read {
            meta::Meta::Command(command) => self.commands.push(command),
            meta::Meta::Store(store) => {
                let refuse = |more: Option<&str>| {
                    Err(place.error("\\gset must follow an SQL command", more))
                };
                match self.commands.last_mut() {
                    None => return refuse(None),
                    Some(command) => match &mut command.action {
                        Action::Sql(statement) if statement.store.is_none() => {
                            statement.store = Some(store);
                        }
                        Action::Sql(_) => return refuse(None),
                        _ => return refuse(Some(&command.first_line)),
                    },
                }
            }
        }
        Ok(())
    }
}
