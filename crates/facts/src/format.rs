//! Numbers as a reader wants them, on the terminal and in papers: a few digits, thousands set apart.

use dyno_core::{harmless, in_one_line};
use std::fmt::Display;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The sign for a missing number.
pub const DASH: &str = "\u{2013}";

/// Digits in groups of three: 1234567 as 1,234,567.
pub fn grouped(number: impl Display) -> String {
    let text = number.to_string();
    let (sign, digits) = text.strip_prefix('-').map_or(("", text.as_str()), |rest| ("-", rest));
    let mut text = String::from(sign);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A whole number with thousands set apart.
pub fn whole(number: f64) -> String {
    let digits = format!("{number:.0}");
    grouped(if digits == "-0" { "0" } else { &digits })
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

/// Like [`short`], without zeros at the end: for sentences and axes, if nothing is aligned.
pub fn plain(number: f64) -> String {
    let text = short(number);
    if !text.contains('.') || text.contains('e') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Seconds that are known to a tenth at best.
pub fn tenth(seconds: f64) -> String {
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

/// Texts wider than this are broken into lines.
const WIDEST_TEXT: usize = 60;
/// Before the further lines of a first column, which are not rows.
const SET_IN: &str = "  ";

/// Lays out rows below their titles, in columns that are aligned left or right. Long texts are broken into lines, but
/// their own line breaks are removed: names may come from anywhere. Chinese characters take two places.
pub fn text_table(
    titles: &[impl AsRef<str>],
    rows: &[Vec<String>],
    is_right: impl Fn(usize) -> bool,
) -> String {
    let titles: Vec<String> = titles.iter().map(|title| title.as_ref().to_owned()).collect();
    let broken: Vec<Vec<Vec<String>>> = [&titles]
        .into_iter()
        .chain(rows)
        .map(|row| {
            let cells = row.iter().enumerate().map(|(place, cell)| {
                let indent = if place == 0 { SET_IN } else { "" };
                wrap(&harmless(&in_one_line(cell)), WIDEST_TEXT, indent)
            });
            cells.collect()
        })
        .collect();
    let widths = (0..titles.len()).map(|place| {
        let cells = broken.iter().filter_map(|row| row.get(place)).flatten();
        cells.map(|text| text.width()).max().unwrap_or(0)
    });
    let widths: Vec<usize> = widths.collect();
    let mut out = String::new();
    for row in &broken {
        let height = row.iter().map(Vec::len).max().unwrap_or(0);
        for level in 0..height {
            let mut text = String::new();
            for (place, (cell, wide)) in row.iter().zip(&widths).enumerate() {
                let part = cell.get(level).map_or("", String::as_str);
                let room = " ".repeat(wide - part.width());
                if is_right(place) {
                    text += &format!("{room}{part}  ");
                } else {
                    text += &format!("{part}{room}  ");
                }
            }
            out += text.trim_end();
            out.push('\n');
        }
    }
    out
}

/// Wraps a text into lines of at most `columns` columns. Lines break at blanks and next to Chinese characters; those
/// after the first start with `indent`.
pub fn wrap(text: &str, columns: usize, indent: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    let (mut word, mut blank) = (String::new(), "");
    for letter in text.chars().chain([' ']) {
        let ends = letter == ' ' || letter.width() == Some(2);
        if letter != ' ' {
            word.push(letter);
        }
        if !ends {
            continue;
        }
        let last = lines.last_mut().expect("there is one");
        if last.trim().is_empty() || last.width() + blank.len() + word.width() <= columns {
            if !last.trim().is_empty() {
                last.push_str(blank);
            }
            last.push_str(&word);
        } else {
            lines.push(format!("{indent}{word}"));
        }
        word.clear();
        blank = if letter == ' ' { " " } else { "" };
    }
    lines
}

/// Returns the longest beginning of a text that fits into `columns` columns.
pub fn clip(text: &str, columns: usize) -> String {
    let mut width = 0;
    let fitting = text.chars().take_while(|letter| {
        width += letter.width().unwrap_or(0);
        width <= columns
    });
    fitting.collect::<String>().trim_end().to_owned()
}

/// Cuts a text to that many columns of a terminal; an ellipsis shows where.
pub fn shorten(text: &str, columns: usize) -> String {
    if text.width() <= columns { text.to_owned() } else { clip(text, columns - 1) + "…" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_blanks_and_between_chinese_characters() {
        assert_eq!(wrap("one two three four", 10, ""), ["one two", "three four"]);
        assert_eq!(wrap("one two three four", 10, "  "), ["one two", "  three", "  four"]);
        assert_eq!(wrap("延迟随并发数的变化", 10, ""), ["延迟随并发", "数的变化"]);
        assert_eq!(wrap("", 10, ""), [""]);
        assert_eq!(clip("延迟随 a", 5), "延迟");
        assert_eq!([shorten("three", 5), shorten("three four", 6)], ["three", "three…"]);
    }

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

    #[test]
    fn columns_line_up_and_chinese_is_wide() {
        let rows = [["a", "1"], ["很长", "12345"]].map(|row| row.map(str::to_owned).to_vec());
        let text = text_table(&["name", "n"], &rows, |place| place > 0);
        assert_eq!(text, "name      n\na         1\n很长  12345\n");
    }

    #[test]
    fn long_texts_are_broken_at_blanks() {
        let rows = [vec![format!("{} {}", "a".repeat(50), "b".repeat(20)), "1".to_owned()]];
        let text = text_table(&["text", "n"], &rows, |place| place > 0);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines.len(), lines[2]), (3, format!("{SET_IN}{}", "b".repeat(20)).as_str()));
    }

    #[test]
    fn no_cell_is_taken_for_a_row_or_obeyed() {
        let wide = "a".repeat(60);
        let rows = [
            vec![format!("{wide} total  1"), "x\nOK: all passed".to_owned()],
            vec!["b\r\ntotal".to_owned(), "\u{1b}[2J\u{202e}c".to_owned()],
        ];
        let text = text_table(&["name", "of"], &rows, |_| false);
        let lines: Vec<&str> = text.lines().skip(1).map(str::trim_end).collect();
        assert_eq!(
            lines,
            [
                &*format!("{wide}  x OK: all passed"),
                "  total  1",
                &*format!("{:60}  \u{fffd}[2J\u{fffd}c", "b total"),
            ]
        );
    }
}
