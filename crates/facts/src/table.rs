//! Tables of text for terminals.

use unicode_width::UnicodeWidthStr;

/// Texts wider than this are broken into lines.
const WIDEST_TEXT: usize = 60;

/// Lays out rows below their titles, in columns that are aligned left or right. Long texts are broken into lines;
/// Chinese characters take two places.
pub fn text_table(
    titles: &[impl AsRef<str>],
    rows: &[Vec<String>],
    is_right: impl Fn(usize) -> bool,
) -> String {
    let titles: Vec<String> = titles.iter().map(|title| title.as_ref().to_owned()).collect();
    let broken: Vec<Vec<Vec<String>>> = [&titles]
        .into_iter()
        .chain(rows)
        .map(|row| row.iter().map(|cell| wrapped(cell)).collect())
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

/// The text in lines of at most [`WIDEST_TEXT`], broken at blanks and where it has lines of its own, as errors of servers
/// have.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().flat_map(wrapped_line).collect();
    if lines.is_empty() {
        lines.push(String::new());
    }
    lines
}

fn wrapped_line(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().expect("there is one");
        if last.is_empty() || last.width() + 1 + word.width() <= WIDEST_TEXT {
            if !last.is_empty() {
                last.push(' ');
            }
            last.push_str(word);
        } else {
            lines.push(word.to_owned());
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
        assert_eq!((lines.len(), lines[2]), (3, "b".repeat(20).as_str()));
    }

    #[test]
    fn lines_of_a_text_stay_in_its_column() {
        let rows = [vec!["1".to_owned(), "deadlock\nDETAIL:  it waits".to_owned(), "x".to_owned()]];
        let text = text_table(&["n", "text", "of"], &rows, |_| false);
        assert_eq!(
            text,
            "n  text               of\n1  deadlock           x\n   DETAIL:  it waits\n"
        );
    }
}
