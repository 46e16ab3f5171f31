//! TPC-C on real databases.

mod apart;
mod deliveries;
mod ledger;
mod resume;
mod whole_way;
