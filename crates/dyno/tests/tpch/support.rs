//! The verb, run to its end.

use dyno_testkit::{Ran, Scratch};
use std::process::{Command, Stdio};

/// `dyno tpch` with these words.
pub(crate) fn ran(folder: &Scratch, words: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dyno"));
    command.arg("tpch").args(words).current_dir(folder.path()).env("HOME", folder.path());
    let output = command.stdin(Stdio::null()).output().expect("dyno can be run");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

/// The same, which has to end well.
pub(crate) fn good(folder: &Scratch, words: &[&str]) -> Ran {
    let ran = ran(folder, words);
    assert_eq!(ran.code, 0, "{words:?}: {}", ran.all());
    ran
}

/// The same, which has to end with this code, this error and this hint, or what they begin with.
pub(crate) fn refused(folder: &Scratch, words: &[&str], code: i32, error: &str, hint: &str) {
    let ran = ran(folder, words);
    assert_eq!(ran.code, code, "{words:?}: {}", ran.all());
    let mut lines = ran.stderr.lines();
    let begins = |line: Option<&str>, text: &str| line.is_some_and(|line| line.starts_with(text));
    assert!(begins(lines.next(), &format!("error: {error}")), "{words:?}: {}", ran.all());
    assert!(begins(lines.next(), &format!("hint: {hint}")), "{words:?}: {}", ran.all());
    assert_eq!(lines.next(), None, "{words:?}");
    assert_eq!(ran.stdout, "");
}
