//! Measurements of loops: recorders, histograms, frames, intervals, and how they become facts of a trial.
//!
//! A [`Recorder`] lives on each loop and knows nothing of others. It hands over a [`Frame`] per interval and continues
//! with an empty one; the [`Collector`] merges the frames of all loops into [`MeasuredInterval`]s and totals.

mod collector;
mod fault;
mod frame;
mod histogram;
mod recorder;

pub(crate) use collector::error_class;
pub use collector::{Collector, MeasuredInterval};
pub use collector::{read_cells, set_totals, statement_counts};
pub use fault::FaultWatch;
pub use frame::{Awaited, ErrorCount, ErrorTable, Frame, KindFrame};
pub use histogram::Latencies;
pub use recorder::{
    FramePlace, FrameSink, Phase, Recorder, Times, Window, process_cpu, thread_cpu,
};
