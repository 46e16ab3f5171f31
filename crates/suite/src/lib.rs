//! Suites: TOML to a validated plan.
