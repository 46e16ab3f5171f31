//! I/O backends of loops: io_uring, epoll, and the message in a container that forbids io_uring.

use dyno_testkit::{
    Postgres, ProcessOutput, Scratch, dyno, dyno_command, only_run, peer, server_or_skip, skipped,
};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Forbids io_uring_setup (425), as the default profiles of containers do, and executes the rest of its arguments.
const WITHOUT_IO_URING: &str = r#"
import ctypes, os, struct, sys
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, 425), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7fff0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0, os.strerror(ctypes.get_errno())
os.execv(sys.argv[1], sys.argv[1:])
"#;

fn suite(folder: &Path, url: &str) {
    let text = format!(
        "[suite]\nname = \"loops\"\n[target.main]\nurl = \"{url}\"\n\n[[experiment]]\nname = \"load\"\n\
         workload = \"sysbench\"\ntest = \"oltp_read_only\"\noptions = {{ tables = 1, table_size = 1000 }}\n\
         workers = [8]\nevents = 50\n"
    );
    fs::write(folder.join("loops.toml"), text).expect("the suite can be written");
}

/// The run's note on its loops, once its only trial is complete.
fn loops_note(folder: &Path, output: &ProcessOutput) -> String {
    output.assert_judged();
    let run = only_run(&folder.join("dyno-runs")).expect("there is a run");
    let read_json = |name: &str| -> Value {
        serde_json::from_slice(&fs::read(run.join(name)).expect(name)).expect("JSON")
    };
    let trial = read_json("trials/1.json");
    assert_eq!(trial["status"], "complete", "{trial:#}");
    assert_eq!(trial["counts"]["committed"].as_u64(), Some(50), "{trial:#}");
    let note = read_json("run.json")["environment"]["loops_io"].as_str().map(str::to_owned);
    fs::remove_dir_all(folder.join("dyno-runs")).expect("the runs can go");
    note.unwrap_or_default()
}

#[test]
fn loops_use_what_was_chosen_and_what_the_kernel_allows() {
    const TEST: &str = "loops_use_what_was_chosen_and_what_the_kernel_allows";
    let server = server_or_skip!(Postgres, TEST);
    let scratch = Scratch::new();
    let folder = scratch.path();
    suite(folder, &server.url());
    let run = ["run", "loops.toml"];
    assert_eq!(
        loops_note(folder, &dyno(folder, &[&["--io", "epoll"], &run[..]].concat())),
        "epoll"
    );

    let forced = dyno(folder, &[&["--io", "uring"], &run[..]].concat());
    if forced.code == 2 {
        skipped(TEST, &forced.to_string());
    } else {
        assert_eq!(loops_note(folder, &forced), "io_uring");
        // The option wins.
        let output = ProcessOutput::capture(
            dyno_command(folder).env("DYNO_IO", "epoll").args(["--io", "auto"]).args(run),
        );
        assert_eq!(loops_note(folder, &output), "io_uring");
    }

    let wrong = ProcessOutput::capture(dyno_command(folder).env("DYNO_IO", "fast").args(run));
    assert_eq!(wrong.code, 2, "{wrong}");
    assert!(
        wrong.to_string().contains("DYNO_IO: `fast` is not one of auto, uring, epoll."),
        "{wrong}"
    );

    let Some(python) = peer("python3") else { return skipped(TEST, "python3 is not installed") };
    let run_without_io_uring = |arguments: &[&str]| {
        let inner = dyno_command(folder);
        let mut command = Command::new(&python);
        command.current_dir(folder).args(["-c", WITHOUT_IO_URING]).arg(inner.get_program());
        for (name, value) in inner.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        ProcessOutput::capture(command.args(arguments))
    };
    let output = run_without_io_uring(&run);
    let reason = "io_uring: Operation not permitted (os error 1)";
    assert!(output.to_string().contains("note: loops use epoll, which costs more CPU"), "{output}");
    assert_eq!(loops_note(folder, &output), format!("epoll ({reason})"));
    let output = run_without_io_uring(&[&["--io", "uring"], &run[..]].concat());
    assert_eq!(output.code, 2, "{output}");
    assert!(
        output.to_string().contains("io_uring can't be used here: Operation not permitted"),
        "{output}"
    );
    assert!(output.to_string().contains("hint: leave `--io uring` out"), "{output}");
}
