//! Functions of scripts that block, in several threads, as in the original.

use super::support::offline_command;
use dyno_testkit::{ProcessOutput, Scratch, peer, skipped};
use std::fs::File;
use std::process::Command;

/// Each thread tells the others by a file that it has begun, and blocks until all eight have, for half a minute at most.
const MEET: &str = r#"
local WAITS = [[touch begun.%d; sleep 2
for i in $(seq 300); do [ $(ls | grep -c begun) = 8 ] && exit 0; sleep 0.1; done; exit 1]]
local function meet()
   local code = os.execute(WAITS:format(sysbench.tid))
   -- In one call: the original's threads write between the parts of a print.
   io.write(("say\t%d\t%d\n"):format(sysbench.tid, code))
end
sysbench.cmdline.commands = { prepare = { meet, sysbench.cmdline.PARALLEL_COMMAND } }
event = meet
"#;

/// One thread fails while the other one blocks until that is printed, for half a minute at most.
const FAIL: &str = r#"
local WAITS = "for i in $(seq 300); do grep -q '%s' %s && exit 0; sleep 0.1; done; exit 1"
local function fail()
   if sysbench.tid == 0 then
      os.execute(WAITS:format("begun", "begun"))
      error("one has failed")
   end
   os.execute("echo begun > begun")
   print("say", os.execute(WAITS:format("one has failed", "out")))
   -- No further event of this thread.
   return true
end
sysbench.cmdline.commands = { prepare = { fail, sysbench.cmdline.PARALLEL_COMMAND } }
event = fail
"#;

/// Executes a script's command with dyno and, if it is installed, with the original: code, and output as a file had it.
fn run_both(name: &str, script: &str, words: &[&str], loops: &[&str]) -> Vec<(i32, String)> {
    let run_program = |program: Command, folder: &Scratch, loops: &[&str]| {
        let mut program = program;
        std::fs::write(folder.file("t.lua"), script).expect("a script");
        let out = File::create(folder.file("out")).expect("a file");
        program.current_dir(folder.path()).args(words).args(loops).stdout(out);
        let code = program.status().expect("it starts").code().expect("a code");
        (code, std::fs::read_to_string(folder.file("out")).expect("its output"))
    };
    let folder = Scratch::new();
    let mut output = vec![run_program(offline_command(&folder), &folder, loops)];
    match peer("sysbench") {
        Some(program) => output.push(run_program(Command::new(program), &Scratch::new(), &[])),
        None => skipped(name, "sysbench is not installed"),
    }
    output
}

fn lines<'a>(out: &'a str, start: &str) -> Vec<&'a str> {
    let mut lines: Vec<&str> = out.lines().filter(|line| line.starts_with(start)).collect();
    lines.sort_unstable();
    lines
}

#[test]
fn threads_of_a_command_that_blocks_overlap() {
    let name = "threads_of_a_command_that_blocks_overlap";
    for (words, loops) in [
        (&["--threads=8", "./t.lua", "prepare"][..], &[][..]),
        (&["--threads=8", "--events=8", "--time=0", "./t.lua", "run"], &["--loops=8"]),
    ] {
        for (code, out) in run_both(name, MEET, words, loops) {
            let expected: Vec<String> = (0..8).map(|thread| format!("say\t{thread}\t0")).collect();
            assert_eq!(
                (code, lines(&out, "say")),
                (0, expected.iter().map(String::as_str).collect()),
                "{out}"
            );
        }
    }
}

#[test]
fn an_error_of_one_thread_is_printed_while_another_blocks() {
    let name = "an_error_of_one_thread_is_printed_while_another_blocks";
    for (words, loops, function) in [
        (&["--threads=2", "./t.lua", "prepare"][..], &[][..], "sysbench.cmdline.call_command"),
        (&["--threads=2", "--time=60", "./t.lua", "run"], &["--loops=2"], "thread_run"),
    ] {
        let output = run_both(name, FAIL, words, loops);
        // The original's parallel commands end with 0 even if all threads have failed.
        assert_eq!(output[0].0, 1, "{}", output[0].1);
        for (_, out) in output {
            let error = format!("FATAL: `{function}' function failed: ./t.lua:6: one has failed");
            assert_eq!(lines(&out, "FATAL"), [error.as_str()], "{out}");
            assert_eq!(lines(&out, "say"), ["say\t0"], "{out}");
        }
    }
}

#[test]
fn each_thread_of_a_command_that_fails_is_printed() {
    let name = "each_thread_of_a_command_that_fails_is_printed";
    let script = "sysbench.cmdline.commands = { prepare = { function() error('own ' .. sysbench.tid) end,\n\
                  sysbench.cmdline.PARALLEL_COMMAND } }";
    for (_, out) in run_both(name, script, &["--threads=3", "./t.lua", "prepare"], &[]) {
        let failed = "FATAL: `sysbench.cmdline.call_command' function failed: ./t.lua:1: own ";
        assert_eq!(
            lines(&out, "FATAL"),
            [0, 1, 2].map(|thread| format!("{failed}{thread}")),
            "{out}"
        );
    }
    let folder = Scratch::new();
    std::fs::write(folder.file("t.lua"), script).expect("a script");
    let prepare = ProcessOutput::capture(offline_command(&folder).args(["./t.lua", "prepare"]));
    assert_eq!((prepare.code, prepare.stdout.matches("FATAL").count()), (1, 1), "{prepare}");
}
