//! From words to settings.
//!
//! Every option is `--name=value`; `-` and `_` are the same letter in names; a later option
//! replaces an earlier one. What is neither general nor of the test is refused, unless the test
//! is one that declares no options in the original.

use super::options::{self, DEPRECATED, Settings, general_option, stands_alone};
use dyno_core::options::{OptionError, OptionValues};
use dyno_core::{is_like_password, nearest};
use dyno_runner::failure::Failure;
use dyno_sysbench::{SysbenchTest, dashed, find_option, test_options};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// The meaning of the first plain word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Script {
    /// No plain word at all.
    None,
    Test(SysbenchTest),
    /// 0.5's `parallel_prepare.lua`, whose `run` is what others call `prepare`.
    ParallelPrepare,
    /// A test that is built into sysbench and measures no database.
    BuiltIn(String),
    /// A Lua script that is none of sysbench's own, from a file or from standard input (`-`).
    Lua(String),
    /// Nothing that sysbench would find.
    Unknown(String),
}

/// The installed script that a name means; with a path only if it does not name a file, as in the original.
fn script_module(word: &str) -> Option<PathBuf> {
    match word.strip_suffix(".lua") {
        Some(name) if name.contains('/') => None,
        name => dyno_lua::module_file("", name.unwrap_or(word)),
    }
}

/// A path that can't be one of the original's own scripts, which mean built-in tests if they aren't installed.
fn is_elsewhere(word: &str) -> bool {
    const FOLDERS: [&str; 4] = ["sysbench", "lua", "db", "oltp_legacy"];
    let folders = word.rsplit_once('/').map(|(folders, _)| folders);
    folders.is_some_and(|all| !FOLDERS.contains(&all.rsplit('/').next().unwrap_or_default()))
}

impl Script {
    fn from_word(word: &str) -> Script {
        const BUILT_IN: [&str; 5] = ["fileio", "cpu", "memory", "threads", "mutex"];
        let name = word.rsplit('/').next().unwrap_or(word);
        let module = format!("{word}.lua");
        if BUILT_IN.contains(&word) {
            Script::BuiltIn(word.to_owned())
        } else if [dyno_lua::STANDARD_INPUT, "/dev/stdin"].contains(&word) {
            Script::Lua(dyno_lua::STANDARD_INPUT.to_owned())
        } else if let Some(file) =
            [word, &module].map(Path::new).into_iter().find(|file| file.is_file())
        {
            Script::from_file(file)
        } else if let Some(file) = script_module(word) {
            Script::from_file(&file)
        } else if is_elsewhere(word) {
            Script::Unknown(word.to_owned())
        } else if let Some(test) = SysbenchTest::from_script(word) {
            Script::for_test(test, Path::new(word))
        } else if name.strip_suffix(".lua").unwrap_or(name) == "parallel_prepare" {
            Script::ParallelPrepare
        } else {
            Script::Unknown(word.to_owned())
        }
    }

    /// The test of an original script, whatever its file is called.
    fn from_file(file: &Path) -> Script {
        match original_name(file).and_then(SysbenchTest::from_script) {
            Some(test) => Script::for_test(test, file),
            None => Script::Lua(file.display().to_string()),
        }
    }

    /// The built-in test, unless its script would load an edited `oltp_common.lua`.
    fn for_test(test: SysbenchTest, script: &Path) -> Script {
        let common = dyno_lua::module_file(&script.to_string_lossy(), COMMON);
        if test.is_legacy()
            || test.is_bulk_insert()
            || common.as_deref().is_none_or(|file| original_name(file) == Some(COMMON))
        {
            return Script::Test(test);
        }
        // Named without a file, it is the installed script that loads the edited one.
        let installed = Path::new(dyno_lua::INSTALLED[0]).join(script).with_extension("lua");
        let executed = if script.is_file() { script } else { installed.as_path() };
        Script::Lua(executed.display().to_string())
    }

    /// Returns the built-in test whose options the script takes; `None` for Lua scripts and other commands.
    pub(super) fn test(&self) -> Option<SysbenchTest> {
        match self {
            Script::Test(test) => Some(*test),
            Script::ParallelPrepare => Some(SysbenchTest::V05Oltp),
            _ => None,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct CommandLine {
    pub(super) settings: Settings,
    pub(super) script: Script,
    pub(super) command: Option<String>,
    /// The options of the test as (name, value), for `dyno_sysbench::Options::from_pairs`.
    pub(super) pairs: Vec<(String, String)>,
    /// The options of a user's own script, as typed.
    pub(super) script_options: Vec<(String, Option<String>)>,
    /// General options and their values, in the order given.
    pub(super) given: Vec<(&'static str, String)>,
    /// Sentences for `WARNING:` lines.
    pub(super) warnings: Vec<String>,
    /// The test was named by the deprecated `--test=`.
    pub(super) test_by_option: bool,
    /// A plain word too many.
    pub(super) extra: Option<String>,
}

/// Name and value of an option; `None` for `--name` without `=`.
type GivenOption<'a> = (&'a str, Option<&'a str>);

fn split_option(word: &str) -> GivenOption<'_> {
    word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)))
}

