//! Output of pgbench about every step with `--debug`, and errors of the server as PostgreSQL's own clients print
//! them.

use super::PgBench;
use super::client::Client;
use super::execute::Place;
use super::options::Talk;
use super::send::substitute;
use crate::script::{Action, QueryMode, ScriptCommand, shown_text};
use dyno_core::{DbError, TransactionId};

impl PgBench {
    /// Prints a line about a client.
    fn trace(&self, client: &Client, what: &str) {
        (self.talk)(Talk::Info(&format!("client {} {what}", client.id)));
    }

    #[cold]
    pub(super) fn trace_script(&self, client: &Client, script: TransactionId) {
        let name = &self.options.scripts[script].0.description;
        self.trace(client, &format!("executing script \"{name}\""));
    }

    /// Prints a command before it is executed.
    #[cold]
    pub(super) fn trace_command(&self, client: &mut Client, place: Place<'_>) {
        let Action::Sql(statement) = &place.command.action else {
            self.trace(client, &format!("executing {}", meta_words(place.command)));
            if matches!(place.command.action, Action::EndPipeline) {
                self.trace(client, "receiving");
            }
            return;
        };
        let text = match self.options.mode {
            QueryMode::Simple => {
                let Client { variables, text, .. } = client;
                substitute(statement, variables, text);
                shown_text(&client.text)
            }
            QueryMode::Extended => shown_text(&statement.text),
            QueryMode::Prepared => {
                if client.prepared[place.number].is_none() {
                    self.trace_preparation(client, place.number);
                }
                self.prepared_name(place.number)
            }
        };
        self.trace(client, &format!("sending {text}"));
        if !client.in_pipeline {
            self.trace(client, "receiving");
        }
    }

    #[cold]
    pub(super) fn trace_preparation(&self, client: &Client, number: usize) {
        self.trace(client, &format!("preparing {}", self.prepared_name(number)));
    }

    /// The original's name of the prepared statement of this command: they are numbered over all scripts.
    pub(super) fn prepared_name(&self, number: usize) -> String {
        let commands = self.options.scripts.iter().flat_map(|(script, _)| &script.commands);
        let before = commands.take(number).filter(|command| command.is_sql()).count();
        format!("P_{before}")
    }
}

/// A meta command without its expression.
fn meta_words(command: &ScriptCommand) -> String {
    let words = command.first_line.split_ascii_whitespace();
    let count = match &command.action {
        Action::Set { .. } | Action::Draw { .. } => 2,
        Action::If { .. } | Action::Elif { .. } => 1,
        _ => usize::MAX,
    };
    words.take(count).collect::<Vec<_>>().join(" ")
}

/// Columns of a statement's line that are shown, and how close to the mark it is cut.
const WIDTH: usize = 60;
const RIGHT_OF_MARK: usize = 10;

/// An error as libpq prints it: the message with its severity, the line of the statement with a
/// mark, and the details. What no server has said stays unchanged.
pub fn server_text(error: &DbError, statement: &str) -> String {
    if !error.is_from_server() {
        return error.to_string();
    }
    let severity = if error.is_fatal() { "FATAL" } else { "ERROR" };
    let mut text = format!("{severity}:  {}", error.message());
    let (detail, position) = split_position(error.detail.as_deref().unwrap_or_default());
    if let Some(line) = position.and_then(|position| marked_line(statement, position)) {
        text.push('\n');
        text.push_str(&line);
    }
    if !detail.is_empty() {
        text.push_str(&format!("\nDETAIL:  {detail}"));
    }
    if let Some(hint) = error.hint() {
        text.push_str(&format!("\nHINT:  {hint}"));
    }
    if let Some(context) = &error.context {
        text.push_str(&format!("\n{context}"));
    }
    text
}

/// The driver puts the position, in letters from 1, behind the details.
fn split_position(detail: &str) -> (&str, Option<usize>) {
    let Some((before, position)) = detail.rsplit_once("At character ") else {
        return (detail, None);
    };
    match position.strip_suffix('.').and_then(|digits| digits.parse().ok()) {
        Some(position) => (before.trim_end(), Some(position)),
        None => (detail, None),
    }
}

/// The line on which the position is, cut to the width, and a mark below it.
fn marked_line(statement: &str, position: usize) -> Option<String> {
    let letters: Vec<char> = statement.chars().collect();
    let at = position.checked_sub(1).filter(|&at| at <= letters.len())?;
    let number = letters[..at].iter().filter(|&&letter| letter == '\n').count() + 1;
    let mut begin = letters[..at].iter().rposition(is_line_end).map_or(0, |end| end + 1);
    let mut end = letters[at..].iter().position(is_line_end).map_or(letters.len(), |end| at + end);
    let (mut cut_left, mut cut_right) = ("", "");
    if end - begin > WIDTH {
        if begin + WIDTH >= at + RIGHT_OF_MARK {
            end = begin + WIDTH;
            cut_right = "...";
        } else {
            if at + RIGHT_OF_MARK < end {
                end = at + RIGHT_OF_MARK;
                cut_right = "...";
            }
            if end - begin > WIDTH {
                begin = end - WIDTH;
                cut_left = "...";
            }
        }
    }
    let head = format!("LINE {number}: {cut_left}");
    let line = String::from_iter(&letters[begin..end]).replace('\t', " ");
    let blanks = " ".repeat(head.chars().count() + at - begin);
    Some(format!("{head}{line}{cut_right}\n{blanks}^"))
}

fn is_line_end(letter: &char) -> bool {
    matches!(letter, '\n' | '\r')
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_core::ErrorClass;

    #[test]
    fn an_error_is_shown_with_its_line() {
        let error = DbError::server(ErrorClass::Other, 0, *b"42703", "column \"x\" does not exist")
            .with_detail("At character 15.")
            .with_hint("Look.")
            .with_context("CONTEXT:  SQL function \"f\"");
        let text = "ERROR:  column \"x\" does not exist\nLINE 2:     x\n            ^\nHINT:  Look.\n\
             CONTEXT:  SQL function \"f\"";
        assert_eq!(server_text(&error, "select 1,\n\t   x"), text);
        let disconnected = DbError::lost("The connection is gone.");
        assert_eq!(server_text(&disconnected, "select 1"), "The connection is gone.");
        let closed = DbError::closed(0, *b"57P02", "the server crashed");
        assert_eq!(server_text(&closed, "select 1"), "FATAL:  the server crashed");
    }

    #[test]
    fn long_lines_are_cut_around_the_mark() {
        let statement = format!("select {}nope{}", "1,".repeat(50), ",2".repeat(50));
        let line = marked_line(&statement, 108).unwrap();
        let (shown, mark) = line.split_once('\n').unwrap();
        assert!(shown.starts_with("LINE 1: ...1,1") && shown.ends_with("nope,2,2,2..."), "{shown}");
        assert_eq!(shown.find("nope"), mark.find('^'));
    }
}
