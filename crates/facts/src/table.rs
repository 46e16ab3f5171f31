//! Tables of text for terminals.

use dyno_core::{harmless, in_one_line};
use unicode_width::UnicodeWidthStr;

/// Texts wider than this are broken into lines.
const WIDEST_TEXT: usize = 60;
/// Before the further lines of a first column, which are no rows.
const SET_IN: &str = "  ";

/// Lays out rows below their titles, in columns that are aligned left or right. Long texts are broken into lines, but
/// have none of their own: names may come from anywhere. Chinese characters take two places.
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
            let set_in = |place: usize| if place == 0 { SET_IN } else { "" };
            row.iter().enumerate().map(|(place, cell)| wrapped(cell, set_in(place))).collect()
        })
        .collect();
    let width = |place: usize| {
        let cells = broken.iter().filter_map(|row| row.get(place)).flatten();
        cells.map(|text| text.width()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..titles.len()).map(width).collect();
    let mut out = String::new();
    for row in &broken {
        let height = row.iter().map(Vec::len).max().unwrap_or(0);
        for level in 0..height {
            let mut text = String::new();
            for (place, (cell, wide)) in row.iter().zip(&widths).enumerate() {
                let part = cell.get(level).map_or("", String::as_str);
                let room = " ".repeat(wide - part.width());
                match is_right(place) {
                    true => text += &format!("{room}{part}  "),
                    false => text += &format!("{part}{room}  "),
                }
            }
            out += text.trim_end();
            out.push('\n');
        }
    }
    out
}

/// The text in lines of at most [`WIDEST_TEXT`], broken at blanks.
fn wrapped(text: &str, set_in: &str) -> Vec<String> {
    let line = in_one_line(text);
    let mut lines = vec![String::new()];
    for word in harmless(&line).split(' ') {
        let last = lines.last_mut().expect("there is one");
        if last.is_empty() || last.width() + 1 + word.width() <= WIDEST_TEXT {
            if !last.is_empty() {
                last.push(' ');
            }
            last.push_str(word);
        } else {
            lines.push(format!("{set_in}{word}"));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

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
