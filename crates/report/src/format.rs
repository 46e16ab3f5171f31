//! Numbers as a reader wants them: a few digits, thousands set apart.

use serde::Serialize;

/// How a number is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Format {
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
}

impl Format {
    /// A number in this format.
    pub fn show(self, number: f64) -> String {
        match self {
            _ if !number.is_finite() => DASH.to_owned(),
            Format::Text | Format::Right | Format::Plain => plain(number),
            Format::Short => short(number),
            Format::Whole => whole(number),
            Format::Ms => ms(number),
            Format::Tenth => tenth(number),
            Format::Percent => percent(number),
            Format::Bytes => bytes(number),
            Format::Fixed(digits) => format!("{number:.*}", usize::from(digits)),
        }
    }

    /// True where cells stand right.
    pub fn is_right(self) -> bool {
        self != Format::Text
    }
}

/// What stands where there is no number.
pub const DASH: &str = "\u{2013}";

/// A whole number with thousands set apart.
pub fn whole(number: f64) -> String {
    let digits = format!("{:.0}", number.abs());
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if number < 0.0 && digits.chars().any(|digit| digit != '0') { format!("-{text}") } else { text }
}

/// About three digits that count; above that, whole numbers.
pub fn short(number: f64) -> String {
    if !number.is_finite() {
        return DASH.to_owned();
    }
    match number.abs() {
        0.0 => "0".to_owned(),
        size if size >= 99.95 => whole(number),
        size if size >= 9.995 => format!("{number:.1}"),
        size if size >= 0.9995 => format!("{number:.2}"),
        size if size >= 0.000_009_995 => {
            let zeros = -size.log10().floor() as usize;
            format!("{number:.*}", zeros + 2)
        }
        _ => format!("{number:.1e}"),
    }
}

/// The same without zeros at the end: for sentences and axes, where nothing is aligned.
pub fn plain(number: f64) -> String {
    let text = short(number);
    if !text.contains('.') || text.contains('e') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Seconds that are known to a tenth at best.
pub(crate) fn tenth(seconds: f64) -> String {
    format!("{seconds:.1}")
}

/// Microseconds as milliseconds.
pub fn ms(us: f64) -> String {
    short(us / 1e3)
}

/// A share (0 to 1) as percent, without the sign.
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0".to_owned(),
        percent if percent.abs() < 0.1 => format!("{percent:.3}"),
        percent if percent.abs() < 10.0 => format!("{percent:.1}"),
        percent => format!("{percent:.0}"),
    }
}

/// Bytes in the largest unit that leaves at least 1.
pub fn bytes(count: f64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut size = count;
    let mut unit = 0;
    while size.abs() >= 1024.0 && unit + 1 < units.len() {
        size /= 1024.0;
        unit += 1;
    }
    format!("{} {}", plain(size), units[unit])
}

/// A word as a POSIX shell reads it back.
pub(crate) fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@,+%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        let cases = [
            (0.0, "0"),
            (999.0, "999"),
            (1000.0, "1,000"),
            (-1234567.4, "-1,234,567"),
            (-0.2, "0"),
        ];
        for (number, text) in cases {
            assert_eq!(whole(number), text);
        }
    }

    #[test]
    fn three_digits_count() {
        let cases = [
            (0.0, "0"),
            (0.012_34, "0.0123"),
            (0.5, "0.500"),
            (0.000_94, "0.000940"),
            (1.234, "1.23"),
            (9.999, "10.0"),
            (12.34, "12.3"),
            (99.96, "100"),
            (12_345.6, "12,346"),
            (0.000_000_12, "1.2e-7"),
            (f64::NAN, DASH),
        ];
        for (number, text) in cases {
            assert_eq!(short(number), text);
        }
    }

    #[test]
    fn sentences_need_no_zeros_at_the_end() {
        let cases = [(5.0, "5"), (0.5, "0.5"), (100.0, "100"), (12.34, "12.3"), (1e-7, "1.0e-7")];
        for (number, text) in cases {
            assert_eq!(plain(number), text);
        }
    }

    #[test]
    fn bytes_have_units() {
        assert_eq!(bytes(134_217_728.0), "128 MiB");
        assert_eq!(bytes(1536.0), "1.5 KiB");
    }
}
