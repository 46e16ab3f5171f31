//! Messages: what run folders and papers say, as keys with arguments.
//!
//! A crate that says something has its texts in `messages/*.toml`, English and Chinese side by side.
//! [`say!`](crate::say) makes a [`Message`] where a fact arises; it is stored as its key and arguments and becomes
//! text at the end, in the language of the reader.

use dyno_core::in_one_line;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};
use std::{fmt, slice};

/// A language of papers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lang {
    #[default]
    En,
    /// Chinese, simplified characters.
    Zh,
}

impl Lang {
    pub const ALL: [Lang; 2] = [Lang::En, Lang::Zh];

    /// Its code: `en` or `zh`.
    pub fn code(self) -> &'static str {
        match self {
            Lang::En => "en",
            Lang::Zh => "zh",
        }
    }
}

/// The texts of one key. Places are names in braces.
#[derive(Debug, PartialEq, Eq)]
pub struct MessageTexts {
    /// `crate.key`, unique in the workspace.
    pub key: &'static str,
    /// English for a count of one in the place `n`.
    pub one: Option<&'static str>,
    pub en: &'static str,
    pub zh: &'static str,
    /// The names of the places, in alphabetical order.
    pub places: &'static [&'static str],
}

impl MessageTexts {
    /// Returns true if these are the names of its places, in any order: `say!` checks this at compile time.
    pub const fn takes(&self, names: &[&str]) -> bool {
        let mut at = 0;
        while at < names.len() {
            let mut place = 0;
            while place < self.places.len() && !str_eq(self.places[place], names[at]) {
                place += 1;
            }
            if place == self.places.len() {
                return false;
            }
            at += 1;
        }
        names.len() == self.places.len()
    }

    /// The English pattern, singular or plural by the argument `n`.
    fn english(&self, args: &BTreeMap<String, Arg>) -> &'static str {
        let is_singular = args.get("n").is_some_and(Arg::is_singular);
        self.one.filter(|_| is_singular).unwrap_or(self.en)
    }
}

/// `==` of texts is not `const` yet.
const fn str_eq(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

#[derive(Clone, Copy, Debug)]
pub struct CheckTexts {
    /// Its name for `--deny` and `--allow`.
    pub id: &'static str,
    /// The expectation, threshold included.
    pub rule: &'static MessageTexts,
    /// The meaning of a finding.
    pub meaning: &'static MessageTexts,
    pub advice: &'static MessageTexts,
}

pub type Catalog = &'static [MessageTexts];

static REGISTERED: RwLock<BTreeMap<&str, &MessageTexts>> = RwLock::new(BTreeMap::new());

/// Registers catalogs for this process: messages that are read from run folders find their texts there. Without
/// its catalog a message is English in every language, as it is stored alongside the key.
pub fn register(catalogs: &[Catalog]) {
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    let entries = catalogs.iter().flat_map(|entries| entries.iter());
    registered.extend(entries.map(|entry| (entry.key, entry)));
}

fn find_entry(key: &str) -> Option<&'static MessageTexts> {
    REGISTERED.read().unwrap_or_else(PoisonError::into_inner).get(key).copied()
}

/// A text in every language. As JSON: `"a name"`, `{"key": "runner.n_trials_failed", "args": {"n": 3}, "en": "3
/// trials failed."}`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(with = "Form")]
pub struct Message(Box<Form>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "Message")]
enum Form {
    /// A text for all languages: a name, a figure, a server's own words.
    Verbatim(String),
    /// A key of a catalog with its arguments, by place. The English is for readers of a file, and for programs that
    /// do not have the key.
    Keyed {
        key: String,
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        args: BTreeMap<String, Arg>,
        en: String,
    },
    /// Texts in a row, with what stands between them in English and in Chinese.
    Joined { joined: Vec<Message>, between: [String; 2] },
    /// `a, b and c`.
    List { list: Vec<Message> },
    /// Both languages as a user has written them.
    Both { en: String, zh: String },
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "StoredArg")]
pub enum Arg {
    /// A count: digits in groups of three; decides between singular and plural in the place `n`.
    Count(u64),
    /// A name, a formatted figure, a statement, another message.
    Message(Message),
}

impl Arg {
    /// A count of one, or the figure 1.
    fn is_singular(&self) -> bool {
        match self {
            Arg::Count(count) => *count == 1,
            Arg::Message(message) => matches!(&*message.0, Form::Verbatim(text) if text == "1"),
        }
    }
}

impl Message {
    /// A text that is equal in all languages: a name, a figure, a server's own words.
    pub fn verbatim(text: impl Into<String>) -> Message {
        Message::from(Form::Verbatim(text.into()))
    }

