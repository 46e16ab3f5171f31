//! Tests on a database that isn't there.

#[path = "../common/mod.rs"]
mod common;

mod golden;
mod null;
mod parts;
mod terminals;
