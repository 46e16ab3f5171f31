//! Paths and names.

use super::{assert_none, files, none_but_known};
use std::collections::{BTreeMap, BTreeSet};

/// Sources of crates, without their inline tests.
fn sources() -> Vec<(String, String)> {
    let sources = files("rs").into_iter();
    sources
        .filter(|(path, _)| path.starts_with("crates/") && path.contains("/src/"))
        .map(|(path, text)| {
            let product = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            (path, product.to_owned())
        })
        .collect()
}

/// `crates/x` and `folder` of `crates/x/src/folder/...`.
fn crate_folder(path: &str) -> Option<(&str, &str)> {
    let (krate, rest) = path.split_once("/src/")?;
    Some((krate, rest.split_once('/')?.0))
}

type Imports = BTreeMap<String, BTreeSet<String>>;

fn is_reached(imports: &Imports, from: &str, to: &str) -> bool {
    let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
    while let Some(folder) = next.pop() {
        if folder == to {
            return true;
        }
        if seen.insert(folder) {
            next.extend(imports.get(folder).into_iter().flatten().map(String::as_str));
        }
    }
    false
}

/// Imports among the folders of a crate that are part of a circle, as `crate: folder -> folder`.
#[test]
fn folders_do_not_import_each_other_in_circles() {
    let mut crates: BTreeMap<String, Imports> = BTreeMap::new();
    for (path, text) in sources() {
        let Some((krate, folder)) = crate_folder(&path) else { continue };
        let imports = crates.entry(krate.to_owned()).or_default().entry(folder.to_owned());
        let names = text
            .split("crate::")
            .skip(1)
            .filter_map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next());
        imports.or_default().extend(names.filter(|&name| name != folder).map(str::to_owned));
    }
    let mut circles = BTreeMap::new();
    for (krate, imports) in &crates {
        for (from, imported) in imports {
            for to in imported.iter().filter(|to| is_reached(imports, to, from)) {
                circles.insert(format!("{krate}: {from} -> {to}"), 1);
            }
        }
    }
    none_but_known("circles", &circles);
}

#[test]
fn modules_with_files_are_folders_with_a_mod() {
    let paths: BTreeSet<String> = files("rs").into_iter().map(|(path, _)| path).collect();
    let is_split = |path: &&String| {
        let folder = path.replace(".rs", "/");
        paths.range(folder.clone()..).next().is_some_and(|next| next.starts_with(&folder))
    };
    assert_none(paths.iter().filter(is_split).map(|path| format!("{path}: use mod.rs")).collect());
}

/// Tests of a file are its `mod tests`: inline, or `tests.rs` alongside it.
#[test]
fn tests_are_in_modules_of_that_name() {
    let mut complaints = Vec::new();
    for (path, text) in files("rs") {
        for rest in text.split("#[cfg(test)]\n").skip(1) {
            let line = rest.lines().find(|line| !line.trim_start().starts_with("#[expect"));
            let line = line.unwrap_or_default().trim_start();
            let name = line.split("mod ").nth(1).and_then(|rest| rest.split([';', ' ']).next());
            let is_moved = line.starts_with("#[path");
            if is_moved || (line.starts_with("mod ") && name != Some("tests")) {
                complaints.push(format!("{path}: {line}"));
            }
        }
    }
    assert_none(complaints);
}

