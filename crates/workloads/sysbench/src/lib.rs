//! The sysbench OLTP family, native.
