//! `dyno tpch` as a script sees it.

mod files;
mod qgen;
pub(crate) mod support;
