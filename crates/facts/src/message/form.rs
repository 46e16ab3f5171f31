//! Messages as JSON: `"a name"`, `{"key": "runner.n_trials_failed", "args": {"n": 3}, "en": "3 trials failed."}`.

use super::{Arg, Form, Key, Lang, Message, registered};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How a message is stored. The English beside a key is for readers of the file and for programs that do not
/// have the key.
#[derive(Clone, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "Message")]
pub(super) enum StoredMessage {
    Verbatim(String),
    Keyed {
        key: String,
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        args: BTreeMap<String, StoredArg>,
        en: String,
    },
    Joined {
        joined: Vec<Message>,
        between: [String; 2],
    },
    List {
        list: Vec<Message>,
    },
    Both {
        en: String,
        zh: String,
    },
}

#[derive(Clone, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
pub(super) enum StoredArg {
    Count(u64),
    Message(Message),
}

impl From<StoredMessage> for Message {
    fn from(stored: StoredMessage) -> Message {
        let arg = |(name, arg): (String, StoredArg)| match arg {
            StoredArg::Count(count) => (name, Arg::Count(count)),
            StoredArg::Message(message) => (name, Arg::Message(message)),
        };
        Message::from(match stored {
            StoredMessage::Verbatim(text) => Form::Verbatim(text),
            StoredMessage::Keyed { key, args, en } => {
                let key = match registered(&key) {
                    Some(entry) => Key::Known(entry),
                    None => Key::Unknown { name: key, en },
                };
                Form::Keyed { key, args: args.into_iter().map(arg).collect() }
            }
            StoredMessage::Joined { joined, between } => Form::Joined { parts: joined, between },
            StoredMessage::List { list } => Form::List(list),
            StoredMessage::Both { en, zh } => Form::Both { en, zh },
        })
    }
}

impl From<Message> for StoredMessage {
    fn from(message: Message) -> StoredMessage {
        let en = message.render(Lang::En);
        let arg = |(name, arg): (String, Arg)| match arg {
            Arg::Count(count) => (name, StoredArg::Count(count)),
            Arg::Message(message) => (name, StoredArg::Message(message)),
        };
        match *message.0 {
            Form::Verbatim(text) => StoredMessage::Verbatim(text),
            Form::Keyed { key, args } => {
                let args = args.into_iter().map(arg).collect();
                StoredMessage::Keyed { key: key.name().to_owned(), args, en }
            }
            Form::Joined { parts, between } => StoredMessage::Joined { joined: parts, between },
            Form::List(parts) => StoredMessage::List { list: parts },
            Form::Both { en, zh } => StoredMessage::Both { en, zh },
        }
    }
}
