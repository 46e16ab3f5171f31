//! One Lua state: the script in it, and the coroutine that executes its functions.
//!
//! Code is interpreted, and no hook is set: [`crate::watch`] ends what computes without an end.

use crate::counters::ScriptCounters;
use crate::random::{Numbers, UniqueNumbers};
use crate::reports::ReportStat;
use crate::rows::ConnectionResults;
use crate::script::{LuaScript, OptionValue, ScriptSettings};
use crate::watch::Watch;
use dyno_core::ParamType;
use mlua::{
    Function, IntoLuaMulti, Lua, LuaOptions, StdLib, String as LuaText, Table, Thread, Value,
};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What the coroutine wants next.
#[derive(Debug)]
pub(crate) enum LuaStep {
    /// The function has ended, with the text that it returned.
    Done(Option<String>),
    /// The event has ended, and with it the worker.
    Last,
    /// The function ended with an error that is ignored: the event begins anew.
    Restart,
    Failed(LuaError),
    Connect,
    Disconnect(usize),
    Reconnect(usize),
    Query(usize, LuaText),
    Prepare(usize, LuaText),
    Bind(usize, Vec<ParamType>),
    Execute(usize, Vec<BoundValue>),
    SleepUs(f64),
    /// An event of a `thread_run()` has ended, which waits for the next one.
    Stopped,
    /// A `thread_run()` waits until the engine has dealt with an error that is ignored.
    Ignored,
}

/// What [`LuaMachine::resume`] is given for an event, and for one that begins anew.
pub(crate) const EVENT: i32 = 1;
pub(crate) const AGAIN: i32 = 2;

/// An error that ends a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LuaError {
    /// With file and line, where Lua knows them.
    pub message: String,
    /// Lua's traceback; may be empty.
    pub trace: String,
}

impl LuaError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        LuaError { message: message.into(), trace: String::new() }
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

/// The value of a bound parameter.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum BoundValue {
    Null,
    Number(f64),
    Text(Vec<u8>),
}

impl BoundValue {
    /// As a parameter of this type takes it: an integer without its fraction.
    pub(crate) fn of(&self, kind: ParamType) -> BoundValue {
        match self {
            BoundValue::Number(number) if kind == ParamType::Int => {
                BoundValue::Number(number.trunc())
            }
            value => value.clone(),
        }
    }
}

/// The answer to a request.
pub(crate) enum LuaAnswer {
    Nothing,
    Number(usize),
    /// Numbers of rows and columns.
    Rows(usize, usize),
    Error {
        errno: u32,
        sqlstate: String,
        message: String,
        is_ignored: bool,
    },
}

