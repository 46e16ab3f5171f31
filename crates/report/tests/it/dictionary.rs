//! Chinese papers are Chinese, and the Chinese keeps its style.

use crate::support::html_texts;
use crate::synthetic;
use dyno_facts::{PublishedTable, RunStatus};
use dyno_report::{CATALOG, Lang, Paper};
use dyno_store::RunData;
use std::collections::BTreeSet;

/// Texts below each other.
fn lines(texts: &BTreeSet<String>) -> String {
    texts.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_chinese_keeps_its_style() {
    let mut wrong = BTreeSet::new();
    let entries = [dyno_judge::CATALOG, CATALOG, dyno_tpcc::CATALOG, dyno_tpch::CATALOG]
        .into_iter()
        .flatten();
    for chinese in entries.map(|entry| entry.zh.to_owned()) {
        let letters: Vec<char> = chinese.chars().collect();
        for pair in letters.windows(2) {
            let is_narrow = is_han(pair[0]) && matches!(pair[1], ',' | ';' | '?' | '!');
            let is_tight = is_han(pair[0]) && pair[1].is_ascii_alphanumeric()
                || pair[0].is_ascii_alphanumeric() && is_han(pair[1]);
            // The blank at a place disappears where its value is Chinese.
            let is_place = is_han(pair[0]) && pair[1] == '{' || pair[0] == '}' && is_han(pair[1]);
            let is_percent = pair[0] == ' ' && pair[1] == '%';
            if is_narrow || is_tight || is_place || is_percent {
                wrong.insert(chinese.clone());
            }
        }
    }
    assert!(wrong.is_empty(), "{} are set otherwise:\n{}", wrong.len(), lines(&wrong));
}

/// Returns true if a letter is Chinese.
fn is_han(letter: char) -> bool {
    ('\u{4e00}'..='\u{9fff}').contains(&letter)
}

/// The Latin words in a row, if they are three or more, that a reader of Chinese would stumble on.
pub(crate) fn english(text: &str) -> Vec<String> {
    let mut phrases = Vec::new();
    let mut row: Vec<&str> = Vec::new();
    let mut end_phrase = |row: &mut Vec<&str>| {
        if row.len() >= 3 {
            phrases.push(row.join(" "));
        }
        row.clear();
    };
    for line in text.lines() {
        for word in line.split(' ') {
            let is_word = word.len() > 1 && word.chars().all(|letter| letter.is_ascii_alphabetic());
            let is_last = !is_word
                && word.ends_with(['.', ',', ';', ':'])
                && word[..word.len() - 1].chars().all(|letter| letter.is_ascii_alphabetic());
            if is_word || is_last && word.len() > 2 {
                row.push(word.trim_end_matches(['.', ',', ';', ':']));
            }
            if !is_word {
                end_phrase(&mut row);
            }
        }
        end_phrase(&mut row);
    }
    phrases
}

#[test]
fn english_is_recognized() {
    assert_eq!(english("数据 no one knows whether, 未知"), ["no one knows whether"]);
    assert_eq!(english("级别为 read committed 时\nof no"), Vec::<String>::new());
}

/// Words of runs and published tables that are not dyno's: names, commands, settings, messages of
/// servers. The sentences that dyno itself has written into a run folder are not among them.
fn input_text(runs: &[RunData], published: &[PublishedTable]) -> String {
    let mut text = format!("{published:?}");
    for run in runs {
        let mut header = run.header.clone();
        header.skipped.clear();
        header.status = RunStatus::default();
        text += &serde_json::to_string(&header).expect("JSON");
        for trial in &run.trials {
            let summary = &trial.summary;
            text += &format!("{:?}{:?}{:?}", summary.errors, summary.kinds, summary.test);
            text += &format!("{:?}", summary.statement_latencies);
            text += &format!("{:?}{:?}", trial.before, trial.after);
        }
    }
    text
}

#[test]
fn chinese_papers_are_chinese() {
    let papers = [
        (vec![synthetic::two_targets(&[1, 8, 64], 2, 30)], vec![synthetic::published()]),
        (vec![synthetic::pgbench::pgbench()], synthetic::pgbench::published()),
        (vec![synthetic::tpcc::tpcc()], synthetic::tpcc::published()),
        (vec![synthetic::tpch::tpch()], synthetic::tpch::published()),
        (vec![synthetic::pairs::gated_run()], Vec::new()),
        (vec![synthetic::cluster::cluster()], Vec::new()),
        (vec![synthetic::fault::fault()], Vec::new()),
    ];
    let mut untranslated = BTreeSet::new();
    for (runs, published) in papers {
        let input = input_text(&runs, &published);
        let paper = Paper::new(&runs, &published);
        let markdown = paper.markdown(Lang::Zh);
        let html = paper.html(Lang::Zh);
        let without_code: String = markdown.split('`').step_by(2).collect::<Vec<_>>().join(" ");
        for text in [without_code.replace('|', " | "), html_texts(&html)] {
            let phrases = english(&text).into_iter();
            untranslated.extend(phrases.filter(|words| !input.contains(words.as_str())));
        }
        let wide = markdown.chars().filter(|letter| is_han(*letter));
        assert!(wide.count() > 1000, "the paper speaks Chinese");
    }
    assert!(
        untranslated.is_empty(),
        "{} without Chinese:\n{}",
        untranslated.len(),
        lines(&untranslated)
    );
}
