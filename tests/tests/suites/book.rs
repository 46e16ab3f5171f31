//! The book in `doc`: its links, its commands, and the pages that the binary writes.

use dyno_testkit::{Scratch, dyno};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// No verb has this option, so that a command line that ends with it is parsed and never executed.
const UNKNOWN_OPTION: &str = "--no-such-option";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ is in the root").to_owned()
}

fn read_text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The pages of the book, in order.
fn pages() -> Vec<PathBuf> {
    let mut folders = vec![root().join("doc/src")];
    let mut pages = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the book") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    assert!(pages.len() > 20, "only {} pages were found", pages.len());
    pages
}

/// A path without `.` and `..`, whether it exists or not.
fn normalize(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                parts.pop();
            }
            other => parts.push(other),
        }
    }
    parts
}

/// A page as readers see it: lines `{{#include PATH}}` are the files that they name.
fn expand_includes(page: &Path) -> String {
    let folder = page.parent().expect("a folder");
    let mut text = String::new();
    for line in read_text(page).lines() {
        let path = line.strip_prefix("{{#include ").and_then(|rest| rest.strip_suffix("}}"));
        match path {
            Some(path) => text.push_str(&read_text(&folder.join(path))),
            None => text.push_str(line),
        }
        text.push('\n');
    }
    text
}

/// The lines outside of fenced blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// A line without what is between backticks.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect()
}

/// The targets of links and images.
fn find_links(text: &str) -> Vec<String> {
    let mut links = Vec::new();
    for line in prose(text) {
        let line = without_code(line);
        for after in line.split("](").skip(1) {
            let target = after.split(')').next().unwrap_or(after);
            links.push(target.split(' ').next().unwrap_or(target).to_owned());
        }
    }
    links
}

/// The words of a heading: its links without their targets, its code without backticks.
fn heading_text(heading: &str) -> String {
    let mut parts = heading.split("](");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str(part.split_once(')').map_or("", |(_, after)| after));
    }
    text
}

/// The anchors of headings by GitHub's rules: letters, digits, `-` and `_` in lower case, blanks as `-`, repeated ones
/// with a number.
fn find_anchors(text: &str) -> BTreeSet<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut anchors = BTreeSet::new();
    for line in prose(text) {
        let heading = line.trim_start_matches('#');
        let depth = line.len() - heading.len();
        if !(1..=6).contains(&depth) || !heading.starts_with(' ') {
            continue;
        }
        let slug: String = heading_text(heading.trim())
            .to_lowercase()
            .chars()
            .filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | ' '))
            .map(|c| if c == ' ' { '-' } else { c })
            .collect();
        let count = counts.entry(slug.clone()).or_default();
        anchors.insert(if *count == 0 { slug.clone() } else { format!("{slug}-{count}") });
        *count += 1;
    }
    anchors
}

/// The reason why a link of a page leads nowhere; `None` if it leads somewhere, or to another host.
fn link_problem(page: &Path, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let folder = page.parent().expect("a folder");
    let path = if file.is_empty() { page.to_owned() } else { normalize(&folder.join(file)) };
    if !path.exists() {
        return Some("there is no such file".to_owned());
    }
    if anchor.is_empty() || find_anchors(&expand_includes(&path)).contains(anchor) {
        return None;
    }
    Some(format!("it has no heading `{anchor}`"))
}

#[test]
fn links_of_the_book_lead_somewhere() {
    let readmes = ["README.md", "suites/README.md"].map(|name| root().join(name));
    let mut complaints = Vec::new();
    let mut count = 0;
    for page in pages().into_iter().chain(readmes) {
        for link in find_links(&read_text(&page)) {
            count += 1;
            if let Some(problem) = link_problem(&page, &link) {
                complaints.push(format!("{}: {link}: {problem}", page.display()));
            }
        }
    }
    assert!(count > 100, "only {count} links were found");
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn the_summary_lists_every_page() {
    let summary = root().join("doc/src/SUMMARY.md");
    let folder = root().join("doc/src");
    let links = find_links(&read_text(&summary)).into_iter();
    let listed: BTreeSet<PathBuf> = links.map(|link| folder.join(link)).collect();
    let pages: BTreeSet<PathBuf> = pages().into_iter().filter(|page| *page != summary).collect();
    let absent: Vec<_> = pages.difference(&listed).collect();
    assert!(absent.is_empty(), "not in SUMMARY.md: {absent:?}");
}

/// The commands of a line of a shell: their words without quotes. Comments and what is redirected to are left out.
fn split_commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let mut word = String::new();
    let mut is_word = false;
    let mut quote: Option<char> = None;
    // A blank behind, so that the last word ends.
    for c in line.chars().chain([' ']) {
        match (quote, c) {
            (Some(mark), _) if c == mark => quote = None,
            (Some(_), _) => word.push(c),
            (None, '\'' | '"') => (quote, is_word) = (Some(c), true),
            (None, '#') if !is_word => break,
            (None, ' ' | '|' | '&' | ';' | '<' | '>') => {
                if std::mem::take(&mut is_word) {
                    commands.last_mut().expect("never empty").push(std::mem::take(&mut word));
                }
                if c != ' ' {
                    commands.push(Vec::new());
                }
            }
            (None, _) => {
                word.push(c);
                is_word = true;
            }
        }
    }
    commands
}

