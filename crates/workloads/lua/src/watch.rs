//! Watches functions of scripts that run for long: a thread looks at all states, notes how long one has computed at a
//! stretch, and sets a hook if it still does so after the end of its run, or continues asking databases.
//!
//! A permanent hook would make each instruction more expensive, and keep LuaJIT from compiling. Compiled loops check
//! hooks only with LUAJIT_ENABLE_CHECKHOOK, which `.cargo/config.toml` defines.

use std::ffi::{CStr, c_int};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use dyno_core::{Nanos, SECOND};
use dyno_reactor::monotonic_now;
use mlua::ffi::{lua_Debug, lua_State};
use mlua::{Lua, Table, ffi};

use crate::machine::LuaError;

/// Shortest computation without a request that counts as endless after the run's patience.
const COMPUTES_MAX: Nanos = SECOND;
/// Turns after the end of the run, two for each request: a single long statement makes no more.
const LATE_TURNS: u64 = 100;
const LOOKS: Duration = Duration::from_millis(100);

/// The thread's knowledge of a state.
#[derive(Debug)]
pub(crate) struct Watched {
    /// The end of its run; `Nanos::MAX` without one.
    ends: AtomicU64,
    /// Time after it for which a function may compute, or wait for a database that it asks when it can't yield. An event
    /// may continue to ask databases for as long as the run was, if that is longer.
    patience: AtomicU64,
    /// Odd while a function computes.
    turns: AtomicU64,
    /// The longest time between two looks that have seen the same turn compute.
    longest: AtomicU64,
    /// Looks before the end of its run that have met a function.
    busy_looks: AtomicU64,
    state: Mutex<StatePointer>,
}

/// Null once the state is closed.
#[derive(Debug)]
struct StatePointer(*mut lua_State);

#[expect(unsafe_code, reason = "used under its lock, for what LuaJIT lets other threads do")]
// SAFETY: the only use is `lua_sethook`, which LuaJIT allows from another thread while the state is open.
unsafe impl Send for StatePointer {}

/// A state that is being watched until [`Watch::close`].
#[derive(Debug)]
pub(crate) struct Watch(Arc<Watched>);

impl Watch {
    pub(crate) fn new(state: *mut lua_State) -> Self {
        let watched = Arc::new(Watched {
            ends: AtomicU64::new(Nanos::MAX),
            patience: AtomicU64::new(0),
            turns: AtomicU64::new(0),
            longest: AtomicU64::new(0),
            busy_looks: AtomicU64::new(0),
            state: Mutex::new(StatePointer(state)),
        });
        Watch(watched)
    }

    /// The run begins: from now on the thread looks at the state, and ends functions that run for `patience` after `ends`.
    pub(crate) fn begin(&self, ends: Nanos, patience: Nanos) {
        self.0.ends.store(ends, Ordering::Relaxed);
        self.0.patience.store(patience, Ordering::Relaxed);
        start_watching(&self.0);
    }

    /// The run has ended: returns how long a function is known to have computed at a stretch, which is up to two looks
    /// too short (0 if no two looks have met the same step), and an estimate of the time in all functions.
    pub(crate) fn end(&self) -> (Nanos, Nanos) {
        self.0.ends.store(Nanos::MAX, Ordering::Relaxed);
        let busy_looks = self.0.busy_looks.load(Ordering::Relaxed);
        (self.0.longest.load(Ordering::Relaxed), busy_looks * LOOKS.as_nanos() as u64)
    }

    /// The state will be closed: no other thread touches it from now on.
    pub(crate) fn close(&self) {
        lock(&self.0.state).0 = std::ptr::null_mut();
    }

    pub(crate) fn patience_ends(&self) -> Nanos {
        self.0.patience_ends()
    }

    pub(crate) fn is_late(&self) -> bool {
        monotonic_now() > self.0.ends.load(Ordering::Relaxed)
    }

