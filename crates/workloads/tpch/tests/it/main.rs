//! One binary for all: the pool of text costs 1.5 s of CPU in every process that makes rows.

mod answers;
mod check;
mod databases;
mod files;
mod generate;
mod load;
mod queries;
mod run;
