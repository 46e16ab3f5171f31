//! The run folder: written while a suite runs, readable while it grows and after a kill -9.
//!
//! ```text
//! dyno-runs/2026-11-21T211030Z-quickstart/
//!   run.json                  plan, environment, versions, seed, targets, status
//!   trials/3.json             summary of trial 3, once it has ended
//!   trials/3.partial.json     what trial 3 is, while it runs
//!   trials/3.csv              a line per interval
//!   trials/3.nodes.csv        what the nodes said while it ran, a line per moment and node
//!   trials/3.hlog             latency histograms: a line per interval and kind of transaction
//!   trials/3.executed.jsonl   a line per element of a list of the family's record, while it runs
//!   trials/3.stage.json       of a stage of a long trial: what it has measured, to be added up
//!   trials/3.plans/q09.json   the plans of these queries
//!   events.jsonl              errors, reconnects, notes; one JSON object per line
//!   server/3-before.json      settings and counters per node
//!   server/3-after.json
//! ```
//!
//! Whole files are replaced atomically; growing files get whole lines, and a reader ignores a last
//! line that has no end. [`Run`] and [`TrialWriter`] write; [`read`] and [`list`] read.

mod files;
mod histograms;
mod read;
mod run;
mod series;

dyno_facts::catalog!();

pub use files::write_atomically;
pub use histograms::{HistogramLog, read as read_histograms};
pub use read::{RunData, RunEntry, TrialData, header as read_header, is_growing, list, read};
pub use run::{Moment, NodeSeries, Run, TrialWriter, no_commit, now_utc};
pub use series::{read_nodes, read_series};
