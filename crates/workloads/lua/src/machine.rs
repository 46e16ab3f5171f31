//! One Lua state: the script in it, and the coroutine that executes its functions.
//!
//! Code is compiled, and no hook is set: [`crate::watch`] ends what computes without an end.

use crate::random::{Numbers, UniqueNumbers};
use crate::raw::{self, Halt, LuaRequest, LuaShared, Plain};
use crate::script::{LuaScript, OptionValue, ScriptSettings};
use crate::watch::ReportStat;
use crate::watch::Watch;
use crate::workload::ScriptCounters;
use dyno_core::{DbError, ParamType};
use mlua::{
    Function, IntoLuaMulti, Lua, LuaOptions, MultiValue, StdLib, String as LuaText, Table, Thread,
    Value, ffi,
};
use std::cell::{Cell, RefCell};
use std::ffi::c_int;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The coroutine's next request.
#[derive(Debug)]
pub(crate) enum LuaStep {
    /// The function has ended, with the text that it returned.
    Done(Option<String>),
    /// The event has ended, and with it the worker.
    Last,
    /// The function ended with an error that is ignored, the script's or a database's: the event begins again.
    Restart {
        is_own: bool,
    },
    Failed(LuaError),
    Connect,
    Disconnect(usize),
    Reconnect(usize),
    /// A query with the text that the machine shares.
    Query(usize),
    Prepare(usize, LuaText),
    Bind(usize, Vec<ParamType>),
    /// A statement.
    Close(usize),
    /// With the values that the machine shares.
    Execute(usize),
    SleepUs(f64),
    /// An event of a `thread_run()` has ended, which waits for the next one.
    Stopped,
    /// A `thread_run()` waits until the engine has dealt with an error that is ignored.
    Ignored,
}

/// Arguments of [`LuaMachine::resume`] for an event, and for one that begins again.
pub(crate) const EVENT: i32 = 1;
pub(crate) const AGAIN: i32 = 2;

const EVENT_STOPPED: &str = "sb_event_stop() must be called by thread_run() itself: neither in a coroutine of the \
                             script's own nor below a function of C";

const PRINTS_TO_STDERR: &str = "io.output(io.stderr) io.stdout = io.stderr";

/// Parts that are loaded after the prelude, by the names that tracebacks have for them.
const PARTS: [(&str, &str); 4] = [
    ("=sysbench/options.lua", include_str!("options.lua")),
    ("=sysbench/modules.lua", include_str!("modules.lua")),
    ("=sysbench/legacy.lua", include_str!("legacy.lua")),
    ("=sysbench/reports.lua", include_str!("reports.lua")),
];

/// An error that ends a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LuaError {
    /// With file and line, where Lua knows them.
    pub message: String,
    /// Lua's traceback; may be empty.
    pub trace: String,
    /// The error of a database, if that is the reason.
    pub failure: Option<DbError>,
    /// The command line is wrong, not the script.
    pub is_refusal: bool,
}

impl LuaError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        let message = message.into();
        LuaError { message, trace: String::new(), failure: None, is_refusal: false }
    }
}

impl From<mlua::Error> for LuaError {
    fn from(error: mlua::Error) -> Self {
        match error {
            mlua::Error::SyntaxError { message, .. } | mlua::Error::RuntimeError(message) => {
                LuaError::new(message)
            }
            other => LuaError::new(other.to_string()),
        }
    }
}

/// The system has refused what a loop needs.
impl From<io::Error> for LuaError {
    fn from(error: io::Error) -> Self {
        LuaError::new(error.to_string())
    }
}

/// The answer to a request.
pub(crate) enum LuaAnswer {
    Nothing,
    /// A statement has succeeded.
    Done {
        has_rows: bool,
    },
    Number(usize),
    Error {
        errno: u32,
        sqlstate: String,
        message: String,
        is_ignored: bool,
    },
}

