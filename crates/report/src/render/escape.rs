//! What keeps texts from outside from becoming markup.

use crate::svg::escape;

/// A path as a relative link: nothing in it is read as a scheme, a query or markup.
pub(super) fn path(text: &str) -> String {
    let mut link = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                link.push(char::from(byte));
            }
            other => link.push_str(&format!("%{other:02X}")),
        }
    }
    link
}

/// A sentence for HTML: what stands between backticks is code.
pub(super) fn coded(text: &str) -> String {
    let parts: Vec<String> = text.split('`').map(escape).collect();
    let is_paired = parts.len() % 2 == 1;
    if !is_paired {
        return escape(text);
    }
    let tags = |(place, part): (usize, String)| match place % 2 {
        0 => part,
        _ => format!("<code>{part}</code>"),
    };
    parts.into_iter().enumerate().map(tags).collect()
}

/// A text as code in a cell of a Markdown table.
pub(super) fn markdown_code(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let text: String = text.replace('`', "'").replace('|', "\\|").chars().map(plain).collect();
    format!("`{text}`")
}

/// A text that Markdown shows as it is.
pub(super) fn markdown_text(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '|' | '`' | '*' | '_' | '[' | ']' | '\\' | '#' => escaped.extend(['\\', c]),
            '<' => escaped.push_str("&lt;"),
            '&' => escaped.push_str("&amp;"),
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_in_sentences_is_marked_and_nothing_else_becomes_markup() {
        assert_eq!(coded("`a < b` or `c`"), "<code>a &lt; b</code> or <code>c</code>");
        assert_eq!(coded("a ` alone <b>"), "a ` alone &lt;b&gt;");
    }

    #[test]
    fn a_path_is_no_url() {
        assert_eq!(path("../a b/javascript:x?y#(z)"), "../a%20b/javascript%3Ax%3Fy%23%28z%29");
    }
}
