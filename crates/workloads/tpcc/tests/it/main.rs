//! Tests on a database that isn't there and on real ones.

#[path = "../common/mod.rs"]
mod common;

mod apart;
mod databases;
mod golden;
mod ledger;
mod null;
mod parts;
mod resume;
mod terminals;
