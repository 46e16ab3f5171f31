//! Texts of papers in both languages.

use super::{assert_none, files};

/// The values of a language, with key and file.
fn texts(lang: &str) -> Vec<(String, String)> {
    let mut texts = Vec::new();
    for (path, text) in files("toml") {
        if !path.contains("/messages/") {
            continue;
        }
        let mut key = "";
        for line in text.lines() {
            if let Some(name) = line.strip_prefix('[') {
                key = name.trim_end_matches(']');
            }
            if let Some(value) = line.strip_prefix(lang).and_then(|rest| rest.strip_prefix(" = ")) {
                let value = value.trim_matches('"').replace("\\\"", "\"");
                texts.push((format!("{path}: {key}"), value));
            }
        }
    }
    assert!(texts.len() > 1_000, "only {} texts in {lang} were found", texts.len());
    texts
}

fn is_chinese(c: char) -> bool {
    ('\u{3400}'..='\u{9fff}').contains(&c)
}

fn is_mark(c: char) -> bool {
    "，。；：、（）！？“”".contains(c)
}

/// Letters that have a blank next to Chinese characters: letters, digits, and places, which may hold both. If a
/// place holds Chinese, rendering takes the blank away.
fn is_latin(c: char) -> bool {
    c.is_ascii_alphanumeric() || "{}`%+<>=±≤≥".contains(c)
}

/// The first wrong blank of a Chinese text, with its place.
fn wrong_blanks(text: &str) -> Option<String> {
    let chars: Vec<char> = text.chars().collect();
    let around = |at: usize| -> String {
        chars[at.saturating_sub(6)..(at + 8).min(chars.len())].iter().collect()
    };
    let touching = chars.windows(2).position(|two| match two {
        [a, b] => is_chinese(*a) && is_latin(*b) || is_latin(*a) && is_chinese(*b),
        _ => false,
    });
    let beside_mark = chars.windows(2).position(|two| match two {
        [' ', b] => is_mark(*b),
        [a, ' '] => is_mark(*a),
        _ => false,
    });
    let seconds = chars.windows(3).position(|three| match three {
        [a, ' ', '秒'] => a.is_ascii_digit() || *a == '}',
        _ => false,
    });
    touching.or(beside_mark).or(seconds).map(around)
}

#[test]
fn chinese_has_blanks_around_latin_words_and_numbers() {
    let wrong = texts("zh")
        .into_iter()
        .filter_map(|(key, text)| Some(format!("{key}: …{}…", wrong_blanks(&text)?)));
    assert_none(wrong.collect());
}

/// Words that a technical editor strikes out: what follows says the same without them.
const STRUCK_OUT: [&str; 8] = [
    " told ",
    "whoever",
    " what else",
    "stands in their place",
    "Nobody knows",
    "nobody can tell",
    "takes the verdicts of the comparison away",
    "Targets that are compared",
];

#[test]
fn english_is_plain() {
    let wrong = texts("en").into_iter().filter_map(|(key, text)| {
        let word = STRUCK_OUT.iter().find(|word| text.contains(**word))?;
        Some(format!("{key}: {}", word.trim()))
    });
    assert_none(wrong.collect());
}

#[test]
fn the_looking_at_blanks_works() {
    for wrong in ["共3 次", "共 3次", "在{place}中", "窗口 ，", "， 窗口", "{n} 秒", "`x`的"]
    {
        assert!(wrong_blanks(wrong).is_some(), "{wrong}");
    }
    for right in
        ["共 3 次", "在 {place} 中", "p95（ms）", "{n} s", "“{experiment}”中", "按 `x` 设置"]
    {
        assert_eq!(wrong_blanks(right), None, "{right}");
    }
}
