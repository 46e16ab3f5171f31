//! Texts of papers.

pub(crate) use dyno_facts::{Lang, Message};

/// True of Chinese characters and full-width punctuation, which are as wide as two Latin letters.
pub(crate) fn is_wide(c: char) -> bool {
    matches!(c, '\u{2e80}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{fe30}'..='\u{fe4f}' | '\u{ff00}'..='\u{ff60}')
}

/// The first sentence of a text.
pub(crate) fn first_sentence(text: &Message) -> Message {
    let [en, zh] = Lang::ALL.map(|lang| text.render(lang));
    let cut = |text: &str, ends: [&str; 2], stop: &str| {
        let first = ends.iter().filter_map(|end| text.split_once(end)).map(|(first, _)| first);
        let first = first.min_by_key(|first| first.len());
        first.map_or_else(|| text.to_owned(), |first| format!("{first}{stop}"))
    };
    Message::both(cut(&en, [". ", "; "], "."), cut(&zh, ["。", "；"], "。"))
}
