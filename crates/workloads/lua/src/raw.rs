//! Functions that a script calls for each query, on Lua's own interface.
//!
//! mlua's functions and values cost more here than the query itself: a reference in its own table for each text, a
//! protected call for each value of a row. These functions hold no borrow and no lock while they call what may raise an
//! error of Lua.

#![expect(unsafe_code, reason = "functions on Lua's own interface, most of them called by Lua")]

use crate::machine::{LuaAnswer, LuaStep};
use crate::prepared::ConnectionResults;
use crate::prepared::{BoundValues, KEPT_BYTES};
use crate::random::{Numbers, UniqueNumbers};
use mlua::ffi::{self, lua_CFunction, lua_State};
use mlua::{Function, LightUserData, Lua, Table};
use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_int, c_void};
use std::ptr::NonNull;
use std::sync::Arc;

/// Data that the functions of a state share with its machine. They have its address, so that it is closed after them.
#[derive(Debug)]
pub(crate) struct LuaShared {
    /// The coroutine that executes the script: null until it is made.
    pub(crate) thread: Cell<*mut lua_State>,
    /// The request that the coroutine has yielded for.
    pub(crate) request: Cell<LuaRequest>,
    /// Some statement has had an error: a connection that shows one gets notice of each statement that goes well.
    pub(crate) has_failed: Cell<bool>,
    pub(crate) sql: RefCell<Vec<u8>>,
    pub(crate) values: RefCell<BoundValues>,
    pub(crate) results: ConnectionResults,
    pub(crate) numbers: RefCell<Numbers>,
    pub(crate) unique: Arc<UniqueNumbers>,
    /// Set while the worker computes.
    answerer: Cell<Option<NonNull<dyn AnswerInPlace>>>,
}

/// Answers requests where Lua can't yield to the worker's task: in a coroutine of the script's own, in a finalizer, and
/// below a function of C (a handler of `xpcall`, a callback).
pub(crate) trait AnswerInPlace {
    /// Returns when the answer is there: the loop's other workers wait meanwhile.
    fn answer(&mut self, request: LuaStep) -> LuaAnswer;
}

/// A request of a coroutine; the numbers are those of a connection and of a statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LuaRequest {
    #[default]
    None,
    /// Of [`LuaShared::sql`].
    Query(usize),
    /// With [`LuaShared::values`].
    Execute(usize),
}

impl LuaShared {
    pub(crate) fn new(numbers: Numbers, unique: &Arc<UniqueNumbers>, memory_max: usize) -> Self {
        LuaShared {
            thread: Cell::new(std::ptr::null_mut()),
            request: Cell::default(),
            has_failed: Cell::new(false),
            sql: RefCell::default(),
            values: RefCell::default(),
            results: ConnectionResults::new(memory_max),
            numbers: RefCell::new(numbers),
            unique: Arc::clone(unique),
            answerer: Cell::new(None),
        }
    }

    /// Resumes the script, whose requests `answerer` answers when it can't yield.
    #[inline]
    pub(crate) fn compute<R>(
        &self,
        answerer: &mut dyn AnswerInPlace,
        resume: impl FnOnce() -> R,
    ) -> R {
        // SAFETY: only the lifetime is changed, and the cell is emptied before it ends. A panic closes the state, which
        // empties it too.
        let erased = unsafe {
            std::mem::transmute::<NonNull<dyn AnswerInPlace + '_>, NonNull<dyn AnswerInPlace>>(
                NonNull::from(answerer),
            )
        };
        self.answerer.set(Some(erased));
        let result = resume();
        self.forget_answerer();
        result
    }

    pub(crate) fn forget_answerer(&self) {
        self.answerer.set(None);
    }

    /// `None` while the worker does not compute, such as in a finalizer when the state is closed.
    #[cold]
    pub(crate) fn answer_in_place(&self, request: LuaStep) -> Option<LuaAnswer> {
        let answerer = self.answerer.take()?;
        // SAFETY: `compute` has it borrowed until it empties the cell, and no one else takes it meanwhile.
        let answer = unsafe { &mut *answerer.as_ptr() }.answer(request);
        self.answerer.set(Some(answerer));
        if matches!(answer, LuaAnswer::Error { .. }) {
            self.has_failed.set(true);
        }
        Some(answer)
    }

    /// Keeps the buffer of a text that was sent.
    pub(crate) fn give_back(&self, sql: Vec<u8>) {
        if sql.capacity() <= KEPT_BYTES {
            *self.sql.borrow_mut() = sql;
        }
    }
}

