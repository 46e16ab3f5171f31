//! The commands of a script: SQL statements with the variables in them, and meta commands.

use super::parser::{self, Scanner, continues_name, starts_name};
use super::program::{Program, leading_int};
use super::{Names, QueryMode, ScriptError};
use dyno_core::{Dialect, SqlPart, SqlRules, text_from_bytes};
use std::borrow::Cow;
use std::ops::Range;

#[derive(Clone, Debug)]
pub struct ScriptCommand {
    pub(crate) action: Action,
    /// The name of a meta command as it was written, or `SQL`.
    pub name: String,
    /// Its text in reports: the first line of a statement, at most 127 bytes; all of a meta
    /// command.
    pub first_line: String,
    /// The line of the script on which a meta command begins or a statement ends, from 1.
    pub line: u32,
}

impl ScriptCommand {
    /// All of it, without the semicolon that ends a statement.
    pub fn text(&self) -> Cow<'_, str> {
        match &self.action {
            Action::Sql(statement) => shown_text(&statement.text).into(),
            _ => self.first_line.as_str().into(),
        }
    }

    pub fn is_sql(&self) -> bool {
        matches!(self.action, Action::Sql(_))
    }

    /// Returns true for what runs a command of the shell, however its name is written.
    pub fn is_shell(&self) -> bool {
        matches!(self.action, Action::Shell(_) | Action::SetShell { .. })
    }
}

/// The action of a command. Variables are numbers of [`super::Names`]; commands to jump to are numbers
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
        /// Command to jump to if it doesn't hold.
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
    pub(crate) fn program_mut(&mut self) -> Option<&mut Program> {
        match self {
            Action::Set { program, .. }
            | Action::If { program, .. }
            | Action::Elif { program, .. } => Some(program),
            _ => None,
        }
    }

    /// All variables outside of expressions.
    pub(crate) fn variables_mut(&mut self) -> Vec<&mut u32> {
        let (variable, words) = match self {
            Action::Sql(statement) => {
                return statement.references.iter_mut().map(|one| &mut one.variable).collect();
            }
            Action::Set { variable, .. }
            | Action::Draw { variable, .. }
            | Action::Sleep { amount: Amount::Variable(variable), .. } => (Some(variable), None),
            Action::Shell(words) => (None, Some(words)),
            Action::SetShell { variable, words } => (Some(variable), Some(words)),
            _ => (None, None),
        };
        let in_words = words.into_iter().flatten().filter_map(|word| match word {
            Word::Variable(variable) => Some(variable),
            Word::Text(_) => None,
        });
        variable.into_iter().chain(in_words).collect()
    }
}

/// References to variables that a statement may have if they become parameters.
const MOST_REFERENCES: usize = 255;
/// Bytes of a statement in reports.
const FIRST_LINE_BYTES: usize = 127;

/// A statement, or several joined by `\;`, sent as one command.
#[derive(Clone, Debug)]
pub(crate) struct Statement {
    /// The script's text, in any encoding.
    pub(crate) text: Vec<u8>,
    pub(crate) references: Vec<Reference>,
    pub(crate) store: Option<Store>,
    /// Set for several statements in one.
    pub(crate) is_chain: bool,
}

/// A variable in the text of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    /// The bytes of the text that name it, colon included.
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) variable: u32,
    /// Set inside a literal, a quoted name or a comment.
    pub(crate) is_quoted: bool,
}

/// `\gset` and `\aset`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Store {
    pub(crate) prefix: String,
    /// Exactly one row of the last result; else the last row of each.
    pub(crate) is_gset: bool,
}

impl Store {
    /// The name of the meta-command.
    pub(crate) fn command(&self) -> &'static str {
        if self.is_gset { "gset" } else { "aset" }
    }
}

/// The text with a `?` for each byte that is not UTF-8: most other encodings have a byte for each letter, by which the
/// server's positions count.
pub(crate) fn shown_text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| '?'));
    }
    text
}

