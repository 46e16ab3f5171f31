//! Drivers and workloads on real servers, without the binary.

mod servers;
