//! Sessions that speak the MySQL protocol.
