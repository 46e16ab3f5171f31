//! A script as a file, and what its states are given.

use dyno_sysbench::RandomOptions;
use std::path::{Path, PathBuf};

/// The text of a script.
#[derive(Clone, Debug)]
pub struct LuaScript {
    /// As on the command line.
    pub path: String,
    pub(crate) text: Vec<u8>,
    /// Where `require` looks, as Lua writes it.
    pub(crate) search: String,
}

/// Where Debian's package and a build from source put sysbench's own scripts.
pub const INSTALLED: [&str; 2] = ["/usr/share/sysbench", "/usr/local/share/sysbench"];

impl LuaScript {
    /// Reads the script at `path`.
    ///
    /// # Errors
    /// A sentence when the file can't be read.
    pub fn read(path: &str) -> Result<Self, String> {
        let mut text = std::fs::read(path)
            .map_err(|error| format!("The script {path} can't be read: {error}."))?;
        if text.starts_with(b"#!") {
            // A comment of Lua's, so that lines keep their numbers.
            text[..2].copy_from_slice(b"--");
        }
        let folder = Path::new(path).parent().filter(|folder| !folder.as_os_str().is_empty());
        let mut folders = vec![PathBuf::from(".")];
        folders.extend(folder.map(Path::to_owned));
        folders.extend(INSTALLED.map(PathBuf::from));
        let mut patterns: Vec<String> = folders
            .iter()
            .flat_map(|folder| {
                ["?.lua", "?/init.lua"].map(|name| folder.join(name).display().to_string())
            })
            .collect();
        patterns.extend(std::env::var("LUA_PATH").ok().filter(|path| !path.is_empty()));
        Ok(LuaScript { path: path.to_owned(), text, search: patterns.join(";") })
    }

    /// The file's name without folder and extension.
    pub fn name(&self) -> &str {
        Path::new(&self.path).file_stem().and_then(|name| name.to_str()).unwrap_or(&self.path)
    }
}

/// The value of a general option, as `sysbench.opt` has it.
#[derive(Clone, Debug, PartialEq)]
pub enum OptionValue {
    Switch(bool),
    Number(f64),
    Text(String),
    List(Vec<String>),
}

/// What all states of a script are given.
#[derive(Clone, Debug)]
pub struct ScriptSettings {
    /// `mysql`, `pgsql` or `sqlite`.
    pub driver: &'static str,
    pub command: Option<String>,
    /// The words of the command line, without passwords.
    pub words: Vec<String>,
    /// General options by their names in `sysbench.opt`.
    pub general: Vec<(String, OptionValue)>,
    /// Options of the script as typed; the value of one without `=` is `None`.
    pub given: Vec<(String, Option<String>)>,
    pub random: RandomOptions,
    /// False with `--db-ps-mode=disable`: bound values then become part of the text.
    pub prepares: bool,
    /// Not 0.
    pub seed: u32,
    /// Bytes that a state may use.
    pub memory_max: usize,
}