    /// A text that a user has written in both languages.
    pub fn both(en: impl Into<String>, zh: impl Into<String>) -> Message {
        Message::from(Form::Both { en: en.into(), zh: zh.into() })
    }

    /// Like [`Message::both`], if one language may be missing: the other replaces it.
    pub fn either(en: &str, zh: &str) -> Message {
        match (en, zh) {
            (en, "") => Message::verbatim(en),
            ("", zh) => Message::verbatim(zh),
            (en, zh) => Message::both(en, zh),
        }
    }

    /// A message of a catalog; [`say!`](crate::say) is the way to call it.
    pub fn of<'a>(
        entry: &'static MessageTexts,
        args: impl IntoIterator<Item = (&'a str, Arg)>,
    ) -> Message {
        if find_entry(entry.key).is_none() {
            register(&[slice::from_ref(entry)]);
        }
        let args: BTreeMap<String, Arg> =
            args.into_iter().map(|(name, arg)| (name.to_owned(), arg)).collect();
        let mut filling = Filling { lang: Lang::En, text: String::new() };
        filling.push_pattern(entry.english(&args), &args);
        Message::from(Form::Keyed { key: entry.key.to_owned(), args, en: filling.text })
    }

    /// The text in one language.
    pub fn render(&self, lang: Lang) -> String {
        let mut filling = Filling { lang, text: String::new() };
        filling.push_message(self);
        match lang {
            Lang::En => filling.text,
            Lang::Zh => nested(filling.text),
        }
    }

    /// The text in one language and one line, so that words of others forge no line of dyno's.
    pub fn line(&self, lang: Lang) -> String {
        in_one_line(&self.render(lang)).into_owned()
    }

    /// Returns true if it or one of its parts has this key, such as `load.indexes_made`.
    pub fn has_key(&self, name: &str) -> bool {
        match &*self.0 {
            Form::Keyed { key, args, .. } => {
                key == name
                    || args
                        .values()
                        .any(|arg| matches!(arg, Arg::Message(part) if part.has_key(name)))
            }
            Form::Joined { joined: parts, .. } | Form::List { list: parts } => {
                parts.iter().any(|part| part.has_key(name))
            }
            Form::Verbatim(_) | Form::Both { .. } => false,
        }
    }

    /// Returns true if there is nothing to say.
    pub fn is_empty(&self) -> bool {
        match &*self.0 {
            Form::Verbatim(text) | Form::Both { en: text, .. } => text.is_empty(),
            Form::Keyed { .. } => false,
            Form::Joined { joined: parts, .. } | Form::List { list: parts } => {
                parts.iter().all(Message::is_empty)
            }
        }
    }

    /// One after another like sentences: with a blank between them in English.
    pub fn sentences(parts: &[Message]) -> Message {
        Message::joined(parts, " ", "")
    }

    /// With a separator for each language.
    pub fn joined(parts: &[Message], en: &str, zh: &str) -> Message {
        let between = [en.to_owned(), zh.to_owned()];
        Message::from(Form::Joined { joined: parts.to_vec(), between })
    }

    /// `a`, `a and b`, `a, b and c`.
    pub fn list(parts: &[Message]) -> Message {
        match parts {
            [only] => only.clone(),
            parts => Message::from(Form::List { list: parts.to_vec() }),
        }
    }
}

/// A message rendered in all languages: for pages whose reader switches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Bilingual {
    en: String,
    zh: String,
}

impl<T: Into<Message>> From<T> for Bilingual {
    fn from(message: T) -> Bilingual {
        let message = message.into();
        Bilingual { en: message.render(Lang::En), zh: message.render(Lang::Zh) }
    }
}

impl Default for Message {
    fn default() -> Self {
        Message::verbatim("")
    }
}

impl From<Form> for Message {
    fn from(form: Form) -> Message {
        Message(Box::new(form))
    }
}

/// The English text.
impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(Lang::En))
    }
}

/// Compares the English.
impl<T: AsRef<str> + ?Sized> PartialEq<T> for Message {
    fn eq(&self, other: &T) -> bool {
        self.render(Lang::En) == other.as_ref()
    }
}

impl From<&str> for Message {
    fn from(text: &str) -> Message {
        Message::verbatim(text)
    }
}

impl From<String> for Message {
    fn from(text: String) -> Message {
        Message::verbatim(text)
    }
}

impl From<&String> for Message {
    fn from(text: &String) -> Message {
        Message::verbatim(text)
    }
}

impl From<&Message> for Message {
    fn from(message: &Message) -> Message {
        message.clone()
    }
}

impl<T: Into<Message>> From<T> for Arg {
    fn from(text: T) -> Arg {
        Arg::Message(text.into())
    }
}

