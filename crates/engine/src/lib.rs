//! Drives a workload over sessions: arrival, retries, windows, accounting.
