//! Texts of servers, which are shown and kept.

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
