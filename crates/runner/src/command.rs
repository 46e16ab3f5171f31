//! Commands of the shell that a suite names: they empty a server's caches or restore its data.

use crate::failure::{Failure, Result, sentence};
use dyno_core::{AdminDriver, DbError, Nanos, SECOND};
use dyno_engine::Control;
use dyno_facts::{Message, say};
use dyno_reactor::{now, run_group, sleep_until, unless};
use std::process::Stdio;

/// Interval at which a stop is looked for while a server is waited for.
const LOOK_EVERY: Nanos = SECOND / 10;
/// Longest time for a server to come back after a command, and for the command of a fault.
pub(super) const BACK_WITHIN: Nanos = 120 * SECOND;

/// A command and how messages call it.
#[derive(Clone)]
pub struct ShellCommand<'a> {
    /// Told to the command as `DYNO_TARGET`.
    pub target: &'a str,
    pub told: &'a [(&'a str, &'a str)],
    /// The text executed by `sh -c`.
    pub text: &'a str,
    /// For example `empties the caches`.
    pub does: Message,
    pub key: &'a str,
    /// Time limit; `None` if it may have to copy any amount of data.
    pub limit: Option<Nanos>,
}

impl<'a> ShellCommand<'a> {
    /// A command without further variables and without a time limit.
    pub fn new(target: &'a str, text: &'a str, does: Message, key: &'a str) -> Self {
        ShellCommand { target, told: &[], text, does, key, limit: None }
    }
}

pub struct CommandTiming {
    /// Until it had ended.
    pub ended_s: f64,
    /// Until the server could be reached again.
    pub back_s: f64,
}

/// Runs the command, and kills it with all that it has started when `is_stopped` or its time is over;
/// false when it was stopped.
pub(super) async fn execute(
    command: &ShellCommand<'_>,
    is_stopped: impl Fn() -> bool,
) -> Result<bool> {
    let &ShellCommand { target, told: variables, text, ref does, key, limit } = command;
    let mut shell = std::process::Command::new("/bin/sh");
    shell.arg("-c").arg(text).env("DYNO_TARGET", target).envs(variables.iter().copied());
    // Standard output belongs to dyno's data; a server that the command starts may keep it open.
    shell.stdin(Stdio::null()).stdout(std::io::stderr());
    let due = limit.map(|limit| now() + limit);
    let running =
        unless(|| is_stopped() || due.is_some_and(|due| now() >= due), run_group(&mut shell));
    let ended = match running.await {
        Some(ended) => ended,
        None if is_stopped() => return Ok(false),
        None => {
            let s = limit.unwrap_or_default() / SECOND;
            return Err(Failure::new(say!(command_too_slow, does, s, key)));
        }
    };
    let ended = ended
        .map_err(|error| Failure::new(format!("The command that {does} can't be run: {error}.")))?;
    if ended.success() {
        return Ok(true);
    }
    let message = say!(command_failed, does, why = ended.to_string());
    let hint = format!("`{key}` is run by sh -c; its output is above.");
    Err(Failure::new(message).with_hint(hint))
}

/// Runs the command and waits until the server answers; `None` when the user has stopped it.
pub async fn run(
    driver: &AdminDriver<'_>,
    command: &ShellCommand<'_>,
    control: &Control,
) -> Result<Option<CommandTiming>> {
    let began = now();
    if !execute(command, || control.is_stopped()).await? {
        return Ok(None);
    }
    let ShellCommand { does, key, .. } = command;
    let ended_s = (now() - began) as f64 / 1e9;
    let Some(error) = wait_until_back(driver, control).await else {
        let back_s = (now() - began) as f64 / 1e9;
        return Ok((!control.is_stopped()).then_some(CommandTiming { ended_s, back_s }));
    };
    let failure = Failure::new(format!(
        "The server was not back {} s after the command that {does}: {}",
        BACK_WITHIN / SECOND,
        sentence(&error.to_string())
    ));
    Err(failure.with_hint(format!("`{key}` must end with a server that answers.")))
}

/// Waits until the server can be reached; why it can't, when that takes too long.
async fn wait_until_back(driver: &AdminDriver<'_>, control: &Control) -> Option<DbError> {
    let due = now() + BACK_WITHIN;
    loop {
        match unless(|| control.is_stopped(), driver.connect(0)).await {
            Some(Ok(session)) => {
                unless(|| control.is_stopped(), session.close()).await;
                return None;
            }
            None => return None,
            Some(Err(_)) if control.is_stopped() => return None,
            Some(Err(error)) if now() >= due => return Some(error),
            Some(Err(_)) => sleep_until(now() + LOOK_EVERY).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_reactor::block_on;

    fn new_command<'a>(text: &'a str, variables: &'a [(&'a str, &'a str)]) -> ShellCommand<'a> {
        let (does, key) = (say!(command_promotes, node = "n2"), "promote_command");
        ShellCommand { target: "o'main", told: variables, text, does, key, limit: None }
    }

    fn run_command(command: &ShellCommand<'_>, is_stopped: bool) -> Result<bool, Failure> {
        block_on(execute(command, || is_stopped)).expect("a loop")
    }

    #[test]
    fn a_command_is_told_who_is_meant() {
        let text = "[ \"$DYNO_TARGET/$DYNO_NODE\" = \"o'main/n1\" ]";
        assert_eq!(run_command(&new_command(text, &[("DYNO_NODE", "n1")]), false), Ok(true));
        let failure =
            run_command(&new_command(text, &[("DYNO_NODE", "n2")]), false).expect_err("fails");
        assert_eq!(failure.message, "The command that promotes n2 failed: exit status: 1.");
        assert!(failure.hint.is_some_and(|hint| hint.contains("promote_command")));
    }

    #[test]
    fn a_command_that_takes_too_long_is_killed_with_a_word_of_what_to_do() {
        let slow = ShellCommand { limit: Some(2 * SECOND), ..new_command("sleep 1000", &[]) };
        assert_eq!(
            run_command(&slow, false).expect_err("it takes too long").message,
            "The command that promotes n2 took longer than 2 s and was killed: make `promote_command` \
             end within that time, and run longer work in the background."
        );
        assert_eq!(run_command(&slow, true), Ok(false), "whoever stops it doesn't wait");
    }
}
