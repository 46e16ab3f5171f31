//! Papers as PDF, by the compiler inside. The module of the binary is compiled here once more: the feature of the binary
//! itself would have every crate built a second time.

#[path = "../../crates/dyno/src/pdf/mod.rs"]
mod pdf;