/// The old name of an option, and the new one.
fn find_deprecated(name: &str) -> Option<&'static (&'static str, &'static str)> {
    let name = dashed(name);
    DEPRECATED.iter().find(|(old, _)| *old == name)
}

/// Reads the words after the program's name.
pub(super) fn read(words: &[String]) -> Result<CommandLine, Failure> {
    let options = words.iter().filter_map(|word| word.strip_prefix("--")).map(split_option);
    let mut plain = words.iter().filter(|word| !word.starts_with("--"));
    let by_option = options.clone().rfind(|(name, _)| *name == "test").and_then(|(_, value)| value);
    let test = by_option.or_else(|| plain.next().map(String::as_str));
    let command = plain.next().cloned();
    let mut line = CommandLine {
        settings: Settings::new(),
        script: test.map_or(Script::None, Script::from_word),
        command,
        pairs: Vec::new(),
        script_options: Vec::new(),
        given: Vec::new(),
        warnings: Vec::new(),
        test_by_option: by_option.is_some(),
        extra: plain.next().cloned(),
    };
    // As in the original, an old name counts more than the new one, wherever it appears.
    let (old, new): (Vec<_>, Vec<_>) =
        options.partition(|(name, _)| find_deprecated(name).is_some());
    for option in new.into_iter().chain(old) {
        line.apply(option)?;
    }
    Ok(line)
}

impl CommandLine {
    /// Sets an option; those of the test and of scripts are kept for them.
    fn apply(&mut self, option: GivenOption<'_>) -> Result<(), Failure> {
        let (name, value) = (dashed(option.0), option.1);
        if name == "test" {
            return Ok(());
        }
        if name == "config-file" {
            return self.take_file(value.unwrap_or_default());
        }
        if let Some((old, new)) = find_deprecated(&name) {
            return self.take_deprecated(old, new, value);
        }
        match general_option(&name) {
            Some(row) => self.take_general(row, row.name, value),
            None => self.take_test_option(option),
        }
    }

    fn take_general(
        &mut self,
        row: &'static options::Row,
        typed: &str,
        value: Option<&str>,
    ) -> Result<(), Failure> {
        let is_flag = matches!(row.kind, OptionValues::Flag(_));
        let value = match value {
            None if is_flag => "on",
            None if !stands_alone(row) => return Err(lacks_value(typed)),
            None => "",
            Some("") if !row.takes_empty() => row.default,
            Some(value) => value,
        };
        row.set(&mut self.settings, None, value)
            .map_err(|expected| invalid_option(typed, value, &expected))?;
        self.given.push((row.name, value.to_owned()));
        Ok(())
    }

    /// sysbench ignores an old name whose value is 0, so that `--max-requests=0` keeps `--time`.
    fn take_deprecated(
        &mut self,
        old: &str,
        new: &str,
        value: Option<&str>,
    ) -> Result<(), Failure> {
        if value == Some("0") {
            return Ok(());
        }
        if let Some(row) = general_option(new) {
            self.take_general(row, old, value)?;
        }
        self.warnings.push(format!("--{old} is deprecated, use --{new} instead"));
        Ok(())
    }

    fn take_test_option(&mut self, (name, value): GivenOption<'_>) -> Result<(), Failure> {
        if let Script::Lua(_) = self.script {
            self.script_options.push((name.to_owned(), value.map(str::to_owned)));
            return Ok(());
        }
        let Some(test) = self.script.test() else {
            return Ok(());
        };
        match (find_option(test, name), value) {
            (Some((_, row)), None) if !matches!(row.kind, OptionValues::Flag(_)) => {
                return Err(lacks_value(name));
            }
            (None, _) if !test.accepts_unknown_options() => {
                return Err(self.unknown_option(name, value));
            }
            _ => {}
        }
        self.pairs.push((name.to_owned(), value.unwrap_or("on").to_owned()));
        Ok(())
    }

