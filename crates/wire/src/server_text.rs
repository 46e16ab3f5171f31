//! Texts of servers, which are shown and kept.
//!
//! The names of the columns of a result set.

use dyno_core::{ColumnNames, text_from_bytes};

/// The longest text of a server that is shown or kept; the rest is cut off.
pub const SERVER_TEXT_BYTES: usize = 4 << 10;

/// The text, in UTF-8 whatever the server sent, with `...` in place of what is cut off.
pub fn server_text(bytes: &[u8]) -> String {
    match bytes.get(..SERVER_TEXT_BYTES) {
        Some(start) if bytes.len() > SERVER_TEXT_BYTES => {
            let start = &start[..SERVER_TEXT_BYTES - 3];
            // A letter that the cut went through is left out.
            let cut = start.utf8_chunks().last().is_some_and(|last| !last.invalid().is_empty());
            let text = String::from_utf8_lossy(start);
            let text = if cut { text.trim_end_matches('\u{fffd}') } else { &text };
            format!("{text}...")
        }
        _ => String::from_utf8_lossy(bytes).into_owned(),
    }
}

/// A SQLSTATE: five of `0-9A-Z`. Anything else is none.
pub fn sqlstate(bytes: &[u8]) -> Option<[u8; 5]> {
    let state = <[u8; 5]>::try_from(bytes).ok()?;
    state.iter().all(|c| c.is_ascii_digit() || c.is_ascii_uppercase()).then_some(state)
}

/// Names of columns in one reused buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    text: String,
    ends: Vec<usize>,
}

impl Names {
    pub fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    /// Adds the name of the next column: as [`text_from_bytes`] has it, unless it is longer than any name.
    pub fn push(&mut self, name: &[u8]) {
        match std::str::from_utf8(name) {
            _ if name.len() > SERVER_TEXT_BYTES => self.text.push_str(&server_text(name)),
            Ok(text) => self.text.push_str(text),
            Err(_) => self.text.push_str(&text_from_bytes(name)),
        }
        self.ends.push(self.text.len());
    }
}

impl ColumnNames for Names {
    fn count(&self) -> usize {
        self.ends.len()
    }

    fn name(&self, column: usize) -> &str {
        let start = match column.checked_sub(1) {
            Some(before) => self.ends.get(before).copied(),
            None => Some(0),
        };
        let range = start.zip(self.ends.get(column).copied());
        range.and_then(|(start, end)| self.text.get(start..end)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn long_texts_are_cut_between_letters() {
        assert_eq!(server_text("né\u{e9}".as_bytes()), "né\u{e9}");
        assert_eq!(server_text(&[b'x'; SERVER_TEXT_BYTES]).len(), SERVER_TEXT_BYTES);
        for length in [SERVER_TEXT_BYTES + 1, 1 << 20] {
            let text = server_text(&vec![b'x'; length]);
            assert_eq!(text.len(), SERVER_TEXT_BYTES);
            assert!(text.ends_with("x..."), "{length}");
        }
        // Two bytes a letter: the cut falls into one.
        let text = server_text("\u{e9}".repeat(SERVER_TEXT_BYTES).as_bytes());
        assert!(text.ends_with("\u{e9}...") && text.len() == SERVER_TEXT_BYTES - 1);
    }
    #[test]
    fn a_sqlstate_is_five_digits_and_capitals() {
        assert_eq!(sqlstate(b"40P01"), Some(*b"40P01"));
        for wrong in [&b"40p01"[..], b"4000", b"400011", b"4\x1b[2J", b"40 01", b"4000\xe9", b""] {
            assert_eq!(sqlstate(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn bytes_outside_of_utf_8_stay_distinct() {
        let mut names = Names::default();
        names.push(b"a\xffb");
        let name = text_from_bytes(b"a\xffb");
        assert_eq!((names.name(0), names.name(1), names.count()), (name.as_str(), "", 1));
        names.clear();
        assert_eq!((names.count(), names.name(0)), (0, ""));
    }

    proptest! {
        #[test]
        fn names_read_back(names in prop::collection::vec(".{0,9}", 0..9)) {
            let mut kept = Names::default();
            names.iter().for_each(|name| kept.push(name.as_bytes()));
            prop_assert_eq!(kept.count(), names.len());
            for (column, name) in names.iter().enumerate() {
                prop_assert_eq!(kept.name(column), name);
            }
            prop_assert_eq!(kept.name(names.len()), "");
        }
    }
}
