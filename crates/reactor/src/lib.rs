//! Single-threaded event loops: tasks on epoll, due times kept by the loop itself, and a virtual
//! clock for tests.
//!
//! A [`Loop`] owns many futures of one type and polls one of them when its file descriptor becomes
//! ready or its due time has come. There are no wakers, no locks and no allocation in the steady
//! state: a future that has to wait notes the number of its task with the loop of this thread and
//! returns `Pending`. Every waiting future of this crate tolerates being polled too early.
//!
//! ```
//! use dyno_reactor::{Clock, Loop, now, sleep_until};
//!
//! let tasks = (1..=3_u64).map(|n| async move {
//!     sleep_until(n * 1_000_000_000).await;
//!     now()
//! });
//! let mut ends = Loop::new(Clock::Virtual, tasks).unwrap().finish().unwrap();
//! ends.sort();
//! assert_eq!(ends, [1_000_000_000, 2_000_000_000, 3_000_000_000]);
//! ```

mod child;
mod clock;
mod event_loop;
mod source;
mod timers;

pub use child::{Output, ShellEnd, run_group, shell};
pub use clock::{Clock, monotonic_now};
pub use event_loop::{Loop, Next, Tick, block_on, run_all, run_spread};
pub use source::Source;
pub use timers::{Elapsed, now, sleep_until, timeout, unless, wake, yield_now};
