//! Turns the `messages/*.toml` of a crate into Rust constants when the crate is built.
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
//! The crate's `build.rs` calls [`generate`], its `lib.rs` says `dyno_facts::catalogue!()`, and `say!(n_trials,
//! n = 3)` makes a message. An unknown key, a missing language, a place without a value or a value without a
//! place do not compile, and the compiler warns of a key that nobody uses.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::{env, fs, io};

/// Writes `$OUT_DIR/messages.rs` from the folder `messages` of the crate that is being built.
///
/// # Panics
/// With file and key, when a file can't be read or an entry is wrong. Cargo shows that as an error of the build.
pub fn generate() {
    // Cargo reads it.
    let _ = writeln!(io::stdout(), "cargo::rerun-if-changed=messages");
    let name = env::var("CARGO_PKG_NAME").expect("Cargo sets the name");
    let name = name.strip_prefix("dyno-").unwrap_or(&name);
    let folder = env::var("CARGO_MANIFEST_DIR").expect("Cargo sets the folder");
    let target = env::var("OUT_DIR").expect("Cargo sets the target");
    let entries = read(&Path::new(&folder).join("messages")).unwrap_or_else(|why| panic!("{why}"));
    fs::write(Path::new(&target).join("messages.rs"), rust(name, &entries)).expect("written");
}

/// The texts of one key.
struct Texts {
    one: Option<String>,
    en: String,
    zh: String,
    /// True in `checks.toml`.
    is_of_check: bool,
}

fn read(folder: &Path) -> Result<BTreeMap<String, Texts>, String> {
    let mut entries = BTreeMap::new();
    let files = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for file in files {
        let path = file.map_err(|error| error.to_string())?.path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let at = |why: String| format!("{}: {why}", path.display());
        let text = fs::read_to_string(&path).map_err(|error| at(error.to_string()))?;
        let table: toml::Table = text.parse().map_err(|error| at(format!("{error}")))?;
        for (key, value) in table {
            let mut texts = texts(&value).map_err(|why| at(format!("{key}: {why}")))?;
            texts.is_of_check = path.ends_with("checks.toml");
            if entries.insert(key.clone(), texts).is_some() {
                return Err(at(format!("{key} stands in two places")));
            }
        }
    }
    Ok(entries)
}

fn texts(value: &toml::Value) -> Result<Texts, String> {
    let table = value.as_table().ok_or("it needs `en` and `zh`")?;
    if let Some(other) = table.keys().find(|key| !["one", "en", "zh"].contains(&key.as_str())) {
        return Err(format!("`{other}` is not one of `one`, `en`, `zh`"));
    }
    let text = |name: &str| table.get(name).and_then(|text| text.as_str()).map(str::to_owned);
    let needed = |name: &str| text(name).ok_or_else(|| format!("it has no `{name}`"));
    let texts =
        Texts { one: text("one"), en: needed("en")?, zh: needed("zh")?, is_of_check: false };
    let own = places(&texts.en);
    if texts.one.is_some() && !own.contains("n") {
        return Err("`one` needs the place {n} in `en`".to_owned());
    }
    if places(&texts.zh) != own {
        return Err("`en` and `zh` have different places".to_owned());
    }
    if !texts.one.as_deref().map(places).unwrap_or_default().is_subset(&own) {
        return Err("`one` has a place that `en` has not".to_owned());
    }
    Ok(texts)
}

/// The names in braces.
fn places(pattern: &str) -> BTreeSet<&str> {
    let inside = pattern.split('{').skip(1);
    inside.filter_map(|part| Some(part.split_once('}')?.0)).collect()
}

/// A constant for each key, so that an unused one is dead code, beside one array for looking keys up.
fn rust(name: &str, entries: &BTreeMap<String, Texts>) -> String {
    let mut constants = String::new();
    let mut array = String::new();
    for (index, (key, texts)) in entries.iter().enumerate() {
        let places: Vec<&str> = places(&texts.en).into_iter().collect();
        let _ = writeln!(
            constants,
            "pub(crate) const {key}: &::dyno_facts::MessageTexts = &CATALOGUE[{index}];"
        );
        let _ = writeln!(
            array,
            "::dyno_facts::MessageTexts {{ key: {:?}, one: {:?}, en: {:?}, zh: {:?}, places: &{places:?} }},",
            format!("{name}.{key}"),
            texts.one,
            texts.en,
            texts.zh,
        );
    }
    let count = entries.len();
    let checks = checks(entries);
    format!(
        "{constants}\n{checks}\npub(super) static CATALOGUE: [::dyno_facts::MessageTexts; {count}] = [\n{array}];\n"
    )
}

/// A constant for the texts of each check.
fn checks(entries: &BTreeMap<String, Texts>) -> String {
    let names = entries.iter().filter(|(_, texts)| texts.is_of_check);
    let names: Vec<&str> = names.filter_map(|(key, _)| key.strip_suffix("_meaning")).collect();
    if names.is_empty() {
        return String::new();
    }
    let constant = |name: &&str| {
        let id = name.replace('_', "-");
        format!(
            "pub(crate) const {name}: ::dyno_facts::CheckTexts = ::dyno_facts::CheckTexts {{ id: {id:?}, rule: \
             super::{name}_rule, meaning: super::{name}_meaning, advice: super::{name}_advice }};\n"
        )
    };
    format!("pub(crate) mod checks {{\n{}}}\n", names.iter().map(constant).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Texts, String> {
        texts(&toml::Value::Table(text.parse().expect("TOML")))
    }

    #[test]
    fn both_languages_have_the_same_places() {
        assert!(parse("en = \"{n} of {all}\"\nzh = \"{all} 中的 {n}\"").is_ok());
        let wrong = [
            ("en = \"{n}\"", "it has no `zh`"),
            ("en = \"{n}\"\nzh = \"{m}\"", "`en` and `zh` have different places"),
            ("one = \"{n} a\"\nen = \"b\"\nzh = \"b\"", "`one` needs the place {n} in `en`"),
            ("en = \"a\"\nzh = \"b\"\nfr = \"c\"", "`fr` is not one of `one`, `en`, `zh`"),
        ];
        for (text, why) in wrong {
            assert_eq!(parse(text).err().as_deref(), Some(why), "{text}");
        }
    }
}
