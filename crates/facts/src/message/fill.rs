//! Messages to text.

use super::{Arg, Form, Key, Lang, Message};
use std::collections::BTreeMap;

/// A text that grows, in one language.
pub(super) struct Filling {
    lang: Lang,
    text: String,
}

impl Filling {
    pub(super) fn new(lang: Lang) -> Self {
        Filling { lang, text: String::new() }
    }

    pub(super) fn finish(self) -> String {
        match self.lang {
            Lang::En => self.text,
            Lang::Zh => nested(self.text),
        }
    }

    pub(super) fn message(&mut self, message: &Message) {
        match &*message.0 {
            Form::Verbatim(text) => self.push(text),
            Form::Both { en, zh } => self.push(match self.lang {
                Lang::En => en,
                Lang::Zh => zh,
            }),
            Form::Keyed { key, args } => self.keyed(key, args),
            Form::Joined { parts, between } => {
                let between = match self.lang {
                    Lang::En => &between[0],
                    Lang::Zh => &between[1],
                };
                for (index, part) in parts.iter().enumerate() {
                    if index > 0 {
                        self.text.push_str(between);
                    }
                    // Each on its own: blanks at its ends are not those of a place.
                    self.text.push_str(&part.render(self.lang));
                }
            }
            Form::List(parts) => self.list(parts),
        }
    }

    fn list(&mut self, parts: &[Message]) {
        let (comma, and) = match self.lang {
            Lang::En => (", ", " and "),
            Lang::Zh => ("、", " 和 "),
        };
        for (index, part) in parts.iter().enumerate() {
            match index {
                0 => {}
                _ if index + 1 == parts.len() => self.push(and),
                _ => self.push(comma),
            }
            self.push(&part.render(self.lang));
        }
    }

    fn keyed(&mut self, key: &Key, args: &BTreeMap<String, Arg>) {
        let entry = match key {
            Key::Known(entry) => entry,
            Key::Unknown { en, .. } => return self.push(en),
        };
        let is_one = args.get("n").is_some_and(Arg::is_one);
        self.pattern(
            match self.lang {
                Lang::En => entry.one.filter(|_| is_one).unwrap_or(entry.en),
                Lang::Zh => entry.zh,
            },
            args,
        );
    }

    /// Fills `{name}` with its argument. What is in braces and no name of an argument stays as it is.
    fn pattern(&mut self, pattern: &str, args: &BTreeMap<String, Arg>) {
        let mut rest = pattern;
        while let Some(at) = rest.find('{') {
            self.push(&rest[..at]);
            let inside = &rest[at + 1..];
            let named = inside.find('}').and_then(|end| Some((end, args.get(&inside[..end])?)));
            match named {
                Some((end, arg)) => {
                    let text = match arg {
                        Arg::Count(count) => crate::format::grouped(count),
                        Arg::Message(message) => message.render(self.lang),
                    };
                    self.push(&text);
                    rest = &inside[end + 1..];
                }
                None => {
                    self.text.push('{');
                    rest = inside;
                }
            }
        }
        self.push(rest);
    }

    /// Appends a part. Chinese has a blank between its characters and Latin ones, and none between two of its
    /// own: which of both an argument is, its pattern can't know.
    fn push(&mut self, part: &str) {
        let mut part = part;
        if self.lang == Lang::Zh {
            let ends_wide = |text: &str| text.chars().next_back().is_some_and(is_wide);
            let begins_wide = |text: &str| text.chars().next().is_some_and(is_wide);
            if begins_wide(part) && self.text.strip_suffix(' ').is_some_and(ends_wide) {
                self.text.pop();
            }
            if ends_wide(&self.text)
                && let Some(after) = part.strip_prefix(' ').filter(|after| begins_wide(after))
            {
                part = after;
            }
        }
        self.text.push_str(part);
    }
}

/// Brackets within brackets are square ones: an argument can't know where it is filled in.
fn nested(text: String) -> String {
    let mut depth = 0_usize;
    let mut is_nested = false;
    let square = |c: char| {
        let is_outer = match c {
            '（' => {
                depth += 1;
                depth == 1
            }
            '）' => {
                depth = depth.saturating_sub(1);
                depth == 0
            }
            _ => true,
        };
        is_nested |= !is_outer;
        match c {
            _ if is_outer => c,
            '（' => '［',
            _ => '］',
        }
    };
    let made: String = text.chars().map(square).collect();
    // Parts of a line may open a bracket that another one closes.
    if is_nested && depth == 0 { made } else { text }
}

/// True of Chinese characters and full-width punctuation, which are as wide as two Latin letters.
fn is_wide(c: char) -> bool {
    matches!(c, '\u{2e80}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{fe30}'..='\u{fe4f}' | '\u{ff00}'..='\u{ff60}')
}
