//! What other crates write into run folders for readers of papers has its Chinese: a synthetic run has only
//! the sentences that somebody thought of, so the functions that write them are read as well.

use crate::dictionary::{english, literal};
use dyno_report::{Lang, stored};
use std::fs;
use std::path::Path;

/// Files below `crates`, and their functions whose strings are sentences of run folders.
const WRITERS: [(&str, &[&str]); 26] = [
    ("runner/src/fault/act.rs", &["inject", "promote", "follow", "heal", "settle", "left"]),
    ("runner/src/fault/act.rs", &["bring_back", "undo", "back"]),
    ("runner/src/nodes/catch_up.rs", &["told"]),
    ("runner/src/nodes/freshness.rs", &["follow"]),
    ("runner/src/nodes/sampling.rs", &["silent", "take"]),
    ("runner/src/ownership.rs", &["told"]),
    ("runner/src/repetition.rs", &["told", "confirm"]),
    ("runner/src/search.rs", &["next", "told"]),
    ("runner/src/summary.rs", &["missed", "notes"]),
    ("runner/src/workloads/mod.rs", &["loaded_sentence"]),
    ("runner/src/workloads/pgbench/mod.rs", &["lost_rows"]),
    ("runner/src/workloads/tpcc/mod.rs", &["load_sentence", "lost_of", "notes"]),
    ("workloads/tpcc/src/options.rs", &["words"]),
    ("runner/src/workloads/tpch/mod.rs", &["load_sentence"]),
    ("engine/src/worker.rs", &["unanswered"]),
    ("fleet/src/trial.rs", &["take", "ended", "give_up", "look"]),
    ("observe/src/server/mysql.rs", &["acknowledged_by"]),
    ("observe/src/server/postgres.rs", &["acknowledged_by"]),
    ("store/src/event.rs", &["parse"]),
    ("store/src/recover.rs", &["interrupted", "interrupted_pass", "kinds"]),
    ("workloads/pgbench/src/access.rs", &["meaning"]),
    ("workloads/tpch/src/check/mod.rs", &["difference", "missing", "unexpected"]),
    ("workloads/tpch/src/metrics.rs", &["add_power", "qphh_formula"]),
    ("workloads/tpch/src/refresh.rs", &["check_effect"]),
    ("workloads/tpch/src/run/facts.rs", &["remark"]),
    ("workloads/tpch/src/warm.rs", &["warm", "judge", "mysql", "sqlite"]),
];

/// A function of a source, from its name to the brace that closes it, which stands below its first letter.
fn function<'a>(source: &'a str, name: &str) -> Option<&'a str> {
    let begins = |end: char| source.find(&format!("fn {name}{end}"));
    let begin = begins('(').or_else(|| begins('<'))?;
    let line = &source[source[..begin].rfind('\n').map_or(0, |at| at + 1)..];
    let indent = &line[..line.len() - line.trim_start().len()];
    let body = &source[begin..];
    Some(&body[..body.find(&format!("\n{indent}}}"))?])
}

/// Its string literals of four words and more, with a number in each place; no SQL.
fn sentences(function: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = function;
    while let Some(at) = rest.find('"') {
        let Some((text, after)) = literal(&rest[at..]) else { break };
        // Remedies are told at the terminal only.
        let is_remedy = rest[..at].trim_end().ends_with("with_hint(");
        rest = after;
        let pieces = text.split('{').map(|part| part.split_once('}').map_or(part, |(_, p)| p));
        let text = pieces.collect::<Vec<_>>().join("7").trim().to_owned();
        let is_word = |word: &&str| word.len() > 1 && word.chars().all(char::is_alphabetic);
        if text.split([' ', '.', ',', ':']).filter(is_word).count() >= 4
            && !is_remedy
            && !text.contains("SELECT")
        {
            found.push(text);
        }
    }
    found
}

#[test]
fn sentences_of_run_folders_have_their_chinese() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a folder of crates");
    let mut wrong = Vec::new();
    let mut seen = 0;
    for (file, functions) in WRITERS {
        let source = fs::read_to_string(crates.join(file)).expect(file);
        for name in functions {
            let text = function(&source, name).unwrap_or_else(|| panic!("{file} has no `{name}`"));
            for sentence in sentences(text) {
                seen += 1;
                let chinese = stored(&sentence).render(Lang::Zh);
                if chinese == sentence || !english(&chinese).is_empty() {
                    wrong.push(format!("{file}, {name}: {sentence}"));
                }
            }
        }
    }
    assert!(seen > 70, "{seen} sentences");
    assert!(wrong.is_empty(), "{} without Chinese:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_sentence_without_chinese_is_noticed() {
    let source =
        "fn words(&self) -> String {\n    format!(\"Nobody has said {this} before, {}.\", 1)\n}\n";
    let found = sentences(function(source, "words").expect("a function"));
    assert_eq!(found, ["Nobody has said 7 before, 7."]);
    assert_eq!(english(&stored(&found[0]).render(Lang::Zh)), ["Nobody has said"]);
}
