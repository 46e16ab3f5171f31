//! Messages: what run folders and papers say, as keys with arguments.
//!
//! A crate that says something has its texts in `messages/*.toml`, English and Chinese side by side.
//! [`say!`](crate::say) makes a [`Message`] where a fact arises; it is stored as its key and arguments and becomes
//! text at the end, in the language of the reader.

mod fill;
mod form;

use dyno_core::in_one_line;
use fill::Filling;
use form::StoredMessage;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{PoisonError, RwLock};

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
    /// Whether these are the names of its places, in any order: `say!` asks while it is compiled.
    pub const fn takes(&self, names: &[&str]) -> bool {
        let mut at = 0;
        while at < names.len() {
            let mut place = 0;
            while place < self.places.len() && !is_same(self.places[place], names[at]) {
                place += 1;
            }
            if place == self.places.len() {
                return false;
            }
            at += 1;
        }
        names.len() == self.places.len()
    }
}

/// `==` of texts is not `const` yet.
const fn is_same(a: &str, b: &str) -> bool {
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
    /// What is expected, threshold included.
    pub rule: &'static MessageTexts,
    /// What it means where something is found.
    pub meaning: &'static MessageTexts,
    pub advice: &'static MessageTexts,
}

pub type Catalogue = &'static [MessageTexts];

static REGISTERED: RwLock<BTreeMap<&str, &MessageTexts>> = RwLock::new(BTreeMap::new());

/// Registers catalogues for this process: messages that are read from run folders find their texts there. Without
/// its catalogue a message is English in every language, as it is stored beside the key.
pub fn register(catalogues: &[Catalogue]) {
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    let entries = catalogues.iter().flat_map(|entries| entries.iter());
    registered.extend(entries.map(|entry| (entry.key, entry)));
}

fn registered(key: &str) -> Option<&'static MessageTexts> {
    REGISTERED.read().unwrap_or_else(PoisonError::into_inner).get(key).copied()
}

