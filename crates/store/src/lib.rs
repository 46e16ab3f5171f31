//! The run folder: write while running, read, merge.
