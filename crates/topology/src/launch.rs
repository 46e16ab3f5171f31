//! How a server is started.

use std::ffi::OsString;
use std::path::PathBuf;

/// A program that is started detached, and goes on when dyno has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    pub program: PathBuf,
    /// Its arguments, without passwords.
    pub arguments: Vec<OsString>,
    /// Variables beside those of this process.
    pub environment: Vec<(String, OsString)>,
    pub folder: PathBuf,
    pub log: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its folder, which exists and is empty, and belongs to `run_as`.
    pub folder: PathBuf,
    /// Its port on 127.0.0.1.
    pub port: u16,
    /// User and group as whom it runs, where dyno itself is run by root; else it runs as who runs dyno.
    pub run_as: Option<(u32, u32)>,
}
