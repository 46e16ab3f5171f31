//! Texts of papers.

pub(crate) use dyno_facts::{Lang, Message};
pub(crate) use dyno_judge::first_sentence;

/// True of Chinese characters and full-width punctuation, which are as wide as two Latin letters.
pub(crate) fn is_wide(c: char) -> bool {
    matches!(c, '\u{2e80}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{fe30}'..='\u{fe4f}' | '\u{ff00}'..='\u{ff60}')
}
