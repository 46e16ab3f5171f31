//! The binary itself. Cargo builds it only for the tests of this package; the black-box tests in `tests/` take what
//! was built for this one (`DYNO_BINARY`), with the features of the whole workspace.

use std::process::Command;

#[test]
fn the_binary_says_its_version() {
    let output = Command::new(env!("CARGO_BIN_EXE_dyno")).arg("--version").output().expect("runs");
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(text.starts_with(&format!("dyno {}", env!("CARGO_PKG_VERSION"))), "{text}");
}

#[test]
fn the_binary_describes_its_build() {
    let words = ["--version", "--verbose"];
    let output = Command::new(env!("CARGO_BIN_EXE_dyno")).args(words).output().expect("runs");
    let text = String::from_utf8(output.stdout).expect("text");
    let keys: Vec<&str> = text.lines().filter_map(|line| Some(line.split_once(": ")?.0)).collect();
    assert_eq!(keys, ["commit", "target", "features", "I/O"], "{text}");
}

#[test]
fn each_verb_has_a_manual_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let status = Command::new(env!("CARGO_BIN_EXE_dyno")).arg("man").arg(folder.path()).status();
    assert!(status.expect("runs").success());
    for page in ["dyno.1", "dyno-run.1", "dyno-cluster-up.1", "dyno-sysbench.1"] {
        let text = std::fs::read_to_string(folder.path().join(page)).expect(page);
        assert!(text.contains(".SH NAME") && text.contains(".SH SYNOPSIS"), "{page}: {text}");
    }
}
