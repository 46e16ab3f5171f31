//! A script as a file, and what its states are given.

use crate::machine::LuaError;
use dyno_core::Nanos;
use dyno_drivers::Secret;
use dyno_facts::GeneratorSummary;
use dyno_sysbench::RandomOptions;
use mlua::{ChunkMode, Function, Lua};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// The name of a script that is read from there.
pub const STANDARD_INPUT: &str = "-";

/// The text of a script.
#[derive(Clone, Debug)]
pub struct LuaScript {
    /// The path as on the command line; `stdin` for standard input.
    pub path: String,
    pub(crate) text: Vec<u8>,
    /// Search path of `require`, as Lua writes it.
    pub(crate) search: String,
    pub(crate) uses_database: Arc<AtomicBool>,
    /// Longest time for which a step of its functions has kept a loop, in nanoseconds.
    longest_step: Arc<AtomicU64>,
    /// Time that all steps have kept their loops, in nanoseconds.
    all_steps: Arc<AtomicU64>,
}

/// Folders of sysbench's own scripts in Debian's package and in a build from source.
pub const INSTALLED: [&str; 2] = ["/usr/share/sysbench", "/usr/local/share/sysbench"];

/// General options of the original that decide how a script's numbers are drawn and its statements are sent.
pub const RANDOM_OPTIONS: [&str; 7] = [
    "rand-type",
    "rand-spec-iter",
    "rand-spec-pct",
    "rand-spec-res",
    "rand-pareto-h",
    "rand-zipfian-exp",
    "db-ps-mode",
];

impl LuaScript {
    /// Reads the script at `path`; `-` is standard input.
    ///
    /// # Errors
    /// A sentence when it can't be read.
    pub fn read(path: &str) -> Result<Self, String> {
        if path == STANDARD_INPUT {
            return Ok(LuaScript::from_text("stdin", standard_input()?));
        }
        let text = std::fs::read(path)
            .map_err(|error| format!("The script {path} can't be read: {error}."))?;
        Ok(LuaScript::from_text(path, text))
    }

    /// A script whose file has this text.
    pub fn from_text(path: &str, mut text: Vec<u8>) -> Self {
        if text.starts_with(b"#!") {
            // A comment of Lua's, so that lines keep their numbers.
            text[..2].copy_from_slice(b"--");
        }
        LuaScript {
            path: path.to_owned(),
            text,
            search: search_path(path),
            uses_database: Arc::default(),
            longest_step: Arc::default(),
            all_steps: Arc::default(),
        }
    }

    /// The script as a function that is not executed yet.
    pub(crate) fn chunk(&self, lua: &Lua) -> mlua::Result<Function> {
        let text = lua.load(self.text.as_slice()).set_name(format!("@{}", self.path));
        text.set_mode(ChunkMode::Text).into_function()
    }

    /// Checks that Lua understands the script; what it does shows when it is executed.
    ///
    /// # Errors
    /// Lua's message, with file and line.
    pub(crate) fn parses(&self) -> Result<(), LuaError> {
        self.chunk(&Lua::new())?;
        Ok(())
    }

    /// Returns true if one of its states has asked for a driver of databases.
    pub fn uses_database(&self) -> bool {
        self.uses_database.load(Ordering::Relaxed)
    }

    /// Forgets what the trial before has noted.
    pub(crate) fn begin_trial(&self) {
        for counter in [&self.longest_step, &self.all_steps] {
            counter.store(0, Ordering::Relaxed);
        }
    }

    /// Notes the longest step of a worker, and all of its steps.
    pub(crate) fn note_steps(&self, (longest, all): (Nanos, Nanos)) {
        self.longest_step.fetch_max(longest, Ordering::Relaxed);
        self.all_steps.fetch_add(all, Ordering::Relaxed);
    }

    /// Warns, with advice, that functions have held up other workers in a trial: one that has computed or blocked at
    /// two looks, which are 100 ms apart, or many shorter ones that block. For these answers wait long, or looks meet
    /// functions, while the loops leave most of the window unused.
    pub fn held_up(
        &self,
        workers: u32,
        generator: &GeneratorSummary,
        window_s: f64,
    ) -> Option<String> {
        let GeneratorSummary { loops, loops_cpu_s, loop_queue, .. } = generator;
        let wait_s = loop_queue.as_ref().map_or(0.0, |queue| queue.mean_us / 1e6);
        let loops_s = (f64::from(*loops) * window_s).max(1e-9);
        let busy = loops_cpu_s / loops_s;
        let [step_s, steps_s] = [&self.longest_step, &self.all_steps]
            .map(|nanos| nanos.load(Ordering::Relaxed) as f64 / 1e9);
        let is_kept = steps_s > 0.5 && steps_s / loops_s > f64::max(0.25, 4.0 * busy);
        // Below these limits the system may have kept the loop from its core.
        let problem = if step_s > 0.25 {
            format!(
                "A function of the script has kept its loop for {step_s:.1} s or longer at a stretch, in which \
                 the other workers of the loop waited"
            )
        } else if wait_s > 0.01 && busy < 0.5 || is_kept {
            "Functions of the script have often kept their loop without computing (`os.execute`, a file, a \
             statement in a callback or in its own coroutine), in which the other workers of the loop waited"
                .to_owned()
        } else {
            return None;
        };
        (workers > *loops).then(|| {
            format!(
                "{problem}: `dyno sysbench --loops={workers}` gives each worker its own thread, as sysbench does."
            )
        })
    }