/// Gives the prelude these functions.
pub(crate) fn offer(shared: &LuaShared, lua: &Lua, host: &Table) -> mlua::Result<()> {
    let host_functions: [(&str, lua_CFunction); 6] = [
        ("query", query),
        ("execute", execute),
        ("fetch", fetch),
        ("first_row", first_row),
        ("setter", setter),
        ("raise", raise),
    ];
    for (name, function) in host_functions {
        host.set(name, closure(shared, lua, function)?)?;
    }
    let draws = lua.create_table()?;
    for (name, address) in [
        ("uniform", uniform as *mut c_void),
        ("gaussian", gaussian as *mut c_void),
        ("special", special as *mut c_void),
        ("pareto", pareto as *mut c_void),
        ("zipfian", zipfian as *mut c_void),
        ("default", by_default as *mut c_void),
        ("unique", unique as *mut c_void),
        ("unit", unit as *mut c_void),
        ("bits", bits_64 as *mut c_void),
        ("fill", fill as *mut c_void),
    ] {
        draws.set(name, LightUserData(address))?;
    }
    host.set("draws", draws)?;
    host.set("shared", LightUserData(std::ptr::from_ref(shared).cast_mut().cast()))
}

/// A Lua function that gets `shared` as its upvalue.
fn closure(shared: &LuaShared, lua: &Lua, function: lua_CFunction) -> mlua::Result<Function> {
    let address = std::ptr::from_ref(shared).cast_mut().cast();
    // SAFETY: both calls are protected by `exec_raw`, which takes the closure from the stack.
    unsafe {
        lua.exec_raw((), |state| {
            ffi::lua_pushlightuserdata(state, address);
            ffi::lua_pushcclosure(state, function, 1);
        })
    }
}

/// Moves the topmost `count` values of a coroutine to what mlua takes them from.
pub(crate) fn pop_values<T: mlua::FromLuaMulti>(
    lua: &Lua,
    thread: *mut lua_State,
    count: c_int,
) -> mlua::Result<T> {
    // SAFETY: `thread` is a coroutine of `lua` that is suspended or has ended, with `count` values on its stack.
    unsafe { lua.exec_raw((), |state| ffi::lua_xmove(thread, state, count)) }
}

/// Puts arguments onto the stack of a coroutine; returns their number.
pub(crate) fn push_arguments(
    lua: &Lua,
    thread: *mut lua_State,
    arguments: impl mlua::IntoLuaMulti,
) -> mlua::Result<c_int> {
    let mut count = 0;
    // SAFETY: `thread` is a coroutine of `lua` that is suspended; the values on the stack are the arguments.
    unsafe {
        lua.exec_raw::<()>(arguments, |state| {
            count = ffi::lua_gettop(state);
            ffi::lua_xmove(state, thread, count);
        })?;
    }
    Ok(count)
}

/// An argument that needs no memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Plain {
    True,
    Number(i32),
}

/// Like [`push_arguments`], for what an event begins with and most requests are answered with; false if the stack
/// has no room.
#[inline]
pub(crate) fn push_plain(thread: *mut lua_State, argument: Plain) -> bool {
    // SAFETY: `thread` is a suspended coroutine of an open state, and has room for one value.
    unsafe {
        if ffi::lua_checkstack(thread, 1) == 0 {
            return false;
        }
        match argument {
            Plain::True => ffi::lua_pushboolean(thread, 1),
            Plain::Number(number) => ffi::lua_pushnumber(thread, f64::from(number)),
        }
    }
    true
}