#[derive(Debug)]
pub(crate) struct LuaMachine {
    /// Keeps the coroutine.
    _thread: Thread,
    /// Has failed: Lua would take it for one that has not begun.
    pub(crate) is_dead: Cell<bool>,
    pub(crate) watch: Rc<Watch>,
    pub(crate) counters: Rc<ScriptCounters>,
    /// The result of `host.stat()` in the hooks of reports.
    stat: Rc<RefCell<ReportStat>>,
    /// Closed after the thread.
    lua: Lua,
    /// Closed after the state, whose functions have its address.
    pub(crate) shared: Rc<LuaShared>,
}

/// `debug` with what only looks: the rest could reach what dyno keeps in the state.
#[expect(unsafe_code, reason = "mlua offers `debug` as a whole or not at all")]
fn offer_debug(lua: &Lua) -> mlua::Result<()> {
    // SAFETY: opened as Lua itself opens it; nothing is taken from the stack or left there.
    unsafe {
        lua.exec_raw::<()>((), |state| {
            ffi::lua_pushcfunction(state, ffi::luaopen_debug);
            ffi::lua_call(state, 0, 0);
        })?;
    }
    lua.load("debug = { traceback = debug.traceback, getinfo = debug.getinfo } package.loaded.debug = debug").exec()
}

impl LuaMachine {
    /// A state for worker `worker` in which the script is not executed yet.
    pub(crate) fn new(
        script: &LuaScript,
        settings: &ScriptSettings,
        unique: &Arc<UniqueNumbers>,
        worker: u32,
    ) -> Result<(Self, Function), LuaError> {
        // The protected calls are Lua's own: within mlua's, a script could not wait for a database.
        let options = LuaOptions::new().catch_rust_panics(true);
        let lua = Lua::new_with(StdLib::ALL_SAFE, options)?;
        lua.set_memory_limit(settings.memory_max)?;
        lua.load("io.stdout:setvbuf('line')").exec()?;
        offer_debug(&lua)?;
        if settings.prints_to_stderr {
            lua.load(PRINTS_TO_STDERR).exec()?;
        }
        lua.globals().get::<Table>("package")?.set("path", script.search.as_str())?;
        let host = host(&lua, script, settings, worker)?;
        let numbers = Numbers::new(settings.seed, worker, settings.random);
        let shared = Rc::new(LuaShared::new(numbers, unique, settings.memory_max));
        raw::offer(&shared, &lua, &host)?;
        crate::prepared::offer_rows(&shared, &lua, &host)?;
        let counters = Rc::new(ScriptCounters::default());
        counters.offer(&lua, &host)?;
        let stat = Rc::new(RefCell::new(ReportStat::default()));
        let hook_stat = Rc::clone(&stat);
        host.set("stat", lua.create_function(move |lua, ()| hook_stat.borrow().table(lua))?)?;
        let in_place = Rc::clone(&shared);
        let answer = lua.create_function(move |lua, request| {
            answer_request_in_place(lua, &in_place, request)
        })?;
        host.set("answer_in_place", answer)?;
        let prelude = lua.load(include_str!("prelude.lua")).set_name("=sysbench/prelude.lua");
        let executor: Function = prelude.call(&host)?;
        for (name, part) in PARTS {
            lua.load(part).set_name(name).call::<()>(&host)?;
        }
        let chunk = script.chunk(&lua)?;
        let thread = lua.create_thread(executor)?;
        shared.thread.set(thread.state());
        let watch = Rc::new(Watch::new(thread.state()));
        let late = Rc::clone(&watch);
        host.set("is_late", lua.create_function(move |_, ()| Ok(late.is_late()))?)?;
        Ok((
            LuaMachine {
                _thread: thread,
                is_dead: Cell::new(false),
                watch,
                counters,
                stat,
                lua,
                shared,
            },
            chunk,
        ))
    }

    /// The original draws a number for its histogram of latencies, after each event of a thread.
    pub(crate) fn draw_between_events(&self) {
        self.shared.numbers.borrow_mut().bits();
    }

    pub(crate) fn set_stat(&self, stat: ReportStat) {
        *self.stat.borrow_mut() = stat;
    }

    /// Continues with the name and argument of the next function, or with what it waits for.
    pub(crate) fn resume(&self, arguments: impl IntoLuaMulti) -> Result<LuaStep, LuaError> {
        self.check_alive()?;
        let count = raw::push_arguments(&self.lua, self.shared.thread.get(), arguments);
        self.is_dead.set(count.is_err());
        self.go_on(count?)
    }

