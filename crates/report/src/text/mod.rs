//! What a paper says, in English and in Chinese.
//!
//! A sentence is written once, in English, as a pattern with named places; the dictionary has its
//! Chinese. [`say!`](crate::say) makes a [`Text`], which holds both languages, so that the model of a
//! paper is the same for all of them. A test looks whether every pattern of the sources and of the
//! templates is in the dictionary.
//!
//! What others than this crate write into run folders is English there; [`stored`] finds the patterns of
//! its sentences in `dictionary/stored.toml`. What has no pattern, such as a server's message, stays as it
//! is.

mod dictionary;
mod stored;

pub(crate) use dictionary::chinese;
pub use stored::stored;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// A language of papers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lang {
    /// English.
    #[default]
    En,
    /// Chinese, simplified characters.
    Zh,
}

impl Lang {
    /// All languages.
    pub const ALL: [Lang; 2] = [Lang::En, Lang::Zh];

    /// Its code: `en` or `zh`.
    pub fn code(self) -> &'static str {
        match self {
            Lang::En => "en",
            Lang::Zh => "zh",
        }
    }

    /// The language of this code.
    pub fn of_code(code: &str) -> Option<Lang> {
        Lang::ALL.into_iter().find(|lang| lang.code() == code)
    }
}

/// The same in every language of papers.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Text {
    en: String,
    zh: String,
}

impl Text {
    /// What is the same in all languages: a name, a number, a server's own words.
    pub fn same(text: impl Into<String>) -> Text {
        let en = text.into();
        Text { zh: en.clone(), en }
    }

    /// A pattern with its places filled; [`say!`](crate::say) is the way to call it.
    pub fn of(pattern: &str, values: &[(&str, Text)]) -> Text {
        Text {
            en: fill(pattern, values, Lang::En),
            zh: fill(chinese(pattern).unwrap_or(pattern), values, Lang::Zh),
        }
    }

    /// The text in one language.
    pub fn in_lang(&self, lang: Lang) -> &str {
        match lang {
            Lang::En => &self.en,
            Lang::Zh => &self.zh,
        }
    }

    /// True when there is nothing to say.
    pub fn is_empty(&self) -> bool {
        self.en.is_empty()
    }

    /// One text after another, as sentences stand: with a blank between them in English.
    pub fn sentences(texts: &[Text]) -> Text {
        Text::joined(texts, " ", "")
    }

    /// Texts with what stands between them in each language.
    pub fn joined(texts: &[Text], en: &str, zh: &str) -> Text {
        let all = |lang: Lang, between: &str| {
            let texts: Vec<&str> = texts.iter().map(|text| text.in_lang(lang)).collect();
            texts.join(between)
        };
        Text { en: all(Lang::En, en), zh: all(Lang::Zh, zh) }
    }

    /// `a`, `a and b`, `a, b and c`.
    pub fn list(texts: &[Text]) -> Text {
        match texts {
            [] => Text::default(),
            [only] => only.clone(),
            [first @ .., last] => {
                let values = [("first", Text::joined(first, ", ", "、")), ("last", last.clone())];
                Text {
                    en: fill("{first} and {last}", &values, Lang::En),
                    zh: fill("{first} 和 {last}", &values, Lang::Zh),
                }
            }
        }
    }

    /// A number with its noun: patterns for one and for several, in which `{n}` is the number.
    pub fn count(number: u64, one: &str, more: &str) -> Text {
        let n = Text::same(crate::format::whole(number as f64));
        Text::of(if number == 1 { one } else { more }, &[("n", n)])
    }
}

/// In English.
impl std::fmt::Display for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.en)
    }
}

/// Compares the English.
impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self.en == *other
    }
}

/// Compares the English.
impl PartialEq<String> for Text {
    fn eq(&self, other: &String) -> bool {
        self.en == *other
    }
}

impl From<&str> for Text {
    /// A name or a number; sentences come from [`say!`](crate::say).
    fn from(text: &str) -> Text {
        Text::same(text)
    }
}

impl From<String> for Text {
    fn from(text: String) -> Text {
        Text::same(text)
    }
}

impl From<&String> for Text {
    fn from(text: &String) -> Text {
        Text::same(text.as_str())
    }
}

impl From<&Text> for Text {
    fn from(text: &Text) -> Text {
        text.clone()
    }
}

/// An object with a key for each language; templates show that of the paper.
impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(Lang::ALL.len()))?;
        for lang in Lang::ALL {
            map.serialize_entry(lang.code(), self.in_lang(lang))?;
        }
        map.end()
    }
}

impl schemars::JsonSchema for Text {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Text".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "What the paper says, in each of its languages.",
            "type": "object",
            "properties": { "en": { "type": "string" }, "zh": { "type": "string" } },
            "required": ["en", "zh"],
            "additionalProperties": false
        })
    }
}

/// Fills `{name}` with its value. What is in braces and no name of a value stays as it is.
pub(crate) fn fill(pattern: &str, values: &[(&str, Text)], lang: Lang) -> String {
    let mut text = String::with_capacity(pattern.len());
    let mut rest = pattern;
    while let Some(at) = rest.find('{') {
        push(&mut text, &rest[..at], lang);
        let inside = &rest[at + 1..];
        let named = inside.find('}').and_then(|end| {
            let value = values.iter().find(|(name, _)| *name == &inside[..end])?;
            Some((end, value.1.in_lang(lang)))
        });
        match named {
            Some((end, value)) => {
                push(&mut text, value, lang);
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

/// A [`Text`] of a pattern that is in the dictionary: `say!("{n} trials on {target}", n = 3, ...)`.
/// Values are names and numbers as text, or texts.
#[macro_export]
macro_rules! say {
    ($pattern:literal $(, $name:ident = $value:expr)* $(,)?) => {
        $crate::Text::of($pattern, &[$((stringify!($name), $crate::Text::from($value))),*])
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_filled_in_each_language() {
        let inner = Text { en: "two".to_owned(), zh: "二".to_owned() };
        let text = Text::of("{a} and {b}, {c}", &[("a", inner), ("b", Text::same("{a}"))]);
        assert_eq!(text.in_lang(Lang::En), "two and {a}, {c}");
        assert!(text.in_lang(Lang::Zh).contains('二'), "{text:?}");
    }

    #[test]
    fn a_blank_stands_between_chinese_and_latin_only() {
        let zh = |value: &str, pattern: &str| fill(pattern, &[("a", Text::same(value))], Lang::Zh);
        assert_eq!(zh("read committed", "级别为 {a} 时"), "级别为 read committed 时");
        assert_eq!(zh("默认", "级别为 {a} 时"), "级别为默认时");
        assert_eq!(zh("默认", "{a} 3 个"), "默认 3 个");
        assert_eq!(fill("is {a} now", &[("a", Text::same("默认"))], Lang::En), "is 默认 now");
    }

    #[test]
    fn lists_are_joined_as_each_language_does() {
        let texts = ["a", "b", "c"].map(Text::from);
        let text = Text::list(&texts);
        assert_eq!((text.in_lang(Lang::En), text.in_lang(Lang::Zh)), ("a, b and c", "a、b 和 c"));
        assert_eq!(Text::list(&texts[..1]), Text::from("a"));
        assert_eq!(Text::count(1, "{n} trial", "{n} trials").in_lang(Lang::En), "1 trial");
        assert_eq!(Text::count(1200, "{n} trial", "{n} trials").in_lang(Lang::En), "1,200 trials");
    }
}
