//! Drives a workload over sessions: arrival, retries, windows, accounting.
//!
//! [`drive`] is one trial. Each loop is a thread with its own event loop and recorder; loops share only a few counters and
//! the queue of arrivals. The [`worker`] waits until a transaction is due, makes attempts until one succeeds or the
//! policy gives up, and informs the recorder. Due times come from the worker itself (a closed loop), from a rate
//! ([`arrival`]: one queue for all loops) or from users with pauses, many more than workers ([`terminals`]).

mod arrival;
mod control;
mod drive;
mod generator;
mod merge;
mod policy;
pub mod record;
mod shared;
mod terminals;
mod trial;
mod wire;
mod worker;

pub use arrival::DueArrivals;
pub use control::give_back_pages;
pub use control::{Control, Refused, Start};
pub use drive::{DriveError, Observer, default_loops, drive, drive_simulated};
pub use generator::{GeneratorWatch, run_delay_of_process};
pub use merge::{Joined, join, merge, worsen};
pub use policy::{Action, ErrorPolicy, ErrorSet};
pub use shared::TrialShare;
pub use trial::{TrialEnd, TrialResult, TrialSpec, WorkerStats};
