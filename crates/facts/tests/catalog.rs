//! The build script of crates with messages, whose own tests run here.

#[expect(dead_code, reason = "its main is called by Cargo")]
#[path = "../catalog.rs"]
mod catalog;
