//! Tests on real databases and of what needs the pool of text, which a process makes once.

mod answers;
mod check;
mod queries;
