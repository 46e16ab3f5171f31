//! Scripts and what pgbench 15 says of them. With `DYNO_GOLDEN=write` the live test writes the
//! file again.

use crate::support::{Case, Original, run, silent_driver};
use dyno_pgbench::script::QueryMode;
use std::fmt::Write;
use std::path::PathBuf;

/// A script is one line in the golden file: these replace what a line can't show.
const SHOWN: [(char, char); 4] = [('\n', '␤'), ('\t', '␉'), ('\r', '␍'), (' ', '␠')];

struct Golden {
    title: String,
    case: Case,
    output: String,
    /// The comment lines before it.
    comment: String,
}

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden/scripts.txt")
}

/// The script that the golden file shows in this form.
fn hidden(shown: &str) -> String {
    let letter =
        |letter| SHOWN.iter().find(|(_, shown)| *shown == letter).map(|(hidden, _)| *hidden);
    shown.chars().map(|shown| letter(shown).unwrap_or(shown)).collect()
}

fn read() -> Vec<Golden> {
    let text = std::fs::read_to_string(path()).unwrap();
    let mut cases: Vec<Golden> = Vec::new();
    let mut comment = String::new();
    for line in text.lines() {
        if let Some(script) = line.strip_prefix("= ") {
            let case = Case::new(hidden(script).as_bytes());
            let (title, output) = (script.to_owned(), String::new());
            cases.push(Golden { title, case, output, comment: std::mem::take(&mut comment) });
        } else if line.starts_with("# ") || line == "#" {
            comment.push_str(line);
            comment.push('\n');
        } else if let Some(option) = line.strip_prefix("- ") {
            let case = &mut cases.last_mut().unwrap().case;
            match option.split_once(' ').unwrap() {
                ("mode", mode) => {
                    case.mode = QueryMode::ALL.into_iter().find(|one| one.name() == mode).unwrap();
                }
                ("define", define) => {
                    let define = hidden(define);
                    let (name, value) = define.split_once('=').unwrap();
                    case.defines.push((name.to_owned(), value.to_owned()));
                }
                _ => panic!("{line}"),
            }
        } else if let Some(output) = line.strip_prefix("> ") {
            cases.last_mut().unwrap().output.push_str(&format!("{output}\n"));
        } else {
            assert_eq!(line, "", "every line begins with a mark");
        }
    }
    cases
}

fn render_cases(cases: &[Golden], run_case: impl Fn(&Case) -> String) -> String {
    let mut text = String::new();
    for Golden { title, case, comment, .. } in cases {
        writeln!(text, "{comment}= {title}").unwrap();
        if case.mode != QueryMode::Simple {
            writeln!(text, "- mode {}", case.mode.name()).unwrap();
        }
        for (name, value) in &case.defines {
            let letters = value.chars().map(|letter| {
                let visible = SHOWN.iter().find(|(hidden, _)| *hidden == letter);
                visible.map_or(letter, |pair| pair.1)
            });
            let value: String = letters.collect();
            writeln!(text, "- define {name}={value}").unwrap();
        }
        for line in run_case(case).lines() {
            writeln!(text, "> {line}").unwrap();
        }
        text.push('\n');
    }
    text
}

/// All differences at once.
fn compare(cases: &[&Golden], run_case: impl Fn(&Case) -> String) {
    let mut complaints = String::new();
    for golden in cases {
        let output = run_case(&golden.case);
        if output != golden.output {
            let (title, expected) = (&golden.title, &golden.output);
            write!(complaints, "\n{title}\n  pgbench 15:\n{expected}  here:\n{output}").unwrap();
        }
    }
    assert!(complaints.is_empty(), "{complaints}");
}

fn needs_server(golden: &Golden) -> bool {
    let script = String::from_utf8_lossy(&golden.case.script).to_ascii_lowercase();
    ["select", "selec", "update", "copy", "begin"].iter().any(|word| script.contains(word))
}

#[test]
fn scripts_say_what_they_say_in_pgbench_15() {
    let cases = read();
    let alone: Vec<_> = cases.iter().filter(|golden| !needs_server(golden)).collect();
    let expressions = alone.iter().filter(|golden| golden.title.contains("debug("));
    assert!(expressions.count() >= 150, "there are many expressions");
    let driver = silent_driver();
    compare(&alone, |case| run(&driver, case));
}

#[test]
fn scripts_say_the_same_as_in_the_installed_pgbench() {
    let Some(original) = Original::start("scripts against pgbench", &["-c", "fsync=off"]) else {
        return;
    };
    let cases = read();
    if std::env::var("DYNO_GOLDEN").is_ok_and(|what| what == "write") {
        std::fs::write(path(), render_cases(&cases, |case| original.run(case))).unwrap();
        return;
    }
    let every_case: Vec<_> = cases.iter().collect();
    compare(&every_case, |case| original.run(case));
    let driver = original.driver();
    compare(&every_case, |case| run(&driver, case));
}
