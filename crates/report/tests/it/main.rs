//! Papers of made-up runs.

mod checks;
mod cluster;
mod cover;
mod dictionary;
mod fault;
mod files;
mod fleet;
mod forms;
mod gates;
mod paper;
mod published;
mod restarts;
mod short;
mod support;
mod synthetic;
mod terminal;
mod tpcc;
mod tpch;
mod verdict;
mod vetoes;
