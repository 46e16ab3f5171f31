//! One Lua state: the script in it, and the coroutine that executes its functions.

use crate::random::{Numbers, UniqueNumbers};
use crate::rows::ResultSet;
use crate::script::{LuaScript, OptionValue, ScriptSettings};
use dyno_core::{Nanos, ParamType, SECOND};
use dyno_reactor::monotonic_now;
use mlua::{
    Function, HookTriggers, IntoLuaMulti, Lua, LuaOptions, MultiValue, StdLib, Table, Thread,
    Value, VmState,
};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

/// Instructions between two looks at the clock.
const HOOK_INSTRUCTIONS: u32 = 100_000;
/// How long after the end of the run a function may compute without asking a database.
const GRACE: Nanos = SECOND;

/// What the coroutine wants next.
#[derive(Debug)]
pub(crate) enum LuaStep {
    /// The function has ended, with the texts it returned.
    Done(Option<String>, Option<String>),
    /// The function ended with an error that is ignored: the event begins anew.
    Restart,
    Failed(LuaError),
    Connect,
    Disconnect(usize),
    Reconnect(usize),
    Query(usize, Vec<u8>),
    Prepare(usize, Vec<u8>),
    Bind(usize, Vec<ParamType>),
    Execute(usize, Vec<BoundValue>),
    SleepUs(f64),
}

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

/// The answer to a request.
pub(crate) enum LuaAnswer {
    Nothing,
    Number(usize),
    Rows(ResultSet),
    Error { errno: u32, sqlstate: String, message: String, is_ignored: bool },
}

impl IntoLuaMulti for LuaAnswer {
    fn into_lua_multi(self, lua: &Lua) -> mlua::Result<MultiValue> {
        match self {
            LuaAnswer::Nothing => true.into_lua_multi(lua),
            LuaAnswer::Number(number) => (true, number).into_lua_multi(lua),
            LuaAnswer::Rows(rows) => (true, rows).into_lua_multi(lua),
            LuaAnswer::Error { errno, sqlstate, message, is_ignored } => {
                (false, errno, sqlstate, message, is_ignored).into_lua_multi(lua)
            }
        }
    }
}

/// Until when functions may compute.
#[derive(Debug)]
struct Patience {
    ends: Cell<Nanos>,
    resumed: Cell<Nanos>,
}

#[derive(Debug)]
pub(crate) struct LuaMachine {
    thread: Thread,
    patience: Rc<Patience>,
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
        // Compiled loops call no hooks: one without an end would never be ended.
        lua.load("jit.off() io.stdout:setvbuf('line')").exec()?;
        let patience = Rc::new(Patience { ends: Cell::new(Nanos::MAX), resumed: Cell::new(0) });
        end_endless_loops(&lua, &patience)?;
        lua.globals().get::<Table>("package")?.set("path", script.search.as_str())?;
        let host = host(&lua, script, settings, unique, worker)?;
        let prelude = lua.load(include_str!("prelude.lua")).set_name("=sysbench");
        let executor: Function = prelude.call(host)?;
        let chunk = lua
            .load(script.text.as_slice())
            .set_name(script.chunk_name())
            .set_mode(mlua::ChunkMode::Text)
            .into_function()?;
        let machine = LuaMachine { thread: lua.create_thread(executor)?, patience, _lua: lua };
        Ok((machine, chunk))
    }

    /// Has functions ended that compute for long after `ends`.
    pub(crate) fn end_at(&self, ends: Nanos) {
        self.patience.ends.set(ends);
    }

    /// Goes on with an answer, or with the name and argument of the next function.
    pub(crate) fn resume(&self, given: impl IntoLuaMulti) -> Result<LuaStep, LuaError> {
        self.patience.resumed.set(monotonic_now());
        let wanted: MultiValue = self.thread.resume(given)?;
        step(wanted).map_err(LuaError::from)
    }
}

fn end_endless_loops(lua: &Lua, patience: &Rc<Patience>) -> mlua::Result<()> {
    let patience = Rc::clone(patience);
    let triggers = HookTriggers::new().every_nth_instruction(HOOK_INSTRUCTIONS);
    lua.set_global_hook(triggers, move |_, _| {
        let now = monotonic_now();
        let is_over = now > patience.ends.get().saturating_add(GRACE);
        if is_over && now > patience.resumed.get().saturating_add(GRACE) {
            return Err(mlua::Error::runtime(
                "the function was still computing when --time was over",
            ));
        }
        Ok(VmState::Continue)
    })
}

