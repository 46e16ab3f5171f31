//! What a script consists of.

use super::program::Program;
use super::statement::{Statement, shown_text};
use std::borrow::Cow;

#[derive(Clone, Debug)]
pub struct ScriptCommand {
    pub(crate) action: Action,
    pub(crate) name: String,
    pub(crate) first_line: String,
    pub(crate) line: u32,
}

impl ScriptCommand {
    pub(crate) fn sql(statement: Statement, line: u32) -> Self {
        let first_line = statement.first_line();
        ScriptCommand { action: Action::Sql(statement), name: "SQL".to_owned(), first_line, line }
    }

    /// What reports show of it: the first line of a statement, at most 127 bytes; all of a meta
    /// command.
    pub fn first_line(&self) -> &str {
        &self.first_line
    }

    /// All of it, without the semicolon that ends a statement.
    pub fn text(&self) -> Cow<'_, str> {
        match &self.action {
            Action::Sql(statement) => shown_text(&statement.text).into(),
            _ => self.first_line.as_str().into(),
        }
    }

    /// The name of a meta command as it was written, or `SQL`.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn is_sql(&self) -> bool {
        matches!(self.action, Action::Sql(_))
    }

    /// True for what runs a command of the shell, however its name is written.
    pub fn is_shell(&self) -> bool {
        matches!(self.action, Action::Shell(_) | Action::SetShell { .. })
    }

    /// The line of the script on which a meta command begins or a statement ends, from 1.
    pub fn line(&self) -> u32 {
        self.line
    }
}

/// What a command does. Variables are numbers of [`super::Names`]; commands to jump to are numbers
/// within the script.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    Sql(Statement),
    Set {
        variable: u32,
        program: Program,
    },
    /// A `\set` to a random number between both, which is what most scripts set.
    Draw {
        variable: u32,
        first: i64,
        last: i64,
    },
    If {
        program: Program,
        /// Where to go on if it doesn't hold.
        otherwise: u32,
    },
    /// Evaluated when the branches before it did not hold. Reached from the branch before it, it
    /// leads to the end.
    Elif {
        program: Program,
        otherwise: u32,
        end: u32,
    },
    /// Reached from the branch before it, it leads to the end.
    Else {
        end: u32,
    },
    Endif,
    Sleep {
        amount: Amount,
        /// Microseconds per unit.
        unit_us: i64,
    },
    Shell(Vec<Word>),
    SetShell {
        variable: u32,
        words: Vec<Word>,
    },
    StartPipeline,
    SyncPipeline,
    EndPipeline,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Amount {
    Units(i64),
    Variable(u32),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    Text(String),
    Variable(u32),
}

impl Action {
    pub(crate) fn program(&self) -> Option<&Program> {
        match self {
            Action::Set { program, .. }
            | Action::If { program, .. }
            | Action::Elif { program, .. } => Some(program),
            _ => None,
        }
    }

    pub(crate) fn program_mut(&mut self) -> Option<&mut Program> {
        match self {
            Action::Set { program, .. }
            | Action::If { program, .. }
            | Action::Elif { program, .. } => Some(program),
            _ => None,
        }
    }
}

impl Amount {
    pub(crate) fn variable_mut(&mut self) -> Option<&mut u32> {
        match self {
            Amount::Variable(variable) => Some(variable),
            Amount::Units(_) => None,
        }
    }
}

impl Word {
    pub(crate) fn variable_mut(&mut self) -> Option<&mut u32> {
        match self {
            Word::Variable(variable) => Some(variable),
            Word::Text(_) => None,
        }
    }
}