/// Puts on top of a coroutine's stack what the statement that it waits for is answered with; returns the number of
/// values. `query` and `execute` have left the two possible answers on top: instead of one after an error, `false`,
/// `true` and it.
#[inline]
pub(crate) fn push_answer(thread: *mut lua_State, has_rows: bool, is_after_error: bool) -> c_int {
    // SAFETY: `thread` is a coroutine of an open state that is suspended or executes `query` or `execute`, with two values
    // on its stack, where a C function has room for twenty.
    unsafe {
        if has_rows {
            ffi::lua_pop(thread, 1);
        }
        if !is_after_error {
            return 1;
        }
        let answer = ffi::lua_gettop(thread);
        ffi::lua_pushboolean(thread, 0);
        ffi::lua_pushboolean(thread, 1);
        ffi::lua_pushvalue(thread, answer);
        3
    }
}

/// State of a coroutine that has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Halt {
    /// A request says what it waits for.
    Asked(LuaRequest),
    /// Has yielded the number 0 alone, which is taken from the stack.
    Zero,
    /// This many values are on its stack.
    Values(c_int),
    /// With an error, which is on its stack.
    Failed,
}

/// Resumes a coroutine with the arguments on its stack. Returns how it stopped: an error, the request that it left in
/// `shared`, which is taken, or its values, and if it yielded or returned.
#[inline]
pub(crate) fn resume_thread(shared: &LuaShared, arguments: c_int) -> Halt {
    let thread = shared.thread.get();
    // SAFETY: `thread` is a coroutine of an open state, which this thread alone uses; the arguments are on its stack.
    // Errors do not leave a coroutine.
    unsafe {
        let mut count = 0;
        match ffi::lua_resume(thread, std::ptr::null_mut(), arguments, &raw mut count) {
            ffi::LUA_OK | ffi::LUA_YIELD => {}
            _ => return Halt::Failed,
        }
        match shared.request.take() {
            LuaRequest::None => {}
            request => return Halt::Asked(request),
        }
        let is_zero = count == 1
            && ffi::lua_type(thread, -1) == ffi::LUA_TNUMBER
            && ffi::lua_tonumber(thread, -1) == 0.0;
        if is_zero {
            ffi::lua_settop(thread, 0);
            return Halt::Zero;
        }
        Halt::Values(count)
    }
}

/// The data that the function that `state` executes shares with its machine.
#[inline]
unsafe fn function_data<'a>(state: *mut lua_State) -> &'a LuaShared {
    // SAFETY: the upvalue is the address of what outlives the state.
    unsafe { &*ffi::lua_touserdata(state, ffi::lua_upvalueindex(1)).cast::<LuaShared>() }
}

/// The number of a connection or statement; the last one, which does not exist, if it isn't a number.
#[inline]
unsafe fn number(state: *mut lua_State, argument: c_int) -> usize {
    // SAFETY: reads a place of the stack, also one that is empty.
    unsafe {
        match ffi::lua_type(state, argument) {
            ffi::LUA_TNUMBER => ffi::lua_tonumber(state, argument) as usize,
            _ => usize::MAX,
        }
    }
}

/// The bytes of a text at a place of the stack; empty for what is none.
#[inline]
unsafe fn bytes<'a>(state: *mut lua_State, place: c_int) -> &'a [u8] {
    let mut length = 0;
    // SAFETY: a text stays in its place as long as it is on the stack.
    unsafe {
        if ffi::lua_type(state, place) != ffi::LUA_TSTRING {
            return &[];
        }
        let text = ffi::lua_tolstring(state, place, &raw mut length);
        std::slice::from_raw_parts(text.cast(), length)
    }
}

