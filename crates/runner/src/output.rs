//! Messages of the runner and the front ends. They print nothing themselves: the program that starts them
//! hands in its streams once, as a logger is handed in. Without streams all is silent.

use crate::failure::Failure;
use std::io::{self, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// The streams for words, and who answers questions.
pub trait Streams: Send + Sync {
    /// Writes data (standard output), which nothing obeys that shows it.
    fn data(&self, bytes: &[u8]) -> io::Result<()>;

    /// Writes `text` instead of the last `shown` bytes of data, for somebody who watches.
    fn redraw(&self, shown: usize, text: &str);

    /// Writes talk (standard error), as harmless as data. If that is closed, the failure has nowhere to go.
    fn talk(&self, bytes: &[u8]);

    fn is_watched(&self) -> bool;

    /// A bar named `title` of `length` units (0: unknown yet); `None` where lines are wanted instead.
    fn bar(&self, title: &str, length: u64, unit: &str) -> Option<Box<dyn ProgressView>>;

    /// Returns true if somebody can answer a question.
    fn can_ask(&self) -> bool;

    fn ask_password(&self, prompt: &str) -> io::Result<String>;
}

pub trait ProgressView: Send + Sync {
    fn set_length(&self, length: u64);

    /// Moves the bar; `message` is shown next to it.
    fn set(&self, position: u64, message: &str);

    /// Calls `print` while the bar is out of the way.
    fn suspend(&self, print: &mut dyn FnMut());

    /// Removes the bar from the screen.
    fn clear(&self);
}

static STREAMS: OnceLock<&'static dyn Streams> = OnceLock::new();

/// Says where words go. The first call of a process counts.
pub fn install(streams: &'static dyn Streams) {
    let _ = STREAMS.set(streams);
}

/// Streams for all output; `None` before [`install`].
pub(crate) fn streams() -> Option<&'static dyn Streams> {
    STREAMS.get().copied()
}

/// Prints data. A reader that has gone away (`dyno show | head`) ends the program quietly; another error is reported.
pub fn data(text: &str) {
    let Err(error) = StreamWriter::Data.write_all(text.as_bytes()) else { return };
    if error.kind() == io::ErrorKind::BrokenPipe {
        std::process::exit(0);
    }
    let message = format!("Standard output can't be written: {error}.");
    self::error(&Failure::new(message).with_hint("Make room at its destination, or redirect it."));
    std::process::exit(1);
}

/// Prints a line of talk, and set in below it what it has of further lines.
pub fn talk(text: &str) {
    talk_lines(&set_in(text));
}

/// Lines below the first one may be a server's: set in, they are not taken for lines of dyno's.
fn set_in(text: &str) -> String {
    text.trim_end().replace('\n', "\n  ")
}

/// Prints talk whose lines are all dyno's own, or as an original has them.
pub fn talk_lines(text: &str) {
    talk_unended(&format!("{text}\n"));
}

static HIDES_STEPS: AtomicBool = AtomicBool::new(false);

/// From now on, steps, notes of loads and checks that passed are not printed one by one.
pub fn hide_steps() {
    HIDES_STEPS.store(true, Ordering::Relaxed);
}

/// Prints talk of a step, unless steps are hidden.
pub fn print_step(text: &str) {
    if !HIDES_STEPS.load(Ordering::Relaxed) {
        talk(text);
    }
}

/// Prints talk without the end of a line.
pub fn talk_unended(text: &str) {
    if let Some(streams) = streams() {
        streams.talk(text.as_bytes());
    }
}

/// Prints a failure with its hint as talk.
pub fn error(failure: &Failure) {
    talk_lines(&error_lines(failure));
}

fn error_lines(failure: &Failure) -> String {
    let text = format!("error: {}", failure.message);
    let text = if failure.is_laid_out { text.trim_end().to_owned() } else { set_in(&text) };
    match &failure.hint {
        Some(hint) => text + "\n" + &set_in(&format!("hint: {hint}")),
        None => text,
    }
}

/// Redraws a line of data before somebody who watches: [`Streams::redraw`].
pub fn redraw(shown: usize, text: &str) {
    if let Some(streams) = streams() {
        streams.redraw(shown, text);
    }
}

pub fn is_watched() -> bool {
    streams().is_some_and(Streams::is_watched)
}

/// A stream as a file.
#[derive(Clone, Copy, Debug)]
pub enum StreamWriter {
    Data,
    Talk,
}

impl Write for StreamWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match (self, streams()) {
            (_, None) => {}
            (StreamWriter::Data, Some(streams)) => streams.data(bytes)?,
            (StreamWriter::Talk, Some(streams)) => streams.talk(bytes),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_others_forge_no_line_of_talk() {
        assert_eq!(set_in("note: no\nOK: all passed\n"), "note: no\n  OK: all passed");
        let failure = Failure::new("It failed.\nOK: all passed").with_hint("a\nb");
        let expected = "error: It failed.\n  OK: all passed\nhint: a\n  b";
        assert_eq!(error_lines(&failure), expected);
        let laid_out = Failure { is_laid_out: true, ..Failure::new("It failed.\n --> a.toml:1:1") };
        assert_eq!(error_lines(&laid_out), "error: It failed.\n --> a.toml:1:1");
    }
}
