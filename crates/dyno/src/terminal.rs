//! The two streams: data to standard output, talk and bars to standard error.

use dyno_runner::output::{ProgressView, Streams};
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

/// The streams of this process and the person before them.
pub(crate) struct TerminalStreams;

impl Streams for TerminalStreams {
    fn data(&self, bytes: &[u8]) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(bytes).and_then(|()| stdout.flush())
    }

    fn talk(&self, bytes: &[u8]) {
        let _ = io::stderr().lock().write_all(bytes);
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
        let bar = bar.with_style(style.progress_chars("=> ")).with_prefix(title.to_owned());
        Some(Box::new(TerminalBar(bar)))
    }

    fn can_ask(&self) -> bool {
        io::stdin().is_terminal()
    }

    fn ask_password(&self, prompt: &str) -> io::Result<String> {
        use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
        let stdin = io::stdin();
        let before = tcgetattr(&stdin)?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        tcsetattr(&stdin, OptionalActions::Flush, &silent)?;
        self.talk(prompt.as_bytes());
        let mut line = String::new();
        let read = stdin.read_line(&mut line);
        // Whatever happened, the terminal must echo again.
        let _ = tcsetattr(&stdin, OptionalActions::Flush, &before);
        self.talk(b"\n");
        read.map(|_| line.trim_end_matches(['\r', '\n']).to_owned())
    }
}

struct TerminalBar(ProgressBar);

impl ProgressView for TerminalBar {
    fn set_length(&self, length: u64) {
        self.0.set_length(length);
    }

    fn set(&self, position: u64, message: &str) {
        self.0.set_position(position);
        self.0.set_message(message.to_owned());
    }

    fn suspend(&self, print: &mut dyn FnMut()) {
        self.0.suspend(print);
    }

    fn clear(&self) {
        self.0.finish_and_clear();
    }
}

/// How long something will take, for people.
pub(crate) fn human_time(seconds: f64) -> String {
    HumanDuration(Duration::from_secs_f64(seconds.max(0.0))).to_string()
}
