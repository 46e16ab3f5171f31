//! Texts of others: of servers, run folders, scripts and other machines. They are shown, and nothing obeys them.

use std::borrow::Cow;

/// True of what a terminal or a page obeys instead of showing it: controls, line separators, and what turns the
/// direction of letters or is not seen at all. Joiners (U+200C, U+200D) are none: emoji and whole scripts need them.
pub fn is_command(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}'
                | '\u{200b}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2066}'..='\u{2069}'
                | '\u{feff}'
        )
}

/// The text with U+FFFD in place of each command; ends of lines and tabs stay.
pub fn harmless(text: &str) -> Cow<'_, str> {
    let is_obeyed = |c: char| is_command(c) && !matches!(c, '\n' | '\t');
    match text.contains(is_obeyed) {
        true => text.replace(is_obeyed, "\u{fffd}").into(),
        false => text.into(),
    }
}

/// The text in one line, of which no part can be taken for a line of dyno's own.
pub fn in_one_line(text: &str) -> Cow<'_, str> {
    let ends = |c: char| matches!(c, '\n'..='\r' | '\u{85}' | '\u{2028}' | '\u{2029}');
    if !text.contains(ends) {
        return text.into();
    }
    let lines = text.split(ends).map(str::trim).filter(|line| !line.is_empty());
    let (blanks, _) = text.split_at(text.len() - text.trim_start_matches(' ').len());
    (blanks.to_owned() + &lines.collect::<Vec<_>>().join(" ")).into()
}

/// A document of JSON with each command as its escape: a terminal obeys none, and a reader gets the same data.
pub fn harmless_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        // Outside of strings JSON has no others than these.
        match is_command(c) && !matches!(c, '\n' | '\r' | '\t') {
            true => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Letters, and whether they are obeyed.
    const LETTERS: [(&str, bool); 8] = [
        ("\0\u{7}\u{8}\u{b}\u{c}\r\u{1b}\u{1f}\u{7f}", true),
        ("\u{80}\u{85}\u{90}\u{9b}\u{9d}\u{9f}", true),
        ("\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}", true),
        ("\u{2066}\u{2067}\u{2068}\u{2069}\u{200e}\u{200f}\u{61c}", true),
        ("\u{2028}\u{2029}\u{200b}\u{feff}", true),
        ("a ~\u{a0}\u{e9}\u{4e2d}\u{5d0}\u{627}\u{fffd}", false),
        ("\u{200c}\u{200d}\u{1f468}\u{200d}\u{1f469}\u{fe0f}", false),
        ("\u{2010}\u{2013}\u{2026}\u{202f}\u{2027}\u{2065}", false),
    ];

    #[test]
    fn what_is_obeyed_is_replaced_and_nothing_else() {
        for (letters, is_obeyed) in LETTERS {
            for c in letters.chars() {
                assert_eq!(is_command(c), is_obeyed, "{c:?}");
            }
            let shown = harmless(letters);
            match is_obeyed {
                true => assert!(shown.chars().all(|c| c == '\u{fffd}'), "{letters:?}: {shown:?}"),
                false => assert_eq!(shown, letters),
            }
        }
        assert_eq!(harmless("a\tb\n"), "a\tb\n");
        assert_eq!(harmless("\u{1b}[2Jx\u{202e}y\r\n"), "\u{fffd}[2Jx\u{fffd}y\u{fffd}\n");
    }

    #[test]
    fn a_text_of_several_lines_is_one_line() {
        for (text, line) in [
            ("plain  text ", "plain  text "),
            ("it failed\nOK: everything passed\n", "it failed OK: everything passed"),
            ("a\r\n\r\n  b\u{85}c\u{2028}d\u{2029}e\u{b}f\u{c}g", "a b c d e f g"),
            ("  - a\n  b\n", "  - a b"),
            ("\n", ""),
        ] {
            assert_eq!(in_one_line(text), line, "{text:?}");
        }
    }

    #[test]
    fn json_keeps_its_data_without_commands() {
        let json = "{\n  \"a\": \"\u{202e}x\u{9b}\u{7f}\u{feff}\u{4e2d}\"\n}\n";
        let shown = harmless_json(json);
        assert_eq!(shown, "{\n  \"a\": \"\\u202ex\\u009b\\u007f\\ufeff\u{4e2d}\"\n}\n");
        assert_eq!(harmless_json(&shown), shown);
    }
}