    /// A function begins to compute, or ends.
    #[inline]
    pub(crate) fn turn(&self) {
        let turns = self.0.turns.load(Ordering::Relaxed);
        self.0.turns.store(turns.wrapping_add(1), Ordering::Relaxed);
    }
}

impl Watched {
    fn patience_ends(&self) -> Nanos {
        let ends = self.ends.load(Ordering::Relaxed);
        ends.saturating_add(self.patience.load(Ordering::Relaxed))
    }
}

/// Observations of a state.
#[derive(Debug)]
struct Observation {
    watched: Weak<Watched>,
    /// When its run began.
    begun: Nanos,
    /// At the last look.
    turn: u64,
    /// When that began.
    since: Nanos,
    /// At the last look before the end of the run.
    turn_in_time: u64,
}

impl Observation {
    fn new(watched: &Arc<Watched>, begun: Nanos) -> Self {
        let watched = Arc::downgrade(watched);
        Observation { watched, begun, turn: 0, since: begun, turn_in_time: 0 }
    }
}

fn start_watching(watched: &Arc<Watched>) {
    static ALL: OnceLock<Mutex<Vec<Observation>>> = OnceLock::new();
    let mut is_first = false;
    let observations = ALL.get_or_init(|| {
        is_first = true;
        Mutex::default()
    });
    lock(observations).push(Observation::new(watched, monotonic_now()));
    if is_first {
        // Without the thread, endless functions are not ended: no reason not to run a script.
        let _ = std::thread::Builder::new().name("lua-watch".to_owned()).spawn(move || {
            loop {
                std::thread::sleep(LOOKS);
                let now = monotonic_now();
                lock(observations).retain_mut(|observation| check_state(observation, now));
            }
        });
    }
}

/// Sets the hook when it is time; false for a state that is closed.
fn check_state(observation: &mut Observation, now: Nanos) -> bool {
    let Some(watched) = observation.watched.upgrade() else { return false };
    if is_endless(observation, &watched, now) {
        set_hook(&lock(&watched.state));
    }
    true
}

fn is_endless(observation: &mut Observation, watched: &Watched, now: Nanos) -> bool {
    let turns = watched.turns.load(Ordering::Relaxed);
    let ends = watched.ends.load(Ordering::Relaxed);
    if turns != observation.turn {
        (observation.turn, observation.since) = (turns, now);
    }
    if now <= ends {
        observation.turn_in_time = turns;
    }
    let as_long_again = ends.saturating_add(ends.saturating_sub(observation.begun));
    let asks_until = watched.patience_ends().max(as_long_again);
    // After the end of the run no event begins: it is the same one.
    if now > asks_until && turns.wrapping_sub(observation.turn_in_time) > LATE_TURNS {
        return true;
    }
    if turns.is_multiple_of(2) {
        return false;
    }
    watched.busy_looks.fetch_add(u64::from(now <= ends), Ordering::Relaxed);
    let computed = now.saturating_sub(observation.since);
    watched.longest.fetch_max(computed, Ordering::Relaxed);
    computed > COMPUTES_MAX && now > watched.patience_ends()
}

#[expect(unsafe_code, reason = "LuaJIT's way to interrupt a function from another thread")]
fn set_hook(state: &StatePointer) {
    if !state.0.is_null() {
        // SAFETY: the state is open, as its owner nulls the pointer under this lock before it closes it. LuaJIT allows
        // this call from another thread (lj_record.c, LUAJIT_ENABLE_CHECKHOOK).
        unsafe { ffi::lua_sethook(state.0, Some(end_function), ffi::LUA_MASKCOUNT, 1) };
    }
}

const TOO_LONG: &CStr = c"the function was still running long after --time was over";

/// Returns true for the error by which a function was ended.
pub(crate) fn is_too_long(error: &LuaError) -> bool {
    error.message.as_bytes().ends_with(TOO_LONG.to_bytes())
}

/// Functions of the API that may be between a hook and the script.
const WRAPPERS: c_int = 8;

