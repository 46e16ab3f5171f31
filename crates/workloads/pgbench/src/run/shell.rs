//! Shell commands of scripts. They run beside everything else that the thread does.

use super::variables::Variables;
use crate::script::{Word, leading_int};
use dyno_core::text_to_bytes;
use dyno_reactor::EventSource;
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::process::{Child, Command, Stdio};

/// Longest command, bytes.
const LONGEST: usize = 254;
/// Bytes of an answer that are looked at.
const LONGEST_ANSWER: usize = 63;

/// A shell command with its variables put in.
pub(super) struct Shell {
    /// The first word, for messages.
    name: String,
    text: Vec<u8>,
}

pub(super) fn command(
    words: &[Word],
    variables: &mut Variables,
    names: &[String],
) -> Result<Shell, String> {
    let name = match words.first() {
        Some(Word::Text(text)) => text.clone(),
        Some(Word::Variable(variable)) => format!(":{}", names[*variable as usize]),
        None => String::new(),
    };
    let mut text = Vec::new();
    for (number, word) in words.iter().enumerate() {
        if number > 0 {
            text.push(b' ');
        }
        match word {
            Word::Text(word) => text.extend(text_to_bytes(word)),
            Word::Variable(variable) => match variables.text(*variable) {
                Some(value) => text.extend_from_slice(value),
                None => {
                    let variable = &names[*variable as usize];
                    return Err(format!("{name}: undefined variable \":{variable}\""));
                }
            },
        }
        if text.len() > LONGEST {
            return Err(format!("{name}: shell command is too long"));
        }
    }
    Ok(Shell { name, text })
}

impl Shell {
    fn spawn(&self, stdout: Stdio) -> Result<Child, String> {
        let child = Command::new("/bin/sh")
            .arg("-c")
            .arg(OsStr::from_bytes(&self.text))
            .stdout(stdout)
            .spawn();
        child.map_err(|_| self.not_launched())
    }

    fn not_launched(&self) -> String {
        format!("{}: could not launch shell command", self.name)
    }

    /// Runs the command to its end, which must be a success.
    pub(super) async fn run(&self) -> Result<(), String> {
        let mut child = self.spawn(Stdio::inherit())?;
        wait_for(&child).await;
        match child.wait() {
            Ok(status) if status.success() => Ok(()),
            _ => Err(self.not_launched()),
        }
    }

    /// Runs the command and reads the integer that it prints.
    pub(super) async fn value(&self) -> Result<i64, String> {
        let mut child = self.spawn(Stdio::piped())?;
        let answer = match child.stdout.take() {
            Some(stdout) => first_line(stdout.into()).await,
            None => Vec::new(),
        };
        wait_for(&child).await;
        let waited = child.wait();
        if answer.is_empty() {
            return Err(format!("{}: could not read result of shell command", self.name));
        }
        waited.map_err(|_| format!("{}: could not close shell command", self.name))?;
        let answer = String::from_utf8_lossy(&answer);
        let number = answer.trim_ascii_start();
        let unsigned = number.strip_prefix(['+', '-']).unwrap_or(number);
        let rest = unsigned.trim_start_matches(|letter: char| letter.is_ascii_digit());
        if rest.trim_ascii().is_empty() {
            // As the original, which keeps the lower half.
            return Ok(i64::from(leading_int(&answer) as i32));
        }
        Err(format!("{}: shell command must return an integer (not \"{answer}\")", self.name))
    }
}

/// Waits until the process has ended. Returns earlier where that can't be waited for, as on a
/// loop with a virtual clock: then the caller blocks.
async fn wait_for(child: &Child) {
    let Ok(fd) = pidfd_open(Pid::from_child(child), PidfdFlags::NONBLOCK) else { return };
    if let Ok(source) = EventSource::new(fd) {
        source.readable().await;
    }
}

/// The first line of what a process prints, at most so much of it.
async fn first_line(stdout: OwnedFd) -> Vec<u8> {
    let mut line = Vec::new();
    if fcntl_setfl(&stdout, OFlags::NONBLOCK).is_err() {
        return line;
    }
    let Ok(source) = EventSource::new(stdout) else { return line };
    while line.len() < LONGEST_ANSWER && !line.ends_with(b"\n") {
        let mut byte = [0; 1];
        match rustix::io::read(source.fd(), &mut byte) {
            Ok(0) => break,
            Ok(_) => line.push(byte[0]),
            Err(Errno::AGAIN) => {
                source.not_readable();
                source.readable().await;
            }
            Err(Errno::INTR) => {}
            Err(_) => break,
        }
    }
    line
}
