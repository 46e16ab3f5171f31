//! TPC-H on real databases.

mod answers;
mod load;
mod run;
