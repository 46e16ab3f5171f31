//! The script language of pgbench: SQL statements and meta commands, and expressions within these.
//!
//! ```
//! use dyno_pgbench::script::{QueryMode, Script};
//!
//! let text = b"\\set aid random(1, 100000 * :scale)\nSELECT 1 WHERE :aid > 0;\n";
//! let script = Script::parse(text, "read.sql", QueryMode::Simple).unwrap();
//! assert_eq!(script.commands[1].first_line, "SELECT 1 WHERE :aid > 0;");
//! let error = Script::parse(b"\\set x 1 +", "bad.sql", QueryMode::Simple).unwrap_err();
//! let text = "bad.sql:1: syntax error in command \"set\"\n\\set x 1 +\n         ^ error found here";
//! assert_eq!(error.to_string(), text);
//! ```

use command::{Reader, resolve_conditions};
use std::collections::HashMap;
use std::fmt;

pub use command::ScriptCommand;
pub(crate) use command::{Action, Amount, Reference, Statement, Store, Word, shown_text};
pub(crate) use parser::is_variable_name;
pub use program::ScriptValue;
pub(crate) use program::{
    Function, Op, Program, Scope, function_names, is_function_name, is_true, leading_int,
    malformed, parse_value,
};

mod command;
mod parser;
mod program;

dyno_core::named! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
    pub enum QueryMode {
        /// The text, with variables put in.
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
    /// The name in reports: a file name, or `<builtin: select only>`.
    pub description: String,
    /// The commands in order; their statistics are in the same order. Never empty.
    pub commands: Vec<ScriptCommand>,
    /// The names of all variables that the script mentions, in no particular order.
    pub variables: Vec<String>,
}

/// Numbers names in the order in which they are first seen.
#[derive(Debug, Default)]
pub(crate) struct Names {
    numbers: HashMap<String, u32>,
    pub(crate) names: Vec<String>,
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
}

impl Script {
    /// Reads a script. `description` is the file's name in messages, or what reports call it.
    pub fn parse(text: &[u8], description: &str, mode: QueryMode) -> Result<Script, ScriptError> {
        let mut reader = Reader::new(text, description, mode);
        reader.read()?;
        let Reader { mut commands, names, .. } = reader;
        if commands.is_empty() {
            let text = format!("empty command list for script \"{description}\"");
            return Err(ScriptError::new(text));
        }
        resolve_conditions(&mut commands, description)?;
        let description = description.to_owned();
        Ok(Script { description, commands, variables: names.names })
    }

    /// The variables in its statements outside of quotes.
    pub(crate) fn parameters(&self) -> impl Iterator<Item = &str> {
        let references = self.commands.iter().flat_map(|command| match &command.action {
            Action::Sql(statement) => &statement.references[..],
            _ => &[],
        });
        let parameters = references.filter(|reference| !reference.is_quoted);
        parameters.map(|reference| &*self.variables[reference.variable as usize])
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Builtin {
    pub name: &'static str,
    pub description: &'static str,
    pub text: &'static str,
}

impl Builtin {
    /// The script, read for a mode.
    ///
    /// # Errors
    /// None: the texts are good.
    pub fn script(&self, mode: QueryMode) -> Result<Script, ScriptError> {
        Script::parse(self.text.as_bytes(), self.description, mode)
    }
}

/// The order of the draws decides which numbers a seed gives.
const BUILTINS: [Builtin; 3] = [
    Builtin {
        name: "tpcb-like",
        description: "<builtin: TPC-B (sort of)>",
        text: "\\set aid random(1, 100000 * :scale)\n\
            \\set bid random(1, 1 * :scale)\n\
            \\set tid random(1, 10 * :scale)\n\
            \\set delta random(-5000, 5000)\n\
            BEGIN;\n\
            UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;\n\
            SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n\
            UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;\n\
            UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;\n\
            INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) \
            VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);\n\
            END;\n",
    },
    Builtin {
        name: "simple-update",
        description: "<builtin: simple update>",
        text: "\\set aid random(1, 100000 * :scale)\n\
            \\set bid random(1, 1 * :scale)\n\
            \\set tid random(1, 10 * :scale)\n\
            \\set delta random(-5000, 5000)\n\
            BEGIN;\n\
            UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;\n\
            SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n\
            INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) \
            VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);\n\
            END;\n",
    },
    Builtin {
        name: "select-only",
        description: "<builtin: select only>",
        text: "\\set aid random(1, 100000 * :scale)\n\
            SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n",
    },
];

/// The built-in scripts in the order in which pgbench lists them.
pub fn builtins() -> &'static [Builtin] {
    &BUILTINS
}

/// The only built-in script whose name begins with `prefix`.
pub fn find_builtin(prefix: &str) -> Result<&'static Builtin, String> {
    let candidates: Vec<_> =
        BUILTINS.iter().filter(|builtin| builtin.name.starts_with(prefix)).collect();
    match candidates.as_slice() {
        [builtin] => Ok(builtin),
        [] => Err(format!("no builtin script found for name \"{prefix}\"")),
        many => Err(format!(
            "ambiguous builtin name: {} builtin scripts found for prefix \"{prefix}\"",
            many.len()
        )),
    }
}

/// Reason why a script can't be used. Displayed as pgbench prints it, without its `pgbench: error: `; the
/// line concerned and a mark below it are separate lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    text: String,
    /// The line of the script on which the command begins, from 1.
    pub line: Option<u32>,
    /// Bytes from the beginning of the command, its backslash being 1, to where the error was
    /// found.
    pub column: Option<u32>,
}

impl ScriptError {
    pub(crate) fn new(text: String) -> Self {
        ScriptError { text, line: None, column: None }
    }

    /// Adds the text of the command, which begins at byte `start` of the script, with a mark below byte `at` of it.
    pub(crate) fn with_source(mut self, source: &str, at: Option<usize>, start: usize) -> Self {
        self.text.push('\n');
        self.text.push_str(source);
        if let Some(at) = at {
            let column = (at + 1).saturating_sub(start).max(1);
            self.text.push_str(&format!("\n{}^ error found here", " ".repeat(column - 1)));
            self.column = Some(column as u32);
        }
        self
    }
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for ScriptError {}
