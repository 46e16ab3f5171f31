//! The page's words: none lacks its Chinese, none is left over.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The scripts of the page by their file names.
fn scripts() -> BTreeMap<String, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("page");
    let entries = fs::read_dir(folder).expect("the page").map(|entry| entry.expect("an entry"));
    let scripts: BTreeMap<String, String> = entries
        .filter(|entry| entry.file_name().to_string_lossy().ends_with(".js"))
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, fs::read_to_string(entry.path()).expect("UTF-8"))
        })
        .collect();
    assert!(scripts.len() >= 6, "{:?}", scripts.keys());
    scripts
}

/// English and Chinese, in the order of the file.
fn dictionary(words: &str) -> Vec<(String, String)> {
    let (_, list) = words.split_once("const CHINESE = {\n").expect("a dictionary");
    let (list, _) = list.split_once("\n};").expect("its end");
    let entries = list.lines().map(|line| {
        let entry = line.trim().strip_prefix('"').and_then(|line| line.strip_suffix("\","));
        let words = entry.and_then(|entry| entry.split_once("\": \""));
        let (english, chinese) = words.unwrap_or_else(|| panic!("no entry: {line}"));
        (english.to_owned(), chinese.to_owned())
    });
    entries.collect()
}

/// Literals that are given to `t`.
fn translated_words(script: &str) -> Vec<String> {
    let calls = script.match_indices("t(\"").filter(|(at, _)| {
        !script[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '.' || c == '_')
    });
    calls
        .filter_map(|(at, call)| script[at + call.len()..].split('"').next().map(str::to_owned))
        .collect()
}

/// The places of a pattern.
fn places(pattern: &str) -> BTreeSet<&str> {
    pattern.split('{').skip(1).filter_map(|rest| rest.split('}').next()).collect()
}

#[test]
fn every_word_has_its_chinese_with_the_same_places() {
    let scripts = scripts();
    let dictionary = dictionary(&scripts["words.js"]);
    let english: BTreeSet<&str> = dictionary.iter().map(|(english, _)| english.as_str()).collect();
    assert_eq!(english.len(), dictionary.len(), "an entry is there twice");
    let words: Vec<String> = scripts.values().flat_map(|script| translated_words(script)).collect();
    assert!(words.len() > 60, "only {} words were found", words.len());
    let missing: Vec<&String> =
        words.iter().filter(|word| !english.contains(word.as_str())).collect();
    assert!(missing.is_empty(), "{missing:?}");
    for (english, chinese) in &dictionary {
        assert_eq!(places(english), places(chinese), "{english}");
        assert!(!chinese.is_ascii(), "{english}: {chinese}");
    }
}

#[test]
fn no_word_is_left_over() {
    // What the server says: statuses, kinds of events, outcomes of queries.
    let server_words = [
        "running",
        "complete",
        "interrupted",
        "failed",
        "starved",
        "stage",
        "unreadable",
        "error",
        "server",
        "reconnect",
        "note",
        "other",
        "timed_out",
    ];
    let scripts = scripts();
    let page_scripts: String = scripts
        .iter()
        .filter(|(name, _)| *name != "words.js")
        .map(|(_, script)| script.as_str())
        .collect();
    for (english, _) in dictionary(&scripts["words.js"]) {
        let is_used = page_scripts.contains(&format!("\"{english}\""));
        assert!(is_used || server_words.contains(&english.as_str()), "unused: {english}");
    }
}
