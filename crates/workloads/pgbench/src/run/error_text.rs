//! Errors of the server as PostgreSQL's own clients print them.

use dyno_core::DbError;

/// Columns of a statement's line that are shown, and how close to the mark it is cut.
const WIDTH: usize = 60;
const RIGHT_OF_MARK: usize = 10;

/// An error as libpq prints it: the message with its severity, the line of the statement with a
/// mark, and the details. What no server has said stays as it is.
pub fn server_text(error: &DbError, statement: &str) -> String {
    if !error.is_from_server() {
        return error.to_string();
    }
    let severity = if error.is_fatal() { "FATAL" } else { "ERROR" };
    let mut text = format!("{severity}:  {}", error.message());
    let (detail, position) = split_position(error.detail().unwrap_or_default());
    if let Some(line) = position.and_then(|position| line_of(statement, position)) {
        text.push('\n');
        text.push_str(&line);
    }
    if !detail.is_empty() {
        text.push_str(&format!("\nDETAIL:  {detail}"));
    }
    if let Some(hint) = error.hint() {
        text.push_str(&format!("\nHINT:  {hint}"));
    }
    if let Some(context) = error.context() {
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
fn line_of(statement: &str, position: usize) -> Option<String> {
    let letters: Vec<char> = statement.chars().collect();
    let at = position.checked_sub(1).filter(|&at| at <= letters.len())?;
    let is_end = |letter: &char| matches!(letter, '\n' | '\r');
    let number = letters[..at].iter().filter(|&&letter| letter == '\n').count() + 1;
    let mut begin = letters[..at].iter().rposition(is_end).map_or(0, |end| end + 1);
    let mut end = letters[at..].iter().position(is_end).map_or(letters.len(), |end| at + end);
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
    let show = |letter: &char| if *letter == '\t' { ' ' } else { *letter };
    let line: String = letters[begin..end].iter().map(show).collect();
    let blanks = " ".repeat(head.chars().count() + at - begin);
    Some(format!("{head}{line}{cut_right}\n{blanks}^"))
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
        let lost = DbError::lost("The connection is gone.");
        assert_eq!(server_text(&lost, "select 1"), "The connection is gone.");
        let closed = DbError::closed(0, *b"57P02", "the server crashed");
        assert_eq!(server_text(&closed, "select 1"), "FATAL:  the server crashed");
    }

    #[test]
    fn long_lines_are_cut_around_the_mark() {
        let statement = format!("select {}nope{}", "1,".repeat(50), ",2".repeat(50));
        let line = line_of(&statement, 108).unwrap();
        let (shown, mark) = line.split_once('\n').unwrap();
        assert!(shown.starts_with("LINE 1: ...1,1") && shown.ends_with("nope,2,2,2..."), "{shown}");
        assert_eq!(shown.find("nope"), mark.find('^'));
    }
}