/// Returns true if a doc comment of one line only repeats what it stands at.
fn says_nothing(doc: &str, item: &str) -> bool {
    let place = doc.strip_prefix("See ").and_then(|rest| rest.strip_suffix('.'));
    let is_pointer = place.is_some_and(|place| !place.contains(' '));
    let is_its = doc.starts_with("Its ") && doc.split(' ').count() == 2;
    if is_pointer || is_its || ["Test.", "Tests.", "As above.", "The same."].contains(&doc) {
        return true;
    }
    if doc.contains(|c: char| c == '`' || c.is_ascii_digit()) {
        return false;
    }
    let item = item
        .split_once("pub(")
        .map_or(item, |(_, rest)| rest.split_once(')').map_or(rest, |(_, rest)| rest));
    let declares =
        ["pub", "fn", "const", "async", "struct", "enum", "trait", "type", "mod", "static"];
    let name = item
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .find(|word| !word.is_empty() && !declares.contains(word));
    let stem = |word: &str| word.to_lowercase().trim_end_matches('s').to_owned();
    let mut parts: BTreeSet<String> = BTreeSet::new();
    let mut part = String::new();
    for letter in name.unwrap_or_default().chars() {
        if (letter == '_' || letter.is_uppercase()) && !part.is_empty() {
            parts.insert(stem(&std::mem::take(&mut part)));
        }
        part.extend((letter != '_').then_some(letter));
    }
    parts.insert(stem(&part));
    let fillers = ["the", "a", "an", "its", "of", "this", "that"];
    let mut words = doc.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.all(|word| fillers.contains(&word.to_lowercase().as_str()) || parts.contains(&stem(word)))
}

#[test]
fn docs_say_something() {
    let mut empty_docs: BTreeMap<String, usize> = BTreeMap::new();
    for (path, text) in files("rs") {
        let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
        for at in 0..lines.len() {
            let is_doc = |at: usize| lines.get(at).is_some_and(|line| line.starts_with("///"));
            if !is_doc(at) || is_doc(at + 1) || (at > 0 && is_doc(at - 1)) {
                continue;
            }
            let item = lines[at + 1..].iter().find(|line| !line.starts_with("#["));
            if says_nothing(lines[at][3..].trim(), item.unwrap_or(&"")) {
                let krate = path.split("/src/").next().unwrap_or(&path);
                *empty_docs.entry(krate.to_owned()).or_default() += 1;
            }
        }
    }
    none_but_known("empty_docs", &empty_docs);
}

#[test]
fn only_the_kit_says_skipped() {
    // Put together, so that this file doesn't find itself.
    let words = ["println!(\"", "print!(\""].map(|word| format!("{word}skipped"));
    let tests = files("rs").into_iter().filter(|(path, _)| !path.contains("/benches/"));
    let offenders = tests.filter(|(_, text)| words.iter().any(|word| text.contains(word.as_str())));
    assert_none(offenders.map(|(path, _)| format!("{path}: use dyno_testkit::skipped")).collect());
}

#[test]
fn the_looking_at_structure_works() {
    assert_eq!(crate_folder("crates/x/src/a/b.rs"), Some(("crates/x", "a")));
    assert_eq!(crate_folder("crates/x/src/a.rs"), None);
    assert!(says_nothing("Its file.", "pub file: PathBuf,"));
    assert!(says_nothing("The experiment.", "pub(crate) experiment: &'a str,"));
    assert!(says_nothing("See [`governor`].", "x"));
    assert!(!says_nothing("Seconds since the run began.", "pub seconds: f64,"));
}

/// Participles, pronouns and particles: as the name of a function or a variable they say nothing about it.
const EMPTY_NAMES: &str = "told said looked kept met asked taken given shown made drawn found known wanted begun lost \
     judged counted held tried heard seen done named noted planned refused reached sent stated stood went left what \
     why how here there when way until so then who where own all both more rest others other one each same whole \
     most least few some look ask tell say give take meet settle keep stand hear lend";

/// Counts of empty names by name; `of_x` and `x_of` count as `of`.
#[test]
fn names_are_phrases() {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let empty: BTreeSet<&str> = EMPTY_NAMES.split_whitespace().collect();
    for (_, text) in files("rs") {
        let is_part_of_name = |c: char| c.is_alphanumeric() || c == '_';
        let mut words = text.split(|c| !is_part_of_name(c)).filter(|word| !word.is_empty());
        while let Some(word) = words.next() {
            if word != "fn" && word != "let" {
                continue;
            }
            let name = words.find(|word| *word != "mut").unwrap_or_default();
            if word == "fn" && (name == "of" || name.starts_with("of_") || name.ends_with("_of")) {
                *counts.entry("of".to_owned()).or_default() += 1;
            } else if empty.contains(name) {
                *counts.entry(name.to_owned()).or_default() += 1;
            }
        }
    }
    none_but_known("names", &counts);
}
