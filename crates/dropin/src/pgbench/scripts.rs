//! Which scripts a run executes: built-in ones by name, files, and their weights.

use super::getopt::long;
use super::refusal::Refusal;
use dyno_core::text_to_bytes;
use dyno_pgbench::script::{Builtin, QueryMode, Script, builtins, find_builtin};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// At most this many scripts are taken.
const SCRIPTS_MAX: usize = 128;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Builtin(&'static Builtin),
    /// `-` is standard input.
    File(String),
}

/// The list of `-b list`.
pub(super) fn list() -> String {
    let mut text = "Available builtin scripts:\n".to_owned();
    for Builtin { name, description, .. } in builtins() {
        text.push_str(&format!("  {name:>13}: {description}\n"));
    }
    text.push('\n');
    text
}

/// The only built-in script whose name begins so.
pub(super) fn find(prefix: &str) -> Result<&'static Builtin, Refusal> {
    find_builtin(prefix).map_err(|complaint| Refusal::error(complaint).with_text(&list()))
}

/// `SCRIPT@WEIGHT`: the weight is what follows the last `@`, 1 where there is none.
pub(super) fn split_weight(text: &str) -> Result<(&str, u32), Refusal> {
    let Some((script, weight)) = text.rsplit_once('@') else { return Ok((text, 1)) };
    match long(weight) {
        (Some(number), "") if !weight.is_empty() => match u32::try_from(number) {
            Ok(number) if i32::try_from(number).is_ok() => Ok((script, number)),
            _ => Err(Refusal::error(format_args!(
                "weight specification out of range (0 .. {}): {number}",
                i32::MAX
            ))),
        },
        _ => Err(Refusal::error(format_args!("invalid weight specification: @{weight}"))),
    }
}

fn read_file(name: &str) -> Result<Vec<u8>, Refusal> {
    let mut text = Vec::new();
    let read = if name == "-" {
        io::stdin().lock().read_to_end(&mut text)
    } else {
        let mut file = File::open(OsStr::from_bytes(&text_to_bytes(name)))
            .map_err(|error| format!("could not open file \"{name}\": {}", words(&error)))?;
        file.read_to_end(&mut text)
    };
    read.map_err(|error| format!("could not read file \"{name}\": {}", words(&error)))?;
    Ok(text)
}

/// The system's words for an error, without the number that Rust adds.
pub(super) fn words(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

#[derive(Debug)]
struct Loaded {
    description: String,
    text: Vec<u8>,
    weight: u32,
    script: Script,
}

/// Scripts as a suite has them.
pub(super) struct TestOfScripts {
    pub(super) test: String,
    /// Each with its weight; none for a test of pgbench's own.
    pub(super) named: Vec<String>,
    pub(super) texts: Vec<(String, String)>,
}

#[derive(Debug, Default)]
pub(super) struct Loader {
    loaded: Vec<Loaded>,
    has_builtin: bool,
}

impl Loader {
    pub(super) fn into_scripts(self) -> Vec<(Script, u32)> {
        self.loaded.into_iter().map(|loaded| (loaded.script, loaded.weight)).collect()
    }

    /// What a suite calls them.
    pub(super) fn to_suite(&self) -> Result<TestOfScripts, Refusal> {
        let builtin = |of: &Loaded| builtins().iter().find(|one| one.description == of.description);
        if let [loaded] = &self.loaded[..]
            && let Some(builtin) = builtin(loaded)
        {
            let test = builtin.name.to_owned();
            return Ok(TestOfScripts { test, named: Vec::new(), texts: Vec::new() });
        }
        let (mut named, mut texts) = (Vec::new(), Vec::new());
        for (number, loaded) in (1..).zip(&self.loaded) {
            let path = Path::new(&loaded.description);
            let file = match builtin(loaded) {
                Some(builtin) => builtin.name.into(),
                None => path.file_name().unwrap_or(path.as_os_str()).to_string_lossy(),
            };
            // Two may have the same name.
            let name = format!("{number}/{file}");
            let text = String::from_utf8(loaded.text.clone()).map_err(|_| {
                Refusal::error(format_args!("the script {file} is not UTF-8, as --paper needs it"))
            })?;
            named.push(format!("{name}@{}", loaded.weight));
            texts.push((name, text));
        }
        Ok(TestOfScripts { test: "script".to_owned(), named, texts })
    }

    /// True when a built-in script is among them: these need pgbench's tables.
    pub(super) fn has_builtin(&self) -> bool {
        self.has_builtin
    }

    pub(super) fn load(&mut self, source: &Source, weight: u32) -> Result<(), Refusal> {
        let (description, text) = match source {
            Source::Builtin(builtin) => (builtin.description, builtin.text.as_bytes().to_vec()),
            Source::File(name) => (name.as_str(), read_file(name)?),
        };
        self.has_builtin |= matches!(source, Source::Builtin(_));
        // The mode is known only when all options are; most mistakes don't depend on it.
        let script =
            Script::parse(&text, description, QueryMode::Simple).map_err(Refusal::error)?;
        if self.loaded.len() >= SCRIPTS_MAX {
            return Err(Refusal::error(format_args!(
                "at most {SCRIPTS_MAX} SQL scripts are allowed"
            )));
        }
        self.loaded.push(Loaded { description: description.to_owned(), text, weight, script });
        Ok(())
    }

    /// All options are read: scripts are sent in this mode.
    pub(super) fn complete(&mut self, mode: QueryMode) -> Result<(), Refusal> {
        if mode != QueryMode::Simple {
            for Loaded { description, text, script, .. } in &mut self.loaded {
                *script = Script::parse(text, description, mode).map_err(Refusal::error)?;
            }
        }
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.loaded.len()
    }

    pub(super) fn total_weight(&self) -> u64 {
        self.loaded.iter().map(|loaded| u64::from(loaded.weight)).sum()
    }
}
