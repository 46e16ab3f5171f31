//! The verb, run to its end.

use dyno_testkit::{Ran, Scratch, dyno_command};

/// `dyno tpch` with these words.
pub(crate) fn ran(folder: &Scratch, words: &[&str]) -> Ran {
    Ran::of(dyno_command(folder.path()).arg("tpch").args(words))
}

/// `dyno tpch` with these words, which has to end well.
pub(crate) fn good(folder: &Scratch, words: &[&str]) -> Ran {
    ran(folder, words).good()
}

/// `dyno tpch`, which has to end with this code, this error and this hint, or what they begin with.
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
