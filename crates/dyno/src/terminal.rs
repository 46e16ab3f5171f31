//! The two streams: data to standard output, talk and bars to standard error.

use dyno_core::in_one_line;
use dyno_facts::{has_secret, mask_secrets};
use dyno_runner::output::{ProgressView, Streams};
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use rustix::process::{Signal, getpid, kill_process};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};
use std::borrow::Cow;
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;
use std::time::Duration;

/// The streams of this process and the person before them.
pub(crate) struct TerminalStreams;

impl Streams for TerminalStreams {
    fn data(&self, bytes: &[u8]) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(&harmless(bytes)).and_then(|()| stdout.flush())
    }

    fn redraw(&self, shown: usize, text: &str) {
        let mut stdout = io::stdout().lock();
        // The watcher may have gone.
        let _ = stdout.write_all(&vec![0x08; shown]);
        let _ = stdout.write_all(&harmless(text.as_bytes())).and_then(|()| stdout.flush());
    }

    fn talk(&self, bytes: &[u8]) {
        let _ = io::stderr().lock().write_all(&harmless(&without_secrets(bytes)));
    }

    fn is_watched(&self) -> bool {
        io::stdout().is_terminal()
    }

    fn bar(&self, title: &str, length: u64, unit: &str) -> Option<Box<dyn ProgressView>> {
        if !io::stderr().is_terminal() {
            return None;
        }
        let template = format!(
            "{{prefix}} [{{bar:24}}] {{human_pos}}/{{human_len}} {unit} {{msg}} {{eta_precise}} left"
        );
        let style = ProgressStyle::with_template(&template)
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        let target = ProgressDrawTarget::stderr_with_hz(5);
        let bar = ProgressBar::with_draw_target(Some(length), target);
        let bar = bar.with_style(style.progress_chars("=> ")).with_prefix(bar_text(title));
        Some(Box::new(TerminalBar(bar)))
    }

    fn can_ask(&self) -> bool {
        io::stdin().is_terminal()
    }

    fn ask_password(&self, prompt: &str) -> io::Result<String> {
        let guard = NoEchoGuard::new()?;
        self.talk(prompt.as_bytes());
        // A terminal gives at most a line.
        let mut line = vec![0; 4096];
        let length = rustix::io::retry_on_intr(|| rustix::io::read(io::stdin(), &mut *line));
        drop(guard);
        self.talk(b"\n");
        line.truncate(length?);
        match line.last() {
            Some(&(CTRL_C | CTRL_BACKSLASH)) => {
                // What Ctrl-C does elsewhere, after the terminal has got its modes back.
                let _ = kill_process(getpid(), Signal::INT);
                return Err(io::Error::new(io::ErrorKind::Interrupted, "Ctrl-C was pressed"));
            }
            Some(b'\n') => line.truncate(line.len() - 1),
            _ => {}
        }
        String::from_utf8(line)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
    }
}

/// URLs and options of the command line with a password, each with the form that may be shown: messages quote them.
static SECRET_ARGUMENTS: OnceLock<Vec<(String, String)>> = OnceLock::new();

/// Has talk show these arguments without their passwords from now on.
pub(crate) fn hide_secrets(arguments: &[OsString]) {
    let arguments = arguments.iter().filter_map(|argument| argument.to_str());
    let secret = arguments.filter(|argument| has_secret(argument)).map(|argument| {
        // Of `--target=a=mysql://...` the URL alone may be quoted.
        let scheme = &argument[..argument.find("://").unwrap_or(0)];
        let start = scheme.rfind(|c: char| !c.is_ascii_alphanumeric()).map_or(0, |at| at + 1);
        (argument[start..].to_owned(), mask_secrets(&argument[start..]))
    });
    let _ = SECRET_ARGUMENTS.set(secret.collect());
}

fn without_secrets(bytes: &[u8]) -> Cow<'_, [u8]> {
    let secret = SECRET_ARGUMENTS.get().map_or(&[][..], Vec::as_slice);
    if secret.is_empty() {
        return Cow::Borrowed(bytes);
    }
    let mut text = String::from_utf8_lossy(bytes).into_owned();
    for (argument, shown) in secret {
        text = text.replace(argument, shown);
    }
    Cow::Owned(text.into_bytes())
}

/// A terminal that shows nothing of what is typed and sends no signals: Ctrl-C ends a line as the Enter key does, so that
/// the end of this process can't leave the terminal silent.
struct NoEchoGuard(Termios);

const CTRL_C: u8 = 0x03;
const CTRL_BACKSLASH: u8 = 0x1c;

impl NoEchoGuard {
    fn new() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO | LocalModes::ISIG);
        silent.special_codes[SpecialCodeIndex::VEOL] = CTRL_C;
        silent.special_codes[SpecialCodeIndex::VEOL2] = CTRL_BACKSLASH;
        tcsetattr(io::stdin(), OptionalActions::Flush, &silent)?;
        Ok(NoEchoGuard(before))
    }
}

impl Drop for NoEchoGuard {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &self.0);
    }
}

/// Text for printing, in UTF-8 whatever it was before: a file or a pipe may end at a terminal, too.
fn harmless(bytes: &[u8]) -> Cow<'_, [u8]> {
    if bytes.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\t')) {
        return bytes.into();
    }
    let text = String::from_utf8_lossy(bytes);
    dyno_core::harmless(&text).into_owned().into_bytes().into()
}

fn bar_text(text: &str) -> String {
    dyno_core::harmless(&in_one_line(text)).into_owned()
}

struct TerminalBar(ProgressBar);

impl ProgressView for TerminalBar {
    fn set_length(&self, length: u64) {
        self.0.set_length(length);
    }

    fn set(&self, position: u64, message: &str) {
        self.0.set_position(position);
        self.0.set_message(bar_text(message));
    }

    fn suspend(&self, print: &mut dyn FnMut()) {
        self.0.suspend(print);
    }

    fn clear(&self) {
        self.0.finish_and_clear();
    }
}

/// A length of time in words.
pub(crate) fn human_time(seconds: f64) -> String {
    HumanDuration(Duration::from_secs_f64(seconds.max(0.0))).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_others_does_not_command_the_terminal() {
        for (written, shown) in [
            (&b"plain\ttext\n"[..], "plain\ttext\n"),
            ("\u{4e2d}\u{6587} \u{b5}s\n".as_bytes(), "\u{4e2d}\u{6587} \u{b5}s\n"),
            (b"\x1b[2J\x1b]0;title\x07", "\u{fffd}[2J\u{fffd}]0;title\u{fffd}"),
            (b"safe\rfalse\x08\x7f\0", "safe\u{fffd}false\u{fffd}\u{fffd}\u{fffd}"),
            ("\u{9b}31m".as_bytes(), "\u{fffd}31m"),
            (b"\x9b31m", "\u{fffd}31m"),
            ("\u{202e}tropper\u{2028}\u{2066}".as_bytes(), "\u{fffd}tropper\u{fffd}\u{fffd}"),
        ] {
            assert_eq!(harmless(written), shown.as_bytes(), "{written:?}");
        }
    }
}
