//! Tests of the script language against the installed pgbench, and against what it once printed.

mod client;
mod dialects;
mod golden;
mod parts;
mod properties;
mod random;
mod stream;
mod support;
