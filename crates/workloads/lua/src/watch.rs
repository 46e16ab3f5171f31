//! Watches functions of scripts that compute for long: a thread looks at all states, notes how long one has computed at
//! a stretch, and sets a hook where it still does so after the end of its run.
//!
//! A hook that is always there would make each instruction dearer, and keep LuaJIT from compiling.

use dyno_core::{MILLISECOND, Nanos, SECOND};
use dyno_reactor::monotonic_now;
use mlua::ffi::{self, lua_Debug, lua_State};
use std::ffi::CStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

/// How long after the end of the run a function may compute without asking a database.
const GRACE: Nanos = SECOND;
const LOOKS: Duration = Duration::from_millis(100);

/// What the thread knows of a state.
#[derive(Debug)]
pub(crate) struct Watched {
    /// The end of its run; `Nanos::MAX` where there is none.
    ends: AtomicU64,
    /// Odd while a function computes.
    turns: AtomicU64,
    /// The longest time between two looks that have seen the same turn compute.
    longest: AtomicU64,
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
    pub(crate) fn over(state: *mut lua_State) -> Self {
        let watched = Arc::new(Watched {
            ends: AtomicU64::new(Nanos::MAX),
            turns: AtomicU64::new(0),
            longest: AtomicU64::new(0),
            state: Mutex::new(StatePointer(state)),
        });
        Watch(watched)
    }

    /// The run begins: from now on the thread looks at the state, and ends functions that compute for long after `ends`.
    pub(crate) fn begin(&self, ends: Nanos) {
        self.0.ends.store(ends, Ordering::Relaxed);
        watch(&self.0);
    }

    /// The run has ended: returns how long a function is known to have computed at a stretch, which is up to two looks
    /// too short; 0 if no two looks have met the same step.
    pub(crate) fn end(&self) -> Nanos {
        self.0.ends.store(Nanos::MAX, Ordering::Relaxed);
        self.0.longest.load(Ordering::Relaxed)
    }

    /// The state will be closed: no other thread touches it from now on.
    pub(crate) fn close(&self) {
        locked(&self.0.state).0 = std::ptr::null_mut();
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

/// A state, its turn at the last look, and when it began that.
type Seen = (Weak<Watched>, u64, Nanos);

fn watch(watched: &Arc<Watched>) {
    static ALL: OnceLock<Mutex<Vec<Seen>>> = OnceLock::new();
    let mut is_first = false;
    let all = ALL.get_or_init(|| {
        is_first = true;
        Mutex::default()
    });
    locked(all).push((Arc::downgrade(watched), 0, monotonic_now()));
    if is_first {
        // Without the thread, endless functions are not ended: no reason not to run a script.
        let _ = std::thread::Builder::new().name("lua-watch".to_owned()).spawn(move || {
            loop {
                std::thread::sleep(LOOKS);
                let now = monotonic_now();
                locked(all).retain_mut(|seen| look(seen, now));
            }
        });
    }
}

/// Sets the hook where it is time; false for a state that is closed.
fn look((watched, turn, since): &mut Seen, now: Nanos) -> bool {
    let Some(watched) = watched.upgrade() else { return false };
    let turns = watched.turns.load(Ordering::Relaxed);
    let ends = watched.ends.load(Ordering::Relaxed);
    if turns != *turn {
        (*turn, *since) = (turns, now);
    }
    if turns % 2 == 0 {
        return true;
    }
    let computed = now.saturating_sub(*since);
    watched.longest.fetch_max(computed, Ordering::Relaxed);
    if computed > GRACE && now > ends.saturating_add(GRACE).saturating_add(100 * MILLISECOND) {
        set_hook(&locked(&watched.state));
    }
    true
}

#[expect(unsafe_code, reason = "LuaJIT's way to interrupt a function from another thread")]
fn set_hook(state: &StatePointer) {
    if !state.0.is_null() {
        // SAFETY: the state is open, as its owner nulls the pointer under this lock before it closes it. LuaJIT allows
        // this call from another thread (lj_record.c, LUAJIT_ENABLE_CHECKHOOK).
        unsafe { ffi::lua_sethook(state.0, Some(end_function), ffi::LUA_MASKCOUNT, 1) };
    }
}

const TOO_LONG: &CStr = c"the function was still computing when --time was over";

#[expect(unsafe_code, reason = "called by LuaJIT")]
unsafe extern "C-unwind" fn end_function(state: *mut lua_State, _: *mut lua_Debug) {
    // SAFETY: LuaJIT calls a hook with a state that runs a function, in which it may raise an error.
    unsafe {
        ffi::lua_sethook(state, None, 0, 0);
        ffi::luaL_where(state, 0);
        ffi::lua_pushstring(state, TOO_LONG.as_ptr());
        ffi::lua_concat(state, 2);
        ffi::lua_error(state);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
