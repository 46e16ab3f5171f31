//! A MySQL for a test: the one that `tests/fetch-servers` unpacked, started by its own loader.

use crate::fetched::Fetched;
use crate::prepared::prepared;
use crate::server::{TestServer, free_port, set_up, unprivileged};
use crate::{Scratch, query_url};
use rustix::process::Signal;
use std::fs;
use std::path::PathBuf;

/// A running MySQL with user `root` (no password) and an empty database `sbtest`.
#[derive(Debug)]
pub struct MySql {
    pub server: TestServer,
    pub port: u16,
}

impl MySql {
    /// Folder to which `tests/fetch-servers mysql` has unpacked MySQL and its Router; an error says that it has not.
    pub fn folder() -> Result<PathBuf, String> {
        Fetched::find("mysql").map(|fetched| fetched.0)
    }

    /// Starts a small server. An error is that of [`Self::folder`]; panics when one that is there doesn't start.
    pub fn start() -> Result<Self, String> {
        Self::start_with(&[])
    }

    /// Starts a server with further options.
    pub fn start_with(options: &[&str]) -> Result<Self, String> {
        let fetched = Fetched::find("mysql")?;
        Ok(Self::launch(&fetched, options)
            .unwrap_or_else(|why| panic!("MySQL is there but doesn't start: {why}")))
    }

    fn launch(fetched: &Fetched, options: &[&str]) -> Result<Self, String> {
        let source = include_str!("mysql.rs");
        let scratch = prepared(&fetched.file("usr/sbin/mysqld"), source, |scratch| {
            let (loader, arguments) = program(fetched, &scratch)?;
            set_up(unprivileged(&loader).args(&arguments).arg("--initialize-insecure"))?;
            let mut mysql = Self::on_data(scratch, fetched, &[])?;
            query_url(&mysql.url().replace("/sbtest", "/mysql"), "CREATE DATABASE sbtest")
                .map_err(|error| error.to_string())?;
            mysql.server.shut_down(Signal::TERM)?;
            // A server without this file invents an identity.
            fs::remove_file(mysql.server.folder().join("data/auto.cnf"))
                .map_err(|error| format!("auto.cnf: {error}"))?;
            Ok(mysql)
        })?;
        Self::on_data(scratch, fetched, options)
    }

    /// Starts a server on the folder `data` of `scratch`.
    fn on_data(scratch: Scratch, fetched: &Fetched, options: &[&str]) -> Result<Self, String> {
        let (loader, mut arguments) = program(fetched, &scratch)?;
        let (port, own) = (free_port(), scratch.path().display());
        arguments.extend([
            format!("--plugin-dir={}", fetched.file("usr/lib/mysql/plugin")),
            format!("--socket={own}/s"),
            format!("--pid-file={own}/pid"),
            format!("--port={port}"),
            "--bind-address=127.0.0.1".to_owned(),
            "--innodb-buffer-pool-size=128M".to_owned(),
            "--innodb-flush-log-at-trx-commit=2".to_owned(),
        ]);
        arguments.extend(options.iter().map(|&option| option.to_owned()));
        let mut mysql = MySql { server: TestServer::new(scratch, &loader, arguments), port };
        let administrator = format!("mysql://root@127.0.0.1:{port}/mysql");
        mysql.server.launch(|| query_url(&administrator, "SELECT 1").is_ok())?;
        Ok(mysql)
    }

    /// A URL of dyno for the TCP port and database `sbtest`.
    pub fn url(&self) -> String {
        format!("mysql://root@127.0.0.1:{}/sbtest", self.port)
    }
}

/// The program that executes the server on a folder, and its first arguments.
fn program(fetched: &Fetched, scratch: &Scratch) -> Result<(String, Vec<String>), String> {
    let (loader, mut arguments) = fetched.program("usr/sbin/mysqld", "usr/lib/mysql/private")?;
    let folder = scratch.path().display();
    arguments.extend([
        "--no-defaults".to_owned(),
        format!("--basedir={}", fetched.file("usr")),
        format!("--datadir={folder}/data"),
        format!("--tmpdir={folder}"),
        format!("--lc-messages-dir={}", fetched.file("usr/share/mysql")),
        format!("--character-sets-dir={}", fetched.file("usr/share/mysql/charsets")),
        "--mysqlx=OFF".to_owned(),
        "--secure-file-priv=NULL".to_owned(),
        "--innodb-redo-log-capacity=64M".to_owned(),
    ]);
    Ok((loader, arguments))
}