/// The arguments of each command that begins with `dyno` in the blocks for a shell.
fn find_commands(text: &str) -> Vec<Vec<String>> {
    let blocks = text.split("\n```sh\n").skip(1);
    let mut commands = Vec::new();
    for block in blocks {
        let block = block.split("\n```").next().unwrap_or(block).replace("\\\n", " ");
        for command in block.lines().flat_map(split_commands) {
            if let Some((program, arguments)) = command.split_first()
                && program == "dyno"
            {
                commands.push(arguments.to_vec());
            }
        }
    }
    commands
}

/// The reason why the parser refuses a command line; `None` if it refuses nothing but [`UNKNOWN_OPTION`] at its end.
fn parser_problem(scratch: &Scratch, arguments: &[String]) -> Option<String> {
    let mut words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if words.first() == Some(&"--version") {
        let output = dyno(scratch.path(), &words);
        return (output.code != 0).then(|| output.to_string());
    }
    // Scripts are read while the words are parsed.
    for script in words.iter().filter_map(|word| word.split('@').next()) {
        if script.ends_with(".sql") {
            fs::write(scratch.file(script), "SELECT 1;\n").expect("written");
        }
    }
    let is_drop_in = matches!(words.first(), Some(&"sysbench" | &"pgbench"));
    if is_drop_in && words.iter().any(|word| matches!(*word, "--help" | "help")) {
        let output = dyno(scratch.path(), &words);
        return (output.code != 0).then(|| output.to_string());
    }
    if !is_drop_in {
        // The parser looks at a value when the next option comes.
        words.extend(["--io", "auto"]);
    }
    words.push(UNKNOWN_OPTION);
    let output = dyno(scratch.path(), &words);
    let is_refused = output.code != 0 && output.stderr.contains(UNKNOWN_OPTION);
    (!is_refused).then(|| output.to_string())
}

#[test]
fn commands_of_the_book_are_understood() {
    let scratch = Scratch::new();
    let pages = pages().into_iter().chain([root().join("README.md")]);
    let mut commands: BTreeMap<Vec<String>, PathBuf> = BTreeMap::new();
    for page in pages {
        for command in find_commands(&expand_includes(&page)) {
            commands.entry(command).or_insert_with(|| page.clone());
        }
    }
    assert!(commands.len() > 80, "only {} commands were found", commands.len());
    let complaints: Vec<String> = commands
        .iter()
        .filter_map(|(command, page)| {
            let problem = parser_problem(&scratch, command)?;
            Some(format!("{}: dyno {}: {problem}", page.display(), command.join(" ")))
        })
        .collect();
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

/// `DYNO_BLESS=1` writes them again.
#[test]
fn the_reference_is_that_of_the_binary() {
    let scratch = Scratch::new();
    let written = dyno(scratch.path(), &["man", "--markdown", "reference"]);
    assert_eq!(written.code, 0, "{written}");
    for name in ["verbs.md", "workloads.md"] {
        let text = read_text(&scratch.file("reference").join(name));
        let path = root().join("doc/src/reference").join(name);
        if std::env::var_os("DYNO_BLESS").is_some() {
            fs::write(&path, &text).expect("written");
        }
        let stored = fs::read_to_string(&path).unwrap_or_default();
        assert!(stored == text, "{} is out of date: DYNO_BLESS=1 writes it", path.display());
    }
}

#[test]
fn pages_are_read_as_their_readers_read_them() {
    let text = "# A `b`: c\n## [D](e.md) f\n## A b: c\n```sh\n# no\n[no](g.md)\n```\n`[no](h.md)` ![i](j.svg \"k\")\n";
    let anchors = find_anchors(text);
    assert_eq!(Vec::from_iter(&anchors), ["a-b-c", "a-b-c-1", "d-f"]);
    assert_eq!(find_links(text), ["e.md", "j.svg"]);
    let text = "x\n```sh\nnats-server &\ndyno a 'b c' --d \\\n  e#f # g\ndyno h > i && dyno j\nsudo dyno k\n```\n";
    let commands = find_commands(text);
    let lines: Vec<String> = commands.iter().map(|command| command.join("|")).collect();
    assert_eq!(lines, ["a|b c|--d|e#f", "h", "j"]);
}