impl Statement {
    pub(crate) fn new(piece: Piece, mode: QueryMode, names: &mut Names) -> Result<Self, String> {
        let Piece { text, quoted, is_chain } = piece;
        let mut references = Vec::new();
        let mut at = 0;
        while let Some(colon) = text[at..].iter().position(|&byte| byte == b':') {
            at += colon;
            if text.get(at + 1).is_some_and(|&byte| starts_name(byte)) {
                let name = text[at + 1..].iter().take_while(|&&byte| continues_name(byte));
                let end = at + 1 + name.count();
                let variable = names.number(&text_from_bytes(&text[at + 1..end]));
                let is_quoted = quoted.iter().any(|range| range.contains(&at));
                references.push(Reference { start: at, end, variable, is_quoted });
                at = end;
            } else {
                at += text[at..].iter().take_while(|&&byte| byte == b':').count();
            }
        }
        if mode != QueryMode::Simple && references.len() > MOST_REFERENCES {
            return Err(format!(
                "statement has too many arguments (maximum is {MOST_REFERENCES}): {}",
                shown_text(&text)
            ));
        }
        Ok(Statement { text, references, store: None, is_chain })
    }

    /// Returns true if nothing but its success matters.
    pub(crate) fn is_plain(&self) -> bool {
        self.store.is_none() && !self.is_chain
    }

    pub(crate) fn first_line(&self) -> String {
        let text = shown_text(&self.text);
        let mut length = text.len().min(FIRST_LINE_BYTES);
        while !text.is_char_boundary(length) {
            length -= 1;
        }
        let line = &text[..length];
        line.split(['\n', '\r']).next().unwrap_or_default().to_owned()
    }

    /// Turns references into parameters: the text with the dialect's placeholders, whose order is
    /// that of the references kept. PostgreSQL gets one for every reference, even in literals, as
    /// pgbench does; elsewhere what is quoted stays unchanged.
    pub(crate) fn parameterize(&mut self, dialect: Dialect) {
        if dialect != Dialect::Postgres {
            self.references.retain(|reference| !reference.is_quoted);
        }
        let mut text = Vec::with_capacity(self.text.len());
        let mut copied_until = 0;
        for (number, reference) in self.references.iter_mut().enumerate() {
            text.extend_from_slice(&self.text[copied_until..reference.start]);
            copied_until = reference.end;
            reference.start = text.len();
            let mut placeholder = String::new();
            dialect.push_placeholder(&mut placeholder, number + 1);
            text.extend_from_slice(placeholder.as_bytes());
            reference.end = text.len();
        }
        text.extend_from_slice(&self.text[copied_until..]);
        self.text = text;
    }
}

/// Checks `\if` and what belongs to it, and fills the places to jump to.
pub(crate) fn resolve_conditions(
    commands: &mut [ScriptCommand],
    description: &str,
) -> Result<(), ScriptError> {
    // The branches so far of each `\if` that has no `\endif` yet.
    let mut open: Vec<Vec<usize>> = Vec::new();
    for at in 0..commands.len() {
        let name = match &commands[at].action {
            Action::If { .. } => {
                open.push(vec![at]);
                continue;
            }
            Action::Elif { .. } => "elif",
            Action::Else { .. } => "else",
            Action::Endif => "endif",
            _ => continue,
        };
        let line = commands[at].line;
        let Some(branches) = open.last_mut() else {
            let problem = format!("\\{name} without matching \\if");
            return Err(condition_error(description, at + 1, line, &problem));
        };
        let last = branches.last().map(|&last| &commands[last].action);
        if name != "endif" && matches!(last, Some(Action::Else { .. })) {
            let problem = format!("\\{name} after \\else");
            return Err(condition_error(description, at + 1, line, &problem));
        }
        branches.push(at);
        let closed = if name == "endif" { open.pop() } else { None };
        for pair in closed.as_deref().unwrap_or_default().windows(2) {
            let is_elif = matches!(commands[pair[1]].action, Action::Elif { .. });
            let (next, after) = (pair[1] as u32 + u32::from(!is_elif), at as u32 + 1);
            match &mut commands[pair[0]].action {
                Action::If { otherwise, .. } => *otherwise = next,
                Action::Elif { otherwise, end, .. } => (*otherwise, *end) = (next, after),
                Action::Else { end } => *end = after,
                _ => {}
            }
        }
    }
    if open.is_empty() {
        return Ok(());
    }
    let line = commands.last().map_or(1, |command| command.line);
    let problem = "\\if without matching \\endif";
    Err(condition_error(description, commands.len() + 1, line, problem))
}

/// Returns the refusal of a command with this number, from 1, in this line of a script.
fn condition_error(description: &str, number: usize, line: u32, problem: &str) -> ScriptError {
    let text = format!("condition error in script \"{description}\" command {number}: {problem}");
    ScriptError { line: Some(line), ..ScriptError::new(text) }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// A semicolon, which belongs to the statement.
    Semicolon,
    /// A backslash, which is passed: a meta command follows.
    Backslash,
    Text,
}

