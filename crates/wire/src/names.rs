//! The names of the columns of a result set.

use crate::server_text::{SERVER_TEXT_BYTES, server_text};
use dyno_core::{ColumnNames, text_from_bytes};

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