#[derive(Debug)]
pub(crate) struct LuaMachine {
    thread: Thread,
    pub(crate) watch: Rc<Watch>,
    pub(crate) counters: Rc<ScriptCounters>,
    pub(crate) results: Rc<ConnectionResults>,
    numbers: Rc<RefCell<Numbers>>,
    /// What `host.stat()` gives to the hooks of reports.
    stat: Rc<RefCell<ReportStat>>,
    /// Closed after the thread.
    _lua: Lua,
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
        // Loops that are compiled never look at hooks: one without an end could not be ended.
        lua.load("jit.off() io.stdout:setvbuf('line')").exec()?;
        lua.globals().get::<Table>("package")?.set("path", script.search.as_str())?;
        let host = host(&lua, script, settings, worker)?;
        let numbers = Numbers::new(settings.seed, worker, settings.random);
        let numbers = Rc::new(RefCell::new(numbers));
        host.set("rand", random(&lua, &numbers, unique)?)?;
        let counters = Rc::new(ScriptCounters::default());
        counters.offer(&lua, &host)?;
        let results = Rc::new(ConnectionResults::default());
        results.offer(&lua, &host)?;
        let stat = Rc::new(RefCell::new(ReportStat::default()));
        let of_hooks = Rc::clone(&stat);
        host.set("stat", lua.create_function(move |lua, ()| of_hooks.borrow().table(lua))?)?;
        let prelude = lua.load(include_str!("prelude.lua")).set_name("=sysbench");
        let executor: Function = prelude.call(&host)?;
        lua.load(include_str!("legacy.lua")).set_name("=sysbench").call::<()>(&host)?;
        lua.load(include_str!("reports.lua")).set_name("=sysbench").call::<()>(&host)?;
        let chunk = lua
            .load(script.text.as_slice())
            .set_name(script.chunk_name())
            .set_mode(mlua::ChunkMode::Text)
            .into_function()?;
        let thread = lua.create_thread(executor)?;
        let watch = Rc::new(Watch::over(thread.state()));
        let late = Rc::clone(&watch);
        host.set("is_late", lua.create_function(move |_, ()| Ok(late.is_late()))?)?;
        Ok((LuaMachine { thread, watch, counters, results, numbers, stat, _lua: lua }, chunk))
    }

    /// The original draws a number for its histogram of latencies, after each event of a thread.
    pub(crate) fn draw_between_events(&self) {
        self.numbers.borrow_mut().bits();
    }

    pub(crate) fn set_stat(&self, stat: ReportStat) {
        *self.stat.borrow_mut() = stat;
    }

    /// Goes on with the name and argument of the next function, or its number.
    #[inline]
    pub(crate) fn resume(&self, given: impl IntoLuaMulti) -> Result<LuaStep, LuaError> {
        self.watch.turn();
        let wanted = self.thread.resume::<Wanted>(given);
        self.watch.turn();
        step(wanted?).map_err(LuaError::from)
    }

    /// Goes on with the answer to a request.
    pub(crate) fn answer(&self, answer: LuaAnswer) -> Result<LuaStep, LuaError> {
        match answer {
            LuaAnswer::Nothing => self.resume(true),
            LuaAnswer::Number(number) => self.resume((true, number)),
            LuaAnswer::Rows(rows, columns) => self.resume((true, rows, columns)),
            LuaAnswer::Error { errno, sqlstate, message, is_ignored } => {
                self.resume((false, errno, sqlstate, message, is_ignored))
            }
        }
    }
}

impl Drop for LuaMachine {
    fn drop(&mut self) {
        self.watch.close();
    }
}

/// The number of a request in the prelude, and up to three values.
type Wanted = (i32, Value, Value, Value);

fn step((number, first, second, third): Wanted) -> mlua::Result<LuaStep> {
    Ok(match number {
        0 => LuaStep::Done(text(&first)),
        1 => LuaStep::Last,
        2 => LuaStep::Restart,
        3 => LuaStep::Failed(LuaError {
            message: text(&first).unwrap_or_default(),
            trace: text(&second).unwrap_or_default(),
        }),
        4 => LuaStep::Connect,
        5 => LuaStep::Disconnect(index(&first)),
        6 => LuaStep::Reconnect(index(&first)),
        7 => LuaStep::Query(index(&first), sql(second)?),
        8 => LuaStep::Prepare(index(&first), sql(second)?),
        9 => LuaStep::Bind(index(&first), param_types(&second)?),
        10 => LuaStep::Execute(index(&first), bound_values(&second, index(&third))?),
        11 => LuaStep::SleepUs(number_of(&first)),
        12 => LuaStep::Stopped,
        13 => LuaStep::Ignored,
        other => {
            return Err(mlua::Error::runtime(format!(
                "the script yielded {other} outside of a coroutine of its own"
            )));
        }
    })
}

fn sql(value: Value) -> mlua::Result<LuaText> {
    match value {
        Value::String(text) => Ok(text),
        other => Err(mlua::Error::runtime(format!(
            "a statement must be a text, not a {}",
            other.type_name()
        ))),
    }
}

fn index(value: &Value) -> usize {
    value.as_usize().unwrap_or(usize::MAX)
}

