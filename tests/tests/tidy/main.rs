//! Style as a test: what a reviewer would otherwise have to look for.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

mod dependencies;
mod structure;
mod texts;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ is in the root").to_owned()
}

/// All files with this ending, but build products, in order, with their path from the root.
fn files(extension: &str) -> Vec<(String, String)> {
    let root = root();
    let mut folders = vec![root.clone()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the project") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            if path.is_dir() {
                let is_left_out = name.starts_with('.') || name == "target" || name == "dyno-runs";
                if !is_left_out {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|ending| ending == extension) {
                let text = fs::read_to_string(&path).expect("UTF-8");
                let relative = path.strip_prefix(&root).expect("below the root");
                files.push((relative.to_string_lossy().into_owned(), text));
            }
        }
    }
    files.sort();
    assert!(!files.is_empty(), "no *.{extension} found");
    files
}

/// Fails with all complaints at once.
fn assert_none(complaints: Vec<String>) {
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

/// Holds what was found and how often against what `known/NAME` allows, a line each. Those lists may only get
/// shorter: what is gone has to leave them, which `DYNO_BLESS=1` does.
fn none_but_known(name: &str, found: &BTreeMap<String, usize>) {
    let path = root().join("tests/tests/tidy/known").join(name);
    let text = fs::read_to_string(&path).unwrap_or_default();
    let allowed: BTreeMap<&str, usize> = text
        .lines()
        .filter_map(|line| {
            let (what, count) = line.rsplit_once(' ')?;
            Some((what, count.parse().expect("a count ends each line")))
        })
        .collect();
    let count = |what: &str| found.get(what).copied().unwrap_or(0);
    if std::env::var_os("DYNO_BLESS").is_some() {
        let shrunk = allowed.iter().map(|(what, most)| (what, count(what).min(*most)));
        let shrunk = shrunk.filter(|(_, count)| *count > 0);
        let lines: String = shrunk.map(|(what, count)| format!("{what} {count}\n")).collect();
        fs::write(&path, lines).expect("the list can be written");
    }
    let additional = found
        .iter()
        .filter(|(what, count)| **count > allowed.get(what.as_str()).copied().unwrap_or(0));
    let mut complaints: Vec<String> =
        additional.map(|(what, count)| format!("{name}: {what} {count}")).collect();
    let gone = allowed.iter().filter(|(what, most)| count(what) < **most);
    complaints.extend(gone.map(|(what, _)| {
        format!("{name}: {what}: better than known; DYNO_BLESS=1 takes that down")
    }));
    assert_none(complaints);
}

/// The limits that `CONTRIBUTING.md` sets: lines of a file and of a function.
fn limits() -> [usize; 2] {
    let text = fs::read_to_string(root().join("CONTRIBUTING.md")).expect("the page");
    ["files have at most ", "functions at most "].map(|words| {
        let (_, rest) = text.split_once(words).expect("CONTRIBUTING.md sets the limits");
        let number = rest.split(|c: char| !c.is_ascii_digit()).next();
        number.and_then(|number| number.parse().ok()).expect("a number")
    })
}

#[test]
fn files_are_short() {
    let [most, _] = limits();
    let long = files("rs").into_iter().filter_map(|(path, text)| {
        let lines = text.lines().count();
        (lines > most).then_some((path, lines))
    });
    none_but_known("long_files", &long.collect());
}

/// Name and length of each function, judged by the indentation that rustfmt gives.
fn functions(text: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut functions = Vec::new();
    for (begin, line) in lines.iter().enumerate() {
        let indent = &line[..line.len() - line.trim_start().len()];
        let words = line.split_whitespace().skip_while(|word| {
            word.starts_with("pub") || matches!(*word, "const" | "async" | "unsafe" | "extern")
        });
        let mut words = words.take(2);
        let (Some("fn"), Some(name)) = (words.next(), words.next()) else { continue };
        let name = name.split(['(', '<']).next().unwrap_or(name);
        let end = format!("{indent}}}");
        let length = lines[begin..].iter().position(|line| *line == end).map_or(1, |at| at + 1);
        let is_one_line = line.ends_with('}') || line.ends_with(';');
        functions.push((name.to_owned(), if is_one_line { 1 } else { length }));
    }
    functions
}

#[test]
fn functions_are_short() {
    let [_, most] = limits();
    let mut long = BTreeMap::new();
    let mut count = 0;
    for (path, text) in files("rs") {
        for (name, lines) in functions(&text) {
            count += 1;
            if lines > most {
                long.insert(format!("{path}: {name}"), lines);
            }
        }
    }
    assert!(count > 1_000, "only {count} functions were found");
    none_but_known("long_functions", &long);
}

#[test]
fn only_the_binary_prints() {
    let may_print = |path: &str| {
        path.starts_with("crates/dyno/")
            || path.starts_with("bench/")
            // What a build script prints, cargo reads.
            || path.ends_with("/build.rs")
            || path.starts_with("tests/")
            || ["/examples/", "/benches/", "/tests/"].iter().any(|part| path.contains(part))
    };
    // Put together, so that this file doesn't find itself.
    let words = ["print", "println", "eprint", "eprintln"].map(|word| format!("{word}!("));
    let mut complaints = Vec::new();
    for (path, text) in files("rs").into_iter().filter(|(path, _)| !may_print(path)) {
        for (number, line) in text.lines().enumerate() {
            // What a test leaves out, it says.
            let prints = words.iter().any(|word| {
                line.match_indices(word.as_str())
                    .any(|(at, _)| !line[..at].ends_with(|c: char| c.is_alphanumeric()))
            });
            if prints && !line.contains("\"skipped: ") {
                complaints.push(format!("{path}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    assert_none(complaints);
}

#[test]
fn the_runner_and_the_front_ends_know_no_streams() {
    let is_silent =
        |path: &str| path.starts_with("crates/runner/src/") || path.starts_with("crates/dropin/");
    // The shell of a command gets the stream of talk as its own.
    let inherits = "crates/runner/src/command.rs";
    let words = ["stdout", "stderr"].map(|word| format!("io::{word}("));
    let mut complaints = Vec::new();
    for (path, text) in files("rs").into_iter().filter(|(path, _)| is_silent(path)) {
        for (number, line) in text.lines().enumerate() {
            let prints = words.iter().any(|word| line.contains(word)) && path != inherits;
            // The front end of BenchmarkSQL reads its own arguments; the binary parses and prints.
            let knows_clap = line.contains("clap::") && !path.starts_with("crates/dropin/");
            let knows_more = knows_clap || line.contains("indicatif");
            if prints || knows_more {
                complaints.push(format!("{path}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    assert_none(complaints);
}

#[test]
fn randomness_has_a_seed() {
    // Put together, so that this file doesn't find itself. Nonces of log-ins come from the kernel: no
    // load depends on them.
    let words = ["thread", "random", "rng"].map(|word| format!("rand::{word}"));
    let mut complaints = Vec::new();
    for (path, text) in files("rs") {
        for (number, line) in text.lines().enumerate() {
            let mut names = words.iter().map(String::as_str).chain([concat!("thread", "_rng")]);
            if names.any(|name| line.contains(name)) {
                complaints.push(format!("{path}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    for (path, text) in files("toml").into_iter().filter(|(path, _)| path.ends_with("Cargo.toml")) {
        let is_random_crate = |line: &&str| {
            ["rand", "fastrand"].iter().any(|name| {
                line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '.']))
            })
        };
        complaints
            .extend(text.lines().filter(is_random_crate).map(|line| format!("{path}: {line}")));
    }
    assert_none(complaints);
}

#[test]
fn the_architecture_fits_on_a_page() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("a page");
    let longest = text.lines().map(|line| line.chars().count()).max();
    assert!(text.lines().count() <= 100 && longest <= Some(120), "details belong to module docs");
}

/// The page of documentation that compiles: whoever adds a workload reads and copies it.
#[test]
fn the_example_of_a_workload_is_short() {
    let read_text = |file: &str| fs::read_to_string(root().join("tests/ping").join(file));
    let lines: usize = files("rs")
        .iter()
        .filter(|(path, _)| path.starts_with("tests/ping/src/"))
        .map(|(_, text)| text.lines().count())
        .sum();
    let manifest = read_text("Cargo.toml").expect("the example");
    let (_, needed) = manifest.split_once("\n[dependencies]\n").expect("its dependencies");
    let needed = needed.split("\n[").next().unwrap_or_default();
    let own_crates: Vec<&str> = needed.lines().filter(|line| line.starts_with("dyno")).collect();
    assert!((1..=120).contains(&lines) && own_crates.len() <= 3, "{lines} lines; {own_crates:?}");
}

#[test]
fn the_core_depends_on_nothing() {
    let text = fs::read_to_string(root().join("crates/core/Cargo.toml")).expect("the core");
    let dependencies = text.split("\n[dependencies]").nth(1).expect("a list of dependencies");
    let dependencies = dependencies.split("\n[").next().unwrap_or_default();
    assert_eq!(dependencies.trim(), "");
    assert!(!text.contains("build-dependencies"));
}

#[test]
fn every_workload_has_its_papers() {
    let folder = root().join("crates/workloads");
    let mut complaints = Vec::new();
    let mut count = 0;
    for entry in fs::read_dir(&folder).expect("the workloads") {
        let path = entry.expect("an entry").path();
        if !path.is_dir() {
            continue;
        }
        count += 1;
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let has_any = |names: &[&str]| names.iter().any(|name| path.join(name).exists());
        let mut want = |is_there: bool, what: &str| {
            if !is_there {
                complaints.push(format!("the workload {name} has no {what}"));
            }
        };
        want(has_any(&["README.md"]), "README.md");
        // Users' own scripts: what is right in their tables only they know.
        if name == "lua" {
            continue;
        }
        want(has_any(&["src/check.rs", "src/checks.rs", "src/check/mod.rs"]), "src/check.rs");
        let golden = fs::read_dir(path.join("golden")).map_or(0, Iterator::count);
        want(golden > 0, "golden/ with files");
    }
    assert!(count > 0, "there are workloads");
    assert_none(complaints);
}

/// Targets of Markdown links `[text](target)` outside of code.
fn links(text: &str) -> Vec<String> {
    let mut links = Vec::new();
    let mut is_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        if is_code {
            continue;
        }
        let mut remaining = line;
        while let Some((_, after)) = remaining.split_once("](") {
            let (target, more) = after.split_once(')').unwrap_or((after, ""));
            links.push(target.split(' ').next().unwrap_or(target).to_owned());
            remaining = more;
        }
    }
    links
}

#[test]
fn links_lead_somewhere() {
    let mut complaints = Vec::new();
    let mut count = 0;
    for (path, text) in files("md") {
        // Templates and their products link into a run folder.
        if path.contains("/templates/") || path.contains("/golden/") {
            continue;
        }
        let folder = root().join(&path).parent().expect("a folder").to_owned();
        for link in links(&text) {
            if link.contains("://") || link.starts_with('#') || link.starts_with("mailto:") {
                continue;
            }
            count += 1;
            let file = link.split('#').next().unwrap_or(&link);
            if !folder.join(file).exists() {
                complaints.push(format!("{path} links to {link}, which doesn't exist"));
            }
        }
    }
    assert!(count > 0, "there are relative links");
    assert_none(complaints);
}

#[test]
fn the_looking_itself_works() {
    let text = "fn a() {\n    1\n}\n\npub(crate) async fn b<T>(\n    c: T,\n) {\n    {\n    }\n}\nfn c() {}\n";
    let functions = functions(text);
    assert_eq!(functions, [("a".to_owned(), 3), ("b".to_owned(), 6), ("c".to_owned(), 1)]);
    let text = "[a](b.md) and [c](d.md#e \"f\")\n```\n[no](code)\n```\n";
    assert_eq!(links(text), ["b.md", "d.md#e"]);
}

/// Claims of speed in README were measured: they are the list that the newest page of `dyno-bench` begins with.
#[test]
fn claims_of_speed_are_those_of_the_bench() {
    let read_text =
        |name: &str| fs::read_to_string(root().join(name)).expect("a file of the project");
    let (readme, results) = (read_text("README.md"), read_text("bench/RESULTS.md"));
    let find_claims = |text: &str, begin: &str, end: &str| {
        let (_, rest) = text.split_once(begin).expect("the begin of the claims");
        let (claims, _) = rest.split_once(end).expect("the end of the claims");
        claims.lines().filter(|line| line.starts_with("- ")).map(str::to_owned).collect::<Vec<_>>()
    };
    let measured = find_claims(&results, "# dyno beside", "\n## ");
    assert!(!measured.is_empty(), "bench/RESULTS.md claims nothing");
    assert_eq!(
        find_claims(&readme, "<!-- claims of bench/RESULTS.md -->", "<!-- end of claims -->"),
        measured
    );
}
