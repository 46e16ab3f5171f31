//! Run folders to tables, charts and papers. Pure functions.