/// What is said, in every language.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(from = "StoredMessage", into = "StoredMessage")]
#[schemars(with = "StoredMessage")]
pub struct Message(Box<Form>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Form {
    /// The same in all languages: a name, a figure, a server's own words.
    Verbatim(String),
    /// A key of a catalogue with its arguments, by place.
    Keyed { key: Key, args: BTreeMap<String, Arg> },
    /// Texts in a row, with what stands between them in English and in Chinese.
    Joined { parts: Vec<Message>, between: [String; 2] },
    /// `a, b and c`.
    List(Vec<Message>),
    /// Both languages as a user has written them.
    Both { en: String, zh: String },
}

#[derive(Clone, Debug)]
enum Key {
    Known(&'static MessageTexts),
    /// Of a run folder, with its English there: no registered catalogue has it.
    Unknown {
        name: String,
        en: String,
    },
}

impl Key {
    fn name(&self) -> &str {
        match self {
            Key::Known(entry) => entry.key,
            Key::Unknown { name, .. } => name,
        }
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        self.name().cmp(other.name())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Arg {
    /// A count: digits in groups of three; decides between singular and plural in the place `n`.
    Count(u64),
    /// A name, a formatted figure, a statement, another message.
    Message(Message),
}

impl Arg {
    /// A count of one, or the figure 1.
    fn is_one(&self) -> bool {
        match self {
            Arg::Count(count) => *count == 1,
            Arg::Message(message) => matches!(&*message.0, Form::Verbatim(text) if text == "1"),
        }
    }
}

impl Message {
    /// What is the same in all languages: a name, a figure, a server's own words.
    pub fn verbatim(text: impl Into<String>) -> Message {
        Message::from(Form::Verbatim(text.into()))
    }

    /// What a user has written in both languages.
    pub fn both(en: impl Into<String>, zh: impl Into<String>) -> Message {
        Message::from(Form::Both { en: en.into(), zh: zh.into() })
    }

    /// The same where one language may be missing: the other stands in its place.
    pub fn either(en: &str, zh: &str) -> Message {
        match (en, zh) {
            (en, "") => Message::verbatim(en),
            ("", zh) => Message::verbatim(zh),
            (en, zh) => Message::both(en, zh),
        }
    }

    /// A message of a catalogue; [`say!`](crate::say) is the way to call it.
    pub fn of<const N: usize>(entry: &'static MessageTexts, args: [(&str, Arg); N]) -> Message {
        let args = args.into_iter().map(|(name, arg)| (name.to_owned(), arg)).collect();
        Message::from(Form::Keyed { key: Key::Known(entry), args })
    }

    /// The text in one language.
    pub fn render(&self, lang: Lang) -> String {
        let mut filling = Filling::new(lang);
        filling.message(self);
        filling.finish()
    }

    /// The text in one language and one line, so that words of others forge no line of dyno's.
    pub fn line(&self, lang: Lang) -> String {
        in_one_line(&self.render(lang)).into_owned()
    }

    /// True when there is nothing to say.
    pub fn is_empty(&self) -> bool {
        match &*self.0 {
            Form::Verbatim(text) | Form::Both { en: text, .. } => text.is_empty(),
            Form::Keyed { .. } => false,
            Form::Joined { parts, .. } | Form::List(parts) => parts.iter().all(Message::is_empty),
        }
    }

    /// One after another, as sentences stand: with a blank between them in English.
    pub fn sentences(parts: &[Message]) -> Message {
        Message::joined(parts, " ", "")
    }

    /// With what stands between them in each language.
    pub fn joined(parts: &[Message], en: &str, zh: &str) -> Message {
        let between = [en.to_owned(), zh.to_owned()];
        Message::from(Form::Joined { parts: parts.to_vec(), between })
    }

    /// `a`, `a and b`, `a, b and c`.
    pub fn list(parts: &[Message]) -> Message {
        match parts {
            [only] => only.clone(),
            parts => Message::from(Form::List(parts.to_vec())),
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

/// In English.
impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(Lang::En))
    }
}

/// Compares the English.
impl PartialEq<str> for Message {
    fn eq(&self, other: &str) -> bool {
        self.render(Lang::En) == *other
    }
}

/// Compares the English.
impl PartialEq<&str> for Message {
    fn eq(&self, other: &&str) -> bool {
        self.render(Lang::En) == *other
    }
}

/// Compares the English.
impl PartialEq<String> for Message {
    fn eq(&self, other: &String) -> bool {
        self.render(Lang::En) == *other
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

/// Declares the catalogue of a crate whose `build.rs` calls `dyno_catalogue::generate()`: the module `messages`
/// with a constant for each key, and `CATALOGUE` for [`register`].
#[macro_export]
macro_rules! catalogue {
    () => {
        #[expect(non_upper_case_globals, reason = "keys are written as in the catalogue")]
        mod messages {
            include!(concat!(env!("OUT_DIR"), "/messages.rs"));
        }

        pub static CATALOGUE: $crate::Catalogue = &messages::CATALOGUE;
    };
}

/// A [`Message`] of the crate's own catalogue: `say!(n_trials, n = 3)`. Arguments are names and figures as text, counts,
/// and messages. A key that does not exist and places without arguments do not compile.
#[expect(clippy::crate_in_macro_def, reason = "keys are those of the crate that says something")]
#[macro_export]
macro_rules! say {
    ($key:ident $(, $name:ident = $value:expr)* $(,)?) => {{
        const ENTRY: &$crate::MessageTexts = crate::messages::$key;
        const { assert!(ENTRY.takes(&[$(stringify!($name)),*]), "the arguments are not the places of the message") };
        $crate::Message::of(ENTRY, [$((stringify!($name), $crate::Arg::from($value))),*])
    }};
}

#[cfg(test)]
mod tests;
