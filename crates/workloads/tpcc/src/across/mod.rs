//! What became of transactions whose rows lie on several shards: each shard is asked by itself, and what it
//! holds is held against the ledger.
//!
//! A payment has its home part (warehouse, district, history) on one shard and its customer on another; an
//! order has stock on others. A shard commits its part whole or not at all. The part of a customer or of a row
//! of stock shows in its counters: they grow by more than the shard's own history and order lines explain.

mod judge;
mod look;

pub(crate) use judge::{CrossShardWork, judge};
pub(crate) use look::{ForeignWork, foreign_work, look, on_each_shard, prepared_branches};

#[cfg(test)]
mod tests;
