//! Arguments that take one of several words.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use dyno_report::Lang;

/// The languages of papers.
pub(crate) const LANGUAGES: &[(&str, Lang)] = &[("en", Lang::En), ("zh", Lang::Zh)];

pub(crate) fn choice<T: Copy + Send + Sync>(
    table: &'static [(&'static str, T)],
) -> impl TypedValueParser<Value = T> {
    let words = PossibleValuesParser::new(table.iter().map(|(word, _)| *word));
    words.try_map(move |given| {
        let found = table.iter().find(|(word, _)| *word == given);
        found.map(|(_, value)| *value).ok_or("an unknown word")
    })
}
