//! Single-threaded event loops: tasks on epoll or io_uring, due times kept by the loop itself, and a virtual clock for tests.
//!
//! A [`Loop`] owns many futures of one type and polls one of them when its file descriptor is ready or its due time has
//! come. The steady state has no wakers, locks or allocations: a waiting future leaves the number of its task with the
//! loop of this thread and returns `Pending`. Every waiting future of this crate tolerates early polls.

mod child;
mod event_loop;
mod ring;
mod stream;
mod timers;

pub use child::{Output, ShellEnd, run_group, shell};
pub use event_loop::{Loop, Tick, Turn, block_in_task, block_on, run_all, run_spread};
pub use ring::Peek;
pub use stream::{ChosenIo, Io, IoChoice, choose_io, chosen_io};
pub use stream::{EventSource, SocketStream};
pub use timers::{
    Clock, Elapsed, SharedTime, monotonic_now, now, sleep_until, timeout, unless, wake, yield_now,
};
