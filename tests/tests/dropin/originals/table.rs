//! A table of command lines, and how both programs are run on it.
//!
//! A line is a mark and words: `-` without a server, `my` and `pg` with the options of a connection.
//! A second mark behind it: `~` numbers differ from run to run, `%` so does the order of lines, `!` is
//! known to differ, and then must differ; `+` dyno says more on standard output. Words `NAME=VALUE` at the beginning
//! are the environment, what follows `<<<` is standard input, with `\n` for a line end before a backslash or a word.

use super::mask::{mask, sorted, without_numbers};
use dyno_testkit::ProcessOutput;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

pub(super) struct CommandLine {
    pub(super) server: String,
    text: String,
    any_numbers: bool,
    any_order: bool,
    may_say_more: bool,
    differs: bool,
    environment: Vec<(String, String)>,
    pub(super) words: Vec<String>,
    input: String,
}

impl CommandLine {
    fn read(text: &str) -> Self {
        let (mark, rest) = text.split_once(' ').unwrap_or((text, ""));
        let (words, input) = rest.split_once(" <<< ").unwrap_or((rest, ""));
        let mut words = split(words).into_iter().peekable();
        let mut environment = Vec::new();
        while let Some(word) = words.next_if(|word| is_assignment(word)) {
            let (name, value) = word.split_once('=').expect("it is an assignment");
            environment.push((name.to_owned(), value.to_owned()));
        }
        CommandLine {
            server: mark.trim_end_matches(['~', '%', '!', '+']).to_owned(),
            text: text.to_owned(),
            any_numbers: mark.contains('~'),
            any_order: mark.contains('%'),
            may_say_more: mark.contains('+'),
            differs: mark.contains('!'),
            environment,
            words: words.collect(),
            input: input.replace("\\n", "\n"),
        }
    }

    fn run(&self, mut command: Command) -> ProcessOutput {
        command.envs(self.environment.iter().cloned());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program can be started");
        let mut input = child.stdin.take().expect("a pipe");
        // A program that reads nothing may be gone.
        let _ = input.write_all(self.input.as_bytes());
        drop(input);
        child.wait_with_output().expect("an end").into()
    }
}

/// Names of environment variables are written in capitals.
fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
    })
}

/// Words between blanks; quotes keep blanks together.
fn split(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted, mut begun) = (Vec::new(), String::new(), false, false);
    for letter in text.chars() {
        match letter {
            '\'' => (quoted, begun) = (!quoted, true),
            ' ' if !quoted => {
                if begun {
                    words.push(std::mem::take(&mut word));
                }
                begun = false;
            }
            _ => {
                word.push(letter);
                begun = true;
            }
        }
    }
    if begun {
        words.push(word);
    }
    words
}

/// A program's output, in the form in which two are compared.
#[derive(PartialEq, Eq)]
struct ComparableOutput {
    code: i32,
    stdout: String,
    stderr: String,
}

/// Runs every line of `table` with both programs, each on databases of its own.
///
/// # Panics
/// With all differences that the table doesn't know of.
pub(super) fn compare(
    table: &str,
    program: &str,
    original: impl Fn(&CommandLine) -> Command + Sync,
    ours: impl Fn(&CommandLine) -> Command + Sync,
) {
    let lines: Vec<CommandLine> = table
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(CommandLine::read)
        .collect();
    let run_lines = |command: &(dyn Fn(&CommandLine) -> Command + Sync)| -> Vec<ProcessOutput> {
        lines.iter().map(|line| line.run(command(line))).collect()
    };
    let (ours, theirs) = std::thread::scope(|scope| {
        let theirs = scope.spawn(|| run_lines(&original));
        (run_lines(&ours), theirs.join().expect("the original can be run"))
    });
    let mut report = String::new();
    let mut wrong = 0;
    for (line, (ours, theirs)) in lines.iter().zip(ours.into_iter().zip(theirs)) {
        let to_comparable = |output: &ProcessOutput| {
            let normalize = |text: &str| {
                let mut text = mask(text, program);
                if line.any_numbers {
                    text = without_numbers(&text);
                }
                if line.any_order { sorted(&text) } else { text }
            };
            ComparableOutput {
                code: output.code,
                stdout: normalize(&output.stdout),
                stderr: normalize(&output.stderr),
            }
        };
        let (mut ours, theirs) = (to_comparable(&ours), to_comparable(&theirs));
        let is_theirs = |text: &&str| {
            !is_addition(text) || theirs.stderr.lines().any(|line| line == text.trim_end())
        };
        ours.stderr = ours.stderr.split_inclusive('\n').filter(is_theirs).collect();
        if line.may_say_more {
            let mut lines = ours.stdout.lines();
            // Lines of the original in its order, whatever stands between them.
            if theirs.stdout.lines().all(|line| lines.any(|ours| ours == line)) {
                ours.stdout.clone_from(&theirs.stdout);
            }
        }
        if (ours == theirs) == line.differs {
            wrong += 1;
            let _ = writeln!(report, "==== {}", line.text);
            if line.differs {
                report.push_str("both say the same now\n");
            } else {
                describe(&mut report, &ours, &theirs);
            }
        }
    }
    let known_differences = lines.iter().filter(|line| line.differs).count();
    let count = lines.len();
    assert_eq!(
        wrong, 0,
        "{report}\n{wrong} of {count} command lines differ, {known_differences} are known to"
    );
}

/// Additional lines of dyno on standard error: a remedy, and its work besides the original's.
fn is_addition(line: &str) -> bool {
    ["hint: ", " rows loaded", "note: ", " clients stopped after an error; "]
        .iter()
        .any(|words| line.contains(words))
}

fn describe(report: &mut String, ours: &ComparableOutput, theirs: &ComparableOutput) {
    if ours.code != theirs.code {
        let _ = writeln!(report, "exit code {}, the original's {}", ours.code, theirs.code);
    }
    for (name, ours, theirs) in
        [("stdout", &ours.stdout, &theirs.stdout), ("stderr", &ours.stderr, &theirs.stderr)]
    {
        if ours != theirs {
            let _ = writeln!(report, "-- {name}, ours:\n{ours}-- the original's:\n{theirs}");
        }
    }
}