    #[inline]
    fn check_alive(&self) -> Result<(), LuaError> {
        if self.is_dead.get() {
            return Err(LuaError::new("the script has ended with an error"));
        }
        Ok(())
    }

    /// Like [`LuaMachine::resume`], without mlua: for events, and for what is answered with nothing.
    #[inline]
    pub(crate) fn resume_plain(&self, argument: Plain) -> Result<LuaStep, LuaError> {
        self.check_alive()?;
        if !raw::push_plain(self.shared.thread.get(), argument) {
            self.is_dead.set(true);
            return Err(LuaError::new("not enough memory"));
        }
        self.go_on(1)
    }

    /// Continues with what is on the coroutine's stack.
    #[inline]
    fn go_on(&self, arguments: c_int) -> Result<LuaStep, LuaError> {
        self.watch.turn();
        let halt = raw::resume_thread(&self.shared, arguments);
        self.watch.turn();
        match halt {
            Halt::Asked(LuaRequest::Query(connection)) => Ok(LuaStep::Query(connection)),
            Halt::Asked(LuaRequest::Execute(statement)) => Ok(LuaStep::Execute(statement)),
            Halt::Asked(LuaRequest::None) => self.other_step(0),
            Halt::Zero => Ok(LuaStep::Done(None)),
            Halt::Values(count) => self.other_step(count),
            Halt::Failed => Err(self.failure()),
        }
    }

    fn other_step(&self, count: c_int) -> Result<LuaStep, LuaError> {
        let request = raw::pop_values::<RequestValues>(&self.lua, self.shared.thread.get(), count)?;
        to_step(request).map_err(LuaError::from)
    }

    /// Takes the error that has ended the script.
    #[cold]
    fn failure(&self) -> LuaError {
        self.is_dead.set(true);
        match raw::pop_values::<Value>(&self.lua, self.shared.thread.get(), 1) {
            Ok(error) => {
                LuaError::new(to_text(&error).unwrap_or_else(|| "(not a string)".to_owned()))
            }
            Err(error) => LuaError::from(error),
        }
    }

    /// Continues with the answer to a request.
    #[inline]
    pub(crate) fn answer(&self, answer: LuaAnswer) -> Result<LuaStep, LuaError> {
        match answer {
            LuaAnswer::Done { has_rows } => {
                let LuaShared { thread, has_failed, .. } = &*self.shared;
                self.go_on(raw::push_answer(thread.get(), has_rows, has_failed.get()))
            }
            LuaAnswer::Nothing => self.resume_plain(Plain::True),
            LuaAnswer::Number(number) => self.resume((true, number)),
            LuaAnswer::Error { errno, sqlstate, message, is_ignored } => {
                self.shared.has_failed.set(true);
                self.resume((false, errno, sqlstate, message, is_ignored))
            }
        }
    }
}

impl Drop for LuaMachine {
    fn drop(&mut self) {
        self.shared.forget_answerer();
        self.watch.close();
    }
}

/// The number of a request in the prelude, and up to two values.
type RequestValues = (i32, Value, Value);

/// Answers what the prelude can't yield.
fn answer_request_in_place(
    lua: &Lua,
    shared: &LuaShared,
    request: RequestValues,
) -> mlua::Result<MultiValue> {
    let step = to_step(request)?;
    if matches!(step, LuaStep::Stopped) {
        return Err(mlua::Error::runtime(EVENT_STOPPED));
    }
    match shared.answer_in_place(step) {
        None => Err(mlua::Error::runtime(raw::HAS_ENDED.to_string_lossy())),
        Some(LuaAnswer::Number(number)) => (true, number).into_lua_multi(lua),
        Some(LuaAnswer::Nothing | LuaAnswer::Done { .. }) => true.into_lua_multi(lua),
        Some(LuaAnswer::Error { errno, sqlstate, message, is_ignored }) => {
            (false, errno, sqlstate, message, is_ignored).into_lua_multi(lua)
        }
    }
}