    /// The file's name without folder and extension.
    pub fn name(&self) -> &str {
        Path::new(&self.path).file_stem().and_then(|name| name.to_str()).unwrap_or(&self.path)
    }
}

/// Read once: a sweep executes the script again and again.
fn standard_input() -> Result<Vec<u8>, String> {
    static TEXT: OnceLock<Result<Vec<u8>, String>> = OnceLock::new();
    let text = TEXT.get_or_init(|| {
        let mut text = Vec::new();
        match std::io::stdin().lock().read_to_end(&mut text) {
            Ok(_) => Ok(text),
            Err(error) => {
                Err(format!("The script on standard input (stdin) can't be read: {error}."))
            }
        }
    });
    text.clone()
}

/// The file of a module where a script at this path finds it; without a path: where the original finds a script that is
/// named without its file.
pub fn module_file(script: &str, module: &str) -> Option<PathBuf> {
    find_module(&search_path(script), module)
}

/// The file that Lua finds: the first that can be opened.
fn find_module(search: &str, module: &str) -> Option<PathBuf> {
    let module = module.replace('.', "/");
    let patterns = search.split(';').filter(|pattern| !pattern.is_empty());
    patterns
        .map(|pattern| PathBuf::from(pattern.replace('?', &module)))
        .find(|file| std::fs::File::open(file).is_ok())
}

fn search_path(script: &str) -> String {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    search(script, home.as_deref(), std::env::var("LUA_PATH").ok().as_deref())
}

/// Search path of `require`: the original's places and order, then the script's folder. `;;` of `LUA_PATH` means
/// all of it.
fn search(path: &str, home: Option<&Path>, lua_path: Option<&str>) -> String {
    let module_patterns =
        |folder: &Path| ["?.lua", "?/init.lua"].map(|name| folder.join(name).display().to_string());
    let mut patterns: Vec<String> = module_patterns(Path::new(".")).to_vec();
    patterns.push("./src/lua/?.lua".to_owned());
    let rocks = home
        .into_iter()
        .flat_map(|home| ["5.1", ""].map(|version| home.join(".luarocks/share/lua").join(version)));
    patterns.extend(rocks.flat_map(|folder| module_patterns(&folder)));
    let shared = ["/usr/local/share/lua/5.1", "/usr/share/lua/5.1"].into_iter().chain(INSTALLED);
    patterns.extend(shared.map(|folder| format!("{folder}/?.lua")));
    let folder = Path::new(path).parent().filter(|folder| !folder.as_os_str().is_empty());
    patterns.extend(folder.into_iter().flat_map(module_patterns));
    let usual = patterns.join(";");
    match lua_path.filter(|path| !path.is_empty()) {
        Some(path) if path.contains(";;") => path.replace(";;", &format!(";{usual};")),
        Some(path) => path.to_owned(),
        None => usual,
    }
}

/// The value of a general option, as `sysbench.opt` has it.
#[derive(Clone, Debug, PartialEq)]
pub enum OptionValue {
    Switch(bool),
    Number(f64),
    Text(String),
    /// A password that only the script itself is given.
    Password(Secret),
    List(Vec<String>),
}

/// Settings of all states of a script.
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
    /// Bytes that a state may use; 0 means no limit.
    pub memory_max: usize,
    /// Nothing is sent: all calls of databases succeed.
    pub is_dry: bool,
    /// Stdout is kept for a result: what the script prints goes to stderr.
    pub prints_to_stderr: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_searched_where_the_original_looks() {
        let usual = "./?.lua;./?/init.lua;./src/lua/?.lua;\
                     /h/.luarocks/share/lua/5.1/?.lua;/h/.luarocks/share/lua/5.1/?/init.lua;\
                     /h/.luarocks/share/lua/?.lua;/h/.luarocks/share/lua/?/init.lua;\
                     /usr/local/share/lua/5.1/?.lua;/usr/share/lua/5.1/?.lua;\
                     /usr/share/sysbench/?.lua;/usr/local/share/sysbench/?.lua;my/?.lua;my/?/init.lua";
        let home = Some(Path::new("/h"));
        assert_eq!(search("my/a.lua", home, None), usual);
        assert_eq!(search("my/a.lua", home, Some("/x/?.lua;;")), format!("/x/?.lua;{usual};"));
        assert_eq!(search("my/a.lua", home, Some("/x/?.lua")), "/x/?.lua");
    }

    #[test]
    fn the_first_file_of_a_module_is_the_one_that_counts() {
        let folder = std::env::temp_dir().join(format!("dyno-modules-{}", std::process::id()));
        let (first, second) = (folder.join("1"), folder.join("2"));
        for file in [first.join("b.lua"), second.join("b.lua"), second.join("a/c.lua")] {
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
            std::fs::write(file, "").expect("a file");
        }
        let search = format!(";;{}/?.lua;{}/?.lua", first.display(), second.display());
        assert_eq!(find_module(&search, "b"), Some(first.join("b.lua")));
        assert_eq!(find_module(&search, "a.c"), Some(second.join("a/c.lua")));
        assert_eq!(find_module(&search, "c"), None);
        std::fs::remove_dir_all(&folder).expect("the temporary folder");
    }
}
