//! Texts of checks and verdicts.

pub(crate) use dyno_facts::{Lang, Message};

/// The first sentence of a text.
pub fn first_sentence(text: &Message) -> Message {
    let [en, zh] = Lang::ALL.map(|lang| text.render(lang));
    let cut = |text: &str, ends: [&str; 2], stop: &str| {
        let first = ends.iter().filter_map(|end| text.split_once(end)).map(|(first, _)| first);
        let first = first.min_by_key(|first| first.len());
        first.map_or_else(|| text.to_owned(), |first| format!("{first}{stop}"))
    };
    Message::both(cut(&en, [". ", "; "], "."), cut(&zh, ["。", "；"], "。"))
}
