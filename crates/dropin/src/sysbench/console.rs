//! Where sysbench's words go: everything to stdout but complaints about the command line.

use dyno_runner::front_end::SweepLevel;
use dyno_runner::output::{DataWriter, TalkWriter};
use std::fmt::Display;
use std::io::Write;

/// How important a line is; `--verbosity` prints up to one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Fatal = 0,
    Warning = 2,
    Notice = 3,
    Info = 4,
    Debug = 5,
}

/// Prints what the chosen verbosity lets through.
pub(super) struct Console {
    verbosity: u8,
    out: Box<dyn Write + Send>,
    talk: Box<dyn Write + Send>,
    /// What a run has measured, for a sweep.
    pub(super) measured: Option<SweepLevel>,
}

impl Console {
    /// Writes sysbench's output to stdout, or to stderr when stdout is kept for data.
    pub(super) fn new(verbosity: u8, stdout_is_data: bool) -> Self {
        let out: Box<dyn Write + Send> =
            if stdout_is_data { Box::new(TalkWriter) } else { Box::new(DataWriter) };
        Console { verbosity, out, talk: Box::new(TalkWriter), measured: None }
    }

    /// True when lines of this level are printed.
    pub(super) fn prints(&self, level: Level) -> bool {
        level as u8 <= self.verbosity
    }

    /// Writes text as it is. A reader that has gone away must not end a measurement, so errors of
    /// the output are passed over.
    pub(super) fn text(&mut self, level: Level, text: impl Display) {
        if self.prints(level) {
            let _ = write!(self.out, "{text}");
            let _ = self.out.flush();
        }
    }

    pub(super) fn notice(&mut self, line: impl Display) {
        self.text(Level::Notice, format_args!("{line}\n"));
    }

    pub(super) fn info(&mut self, line: impl Display) {
        self.text(Level::Info, format_args!("{line}\n"));
    }

    /// A line of `--debug`.
    pub(super) fn debug(&mut self, line: impl Display) {
        self.text(Level::Debug, format_args!("DEBUG: {line}\n"));
    }

    pub(super) fn warning(&mut self, line: impl Display) {
        self.text(Level::Warning, format_args!("WARNING: {line}\n"));
    }

    pub(super) fn fatal(&mut self, line: impl Display) {
        self.text(Level::Fatal, format_args!("FATAL: {line}\n"));
    }

    /// Writes text of dyno's own, which the original doesn't say, to stderr.
    pub(super) fn talk(&mut self, level: Level, text: impl Display) {
        if self.prints(level) {
            let _ = write!(self.talk, "{text}");
        }
    }

    /// A complaint about the command line, on stderr.
    pub(super) fn complain(&mut self, line: impl Display) {
        let _ = writeln!(self.talk, "{line}");
    }

    pub(super) fn hint(&mut self, remedy: impl Display) {
        let _ = writeln!(self.talk, "hint: {remedy}");
    }
}
