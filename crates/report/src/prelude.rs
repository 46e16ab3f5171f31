//! All that the chapter of a small family of workloads is written with; `tests/ping` is one.

pub use crate::blocks::{PaperRows, PaperTable};
pub use crate::{Experiment, NamedPaper, Paper, Trial};
pub use dyno_judge::format::NumberFormat;