fn to_step((number, first, second): RequestValues) -> mlua::Result<LuaStep> {
    Ok(match number {
        0 => LuaStep::Done(to_text(&first)),
        1 => LuaStep::Last,
        2 => LuaStep::Restart { is_own: first.as_boolean() == Some(true) },
        3 => LuaStep::Failed(LuaError {
            trace: to_text(&second).unwrap_or_default(),
            ..LuaError::new(to_text(&first).unwrap_or_default())
        }),
        4 => LuaStep::Connect,
        5 => LuaStep::Disconnect(to_index(&first)),
        6 => LuaStep::Reconnect(to_index(&first)),
        7 => LuaStep::Failed(LuaError {
            is_refusal: true,
            ..LuaError::new(to_text(&first).unwrap_or_default())
        }),
        8 => LuaStep::Prepare(to_index(&first), to_sql(second)?),
        9 => LuaStep::Bind(to_index(&first), param_types(&second)?),
        10 => LuaStep::Close(to_index(&first)),
        11 => LuaStep::SleepUs(to_number(&first)),
        12 => LuaStep::Stopped,
        13 => LuaStep::Ignored,
        other => {
            return Err(mlua::Error::runtime(format!(
                "the script yielded {other} outside of its own coroutines"
            )));
        }
    })
}

fn to_sql(value: Value) -> mlua::Result<LuaText> {
    match value {
        Value::String(text) => Ok(text),
        other => Err(mlua::Error::runtime(format!(
            "a statement must be a text, not a {}",
            other.type_name()
        ))),
    }
}

fn to_index(value: &Value) -> usize {
    value.as_usize().unwrap_or(usize::MAX)
}

/// A whole number has a separate type here.
fn to_number(value: &Value) -> f64 {
    match value {
        Value::Integer(number) => *number as f64,
        other => other.as_f64().unwrap_or(0.0),
    }
}

fn to_text(value: &Value) -> Option<String> {
    match value {
        // The hook's own, or of a function of Rust.
        Value::Error(error) => Some(LuaError::from((**error).clone()).message),
        other => other.as_string().map(mlua::String::to_string_lossy),
    }
}

fn param_types(value: &Value) -> mlua::Result<Vec<ParamType>> {
    let Some(kinds) = value.as_table() else { return Ok(Vec::new()) };
    let types = kinds.sequence_values::<u32>().map(|kind| {
        kind.map(|kind| match kind {
            ..=4 => ParamType::Int,
            5 | 6 => ParamType::Double,
            _ => ParamType::Text,
        })
    });
    types.collect()
}

/// The table that the prelude gets.
fn host(
    lua: &Lua,
    script: &LuaScript,
    settings: &ScriptSettings,
    worker: u32,
) -> mlua::Result<Table> {
    let host = lua.create_table()?;
    host.set("tid", worker)?;
    host.set("driver", settings.driver)?;
    host.set("command", settings.command.as_deref())?;
    host.set("script_path", script.path.as_str())?;
    host.set("argv", settings.words.clone())?;
    let is_used = Arc::clone(&script.uses_database);
    let use_database = lua.create_function(move |_, ()| {
        is_used.store(true, Ordering::Relaxed);
        Ok(())
    })?;
    host.set("use_database", use_database)?;
    let options = lua.create_table()?;
    for (name, value) in &settings.general {
        match value {
            OptionValue::Switch(on) => options.set(name.as_str(), *on)?,
            OptionValue::Number(number) => options.set(name.as_str(), *number)?,
            OptionValue::Text(text) => options.set(name.as_str(), text.as_str())?,
            OptionValue::Password(secret) => options.set(name.as_str(), secret.reveal())?,
            OptionValue::List(list) => options.set(name.as_str(), list.clone())?,
        }
    }
    host.set("opt", options)?;
    let script_options = lua.create_table()?;
    for (name, value) in &settings.given {
        script_options.push(vec![Some(name.as_str()), value.as_deref()])?;
    }
    host.set("given", script_options)?;
    let trace = lua.create_function(|lua, ()| lua.traceback(None, 2))?;
    host.set("traceback", trace)?;
    Ok(host)
}
