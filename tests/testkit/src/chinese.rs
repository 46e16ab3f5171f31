//! Finds English text in Chinese papers of real runs.

use crate::dyno;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// English words in a row from which they are an untranslated sentence, not a name.
const WORDS: usize = 4;

/// English sentences in the Chinese paper of a run, without code and texts of the suite, the targets, the servers
/// and the operating system.
pub fn english_in_chinese_paper(folder: &Path, run: &Path) -> Vec<String> {
    let name = run.to_str().expect("a path is UTF-8");
    let words = ["paper", name, "--lang", "zh", "--format", "md", "--out", "chinese"];
    let output = dyno(folder, &words);
    assert_eq!(output.code, 0, "{output}");
    let paper = fs::read_to_string(folder.join("chinese/paper.zh.md")).expect("a paper");
    let is_chinese = |letter: &char| ('\u{4e00}'..='\u{9fff}').contains(letter);
    assert!(paper.chars().filter(is_chinese).count() > 1000, "{paper}");
    let foreign = foreign_texts(run);
    let text: Vec<&str> = paper.split('`').step_by(2).collect();
    let mut english_rows = rows(&text.join(" ").replace('|', " | "));
    english_rows.retain(|row| !foreign.contains(row.as_str()));
    english_rows
}

/// Linux numbers its errors from 1 to this (`EHWPOISON`).
const LAST_ERRNO: i32 = 133;

/// Foreign texts: names and titles in the plan, messages of servers, and the operating system's words of errors
/// ("Connection reset by peer").
fn foreign_texts(run: &Path) -> String {
    let header = fs::read_to_string(run.join("run.json")).expect("a header");
    let mut header: Value = serde_json::from_str(&header).expect("JSON");
    if let Some(fields) = header.as_object_mut() {
        // Sentences of dyno.
        fields.remove("skipped");
        fields.remove("status");
    }
    let events = fs::read_to_string(run.join("events.jsonl")).unwrap_or_default();
    let is_error = |line: &&str| line.contains("\"kind\":\"error\"");
    let errors: String = events.lines().filter(is_error).collect();
    let system = (1..=LAST_ERRNO).map(|errno| std::io::Error::from_raw_os_error(errno).to_string());
    header.to_string() + &errors + &sent_by_servers(run) + &system.collect::<String>()
}

/// Collects the servers' states of replicas, and their errors.
fn collect(value: &Value, texts: &mut String) {
    match value {
        Value::Object(fields) => {
            let get_text = |name: &str| fields.get(name).and_then(Value::as_str);
            // dyno's own errors have no number and one of these states.
            let is_from_dyno = fields.get("errno") == Some(&0.into())
                && matches!(
                    get_text("sqlstate"),
                    Some("00000" | "08001" | "08006" | "08P01" | "0A000")
                );
            let error =
                get_text("message").filter(|_| fields.contains_key("sqlstate") && !is_from_dyno);
            // A part of a message, not the whole in one language.
            let parts = fields.iter().filter(|(name, _)| !["en", "zh"].contains(&name.as_str()));
            let quoted = parts.filter_map(|(_, part)| part.as_str());
            texts.extend(quoted.filter(|part| part.contains("SQLSTATE ")));
            texts.extend(get_text("state").into_iter().chain(error));
            fields.values().for_each(|value| collect(value, texts));
        }
        Value::Array(values) => values.iter().for_each(|value| collect(value, texts)),
        _ => {}
    }
}

fn sent_by_servers(run: &Path) -> String {
    let mut texts = String::new();
    for file in fs::read_dir(run.join("trials")).into_iter().flatten().flatten() {
        let is_json = file.path().extension().is_some_and(|extension| extension == "json");
        let text = fs::read_to_string(file.path()).unwrap_or_default();
        if let (true, Ok(trial)) = (is_json, serde_json::from_str(&text)) {
            collect(&trial, &mut texts);
        }
    }
    let events = fs::read_to_string(run.join("events.jsonl")).unwrap_or_default();
    for event in events.lines().filter_map(|line| serde_json::from_str(line).ok()) {
        collect(&event, &mut texts);
    }
    texts
}

fn rows(text: &str) -> Vec<String> {
    let mut rows = Vec::new();
    for line in text.lines() {
        let mut row: Vec<&str> = Vec::new();
        // The blank word at the end ends the last row.
        for word in line.split(' ').chain([""]) {
            let plain = word.trim_end_matches(['.', ',', ';', ':']);
            let is_word = plain.len() > 1
                && plain.chars().all(|letter| letter.is_ascii_alphabetic() || letter == '\'');
            if is_word {
                row.push(plain);
            }
            if !is_word || plain != word {
                // Capitals are a statement of SQL.
                let is_sql = row.iter().all(|word| word.chars().all(|c| c.is_ascii_uppercase()));
                if row.len() >= WORDS && !is_sql {
                    rows.push(row.join(" "));
                }
                row.clear();
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::{collect, rows};
    use serde_json::json;

    #[test]
    fn sentences_are_told_from_names() {
        assert_eq!(rows("| Nobody has translated this. |"), ["Nobody has translated this"]);
        assert_eq!(rows("级别为 read committed 时 LOAD DATA LOCAL INFILE"), Vec::<String>::new());
        assert_eq!(rows("a, one two, three four five"), Vec::<String>::new());
    }

    #[test]
    fn the_errors_of_servers_are_the_words_of_others() {
        let error_json = |sqlstate: &str, message: &str| json!({ "errno": 0, "sqlstate": sqlstate, "message": message });
        let errors =
            [error_json("57P02", "The server crashed."), error_json("08006", "It is gone.")];
        let mut texts = String::new();
        collect(&json!({ "fault": { "errors": errors }, "state": "streaming" }), &mut texts);
        assert_eq!(texts, "streamingThe server crashed.");
        let reason = "closed by the server (SQLSTATE 57P01)";
        let message = json!({ "en": format!("Unread: {reason}"), "zh": format!("未读：{reason}"), "args": { "why": reason } });
        texts.clear();
        collect(&json!({ "down": message }), &mut texts);
        assert_eq!(texts, reason);
    }
}
