//! Sessions that speak the PostgreSQL protocol.
