//! Drives a workload over sessions: arrival, retries, windows, accounting.
//!
//! [`drive`] is one trial. Each loop is a thread with its own event loop, recorder and schedule;
//! loops share nothing but a few counters. The way of one transaction, in [`worker`]: wait until it
//! is due, make attempts until one succeeds or the policy gives up, tell the recorder. When that is, is
//! said by the worker itself (a closed loop), by a rate ([`arrival`]) or by users with pauses, many more
//! than workers ([`terminals`]).

mod arrival;
mod control;
mod drive;
mod merge;
mod policy;
mod share;
mod shared;
mod terminals;
mod trial;
mod wire;
mod worker;

pub use arrival::Schedule;
pub use control::{Control, Refused, Start};
pub use drive::{DriveError, Observer, drive, drive_simulated};
pub use merge::{Joined, MergeError, merge};
pub use policy::{Action, ErrorPolicy, ErrorSet};
pub use share::Share;
pub use trial::{Ended, TrialResult, TrialSpec, WorkerStats};
