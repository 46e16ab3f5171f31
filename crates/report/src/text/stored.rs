//! Sentences that stand in run folders, in English as they were written when a trial ran.

use super::{Lang, Message, fill};
use std::collections::HashMap;
use std::sync::LazyLock;

static PATTERNS: LazyLock<Vec<(String, String)>> = LazyLock::new(patterns);

fn patterns() -> Vec<(String, String)> {
    let entries: HashMap<String, String> =
        toml::from_str(include_str!("../../dictionary/stored.toml")).unwrap_or_default();
    let mut entries: Vec<(String, String)> = entries.into_iter().collect();
    // The longest first: a pattern may be the beginning of another one.
    entries.sort_by(|a, b| b.0.len().cmp(&a.0.len()).then_with(|| a.cmp(b)));
    entries
}

/// What is stored: a message with its sentences that are no messages yet; a sentence with its Chinese as far as the dictionary has patterns that its sentences fit; what
/// has none, such as a server's message, is the same in both languages.
pub fn stored(text: impl Into<Message>) -> Message {
    text.into().reworded(&|text| {
        let zh = chinese(text).or_else(|| sentence_by_sentence(text))?;
        Some(Message::both(text, zh))
    })
}

/// The Chinese of what fits one pattern as a whole, perhaps but for the full stop at either's end.
fn chinese(text: &str) -> Option<String> {
    let of_pattern = |text: &str| {
        PATTERNS.iter().find_map(|(pattern, chinese)| {
            let values = values(pattern, text)?;
            Some(fill(chinese, &values, Lang::Zh))
        })
    };
    let with_stop = || of_pattern(&format!("{text}."))?.strip_suffix('。').map(str::to_owned);
    let without = || Some(of_pattern(text.strip_suffix('.')?)? + "。");
    of_pattern(text).or_else(with_stop).or_else(without)
}

/// Takes the shortest beginning that fits a pattern, and goes on behind it; a sentence that fits none
/// stays as it is. `None` where none fits.
fn sentence_by_sentence(text: &str) -> Option<String> {
    let ends: Vec<usize> = text.match_indices(". ").map(|(at, _)| at + 1).collect();
    let fitting = ends.iter().find_map(|end| Some((*end, chinese(&text[..*end])?)));
    if let Some((end, zh)) = fitting {
        let rest = stored(&text[end + 1..]);
        return Some(zh + &rest.render(Lang::Zh));
    }
    let end = *ends.first()?;
    let rest = stored(&text[end + 1..]);
    let is_known = rest.render(Lang::Zh) != rest.render(Lang::En);
    is_known.then(|| format!("{} {}", &text[..end], rest.render(Lang::Zh)))
}

/// What stands in the places of a pattern; `None` when the sentence isn't made of it. A place takes no
/// second sentence, unless the pattern ends with it.
fn values<'a>(pattern: &'a str, sentence: &str) -> Option<Vec<(&'a str, Message)>> {
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
        let value = &rest[..end];
        if value.contains(". ") && !after.is_empty() {
            return None;
        }
        values.push((name, value));
        rest = &rest[end + fixed.len()..];
        rest_of_pattern = next;
    }
    let told = |(name, value): (&'a str, &str)| (name, stored(value));
    rest.is_empty().then(|| values.into_iter().map(told).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zh(text: &str) -> String {
        stored(text).render(Lang::Zh)
    }

    #[test]
    fn a_sentence_is_taken_apart_by_its_pattern() {
        let found = |pattern, sentence| {
            values(pattern, sentence).map(|values| {
                values.iter().map(|(_, text)| text.render(Lang::En)).collect::<Vec<_>>()
            })
        };
        let pattern = "Only {share} % of the offered {rate} transactions per second were done.";
        let sentence = "Only 97.1 % of the offered 500 transactions per second were done.";
        assert_eq!(found(pattern, sentence), Some(vec!["97.1".to_owned(), "500".to_owned()]));
        assert_eq!(found(pattern, "Only 97.1 % were done."), None);
        assert_eq!(found("No commit.", "No commit."), Some(vec![]));
        assert_eq!(found("No commit.", "No commit. At all."), None);
        assert_eq!(found("Failed: {why}.", "Failed: a. b."), None, "two sentences");
        assert_eq!(found("Failed: {why}", "Failed: a. b."), Some(vec!["a. b.".to_owned()]));
    }

    #[test]
    fn sentences_are_translated_one_by_one_and_words_within_them_too() {
        let said = "C3 is violated: The NO_O_ID of a district have no gap. There are 1 violation: w 1, \
                    d 2. X5 is violated: S_QUANTITY is between 10 and 100. There are 7 violations: s_w_id 1; \
                    and more.";
        assert_eq!(
            zh(said),
            "违反 C3：一个区的 NO_O_ID 连续无间断。共有 1 处违反：w 1, d 2。违反 X5：S_QUANTITY 在 10 与 \
             100 之间。共有 7 处违反：s_w_id 1 等。"
        );
        let lost = "The first lost ones: o_w_id 1, o_d_id 1, o_id 3105: another order has its number; o_w_id 1, o_d_id \
                    2, o_id 3104: there is no such order; o_w_id 1, o_d_id 2, o_id 3105: 3 of its 7 lines are there.";
        assert_eq!(
            zh(lost),
            "最先丢失的：o_w_id 1, o_d_id 1, o_id 3105：另一订单占用其编号；o_w_id 1, o_d_id 2, o_id 3104：没有该订单；\
             o_w_id 1, o_d_id 2, o_id 3105：其 7 行中仅存 3 行。"
        );
    }
}
