//! The counters of a worker that scripts read and raise by `sb_counter_val` and `sb_counter_inc`.

use dyno_core::{Executed, StatementKind, Tally};
use mlua::{Lua, Table};
use std::cell::Cell;
use std::rc::Rc;

/// Their numbers in the original.
pub(crate) const OTHER: usize = 0;
pub(crate) const READ: usize = 1;
pub(crate) const WRITE: usize = 2;
pub(crate) const EVENT: usize = 3;
pub(crate) const ERROR: usize = 4;

#[derive(Debug, Default)]
pub(crate) struct ScriptCounters {
    values: [Cell<u64>; 6],
    /// What the script itself has added and the engine does not know yet.
    added: [Cell<u64>; 6],
    /// Statements that have failed, which the engine does not know yet.
    failed: Cell<u64>,
}

impl ScriptCounters {
    /// Gives the prelude `count` and `counted`.
    pub(crate) fn offer(self: &Rc<Self>, lua: &Lua, host: &Table) -> mlua::Result<()> {
        let of = |kind: Option<usize>| {
            let unknown = "sb_counter_inc() and sb_counter_val() know the counters 0 to 5";
            kind.filter(|kind| *kind < 6).ok_or_else(|| mlua::Error::runtime(unknown))
        };
        let counters = Rc::clone(self);
        let count = lua.create_function(move |_, kind: Option<usize>| {
            let kind = of(kind)?;
            counters.raise(kind);
            counters.added[kind].set(counters.added[kind].get() + 1);
            Ok(())
        })?;
        let counters = Rc::clone(self);
        let counted = lua
            .create_function(move |_, kind: Option<usize>| Ok(counters.values[of(kind)?].get()))?;
        host.set("count", count)?;
        host.set("counted", counted)
    }

    #[inline]
    pub(crate) fn raise(&self, kind: usize) {
        self.values[kind].set(self.values[kind].get() + 1);
    }

    pub(crate) fn statement(&self, done: Executed) {
        self.raise(match done.kind() {
            StatementKind::Read => READ,
            StatementKind::Write => WRITE,
            StatementKind::Other => OTHER,
        });
    }

    #[cold]
    pub(crate) fn failed(&self) {
        self.raise(ERROR);
        self.failed.set(self.failed.get() + 1);
    }

    /// Hands what the script has added to the engine; returns the errors among it and those that it has caught. The
    /// one that an event has ended with is the engine's to count.
    #[inline]
    pub(crate) fn hand_over(&self, tally: &mut Tally, is_error: bool) -> u64 {
        tally.others += self.added[OTHER].take();
        tally.reads += self.added[READ].take();
        tally.writes += self.added[WRITE].take();
        self.added[ERROR].take() + self.failed.take().saturating_sub(u64::from(is_error))
    }
}
