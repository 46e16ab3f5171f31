//! What the registered families have in common.

mod fleet;
mod removal;
