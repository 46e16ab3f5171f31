//! Statistics of trials. Pure functions over numbers: nothing here knows runs, files or databases.
//!
//! The unit of analysis is the trial, never the second: within a trial seconds depend on each other.
