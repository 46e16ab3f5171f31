//! `dyno pgbench` as a script sees it, alongside the original where that is installed.

mod command_line;
mod copy;
mod encoding;
mod extras;
mod first_use;
mod home;
mod manual;
mod preparing;
pub(crate) mod shape;
pub(crate) mod support;