/// A piece of a script up to a semicolon or backslash.
#[derive(Clone, Debug, Default)]
pub(crate) struct Piece {
    pub(crate) text: Vec<u8>,
    /// Literals, quoted names and comments within `text`.
    pub(crate) quoted: Vec<Range<usize>>,
    /// Set if it has a forced semicolon.
    pub(crate) is_chain: bool,
}

/// The rules by which psql reads scripts, whatever the server.
const RULES: SqlRules = SqlRules { dialect: Dialect::Postgres, has_backslash_escapes: false };

/// State that lasts from one statement to the next.
#[derive(Clone, Debug, Default)]
pub(crate) struct SqlLexer {
    parentheses: usize,
    /// BEGINs and CASEs open within the body of a function.
    bodies: usize,
    identifiers: usize,
    /// First letters of the first four words, if these can begin CREATE FUNCTION.
    letters: [u8; 4],
}

impl SqlLexer {
    /// Reads up to the end of a statement.
    pub(crate) fn piece(&mut self, scanner: &mut Scanner<'_>) -> (Piece, End) {
        let mut piece = Piece::default();
        loop {
            let remaining = scanner.rest();
            let Some(&first) = remaining.first() else { return (piece, End::Text) };
            match first {
                b'\\' => match remaining.get(1) {
                    Some(&forced @ (b';' | b':')) => {
                        piece.text.push(forced);
                        scanner.advance(2);
                        if forced == b';' {
                            self.identifiers = 0;
                            piece.is_chain = true;
                        }
                    }
                    _ => {
                        scanner.advance(1);
                        return (piece, End::Backslash);
                    }
                },
                b';' => {
                    piece.text.push(first);
                    scanner.advance(1);
                    if self.parentheses == 0 && self.bodies == 0 {
                        self.identifiers = 0;
                        return (piece, End::Semicolon);
                    }
                }
                _ => self.push_token(&mut piece, scanner, remaining, first),
            }
        }
    }

    fn push_token(&mut self, piece: &mut Piece, scanner: &mut Scanner<'_>, rest: &[u8], first: u8) {
        let (part, mut length) = scanner.sql_part(RULES);
        match first {
            _ if part == SqlPart::Comment && first == b'-' && piece.text.is_empty() => {
                return scanner.advance(length);
            }
            _ if part != SqlPart::Other => {}
            b' ' | b'\t'..=b'\r' if piece.text.is_empty() => return scanner.advance(1),
            b':' if let Some(length) = variable_test(rest) => {
                piece.text.extend_from_slice(b"FALSE");
                return scanner.advance(length);
            }
            b'(' => self.parentheses += 1,
            b')' => self.parentheses = self.parentheses.saturating_sub(1),
            _ if starts_name(first) => {
                let name = rest.iter().take_while(|&&byte| continues_name(byte) || byte == b'$');
                length = name.count();
                self.identifier(&rest[..length]);
            }
            _ => {}
        }
        let start = piece.text.len();
        piece.text.extend_from_slice(&rest[..length]);
        if part != SqlPart::Other {
            piece.quoted.push(start..start + length);
        }
        scanner.advance(length);
    }

    /// Semicolons between BEGIN and END of a function's body don't end the statement that creates
    /// it.
    fn identifier(&mut self, word: &[u8]) {
        if self.identifiers == 0 {
            self.letters = [0; 4];
        }
        if ["create", "function", "procedure", "or", "replace"]
            .into_iter()
            .any(|other| word.eq_ignore_ascii_case(other.as_bytes()))
            && let Some(letter) = self.letters.get_mut(self.identifiers)
        {
            *letter = word[0].to_ascii_lowercase();
        }
        self.identifiers += 1;
        let creates =
            matches!(&self.letters, [b'c', b'f' | b'p', ..] | [b'c', b'o', b'r', b'f' | b'p']);
        if !creates || self.parentheses > 0 {
            return;
        }
        match word.to_ascii_lowercase().as_slice() {
            b"begin" => self.bodies += 1,
            b"case" if self.bodies > 0 => self.bodies += 1,
            b"end" => self.bodies = self.bodies.saturating_sub(1),
            _ => {}
        }
    }
}