/// `query(connection, text)`: returns the answer. A connection is a table of its number, its result, and the result of a
/// statement without one.
unsafe extern "C-unwind" fn query(state: *mut lua_State) -> c_int {
    // SAFETY: Lua calls with arguments on the stack and room for twenty more values. Only a table is indexed. Nothing
    // is borrowed when Lua may leave by an error, or `lua_yield` does.
    unsafe {
        let shared = function_data(state);
        ffi::lua_settop(state, 2);
        let connection = open_number(state, c"the connection is closed");
        if ffi::lua_type(state, 2) != ffi::LUA_TSTRING {
            refuse(state, c"a statement must be a text");
        }
        let mut sql = shared.sql.take();
        sql.clear();
        sql.extend_from_slice(bytes(state, 2));
        *shared.sql.borrow_mut() = sql;
        ffi::lua_rawgeti_(state, 1, 2);
        ffi::lua_rawgeti_(state, 1, 3);
        if can_yield(state, shared) {
            shared.request.set(LuaRequest::Query(connection));
            return ffi::lua_yield(state, 2);
        }
        answer_in_place(state, shared, LuaStep::Query(connection))
    }
}

/// `execute(statement)`: as [`query`]. A statement is a table of its number, its parameters (each a table whose first
/// element is its value), how many they are, and the two results.
unsafe extern "C-unwind" fn execute(state: *mut lua_State) -> c_int {
    // SAFETY: as in `query`.
    unsafe {
        let shared = function_data(state);
        let statement = open_number(state, c"the statement is closed");
        let mut values = shared.values.take();
        values.clear();
        ffi::lua_settop(state, 1);
        ffi::lua_rawgeti_(state, 1, 2);
        if ffi::lua_type(state, 2) == ffi::LUA_TTABLE {
            ffi::lua_rawgeti_(state, 1, 3);
            for place in 1..=ffi::lua_tonumber(state, 3) as c_int {
                ffi::lua_rawgeti_(state, 2, place);
                take_value(state, &mut values);
                ffi::lua_settop(state, 3);
            }
        }
        *shared.values.borrow_mut() = values;
        ffi::lua_rawgeti_(state, 1, 4);
        ffi::lua_rawgeti_(state, 1, 5);
        if can_yield(state, shared) {
            shared.request.set(LuaRequest::Execute(statement));
            return ffi::lua_yield(state, 2);
        }
        answer_in_place(state, shared, LuaStep::Execute(statement))
    }
}

/// Returns true if the worker's task would have what `state` yields.
#[inline]
unsafe fn can_yield(state: *mut lua_State, shared: &LuaShared) -> bool {
    // SAFETY: looks at a state that executes a function.
    state == shared.thread.get() && unsafe { lua_isyieldable(state) } != 0
}

/// Puts onto the stack what [`push_answer`] or an error makes of the answer; returns the number of values.
#[cold]
unsafe fn answer_in_place(state: *mut lua_State, shared: &LuaShared, request: LuaStep) -> c_int {
    // SAFETY: called by `query` and `execute`. An error of Lua for want of memory loses the texts.
    unsafe {
        match shared.answer_in_place(request) {
            Some(LuaAnswer::Error { errno, sqlstate, message, is_ignored }) => {
                ffi::lua_pushboolean(state, 0);
                ffi::lua_pushnumber(state, f64::from(errno));
                push(state, Some(sqlstate.as_bytes()));
                push(state, Some(message.as_bytes()));
                ffi::lua_pushboolean(state, c_int::from(is_ignored));
                5
            }
            Some(LuaAnswer::Done { has_rows }) => {
                push_answer(state, has_rows, shared.has_failed.get())
            }
            Some(LuaAnswer::Nothing | LuaAnswer::Number(_)) => 0,
            None => refuse(state, HAS_ENDED),
        }
    }
}

/// The number of the connection or statement that is the first argument. Raises an error if it is `closed`.
#[inline]
unsafe fn open_number(state: *mut lua_State, closed: &CStr) -> usize {
    // SAFETY: as in `query`.
    unsafe {
        check_self(state);
        ffi::lua_rawgeti_(state, 1, 1);
        if ffi::lua_type(state, -1) != ffi::LUA_TNUMBER {
            refuse(state, closed);
        }
        ffi::lua_tonumber(state, -1) as usize
    }
}

/// `setter(first_text, others)`: a function that sets numeric parameters to numbers, and leaves other ones to `others`.
/// From the type `first_text` on values are texts.
unsafe extern "C-unwind" fn setter(state: *mut lua_State) -> c_int {
    // SAFETY: Lua calls with arguments on the stack.
    unsafe {
        ffi::lua_settop(state, 2);
        ffi::lua_pushcclosure(state, set, 2);
        1
    }
}