    /// Returns the known option that is spelled most like this name.
    fn nearest(&self, name: &str) -> Option<&'static str> {
        let test_options =
            self.script.test().into_iter().flat_map(test_options).map(|(name, _)| name);
        let general = options::rows().map(|row| row.name);
        let old = DEPRECATED.iter().map(|(old, _)| *old);
        nearest(name, test_options.chain(general).chain(old).chain(["config-file"]))
    }

    fn unknown_option(&self, name: &str, value: Option<&str>) -> Failure {
        let value = value.map(|value| if is_like_password(name) { "***" } else { value });
        let value = value.map_or(String::new(), |value| format!("={value}"));
        let refusal = Failure::new(format!("invalid option: --{name}{value}"));
        match self.nearest(name) {
            Some(name) => refusal.with_hint(format!("did you mean --{}?", dashed(name))),
            None => refusal
                .with_hint("--help lists the general options, the command help those of a test"),
        }
    }

    /// `name=value` lines; `#` begins a comment. Unknown names are passed over with a warning,
    /// because files are shared between tests.
    fn take_file(&mut self, path: &str) -> Result<(), Failure> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            Failure::new(format!("The file of --config-file can't be read: {path}: {error}."))
        })?;
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (name, value) = split_option(line.strip_prefix("--").unwrap_or(line));
            let value = value.map(config_value);
            let place = format!("{path}, line {}", index + 1);
            self.take_line((name.trim(), value), &place)?;
        }
        Ok(())
    }

    fn take_line(&mut self, option: GivenOption<'_>, place: &str) -> Result<(), Failure> {
        let name = option.0;
        let row_name = dashed(name);
        let is_general = general_option(&row_name).is_some()
            || DEPRECATED.iter().any(|(old, _)| *old == row_name);
        let test_knows_it =
            self.script.test().is_some_and(|test| find_option(test, name).is_some());
        if is_general || test_knows_it || matches!(self.script, Script::Lua(_)) {
            return self.apply(option).map_err(|refusal| {
                let message = format!("{} ({place})", refusal.message).into();
                Failure { message, ..refusal }
            });
        }
        let advice = match self.nearest(name) {
            Some(nearest) => format!("; did you mean {}?", dashed(nearest)),
            None => ".".to_owned(),
        };
        self.warnings.push(format!("{place}: the unknown option {name} is passed over{advice}"));
        Ok(())
    }
}

/// Like the original: a value ends at a blank, and what follows is a comment. A quoted one may have blanks.
fn config_value(text: &str) -> &str {
    match text.trim().strip_prefix('"') {
        Some(quoted) => quoted.split('"').next().unwrap_or_default(),
        None => text.split_whitespace().next().unwrap_or_default(),
    }
}

fn lacks_value(name: &str) -> Failure {
    Failure::new(format!("invalid option: --{name}: it needs a value"))
        .with_hint(format!("write --{name}=VALUE, with an equals sign"))
}

/// Passwords are never repeated: no refusal is about one, because any text is a password.
fn invalid_option(name: &str, value: &str, expected: &str) -> Failure {
    Failure::new(format!("invalid option: --{name}={value}: the value must be {expected}"))
}

/// A refused option of a test, as the command line has it.
pub(super) fn refused_by_test(error: OptionError) -> Failure {
    match (&error.option, &error.mismatch) {
        (Some(name), Some(refused)) => invalid_option(&dashed(name), &refused.0, &refused.1),
        _ => Failure::new(error.message),
    }
}

/// The module that the `oltp_*` scripts load.
pub(super) const COMMON: &str = "oltp_common";

/// The scripts of sysbench 1.0.20 and their digests.
const ORIGINALS: [(&str, &str); 12] = [
    ("bulk_insert", "ea91c80c7a1fed53e8a41cb4a60570e2f2db4bf0f0653404782687ed802e160b"),
    (COMMON, "1a0e8049af545d0c9bdd15ee179620e77e9638e53d41c4dfd72b5673ecd32320"),
    ("oltp_delete", "7eb5fb3c27f5d8b999d0f871636396bcdac261f5193fbf47de9d01cf9c61ac97"),
    ("oltp_insert", "8dc8149db17085398cc739e13b90b0c47ca02c6ba48a3f09c6a361cf4fea44ca"),
    ("oltp_point_select", "958e81b38687a71c718691f114975444ed302a2241011adf4bea784efb85cbe7"),
    ("oltp_read_only", "c1fc53b45c97ff71993b1d0a757a1a4e6697bdad94ae52b32af0f036dd9f546d"),
    ("oltp_read_write", "8da2b4d8c9b18a1525c2cfa278f57281cf1b51e33dde0f541aa5357a9c283ef3"),
    ("oltp_update_index", "456095583dd8171d5b71606a11b45612d3dde9103b6261fdfb8eab86dd6870bb"),
    ("oltp_update_non_index", "43420a4cb8f078069d7854bb24b9d1393a9e77a8d6defe5e6e4520d48b85ee6c"),
    ("oltp_write_only", "cb25097a8e4efce1aa402cdd8f91955bfc435420701dacf9b27e63dfc9dd9a01"),
    ("select_random_points", "648c30eb6857aeb3dd09fb18c67c3215b981809366eb660be91e8343c2fc57f6"),
    ("select_random_ranges", "bde33f164d0d5c17dabc4b9da39961e3ed4ce7d6f552109b69d9c774c1646d86"),
];

