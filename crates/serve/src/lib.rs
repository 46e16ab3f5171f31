//! A page that shows runs while they grow, and the history of runs. It reads run folders and nothing
//! else, so that a page that is opened late shows all that was measured.
//!
//! ```text
//! /                    the run that is executed (server-sent events from /live)
//! /history, /compare   all runs; any two side by side
//! /paper?runs=A,B      the paper of runs, made when it is requested
//! /runs/NAME/FILE      the files of a run folder
//! /metrics             what runs now, for Prometheus
//! ```
//!
//! The server has one thread of low priority; whoever doesn't look at the page costs nothing.

mod follow;
mod gate;
mod metrics;
mod pages;
mod server;

pub use dyno_core::Error as ServeError;
pub use gate::Token;
pub use server::{BoundServer, RunningServer, Settings};