/// `set(parameter, value)`: the value is the parameter's first element, its type the second one.
unsafe extern "C-unwind" fn set(state: *mut lua_State) -> c_int {
    // SAFETY: Lua calls with arguments on the stack and room for twenty more values. Only a table is indexed.
    unsafe {
        check_self(state);
        ffi::lua_settop(state, 2);
        if ffi::lua_type(state, 2) == ffi::LUA_TNUMBER {
            ffi::lua_rawgeti_(state, 1, 2);
            let first_text = ffi::lua_tonumber(state, ffi::lua_upvalueindex(1));
            let is_numeric = ffi::lua_tonumber(state, 3) < first_text;
            ffi::lua_settop(state, 2);
            if is_numeric {
                ffi::lua_rawseti_(state, 1, 1);
                return 0;
            }
        }
        ffi::lua_pushvalue(state, ffi::lua_upvalueindex(2));
        ffi::lua_insert(state, 1);
        ffi::lua_call(state, 2, 0);
        0
    }
}

/// Takes the value of the parameter that is on top of the stack.
#[inline]
unsafe fn take_value(state: *mut lua_State, values: &mut BoundValues) {
    // SAFETY: as in `execute`.
    unsafe {
        if ffi::lua_type(state, -1) != ffi::LUA_TTABLE {
            return values.push_null();
        }
        ffi::lua_rawgeti_(state, -1, 1);
        match ffi::lua_type(state, -1) {
            ffi::LUA_TNUMBER => values.push_number(ffi::lua_tonumber(state, -1)),
            ffi::LUA_TSTRING => values.push_text(bytes(state, -1)),
            _ => values.push_null(),
        }
    }
}

/// Puts a value of a row onto the stack.
#[inline]
unsafe fn push(state: *mut lua_State, value: Option<&[u8]>) {
    // SAFETY: the caller has made room; the text is copied.
    unsafe {
        match value {
            Some(text) => ffi::lua_pushlstring_(state, text.as_ptr().cast(), text.len()),
            None => ffi::lua_pushnil(state),
        }
    }
}

/// Raises an error where the first argument is not an object of the prelude.
#[inline]
unsafe fn check_self(state: *mut lua_State) {
    // SAFETY: reads a place of the stack, also one that is empty; nothing is borrowed.
    unsafe {
        if ffi::lua_type(state, 1) != ffi::LUA_TTABLE {
            refuse(state, c"call it with a colon, as in connection:query(...)");
        }
    }
}

/// Raises an error with this text; doesn't return.
#[cold]
unsafe fn refuse(state: *mut lua_State, reason: &CStr) -> ! {
    // SAFETY: there is room for the reason.
    unsafe {
        ffi::lua_pushstring(state, reason.as_ptr());
        raise(state);
    }
    unreachable!("an error has been raised")
}

/// `raise(reason)`: an error at the script's line, which is that of the first caller outside of dyno's own files.
#[cold]
unsafe extern "C-unwind" fn raise(state: *mut lua_State) -> c_int {
    // SAFETY: Lua calls with room for twenty values, of which two are used; nothing is borrowed. What `lua_getinfo`
    // fills in is read after it has said that there is such a level.
    unsafe {
        let mut caller = std::mem::zeroed::<ffi::lua_Debug>();
        let mut level = 1;
        while ffi::lua_getstack(state, level, &raw mut caller) != 0 {
            ffi::lua_getinfo(state, c"S".as_ptr(), &raw mut caller);
            if !CStr::from_ptr(caller.source).to_bytes().starts_with(b"=sysbench/") {
                break;
            }
            level += 1;
        }
        ffi::luaL_where(state, level);
        ffi::lua_insert(state, -2);
        ffi::lua_concat(state, 2);
        ffi::lua_error(state)
    }
}

pub(crate) const HAS_ENDED: &CStr = c"no database can be asked here: the script has ended";