/// A whole number has a type of its own here.
fn number_of(value: &Value) -> f64 {
    match value {
        Value::Integer(number) => *number as f64,
        other => other.as_f64().unwrap_or(0.0),
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        // The hook's own, or of a function of Rust.
        Value::Error(error) => Some(LuaError::from((**error).clone()).message),
        other => other.as_string().map(mlua::String::to_string_lossy),
    }
}

fn param_types(value: &Value) -> mlua::Result<Vec<ParamType>> {
    let Some(kinds) = value.as_table() else { return Ok(Vec::new()) };
    let kind = |kind: mlua::Result<u32>| {
        Ok(match kind? {
            ..=4 => ParamType::Int,
            5 | 6 => ParamType::Double,
            _ => ParamType::Text,
        })
    };
    kinds.sequence_values::<u32>().map(kind).collect()
}

fn bound_values(value: &Value, count: usize) -> mlua::Result<Vec<BoundValue>> {
    let Some(values) = value.as_table() else { return Ok(Vec::new()) };
    let bound = |index: usize| {
        let value: Value = values.raw_get(index)?;
        Ok(match &value {
            Value::Nil => BoundValue::Null,
            Value::String(text) => BoundValue::Text(text.as_bytes().to_vec()),
            value => BoundValue::Number(number_of(value)),
        })
    };
    (1..=count).map(bound).collect()
}

/// What the prelude is given.
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
    let is_used = script.database_use();
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
            OptionValue::List(list) => options.set(name.as_str(), list.clone())?,
        }
    }
    host.set("opt", options)?;
    let given = lua.create_table()?;
    for (name, value) in &settings.given {
        given.push(vec![Some(name.as_str()), value.as_deref()])?;
    }
    host.set("given", given)?;
    let trace = lua.create_function(|lua, ()| lua.traceback(None, 2))?;
    host.set("traceback", trace)?;
    Ok(host)
}

type Draw = fn(&mut Numbers, u32, u32) -> u32;

fn random(
    lua: &Lua,
    numbers: &Rc<RefCell<Numbers>>,
    unique: &Arc<UniqueNumbers>,
) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    let draws: [(&str, Draw); 4] = [
        ("uniform", Numbers::uniform),
        ("gaussian", Numbers::gaussian),
        ("special", Numbers::special),
        ("pareto", Numbers::pareto),
    ];
    for (name, draw) in draws {
        let numbers = Rc::clone(numbers);
        table.set(
            name,
            lua.create_function(move |_, (low, high): (f64, f64)| {
                Ok(draw(&mut numbers.borrow_mut(), wrapped(low), wrapped(high)))
            })?,
        )?;
    }
    let of = Rc::clone(numbers);
    let by_default = lua.create_function(move |_, (low, high): (f64, f64)| {
        of.borrow_mut().by_default(wrapped(low), wrapped(high)).ok_or_else(|| {
            mlua::Error::runtime("--rand-type=zipfian is not known to scripts of sysbench 1.0")
        })
    })?;
    table.set("default", by_default)?;
    let unique = Arc::clone(unique);
    table.set("unique", lua.create_function(move |_, ()| Ok(unique.draw()))?)?;
    let of = Rc::clone(numbers);
    let unit = lua.create_function(move |_, ()| Ok(of.borrow_mut().unit()))?;
    table.set("uniform_double", unit)?;
    let of = Rc::clone(numbers);
    let halves = lua.create_function(move |_, ()| {
        let bits = of.borrow_mut().bits();
        Ok(((bits >> 32) as u32, bits as u32))
    })?;
    table.set("halves", halves)?;
    let of = Rc::clone(numbers);
    let text = lua.create_function(move |lua, template: LuaText| {
        lua.create_string(of.borrow_mut().text(&template.as_bytes()))
    })?;
    table.set("string", text)?;
    Ok(table)
}

/// A number as the original's 32-bit parameter: without its fraction, and wrapped around.
fn wrapped(number: f64) -> u32 {
    number as i64 as u32
}