fn step(wanted: MultiValue) -> mlua::Result<LuaStep> {
    let mut values = wanted.into_iter();
    let mut next = || values.next().unwrap_or(Value::Nil);
    let name = next();
    let name = name.as_string().map(|name| name.as_bytes().to_vec()).unwrap_or_default();
    Ok(match name.as_slice() {
        b"query" => LuaStep::Query(index(&next()), bytes(&next())),
        b"execute" => {
            let (statement, values, count) = (index(&next()), next(), index(&next()));
            LuaStep::Execute(statement, bound_values(&values, count)?)
        }
        b"done" => LuaStep::Done(text(&next()), text(&next())),
        b"restart" => LuaStep::Restart,
        b"failed" => LuaStep::Failed(LuaError {
            message: text(&next()).unwrap_or_default(),
            trace: text(&next()).unwrap_or_default(),
        }),
        b"connect" => LuaStep::Connect,
        b"disconnect" => LuaStep::Disconnect(index(&next())),
        b"reconnect" => LuaStep::Reconnect(index(&next())),
        b"prepare" => LuaStep::Prepare(index(&next()), bytes(&next())),
        b"bind" => LuaStep::Bind(index(&next()), param_types(&next())?),
        b"sleep" => LuaStep::SleepUs(number(&next())),
        other => {
            let name = String::from_utf8_lossy(other);
            return Err(mlua::Error::runtime(format!(
                "the script yielded '{name}' outside of a coroutine of its own"
            )));
        }
    })
}

fn index(value: &Value) -> usize {
    value.as_usize().unwrap_or(usize::MAX)
}

fn bytes(value: &Value) -> Vec<u8> {
    value.as_string().map(|text| text.as_bytes().to_vec()).unwrap_or_default()
}

/// A whole number has a type of its own here.
fn number(value: &Value) -> f64 {
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
            value => BoundValue::Number(number(value)),
        })
    };
    (1..=count).map(bound).collect()
}

/// What the prelude is given.
fn host(
    lua: &Lua,
    script: &LuaScript,
    settings: &ScriptSettings,
    unique: &Arc<UniqueNumbers>,
    worker: u32,
) -> mlua::Result<Table> {
    let host = lua.create_table()?;
    host.set("tid", worker)?;
    host.set("driver", settings.driver)?;
    host.set("command", settings.command.as_deref())?;
    host.set("script_path", script.path.as_str())?;
    host.set("argv", settings.words.clone())?;
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
    host.set("rand", random(lua, settings, unique, worker)?)?;
    let trace = lua.create_function(|lua, ()| lua.traceback(None, 2))?;
    host.set("traceback", trace)?;
    Ok(host)
}

type Draw = fn(&mut Numbers, u32, u32) -> u32;

fn random(
    lua: &Lua,
    settings: &ScriptSettings,
    unique: &Arc<UniqueNumbers>,
    worker: u32,
) -> mlua::Result<Table> {
    let numbers = Rc::new(RefCell::new(Numbers::new(settings.seed, worker, settings.random)));
    let table = lua.create_table()?;
    let draws: [(&str, Draw); 4] = [
        ("uniform", Numbers::uniform),
        ("gaussian", Numbers::gaussian),
        ("special", Numbers::special),
        ("pareto", Numbers::pareto),
    ];
    for (name, draw) in draws {
        let numbers = Rc::clone(&numbers);
        table.set(
            name,
            lua.create_function(move |_, (low, high): (f64, f64)| {
                Ok(draw(&mut numbers.borrow_mut(), wrapped(low), wrapped(high)))
            })?,
        )?;
    }
    let of = Rc::clone(&numbers);
    let by_default = lua.create_function(move |_, (low, high): (f64, f64)| {
        of.borrow_mut().by_default(wrapped(low), wrapped(high)).ok_or_else(|| {
            mlua::Error::runtime("--rand-type=zipfian is not known to scripts of sysbench 1.0")
        })
    })?;
    table.set("default", by_default)?;
    let unique = Arc::clone(unique);
    table.set("unique", lua.create_function(move |_, ()| Ok(unique.draw()))?)?;
    let of = Rc::clone(&numbers);
    let unit = lua.create_function(move |_, ()| Ok(of.borrow_mut().unit()))?;
    table.set("uniform_double", unit)?;
    let of = Rc::clone(&numbers);
    let halves = lua.create_function(move |_, ()| {
        let bits = of.borrow_mut().bits();
        Ok(((bits >> 32) as u32, bits as u32))
    })?;
    table.set("halves", halves)?;
    let text = lua.create_function(move |lua, template: mlua::String| {
        lua.create_string(numbers.borrow_mut().text(&template.as_bytes()))
    })?;
    table.set("string", text)?;
    Ok(table)
}

/// A number as the original's 32-bit parameter: without its fraction, and wrapped around.
fn wrapped(number: f64) -> u32 {
    number as i64 as u32
}
