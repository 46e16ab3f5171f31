//! Published figures that stand beside one's own.

mod beside;
mod cost;
mod differences;

pub(crate) use beside::beside;
pub(crate) use cost::costs;
