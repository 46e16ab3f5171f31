//! Sentences that stand in run folders, in English as they were written when a trial ran.

use super::dictionary::stored_patterns;
use super::{Lang, Text, fill};
use std::sync::LazyLock;

static PATTERNS: LazyLock<Vec<(String, String)>> = LazyLock::new(stored_patterns);

/// A stored sentence with its Chinese, where the dictionary has a pattern that it fits; else the same
/// in both languages.
pub fn stored(sentence: &str) -> Text {
    for (pattern, chinese) in PATTERNS.iter() {
        if let Some(values) = values(pattern, sentence) {
            let zh = fill(chinese, &values, Lang::Zh);
            return Text { en: sentence.to_owned(), zh };
        }
    }
    Text::same(sentence)
}

/// What stands in the places of a pattern; `None` when the sentence isn't made of it.
fn values<'a>(pattern: &'a str, sentence: &str) -> Option<Vec<(&'a str, Text)>> {
    let (head, mut rest_of_pattern) = pattern.split_once('{').unwrap_or((pattern, ""));
    let mut rest = sentence.strip_prefix(head)?;
    let mut values = Vec::new();
    while let Some((name, after)) = rest_of_pattern.split_once('}') {
        let (fixed, next) = after.split_once('{').unwrap_or((after, ""));
        let is_last = !after.contains('{');
        let end = match (is_last, fixed) {
            (true, _) => rest.len().checked_sub(fixed.len()).filter(|_| rest.ends_with(fixed))?,
            (false, fixed) => rest.find(fixed)?,
        };
        values.push((name, Text::same(&rest[..end])));
        rest = &rest[end + fixed.len()..];
        rest_of_pattern = next;
    }
    rest.is_empty().then_some(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_is_taken_apart_by_its_pattern() {
        let found = |pattern, sentence| {
            values(pattern, sentence).map(|values| {
                values.iter().map(|(_, text)| text.in_lang(Lang::En).to_owned()).collect::<Vec<_>>()
            })
        };
        let pattern = "Only {share} % of the offered {rate} transactions per second were done.";
        let sentence = "Only 97.1 % of the offered 500 transactions per second were done.";
        assert_eq!(found(pattern, sentence), Some(vec!["97.1".to_owned(), "500".to_owned()]));
        assert_eq!(found(pattern, "Only 97.1 % were done."), None);
        assert_eq!(found("No commit.", "No commit."), Some(vec![]));
        assert_eq!(found("No commit.", "No commit. At all."), None);
        assert_eq!(found("{why}.", "a. b."), Some(vec!["a. b".to_owned()]));
    }
}
