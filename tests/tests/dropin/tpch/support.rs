//! The verb, run to its end.

use dyno_testkit::{ProcessOutput, Scratch, dyno_command};

/// `dyno tpch` with these words.
pub(crate) fn run_tpch(folder: &Scratch, words: &[&str]) -> ProcessOutput {
    ProcessOutput::capture(dyno_command(folder.path()).arg("tpch").args(words))
}

/// `dyno tpch` with these words, which has to end well.
pub(crate) fn good(folder: &Scratch, words: &[&str]) -> ProcessOutput {
    run_tpch(folder, words).good()
}

/// `dyno tpch`, which has to end with this code, this error and this hint, or what they begin with.
pub(crate) fn assert_refused(folder: &Scratch, words: &[&str], code: i32, error: &str, hint: &str) {
    let output = run_tpch(folder, words);
    assert_eq!(output.code, code, "{words:?}: {output}");
    let mut lines = output.stderr.lines();
    let begins = |line: Option<&str>, text: &str| line.is_some_and(|line| line.starts_with(text));
    assert!(begins(lines.next(), &format!("error: {error}")), "{words:?}: {output}");
    assert!(begins(lines.next(), &format!("hint: {hint}")), "{words:?}: {output}");
    assert_eq!(lines.next(), None, "{words:?}");
    assert_eq!(output.stdout, "");
}
