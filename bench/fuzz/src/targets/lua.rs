//! The functions that a sysbench script can call, with arguments that they don't expect.
//!
//! An input is a list of calls, a byte for each function and each argument: every input is a script that ends, and none can
//! reach the files or programs of this machine.

use dyno_drivers::{Database, TargetUrl};
use dyno_lua::{LuaScript, ScriptSettings, begin};
use dyno_sysbench::RandomOptions;
use std::fmt::Write as _;
use tempfile::TempDir;

const CALLS: [&str; 34] = [
    "sysbench.rand.uniform(A,B)",
    "sysbench.rand.default(A,B)",
    "sysbench.rand.gaussian(A,B)",
    "sysbench.rand.special(A,B)",
    "sysbench.rand.pareto(A,B)",
    "sysbench.rand.zipfian(A,B)",
    "sysbench.rand.unique(A,B)",
    "sysbench.rand.uniform_uint64(A)",
    "sysbench.rand.uniform_double(A)",
    "sysbench.rand.string(A)",
    "sysbench.rand.varstring(A,B)",
    "sysbench.sql.driver(A)",
    "drv:connect(A)",
    "drv.connect(A)",
    "drv:name()",
    "con:query(A)",
    "con.query(A,B)",
    "con:query_row(A)",
    "con:prepare(A)",
    "con:bulk_insert_init(A)",
    "con:bulk_insert_next(A)",
    "con:bulk_insert_done(A)",
    "con:reconnect(A)",
    "con:disconnect(A)",
    "st:bind_create(A,B)",
    "st:bind_param(A,B)",
    "st:execute(A)",
    "st.execute(A)",
    "st:close()",
    "kept[1]:set(A)",
    "kept[2]:set_rand_str(A)",
    "kept[1]:fetch_row(A)",
    "sysbench.histogram.new(A,B,C)",
    "kept[3]:update(A)",
];

const VALUES: [&str; 33] = [
    "nil",
    "true",
    "-1",
    "0",
    "1",
    "7",
    "2^31",
    "2^53",
    "-2^63",
    "2^64",
    "1e308",
    "0/0",
    "1/0",
    "0.5",
    "''",
    "'a\\0b'",
    "'##@@###'",
    "('#'):rep(70000)",
    "'SELECT 1'",
    "'SELECT NULL, 2.5, x''00ff'''",
    "'SELECT ?'",
    "'INSERT INTO t VALUES (?)'",
    "'INSERT INTO t VALUES'",
    "'(1),(2)'",
    "'DELETE FROM t'",
    "'nonsense'",
    "{}",
    "{1,'a'}",
    "print",
    "con",
    "st",
    "sysbench.sql.type.INT",
    "kept[1]",
];

const HEAD: &str = "function prepare()\n\
    local drv = sysbench.sql.driver()\n\
    local con = drv:connect()\n\
    con:query('CREATE TABLE IF NOT EXISTS t (a)')\n\
    local st = con:prepare('SELECT ?')\n\
    local kept = {}\n";

fn script(input: &[u8]) -> String {
    let mut bytes = input.iter().take(64).map(|byte| usize::from(*byte));
    let mut text = HEAD.to_owned();
    while let Some(byte) = bytes.next() {
        let mut call = CALLS[byte % CALLS.len()].to_owned();
        for place in ['A', 'B', 'C'] {
            if call.contains(place) {
                let value = VALUES[bytes.next().unwrap_or(0) % VALUES.len()];
                call = call.replace(place, value);
            }
        }
        let slot = 1 + byte % 3;
        let _ = writeln!(text, "pcall(function() kept[{slot}] = {call} end)");
    }
    text + "end\n"
}

struct Bench {
    _folder: TempDir,
    database: Database,
    settings: ScriptSettings,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let target: TargetUrl =
            format!("sqlite:{}", folder.path().join("db").display()).parse().expect("a target");
        let settings = ScriptSettings {
            driver: "sqlite",
            command: Some("prepare".to_owned()),
            words: Vec::new(),
            general: Vec::new(),
            given: Vec::new(),
            random: RandomOptions::default(),
            prepares: true,
            seed: 1,
            memory_max: 64 << 20,
            is_dry: false,
            prints_to_stderr: false,
        };
        Bench { _folder: folder, database: Database::open(&target).expect("a database"), settings }
    }
}

pub(super) fn bindings(input: &[u8]) {
    thread_local! {
        static BENCH: Bench = Bench::new();
    }
    let script = LuaScript::from_text("any.lua", script(input).into_bytes());
    BENCH.with(|bench| {
        if let Err(failed) = begin(&bench.database, &script, &bench.settings, false) {
            let error = failed.error;
            assert!(!error.message.is_empty());
            // The script itself is sound: all that can be wrong are its calls.
            assert!(!error.message.contains("syntax error"), "{}", error.message);
        }
    });
}
