//! Tests that all registered families share.

mod fleet;
mod removal;
