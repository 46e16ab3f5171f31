//! Numbers as a reader wants them: a few digits, thousands set apart.

pub use dyno_facts::format::{DASH, bytes, ms, percent, plain, short, tenth, whole};

use dyno_facts::{Lang, Message};
use serde::Serialize;

/// How a number is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NumberFormat {
    /// There is no number but text.
    #[default]
    Text,
    /// Text that stands right, such as a time or an amount with its unit.
    Right,
    /// About three digits that count.
    Short,
    /// The same without zeros at the end.
    Plain,
    /// Whole, thousands set apart.
    Whole,
    /// Microseconds as milliseconds.
    Ms,
    /// Seconds to a tenth.
    Tenth,
    /// A share (0 to 1) as percent.
    Percent,
    /// Bytes with a unit.
    Bytes,
    /// So many digits after the point.
    Fixed(u8),
    /// A ratio, `1.023`: three digits after the point, fewer of large ones; of small ones three that count.
    Ratio,
}

impl NumberFormat {
    /// A number in this format.
    pub fn show(self, number: f64) -> String {
        match self {
            _ if !number.is_finite() => DASH.to_owned(),
            NumberFormat::Text | NumberFormat::Right | NumberFormat::Plain => plain(number),
            NumberFormat::Short => short(number),
            NumberFormat::Whole => whole(number),
            NumberFormat::Ms => ms(number),
            NumberFormat::Tenth => tenth(number),
            NumberFormat::Percent => percent(number),
            NumberFormat::Bytes => bytes(number),
            NumberFormat::Ratio if number >= 100.0 => short(number),
            NumberFormat::Ratio if number > 0.0 && number < 0.1 => {
                let digits = (2 - number.log10().floor() as i32).clamp(3, 12);
                format!("{number:.*}", usize::try_from(digits).unwrap_or(3))
            }
            NumberFormat::Ratio => format!("{number:.3}"),
            NumberFormat::Fixed(digits) => format!("{number:.*}", usize::from(digits)),
        }
    }

    /// True where cells stand right.
    pub fn is_right(self) -> bool {
        self != NumberFormat::Text
    }
}

/// A word as a POSIX shell reads it back.
pub fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@,+%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// Values by their keys, in the order of the first of each.
pub fn grouped<K: PartialEq, V>(all: impl IntoIterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    for (key, value) in all {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => values.push(value),
            None => groups.push((key, vec![value])),
        }
    }
    groups
}

/// Without repetitions, in their order.
pub fn unique<T: Clone + PartialEq>(mut words: Vec<T>) -> Vec<T> {
    let mut seen = Vec::new();
    words.retain(|word| {
        let is_new = !seen.contains(word);
        seen.push(word.clone());
        is_new
    });
    words
}

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