/// The name of the original script with the content of this file, whatever the file is called.
pub(super) fn original_name(file: &Path) -> Option<&'static str> {
    let digest = digest(&std::fs::read_to_string(file).ok()?);
    ORIGINALS.iter().find(|(_, known)| *known == digest).map(|(name, _)| *name)
}

/// SHA-256 of what is executed. Packages differ in the first line (`#!`), copies in blanks and line ends.
fn digest(script: &str) -> String {
    let mut hash = Sha256::new();
    for (index, line) in script.lines().enumerate() {
        let line = line.trim();
        // Brackets may begin or end a comment of several lines.
        let is_comment = line.starts_with("--") && !line.contains(['[', ']']);
        if !(line.is_empty() || is_comment || index == 0 && line.starts_with("#!")) {
            hash.update(line);
            hash.update("\n");
        }
    }
    dyno_core::hex(&hash.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Result<CommandLine, Failure> {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        read(&words)
    }

    fn good(given: &[&str]) -> CommandLine {
        words(given).expect("a good command line")
    }

    /// Message and hint of a refused command line.
    fn refusal(given: &[&str]) -> (String, String) {
        let refusal = words(given).expect_err("a command line to refuse");
        (refusal.message.to_string(), refusal.hint.unwrap_or_default())
    }

    #[test]
    fn dashes_and_underscores_are_equal_and_the_later_option_wins() {
        let line =
            good(&["--report_interval=5", "--threads=2", "oltp_read_write", "run", "--threads=8"]);
        assert_eq!((line.settings.report_interval_s, line.settings.threads), (5, 8));
        assert_eq!(line.script, Script::Test(SysbenchTest::ReadWrite));
        assert_eq!(line.command.as_deref(), Some("run"));
        let line = good(&["oltp_read_write", "--table-size=7", "--skip_trx", "run"]);
        let pairs = [("table-size", "7"), ("skip_trx", "on")];
        assert_eq!(line.pairs, pairs.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn a_misspelt_option_is_refused_with_the_nearest_name() {
        assert_eq!(
            refusal(&["--thread=4", "oltp_read_write", "run"]),
            ("invalid option: --thread=4".to_owned(), "did you mean --threads?".to_owned())
        );
        assert_eq!(
            refusal(&["--tabel-size=4", "oltp_read_write", "run"]).1,
            "did you mean --table-size?"
        );
        assert_eq!(refusal(&["--foo", "oltp_read_write", "run"]).0, "invalid option: --foo");
        let masked = refusal(&["--mysql-pasword=geheim", "oltp_read_write", "run"]).0;
        assert_eq!(masked, "invalid option: --mysql-pasword=***");
        assert_eq!(refusal(&["oltp_read_write", "run", "--"]).0, "invalid option: --");
    }

    #[test]
    fn values_that_can_not_be_meant_are_refused() {
        assert_eq!(
            refusal(&["--threads=abc"]).0,
            "invalid option: --threads=abc: the value must be a whole number from 1 to 100000"
        );
        assert_eq!(
            refusal(&["--threads"]),
            (
                "invalid option: --threads: it needs a value".to_owned(),
                "write --threads=VALUE, with an equals sign".to_owned()
            )
        );
        assert_eq!(
            refusal(&["--debug=maybe"]).0,
            "invalid option: --debug=maybe: the value must be on or off"
        );
        assert_eq!(
            refusal(&["oltp_insert", "run", "--tables"]).0,
            "invalid option: --tables: it needs a value"
        );
        assert_eq!(good(&["oltp_insert", "run", "more"]).extra.as_deref(), Some("more"));
    }

    #[test]
    fn an_empty_value_leaves_the_default() {
        let line =
            good(&["--threads=", "--mysql-socket=", "--forced-shutdown=", "oltp_insert", "run"]);
        assert_eq!(line.settings.threads, 1);
        assert!(line.settings.mysql_sockets.is_empty());
        assert_eq!(Settings { time_s: 100, ..line.settings }.grace_s(), Some(5));
    }

    #[test]
    fn old_names_work_with_a_warning_and_zero_is_passed_over() {
        let line = good(&[
            "--num-threads=3",
            "--threads=5",
            "--max-requests=0",
            "--max-time=60",
            "--tx-rate=0",
            "--test=oltp_read_only",
            "run",
        ]);
        assert_eq!((line.settings.threads, line.settings.events, line.settings.time_s), (3, 0, 60));
        assert_eq!(
            line.warnings,
            [
                "--num-threads is deprecated, use --threads instead",
                "--max-time is deprecated, use --time instead"
            ]
        );
        assert!(line.test_by_option);
        assert_eq!(line.script, Script::Test(SysbenchTest::ReadOnly));
        assert_eq!(line.command.as_deref(), Some("run"));
    }

    fn script(word: &str) -> Script {
        good(&[word, "run"]).script
    }

    #[test]
    fn scripts_are_known_by_name_and_by_path() {
        assert_eq!(
            script("/usr/share/sysbench/oltp_insert.lua"),
            Script::Test(SysbenchTest::Insert)
        );
        assert_eq!(script("tests/db/oltp.lua"), Script::Test(SysbenchTest::V05Oltp));
        assert_eq!(
            script("/usr/share/sysbench/tests/include/oltp_legacy/bulk_insert.lua"),
            Script::Test(SysbenchTest::V05BulkInsert)
        );
        assert_eq!(script("tests/db/parallel_prepare.lua"), Script::ParallelPrepare);
        assert_eq!(script("cpu"), Script::BuiltIn("cpu".to_owned()));
        for nowhere in ["nothing", "./oltp_insert.lua", "nothing/oltp_insert.lua"] {
            assert_eq!(script(nowhere), Script::Unknown(nowhere.to_owned()));
        }
        assert_eq!(script("-"), Script::Lua("-".to_owned()));
        assert_eq!(script("/dev/stdin"), Script::Lua("-".to_owned()));
        assert_eq!(good(&[]).script, Script::None);
    }

    #[test]
    fn the_scripts_of_0_5_take_any_option() {
        let line = good(&["--test=tests/db/oltp.lua", "--oltp-table-count=4", "--whatever", "run"]);
        assert_eq!(line.pairs.len(), 2);
    }

    #[test]
    fn config_files_are_read_in_place_and_unknown_names_are_said() {
        let folder = std::env::temp_dir().join(format!("dyno-config-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        let file = folder.join("options");
        std::fs::write(
            &file,
            "# comment\n\nthreads=2 # two\n time = 3\nmysql-user=\"me\"\ntables=4\nskip_trx\nbogus=1\ntread=1\n",
        )
        .expect("a temporary file");
        let option = format!("--config-file={}", file.display());
        let line = good(&["--threads=9", &option, "--time=4", "oltp_read_write", "run"]);
        assert_eq!((line.settings.threads, line.settings.time_s), (2, 4));
        assert_eq!(line.settings.mysql.user, "me");
        assert_eq!(line.pairs.len(), 2);
        let place = file.display();
        assert_eq!(
            line.warnings,
            [
                format!("{place}, line 8: the unknown option bogus is passed over."),
                format!(
                    "{place}, line 9: the unknown option tread is passed over; did you mean threads?"
                ),
            ]
        );
        std::fs::write(&file, "threads=x\n").expect("a temporary file");
        assert!(refusal(&[&option]).0.ends_with(&format!("({place}, line 1)")));
        std::fs::remove_dir_all(&folder).expect("the temporary folder");
        assert!(refusal(&[&option]).0.starts_with("The file of --config-file can't be read: "));
    }

    #[test]
    fn digests_depend_on_what_is_executed() {
        let script =
            "#!/usr/bin/sysbench\n-- Deletes.\nfunction event()\n   con:query(\"x\")\nend\n";
        let copy = "#!/usr/bin/env sysbench\r\n\r\nfunction event()  \r\n\tcon:query(\"x\")\r\nend";
        assert_eq!(digest(script), digest(copy));
        for edited in [
            script.replace('x', "y"),
            script.replace("function", "--[[\nfunction"),
            script.replace("   con", "-- con"),
            format!("{script}done()\n"),
        ] {
            assert_ne!(digest(script), digest(&edited), "{edited}");
        }
    }
}
