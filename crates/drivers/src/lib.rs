//! MySQL, PostgreSQL, SQLite and simulated sessions.
