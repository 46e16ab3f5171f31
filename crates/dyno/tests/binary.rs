//! The binary itself. Cargo builds it for tests of its own package only; the black-box tests in `tests/` take what
//! was built for this one (`DYNO_BINARY`), with the features of the whole workspace.

use std::process::Command;

#[test]
fn the_binary_says_its_version() {
    let output = Command::new(env!("CARGO_BIN_EXE_dyno")).arg("--version").output().expect("runs");
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(text.starts_with(&format!("dyno {}", env!("CARGO_PKG_VERSION"))), "{text}");
}
