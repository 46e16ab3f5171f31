//! The closing lines of `./test`.

use dyno_testkit::Scratch;
use std::path::Path;
use std::process::Command;

fn count_text(text: &str) -> String {
    closing(text).0
}

/// Output of the script on stdout and on stderr.
fn closing(text: &str) -> (String, String) {
    let scratch = Scratch::new();
    let file = scratch.file("out");
    std::fs::write(&file, text).expect("written");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../test");
    let output = Command::new(script).arg("count").arg(file).output().expect("it can be run");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (text(output.stdout), text(output.stderr))
}

#[test]
fn a_skipped_test_is_counted_once_and_not_as_passed() {
    let several_threads = "     Running tests/a.rs (target/a-1)\n\
        skipped: m::one: no server\nskipped: m::one: a part: no client\ntest m::one ... ok\n\
        test m::two ... ok\nskipped: m::three: no disk\ntest m::three ... FAILED\ntest out ... ok\n\
        dyno says: skipped: x\n\
        test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured\n";
    assert_eq!(count_text(several_threads), "2 passed, 1 failed, 1 skipped\n");
    // A test of the same name in another binary.
    let one_thread = "     Running tests/b.rs (target/b-2)\n\
        test m::one ... skipped: parts: no server\nskipped: other: no\nok\ntest m::two ... ok\n\
        test m::three ... skipped: m: no\nFAILED\n\
        test result: FAILED. 2 passed; 1 failed; 0 ignored\n";
    assert_eq!(count_text(one_thread), "1 passed, 1 failed, 1 skipped\n");
    let both_runs = format!("{several_threads}{one_thread}");
    assert_eq!(count_text(&both_runs), "3 passed, 2 failed, 2 skipped\n");
    let timed = "     Running tests/c.rs (target/c-3)\ntest a ... ok <0.5s>\n\
        test b ... skipped: b: no\nok <1.0s>\ntest c ... skipped: c: no\nFAILED <2.0s>\n\
        test result: FAILED. 2 passed; 1 failed; 0 ignored\n";
    assert_eq!(count_text(timed), "1 passed, 1 failed, 1 skipped\n");
    // Steps without a runner.
    assert_eq!(count_text("skipped: NATS: none\n"), "0 passed, 0 failed, 1 skipped\n");
    assert_eq!(count_text("formatted\n"), "1 passed, 0 failed, 0 skipped\n");
}

#[test]
fn what_a_failed_test_said_stands_at_the_end() {
    let (_, said) = closing(
        "     Running tests/a.rs (target/a-1)\n\
        thread 'm::one' (7) panicked at tests/a.rs:1:2:\nit is meant\ntest m::one ... ok <0.1s>\n\
        thread 'm::two' (8) panicked at tests/a.rs:3:4:\nassertion `left == right` failed: it is left\n  \
        left: 1\n right: 0\nstack backtrace:\n   0: one\n   1: two\n\
        thread 'loop-0' (9) panicked at tests/a.rs:5:6:\nit is broken\n\
        test m::two ... FAILED <0.2s>\nfailures:\n    m::two\n\
        test result: FAILED. 1 passed; 1 failed; 0 ignored\n",
    );
    let expected = "  thread 'm::two' (8) panicked at tests/a.rs:3:4:\n  assertion `left == right` failed: \
        it is left\n    left: 1\n   right: 0\n  stack backtrace:\n     0: one\n  \
        test m::two ... FAILED <0.2s>\n      m::two\n";
    assert_eq!(said, expected);
}
