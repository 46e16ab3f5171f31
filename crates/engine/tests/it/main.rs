//! The engine on a virtual clock, against a simulated database: every figure here follows from the
//! script, and the same test gives the same figures on every machine.

mod accounting;
mod arrivals;
mod clients;
mod connections;
mod errors;
mod load;
mod shares;
mod stopping;
mod sums;
mod support;
mod terminals;
