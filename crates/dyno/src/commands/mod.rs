//! The verbs.

pub(crate) mod bench;
pub(crate) mod calibrate;
pub(crate) mod check;
pub(crate) mod cluster;
pub(crate) mod compare;
pub(crate) mod continuing;
pub(crate) mod ending;
pub(crate) mod fleet;
pub(crate) mod help;
pub(crate) mod paper;
pub(crate) mod preview;
pub(crate) mod reproduce;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod serve;
pub(crate) mod suites;
