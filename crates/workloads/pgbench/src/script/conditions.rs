//! `\if` and what belongs to it: checked and linked when the script is loaded.

use super::command::{Action, ScriptCommand};
use super::error::ScriptError;

/// An `\if` that has no `\endif` yet.
struct Open {
    /// The last `\if`, `\elif` whose `otherwise` waits for its place.
    waiting: Option<usize>,
    /// Commands that lead to the end.
    to_end: Vec<usize>,
    has_else: bool,
}

/// Fills the places to jump to.
pub(crate) fn resolve(
    commands: &mut [ScriptCommand],
    description: &str,
) -> Result<(), ScriptError> {
    let fail = |number: usize, line: u32, message: &str| {
        let text =
            format!("condition error in script \"{description}\" command {number}: {message}");
        Err(ScriptError::new(text).at_line(line))
    };
    let mut open: Vec<Open> = Vec::new();
    for at in 0..commands.len() {
        let (number, line) = (at + 1, commands[at].line);
        match &commands[at].action {
            Action::If { .. } => {
                open.push(Open { waiting: Some(at), to_end: Vec::new(), has_else: false });
            }
            Action::Elif { .. } => {
                let Some(current) = open.last_mut() else {
                    return fail(number, line, "\\elif without matching \\if");
                };
                if current.has_else {
                    return fail(number, line, "\\elif after \\else");
                }
                current.to_end.push(at);
                if let Some(before) = current.waiting.replace(at) {
                    set_otherwise(&mut commands[before], at);
                }
            }
            Action::Else { .. } => {
                let Some(current) = open.last_mut() else {
                    return fail(number, line, "\\else without matching \\if");
                };
                if current.has_else {
                    return fail(number, line, "\\else after \\else");
                }
                current.has_else = true;
                current.to_end.push(at);
                if let Some(before) = current.waiting.take() {
                    set_otherwise(&mut commands[before], at + 1);
                }
            }
            Action::Endif => {
                let Some(closed) = open.pop() else {
                    return fail(number, line, "\\endif without matching \\if");
                };
                if let Some(before) = closed.waiting {
                    set_otherwise(&mut commands[before], at + 1);
                }
                for from in closed.to_end {
                    if let Action::Elif { end, .. } | Action::Else { end } =
                        &mut commands[from].action
                    {
                        *end = at as u32 + 1;
                    }
                }
            }
            _ => {}
        }
    }
    if open.is_empty() {
        return Ok(());
    }
    let line = commands.last().map_or(1, |command| command.line);
    fail(commands.len() + 1, line, "\\if without matching \\endif")
}

fn set_otherwise(command: &mut ScriptCommand, to: usize) {
    if let Action::If { otherwise, .. } | Action::Elif { otherwise, .. } = &mut command.action {
        *otherwise = to as u32;
    }
}
