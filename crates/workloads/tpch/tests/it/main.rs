//! One binary for all: the pool of text costs 1.5 s of CPU in every process that makes rows.

mod check;
mod files;
mod generate;
mod queries;
