//! The two streams: data to standard output, talk to standard error.

use crate::failure::Failure;
use std::io::{self, Write};

/// Prints data. A reader that has gone away (`dyno show | head`) ends the program quietly.
pub fn data(text: &str) {
    let mut stdout = io::stdout().lock();
    if stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).is_err() {
        std::process::exit(0);
    }
}

/// Prints a line of talk.
pub fn talk(text: &str) {
    // What servers and other machines say may end up here: it must not command the terminal.
    let commands = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    // Nobody can be told when standard error is closed.
    let _ = writeln!(io::stderr().lock(), "{}", text.replace(commands, "\u{fffd}"));
}

/// Prints an error and its remedy.
pub fn error(failure: &Failure) {
    talk(&format!("error: {}", failure.message.trim_end()));
    if let Some(hint) = &failure.hint {
        talk(&format!("hint: {hint}"));
    }
}
