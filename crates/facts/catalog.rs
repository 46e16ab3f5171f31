//! Turns the `messages/*.toml` of a crate into Rust constants: the build script of every crate that says something.
//!
//! An entry has its English and its Chinese side by side; `one` is the English for a count of one:
//!
//! ```toml
//! [n_trials]
//! one = "{n} trial"
//! en = "{n} trials"
//! zh = "{n} 次试验"
//! ```
//!
//! In the file `checks.toml` the entries `x_rule`, `x_meaning` and `x_advice` are the texts of the check `x`, together
//! `messages::checks::x`.
//!
//! The crate's `Cargo.toml` names this file as its `build`, its `lib.rs` says `dyno_facts::catalog!()`, and
//! `say!(n_trials, n = 3)` makes a message. An unknown key, a missing language, a place without a value or a value without
//! a place do not compile, and the compiler warns of unused keys.

use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::{env, fs, io};

/// Writes `$OUT_DIR/messages.rs`; panics with the file where an entry is wrong, which Cargo shows as an error of the build.
fn main() {
    // Cargo reads it.
    let _ = writeln!(io::stdout(), "cargo::rerun-if-changed=messages");
    let name = env::var("CARGO_PKG_NAME").expect("Cargo sets the name");
    let target = env::var("OUT_DIR").expect("Cargo sets the target");
    let (mut entries, mut checks) = (BTreeMap::new(), Vec::new());
    for file in fs::read_dir("messages").expect("the crate has messages") {
        let path = file.expect("the folder can be read").path();
        let text = fs::read_to_string(&path).expect("a file of messages can be read");
        let texts_by_key = parse(&text).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
        if path.ends_with("checks.toml") {
            checks.extend(
                texts_by_key
                    .keys()
                    .filter_map(|key| Some(key.strip_suffix("_meaning")?.to_owned())),
            );
        }
        for (key, texts) in texts_by_key {
            let before = entries.insert(key.clone(), texts);
            assert!(before.is_none(), "{}: {key} is in two places", path.display());
        }
    }
    let rust = to_rust(name.strip_prefix("dyno-").unwrap_or(&name), &entries, &checks);
    fs::write(Path::new(&target).join("messages.rs"), rust).expect("written");
}

/// The texts of one key.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Texts {
    one: Option<String>,
    en: String,
    zh: String,
}

/// The entries of a catalog; an error says which of them is wrong.
fn parse(text: &str) -> Result<BTreeMap<String, Texts>, String> {
    let entries: BTreeMap<String, Texts> =
        toml::from_str(text).map_err(|error| error.to_string())?;
    for (key, texts) in &entries {
        let places_en = places(&texts.en);
        if places(&texts.zh) != places_en {
            return Err(format!("{key}: `en` and `zh` have different places"));
        }
        let singular = texts.one.as_deref();
        if singular.is_some_and(|singular| {
            !places_en.contains("n") || !places(singular).is_subset(&places_en)
        }) {
            return Err(format!(
                "{key}: `one` needs the place {{n}} in `en`, and has no other places than that"
            ));
        }
    }
    Ok(entries)
}

/// The names in braces.
fn places(pattern: &str) -> BTreeSet<&str> {
    pattern.split('{').skip(1).filter_map(|part| Some(part.split_once('}')?.0)).collect()
}

/// A constant for each key, so that an unused one is dead code, and one array for looking keys up; and a constant for
/// the texts of each check.
fn to_rust(name: &str, entries: &BTreeMap<String, Texts>, checks: &[String]) -> String {
    let (mut constants, mut array) = (String::new(), String::new());
    for (index, (key, Texts { one, en, zh })) in entries.iter().enumerate() {
        let places: Vec<&str> = places(en).into_iter().collect();
        let _ = writeln!(
            constants,
            "pub(crate) const {key}: &::dyno_facts::MessageTexts = &CATALOG[{index}];"
        );
        let _ = writeln!(
            array,
            "::dyno_facts::MessageTexts {{ key: \"{name}.{key}\", one: {one:?}, en: {en:?}, zh: {zh:?}, \
             places: &{places:?} }},"
        );
    }
    if !checks.is_empty() {
        constants.push_str("pub(crate) mod checks {\n");
        for check in checks {
            let id = check.replace('_', "-");
            let _ = writeln!(
                constants,
                "pub(crate) const {check}: ::dyno_facts::CheckTexts = ::dyno_facts::CheckTexts {{ id: \"{id}\", \
                 rule: super::{check}_rule, meaning: super::{check}_meaning, advice: super::{check}_advice }};"
            );
        }
        constants.push_str("}\n");
    }
    let count = entries.len();
    format!(
        "{constants}\npub(super) static CATALOG: [::dyno_facts::MessageTexts; {count}] = [\n{array}];\n"
    )
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn both_languages_have_the_same_places() {
        assert!(parse("[key]\nen = \"{n} of {all}\"\nzh = \"{all} 中的 {n}\"").is_ok());
        let wrong = [
            ("en = \"{n}\"", "missing field `zh`"),
            ("en = \"{n}\"\nzh = \"{m}\"", "`en` and `zh` have different places"),
            ("one = \"{n} a\"\nen = \"b\"\nzh = \"b\"", "`one` needs the place {n} in `en`"),
            ("en = \"a\"\nzh = \"b\"\nfr = \"c\"", "unknown field `fr`"),
        ];
        for (entry, why) in wrong {
            let error = parse(&format!("[key]\n{entry}")).map(drop).expect_err(entry);
            assert!(error.contains(why), "{entry}: {error}");
        }
    }
}
