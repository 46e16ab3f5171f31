//! Simulated sessions on a virtual clock.