#[expect(unsafe_code, reason = "called by LuaJIT")]
unsafe extern "C-unwind" fn end_function(state: *mut lua_State, _: *mut lua_Debug) {
    // SAFETY: LuaJIT calls a hook with a state that runs a function, in which it may raise an error.
    unsafe {
        ffi::lua_sethook(state, None, 0, 0);
        // The place in the script, not that in dyno's part of the API.
        for level in 0..WRAPPERS {
            ffi::luaL_where(state, level);
            let place = CStr::from_ptr(ffi::lua_tostring(state, -1));
            if level + 1 == WRAPPERS || !place.to_bytes().starts_with(b"sysbench/") {
                break;
            }
            ffi::lua_pop(state, 1);
        }
        ffi::lua_pushstring(state, TOO_LONG.as_ptr());
        ffi::lua_concat(state, 2);
        ffi::lua_error(state);
    }
}

/// Locks a mutex, also after a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The figures of an interval, or of a whole run. Times are in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReportStat {
    pub threads_running: u32,
    pub time_interval_s: f64,
    pub time_total_s: f64,
    pub latency_percentile_s: f64,
    pub events: u64,
    pub reads: u64,
    pub writes: u64,
    pub others: u64,
    pub errors: u64,
    pub reconnects: u64,
    /// Length of the queue in an interval, and events that are executed; both 0 without a rate.
    pub queue: Option<(u64, u64)>,
    /// Latencies of a whole run: least, greatest, mean and sum.
    pub latency_s: Option<[f64; 4]>,
}

impl ReportStat {
    /// The table that a report hook of the script gets.
    pub(crate) fn table(&self, lua: &Lua) -> mlua::Result<Table> {
        let table = lua.create_table()?;
        table.set("threads_running", self.threads_running)?;
        table.set("time_interval", self.time_interval_s)?;
        table.set("time_total", self.time_total_s)?;
        table.set("latency_pct", self.latency_percentile_s)?;
        for (name, count) in [
            ("events", self.events),
            ("reads", self.reads),
            ("writes", self.writes),
            ("other", self.others),
            ("errors", self.errors),
            ("reconnects", self.reconnects),
        ] {
            table.set(name, count as f64)?;
        }
        if let Some((length, concurrency)) = self.queue {
            table.set("queue_length", length)?;
            table.set("concurrency", concurrency as f64)?;
        }
        for (name, value) in
            ["min", "max", "avg", "sum"].iter().zip(self.latency_s.iter().flatten())
        {
            table.set(format!("latency_{name}"), *value)?;
        }
        Ok(table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Nanos = 60 * SECOND;

    #[test]
    fn an_event_that_never_stops_asking_ends_and_a_long_statement_does_not() {
        let watch = Watch::new(std::ptr::null_mut());
        let start = monotonic_now();
        let ends = start + 2 * SECOND;
        watch.0.ends.store(ends, Ordering::Relaxed);
        watch.0.patience.store(PATIENCE, Ordering::Relaxed);
        let mut observation = Observation::new(&watch.0, start);
        let mut looks = |requests: u64, at: Nanos| {
            (0..2 * requests).for_each(|_| watch.turn());
            is_endless(&mut observation, &watch.0, at)
        };
        assert!(!looks(1_000, ends - 1), "the run is not over");
        assert!(!looks(1_000, ends + PATIENCE), "a long event has time");
        assert!(looks(0, ends + PATIENCE + 1));
        watch.end();
        assert!(!looks(1_000, ends + PATIENCE + 1), "it has ended");

        watch.0.ends.store(ends, Ordering::Relaxed);
        assert!(!looks(0, ends - 1));
        assert!(!looks(3, ends + 10 * PATIENCE), "a few long statements");

        // A function that computes, from before the end of the run.
        watch.turn();
        assert!(!looks(0, ends - 1));
        assert!(!looks(0, ends + PATIENCE), "a long function has time");
        assert!(looks(0, ends + PATIENCE + 1));
    }
}
