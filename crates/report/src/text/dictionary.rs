//! The dictionary: English patterns and their Chinese, in `dictionary/*.toml`.

use std::collections::HashMap;
use std::sync::LazyLock;

/// One file for each part of the paper; no pattern stands in two of them.
const FILES: [(&str, &str); 9] = [
    ("paper.toml", include_str!("../../dictionary/paper.toml")),
    ("checks.toml", include_str!("../../dictionary/checks.toml")),
    ("cluster.toml", include_str!("../../dictionary/cluster.toml")),
    ("verdict.toml", include_str!("../../dictionary/verdict.toml")),
    ("published.toml", include_str!("../../dictionary/published.toml")),
    ("fault.toml", include_str!("../../dictionary/fault.toml")),
    ("tpcc.toml", include_str!("../../dictionary/tpcc.toml")),
    ("tpch.toml", include_str!("../../dictionary/tpch.toml")),
    ("stored.toml", include_str!("../../dictionary/stored.toml")),
];

static ENTRIES: LazyLock<HashMap<String, String>> = LazyLock::new(|| {
    // The tests parse every file, so none of them is skipped here.
    FILES
        .iter()
        .filter_map(|(_, text)| toml::from_str::<HashMap<_, _>>(text).ok())
        .flatten()
        .collect()
});

/// The Chinese of a pattern.
pub(crate) fn chinese(pattern: &str) -> Option<&'static str> {
    ENTRIES.get(pattern).map(String::as_str)
}

/// The patterns of sentences that others than this crate have written into run folders.
pub(super) fn stored_patterns() -> Vec<(String, String)> {
    let file = FILES.iter().find(|(name, _)| *name == "stored.toml");
    let entries = file.and_then(|(_, text)| toml::from_str::<HashMap<String, String>>(text).ok());
    let mut entries: Vec<(String, String)> = entries.unwrap_or_default().into_iter().collect();
    // The longest first: a pattern may be the beginning of another one.
    entries.sort_by(|a, b| b.0.len().cmp(&a.0.len()).then_with(|| a.cmp(b)));
    entries
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn places(pattern: &str) -> BTreeSet<&str> {
        let inside = pattern.split('{').skip(1);
        inside.filter_map(|part| Some(part.split_once('}')?.0)).collect()
    }

    #[test]
    fn every_file_is_a_dictionary_and_no_pattern_stands_in_two() {
        let mut known: HashMap<String, &str> = HashMap::new();
        for (file, text) in FILES {
            let entries: HashMap<String, String> = toml::from_str(text).expect(file);
            for (pattern, chinese) in entries {
                assert!(!chinese.trim().is_empty(), "{file}: {pattern}");
                assert_eq!(places(&pattern), places(&chinese), "{file}: {pattern}");
                let other = known.insert(pattern.clone(), file);
                assert_eq!(other, None, "{file}: {pattern}");
            }
        }
    }
}
