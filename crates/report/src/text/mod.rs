//! What others than this crate have written into run folders in English: [`stored`] finds the patterns of its
//! sentences in `dictionary/stored.toml`. What has no pattern, such as a server's message, stays as it is.

mod stored;

pub(crate) use dyno_facts::{Lang, Message};
pub use stored::stored;

/// Fills `{name}` with its value. What is in braces and no name of a value stays as it is.
pub(crate) fn fill(pattern: &str, values: &[(&str, Message)], lang: Lang) -> String {
    let mut text = String::with_capacity(pattern.len());
    let mut rest = pattern;
    while let Some(at) = rest.find('{') {
        push(&mut text, &rest[..at], lang);
        let inside = &rest[at + 1..];
        let named = inside.find('}').and_then(|end| {
            let value = values.iter().find(|(name, _)| *name == &inside[..end])?;
            Some((end, value.1.render(lang)))
        });
        match named {
            Some((end, value)) => {
                push(&mut text, &value, lang);
                rest = &inside[end + 1..];
            }
            None => {
                text.push('{');
                rest = inside;
            }
        }
    }
    push(&mut text, rest, lang);
    text
}

/// Appends a part. Chinese has a blank between its characters and Latin ones, and none between two
/// of its own: which of both a value is, its pattern can't know.
fn push(text: &mut String, part: &str, lang: Lang) {
    let mut part = part;
    if lang == Lang::Zh {
        let ends_wide = |text: &str| text.chars().next_back().is_some_and(is_wide);
        let begins_wide = |text: &str| text.chars().next().is_some_and(is_wide);
        if begins_wide(part) && text.strip_suffix(' ').is_some_and(ends_wide) {
            text.pop();
        }
        if ends_wide(text)
            && let Some(after) = part.strip_prefix(' ').filter(|after| begins_wide(after))
        {
            part = after;
        }
    }
    text.push_str(part);
}

/// True of Chinese characters and full-width punctuation, which are as wide as two Latin letters.
pub(crate) fn is_wide(c: char) -> bool {
    matches!(c, '\u{2e80}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{fe30}'..='\u{fe4f}' | '\u{ff00}'..='\u{ff60}')
}