unsafe extern "C-unwind" {
    /// Returns 1 if `lua_yield` would not raise an error.
    fn lua_isyieldable(state: *mut lua_State) -> c_int;
}

const MALFORMED: &CStr = c"the server has sent a malformed row";

/// `fetch(connection)`: the next row as a list of texts, in which NULL is missing; nil after the last one.
unsafe extern "C-unwind" fn fetch(state: *mut lua_State) -> c_int {
    // SAFETY: Lua calls with room for twenty values, of which two are used. Nothing else owns the result meanwhile: an error
    // of Lua for want of memory loses it.
    unsafe {
        let (shared, connection) = (function_data(state), number(state, 1));
        let mut result = shared.results.lend_result(connection);
        let mut is_good = true;
        match result.columns_of_next() {
            Some(columns) => {
                ffi::lua_createtable(state, columns as c_int, 0);
                is_good = result.next_row(|column, value| {
                    if value.is_some() {
                        push(state, value);
                        ffi::lua_rawseti_(state, -2, column as c_int + 1);
                    }
                });
            }
            None => ffi::lua_pushnil(state),
        }
        shared.results.give_back(connection, result);
        if is_good { 1 } else { ffi::luaL_error(state, MALFORMED.as_ptr()) }
    }
}

/// `first_row(connection)`: the values of the next row; nil after the last one.
unsafe extern "C-unwind" fn first_row(state: *mut lua_State) -> c_int {
    // SAFETY: room is made for all values; otherwise as in `fetch`.
    unsafe {
        let (shared, connection) = (function_data(state), number(state, 1));
        let mut result = shared.results.lend_result(connection);
        // The values are all that is on the stack.
        ffi::lua_settop(state, 0);
        let columns = result.columns_of_next().map_or(0, |columns| columns as c_int);
        let has_room = ffi::lua_checkstack(state, columns) != 0;
        let is_good = columns == 0 || !has_room || result.next_row(|_, value| push(state, value));
        shared.results.give_back(connection, result);
        if !has_room {
            return ffi::luaL_error(state, c"not enough memory for a row".as_ptr());
        }
        if !is_good {
            return ffi::luaL_error(state, MALFORMED.as_ptr());
        }
        // As many as there are, whatever was pushed; nil for no row.
        let count = columns.max(1);
        ffi::lua_settop(state, count);
        count
    }
}

// What the prelude calls by LuaJIT's ffi, so that compiled code calls it directly. SAFETY, of all: the prelude passes
// the address of the shared state, which is closed after the state of Lua.

/// Functions of a lowest and a highest number.
macro_rules! drawing {
    ($($name:ident)*) => {$(
        unsafe extern "C" fn $name(low: u32, high: u32, shared: *const LuaShared) -> u32 {
            // SAFETY: see above.
            unsafe { &*shared }.numbers.borrow_mut().$name(low, high)
        }
    )*};
}
drawing!(uniform gaussian special pareto zipfian by_default);

/// The next number of the sequence without repetitions.
unsafe extern "C" fn unique(shared: *const LuaShared) -> u32 {
    // SAFETY: see above.
    unsafe { &*shared }.unique.next_number()
}

/// Draws a number from 0 up to 1.
unsafe extern "C" fn unit(shared: *const LuaShared) -> f64 {
    // SAFETY: see above.
    unsafe { &*shared }.numbers.borrow_mut().unit()
}

unsafe extern "C" fn bits_64(shared: *const LuaShared) -> u64 {
    // SAFETY: see above.
    unsafe { &*shared }.numbers.borrow_mut().bits()
}

/// Writes the text that a template means; both have this length.
unsafe extern "C" fn fill(
    shared: *const LuaShared,
    template: *const u8,
    length: usize,
    text: *mut u8,
) {
    // SAFETY: see above; both the Lua string and the buffer have `length` bytes.
    unsafe {
        let template = std::slice::from_raw_parts(template, length);
        let text = std::slice::from_raw_parts_mut(text, length);
        (*shared).numbers.borrow_mut().fill(template, text);
    }
}