/// The length of psql's `:{?name}` at the begin of `rest`. No variable is known when a script is read, so that pgbench
/// (all versions) puts `FALSE` in its place.
fn variable_test(rest: &[u8]) -> Option<usize> {
    const OPEN: &[u8] = b":{?";
    let name = rest.strip_prefix(OPEN)?;
    let length = name.iter().take_while(|&&byte| continues_name(byte)).count();
    (length > 0 && name.get(length) == Some(&b'}')).then_some(OPEN.len() + length + 1)
}

/// Words of a meta command, its name included.
const MOST_WORDS: usize = 256;

/// A word and its beginning.
type Argument = (String, usize);

/// Reads the commands of a script one after the other.
pub(crate) struct Reader<'a> {
    scanner: Scanner<'a>,
    description: &'a str,
    mode: QueryMode,
    pub(crate) commands: Vec<ScriptCommand>,
    pub(crate) names: Names,
    /// The current meta command: bytes before its backslash, its line, its name as written.
    start: usize,
    line: u32,
    name: String,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(text: &'a [u8], description: &'a str, mode: QueryMode) -> Self {
        Reader {
            scanner: Scanner::new(text),
            description,
            mode,
            commands: Vec::new(),
            names: Names::default(),
            start: 0,
            line: 0,
            name: String::new(),
        }
    }

    /// Reads all commands of the script.
    pub(crate) fn read(&mut self) -> Result<(), ScriptError> {
        let mut lexer = SqlLexer::default();
        loop {
            // The statement begins at the first character that is not left out.
            let (piece, end) = lexer.piece(&mut self.scanner);
            if !piece.text.is_empty() {
                let line = self.scanner.line_number();
                let statement = Statement::new(piece, self.mode, &mut self.names)
                    .map_err(|text| ScriptError { line: Some(line), ..ScriptError::new(text) })?;
                let (name, first_line) = ("SQL".to_owned(), statement.first_line());
                let action = Action::Sql(statement);
                self.commands.push(ScriptCommand { action, name, first_line, line });
            }
            match end {
                End::Text => return Ok(()),
                End::Semicolon => {}
                End::Backslash => self.meta()?,
            }
        }
    }

    /// Reads the meta command whose backslash was passed; a lone backslash is none.
    fn meta(&mut self) -> Result<(), ScriptError> {
        (self.start, self.line) = (self.scanner.offset() - 1, self.scanner.line_number());
        self.scanner.begin_command();
        let Some((name, _)) = self.scanner.word() else { return Ok(()) };
        self.name = String::from_utf8_lossy(name).into_owned();
        let action = match self.name.to_ascii_lowercase().as_str() {
            "set" => {
                let variable = self.scanner.word();
                let (variable, _) =
                    variable.ok_or_else(|| self.error("missing argument", None, true))?;
                let variable = self.names.number(&text_from_bytes(variable));
                Action::Set { variable, program: self.parse_expression()? }
            }
            "if" => Action::If { program: self.parse_expression()?, otherwise: 0 },
            "elif" => Action::Elif { program: self.parse_expression()?, otherwise: 0, end: 0 },
            name => {
                let words = self.parse_words()?;
                if let "gset" | "aset" = name {
                    return self.store(&words, name == "gset");
                }
                self.plain(name, &words)?
            }
        };
        let (name, line) = (std::mem::take(&mut self.name), self.line);
        let first_line = self.scanner.line_from(self.start);
        self.commands.push(ScriptCommand { action, name, first_line, line });
        Ok(())
    }

    /// `\gset` or `\aset`, which belong to the statement before them.
    fn store(&mut self, words: &[Argument], is_gset: bool) -> Result<(), ScriptError> {
        if words.len() > 1 {
            return self.fail("too many arguments", None, None);
        }
        let prefix = words.first().map_or_else(String::new, |(word, _)| word.clone());
        let line = match self.commands.last_mut() {
            Some(ScriptCommand { action: Action::Sql(statement), .. }) => {
                if statement.store.is_none() {
                    statement.store = Some(Store { prefix, is_gset });
                    return Ok(());
                }
                None
            }
            other => other.map(|command| command.first_line.clone()),
        };
        Err(self.error("\\gset must follow an SQL command", line.as_deref(), false))
    }

    /// An error where the meta command begins, with its name if that is wanted.
    fn error(&self, message: &str, more: Option<&str>, is_named: bool) -> ScriptError {
        let mut text = format!("{}:{}: {message}", self.description, self.line);
        text.extend(more.map(|more| format!(" ({more})")));
        if is_named {
            text.push_str(&format!(" in command \"{}\"", self.name));
        }
        ScriptError { line: Some(self.line), ..ScriptError::new(text) }
    }

    /// The error with the text of the command up to the scanner's place, marked at byte `at` of the script.
    fn fail<T>(
        &self,
        message: &str,
        more: Option<&str>,
        at: Option<usize>,
    ) -> Result<T, ScriptError> {
        let error = self.error(message, more, true);
        Err(error.with_source(&self.scanner.line_from(self.start), at, self.start))
    }

    fn parse_expression(&mut self) -> Result<Program, ScriptError> {
        let names = &mut self.names;
        let program = parser::parse(&mut self.scanner, &mut |name: &[u8]| {
            names.number(&text_from_bytes(name))
        });
        program.or_else(|error| {
            let at = error.end.saturating_sub(1);
            self.fail(error.message, error.more.as_deref(), Some(at))
        })
    }

    fn parse_words(&mut self) -> Result<Vec<Argument>, ScriptError> {
        let mut words: Vec<Argument> = Vec::new();
        while let Some((word, at)) = self.scanner.word() {
            if words.len() + 1 >= MOST_WORDS {
                return Err(self.error("too many arguments", None, true));
            }
            words.push((text_from_bytes(word), at));
        }
        Ok(words)
    }

    /// The commands without expressions.
    fn plain(&mut self, name: &str, words: &[Argument]) -> Result<Action, ScriptError> {
        let action = match (name, words) {
            ("sleep", _) => return self.parse_sleep(words),
            ("setshell", [] | [_]) => return self.fail("missing argument", None, None),
            ("setshell", [(variable, _), words @ ..]) => {
                let variable = self.names.number(variable);
                return Ok(Action::SetShell { variable, words: self.shell_words(words) });
            }
            ("shell", []) => return self.fail("missing command", None, None),
            ("shell", words) => return Ok(Action::Shell(self.shell_words(words))),
            ("else", _) => Action::Else { end: 0 },
            ("endif", _) => Action::Endif,
            ("startpipeline", _) => Action::StartPipeline,
            ("syncpipeline", _) => Action::SyncPipeline,
            ("endpipeline", _) => Action::EndPipeline,
            _ => return self.fail("invalid command", None, None),
        };
        if words.is_empty() { Ok(action) } else { self.fail("unexpected argument", None, None) }
    }

    fn shell_words(&mut self, words: &[Argument]) -> Vec<Word> {
        let words = words.iter().map(|(word, _)| match word.strip_prefix(':') {
            None => Word::Text(word.clone()),
            Some(rest) if rest.starts_with(':') => Word::Text(rest.to_owned()),
            Some(variable) => Word::Variable(self.names.number(variable)),
        });
        words.collect()
    }

    fn parse_sleep(&mut self, words: &[Argument]) -> Result<Action, ScriptError> {
        let (text, at) = match words {
            [] => return self.fail("missing argument", None, None),
            [first] | [first, _] => first,
            [_, _, (_, at), ..] => return self.fail("too many arguments", None, Some(*at)),
        };
        let mut unit = words.get(1).map(|(unit, at)| (unit.as_str(), *at));
        let amount = if let Some(variable) = text.strip_prefix(':') {
            Amount::Variable(self.names.number(variable))
        } else {
            let sign = usize::from(text.starts_with(['+', '-']));
            let digits = text[sign..].bytes().take_while(u8::is_ascii_digit).count();
            let end = sign + digits;
            if end < text.len() {
                if words.len() > 1 || digits == 0 {
                    let problem = "invalid sleep time, must be an integer";
                    return self.fail(problem, Some(text), Some(*at));
                }
                unit = Some((&text[end..], at + end));
            }
            Amount::Units(leading_int(text))
        };
        let unit_us = match unit {
            None => 1_000_000,
            Some((unit, at)) => match unit.to_ascii_lowercase().as_str() {
                "us" => 1,
                "ms" => 1_000,
                "s" => 1_000_000,
                _ => {
                    let problem = "unrecognized time unit, must be us, ms or s";
                    return self.fail(problem, Some(unit), Some(at));
                }
            },
        };
        Ok(Action::Sleep { amount, unit_us })
    }
}
