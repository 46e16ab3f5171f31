//! What the runner and the front ends say. They print nothing themselves: the program that starts them
//! hands in its streams once, as a logger is handed in. Without streams all is silent.

use crate::failure::Failure;
use std::io::{self, Write};
use std::sync::OnceLock;

/// Where words go, and who answers questions.
pub trait Streams: Send + Sync {
    /// Writes data (standard output).
    fn data(&self, bytes: &[u8]) -> io::Result<()>;

    /// Writes talk (standard error). Nobody can be told when that is closed.
    fn talk(&self, bytes: &[u8]);

    fn is_watched(&self) -> bool;

    /// A bar named `title` of `length` units (0: unknown yet); `None` where lines are wanted instead.
    fn bar(&self, title: &str, length: u64, unit: &str) -> Option<Box<dyn ProgressView>>;

    /// True when a question can be answered.
    fn can_ask(&self) -> bool;

    fn ask_password(&self, prompt: &str) -> io::Result<String>;
}

pub trait ProgressView: Send + Sync {
    fn set_length(&self, length: u64);

    fn set(&self, position: u64, message: &str);

    /// Calls `print` while the bar is out of the way.
    fn suspend(&self, print: &mut dyn FnMut());

    fn clear(&self);
}

static STREAMS: OnceLock<&'static dyn Streams> = OnceLock::new();

/// Says where words go. The first call of a process counts.
pub fn install(streams: &'static dyn Streams) {
    let _ = STREAMS.set(streams);
}

pub(crate) fn streams() -> Option<&'static dyn Streams> {
    STREAMS.get().copied()
}

/// Prints data. A reader that has gone away (`dyno show | head`) ends the program quietly.
pub fn data(text: &str) {
    if DataWriter.write_all(text.as_bytes()).is_err() {
        std::process::exit(0);
    }
}

pub fn talk(text: &str) {
    // What servers and other machines say may end up here: it must not command the terminal.
    let commands = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    talk_unended(&(text.replace(commands, "\u{fffd}") + "\n"));
}

/// Prints talk as it is, without the end of a line.
pub fn talk_unended(text: &str) {
    if let Some(streams) = streams() {
        streams.talk(text.as_bytes());
    }
}

pub fn error(failure: &Failure) {
    talk(&format!("error: {}", failure.message.to_string().trim_end()));
    if let Some(hint) = &failure.hint {
        talk(&format!("hint: {hint}"));
    }
}

pub fn is_watched() -> bool {
    streams().is_some_and(Streams::is_watched)
}

#[derive(Clone, Copy, Debug)]
pub struct DataWriter;

impl Write for DataWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        streams().map_or(Ok(()), |streams| streams.data(bytes)).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Clone, Copy, Debug)]
pub struct TalkWriter;

impl Write for TalkWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(streams) = streams() {
            streams.talk(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
