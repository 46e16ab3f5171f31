//! Numbers as a reader wants them: a few digits, thousands set apart.

pub use dyno_facts::format::{DASH, bytes, ms, percent, plain, short, tenth, whole};

use dyno_facts::{Lang, Message};
use serde::Serialize;

/// Form of a number.
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
    /// About three digits that count, without zeros at the end.
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

    /// Returns true if cells are aligned to the right.
    pub fn is_right(self) -> bool {
        self != NumberFormat::Text
    }
}

/// A word as a POSIX shell reads it back.
pub fn shell_word(word: &str) -> String {
    let mut characters = word.chars();
    let is_plain = characters.all(|c| c.is_ascii_alphanumeric() || "-_./:=@,+%".contains(c));
    if !word.is_empty() && is_plain {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// Values by their keys, in the order of the first of each.
pub fn grouped<K: PartialEq, V>(items: impl IntoIterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    for (key, value) in items {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => values.push(value),
            None => groups.push((key, vec![value])),
        }
    }
    groups
}

/// Without repetitions, in their order.
pub fn unique<T: Clone + PartialEq>(mut items: Vec<T>) -> Vec<T> {
    let mut earlier = Vec::new();
    items.retain(|item| {
        let is_new = !earlier.contains(item);
        earlier.push(item.clone());
        is_new
    });
    items
}

/// The first sentence of a text.
pub fn first_sentence(text: &Message) -> Message {
    let [en, zh] = Lang::ALL.map(|lang| text.render(lang));
    Message::both(cut_at(&en, [". ", "; "], "."), cut_at(&zh, ["。", "；"], "。"))
}

/// The text up to the first of the `ends`, closed by `stop`; all of it if it has none of them.
fn cut_at(text: &str, ends: [&str; 2], stop: &str) -> String {
    let first = ends.iter().filter_map(|end| text.split_once(end)).map(|(first, _)| first);
    let first = first.min_by_key(|first| first.len());
    first.map_or_else(|| text.to_owned(), |first| format!("{first}{stop}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_in_their_format() {
        let cases = [
            (NumberFormat::Text, 1.5, "1.5"),
            (NumberFormat::Right, 1.5, "1.5"),
            (NumberFormat::Plain, 1.5, "1.5"),
            (NumberFormat::Short, 1.5, "1.50"),
            (NumberFormat::Whole, 12_345.6, "12,346"),
            (NumberFormat::Ms, 1_500.0, "1.50"),
            (NumberFormat::Tenth, 1.25, "1.2"),
            (NumberFormat::Fixed(0), 1.6, "2"),
            (NumberFormat::Fixed(2), 1.6, "1.60"),
            (NumberFormat::Ratio, 1.0, "1.000"),
            (NumberFormat::Ratio, 99.99, "99.990"),
            (NumberFormat::Ratio, 100.0, "100"),
            (NumberFormat::Ratio, 0.1, "0.100"),
            (NumberFormat::Ratio, 0.056_78, "0.0568"),
            (NumberFormat::Ratio, 0.000_056_78, "0.0000568"),
            (NumberFormat::Ratio, 0.0, "0.000"),
            (NumberFormat::Ratio, 1e-20, "0.000000000000"),
            (NumberFormat::Whole, f64::NAN, DASH),
            (NumberFormat::Ratio, f64::INFINITY, DASH),
        ];
        for (format, number, text) in cases {
            assert_eq!(format.show(number), text, "{format:?} of {number}");
        }
        assert_eq!(NumberFormat::Percent.show(0.25), percent(0.25));
        assert_eq!(NumberFormat::Bytes.show(2_048.0), bytes(2_048.0));
        assert!(NumberFormat::Right.is_right() && !NumberFormat::Text.is_right());
    }

    #[test]
    fn words_are_quoted_where_a_shell_would_split_them() {
        let cases = [
            ("a-b_c./:=@,+%9", "a-b_c./:=@,+%9"),
            ("", "''"),
            ("a b", "'a b'"),
            ("it's", "'it'\\''s'"),
        ];
        for (word, quoted) in cases {
            assert_eq!(shell_word(word), quoted);
        }
    }

    #[test]
    fn groups_keep_the_order_of_their_first() {
        assert_eq!(grouped([(2, 'a'), (1, 'b'), (2, 'c')]), [(2, vec!['a', 'c']), (1, vec!['b'])]);
        assert_eq!(unique(vec![2, 1, 2, 3, 1]), [2, 1, 3]);
    }

    fn cut_both(en: &str, zh: &str) -> [String; 2] {
        let sentence = first_sentence(&Message::both(en, zh));
        Lang::ALL.map(|lang| sentence.render(lang).clone())
    }

    #[test]
    fn a_first_sentence_ends_at_its_end() {
        assert_eq!(cut_both("One; two. Three.", "一。二；三。"), ["One.", "一。"]);
        assert_eq!(cut_both("A 1.5 of all.", "全部"), ["A 1.5 of all.", "全部"]);
    }
}
