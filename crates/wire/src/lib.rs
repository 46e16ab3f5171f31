//! Sans-I/O codecs of the MySQL and PostgreSQL protocols.