macro_rules! counts {
    ($($kind:ty),+) => {
        $(impl From<$kind> for Arg {
            fn from(count: $kind) -> Arg {
                Arg::Count(count as u64)
            }
        })+
    };
}

counts!(u8, u16, u32, u64, usize);

/// A text that grows, in one language.
struct Filling {
    lang: Lang,
    text: String,
}

impl Filling {
    fn push_message(&mut self, message: &Message) {
        match &*message.0 {
            Form::Verbatim(text) => self.push(text),
            Form::Both { en, zh } => self.push(match self.lang {
                Lang::En => en,
                Lang::Zh => zh,
            }),
            Form::Keyed { key, args, en } => match (self.lang, find_entry(key)) {
                (_, None) => self.push(en),
                (Lang::En, Some(entry)) => self.push_pattern(entry.english(args), args),
                (Lang::Zh, Some(entry)) => self.push_pattern(entry.zh, args),
            },
            Form::Joined { joined, between: [en, zh] } => {
                let between = if self.lang == Lang::En { en } else { zh };
                for (index, part) in joined.iter().enumerate() {
                    if index > 0 {
                        self.text.push_str(between);
                    }
                    // Each on its own: blanks at its ends are not those of a place.
                    self.text.push_str(&part.render(self.lang));
                }
            }
            Form::List { list } => self.push_list(list),
        }
    }

    fn push_list(&mut self, parts: &[Message]) {
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

    /// Fills `{name}` with its argument. What is in braces and no name of an argument stays unchanged.
    fn push_pattern(&mut self, pattern: &str, args: &BTreeMap<String, Arg>) {
        let mut remaining = pattern;
        while let Some(at) = remaining.find('{') {
            self.push(&remaining[..at]);
            let inside = &remaining[at + 1..];
            let place = inside.find('}').and_then(|end| Some((end, args.get(&inside[..end])?)));
            match place {
                Some((end, arg)) => {
                    let text = match arg {
                        Arg::Count(count) => crate::format::grouped(count),
                        Arg::Message(message) => message.render(self.lang),
                    };
                    self.push(&text);
                    remaining = &inside[end + 1..];
                }
                None => {
                    self.text.push('{');
                    remaining = inside;
                }
            }
        }
        self.push(remaining);
    }

    /// Appends a part. Chinese has a blank between its characters and Latin ones, and none between two of its
    /// own: which of both an argument is, its pattern can't know.
    fn push(&mut self, part: &str) {
        let mut part = part;
        if self.lang == Lang::Zh {
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

/// Brackets within brackets are square ones: an argument can't know its surroundings.
fn nested(text: String) -> String {
    let mut depth = 0_usize;
    let mut is_nested = false;
    let squared = text.chars().map(|c| {
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
    });
    let squared: String = squared.collect();
    // Parts of a line may open a bracket that another one closes.
    if is_nested && depth == 0 { squared } else { text }
}

fn begins_wide(text: &str) -> bool {
    text.chars().next().is_some_and(is_wide)
}

fn ends_wide(text: &str) -> bool {
    text.chars().next_back().is_some_and(is_wide)
}

/// Returns true for Chinese characters and full-width punctuation, which are as wide as two Latin letters.
fn is_wide(c: char) -> bool {
    matches!(c, '\u{2e80}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{fe30}'..='\u{fe4f}' | '\u{ff00}'..='\u{ff60}')
}

/// Declares the catalog of a crate whose build script is `catalog.rs`: the module `messages` with a constant for
/// each key, and `CATALOG` for [`register`].
#[macro_export]
macro_rules! catalog {
    () => {
        #[expect(non_upper_case_globals, reason = "keys are written as in the catalog")]
        mod messages {
            include!(concat!(env!("OUT_DIR"), "/messages.rs"));
        }

        pub static CATALOG: $crate::Catalog = &messages::CATALOG;
    };
}

/// A [`Message`] of the crate's own catalog: `say!(n_trials, n = 3)`. Arguments are names and figures as text,
/// counts, and messages; `n` alone is `n = n`. A key that does not exist and places without arguments do not compile.
#[expect(clippy::crate_in_macro_def, reason = "keys are those of the crate that says something")]
#[macro_export]
macro_rules! say {
    ($key:ident $(, $name:ident $(= $value:expr)?)* $(,)?) => {{
        const ENTRY: &$crate::MessageTexts = crate::messages::$key;
        const { assert!(ENTRY.takes(&[$(stringify!($name)),*]), "the arguments are not the places of the message") };
        $crate::Message::of(ENTRY, [$((stringify!($name), $crate::say!(@arg $name $(= $value)?))),*])
    }};
    (@arg $name:ident) => { $crate::Arg::from($name) };
    (@arg $name:ident = $value:expr) => { $crate::Arg::from($value) };
}

#[cfg(test)]
mod tests;
